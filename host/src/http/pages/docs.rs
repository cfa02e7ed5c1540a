//! The reference for people: the OpenAPI document as one page.

use axum::http::header;
use axum::response::IntoResponse;
use maud::{DOCTYPE, Markup, html};
use serde_json::{Map, Value};

/// Methods in the order in which a path shows them.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The page of a document.
pub fn page(document: &Value) -> impl IntoResponse + Clone + use<> {
    let empty = Map::new();
    let paths = document["paths"].as_object().unwrap_or(&empty);
    let operations: Vec<(&str, &str, &Value)> = paths
        .iter()
        .flat_map(|(path, item)| {
            METHODS
                .iter()
                .filter_map(|method| Some((*method, path.as_str(), item.get(*method)?)))
        })
        .collect();
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "holdfast API" }
                link rel="stylesheet" href="/assets/docs.css";
            }
            body {
                nav aria-label="Operations" {
                    p.product { "holdfast API" }
                    ul {
                        @for (method, path, operation) in &operations {
                            li { a href={ "#" (text(operation, "operationId")) } {
                                span.method { (method.to_uppercase()) } " " (path)
                            } }
                        }
                    }
                }
                main {
                    h1 { "API reference" }
                    p { (text(&document["info"], "description")) }
                    p { "Paths are relative to " code { (text(&document["servers"][0], "url")) }
                        ". The same as a machine reads it: "
                        a href="/api/v2/openapi.json" { "openapi.json" } "." }
                    @for (method, path, operation) in &operations {
                        (section(document, method, path, operation))
                    }
                }
            }
        }
    };
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (headers, markup.into_string())
}

fn section(document: &Value, method: &str, path: &str, operation: &Value) -> Markup {
    let scopes: Vec<&str> = operation["x-scopes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let empty = Map::new();
    let mut answers: Vec<(&String, &Value)> = operation["responses"]
        .as_object()
        .unwrap_or(&empty)
        .iter()
        .collect();
    answers.sort_by_key(|(status, _)| *status);
    html! {
        section id=(text(operation, "operationId")) {
            h2 { (text(operation, "summary")) }
            p.route { span.method { (method.to_uppercase()) } " " code { (path) } }
            @if !scopes.is_empty() {
                p { "Needs " code { (scopes.join(", ")) } }
            }
            (parameters(&operation["parameters"]))
            @for (media_type, media) in operation["requestBody"]["content"].as_object().unwrap_or(&empty) {
                h3 { "Body " span.quiet { (media_type) } }
                (members(document, &media["schema"]))
                (example(&media["example"]))
            }
            h3 { "Answers" }
            dl {
                @for (status, response) in answers {
                    dt { (status) }
                    dd {
                        (text(response, "description"))
                        (example(&response["content"]["application/json"]["example"]))
                    }
                }
            }
        }
    }
}

fn parameters(parameters: &Value) -> Markup {
    let rows = parameters.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if !rows.is_empty() {
            h3 { "Parameters" }
            table {
                @for row in rows {
                    tr {
                        th scope="row" { code { (text(row, "name")) } }
                        td { (text(row, "in")) @if row["required"] == true { ", required" } }
                        td { (text(row, "description")) }
                    }
                }
            }
        }
    }
}

/// The members of an object schema, one row each.
fn members(document: &Value, schema: &Value) -> Markup {
    let schema = resolved(document, schema);
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|other| other == name))
    };
    html! {
        @if !properties.is_empty() {
            table {
                @for (name, property) in properties {
                    tr {
                        th scope="row" { code { (name) } }
                        td { (kind(document, property)) @if required(name) { ", required" } }
                        td { (text(resolved(document, property), "description")) }
                    }
                }
            }
        }
    }
}

fn kind(document: &Value, schema: &Value) -> String {
    let resolved = resolved(document, schema);
    match &resolved["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => match resolved["anyOf"].as_array() {
            Some(options) => options
                .iter()
                .map(|option| kind(document, option))
                .collect::<Vec<_>>()
                .join(" or "),
            None => "value".into(),
        },
    }
}

/// Follows one reference into `components`.
fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    schema["$ref"]
        .as_str()
        .and_then(|reference| document.pointer(reference.strip_prefix('#')?))
        .unwrap_or(schema)
}

fn example(example: &Value) -> Markup {
    html! {
        @if !example.is_null() {
            pre { code { (serde_json::to_string_pretty(example).unwrap_or_default()) } }
        }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
