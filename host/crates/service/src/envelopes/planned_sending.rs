//! Sending of a draft at a later time, by a job.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::envelopes::sending::{self, SendEnvelope};
use crate::templates::pages::PageCache;
use holdfast_components::providers::ProviderError;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, PlannedSending, PlannedTemplate, SendingFailure};
use holdfast_domain::event::EventType;
use holdfast_domain::id::OrgId;
use holdfast_domain::job::{NextStep, SendPlanned};
use holdfast_domain::template::{Origin, Template};
use holdfast_platform::access;
use holdfast_platform::envelope_locks::EnvelopeLocks;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError, mails};
use holdfast_store::{StoreError, WriteTransaction, envelopes, jobs, templates};

/// Time after the planned one for which a failure of this service or of a provider is tried again.
const TRIED_FOR: Duration = Duration::from_secs(86_400);

/// Latest planned time from now: a year.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Body of `PUT /partner/envelopes/:id/send-at`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "send_at": "2027-01-31T09:00:00Z" }]))]
pub struct PlanSending {
    /// When the draft is sent: in the future, within a year, and before the envelope expires. Null ends
    /// the plan.
    pub send_at: Option<Timestamp>,
}

/// Checks a time to send at.
///
/// # Errors
///
/// `Invalid` for a time in the past, more than a year away, or not before the expiry.
pub fn check(
    at: Timestamp,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let is_in_range = at > now && at <= now + LONGEST;
    if is_in_range && expires_at.is_none_or(|expires_at| at < expires_at) {
        return Ok(());
    }

    Err(ServiceError::invalid(
        "out_of_range",
        &["send_at"],
        "a time in the future, within a year and before the envelope expires",
        at.to_string(),
        "The time to send at has to be in the future, within a year, and before the envelope expires",
    ))
}

/// Refuses an envelope that is no draft: its plan would have no effect.
pub(super) fn check_draft(envelope: &Envelope) -> Result<(), ServiceError> {
    if envelope.is_draft() {
        return Ok(());
    }
    if envelope.batch.is_some() {
        let why = "Cannot plan the sending of an envelope of a batch";
        return Err(ServiceError::Conflict(why.into()));
    }

    Err(ServiceError::Conflict(format!(
        "Cannot plan the sending of an envelope with status: {}",
        envelope.status
    )))
}

/// Returns the plan of a caller for a time.
pub fn planned_by(caller: &Caller, at: Timestamp, template: Option<&Template>) -> PlannedSending {
    let library = template.filter(|template| template.origin == Origin::Library);
    PlannedSending {
        template: library.map(|template| PlannedTemplate {
            id: template.id.clone(),
            content: template.content(),
        }),
        at,
        actor: caller.actor.clone(),
        email: caller.email.clone(),
        role: caller.role,
    }
}

/// Adds the job of an envelope's planned sending, if it has one.
pub async fn schedule(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<(), StoreError> {
    let Some(planned) = envelope.planned_sending() else {
        return Ok(());
    };
    let job = SendPlanned {
        envelope: envelope.id.clone(),
        at: planned.at,
    };
    let key = key(envelope, planned.at);
    jobs::insert(tx, &envelope.org, &job, Some(&key), planned.at).await
}

/// Returns the key of the job for a time.
fn key(envelope: &Envelope, at: Timestamp) -> String {
    format!("{} {at}", envelope.id)
}

/// Plans the sending of a draft, moves it to another time, or ends the plan.
///
/// # Errors
///
/// `Conflict` for an envelope that is no draft, `Invalid` for a time out of range.
pub async fn plan(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: PlanSending,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    check_draft(&envelope)?;
    if let Some(at) = request.send_at {
        check(at, envelope.expires_at, now)?;
    }

    let before = envelope.planned_sending().map(|planned| planned.at);
    if let Some(before) = before {
        jobs::remove::<SendPlanned>(&mut tx, &envelope.org, &key(&envelope, before)).await?;
    }
    let template = match &envelope.template {
        Some(template) => templates::get(&mut tx, &envelope.org, template).await?,
        None => None,
    };
    let is_hidden = |template: &Template| !caller.sees(template);
    if request.send_at.is_some() && template.as_ref().is_some_and(is_hidden) {
        return Err(ServiceError::NotFound("Template"));
    }

    let planned = request.send_at;
    let planned = planned.map(|at| planned_by(caller, at, template.as_ref()));
    envelope.plan_sending(planned.as_ref());
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    schedule(&mut tx, &envelope).await?;

    let details = json!({ "from": before, "to": request.send_at });
    let action = "envelope.sending_planned";
    events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
    answer.commit(tx, &envelope).await?;

    Ok(envelope)
}

/// Sends a draft at its planned time. A refusal is recorded on the envelope and ends the plan.
pub async fn send(
    core: &Core,
    locks: &EnvelopeLocks,
    pages: &Arc<PageCache>,
    org: &OrgId,
    job: &SendPlanned,
) -> Result<NextStep, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = envelopes::get(&mut connection, org, &job.envelope).await?;
    drop(connection);

    // Sent, voided or moved to another time meanwhile; a repeat after a crash ends here, too.
    let planned = found.as_ref().and_then(Envelope::planned_sending);
    let (Some(envelope), Some(planned)) = (found, planned.filter(|planned| planned.at == job.at))
    else {
        return Ok(NextStep::Done);
    };

    if let Some(why) = no_longer_holds(core, &envelope, &planned).await? {
        return refused(core, &envelope, job, &why).await;
    }

    let caller = Caller {
        actor: planned.actor,
        email: planned.email,
        ..Caller::system(org.clone())
    };
    let (id, request) = (job.envelope.as_str(), SendEnvelope::default());
    let answer = ResponseRecorder::unrecorded();
    let sent = sending::send(core, locks, pages, &caller, id, request, &answer).await;
    match sent {
        Ok(_) => Ok(NextStep::Done),
        // A document that leaves days later can be out of date, so the sender decides again.
        Err(error) if is_refusal(&error) || core.clock.now() > job.at + TRIED_FOR => {
            tracing::warn!(envelope = %envelope.id, %error, "a planned envelope was not sent");
            refused(core, &envelope, job, &error).await
        }
        Err(error) => Err(error),
    }
}

/// Returns why a plan does not hold any more.
async fn no_longer_holds(
    core: &Core,
    envelope: &Envelope,
    planned: &PlannedSending,
) -> Result<Option<ServiceError>, ServiceError> {
    if !access::may_still_send(core, &envelope.org, &planned.actor).await? {
        let why = "Whoever planned the sending may not send any more";
        return Ok(Some(ServiceError::NotAllowed(why)));
    }

    // The sender may have chosen another document since.
    let fixed = planned.template.as_ref();
    let Some(fixed) = fixed.filter(|fixed| envelope.template.as_ref() == Some(&fixed.id)) else {
        return Ok(None);
    };
    let mut connection = core.store.read().await?;
    let template = templates::get(&mut connection, &envelope.org, &fixed.id).await?;
    if let (Some(template), Some(role), Some(email)) = (&template, planned.role, &planned.email)
        && !access::still_sees(&mut connection, (role, email.as_str()), template).await?
    {
        let why = "Whoever planned the sending does not see the template any more";
        return Ok(Some(ServiceError::NotAllowed(why)));
    }
    drop(connection);

    // One that was deleted is refused by the sending itself.
    let is_other = template.is_some_and(|template| template.content() != fixed.content);
    let why = "The template was changed after the sending was planned";
    Ok(is_other.then(|| ServiceError::Conflict(why.into())))
}

/// Returns whether a repeat would be refused again.
fn is_refusal(error: &ServiceError) -> bool {
    let provider = match error {
        ServiceError::Provider(error) | ServiceError::OtherProvider(_, error) => Some(error),
        _ => None,
    };
    if let Some(error) = provider {
        return matches!(
            error,
            ProviderError::Rejected(_) | ProviderError::NotFound | ProviderError::NotConfigured(_)
        );
    }

    matches!(
        error,
        ServiceError::Invalid(_)
            | ServiceError::Malformed(_)
            | ServiceError::Unreadable(_)
            | ServiceError::NotFound(_)
            | ServiceError::Refused(_)
            | ServiceError::Control(_)
            | ServiceError::Change(_)
            | ServiceError::Statement(_)
            | ServiceError::NotAdmitted(_)
            | ServiceError::Semantic(_)
            | ServiceError::Conflict(_)
            | ServiceError::NotAllowed(_)
            | ServiceError::Problem(_)
            | ServiceError::NotConfigured(_)
    )
}

/// Records why an envelope was not sent. Looks again if it was changed since it was read.
async fn refused(
    core: &Core,
    before: &Envelope,
    job: &SendPlanned,
    error: &ServiceError,
) -> Result<NextStep, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let locked = envelopes::lock(&mut tx, &before.org, &before.id).await?;
    let Some(mut envelope) = locked else {
        return Ok(NextStep::Done);
    };
    if envelope.updated_at != before.updated_at {
        return Ok(NextStep::Again(now));
    }

    let failure = SendingFailure {
        planned_for: job.at,
        reason: reason(error),
    };
    envelope.fail_sending(&failure);
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    let data = json!(failure);
    let not_sent = EventType::EnvelopeNotSent;
    events::record_and_emit(&mut tx, &envelope, "system", not_sent, data, now).await?;
    mails::not_sent(&mut tx, &envelope, now).await?;
    tx.commit().await?;

    Ok(NextStep::Done)
}

/// Returns a refusal in words: each problem of a request that has several. Texts of dependencies can quote settings or
/// persons, so they are in the log alone.
fn reason(error: &ServiceError) -> String {
    match error {
        ServiceError::Invalid(issues) => {
            let messages: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
            messages.join("; ")
        }
        ServiceError::Provider(_) | ServiceError::OtherProvider(..) => {
            "A provider refused it, or could not be reached for a day".to_owned()
        }
        ServiceError::Component(_)
        | ServiceError::Store(_)
        | ServiceError::Files(_)
        | ServiceError::Seal(_)
        | ServiceError::Internal(_) => "This service could not send it for a day".to_owned(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_a_provider_ends_a_plan_and_an_outage_does_not() {
        let refused = ProviderError::Rejected("no such role: Ann".into());
        let refused = ServiceError::Provider(refused);
        assert!(is_refusal(&refused));
        assert!(!reason(&refused).contains("Ann"));

        let away = ProviderError::Unreachable("no route".into());
        for failure in [ServiceError::Provider(away), ServiceError::Busy] {
            assert!(!is_refusal(&failure), "{failure}");
        }
    }
}
