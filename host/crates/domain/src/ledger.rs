//! The custody ledger: an envelope's history as a hash chain.
//!
//! `hash` is the SHA-256 of the RFC 8785 canonical JSON of the entry without
//! its `hash` member, in lower-case hex. `previous_hash` is the hash of the
//! entry before, and 64 zeros for the first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::clock::Timestamp;
use super::id::{EnvelopeId, OrgId};

/// `previous_hash` of an envelope's first entry.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// From 1, without gaps.
    pub sequence: i64,
    pub at: Timestamp,
    /// Who did it: `key:…`, `signer:…`, `user:…` or `system`.
    pub actor: String,
    /// What was done, for example `envelope.created`.
    pub action: String,
    pub details: Value,
    pub previous_hash: String,
    pub hash: String,
}

/// Chain of the installation's component ledger.
pub const INSTALLATION: &str = "installation";

/// What has a ledger: an envelope, and an organization for what it decides about
/// its rules.
pub trait Chain {
    /// The id that its entries are kept under.
    fn chain(&self) -> &str;
}

impl Chain for EnvelopeId {
    fn chain(&self) -> &str {
        self.as_str()
    }
}

impl Chain for OrgId {
    fn chain(&self) -> &str {
        self.as_str()
    }
}

/// An entry before it is chained to what came before.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub details: Value,
}

#[derive(Serialize)]
struct Hashed<'a> {
    sequence: i64,
    at: Timestamp,
    actor: &'a str,
    action: &'a str,
    details: &'a Value,
    previous_hash: &'a str,
}

impl LedgerEntry {
    /// The entry that follows `last`.
    pub fn after(last: Option<&LedgerEntry>, new: NewEntry) -> Self {
        let mut entry = Self {
            sequence: last.map_or(1, |last| last.sequence + 1),
            at: new.at,
            actor: new.actor,
            action: new.action,
            details: new.details,
            previous_hash: last.map_or_else(|| GENESIS.to_owned(), |last| last.hash.clone()),
            hash: String::new(),
        };
        entry.hash = entry.computed_hash();
        entry
    }

    /// What `hash` has to be.
    pub fn computed_hash(&self) -> String {
        let hashed = Hashed {
            sequence: self.sequence,
            at: self.at,
            actor: &self.actor,
            action: &self.action,
            details: &self.details,
            previous_hash: &self.previous_hash,
        };
        // Canonical JSON exists for every value without NaN, and JSON has none.
        let canonical = serde_json_canonicalizer::to_vec(&hashed).unwrap_or_default();
        hex::encode(Sha256::digest(canonical))
    }
}

/// Why a chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    #[error("the ledger is empty")]
    Empty,
    #[error("entry {expected} is missing: found entry {found} in its place")]
    Gap { expected: i64, found: i64 },
    #[error("entry {0} was changed: its hash does not match its content")]
    Changed(i64),
    #[error("entry {0} does not follow from the entry before it")]
    Broken(i64),
}

/// Checks that `entries` are a whole chain from the first entry on.
pub fn verify_chain(entries: &[LedgerEntry]) -> Result<(), ChainError> {
    if entries.is_empty() {
        return Err(ChainError::Empty);
    }
    let mut previous_hash = GENESIS;
    for (entry, expected) in entries.iter().zip(1..) {
        if entry.sequence != expected {
            return Err(ChainError::Gap {
                expected,
                found: entry.sequence,
            });
        }
        if entry.computed_hash() != entry.hash {
            return Err(ChainError::Changed(entry.sequence));
        }
        if entry.previous_hash != previous_hash {
            return Err(ChainError::Broken(entry.sequence));
        }
        previous_hash = &entry.hash;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chain() -> Vec<LedgerEntry> {
        let mut entries: Vec<LedgerEntry> = Vec::new();
        for action in ["envelope.created", "envelope.sent", "envelope.completed"] {
            let entry = LedgerEntry::after(
                entries.last(),
                NewEntry {
                    at: Timestamp::from_millis(0),
                    actor: "system".into(),
                    action: action.into(),
                    details: json!({"b": 1, "a": "ü"}),
                },
            );
            entries.push(entry);
        }
        entries
    }

    #[test]
    fn a_hash_is_that_of_the_canonical_json() {
        let entry = &chain()[0];
        let canonical = format!(
            r#"{{"action":"envelope.created","actor":"system","at":"1970-01-01T00:00:00.000Z","details":{{"a":"ü","b":1}},"previous_hash":"{GENESIS}","sequence":1}}"#
        );
        assert_eq!(entry.hash, hex::encode(Sha256::digest(canonical)));
    }

    #[test]
    fn a_whole_chain_holds() {
        assert_eq!(verify_chain(&chain()), Ok(()));
        assert_eq!(verify_chain(&[]), Err(ChainError::Empty));
    }

    #[test]
    fn an_edited_entry_is_found() {
        let mut entries = chain();
        entries[1].details = json!({"a": "other"});
        assert_eq!(verify_chain(&entries), Err(ChainError::Changed(2)));
    }

    #[test]
    fn a_removed_entry_is_found() {
        let mut entries = chain();
        entries.remove(1);
        assert_eq!(
            verify_chain(&entries),
            Err(ChainError::Gap {
                expected: 2,
                found: 3
            })
        );
    }

    #[test]
    fn an_entry_rewritten_with_a_fresh_hash_is_found_by_the_next() {
        let mut entries = chain();
        entries[1].actor = "somebody".into();
        entries[1].hash = entries[1].computed_hash();
        assert_eq!(verify_chain(&entries), Err(ChainError::Broken(3)));
    }
}
