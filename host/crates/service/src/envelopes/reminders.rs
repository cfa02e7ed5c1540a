//! The plan of an envelope's reminders, as jobs.

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::job::{RemindByPlan, WarnOfExpiry};
use holdfast_domain::reminders::ReminderPlan;
use holdfast_platform::ServiceError;
use holdfast_store::{StoreError, WriteTransaction, jobs};

/// Checks a plan; `path` leads to it in the body.
pub fn check(plan: &ReminderPlan, path: &[&str]) -> Result<(), ServiceError> {
    let Some((member, range)) = plan.problem() else {
        return Ok(());
    };

    let path = [path, &[member]].concat();
    let message = format!("{member} is out of its range");
    Err(ServiceError::invalid(
        "out_of_range",
        &path,
        range,
        "another number",
        message,
    ))
}

/// Adds the job of the next reminder, if the plan has one left. It looks at `at` who is to be reminded.
pub async fn schedule(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    at: Timestamp,
) -> Result<(), StoreError> {
    let planned = envelope.reminders();
    let Some(planned) = planned.filter(|planned| planned.sent < planned.plan.at_most) else {
        return Ok(());
    };

    let key = key(envelope, planned.sent);
    let job = RemindByPlan {
        envelope: envelope.id.clone(),
        sent: planned.sent,
    };
    jobs::insert(tx, &envelope.org, &job, Some(&key), at).await
}

/// Replaces the job that warns signers before the envelope expires, if its plan asks for that.
pub async fn schedule_warning(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    let key = envelope.id.as_str();
    jobs::remove::<WarnOfExpiry>(tx, &envelope.org, key).await?;
    let planned = envelope.reminders().zip(envelope.expires_at);
    let at = planned.and_then(|(planned, end)| planned.plan.warning(end));
    // Signers who were just invited know the time limit.
    let Some(at) = at.filter(|at| *at > now) else {
        return Ok(());
    };

    let job = WarnOfExpiry {
        envelope: envelope.id.clone(),
    };
    jobs::insert(tx, &envelope.org, &job, Some(key), at).await
}

/// Removes the job of the next reminder.
pub async fn unschedule(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    let Some(planned) = envelope.reminders() else {
        return Ok(());
    };
    let key = key(envelope, planned.sent);
    jobs::remove::<RemindByPlan>(tx, &envelope.org, &key).await
}

/// Returns the key of the job of a reminder. The number is part of it: a step that runs twice adds one job.
fn key(envelope: &Envelope, sent: u8) -> String {
    format!("{} {sent}", envelope.id)
}
