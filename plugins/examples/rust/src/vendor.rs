//! The API of the vendor. *Example Sign* is fictitious: replace it with that of your vendor.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exports::holdfast::signing::signing::{self, ProviderError};
use crate::holdfast::host::blobs::Blob;
use crate::holdfast::host::http::{self, BodyPart, HeaderValue, HttpError, Request};
use crate::holdfast::host::{secrets, settings};
use crate::holdfast::signing::types;

#[derive(Serialize, Deserialize, PartialEq)]
pub struct Field {
    name: String,
    #[serde(rename = "type")]
    field_type: String,
    role: String,
    required: bool,
    readonly: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_value: Option<String>,
    options: Vec<String>,
    areas: Vec<Area>,
}

#[derive(Serialize, Deserialize, PartialEq)]
struct Area {
    page: u32,
    x: f64,
    y: f64,
    w: f64,
    h: f64,
}

#[derive(Deserialize)]
pub struct Template {
    id: String,
    name: String,
    roles: Vec<String>,
    pub fields: Vec<Field>,
    documents: u32,
}

#[derive(Serialize)]
pub struct SubmissionRequest {
    template_id: String,
    external_id: String,
    name: String,
    ordered: bool,
    submitters: Vec<SubmitterRequest>,
}

#[derive(Serialize)]
struct SubmitterRequest {
    name: String,
    email: String,
    role: String,
    values: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Submission {
    id: String,
    status: String,
    archived: bool,
    completed_at: Option<String>,
    submitters: Vec<Submitter>,
}

#[derive(Deserialize)]
struct Submitter {
    id: String,
    name: String,
    email: String,
    role: String,
    status: String,
    signing_url: String,
    completed_at: Option<String>,
    decline_reason: Option<String>,
    values: Vec<Value>,
}

#[derive(Deserialize)]
struct Value {
    name: String,
    #[serde(rename = "type")]
    field_type: String,
    value: String,
}

/// Content of a callback.
#[derive(Deserialize)]
pub struct About {
    pub submission_id: Option<String>,
    pub submitter_id: Option<String>,
}

#[derive(Deserialize, Default)]
struct Refusal {
    error: Option<String>,
}

pub fn get(path: &str) -> Result<Vec<u8>, ProviderError> {
    send("GET", path, Vec::new())
}

/// Sends a request and returns the body of the response.
pub fn send(method: &str, path: &str, body: Vec<BodyPart<'_>>) -> Result<Vec<u8>, ProviderError> {
    let answer = with_request(method, path, body, |request| {
        http::send(request).map_err(unreachable)
    })?;
    check(answer.status, &answer.headers, &answer.body)?;
    Ok(answer.body)
}

/// Fetches a PDF, which stays with the host.
pub fn document(path: &str) -> Result<Blob, ProviderError> {
    let answer = with_request("GET", path, Vec::new(), |request| {
        http::fetch(request).map_err(unreachable)
    })?;
    // The body of a fetched file stays with the host, so an error has no text.
    check(answer.status, &answer.headers, b"")?;

    // A storage in trouble can answer 200 with an error page, which must not be vaulted.
    if answer.body.read(0, 5) == b"%PDF-" {
        Ok(answer.body)
    } else {
        Err(ProviderError::Unreachable("the document is no PDF".into()))
    }
}

fn with_request<T>(
    method: &str,
    path: &str,
    body: Vec<BodyPart<'_>>,
    work: impl FnOnce(&Request<'_>) -> Result<T, ProviderError>,
) -> Result<T, ProviderError> {
    let missing = |what: &str| ProviderError::NotConfigured(what.into());
    let base = settings::get("base_url").ok_or_else(|| missing("setting base_url"))?;
    let key = secrets::open("api_key").ok_or_else(|| missing("secret api_key"))?;
    // The key is a handle. The host fills it in after it has checked the address.
    let plain = |text: &str| HeaderValue::Plain(text.into());
    work(&Request {
        method: method.into(),
        url: format!("{}{path}", base.trim_end_matches('/')),
        headers: vec![
            ("Authorization".into(), HeaderValue::Secret(("Bearer ".into(), &key))),
            ("Accept".into(), plain("application/json")),
            ("Content-Type".into(), plain("application/json")),
        ],
        body,
    })
}

/// Maps the status of a response to an error of the world.
fn check(
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<(), ProviderError> {
    Err(match status {
        200..=299 => return Ok(()),
        // The operator has to act, and a repeat would fail the same way.
        401 | 403 => ProviderError::NotConfigured("the vendor does not accept api_key".into()),
        404 => ProviderError::NotFound,
        429 => ProviderError::RateLimited(
            headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))
                .and_then(|(_, seconds)| seconds.parse().ok()),
        ),
        400..=499 => ProviderError::Rejected(
            serde_json::from_slice::<Refusal>(body)
                .unwrap_or_default()
                .error
                .unwrap_or_else(|| format!("answered {status}")),
        ),
        // Errors of the vendor's servers pass, so the host repeats the call later.
        _ => ProviderError::Unreachable(format!("answered {status}")),
    })
}

fn unreachable(error: HttpError) -> ProviderError {
    match error {
        HttpError::Denied(why) => ProviderError::NotConfigured(why),
        HttpError::Timeout => ProviderError::Unreachable("timed out".into()),
        HttpError::Unreachable(why)
        | HttpError::OverLimit(why)
        | HttpError::InvalidRequest(why)
        | HttpError::Other(why) => ProviderError::Unreachable(why),
    }
}

/// Treats a missing object as archived.
pub fn gone(answer: Result<Vec<u8>, ProviderError>) -> Result<(), ProviderError> {
    match answer {
        Ok(_) | Err(ProviderError::NotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

pub fn json(value: &impl Serialize) -> Vec<BodyPart<'static>> {
    vec![BodyPart::Bytes(serde_json::to_vec(value).unwrap_or_default())]
}

/// Parses a response. The error text is left out, because it may quote the response.
pub fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(body)
        .map_err(|_| ProviderError::Unreachable("the answer is not understood".into()))
}

pub fn template(body: &[u8]) -> Result<signing::Template, ProviderError> {
    let template: Template = parsed(body)?;
    Ok(signing::Template {
        template_id: template.id,
        name: template.name,
        roles: template.roles,
        fields: template.fields.into_iter().map(signing::Field::from).collect(),
        documents: template.documents,
    })
}

pub fn submission(body: &[u8]) -> Result<signing::Submission, ProviderError> {
    let submission: Submission = parsed(body)?;
    // A status that the plugin does not know must not count as signed or declined. The host asks again later.
    let unknown = || ProviderError::Unreachable("the answer is not understood".into());
    let submitters = submission.submitters.into_iter().map(|submitter| {
        Ok(types::Submitter {
            status: match submitter.status.as_str() {
                "pending" => types::SignerStatus::Pending,
                "viewed" => types::SignerStatus::Viewed,
                "started" => types::SignerStatus::Started,
                "completed" => types::SignerStatus::Completed,
                "declined" => types::SignerStatus::Declined,
                _ => return Err(unknown()),
            },
            submitter_id: submitter.id,
            name: submitter.name,
            email: submitter.email,
            role: submitter.role,
            signing_url: submitter.signing_url,
            completed_at: submitter.completed_at,
            decline_reason: submitter.decline_reason,
            values: submitter.values.into_iter().map(types::SignedValue::from).collect(),
            // The vendor reports no address and no browser of its signers. Evidence then states none.
            attributes: Vec::new(),
        })
    });

    Ok(signing::Submission {
        status: match submission.status.as_str() {
            "pending" => types::SubmissionStatus::Pending,
            "completed" => types::SubmissionStatus::Completed,
            "declined" => types::SubmissionStatus::Declined,
            "expired" => types::SubmissionStatus::Expired,
            _ => return Err(unknown()),
        },
        submission_id: submission.id,
        archived: submission.archived,
        completed_at: submission.completed_at,
        submitters: submitters.collect::<Result<_, _>>()?,
    })
}

impl From<signing::Field> for Field {
    fn from(field: signing::Field) -> Self {
        let areas = field.areas.into_iter();
        Self {
            name: field.name,
            field_type: field.field_type,
            role: field.role,
            required: field.required,
            readonly: field.readonly,
            default_value: field.default_value,
            options: field.options,
            areas: areas
                .map(|area| Area { page: area.page, x: area.x, y: area.y, w: area.w, h: area.h })
                .collect(),
        }
    }
}

impl From<Field> for signing::Field {
    fn from(field: Field) -> Self {
        let areas = field.areas.into_iter();
        Self {
            name: field.name,
            field_type: field.field_type,
            role: field.role,
            required: field.required,
            readonly: field.readonly,
            default_value: field.default_value,
            options: field.options,
            areas: areas
                .map(|area| types::Area { page: area.page, x: area.x, y: area.y, w: area.w, h: area.h })
                .collect(),
            attributes: Vec::new(),
        }
    }
}

impl From<Value> for types::SignedValue {
    fn from(value: Value) -> Self {
        Self { name: value.name, field_type: value.field_type, value: value.value }
    }
}

impl From<signing::SubmissionRequest> for SubmissionRequest {
    fn from(request: signing::SubmissionRequest) -> Self {
        let submitters = request.submitters.into_iter();
        Self {
            template_id: request.template_id,
            external_id: request.external_id,
            name: request.name,
            ordered: request.preserve_order,
            submitters: submitters
                .map(|submitter| SubmitterRequest {
                    name: submitter.name,
                    email: submitter.email,
                    role: submitter.role,
                    values: submitter.values.into_iter().collect(),
                })
                .collect(),
        }
    }
}

/// Compares a text with the digest in hexadecimal, in constant time.
pub fn is_hex_of(text: &str, digest: &[u8]) -> bool {
    let expected: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let pairs = expected.bytes().zip(text.bytes());
    pairs.fold(expected.len() ^ text.len(), |sum, (left, right)| sum | usize::from(left ^ right)) == 0
}
