//! Signing fields, in the one form that the API and the database share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rectangle on a displayed page: fractions 0.0 to 1.0, origin top-left;
/// `page` is 1-based.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Area {
    pub page: u32,
    pub x: f64,
    pub y: f64,
    pub w: f64,
    pub h: f64,
}

/// Signing field with its resolved rectangles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub field_type: String,
    pub role: String,
    pub required: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    pub areas: Vec<Area>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_match: Option<Area>,
}

impl Field {
    /// Whether the field is filled by signing rather than by typing a value.
    pub fn is_signature(&self) -> bool {
        is_signature(&self.field_type)
    }
}

/// Whether fields of this type are filled by signing.
pub fn is_signature(field_type: &str) -> bool {
    matches!(field_type, "signature" | "initials")
}
