//! Bundles of Sigstore: a stand-in for its hosted services, with Sigstore's own client.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/it/support/sigstore.cjs"
);

/// Issuer of the identities.
pub const ISSUER: &str = "https://token.actions.githubusercontent.com";
/// Workflow that releases components.
pub const WORKFLOW: &str =
    "https://github.com/oak/rules/.github/workflows/release.yml@refs/heads/main";
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
pub const MATERIALS: &str = "https://cyclonedx.org/bom";

/// A file to sign, and the signer.
pub struct Signing<'a> {
    pub file: &'a [u8],
    /// Identity in the certificate; a key without one if `None`.
    pub identity: Option<&'a str>,
    /// Type and content of a statement; a plain signature if `None`.
    pub statement: Option<(&'a str, Value)>,
}

impl<'a> Signing<'a> {
    pub fn of(file: &'a [u8]) -> Self {
        Self {
            file,
            identity: Some(WORKFLOW),
            statement: None,
        }
    }

    pub fn by(self, identity: &'a str) -> Self {
        Self {
            identity: Some(identity),
            ..self
        }
    }

    pub fn with_key(self) -> Self {
        Self {
            identity: None,
            ..self
        }
    }

    pub fn saying(self, kind: &'a str, predicate: Value) -> Self {
        Self {
            statement: Some((kind, predicate)),
            ..self
        }
    }
}

/// An instance of Sigstore, with the bundles that were made there.
#[derive(Deserialize)]
pub struct Sigstore {
    root: Value,
    pub bundles: Vec<Value>,
    /// PEM.
    pub public_key: String,
}

impl Sigstore {
    pub fn signing(requests: &[Signing<'_>]) -> Self {
        let folder = TempDir::new().unwrap();
        let requests: Vec<Value> = requests
            .iter()
            .enumerate()
            .map(|(at, request)| {
                let file = folder.path().join(at.to_string());
                fs::write(&file, request.file).unwrap();
                let (kind, predicate) = request.statement.clone().unzip();
                json!({
                    "file": file, "identity": request.identity, "issuer": ISSUER,
                    "predicate_type": kind, "predicate": predicate,
                })
            })
            .collect();

        let modules = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../sigstore/node_modules");
        let mut running = Command::new("node")
            .arg(SCRIPT)
            .env("NODE_PATH", modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is missing: run `tests/set-up test`");
        let mut input = running.stdin.take().unwrap();
        input
            .write_all(json!(requests).to_string().as_bytes())
            .unwrap();

        drop(input);
        let output = running.wait_with_output().unwrap();
        assert!(output.status.success(), "run `tests/set-up test`");

        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Writes the trusted root into a folder.
    pub fn root_file(&self, folder: &Path) -> PathBuf {
        let file = folder.join("trusted_root.json");
        fs::write(&file, self.root.to_string()).unwrap();
        file
    }
}
