//! Verifying and reading a Stripe webhook.
//!
//! `Stripe-Signature: t=<unix>,v1=<hex>[,v1=…]`, where v1 is HMAC-SHA256 over `<t>.` and the raw
//! body with the whole secret of the endpoint as the key. During a rotation there is a v1 for each
//! secret; other schemes are ignored. Signatures older than five minutes are refused.

use serde::Deserialize;
use serde_json::Value;

use crate::intent::from_stripe;

/// Tolerance for the time of a signature, in seconds.
const TOLERANCE_SECONDS: u64 = 300;

/// A parsed signature header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallbackSignature<'a> {
    /// Unix seconds, as text: part of the signed message.
    pub time: &'a str,
    /// Digests in hexadecimal, one for each valid secret.
    pub digests: Vec<&'a str>,
}

/// Parses the header. Returns `None` without a time or without a digest of a known scheme.
pub(crate) fn parse_signature(header: &str) -> Option<CallbackSignature<'_>> {
    let mut time = None;
    let mut digests = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", value)) => time = Some(value),
            Some(("v1", value)) => digests.push(value),
            _ => {}
        }
    }

    let time = time?;
    // The text of the time is part of the signed message, so it is kept as it is and only checked.
    let digits = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !digests.is_empty()).then_some(CallbackSignature { time, digests })
}

/// Returns whether the signature's time is close enough to `now` (Unix seconds).
pub(crate) fn is_fresh(signature: &CallbackSignature<'_>, now: u64) -> bool {
    signature
        .time
        .parse::<u64>()
        .is_ok_and(|time| time.abs_diff(now) <= TOLERANCE_SECONDS)
}

/// Returns the signed message: `<t>.` and the body.
pub(crate) fn signed_message(signature: &CallbackSignature<'_>, body: &[u8]) -> Vec<u8> {
    [signature.time.as_bytes(), b".", body].concat()
}

/// Returns whether any digest of the header equals this one. Each is compared in constant time.
pub(crate) fn matches(signature: &CallbackSignature<'_>, digest: &[u8]) -> bool {
    let expected: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let same = |given: &&&str| {
        let given = given.to_ascii_lowercase();
        let difference = expected
            .bytes()
            .zip(given.bytes())
            .fold(expected.len() ^ given.len(), |sum, (left, right)| {
                sum | usize::from(left ^ right)
            });
        difference == 0
    };

    // Compares all of them, so the time does not reveal which one matches.
    signature.digests.iter().filter(same).count() > 0
}

#[derive(Deserialize)]
struct StripeEvent {
    #[serde(rename = "type")]
    event_type: String,
    data: EventData,
}

#[derive(Deserialize)]
struct EventData {
    object: Value,
}

/// Subject of a verified webhook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventSubject {
    /// This intent changed.
    Intent(String),
    /// A refund, or a dispute by the payer: intent, total in minor units, and Stripe's term.
    Reversal(String, u64, String),
    Ignored,
}

/// Parses a webhook. Returns `None` if the body is not as documented by Stripe.
pub(crate) fn read(body: &[u8]) -> Option<EventSubject> {
    let event: StripeEvent = serde_json::from_slice(body).ok()?;
    let object = &event.data.object;
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let amount = |name: &str| object.get(name).and_then(Value::as_u64);
    let kind = event.event_type.as_str();
    if kind.starts_with("payment_intent.") {
        return Some(EventSubject::Intent(text("id")?));
    }

    // A charge without an intent was not made by this plugin.
    let Some(intent) = text("payment_intent") else {
        return Some(EventSubject::Ignored);
    };

    let (amount, word) = match kind {
        // Total of the refunds of the charge so far.
        "charge.refunded" => (amount("amount_refunded")?, kind.to_owned()),
        "charge.dispute.created" => (amount("amount")?, kind.to_owned()),
        // `status` names the winner of the dispute.
        "charge.dispute.closed" => (amount("amount")?, format!("{kind} {}", text("status")?)),
        // Movements during a dispute are covered by its closing event.
        _ => return Some(EventSubject::Ignored),
    };

    let currency = text("currency").unwrap_or_default().to_ascii_uppercase();
    Some(EventSubject::Reversal(
        intent,
        from_stripe(&currency, amount),
        word,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const TWO: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn digest() -> Vec<u8> {
        (0..32).map(|index| (index % 16) * 0x11).collect()
    }

    #[test]
    fn a_stripe_signature_has_a_time_and_digests_of_the_known_scheme() {
        let header = format!("t=1763720000,v0=abc,v1={TWO}, v1={ONE}");
        let signature = parse_signature(&header).unwrap();
        assert_eq!(signature.time, "1763720000");
        assert_eq!(signature.digests, [TWO, ONE]);
        assert_eq!(signed_message(&signature, b"{}"), b"1763720000.{}");

        for wrong in [
            "",
            "t=1763720000",
            &format!("v1={ONE}"),
            &format!("t=,v1={ONE}"),
            &format!("t=soon,v1={ONE}"),
            &format!("t=1763720000,v0={ONE}"),
        ] {
            assert_eq!(parse_signature(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn one_matching_digest_of_several_is_accepted() {
        let matching = |header: String| matches(&parse_signature(&header).unwrap(), &digest());
        assert!(matching(format!("t=1,v1={ONE}")));
        assert!(matching(format!("t=1,v1={TWO},v1={ONE}")));
        assert!(matching(format!("t=1,v1={}", ONE.to_ascii_uppercase())));
        assert!(!matching(format!("t=1,v1={TWO}")));
        assert!(!matching(format!("t=1,v1={}", &ONE[..63])));
    }

    #[test]
    fn a_signature_is_valid_for_five_minutes_in_both_directions() {
        let header = format!("t=1000,v1={ONE}");
        let signature = parse_signature(&header).unwrap();
        assert!(is_fresh(&signature, 700) && is_fresh(&signature, 1300));
        assert!(!is_fresh(&signature, 699) && !is_fresh(&signature, 1301));
    }

    #[test]
    fn only_payment_intents_and_reversals_are_read_from_events() {
        let subject = |text: &str| read(text.as_bytes());
        assert_eq!(
            subject(r#"{"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1"}}}"#),
            Some(EventSubject::Intent("pi_1".into()))
        );

        let refund = r#"{"type":"charge.refunded","data":{"object":
            {"id":"ch_1","payment_intent":"pi_1","amount":900,"amount_refunded":400}}}"#;
        assert_eq!(
            subject(refund),
            Some(EventSubject::Reversal(
                "pi_1".into(),
                400,
                "charge.refunded".into()
            ))
        );

        let dispute = r#"{"type":"charge.dispute.created","data":{"object":
            {"id":"dp_1","payment_intent":"pi_1","amount":900}}}"#;
        assert_eq!(
            subject(dispute),
            Some(EventSubject::Reversal(
                "pi_1".into(),
                900,
                "charge.dispute.created".into()
            ))
        );

        let closed = r#"{"type":"charge.dispute.closed","data":{"object":
            {"id":"dp_1","payment_intent":"pi_1","amount":900,"status":"won"}}}"#;
        assert_eq!(
            subject(closed),
            Some(EventSubject::Reversal(
                "pi_1".into(),
                900,
                "charge.dispute.closed won".into()
            ))
        );

        for ignored in [
            r#"{"type":"charge.dispute.funds_withdrawn","data":{"object":{"id":"dp_1","payment_intent":"pi_1","amount":900}}}"#,
            r#"{"type":"customer.created","data":{"object":{"id":"cus_1"}}}"#,
            r#"{"type":"charge.refunded","data":{"object":{"id":"ch_1","payment_intent":null,"amount_refunded":1}}}"#,
        ] {
            assert_eq!(subject(ignored), Some(EventSubject::Ignored));
        }

        for malformed in [
            "[]",
            r#"{"type":"payment_intent.succeeded","data":{"object":{}}}"#,
            r#"{"type":"charge.refunded","data":{"object":{"payment_intent":"pi_1"}}}"#,
        ] {
            assert_eq!(subject(malformed), None, "{malformed}");
        }
    }
}
