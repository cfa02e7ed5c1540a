//! Proofs of a pool: the ledgers of a transfer's records in one file, which both sides check offline.

use std::io::{self, Write as _};

use bytes::Bytes;
use serde_json::json;
use tokio::sync::mpsc;

use crate::control::PartyNames;
use crate::control::transfers::{check_settled, is_party, unknown};
use crate::vault::Vault;
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_domain::control::ControlRecord;
use holdfast_domain::event::EventType;
use holdfast_domain::id::TransferId;
use holdfast_domain::ledger::{LedgerEntry, shown};
use holdfast_domain::transfer::{RecordState, Transfer, TransferRecord};
use holdfast_evidence::pool::{POOL, PoolList, PoolRecordFile, PooledRecord, record_file};
use holdfast_platform::log;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{control as rows, ledger, transfers};

/// Files that may wait for the writer of the zip.
const QUEUE: usize = 16;

/// Writes the proofs of a pool to a zip file. Each party gets the ledgers to the end of its own part in
/// the records.
pub async fn proofs(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
) -> Result<SpooledFile, ServiceError> {
    let id = TransferId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let transfer = transfers::get(&mut connection, &id).await?;
    let transfer = transfer.filter(|transfer| is_party(transfer, &caller.org));
    let transfer = transfer.ok_or_else(unknown)?;
    check_settled(&transfer)?;
    let (all, last) = (RecordState::ALL, i64::MAX);
    let records = transfers::records(&mut connection, &transfer, all, None, last).await?;
    let offered: Vec<TransferRecord> = records
        .into_iter()
        .filter(|record| record.document_hash.is_some())
        .collect();

    drop(connection);

    // The newest entries belong to the pool.
    let size = log::cosignatures::catch_up(core, &vault.log).await?;
    let list = list(core, &transfer, &offered, size).await?;
    // All files show the log at this size, so that one signed head proves them all.
    let size = log::size_of(&list.log.checkpoint).unwrap_or_default();

    let (sender, mut receiver) = mpsc::channel::<(String, Bytes)>(QUEUE);
    let write = move |file: &mut std::fs::File| {
        let mut zip = zip::ZipWriter::new(io::BufWriter::new(file));
        while let Some((name, bytes)) = receiver.blocking_recv() {
            zip.start_file(name, zip::write::SimpleFileOptions::default())?;
            zip.write_all(&bytes)?;
        }
        zip.finish()?.flush()
    };

    let folder = core.config.spool_folder();
    let written = SpooledFile::written(&folder, write);
    let read = async {
        // Owned by this future, so that the channel closes and the writer ends after the last file.
        let sender = sender;
        let text = serde_json::to_vec(&list).map_err(unwritable)?;

        // A send fails if the writer failed, which has the reason.
        let mut goes_on = sender.send((POOL.to_owned(), text.into())).await.is_ok();
        for record in &offered {
            if !goes_on {
                break;
            }

            let file = record_of(core, caller, &transfer, record, size).await?;
            let name = record_file(file.envelope_id.as_str());
            let text = serde_json::to_vec(&file).map_err(unwritable)?;
            goes_on = sender.send((name, text.into())).await.is_ok();
        }

        Ok::<(), ServiceError>(())
    };

    // The writer succeeds with half a file after a failed read, so the reader's error counts first.
    let (written, read) = tokio::join!(written, read);
    read?;
    Ok(written.map_err(FilesError::Spool)?)
}

fn unwritable(error: serde_json::Error) -> ServiceError {
    ServiceError::Internal(error.to_string())
}

async fn list(
    core: &Core,
    transfer: &Transfer,
    offered: &[TransferRecord],
    covered: u64,
) -> Result<PoolList, ServiceError> {
    let mut connection = core.store.read().await?;
    let mut names = PartyNames::default();
    let seller = names.party(&mut connection, &transfer.seller).await?;
    let buyer = names.party(&mut connection, &transfer.buyer).await?;
    let records = offered.iter().map(|record| PooledRecord {
        envelope_id: record.envelope.clone(),
        document_hash: record.document_hash.clone().unwrap_or_default(),
        state: record.state.to_string(),
        accepted: record.accepted,
    });

    let receipt = transfer.receipt.as_ref();
    Ok(PoolList {
        transfer_id: transfer.id.clone(),
        state: transfer.state.to_string(),
        seller: json!(seller),
        buyer: json!(buyer),
        offer: transfer.offered.clone(),
        receipt: receipt.map(|receipt| receipt.accepted.clone()),
        log: log::signed_head(core, covered).await?,
        records: records.collect(),
    })
}

/// Returns the evidence of one record.
async fn record_of(
    core: &Core,
    caller: &Caller,
    transfer: &Transfer,
    record: &TransferRecord,
    size: u64,
) -> Result<PoolRecordFile, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = rows::of_record(&mut connection, &record.envelope).await?;
    let control = found.ok_or_else(|| {
        ServiceError::Internal(format!(
            "the transferred {} has no controller",
            record.envelope
        ))
    })?;
    let mut entries = ledger::list(&mut connection, Some(&control.org), &record.envelope).await?;
    let end = end_of_part(caller, transfer, &control, &entries);
    // By the whole chain, which has the destruction.
    entries = shown(entries);
    entries.truncate(end.unwrap_or(usize::MAX));

    let (org, id) = (&control.org, &record.envelope);
    let placed = log::last_inclusion(&mut connection, org, id, &entries, size).await?;
    let inclusion = placed.ok_or(ServiceError::Busy)?;
    // An entry behind the proved one would be a claim without proof.
    entries.retain(|entry| entry.sequence <= inclusion.sequence);

    Ok(PoolRecordFile {
        envelope_id: record.envelope.clone(),
        org_id: control.org,
        entries,
        inclusion,
    })
}

/// Returns the number of entries that belong to a party that has left the record: up to its last sale, or to
/// the end of this transfer. `None` for one that still has a part in it.
///
/// After the destruction of the record, the entry of the sale may name no party. The first end of a transfer without
/// details counts then: an earlier one shows less, and the record is unproven in any case.
fn end_of_part(
    caller: &Caller,
    transfer: &Transfer,
    control: &ControlRecord,
    entries: &[LedgerEntry],
) -> Option<usize> {
    if control.parties().contains(&&caller.org) {
        return None;
    }

    let confirmed = EventType::ControlTransferConfirmed.as_str();
    let cancelled = EventType::ControlTransferCancelled.as_str();
    let own = entries.iter().rposition(|entry| {
        let party = entry.details["party"]["organization_id"].as_str();
        entry.action == confirmed && party == Some(caller.org.as_str())
    });
    let this = || {
        entries.iter().position(|entry| {
            [confirmed, cancelled].contains(&entry.action.as_str())
                && entry.details["transfer_id"].as_str() == Some(transfer.id.as_str())
        })
    };

    let withheld = || {
        entries.iter().position(|entry| {
            entry.withheld && [confirmed, cancelled].contains(&entry.action.as_str())
        })
    };

    own.or_else(this).or_else(withheld).map(|index| index + 1)
}
