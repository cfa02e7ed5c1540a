//! Checkpoints: signed heads of the log of all ledgers, in the C2SP formats `tlog-checkpoint`
//! and `signed-note`, which independent verifiers can read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::merkle::{Hash, leaf_hash};

/// Algorithm byte of Ed25519 in signed notes.
const ED25519_KEY: u8 = 1;

/// Computes the leaf of a ledger entry: the RFC 6962 leaf hash of the canonical JSON (RFC 8785)
/// of `{"entry": <hash>, "envelope_id": …, "sequence": …}`. The leaf contains the envelope's id
/// because two envelopes can have equal entries.
pub fn entry_leaf(chain: &str, sequence: i64, entry_hash: &str) -> Hash {
    let leaf = json!({ "entry": entry_hash, "envelope_id": chain, "sequence": sequence });
    // Canonical JSON exists for every value without NaN, and JSON has none.
    leaf_hash(&serde_json_canonicalizer::to_vec(&leaf).unwrap_or_default())
}

/// Head of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Name of the log.
    pub origin: String,
    /// Number of entries.
    pub size: u64,
    /// Root hash of the tree over the entries.
    pub root: Hash,
}

/// Reason for rejecting a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The text is not a signed note of a checkpoint.
    #[error("not a signed checkpoint: {0}")]
    Malformed(&'static str),
    /// No valid signature with the expected key.
    #[error("the checkpoint is not signed with the key {0}")]
    Unsigned(String),
    /// The checkpoint has more entries than the log had when this key was replaced.
    #[error("the checkpoint is signed with the key {0}, which had been replaced by then")]
    Succeeded(String),
    /// The checkpoint belongs to another log.
    #[error("the checkpoint is of the log {found}, not of {expected}")]
    OtherLog {
        /// Log that the checkpoint names.
        found: String,
        /// Log that the verifier key names.
        expected: String,
    },
}

/// Signing key of a log.
pub struct CheckpointSigner(Ed25519KeyPair);

impl CheckpointSigner {
    /// Derives the key from a secret seed.
    pub fn new(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// Returns the key that verifies these checkpoints.
    pub fn verifier(&self, origin: &str) -> VerifierKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.public_key().as_ref());
        VerifierKey {
            name: origin.to_owned(),
            key,
        }
    }

    /// Returns the signed note of a head. Deterministic: equal heads give equal bytes.
    pub fn sign(&self, checkpoint: &Checkpoint) -> String {
        let body = body(checkpoint);
        format!("{body}\n{}", self.signature(&checkpoint.origin, &body))
    }

    /// Returns the signature line of a note.
    pub fn signature(&self, origin: &str, body: &str) -> String {
        let mut signature = self.verifier(origin).id().to_vec();
        signature.extend(self.0.sign(body.as_bytes()).as_ref());
        format!("— {origin} {}\n", STANDARD.encode(signature))
    }
}

/// Name and public key of a log, written `name+id+key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    key: [u8; 32],
}

impl VerifierKey {
    /// Parses a verifier key; `None` unless it is an Ed25519 key with the matching id.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, '+');
        let (name, id) = (parts.next()?, parts.next()?);
        let decoded = STANDARD.decode(parts.next()?).ok()?;
        let (ED25519_KEY, key) = decoded.split_first().map(|(kind, key)| (*kind, key))? else {
            return None;
        };

        // The id is a checksum of name and key: a typo in either one shows here, and not as a forged log.
        let found = Self {
            name: name.to_owned(),
            key: key.try_into().ok()?,
        };
        (hex::encode(found.id()) == id).then_some(found)
    }

    /// Returns the name of the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Computes the key id of C2SP `signed-note`: the first bytes of SHA-256 of name and key.
    fn id(&self) -> [u8; 4] {
        let digest = Sha256::new()
            .chain_update(&self.name)
            .chain_update(b"\n")
            .chain_update([ED25519_KEY])
            .chain_update(self.key)
            .finalize();
        [digest[0], digest[1], digest[2], digest[3]]
    }

    /// Opens a signed note, which must belong to this log and be signed with this key.
    pub fn open(&self, note: &str) -> Result<Checkpoint, CheckpointError> {
        let malformed = CheckpointError::Malformed;
        // The body ends with its own line end; an empty line follows.
        let split = note.find("\n\n").ok_or(malformed("it has no signature"))?;
        let text = &note[..=split];
        let checkpoint = read_body(text)?;
        // The same key could sign the heads of two logs. The origin keeps a
        // head of one from proving the other.
        if checkpoint.origin != self.name {
            return Err(CheckpointError::OtherLog {
                found: checkpoint.origin,
                expected: self.name.clone(),
            });
        }

        if self.has_signed(text, note) {
            Ok(checkpoint)
        } else {
            Err(CheckpointError::Unsigned(self.to_string()))
        }
    }

    /// Whether one of the note's signatures is valid for `text` and this key.
    pub fn has_signed(&self, text: &str, note: &str) -> bool {
        let ours = format!("— {} ", self.name);
        // Lines of other keys are ignored: a succession has two, and witnesses can add theirs.
        let signatures = note.get(text.len()..).unwrap_or_default();
        signatures
            .lines()
            .filter_map(|line| STANDARD.decode(line.strip_prefix(&ours)?).ok())
            .any(|signature| {
                signature.strip_prefix(&self.id()).is_some_and(|signature| {
                    UnparsedPublicKey::new(&ED25519, &self.key)
                        .verify(text.as_bytes(), signature)
                        .is_ok()
                })
            })
    }
}

impl std::fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut key = vec![ED25519_KEY];
        key.extend(self.key);
        let (id, key) = (hex::encode(self.id()), STANDARD.encode(key));
        write!(formatter, "{}+{id}+{key}", self.name)
    }
}

fn body(checkpoint: &Checkpoint) -> String {
    let root = STANDARD.encode(checkpoint.root);
    format!("{}\n{}\n{root}\n", checkpoint.origin, checkpoint.size)
}

fn read_body(text: &str) -> Result<Checkpoint, CheckpointError> {
    let malformed = CheckpointError::Malformed;
    let mut lines = text.lines();
    let origin = lines.next().filter(|origin| !origin.is_empty());
    let size = lines.next().and_then(|size| size.parse().ok());
    let root = lines.next().and_then(|root| STANDARD.decode(root).ok());
    Ok(Checkpoint {
        origin: origin.ok_or(malformed("it names no log"))?.to_owned(),
        size: size.ok_or(malformed("it has no size"))?,
        root: root
            .and_then(|root| root.try_into().ok())
            .ok_or(malformed("it has no root"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer() -> CheckpointSigner {
        CheckpointSigner::new(&[7; 32]).unwrap()
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            origin: "vault.example/ledger".into(),
            size: 4711,
            root: [9; 32],
        }
    }

    #[test]
    fn a_signed_checkpoint_round_trips() {
        let note = signer().sign(&checkpoint());
        let key = signer().verifier("vault.example/ledger");
        assert!(note.starts_with("vault.example/ledger\n4711\nCQkJ"));
        assert_eq!(key.open(&note), Ok(checkpoint()));
        assert_eq!(signer().sign(&checkpoint()), note);
        let witnessed = format!("{note}— witness.example AAAAAAAA\n");
        assert_eq!(key.open(&witnessed), Ok(checkpoint()));
    }

    #[test]
    fn a_verifier_key_round_trips() {
        for seed in 0..64 {
            let signer = CheckpointSigner::new(&[seed; 32]).unwrap();
            let key = signer.verifier("vault.example/ledger");
            assert_eq!(VerifierKey::parse(&key.to_string()), Some(key));
        }
        let key = signer().verifier("vault.example/ledger").to_string();
        assert_eq!(VerifierKey::parse(&key.replace("vault", "other")), None);
        assert_eq!(VerifierKey::parse("vault.example"), None);
    }

    /// Parses the example key of the signed-note specification.
    #[test]
    fn the_example_key_of_the_specification_is_parsed() {
        let text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let key = VerifierKey::parse(text).unwrap();
        assert_eq!(key.to_string(), text);

        let note = "If you think cryptography is the answer to your problem,\n\
                    then you don't know what your problem is.\n\n\
                    — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

        // A note that is no checkpoint still has a valid signature over its text.
        let split = note.find("\n\n").unwrap();
        let signature = note.rsplit(' ').next().unwrap().trim();
        let signature = STANDARD.decode(signature).unwrap();
        assert_eq!(&signature[..4], &key.id());

        UnparsedPublicKey::new(&ED25519, &key.key)
            .verify(&note.as_bytes()[..=split], &signature[4..])
            .unwrap();
    }

    #[test]
    fn an_unsigned_checkpoint_is_refused() {
        let note = signer().sign(&checkpoint());
        let key = signer().verifier("vault.example/ledger");
        let larger = note.replace("4711", "4712");
        assert!(matches!(
            key.open(&larger),
            Err(CheckpointError::Unsigned(_))
        ));

        let other = CheckpointSigner::new(&[8; 32]).unwrap();
        let forged = other.sign(&checkpoint());
        assert!(matches!(
            key.open(&forged),
            Err(CheckpointError::Unsigned(_))
        ));

        let elsewhere = signer().sign(&Checkpoint {
            origin: "other.example".into(),
            ..checkpoint()
        });
        assert!(matches!(
            key.open(&elsewhere),
            Err(CheckpointError::OtherLog { .. })
        ));

        for text in [
            "",
            "\n\n",
            "a\nb\n\n",
            "vault.example/ledger\n1\n!\n\n— x y\n",
        ] {
            assert!(
                matches!(key.open(text), Err(CheckpointError::Malformed(_))),
                "{text:?}"
            );
        }
    }
}
