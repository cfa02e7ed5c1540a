//! A payment provider: implements the world of holdfast on top of the API of one vendor. The vendor, Example Pay, is
//! fictitious: replace it with yours.
//!
//! `vendor.rs` sends requests and parses responses; this file maps each function of the world to
//! them. The host makes a fresh instance for every call, so no state survives a call.

mod vendor;

use serde::Deserialize;
use serde_json::json;

use crate::exports::holdfast::payment::payment::{
    Callback, CallbackError, CallbackSubject, Guest, Intent, IntentRequest, ProviderError,
};
use crate::holdfast::host::secrets;
use crate::holdfast::payment::types::PaymentStatus;

wit_bindgen::generate!({ path: "wit", world: "payment-provider", generate_all });

struct Component;

/// A payment at the vendor.
#[derive(Deserialize)]
struct Charge {
    id: String,
    client_token: String,
    state: String,
    /// Minor units of the currency.
    amount: u64,
    currency: String,
    page: Option<String>,
}

/// Content of a callback.
#[derive(Deserialize)]
struct About {
    charge: Option<String>,
    event: Option<String>,
    /// Sum of all refunds, in minor units.
    total: Option<u64>,
}

impl Guest for Component {
    /// The vendor returns the existing charge for a known idempotency key, so a lost response causes no second charge.
    fn create_intent(request: IntentRequest) -> Result<Intent, ProviderError> {
        let body = json!({
            "reference": request.payment_id, "contract": request.envelope_id,
            "amount": request.amount, "currency": request.currency,
            "account": request.connected_account, "fee": request.platform_fee,
            "email": request.payer_email,
        });
        intent(vendor::post("/charges", Some(&request.payment_id), &body)?)
    }

    fn read_intent(intent_id: String) -> Result<Intent, ProviderError> {
        // The id may come from a callback and becomes a part of the path.
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if intent_id.is_empty() || !intent_id.bytes().all(is_part) {
            return Err(ProviderError::NotFound);
        }

        intent(vendor::get(&format!("/charges/{intent_id}"))?)
    }

    /// `X-Vendor-Signature` is the HMAC-SHA256 of the body, in hexadecimal.
    fn read_callback(callback: Callback) -> Result<CallbackSubject, CallbackError> {
        let unverified = |why: &str| CallbackError::Unverified(why.into());
        let (_, signature) = callback
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("x-vendor-signature"))
            .ok_or_else(|| unverified("no X-Vendor-Signature header"))?;
        let secret = secrets::open("webhook_secret")
            .ok_or_else(|| unverified("no secret webhook_secret is configured"))?;
        // The host computes the digest: the secret never enters the memory of the plugin.
        let digest = secret.hmac_sha256(&callback.body);
        if !is_hex_of(signature, &digest) {
            return Err(unverified("the signature does not match"));
        }

        // Parsed only after the check, because the body is a stranger's until then. It names the charge,
        // and the host reads that back.
        let about: About = serde_json::from_slice(&callback.body)
            .map_err(|_| CallbackError::Malformed("not an Example Pay callback".into()))?;
        Ok(match (about.charge, about.event, about.total) {
            (Some(charge), Some(event), Some(total)) if event == "refunded" || event == "disputed" => {
                CallbackSubject::Reversal((charge, total, event))
            }
            (Some(charge), _, _) => CallbackSubject::Intent(charge),
            (None, _, _) => CallbackSubject::Ignored,
        })
    }
}

fn intent(charge: Option<Charge>) -> Result<Intent, ProviderError> {
    let charge = charge.ok_or(ProviderError::NotFound)?;
    Ok(Intent {
        // Only money that has arrived counts. A state that the plugin does not know must not open the vault.
        status: match charge.state.as_str() {
            "open" => PaymentStatus::RequiresPayment,
            "paid" => PaymentStatus::Paid,
            "canceled" => PaymentStatus::Canceled,
            _ => return Err(vendor::not_understood()),
        },
        intent_id: charge.id,
        client_secret: charge.client_token,
        publishable_key: vendor::setting("publishable_key")?,
        page: charge.page,
        // Only instances of the operator may have a script.
        script: None,
        amount: charge.amount,
        currency: charge.currency,
    })
}

/// Compares a text with the digest in hexadecimal, in constant time.
fn is_hex_of(text: &str, digest: &[u8]) -> bool {
    let expected: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let pairs = expected.bytes().zip(text.bytes());
    pairs.fold(expected.len() ^ text.len(), |sum, (left, right)| sum | usize::from(left ^ right)) == 0
}

export!(Component);
