//! Requests of logs to their witnesses (C2SP `tlog-witness`), and what witnesses hold against a log.
//!
//! A witness of a log is a program that cosigns its heads. A witness of a signature is a signer.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::merkle::Hash;

/// Content type of an answer that has nothing but the size of a log.
pub const SIZE_TYPE: &str = "text/x.tlog.size";

/// Most hashes of a consistency proof: one for each level of the largest tree.
const MOST_HASHES: usize = 63;

/// Body of `POST /add-checkpoint`: asks a witness to cosign a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// Size of the newest tree that the witness has cosigned; 0 for none.
    pub old: u64,
    /// Proof that the head extends that tree (RFC 6962, section 2.1.2).
    pub proof: Vec<Hash>,
    /// The head as a signed note.
    pub note: String,
}

impl AddCheckpoint {
    /// Parses a body; `None` unless it is written as the specification has it.
    pub fn parse(body: &str) -> Option<Self> {
        let (head, note) = body.split_once("\n\n")?;
        let mut lines = head.split('\n');
        let old = parse_size(lines.next()?.strip_prefix("old ")?)?;
        let hash = |line: &str| -> Option<Hash> { STANDARD.decode(line).ok()?.try_into().ok() };
        let proof = lines.map(hash).collect::<Option<Vec<Hash>>>()?;
        (proof.len() <= MOST_HASHES).then(|| Self {
            old,
            proof,
            note: note.to_owned(),
        })
    }
}

impl fmt::Display for AddCheckpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "old {}", self.old)?;
        for hash in &self.proof {
            writeln!(formatter, "{}", STANDARD.encode(hash))?;
        }
        write!(formatter, "\n{}", self.note)
    }
}

/// Parses a size in its only spelling: decimal, without a sign or leading zeros.
pub fn parse_size(text: &str) -> Option<u64> {
    let size: u64 = text.parse().ok()?;
    (size.to_string() == text).then_some(size)
}

/// Contradiction between the log and a head that a witness has cosigned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessConflict {
    pub at: Timestamp,
    /// The contradiction in words.
    pub reason: String,
    /// Size of the tree that the witness names.
    pub witness_size: u64,
    /// Head of the log, as a signed note.
    pub own_head: String,
    /// Head that the witness shows; `None` if it shows none.
    pub witness_head: Option<String>,
    /// Whether that head is signed with a key of the log and is none of its history: the log was rewritten or truncated,
    /// or its key signs elsewhere.
    pub is_proof: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Body of the specification's example.
    const EXAMPLE: &str = "old 20852014\n\
        PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n\
        jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=\n\
        5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=\n\
        /6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=\n\
        \n\
        example.com/behind-the-sofa\n\
        20852163\n\
        CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\
        \n\
        — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

    #[test]
    fn the_example_of_the_specification_round_trips() {
        let request = AddCheckpoint::parse(EXAMPLE).unwrap();
        assert_eq!((request.old, request.proof.len()), (20_852_014, 4));
        assert!(request.note.starts_with("example.com/behind-the-sofa\n2"));
        assert_eq!(request.to_string(), EXAMPLE);
    }

    #[test]
    fn a_request_without_a_proof_has_an_empty_line_behind_its_size() {
        let first = AddCheckpoint {
            old: 0,
            proof: Vec::new(),
            note: "vault.example/ledger\n1\n".into(),
        };
        assert_eq!(first.to_string(), "old 0\n\nvault.example/ledger\n1\n");
        assert_eq!(AddCheckpoint::parse(&first.to_string()), Some(first));
    }

    #[test]
    fn other_spellings_of_a_request_are_refused() {
        let hash = format!("{}\n", STANDARD.encode([1; 32]));
        let long = format!("old 1\n{}\nnote", hash.repeat(MOST_HASHES + 1));
        for body in [
            "",
            "\n\n",
            "old 1\nnote",
            "new 1\n\nnote",
            "old 01\n\nnote",
            "old +1\n\nnote",
            "old -1\n\nnote",
            "old 1 \n\nnote",
            "old 1\nAAAA\n\nnote",
            "old 1\n!\n\nnote",
            long.as_str(),
        ] {
            assert_eq!(AddCheckpoint::parse(body), None, "{body:?}");
        }
    }
}
