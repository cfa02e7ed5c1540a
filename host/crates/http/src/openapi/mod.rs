//! The OpenAPI document, generated from the types that serve the requests.
//!
//! Extractors document the credential, the body and their errors; replies document their status and
//! shape. A route adds its name, a summary and the errors of its service.

mod examples;
mod finished;
mod logged;
mod members;

use aide::OperationOutput;
use aide::openapi::{
    ApiKeyLocation, Contact, Info, License, MediaType, OpenApi, Operation, ReferenceOr, Response,
    SchemaObject, SecurityScheme, Server, StatusCode,
};
use aide::transform::TransformOperation;
use schemars::{Schema, json_schema};
use serde_json::Value;

use super::error::HttpError;
use super::event_schemas;
pub use examples::value_of as example_of;
pub use finished::{TAGS, finished};
use holdfast_base::config::RateLimitSettings;
use holdfast_domain::event::EventType;
use holdfast_platform::ValidationIssue;
pub use logged::LoggedOperations;

/// Returns the meaning of an error status, the same for every operation.
fn meaning(status: u16) -> &'static str {
    match status {
        400 => "Not well-formed: broken JSON, a missing part, an invalid parameter",
        401 => "The credential is missing or not valid",
        403 => "The credential does not allow this operation",
        404 => "Unknown id, or an id of another organization",
        409 => {
            "The state of the object does not allow this operation, or another request with it is running; with Retry-After, a repeat can succeed"
        }
        410 => "Used up, expired or erased",
        413 => "Larger than allowed",
        415 => "The file type is not accepted here",
        422 => "Well-formed, but not valid; details lists every issue",
        429 => "Too many requests; Retry-After is the waiting time in seconds",
        500 => "Internal error; X-Request-Id identifies it in the log",
        502 => "The provider refused or could not be reached",
        503 => {
            "Not configured, or temporarily unavailable: database, document store or a full queue. Retry-After is the waiting time in seconds"
        }
        _ => "Error",
    }
}

/// Returns a sample of an event's body.
pub fn sample_event(event: EventType) -> Value {
    examples::of(&event_schemas::body(event).to_value())
}

/// Returns the content of a body with one media type.
pub fn content<C: FromIterator<(String, MediaType)>>(
    media_type: &str,
    schema: Schema,
    example: Option<Value>,
) -> C {
    let media = MediaType {
        schema: Some(schema_object(schema)),
        example,
        ..MediaType::default()
    };
    C::from_iter([(media_type.to_owned(), media)])
}

pub fn schema_object(json_schema: Schema) -> SchemaObject {
    SchemaObject {
        json_schema,
        example: None,
        external_docs: None,
    }
}

/// Adds an error answer to an operation.
pub fn error(operation: &mut Operation, status: u16) {
    let schema = json_schema!({ "$ref": "#/components/schemas/Error" });
    let response = Response {
        description: meaning(status).into(),
        content: content("application/json", schema, None),
        ..Response::default()
    };

    operation
        .responses
        .get_or_insert_default()
        .responses
        // Extractors and routes both add statuses, and a repeat does no harm.
        .entry(StatusCode::Code(status))
        .or_insert(ReferenceOr::Item(response));
}

/// Documents the credential of an operation and, for an API key, its scopes.
pub fn security(operation: &mut Operation, scheme: &str, scopes: &[&str]) {
    let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    operation
        .security
        .push([(scheme.to_owned(), scopes)].into_iter().collect());
}

/// Names an operation, tags it with its area and lists the errors of its service.
pub fn describe(
    area: &'static str,
    id: &'static str,
    summary: &'static str,
    errors: &'static [u16],
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |mut operation| {
        let inner = operation.inner_mut();
        // Every operation can meet a defect, or a database that is restarting.
        for status in errors.iter().chain(&[500, 503]) {
            error(inner, *status);
        }
        let area = area.replace('_', " ");
        operation.id(id).summary(summary).tag(&area)
    }
}

/// Describes the API as a whole, with the rate limits of this installation.
fn description(limits: &RateLimitSettings) -> String {
    let limits = [
        ("a signing link (/sign/…)", limits.signing_link),
        ("the copy.pdf of a signing link", limits.copies),
        ("a web-app token", limits.web_token),
        (
            "a field builder session (/builder/…)",
            limits.builder_session,
        ),
        (
            "component uploads of an organization",
            limits.component_uploads,
        ),
        ("an address reading /ledger/…", limits.ledger),
        ("an address, over all of these", limits.address),
    ];

    let limits: Vec<String> = limits
        .into_iter()
        // 0 switches a limit off, and readers would take it for "none allowed".
        .filter(|(_, limit)| *limit > 0)
        .map(|(what, limit)| format!("{limit} for {what}"))
        .collect();
    // The limits are those of this installation, because clients plan their pace by them.
    let mut text = String::from(
        "Electronic signatures, tamper-evident authoritative copies, and their proof. \
         Every POST takes an Idempotency-Key: the same key and body within 24 hours \
         gives the first answer again. An API key has a limit of its own.",
    );
    if !limits.is_empty() {
        text += &format!(
            " Other requests a minute on one node: {}. More are answered with 429 and Retry-After.",
            limits.join(", ")
        );
    }

    text
}

/// Returns the document without its paths.
pub fn head(base_url: &str, limits: &RateLimitSettings) -> OpenApi {
    // Written by hand: errors are made by `HttpError::body` and have no type to derive it from.
    let error = json_schema!({
        "type": "object",
        "description": "Body of every error.",
        "required": ["error"],
        "properties": {
            "error": { "type": "string", "description": "What is wrong, for people." },
            "code": { "type": "string", "description": "What is wrong, for programs." },
            "details": { "anyOf": [
                { "type": "array", "items": { "$ref": "#/components/schemas/ValidationIssue" } },
                { "type": "object", "additionalProperties": true },
            ] },
        },
    });

    let mut api = OpenApi {
        info: Info {
            title: "holdfast".into(),
            version: "2".into(),
            description: Some(description(limits)),
            license: Some(License {
                name: "Apache License 2.0".into(),
                identifier: Some("Apache-2.0".into()),
                ..License::default()
            }),
            contact: Some(Contact {
                name: Some("The operator of this installation".into()),
                ..Contact::default()
            }),
            ..Info::default()
        },
        servers: vec![Server {
            url: base_url.into(),
            ..Server::default()
        }],
        ..OpenApi::default()
    };

    let components = api.components.get_or_insert_default();
    components
        .schemas
        .insert("Error".into(), schema_object(error));
    // The type is in no signature of a handler, so nothing else would add it.
    components.schemas.insert(
        "ValidationIssue".into(),
        schema_object(event_schemas::inlined::<ValidationIssue>()),
    );

    components.security_schemes.insert(
        "apiKey".into(),
        ReferenceOr::Item(SecurityScheme::ApiKey {
            location: ApiKeyLocation::Header,
            name: "X-API-Key".into(),
            description: Some("A partner's key, with scopes.".into()),
            extensions: Default::default(),
        }),
    );

    components.security_schemes.insert(
        "bearer".into(),
        ReferenceOr::Item(SecurityScheme::Http {
            scheme: "bearer".into(),
            bearer_format: Some("JWT".into()),
            description: Some("A web-app user's token, with a role.".into()),
            extensions: Default::default(),
        }),
    );

    components.security_schemes.insert(
        "embed".into(),
        ReferenceOr::Item(SecurityScheme::Http {
            scheme: "bearer".into(),
            bearer_format: Some("JWT".into()),
            description: Some("An embed token, as POST /embed/token issues it.".into()),
            extensions: Default::default(),
        }),
    );

    // Webhooks are no routes, so they are added here and not by a handler.
    event_schemas::add(&mut api);
    api
}

impl OperationOutput for HttpError {
    type Inner = Self;
}
