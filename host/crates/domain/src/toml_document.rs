//! Documents in TOML that stand for JSON, with the lines of their members for errors.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads a document as JSON. Dates become texts.
///
/// # Errors
/// The line, and why it cannot be read.
pub fn json(text: &str) -> Result<Value, String> {
    let table: toml::Table = parsed(text)?;
    let mut path = Vec::new();
    members(table, &mut path).map_err(|why| at_line(lines(text)(&path).unwrap_or(1), why))
}

/// Reads a value.
///
/// # Errors
/// The line, and why it cannot be read.
pub fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        at_line(line(text, start), error.message())
    })
}

/// Writes JSON as a document. None for a value that TOML does not have, such as null.
pub fn written(value: &Value) -> Option<String> {
    toml::to_string(value).ok()
}

/// Returns a function that finds the line of the member that a path leads to, or of the closest one above it that the
/// document has. Steps are names, and numbers of items from 0. It finds nothing in a document that cannot be read.
pub fn lines(text: &str) -> impl Fn(&[String]) -> Option<usize> + '_ {
    let document = DeTable::parse(text).ok();
    move |path| {
        let document = document.as_ref()?;
        let mut found = None;
        let mut at = document.span().start;
        for (depth, step) in path.iter().enumerate() {
            let next = if depth == 0 {
                member(document.get_ref(), step)
            } else {
                found.and_then(|value| child(value, step))
            };
            let Some((start, value)) = next else {
                break;
            };
            (at, found) = (start, Some(value));
        }

        Some(line(text, at))
    }
}

/// Returns a member or an item, with the place where it begins.
fn child<'a, 'i>(value: &'a DeValue<'i>, step: &str) -> Option<(usize, &'a DeValue<'i>)> {
    match value {
        DeValue::Table(table) => member(table, step),
        DeValue::Array(items) => {
            let item: &Spanned<DeValue<'i>> = items.get(step.parse::<usize>().ok()?)?;
            Some((item.span().start, item.get_ref()))
        }
        _ => None,
    }
}

fn member<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<(usize, &'a DeValue<'i>)> {
    let mut members = table.iter();
    let (key, value) = members.find(|(key, _)| key.get_ref().as_ref() == name)?;
    Some((key.span().start, value.get_ref()))
}

/// Number of the line with a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    let before = text.bytes().take(at);
    1 + before.filter(|byte| *byte == b'\n').count()
}

fn at_line(line: usize, why: &str) -> String {
    format!("line {line}: {why}")
}

/// Converts a table. On an error, `path` leads to the member.
fn members(table: toml::Table, path: &mut Vec<String>) -> Result<Value, &'static str> {
    let mut members = Map::new();
    for (name, value) in table {
        path.push(name.clone());
        members.insert(name, converted(value, path)?);
        path.pop();
    }

    Ok(Value::Object(members))
}

fn converted(value: toml::Value, path: &mut Vec<String>) -> Result<Value, &'static str> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => {
            let number = Number::from_f64(number);
            Value::Number(number.ok_or("nan and inf are no numbers of JSON")?)
        }
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Datetime(moment) => Value::String(moment.to_string()),
        toml::Value::Array(items) => {
            let mut all = Vec::new();
            for (index, item) in items.into_iter().enumerate() {
                path.push(index.to_string());
                all.push(converted(item, path)?);
                path.pop();
            }
            Value::Array(all)
        }
        toml::Value::Table(table) => members(table, path)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAP: &str = r#"
name = "Retail"
applies_to = { all = true }

[[facts]]
name = "apr"
kind = "percentage"
printed = [
  { anchor = "APR", direction = "below" },
  { anchor = "Rate", direction = "right_of", page = 2 },
]

[[facts]]
name = "signed"
kind = "date"
since = 2026-06-03
"#;

    fn path(steps: &[&str]) -> Vec<String> {
        steps.iter().map(|step| (*step).to_owned()).collect()
    }

    #[test]
    fn a_document_is_read_as_json() {
        let read = json(MAP).unwrap();
        assert_eq!(
            read,
            json!({
                "name": "Retail", "applies_to": { "all": true },
                "facts": [
                    { "name": "apr", "kind": "percentage", "printed": [
                        { "anchor": "APR", "direction": "below" },
                        { "anchor": "Rate", "direction": "right_of", "page": 2 },
                    ] },
                    { "name": "signed", "kind": "date", "since": "2026-06-03" },
                ],
            })
        );
        assert_eq!(json(&written(&read).unwrap()), Ok(read));
        assert_eq!(written(&json!({ "none": null })), None);
        assert_eq!(json(""), Ok(json!({})));
    }

    #[test]
    fn a_member_is_found_by_its_line() {
        for (steps, line) in [
            (&["name"][..], 2),
            (&["applies_to", "all"], 3),
            (&["facts"], 5),
            (&["facts", "0", "kind"], 7),
            (&["facts", "0", "printed", "1", "page"], 10),
            (&["facts", "1", "since"], 16),
            // What is missing is missing in the member above it.
            (&["facts", "1", "printed", "0"], 13),
            (&["colour"], 1),
        ] {
            assert_eq!(lines(MAP)(&path(steps)), Some(line), "{steps:?}");
        }
        assert_eq!(lines("name = ")(&path(&["name"])), None);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        for (text, line) in [
            ("name = 'a'\nname = 'b'\n", 2),
            ("name = 'a'\n\nfacts = [\n  1,\n", 4),
            ("name = 'a'\nrate = nan\n", 2),
            ("a = 1\n[[facts]]\nname = 'b'\nrates = [1.5, inf]\n", 4),
            ("name", 1),
        ] {
            let why = json(text).unwrap_err();
            assert!(why.starts_with(&format!("line {line}: ")), "{text}: {why}");
        }

        let deep = format!("a = {}{}", "[".repeat(100), "]".repeat(100));
        assert!(json(&deep).unwrap_err().contains("recursion"), "{deep}");
    }
}
