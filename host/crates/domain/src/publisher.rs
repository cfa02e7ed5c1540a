//! Publishers: trusted signers of components and states.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::component::Slot;

/// Length of an Ed25519 public key, in bytes.
const KEY: usize = 32;
/// First line of a public key in PEM (RFC 7468, section 13).
const PEM: &str = "-----BEGIN PUBLIC KEY-----";
/// Longest member of a publisher, in characters.
const LONGEST: usize = 4096;

/// Trusted signer: the owner of a key, or an identity in certificates of Sigstore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publisher {
    /// Ed25519 in hex, for signatures of their own, or a key in PEM, for Sigstore bundles.
    pub key: Option<String>,
    pub identity: Option<String>,
    pub issuer: Option<String>,
    /// Slots of the components that count; all if there are none.
    pub slots: Vec<Slot>,
}

/// Members of a publisher that is not only an Ed25519 key.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublisherTable {
    /// Ed25519 public key in hex, or the public key of Sigstore bundles in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    key: Option<String>,
    /// Identity in certificates of Sigstore: an e-mail address, or the URI of a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    identity: Option<String>,
    /// OpenID Connect issuer of the identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    issuer: Option<String>,
    /// Slots of the components that may be signed; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slots: Vec<Slot>,
}

/// An Ed25519 public key in hex, or a table.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "documents the two forms")]
enum PublisherForm {
    /// Ed25519 public key, in hex.
    Key(String),
    Table(PublisherTable),
}

impl JsonSchema for Publisher {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Publisher".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        PublisherForm::json_schema(generator)
    }
}

impl From<PublisherTable> for Publisher {
    fn from(table: PublisherTable) -> Self {
        let PublisherTable {
            key,
            identity,
            issuer,
            slots,
        } = table;

        Self {
            key,
            identity,
            issuer,
            slots,
        }
    }
}

impl From<String> for Publisher {
    fn from(key: String) -> Self {
        Self {
            key: Some(key),
            ..Self::default()
        }
    }
}

impl Serialize for Publisher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            key,
            identity,
            issuer,
            slots,
        } = self.clone();

        // A bare Ed25519 key stays a text, so a setting keeps its form when it is read and written.
        match (
            &key,
            identity.is_none() && issuer.is_none() && slots.is_empty(),
        ) {
            (Some(key), true) if is_ed25519(key) => serializer.serialize_str(key),
            _ => PublisherTable {
                key,
                identity,
                issuer,
                slots,
            }
            .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Publisher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `untagged` would answer each mistake with "did not match any variant", which helps no operator.
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Publisher;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter
                    .write_str("an Ed25519 public key, or a table with key, or identity and issuer")
            }

            fn visit_str<E>(self, key: &str) -> Result<Publisher, E> {
                Ok(key.to_owned().into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Publisher, A::Error> {
                PublisherTable::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

fn is_ed25519(key: &str) -> bool {
    hex::decode(key).is_ok_and(|key| key.len() == KEY)
}

impl Publisher {
    /// Returns the Ed25519 public key, if that is what the publisher signs with.
    pub fn ed25519(&self) -> Option<Vec<u8>> {
        let key = hex::decode(self.key.as_ref()?).ok()?;
        (key.len() == KEY).then_some(key)
    }

    /// Returns the public key of Sigstore bundles.
    pub fn pem(&self) -> Option<&str> {
        let key = self.key.as_deref()?;
        key.trim_start().starts_with(PEM).then_some(key)
    }

    /// Whether the publisher may sign components of a slot.
    pub fn covers(&self, slot: Slot) -> bool {
        self.slots.is_empty() || self.slots.contains(&slot)
    }

    fn problem(&self) -> Option<String> {
        let members = [&self.key, &self.identity, &self.issuer];
        let longest = members.into_iter().flatten().map(String::len).max();
        if longest.unwrap_or_default() > LONGEST {
            return Some(format!("is longer than {LONGEST} characters"));
        }

        // A key and an identity together would leave open which of the two has to sign.
        match (&self.key, &self.identity, &self.issuer) {
            (Some(_), None, None) if self.ed25519().is_some() || self.pem().is_some() => None,
            (Some(_), None, None) => Some(format!(
                "must be an Ed25519 public key: {KEY} bytes, as {} hexadecimal digits; or a public key in PEM",
                2 * KEY
            )),
            (None, Some(identity), Some(issuer)) if !identity.is_empty() && !issuer.is_empty() => {
                None
            }
            _ => Some("needs a key, or an identity and its issuer".into()),
        }
    }

    /// Returns the members that distinguish publishers.
    fn subject(&self) -> (Option<String>, &Option<String>, &Option<String>) {
        // Line ends of a PEM and the case of hex digits make no other key.
        let key = self.key.as_ref();
        let key = key.map(|key| match self.pem() {
            Some(pem) => pem.split_whitespace().collect(),
            None => key.to_lowercase(),
        });
        (key, &self.identity, &self.issuer)
    }
}

/// Returns the first publisher that cannot be used, and why.
pub fn problem_of(publishers: &BTreeMap<String, Publisher>) -> Option<(&str, String)> {
    publishers
        .iter()
        .find_map(|(name, publisher)| Some((name.as_str(), publisher.problem()?)))
}

/// Returns the first publisher that is the same as another.
pub fn named_twice(publishers: &BTreeMap<String, Publisher>) -> Option<&str> {
    let mut seen = BTreeSet::new();
    let twice = publishers
        .iter()
        .find(|(_, publisher)| !seen.insert(publisher.subject()));
    twice.map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_publisher_is_a_key_or_a_table() {
        let key = hex::encode([7; KEY]);
        let identity = json!({
            "identity": "https://git.example/rules/release.yml", "issuer": "https://token.example",
            "slots": ["rules.compliance"],
        });
        for form in [json!(key), identity.clone(), json!({ "key": PEM })] {
            let publisher: Publisher = serde_json::from_value(form.clone()).unwrap();
            assert_eq!(publisher.problem(), None);
            assert_eq!(json!(publisher), form);
        }

        let short: Publisher = serde_json::from_value(json!({ "key": key })).unwrap();
        assert_eq!(json!(short), json!(key));

        let publisher: Publisher = serde_json::from_value(identity).unwrap();
        assert!(publisher.covers(Slot::Compliance) && !publisher.covers(Slot::Lifecycle));

        for (form, why) in [
            (json!("00"), "64 hexadecimal digits"),
            (
                json!({ "identity": "a@b.example" }),
                "an identity and its issuer",
            ),
            (
                json!({ "key": key, "identity": "a", "issuer": "b" }),
                "needs a key, or",
            ),
            (json!({ "key": "x".repeat(LONGEST + 1) }), "is longer than"),
        ] {
            let publisher: Publisher = serde_json::from_value(form).unwrap();
            let told = publisher.problem().unwrap();
            assert!(told.contains(why), "{told}");
        }

        let unknown = serde_json::from_value::<Publisher>(json!({ "keys": "" }));
        assert!(unknown.unwrap_err().to_string().contains("unknown field"));

        let number = serde_json::from_value::<Publisher>(json!(7));
        assert!(number.unwrap_err().to_string().contains("a table with key"));
    }

    #[test]
    fn publishers_are_distinct() {
        let named = |forms: &[&str]| {
            let named = forms.iter().enumerate();
            named
                .map(|(at, key)| (at.to_string(), Publisher::from((*key).to_owned())))
                .collect()
        };
        let [one, two] = [hex::encode([10; KEY]), hex::encode([11; KEY])];
        assert_eq!(named_twice(&named(&[&one, &two])), None);

        let twice = named(&[&one, &one.to_uppercase()]);
        assert_eq!(named_twice(&twice), Some("1"));
    }
}
