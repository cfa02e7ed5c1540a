//! Schemas of the API's document, as tables of members.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, PreEscaped, html};
use serde_json::{Map, Value};

/// Renders the schemas of one page. An object that the page needs more than once stands at its end, and its uses
/// link to it.
pub struct SchemaTables<'a> {
    schemas: &'a Value,
    shared: BTreeSet<&'a str>,
}

/// A member of an object, or a parameter of an operation.
pub struct MemberRow<'a> {
    pub name: &'a str,
    pub schema: &'a Value,
    pub is_required: bool,
    /// Where a parameter stands: path, query or header.
    pub place: Option<&'a str>,
    /// That of the schema, if there is none.
    pub description: Option<&'a str>,
}

/// An object inside a table, folded below it.
struct NestedObject<'a> {
    title: String,
    schema: &'a Value,
}

impl<'a> SchemaTables<'a> {
    /// Prepares a page with these operations.
    pub fn new(schemas: &'a Value, operations: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        let mut unread: Vec<&Value> = operations.into_iter().collect();
        while let Some(value) = unread.pop() {
            if let Some(name) = reference(value) {
                let count = uses.entry(name).or_default();
                *count += 1;
                if *count == 1 {
                    unread.push(&schemas[name]);
                }
            }

            match value {
                Value::Object(members) => unread.extend(members.values()),
                Value::Array(items) => unread.extend(items),
                _ => {}
            }
        }

        // A schema that contains itself is used at least twice, so links end the recursion of every table.
        let shared = uses
            .into_iter()
            .filter(|(name, count)| *count > 1 && !is_plain(&schemas[name]))
            .map(|(name, _)| name)
            .collect();

        Self { schemas, shared }
    }

    /// Renders the objects that several tables of the page link to.
    pub fn shared_objects(&self) -> Markup {
        html! {
            @for name in &self.shared {
                @let schema = &self.schemas[name];
                h3 id={ "object-" (name) } { (name) }
                @if let Some(about) = schema["description"].as_str() { p { (text(about)) } }
                (self.unfolded("", schema))
            }
        }
    }

    pub fn has_shared_objects(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Renders the members of a schema, or a link to them.
    pub fn members(&self, caption: &str, schema: &'a Value) -> Markup {
        match self.shared_name(schema) {
            Some(name) => html! { p { (caption) ": " a href={ "#object-" (name) } { (name) } } },
            None => self.unfolded(caption, schema),
        }
    }

    fn unfolded(&self, caption: &str, schema: &'a Value) -> Markup {
        let schema = self.resolved(schema);
        let required = schema["required"].as_array();
        let properties = schema["properties"].as_object();
        let members: Vec<MemberRow<'_>> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| MemberRow {
                name,
                schema,
                is_required: required.is_some_and(|names| names.iter().any(|one| one == name)),
                place: None,
                description: None,
            })
            .collect();

        let mut nested = Vec::new();
        if members.is_empty() {
            let kind = self.kind(schema, "", &mut nested);
            return html! {
                p { @if !caption.is_empty() { (caption) ": " } (kind) (listed(&self.limits(schema))) }
                (self.folded(nested))
            };
        }

        // A flattened enum has alternatives beside its members.
        for choice in choices(schema) {
            self.kind(choice, "", &mut nested);
        }

        html! { (self.table(caption, &members)) (self.folded(nested)) }
    }

    /// Renders members, and below them the objects inside.
    pub fn table(&self, caption: &str, members: &[MemberRow<'a>]) -> Markup {
        let mut nested = Vec::new();
        let table = html! {
            table.members {
                @if !caption.is_empty() { caption { (caption) } }
                thead { tr { th { "Name" } th { "Type" } th { "Description" } } }
                tbody {
                    @for member in members {
                        tr {
                            td {
                                code { (member.name) }
                                @if member.is_required { " " small { "required" } }
                            }
                            td {
                                (self.kind(member.schema, member.name, &mut nested))
                                (listed(&self.limits(member.schema)))
                            }
                            td {
                                @if let Some(place) = member.place { "In the " (place) ". " }
                                (text(self.description(member)))
                            }
                        }
                    }
                }
            }
        };

        html! { (table) (self.folded(nested)) }
    }

    fn folded(&self, nested: Vec<NestedObject<'a>>) -> Markup {
        html! {
            @for object in nested {
                details {
                    summary { code { (object.title) } }
                    (self.unfolded("", object.schema))
                }
            }
        }
    }

    fn description(&self, member: &MemberRow<'a>) -> &'a str {
        let own = member.description.or(member.schema["description"].as_str());
        own.or(self.resolved(member.schema)["description"].as_str())
            .unwrap_or_default()
    }

    /// Returns the type of a value. Objects in it are added to `nested`.
    fn kind(&self, schema: &'a Value, title: &str, nested: &mut Vec<NestedObject<'a>>) -> Markup {
        if let Some(name) = self.shared_name(schema) {
            return html! { a href={ "#object-" (name) } { (name) } };
        }

        let schema = self.resolved(schema);
        if schema["properties"].is_object() {
            let title = titled(title, schema);
            nested.push(NestedObject { title, schema });
            return html! { "object" };
        }

        let mut kinds = Vec::new();
        for choice in choices(schema) {
            kinds.push(self.kind(choice, title, nested).into_string());
        }
        if kinds.is_empty() {
            for name in types(schema) {
                kinds.push(self.typed(name, schema, title, nested).into_string());
            }
        }

        // Several alternatives can have one type.
        let mut distinct = BTreeSet::new();
        kinds.retain(|kind| distinct.insert(kind.clone()));
        PreEscaped(kinds.join(" or "))
    }

    fn typed(
        &self,
        name: &str,
        schema: &'a Value,
        title: &str,
        nested: &mut Vec<NestedObject<'a>>,
    ) -> Markup {
        let items = &schema["items"];
        let values = &schema["additionalProperties"];
        match name {
            "array" if !is_open(items) => {
                html! { "array of " (self.kind(items, &format!("{title}[]"), nested)) }
            }
            "object" if !is_open(values) => {
                html! { "map of " (self.kind(values, &format!("{title}.*"), nested)) }
            }
            other => html! { (other) },
        }
    }

    /// Returns the constants, bounds and format of a value.
    fn limits(&self, schema: &'a Value) -> Vec<Markup> {
        if self.shared_name(schema).is_some() {
            return Vec::new();
        }

        let schema = self.resolved(schema);
        let mut limits = Vec::new();
        let constants = constants(schema);
        if !constants.is_empty() {
            limits.push(html! {
                @for (at, constant) in constants.iter().enumerate() {
                    @if at > 0 { " " }
                    code { (plain(constant)) }
                }
            });
        }

        // Widths of integers are of the program, and not of JSON.
        let format = schema["format"].as_str().filter(|format| {
            !format.starts_with("int") && !format.starts_with("uint") && *format != "double"
        });
        limits.extend(format.map(|format| html! { (format) }));

        let ranges = [
            ("minimum", "maximum", ""),
            ("minLength", "maxLength", " characters"),
            ("minItems", "maxItems", " items"),
        ];
        for (from, to, unit) in ranges {
            let range = range(&schema[from], &schema[to], unit);
            limits.extend(range.map(|range| html! { (range) }));
        }

        if let Some(pattern) = schema["pattern"].as_str() {
            limits.push(html! { code { (pattern) } });
        }
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            limits.push(html! { "default " code { (plain(default)) } });
        }

        // Constants of alternatives are listed above.
        let others = choices(schema).filter(|choice| own_constants(choice).next().is_none());
        for inner in others.chain(schema.get("items")) {
            limits.extend(self.limits(inner));
        }

        limits
    }

    fn shared_name(&self, schema: &'a Value) -> Option<&'a str> {
        reference(schema).filter(|name| self.shared.contains(name))
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        match reference(schema) {
            Some(name) => self.resolved(&self.schemas[name]),
            None => schema,
        }
    }
}

/// Returns the name of the schema that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    let named = schema["$ref"].as_str()?;
    named.strip_prefix("#/components/schemas/")
}

/// Whether a schema has neither members nor references, so that one line describes it.
fn is_plain(schema: &Value) -> bool {
    let has_parts = ["$ref", "properties", "items"]
        .iter()
        .any(|part| schema.get(part).is_some());
    let is_map = !is_open(&schema["additionalProperties"]);

    !has_parts && !is_map && choices(schema).all(is_plain)
}

/// Whether a schema admits every value.
fn is_open(schema: &Value) -> bool {
    schema.as_object().is_none_or(Map::is_empty)
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    choices.into_iter().flatten()
}

fn own_constants(schema: &Value) -> impl Iterator<Item = &Value> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let constants = schema.get("const").into_iter().chain(listed);
    constants.filter(|constant| !constant.is_null())
}

/// Returns the values that a schema, or its alternatives, name one by one.
fn constants(schema: &Value) -> Vec<&Value> {
    let of_choices = choices(schema).flat_map(own_constants);
    own_constants(schema).chain(of_choices).collect()
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => match own_constants(schema).next() {
            Some(Value::String(_)) => vec!["string"],
            Some(Value::Bool(_)) => vec!["boolean"],
            Some(Value::Number(_)) => vec!["number"],
            _ => vec!["any value"],
        },
    }
}

/// Adds the constant to a title by which one of several alternatives is known.
fn titled(title: &str, schema: &Value) -> String {
    let members = schema["properties"].as_object();
    let constant = members
        .into_iter()
        .flatten()
        .find_map(|(name, member)| Some((name, member["const"].as_str()?)));
    match constant {
        Some((name, value)) if title.is_empty() => format!("{name}: {value}"),
        Some((name, value)) => format!("{title} ({name}: {value})"),
        None if title.is_empty() => "object".to_owned(),
        None => title.to_owned(),
    }
}

fn range(from: &Value, to: &Value, unit: &str) -> Option<String> {
    match (from.as_f64(), to.as_f64()) {
        (Some(_), Some(_)) => Some(format!("{from} to {to}{unit}")),
        (None, Some(_)) => Some(format!("up to {to}{unit}")),
        // Numbers that count something are never negative.
        (Some(0.0), None) | (None, None) => None,
        (Some(1.0), None) if !unit.is_empty() => Some("not empty".to_owned()),
        (Some(_), None) => Some(format!("{from}{unit} or more")),
    }
}

fn plain(constant: &Value) -> String {
    match constant {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn listed(limits: &[Markup]) -> Markup {
    html! { @for limit in limits { ", " (limit) } }
}

/// Renders a description; code is between backticks.
pub fn text(description: &str) -> Markup {
    let parts = description.split('`').enumerate();
    html! {
        @for (at, part) in parts {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_contains_itself_is_linked_and_not_repeated() {
        let schemas = json!({
            "Rule": { "type": "object", "properties": {
                "all": { "type": "array", "items": { "$ref": "#/components/schemas/Rule" } },
                "kind": { "type": "string", "enum": ["all", "one"] },
            }, "required": ["kind"] },
        });
        let body = json!({ "$ref": "#/components/schemas/Rule" });
        let tables = SchemaTables::new(&schemas, [&body]);

        let link = tables.members("Body", &body).into_string();
        assert_eq!(link, "<p>Body: <a href=\"#object-Rule\">Rule</a></p>");

        let object = tables.shared_objects().into_string();
        assert!(object.contains("id=\"object-Rule\""), "{object}");
        assert!(
            object.contains("array of <a href=\"#object-Rule\">Rule</a>"),
            "{object}"
        );
        assert!(
            object.contains("<code>kind</code> <small>required</small>"),
            "{object}"
        );
        assert!(
            object.contains("string, <code>all</code> <code>one</code>"),
            "{object}"
        );
    }

    #[test]
    fn types_and_limits_are_shown() {
        let schemas = json!({});
        let tables = SchemaTables::new(&schemas, []);
        for (schema, shown) in [
            (
                json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": 100 }),
                "integer, 1 to 100",
            ),
            (json!({ "type": "integer", "minimum": 0 }), "integer"),
            (
                json!({ "type": ["string", "null"], "maxLength": 9 }),
                "string or null, up to 9 characters",
            ),
            (
                json!({ "anyOf": [{ "type": "string", "format": "date-time" }, { "type": "null" }] }),
                "string or null, date-time",
            ),
            (
                json!({ "oneOf": [{ "type": "string", "const": "a" }, { "type": "string", "const": "b" }] }),
                "string, <code>a</code> <code>b</code>",
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "integer" }, "default": {} }),
                "map of integer, default <code>{}</code>",
            ),
        ] {
            let text = tables.members("", &schema).into_string();
            assert_eq!(text, format!("<p>{shown}</p>"), "{schema}");
        }
    }
}
