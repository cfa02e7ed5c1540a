//! Bodies and queries, read with every problem reported at once.

use std::sync::LazyLock;

use axum::extract::{FromRequest, FromRequestParts, Multipart, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::{Bytes, BytesMut};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::HttpError;
use crate::app::App;
use crate::service::uploads::{UPLOAD_LIMIT, Upload};
use crate::service::{Issue, ServiceError};

/// Largest JSON body: 1 MiB.
const JSON_LIMIT: usize = 1024 * 1024;

/// A JSON body that fits its schema.
///
/// The schema is derived from the type that serves the request, so that what is
/// checked and what is documented are the same.
pub struct ValidJson<T>(pub T);

impl<T: DeserializeOwned + JsonSchema> FromRequest<App> for ValidJson<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &App) -> Result<Self, HttpError> {
        check_json_type(request.headers())?;
        let body = read_limited(request, JSON_LIMIT).await?;
        let body: Value = if body.is_empty() {
            json!({})
        } else {
            serde_json::from_slice(&body)
                .map_err(|error| HttpError::bad_request(format!("Invalid JSON: {error}")))?
        };
        Ok(Self(valid(body)?))
    }
}

fn check_json_type(headers: &header::HeaderMap) -> Result<(), HttpError> {
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = content_type
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    if essence.trim().eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(HttpError::bad_request(
            "Content-Type must be application/json",
        ))
    }
}

async fn read_limited(request: Request, limit: usize) -> Result<Bytes, HttpError> {
    use http_body_util::{BodyExt as _, Limited};
    match Limited::new(request.into_body(), limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(HttpError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("Request body is larger than {limit} bytes"),
        )),
        Err(_) => Err(HttpError::bad_request("Request body could not be read")),
    }
}

/// Checks a JSON value against the schema of `T` and reads it.
pub fn valid<T: DeserializeOwned + JsonSchema>(value: Value) -> Result<T, HttpError> {
    let issues = issues::<T>(&value)?;
    if !issues.is_empty() {
        return Err(ServiceError::Invalid(issues).into());
    }
    serde_json::from_value(value).map_err(|error| {
        // The schema let it pass: say what serde says.
        let issue = Issue::new(
            "invalid",
            &[],
            "a valid body",
            "this body",
            error.to_string(),
        );
        ServiceError::Invalid(vec![issue]).into()
    })
}

fn issues<T: JsonSchema>(value: &Value) -> Result<Vec<Issue>, HttpError> {
    let validator = validator::<T>()?;
    Ok(validator
        .iter_errors(value)
        .flat_map(|error| flattened(&error))
        .collect())
}

/// Of alternatives that all fail, the issues of the one that was meant: the
/// one whose tag fits, or else the nearest.
fn flattened(error: &jsonschema::ValidationError<'_>) -> Vec<Issue> {
    use jsonschema::error::ValidationErrorKind as Kind;
    let (Kind::OneOfNotValid { context } | Kind::AnyOf { context }) = error.kind() else {
        return vec![issue(error)];
    };
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
        Some(branch) => branch.iter().flat_map(flattened).collect(),
        None => vec![issue(error)],
    }
}

/// Validators are made once per type.
fn validator<T: JsonSchema>() -> Result<std::sync::Arc<Validator>, HttpError> {
    use std::collections::HashMap;
    use std::sync::{Arc, RwLock};
    static VALIDATORS: LazyLock<RwLock<HashMap<String, Arc<Validator>>>> =
        LazyLock::new(RwLock::default);
    let id = T::schema_id().into_owned();
    if let Ok(validators) = VALIDATORS.read()
        && let Some(validator) = validators.get(&id)
    {
        return Ok(validator.clone());
    }
    let schema = schemars::schema_for!(T);
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema.as_value())
        .map_err(|error| HttpError::internal(format!("schema of {id}: {error}")))?;
    let validator = Arc::new(validator);
    if let Ok(mut validators) = VALIDATORS.write() {
        validators.insert(id, validator.clone());
    }
    Ok(validator)
}

/// A schema error in the contract's words.
fn issue(error: &jsonschema::ValidationError<'_>) -> Issue {
    use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
    let mut path: Vec<Value> = error
        .instance_path()
        .as_str()
        .split('/')
        .skip(1)
        .map(|step| match step.parse::<u64>() {
            Ok(index) => Value::from(index),
            Err(_) => Value::from(step.replace("~1", "/").replace("~0", "~")),
        })
        .collect();
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
            let received = error.instance().to_string();
            let message = format!("Expected one of {expected}, received {received}");
            ("invalid_enum_value", expected, received, message)
        }
        Kind::Format { format } => {
            let message = format!("Invalid {format}");
            (
                "invalid_string",
                format.clone(),
                received.to_owned(),
                message,
            )
        }
        kind => {
            let message = error.to_string();
            (
                kind.keyword(),
                kind.keyword().to_owned(),
                received.to_owned(),
                message,
            )
        }
    };
    Issue {
        code: code.into(),
        expected,
        received,
        path,
        message,
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

/// Query parameters; one that does not fit is a 400.
pub struct ValidQuery<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for ValidQuery<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        match Query::<T>::from_request_parts(parts, app).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(HttpError::bad_request(format!(
                "Invalid query parameter: {}",
                error.body_text()
            ))),
        }
    }
}

/// `page` and `limit` of a list, checked.
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

/// A multipart body: one file and text fields.
pub struct Form {
    pub file: Option<Upload>,
    pub texts: std::collections::BTreeMap<String, String>,
}

impl FromRequest<App> for Form {
    type Rejection = HttpError;

    async fn from_request(request: Request, app: &App) -> Result<Self, HttpError> {
        let malformed = |_| HttpError::bad_request("Body must be multipart/form-data");
        let mut multipart = Multipart::from_request(request, app)
            .await
            .map_err(malformed)?;
        let mut form = Self {
            file: None,
            texts: Default::default(),
        };
        loop {
            let broken = |error: axum::extract::multipart::MultipartError| {
                HttpError::new(error.status(), error.body_text())
            };
            let Some(mut field) = multipart.next_field().await.map_err(broken)? else {
                return Ok(form);
            };
            let name = field.name().unwrap_or_default().to_owned();
            let content_type = field.content_type().map(str::to_owned);
            let limit = if name == "file" {
                UPLOAD_LIMIT
            } else {
                JSON_LIMIT
            };
            let mut bytes = BytesMut::new();
            while let Some(piece) = field.chunk().await.map_err(broken)? {
                if bytes.len() + piece.len() > limit {
                    return Err(HttpError::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        format!("{name} is larger than {limit} bytes"),
                    ));
                }
                bytes.extend_from_slice(&piece);
            }
            if name == "file" {
                form.file = Some(Upload {
                    content_type,
                    bytes: bytes.freeze(),
                });
            } else {
                let text = String::from_utf8(bytes.to_vec())
                    .map_err(|_| HttpError::bad_request(format!("{name} is not UTF-8 text")))?;
                form.texts.insert(name, text);
            }
        }
    }
}

impl Form {
    /// The part called `file`.
    pub fn file(&mut self) -> Result<Upload, HttpError> {
        self.file
            .take()
            .ok_or_else(|| HttpError::bad_request("file is required"))
    }
}
