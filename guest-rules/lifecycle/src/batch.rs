//! Transition table of the bulk batch.

use crate::refusals::{batch_status_text, refuse};
use crate::types::{BatchStatus, BatchTrigger, Refusal, RefusalReason};

use BatchStatus::{Cancelled, Completed, Draft, Failed, Ready, Running};

type Answer = Result<BatchStatus, Refusal>;

/// Returns the status of a bulk batch after `trigger`, or the refusal.
pub fn batch(current: Option<BatchStatus>, trigger: BatchTrigger) -> Answer {
    let Some(status) = current else {
        return match trigger {
            BatchTrigger::Create => Ok(Draft),
            _ => refuse(RefusalReason::Missing, "Batch does not exist"),
        };
    };

    match trigger {
        BatchTrigger::Create => refuse(RefusalReason::Status, "Batch exists already"),
        BatchTrigger::SetItems => match status {
            Draft | Ready => Ok(Ready),
            Running | Completed | Cancelled | Failed => by_status("edit", status),
        },
        BatchTrigger::Update => match status {
            Draft | Ready => Ok(status),
            Running | Completed | Cancelled | Failed => by_status("edit", status),
        },
        BatchTrigger::Submit => match status {
            Draft | Ready => Ok(Running),
            Running | Completed | Cancelled | Failed => {
                refuse(RefusalReason::Status, "Batch has already been submitted")
            }
        },
        // The worker repeats a step after a crash, so its own result is no refusal.
        // The same holds for a failure.
        BatchTrigger::Finish => match status {
            Running | Completed => Ok(Completed),
            Draft | Ready | Cancelled | Failed => by_status("finish", status),
        },
        BatchTrigger::Fail => match status {
            Running | Failed => Ok(Failed),
            Draft | Ready | Completed | Cancelled => by_status("fail", status),
        },
        // A draft has nothing to stop: it is deleted.
        BatchTrigger::Cancel => match status {
            Running | Cancelled => Ok(Cancelled),
            Draft | Ready | Completed | Failed => by_status("cancel", status),
        },
        BatchTrigger::Delete => match status {
            Draft | Ready => Ok(status),
            Running | Completed | Cancelled | Failed => by_status("delete", status),
        },
    }
}

fn by_status(verb: &str, status: BatchStatus) -> Answer {
    refuse(
        RefusalReason::Status,
        format!(
            "Cannot {verb} batch with status: {}",
            batch_status_text(status)
        ),
    )
}
