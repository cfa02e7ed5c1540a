//! Requests of an organization's programs and users, kept for those who integrate.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::clock::Timestamp;
use super::id::{EnvelopeId, OrgId, RequestId};

/// A request with its answer, without private values.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "request_id": "req_01jdk7m3e8f4x9s2w5v6b0c1df", "at": "2026-11-21T09:30:00.000Z", "method": "POST",
    "route": "/api/v2/partner/envelopes", "path": "/api/v2/partner/envelopes", "status": 201,
    "credential": "key_01jdk7m3e8f4x9s2w5v6b0c1dd", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "duration_ms": 12,
    "request": { "envelope_name": "Retail instalment contract 2041", "customer_email": "[22 characters]" },
    "answer": { "data": { "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "status": "sent" } },
}]))]
pub struct LoggedRequest {
    /// Also in the header `X-Request-Id` of the answer.
    pub request_id: RequestId,
    #[serde(skip)]
    pub org: OrgId,
    pub at: Timestamp,
    pub method: String,
    /// Path as in the OpenAPI document.
    pub route: String,
    /// Path with its ids.
    pub path: String,
    pub status: i64,
    /// Id of the API key, token or session.
    pub credential: Option<String>,
    /// Envelope that the path or the answer names.
    pub envelope_id: Option<EnvelopeId>,
    pub duration_ms: i64,
    /// JSON body without values of documents, answers of signers and secrets; of other texts only the length.
    pub request: Option<Value>,
    /// JSON body of the answer, in the same form.
    pub answer: Option<Value>,
}

/// Members with texts of the API itself, or references of the partner. Ids and times are kept as well.
const KEPT: [&str; 22] = [
    "action",
    "code",
    "currency",
    "envelope_kind",
    "envelope_name",
    "error",
    "event_type",
    "events",
    "expected",
    "external_id",
    "format",
    "jurisdiction",
    "kind",
    "language",
    "locale",
    "message",
    "mode",
    "path",
    "role",
    "roles",
    "scopes",
    "status",
];
/// Members that are never kept: values of documents, data of the partner, answers of signers, and secrets.
const DROPPED: [&str; 15] = [
    "metadata",
    "prefilled_data",
    "values",
    "answers",
    "default_value",
    "secrets",
    "config",
    "settings",
    "secret",
    "client_secret",
    "passcode",
    "token",
    "received",
    "signature",
    "logo",
];

/// Returns a body without private values: of other texts than ids, times and words of the API, only the length
/// stays.
pub fn redacted(body: &Value) -> Value {
    shown("", body)
}

fn shown(name: &str, value: &Value) -> Value {
    if DROPPED.contains(&name) {
        return match value {
            Value::Null => Value::Null,
            _ => "[not kept]".into(),
        };
    }
    match value {
        Value::String(text) if is_kept(name) => kept(text).into(),
        Value::String(text) => format!("[{} characters]", text.chars().count()).into(),
        Value::Array(items) => items.iter().map(|item| shown(name, item)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), shown(name, value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Returns the begin of a text without e-mail addresses, which messages can name.
fn kept(text: &str) -> String {
    let text: String = text.chars().take(500).collect();
    let words = text.split(' ');
    let words = words.map(|word| {
        if word.contains('@') {
            "[address]"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_kept(name: &str) -> bool {
    let ends = ["_id", "_ids", "_at"];
    KEPT.contains(&name) || ends.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_and_secrets_are_not_kept() {
        let body = json!({
            "envelope_name": "Sale", "template_id": "tmpl_1", "customer_email": "jordan@example.com",
            "prefilled_data": { "Price": "18500" }, "signers": [{ "name": "Jordan", "role": "Buyer", "passcode": "123456" }],
            "preserve_signing_order": true, "config": { "secrets": { "key": "s" } }, "secret": null,
            "message": "No customer had jordan@example.com before",
            "metadata": { "status": "divorced", "income": 54000 },
        });
        assert_eq!(
            redacted(&body),
            json!({
                "envelope_name": "Sale", "template_id": "tmpl_1", "customer_email": "[18 characters]",
                "prefilled_data": "[not kept]",
                "signers": [{ "name": "[6 characters]", "role": "Buyer", "passcode": "[not kept]" }],
                "preserve_signing_order": true, "config": "[not kept]", "secret": null,
                "message": "No customer had [address] before", "metadata": "[not kept]",
            })
        );
    }
}
