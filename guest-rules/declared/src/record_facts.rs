//! The facts of a record that expressions may name.

use cel::Env;
use holdfast_conditions::Conditions;
use serde_json::{Map, Value, json};

use crate::record::status_text;
use crate::types::{CustodianStatus, EnvelopeFacts};

/// Prefix of attributes with the partner's own facts.
const METADATA: &str = "metadata.";

/// Names that expressions may use. `detail` is the pack's sentence about a changed check.
pub const VARIABLES: [&str; 17] = [
    "envelope_id",
    "envelope_name",
    "customer_id",
    "status",
    "vault_file_path",
    "document_hash",
    "copy_file_path",
    "vault_out_certificate_path",
    "secured_party",
    "submitters",
    "signed_documents",
    "custodians",
    "identity_verifications",
    "attributes",
    "metadata",
    "detail",
    "satisfied",
];

/// Converts the facts of a record for expressions: an absent option is null, attributes are a map, and `metadata` is the map
/// of the partner's own facts.
pub fn conditions(facts: &EnvelopeFacts) -> Conditions {
    // Authors know the spelling of the API, so statuses are written as it spells them.
    let mut values = serde_json::to_value(facts).unwrap_or_default();
    values["status"] = json!(status_text(facts.status));

    for (at, custodian) in facts.custodians.iter().enumerate() {
        let status = match custodian.status {
            CustodianStatus::Pending => "pending",
            CustodianStatus::Accepted => "accepted",
            CustodianStatus::Revoked => "revoked",
        };
        values["custodians"][at]["status"] = json!(status);
    }

    let attributes = facts.attributes.iter();
    let attributes: Map<_, _> = attributes
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let own = attributes
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(METADATA)?.to_owned(), value.clone())));
    values["metadata"] = Value::Object(own.collect());
    values["attributes"] = Value::Object(attributes);

    let mut conditions = Conditions::new(Env::stdlib(), |_| None);
    for name in VARIABLES {
        conditions.set(name, &values[name]);
    }

    conditions
}

/// Sets the pack's result and sentence about the check in question.
pub fn set_check(conditions: &mut Conditions, satisfied: bool, detail: &str) {
    conditions.set("satisfied", &json!(satisfied));
    conditions.set("detail", &json!(detail));
}
