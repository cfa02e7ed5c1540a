//! Reminders: mails with a fresh link to signers who have not signed, on a call or by a plan.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::envelopes::lifecycle;
use crate::envelopes::reminders::{check, schedule, schedule_warning, unschedule};
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, Signer, SignerChannel, SignerStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::NextStep;
use holdfast_domain::organization::OrgSettings;
use holdfast_domain::reminders::{PlannedReminders, ReminderPlan};
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::organizations;
use holdfast_platform::permits::legal_holds;
use holdfast_platform::signers::invited_now;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, mails};
use holdfast_store::{WriteTransaction, envelopes, questions, signers};

/// Body of `POST /partner/envelopes/:id/remind`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "signer_email": "jordan.lee@example.com" }]))]
pub struct RemindRequest {
    /// Reminds this signer only; by default all signers who can sign now.
    #[schemars(email)]
    pub signer_email: Option<String>,
}

/// The reminded signers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "reminded": ["jordan.lee@example.com"], "count": 1 }]))]
pub struct RemindedSigners {
    /// E-mail addresses of the reminded signers.
    pub reminded: Vec<String>,
    /// Number of reminded signers.
    pub count: usize,
}

/// Reminds the signers who can sign now and have not.
pub async fn remind(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: RemindRequest,
    answer: &ResponseRecorder<RemindedSigners>,
) -> Result<RemindedSigners, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let remind = EnvelopeTrigger::Remind;
    // The lock keeps a correction from replacing a signer while the reminder is recorded.
    let (envelope, _) = lifecycle::lock_for(core, &mut tx, &caller.org, &id, remind).await?;
    let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let chosen = chosen(&envelope, &signers, request.signer_email.as_deref())?;
    let emails = send(&mut tx, &envelope, &chosen, &caller.actor, now).await?;
    let reminded = RemindedSigners {
        count: emails.len(),
        reminded: emails,
    };
    answer.commit(tx, &reminded).await?;

    Ok(reminded)
}

/// Time after which a planned reminder checks again whether it can be sent.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// Sends reminder number `sent` of an envelope's plan, and plans the next one. Waits while a legal hold covers the
/// envelope, while a question of a signer is open, and for signers who have quiet hours or got a message a short time
/// ago, such as those who just got the turn.
pub async fn by_plan(
    core: &Core,
    org: &OrgId,
    id: &EnvelopeId,
    sent: u8,
) -> Result<NextStep, ServiceError> {
    let now = core.clock.now();
    let later = NextStep::Again(now + LOOK_AGAIN);
    let settings = organizations::read(core, org).await?.settings;
    let mut tx = core.store.begin().await?;
    let Some(mut envelope) = envelopes::lock(&mut tx, org, id).await? else {
        return Ok(NextStep::Done);
    };
    // A repeat after a crash finds that the reminder was counted in the transaction that queued its mails.
    let planned = envelope.reminders().filter(|planned| {
        let is_next = planned.sent == sent && sent < planned.plan.at_most;
        is_next && envelope.status.is_out_for_signing()
    });
    let Some(mut planned) = planned else {
        return Ok(NextStep::Done);
    };
    // The sweep ends it soon, unless its provider cannot be asked for late signatures.
    if envelope.expires_at.is_some_and(|at| at <= now) {
        return Ok(later);
    }
    if is_held_up(core, &mut tx, &envelope).await? {
        return Ok(later);
    }

    let signers = signers::list(&mut tx, org, id).await?;
    // A message that no server has taken yet is on its way: the invitation of a signer who has just got the turn.
    let due_at = |signer: &Signer| match &signer.notice {
        Some(notice) => {
            let due = planned.due(&signer.id, notice.at);
            let quiet = quiet_until(&settings, signer, now);
            quiet.filter(|_| due <= now).unwrap_or(due)
        }
        None => now + LOOK_AGAIN,
    };
    let waiting = told_now(&envelope, &signers);
    let (due, other): (Vec<&Signer>, Vec<&Signer>) = waiting
        .into_iter()
        .partition(|signer| due_at(signer) <= now);
    let next = other.into_iter().map(due_at).min();
    if due.is_empty() {
        return Ok(next.map_or(later, NextStep::Again));
    }

    send(&mut tx, &envelope, &due, "system", now).await?;
    for signer in &due {
        if !planned.reminded.contains(&signer.id) {
            planned.reminded.push(signer.id.clone());
        }
    }
    planned.sent = sent + 1;
    let again = now + planned.plan.wait(false);
    let next = next.map_or(again, |next| next.min(again));
    envelope.set_reminders(planned);
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    schedule(&mut tx, &envelope, next).await?;
    tx.commit().await?;

    Ok(NextStep::Done)
}

/// Returns the signers who can sign now, and who get messages about it. Without mails, signers sign in person, apart
/// from those who get text messages.
fn told_now<'a>(envelope: &Envelope, signers: &'a [Signer]) -> Vec<&'a Signer> {
    let is_told =
        |signer: &&Signer| envelope.sending.send_email || signer.notify_by != SignerChannel::Email;
    invited_now(envelope, signers).filter(is_told).collect()
}

/// Returns the end of the quiet hours that a signer has now, in the signer's time zone or that of the organization.
fn quiet_until(settings: &OrgSettings, signer: &Signer, now: Timestamp) -> Option<Timestamp> {
    let zone = signer.time_zone.as_ref();
    let zone = zone.unwrap_or(&settings.dates.time_zone);
    settings.quiet_hours.as_ref()?.end(zone, now)
}

/// Whether signers get no messages of a plan for now.
async fn is_held_up(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
) -> Result<bool, ServiceError> {
    // The envelope waits for the sender, who has not answered a question of a signer who still has to sign.
    if questions::has_open(tx, &envelope.org, &envelope.id).await? {
        return Ok(true);
    }
    // A case has begun: people of the organization decide whether signers are still asked.
    if legal_holds::on(tx, envelope).await?.is_some() {
        return Ok(true);
    }
    match lifecycle::decide(core, envelope, EnvelopeTrigger::Remind).await {
        Ok(_) => Ok(false),
        // The rules of the organization can change.
        Err(ServiceError::Refused(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Reminds the signers who can sign now that the envelope expires soon, each of them once for each time limit.
pub async fn warn_of_expiry(
    core: &Core,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<NextStep, ServiceError> {
    let now = core.clock.now();
    let settings = organizations::read(core, org).await?.settings;
    let mut tx = core.store.begin().await?;
    let Some(mut envelope) = envelopes::lock(&mut tx, org, id).await? else {
        return Ok(NextStep::Done);
    };

    let planned = envelope.reminders().zip(envelope.expires_at);
    let Some((mut planned, end)) = planned.filter(|_| envelope.status.is_out_for_signing()) else {
        return Ok(NextStep::Done);
    };
    let Some(at) = planned.plan.warning(end).filter(|_| end > now) else {
        return Ok(NextStep::Done);
    };
    // The time limit was moved.
    if at > now {
        return Ok(NextStep::Again(at));
    }
    if is_held_up(core, &mut tx, &envelope).await? {
        return Ok(NextStep::Again(now + LOOK_AGAIN));
    }

    // A repeat after a crash finds who was warned of this time limit.
    if planned.warned_of != Some(end) {
        planned.warned_of = Some(end);
        planned.warned.clear();
    }
    let signers = signers::list(&mut tx, org, id).await?;
    let mut waiting = told_now(&envelope, &signers);
    waiting.retain(|signer| !planned.warned.contains(&signer.id));
    let quiet = |signer: &Signer| quiet_until(&settings, signer, now);
    let (asleep, due): (Vec<&Signer>, Vec<&Signer>) = waiting
        .into_iter()
        .partition(|signer| quiet(signer).is_some());
    let next = asleep.into_iter().filter_map(quiet).min();
    let next = next.map_or(NextStep::Done, NextStep::Again);
    if due.is_empty() {
        return Ok(next);
    }

    for signer in &due {
        mails::remind(&mut tx, &envelope, signer, now).await?;
        planned.warned.push(signer.id.clone());
    }
    let emails: Vec<&str> = due.iter().map(|signer| signer.email.as_str()).collect();
    let data = json!({ "expires_at": end, "reminded": emails });
    let event = EventType::EnvelopeExpiresSoon;
    events::record_and_emit(&mut tx, &envelope, "system", event, data, now).await?;

    envelope.set_reminders(planned);
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    tx.commit().await?;

    Ok(next)
}

/// Changes the plan of an unfinished envelope. Reminders that were sent count.
///
/// # Errors
///
/// `Conflict` for an envelope that is finished, `Invalid` for a plan out of its ranges.
pub async fn plan(
    core: &Core,
    caller: &Caller,
    id: &str,
    plan: ReminderPlan,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    check(&plan, &[])?;
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let mut envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    if !envelope.status.is_unfinished() || envelope.kind != EnvelopeKind::Esign {
        return Err(ServiceError::Conflict(format!(
            "Cannot plan reminders of an envelope with status: {}",
            envelope.status
        )));
    }

    let before = envelope.reminders();
    let planned = before
        .clone()
        .unwrap_or_else(|| PlannedReminders::new(plan));
    envelope.set_reminders(PlannedReminders { plan, ..planned });
    envelope.updated_at = now;
    envelopes::set_metadata(&mut tx, &envelope).await?;
    // A job with the former times would remind too early or too late.
    unschedule(&mut tx, &envelope).await?;
    if envelope.status.is_out_for_signing() {
        // The job itself finds the signers for which the new times have passed.
        schedule(&mut tx, &envelope, now).await?;
        schedule_warning(&mut tx, &envelope, now).await?;
    }

    let before = before.map(|planned| planned.plan);
    let details = json!({ "from": before, "to": plan });
    let action = "envelope.reminders_planned";
    events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
    answer.commit(tx, &envelope).await?;

    Ok(envelope)
}

/// Queues the mails and messages of a reminder, and records it. Returns the addresses.
async fn send(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    chosen: &[&Signer],
    actor: &str,
    now: Timestamp,
) -> Result<Vec<String>, ServiceError> {
    for signer in chosen {
        mails::remind(tx, envelope, signer, now).await?;
    }

    let emails: Vec<String> = chosen.iter().map(|signer| signer.email.clone()).collect();
    let data = json!({ "reminded": emails });
    let sent = EventType::EnvelopeReminderSent;
    events::record_and_emit(tx, envelope, actor, sent, data, now).await?;
    Ok(emails)
}

/// Returns the signers who can sign now; with an address, only those with that address.
fn chosen<'a>(
    envelope: &Envelope,
    signers: &'a [Signer],
    email: Option<&str>,
) -> Result<Vec<&'a Signer>, ServiceError> {
    let turn: Vec<&Signer> = invited_now(envelope, signers).collect();
    let Some(email) = email else {
        return Ok(turn);
    };

    let refuse = |code: &str, expected: &str, message: String| {
        let issue = ValidationIssue::new(code, &["signer_email"], expected, email, message);
        Err(ServiceError::Invalid(vec![issue]))
    };
    let named: Vec<&Signer> = signers
        .iter()
        .filter(|signer| signer.email.eq_ignore_ascii_case(email))
        .collect();
    let unsigned: Vec<&Signer> = named
        .iter()
        .copied()
        .filter(|signer| signer.status != SignerStatus::Completed)
        .collect();

    // The reason that helps the caller most comes first: unknown, signed already, not yet.
    if named.is_empty() {
        let message = format!("The envelope has no signer {email}");
        return refuse("unknown_signer", "a signer of the envelope", message);
    }
    if unsigned.is_empty() {
        let message = format!("{email} has already signed");
        return refuse("already_signed", "a signer who has not signed", message);
    }

    // Signers can share the address, and it may be the turn of only one of them.
    let now: Vec<&Signer> = turn
        .into_iter()
        .filter(|signer| {
            unsigned
                .iter()
                .any(|other| other.position == signer.position)
        })
        .collect();
    if now.is_empty() {
        let message = format!("It is not {email}'s turn to sign yet");
        return refuse("not_their_turn", "the signer whose turn it is", message);
    }

    Ok(now)
}
