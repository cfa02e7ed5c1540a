//! Ledgers as hash chains. The custody ledger is the history of an envelope.
//!
//! `hash` is the SHA-256 of the RFC 8785 canonical JSON of the entry without
//! its `hash` member, in lower-case hex. `previous_hash` is the hash of the
//! preceding entry, and 64 zeros for the first.
//!
//! Details with personal values have a random `salt`, so that the hash is a commitment to them. When a record is
//! destroyed, these details and the salt go with it: the hash stays, its chain still verifies, and the values cannot
//! be found by trying.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::clock::Timestamp;
use super::id::{EnvelopeId, OrgId};
use super::token::random;

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
    /// Members of the action; null when they were destroyed. `salt` is random, in details with personal values.
    pub details: Value,
    pub previous_hash: String,
    pub hash: String,
    /// Whether the details were destroyed with the record, so that only their hash is left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// Ledger action of the destruction of a record. Details of the entries before it may be withheld.
pub const DESTROYED: &str = "record.destroyed";

/// Ledger action of a certificate after the first. Its details are those of `compliance.evaluated`, with
/// the hash of the certificate.
pub const CERTIFIED: &str = "compliance.certified";

/// Ledger action of validation data or a time stamp that were added behind a seal.
pub const SEAL_EXTENDED: &str = "seal.extended";

/// Chain of the installation's component ledger.
pub const INSTALLATION: &str = "installation";

/// Owner of a ledger: an envelope, or an organization for the changes of its components.
pub trait LedgerChain {
    /// Whether it is the ledger of a record, which may be destroyed.
    fn is_of_record(&self) -> bool {
        false
    }

    /// Id that the entries are stored under.
    fn chain(&self) -> &str;
}

impl LedgerChain for EnvelopeId {
    fn is_of_record(&self) -> bool {
        true
    }

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

impl NewEntry {
    /// Adds a salt of 16 random bytes, in hex, to details with personal values.
    pub fn salted(mut self) -> Self {
        let is_personal = has_address(&self.actor) || has_personal_values(&self.details);
        if let Some(details) = self.details.as_object_mut().filter(|_| is_personal) {
            details.insert(SALT.into(), hex::encode(random::<16>()).into());
        }

        self
    }
}

/// Member of the details with random text, beside personal values.
const SALT: &str = "salt";

/// Members of the details with personal values, at any depth. A name is personal unless it belongs to an organization or
/// a component ([`NAMED`]). A text with an e-mail address is personal in any member.
const PERSONAL: [&str; 30] = [
    "address",
    "answer",
    "authorized_signature",
    "browser",
    "comment",
    "custodian",
    "decline_reason",
    "document_name",
    "email",
    "existing_signatures",
    "facts",
    "ip",
    "ip_address",
    "message",
    "note",
    "notice",
    "phone",
    "place",
    "purpose",
    "purpose_of_release",
    "question",
    "reason",
    "recipient_email",
    "recipient_name",
    "requested_by",
    "terms",
    "text",
    "user_agent",
    "user_email",
    "witness",
];

/// Members of organizations and components. Their `name` is not personal.
const NAMED: [&str; 2] = ["organization_id", "version"];

/// Whether a value has a personal one in it.
fn has_personal_values(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (is_personal(name, members) && !is_blank(value)) || has_personal_values(value)
        }),
        Value::Array(items) => items.iter().any(has_personal_values),
        Value::String(text) => has_address(text),
        _ => false,
    }
}

/// Whether a member of an object is personal.
fn is_personal(name: &str, members: &Map<String, Value>) -> bool {
    let is_named = || NAMED.iter().any(|member| members.contains_key(*member));
    PERSONAL.contains(&name) || (name == "name" && !is_named())
}

/// Whether nothing can be learnt from a value.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a text can have an e-mail address in it.
fn has_address(text: &str) -> bool {
    text.contains('@')
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
            withheld: false,
        };

        entry.hash = entry.computed_hash();
        entry
    }

    /// Whether the entry is about this act with these details, apart from their salt.
    pub fn is_of(&self, action: &str, details: &Value) -> bool {
        let mut own = self.details.clone();
        if let Some(members) = own.as_object_mut() {
            members.remove(SALT);
        }

        self.action == action && own == *details
    }

    /// Whether the content of the entry is the one that its hash is of. A withheld entry does not show it.
    pub fn is_intact(&self) -> bool {
        !self.withheld && self.computed_hash() == self.hash
    }

    /// Returns the entry as it stays after the destruction of its record: all of it if it has no personal values,
    /// otherwise its hash, act, time, and the kind of its actor. A repeat changes nothing.
    pub fn redacted(&self) -> Self {
        let is_personal = has_address(&self.actor) || has_personal_values(&self.details);
        if self.withheld || !is_personal {
            return self.clone();
        }

        let actor = match self.actor.split_once(':') {
            Some((kind, _)) if has_address(&self.actor) => kind,
            _ => self.actor.as_str(),
        };
        Self {
            actor: actor.to_owned(),
            details: Value::Null,
            withheld: true,
            ..self.clone()
        }
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

/// Returns the entries of a record as they are shown. From the beginning of its destruction on, they are without personal
/// values, also while the stored ones still have them.
pub fn shown(entries: Vec<LedgerEntry>) -> Vec<LedgerEntry> {
    if entries.iter().any(|entry| entry.action == DESTROYED) {
        entries.iter().map(LedgerEntry::redacted).collect()
    } else {
        entries
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

/// Checks that `entries` form a complete chain from the first entry on. With the destruction of the record in it, entries
/// may be withheld, also behind that one: a job that ran meanwhile may have added them. The hash of such an entry counts,
/// and its content is unknown.
pub fn verify_chain(entries: &[LedgerEntry]) -> Result<(), ChainError> {
    verify_links(entries, is_destroyed(entries))
}

/// Checks the beginning of a chain like [`verify_chain`]. It may end before the destruction of its record: the hash of
/// every withheld entry counts, and nothing shows whether its content was destroyed or left out.
pub fn verify_beginning(entries: &[LedgerEntry]) -> Result<(), ChainError> {
    verify_links(entries, true)
}

/// Returns whether the entries tell of the destruction of their record.
pub fn is_destroyed(entries: &[LedgerEntry]) -> bool {
    let mut entries = entries.iter();
    entries.any(|entry| entry.action == DESTROYED && !entry.withheld)
}

/// Checks hashes and links.
fn verify_links(entries: &[LedgerEntry], may_withhold: bool) -> Result<(), ChainError> {
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
        let is_withheld = may_withhold && entry.withheld && entry.details.is_null();
        if !is_withheld && !entry.is_intact() {
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

    /// Entry about a signer, as most are.
    fn signed(last: Option<&LedgerEntry>) -> LedgerEntry {
        let new = NewEntry {
            at: Timestamp::from_millis(0),
            actor: "signer:ann@example.com".into(),
            action: "signer.completed".into(),
            details: json!({ "signer": { "signer_id": "sgn_1", "name": "Ann" } }),
        };
        LedgerEntry::after(last, new.salted())
    }

    /// Stored chain of a record after its destruction has begun.
    fn begun_chain() -> Vec<LedgerEntry> {
        let first = signed(None);
        let new = NewEntry {
            at: Timestamp::from_millis(0),
            actor: "system".into(),
            action: DESTROYED.into(),
            details: json!({ "document_hash": "ab" }),
        };
        let last = LedgerEntry::after(Some(&first), new.salted());
        vec![first, last]
    }

    /// Chain of a record that was destroyed.
    fn destroyed_chain() -> Vec<LedgerEntry> {
        begun_chain().iter().map(LedgerEntry::redacted).collect()
    }

    fn salt_of(actor: &str, details: Value) -> Option<usize> {
        let new = NewEntry {
            at: Timestamp::from_millis(0),
            actor: actor.into(),
            action: "signer.viewed".into(),
            details,
        };
        new.salted().details["salt"].as_str().map(str::len)
    }

    #[test]
    fn details_with_personal_values_get_a_salt() {
        for details in [
            json!({ "signer": { "email": "ann@example.com" } }),
            json!({ "signer": { "name": "Ann" } }),
            json!({ "reminded": ["bo@example.com"] }),
            json!({ "facts": { "amount": 1 } }),
        ] {
            assert_eq!(salt_of("system", details.clone()), Some(32), "{details}");
        }
        assert_eq!(salt_of("signer:ann@example.com", json!({})), Some(32));
        assert_ne!(
            signed(None).details["salt"],
            signed(None).details["salt"],
            "each entry has its own"
        );

        for details in [
            json!({ "signer_id": "sgn_1", "status": "sent" }),
            json!({ "controller": { "organization_id": "org_1", "name": "First Bank" } }),
            json!({ "component": { "name": "rules", "version": "1.0.0" } }),
            json!({ "reason": null, "note": "" }),
        ] {
            assert_eq!(salt_of("system", details.clone()), None, "{details}");
        }
    }

    #[test]
    fn an_entry_is_known_by_its_details_without_the_salt() {
        let details = json!({ "signer": { "signer_id": "sgn_1", "name": "Ann" } });
        assert!(signed(None).is_of("signer.completed", &details));
        assert!(!signed(None).is_of("signer.viewed", &details));
        assert!(!signed(None).is_of("signer.completed", &json!({ "signer": "Bo" })));
    }

    #[test]
    fn a_destroyed_record_keeps_hashes_acts_and_times() {
        let entries = destroyed_chain();
        assert_eq!(verify_chain(&entries), Ok(()));
        assert_eq!(entries[0].redacted(), entries[0]);
        assert_eq!(entries[0].actor, "signer");
        assert_eq!(entries[1].details["document_hash"], "ab");

        let text = serde_json::to_string(&entries).unwrap();
        for personal in ["ann@example.com", "Ann", "salt"] {
            assert!(!text.contains(personal), "{text}");
        }
    }

    #[test]
    fn entries_are_shown_without_personal_values_from_the_beginning_of_the_destruction_on() {
        let whole = vec![signed(None)];
        assert_eq!(shown(whole.clone()), whole);
        let begun = shown(begun_chain());
        assert!(begun[0].withheld);
        assert_eq!(verify_chain(&begun), Ok(()));
        assert_eq!(shown(begun.clone()), begun);
    }

    #[test]
    fn a_withheld_entry_without_a_destruction_is_a_change() {
        let alone = vec![signed(None).redacted()];
        assert_eq!(verify_chain(&alone), Err(ChainError::Changed(1)));
    }

    /// A job that began before the destruction may still add an entry.
    #[test]
    fn an_entry_behind_the_destruction_is_destroyed_like_those_before_it() {
        let mut entries = begun_chain();
        entries.push(signed(entries.last()));
        let shown = shown(entries);
        assert!(shown[2].withheld);
        assert_eq!(verify_chain(&shown), Ok(()));
        assert_eq!(verify_beginning(&shown), Ok(()));
    }

    #[test]
    fn the_beginning_of_a_chain_may_end_before_the_destruction() {
        let mut beginning = destroyed_chain();
        beginning.pop();
        assert!(!is_destroyed(&beginning));
        assert_eq!(verify_chain(&beginning), Err(ChainError::Changed(1)));
        assert_eq!(verify_beginning(&beginning), Ok(()));

        let mut changed = beginning.clone();
        changed[0].details = json!({ "signer": { "name": "Bo" } });
        assert_eq!(verify_beginning(&changed), Err(ChainError::Changed(1)));
        let mut shown = beginning.clone();
        shown[0].withheld = false;
        assert_eq!(verify_beginning(&shown), Err(ChainError::Changed(1)));
        assert_eq!(verify_beginning(&[]), Err(ChainError::Empty));
    }

    #[test]
    fn a_withheld_entry_has_no_details() {
        let mut entries = destroyed_chain();
        entries[0].details = json!({ "signer": { "name": "Bo" } });
        assert_eq!(verify_chain(&entries), Err(ChainError::Changed(1)));
    }

    #[test]
    fn a_withheld_entry_has_its_place_by_its_hash() {
        let mut entries = destroyed_chain();
        entries[0].hash = "ab".repeat(32);
        assert_eq!(verify_chain(&entries), Err(ChainError::Broken(2)));
    }
}
