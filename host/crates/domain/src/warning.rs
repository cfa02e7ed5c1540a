//! Warnings about an accepted request.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::field::Area;

/// Warning about a member of the request that probably does not mean what the caller intended.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Warning {
    /// Stable code for programs.
    pub code: &'static str,
    pub message: String,
    /// Path of the member: names and list indexes from the root of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Value>,
    /// All other occurrences of an ambiguous anchor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub occurrences: Vec<Area>,
}

impl Warning {
    /// Creates a warning about one member of the request.
    pub fn new(code: &'static str, path: &[&str], message: impl Into<String>) -> Self {
        // An index becomes a number, so a client can tell it from the name of a member.
        let step = |step: &&str| match step.parse::<u64>() {
            Ok(index) => Value::from(index),
            Err(_) => Value::from(*step),
        };
        Self {
            code,
            message: message.into(),
            path: path.iter().map(step).collect(),
            occurrences: Vec::new(),
        }
    }
}
