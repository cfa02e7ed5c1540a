//! Members of bodies that the request log keeps: those with `x-logged` in the document.
//!
//! Texts that people write are never kept: a message to a signer can hold anything.

use std::collections::HashMap;
use std::sync::Arc;

use aide::openapi::{OpenApi, ReferenceOr, StatusCode};
use serde_json::{Value, json};

use holdfast_domain::request_log::{KeptTexts, LoggedMembers};

/// Name in the document.
const MARK: &str = "x-logged";
const SCHEMAS: &str = "#/components/schemas/";
/// Schema of the answers to refused requests.
const ERROR: &str = "Error";
/// Members with words of the API, or references that partners choose to find their objects by. Those with
/// a closed list of values, ids and times are marked as well.
const LOGGED: [&str; 12] = [
    "Error.code",
    "Error.error",
    "ValidationIssue.code",
    "ValidationIssue.expected",
    "ValidationIssue.path",
    "currency",
    "event_type",
    "events",
    "external_id",
    "jurisdiction",
    "language",
    "role",
];
/// Ends of the names of ids and times.
const ENDS: [&str; 3] = ["_id", "_ids", "_at"];

/// Marks the members of a schema of the document.
pub fn mark(name: &str, schema: &mut Value, schemas: &Value) {
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (member, value) in members.into_iter().flatten() {
        if value.is_object() && is_logged(name, member, value, schemas) {
            value[MARK] = json!(true);
        }
        mark(name, value, schemas);
    }

    // Parts without a name of their own belong to the schema around them.
    for part in ["items", "anyOf", "oneOf", "allOf"] {
        match schema.get_mut(part) {
            Some(Value::Array(parts)) => parts.iter_mut().for_each(|one| mark(name, one, schemas)),
            Some(part) => mark(name, part, schemas),
            None => {}
        }
    }
}

/// Whether texts of a member are kept.
fn is_logged(schema: &str, member: &str, value: &Value, schemas: &Value) -> bool {
    ENDS.iter().any(|end| member.ends_with(end))
        || is_named(schema, member)
        || is_closed(value, schemas)
}

/// Whether all texts of a member are kept.
fn is_named(schema: &str, member: &str) -> bool {
    LOGGED.contains(&member) || LOGGED.contains(&format!("{schema}.{member}").as_str())
}

fn is_among(types: &Value, kind: &str) -> bool {
    let types = types.as_array();
    types.is_some_and(|types| types.iter().any(|one| one == kind))
}

/// Collects the values of a closed member.
fn listed(value: &Value, schemas: &Value, values: &mut Vec<String>) {
    if let Some(name) = reference(value) {
        return listed(&schemas[name], schemas, values);
    }

    let listed_here = value["enum"].as_array().into_iter().flatten();
    values.extend(
        listed_here
            .chain(value.get("const"))
            .filter_map(|one| one.as_str().map(str::to_owned)),
    );

    for part in alternatives(value)
        .into_iter()
        .flatten()
        .chain(value.get("items"))
    {
        listed(part, schemas, values);
    }
}

/// Whether a text is one of a few, an id or a time.
fn is_closed(value: &Value, schemas: &Value) -> bool {
    if let Some(name) = reference(value) {
        return is_closed(&schemas[name], schemas);
    }
    if let Some(parts) = alternatives(value) {
        let mut texts = parts
            .iter()
            .filter(|part| part["type"] != "null")
            .peekable();
        // One open alternative is enough to let any text in, so all of them have to be closed.
        return texts.peek().is_some() && texts.all(|part| is_closed(part, schemas));
    }

    if value.get("items").is_some() {
        return is_closed(&value["items"], schemas);
    }

    let is_id = value["pattern"]
        .as_str()
        // The pattern of TypeIDs. A person's text does not fit it.
        .is_some_and(|pattern| pattern.ends_with("{25}$"));
    value.get("enum").is_some()
        || value.get("const").is_some()
        || is_id
        || value["format"] == "date-time"
}

fn reference(value: &Value) -> Option<&str> {
    value["$ref"].as_str()?.strip_prefix(SCHEMAS)
}

fn alternatives(value: &Value) -> Option<&Vec<Value>> {
    let parts = value.get("anyOf").or(value.get("oneOf"));
    parts.or(value.get("allOf"))?.as_array()
}

/// Members that are kept of each operation's bodies.
#[derive(Default)]
pub struct LoggedOperations {
    /// By method in capitals and route.
    of: HashMap<(String, String), LoggedBodies>,
    error: Arc<LoggedMembers>,
}

#[derive(Clone, Default)]
struct LoggedBodies {
    request: Option<Arc<LoggedMembers>>,
    answer: Option<Arc<LoggedMembers>>,
}

impl LoggedOperations {
    /// Reads the bodies of all operations.
    pub fn of(document: &OpenApi, prefix: &str) -> Self {
        let components = document.components.as_ref();
        let schemas = components.map_or(Value::Null, |components| json!(components.schemas));
        let mut reader = SchemaReader {
            schemas: &schemas,
            known: HashMap::new(),
        };
        // All errors share one schema, so they are not read for each operation.
        let error = reader.named(ERROR);

        let mut of = HashMap::new();
        let paths = document.paths.iter().flat_map(|paths| paths.iter());
        for (path, item) in paths {
            let ReferenceOr::Item(item) = item else {
                continue;
            };

            for (method, operation) in item.iter() {
                let body = operation
                    .request_body
                    .as_ref()
                    .and_then(ReferenceOr::as_item);
                let request = body.and_then(|body| body.content.get("application/json"));
                let answers = operation.responses.iter().flat_map(|all| &all.responses);
                let answer = answers
                    // Errors have a schema of their own, see `bodies`.
                    .filter(|(status, _)| matches!(status, StatusCode::Code(200..=299)))
                    .filter_map(|(_, answer)| answer.as_item())
                    .find_map(|answer| answer.content.get("application/json"));

                let mut members = |media: Option<&aide::openapi::MediaType>| {
                    let schema = media?.schema.as_ref()?;
                    Some(Arc::new(reader.members("", schema.json_schema.as_value())))
                };
                let bodies = LoggedBodies {
                    request: members(request),
                    answer: members(answer),
                };

                of.insert((method.to_uppercase(), format!("{prefix}{path}")), bodies);
            }
        }

        Self { of, error }
    }

    /// Returns the kept members of an operation's request, and of its answer with this status.
    pub fn bodies(
        &self,
        method: &str,
        route: &str,
        status: u16,
    ) -> (Option<Arc<LoggedMembers>>, Option<Arc<LoggedMembers>>) {
        let bodies = self.of.get(&(method.to_owned(), route.to_owned()));
        // An operation that is not in the document keeps nothing of its bodies.
        let bodies = bodies.cloned().unwrap_or_default();
        let answer = if status >= 400 {
            Some(self.error.clone())
        } else {
            bodies.answer
        };
        (bodies.request, answer)
    }
}

/// Reads schemas, each named one once.
struct SchemaReader<'a> {
    schemas: &'a Value,
    known: HashMap<String, Arc<LoggedMembers>>,
}

impl SchemaReader<'_> {
    fn named(&mut self, name: &str) -> Arc<LoggedMembers> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }

        // A schema that contains itself keeps nothing of the inner one.
        self.known.insert(name.to_owned(), Arc::default());
        let schemas = self.schemas;
        let read = Arc::new(self.members(name, &schemas[name]));
        self.known.insert(name.to_owned(), read.clone());

        read
    }

    /// Reads a schema; `name` is that of the named schema that it is part of.
    fn members(&mut self, name: &str, schema: &Value) -> LoggedMembers {
        if let Some(name) = reference(schema) {
            return LoggedMembers::clone(&self.named(name));
        }

        let types = &schema["type"];
        let mut read = LoggedMembers {
            number: ["integer", "number"]
                .iter()
                .any(|kind| types == kind || is_among(types, kind)),
            ..LoggedMembers::default()
        };
        for (member, value) in schema["properties"].as_object().into_iter().flatten() {
            let mut inner = self.members(name, value);
            // Numbers and booleans are kept by their type. Texts need one of these two reasons.
            if is_named(name, member) {
                inner.keep_texts(&KeptTexts::All);
            } else if is_logged(name, member, value, self.schemas) {
                let mut values = Vec::new();
                listed(value, self.schemas, &mut values);
                inner.keep_texts(&KeptTexts::Closed(values));
            }

            read.members.insert(member.clone(), Arc::new(inner));
        }

        if let Some(items) = schema.get("items") {
            read.items = Some(Arc::new(self.members(name, items)));
        }

        for part in alternatives(schema).into_iter().flatten() {
            // The log does not know which alternative a body is, so it keeps what any of them allows.
            read.merge(&self.members(name, part));
        }

        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> Value {
        json!({
            "Colour": { "type": "string", "enum": ["red", "blue"] },
            "Letter": { "type": "object", "properties": {
                "message": { "type": "string" },
                "colour": { "$ref": "#/components/schemas/Colour" },
                "other": { "anyOf": [{ "$ref": "#/components/schemas/Colour" }, { "type": "null" }] },
                "free": { "anyOf": [{ "$ref": "#/components/schemas/Colour" }, { "type": "string" }] },
                "sent_at": { "type": "string", "format": "date-time" },
                "copies": { "type": "array", "items": { "type": "object", "properties": {
                    "role": { "type": "string" }, "note": { "type": "string" },
                } } },
            } },
        })
    }

    #[test]
    fn texts_of_people_are_not_marked() {
        let schemas = schemas();
        let mut letter = schemas["Letter"].clone();
        mark("Letter", &mut letter, &schemas);
        let members = &letter["properties"];
        for name in ["colour", "other", "sent_at"] {
            assert_eq!(members[name][MARK], true, "{name}");
        }

        for name in ["message", "free", "copies"] {
            assert_eq!(members[name].get(MARK), None, "{name}");
        }

        let copies = &members["copies"]["items"]["properties"];
        assert_eq!(
            (&copies["role"][MARK], copies["note"].get(MARK)),
            (&json!(true), None)
        );
    }

    #[test]
    fn the_log_keeps_what_is_marked() {
        let schemas = schemas();
        let mut reader = SchemaReader {
            schemas: &schemas,
            known: HashMap::new(),
        };
        let letter = reader.named("Letter");
        let body = json!({
            "message": "My number is 078-05-1120", "colour": "red", "other": null, "free": "green",
            "sent_at": "2026-11-21T09:30:00.000Z",
            "copies": [{ "role": "Buyer", "note": "secret" }], "my number": { "a": 1 },
        });
        let kept = letter.redacted(body.to_string().as_bytes()).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&kept).unwrap(),
            json!({
                "message": "[not kept]", "colour": "red", "other": null, "free": "[not kept]",
                "sent_at": "2026-11-21T09:30:00.000Z",
                "copies": [{ "role": "Buyer", "note": "[not kept]" }], "[unknown]": "[not kept]",
            })
        );
    }
}
