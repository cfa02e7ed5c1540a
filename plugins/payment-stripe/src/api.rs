//! Requests to Stripe and their responses.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::bindings::exports::holdfast::payment::payment::ProviderError;
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::{secrets, settings};
use holdfast_plugin_sdk::form;

holdfast_plugin_sdk::http_failures!();

/// Version of the API that this plugin understands; the account's default may differ.
const VERSION: &str = "2025-03-31.basil";

pub(crate) type Result<T> = std::result::Result<T, ProviderError>;

/// Returns a required setting.
pub(crate) fn setting(name: &str) -> Result<String> {
    settings::get(name).ok_or_else(|| ProviderError::NotConfigured(format!("setting {name}")))
}

/// Sends a GET and parses the JSON response.
pub(crate) fn get<T: DeserializeOwned>(path: &str) -> Result<T> {
    call("GET", path, None, &[])
}

/// Sends a form and parses the JSON response. Within a day, Stripe returns the same response for
/// the same key.
pub(crate) fn post<T: DeserializeOwned>(
    path: &str,
    key: &str,
    pairs: &[(&str, String)],
) -> Result<T> {
    call("POST", path, Some(key), pairs)
}

fn call<T: DeserializeOwned>(
    method: &str,
    path: &str,
    idempotency_key: Option<&str>,
    pairs: &[(&str, String)],
) -> Result<T> {
    let base = setting("base_url")?;
    let key = secrets::open("secret_key")
        .ok_or_else(|| ProviderError::NotConfigured("secret secret_key".into()))?;
    let plain = |text: &str| HeaderValue::Plain(text.to_owned());
    let mut headers = vec![
        (
            "Authorization".to_owned(),
            HeaderValue::Secret(("Bearer ".to_owned(), &key)),
        ),
        // Without the header, Stripe answers in the version of the account, which its owner can change.
        ("Stripe-Version".to_owned(), plain(VERSION)),
        ("Accept".to_owned(), plain("application/json")),
    ];

    let mut body = Vec::new();
    // A lost response must not charge the payer twice.
    if let Some(idempotency_key) = idempotency_key {
        headers.push(("Idempotency-Key".to_owned(), plain(idempotency_key)));
        let form = "application/x-www-form-urlencoded";
        headers.push(("Content-Type".to_owned(), plain(form)));
        body.push(BodyPart::Text(form::encoded(pairs)));
    }

    let request = Request {
        method: method.into(),
        url: format!("{}{path}", base.trim_end_matches('/')),
        headers,
        body,
    };
    let response = http::send(&request).map_err(unreachable)?;
    check(&response)?;

    // Only the position of the error, not its text: the response contains a client secret.
    serde_json::from_slice(&response.body).map_err(|error| {
        ProviderError::Unreachable(format!(
            "an answer to {method} is not understood at line {}, column {}",
            error.line(),
            error.column()
        ))
    })
}

#[derive(Default, Deserialize)]
struct StripeRefusal {
    #[serde(default)]
    error: RefusalDetails,
}

#[derive(Default, Deserialize)]
struct RefusalDetails {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    param: Option<String>,
}

impl StripeRefusal {
    /// Returns type, code and parameter. The message is for the developer of the account and may
    /// quote the request.
    fn reason(&self, status: u16) -> String {
        let details = [&self.error.kind, &self.error.code, &self.error.param];
        let known: Vec<&str> = details.into_iter().filter_map(Option::as_deref).collect();
        if known.is_empty() {
            format!("answered {status}")
        } else {
            known.join(", ")
        }
    }
}

fn check(response: &Response) -> Result<()> {
    let refusal = || serde_json::from_slice::<StripeRefusal>(&response.body).unwrap_or_default();
    match response.status {
        200..=299 => Ok(()),
        401 | 403 => Err(ProviderError::NotConfigured(
            "the provider does not accept the secret secret_key".into(),
        )),
        404 => Err(ProviderError::NotFound),
        // Stripe is still processing the same request.
        409 => Err(ProviderError::Unreachable("answered 409".into())),
        429 => Err(ProviderError::RateLimited(retry_after(response))),
        status @ 400..=499 => Err(ProviderError::Rejected(refusal().reason(status))),
        status => Err(ProviderError::Unreachable(format!("answered {status}"))),
    }
}
