//! Evaluation of expressions over the facts of a record.

use std::sync::Arc;

use cel::{Context, Env, Value};
use serde_json::{Map, json};

use crate::expression::{Expression, SentencePart};
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

/// Facts of one record, ready for expressions.
pub struct Conditions(Context<'static, 'static>);

impl Conditions {
    /// Converts facts: an absent option is null, attributes are a map, and `metadata` is the map of the
    /// partner's own facts.
    pub fn new(facts: &EnvelopeFacts) -> Self {
        let mut env = Env::stdlib();
        // Declaring the functions of a fresh environment does not fail.
        let _ = env.add_extension(cel::extensions::strings);
        let mut context = Context::with_env(Arc::new(env));
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
        let own = attributes.iter().filter_map(|(name, value)| {
            Some((name.strip_prefix(METADATA)?.to_owned(), value.clone()))
        });
        values["metadata"] = serde_json::Value::Object(own.collect());

        values["attributes"] = serde_json::Value::Object(attributes);
        for name in VARIABLES {
            let value = cel::to_value(&values[name]).unwrap_or(Value::Null);
            context.add_variable_from_value(name, value);
        }

        Self(context)
    }

    /// Sets the pack's result and sentence about the check in question.
    pub fn set_check(&mut self, satisfied: bool, detail: &str) {
        self.0.add_variable_from_value("satisfied", satisfied);
        self.0.add_variable_from_value("detail", detail.to_owned());
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// The condition cannot be evaluated, or is neither true nor false.
    pub fn hold(&self, condition: &Expression) -> Result<bool, String> {
        match Value::resolve(&condition.parsed(), &self.0) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it is {} and not true or false", other.type_of())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns a sentence with its values. A value that cannot be evaluated is left out.
    pub fn sentence(&self, parts: &[SentencePart]) -> String {
        let texts = parts.iter().map(|part| match part {
            SentencePart::Text(text) => text.clone(),
            SentencePart::Value(value) => match Value::resolve(&value.parsed(), &self.0) {
                Ok(Value::String(text)) => text.to_string(),
                Ok(Value::Int(number)) => number.to_string(),
                Ok(Value::UInt(number)) => number.to_string(),
                Ok(Value::Float(number)) => number.to_string(),
                Ok(Value::Bool(value)) => value.to_string(),
                _ => "–".to_owned(),
            },
        });

        texts.collect()
    }
}
