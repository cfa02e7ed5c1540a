//! DocuSeal's JSON, as far as this plugin uses it.
//!
//! Requests use 1-based pages in areas, responses 0-based ones; only `templates.rs` converts
//! between them. Objects that are read and written back keep members unknown to this plugin.

#![cfg_attr(
    not(target_arch = "wasm32"),
    expect(
        dead_code,
        reason = "the calls that use them exist in the component only"
    )
)]

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Deserialize)]
pub(crate) struct Template {
    pub id: i64,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub external_id: Option<String>,
    #[serde(default)]
    pub shared_link: Option<bool>,
    #[serde(default)]
    pub archived_at: Option<String>,
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
    #[serde(flatten)]
    pub further: Map<String, Value>,
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
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// An option, written as text and read back as an object.
#[derive(Deserialize, Serialize, Clone)]
#[serde(untagged)]
pub(crate) enum FieldOption {
    Text(String),
    Object {
        value: String,
        #[serde(flatten)]
        further: Map<String, Value>,
    },
}

impl FieldOption {
    pub fn text(&self) -> &str {
        match self {
            Self::Text(value) | Self::Object { value, .. } => value,
        }
    }
}

/// An area as stored and returned: `page` is 0-based.
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
    #[serde(flatten)]
    pub further: Map<String, Value>,
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
    pub submitters: Vec<WireSubmitter>,
    #[serde(default)]
    pub submission_events: Vec<SubmissionEvent>,
    /// Present with `?include=fields` only.
    #[serde(default)]
    pub fields: Vec<SubmissionField>,
}

#[derive(Deserialize)]
pub(crate) struct WireSubmitter {
    pub id: i64,
    #[serde(default)]
    pub submission_id: Option<i64>,
    /// Id of its role, to which the fields' `submitter_uuid` refers.
    #[serde(default)]
    pub uuid: Option<String>,
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
    /// Not reported by every version; the event of the decline has it too.
    #[serde(default)]
    pub decline_reason: Option<String>,
    #[serde(default)]
    pub values: Vec<SubmittedValue>,
    /// Reported by the built-in room; DocuSeal has it in its feed of completions.
    #[serde(default)]
    pub ip: Option<String>,
    #[serde(default)]
    pub ua: Option<String>,
    /// Metadata given when the submitter was created. The built-in room stores here the time of the
    /// consent to signing electronically.
    #[serde(default)]
    pub metadata: Value,
}

#[derive(Deserialize)]
pub(crate) struct SubmittedValue {
    pub field: String,
    #[serde(default)]
    pub value: Value,
    /// Reported by the built-in room; DocuSeal reports it with the field.
    #[serde(default, rename = "type")]
    pub field_type: Option<String>,
}

/// A field in a submission.
#[derive(Deserialize)]
pub(crate) struct SubmissionField {
    #[serde(default)]
    pub submitter_uuid: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub field_type: String,
}

#[derive(Deserialize)]
pub(crate) struct SubmissionEvent {
    #[serde(default)]
    pub submitter_id: Option<i64>,
    pub event_type: String,
    #[serde(default)]
    pub data: Value,
}

#[derive(Deserialize)]
pub(crate) struct WirePage<T> {
    pub data: Vec<T>,
}

#[derive(Deserialize)]
pub(crate) struct WireDocuments {
    pub documents: Vec<WireDocument>,
}

#[derive(Deserialize)]
pub(crate) struct WireDocument {
    pub url: String,
}

/// A webhook's body; the feed of completions has the same shape.
#[derive(Deserialize)]
pub(crate) struct WireHook {
    pub event_type: String,
    #[serde(default)]
    pub data: Value,
}

/// Body of an error response. Any member may be missing.
#[derive(Default, Deserialize)]
pub(crate) struct WireRefusal {
    #[serde(default)]
    pub error: Option<String>,
    /// Reported by calls that the free edition does not have.
    #[serde(default)]
    pub message: Option<String>,
}

impl WireRefusal {
    /// Returns whether a token of the testing account was used for the real one, or vice versa.
    pub fn names_other_mode(&self) -> bool {
        let text = self.error.as_deref().unwrap_or_default().to_lowercase();
        text.contains("testing") || text.contains("production")
    }
}
