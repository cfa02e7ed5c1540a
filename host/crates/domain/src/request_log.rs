//! Requests of an organization's programs and users, kept for those who integrate.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
    "request": { "envelope_name": "[not kept]", "external_id": "deal-2041", "customer_email": "[not kept]" },
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
    /// JSON body. Texts are kept of members with `x-logged` in the OpenAPI document; other texts, and free objects such
    /// as `metadata`, are not.
    pub request: Option<Value>,
    /// JSON body of the answer, in the same form.
    pub answer: Option<Value>,
}

/// What the log keeps of a JSON body, by the schema of the body.
///
/// Booleans, nulls and empty texts of described members are kept, numbers where the schema has numbers, other texts where
/// it permits them (`x-logged`). Other members are not kept at all, their names included.
#[derive(Clone, Debug, Default)]
pub struct LoggedMembers {
    /// Which texts are kept, those in a list too.
    pub text: KeptTexts,
    /// Whether numbers are kept.
    pub number: bool,
    /// Members of an object, by name.
    pub members: BTreeMap<String, Arc<LoggedMembers>>,
    /// Items of a list.
    pub items: Option<Arc<LoggedMembers>>,
}

/// Texts of a member that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptTexts {
    #[default]
    None,
    /// One of these values, an id or a time: also in a request that was refused, nothing else is kept.
    Closed(Vec<String>),
    All,
}

impl KeptTexts {
    fn keeps(&self, text: &str) -> bool {
        match self {
            Self::None => false,
            Self::Closed(values) => {
                values.iter().any(|value| value == text) || is_id(text) || is_time(text)
            }
            Self::All => true,
        }
    }
}

/// Whether a text has the form of an id: `env_` and 26 characters.
fn is_id(text: &str) -> bool {
    let Some((kind, random)) = text.rsplit_once('_') else {
        return false;
    };

    let is_word = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let is_random = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };

    (2..=12).contains(&kind.len()) && is_word(kind) && random.len() == 26 && is_random(random)
}

fn is_time(text: &str) -> bool {
    text.len() > 10 && Timestamp::parse(text).is_some() || text.parse::<jiff::civil::Date>().is_ok()
}

impl LoggedMembers {
    /// Keeps such texts, and those in a list.
    pub fn keep_texts(&mut self, texts: &KeptTexts) {
        self.text = texts.clone();
        if let Some(items) = &mut self.items {
            Arc::make_mut(items).keep_texts(texts);
        }
    }

    /// Adds the members of an alternative.
    pub fn merge(&mut self, other: &Self) {
        for (name, members) in &other.members {
            // Schemas share parts behind `Arc`. Only a part that this alternative changes is copied.
            let own = self.members.entry(name.clone()).or_default();
            Arc::make_mut(own).merge(members);
        }

        if let Some(items) = &other.items {
            Arc::make_mut(self.items.get_or_insert_default()).merge(items);
        }

        if self.text == KeptTexts::None {
            self.text = other.text.clone();
        }

        self.number |= other.number;
    }

    /// Returns the kept parts of a JSON body. None if it is no JSON.
    pub fn redacted(&self, body: &[u8]) -> Option<String> {
        // Written while it is read: a tree of values would cost more than most requests.
        let mut out = Vec::with_capacity(body.len());
        let mut reader = serde_json::Deserializer::from_slice(body);
        let shown = Shown {
            kept: Some(self),
            out: &mut out,
        };
        shown.deserialize(&mut reader).ok()?;

        reader.end().ok()?;
        String::from_utf8(out).ok()
    }
}

/// Stands for a value that is not kept.
const NOT_KEPT: &str = "[not kept]";
/// Stands for the name of a member that the schema lacks.
const UNKNOWN: &str = "[unknown]";

/// Value that is written to `out` as the log keeps it.
struct Shown<'a> {
    /// None for what the schema does not describe.
    kept: Option<&'a LoggedMembers>,
    out: &'a mut Vec<u8>,
}

/// Name of a member.
#[derive(Deserialize)]
struct MemberName<'a>(#[serde(borrow)] Cow<'a, str>);

impl Shown<'_> {
    /// Writes a number where the schema has one: a text member can be sent a number, too.
    fn write_number<E: de::Error>(self, value: impl Serialize) -> Result<(), E> {
        if self.kept.is_some_and(|members| members.number) {
            self.write(value)
        } else {
            self.write(NOT_KEPT)
        }
    }

    fn write<E: de::Error>(self, value: impl Serialize) -> Result<(), E> {
        serde_json::to_writer(self.out, &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Shown<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.kept.is_none() {
            let value = Option::<IgnoredAny>::deserialize(reader)?;
            return self.write(value.map(|_| NOT_KEPT));
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
        self.write_number(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.write_number(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.write_number(value)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        if self.kept.is_some_and(|members| members.text.keeps(text)) {
            return self.write(kept(text));
        }
        // Not even its length: passcodes and numbers of people have a known one. That it is empty can be a mistake.
        self.write(if text.is_empty() { "" } else { NOT_KEPT })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let start = self.out.len();
        loop {
            // The visitor learns of the end only by asking for one more item, so the
            // comma is written first and taken back.
            let end = self.out.len();
            if end > start {
                self.out.push(b',');
            }

            let item = Shown {
                kept: self.kept.and_then(|members| members.items.as_deref()),
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
        let described = self.kept.map(|members| &members.members);
        let described = described.filter(|members| !members.is_empty());

        // Names of an object without described members, such as `metadata`, are free texts too.
        let Some(described) = described else {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return self.write(NOT_KEPT);
        };

        self.out.push(b'{');
        let start = self.out.len();
        while let Some(MemberName(name)) = members.next_key()? {
            if self.out.len() > start {
                self.out.push(b',');
            }

            let kept = described.get(&*name).map(Arc::as_ref);

            // The name of a member that the schema lacks can be anything.
            let shown = if kept.is_some() { &*name } else { UNKNOWN };
            serde_json::to_writer(&mut *self.out, shown).map_err(de::Error::custom)?;
            self.out.push(b':');

            members.next_value_seed(Shown {
                kept,
                out: self.out,
            })?;
        }

        self.out.push(b'}');
        Ok(())
    }
}

/// Returns the begin of a text without e-mail addresses, which messages can name.
fn kept(text: &str) -> Cow<'_, str> {
    // Counting characters and not bytes keeps the cut off the middle of a character.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Schema with members `texts`, which are kept, `others`, which are not, and a number `count`.
    fn members(texts: &[&str], others: &[&str]) -> LoggedMembers {
        let mut members = LoggedMembers::default();
        let kept = texts.iter().map(|name| (name, KeptTexts::All));
        let all = kept.chain(others.iter().map(|name| (name, KeptTexts::None)));
        for (name, text) in all {
            let one = LoggedMembers {
                text,
                ..LoggedMembers::default()
            };
            members.members.insert((*name).to_owned(), Arc::new(one));
        }

        let count = LoggedMembers {
            number: true,
            ..LoggedMembers::default()
        };
        members.members.insert("count".into(), Arc::new(count));

        members
    }

    #[test]
    fn only_described_members_are_kept() {
        let mut body = members(&["status"], &["message"]);
        body.members.insert("metadata".into(), Arc::default());
        for (text, kept) in [
            (r#"{"status":"sent"}"#, r#"{"status":"sent"}"#),
            (
                r#"{"message":"078-05-1120"}"#,
                r#"{"message":"[not kept]"}"#,
            ),
            (r#"{"message":78051120}"#, r#"{"message":"[not kept]"}"#),
            (
                r#"{"message":"","count":2.5}"#,
                r#"{"message":"","count":2.5}"#,
            ),
            (
                r#"{"message":null,"count":-1}"#,
                r#"{"message":null,"count":-1}"#,
            ),
            (
                r#"{"metadata":{"078-05-1120":7}}"#,
                r#"{"metadata":"[not kept]"}"#,
            ),
            (r#"{"078-05-1120":"x"}"#, r#"{"[unknown]":"[not kept]"}"#),
            (r#"{"status":[1]}"#, r#"{"status":["[not kept]"]}"#),
            ("[]", "[]"),
        ] {
            assert_eq!(
                body.redacted(text.as_bytes()).as_deref(),
                Some(kept),
                "{text}"
            );
        }
    }

    #[test]
    fn a_closed_member_keeps_its_values_ids_and_times_only() {
        let closed = KeptTexts::Closed(vec!["sent".into()]);
        for kept in [
            "sent",
            "env_01jdk7m3e8f4x9s2w5v6b0c1da",
            "2026-11-21T09:30:00.000Z",
            "2026-11-21",
        ] {
            assert!(closed.keeps(kept), "{kept}");
        }

        for other in [
            "SSN 078-05-1120",
            "078-05-1120",
            "0780511200",
            "send",
            "env_1",
            "Jordan Lee",
        ] {
            assert!(!closed.keeps(other), "{other}");
        }
    }

    #[test]
    fn alternatives_and_lists_keep_what_each_describes() {
        let list = |items: LoggedMembers| LoggedMembers {
            items: Some(Arc::new(items)),
            ..LoggedMembers::default()
        };
        let mut one = list(members(&[], &["name"]));
        one.merge(&list(members(&["name", "role"], &[])));
        let text = r#"[{"name":"Ada","role":"Buyer"}]"#;
        assert_eq!(one.redacted(text.as_bytes()).as_deref(), Some(text));

        let mut names = list(LoggedMembers::default());
        names.keep_texts(&KeptTexts::All);
        assert_eq!(names.redacted(br#"["a"]"#).as_deref(), Some(r#"["a"]"#));
    }

    #[test]
    fn long_texts_addresses_and_broken_bodies_are_not_kept() {
        let body = members(&["code"], &[]);
        let text = format!(r#"{{"code":"{}"}}"#, "ä".repeat(600));
        assert_eq!(
            body.redacted(text.as_bytes()).unwrap(),
            format!(r#"{{"code":"{}"}}"#, "ä".repeat(500))
        );

        let text = br#"{"code":"No customer had jordan@example.com before"}"#;
        assert_eq!(
            body.redacted(text).unwrap(),
            r#"{"code":"No customer had [address] before"}"#
        );

        for broken in ["", "{", "{} {}", "\u{fffd}"] {
            assert_eq!(body.redacted(broken.as_bytes()), None);
        }
        assert_eq!(body.redacted(b"{\"code\": \"\xff\"}"), None);
    }
}
