//! One request to DocuSeal and its answer.

use serde::de::DeserializeOwned;

use crate::bindings::exports::holdfast::signing::signing::ProviderError;
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::{blobs::Blob, secrets, settings};

pub(crate) type Result<T> = std::result::Result<T, ProviderError>;

/// Sends JSON and reads JSON.
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
    serde_json::from_slice(&response.body).map_err(|error| {
        ProviderError::Unreachable(format!(
            "answer to {method} {path} is not understood: {error}"
        ))
    })
}

/// Fetches a file. The URL is a credential of its own: no token is sent.
pub(crate) fn fetch(url: &str) -> Result<Blob> {
    let request = Request {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let response = http::fetch(&request).map_err(unreachable)?;
    match response.status {
        200 => Ok(response.body),
        403 | 404 => Err(ProviderError::NotFound),
        status => Err(ProviderError::Unreachable(format!(
            "document answered {status}"
        ))),
    }
}

/// A JSON value as a request's body.
pub(crate) fn json(value: &impl serde::Serialize) -> Vec<BodyPart<'static>> {
    vec![BodyPart::Bytes(
        serde_json::to_vec(value).unwrap_or_default(),
    )]
}

/// Another account's id is answered with 403: to us both mean "not found".
fn check(response: &Response) -> Result<()> {
    match response.status {
        200..=299 => Ok(()),
        401 => Err(ProviderError::NotConfigured(
            "the provider does not accept the secret api_key".into(),
        )),
        403 | 404 => Err(ProviderError::NotFound),
        429 => Err(ProviderError::RateLimited(retry_after(response))),
        400..=499 => Err(ProviderError::Rejected(reason(response))),
        status => Err(ProviderError::Unreachable(format!("answered {status}"))),
    }
}

fn retry_after(response: &Response) -> Option<u32> {
    let (_, seconds) = response
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    seconds.parse().ok()
}

fn reason(response: &Response) -> String {
    #[derive(serde::Deserialize)]
    struct Reason {
        error: String,
    }
    match serde_json::from_slice::<Reason>(&response.body) {
        Ok(reason) => reason.error,
        Err(_) => format!("answered {}", response.status),
    }
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
