//! Third-party object stores: moto, run by `tests/s3_server.py`, which supports conditional
//! writes, Object Lock and KMS; and s3s-fs, which verifies signatures.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast::config::{Config, SecretText};
use serde_json::Value;
use tempfile::TempDir;

use super::files_below;

const MISSING: &str = "an S3 server is missing: run `tests/set-up test`";
/// Access key of s3s-fs; moto accepts any key.
pub const ACCESS_KEY: &str = "test";
pub const SECRET_KEY: &str = "secret";

/// A running object store.
pub struct S3Server {
    pub url: String,
    /// Id of the KMS key, for stores with KMS.
    pub kms_key: Option<String>,
    /// Folder with the objects, for stores that keep them as files.
    folder: Option<TempDir>,
    running: Child,
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}

fn tool(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(name)
}

impl S3Server {
    /// Starts moto with the buckets `plain` and `locked`.
    pub fn moto() -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/s3_server.py");
        let mut running = Command::new(tool("pdf-readers/bin/python"))
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect(MISSING);

        let mut line = String::new();
        let output = running.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).expect(MISSING);
        Self {
            url: told["url"].as_str().unwrap().into(),
            kms_key: Some(told["kms_key"].as_str().unwrap().into()),
            folder: None,
            running,
        }
    }

    /// Starts s3s-fs with the bucket `plain`.
    pub fn s3s() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("plain")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let running = Command::new(tool("s3/bin/s3s-fs"))
            .args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY])
            .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
            .arg(folder.path())
            .env("RUST_LOG", "error")
            .stdout(Stdio::null())
            .spawn()
            .expect(MISSING);

        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "s3s-fs does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }

        Self {
            url: format!("http://{address}"),
            kms_key: None,
            folder: Some(folder),
            running,
        }
    }

    /// Configures a node to store its objects in a bucket.
    pub fn configure(&self, config: &mut Config, bucket: &str) {
        use_bucket(config, &self.url, bucket);
    }

    /// Returns the same settings as environment variables, for a server process.
    pub fn variables(&self, bucket: &str) -> Vec<(String, String)> {
        let mut config = Config::default();
        self.configure(&mut config, bucket);
        let options = config.storage.options.iter();
        let options = options.map(|(name, value)| (name.to_uppercase(), value.reveal().to_owned()));
        let url = config.storage_url.clone().unwrap_or_default();
        options
            .chain([("HOLDFAST_STORAGE_URL".to_owned(), url)])
            .collect()
    }

    /// Returns the folder with the objects.
    pub fn folder(&self) -> PathBuf {
        self.folder.as_ref().unwrap().path().join("plain/holdfast")
    }

    /// Returns the file path of every object in an area.
    pub fn objects(&self, area: &str) -> Vec<PathBuf> {
        files_below(&self.folder().join(area))
    }

    /// Sends an unsigned request to moto, which does not verify signatures.
    pub async fn ask(&self, method: &str, path: &str) -> reqwest::Response {
        let method = method.parse().unwrap();
        let url = format!("{}/{path}", self.url);
        let signed = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";
        reqwest::Client::new()
            .request(method, url)
            .header("authorization", signed)
            .send()
            .await
            .unwrap()
    }
}

/// Configures a node to store its objects below `holdfast` in a bucket of the S3 server at `url`.
pub fn use_bucket(config: &mut Config, url: &str, bucket: &str) {
    config.storage_url = Some(format!("s3://{bucket}/holdfast"));
    for (name, value) in [
        ("aws_endpoint", url),
        ("aws_endpoint_url_kms", url),
        ("aws_allow_http", "true"),
        ("aws_region", "us-east-1"),
        ("aws_access_key_id", ACCESS_KEY),
        ("aws_secret_access_key", SECRET_KEY),
    ] {
        let options = &mut config.storage.options;
        options.insert(name.into(), SecretText::new(value));
    }
}
