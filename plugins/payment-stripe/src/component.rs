//! The component's exports.

#![expect(unsafe_code, reason = "the export macro writes the entry points")]

use crate::api::{self, Result};
use crate::bindings::exports::holdfast::payment::payment::{
    Callback, CallbackError, CallbackSubject, Guest, Intent, IntentRequest, ProviderError,
};
use crate::bindings::holdfast::host::{clock, secrets, settings};
use crate::bindings::holdfast::payment::types::PaymentStatus;
use crate::callback::{self, EventSubject};
use crate::intent::{IntentAnswer, WantedIntent, from_stripe, parameters, to_stripe};

struct StripeComponent;

impl Guest for StripeComponent {
    fn create_intent(request: IntentRequest) -> Result<Intent> {
        let amount = |amount| to_stripe(&request.currency, amount).ok_or_else(|| unfit(&request));
        let wanted = WantedIntent {
            payment_id: &request.payment_id,
            envelope_id: &request.envelope_id,
            amount: amount(request.amount)?,
            currency: &request.currency,
            connected_account: request.connected_account.as_deref(),
            platform_fee: request.platform_fee.map(amount).transpose()?,
            payer_email: request.payer_email.as_deref(),
        };

        // One payment of the host is one intent, however often the host repeats the call.
        let key = &request.payment_id;
        ours(api::post("/v1/payment_intents", key, &parameters(&wanted))?)
    }

    fn read_intent(intent_id: String) -> Result<Intent> {
        // The id may come from a callback and becomes part of a path, so only id characters are
        // allowed.
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if intent_id.is_empty() || !intent_id.bytes().all(is_id) {
            return Err(ProviderError::NotFound);
        }
        ours(api::get(&format!("/v1/payment_intents/{intent_id}"))?)
    }

    fn read_callback(callback: Callback) -> std::result::Result<CallbackSubject, CallbackError> {
        let unverified = |why: &str| CallbackError::Unverified(why.into());
        let (_, header) = callback
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("stripe-signature"))
            .ok_or_else(|| unverified("no Stripe-Signature header"))?;
        let signature = callback::parse_signature(header)
            .ok_or_else(|| unverified("the signature header is malformed"))?;
        // A recorded webhook could be replayed forever otherwise.
        if !callback::is_fresh(&signature, clock::now() / 1000) {
            return Err(unverified("the signature is too old"));
        }

        let secret = secrets::open("webhook_secret")
            .ok_or_else(|| unverified("no secret webhook_secret is configured"))?;

        // The host computes the HMAC, so the secret never enters this memory.
        let digest = secret.hmac_sha256(&callback::signed_message(&signature, &callback.body));
        if !callback::matches(&signature, &digest) {
            return Err(unverified("the signature does not match"));
        }

        match callback::read(&callback.body) {
            // The event's status is not passed on: the host reads the intent back (docs/decisions/0026).
            Some(EventSubject::Intent(id)) => Ok(CallbackSubject::Intent(id)),
            Some(EventSubject::Reversal(intent, amount, word)) => {
                Ok(CallbackSubject::Reversal((intent, amount, word)))
            }
            Some(EventSubject::Ignored) => Ok(CallbackSubject::Ignored),
            None => Err(CallbackError::Malformed("not a Stripe webhook".into())),
        }
    }
}

fn unfit(request: &IntentRequest) -> ProviderError {
    ProviderError::Rejected(format!("no amount that {} has there", request.currency))
}

/// Stripe's JavaScript library.
const SCRIPT: &str = "https://js.stripe.com/v3/";

fn ours(answer: IntentAnswer) -> Result<Intent> {
    let publishable_key = api::setting("publishable_key")?;
    let page = settings::get("payment_page")
        .map(|base| format!("{}/{}", base.trim_end_matches('/'), answer.id));
    let currency = answer.currency.to_ascii_uppercase();
    let script = settings::get("script").unwrap_or_else(|| SCRIPT.into());
    Ok(Intent {
        // A configured page brings its own script. Only ours has to load it.
        script: page.is_none().then_some(script),
        page,
        status: match answer.status.as_str() {
            // `succeeded` means that the money has arrived; processing or reserved money is not
            // enough.
            "succeeded" => PaymentStatus::Paid,
            "canceled" => PaymentStatus::Canceled,
            _ => PaymentStatus::RequiresPayment,
        },
        intent_id: answer.id,
        client_secret: answer.client_secret,
        publishable_key,
        amount: from_stripe(&currency, answer.amount),
        currency,
    })
}

crate::bindings::export!(StripeComponent with_types_in crate::bindings);
