//! Checkpoints: signed heads of the log of all ledgers, in the C2SP formats `tlog-checkpoint`
//! and `signed-note`, which independent verifiers can read. Witnesses cosign them
//! (`tlog-cosignature`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::merkle::{Hash, leaf_hash};

/// Algorithm byte of Ed25519 in signed notes.
const ED25519_KEY: u8 = 1;
/// Algorithm byte of Ed25519 cosignatures of witnesses.
const COSIGNATURE_KEY: u8 = 4;
/// Bytes of a cosignature: id of the key, time, Ed25519 signature.
const COSIGNATURE: usize = 4 + 8 + 64;

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
        self.key(ED25519_KEY, origin)
    }

    /// Returns the key that verifies the cosignatures of a witness of this name.
    pub fn witness(&self, name: &str) -> WitnessKey {
        WitnessKey(self.key(COSIGNATURE_KEY, name))
    }

    fn key(&self, algorithm: u8, name: &str) -> VerifierKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.public_key().as_ref());
        VerifierKey {
            name: name.to_owned(),
            algorithm,
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
        signature_line(origin, &signature)
    }

    /// Returns the line with which a witness of this name cosigns the text of a checkpoint, at a time
    /// in seconds since 1970.
    pub fn cosign(&self, name: &str, text: &str, at: u64) -> String {
        let mut cosignature = self.witness(name).0.id().to_vec();
        cosignature.extend(at.to_be_bytes());
        cosignature.extend(self.0.sign(&cosigned(text, at)).as_ref());
        signature_line(name, &cosignature)
    }
}

fn signature_line(name: &str, signature: &[u8]) -> String {
    format!("— {name} {}\n", STANDARD.encode(signature))
}

/// Returns the bytes that a witness signs. Their first line keeps cosignatures and other notes apart.
fn cosigned(text: &str, at: u64) -> Vec<u8> {
    format!("cosignature/v1\ntime {at}\n{text}").into_bytes()
}

/// Name and public key of a log, written `name+id+key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    algorithm: u8,
    key: [u8; 32],
}

impl VerifierKey {
    /// Parses a verifier key; `None` unless it is an Ed25519 key with the matching id.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_of(ED25519_KEY, text)
    }

    fn parse_of(algorithm: u8, text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(3, '+');
        let (name, id) = (parts.next()?, parts.next()?);
        let decoded = STANDARD.decode(parts.next()?).ok()?;
        let (kind, key) = decoded.split_first()?;
        if *kind != algorithm || !is_key_name(name) {
            return None;
        }

        // The id is a checksum of name and key: a typo in either one shows here, and not as a forged log.
        let found = Self {
            name: name.to_owned(),
            algorithm,
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
            .chain_update([self.algorithm])
            .chain_update(self.key)
            .finalize();
        [digest[0], digest[1], digest[2], digest[3]]
    }

    /// Opens a signed note, which must belong to this log and be signed with this key.
    pub fn open(&self, note: &str) -> Result<Checkpoint, CheckpointError> {
        let unsigned = CheckpointError::Malformed("it has no signature");
        let (text, _) = split_note(note).ok_or(unsigned)?;
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
        let lines = note.get(text.len()..).unwrap_or_default();
        let mut signatures = self.signatures(lines);
        signatures.any(|signature| self.verifies(text.as_bytes(), &signature))
    }

    /// Returns the signatures in these lines that name this key. Lines of other keys are ignored: a
    /// succession has two, and witnesses add theirs.
    fn signatures(&self, lines: &str) -> impl Iterator<Item = Vec<u8>> {
        let (ours, id) = (format!("— {} ", self.name), self.id());
        lines.lines().filter_map(move |line| {
            let signature = STANDARD.decode(line.strip_prefix(&ours)?).ok()?;
            signature.strip_prefix(&id).map(<[u8]>::to_vec)
        })
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.key);
        key.verify(message, signature).is_ok()
    }
}

impl std::fmt::Display for VerifierKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut key = vec![self.algorithm];
        key.extend(self.key);
        let (id, key) = (hex::encode(self.id()), STANDARD.encode(key));
        write!(formatter, "{}+{id}+{key}", self.name)
    }
}

/// Name and public key of a witness, written `name+id+key` (C2SP `tlog-cosignature`, Ed25519).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessKey(VerifierKey);

/// Valid cosignature of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// When the witness signed, in seconds since 1970, by its own clock.
    pub at: u64,
    /// Its line in a signed note, with the end of the line.
    pub line: String,
}

impl WitnessKey {
    /// Parses the key of a witness; `None` unless it is for Ed25519 cosignatures and has the matching id.
    pub fn parse(text: &str) -> Option<Self> {
        VerifierKey::parse_of(COSIGNATURE_KEY, text).map(Self)
    }

    /// Returns the name of the witness.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the bytes of the key. Two witnesses with the same ones are one witness under two names.
    pub fn public_key(&self) -> &[u8; 32] {
        &self.0.key
    }

    /// Returns this witness's first valid cosignature of the text of a checkpoint in these lines.
    pub fn cosignature(&self, text: &str, lines: &str) -> Option<Cosignature> {
        self.0.signatures(lines).find_map(|signature| {
            let (time, rest) = signature.split_first_chunk::<8>()?;
            let at = u64::from_be_bytes(*time);
            let is_valid = self.0.verifies(&cosigned(text, at), rest);
            let whole = [&self.0.id()[..], &signature[..]].concat();
            is_valid.then(|| Cosignature {
                at,
                line: signature_line(&self.0.name, &whole),
            })
        })
    }
}

impl std::fmt::Display for WitnessKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Whether a key can have this name: it is a word in the lines of notes, and a part of `name+id+key`.
pub fn is_key_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter == '+')
}

/// Whether a line behind the text of a note has the form of an Ed25519 cosignature.
pub fn is_cosignature_line(line: &str) -> bool {
    let parts = line
        .strip_prefix("— ")
        .and_then(|line| line.split_once(' '));
    parts.is_some_and(|(name, signature)| {
        let decoded = STANDARD.decode(signature);
        is_key_name(name) && decoded.is_ok_and(|bytes| bytes.len() == COSIGNATURE)
    })
}

/// Splits a signed note into its text, which ends with its own line end, and the lines of its signatures.
pub fn split_note(note: &str) -> Option<(&str, &str)> {
    let end = note.find("\n\n")?;
    Some((&note[..=end], &note[end + 2..]))
}

/// Parses the tree size from a signed note: its second line.
pub fn size_of(note: &str) -> Option<u64> {
    note.lines().nth(1)?.parse().ok()
}

impl Checkpoint {
    /// Whether the text of a note is written as this checkpoint. Lines of an extension may follow.
    pub fn begins(&self, text: &str) -> bool {
        text.starts_with(&body(self))
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

    /// Key and line were made with another implementation of Ed25519 and SHA-256.
    #[test]
    fn a_cosignature_matches_an_independent_one() {
        const KEY: &str =
            "witness.example/w1+aa4a09d1+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
        const LINE: &str = "— witness.example/w1 qkoJ0QAAAABkGFDLEXUk5ctljE/UFVi3QzvvEf0byR8ex2n4giBYrubfxFhQ7+5IOXJF42oi6tiTKu8EPUs3M9YGtfE+r+S2/A2mDQ==\n";
        const TIME: u64 = 1_679_315_147;

        let note = signer().sign(&checkpoint());
        let (text, _) = split_note(&note).unwrap();
        assert_eq!(signer().witness("witness.example/w1").to_string(), KEY);
        assert_eq!(signer().cosign("witness.example/w1", text, TIME), LINE);

        let key = WitnessKey::parse(KEY).unwrap();
        let found = key.cosignature(text, LINE).unwrap();
        assert_eq!((found.at, found.line.as_str()), (TIME, LINE));

        // The cosigned note is still a note of its log.
        let cosigned = format!("{note}{LINE}");
        let log = signer().verifier("vault.example/ledger");
        assert_eq!(log.open(&cosigned), Ok(checkpoint()));
        assert_eq!(size_of(&cosigned), Some(4711));
    }

    #[test]
    fn the_line_of_another_text_key_or_name_is_no_cosignature() {
        let note = signer().sign(&checkpoint());
        let (text, log_line) = split_note(&note).unwrap();
        let key = signer().witness("witness.example");
        let line = signer().cosign("witness.example", text, 7);
        assert!(key.cosignature(text, &line).is_some());

        let other = CheckpointSigner::new(&[8; 32]).unwrap();
        for (text, line) in [
            (text.replace("4711", "4712"), line.clone()),
            (text.to_owned(), other.cosign("witness.example", text, 7)),
            (text.to_owned(), signer().cosign("other.example", text, 7)),
            (text.to_owned(), log_line.to_owned()),
            (text.to_owned(), line.replace("AAAAAA", "AAAAAB")),
        ] {
            assert_eq!(key.cosignature(&text, &line), None, "{line}");
        }
    }

    #[test]
    fn the_key_of_a_witness_is_no_key_of_a_log() {
        let key = signer().witness("witness.example").to_string();
        assert!(WitnessKey::parse(&key).is_some());
        assert_eq!(VerifierKey::parse(&key), None);

        let log = signer().verifier("vault.example/ledger").to_string();
        assert_eq!(WitnessKey::parse(&log), None);
        for name in ["", "two words", "a+b", "line\nend"] {
            assert!(!is_key_name(name), "{name:?}");
        }
    }

    /// The second line is the example of the specification, the first one is that of a log.
    #[test]
    fn lines_of_witnesses_are_told_from_others() {
        let of_log = "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=";
        let of_witness = "— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==";
        assert!(is_cosignature_line(of_witness));
        for line in [
            of_log,
            "",
            "x",
            "— witness.example.com/w1",
            of_witness.trim_start_matches('—'),
        ] {
            assert!(!is_cosignature_line(line), "{line}");
        }
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
