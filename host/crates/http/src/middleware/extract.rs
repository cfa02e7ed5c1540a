//! Extractors of bodies and queries that report all problems at once.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock, RwLock};

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{Operation, RequestBody};
use aide::operation::{ParamLocation, add_parameters, parameters_from_schema, set_body};
use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{
    DefaultBodyLimit, FromRequest, FromRequestParts, Multipart, Path, Query, Request,
};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use jsonschema::Validator;
use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;

use super::{limits, notes, unknown};
use crate::error::HttpError;
use crate::openapi;
use crate::reply::{CursorReply, PageReply, schema_and_example};
use holdfast_adapters::files::{FilesError, SpoolWriter, TransferShare};
use holdfast_adapters::mail::address::{self, AddressProblem};
use holdfast_adapters::mail::is_address;
use holdfast_base::disk;
use holdfast_domain::hash::sha256;
use holdfast_domain::toml_document;
use holdfast_evidence::strict;
use holdfast_platform::documents::{DocumentUpload, UPLOAD_LIMIT};
use holdfast_platform::{ServiceError, ValidationIssue};
use holdfast_service::App;

/// Media types of bodies that people and programs write.
const JSON: &str = "application/json";
const TOML: &str = "application/toml";
/// Size limit of a JSON body, and of one in TOML: 1 MiB.
pub const JSON_LIMIT: usize = 1024 * 1024;
/// Maximum number of a form's text parts.
const TEXT_PARTS: usize = 20;
/// Maximum number of issues in one answer.
const ISSUES: usize = 100;
/// Bytes of an upload after which the free space of the disk is checked again.
const DISK_CHECK: u64 = 1024 * 1024;
/// `Retry-After` in seconds for an upload beyond the limit of open ones.
const RETRY: u32 = 10;
/// Number of items that numbered pages of a list without a total reach.
const FURTHEST: i64 = 1000;
/// Bytes that are read and discarded past a body's limit.
const DISCARDED: usize = 16 * 1024 * 1024;

/// JSON body that matches its schema.
///
/// The schema is derived from the type that serves the request, so that validation and
/// documentation cannot differ.
pub struct ValidJson<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromRequest<App> for ValidJson<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &App) -> Result<Self, HttpError> {
        // A form that is read as JSON would only fail later, with an error about its first byte.
        check_json_type(request.headers())?;
        Ok(Self(valid(json_of(request).await?)?))
    }
}

/// Reads a JSON body. An empty one is an object without members.
async fn json_of(request: Request) -> Result<Value, HttpError> {
    let (mut parts, body) = request.into_parts();
    let body = read_limited(body, JSON_LIMIT).await?;
    let notes = notes::of(&mut parts);
    // The hash is part of the idempotency fingerprint, and the body goes to the request log with its
    // private values masked.
    let _ = notes.body.set(sha256(&body));
    let _ = notes.json.set(body.clone());
    if body.is_empty() {
        return Ok(json!({}));
    }

    // A member that is there twice would be read in two ways: by us, and by the signer of the text.
    strict::value(&body).map_err(|error| HttpError::bad_request(format!("Invalid JSON: {error}")))
}

/// Body in JSON, or in TOML for people who write it, that matches its schema.
pub struct JsonOrToml<T> {
    pub value: T,
    pub lines: LineNumbers,
}

/// Finds the lines of a TOML body. A JSON body has none.
pub struct LineNumbers(Option<String>);

impl LineNumbers {
    /// Adds the lines to the issues of an error.
    pub fn locate(&self, error: HttpError) -> HttpError {
        match &self.0 {
            Some(text) => error.with_lines(toml_document::lines(text)),
            None => error,
        }
    }
}

impl<T: DeserializeOwned + JsonSchema> FromRequest<App> for JsonOrToml<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, app: &App) -> Result<Self, HttpError> {
        let headers = request.headers();
        if !has_type(headers, TOML) {
            if !is_json(headers) {
                let message = "Content-Type must be application/json or application/toml";
                return Err(HttpError::bad_request(message));
            }

            let ValidJson(value) = <ValidJson<T>>::from_request(request, app).await?;
            let lines = LineNumbers(None);
            return Ok(Self { value, lines });
        }

        let (mut parts, body) = request.into_parts();
        let body = read_limited(body, JSON_LIMIT).await?;
        let notes = notes::of(&mut parts);
        let _ = notes.body.set(sha256(&body));
        let text = String::from_utf8(body.into())
            .map_err(|_| HttpError::bad_request("Invalid TOML: it is not UTF-8"))?;
        let document = toml_document::json(&text)
            .map_err(|why| HttpError::bad_request(format!("Invalid TOML: {why}")))?;
        // The request log masks members of JSON.
        let _ = notes.json.set(document.to_string().into());

        let lines = LineNumbers(Some(text));
        let value = valid(document).map_err(|error| lines.locate(error))?;
        Ok(Self { value, lines })
    }
}

/// Documents the body in both forms.
impl<T: JsonSchema> OperationInput for JsonOrToml<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let (schema, example) = schema_and_example::<T>(context);
        unknown::close_documented(context, &schema);
        let text = json_schema!({
            "type": "string", "description": "The same members in TOML. Each issue begins with its line.",
        });
        let written = example.as_ref().and_then(toml_document::written);

        let mut both = body(JSON, schema, example);
        both.content
            .extend(body(TOML, text, written.map(Value::String)).content);
        set_body(context, operation, both);

        for status in [400, 413, 422] {
            openapi::error(operation, status);
        }
    }
}

fn check_json_type(headers: &header::HeaderMap) -> Result<(), HttpError> {
    if is_json(headers) {
        Ok(())
    } else {
        Err(HttpError::bad_request(
            "Content-Type must be application/json",
        ))
    }
}

/// Whether a body is read as JSON: one without a type is.
fn is_json(headers: &header::HeaderMap) -> bool {
    !headers.contains_key(header::CONTENT_TYPE) || has_type(headers, JSON)
}

/// Whether the headers name a media type, with any parameters.
fn has_type(headers: &header::HeaderMap, media_type: &str) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
}

/// Reads a body up to a limit. Past it, some more is read and discarded: a client that is still
/// sending would otherwise see a broken connection instead of the answer.
pub async fn read_limited(body: Body, limit: usize) -> Result<Bytes, HttpError> {
    let mut pieces = body.into_data_stream();
    let mut kept = BytesMut::new();
    let mut size = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| HttpError::bad_request("Request body could not be read"))?;
        size += piece.len();
        if size <= limit {
            kept.extend_from_slice(&piece);
        } else {
            // The memory is given back at once, because the body is refused in any case.
            kept = BytesMut::new();
            if size > limit + DISCARDED {
                break;
            }
        }
    }

    if size > limit {
        return Err(HttpError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("Request body is larger than {limit} bytes"),
        ));
    }

    Ok(kept.freeze())
}

/// Documents the body of a JSON request.
impl<T: JsonSchema> OperationInput for ValidJson<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let (schema, example) = schema_and_example::<T>(context);
        unknown::close_documented(context, &schema);
        set_body(context, operation, body(JSON, schema, example));

        for status in [400, 413, 422] {
            openapi::error(operation, status);
        }
    }
}

fn body(media_type: &str, schema: Schema, example: Option<Value>) -> RequestBody {
    RequestBody {
        content: openapi::content(media_type, schema, example),
        required: true,
        ..RequestBody::default()
    }
}

/// Validates a JSON value against the schema of `T` and deserializes it.
pub fn valid<T: DeserializeOwned + JsonSchema>(mut value: Value) -> Result<T, HttpError> {
    // Schemas cannot express U+0000 for every text, so it is looked for apart.
    let mut issues = issues::<T>(&value)?;
    if issues.is_empty() {
        issues.extend(nul(&value, &mut Vec::new()));
    }

    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues).into());
    }

    // Before deserializing, so that every later comparison of addresses sees one form.
    let schema = &check::<T>()?.schema;
    write_addresses(&mut value, schema, schema);
    // The schema accepted it, so only serde can name the problem, and only the path locates it.
    serde_path_to_error::deserialize(&value).map_err(|error| {
        let path: Vec<Value> = error.path().iter().filter_map(member).collect();
        let found = path.iter().try_fold(&value, |value, step| match step {
            Value::String(name) => value.get(name),
            step => value.get(usize::try_from(step.as_u64()?).ok()?),
        });
        let issue = ValidationIssue {
            code: "invalid_value".into(),
            expected: "a value as the reference of the API describes it".into(),
            received: type_name(found.unwrap_or(&value)).into(),
            path,
            message: error.into_inner().to_string(),
            nearest: None,
        };

        ServiceError::Invalid(vec![issue]).into()
    })
}

/// Returns a step of a path to a value, as issues have it.
fn member(step: &Segment) -> Option<Value> {
    match step {
        Segment::Seq { index } => Some((*index).into()),
        Segment::Map { key } => Some(key.as_str().into()),
        // Variants and what serde buffers have no place of their own in the body.
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

fn issues<T: JsonSchema>(value: &Value) -> Result<Vec<ValidationIssue>, HttpError> {
    let check = check::<T>()?;
    Ok(check
        .validator
        .iter_errors(value)
        .flat_map(|error| flattened(&check.schema, &error))
        .take(ISSUES)
        .collect())
}

/// Writes each e-mail address of a valid body in the form in which it is stored.
fn write_addresses(value: &mut Value, schema: &Value, root: &Value) {
    // A reference can lead back to a schema around it. The value ends the recursion, as it is finite.
    if let Some(place) = schema["$ref"].as_str() {
        let named = place
            .strip_prefix('#')
            .and_then(|place| root.pointer(place));
        if let Some(named) = named {
            write_addresses(value, named, root);
        }

        return;
    }

    if let Value::String(text) = value
        && schema["format"] == "email"
        // The schema has accepted the address, so a failure leaves the text as it is.
        && let Ok(address) = address::parse(text)
    {
        *text = address;
    }

    if let (Value::Object(members), Some(known)) = (&mut *value, schema["properties"].as_object()) {
        for (name, member) in members {
            if let Some(schema) = known.get(name) {
                write_addresses(member, schema, root);
            }
        }
    }

    if let (Value::Array(items), Some(schema)) = (&mut *value, schema.get("items")) {
        for item in items {
            write_addresses(item, schema, root);
        }
    }

    // All branches are followed: the one that matches is not known here, and another one only touches
    // addresses, too.
    for part in ["allOf", "anyOf", "oneOf"] {
        for schema in schema[part].as_array().into_iter().flatten() {
            write_addresses(value, schema, root);
        }
    }
}

/// Returns an issue for the first text that contains U+0000, which PostgreSQL cannot store.
fn nul(value: &Value, path: &mut Vec<Value>) -> Option<ValidationIssue> {
    match value {
        Value::String(text) if text.contains('\0') => Some(ValidationIssue {
            code: "invalid_string".into(),
            expected: "text without U+0000".into(),
            received: "string".into(),
            path: path.clone(),
            message: "Text must not contain U+0000".into(),
            nearest: None,
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            path.push(index.into());
            let found = nul(item, path);
            path.pop();
            found
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            path.push(name.as_str().into());
            // Names are stored as well, for example those of metadata.
            let found = if name.contains('\0') {
                nul(&Value::from(name.as_str()), path)
            } else {
                nul(member, path)
            };
            path.pop();

            found
        }),
        _ => None,
    }
}

/// Returns the issues of an error. Of alternatives that all fail, picks the intended one: the one
/// with the matching tag, or else the one with the fewest issues.
fn flattened(schema: &Value, error: &jsonschema::ValidationError<'_>) -> Vec<ValidationIssue> {
    use jsonschema::error::ValidationErrorKind as Kind;

    let context = match error.kind() {
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => context,
        Kind::AdditionalProperties { unexpected } => {
            return unknown_members(schema, error, unexpected);
        }
        _ => return vec![issue(error)],
    };

    if let Some(issue) = unknown_choice(error, context) {
        return vec![issue];
    }

    // Without this choice, a caller would get the issues of every alternative, most of them meaningless.
    let tag_fits = |branch: &&Vec<jsonschema::ValidationError<'static>>| {
        !branch
            .iter()
            .any(|error| matches!(error.kind(), Kind::Constant { .. }))
    };
    let meant = context
        .iter()
        .find(tag_fits)
        .or_else(|| context.iter().min_by_key(|branch| branch.len()));
    match meant {
        Some(branch) => {
            let issues = branch.iter().flat_map(|error| flattened(schema, error));
            issues.collect()
        }
        None => vec![issue(error)],
    }
}

/// Returns an issue with all valid values if each alternative fails by the constant that it begins with: a text
/// with a schema for each of its values, or the tag of an object.
fn unknown_choice(
    error: &jsonschema::ValidationError<'_>,
    alternatives: &[Vec<jsonschema::ValidationError<'static>>],
) -> Option<ValidationIssue> {
    use jsonschema::error::ValidationErrorKind as Kind;

    let mut options: Vec<Value> = Vec::new();
    let mut tag: Option<&jsonschema::ValidationError<'static>> = None;
    for alternative in alternatives {
        let constant = alternative.iter().find_map(|failed| match failed.kind() {
            Kind::Constant { expected_value } => Some((failed, vec![Value::clone(expected_value)])),
            // Values without a description of their own share one alternative.
            Kind::Enum { options }
                if failed.instance_path().as_str() == error.instance_path().as_str() =>
            {
                Some((failed, options.as_array()?.clone()))
            }
            _ => None,
        });
        let (failed, values) = constant?;
        let place = tag.get_or_insert(failed).instance_path();
        if place.as_str() != failed.instance_path().as_str() {
            return None;
        }

        options.extend(values);
    }

    let expected = Value::from(options).to_string();
    let tag = tag?;
    // The value is the caller's and can be of any length.
    let received: String = tag.instance().to_string().chars().take(100).collect();
    Some(ValidationIssue {
        code: "invalid_enum_value".into(),
        message: format!("Expected one of {expected}, received {received}"),
        expected,
        received,
        path: instance_path(tag),
        nearest: None,
    })
}

/// Returns an issue for each member that the schema does not list.
fn unknown_members(
    schema: &Value,
    error: &jsonschema::ValidationError<'_>,
    unexpected: &[String],
) -> Vec<ValidationIssue> {
    // The path ends with `additionalProperties`. The object around it has the known names.
    let place = error.schema_path().as_str().rsplit_once('/');
    let known = schema.pointer(place.map_or("", |(object, _)| object));
    let known = known.and_then(|known| known["properties"].as_object());
    let known = || known.into_iter().flat_map(Map::keys).map(String::as_str);
    let at = instance_path(error);
    let unexpected = unexpected.iter().map(|name| {
        let nearest = unknown::nearest(name, known());
        unknown::issue("member", name, at.clone(), nearest)
    });

    unexpected.collect()
}

/// Schema of a type, closed to unknown members, with its validator.
struct ClosedSchema {
    schema: Value,
    validator: Validator,
}

/// Returns the validator of a type, built once per type.
fn check<T: JsonSchema>() -> Result<Arc<ClosedSchema>, HttpError> {
    static CHECKS: LazyLock<RwLock<HashMap<String, Arc<ClosedSchema>>>> =
        LazyLock::new(RwLock::default);

    let id = T::schema_id().into_owned();
    if let Ok(checks) = CHECKS.read()
        && let Some(check) = checks.get(&id)
    {
        return Ok(check.clone());
    }

    // Two requests can both build the validator. They are equal, so the later one may win.
    let mut schema = schemars::schema_for!(T).to_value();
    unknown::close(&mut schema);
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .with_format("email", is_address)
        .build(&schema)
        .map_err(|error| HttpError::internal(format!("schema of {id}: {error}")))?;
    let check = Arc::new(ClosedSchema { schema, validator });
    if let Ok(mut checks) = CHECKS.write() {
        checks.insert(id, check.clone());
    }

    Ok(check)
}

/// Returns the location of an error in the body.
fn instance_path(error: &jsonschema::ValidationError<'_>) -> Vec<Value> {
    let steps = error.instance_path().as_str().split('/').skip(1);
    // The contract writes indexes as numbers. JSON Pointer escapes `/` and `~` in names (RFC 6901, section
    // 3).
    let step = |step: &str| match step.parse::<u64>() {
        Ok(index) => Value::from(index),
        Err(_) => Value::from(step.replace("~1", "/").replace("~0", "~")),
    };
    steps.map(step).collect()
}

/// Translates a schema error into the API's wording.
fn issue(error: &jsonschema::ValidationError<'_>) -> ValidationIssue {
    use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};

    let mut path = instance_path(error);
    let received = type_name(error.instance());
    let (code, expected, received, message) = match error.kind() {
        Kind::Required { property } => {
            path.push(property.clone());
            (
                "invalid_type",
                "a value".into(),
                "undefined".into(),
                "Required".into(),
            )
        }
        Kind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(many) => many
                    .iter()
                    .map(|one| one.to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            let message = format!("Expected {expected}, received {received}");

            ("invalid_type", expected, received.to_owned(), message)
        }
        Kind::Enum { options } => {
            let expected = options.to_string();
            // The value is the caller's and can be of any length.
            let received: String = error.instance().to_string().chars().take(100).collect();
            let message = format!("Expected one of {expected}, received {received}");
            ("invalid_enum_value", expected, received, message)
        }
        Kind::Format { format } => {
            let address = error.instance().as_str().filter(|_| format == "email");
            let problem = address.and_then(|text| address::parse(text).err());
            let message = match problem {
                Some(AddressProblem::Malformed) | None => format!("Invalid {format}"),
                Some(problem) => problem.to_string(),
            };

            (
                "invalid_string",
                format.clone(),
                received.to_owned(),
                message,
            )
        }
        kind => {
            let (code, expected) = bound(kind);
            // The value itself is not repeated: it may be a whole body.
            let message = format!("Expected {expected}");
            (code, expected, received.to_owned(), message)
        }
    };

    ValidationIssue {
        code: code.into(),
        expected,
        received,
        path,
        message,
        nearest: None,
    }
}

/// Returns the documented code and the valid values of a limit in a schema.
fn bound(kind: &jsonschema::error::ValidationErrorKind) -> (&'static str, String) {
    use jsonschema::error::ValidationErrorKind as Kind;

    let items = |limit: &u64, one: &str, many: &str| {
        let noun = if *limit == 1 { one } else { many };
        format!("{limit} {noun}")
    };
    match kind {
        Kind::MinLength { limit } => {
            let length = items(limit, "character", "characters");
            ("too_small", format!("at least {length}"))
        }
        Kind::MaxLength { limit } => {
            let length = items(limit, "character", "characters");
            ("too_big", format!("at most {length}"))
        }
        Kind::MinItems { limit } => {
            let count = items(limit, "item", "items");
            ("too_small", format!("at least {count}"))
        }
        Kind::MaxItems { limit } => {
            let count = items(limit, "item", "items");
            ("too_big", format!("at most {count}"))
        }
        Kind::MinProperties { limit } => {
            let count = items(limit, "member", "members");
            ("too_small", format!("at least {count}"))
        }
        Kind::MaxProperties { limit } => {
            let count = items(limit, "member", "members");
            ("too_big", format!("at most {count}"))
        }
        Kind::Minimum { limit } => ("too_small", format!("{limit} or more")),
        Kind::Maximum { limit } => ("too_big", format!("{limit} or less")),
        Kind::ExclusiveMinimum { limit } => ("too_small", format!("more than {limit}")),
        Kind::ExclusiveMaximum { limit } => ("too_big", format!("less than {limit}")),
        Kind::Pattern { pattern } => ("invalid_string", format!("text that matches {pattern}")),
        Kind::Constant { expected_value } => ("invalid_literal", expected_value.to_string()),
        Kind::UniqueItems => ("not_unique", "items that differ from each other".into()),
        _ => (
            "invalid_value",
            "a value as the reference of the API describes it".into(),
        ),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Query parameters. Invalid ones are answered with 400.
pub struct ValidQuery<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromRequestParts<App> for ValidQuery<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, HttpError> {
        unknown::check_query(parts)?;
        let query = parts.uri.query().unwrap_or_default();
        // PostgreSQL cannot store or compare U+0000, and would answer with an error of its own.
        if query.contains("%00") {
            return Err(HttpError::bad_request(
                "Invalid query parameter: text must not contain U+0000",
            ));
        }

        let query = unknown::without_brackets(query);
        let uri = format!("/?{query}").parse::<Uri>();
        match uri.ok().map(|uri| Query::<T>::try_from_uri(&uri)) {
            Some(Ok(Query(query))) => Ok(Self(query)),
            // The words of the deserializer are about Rust, those of the schema about the parameter.
            _ => Err(query_refusal::<T>(&query)),
        }
    }
}

/// Returns the 400 for a query with values that its parameters cannot have.
fn query_refusal<T: JsonSchema>(query: &str) -> HttpError {
    let schema = match check::<T>() {
        Ok(check) => check.schema.clone(),
        Err(error) => return error,
    };

    let mut given = Map::new();
    for (name, text) in url::form_urlencoded::parse(query.as_bytes()) {
        let value = typed(&schema["properties"][&*name], &text);
        if given.insert(name.clone().into_owned(), value).is_some() {
            let message = format!("Invalid query parameter: {name} is there twice");
            return HttpError::bad_request(message);
        }
    }

    let issues = match issues::<T>(&Value::Object(given)) {
        Ok(issues) => issues,
        Err(error) => return error,
    };
    let Some(first) = issues.first() else {
        return HttpError::bad_request("Invalid query parameter: a value cannot be read");
    };
    let name = first.path.first().and_then(Value::as_str);
    let name = name.unwrap_or_default();
    // A text of a query cannot be null, although a member that may be absent could.
    let expected = first.expected.replace("null or ", "");
    let expected = expected.replace(" or null", "");
    let message = match (first.code.as_str(), first.received.as_str()) {
        ("invalid_type", "undefined") => format!("{name} is required"),
        ("invalid_type", _) => format!("{name}: Expected {expected}"),
        _ => format!("{name}: {}", first.message),
    };

    let message = format!("Invalid query parameter: {message}");
    HttpError::bad_request(message).with_details(json!(issues))
}

/// Returns a text of a query as the JSON that its schema describes, or else unchanged.
fn typed(schema: &Value, text: &str) -> Value {
    let is = |kind: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        one => one == kind,
    };

    let number = || text.parse::<i64>().ok().filter(|_| is("integer"));
    let truth = || text.parse::<bool>().ok().filter(|_| is("boolean"));
    let value = number().map(Value::from);
    value
        .or_else(|| truth().map(Value::from))
        .unwrap_or_else(|| text.into())
}

impl<T: JsonSchema> OperationInput for ValidQuery<T> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let schema = context.schema.subschema_for::<T>();
        let parameters = parameters_from_schema(context, schema, ParamLocation::Query);
        add_parameters(context, operation, parameters);
        openapi::error(operation, 400);
    }
}

macro_rules! path_parameters {
    ($($(#[$doc:meta])* $type:ident is $name:literal),* $(,)?) => {
        $(
            $(#[$doc])*
            ///
            /// Whether the resource exists is for the service to decide: a malformed name is
            /// answered like an unknown one.
            pub struct $type(pub String);

            impl FromRequestParts<App> for $type {
                type Rejection = HttpError;

                async fn from_request_parts(
                    parts: &mut Parts,
                    app: &App,
                ) -> Result<Self, HttpError> {
                    // Text that is not UTF-8 names no resource.
                    let path =
                        Path::<BTreeMap<String, String>>::from_request_parts(parts, app).await;
                    let found = path.ok().and_then(|Path(mut path)| path.remove($name));
                    Ok(Self(found.unwrap_or_default()))
                }
            }

            impl OperationInput for $type {
                fn operation_input(context: &mut GenContext, operation: &mut Operation) {
                    path_parameter(context, operation, $name);
                }
            }
        )*
    };
}

path_parameters!(
    /// The id in a path.
    ResourceId is "id",
    /// The token in a link's path.
    LinkPath is "token",
    /// The configured provider instance in a path.
    InstancePath is "instance",
    /// The component slot in a path.
    SlotPath is "slot",
    /// The role of a signer in a path.
    RolePath is "role",
    /// The SHA-256 of a file in a path.
    FilePath is "sha256",
    /// The id of a question in a path.
    QuestionPath is "question_id",
    /// The kind of a stipulation in a path.
    StipulationPath is "stipulation",
    /// The name of a tape map in a path.
    TapeMapPath is "name",
    /// The line of a tape in a path.
    TapeLinePath is "line",
);

/// Documents a path parameter and its 404.
fn path_parameter(context: &mut GenContext, operation: &mut Operation, name: &str) {
    let schema = json_schema!({
        "properties": { name: { "type": "string" } },
        "required": [name],
    });
    let parameters = parameters_from_schema(context, schema, ParamLocation::Path);
    add_parameters(context, operation, parameters);
    openapi::error(operation, 404);
}

/// Validates `page` and `limit` of a list.
pub fn page_and_limit(
    page: Option<i64>,
    limit: Option<i64>,
    default: i64,
    maximum: i64,
) -> Result<(i64, i64), HttpError> {
    let page = page.unwrap_or(1);
    let limit = limit.unwrap_or(default);
    if page < 1 {
        return Err(HttpError::bad_request("page must be 1 or more"));
    }
    if !(1..=maximum).contains(&limit) {
        return Err(HttpError::bad_request(format!(
            "limit must be 1 to {maximum}"
        )));
    }

    Ok((page, limit))
}

/// `page` and `limit` of a list without other parameters.
#[derive(serde::Deserialize, JsonSchema)]
pub struct PageQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

impl PageQuery {
    /// Returns both, validated.
    pub fn checked(&self) -> Result<(i64, i64), HttpError> {
        page_and_limit(self.page, self.limit, 20, 100)
    }
}

/// `page` and `limit` of a list that is short enough to be read as a whole.
#[derive(serde::Deserialize, JsonSchema)]
pub struct WholeListQuery {
    /// Page number, from 1.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 1000; 1000 when absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
}

impl WholeListQuery {
    /// Returns the page of a list with all its items.
    pub fn page_of<T: Serialize>(&self, all: &[T]) -> Result<PageReply<T>, HttpError> {
        let (page, limit) = page_and_limit(self.page, self.limit, FURTHEST, FURTHEST)?;
        Ok(PageReply::part_of(all, page, limit))
    }
}

/// Page of a list that has no total and is read behind ids: the first pages have numbers, too.
pub struct PageWindow {
    skip: i64,
    limit: i64,
}

impl PageWindow {
    /// Validates `page` and `limit`; `is_behind` states whether the request has `starting_after`.
    pub fn checked(
        (page, limit): (Option<i64>, Option<i64>),
        is_behind: bool,
        default: i64,
        maximum: i64,
    ) -> Result<Self, HttpError> {
        // A page number counts from the beginning, and the other parameter from an item.
        if page.is_some() && is_behind {
            let why = "page and starting_after exclude each other";
            return Err(HttpError::bad_request(why));
        }

        let (page, limit) = page_and_limit(page, limit, default, maximum)?;
        let skip = (page - 1).saturating_mul(limit);
        // Skipped items are read, so that a high number would cost as much as all pages before it.
        if skip.saturating_add(limit) > FURTHEST {
            return Err(HttpError::bad_request(format!(
                "page times limit must be {FURTHEST} or less; read on with starting_after"
            )));
        }

        Ok(Self { skip, limit })
    }

    /// Returns how many items the list has to read: one more than shown, to know whether another page follows.
    pub fn read(&self) -> i64 {
        self.skip + self.limit + 1
    }

    /// Returns whether this many read items reach the page.
    pub fn is_reached_by(&self, read: usize) -> bool {
        usize::try_from(self.skip).is_ok_and(|skip| read > skip)
    }

    /// Returns the page of the items that were read.
    pub fn reply<T: Serialize>(&self, found: Vec<T>) -> CursorReply<T> {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        CursorReply::new(found.into_iter().skip(skip).collect(), self.limit)
    }
}

/// JSON body, or a multipart form.
pub enum JsonOrForm<T, F> {
    Json(T),
    Form(MultipartForm<F>),
}

impl<T: DeserializeOwned + JsonSchema, F: JsonSchema> FromRequest<App> for JsonOrForm<T, F> {
    type Rejection = HttpError;

    async fn from_request(request: Request, app: &App) -> Result<Self, HttpError> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        // A request without a type is read as JSON, as elsewhere.
        let is_form = content_type.is_some_and(|text| {
            let essence = text.split(';').next().unwrap_or_default();
            essence.trim().eq_ignore_ascii_case("multipart/form-data")
        });
        if is_form {
            return Ok(Self::Form(MultipartForm::from_request(request, app).await?));
        }

        let ValidJson(json) = ValidJson::from_request(request, app).await?;
        Ok(Self::Json(json))
    }
}

impl<T: JsonSchema, F: JsonSchema> OperationInput for JsonOrForm<T, F> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let (json, example) = schema_and_example::<T>(context);
        let (form, form_example) = schema_and_example::<F>(context);
        for schema in [&json, &form] {
            unknown::close_documented(context, schema);
        }

        let mut both = body(JSON, json, example);
        both.content
            .extend(body("multipart/form-data", form, form_example).content);
        set_body(context, operation, both);

        for status in [400, 413, 415, 422] {
            openapi::error(operation, status);
        }
    }
}

/// Multipart body with one file of at most `LIMIT` bytes and text fields; `T` documents it.
pub struct MultipartForm<T, const LIMIT: u64 = UPLOAD_LIMIT> {
    file: Option<DocumentUpload>,
    pub texts: BTreeMap<String, String>,
    documented: PhantomData<fn() -> T>,
}

impl<T: JsonSchema, const LIMIT: u64> FromRequest<App> for MultipartForm<T, LIMIT> {
    type Rejection = HttpError;

    async fn from_request(request: Request, app: &App) -> Result<Self, HttpError> {
        let (mut parts, body) = request.into_parts();
        let notes = notes::of(&mut parts);
        // Uploads are limited by credential. Where the operation has none, the network takes its place.
        let network = limits::counted_address(app, &parts);
        let mut request = Request::from_parts(parts, body);
        refuse_announced_excess(request.headers(), LIMIT)?;

        // Parts are read in pieces, each with its own limit below.
        DefaultBodyLimit::disable().apply(&mut request);
        let multipart = Multipart::from_request(request, app)
            .await
            .map_err(|_| HttpError::bad_request("Body must be multipart/form-data"))?;
        let credential = notes.credential.get().cloned().or(network);
        let org = notes.org.get().map(|org| org.as_str());
        let owner = app.transfers.upload(credential.as_deref(), org);
        let form = Self::read(multipart, app, owner).await?;
        let _ = notes.body.set(form.digest());

        Ok(form)
    }
}

/// Refuses a body with an announced length far above the limit, without reading it.
fn refuse_announced_excess(headers: &header::HeaderMap, limit: u64) -> Result<(), HttpError> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit + DISCARDED as u64) {
        return Err(too_large("file", limit));
    }
    Ok(())
}

fn too_large(name: &str, limit: u64) -> HttpError {
    HttpError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("{name} is larger than {limit} bytes"),
    )
}

fn broken(error: MultipartError) -> HttpError {
    HttpError::new(error.status(), error.body_text())
}

impl<T: JsonSchema, const LIMIT: u64> MultipartForm<T, LIMIT> {
    async fn read(
        mut multipart: Multipart,
        app: &App,
        mut share: TransferShare,
    ) -> Result<Self, HttpError> {
        let mut form = Self {
            file: None,
            texts: BTreeMap::new(),
            documented: PhantomData,
        };
        let known = unknown::parts_of::<T>();
        let mut spooled: Option<DocumentUpload> = None;

        let mut text_bytes = 0;
        while let Some(mut part) = multipart.next_field().await.map_err(broken)? {
            let name = part.name().unwrap_or_default().to_owned();
            // Names count, too: a form of empty parts with long names would hold memory without limit.
            text_bytes += name.len();
            if !known.contains(&name) {
                return Err(unknown::refusal("part", &name, &known));
            }
            if name == "file" {
                if spooled.is_some() {
                    return Err(HttpError::bad_request("file must be given once"));
                }
                spooled = Some(spool(part, app, &mut share, LIMIT).await?);
                continue;
            }

            let mut bytes = BytesMut::new();
            while let Some(piece) = part.chunk().await.map_err(broken)? {
                text_bytes += piece.len();
                if text_bytes > JSON_LIMIT {
                    return Err(too_large("Form", JSON_LIMIT as u64));
                }
                bytes.extend_from_slice(&piece);
            }

            let text = String::from_utf8(bytes.to_vec())
                .ok()
                .filter(|text| !text.contains('\0'))
                .ok_or_else(|| HttpError::bad_request(format!("{name} is not UTF-8 text")))?;
            form.texts.insert(name, text);

            if form.texts.len() > TEXT_PARTS {
                return Err(HttpError::bad_request(format!(
                    "Form has more than {TEXT_PARTS} parts"
                )));
            }
        }

        // The share stays with the file: the upload counts as open until its bytes are stored or dropped.
        form.file = spooled.map(|upload| DocumentUpload {
            file: upload.file.counted(share),
            ..upload
        });

        Ok(form)
    }

    /// Returns the part named `file`, with the password that opens it.
    pub fn file(&mut self) -> Result<DocumentUpload, HttpError> {
        let file = self.optional_file();
        file.ok_or_else(|| HttpError::bad_request("file is required"))
    }

    /// Like [`Self::file`], for a form that may have none.
    pub fn optional_file(&mut self) -> Option<DocumentUpload> {
        // Taken out of the texts, because nothing but the reader of the file may see it.
        let password = self.texts.remove("password");
        Some(DocumentUpload {
            password: password.filter(|password| !password.is_empty()),
            ..self.file.take()?
        })
    }

    /// Returns a hash of the content, independent of how the parts were encoded.
    fn digest(&self) -> String {
        let file = self.file.as_ref().map(|upload| upload.file.sha256());
        // Boundaries of a form are random, so the bytes of a repeated request differ.
        sha256(json!([file, self.texts]).to_string().as_bytes())
    }
}

async fn spool(
    mut part: Field<'_>,
    app: &App,
    share: &mut TransferShare,
    limit: u64,
) -> Result<DocumentUpload, HttpError> {
    let content_type = part.content_type().map(str::to_owned);
    let file_name = part.file_name().and_then(display_name);
    let lost =
        |error: std::io::Error| HttpError::from(ServiceError::from(FilesError::Spool(error)));
    let folder = app.config.spool_folder();
    let mut spool = SpoolWriter::new(&folder).await.map_err(lost)?;

    // The free space is asked for once in a MiB, because each question is a system call.
    let (mut excess, mut checked_at) = (0, None);
    while let Some(piece) = part.chunk().await.map_err(broken)? {
        // The disk fills by other uploads too.
        let step = spool.size() / DISK_CHECK;
        if checked_at.replace(step) != Some(step) {
            disk::keep_reserve(&folder).map_err(lost)?;
        }

        if spool.size() + piece.len() as u64 > limit {
            // Discards the excess, as in `read_limited`.
            excess += piece.len();
            if excess > DISCARDED {
                break;
            }
        } else if excess == 0 {
            if !share.grow(piece.len() as u64) {
                return Err(HttpError::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "Too many bytes of unfinished uploads; wait until some are done",
                )
                .retry_after(RETRY));
            }

            spool.write(&piece).await.map_err(lost)?;
        }
    }

    if excess > 0 {
        return Err(too_large("file", limit));
    }

    Ok(DocumentUpload {
        content_type,
        file_name,
        password: None,
        file: spool.finish().await.map_err(lost)?,
    })
}

/// Returns the last component of a file name, if anything printable remains.
fn display_name(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next()?.trim();
    let shown: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    (!shown.is_empty()).then_some(shown)
}

impl<T: JsonSchema, const LIMIT: u64> OperationInput for MultipartForm<T, LIMIT> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        let (schema, example) = schema_and_example::<T>(context);
        unknown::close_documented(context, &schema);
        set_body(
            context,
            operation,
            body("multipart/form-data", schema, example),
        );

        for status in [400, 413, 415, 422] {
            openapi::error(operation, status);
        }
    }
}

/// Form with a file and nothing else.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{ "file": "contract.pdf" }]))]
#[expect(dead_code, reason = "documents the form")]
pub struct FileForm {
    /// PDF, PNG or JPEG, at most 50 MiB.
    #[schemars(extend("format" = "binary"))]
    file: String,
}
