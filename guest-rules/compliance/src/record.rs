//! Helpers over the facts of a record, independent of the statute.

use crate::types::EnvelopeStatus;

/// Returns whether a storage path is set.
pub(crate) fn is_set(path: Option<&str>) -> bool {
    path.is_some_and(|path| !path.is_empty())
}

/// Returns whether `text` is a SHA-256 digest in hexadecimal.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Compares two mail addresses without regard to case, as mail systems do.
pub(crate) fn same_email(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim(), right.trim());
    if left.is_ascii() && right.is_ascii() {
        left.eq_ignore_ascii_case(right)
    } else {
        left.to_lowercase() == right.to_lowercase()
    }
}

/// Returns the status as the API spells it.
pub fn status_text(status: EnvelopeStatus) -> &'static str {
    match status {
        EnvelopeStatus::Pending => "pending",
        EnvelopeStatus::Uploaded => "uploaded",
        EnvelopeStatus::Preparing => "preparing",
        EnvelopeStatus::Sent => "sent",
        EnvelopeStatus::Viewed => "viewed",
        EnvelopeStatus::Completed => "completed",
        EnvelopeStatus::Vaulted => "vaulted",
        EnvelopeStatus::VaultedOut => "vaulted_out",
        EnvelopeStatus::Declined => "declined",
        EnvelopeStatus::Voided => "voided",
        EnvelopeStatus::Expired => "expired",
    }
}
