//! A provider of text messages: implements the world of holdfast on top of the API of one vendor. The vendor, Example
//! Text, is fictitious: replace it with yours.
//!
//! `vendor.rs` sends requests and parses responses; this file maps each function of the world to
//! them. The host makes a fresh instance for every call, so no state survives a call.

mod vendor;

use serde::Deserialize;
use serde_json::json;

use crate::exports::holdfast::messaging::messaging::{Guest, ProviderError, TextMessage};
use crate::exports::holdfast::messaging::probing::Guest as Probing;

wit_bindgen::generate!({ path: "wit", world: "probing-messaging-provider", generate_all });

struct Component;

/// A message at the vendor.
#[derive(Deserialize)]
struct Message {
    id: String,
    state: String,
}

/// The account that the key belongs to.
#[derive(Deserialize)]
struct Account {
    #[serde(rename = "id")]
    _id: String,
}

impl Probing for Component {
    fn probe() -> Result<(), ProviderError> {
        // Checked without a request: a message without a sender is refused only when it is sent.
        vendor::setting("from")?;
        let account: Option<Account> = vendor::get("/account")?;
        account.map(drop).ok_or_else(wrong_address)
    }
}

impl Guest for Component {
    /// The vendor returns the existing message for a known idempotency key, so a lost response sends nothing twice.
    fn send(message: TextMessage) -> Result<String, ProviderError> {
        let from = vendor::setting("from")?;
        let body = json!({ "from": from, "to": message.to, "text": message.text });
        let taken: Option<Message> = vendor::post("/messages", Some(&message.id), &body)?;
        let taken = taken.ok_or_else(wrong_address)?;
        match taken.state.as_str() {
            "queued" | "sent" => Ok(taken.id),
            // Some vendors answer 2xx for messages that they will never deliver. The reason contains no number.
            "undeliverable" => Err(ProviderError::Rejected("the number receives no text messages".into())),
            _ => Err(vendor::not_understood()),
        }
    }
}

fn wrong_address() -> ProviderError {
    ProviderError::NotConfigured("setting base_url: the vendor's API is not there".into())
}

export!(Component);
