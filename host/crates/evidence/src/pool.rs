//! Proofs of a pool: the records of one transfer, each with its ledger, under one signed head of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::archive::{Archive, ArchiveLimits};
use super::bundle::BundleError;
use super::formats::{CustodyLedger, LogEvidence, LogInclusion};
use super::log::{TrustedLogs, opened};
use super::report::{EvidenceVerdict, ReportFinding, SignerReport, VerdictAnchor};
use super::{control, organization, strict};
use holdfast_domain::checkpoint::Checkpoint;
use holdfast_domain::id::{EnvelopeId, OrgId, TransferId};
use holdfast_domain::ledger::{LedgerEntry, is_destroyed, verify_beginning};
use holdfast_domain::merkle::ProvenNodes;
use holdfast_domain::transfer::{RecordInclusion, RecordTree, RecordsRoot};

/// File with the [`PoolList`].
pub const POOL: &str = "pool.json";
/// Folder of the records, each as `<envelope_id>.json`.
pub const RECORDS: &str = "records";

/// Limits of the record's files and of the list. They are read one after the other.
const LIMITS: ArchiveLimits = ArchiveLimits {
    file: 64 * 1024 * 1024,
    total: u64::MAX,
};
/// Maximum number of records, that of a transfer.
const RECORD_LIMIT: usize = 10_000;

/// What a pool consists of: `pool.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoolList {
    /// The transfer.
    pub transfer_id: TransferId,
    /// State of the transfer.
    pub state: String,
    /// Id and name of the seller.
    pub seller: Value,
    /// Id and name of the buyer.
    pub buyer: Value,
    /// What the buyer was offered.
    pub offer: Option<RecordsRoot>,
    /// What the buyer accepted.
    pub receipt: Option<RecordsRoot>,
    /// Head of the log. It has no proofs: those are beside the records.
    pub log: LogEvidence,
    /// The offered records, in the order of their ids.
    pub records: Vec<PooledRecord>,
}

/// A record of a pool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PooledRecord {
    /// The record.
    pub envelope_id: EnvelopeId,
    /// SHA-256 of its authoritative copy.
    pub document_hash: String,
    /// Its state in the transfer.
    pub state: String,
    /// Whether it is part of the receipt.
    pub accepted: bool,
}

/// Evidence of one record: `records/<envelope_id>.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PoolRecordFile {
    /// The record.
    pub envelope_id: EnvelopeId,
    /// Its originator.
    pub org_id: OrgId,
    /// Its ledger, to the end of the reader's part in the record.
    pub entries: Vec<LedgerEntry>,
    /// Proof that the last entry is in the log. Each entry contains the hash of the one before.
    pub inclusion: LogInclusion,
}

/// Result of verifying a pool.
#[derive(Clone, Debug, Serialize)]
pub struct PoolReport {
    /// Conclusion.
    pub verdict: EvidenceVerdict,
    /// True for the verdict `VALID` only.
    pub valid: bool,
    /// Known log that anchors the evidence.
    pub anchor: Option<VerdictAnchor>,
    /// The transfer.
    pub transfer_id: String,
    /// Number of records that were checked.
    pub records: usize,
    /// Number of records by the name of their controller.
    pub controlled_by: BTreeMap<String, usize>,
    /// Parties that signed their acts. Compare the keys with those that the parties publish.
    pub signers: Vec<SignerReport>,
    /// Everything that does not hold.
    pub problems: Vec<PoolProblem>,
    /// Checks that could not be made, and how to make them.
    pub unproven: Vec<String>,
    /// The records of the pool. Their number is in the report, which a pool of thousands would otherwise fill.
    #[serde(skip)]
    pub listed: BTreeSet<EnvelopeId>,
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolProblem {
    /// The record; null for the pool as a whole.
    pub envelope_id: Option<String>,
    /// Explanation in plain words.
    pub detail: String,
}

/// Checks the proofs of a pool: the log's head, and for every record its ledger, its acts of control and
/// its place in the transfer.
///
/// # Errors
/// The file is no zip with a pool.
pub fn verify_pool(
    file: impl Read + Seek,
    trusted: &TrustedLogs,
) -> Result<PoolReport, BundleError> {
    let unreadable = |error: std::io::Error| BundleError::Read(error.to_string());
    let mut zip = Archive::open(file, LIMITS).map_err(unreadable)?;
    let list = match zip.read(POOL) {
        Some(list) => list.and_then(|list| strict::read::<PoolList>(&list)),
        None => return Err(BundleError::Missing(POOL)),
    };
    let list = list.map_err(|why| BundleError::Read(format!("{POOL}: {why}")))?;

    let mut check = PoolCheck::default();
    // Problems of the zip are findings. The records that can be read are checked all the same.
    for problem in std::mem::take(&mut zip.problems) {
        check.problem(None, &problem);
    }

    let log = opened(&list.log, trusted);
    if let Some(why) = log.failure() {
        check.problem(None, why);
    }

    let checkpoint = log.checkpoint.as_ref();
    check.list(&list);
    // The list is untrusted, and each record costs a proof and a replay of its acts.
    if list.records.len() > RECORD_LIMIT {
        let count = list.records.len();
        let why = format!("the list has {count} records, the limit is {RECORD_LIMIT}");
        check.problem(None, &why);
    }

    for record in list.records.iter().take(RECORD_LIMIT) {
        let id = record.envelope_id.as_str();
        let Some(file) = zip.read(&record_file(id)) else {
            check.problem(Some(id), "the file of the record is missing");
            continue;
        };

        match file.and_then(|file| strict::read(&file)) {
            Ok(file) => check.record(&list, record, file, checkpoint),
            Err(error) => check.problem(Some(id), &error),
        }
    }

    check.others(&list, zip.names());
    // A problem outweighs the anchor: a log that holds all entries may hold wrong ones.
    let verdict = match (check.problems.is_empty(), &log.anchor) {
        (false, _) => EvidenceVerdict::NotValid,
        (true, _) if !check.unproven.is_empty() => EvidenceVerdict::NotComplete,
        (true, None) => EvidenceVerdict::NotAnchored,
        (true, Some(_)) => EvidenceVerdict::Valid,
    };

    let mut unproven = log.unproven();
    unproven.extend(check.unproven);
    let signers = check.signers.into_iter();
    Ok(PoolReport {
        verdict,
        valid: verdict == EvidenceVerdict::Valid,
        anchor: log.anchor,
        transfer_id: list.transfer_id.to_string(),
        records: check.records,
        controlled_by: check.controlled_by,
        signers: signers
            .map(|(organization_id, keys)| SignerReport {
                organization_id,
                thumbprints: keys.into_iter().collect(),
            })
            .collect(),
        problems: check.problems,
        unproven,
        listed: list
            .records
            .into_iter()
            .map(|record| record.envelope_id)
            .collect(),
    })
}

/// Returns the name of a record's file.
pub fn record_file(envelope: &str) -> String {
    format!("{RECORDS}/{envelope}.json")
}

#[derive(Default)]
struct PoolCheck {
    records: usize,
    controlled_by: BTreeMap<String, usize>,
    signers: BTreeMap<String, BTreeSet<String>>,
    problems: Vec<PoolProblem>,
    unproven: Vec<String>,
}

impl PoolCheck {
    fn problem(&mut self, envelope: Option<&str>, detail: &str) {
        self.problems.push(PoolProblem {
            envelope_id: envelope.map(str::to_owned),
            detail: detail.to_owned(),
        });
    }

    /// Checks that the list has exactly the records of the offer and the receipt.
    fn list(&mut self, list: &PoolList) {
        let root = |accepted: bool| {
            let chosen = list.records.iter();
            let chosen = chosen.filter(|record| !accepted || record.accepted);
            let lines =
                chosen.map(|record| (&record.envelope_id, Some(record.document_hash.as_str())));
            RecordTree::new(lines).ok().map(|tree| tree.root().clone())
        };
        // The buyer agreed to a root over all records. Another list cannot have the same root.
        if list.offer.is_none() || root(false) != list.offer {
            self.problem(None, "the list of records is not the one that was offered");
        }

        if list.receipt.is_some() && root(true) != list.receipt {
            self.problem(None, "the list of records is not the one of the receipt");
        }
    }

    /// Checks one record.
    fn record(
        &mut self,
        list: &PoolList,
        record: &PooledRecord,
        file: PoolRecordFile,
        checkpoint: Option<&Checkpoint>,
    ) {
        self.records += 1;
        let id = record.envelope_id.as_str();
        if file.envelope_id != record.envelope_id {
            let detail = format!("the file is about {}", file.envelope_id);
            return self.problem(Some(id), &detail);
        }

        // A party that left the record gets its ledger to the end of its part. A later destruction is behind that.
        if let Err(error) = verify_beginning(&file.entries) {
            return self.problem(Some(id), &error.to_string());
        }

        // The head stands once in the list of the pool, so the ledgers have none of their own.
        let ledger = CustodyLedger {
            envelope_id: file.envelope_id,
            org_id: file.org_id,
            entries: file.entries,
            log: None,
        };
        if checkpoint.is_some_and(|head| !in_log(&ledger, file.inclusion, head)) {
            self.problem(Some(id), "its last entry is not the one that the log holds");
        }

        // One destroyed record takes nothing from the evidence of the others.
        if ledger.entries.iter().any(|entry| entry.withheld) {
            let why = if is_destroyed(&ledger.entries) {
                format!("{id}: the record was destroyed, and the details of its acts with it")
            } else {
                format!(
                    "{id}: details of its entries are withheld: either the record was destroyed after this part of \
                     its ledger, or the file was made without them"
                )
            };
            return self.unproven.push(why);
        }

        let finding = organization(&ledger);
        if finding.ok != Some(true) {
            self.problem(Some(id), &finding.detail);
        }

        let (finding, report) = match control::replay(id, &ledger.entries, Some(&list.log)) {
            Some((ReportFinding { ok: Some(true), .. }, Some(report))) => (None, Some(report)),
            Some((finding, _)) => (Some(finding.detail), None),
            None => (Some("it has no acts of control".into()), None),
        };
        // After a failure in the acts, the controller that they lead to must not be counted.
        if let Some(detail) = finding {
            return self.problem(Some(id), &detail);
        }
        if let Err(detail) = in_transfer(list, record, &ledger.entries) {
            return self.problem(Some(id), detail);
        }

        if let Some(report) = report {
            *self.controlled_by.entry(report.controller).or_default() += 1;
            for signer in report.signers {
                let keys = self.signers.entry(signer.organization_id).or_default();
                keys.extend(signer.thumbprints);
            }
        }
    }

    /// Reports files that belong to no record of the pool.
    fn others<'a>(&mut self, list: &PoolList, names: impl Iterator<Item = &'a str>) {
        let records = list.records.iter();
        let known: BTreeSet<String> = records
            .map(|record| record_file(record.envelope_id.as_str()))
            .collect();
        for name in names.filter(|name| *name != POOL && !known.contains(*name)) {
            self.problem(None, &format!("{name} belongs to no record of the pool"));
        }
    }
}

/// Whether the last entry is in the log; with the chain, all entries are.
fn in_log(ledger: &CustodyLedger, inclusion: LogInclusion, head: &Checkpoint) -> bool {
    let Some(last) = ledger.entries.last() else {
        return false;
    };

    // The check wants a proof for each entry, and the file has one for the last entry only.
    let ledger = CustodyLedger {
        entries: vec![last.clone()],
        ..ledger.clone()
    };
    let mut nodes = ProvenNodes::new(head.size, head.root);
    super::log::included(&ledger, &[inclusion], &mut nodes).is_ok()
}

/// Checks that the ledger has the record's step of this transfer, among exactly the records of the pool.
fn in_transfer(
    list: &PoolList,
    record: &PooledRecord,
    entries: &[LedgerEntry],
) -> Result<(), &'static str> {
    let (action, among) = match (list.state.as_str(), record.state.as_str()) {
        // It left the transfer.
        (_, "refused") => ("control.transfer.cancelled", None),
        ("confirmed", "confirmed") => ("control.transfer.confirmed", Some(&list.receipt)),
        ("accepted", "accepted") => ("control.transfer.accepted", Some(&list.offer)),
        // Its step names the records that the seller asked for, of which some may not be offered.
        ("proposed", "proposed") => ("control.transfer.proposed", None),
        _ => return Err("its state does not fit that of the transfer"),
    };

    let transfer = Some(list.transfer_id.as_str());
    let step = entries
        .iter()
        .find(|entry| entry.action == action && entry.details["transfer_id"].as_str() == transfer);
    let step = step.ok_or("its ledger does not have this step of the transfer")?;
    let inclusion: Option<RecordInclusion> =
        serde_json::from_value(step.details["inclusion"].clone()).ok();
    let named = inclusion.map(|inclusion| inclusion.among);
    if among.is_some_and(|among| named != *among) {
        return Err("its step names other records");
    }

    // The list could otherwise offer a document that the vault never had.
    let stored = entries.iter().find(|entry| entry.action == "vault.stored");
    let stored = stored.and_then(|entry| entry.details["document_hash"].as_str());
    if stored == Some(record.document_hash.as_str()) {
        Ok(())
    } else {
        Err("its document is another one than the list names")
    }
}
