//! Steps of a transfer, made for each record by a job. It may run twice and be killed anywhere: a record's
//! step and its state in the transfer commit together.

use holdfast_store::SqlConnection;
use serde_json::json;

use super::{incomplete, named_view, queue};
use crate::control::{ActDone, Actor, PartyNames, Request, double_pledge, lock, permit, settle};
use holdfast_base::faults;
use holdfast_components::rules::control::Act;
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::{EnvelopeId, TransferId};
use holdfast_domain::job::CompareRecords;
use holdfast_domain::transfer::{
    RecordState, RecordTree, RecordsRoot, SellerCopy, SoldRecord, Transfer, TransferReceipt,
    TransferRecord, TransferState, TransferStep,
};
use holdfast_platform::problems::{ControlProblem, FoundConflict};
use holdfast_platform::{Caller, Core, Problem, ServiceError};
use holdfast_store::downloads::LinkedFile;
use holdfast_store::{
    StoreError, WriteTransaction, deliveries, downloads, events, jobs, transfers,
};

/// Records of one transaction, unless all move together.
const BATCH: i64 = 50;
/// Transfers that one round ends because their time is over.
const OVERDUE: i64 = 100;

/// Ends expired offers.
pub async fn expire(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let overdue = transfers::overdue(&mut connection, now, OVERDUE).await?;
    drop(connection);

    // One transaction each, so that a conflict about one transfer leaves the others expired.
    for transfer in overdue {
        let next = Transfer {
            state: TransferState::Expiring,
            signed: None,
            acting: None,
            actor: "system".into(),
            ..transfer.clone()
        };

        let mut tx = core.store.begin().await?;
        match transfers::set_state(&mut tx, &transfer, &next, now).await {
            // A party or another node was first.
            Err(StoreError::Conflict) => continue,
            changed => changed?,
        }

        queue(&mut tx, &next, now).await?;
        tx.commit().await?;
    }

    Ok(())
}

/// Makes the step in progress for all records of a transfer. May run twice, also at the same time.
pub async fn advance(core: &Core, id: &TransferId) -> Result<(), ServiceError> {
    // The tree is built once for a step. Reading 10,000 records again for each batch would be quadratic.
    let mut step = None;
    while advance_batch(core, id, &mut step).await? {
        faults::pass("transferred");
    }
    Ok(())
}

/// Records that a step is about, with the state of the transfer in which they were read.
type StepRecords = Option<(TransferState, RecordTree)>;

/// Returns the records that the acting party has called, accepted or confirmed: the same ones however
/// often the step is repeated.
async fn records_of_step(
    connection: &mut SqlConnection,
    transfer: &Transfer,
) -> Result<StepRecords, ServiceError> {
    if is_ending(transfer.state) {
        return Ok(None);
    }

    let (all, last) = (RecordState::ALL, i64::MAX);
    let records = transfers::records(connection, transfer, all, None, last).await?;
    let state = transfer.state;
    // By marks that stay. The state of a record changes during the step, and a repeat after a crash has to
    // build the same tree.
    let about = records.iter().filter(|record| match state {
        TransferState::Proposing => true,
        TransferState::Confirming => record.accepted,
        _ => record.document_hash.is_some(),
    });
    // The seller has signed an offer over ids alone, because the hashes are read by this very step.
    let lines = about.map(|record| {
        let hash = record.document_hash.as_deref();
        (
            &record.envelope,
            hash.filter(|_| state != TransferState::Proposing),
        )
    });
    let tree = RecordTree::new(lines).map_err(incomplete)?;

    Ok(Some((state, tree)))
}

/// Makes the step for some records, or ends it. Returns whether there is more to do.
async fn advance_batch(
    core: &Core,
    id: &TransferId,
    about: &mut StepRecords,
) -> Result<bool, ServiceError> {
    let mut tx = core.store.begin().await?;
    let Some(transfer) = transfers::lock(&mut tx, id).await? else {
        return Ok(false);
    };
    // Another worker may have ended the step since the last batch.
    let Some(step) = transfer.state.step() else {
        return Ok(false);
    };

    // A party may have cancelled the transfer between two batches.
    if about
        .as_ref()
        .is_none_or(|(state, _)| *state != transfer.state)
    {
        *about = records_of_step(&mut tx, &transfer).await?;
    }

    let tree = about.as_ref().map(|(_, tree)| tree);
    // Even an atomic transfer ends in batches: each record that is free again can be used at once.
    let together = transfer.atomic && !is_ending(transfer.state);
    let limit = if together { i64::MAX } else { BATCH };
    // Records of earlier batches have left these states, so a repeat continues behind them.
    let records = transfers::records(&mut tx, &transfer, step.from, None, limit).await?;
    let (mut names, mut refused) = (PartyNames::default(), Vec::new());

    let (mut conflicts, mut done) = (Vec::new(), Vec::new());
    for record in &records {
        let made = step_of(core, &mut tx, &mut names, &transfer, step, record, tree).await;
        let record = match made {
            Ok(hash) => TransferRecord {
                state: step.to,
                accepted: record.accepted || step.to == RecordState::Accepted,
                document_hash: hash.or_else(|| record.document_hash.clone()),
                ..record.clone()
            },
            Err(error) => {
                // An error that is no refusal rolls the batch back, and the job repeats it.
                let (record, conflict) = refusal(record, error)?;
                conflicts.extend(conflict);
                refused.push(record.clone());
                record
            }
        };

        done.push(record);
        faults::pass("transferring");
    }

    // In one statement: a statement for each record was a notable part of a pool's time
    // (docs/decisions/0045).
    transfers::set_records(&mut tx, &transfer, &done).await?;
    if together && !refused.is_empty() {
        // Nothing of this transaction stays. The offer ends, with the reasons.
        drop(tx);
        fail(core, id, &transfer, &refused).await?;
        report(core, conflicts).await?;
        return Ok(true);
    }

    // A record that does not move must not stay locked until the other records have moved.
    for record in &refused {
        unlock(core, &mut tx, &mut names, &transfer, &record.envelope).await?;
    }

    let is_over = records.is_empty() || together;
    if is_over {
        end(core, &mut tx, &mut names, &transfer, step).await?;
    }

    tx.commit().await?;
    // After the commit: a report locks two envelopes in an order of its own, and could wait for this
    // transaction.
    report(core, conflicts).await?;
    Ok(!is_over)
}

/// Reports refused double pledges.
async fn report(core: &Core, conflicts: Vec<FoundConflict>) -> Result<(), ServiceError> {
    for conflict in conflicts {
        double_pledge::report(core, conflict).await?;
    }
    Ok(())
}

/// Whether a step takes records out of a transfer.
fn is_ending(state: TransferState) -> bool {
    matches!(
        state,
        TransferState::Cancelling | TransferState::Expiring | TransferState::Failing
    )
}

/// Returns a record that does not move, with the reason, and the double pledge that is the reason.
fn refusal(
    record: &TransferRecord,
    error: ServiceError,
) -> Result<(TransferRecord, Option<FoundConflict>), ServiceError> {
    let reason = error.to_string();
    let code = match &error {
        // Listed one by one: any other error may pass, and must not end the record's sale.
        ServiceError::Control(
            problem @ (ControlProblem::DoublePledge(_)
            | ControlProblem::Refused(_)
            | ControlProblem::ConsentRequired(_)
            | ControlProblem::Pledged
            | ControlProblem::LegalHold(_)),
        ) => Problem::from(problem).code,
        ServiceError::NotFound(_) => Some("record_not_found"),
        ServiceError::Store(StoreError::Destroyed) => Some("destroyed"),
        _ => return Err(error),
    };
    let record = TransferRecord {
        state: RecordState::Refused,
        code: code.map(str::to_owned),
        reason: Some(reason),
        ..record.clone()
    };

    let conflict = match error {
        ServiceError::Control(ControlProblem::DoublePledge(found)) => Some(*found),
        _ => None,
    };
    Ok((record, conflict))
}

/// Makes the step of one record. Returns the hash of its authoritative copy when it is offered.
async fn step_of(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    transfer: &Transfer,
    step: TransferStep,
    record: &TransferRecord,
    about: Option<&RecordTree>,
) -> Result<Option<String>, ServiceError> {
    if is_ending(transfer.state) {
        // A pending record was not locked by this transfer yet.
        if record.state != RecordState::Pending {
            unlock(core, tx, names, transfer, &record.envelope).await?;
        }
        return Ok(None);
    }

    let caller = acting(transfer);
    let locked = lock(tx, &caller, record.envelope.as_str()).await?;
    let (act, event, named) = match step.to {
        RecordState::Proposed => {
            let event = EventType::ControlTransferProposed;
            (Act::ProposeTransfer, event, Some(&transfer.buyer))
        }
        RecordState::Accepted => (
            Act::AcceptTransfer,
            EventType::ControlTransferAccepted,
            None,
        ),
        _ => (
            Act::ConfirmTransfer,
            EventType::ControlTransferConfirmed,
            None,
        ),
    };

    // The record may have been taken out since, and be in another transfer.
    if step.to != RecordState::Proposed && locked.control.transfer.as_ref() != Some(&transfer.id) {
        return Err(ServiceError::NotFound("Record"));
    }

    let ask = Request {
        named,
        ..Request::of(act, &caller)
    };
    let permitted = permit(core, tx, &locked.envelope, &locked.control, ask).await?;
    let control = locked.control.clone();
    let next = match step.to {
        RecordState::Proposed => control.proposed(transfer.buyer.clone(), transfer.id.clone()),
        RecordState::Accepted => control.accepted(),
        _ => control.passed_on(),
    };

    // With the path to the root, each record's ledger proves by itself that the record is part of the sale.
    let inclusion = about.map(|tree| tree.inclusion(&record.envelope));
    let details = json!({
        "transfer_id": transfer.id, "document_hash": record.document_hash,
        "seller_copy": transfer.seller_copy,
        "inclusion": inclusion.transpose().map_err(incomplete)?.flatten(),
    });
    let done = ActDone {
        emits: false,
        signed: transfer.signed.clone(),
        ..ActDone::new(&caller, event, details)
    };
    settle(core, tx, names, &locked, next, Some(&permitted), done).await?;

    if step.to == RecordState::Confirmed {
        let sold = SoldRecord {
            org: locked.control.org.clone(),
            envelope: record.envelope.clone(),
            party: transfer.seller.clone(),
            transfer: transfer.id.clone(),
            copy: transfer.seller_copy,
            sold_at: core.clock.now(),
        };
        transfers::sold(tx, &sold).await?;

        // Only the originator has links to a copy without a watermark.
        if sold.copy != SellerCopy::Kept && sold.party == sold.org {
            let (org, id) = (&sold.org, &sold.envelope);
            downloads::expire(tx, org, id, LinkedFile::Copy, sold.sold_at).await?;
        }
    }

    // The hash is frozen at the offer, so that the buyer gets the document that it inspected.
    let file = locked.envelope.record.authoritative.file();
    let offered = file.filter(|_| step.to == RecordState::Proposed);
    Ok(offered.map(|file| file.sha256.clone()))
}

/// Returns the party that asked for the step in progress.
fn acting(transfer: &Transfer) -> Caller {
    Caller::named(
        transfer
            .acting
            .clone()
            .unwrap_or_else(|| transfer.seller.clone()),
        transfer.actor.clone(),
    )
}

/// Takes a record out of a transfer, if it is in it. The rules are asked and recorded; a refusal of an
/// organization's own rules does not keep a record locked for good.
async fn unlock(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    transfer: &Transfer,
    envelope: &EnvelopeId,
) -> Result<(), ServiceError> {
    // By the seller, which is a party of every record. The buyer has no part in a record that was not
    // offered.
    let seller = Caller {
        org: transfer.seller.clone(),
        ..acting(transfer)
    };
    let locked = match lock(tx, &seller, envelope.as_str()).await {
        // Of a destroyed record, nothing is locked.
        Err(ServiceError::NotFound(_) | ServiceError::Store(StoreError::Destroyed)) => {
            return Ok(());
        }
        locked => locked?,
    };
    // The record is free, or offered in another transfer since.
    if locked.control.transfer.as_ref() != Some(&transfer.id) {
        return Ok(());
    }

    let caller = acting(transfer);
    let (act, event) = match transfer.state {
        TransferState::Expiring => (Act::ExpireTransfer, EventType::ControlTransferExpired),
        _ => (Act::CancelTransfer, EventType::ControlTransferCancelled),
    };
    let ask = Request {
        actor: match (act, &transfer.acting) {
            (Act::CancelTransfer, Some(party)) => Actor::Party(party),
            _ => Actor::Host,
        },
        is_expired: act == Act::ExpireTransfer,
        ..Request::of(act, &caller)
    };
    let permitted = match permit(core, tx, &locked.envelope, &locked.control, ask).await {
        Ok(permitted) => Some(permitted),
        Err(
            error @ (ServiceError::Control(
                ControlProblem::Refused(_)
                | ControlProblem::ConsentRequired(_)
                | ControlProblem::Pledged,
            )
            | ServiceError::Component(_)),
        ) => {
            tracing::warn!(transfer = %transfer.id, %error, "a transfer ends against the control rules");
            None
        }
        Err(error) => return Err(error),
    };

    let next = locked.control.clone().kept();

    // A statement of another step does not say that the party takes the record out.
    let cancels = transfer.state == TransferState::Cancelling;
    let done = ActDone {
        emits: false,
        signed: transfer.signed.clone().filter(|_| cancels),
        ..ActDone::new(&caller, event, json!({ "transfer_id": transfer.id }))
    };
    settle(core, tx, names, &locked, next, permitted.as_ref(), done).await?;

    Ok(())
}

/// Ends an atomic transfer of which a record cannot move.
async fn fail(
    core: &Core,
    id: &TransferId,
    seen: &Transfer,
    refused: &[TransferRecord],
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(transfer) = transfers::lock(&mut tx, id).await? else {
        return Ok(());
    };
    // Another worker or a party was first: that step ends the transfer.
    if transfer.state != seen.state {
        return Ok(());
    }

    let mut names = PartyNames::default();
    // `Refused` is no state from which the ending step takes records, so they are freed here.
    for record in refused {
        unlock(core, &mut tx, &mut names, &transfer, &record.envelope).await?;
    }

    transfers::set_records(&mut tx, &transfer, refused).await?;
    let next = Transfer {
        state: TransferState::Failing,
        ..transfer.clone()
    };
    transfers::set_state(&mut tx, &transfer, &next, now).await?;

    Ok(tx.commit().await?)
}

/// Ends a step that all records have made, and notifies the parties.
async fn end(
    core: &Core,
    tx: &mut WriteTransaction,
    names: &mut PartyNames,
    transfer: &Transfer,
    step: TransferStep,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let moved = transfers::records(tx, transfer, &[step.to], None, i64::MAX).await?;
    let state = match (moved.is_empty(), is_ending(transfer.state)) {
        // No record can move.
        (true, false) => TransferState::Failed,
        _ => step.done,
    };
    let receipt = match state {
        TransferState::Accepted => Some(TransferReceipt {
            accepted_at: now,
            accepted: root(&moved)?,
        }),
        _ => transfer.receipt.clone(),
    };

    let offered = match state {
        TransferState::Proposed => Some(root(&moved)?),
        _ => transfer.offered.clone(),
    };
    // The next step is another act, and gets a statement of its own.
    let next = Transfer {
        state,
        receipt,
        offered,
        signed: None,
        offered_at: match state {
            TransferState::Proposed => Some(now),
            _ => transfer.offered_at,
        },
        changed_at: now,
        ..transfer.clone()
    };

    transfers::set_state(tx, transfer, &next, now).await?;
    let event = match state {
        TransferState::Proposed => EventType::ControlTransferProposed,
        TransferState::Accepted => EventType::ControlTransferAccepted,
        TransferState::Confirmed => EventType::ControlTransferConfirmed,
        TransferState::Cancelled => EventType::ControlTransferCancelled,
        TransferState::Expired => EventType::ControlTransferExpired,
        _ => EventType::ControlTransferFailed,
    };

    // An acceptance is not compared: it gives the buyer nothing that it did not have since the offer.
    if [TransferState::Proposed, TransferState::Confirmed].contains(&state) {
        let job = CompareRecords {
            record: None,
            transfer: Some(next.id.clone()),
        };
        let key = format!("{}:{state}", next.id);
        jobs::insert(tx, &next.seller, &job, Some(&key), now).await?;
    }

    // One event for the step. One for each record would be 10,000 for both parties.
    let data = json!(named_view(tx, names, &next).await?);
    for party in [&next.seller, &next.buyer] {
        // A buyer learns of an offer when there is one.
        if *party == next.buyer && next.offered_at.is_none() {
            continue;
        }

        let event = Event::of_organization(party.clone(), event, now, data.clone());
        events::insert(tx, &event);
        deliveries::fan_out(tx, &event).await?;
    }

    Ok(())
}

/// Returns the root over records with their documents.
fn root(records: &[TransferRecord]) -> Result<RecordsRoot, ServiceError> {
    let lines = records
        .iter()
        .map(|record| (&record.envelope, record.document_hash.as_deref()));
    Ok(RecordTree::new(lines).map_err(incomplete)?.root().clone())
}
