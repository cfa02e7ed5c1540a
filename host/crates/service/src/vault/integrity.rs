//! Integrity checks of vaulted envelopes: every file's bytes, the ledger's rows, and their
//! places in the log. Everything is recomputed; no earlier hash is trusted.

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::vault::{long_term, vault_in};
use holdfast_adapters::files::FilesError;
use holdfast_domain::checkpoint::entry_leaf;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, StoredFile, VaultRecord};
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::ledger::{CERTIFIED, LedgerEntry, SEAL_EXTENDED, verify_chain};
use holdfast_domain::merkle;
use holdfast_platform::events;
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::integrity::{self, IntegrityProgress};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::{StoreError, envelopes, ledger, log, vault};

pub use holdfast_store::integrity::VaultedRecord;

/// Interval at which every vaulted envelope is checked.
pub const PERIOD: Duration = Duration::from_secs(7 * 86_400);
/// Lease on an envelope being checked. Other nodes take it over after a crash.
const LEASE: Duration = Duration::from_secs(600);
/// Number of envelopes claimed at once.
const BATCH: i64 = 16;

/// A failed integrity check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntegrityProblem {
    /// `authoritative copy`, `copy`, `certificate`, `custody record`, `signed
    /// document`, `seal updates`, `ledger` or `log`.
    pub check: String,
    /// Explanation for people.
    pub detail: String,
    /// Recorded hash.
    pub expected_hash: Option<String>,
    /// Hash computed from the present content.
    pub actual_hash: Option<String>,
}

/// Envelope with a changed or incomplete stored record.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_name": "Retail instalment contract 2041",
    "checked_at": "2026-11-21T09:41:07.250Z",
    "problems": [{ "check": "copy", "detail": "the bytes have another hash", "expected_hash": "9f86d081…",
        "actual_hash": "60303ae2…" }],
}]))]
pub struct IntegrityFinding {
    pub envelope_id: EnvelopeId,
    pub envelope_name: String,
    /// Time of the last check, in which the problems were found.
    pub checked_at: Option<Timestamp>,
    pub problems: Vec<IntegrityProblem>,
}

/// Returns the findings about the envelopes of an organization, newest envelope first.
pub async fn findings(
    core: &Core,
    caller: &Caller,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<IntegrityFinding>, ServiceError> {
    let mut connection = core.store.read().await?;
    let found = integrity::problems_of(&mut connection, &caller.org, after, limit).await?;
    let findings = found.into_iter().map(|one| IntegrityFinding {
        envelope_id: one.envelope,
        envelope_name: one.name,
        checked_at: one.checked_at,
        problems: one.problems,
    });

    Ok(findings.collect())
}

impl IntegrityProblem {
    fn new(check: &str, detail: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            detail: detail.into(),
            expected_hash: None,
            actual_hash: None,
        }
    }

    fn with_hashes(mut self, expected: &str, actual: &str) -> Self {
        self.expected_hash = Some(expected.into());
        self.actual_hash = Some(actual.into());
        self
    }
}

/// Returns custodians and last checks of records of an organization.
pub async fn of_records(
    core: &Core,
    org: &OrgId,
    ids: &[&EnvelopeId],
) -> Result<HashMap<EnvelopeId, VaultedRecord>, ServiceError> {
    let mut connection = core.store.read().await?;
    Ok(integrity::of_records(&mut connection, org, ids).await?)
}

/// Returns the time of an envelope's next check. Each envelope has a fixed slot of the week,
/// derived from its id, so that envelopes vaulted together are not all read at once.
pub fn next_look(envelope: &EnvelopeId, now: Timestamp) -> Timestamp {
    // Ids begin with their time. Their digest spreads records that were vaulted together over the week.
    let digest = Sha256::digest(envelope.as_str());
    let share = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let week = PERIOD.as_millis() as i64;
    let moment = i64::from(share) * week / (1 << 32);
    let wait = (moment - now.as_millis()).rem_euclid(week);
    // The slot is right now, which means this check: the next one is in a week.
    let wait = if wait == 0 { week } else { wait };
    Timestamp::from_millis(now.as_millis() + wait)
}

/// Result of checking one envelope.
pub struct IntegrityCheck {
    pub envelope: EnvelopeId,
    /// Error that prevented reading. Not evidence of tampering; the check is retried.
    pub unread: Option<ServiceError>,
}

/// Checks up to 16 due envelopes; returns an empty list when none is due.
///
/// Several nodes may run it concurrently: each envelope is leased to one of them.
pub async fn sweep(core: &Core) -> Result<Vec<IntegrityCheck>, ServiceError> {
    let now = core.clock.now();
    let due = integrity::claim(&core.store, now, now + LEASE, BATCH).await?;
    let mut looked = Vec::new();
    for due in due {
        let outcome = look(core, &due).await;
        match &outcome {
            Ok(()) => drop(core.metrics.integrity_checked.inc()),
            Err(error) => {
                // The claim ends with its lease, so the envelope is due again after ten minutes.
                core.metrics.integrity_unread.inc();
                tracing::error!(envelope = %due.envelope, %error, "vaulted envelope could not be re-read");
            }
        }

        looked.push(IntegrityCheck {
            envelope: due.envelope,
            unread: outcome.err(),
        });
    }

    Ok(looked)
}

/// Checks one envelope, stores the findings, and reports findings that are new.
async fn look(core: &Core, due: &OwnedEnvelope) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, &due.org, &due.envelope).await?;
    // Reading the files back takes long, so the connection returns to the pool first.
    drop(connection);
    let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
    let mut problems = problems(core, &envelope).await?;
    if !problems.is_empty() {
        // A release in the meantime moves the live copy, and a change of control replaces the certificate,
        // which look like damage: check again with the current record.
        let mut connection = core.store.read().await?;
        let again = envelopes::get(&mut connection, &due.org, &due.envelope).await?;
        drop(connection);
        if let Some(again) = again.filter(|again| is_another(&again.record, &envelope.record)) {
            problems = self::problems(core, &again).await?;
        }
    }

    let now = core.clock.now();
    let found = (!problems.is_empty()).then(|| json!(problems).to_string());
    let mut tx = core.store.begin().await?;

    // The lock serializes concurrent checks, so that one of them reports a finding.
    let envelope = lookup::lock_envelope(&mut tx, &due.org, &due.envelope).await?;
    let known = integrity::problems(&mut tx, due).await?;

    // Findings equal to those of the previous check were reported then.
    if found.is_some() && found != known {
        for problem in &problems {
            tracing::error!(envelope = %envelope.id, check = problem.check, problem.detail, "vaulted envelope failed its integrity check");
        }

        if let Some(first) = problems.first() {
            let data = json!({
                "expected_hash": first.expected_hash,
                "actual_hash": first.actual_hash,
                "problems": problems,
            });
            let event_type = EventType::VaultTamperDetected;
            events::record_and_emit(&mut tx, &envelope, "system", event_type, data, now).await?;
        }
    }

    let next = next_look(&due.envelope, now);
    integrity::checked(&mut tx, due, now, next, found.as_deref()).await?;
    Ok(tx.commit().await?)
}

/// Returns all integrity problems of an envelope's stored record.
async fn problems(core: &Core, envelope: &Envelope) -> Result<Vec<IntegrityProblem>, ServiceError> {
    // Before the ledger, which then has the entry about them.
    let updates = long_term::updates(core, envelope).await?;
    let mut connection = core.store.read().await?;
    let places = log::places(&mut connection, Some(&envelope.org), &envelope.id).await?;
    let entries = ledger::list(&mut connection, Some(&envelope.org), &envelope.id).await?;
    let source = vault::source(&mut connection, envelope, vault_in::SOURCE).await?;
    let needed: Vec<_> = places
        .iter()
        .map(|(_, index)| merkle::TileId::of_leaf(*index))
        .collect();
    let tiles = log::tiles(&mut connection, needed).await?;

    drop(connection);

    let mut problems = Vec::new();
    if let Err(error) = verify_chain(&entries) {
        problems.push(IntegrityProblem::new("ledger", error.to_string()));
    }

    // An attacker who rewrites all rows can chain them anew. The leaves in the log still have the old
    // hashes.
    for (sequence, index) in &places {
        let entry = entries.iter().find(|entry| entry.sequence == *sequence);
        problems.extend(place_problem(envelope, *sequence, *index, entry, &tiles));
    }

    let mut vaultings = entries
        .iter()
        .filter(|entry| entry.action == EventType::VaultStored.as_str())
        .map(|entry| &entry.details);
    let stored = vaultings.next();
    if stored.is_none() {
        problems.push(IntegrityProblem::new(
            "ledger",
            "it does not tell of the vaulting",
        ));
    }

    // A second entry could bring the hashes of other files. Only the first one counts, and the second is
    // a finding.
    if vaultings.next().is_some() {
        problems.push(IntegrityProblem::new(
            "ledger",
            "it tells of more than one vaulting",
        ));
    }

    let anew = entries
        .iter()
        .rfind(|entry| entry.action == CERTIFIED)
        .map(|entry| &entry.details);

    let authoritative = envelope.record.authoritative.file();
    for (check, member, file) in [
        ("authoritative copy", "document_hash", authoritative),
        ("signed document", "signed_document_hash", source.as_ref()),
        ("copy", "copy_hash", envelope.record.copy.as_ref()),
        (
            "certificate",
            "certificate_hash",
            envelope.record.certificate.as_ref(),
        ),
        (
            "custody record",
            "custody_record_hash",
            envelope.record.custody_record.as_ref(),
        ),
    ] {
        // A change of control replaces the certificate, and nothing else.
        let told = match check {
            "certificate" => anew.or(stored),
            _ => stored,
        };
        let recorded = told.and_then(|told| told[member].as_str());
        problems.extend(file_problem(core, check, file, recorded).await?);
    }

    let extended = entries.iter().filter(|entry| entry.action == SEAL_EXTENDED);
    let mut hashes = extended.filter_map(|entry| entry.details["updates_hash"].as_str());
    if let Some(newest) = hashes.clone().next_back() {
        let known = updates.as_ref().map(|file| file.sha256.as_str());
        // An update may have been added since the row was read.
        let recorded = hashes.find(|hash| Some(*hash) == known).unwrap_or(newest);
        let problem = file_problem(core, "seal updates", updates.as_ref(), Some(recorded));
        problems.extend(problem.await?);
    }

    Ok(problems)
}

/// Checks that a ledger entry is the one at its place in the log.
fn place_problem(
    envelope: &Envelope,
    sequence: i64,
    index: u64,
    entry: Option<&LedgerEntry>,
    tiles: &merkle::TileReader,
) -> Option<IntegrityProblem> {
    let Some(entry) = entry else {
        return Some(IntegrityProblem::new(
            "log",
            format!("entry {sequence} of the ledger is missing: the log has it in place {index}"),
        ));
    };

    // The chain has a withheld entry only behind a destruction, and then its hash is all that is left of it.
    let hash = if entry.withheld {
        entry.hash.clone()
    } else {
        entry.computed_hash()
    };
    let actual = entry_leaf(envelope.id.as_str(), sequence, &hash);
    match tiles.leaf(index) {
        Ok(expected) if expected == actual => None,
        Ok(expected) => Some(
            IntegrityProblem::new(
                "log",
                format!(
                    "entry {sequence} of the ledger is not the one in place {index} of the log"
                ),
            )
            .with_hashes(&hex::encode(expected), &hex::encode(actual)),
        ),
        Err(missing) => Some(IntegrityProblem::new("log", missing.to_string())),
    }
}

/// Whether the record has other files than it had.
fn is_another(now: &VaultRecord, before: &VaultRecord) -> bool {
    now.authoritative != before.authoritative || now.certificate != before.certificate
}

/// Checks that a file has the hash recorded in the ledger.
async fn file_problem(
    core: &Core,
    check: &str,
    file: Option<&StoredFile>,
    recorded: Option<&str>,
) -> Result<Option<IntegrityProblem>, ServiceError> {
    let Some(file) = file else {
        // Envelopes vaulted before pipeline steps were recorded have no source file.
        return Ok((check != "signed document")
            .then(|| IntegrityProblem::new(check, format!("the envelope has no {check}"))));
    };
    if let Some(recorded) = recorded.filter(|recorded| *recorded != file.sha256) {
        let detail = format!("the envelope points to another {check} than was vaulted");
        return Ok(Some(
            IntegrityProblem::new(check, detail).with_hashes(recorded, &file.sha256),
        ));
    }

    match core.files.verify(file).await {
        Ok(()) => Ok(None),
        Err(FilesError::Tampered { expected, actual }) => {
            let detail = format!("the stored {check} was changed");
            Ok(Some(
                IntegrityProblem::new(check, detail).with_hashes(&expected, &actual),
            ))
        }
        Err(FilesError::Gone) => {
            let detail = format!("the stored {check} is gone");
            Ok(Some(IntegrityProblem::new(check, detail)))
        }
        // A destroyed record has no files, so this one was destroyed by other means.
        Err(FilesError::Shredded) => {
            let detail = format!("the stored {check} was destroyed with the record's key");
            Ok(Some(IntegrityProblem::new(check, detail)))
        }
        // A store that does not answer proves nothing about the file, so the check is repeated.
        Err(error) => Err(error.into()),
    }
}

/// Makes every envelope due that was not checked since `since`.
pub async fn make_due(core: &Core, since: Timestamp) -> Result<(), StoreError> {
    let mut tx = core.store.begin().await?;
    integrity::make_due(&mut tx, since, core.clock.now()).await?;
    tx.commit().await
}

/// Returns the progress of the checks since `since`.
pub async fn progress(core: &Core, since: Timestamp) -> Result<IntegrityProgress, StoreError> {
    let mut connection = core.store.read().await?;
    integrity::progress(&mut connection, since).await
}

/// Returns every envelope with problems found by its last check, on any node.
pub async fn with_problems(
    core: &Core,
) -> Result<Vec<(EnvelopeId, Vec<IntegrityProblem>)>, StoreError> {
    let mut connection = core.store.read().await?;
    integrity::with_problems(&mut connection).await
}
