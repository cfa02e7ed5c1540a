//! Vault-in: from an executed document to its authoritative copy.
//!
//! | Step | Leaves |
//! |---|---|
//! | `confirm` | only ledger entries: the signers, as the signing provider reports them |
//! | `fetch` | the provider's signed document, unchanged |
//! | `time` | the time stamping authority's response about the seal, if one is configured |
//! | `seal` | the marked and sealed authoritative copy |
//! | `copy` | the marked non-authoritative copy |
//! | `certify` | the facts of the contract, if a fact map applies; the evaluated record and its certificate |
//! | `record` | the custody record |
//! | `settle` | pointers, custodian, status, ledger and events, in one transaction |
//!
//! The intent is committed first and freezes the time. The first three steps ask others, and are recorded
//! when they are done. The next four make the same bytes when they are repeated: they are made in memory
//! and stored side by side, and only `settle` refers to them. If two nodes run the pipeline at the same
//! time, the first to record a step determines its result, and `settle` lets one of them win. The sweep
//! removes what the other stored, should it differ.

mod participants;
mod pipeline;
mod provenance;
mod record;
mod seal;
mod time;

use crate::envelopes::lifecycle;
use crate::vault::{Vault, copies};
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus};
use holdfast_domain::id::{EnvelopeId, IntentId, OrgId};
use holdfast_platform::log::{check_clock, published};
use holdfast_platform::lookup;
use holdfast_platform::vaulting;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::vault::{VaultFailure, VaultIntent};
use holdfast_store::{StoreError, jobs, ledger, vault};
pub use participants::{deciding_rules, rules_owner};
use pipeline::{PipelineStep, VaultInPipeline};
pub(super) use record::notes;

/// Name of the step that stores the executed document.
pub const SOURCE: &str = PipelineStep::Fetch.name();

/// Endpoint through which vault-in was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultInEndpoint {
    /// Signed through the provider.
    Signed,
    /// Uploaded already signed.
    Upload,
}

impl VaultInEndpoint {
    fn trigger(self) -> EnvelopeTrigger {
        match self {
            Self::Signed => EnvelopeTrigger::VaultInSigned,
            Self::Upload => EnvelopeTrigger::VaultInUpload,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Signed => "vault_in_signed",
            Self::Upload => "vault_in_upload",
        }
    }
}

/// Vaults an envelope. Returns an envelope that is vaulted already unchanged, and waits if
/// another call is vaulting it.
pub async fn vault_in(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    entrance: VaultInEndpoint,
) -> Result<Envelope, ServiceError> {
    let id = lookup::envelope(core, caller, id).await?.id;
    run(core, vault, caller, &id, entrance, None).await
}

/// Resumes an earlier intent, unless another one has replaced it.
pub async fn go_on(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &EnvelopeId,
    intent: &IntentId,
) -> Result<(), ServiceError> {
    let envelope = lookup::envelope(core, caller, id.as_str()).await?;
    let entrance = if envelope.is_upload() {
        VaultInEndpoint::Upload
    } else {
        VaultInEndpoint::Signed
    };
    run(core, vault, caller, id, entrance, Some(intent)).await?;
    Ok(())
}

async fn run(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &EnvelopeId,
    entrance: VaultInEndpoint,
    only: Option<&IntentId>,
) -> Result<Envelope, ServiceError> {
    let lock = vault.locks.of(id);
    let _one_at_a_time = lock.lock().await;
    let Some((envelope, intent)) = intend(core, caller, id, entrance, only).await? else {
        return lookup::envelope(core, caller, id.as_str()).await;
    };

    let mut pipeline = VaultInPipeline::new(core, vault, &envelope, &intent);
    match pipeline.run().await {
        Ok(()) => {}
        // Another node finished first, or the document was replaced.
        Err(ServiceError::Store(StoreError::Conflict)) => {}
        Err(error) => {
            let step = pipeline.step();
            note_failure(core, &envelope, &intent, step.name(), &error).await;
            return Err(error);
        }
    }

    let envelope = lookup::envelope(core, caller, id.as_str()).await?;
    // A conflict means only that another change was first. The status shows whether that was a vaulting.
    if matches!(
        envelope.status,
        EnvelopeStatus::Vaulted | EnvelopeStatus::VaultedOut
    ) {
        return Ok(envelope);
    }

    Err(ServiceError::Conflict(
        "The envelope was changed while it was being vaulted".into(),
    ))
}

/// Asks the rules and records the intent. Returns none when the envelope is vaulted
/// already, or when the current intent is not `only`.
///
/// The same transaction queues a job that resumes the intent if this process dies.
async fn intend(
    core: &Core,
    caller: &Caller,
    id: &EnvelopeId,
    entrance: VaultInEndpoint,
    only: Option<&IntentId>,
) -> Result<Option<(Envelope, VaultIntent)>, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let (envelope, decided) =
        lifecycle::lock_for(core, &mut tx, &caller.org, id, entrance.trigger()).await?;
    // The rules answer with the present status if the envelope is vaulted already.
    if decided.status == envelope.status {
        return Ok(None);
    }

    // The intent freezes the time of certificate, record and seal.
    check_clock(core).await?;
    let wanted = VaultIntent {
        id: IntentId::new(),
        trigger: entrance.name().into(),
        requested_by: caller.actor.clone(),
        frozen_at: now,
        issuer: issuer(core, &envelope.org),
        ledger_sequence: ledger::last_sequence(&mut tx, &envelope.org, &envelope.id).await?,
        checkpoint: published(core, &mut tx).await?,
        wording: copies::wording(&mut tx, &envelope.org).await?,
    };

    let intent = vault::intend(&mut tx, &envelope, &wanted).await?;
    if only.is_some_and(|only| *only != intent.id) {
        return Ok(None);
    }

    // An earlier intent keeps its frozen time and its decision.
    if intent.id == wanted.id {
        decided.record(&mut tx, &envelope, now).await?;
    }

    // Due only after this process's time to finish; settling removes the job.
    vaulting::queue(&mut tx, &envelope, Some(&intent.id), now + jobs::LEASE).await?;
    tx.commit().await?;

    Ok(Some((envelope, intent)))
}

/// Returns why the envelope's pipeline stopped, if it did.
pub async fn failure(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<VaultFailure>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(vault::failure(&mut connection, envelope).await?)
}

/// Returns this installation's name for documents.
pub fn issuer(core: &Core, org: &OrgId) -> String {
    let mark = if org.is_test() { " (TEST)" } else { "" };
    format!("holdfast at {}{mark}", core.config.public_url())
}

/// Records on the envelope why vaulting stopped. An error while recording is only logged, so
/// that the caller gets the pipeline's own error.
async fn note_failure(
    core: &Core,
    envelope: &Envelope,
    intent: &VaultIntent,
    step: &str,
    error: &ServiceError,
) {
    tracing::warn!(envelope = %envelope.id, step, %error, "vault-in stopped");
    // The tenant reads this message, so it leaves out internal causes.
    let message = match error {
        ServiceError::Store(_) => "the database did not do its part".to_owned(),
        ServiceError::Internal(_) => "an internal error".to_owned(),
        ServiceError::Unreadable(file) => format!("{file}: {}", file.reason),
        error => error.to_string(),
    };
    let noted = async {
        let mut tx = core.store.begin().await?;
        vault::note_failure(&mut tx, envelope, intent, step, &message, core.clock.now()).await?;
        tx.commit().await
    };

    if let Err(error) = noted.await {
        tracing::error!(envelope = %envelope.id, %error, "vault-in failure could not be recorded");
    }
}
