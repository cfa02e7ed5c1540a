//! Documents in TOML that stand for JSON, with the lines of their members for errors.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Deepest nesting of a document. Its reader, and what reads the JSON, call themselves for each level, and dotted keys within
/// brackets make many levels of a short text.
const DEEPEST: usize = 64;

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
    if let Some(at) = too_deep(text) {
        let why = format!("it is nested more than {DEEPEST} levels deep");
        return Err(at_line(line(text, at), &why));
    }

    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        at_line(line(text, start), error.message())
    })
}

/// Writes a value as a document. None for one that TOML does not have, such as null.
pub fn written<T: Serialize>(value: &T) -> Option<String> {
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
    let (key, value) = members.find(|(key, _)| **key.get_ref() == *name)?;
    Some((key.span().start, value.get_ref()))
}

/// Returns the place at which a text is nested too deeply: levels are open brackets, and points outside of texts, which are
/// those of keys, and some of numbers.
fn too_deep(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    // Points of the present member, and of those around it.
    let (mut points, mut around) = (0, Vec::new());
    let (mut depth, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' => {
                at = end_of_text(bytes, at);
                continue;
            }
            b'#' => {
                at = end_of_line(bytes, at);
                continue;
            }
            b'.' => points += 1,
            b'[' | b'{' => {
                depth += points + 1;
                around.push((*byte, std::mem::take(&mut points)));
            }
            b']' | b'}' => {
                // One without its partner closes nothing.
                let partner = if *byte == b']' { b'[' } else { b'{' };
                if let Some((_, before)) = around.pop_if(|(open, _)| *open == partner) {
                    points = before;
                    depth -= points + 1;
                }
            }
            b',' | b'\n' => points = 0,
            _ => {}
        }
        if depth + points > DEEPEST {
            return Some(at);
        }
        at += 1;
    }

    None
}

/// Returns the place after a text that begins with a quotation mark; one that has no end goes to that of its line, or of the
/// document if it has several lines.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let quote = bytes.get(start).copied().unwrap_or_default();
    let is_at = |at: usize| bytes.get(at) == Some(&quote);
    let is_fence = |at: usize| (at..at + 3).all(is_at);
    let is_long = is_fence(start);
    let mut at = if is_long { start + 3 } else { start + 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' && matches!(bytes.get(at + 1), Some(b'\\' | b'"')) => at += 1,
            b'\n' if !is_long => return at,
            _ if is_long && is_fence(at) => {
                // Up to two marks before the end belong to the text.
                let further = (at + 3..at + 5).take_while(|at| is_at(*at)).count();
                return at + 3 + further;
            }
            _ if !is_long && *byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }

    at
}

/// Returns the place after a comment.
fn end_of_line(bytes: &[u8], from: usize) -> usize {
    let mut rest = bytes.iter().skip(from);
    let length = rest.position(|byte| matches!(byte, b'\r' | b'\n'));
    length.map_or(bytes.len(), |length| from + length)
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
            // A missing member has the line of the member above it.
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
    }

    #[test]
    fn a_document_is_not_nested_without_end() {
        let points = "a.".repeat(20);
        for deep in [
            format!("b = 1\na = {}{}", "[".repeat(100), "]".repeat(100)),
            format!("b = 1\n{}a = 1", "a.".repeat(100)),
            // Few brackets and points in each member, and many levels of all together.
            format!(
                "b = 1\na = {}1{}",
                format!("{{ {points}a = ").repeat(40),
                " }".repeat(40)
            ),
            format!(
                "b = 1\na = {}1",
                format!("{{ b = 'x', {points}a = ").repeat(40)
            ),
        ] {
            let why = json(&deep).unwrap_err();
            assert_eq!(
                why, "line 2: it is nested more than 64 levels deep",
                "{deep}"
            );
        }

        // Points in texts and comments are none of keys, and those of members do not add up.
        let dots = ".".repeat(100);
        let flat = format!(
            "# {dots}\na = \"{dots}\\\"{dots}\"\nb = '{dots}'\nc = \"\"\"{dots}\"\n{dots}\"\"\"\nd = [{}1.5]\n",
            "1.5, ".repeat(100)
        );
        assert!(json(&flat).is_ok(), "{flat}");
        let many = "[[facts]]\na.b = 1.5\n".repeat(100);
        assert!(json(&many).is_ok());
    }
}
