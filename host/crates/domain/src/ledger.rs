//! Ledgers as hash chains. The custody ledger is the history of an envelope.
//!
//! `hash` is the SHA-256 of the RFC 8785 canonical JSON of the entry without
//! its `hash` member, in lower-case hex. `previous_hash` is the hash of the
//! preceding entry, and 64 zeros for the first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::clock::Timestamp;
use super::id::{EnvelopeId, OrgId};

/// `previous_hash` of the first entry of a chain.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Entry of a ledger: one link of its hash chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// From 1, without gaps.
    pub sequence: i64,
    pub at: Timestamp,
    /// Actor: `key:…`, `signer:…`, `user:…` or `system`.
    pub actor: String,
    /// Recorded action, for example `envelope.created`.
    pub action: String,
    pub details: Value,
    pub previous_hash: String,
    pub hash: String,
}

/// Ledger action of a certificate after the first. Its details are those of `compliance.evaluated`, with
/// the hash of the certificate.
pub const CERTIFIED: &str = "compliance.certified";

/// Ledger action of validation data or a time stamp that were added behind a seal.
pub const SEAL_EXTENDED: &str = "seal.extended";

/// Chain of the installation's component ledger.
pub const INSTALLATION: &str = "installation";

/// Owner of a ledger: an envelope, or an organization for the changes of its components.
pub trait LedgerChain {
    /// Id that the entries are stored under.
    fn chain(&self) -> &str;
}

impl LedgerChain for EnvelopeId {
    fn chain(&self) -> &str {
        self.as_str()
    }
}

impl LedgerChain for OrgId {
    fn chain(&self) -> &str {
        self.as_str()
    }
}

/// Content of an entry that has no place in a chain yet.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub details: Value,
}

#[derive(Serialize)]
struct HashedEntry<'a> {
    sequence: i64,
    at: Timestamp,
    actor: &'a str,
    action: &'a str,
    details: &'a Value,
    previous_hash: &'a str,
}

impl LedgerEntry {
    /// Chains `new` behind `last`; `None` starts a ledger.
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

    /// Computes the hash that the entry must have.
    pub fn computed_hash(&self) -> String {
        let hashed = HashedEntry {
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

/// Defect of a hash chain.
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

/// Checks that `entries` form a complete chain from the first entry on.
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
        // The hash comes before the link: a changed entry also breaks the link of its successor, and the
        // error has to name the entry that was changed.
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
    fn a_ledger_hash_covers_the_canonical_json() {
        let entry = &chain()[0];
        let canonical = format!(
            r#"{{"action":"envelope.created","actor":"system","at":"1970-01-01T00:00:00.000Z","details":{{"a":"ü","b":1}},"previous_hash":"{GENESIS}","sequence":1}}"#
        );
        assert_eq!(entry.hash, hex::encode(Sha256::digest(canonical)));
    }

    #[test]
    fn a_complete_chain_is_valid() {
        assert_eq!(verify_chain(&chain()), Ok(()));
        assert_eq!(verify_chain(&[]), Err(ChainError::Empty));
    }

    #[test]
    fn an_edited_entry_is_detected() {
        let mut entries = chain();
        entries[1].details = json!({"a": "other"});
        assert_eq!(verify_chain(&entries), Err(ChainError::Changed(2)));
    }

    #[test]
    fn a_removed_entry_is_detected() {
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
    fn a_rewritten_entry_is_detected_by_the_hash_in_the_next_entry() {
        let mut entries = chain();
        entries[1].actor = "somebody".into();
        entries[1].hash = entries[1].computed_hash();
        assert_eq!(verify_chain(&entries), Err(ChainError::Broken(3)));
    }
}
