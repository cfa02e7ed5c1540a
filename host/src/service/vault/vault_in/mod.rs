//! Vault-in: from an executed document to its authoritative copy.
//!
//! | Step | Leaves |
//! |---|---|
//! | `confirm` | nothing but entries in the ledger: who signed, as the signing provider reports it |
//! | `fetch` | the signed document as the provider, or the uploader, gave it |
//! | `time` | what the time stamping authority said of the seal, if there is one |
//! | `seal` | the marked and sealed authoritative copy |
//! | `copy` | the marked non-authoritative copy |
//! | `certify` | the evaluated record and its certificate |
//! | `record` | the custody record |
//! | `settle` | pointers, custodian, status, ledger and events, in one transaction |
//!
//! The intent is committed first and freezes the time; each step is recorded
//! when it is done. A pipeline that is run again after a crash goes on behind
//! the last recorded step. Of two that run at once, on two nodes, the first to
//! record a step decides what it gave, and the last transaction lets one of
//! them win.

mod participants;
mod pipeline;
mod provenance;
mod record;
mod seal;
mod time;

use crate::components::rules::lifecycle::EnvelopeTrigger;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, EnvelopeStatus};
use crate::domain::id::{EnvelopeId, IntentId};
use crate::domain::job::VaultEnvelope;
use crate::service::envelopes::lifecycle;
use crate::service::vault::Vault;
use crate::service::{Caller, Core, ServiceError, envelopes as envelope_service};
use crate::store::vault::{Failure, Intent};
use crate::store::{StoreError, Tx, jobs, ledger, log, vault};
use pipeline::{Pipeline, Step};

/// The step that gives the executed document.
pub const SOURCE: &str = Step::Fetch.name();

/// Which of the two endpoints asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// Signed through the provider.
    Signed,
    /// Uploaded already signed.
    Upload,
}

impl Entrance {
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

/// Vaults an envelope. One that is vaulted already is returned as it is, and a
/// call while another is at work waits for it.
pub async fn vault_in(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    entrance: Entrance,
) -> Result<Envelope, ServiceError> {
    let id = envelope_service::get(core, caller, id).await?.id;
    run(core, vault, caller, &id, entrance, None).await
}

/// Goes on with what was intended before, if it still is.
pub async fn go_on(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &EnvelopeId,
    intent: &IntentId,
) -> Result<(), ServiceError> {
    let envelope = envelope_service::get(core, caller, id.as_str()).await?;
    let entrance = if envelope.is_upload() {
        Entrance::Upload
    } else {
        Entrance::Signed
    };
    run(core, vault, caller, id, entrance, Some(intent)).await?;
    Ok(())
}

async fn run(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &EnvelopeId,
    entrance: Entrance,
    only: Option<&IntentId>,
) -> Result<Envelope, ServiceError> {
    let lock = vault.locks.of(id);
    let _one_at_a_time = lock.lock().await;
    let Some((envelope, intent)) = intend(core, caller, id, entrance, only).await? else {
        return envelope_service::get(core, caller, id.as_str()).await;
    };
    let mut pipeline = Pipeline::new(core, vault, &envelope, &intent);
    match pipeline.run().await {
        Ok(()) => {}
        // Another node was faster, or the document was replaced.
        Err(ServiceError::Store(StoreError::Conflict)) => {}
        Err(error) => {
            let step = pipeline.step();
            note_failure(core, &envelope, &intent, step.name(), &error).await;
            return Err(error);
        }
    }
    let envelope = envelope_service::get(core, caller, id.as_str()).await?;
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

/// Asks the rules and records the intent; none when the envelope is vaulted, or
/// when `only` another intent was to be gone on with.
///
/// A job that goes on with it, should this process die, is committed with it.
async fn intend(
    core: &Core,
    caller: &Caller,
    id: &EnvelopeId,
    entrance: Entrance,
    only: Option<&IntentId>,
) -> Result<Option<(Envelope, Intent)>, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let (envelope, decided) =
        lifecycle::lock_for(core, &mut tx, &caller.org, id, entrance.trigger()).await?;
    if decided.status == envelope.status {
        return Ok(None);
    }
    let wanted = Intent {
        id: IntentId::new(),
        trigger: entrance.name().into(),
        requested_by: caller.actor.clone(),
        frozen_at: now,
        issuer: issuer(core),
        ledger_sequence: ledger::last_sequence(&mut tx, &envelope.org, &envelope.id).await?,
        checkpoint: log::checkpoint(&mut tx).await?,
    };
    let intent = vault::intend(&mut tx, &envelope, &wanted).await?;
    if only.is_some_and(|only| *only != intent.id) {
        return Ok(None);
    }
    if intent.id == wanted.id {
        decided.record(&mut tx, &envelope, now).await?;
    }
    queue(&mut tx, &envelope, Some(&intent.id), now + jobs::LEASE).await?;
    tx.commit().await?;
    Ok(Some((envelope, intent)))
}

/// Has an envelope vaulted at `run_at`: as it was intended, or a signed one as it
/// is. A job that waits already stands for it.
pub async fn queue(
    tx: &mut Tx,
    envelope: &Envelope,
    intent: Option<&IntentId>,
    run_at: Timestamp,
) -> Result<(), StoreError> {
    let job = VaultEnvelope {
        envelope: envelope.id.clone(),
        intent: intent.cloned(),
    };
    jobs::insert_or_revive(tx, &envelope.org, &job, envelope.id.as_str(), run_at).await
}

/// Why an envelope is not vaulted, if its pipeline stopped.
pub async fn failure(core: &Core, envelope: &Envelope) -> Result<Option<Failure>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(vault::failure(&mut connection, envelope).await?)
}

/// How this installation calls itself in documents.
fn issuer(core: &Core) -> String {
    format!("holdfast at {}", core.config.public_url())
}

/// Shows on the envelope why it is not vaulted. The pipeline's own error comes
/// first: one in noting it is only logged.
async fn note_failure(
    core: &Core,
    envelope: &Envelope,
    intent: &Intent,
    step: &str,
    error: &ServiceError,
) {
    tracing::warn!(envelope = %envelope.id, step, %error, "vault-in stopped");
    let message = match error {
        ServiceError::Store(_) => "the database did not do its part".to_owned(),
        ServiceError::Internal(_) => "an internal error".to_owned(),
        ServiceError::Unreadable { message, reason } => format!("{message}: {reason}"),
        error => error.to_string(),
    };
    let noted = async {
        let mut tx = core.store.begin().await?;
        vault::note_failure(&mut tx, envelope, intent, step, &message, core.clock.now()).await?;
        tx.commit().await
    };
    if let Err(error) = noted.await {
        tracing::error!(envelope = %envelope.id, %error, "the failure could not be noted");
    }
}
