//! Azure's object store: Azurite, the vendor's emulator, with its well-known account.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast::config::{Config, SecretText};
use holdfast::domain::clock::Clock;
use holdfast::domain::hash::hmac_sha256;
use tempfile::TempDir;

const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = concat!(
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
    "/K1SZFPTOtr/KBHBeksoGMGw=="
);
const VERSION: &str = "2021-08-06";

/// A running store with the container `plain`.
pub struct AzuriteServer {
    url: String,
    running: Child,
    _folder: TempDir,
}

impl Drop for AzuriteServer {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

impl AzuriteServer {
    pub async fn start() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../azurite/node_modules");
        let running = Command::new("node")
            .arg(tools.join("azurite/dist/src/blob/main.js"))
            .args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"])
            .args([
                "--blobHost",
                "127.0.0.1",
                "--blobPort",
                &address.port().to_string(),
            ])
            .arg("--location")
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("azurite is missing: run `tests/set-up test`");

        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "azurite does not listen");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        let store = Self {
            url: format!("http://{address}/{ACCOUNT}"),
            running,
            _folder: folder,
        };
        store.make_container().await;

        store
    }

    /// Sends `Create Container`, signed with the account's key.
    async fn make_container(&self) {
        let now = Clock::default().now();
        let now = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap();
        let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let headers = format!("x-ms-date:{date}\nx-ms-version:{VERSION}\n");
        let resource = format!("/{ACCOUNT}/{ACCOUNT}/plain\nrestype:container");
        let to_sign = format!("PUT{}{headers}{resource}", "\n".repeat(12));
        let signature = hmac_sha256(&STANDARD.decode(KEY).unwrap(), &[to_sign.as_bytes()]);
        let signature = STANDARD.encode(signature);
        let answer = reqwest::Client::new()
            .put(format!("{}/plain?restype=container", self.url))
            .header("x-ms-date", date)
            .header("x-ms-version", VERSION)
            .header("content-length", "0")
            .header("authorization", format!("SharedKey {ACCOUNT}:{signature}"));
        assert_eq!(answer.send().await.unwrap().status(), 201);
    }

    /// Configures a node to store its objects here.
    pub fn configure(&self, config: &mut Config) {
        config.storage_url = Some("az://plain/holdfast".into());
        for (name, value) in [
            ("azure_storage_account_name", ACCOUNT),
            ("azure_storage_account_key", KEY),
            ("azure_endpoint", &self.url),
            ("azure_allow_http", "true"),
        ] {
            let options = &mut config.storage.options;
            options.insert(name.into(), SecretText::new(value));
        }
    }
}
