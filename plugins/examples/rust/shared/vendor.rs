//! Requests to the vendor, and its responses. Vendors of this kind answer with JSON.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ProviderError;
use crate::holdfast::host::http::{self, BodyPart, HeaderValue, HttpError, Request};
use crate::holdfast::host::{secrets, settings};

/// Body of a refusal. Its text is not read, because it may quote the request.
#[derive(Deserialize, Default)]
struct Refusal {
    code: Option<String>,
}

/// Returns a setting of the instance.
pub fn setting(name: &str) -> Result<String, ProviderError> {
    settings::get(name).ok_or_else(|| ProviderError::NotConfigured(format!("setting {name}")))
}

/// Reads an object. `None` if the vendor does not know it.
pub fn get<T: DeserializeOwned>(path: &str) -> Result<Option<T>, ProviderError> {
    call("GET", path, None, Vec::new())
}

/// Sends JSON. The vendor answers a request with the idempotency key of an earlier one like that one.
pub fn post<T: DeserializeOwned>(
    path: &str,
    idempotency_key: Option<&str>,
    body: &Value,
) -> Result<Option<T>, ProviderError> {
    let body = vec![BodyPart::Text(body.to_string())];
    call("POST", path, idempotency_key, body)
}

fn call<T: DeserializeOwned>(
    method: &str,
    path: &str,
    idempotency_key: Option<&str>,
    body: Vec<BodyPart<'_>>,
) -> Result<Option<T>, ProviderError> {
    let base = setting("base_url")?;
    // The secret is a handle. The host fills it in after it has checked the address.
    let key = secrets::open("api_key")
        .ok_or_else(|| ProviderError::NotConfigured("secret api_key".into()))?;
    let json = || HeaderValue::Plain("application/json".into());
    let mut headers = vec![
        ("Authorization".to_owned(), HeaderValue::Secret(("Bearer ".into(), &key))),
        ("Accept".to_owned(), json()),
        ("Content-Type".to_owned(), json()),
    ];
    if let Some(key) = idempotency_key {
        headers.push(("Idempotency-Key".to_owned(), HeaderValue::Plain(key.into())));
    }

    let request = Request {
        method: method.into(),
        url: format!("{}{path}", base.trim_end_matches('/')),
        headers,
        body,
    };
    let answer = http::send(&request).map_err(unreachable)?;
    match answer.status {
        200..=299 => {}
        404 => return Ok(None),
        status => return Err(failure(status, &answer.headers, &answer.body)),
    }

    match serde_json::from_slice(&answer.body) {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(not_understood()),
    }
}

/// Returns the error for a response that was not understood. It may be about a person, so nothing of it is quoted.
pub fn not_understood() -> ProviderError {
    ProviderError::Unreachable("the answer is not understood".into())
}

/// Maps the status of a response to an error of the world.
fn failure(status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError {
    match status {
        // The operator has to act, and a repeat would fail the same way.
        401 | 403 => ProviderError::NotConfigured("the vendor does not accept api_key".into()),
        429 => ProviderError::RateLimited(
            headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))
                .and_then(|(_, seconds)| seconds.parse().ok()),
        ),
        400..=499 => {
            let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
            let is_code = |code: &String| {
                code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            let code = refusal.code.filter(is_code);
            ProviderError::Rejected(code.unwrap_or_else(|| format!("answered {status}")))
        }
        // Errors of the vendor's servers pass, so the host repeats the call later.
        _ => ProviderError::Unreachable(format!("answered {status}")),
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
