//! Envelopes: reading, voiding, signing links.

pub mod activity;
pub mod compliance;
pub mod consent;
pub mod consumer;
pub mod contract_dates;
pub mod creation;
pub mod dispatch;
pub mod documents;
pub mod drafts;
pub mod facts;
pub mod lifecycle;
pub mod open_link_proofs;
pub mod open_links;
pub mod paper_original;
pub mod parties;
pub mod people_notes;
pub mod planned_sending;
pub mod reminders;
pub mod saved_filters;
pub mod sending;
pub mod standing;
pub mod successors;
pub mod uploads;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::envelope::{Envelope, EnvelopeLink, Recipient, Signer};
use holdfast_domain::event::EventType;
use holdfast_domain::id::EnvelopeId;
use holdfast_domain::organization::ApiKeyRecord;
use holdfast_platform::events;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::permits;
use holdfast_platform::providers::links;
use holdfast_platform::providers::provider;
use holdfast_platform::signers::signer_view;
use holdfast_platform::{Caller, Core, ServiceError, mails};
use holdfast_store::search::{self, EnvelopeSearch, FoundEnvelope};
use holdfast_store::{StoreError, WriteTransaction, counts, envelopes, signers};

pub use holdfast_platform::lookup::envelope as get;
pub use holdfast_platform::lookup::with_destroyed as get_with_destroyed;

/// Returns an envelope for a cached API key, and whether that key is still valid.
pub async fn get_with_key(
    core: &Core,
    key: &ApiKeyRecord,
    id: &str,
) -> Result<envelopes::KeyedEnvelope, ServiceError> {
    // An unparsable id becomes an unused one: the key has to be confirmed in any case.
    let id = EnvelopeId::parse(id).unwrap_or_else(EnvelopeId::new);
    let mut connection = core.store.read().await?;
    Ok(envelopes::get_for_key(&mut connection, key, &id).await?)
}

/// Returns the numbers of the caller's envelopes by status. They change with every change of a status.
pub async fn numbers(core: &Core, caller: &Caller) -> Result<BTreeMap<String, i64>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(counts::by_status(&mut connection, &caller.org).await?)
}

/// Returns the caller's newest envelopes that fit a search.
pub async fn search(
    core: &Core,
    caller: &Caller,
    search: &EnvelopeSearch,
    limit: i64,
) -> Result<Vec<FoundEnvelope>, ServiceError> {
    let mut connection = core.store.read().await?;
    let dialect = core.store.dialect();
    Ok(search::envelopes(&mut connection, dialect, &caller.org, search, limit).await?)
}

/// Like [`search`], with the number of all envelopes that fit.
pub async fn counted_search(
    core: &Core,
    caller: &Caller,
    search: &EnvelopeSearch,
    limit: i64,
) -> Result<(Vec<FoundEnvelope>, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    let (dialect, org) = (core.store.dialect(), &caller.org);
    let found = search::envelopes(&mut connection, dialect, org, search, limit).await?;
    let total = search::count(&mut connection, dialect, org, search).await?;
    Ok((found, total))
}

/// Returns a page of the caller's envelopes, newest first, and the total count.
pub async fn list(
    core: &Core,
    caller: &Caller,
    filter: &envelopes::EnvelopeFilter,
    page: i64,
    limit: i64,
) -> Result<(Vec<FoundEnvelope>, i64), ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(envelopes::list(&mut connection, &caller.org, filter, page, limit).await?)
}

/// Voids an envelope, at the provider too.
///
/// The provider is called first. If the rest fails, the envelope is open with an archived
/// submission and can be voided again; the reverse order could leave a voided contract that
/// can still be signed.
pub async fn void(
    core: &Core,
    caller: &Caller,
    id: &str,
    reason: Option<String>,
    answer: &ResponseRecorder<Envelope>,
) -> Result<Envelope, ServiceError> {
    let cause = VoidCause {
        reason,
        ..VoidCause::default()
    };
    let (tx, voided) = voiding(core, caller, id, cause).await?;
    answer.commit(tx, &voided).await?;
    Ok(voided)
}

/// Voids an envelope, unless it was sent in the meantime.
pub async fn void_unsent(
    core: &Core,
    caller: &Caller,
    id: &str,
    reason: String,
) -> Result<(), ServiceError> {
    let cause = VoidCause {
        reason: Some(reason),
        only_unsent: true,
        ..VoidCause::default()
    };
    match voiding(core, caller, id, cause).await {
        Ok((tx, _)) => Ok(tx.commit().await?),
        Err(ServiceError::Store(StoreError::Conflict)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Why an envelope is voided.
#[derive(Default)]
struct VoidCause {
    reason: Option<String>,
    /// An envelope that was sent is a conflict.
    only_unsent: bool,
    /// The envelope with the corrected document.
    corrected_by: Option<EnvelopeId>,
}

/// Returns the voided envelope and its open transaction.
async fn voiding(
    core: &Core,
    caller: &Caller,
    id: &str,
    cause: VoidCause,
) -> Result<(WriteTransaction, Envelope), ServiceError> {
    let sent = |envelope: &Envelope| cause.only_unsent && envelope.sending.submission.is_some();
    let envelope = get(core, caller, id).await?;
    if sent(&envelope) {
        return Err(StoreError::Conflict.into());
    }

    // Refuse early, before the submission at the provider is archived.
    lifecycle::next_status(core, &envelope, EnvelopeTrigger::Void).await?;
    if cause.corrected_by.is_some() {
        successors::check_correctable(&envelope)?;
    }
    archive_submission(core, &envelope).await?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let (mut envelope, decided) = lifecycle::lock_for(
        core,
        &mut tx,
        &caller.org,
        &envelope.id,
        EnvelopeTrigger::Void,
    )
    .await?;

    // Checked again under the lock: a sending may have finished since the first read.
    if sent(&envelope) {
        return Err(StoreError::Conflict.into());
    }

    let mut data = json!({ "reason": cause.reason });
    if let Some(by) = &cause.corrected_by {
        successors::check_correctable(&envelope)?;
        envelope.set_link(EnvelopeLink::CorrectedBy, by);
        envelopes::set_metadata(&mut tx, &envelope).await?;

        // They are signatures on another document, so each is recorded as void.
        let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
        data["corrected_by"] = json!(by);
        data["void_signatures"] = void_signatures(&signers);
    }

    let status = decided.status;
    envelopes::set_status(&mut tx, &envelope, status, now).await?;
    decided.record(&mut tx, &envelope, now).await?;
    events::record_and_emit(
        &mut tx,
        &envelope,
        &caller.actor,
        EventType::EnvelopeVoided,
        data,
        now,
    )
    .await?;

    // An invited signer still has a mail that asks for a signature.
    mails::withdrawn(&mut tx, &envelope, now).await?;
    let voided = Envelope {
        status,
        updated_at: now,
        ..envelope
    };

    Ok((tx, voided))
}

/// Returns the signers who had completed their part, with the time.
fn void_signatures(signers: &[Signer]) -> Value {
    let completed = signers.iter().filter_map(|signer| {
        let mut view = signer_view(signer);
        view["completed_at"] = json!(signer.completed_at?);
        Some(view)
    });
    completed.collect()
}

/// Archives the submission at the provider. Archiving is idempotent.
pub async fn archive_submission(core: &Core, envelope: &Envelope) -> Result<(), ServiceError> {
    if let Some((instance, submission)) = envelope.submitted() {
        let signing = provider(core, &envelope.org, instance)?;
        signing.archive_submission(submission).await?;
        signing.keep(core).await?;
    }
    Ok(())
}

/// Returns the signers of an envelope in signing order, and the recipients who do not sign.
pub async fn people(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<(Vec<Signer>, Vec<Recipient>), ServiceError> {
    let envelope = get(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let signers = signers::list(&mut connection, &envelope.org, &envelope.id).await?;
    let recipients = signers::recipients(&mut connection, &envelope.org, &envelope.id).await?;
    Ok((signers, recipients))
}

/// A signer with a fresh signing link.
pub struct SignerLink {
    pub signer: Signer,
    pub url: String,
}

/// Issues one short-lived link per signer, and records the caller in the ledger.
pub async fn signing_links(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Vec<SignerLink>, ServiceError> {
    let id = get(core, caller, id).await?.id;
    // A link is never handed out without its entry: both commit together.
    let mut tx = core.store.begin().await?;
    let fetch = EnvelopeTrigger::SigningLinks;
    let (envelope, _) = lifecycle::lock_for(core, &mut tx, &caller.org, &id, fetch).await?;

    // The page of a signer has the copy.
    permits::copies::permit_copy(&mut tx, caller, &envelope).await?;
    let mut fetched = Vec::new();
    for signer in signers::list(&mut tx, &envelope.org, &envelope.id).await? {
        let url = links::make(core, &mut tx, &envelope, &signer, links::EMBED_LIFE).await?;
        fetched.push(SignerLink { signer, url });
    }

    let details = json!({ "signers": fetched.len() });
    let now = core.clock.now();
    events::record(
        &mut tx,
        &envelope,
        &caller.actor,
        "signing_links.fetched",
        details,
        now,
    )
    .await?;

    tx.commit().await?;
    Ok(fetched)
}
