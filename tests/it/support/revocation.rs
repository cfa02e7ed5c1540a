//! A certification authority with its list of revoked certificates and its responder: OpenSSL behind HTTP.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use tempfile::TempDir;

use super::authority::openssl_ahead;

/// Way in which the authority publishes revocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationBehaviour {
    /// By list and responder.
    Right,
    /// By its list; the responder is down.
    ListOnly,
    /// With a list of more than a mebibyte.
    TooLarge,
    /// With a list that is out of date.
    OutOfDate,
    /// With an error status.
    Unavailable,
    /// Not at all.
    Silent,
    /// With the list of another authority.
    OtherIssuer,
    /// With a list that has every certificate.
    Revoked,
    /// With bytes that are no list.
    Garbage,
}

pub struct FakeCertificateAuthority {
    /// Digest algorithm of its signatures.
    pub digest: &'static str,
    folder: TempDir,
    state: Arc<RevocationState>,
}

struct RevocationState {
    folder: PathBuf,
    manner: Mutex<RevocationBehaviour>,
    ahead: AtomicU64,
    /// Lists and answers that were asked for.
    asked: AtomicUsize,
    /// OpenSSL's files have fixed names.
    one_at_a_time: Mutex<()>,
}

impl FakeCertificateAuthority {
    pub async fn start(name: &str, manner: RevocationBehaviour) -> Self {
        Self::start_with(name, "sha256", manner).await
    }

    pub async fn start_with(name: &str, digest: &'static str, manner: RevocationBehaviour) -> Self {
        Self::start_for(name, digest, manner, 14_600).await
    }

    /// Like [`Self::start_with`], with a root for so many days.
    pub async fn start_for(
        name: &str,
        digest: &'static str,
        manner: RevocationBehaviour,
        days: u64,
    ) -> Self {
        let days = days.to_string();
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::fs::write(at.join("openssl.cnf"), settings(&address, digest)).unwrap();
        std::fs::write(at.join("index.txt"), "").unwrap();
        // A key that is certified anew has the same subject.
        std::fs::write(at.join("index.txt.attr"), "unique_subject = no\n").unwrap();
        std::fs::write(at.join("crlnumber"), "1000\n").unwrap();

        for (file, subject) in [("root", name), ("other", "Another Authority")] {
            let (key, certificate) = (format!("{file}.key"), format!("{file}.pem"));
            let subject = format!("/CN={subject}");
            let files = ["-keyout", &key, "-out", &certificate, "-subj", &subject];
            let extensions = ["-newkey", "rsa:2048", "-extensions", "authority"];
            openssl(
                &at,
                &[&REQUEST[..], &["-days", &days], &files, &extensions].concat(),
            );
        }

        // A responder of its own, as public authorities have: pyHanko looks for a statement about a root that answers itself.
        let files = ["-keyout", "responder.key", "-out", "responder.pem"];
        let subject = ["-subj", "/CN=Example Responder", "-days", "14600"];
        let by = ["-CA", "root.pem", "-CAkey", "root.key"];
        let extensions = ["-extensions", "answers"];
        openssl(
            &at,
            &[&REQUEST[..], &CURVE, &files, &subject, &by, &extensions].concat(),
        );

        let state = Arc::new(RevocationState {
            folder: at,
            manner: Mutex::new(manner),
            ahead: AtomicU64::default(),
            asked: AtomicUsize::default(),
            one_at_a_time: Mutex::default(),
        });
        let router = Router::new()
            .route("/ca.crl", get(list))
            .route("/ocsp", post(answer))
            .with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });

        Self {
            digest,
            folder,
            state,
        }
    }

    /// Returns the path of its root certificate.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// Sets its clock ahead.
    pub fn advance(&self, ahead: Duration) {
        self.state.ahead.store(ahead.as_secs(), Ordering::Relaxed);
    }

    pub fn behave(&self, manner: RevocationBehaviour) {
        *self.state.manner.lock().unwrap() = manner;
    }

    /// Returns how many lists and answers were asked for.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::Relaxed)
    }

    /// Certifies a new key for a purpose of [`settings`]. Returns the files of the key and of its certificates.
    pub fn certify(&self, name: &str, purpose: &str, days: u32) -> (PathBuf, PathBuf) {
        let at = self.folder.path();
        let (key, own) = (format!("{name}.key"), format!("{name}.pem"));
        let (subject, days) = (format!("/CN={name}"), days.to_string());
        let files = [
            "-keyout", &key, "-out", &own, "-subj", &subject, "-days", &days,
        ];
        let by = [
            "-CA",
            "root.pem",
            "-CAkey",
            "root.key",
            "-extensions",
            purpose,
        ];
        // SHA-512 with P-256 is not among the signatures that are accepted.
        let kind = if self.digest == "sha512" {
            &RSA[..]
        } else {
            &CURVE[..]
        };
        openssl(at, &[&REQUEST[..], kind, &files, &by].concat());

        openssl(
            at,
            &["x509", "-in", &own, "-noout", "-serial", "-out", "serial"],
        );
        let serial = std::fs::read_to_string(at.join("serial")).unwrap();
        let serial = serial.trim().trim_start_matches("serial=").to_owned();
        let index = at.join("index.txt");
        let known = std::fs::read_to_string(&index).unwrap();
        let entry = format!("V\t491231235959Z\t\t{serial}\tunknown\t{subject}\n");
        std::fs::write(&index, known + &entry).unwrap();

        let chain = at.join(format!("{name}.chain.pem"));
        let certificates = [&own, "root.pem"].map(|file| std::fs::read(at.join(file)).unwrap());
        std::fs::write(&chain, certificates.concat()).unwrap();
        (at.join(key), chain)
    }

    /// Returns the file of a list that it makes now, `ahead` of the real time.
    pub fn list_of(&self, ahead: Duration) -> PathBuf {
        let _turn = self.state.one_at_a_time.lock().unwrap();
        // Made a little earlier: a list of the future is not current.
        let made = ahead.saturating_sub(Duration::from_secs(3600));
        make_list(&self.state.folder, made, "root", &["-crldays", "7"]);

        let kept = self
            .folder
            .path()
            .join(format!("list-{}.crl", ahead.as_secs()));
        std::fs::copy(self.folder.path().join("ca.crl"), &kept).unwrap();
        kept
    }
}

/// Begin of the command that makes a certificate.
const REQUEST: [&str; 5] = ["req", "-x509", "-nodes", "-config", "openssl.cnf"];
const RSA: [&str; 2] = ["-newkey", "rsa:2048"];
const CURVE: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

fn settings(address: &str, digest: &str) -> String {
    let places = format!(
        "crlDistributionPoints = URI:{address}/ca.crl\nauthorityInfoAccess = OCSP;URI:{address}/ocsp"
    );
    format!(
        "[req]\ndistinguished_name = name\ndefault_md = {digest}\n[name]\n\
         [authority]\nbasicConstraints = critical,CA:true\n\
         keyUsage = critical,keyCertSign,cRLSign,digitalSignature\n\
         [seals]\nkeyUsage = critical,digitalSignature,nonRepudiation\n{places}\n\
         [seals_without_places]\nkeyUsage = critical,digitalSignature,nonRepudiation\n\
         [answers]\nkeyUsage = critical,digitalSignature\nextendedKeyUsage = OCSPSigning\nnoCheck = ignored\n\
         [stamps]\nkeyUsage = critical,digitalSignature\nextendedKeyUsage = critical,timeStamping\n{places}\n\
         [ca]\ndefault_ca = list\n\
         [list]\ndatabase = index.txt\ncrlnumber = crlnumber\ndefault_md = {digest}\ndefault_crl_days = 7\n"
    )
}

fn openssl(folder: &Path, arguments: &[&str]) {
    openssl_ahead(folder, Duration::ZERO, arguments);
}

/// Makes `ca.crl` with the key of `root` or `other`.
fn make_list(folder: &Path, ahead: Duration, by: &str, times: &[&str]) {
    let (key, certificate) = (format!("{by}.key"), format!("{by}.pem"));
    let list = [
        "ca",
        "-gencrl",
        "-config",
        "openssl.cnf",
        "-out",
        "list.pem",
    ];
    let signer = ["-keyfile", &key, "-cert", &certificate];
    openssl_ahead(folder, ahead, &[&list[..], &signer, times].concat());
    openssl(
        folder,
        &[
            "crl", "-in", "list.pem", "-outform", "DER", "-out", "ca.crl",
        ],
    );
}

async fn list(State(state): State<Arc<RevocationState>>) -> impl IntoResponse {
    state.asked.fetch_add(1, Ordering::Relaxed);
    let manner = *state.manner.lock().unwrap();
    match manner {
        RevocationBehaviour::Unavailable => return (StatusCode::NOT_FOUND, Vec::new()),
        RevocationBehaviour::TooLarge => return (StatusCode::OK, vec![0; 1024 * 1024 + 1]),
        RevocationBehaviour::Garbage => return (StatusCode::OK, b"no list".to_vec()),
        RevocationBehaviour::Silent => std::future::pending().await,
        _ => {}
    }

    let made = tokio::task::spawn_blocking(move || {
        let _turn = state.one_at_a_time.lock().unwrap();
        let at = state.folder.as_path();
        let ahead = Duration::from_secs(state.ahead.load(Ordering::Relaxed));
        let by = if manner == RevocationBehaviour::OtherIssuer {
            "other"
        } else {
            "root"
        };
        let times: &[&str] = if manner == RevocationBehaviour::OutOfDate {
            &[
                "-crl_lastupdate",
                "20250101000000Z",
                "-crl_nextupdate",
                "20250108000000Z",
            ]
        } else {
            &["-crldays", "7"]
        };

        let index = at.join("index.txt");
        let valid = std::fs::read_to_string(&index).unwrap();
        if manner == RevocationBehaviour::Revoked {
            let revoked =
                valid.replace("V\t491231235959Z\t\t", "R\t491231235959Z\t250601000000Z\t");
            std::fs::write(&index, revoked).unwrap();
        }
        make_list(at, ahead, by, times);
        std::fs::write(&index, valid).unwrap();
        std::fs::read(at.join("ca.crl")).unwrap()
    });
    (StatusCode::OK, made.await.unwrap())
}

async fn answer(State(state): State<Arc<RevocationState>>, question: Bytes) -> impl IntoResponse {
    state.asked.fetch_add(1, Ordering::Relaxed);
    if *state.manner.lock().unwrap() != RevocationBehaviour::Right {
        return (StatusCode::SERVICE_UNAVAILABLE, Vec::new());
    }

    let made = tokio::task::spawn_blocking(move || {
        let _turn = state.one_at_a_time.lock().unwrap();
        let at = state.folder.as_path();
        let ahead = Duration::from_secs(state.ahead.load(Ordering::Relaxed));
        std::fs::write(at.join("question"), &question).unwrap();
        let signer = [
            "-CA",
            "root.pem",
            "-rsigner",
            "responder.pem",
            "-rkey",
            "responder.key",
        ];
        let files = ["-reqin", "question", "-respout", "answer", "-ndays", "7"];
        let answer = ["ocsp", "-index", "index.txt"];
        openssl_ahead(at, ahead, &[&answer[..], &signer, &files].concat());
        std::fs::read(at.join("answer")).unwrap()
    });
    (StatusCode::OK, made.await.unwrap())
}
