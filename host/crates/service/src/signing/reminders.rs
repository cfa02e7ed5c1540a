//! Reminders: mails with a fresh link to signers who have not signed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::envelopes::lifecycle;
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::envelope::{Envelope, Signer, SignerStatus};
use holdfast_domain::event::EventType;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::lookup;
use holdfast_platform::signers::invited_now;
use holdfast_platform::{Caller, Core, ServiceError, ValidationIssue, mails};
use holdfast_store::signers;

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
    for signer in &chosen {
        mails::remind(&mut tx, &envelope, signer, now).await?;
    }

    let emails: Vec<String> = chosen.iter().map(|signer| signer.email.clone()).collect();
    let data = json!({ "reminded": emails });
    let (actor, sent) = (caller.actor.as_str(), EventType::EnvelopeReminderSent);
    events::record_and_emit(&mut tx, &envelope, actor, sent, data, now).await?;
    let reminded = RemindedSigners {
        count: emails.len(),
        reminded: emails,
    };
    answer.commit(tx, &reminded).await?;

    Ok(reminded)
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
