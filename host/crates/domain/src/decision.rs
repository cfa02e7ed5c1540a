//! Decisions of rules as data: the lines of an export, and what a ledger commits to.
//!
//! The decisions of an organization's rules are in blocks. Each block is an entry of the chain
//! `decisions:<organization>` with the number of its decisions and the root of a Merkle tree over them
//! (RFC 6962), so that a missing one shows.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clock::Timestamp;
use super::component::{ComponentIdentity, Slot};
use super::hash::canonical_sha256;
use super::id::{EnvelopeId, OrgId, TemplateId};
use super::ledger::LedgerChain;
use super::merkle::{self, Hash, MissingTile, TileReader};

/// Action of the ledger entry of a block.
pub const RECORDED: &str = "decisions.recorded";

/// Ledger of the blocks of an organization.
#[derive(Clone, Debug)]
pub struct DecisionChain(String);

impl DecisionChain {
    pub fn of(org: &OrgId) -> Self {
        Self(format!("decisions:{org}"))
    }
}

impl LedgerChain for DecisionChain {
    fn chain(&self) -> &str {
        &self.0
    }
}

/// A decision in an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionLine {
    /// Number of its block.
    pub block: i64,
    /// Position in the block, from 0.
    pub position: u64,
    /// Id of the decision. An evaluation has that of its envelope, which is evaluated once.
    pub decision_id: String,
    pub slot: Slot,
    /// Called function of the slot's interface.
    pub function: String,
    /// The envelope that was decided about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<EnvelopeId>,
    /// The template with the placed fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<TemplateId>,
    pub at: Timestamp,
    pub component: ComponentIdentity,
    /// Parameters of the call, by their names in the WIT package, as they were recorded, without those of the mask.
    /// Members of records have underscores. A document is given by its SHA-256.
    pub given: Value,
    /// SHA-256 of the complete parameters as canonical JSON (RFC 8785), lower-case hex.
    pub given_sha256: String,
    /// What the function returned; null for evaluations that were recorded without it.
    pub answer: Value,
    /// SHA-256 of the complete answer as canonical JSON, lower-case hex.
    pub answer_sha256: String,
    /// Whether the mask left something out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// Path of the operation that makes the decision again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Status of the envelope, spelled as in the API: the one that an evaluation saw, or to which a transition led.
    /// Exports of earlier releases lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

impl DecisionLine {
    /// Returns the leaf of the decision in the tree of its block. It does not depend on the mask.
    pub fn leaf(&self) -> Hash {
        // Facts and answer enter as hashes only. A masked export proves its lines without the masked values.
        let committed = json!({
            "answer_sha256": self.answer_sha256,
            "at": self.at,
            "component": self.component,
            "decision_id": self.decision_id,
            "envelope_id": self.envelope_id,
            "function": self.function,
            "given_sha256": self.given_sha256,
            "slot": self.slot,
            "template_id": self.template_id,
        });

        merkle::leaf_hash(canonical_sha256(&committed).as_bytes())
    }
}

/// Returns the path of the operation that makes the decisions about an envelope again.
pub fn replay_path(envelope: &EnvelopeId) -> String {
    format!("/envelopes/{envelope}/replay")
}

/// Returns the status in the parameters or the answer of a decision, spelled as in the API. They are recorded in the
/// spelling of the call, which the digests of old decisions cover.
pub fn status_of(slot: Slot, given: &Value, answer: &Value) -> Option<String> {
    let recorded = match slot {
        Slot::Compliance => &given["facts"]["status"],
        Slot::Lifecycle => &answer["ok"],
        _ => return None,
    };

    let mut status = String::new();
    for letter in recorded.as_str()?.chars() {
        if letter.is_ascii_uppercase() && !status.is_empty() {
            status.push('_');
        }
        status.push(if letter == '-' {
            '_'
        } else {
            letter.to_ascii_lowercase()
        });
    }

    Some(status)
}

/// Returns the root of the tree over the decisions of a block, lower-case hex.
///
/// # Errors
/// Never: the tree has all its tiles.
pub fn root_of(leaves: impl IntoIterator<Item = Hash>) -> Result<String, MissingTile> {
    let (mut tiles, mut size) = (TileReader::default(), 0);
    for leaf in leaves {
        tiles.append(size, leaf)?;
        size += 1;
    }
    Ok(hex::encode(tiles.root(size)?))
}

/// Removes members and named values with these names, at any depth. Returns whether there were any.
pub fn mask(value: &mut Value, names: &[String]) -> bool {
    let is_masked = |name: &str| names.iter().any(|masked| masked == name);
    match value {
        Value::Object(members) => {
            let before = members.len();
            members.retain(|name, _| !is_masked(name));
            // `|=` and not `||`: every branch has to be masked, even after a first hit.
            let mut found = members.len() < before;
            for member in members.values_mut() {
                found |= mask(member, names);
            }

            found
        }
        Value::Array(items) => {
            let before = items.len();
            // A pair of a name and a value, as in `attributes`.
            items.retain(|item| match item.as_array().map(Vec::as_slice) {
                Some([Value::String(name), Value::String(_)]) => !is_masked(name),
                _ => true,
            });
            let mut found = items.len() < before;
            for item in items {
                found |= mask(item, names);
            }

            found
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_spelling_of_the_api_in_every_slot() {
        let released = Some("vaulted_out".to_owned());
        let facts = json!({ "facts": { "status": "VaultedOut" } });
        assert_eq!(status_of(Slot::Compliance, &facts, &json!({})), released);
        let answer = json!({ "ok": "vaulted-out" });
        assert_eq!(status_of(Slot::Lifecycle, &json!({}), &answer), released);

        // A masked status, and a slot without one.
        assert_eq!(status_of(Slot::Compliance, &json!({}), &answer), None);
        assert_eq!(status_of(Slot::Placement, &facts, &answer), None);
    }

    /// A later release must write the same lines for old blocks.
    #[test]
    fn the_leaf_of_a_decision_stays_the_same() {
        let (given, answer) = (json!({ "trigger": "Send" }), json!({ "ok": "sent" }));
        let line = DecisionLine {
            block: 1,
            position: 0,
            decision_id: "dec_1".into(),
            slot: Slot::Lifecycle,
            function: "envelope".into(),
            envelope_id: EnvelopeId::parse("env_01jdk7m3e8f4x9s2w5v6b0c1dc"),
            template_id: None,
            at: Timestamp::from_millis(0),
            component: ComponentIdentity {
                name: "rules".into(),
                version: "1.0.0".into(),
                sha256: "0".repeat(64),
            },
            given_sha256: canonical_sha256(&given),
            answer_sha256: canonical_sha256(&answer),
            given,
            answer,
            masked: false,
            replay: None,
            status: None,
        };
        assert_eq!(
            hex::encode(line.leaf()),
            "f55b915ff269f89b86192fb1df2ad31bc39f19bcaa69b8ab8a4c953ca1e6a95e"
        );

        let masked = DecisionLine {
            given: json!({}),
            masked: true,
            ..line.clone()
        };
        assert_eq!(masked.leaf(), line.leaf());
    }

    #[test]
    fn a_mask_removes_members_and_named_values_at_any_depth() {
        let mut value = json!({ "facts": {
            "name": "Retail", "submitters": [{ "name": "Robin", "role": "Buyer" }],
            "attributes": [["metadata.ssn", "123"], ["metadata.vin", "1M8"]],
        } });
        let names = ["name".to_owned(), "metadata.ssn".to_owned()];
        assert!(mask(&mut value, &names));
        assert_eq!(
            value,
            json!({ "facts": {
                "submitters": [{ "role": "Buyer" }], "attributes": [["metadata.vin", "1M8"]],
            } })
        );
        assert!(!mask(&mut value, &names));
    }
}
