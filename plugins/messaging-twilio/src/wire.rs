//! Responses of Twilio, and the meaning of its errors.
//!
//! Error texts quote the receiver's number, so only their codes are passed on.

use serde::Deserialize;

/// A message as Twilio has taken it.
#[derive(Deserialize)]
pub(crate) struct WireMessage {
    sid: String,
    status: Option<String>,
    error_code: Option<u32>,
}

/// An error response.
#[derive(Deserialize)]
struct WireFailure {
    code: u32,
}

/// Result of a request that Twilio has processed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Id of the message.
    Accepted(String),
    /// Reason why the message will never be delivered.
    Refused(String),
}

/// Reads the body of a success. None if it is not understood.
pub(crate) fn taken(body: &[u8]) -> Option<Taken> {
    let message: WireMessage = serde_json::from_slice(body).ok()?;
    match message.status.as_deref() {
        Some("failed" | "undelivered" | "canceled") => {
            let code = message.error_code.unwrap_or_default();
            Some(Taken::Refused(reason(code)))
        }
        _ if message.sid.is_empty() => None,
        _ => Some(Taken::Accepted(message.sid)),
    }
}

/// Returns the reason of an error response.
pub(crate) fn refusal(status: u16, body: &[u8]) -> String {
    code(body).map_or_else(|| format!("answered {status}"), reason)
}

/// Returns whether the account may not send as the configured sender.
pub(crate) fn is_sender(body: &[u8]) -> bool {
    matches!(code(body), Some(21212 | 21603 | 21606 | 21659 | 21703))
}

/// Returns whether the sender's queue is full.
pub(crate) fn is_full(body: &[u8]) -> bool {
    code(body) == Some(21611)
}

fn code(body: &[u8]) -> Option<u32> {
    let failure: WireFailure = serde_json::from_slice(body).ok()?;
    Some(failure.code)
}

/// Describes the codes that a sender can do something about.
fn reason(code: u32) -> String {
    // Texts of our own: Twilio's quote the receiver's number, and reasons are shown and logged.
    let known = match code {
        21211 | 21217 => "this is no telephone number",
        21408 => "messages to this country are not allowed in the account",
        21610 => "the receiver has stopped messages of this sender",
        21612 => "this sender cannot reach the number",
        21614 | 30006 => "the number receives no text messages",
        0 => return "the message was not accepted".into(),
        _ => return format!("error {code}"),
    };

    format!("{known} (error {code})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_or_refused() {
        let accepted = br#"{"sid":"SM1","status":"queued","error_code":null}"#;
        assert_eq!(taken(accepted), Some(Taken::Accepted("SM1".into())));
        let failed = br#"{"sid":"SM1","status":"failed","error_code":30006}"#;
        let why = "the number receives no text messages (error 30006)";
        assert_eq!(taken(failed), Some(Taken::Refused(why.into())));
        for strange in [&b"{}"[..], b"[]", br#"{"sid":""}"#, b"ok"] {
            assert_eq!(taken(strange), None);
        }
    }

    #[test]
    fn a_refusal_quotes_no_number() {
        let body = br#"{"code":21211,"message":"The 'To' number +15125550142 is not valid."}"#;
        assert_eq!(
            refusal(400, body),
            "this is no telephone number (error 21211)"
        );
        assert_eq!(refusal(400, br#"{"code":63038}"#), "error 63038");
        assert_eq!(refusal(413, b"<html>"), "answered 413");
    }

    #[test]
    fn a_refused_sender_and_a_full_queue_are_no_fault_of_the_number() {
        assert!(is_sender(br#"{"code":21606}"#) && !is_full(br#"{"code":21606}"#));
        assert!(is_full(br#"{"code":21611}"#) && !is_sender(b"<html>"));
    }
}
