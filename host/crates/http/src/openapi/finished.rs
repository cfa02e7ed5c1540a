//! The last steps of the document: what many operations have in common, so that generators and linters read it well.
//!
//! Error answers and headers stand once and are referred to. Operations name their callers, and link to
//! the operations that read a new object. Unused schemas are removed.

use std::collections::{BTreeMap, BTreeSet};

use aide::openapi::OpenApi;
use serde_json::{Map, Value, json};

use super::{examples, logged, meaning, members};

/// Areas in the order of the document, with their descriptions.
pub const TAGS: [(&str, &str); 31] = [
    (
        "partner envelopes",
        "Create, send and follow envelopes, with an API key.",
    ),
    (
        "partner signers",
        "Signers of an envelope: links, reminders, corrections, questions, and when it is sent.",
    ),
    (
        "partner vault",
        "The authoritative copy: vaulting, copies, certificates, evidence and release.",
    ),
    (
        "partner funding",
        "Funding of contracts: checks, stipulations and the package.",
    ),
    (
        "partner control",
        "Control of records between organizations: designation, transfer, pledge, release.",
    ),
    (
        "partner retention",
        "Legal holds, how long records are kept, and what is held about a person.",
    ),
    (
        "partner tapes",
        "Loan tapes, compared with the contracts of records.",
    ),
    (
        "partner imports",
        "Records of documents that were signed in other systems.",
    ),
    ("partner templates", "Templates from PDF files."),
    ("partner customers", "Customers and their documents."),
    (
        "partner test",
        "Test data: its inbox, simulated signers and its clock, with a test key.",
    ),
    (
        "partner events",
        "The feed of events, for what webhooks did not reach.",
    ),
    ("partner webhook", "The webhook of an API key."),
    ("embed widgets", "Widgets inside pages of a partner."),
    (
        "public ledger",
        "The log of all ledgers, which everyone can check.",
    ),
    (
        "web envelopes",
        "Envelopes and their vault, for users of an organization.",
    ),
    (
        "web signers",
        "Signers of an envelope, for users of an organization.",
    ),
    (
        "web control",
        "Control of records, for users of an organization.",
    ),
    (
        "web retention",
        "Legal holds, how long records are kept, and what is held about a person, for users of an organization.",
    ),
    ("web tapes", "Loan tapes, for users of an organization."),
    (
        "web imports",
        "Records of documents that were signed in other systems, for users of an organization.",
    ),
    (
        "web templates and packages",
        "Templates, packages and the field builder.",
    ),
    ("web customers", "Customers, for users of an organization."),
    (
        "web funding",
        "Funding of contracts, and the packs of lenders, for users of an organization.",
    ),
    ("bulk send", "One document for many clients."),
    (
        "component library",
        "Versioned rules and provider plugins: upload, comparison, changes, activation.",
    ),
    (
        "administration",
        "Users, keys, settings, usage, audit list, request log and installation.",
    ),
    (
        "webhook endpoints",
        "Receivers of webhooks and their deliveries.",
    ),
    (
        "provider callbacks",
        "Calls of the signing and payment providers.",
    ),
    ("download links", "Files behind a link with a token."),
    ("webhooks", "Events that this service sends."),
];

/// Headers of answers: name in the document, header, description, type.
const HEADERS: [(&str, &str, &str, &str); 6] = [
    (
        "RequestId",
        "X-Request-Id",
        "Id of the request, as in the request log.",
        "string",
    ),
    (
        "RateLimit",
        "X-RateLimit-Limit",
        "Requests a minute of the key.",
        "integer",
    ),
    (
        "RateRemaining",
        "X-RateLimit-Remaining",
        "Requests left in this minute.",
        "integer",
    ),
    (
        "RateReset",
        "X-RateLimit-Reset",
        "End of this minute, in seconds since 1970.",
        "integer",
    ),
    (
        "Replayed",
        "Idempotent-Replayed",
        "`true`: the first answer to this Idempotency-Key, again.",
        "string",
    ),
    (
        "RetryAfter",
        "Retry-After",
        "Waiting time in seconds.",
        "integer",
    ),
];

/// Returns the finished document.
pub fn finished(document: &OpenApi) -> Value {
    let mut document = json!(document);
    // First, because the later steps compare and describe schemas in their final form.
    typed(&mut document);
    document["tags"] = TAGS
        .iter()
        .map(|(name, description)| json!({ "name": name, "description": description }))
        .collect();
    let readers = readers(&document["paths"]);

    // A copy, because the operations are changed while their examples read the schemas.
    let schemas = document["components"]["schemas"].clone();
    let mut statuses = BTreeSet::new();
    for_each_operation(&mut document["paths"], |path, method, operation| {
        callers(operation);
        shared_errors(operation, &mut statuses);
        headers(operation);
        examples::add(operation, &schemas);

        if method == "post"
            && let Some(readers) = readers.get(path)
        {
            links(operation, readers);
        }
    });

    for_each_operation(&mut document["webhooks"], |_, _, operation| {
        examples::add(operation, &schemas);
        let summary = operation["summary"].clone();
        operation["description"] = summary;
        // Our calls to receivers carry a signature, and none of the credentials of the API.
        operation["security"] = json!([]);
    });

    let components = &mut document["components"];
    for (name, schema) in components["schemas"].as_object_mut().into_iter().flatten() {
        members::describe(name, schema);
        logged::mark(name, schema, &schemas);
    }

    for status in statuses {
        components["responses"][name_of(status)] = error_answer(status);
    }

    for (name, _, description, kind) in HEADERS {
        components["headers"][name] =
            json!({ "description": description, "schema": { "type": kind } });
    }

    // Last, because the steps before replace references.
    prune(&mut document);
    document
}

/// Calls a function with path, method and operation.
fn for_each_operation(paths: &mut Value, mut act: impl FnMut(&str, &str, &mut Value)) {
    for (path, item) in paths.as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            act(path, method, operation);
        }
    }
}

/// Writes schemas in the form that most generators read: those of any value as objects, and a reference with a
/// description as one schema.
fn typed(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for choice in ["allOf", "oneOf"] {
                let parts = members.get(choice).and_then(Value::as_array);
                // schemars wraps a reference that has a description of its own. Generators make a nameless
                // type of that.
                if let Some([only]) = parts.map(Vec::as_slice)
                    && let Some(only) = only.as_object().cloned()
                {
                    members.remove(choice);
                    for (name, member) in only {
                        members.entry(name).or_insert(member);
                    }
                }
            }

            for name in ["items", "additionalProperties"] {
                if members.get(name) == Some(&Value::Bool(true)) {
                    members.insert(name.to_owned(), json!({}));
                }
            }

            // Examples can have a member `properties`, too. Only schemas have a type beside it.
            let is_schema = members.contains_key("type");
            let properties = members.get_mut("properties").filter(|_| is_schema);
            for (_, schema) in properties
                .and_then(Value::as_object_mut)
                .into_iter()
                .flatten()
            {
                if *schema == true {
                    *schema = json!({ "description": "Any JSON value." });
                }
            }

            members.values_mut().for_each(typed);
        }
        Value::Array(items) => items.iter_mut().for_each(typed),
        _ => {}
    }
}

/// Moves scopes and roles out of the security requirement, as linters accept them there for OAuth only, into the
/// description.
fn callers(operation: &mut Value) {
    let requirement = operation["security"][0].as_object().cloned();
    let (text, named) = match requirement.unwrap_or_default().into_iter().next() {
        // An empty list states that there is no credential. A missing one would inherit a default.
        None => {
            operation["security"] = json!([]);
            ("No credential.".to_owned(), None)
        }
        Some((scheme, listed)) => {
            operation["security"] = json!([{ &scheme: [] }]);
            let names: Vec<String> = listed
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|name| format!("`{name}`"))
                .collect();
            match scheme.as_str() {
                "apiKey" => {
                    let text = format!("API key with the scope {}.", names.join(" or "));
                    (text, Some(("x-scopes", listed)))
                }
                "bearer" => {
                    let text = format!(
                        "Bearer token of a user with the role {}.",
                        names.join(" or ")
                    );
                    (text, Some(("x-roles", listed)))
                }
                _ => ("Embed token.".to_owned(), None),
            }
        }
    };

    let summary = operation["summary"].as_str().unwrap_or_default();
    operation["description"] = format!("{summary}. {text}").into();
    if let Some((name, listed)) = named {
        operation[name] = listed;
    }
}

/// Name of an error answer among the components.
fn name_of(status: u16) -> String {
    format!("Error{status}")
}

/// Refers to the error answers, which are the same for all operations.
fn shared_errors(operation: &mut Value, statuses: &mut BTreeSet<u16>) {
    let answers = operation["responses"].as_object_mut();
    for (status, answer) in answers.into_iter().flatten() {
        let Some(status) = status.parse().ok().filter(|status: &u16| *status >= 400) else {
            continue;
        };

        // An error with a schema of its own stays where it is.
        if answer["content"]["application/json"]["schema"]["$ref"] == "#/components/schemas/Error" {
            *answer = json!({ "$ref": format!("#/components/responses/{}", name_of(status)) });
            statuses.insert(status);
        }
    }
}

/// Returns an error answer with an example.
fn error_answer(status: u16) -> Value {
    let example = match status {
        400 => json!({ "error": "Invalid JSON: EOF while parsing a value at line 1 column 9" }),
        401 => json!({ "error": "Invalid API key" }),
        403 => json!({
            "error": "Missing required scope: vault:write",
            "details": {
                "scope": "vault:write", "allows": "vault a contract", "granted_by": ["owner", "admin"],
                "hint": "The role owner or admin can give the key this scope: PATCH /api-keys/{id}; the operator: \
                         holdfast key update",
            },
        }),
        404 => json!({ "error": "Envelope not found" }),
        409 => json!({ "error": "Cannot vault envelope with status: sent" }),
        422 => json!({
            "error": "Validation failed",
            "details": [{
                "code": "invalid_type", "expected": "a value", "received": "undefined",
                "path": ["signers", 0, "email"], "message": "Required",
            }],
        }),
        429 => json!({ "error": "Rate limit exceeded", "details": { "retry_after": 12 } }),
        500 => json!({ "error": "Internal server error" }),
        503 => json!({ "error": "The database cannot be reached" }),
        _ => json!({ "error": meaning(status) }),
    };

    let mut headers = json!({ "X-Request-Id": header("RequestId") });
    // The only statuses after which a repeat of the same request can succeed.
    if matches!(status, 409 | 429 | 503) {
        headers["Retry-After"] = header("RetryAfter");
    }

    json!({
        "description": meaning(status),
        "headers": headers,
        "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/Error" },
            "example": example,
        } },
    })
}

fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// Documents the headers of successful answers.
fn headers(operation: &mut Value) {
    let parameters = operation["parameters"].as_array();
    let mut repeats = parameters.into_iter().flatten();
    let repeats = repeats.any(|parameter| parameter["name"] == "Idempotency-Key");
    // Only API keys have an allowance that the answer reports.
    let has_key = operation["security"][0]["apiKey"].is_array();
    let shown = HEADERS.iter().filter(|(name, ..)| match *name {
        "RequestId" => true,
        "Replayed" => repeats,
        "RetryAfter" => false,
        _ => has_key,
    });
    let shown: Map<String, Value> = shown
        .map(|(name, sent, ..)| ((*sent).to_owned(), header(name)))
        .collect();

    let answers = operation["responses"].as_object_mut();
    for (status, answer) in answers.into_iter().flatten() {
        if status.starts_with('2') {
            answer["headers"] = shown.clone().into();
        }
    }
}

/// Returns the operations that read an object, by the path that makes one: those below `path/{id}`.
fn readers(paths: &Value) -> BTreeMap<String, Vec<String>> {
    let mut readers = BTreeMap::<String, Vec<String>>::new();
    for (path, item) in paths.as_object().into_iter().flatten() {
        let Some((of, rest)) = path.split_once("/{id}") else {
            continue;
        };

        if let Some(id) = item["get"]["operationId"]
            .as_str()
            // A link can fill in one id only, so operations with a second one are left out.
            .filter(|_| !rest.contains('{'))
        {
            readers
                .entry(of.to_owned())
                .or_default()
                .push(id.to_owned());
        }
    }

    readers
}

/// Adds links from a made object to the operations that read it.
fn links(operation: &mut Value, readers: &[String]) {
    let answers = operation["responses"].as_object_mut();
    let made = answers
        .into_iter()
        .flatten()
        // Other answers to a POST describe a changed object, to which the caller has the id already.
        .find(|(status, _)| *status == "201");
    let Some((_, answer)) = made else {
        return;
    };

    let example = answer["content"]["application/json"]["example"]["data"].as_object();
    let mut members = example.into_iter().flat_map(Map::keys);
    let Some(member) = members.find(|name| name.ends_with("_id")).cloned() else {
        return;
    };

    for reader in readers {
        let id = format!("$response.body#/data/{member}");
        answer["links"][reader] = json!({ "operationId": reader, "parameters": { "id": id } });
    }
}

/// Leaves out the schemas that nothing refers to.
fn prune(document: &mut Value) {
    let mut used = BTreeSet::new();
    let components = &document["components"];
    for part in [
        &document["paths"],
        &document["webhooks"],
        &components["responses"],
    ] {
        references(part, &components["schemas"], &mut used);
    }

    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.retain(|name, _| used.contains(name));
    }
}

/// Collects the schemas that a part of the document refers to, also by others.
fn references(part: &Value, schemas: &Value, used: &mut BTreeSet<String>) {
    match part {
        Value::Object(members) => {
            let named = members.get("$ref").and_then(Value::as_str);
            let named = named.and_then(|named| named.strip_prefix("#/components/schemas/"));
            // A schema that was seen is not followed again, because schemas can contain themselves.
            if let Some(name) = named
                && used.insert(name.to_owned())
            {
                references(&schemas[name], schemas, used);
            }

            members
                .values()
                .for_each(|member| references(member, schemas, used));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| references(item, schemas, used)),
        _ => {}
    }
}
