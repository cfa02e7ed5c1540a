//! The component's export.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use holdfast_plugin_sdk::form;

use crate::bindings::exports::holdfast::messaging::messaging::{Guest, ProviderError, TextMessage};
use crate::bindings::holdfast::host::http::{
    self, BodyPart, HeaderValue, HttpError, Request, Response,
};
use crate::bindings::holdfast::host::{secrets, settings};
use crate::wire::{self, Taken};

holdfast_plugin_sdk::http_failures!();

struct MessagingTwilioComponent;

impl Guest for MessagingTwilioComponent {
    fn send(message: TextMessage) -> Result<String, ProviderError> {
        let (base, account) = (setting("base_url")?, setting("account_sid")?);
        let user = settings::get("api_key_sid").unwrap_or_else(|| account.clone());
        let token = secrets::open("auth_token")
            .ok_or_else(|| ProviderError::NotConfigured("secret auth_token".into()))?;
        let sender = match settings::get("messaging_service_sid") {
            Some(service) => ("MessagingServiceSid", service),
            None => {
                let missing = "setting from or messaging_service_sid";
                let from = settings::get("from");
                let from = from.ok_or_else(|| ProviderError::NotConfigured(missing.into()))?;
                ("From", from)
            }
        };
        let pairs = [("To", message.to), sender, ("Body", message.text)];
        let plain = |text: &str| HeaderValue::Plain(text.to_owned());
        let request = Request {
            method: "POST".into(),
            url: format!(
                "{}/2010-04-01/Accounts/{account}/Messages.json",
                base.trim_end_matches('/')
            ),
            headers: vec![
                (
                    "Authorization".to_owned(),
                    HeaderValue::Secret((format!("Basic {user}:"), &token)),
                ),
                (
                    "Content-Type".to_owned(),
                    plain("application/x-www-form-urlencoded"),
                ),
                // Twilio ignores it on messages; services that copy its API may not.
                ("Idempotency-Key".to_owned(), plain(&message.id)),
                ("Accept".to_owned(), plain("application/json")),
            ],
            body: vec![BodyPart::Text(form::encoded(&pairs))],
        };
        let response = http::send(&request).map_err(unreachable)?;
        let refused = |why: &str| Err(ProviderError::NotConfigured(why.into()));
        match response.status {
            200..=299 => match wire::taken(&response.body) {
                Some(Taken::Accepted(id)) => Ok(id),
                Some(Taken::Refused(why)) => Err(ProviderError::Rejected(why)),
                None => Err(ProviderError::Unreachable(
                    "the answer is not understood".into(),
                )),
            },
            401 | 403 => refused("the provider does not accept the secret auth_token"),
            404 => refused("the provider does not know the setting account_sid"),
            429 => Err(ProviderError::RateLimited(retry_after(&response))),
            400 if wire::is_sender(&response.body) => {
                refused("the provider does not accept the setting from or messaging_service_sid")
            }
            400 if wire::is_full(&response.body) => Err(ProviderError::RateLimited(None)),
            status @ 400..=499 => Err(ProviderError::Rejected(wire::refusal(
                status,
                &response.body,
            ))),
            status => Err(ProviderError::Unreachable(format!("answered {status}"))),
        }
    }
}

fn setting(name: &str) -> Result<String, ProviderError> {
    settings::get(name).ok_or_else(|| ProviderError::NotConfigured(format!("setting {name}")))
}

crate::bindings::export!(MessagingTwilioComponent with_types_in crate::bindings);
