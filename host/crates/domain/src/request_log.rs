//! Requests of an organization's programs and users, kept for those who integrate.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

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

/// Returns a JSON body without private values: of other texts than ids, times and words of the API, only the length
/// stays. None if it is no JSON.
pub fn redacted(body: &[u8]) -> Option<String> {
    // Written while it is read: a tree of values would cost more than most requests.
    let mut out = Vec::with_capacity(body.len());
    let mut reader = serde_json::Deserializer::from_slice(body);
    let shown = Shown {
        name: "",
        out: &mut out,
    };
    shown.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    String::from_utf8(out).ok()
}

/// Value of the member `name`, which is written to `out` as it is shown.
struct Shown<'a> {
    name: &'a str,
    out: &'a mut Vec<u8>,
}

/// Name of a member.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

impl Shown<'_> {
    fn write<E: de::Error>(self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.out, &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Shown<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if DROPPED.contains(&self.name) {
            let value = Option::<IgnoredAny>::deserialize(reader)?;
            return self.write(value.map(|_| "[not kept]"));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shown<'_> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter) -> fmt::Result {
        text.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        match is_kept(self.name) {
            true => self.write(kept(text)),
            false => self.write(format_args!("[{} characters]", text.chars().count())),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let start = self.out.len();
        loop {
            let end = self.out.len();
            if end > start {
                self.out.push(b',');
            }
            let item = Shown {
                name: self.name,
                out: self.out,
            };
            if items.next_element_seed(item)?.is_none() {
                self.out.truncate(end);
                break;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.out.push(b'{');
        let start = self.out.len();
        while let Some(MemberName(name)) = members.next_key()? {
            if self.out.len() > start {
                self.out.push(b',');
            }
            serde_json::to_writer(&mut *self.out, &name).map_err(de::Error::custom)?;
            self.out.push(b':');
            members.next_value_seed(Shown {
                name: &name,
                out: self.out,
            })?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// Returns the begin of a text without e-mail addresses, which messages can name.
fn kept(text: &str) -> Cow<'_, str> {
    let end = text
        .char_indices()
        .nth(500)
        .map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    if !text.contains('@') {
        return text.into();
    }
    let words = text.split(' ');
    let words = words.map(|word| {
        if word.contains('@') {
            "[address]"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ").into()
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
        let shown = redacted(body.to_string().as_bytes()).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&shown).unwrap(),
            json!({
                "envelope_name": "Sale", "template_id": "tmpl_1", "customer_email": "[18 characters]",
                "prefilled_data": "[not kept]",
                "signers": [{ "name": "[6 characters]", "role": "Buyer", "passcode": "[not kept]" }],
                "preserve_signing_order": true, "config": "[not kept]", "secret": null,
                "message": "No customer had [address] before", "metadata": "[not kept]",
            })
        );
    }

    #[test]
    fn the_form_of_a_body_stays() {
        for body in [
            r#"{"data":[{"status":"sent","count":2,"rate":0.5,"next":null},{}],"more":[],"is_last":true}"#,
            r#"[-1,18446744073709551615,[[],[{"path":["a",1]}]]]"#,
            "null",
        ] {
            assert_eq!(redacted(body.as_bytes()).unwrap(), body);
        }
        let text = format!(r#"{{"code":"{}"}}"#, "ä".repeat(600));
        assert_eq!(
            redacted(text.as_bytes()).unwrap(),
            format!(r#"{{"code":"{}"}}"#, "ä".repeat(500))
        );
        for broken in ["", "{", "{} {}", "\u{fffd}"] {
            assert_eq!(redacted(broken.as_bytes()), None);
        }
        assert_eq!(redacted(b"{\"status\": \"\xff\"}"), None);
    }
}
