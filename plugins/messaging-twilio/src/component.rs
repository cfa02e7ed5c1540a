//! The component's export.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use holdfast_plugin_sdk::form;

use crate::bindings::exports::holdfast::messaging::messaging::{Guest, ProviderError, TextMessage};
use crate::bindings::exports::holdfast::messaging::probing::Guest as Probing;
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::{secrets, settings};
use crate::wire::{self, Taken};

holdfast_plugin_sdk::http_failures!();

struct MessagingTwilioComponent;

impl Probing for MessagingTwilioComponent {
    /// Lists messages of a day before the service existed: account and token are checked, and no message
    /// is read.
    fn probe() -> Result<(), ProviderError> {
        // Checked without a request: a message without a sender is refused only when it is sent.
        sender()?;
        let response = call("GET", "?PageSize=1&DateSent=2000-01-01", &[], None)?;
        match response.status {
            200..=299 => Ok(()),
            status => Err(ProviderError::Rejected(wire::refusal(
                status,
                &response.body,
            ))),
        }
    }
}

impl Guest for MessagingTwilioComponent {
    fn send(message: TextMessage) -> Result<String, ProviderError> {
        let pairs = [("To", message.to), sender()?, ("Body", message.text)];
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            // Twilio ignores it on messages; services that copy its API may not.
            ("Idempotency-Key", &message.id),
        ];

        let response = call("POST", "", &headers, Some(form::encoded(&pairs)))?;
        match response.status {
            200..=299 => match wire::taken(&response.body) {
                Some(Taken::Accepted(id)) => Ok(id),
                // Twilio answers 2xx for some messages that it will never deliver.
                Some(Taken::Refused(why)) => Err(ProviderError::Rejected(why)),
                None => Err(ProviderError::Unreachable(
                    "the answer is not understood".into(),
                )),
            },
            // These are a fault of the account, and the number may be right.
            400 if wire::is_sender(&response.body) => Err(ProviderError::NotConfigured(
                "the provider does not accept the setting from or messaging_service_sid".into(),
            )),
            400 if wire::is_full(&response.body) => Err(ProviderError::RateLimited(None)),
            status => Err(ProviderError::Rejected(wire::refusal(
                status,
                &response.body,
            ))),
        }
    }
}

/// Sends a request to the account's messages. Failures that any of them can have are errors.
fn call(
    method: &str,
    query: &str,
    headers: &[(&str, &str)],
    body: Option<String>,
) -> Result<Response, ProviderError> {
    let (base, account) = (setting("base_url")?, setting("account_sid")?);
    // An API key of the account is its own user. Without one, the account's token is used.
    let user = settings::get("api_key_sid").unwrap_or_else(|| account.clone());
    let token = secrets::open("auth_token")
        .ok_or_else(|| ProviderError::NotConfigured("secret auth_token".into()))?;
    let secret = HeaderValue::Secret((format!("Basic {user}:"), &token));
    let plain = [("Accept", "application/json")].iter().chain(headers);
    let plain = plain.map(|(name, text)| (name.to_string(), HeaderValue::Plain(text.to_string())));

    let authorization = ("Authorization".to_owned(), secret);
    let request = Request {
        method: method.into(),
        url: format!(
            "{}/2010-04-01/Accounts/{account}/Messages.json{query}",
            base.trim_end_matches('/')
        ),
        headers: std::iter::once(authorization).chain(plain).collect(),
        body: body.map(BodyPart::Text).into_iter().collect(),
    };

    let response = http::send(&request).map_err(unreachable)?;
    let refused = |why: &str| Err(ProviderError::NotConfigured(why.into()));
    match response.status {
        401 | 403 => refused("the provider does not accept the secret auth_token"),
        // The path has no other id than the account's.
        404 => refused("the provider does not know the setting account_sid"),
        429 => Err(ProviderError::RateLimited(retry_after(&response))),
        200..=499 => Ok(response),
        status => Err(ProviderError::Unreachable(format!("answered {status}"))),
    }
}

/// Returns the parameter that names the sender.
fn sender() -> Result<(&'static str, String), ProviderError> {
    let service = settings::get("messaging_service_sid").map(|id| ("MessagingServiceSid", id));
    let number = || settings::get("from").map(|from| ("From", from));
    service
        .or_else(number)
        .ok_or_else(|| ProviderError::NotConfigured("setting from or messaging_service_sid".into()))
}

fn setting(name: &str) -> Result<String, ProviderError> {
    settings::get(name).ok_or_else(|| ProviderError::NotConfigured(format!("setting {name}")))
}

crate::bindings::export!(MessagingTwilioComponent with_types_in crate::bindings);
