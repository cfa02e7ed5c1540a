//! Ledgers as hash chains. The custody ledger is the history of an envelope.
//!
//! `hash` is the SHA-256 of the RFC 8785 canonical JSON of the entry without its members `hash`, `salts` and
//! `withheld`, in lower-case hex. `previous_hash` is the hash of the preceding entry, and 64 zeros for the first.
//!
//! Personal values are hashed as salted commitments: where `salts` has a salt, the hashed JSON has
//! `{"commitment": …}` with the SHA-256 of the salt and the value's canonical JSON. A record that is destroyed keeps
//! the commitments and loses values and salts, and its chain still verifies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
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
    /// Members of the action. A personal value that was destroyed is an object with its `commitment` alone.
    pub details: Value,
    pub previous_hash: String,
    pub hash: String,
    /// Salts of the personal values, 16 random bytes in hex each, by the JSON pointer of the value in `details`; that of
    /// the actor is `actor`. Absent in entries without personal values, of earlier releases, and of destroyed records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub salts: BTreeMap<String, String>,
    /// Whether the details were destroyed as a whole: an entry of an earlier release, which has no commitments, in the
    /// ledger of a destroyed record.
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

/// Bytes of a salt. Always as many: with salts of another length, the end of a salt could pass for the beginning of a
/// value.
const SALT_LENGTH: usize = 16;

/// Key of the actor's salt. Pointers into the details begin with a slash.
const ACTOR: &str = "actor";

/// Only member of the object that a personal value is hashed as.
const COMMITMENT: &str = "commitment";

/// Members of the details with personal values, at any depth. A name is personal unless it is that of an organization or
/// a component ([`NAMED`]), and so is each text with an e-mail address, whatever its member.
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

/// Members of organizations and components, whose `name` is not personal.
const NAMED: [&str; 2] = ["organization_id", "version"];

impl LedgerEntry {
    /// Chains `new` behind `last`, with a salt for each personal value; `None` starts a ledger.
    pub fn after(last: Option<&LedgerEntry>, new: NewEntry) -> Self {
        let mut personal = personal_values(&new.details);
        personal.extend(has_address(&new.actor).then(|| ACTOR.to_owned()));
        let salted = |place| (place, hex::encode(random::<SALT_LENGTH>()));

        let mut entry = Self {
            sequence: last.map_or(1, |last| last.sequence + 1),
            at: new.at,
            actor: new.actor,
            action: new.action,
            details: new.details,
            previous_hash: last.map_or_else(|| GENESIS.to_owned(), |last| last.hash.clone()),
            hash: String::new(),
            salts: personal.into_iter().map(salted).collect(),
            withheld: false,
        };

        entry.hash = entry.computed_hash();
        entry
    }

    /// Computes the hash that the entry must have. Empty if its salts do not fit its details.
    pub fn computed_hash(&self) -> String {
        let Some((actor, details)) = self.committed() else {
            return String::new();
        };
        let hashed = HashedEntry {
            sequence: self.sequence,
            at: self.at,
            actor: &actor,
            action: &self.action,
            details: &details,
            previous_hash: &self.previous_hash,
        };

        // Canonical JSON exists for every value without NaN, and JSON has none.
        let canonical = serde_json_canonicalizer::to_vec(&hashed).unwrap_or_default();
        hex::encode(Sha256::digest(canonical))
    }

    /// Whether the content of the entry is the one that its hash is of. A withheld entry does not show it.
    pub fn is_intact(&self) -> bool {
        !self.withheld && !self.hash.is_empty() && self.computed_hash() == self.hash
    }

    /// Returns the entry without its personal values: with their commitments and without the salts, or without details
    /// if the hash is of a personal value itself. The hash stays, and a repeat changes nothing.
    pub fn redacted(&self) -> Self {
        if self.withheld {
            return self.clone();
        }

        let committed = self
            .committed()
            .filter(|(actor, details)| !has_address(actor) && personal_values(details).is_empty());
        let withheld = committed.is_none();
        let (actor, details) = committed.unwrap_or_else(|| {
            let actor = match self.actor.split_once(':') {
                Some((kind, _)) if has_address(&self.actor) => kind,
                _ => self.actor.as_str(),
            };
            (actor.to_owned(), Value::Null)
        });

        Self {
            actor,
            details,
            salts: BTreeMap::new(),
            withheld,
            ..self.clone()
        }
    }

    /// Whether personal values of the entry were destroyed.
    pub fn is_redacted(&self) -> bool {
        self.has_destroyed_details() || is_destroyed_actor(&self.actor)
    }

    /// Whether personal values of the details were destroyed, or all details.
    pub fn has_destroyed_details(&self) -> bool {
        self.withheld || has_commitment(&self.details)
    }

    /// Returns actor and details as they are hashed; `None` if a salt has no value or not its length.
    fn committed(&self) -> Option<(String, Value)> {
        let (mut actor, mut details) = (self.actor.clone(), self.details.clone());
        for (place, salt) in &self.salts {
            let bytes = hex::decode(salt).ok();
            // Lower case only, so that a salt has one form.
            let is_whole =
                |bytes: &Vec<u8>| bytes.len() == SALT_LENGTH && hex::encode(bytes) == *salt;
            let bytes = bytes.filter(is_whole)?;

            if place == ACTOR {
                let kind = self.actor.split_once(':').map_or("", |(kind, _)| kind);
                let commitment = commitment(&bytes, &json!(self.actor));
                actor = format!("{kind}:{commitment}");
            } else {
                let value = details.pointer_mut(place)?;
                *value = json!({ COMMITMENT: commitment(&bytes, value) });
            }
        }

        Some((actor, details))
    }
}

/// Returns the SHA-256 of a salt and the canonical JSON of a value.
fn commitment(salt: &[u8], value: &Value) -> String {
    let canonical = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
    hex::encode(
        Sha256::new()
            .chain_update(salt)
            .chain_update(canonical)
            .finalize(),
    )
}

/// Returns the pointers of the outermost personal values.
fn personal_values(details: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_personal(details, String::new(), &mut found);
    found
}

fn collect_personal(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{escaped}");
                if !is_personal(name, members) {
                    collect_personal(value, pointer, found);
                } else if !is_blank(value) && !is_commitment(value) {
                    found.push(pointer);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_personal(item, format!("{pointer}/{index}"), found);
            }
        }
        Value::String(text) if has_address(text) => found.push(pointer),
        _ => {}
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

/// Whether a value is what destruction leaves of a personal value.
pub fn is_commitment(value: &Value) -> bool {
    let members = value.as_object().filter(|members| members.len() == 1);
    let commitment = members.and_then(|members| members.get(COMMITMENT));
    commitment.and_then(Value::as_str).is_some_and(is_digest)
}

/// Whether an actor is what destruction leaves of one with an e-mail address.
pub fn is_destroyed_actor(actor: &str) -> bool {
    actor
        .split_once(':')
        .is_some_and(|(_, person)| is_digest(person))
}

fn has_commitment(value: &Value) -> bool {
    match value {
        Value::Object(_) if is_commitment(value) => true,
        Value::Object(members) => members.values().any(has_commitment),
        Value::Array(items) => items.iter().any(has_commitment),
        _ => false,
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
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

/// Checks that `entries` form a complete chain from the first entry on. Behind a withheld entry, it has the destruction
/// of the record: the hash of such an entry counts, and its content is unknown.
pub fn verify_chain(entries: &[LedgerEntry]) -> Result<(), ChainError> {
    if entries.is_empty() {
        return Err(ChainError::Empty);
    }

    let mut destructions = entries.iter().rev();
    let destroyed = destructions.find(|entry| entry.action == DESTROYED && !entry.withheld);
    let destroyed = destroyed.map_or(0, |entry| entry.sequence);

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
        let is_withheld = entry.withheld && entry.details.is_null() && entry.salts.is_empty();
        if !entry.is_intact() && !(is_withheld && entry.sequence < destroyed) {
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

    fn entry(actor: &str, action: &str, details: Value, last: Option<&LedgerEntry>) -> LedgerEntry {
        let new = NewEntry {
            at: Timestamp::from_millis(0),
            actor: actor.into(),
            action: action.into(),
            details,
        };
        LedgerEntry::after(last, new)
    }

    /// Entry about a signer, as most are.
    fn signed() -> LedgerEntry {
        let details = json!({
            "signer": { "signer_id": "sgn_1", "email": "ann@example.com", "name": "Ann" },
            "controller": { "organization_id": "org_1", "name": "First Bank" },
            "component": { "name": "rules", "version": "1.0.0" },
            "reminded": ["bo@example.com"],
            "reason": null,
            "note": "",
        });
        entry("signer:ann@example.com", "signer.completed", details, None)
    }

    /// Chain of an earlier release, whose entries have no salts, with the entry of a destruction behind it.
    fn destroyed_chain() -> Vec<LedgerEntry> {
        let mut first = signed();
        first.salts.clear();
        first.hash = first.computed_hash();
        let last = entry("system", DESTROYED, json!({}), Some(&first));
        vec![first.redacted(), last]
    }

    #[test]
    fn personal_values_and_the_actor_have_salts_and_ids_have_none() {
        let entry = signed();
        let places: Vec<&str> = entry.salts.keys().map(String::as_str).collect();
        let personal = ["/reminded/0", "/signer/email", "/signer/name", "actor"];
        assert_eq!(places, personal);
        for salt in entry.salts.values() {
            assert_eq!(salt.len(), 32);
        }
    }

    #[test]
    fn the_salt_of_a_whole_object_is_that_of_its_outermost_member() {
        let details =
            json!({ "facts": { "signers": [{ "name": "Ann" }] }, "a/b": { "text": "x" } });
        let entry = entry("system", "compliance.evaluated", details, None);
        let places: Vec<&str> = entry.salts.keys().map(String::as_str).collect();
        assert_eq!(places, ["/a~1b/text", "/facts"]);
    }

    #[test]
    fn the_hash_is_that_of_the_commitments() {
        let entry = entry(
            "system",
            "envelope.declined",
            json!({ "reason": "ü" }),
            None,
        );
        let salt = hex::decode(&entry.salts["/reason"]).unwrap();
        let commitment = hex::encode(Sha256::digest([&salt[..], "\"ü\"".as_bytes()].concat()));
        let canonical = format!(
            r#"{{"action":"envelope.declined","actor":"system","at":"1970-01-01T00:00:00.000Z","details":{{"reason":{{"commitment":"{commitment}"}}}},"previous_hash":"{GENESIS}","sequence":1}}"#
        );
        assert_eq!(entry.hash, hex::encode(Sha256::digest(canonical)));
    }

    #[test]
    fn an_entry_has_the_same_hash_before_and_after_its_redaction() {
        let (entry, redacted) = (signed(), signed_redacted());
        assert!(redacted.is_redacted() && !entry.is_redacted());
        assert!(redacted.is_intact() && !redacted.withheld);
        assert_eq!(redacted.redacted(), redacted);

        let text = serde_json::to_string(&redacted).unwrap();
        for personal in ["ann@example.com", "Ann", "bo@example.com", "salts"] {
            assert!(!text.contains(personal), "{text}");
        }
        for plain in ["sgn_1", "First Bank", "rules", "\"signer:"] {
            assert!(text.contains(plain), "{text}");
        }
    }

    fn signed_redacted() -> LedgerEntry {
        let entry = signed();
        let redacted = entry.redacted();
        assert_eq!(redacted.computed_hash(), entry.hash);
        redacted
    }

    #[test]
    fn another_personal_value_breaks_the_hash() {
        let mut entry = signed();
        entry.details["signer"]["name"] = "Bo".into();
        assert_eq!(verify_chain(&[entry]), Err(ChainError::Changed(1)));
    }

    #[test]
    fn another_actor_breaks_the_hash() {
        let mut entry = signed();
        entry.actor = "signer:bo@example.com".into();
        assert_eq!(verify_chain(&[entry]), Err(ChainError::Changed(1)));
    }

    #[test]
    fn another_salt_breaks_the_hash() {
        let mut entry = signed();
        entry.salts.insert("/signer/name".into(), "00".repeat(16));
        assert_eq!(verify_chain(&[entry]), Err(ChainError::Changed(1)));
    }

    #[test]
    fn a_moved_pointer_breaks_the_hash() {
        let mut entry = signed();
        let salt = entry.salts.remove("/signer/name").unwrap();
        entry.salts.insert("/signer/signer_id".into(), salt);
        assert_eq!(verify_chain(&[entry]), Err(ChainError::Changed(1)));
    }

    #[test]
    fn a_pointer_without_a_value_is_a_change() {
        let mut entry = signed();
        entry.salts.insert("/nothing".into(), "00".repeat(16));
        // Not even the hash that such an entry would have.
        entry.hash = entry.computed_hash();
        assert_eq!(verify_chain(&[entry]), Err(ChainError::Changed(1)));
    }

    #[test]
    fn a_salt_of_less_than_16_bytes_is_refused() {
        let mut entry = signed();
        entry.salts.insert("/signer/name".into(), "00".repeat(15));
        entry.hash = entry.computed_hash();
        assert_eq!(verify_chain(&[entry]), Err(ChainError::Changed(1)));
    }

    #[test]
    fn an_entry_of_an_earlier_release_is_withheld_behind_its_destruction() {
        let entries = destroyed_chain();
        assert!(entries[0].withheld && entries[0].details.is_null());
        assert_eq!(entries[0].actor, "signer");
        assert_eq!(entries[0].redacted(), entries[0]);
        assert_eq!(verify_chain(&entries), Ok(()));
    }

    #[test]
    fn a_withheld_entry_without_a_destruction_behind_it_is_a_change() {
        let entries = destroyed_chain();
        assert_eq!(verify_chain(&entries[..1]), Err(ChainError::Changed(1)));

        let mut entries = destroyed_chain();
        entries[1].action = "envelope.sent".into();
        entries[1].hash = entries[1].computed_hash();
        assert_eq!(verify_chain(&entries), Err(ChainError::Changed(1)));
    }

    #[test]
    fn a_withheld_entry_has_no_details() {
        let mut entries = destroyed_chain();
        entries[0].details = json!({ "signer": { "name": "Bo" } });
        assert_eq!(verify_chain(&entries), Err(ChainError::Changed(1)));
    }

    #[test]
    fn an_entry_without_personal_values_stays_as_it_is() {
        let entry = &chain()[0];
        assert!(entry.salts.is_empty());
        assert_eq!(entry.redacted(), *entry);
    }
}
