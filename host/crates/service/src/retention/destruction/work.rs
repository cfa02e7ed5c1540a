//! Carries out a destruction, record by record. Each step may run twice, and the next run continues after a crash.

use std::time::Duration;

use serde_json::Value;

use super::begin;
use crate::templates::pages::PageCache;
use crate::vault::{Vault, orphans};
use holdfast_base::faults;
use holdfast_domain::destruction::{DestructionCause, DestructionRefusal};
use holdfast_domain::envelope::{Envelope, EnvelopeDestruction};
use holdfast_domain::event::EventType;
use holdfast_domain::hash::canonical_sha256;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::{DestroyRecord, NextStep};
use holdfast_platform::{Core, Problem, ServiceError, events};
use holdfast_store::{
    StoreError, WriteTransaction, control, destructions as rows, envelopes, ledger, record_rows,
};

/// Time until the log of the database is tried again that a reader still needs.
const READER: Duration = Duration::from_secs(1);

/// Destroys a record, or continues its destruction. A record with an obstacle stays whole, and its request has
/// the reason.
pub async fn carry_on(
    core: &Core,
    vault: &Vault,
    pages: &PageCache,
    org: &OrgId,
    job: &DestroyRecord,
) -> Result<NextStep, ServiceError> {
    let Some(envelope) = begun(core, org, job).await? else {
        return Ok(NextStep::Done);
    };
    faults::pass("destruction begun");

    // Pictures and copies of this node. Those of others are reached through the record alone, and end by themselves.
    vault.copies.forget(&envelope.id).await;
    pages.forget();

    // A running backup may still have to copy the objects that its database names.
    if let Some(until) = orphans::backup(core).await? {
        return Ok(NextStep::Again(until));
    }
    delete_objects(core, &envelope).await?;
    faults::pass("objects destroyed");

    let mut tx = core.store.begin().await?;
    let envelope = locked(&mut tx, org, &envelope.id).await?;
    record_rows::destroy(&mut tx, &envelope).await?;
    ledger::redact(&mut tx, org, &envelope.id).await?;
    tx.commit().await?;
    faults::pass("rows destroyed");

    // Before the end is noted: a record that counts as destroyed is in no file of the database.
    if !core.store.empty_write_ahead_log().await? {
        return Ok(NextStep::Again(core.clock.now() + READER));
    }
    // A request that had read the record before the beginning may have stored an object since.
    delete_objects(core, &envelope).await?;
    core.files.destroy_record_key(envelope.id.as_str()).await?;
    faults::pass("key destroyed");

    finish(core, org, &envelope.id).await?;
    faults::pass("destroyed");
    Ok(NextStep::Done)
}

/// Begins the destruction, unless an earlier run did. Returns the envelope while something of its record is left.
async fn begun(
    core: &Core,
    org: &OrgId,
    job: &DestroyRecord,
) -> Result<Option<Envelope>, ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = locked(&mut tx, org, &job.envelope).await?;
    match envelope.destruction {
        Some(EnvelopeDestruction::Destroying) => return Ok(Some(envelope)),
        Some(EnvelopeDestruction::Destroyed) => return Ok(None),
        None => {}
    }

    let DestructionCause::Destruction(id) = &job.cause else {
        // An erasure begins in its own transaction, which was not committed then.
        return Ok(None);
    };
    let request = rows::get(&mut tx, org, id).await?;
    let ordered = request.and_then(|request| request.carried_out);
    let Some(ordered) = ordered else {
        return Ok(None);
    };

    let actor = ordered.actor();
    let begun = begin(core, &mut tx, &envelope, &job.cause, &actor, now).await;
    match begun {
        Ok(()) => {
            tx.commit().await?;
            Ok(Some(envelope))
        }
        Err(error) => {
            let refusal = refusal(&error).ok_or(error)?;
            // Of the begun destruction, nothing stays.
            drop(tx);
            let mut tx = core.store.begin().await?;
            rows::refuse(&mut tx, &envelope, id, &refusal).await?;
            tx.commit().await?;
            Ok(None)
        }
    }
}

/// Returns why a record is not destroyed; none for failures that another try may not meet.
fn refusal(error: &ServiceError) -> Option<DestructionRefusal> {
    let (code, message) = match error {
        ServiceError::Problem(problem) => (problem.code, problem.message.clone()),
        ServiceError::Control(problem) => {
            let problem = Problem::from(problem);
            (problem.code, problem.message)
        }
        ServiceError::Conflict(message) => (None, message.clone()),
        ServiceError::NotFound(what) => (None, format!("{what} not found")),
        _ => return None,
    };
    Some(DestructionRefusal {
        code: code.map(str::to_owned),
        message,
    })
}

async fn locked(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Envelope, ServiceError> {
    let envelope = envelopes::lock_with_destroyed(tx, org, id).await?;
    envelope.ok_or(ServiceError::NotFound("Envelope"))
}

/// Deletes all objects of a record: its own, those of documents that were made for it, and those in the signing room.
async fn delete_objects(core: &Core, envelope: &Envelope) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let documents = record_rows::documents(&mut connection, envelope).await?;
    let room = record_rows::room_objects(&mut connection, envelope).await?;
    drop(connection);

    let org = &envelope.org;
    core.files.delete_of(org, envelope.id.as_str()).await?;
    for document in documents {
        core.files.delete_of(org, document.as_str()).await?;
        // Now, because the rows that name it go before the key of the record.
        core.files.destroy_record_key(document.as_str()).await?;
    }
    for key in room {
        core.files.delete(&key).await?;
    }
    Ok(())
}

/// Notes that nothing is left, and reports it to the originator and to the party that controlled the record.
async fn finish(core: &Core, org: &OrgId, id: &EnvelopeId) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let envelope = locked(&mut tx, org, id).await?;
    if envelope.destruction == Some(EnvelopeDestruction::Destroyed) {
        return Ok(());
    }

    envelopes::set_destruction(&mut tx, &envelope, EnvelopeDestruction::Destroyed, now).await?;
    rows::finish(&mut tx, &envelope, now).await?;
    let destroyed = rows::destroyed(&mut tx, org, &envelope.id).await?;
    let destroyed = destroyed.ok_or(StoreError::Conflict)?;

    let content: Value = serde_json::from_str(&destroyed.certificate).map_err(|error| {
        ServiceError::Internal(format!("certificate of {}: {error}", envelope.id))
    })?;
    // Another cause than that of the job, if a request was carried out during an erasure.
    let mut data = content["cause"].clone();
    data["certificate_sha256"] = canonical_sha256(&content).into();
    let event = EventType::RecordDestroyed;
    events::emit(&mut tx, &envelope, event, data.clone(), now).await?;
    let controller = control::of_envelope(&mut tx, &envelope).await?.controller;
    if controller != envelope.org {
        events::emit_to_party(&mut tx, &envelope, &controller, event, &data, now).await?;
    }
    tx.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_further_try_changes_is_a_refusal() {
        let gone = refusal(&ServiceError::NotFound("Destruction")).unwrap();
        assert_eq!(gone.message, "Destruction not found");
        let conflict = refusal(&ServiceError::Conflict("It is open".into())).unwrap();
        assert_eq!(conflict.message, "It is open");
        assert_eq!(refusal(&ServiceError::Busy), None);
    }
}
