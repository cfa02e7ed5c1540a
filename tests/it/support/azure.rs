//! Azure's object store: Azurite, the vendor's emulator, with its well-known account, and a stand-in for the
//! legal holds that Azurite lacks.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast::config::{Config, SecretText};
use holdfast::domain::clock::Clock;
use holdfast::domain::hash::hmac_sha256;
use tempfile::TempDir;

use super::holds::{HeldObjects, answer_of};

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
        let answer = reqwest::Client::new()
            .put(format!("{}/plain?restype=container", self.url))
            .header("x-ms-date", date)
            .header("x-ms-version", VERSION)
            .header("content-length", "0")
            .header("authorization", authorization(&to_sign));
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

/// Returns the authorization of a request by the account's key.
fn authorization(to_sign: &str) -> String {
    let signature = hmac_sha256(&STANDARD.decode(KEY).unwrap(), &[to_sign.as_bytes()]);
    format!("SharedKey {ACCOUNT}:{}", STANDARD.encode(signature))
}

/// Azurite behind a proxy that sets legal holds.
pub struct AzureWithHolds {
    azurite: AzuriteServer,
    url: String,
    /// Blobs with a legal hold.
    pub held: HeldObjects,
}

#[derive(Clone)]
struct HoldsProxy {
    /// Azurite's URL, without the account.
    azurite: String,
    held: HeldObjects,
    /// Whether the container has version-level immutability.
    is_version_level: bool,
    http: reqwest::Client,
}

impl AzureWithHolds {
    pub async fn start(is_version_level: bool) -> Self {
        let azurite = AzuriteServer::start().await;
        let proxy = HoldsProxy {
            azurite: azurite.url.replace(&format!("/{ACCOUNT}"), ""),
            held: HeldObjects::default(),
            is_version_level,
            http: reqwest::Client::new(),
        };
        let held = proxy.held.clone();

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/{ACCOUNT}", listener.local_addr().unwrap());
        let router = Router::new().fallback(forward).with_state(proxy);
        tokio::spawn(async move { axum::serve(listener, router).await });

        Self { azurite, url, held }
    }

    /// Configures a node to store its objects here.
    pub fn configure(&self, config: &mut Config) {
        self.azurite.configure(config);
        let url = SecretText::new(self.url.as_str());
        config.storage.options.insert("azure_endpoint".into(), url);
    }
}

async fn forward(State(to): State<HoldsProxy>, request: Request) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    if query == "comp=legalhold" {
        return hold(&to, &parts);
    }
    let is_about_container = query == "restype=container" && parts.method == Method::GET;

    parts.headers.remove("host");
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let answer = to
        .http
        .request(parts.method, format!("{}{}", to.azurite, parts.uri))
        .headers(parts.headers)
        .body(body)
        .send()
        .await;
    let Ok(answer) = answer else {
        return answer_of(StatusCode::BAD_GATEWAY);
    };

    let mut forwarded = answer_of(answer.status());
    let headers = forwarded.headers_mut();
    *headers = answer.headers().clone();
    for own in ["connection", "transfer-encoding"] {
        headers.remove(own);
    }
    if is_about_container {
        let name = "x-ms-immutable-storage-with-versioning-enabled";
        let is_enabled = if to.is_version_level { "true" } else { "false" };
        headers.insert(name, HeaderValue::from_static(is_enabled));
    }
    *forwarded.body_mut() = Body::from_stream(answer.bytes_stream());

    forwarded
}

/// Sets the legal hold of a blob, or takes it off, if the account's key has signed the request.
fn hold(to: &HoldsProxy, parts: &Parts) -> Response<Body> {
    let header = |name: &str| {
        let value = parts.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    };
    let (is_held, version) = (header("x-ms-legal-hold"), header("x-ms-version"));
    let path = parts.uri.path();
    let headers = format!("x-ms-legal-hold:{is_held}\nx-ms-version:{version}\n");
    let to_sign = format!(
        "PUT{fields}{date}{fields}{headers}/{ACCOUNT}{path}\ncomp:legalhold",
        fields = "\n".repeat(6),
        date = header("date"),
    );

    if parts.method != Method::PUT || header("content-length") != "0" {
        return answer_of(StatusCode::LENGTH_REQUIRED);
    }
    if header("authorization") != authorization(&to_sign) {
        return answer_of(StatusCode::FORBIDDEN);
    }
    if !to.is_version_level {
        return answer_of(StatusCode::CONFLICT);
    }
    let key = path.strip_prefix(&format!("/{ACCOUNT}/plain/"));
    to.held.set(key.expect("a blob"), is_held == "true");

    answer_of(StatusCode::OK)
}
