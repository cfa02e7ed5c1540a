//! Message texts of refusals.

use crate::types::{BatchStatus, EnvelopeStatus, Refusal, RefusalReason};

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

pub(crate) fn batch_status_text(status: BatchStatus) -> &'static str {
    match status {
        BatchStatus::Draft => "draft",
        BatchStatus::Ready => "ready",
        BatchStatus::Running => "running",
        BatchStatus::Completed => "completed",
        BatchStatus::Cancelled => "cancelled",
        BatchStatus::Failed => "failed",
    }
}

/// Refuses with `Cannot <verb> envelope with status: <status>`, the pattern of the specification.
pub(crate) fn by_status<T>(verb: &str, status: EnvelopeStatus) -> Result<T, Refusal> {
    refuse(
        RefusalReason::Status,
        format!(
            "Cannot {verb} envelope with status: {}",
            status_text(status)
        ),
    )
}

pub(crate) fn refuse<T>(reason: RefusalReason, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal {
        reason,
        message: message.into(),
    })
}
