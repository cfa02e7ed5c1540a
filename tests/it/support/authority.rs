//! A time-stamping authority (RFC 3161): OpenSSL behind HTTP.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::post;
use tempfile::TempDir;

use super::revocation::FakeCertificateAuthority;

const CONFIG: &str = "
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
[stamps]
extendedKeyUsage = critical,timeStamping
[other]
extendedKeyUsage = critical,codeSigning
[tsa]
default_tsa = settings
[settings]
serial = serial
digests = sha256, sha384, sha512
signer_digest = sha256
default_policy = 1.2.3.4.1
ess_cert_id_alg = sha256
";

/// Way in which the authority responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorityBehaviour {
    Right,
    /// With a token for other bytes.
    OtherBytes,
    /// With an earlier response.
    Replayed,
    /// With a certificate that is not meant for time stamping.
    OtherPurpose,
    /// With bytes that are no token.
    Garbage,
    /// With an error status.
    Unavailable,
    /// With a body that never ends.
    Endless,
}

pub struct FakeTimestampAuthority {
    pub url: String,
    folder: TempDir,
    state: Arc<AuthorityState>,
}

struct AuthorityState {
    folder: PathBuf,
    manner: AuthorityBehaviour,
    /// OpenSSL's files have fixed names.
    one_at_a_time: tokio::sync::Mutex<()>,
    /// How far its clock is ahead, in seconds.
    ahead: AtomicU64,
}

impl FakeTimestampAuthority {
    /// Starts an authority. `key` is an argument of `openssl req -newkey`, for example `rsa:2048`.
    pub async fn start(key: &[&str], manner: AuthorityBehaviour) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::write(at.join("openssl.cnf"), CONFIG).unwrap();
        std::fs::write(at.join("serial"), "01").unwrap();
        let purpose = match manner {
            AuthorityBehaviour::OtherPurpose => "other",
            _ => "stamps",
        };

        let common = [
            "req",
            "-x509",
            "-nodes",
            "-days",
            "3650",
            "-config",
            "openssl.cnf",
        ];

        let root = [
            "-newkey", "rsa:2048", "-keyout", "root.key", "-out", "root.pem",
        ];
        let root = [
            &root[..],
            &["-subj", "/CN=Example Time Root", "-extensions", "authority"],
        ];
        openssl(at, &[&common[..], &root.concat()].concat());

        let own = [
            "-keyout",
            "own.key",
            "-out",
            "own.pem",
            "-subj",
            "/CN=Example Time",
        ];

        let by = [
            "-CA",
            "root.pem",
            "-CAkey",
            "root.key",
            "-extensions",
            purpose,
        ];
        openssl(at, &[&common[..], key, &own, &by].concat());
        Self::serve(folder, manner).await
    }

    /// Starts an authority with a certificate of another one, for so many days.
    pub async fn certified_by(authority: &FakeCertificateAuthority, days: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let settings = CONFIG.replace("= sha256\n", &format!("= {}\n", authority.digest));
        std::fs::write(at.join("openssl.cnf"), settings).unwrap();
        std::fs::write(at.join("serial"), "01").unwrap();

        let (key, certificates) = authority.certify("Example Time", "stamps", days);
        std::fs::copy(key, at.join("own.key")).unwrap();
        std::fs::copy(certificates, at.join("own.pem")).unwrap();
        std::fs::copy(authority.root(), at.join("root.pem")).unwrap();
        Self::serve(folder, AuthorityBehaviour::Right).await
    }

    async fn serve(folder: TempDir, manner: AuthorityBehaviour) -> Self {
        let state = Arc::new(AuthorityState {
            folder: folder.path().to_owned(),
            manner,
            one_at_a_time: tokio::sync::Mutex::default(),
            ahead: AtomicU64::default(),
        });
        let router = Router::new()
            .route("/", post(answer))
            .with_state(state.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());

        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, folder, state }
    }

    /// Sets its clock ahead.
    pub fn advance(&self, ahead: Duration) {
        self.state.ahead.store(ahead.as_secs(), Ordering::Relaxed);
    }

    /// Returns the path of its root certificate.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }
}

async fn answer(State(state): State<Arc<AuthorityState>>, query: Bytes) -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, "application/timestamp-reply")];
    match state.manner {
        AuthorityBehaviour::Unavailable => {
            let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
            return (status, kind, axum::body::Body::empty());
        }
        AuthorityBehaviour::Garbage => return (200.try_into().unwrap(), kind, "no token".into()),
        AuthorityBehaviour::Endless => {
            let pieces = futures::stream::repeat_with(|| {
                Ok::<_, std::io::Error>(Bytes::from(vec![0; 4096]))
            });
            return (
                200.try_into().unwrap(),
                kind,
                axum::body::Body::from_stream(pieces),
            );
        }
        AuthorityBehaviour::Right
        | AuthorityBehaviour::OtherBytes
        | AuthorityBehaviour::Replayed
        | AuthorityBehaviour::OtherPurpose => {}
    }

    let _turn = state.one_at_a_time.lock().await;
    let at = state.folder.as_path();
    match state.manner {
        AuthorityBehaviour::OtherBytes => {
            std::fs::write(at.join("other"), b"other bytes").unwrap();
            openssl(
                at,
                &[
                    "ts", "-query", "-data", "other", "-sha256", "-cert", "-out", "query",
                ],
            );
        }
        AuthorityBehaviour::Replayed if at.join("query").exists() => {}
        _ => std::fs::write(at.join("query"), &query).unwrap(),
    }

    let reply = [
        "ts",
        "-reply",
        "-queryfile",
        "query",
        "-signer",
        "own.pem",
        "-inkey",
        "own.key",
    ];

    let to = ["-config", "openssl.cnf", "-out", "reply"];

    // OpenSSL refuses to sign time stamps with such a certificate, so the response is canned.
    if state.manner == AuthorityBehaviour::OtherPurpose {
        return (
            200.try_into().unwrap(),
            kind,
            refused(at, &[&reply[..], &to].concat()).into(),
        );
    }

    let ahead = Duration::from_secs(state.ahead.load(Ordering::Relaxed));
    openssl_ahead(at, ahead, &[&reply[..], &to].concat());
    let reply = std::fs::read(at.join("reply")).unwrap();
    (200.try_into().unwrap(), kind, reply.into())
}

fn refused(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl")
        .current_dir(folder)
        .args(arguments)
        .output();
    assert!(!output.unwrap().status.success());
    std::fs::read(folder.join("reply")).unwrap_or_default()
}

/// Runs OpenSSL, which `tests/set-up` installs.
pub fn openssl(folder: &Path, arguments: &[&str]) {
    openssl_ahead(folder, Duration::ZERO, arguments);
}

/// Runs OpenSSL with its clock ahead.
pub fn openssl_ahead(folder: &Path, ahead: Duration, arguments: &[&str]) {
    let output = with_clock("openssl", ahead)
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("openssl: run tests/set-up test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// Returns a command that sees a clock that is ahead.
pub fn with_clock(program: impl AsRef<std::ffi::OsStr>, ahead: Duration) -> Command {
    let mut command = Command::new(program);
    set_clock(&mut command, ahead);
    command
}

/// Shows a command a clock that is ahead.
pub fn set_clock(command: &mut Command, ahead: Duration) {
    if !ahead.is_zero() {
        command
            .env("LD_PRELOAD", libfaketime())
            .env("FAKETIME", format!("+{}", ahead.as_secs()));
    }
}

/// Returns the library that shows programs another time.
pub fn libfaketime() -> PathBuf {
    std::fs::read_dir("/usr/lib")
        .unwrap()
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists())
        .expect("libfaketime is missing: run `tests/set-up test`")
}

/// Computes an HMAC-SHA256 in hexadecimal with OpenSSL.
pub fn hmac_sha256(key: &str, message: &[u8]) -> String {
    use std::io::Write as _;

    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", key])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("openssl: run tests/set-up test");
    child.stdin.take().unwrap().write_all(message).unwrap();

    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim().rsplit(' ').next().unwrap().to_owned()
}
