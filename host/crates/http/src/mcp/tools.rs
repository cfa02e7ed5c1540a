//! Tools, made from the operations of the OpenAPI document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::middleware::caller::McpCaller;

/// Areas of operations that become tools.
const AREAS: &[&str] = &[
    "partner envelopes",
    "partner signers",
    "partner vault",
    "partner control",
    "partner tapes",
    "partner templates",
    "partner customers",
    "partner test",
    "partner events",
    "partner webhook",
    "web envelopes",
    "web signers",
    "web control",
    "web tapes",
    "web templates and packages",
    "web customers",
    "bulk send",
];

/// Acts that cannot be undone: method and path without `/partner`. They need a confirmation.
const FINAL: &[&str] = &[
    "post /envelopes/{id}/void",
    "post /envelopes/{id}/correct",
    "post /envelopes/{id}/vault-in-signed",
    "post /envelopes/{id}/vault-in-upload",
    "post /envelopes/{id}/vault-out",
    "post /envelopes/{id}/vault-consent",
    "post /control/records/{id}/designate",
    "post /control/records/{id}/accept",
    "post /control/records/{id}/decline",
    "post /control/records/{id}/release",
    "post /control/transfers",
    "post /control/transfers/{id}/accept",
    "post /control/transfers/{id}/confirm",
    "post /control/transfers/{id}/cancel",
    "post /control/releases/{id}/consent",
    "post /control/releases/{id}/refuse",
    "post /control/pledges",
    "post /control/pledges/{id}/release",
    "post /envelopes/{id}/control-statement",
    "post /control/keys",
    "post /control/keys/{id}/revoke",
    "post /control/views",
    "post /control/views/{id}/revoke",
    "delete /templates/{id}",
    "delete /fact-maps/{id}",
    "delete /control/tapes/{id}",
    "delete /bulk-send/{id}",
    "post /bulk-send/{id}/vault-consent",
    "post /bulk-send/{id}/submit",
    "post /bulk-send/{id}/cancel",
    "post /bulk-send/{id}/retry",
];

/// Changes without effect outside the organization, which can be corrected. They are made at once.
const DRAFTS: &[&str] = &[
    "post /envelopes/{id}/upload",
    "post /envelopes/{id}/copy",
    "post /templates",
    "patch /templates/{id}",
    "post /templates/{id}/restore",
    "post /templates/{id}/duplicate",
    "post /templates/{id}/versions",
    "post /templates/{id}/fields",
    "post /document-packages",
    "patch /document-packages/{id}",
    "post /fact-maps",
    "put /fact-maps/{id}",
    "post /fact-maps/{id}/try",
    "post /esign/builder-session",
    "post /customers",
    "patch /customers/{id}",
    "post /customers/{id}/documents",
    "post /envelopes/{id}/verify",
    "post /envelopes/{id}/replay",
    "post /control/copies/trace",
    "post /bulk-send",
    "patch /bulk-send/{id}",
    "post /bulk-send/{id}/items",
    "post /test/envelopes/{id}/sign",
    "post /test/envelopes/{id}/decline",
    "post /test/clock",
];

/// Reads that hand out credentials of signers or the authoritative copy, or emit events to other parties.
const ACTING_READS: &[&str] = &[
    "get /envelopes/{id}/vault/signed-url",
    "get /envelopes/{id}/signing-links",
    "get /control/records/{id}/inspection",
    "get /control/records/{id}/copy",
];

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    Read,
    /// A change that is made at once.
    Draft,
    /// Sends or releases: a dry run by default.
    Acts,
    /// As [`Effect::Acts`], and needs a confirmation.
    Final,
}

impl Effect {
    fn of(method: &str, path: &str) -> Self {
        let path = path.strip_prefix("/partner").unwrap_or(path);
        let act = format!("{method} {path}");
        let is_in = |list: &[&str]| list.contains(&act.as_str());
        // The strictest list first. An operation in no list acts, so a new one is never made without a dry
        // run.
        if is_in(FINAL) {
            Self::Final
        } else if is_in(ACTING_READS) {
            Self::Acts
        } else if method == "get" {
            Self::Read
        } else if is_in(DRAFTS) {
            Self::Draft
        } else {
            Self::Acts
        }
    }

    /// Returns whether a call is a dry run by default.
    pub fn is_rehearsed(self) -> bool {
        matches!(self, Self::Acts | Self::Final)
    }
}

/// Where an argument of a tool goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    Path,
    Query,
    IdempotencyKey,
    /// JSON body.
    Body,
    /// Text part of a form.
    Part,
    /// File part of a form.
    File,
    DryRun,
    Confirmation,
}

/// An operation of the API as a tool.
pub struct ToolDefinition {
    pub name: String,
    pub method: String,
    pub path: String,
    pub effect: Effect,
    pub arguments: BTreeMap<String, Place>,
    pub required: Vec<String>,
    title: String,
    description: String,
    schema: Arc<JsonObject>,
    /// Whether it takes an API key; otherwise a user's token.
    by_key: bool,
    /// Scopes or roles, of which one is enough.
    permitted: Vec<String>,
}

impl ToolDefinition {
    /// Returns whether the caller's credential fits.
    pub fn is_for(&self, caller: &McpCaller) -> bool {
        let is_permitted = |name: &str| self.permitted.iter().any(|one| one == name);
        match caller {
            McpCaller::Key { record, .. } => {
                let mut scopes = record.scopes.iter();
                self.by_key && scopes.any(|scope| is_permitted(scope.as_str()))
            }
            // The inner router refuses as well. This check only keeps the list honest.
            McpCaller::User { user, .. } => !self.by_key && is_permitted(user.role.as_str()),
        }
    }

    /// Returns the tool as clients see it.
    pub fn shown(&self) -> Tool {
        let annotations = ToolAnnotations::with_title(&self.title)
            .read_only(self.effect == Effect::Read)
            // The hint makes clients ask their person before the call.
            .destructive(self.effect == Effect::Final)
            .idempotent(self.effect == Effect::Read)
            .open_world(self.effect.is_rehearsed());
        let mut tool = Tool::new(
            self.name.clone(),
            Cow::Owned(self.description.clone()),
            self.schema.clone(),
        );
        tool.title = Some(self.title.clone());

        tool.annotations = Some(annotations);
        tool
    }
}

/// Returns the tools of a document.
pub fn of(document: &Value) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let area = operation["tags"][0].as_str().unwrap_or_default();
            // A call waits for its whole answer, and a stream has no end.
            if AREAS.contains(&area) && !streams(operation) {
                tools.push(tool(document, path, method, operation));
            }
        }
    }

    tools
}

/// Returns whether the answer does not end.
fn streams(operation: &Value) -> bool {
    let answers = operation["responses"]
        .as_object()
        .into_iter()
        .flat_map(Map::values);
    answers
        .filter_map(|answer| answer["content"].as_object())
        .any(|content| content.contains_key("text/event-stream"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tool(document: &Value, path: &str, method: &str, operation: &Value) -> ToolDefinition {
    let effect = Effect::of(method, path);
    let mut properties = Map::new();
    let mut arguments = BTreeMap::new();
    let mut required = Vec::new();
    let mut add = |name: &str, place: Place, schema: Value, is_required: bool| {
        properties.insert(name.into(), schema);
        arguments.insert(name.into(), place);
        if is_required {
            required.push(name.into());
        }
    };
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let (name, place) = match (parameter["in"].as_str(), name) {
            (Some("path"), name) => (name, Place::Path),
            (Some("query"), name) => (name, Place::Query),
            // A confirmed act is made once for each confirmation.
            (_, "Idempotency-Key") if effect != Effect::Final => {
                ("idempotency_key", Place::IdempotencyKey)
            }
            // Follows from the credential.
            _ => continue,
        };

        // Models read descriptions inside the schema only.
        let mut schema = parameter["schema"].clone();
        if let (Some(schema), Some(described)) =
            (schema.as_object_mut(), parameter.get("description"))
        {
            schema
                .entry("description")
                .or_insert_with(|| described.clone());
        }

        let is_required = parameter["required"].as_bool().unwrap_or_default();
        add(name, place, schema, is_required);
    }

    let body = &operation["requestBody"];
    let is_required = body["required"].as_bool().unwrap_or_default();
    // JSON Pointer writes the slash of a media type as `~1`.
    let json = body.pointer("/content/application~1json");
    let form = body.pointer("/content/multipart~1form-data/schema");

    // A call has one of the two; the API refuses a call with neither.
    let is_required = is_required && (json.is_none() || form.is_none());
    if let Some(json) = json {
        let mut schema = json["schema"].clone();
        if let (Some(schema), Some(example)) = (schema.as_object_mut(), json.get("example")) {
            schema.insert("examples".into(), json!([example]));
        }
        add("body", Place::Body, schema, is_required);
    }

    // Form parts become arguments of their own, because a file cannot be part of a JSON body.
    if let Some(form) = form {
        let form = resolved(document, form);
        let needed = form["required"].as_array().into_iter().flatten();
        let needed: Vec<&str> = needed.filter_map(Value::as_str).collect();
        for (name, schema) in form["properties"].as_object().into_iter().flatten() {
            let is_required = is_required && needed.contains(&name.as_str());
            if resolved(document, schema)["format"] == "binary" {
                add(name, Place::File, file(schema), is_required)
            } else {
                add(name, Place::Part, schema.clone(), is_required)
            }
        }
    }

    let mut description = text(&operation["description"]);
    if effect.is_rehearsed() {
        let schema = json!({
            "type": "boolean",
            "default": true,
            "description": "True (default): check the request, make no change. False: do it.",
        });
        add("dry_run", Place::DryRun, schema, false);
        description.push_str(" A dry run unless dry_run is false.");
    }

    if effect == Effect::Final {
        let schema = json!({
            "type": "string",
            "description": "From the dry run with the same arguments, at most ten minutes old.",
        });
        add("confirmation_token", Place::Confirmation, schema, false);
        description.push_str(
            " Cannot be undone: with dry_run false it needs the confirmation_token of its dry run.",
        );
    }

    // Closed, so a client can refuse a misspelt argument before the call.
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    // A tool's schema has to stand alone, so the referenced parts are copied into it.
    let definitions = definitions(document, &mut schema);
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }

    let by_key = operation["security"][0].get("apiKey").is_some();
    // The finished document has scopes and roles in these members (`openapi/finished.rs`).
    let permitted = &operation[if by_key { "x-scopes" } else { "x-roles" }];
    let permitted = permitted.as_array().into_iter().flatten().map(text);
    ToolDefinition {
        name: text(&operation["operationId"]),
        method: method.into(),
        path: path.into(),
        effect,
        arguments,
        required,
        title: text(&operation["summary"]),
        description,
        schema: Arc::new(match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }),
        by_key,
        permitted: permitted.collect(),
    }
}

/// A file: its name and its bytes in base64.
fn file(schema: &Value) -> Value {
    json!({
        "type": "object",
        "description": schema["description"],
        "properties": {
            "name": { "type": "string", "description": "File name, such as contract.pdf." },
            "content_base64": { "type": "string", "contentEncoding": "base64" },
        },
        "required": ["name", "content_base64"],
        "additionalProperties": false,
    })
}

const SCHEMAS: &str = "#/components/schemas/";

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"]
        .as_str()
        .and_then(|at| at.strip_prefix(SCHEMAS));
    match name {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

/// Points the references of a schema to definitions inside it, which it returns.
fn definitions(document: &Value, schema: &mut Value) -> Map<String, Value> {
    let mut found = Map::new();
    let mut open = Vec::new();
    point(schema, &mut open);

    while let Some(name) = open.pop() {
        // Schemas can refer to each other in a circle.
        if !found.contains_key(&name) {
            let mut schema = document["components"]["schemas"][&name].clone();
            point(&mut schema, &mut open);
            found.insert(name, schema);
        }
    }

    found
}

fn point(schema: &mut Value, named: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(at)) = members.get_mut("$ref")
                && let Some(name) = at.strip_prefix(SCHEMAS)
            {
                named.push(name.into());
                *at = format!("#/$defs/{name}");
            }

            members.values_mut().for_each(|member| point(member, named));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point(item, named)),
        _ => {}
    }
}
