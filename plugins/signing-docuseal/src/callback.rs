//! Verifying and reading a DocuSeal webhook.
//!
//! `X-Docuseal-Signature: <unix>.<hex>`, where hex is HMAC-SHA256 over `<unix>.` and the raw body
//! with the whole secret string as the key. The time is that of the delivery attempt; five minutes
//! in either direction are tolerated.

use serde_json::Value;

use crate::wire::WireHook;

/// Tolerance for the time of a signature, in seconds.
const TOLERANCE_SECONDS: u64 = 300;

/// A parsed signature header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HookSignature<'a> {
    /// Unix seconds, as text: part of the signed message.
    pub time: &'a str,
    pub hex: &'a str,
}

/// Parses the header. Returns `None` if it does not have the documented shape.
pub(crate) fn parse_signature(header: &str) -> Option<HookSignature<'_>> {
    let (time, hex) = header.trim().split_once('.')?;
    // The text of the time is part of the signed message, so it is kept as it is and only checked.
    let digits = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    (digits && hexadecimal).then_some(HookSignature { time, hex })
}

/// Returns whether the signature's time is close enough to `now` (Unix seconds).
pub(crate) fn is_fresh(signature: &HookSignature<'_>, now: u64) -> bool {
    signature
        .time
        .parse::<u64>()
        .is_ok_and(|time| time.abs_diff(now) <= TOLERANCE_SECONDS)
}

/// Returns the signed message: `<unix>.` and the body.
pub(crate) fn signed_message(signature: &HookSignature<'_>, body: &[u8]) -> Vec<u8> {
    [signature.time.as_bytes(), b".", body].concat()
}

/// Compares the digest with the header in constant time.
pub(crate) fn matches(signature: &HookSignature<'_>, digest: &[u8]) -> bool {
    let expected: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let given = signature.hex.to_ascii_lowercase();
    // Every byte is compared: a comparison that stops early would tell a forger how many are right.
    let difference = expected
        .bytes()
        .zip(given.bytes())
        .fold(expected.len() ^ given.len(), |sum, (left, right)| {
            sum | usize::from(left ^ right)
        });

    difference == 0
}

/// Subject of a verified webhook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookSubject {
    Submission(String),
    /// Submitter and submission.
    Submitter(String, String),
    Ignored,
}

/// Parses a webhook. Returns `None` if the body is not as documented by DocuSeal.
pub(crate) fn read(body: &[u8]) -> Option<HookSubject> {
    let hook: WireHook = serde_json::from_slice(body).ok()?;
    let id = |key: &str| {
        hook.data
            .get(key)
            .and_then(Value::as_i64)
            .map(|id| id.to_string())
    };
    if hook.event_type.starts_with("form.") {
        // Some events name the submission in an object of its own.
        let submission = id("submission_id").or_else(|| {
            let submission = hook.data.get("submission")?.get("id")?.as_i64()?;
            Some(submission.to_string())
        })?;
        return Some(HookSubject::Submitter(id("id")?, submission));
    }

    if hook.event_type.starts_with("submission.") {
        return Some(HookSubject::Submission(id("id")?));
    }

    Some(HookSubject::Ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn a_docuseal_signature_has_a_time_and_a_digest() {
        let header = format!("1763720000.{HEX}");
        let signature = parse_signature(&header).unwrap();
        assert_eq!(signature.time, "1763720000");
        assert_eq!(signed_message(&signature, b"{}"), b"1763720000.{}");

        for wrong in [
            "",
            "1763720000",
            HEX,
            &format!("soon.{HEX}"),
            "1763720000.abc",
        ] {
            assert_eq!(parse_signature(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_valid_for_five_minutes_in_both_directions() {
        let header = format!("1000.{HEX}");
        let signature = parse_signature(&header).unwrap();
        assert!(is_fresh(&signature, 1000));
        assert!(is_fresh(&signature, 1300));
        assert!(is_fresh(&signature, 700));
        assert!(!is_fresh(&signature, 1301));
        assert!(!is_fresh(&signature, 699));
    }

    #[test]
    fn a_digest_is_compared_case_insensitively_and_completely() {
        let header = format!("1000.{}", HEX.to_ascii_uppercase());
        let signature = parse_signature(&header).unwrap();
        let mut digest: Vec<u8> = (0..32).map(|index| (index % 16) * 0x11).collect();
        assert!(matches(&signature, &digest));
        digest[31] ^= 1;
        assert!(!matches(&signature, &digest));
        assert!(!matches(&signature, &digest[..31]));
    }

    #[test]
    fn form_events_name_a_submitter_and_submission_events_a_submission() {
        let subject = |text: &str| read(text.as_bytes());
        assert_eq!(
            subject(r#"{"event_type":"form.completed","data":{"id":7,"submission_id":3}}"#),
            Some(HookSubject::Submitter("7".into(), "3".into()))
        );
        assert_eq!(
            subject(r#"{"event_type":"form.viewed","data":{"id":7,"submission":{"id":3}}}"#),
            Some(HookSubject::Submitter("7".into(), "3".into()))
        );
        assert_eq!(
            subject(r#"{"event_type":"submission.archived","data":{"id":3,"archived_at":"x"}}"#),
            Some(HookSubject::Submission("3".into()))
        );
        assert_eq!(
            subject(r#"{"event_type":"template.updated","data":{"id":3}}"#),
            Some(HookSubject::Ignored)
        );

        assert_eq!(
            subject(r#"{"event_type":"form.completed","data":{}}"#),
            None
        );
        assert_eq!(subject("[]"), None);
    }
}
