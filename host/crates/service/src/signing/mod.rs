//! Applies the provider's view of a submission to its envelope.
//!
//! A callback only names the submission to read. It is read from the provider and compared
//! with the record, so repeated, reordered or lost callbacks do no harm: every difference is
//! applied once.

pub mod access_codes;
pub mod callbacks;
pub mod completed_fields;
pub mod corrections;
pub mod drawings;
pub mod embed;
pub mod expiry;
pub mod provider_poll;
pub mod questions;
pub mod reencryption;
pub mod reminders;
pub mod visits;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::envelopes::{consumer, lifecycle};
use crate::signing::completed_fields::completed_fields;
use holdfast_components::providers::{ProviderError, signing as seen};
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::{
    Envelope, EnvelopeStatus, SignatureExecution, Signer, SignerStatus,
};
use holdfast_domain::event::EventType;
use holdfast_domain::field::{Field, is_signature};
use holdfast_domain::id::SignerId;
use holdfast_domain::template::Template;
use holdfast_platform::error::CallbackError;
use holdfast_platform::events;
use holdfast_platform::providers::provider;
use holdfast_platform::signers::{invited_now, signer_view};
use holdfast_platform::vaulting;
use holdfast_platform::{Core, Problem, ProblemKind, ServiceError, kba, lookup, mails};
use holdfast_store::{
    self as store, StoreError, WriteTransaction, envelopes, ledger, organizations, signers,
    templates,
};

/// Time for which the submission of an open envelope may be archived before it is reported.
const ARCHIVED_PATIENCE: Duration = Duration::from_secs(30);

/// Refuses what only the person on record decides to a witness with a form on the device of a signer: to decline,
/// to name another person, to ask the sender, or to finish later. The signer could do it in the place of the witness.
pub fn check_own_device(signer: &Signer) -> Result<(), ServiceError> {
    if !signer.same_device {
        return Ok(());
    }
    let why = "A witness on the device of a signer can sign here, and nothing else";
    Err(Problem::new(ProblemKind::State, "shared_device", why).into())
}

/// Refuses to decline a document if its sender does not offer it, and on the device of another signer.
pub fn check_may_decline(envelope: &Envelope, signer: &Signer) -> Result<(), ServiceError> {
    check_own_device(signer)?;
    if envelope.sending.may_decline {
        return Ok(());
    }
    let why = "The sender does not let signers decline this document; ask the sender instead";
    Err(Problem::new(ProblemKind::State, "decline_not_offered", why).into())
}

/// Number of attempts when concurrent reads of the provider conflict.
const LOOKS: usize = 3;

/// Handles a provider's callback.
pub async fn callback(
    core: &Core,
    instance: &str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> Result<(), CallbackError> {
    let lease = core.lease(Slot::Signing, instance)?;
    let subject = core
        .components
        .signing_callbacks(instance)
        .read_callback(lease, seen::Callback { headers, body })
        .await
        .map_err(ServiceError::from)?;
    let submission = match subject {
        Ok(seen::CallbackSubject::Submission(submission)) => submission,
        Ok(seen::CallbackSubject::Submitter((_, submission))) => submission,
        Ok(seen::CallbackSubject::Ignored) => return Ok(()),
        Err(seen::CallbackError::Unverified(why)) => {
            return Err(CallbackError::Unverified(why));
        }
        Err(seen::CallbackError::Malformed(why)) => return Err(CallbackError::Malformed(why)),
    };

    Ok(catch_up(core, instance, &submission).await?)
}

/// Reconciles the envelope that belongs to a provider's submission.
pub async fn catch_up(core: &Core, instance: &str, submission: &str) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let envelope = envelopes::by_submission(&mut connection, instance, submission).await?;
    drop(connection);
    match envelope {
        Some(envelope) => reconcile(core, &envelope).await.map(drop),
        // Another service uses the same provider account.
        None => Ok(()),
    }
}

/// Reads an envelope's submission from the provider, applies all differences, and returns
/// it. None for an envelope that was not sent.
pub async fn reconcile(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<seen::Submission>, ServiceError> {
    for _ in 0..LOOKS {
        let Some(look) = look(core, envelope).await? else {
            return Ok(None);
        };

        match apply(core, envelope, &look).await {
            // A concurrent read was recorded first, so this one may be out of date: read again.
            Err(ServiceError::Store(StoreError::Conflict)) => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(Some(look.submission)),
        }
    }

    Err(StoreError::Conflict.into())
}

/// A submission read from the provider, with the time of the last read recorded before it.
struct SubmissionRead {
    submission: seen::Submission,
    before: Option<Timestamp>,
}

async fn look(core: &Core, envelope: &Envelope) -> Result<Option<SubmissionRead>, ServiceError> {
    let Some((instance, submission)) = envelope.submitted() else {
        return Ok(None);
    };

    // Read before the provider is asked. A read that another one overtakes is found out by this time.
    let mut connection = core.store.read().await?;
    let before = store::provider_poll::looked_at(&mut connection, envelope).await?;
    drop(connection);
    let signing = provider(core, &envelope.org, instance)?;
    let submission = signing.read_submission(submission).await?;
    Ok(Some(SubmissionRead { submission, before }))
}

/// Target of a signing link to an envelope at an external provider.
pub enum LinkDestination {
    /// URL of the provider's signing page.
    Page(String),
    /// The signer with this name has to sign first.
    NotYourTurn(String),
    /// Another person now signs in this signer's place.
    PassedOn,
    /// There is nothing left to sign.
    Closed,
}

/// Decides where a signing link leads. The provider admits anyone with its link at any time,
/// so the signing order and the link's validity are enforced here.
pub async fn destination(
    core: &Core,
    envelope: &Envelope,
    visitor: &Signer,
) -> Result<LinkDestination, ServiceError> {
    // The provider may know of a delegation or a completion that no callback reported yet.
    let submission = reconcile(core, envelope)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, &envelope.org, &envelope.id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    let signers = signers::list(&mut connection, &envelope.org, &envelope.id).await?;

    drop(connection);
    let Some(signer) = signers
        .iter()
        .find(|signer| signer.position == visitor.position)
    else {
        return Ok(LinkDestination::Closed);
    };
    // The link was mailed to the person who had this place before.
    if signer.email != visitor.email {
        return Ok(LinkDestination::PassedOn);
    }

    if !envelope.status.is_out_for_signing()
        || submission.archived
        || signer.status == SignerStatus::Completed
    {
        return Ok(LinkDestination::Closed);
    }

    let mut turn = invited_now(&envelope, &signers);
    if let Some(first) = turn.clone().next()
        && !turn.any(|now| now.position == signer.position)
    {
        return Ok(LinkDestination::NotYourTurn(first.name.clone()));
    }

    let page = seen_of(&submission, signer).map(|seen| seen.signing_url.clone());

    // The browser is redirected there, so other schemes are refused.
    match page.filter(|page| page.starts_with("https://") || page.starts_with("http://")) {
        Some(page) => Ok(LinkDestination::Page(page)),
        None => Err(ProviderError::Unreachable("it gives no page to sign at".into()).into()),
    }
}

/// Confirms with the provider, before vault-in, that all signers have signed. Returns the
/// sequence number of the last ledger entry that belongs to the vaulted record.
pub async fn confirm_signers(core: &Core, envelope: &Envelope) -> Result<i64, ServiceError> {
    let look = look(core, envelope)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = lookup::lock_envelope(&mut tx, &envelope.org, &envelope.id).await?;
    // Another change was first. Vault-in reads the new state of the envelope then.
    if envelope.status != EnvelopeStatus::Completed {
        return Err(StoreError::Conflict.into());
    }

    let template = sent_template(&mut tx, &envelope).await?;
    for mut signer in signers::list(&mut tx, &envelope.org, &envelope.id).await? {
        let role = &signer.role;
        let seen = seen_of(&look.submission, &signer)
            .filter(|seen| seen.status == seen::SignerStatus::Completed);
        let Some(seen) = seen else {
            return Err(ServiceError::Conflict(format!(
                "The signing provider no longer says that {role} has signed"
            )));
        };

        let open = unexecuted(template.as_ref(), &signer, seen);
        if !open.is_empty() {
            let open = open.join(", ");
            return Err(ServiceError::Conflict(format!(
                "{role} has not signed: the document was completed without {open}"
            )));
        }

        note_delegation(&mut tx, &envelope, &mut signer, seen, &look, now).await?;

        // A form that was completed before this was recorded.
        if signer.execution.is_none() {
            signer.execution = Some(execution(template.as_ref(), &signer, seen));
            signers::update(&mut tx, &envelope, &signer).await?;
        }
    }

    store::provider_poll::looked(&mut tx, &envelope, look.submission.archived, now).await?;
    // In this transaction: entries after it do not belong to the vaulted record.
    let sequence = ledger::last_sequence(&mut tx, &envelope.org, &envelope.id).await?;
    tx.commit().await?;

    Ok(sequence)
}

fn seen_of<'a>(submission: &'a seen::Submission, signer: &Signer) -> Option<&'a seen::Submitter> {
    submission
        .submitters
        .iter()
        .find(|seen| signer.provider_submitter.as_deref() == Some(&seen.submitter_id))
}

/// Applies every difference between an open envelope and its submission.
async fn apply(
    core: &Core,
    envelope: &Envelope,
    look: &SubmissionRead,
) -> Result<(), ServiceError> {
    let submission = &look.submission;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(mut envelope) = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await? else {
        return Ok(());
    };
    // The envelope was voided, declined or expired meanwhile, and the submission counts no more.
    if !envelope.status.is_out_for_signing() {
        return Ok(());
    }

    let mut signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
    let turn_before: Vec<i64> = invited_now(&envelope, &signers)
        .map(|signer| signer.position)
        .collect();

    let mut new_to_it = Vec::new();
    for signer in &mut signers {
        let Some(seen) = seen_of(submission, signer) else {
            continue;
        };

        if note_delegation(&mut tx, &envelope, signer, seen, look, now).await? {
            new_to_it.push(signer.position);
        }

        follow(core, &mut tx, &mut envelope, signer, seen, now).await?;
    }

    let archived = submission.archived;
    let archived_since = store::provider_poll::looked(&mut tx, &envelope, archived, now).await?;
    if let Some(declined) = signers
        .iter()
        .find(|signer| signer.status == SignerStatus::Declined)
    {
        decline(core, &mut tx, &mut envelope, declined, now).await?;
    } else if submission.status == seen::SubmissionStatus::Completed
        && signers
            .iter()
            .all(|signer| signer.status == SignerStatus::Completed)
    {
        complete(core, &mut tx, &mut envelope, &signers, submission, now).await?;
    } else if submission.status == seen::SubmissionStatus::Expired {
        expiry::end(core, &mut tx, &envelope, "provider", now).await?;
    } else if let Some(since) = archived_since {
        note_archived(core, &mut tx, &envelope, since, now).await?;
    } else {
        // Invites signers at the beginning of their turn. A replaced signer is invited, too.
        for signer in invited_now(&envelope, &signers) {
            let next = !turn_before.contains(&signer.position);
            if next || new_to_it.contains(&signer.position) {
                mails::invite_signer(&mut tx, &envelope, signer, now).await?;
            }
        }
    }

    Ok(tx.commit().await?)
}

/// Records a delegation: another person signs in this signer's place. Providers send no
/// callback for it, so the addresses are compared. Returns whether the signer changed.
///
/// # Errors
/// [`StoreError::Conflict`] when a later read was recorded meanwhile. A status only moves
/// forward, but an address can change back, so an outdated read must not be applied.
async fn note_delegation(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &mut Signer,
    seen: &seen::Submitter,
    look: &SubmissionRead,
    now: Timestamp,
) -> Result<bool, StoreError> {
    if seen.email.is_empty() || seen.email.eq_ignore_ascii_case(&signer.email) {
        return Ok(false);
    }
    if store::provider_poll::looked_at(tx, envelope).await? != look.before {
        return Err(StoreError::Conflict);
    }

    tracing::warn!(envelope = %envelope.id, role = signer.role, "signer was replaced at the provider");
    let previous = signer_view(signer);
    // Another person gets another id: earlier entries must not be joined to them.
    signer.id = SignerId::new();
    signer.email.clone_from(&seen.email);
    signer.name = match seen.name.trim() {
        "" => seen.email.clone(),
        name => name.to_owned(),
    };

    let details = json!({
        "role": signer.role, "from": previous["email"], "to": signer.email,
        "signer": signer_view(signer), "previous": previous,
    });
    events::record(tx, envelope, "provider", "signer.delegated", details, now).await?;

    // The telephone, the outcome of mails and an identity check are the previous signer's.
    signer.phone = None;
    signer.consumer = None;
    signer.notice = None;
    signer.challenged = kba::is_challenged(tx, envelope, &signer.email).await?;
    signers::update(tx, envelope, signer).await?;

    // Links issued so far went to the previous signer.
    signers::expire_links(tx, envelope, signer, now).await?;
    Ok(true)
}

/// Records, once, that the submission of an open envelope is archived, so that it cannot be
/// signed. Closing an envelope archives the submission first, which is why this waits: a
/// longer gap means a foreign archival or an interrupted void.
async fn note_archived(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    since: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let patience = core.config.sweep_interval.unwrap_or(ARCHIVED_PATIENCE);
    if now < since + patience {
        return Ok(());
    }

    // Every poll sees the archived submission again, and the ledger needs one entry.
    let action = "submission.archived";
    let entries = ledger::list(tx, Some(&envelope.org), &envelope.id).await?;
    if entries.iter().any(|entry| entry.action == action) {
        return Ok(());
    }

    tracing::error!(
        envelope = %envelope.id,
        "submission of an open envelope is archived at the provider: it cannot be signed"
    );
    let details = json!({ "seen_since": since });
    events::record(tx, envelope, "provider", action, details, now).await?;

    Ok(())
}

/// Applies one signer's progress.
async fn follow(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &mut Envelope,
    signer: &mut Signer,
    seen: &seen::Submitter,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let before = signer.status;
    let mut after = match seen.status {
        seen::SignerStatus::Pending => SignerStatus::Pending,
        seen::SignerStatus::Viewed => SignerStatus::Viewed,
        seen::SignerStatus::Started => SignerStatus::Started,
        seen::SignerStatus::Completed => SignerStatus::Completed,
        seen::SignerStatus::Declined => SignerStatus::Declined,
    };
    // A signer only moves forward, so an outdated read changes nothing.
    if progress(after) <= progress(before) {
        return Ok(());
    }

    if after == SignerStatus::Completed {
        let template = sent_template(tx, envelope).await?;
        let open = unexecuted(template.as_ref(), signer, seen);
        if open.is_empty() {
            signer.execution = Some(execution(template.as_ref(), signer, seen));
        } else {
            note_unexecuted(tx, envelope, signer, &open, now).await?;
            after = SignerStatus::Started;
        }
    }

    // `after` may have been lowered to `Started` above.
    if progress(after) <= progress(before) {
        return Ok(());
    }

    signer.status = after;
    if after == SignerStatus::Completed {
        let at = seen.completed_at.as_deref().and_then(Timestamp::parse);
        signer.completed_at = Some(at.unwrap_or(now));
    }

    if after == SignerStatus::Declined {
        signer.decline_reason = Some(seen.decline_reason.clone().unwrap_or_default());
    }

    signers::update(tx, envelope, signer).await?;
    if envelope.status == EnvelopeStatus::Sent {
        advance(core, tx, envelope, EnvelopeTrigger::View, now).await?;
    }

    // Emit skipped steps, too: a signer who has completed has also viewed and started.
    let steps = [
        (SignerStatus::Viewed, EventType::SignerViewed),
        (SignerStatus::Started, EventType::SignerStarted),
        (SignerStatus::Completed, EventType::SignerCompleted),
    ];
    for (status, event_type) in steps {
        let reached = progress(status) > progress(before) && progress(status) <= progress(after);
        if reached && after != SignerStatus::Declined {
            let data = json!({ "signer": signer_view(signer), "at": now });
            let actor = format!("signer:{}", signer.email);
            let mut details = data.clone();
            if status == SignerStatus::Completed {
                details["signature"] = json!(signer.execution);
                details["kind"] = json!(signer.kind);
            }

            note_origin(&mut details, seen, status);
            if status == SignerStatus::Completed {
                consumer::note(tx, envelope, signer, &mut details).await?;
            }

            events::record(tx, envelope, &actor, event_type.as_str(), details, now).await?;
            events::emit(tx, envelope, event_type, data, now).await?;
        }
    }

    Ok(())
}

/// Returns the envelope's template, unless it may have changed since the envelope was sent.
async fn sent_template(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
) -> Result<Option<Template>, StoreError> {
    let Some(id) = &envelope.template else {
        return Ok(None);
    };
    let template = templates::find(tx, &envelope.org, id).await?;
    Ok(template.filter(|template| template.updated_at <= envelope.created_at))
}

/// Returns the names of the fields that a completed signer left unsigned: required fields
/// that the provider reports as empty, and all signature and initials fields if none of
/// them is executed.
fn unexecuted(template: Option<&Template>, signer: &Signer, seen: &seen::Submitter) -> Vec<String> {
    let fields = template.map_or(&[][..], |template| &template.fields);
    let own = || fields.iter().filter(|field| field.role == signer.role);
    let is_empty = |value: &seen::SignedValue| {
        value.value.is_empty() || (value.field_type == "checkbox" && value.value == "false")
    };

    // A field that a condition may hide is left to the form, which applies the condition.
    let may_be_hidden =
        |name: &str| own().any(|field| field.name == name && field.rules.condition.is_some());
    let is_required = |name: &str| {
        let required = |field: &Field| {
            // A formula may have no result.
            field.required && !field.readonly && field.rules.formula.is_none()
        };
        !may_be_hidden(name) && own().any(|field| field.name == name && required(field))
    };
    let mut open: BTreeSet<String> = seen
        .values
        .iter()
        .filter(|value| is_empty(value) && is_required(&value.name))
        .map(|value| value.name.clone())
        .collect();

    let signatures = signatures(template, signer, seen);

    if !executes_any(&signatures, seen) {
        let shown = signatures.iter().filter(|name| !may_be_hidden(name));
        open.extend(shown.map(|name| (*name).to_owned()));
    }

    open.into_iter().collect()
}

/// Returns the names of a signer's signature and initials fields: those of the template, and those that
/// the provider reports.
fn signatures<'a>(
    template: Option<&'a Template>,
    signer: &'a Signer,
    seen: &'a seen::Submitter,
) -> BTreeSet<&'a str> {
    let fields = template.map_or(&[][..], |template| &template.fields);
    let own = fields
        .iter()
        .filter(|field| field.role == signer.role && field.is_signature());
    let reported = seen
        .values
        .iter()
        .filter(|value| is_signature(&value.field_type));

    own.map(|field| field.name.as_str())
        .chain(reported.map(|value| value.name.as_str()))
        .collect()
}

fn executes_any(signatures: &BTreeSet<&str>, seen: &seen::Submitter) -> bool {
    seen.values
        .iter()
        .any(|value| !value.value.is_empty() && signatures.contains(value.name.as_str()))
}

/// Returns whether the completed form of a signer has a signature. A form without one asked for none, or
/// its conditions hid each signature field: [`unexecuted`] refuses every other form.
fn execution(
    template: Option<&Template>,
    signer: &Signer,
    seen: &seen::Submitter,
) -> SignatureExecution {
    if executes_any(&signatures(template, signer, seen), seen) {
        SignatureExecution::Executed
    } else {
        SignatureExecution::NotAsked
    }
}

/// Records, once, that the provider completed a signer without a signature. The signer does
/// not count as having signed.
async fn note_unexecuted(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signer: &Signer,
    open: &[String],
    now: Timestamp,
) -> Result<(), StoreError> {
    let action = "signer.not_executed";
    let details = json!({ "role": signer.role, "fields": open });
    let entries = ledger::list(tx, Some(&envelope.org), &envelope.id).await?;
    if entries.iter().any(|entry| entry.is_of(action, &details)) {
        return Ok(());
    }

    tracing::warn!(
        envelope = %envelope.id,
        role = signer.role,
        "provider completed a signer without a signature"
    );
    events::record(tx, envelope, "provider", action, details, now).await?;

    Ok(())
}

/// Adds the signer's origin, and for a completed signer the manner of signing, to the ledger
/// entry. Events omit them.
fn note_origin(details: &mut Value, seen: &seen::Submitter, status: SignerStatus) {
    if let Value::Object(members) = details {
        for (name, value) in &seen.attributes {
            // A plugin must not write arbitrary members into the ledger.
            let kept = match name.as_str() {
                "ip" | "user_agent" => true,
                "completion_method" | "consented_at" | "consent_version" | "consent_locale"
                | "consent_sha256" | "shown_sha256" | "attachments" => {
                    status == SignerStatus::Completed
                }
                _ => false,
            };

            if kept {
                // The list of files is JSON; every other attribute is text.
                let list = match name.as_str() {
                    "attachments" => serde_json::from_str(value).ok(),
                    _ => None,
                };
                members.insert(name.clone(), list.unwrap_or_else(|| value.as_str().into()));
            }
        }
    }
}

/// Orders the statuses. A signer only moves forward.
fn progress(status: SignerStatus) -> u8 {
    match status {
        SignerStatus::Pending => 0,
        SignerStatus::Viewed => 1,
        SignerStatus::Started => 2,
        SignerStatus::Completed => 3,
        SignerStatus::Declined => 4,
    }
}

async fn advance(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &mut Envelope,
    trigger: EnvelopeTrigger,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let decided = lifecycle::decide(core, envelope, trigger).await?;
    envelopes::set_status(tx, envelope, decided.status, now).await?;
    decided.record(tx, envelope, now).await?;
    envelope.status = decided.status;
    Ok(())
}

async fn decline(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &mut Envelope,
    signer: &Signer,
    now: Timestamp,
) -> Result<(), ServiceError> {
    advance(core, tx, envelope, EnvelopeTrigger::Decline, now).await?;
    let data = json!({
        "signer": signer_view(signer),
        "reason": signer.decline_reason,
    });
    let actor = format!("signer:{}", signer.email);
    events::record_and_emit(tx, envelope, &actor, EventType::EnvelopeDeclined, data, now).await?;
    Ok(mails::declined(tx, envelope, now).await?)
}

async fn complete(
    core: &Core,
    tx: &mut WriteTransaction,
    envelope: &mut Envelope,
    signers: &[Signer],
    submission: &seen::Submission,
    now: Timestamp,
) -> Result<(), ServiceError> {
    advance(core, tx, envelope, EnvelopeTrigger::Complete, now).await?;
    let (fields, fields_truncated) = completed_fields(submission, signers);
    let data = json!({
        "completed_at": now,
        "signers": signers.iter().map(signer_view).collect::<Vec<_>>(),
        "fields": fields,
        "fields_truncated": fields_truncated,
    });

    let details = json!({ "completed_at": now, "signers": signers.len() });
    let action = EventType::EnvelopeCompleted.as_str();
    events::record(tx, envelope, "system", action, details, now).await?;
    events::emit(tx, envelope, EventType::EnvelopeCompleted, data, now).await?;
    let organization = organizations::get(tx, &envelope.org).await?;
    let mut tell_at = now;

    // A batch, the envelope's own choice, or the organization's default can start the vaulting.
    let standing = organization.is_some_and(|organization| organization.settings.auto_vault);
    if envelope.is_vaulted_unattended(standing) {
        // The mails wait a moment for the vaulted copy, which has its hash in the ledger.
        vaulting::queue(tx, envelope, None, now).await?;
        tell_at = now + mails::VAULT_HEAD_START;
    }

    Ok(mails::completed(tx, envelope, tell_at).await?)
}
