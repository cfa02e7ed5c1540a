//! Strict reading of JSON: what a reader would ignore is refused.
//!
//! A member that is there twice, or that no format knows, would make two readers see two files.

use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

/// Reads a JSON file of a known format: every member is there once, is one of the format, and is
/// written as this release writes it.
///
/// # Errors
/// The reason, for people, with the place in the file.
pub fn read<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Result<T, String> {
    let given = value(bytes)?;
    let read = T::deserialize(&given).map_err(|error| error.to_string())?;
    // Writing the value again shows each member that the format would drop without an error.
    let known = serde_json::to_value(&read).map_err(|error| error.to_string())?;
    match difference("", &given, &known) {
        Some(why) => Err(why),
        None => Ok(read),
    }
}

/// Reads JSON in which no member is there twice.
///
/// # Errors
/// The reason, for people.
pub fn value(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice::<SingleMembers>(bytes)
        .map(|SingleMembers(value)| value)
        .map_err(|error| error.to_string())
}

/// Returns the first place at which a file and its format differ.
fn difference(place: &str, given: &Value, known: &Value) -> Option<String> {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => members(place, given, known),
        (Value::Array(given), Value::Array(known)) if given.len() == known.len() => {
            let mut items = given.iter().zip(known).enumerate();
            items.find_map(|(index, (given, known))| {
                difference(&format!("{place}/{index}"), given, known)
            })
        }
        (given, known) if given == known => None,
        _ => Some(format!("{place} is not written in the way of its format")),
    }
}

fn members(place: &str, given: &Map<String, Value>, known: &Map<String, Value>) -> Option<String> {
    let unknown = given.keys().find(|name| !known.contains_key(*name));
    if let Some(name) = unknown {
        return Some(format!("{place}/{name} is a member that the format lacks"));
    }

    let missing = known.keys().find(|name| !given.contains_key(*name));
    if let Some(name) = missing {
        return Some(format!("{place}/{name} is missing"));
    }

    given
        .iter()
        .find_map(|(name, value)| difference(&format!("{place}/{name}"), value, &known[name]))
}

/// JSON value in which objects have each member once.
struct SingleMembers(Value);

impl<'de> Deserialize<'de> for SingleMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SingleMembersVisitor).map(Self)
    }
}

struct SingleMembersVisitor;

impl<'de> Visitor<'de> for SingleMembersVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(SingleMembers(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, SingleMembers(value))) = members.next_entry::<String, _>()? {
            // serde_json would keep the last of two members, while other readers keep the first.
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!(
                    "the member {name} is there twice"
                )));
            }
            object.insert(name, value);
        }

        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::LogInclusion;

    fn inclusion(text: &str) -> Result<LogInclusion, String> {
        read(text.as_bytes())
    }

    #[test]
    fn a_file_of_its_format_is_read() {
        let text = r#"{ "sequence": 1, "leaf_index": 2, "proof": ["ab"] }"#;
        let read = inclusion(text).unwrap();
        assert_eq!((read.sequence, read.leaf_index), (1, 2));
    }

    #[test]
    fn a_member_that_is_there_twice_is_refused() {
        let text = r#"{ "sequence": 1, "leaf_index": 2, "proof": [], "leaf_index": 2 }"#;
        let why = inclusion(text).unwrap_err();
        assert!(why.contains("leaf_index is there twice"), "{why}");
        let why = value(br#"[{ "a": { "b": 1, "b": 1 } }]"#).unwrap_err();
        assert!(why.contains("b is there twice"), "{why}");
        assert!(value(br#"[{ "b": 1 }, { "b": 1 }]"#).is_ok());
    }

    #[test]
    fn a_member_that_the_format_lacks_is_refused() {
        let text = r#"{ "sequence": 1, "leaf_index": 2, "proof": [], "note": null }"#;
        let why = inclusion(text).unwrap_err();
        assert_eq!(why, "/note is a member that the format lacks");
    }

    #[test]
    fn a_value_in_another_way_of_writing_is_refused() {
        let text = r#"{ "sequence": 1, "leaf_index": 2, "proof": ["ab"] }"#;
        let ledger: Value = value(text.as_bytes()).unwrap();
        let mut other = ledger.clone();
        other["proof"][0] = "AB".into();
        let why = difference("", &other, &ledger).unwrap();
        assert_eq!(why, "/proof/0 is not written in the way of its format");
        assert_eq!(difference("", &ledger, &ledger), None);
    }

    #[test]
    fn a_missing_member_is_refused() {
        let why = inclusion(r#"{ "sequence": 1, "leaf_index": 2 }"#).unwrap_err();
        assert!(why.contains("proof"), "{why}");
    }
}
