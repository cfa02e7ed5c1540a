//! Requests to DocuSeal and their responses.

use serde::de::DeserializeOwned;

use crate::bindings::exports::holdfast::signing::signing::ProviderError;
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::{blobs::Blob, secrets, settings};
use crate::wire::WireRefusal;

holdfast_plugin_sdk::http_failures!();

pub(crate) type Result<T> = std::result::Result<T, ProviderError>;

/// Sends JSON and parses the JSON response.
pub(crate) fn call<T: DeserializeOwned>(
    method: &str,
    path: &str,
    body: Vec<BodyPart<'_>>,
) -> Result<T> {
    let base = settings::get("base_url")
        .ok_or_else(|| ProviderError::NotConfigured("setting base_url".into()))?;
    let key = secrets::open("api_key")
        .ok_or_else(|| ProviderError::NotConfigured("secret api_key".into()))?;
    let headers = vec![
        (
            "X-Auth-Token".to_owned(),
            HeaderValue::Secret((String::new(), &key)),
        ),
        (
            "Accept".to_owned(),
            HeaderValue::Plain("application/json".into()),
        ),
        (
            "Content-Type".to_owned(),
            HeaderValue::Plain("application/json".into()),
        ),
    ];

    let url = format!("{}{path}", base.trim_end_matches('/'));
    let request = Request {
        method: method.into(),
        url,
        headers,
        body,
    };
    let response = http::send(&request).map_err(unreachable)?;
    check(&response)?;

    // Only the position of the error, not its text: the text may quote the response, and some URLs
    // in it are credentials.
    serde_json::from_slice(&response.body).map_err(|error| {
        ProviderError::Unreachable(format!(
            "an answer to {method} is not understood at line {}, column {}",
            error.line(),
            error.column()
        ))
    })
}

/// Fetches a PDF. The URL is itself a credential, so no token is sent.
pub(crate) fn fetch_pdf(url: &str) -> Result<Blob> {
    let request = Request {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let response = http::fetch(&request).map_err(unreachable)?;
    if response.status != 200 {
        let status = response.status;
        return Err(ProviderError::Unreachable(format!(
            "the document's URL answered {status}"
        )));
    }

    // A storage in trouble may answer 200 with an error page.
    // Only the beginning is read: the file itself stays with the host and never enters this memory.
    let head = response.body.read(0, PDF_HEADER_WITHIN);
    if !head.windows(5).any(|bytes| bytes == b"%PDF-") {
        return Err(ProviderError::Unreachable(
            "the document's URL gave something that is no PDF".into(),
        ));
    }

    Ok(response.body)
}

/// Bytes within which the header of a PDF must begin (ISO 32000-1, implementation note 13).
const PDF_HEADER_WITHIN: u32 = 1024;

/// Returns a JSON value as a request body.
pub(crate) fn json(value: &impl serde::Serialize) -> Vec<BodyPart<'static>> {
    vec![BodyPart::Bytes(
        serde_json::to_vec(value).unwrap_or_default(),
    )]
}

/// Maps an error status. DocuSeal answers 403 for an id of another account, which to this plugin
/// means "not found".
fn check(response: &Response) -> Result<()> {
    let refusal = || serde_json::from_slice::<WireRefusal>(&response.body).unwrap_or_default();
    match response.status {
        200..=299 => Ok(()),
        401 => Err(ProviderError::NotConfigured(
            "the provider does not accept the secret api_key".into(),
        )),
        // DocuSeal has a test and a real account behind one address, and a wrong token looks like a missing
        // object.
        403 if refusal().names_other_mode() => Err(ProviderError::NotConfigured(
            "the secret api_key belongs to the account's other mode, test or production".into(),
        )),
        // A missing object has no `message`. Only calls that the build lacks answer with one.
        404 if refusal().message.is_some() => Err(ProviderError::NotConfigured(
            "this DocuSeal does not offer the call: it is not part of the free build".into(),
        )),
        403 | 404 => Err(ProviderError::NotFound),
        429 => Err(ProviderError::RateLimited(retry_after(response))),
        400..=499 => Err(ProviderError::Rejected(
            refusal()
                .error
                .unwrap_or_else(|| format!("answered {}", response.status)),
        )),
        status => Err(ProviderError::Unreachable(format!("answered {status}"))),
    }
}
