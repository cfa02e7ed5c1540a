//! DocuSeal's JSON, as far as this plugin uses it.
//!
//! Requests send areas with 1-based pages; answers give them 0-based. Both are
//! converted here and nowhere else.

#![cfg_attr(
    not(target_arch = "wasm32"),
    expect(
        dead_code,
        reason = "the calls that use them exist in the component only"
    )
)]

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize)]
pub(crate) struct Template {
    pub id: i64,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub submitters: Vec<TemplateRole>,
    #[serde(default)]
    pub fields: Vec<TemplateField>,
    #[serde(default)]
    pub schema: Vec<TemplateDocument>,
}

#[derive(Deserialize, Serialize, Clone)]
pub(crate) struct TemplateRole {
    pub name: String,
    pub uuid: String,
}

#[derive(Deserialize)]
pub(crate) struct TemplateDocument {
    pub attachment_uuid: String,
}

#[derive(Deserialize, Serialize, Clone)]
pub(crate) struct TemplateField {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    pub submitter_uuid: String,
    #[serde(default)]
    pub name: String,
    #[serde(rename = "type")]
    pub field_type: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub readonly: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<FieldOption>,
    #[serde(default)]
    pub areas: Vec<StoredArea>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Options are written as text and read back as objects.
#[derive(Deserialize, Serialize, Clone)]
#[serde(untagged)]
pub(crate) enum FieldOption {
    Text(String),
    Object { value: String },
}

impl FieldOption {
    pub fn text(&self) -> &str {
        match self {
            Self::Text(value) | Self::Object { value } => value,
        }
    }
}

/// An area as it is stored and returned: `page` is 0-based.
#[derive(Deserialize, Serialize, Clone)]
pub(crate) struct StoredArea {
    pub x: f64,
    pub y: f64,
    pub w: f64,
    pub h: f64,
    #[serde(default)]
    pub page: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment_uuid: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Submission {
    pub id: i64,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub completed_at: Option<String>,
    #[serde(default)]
    pub archived_at: Option<String>,
    #[serde(default)]
    pub submitters: Vec<Submitter>,
}

#[derive(Deserialize)]
pub(crate) struct Submitter {
    pub id: i64,
    #[serde(default)]
    pub submission_id: Option<i64>,
    #[serde(default)]
    pub slug: Option<String>,
    #[serde(default)]
    pub email: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub role: Option<String>,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub external_id: Option<String>,
    #[serde(default)]
    pub embed_src: Option<String>,
    #[serde(default)]
    pub opened_at: Option<String>,
    #[serde(default)]
    pub completed_at: Option<String>,
    #[serde(default)]
    pub decline_reason: Option<String>,
    #[serde(default)]
    pub values: Vec<SubmittedValue>,
    #[serde(default)]
    pub ip: Option<String>,
    #[serde(default)]
    pub ua: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct SubmittedValue {
    pub field: String,
    #[serde(default)]
    pub value: Value,
    /// Not sent by every version; the template's field tells otherwise.
    #[serde(default, rename = "type")]
    pub field_type: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Page<T> {
    pub data: Vec<T>,
}

#[derive(Deserialize)]
pub(crate) struct Documents {
    pub documents: Vec<Document>,
}

#[derive(Deserialize)]
pub(crate) struct Document {
    pub url: String,
}

/// A webhook's body.
#[derive(Deserialize)]
pub(crate) struct Hook {
    pub event_type: String,
    #[serde(default)]
    pub data: Value,
}
