//! Expiry of envelopes that were not completed in time (contract, section 3:
//! `envelope_ttl_days`).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::envelopes::lifecycle;
use crate::envelopes::reminders::schedule_warning;
use crate::{envelopes as envelope_service, signing};
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer, SignerStatus};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::ArchiveSubmission;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{WriteTransaction, envelopes, jobs, signers};

/// Number of envelopes read in one query.
const AT_ONCE: i64 = 100;

/// Latest expiry from now: five years.
const LONGEST: Duration = Duration::from_secs(5 * 366 * 86_400);

/// Body of `POST /partner/envelopes/:id/extend`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "expires_at": "2027-01-31T23:59:59Z" }]))]
pub struct ExtendExpiry {
    /// Later than the present expiry, and at most five years from now.
    pub expires_at: Timestamp,
}

/// Moves the expiry of an unfinished envelope to a later time.
///
/// # Errors
///
/// `Conflict` for an envelope that is finished or never expires, `Invalid` for a time that is not
/// later, or too far away.
pub async fn extend(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: ExtendExpiry,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &caller.org, &id).await?;
    let present = envelope
        .expires_at
        .filter(|_| envelope.status.is_unfinished());
    let Some(present) = present else {
        if envelope.status.is_unfinished() {
            let why = "The envelope never expires";
            return Err(ServiceError::Conflict(why.into()));
        }

        let status = envelope.status;
        return Err(ServiceError::Conflict(format!(
            "Cannot extend an envelope with status: {status}"
        )));
    };

    let until = request.expires_at;
    // An envelope can be past its time before the sweep finds it, and an expiry in the past would end it.
    if until <= present.max(now) || until > now + LONGEST {
        return Err(ServiceError::invalid(
            "not_later",
            &["expires_at"],
            format!("later than {present}, and within five years"),
            until.to_string(),
            "The new expiry has to be later than the present one, and within five years",
        ));
    }

    envelopes::set_expiry(&mut tx, &envelope, until, now).await?;
    let details = json!({ "from": present, "to": until });
    let action = "envelope.extended";
    events::record(&mut tx, &envelope, &caller.actor, action, details, now).await?;
    let extended = Envelope {
        expires_at: Some(until),
        updated_at: now,
        ..envelope
    };
    if extended.status.is_out_for_signing() {
        schedule_warning(&mut tx, &extended, now).await?;
    }
    answer.commit(tx, &extended).await?;

    Ok(extended)
}

/// Expires all due envelopes and returns their number.
///
/// Several nodes may sweep at the same time: the row lock and the status let one of them
/// act.
pub async fn sweep(core: &Core, only: Option<&OrgId>) -> Result<usize, ServiceError> {
    let mut expired = 0;
    let mut after = None;
    loop {
        let mut connection = core.store.read().await?;
        let due =
            envelopes::expiring(&mut connection, core.clock.now(), after.as_ref(), AT_ONCE).await?;
        drop(connection);

        let wanted = |org: &OrgId| only.is_none_or(|only| only == org);
        for envelope in due.iter().filter(|envelope| wanted(&envelope.org)) {
            // A failure must not block the envelopes behind it.
            match expire_unless_signed(core, &envelope.org, &envelope.id).await {
                Ok(done) => expired += usize::from(done && !envelope.org.is_test()),
                Err(error) => {
                    let id = envelope.id.as_str();
                    tracing::error!(envelope = id, %error, "envelope could not be expired");
                }
            }
        }

        // The next page begins behind this one, so a failing envelope is not read twice in one sweep.
        after = match due.into_iter().last() {
            Some(last) => Some(last),
            None => return Ok(expired),
        };
    }
}

/// Expires an envelope after asking its provider for signatures made in time: their callback
/// may be late. While the provider is unreachable, the envelope does not expire.
async fn expire_unless_signed(
    core: &Core,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<bool, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = envelopes::get(&mut connection, org, id).await?;
    drop(connection);
    let Some(envelope) = found else {
        return Ok(false);
    };

    if envelope.sending.submission.is_some() {
        signing::reconcile(core, &envelope).await?;
    }

    expire(core, org, id).await
}

async fn expire(core: &Core, org: &OrgId, id: &EnvelopeId) -> Result<bool, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(envelope) = envelopes::lock(&mut tx, org, id).await? else {
        return Ok(false);
    };

    let signers = signers::list(&mut tx, org, id).await?;
    let mut signers = signers.iter();
    let signed = |signer: &Signer| signer.status == SignerStatus::Completed;

    // All have signed: the executed document is about to be processed.
    let all_signed = signers.len() > 0 && signers.all(signed);
    if all_signed || envelope.expires_at.is_none_or(|at| at > now) {
        return Ok(false);
    }

    match end(core, &mut tx, &envelope, "system", now).await {
        Ok(()) => {}
        // The envelope ended or completed in the meantime.
        Err(ServiceError::Refused(_)) => return Ok(false),
        Err(error) => return Err(error),
    }

    tx.commit().await?;
    Ok(true)
}

/// Expires an envelope and queues the archiving of its submission at the provider.
pub async fn end(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    actor: &str,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let decided = lifecycle::decide(core, envelope, EnvelopeTrigger::Expire).await?;
    envelopes::set_status(tx, envelope, decided.status, now).await?;
    decided.record(tx, envelope, now).await?;
    let data = json!({ "expired_at": now });
    let expired = EventType::EnvelopeExpired;
    events::record_and_emit(tx, envelope, actor, expired, data, now).await?;

    // Archived by a job, because the provider may be unreachable now.
    if envelope.sending.submission.is_some() {
        let job = ArchiveSubmission {
            envelope: envelope.id.clone(),
        };
        jobs::insert(tx, &envelope.org, &job, None, now).await?;
    }

    Ok(())
}

/// Archives the submission of an expired envelope at its provider.
pub async fn archive(core: &Core, org: &OrgId, id: &EnvelopeId) -> Result<(), ServiceError> {
    let caller = Caller::system(org.clone());
    let envelope = lookup::envelope(core, &caller, id.as_str()).await?;
    envelope_service::archive_submission(core, &envelope).await
}
