//! What the facts of a record say, apart from any statute.

use crate::types::EnvelopeStatus;

/// Whether something is stored there.
pub(crate) fn is_set(path: Option<&str>) -> bool {
    path.is_some_and(|path| !path.is_empty())
}

/// Whether a text is a digest of this kind.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Mail addresses are compared without case, as mail systems treat them.
pub(crate) fn same_email(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim(), right.trim());
    if left.is_ascii() && right.is_ascii() {
        left.eq_ignore_ascii_case(right)
    } else {
        left.to_lowercase() == right.to_lowercase()
    }
}

/// The status as it is written in the API.
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
