//! Requests to Method and their responses.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bindings::exports::holdfast::kba::kba::ProviderError;
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::{secrets, settings};
use crate::wire::{self, ErrorMeaning, WireFailure};

holdfast_plugin_sdk::http_failures!();

/// Version of the API that this plugin understands.
const VERSION: &str = "2026-03-30";

/// Error of a request: one reported by Method, or any other.
pub(crate) enum MethodRefusal {
    /// An error reported by Method: the session or the request failed.
    Said(WireFailure),
    Provider(ProviderError),
}

impl From<ProviderError> for MethodRefusal {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

pub(crate) fn get<T: DeserializeOwned>(path: &str) -> Result<T, MethodRefusal> {
    call("GET", path, None)
}

pub(crate) fn post<T: DeserializeOwned>(path: &str, body: &Value) -> Result<T, MethodRefusal> {
    call("POST", path, Some(body))
}

pub(crate) fn put<T: DeserializeOwned>(path: &str, body: &Value) -> Result<T, MethodRefusal> {
    call("PUT", path, Some(body))
}

fn call<T: DeserializeOwned>(
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<T, MethodRefusal> {
    let missing = |what: &str| ProviderError::NotConfigured(what.into());
    let base = settings::get("base_url").ok_or_else(|| missing("setting base_url"))?;
    let key = secrets::open("secret_key").ok_or_else(|| missing("secret secret_key"))?;
    let plain = |text: &str| HeaderValue::Plain(text.to_owned());
    let request = Request {
        method: method.into(),
        url: format!("{}{path}", base.trim_end_matches('/')),
        headers: vec![
            (
                "Authorization".to_owned(),
                HeaderValue::Secret(("Bearer ".to_owned(), &key)),
            ),
            ("Method-Version".to_owned(), plain(VERSION)),
            ("Content-Type".to_owned(), plain("application/json")),
            ("Accept".to_owned(), plain("application/json")),
        ],
        body: body
            .map(|body| BodyPart::Text(body.to_string()))
            .into_iter()
            .collect(),
    };

    let response = http::send(&request).map_err(unreachable)?;
    check(&response)?;

    // The response is about a person, so the error contains nothing of it.
    wire::read(&response.body).ok_or_else(|| {
        let why = format!("an answer to {method} is not understood");
        ProviderError::Unreachable(why).into()
    })
}

fn check(response: &Response) -> Result<(), MethodRefusal> {
    let provider = match response.status {
        200..=299 => return Ok(()),
        401 | 403 => ProviderError::NotConfigured(
            "the provider does not accept the secret secret_key".into(),
        ),
        // Method reports results such as a wrong answer as errors, so its own code decides before the status
        // does.
        status @ 400..=499 => match WireFailure::of(&response.body) {
            Some(failure) if status != 429 || failure.meaning() != ErrorMeaning::Other => {
                return Err(MethodRefusal::Said(failure));
            }
            _ if status == 429 => ProviderError::RateLimited(retry_after(response)),
            _ => ProviderError::Rejected(format!("answered {status}")),
        },
        status => ProviderError::Unreachable(format!("answered {status}")),
    };

    Err(provider.into())
}
