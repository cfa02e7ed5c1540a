//! Calls of tools: the request that a call becomes, its confirmation, and its answer as a result.

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderName, Request, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::multipart::{Form, Part};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tower::ServiceExt as _;

use super::tools::{Effect, Place, ToolDefinition};
use super::{FILE_BYTES, McpServer};
use crate::error::{DRY_RUN, ErrorCode};
use crate::middleware::caller::McpCaller;
use holdfast_domain::hash::{canonical_sha256, sha256};
use holdfast_domain::id::RequestId;

/// Time for which a confirmation is valid.
const CONFIRMED_FOR: Duration = Duration::from_secs(600);
/// What stays as it is in a path segment or a query (RFC 3986, section 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
/// Headers that say where a request comes from.
const PASSED_ON: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-for"),
    header::FORWARDED,
    HeaderName::from_static("traceparent"),
    header::USER_AGENT,
];

/// Makes the call of a tool.
pub async fn call(
    server: &McpServer,
    tool: &ToolDefinition,
    caller: &McpCaller,
    parts: &Parts,
    arguments: JsonObject,
) -> CallToolResult {
    match made(server, tool, caller, parts, &arguments).await {
        Ok(result) => result,
        // Requests are counted by the API; a call that becomes none is counted here.
        // Otherwise an assistant could probe arguments without a limit.
        Err(refused) => match caller.count(&server.app, parts).await {
            Ok(()) => *refused.0,
            Err(error) => shown(error.body(), true),
        },
    }
}

/// A call that ends before its request.
struct RefusedCall(Box<CallToolResult>);

fn refused(text: impl Into<String>, code: &str) -> RefusedCall {
    let text = text.into();
    let body = json!({ "error": text, "code": code });
    RefusedCall(Box::new(shown(body, true)))
}

fn shown(body: Value, is_error: bool) -> CallToolResult {
    let mut result = if is_error {
        CallToolResult::error(vec![ContentBlock::text(body.to_string())])
    } else {
        CallToolResult::success(vec![ContentBlock::text(body.to_string())])
    };
    result.structured_content = Some(body);
    result
}

async fn made(
    server: &McpServer,
    tool: &ToolDefinition,
    caller: &McpCaller,
    parts: &Parts,
    arguments: &JsonObject,
) -> Result<CallToolResult, RefusedCall> {
    // Unknown arguments are refused before anything else: a misspelt one would change the meaning of the act.
    check(tool, arguments)?;
    let confirmation =
        (tool.effect == Effect::Final).then(|| Confirmation::of(tool, caller, arguments));
    if tool.effect.is_rehearsed() && dry_run(arguments)? {
        // Without a key: claiming it would be the first change, and the act needs it afterwards.
        let request = request(tool, caller, parts, arguments, None)?;
        let answer = server.rehearsal.clone().oneshot(request).await;
        let answer = answer.unwrap_or_else(|never| match never {});
        let code = answer.extensions().get::<ErrorCode>();
        if code != Some(&ErrorCode(DRY_RUN)) {
            let result = result_of(tool, answer).await?;
            // A success without a change: there was nothing to do.
            return Ok(match &result.structured_content {
                Some(Value::Object(body)) if result.is_error == Some(false) => {
                    let mut body = body.clone();
                    body.insert("dry_run".into(), true.into());
                    shown(body.into(), false)
                }
                _ => result,
            });
        }

        let mut body = json!({
            "dry_run": true,
            "message": "Nothing was changed. The checks that come before the first change passed.",
            "request": format!("{} /api/v2{}", tool.method.to_uppercase(), tool.path),
        });
        if let Some(confirmation) = confirmation {
            body["confirmation_token"] = confirmation.token(server).into();
            body["next"] = "Show the person what will happen. If they agree, repeat the call with dry_run false and this \
                            confirmation_token."
                .into();
        } else {
            body["next"] = "Repeat the call with dry_run false to do it.".into();
        }

        return Ok(shown(body, false));
    }

    let mut key = match arguments.get("idempotency_key") {
        None | Some(Value::Null) => None,
        Some(key) => Some(plain("idempotency_key", key)?),
    };
    if let Some(confirmation) = confirmation {
        let token = arguments.get("confirmation_token").and_then(Value::as_str);
        let token = token.ok_or_else(|| {
            refused(
                "This cannot be undone. Make a dry run first and pass on its confirmation_token",
                "confirmation_required",
            )
        })?;
        // The assistant may have changed the arguments after the person agreed, and the token opens for equal
        // ones only.
        if !confirmation.is_in(server, token) {
            return Err(refused(
                "This confirmation_token is older than ten minutes, or of another call or credential",
                "confirmation_invalid",
            ));
        }

        // A confirmation is good for one act; its repeat gets the same answer.
        key = Some(sha256(token.as_bytes()));
    }

    let request = request(tool, caller, parts, arguments, key)?;
    let answer = server.api.clone().oneshot(request).await;
    result_of(tool, answer.unwrap_or_else(|never| match never {})).await
}

/// Refuses unknown and missing arguments. Everything else is checked by the API.
fn check(tool: &ToolDefinition, arguments: &JsonObject) -> Result<(), RefusedCall> {
    let is_unknown = |name: &&String| !tool.arguments.contains_key(name.as_str());
    if let Some(name) = arguments.keys().find(is_unknown) {
        let text = format!("{} has no argument {name}", tool.name);
        return Err(refused(text, "unknown_argument"));
    }

    // Assistants often send null for an argument that they leave out.
    let missing = tool.required.iter().find(|name| {
        let value = arguments.get(name.as_str());
        value.is_none_or(Value::is_null)
    });
    match missing {
        Some(name) => Err(refused(
            format!("Argument {name} is required"),
            "missing_argument",
        )),
        None => Ok(()),
    }
}

fn dry_run(arguments: &JsonObject) -> Result<bool, RefusedCall> {
    match arguments.get("dry_run") {
        // Without a word from the assistant nothing is sent or released.
        None | Some(Value::Null) => Ok(true),
        Some(Value::Bool(dry_run)) => Ok(*dry_run),
        Some(_) => Err(refused("dry_run is true or false", "invalid_argument")),
    }
}

/// A person's agreement to one call of one credential. Its token is encrypted with the call as context, so that it
/// opens for the same call only.
struct Confirmation {
    context: String,
}

impl Confirmation {
    fn of(tool: &ToolDefinition, caller: &McpCaller, arguments: &JsonObject) -> Self {
        // The dry run and the act differ in these two arguments, and must have the same context.
        let mut arguments = arguments.clone();
        arguments.retain(|name, value| {
            !value.is_null() && !["dry_run", "confirmation_token"].contains(&name.as_str())
        });
        let call = json!([tool.name, caller.credential(), arguments]);
        let context = format!("mcp confirmation {}", canonical_sha256(&call));
        Self { context }
    }

    fn token(&self, server: &McpServer) -> String {
        let until = server.app.clock.now() + CONFIRMED_FOR;
        // The id makes the tokens of two dry runs differ, so that the same act can be made twice.
        let text = json!([until.as_seconds(), RequestId::new()]).to_string();
        server.app.cipher.encrypt(&text, &self.context)
    }

    fn is_in(&self, server: &McpServer, token: &str) -> bool {
        // An unreadable token and one of another call look alike, so a guess learns nothing.
        let text = server.app.cipher.open(token, &self.context);
        let read = text.and_then(|text| serde_json::from_str::<(i64, String)>(&text).ok());
        read.is_some_and(|(until, _)| server.app.clock.now().as_seconds() <= until)
    }
}

fn invalid(name: &str, expected: &str) -> RefusedCall {
    refused(
        format!("Argument {name} must be {expected}"),
        "invalid_argument",
    )
}

/// Returns a text, number or boolean as it is written in an address or a form.
fn plain(name: &str, value: &Value) -> Result<String, RefusedCall> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(invalid(name, "a text, a number or a boolean")),
    }
}

/// Returns the request to the API that a call becomes.
fn request(
    tool: &ToolDefinition,
    caller: &McpCaller,
    parts: &Parts,
    arguments: &JsonObject,
    key: Option<String>,
) -> Result<Request<Body>, RefusedCall> {
    let mut path = tool.path.clone();
    let mut query = Vec::new();
    let mut json = None;

    let mut form = None;
    // The tool's places are followed, and not the caller's arguments: a name cannot move a value elsewhere.
    for (name, place) in &tool.arguments {
        let Some(value) = arguments.get(name).filter(|value| !value.is_null()) else {
            continue;
        };

        match place {
            Place::Path => {
                let value = plain(name, value)?;
                // Dots alone would name another path.
                if value.is_empty() || value.bytes().all(|byte| byte == b'.') {
                    return Err(invalid(name, "an id"));
                }

                // Encoded, because a slash or a query in an id would reach another operation.
                let value = utf8_percent_encode(&value, SEGMENT).to_string();
                path = path.replace(&format!("{{{name}}}"), &value);
            }
            Place::Query => {
                let values = match value {
                    Value::Array(values) => values.as_slice(),
                    value => std::slice::from_ref(value),
                };
                let values: Result<Vec<String>, _> =
                    values.iter().map(|value| plain(name, value)).collect();
                // The API takes lists in one parameter, separated by commas.
                let value = values?.join(",");

                let name = utf8_percent_encode(name, SEGMENT);
                query.push(format!("{name}={}", utf8_percent_encode(&value, SEGMENT)));
            }
            Place::Body => json = Some(value.to_string()),
            Place::Part => {
                let text = match value {
                    Value::Array(_) | Value::Object(_) => value.to_string(),
                    value => plain(name, value)?,
                };
                let open: Form = form.unwrap_or_default();
                form = Some(open.text(name.clone(), text));
            }
            Place::File => {
                let open: Form = form.unwrap_or_default();
                form = Some(open.part(name.clone(), file(name, value)?));
            }
            Place::IdempotencyKey | Place::DryRun | Place::Confirmation => {}
        }
    }

    let query = if query.is_empty() {
        String::new()
    } else {
        format!("?{}", query.join("&"))
    };
    let mut request = Request::builder()
        .method(tool.method.to_uppercase().as_str())
        .uri(format!("/api/v2{path}{query}"));
    // Limits by address and the evidence need the client's origin, not that of this inner request.
    for name in PASSED_ON {
        for value in parts.headers.get_all(&name) {
            request = request.header(&name, value);
        }
    }

    // The inner request is authenticated again. A key that was revoked meanwhile does nothing more.
    request = match caller {
        McpCaller::Key { text, .. } => request.header("x-api-key", text),
        McpCaller::User { token, user } => request
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header("x-org-id", user.org.as_str()),
    };

    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }

    let request = if let Some(form) = form {
        let kind = format!("multipart/form-data; boundary={}", form.boundary());
        request
            .header(header::CONTENT_TYPE, kind)
            .body(Body::from_stream(form.into_stream()))
    } else {
        match json {
            Some(json) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(json)),
            None => request.body(Body::empty()),
        }
    };

    let mut request = request.map_err(|error| refused(error.to_string(), "invalid_argument"))?;
    // Without the peer's address no forwarding header is trusted, and no limit by address would count.
    if let Some(from) = parts.extensions.get::<ConnectInfo<SocketAddr>>() {
        request.extensions_mut().insert(*from);
    }

    Ok(request)
}

/// Returns a file as a part of a form. The API determines its type.
fn file(name: &str, value: &Value) -> Result<Part, RefusedCall> {
    let content = value["content_base64"].as_str();
    let content = content.and_then(|text| BASE64_STANDARD.decode(text).ok());
    match (value["name"].as_str(), content) {
        (Some(file), Some(content)) => Ok(Part::bytes(content).file_name(file.to_owned())),
        _ => Err(invalid(name, "an object with name and content_base64")),
    }
}

/// Returns an answer of the API as the result of the call.
async fn result_of(tool: &ToolDefinition, answer: Response) -> Result<CallToolResult, RefusedCall> {
    let (parts, body) = answer.into_parts();
    let failed = !parts.status.is_success();
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    // Results are held in memory and sent as base64, so they have a limit that the API itself has not.
    let bytes = axum::body::to_bytes(body, FILE_BYTES).await.map_err(|_| {
        let text = "The answer is larger than 16 MiB; read it through the API";
        refused(text, "answer_too_large")
    })?;
    if kind.starts_with("application/json") {
        let mut body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let wait = parts.headers.get(header::RETRY_AFTER);
        // Assistants do not see headers of the inner answer.
        if let Some(wait) = wait.and_then(|wait| wait.to_str().ok()) {
            body["retry_after"] = wait.into();
        }
        return Ok(shown(body, failed));
    }

    if parts.status == StatusCode::NO_CONTENT {
        return Ok(shown(json!({ "success": true }), false));
    }

    let uri = format!("holdfast:{}", tool.name);
    let content = match std::str::from_utf8(&bytes) {
        // Text stays readable for the model. Anything else goes as base64.
        Ok(text) if kind.starts_with("text/") => ResourceContents::text(text, uri),
        _ => ResourceContents::blob(BASE64_STANDARD.encode(&bytes), uri),
    };
    let content = vec![ContentBlock::resource(content.with_mime_type(kind))];

    Ok(if failed {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    })
}
