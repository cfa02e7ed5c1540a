//! The job that checks a tape: rows in chunks, each with its results in one transaction.
//!
//! After a crash, the file is read again from its beginning: its rows are known only by a count then, a
//! digest and the records that they list, so that the result is the same as without the crash.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Seek as _;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::population;
use crate::facts;
use holdfast_adapters::files::FilesError;
use holdfast_base::faults;
use holdfast_domain::facts::FactSheet;
use holdfast_domain::id::{EnvelopeId, OrgId, TapeId};
use holdfast_domain::ledger::NewEntry;
use holdfast_domain::tape::{
    FindingCode, KeyScan, OpenError, RowCase, RowComparison, RowMatch, RowProblem, RowResult,
    RowStatus, RowsChecked, Severity, SharedKeys, StoredRefusal, TAPE_CHECKED, Tape, TapeChain,
    TapeCheck, TapeFinding, TapeFormat, TapeKey, TapeMap, TapeReader, TapeRow, TapeStatus,
    TooManyRows, outcomes, reuse_hash,
};
use holdfast_platform::{Core, ServiceError};
use holdfast_store::row::OwnedEnvelope;
use holdfast_store::tapes::{self as rows, RowFilter, StoredRow};
use holdfast_store::{StoreError, fingerprints, ledger, organizations};

/// Rows of a transaction.
const CHUNK: usize = 1_000;
/// Text of a transaction's rows, in bytes. A row may have a mebibyte.
const CHUNK_TEXT: usize = 4 * 1024 * 1024;
/// Chunks that may wait for the database.
const QUEUE: usize = 2;
/// Comparisons between two moments at which other tasks of the thread run.
const AT_ONCE: usize = 100;
/// Tapes of other names that are searched for the same records. Each costs a statement a chunk.
const OTHERS: i64 = 20;
/// Results of before that are read at once.
const PAGE: i64 = 5_000;
/// Checks after which a damaged or missing file is given up: with the pauses of a job, an hour in which an operator can put
/// it back.
const ATTEMPTS: i64 = 8;
/// Rows with claims of others that the ledger's entry lists.
const CLAIMS: i64 = 100;

/// A row of the file, or why it cannot be read.
type ReadRow = Result<TapeRow, RowProblem>;

/// Why a check ended without a result.
enum CheckFailure {
    /// The file is no tape for its map. That is a result, too.
    Refused(StoredRefusal),
    Service(ServiceError),
}

impl From<ServiceError> for CheckFailure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<StoreError> for CheckFailure {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}

impl From<FilesError> for CheckFailure {
    fn from(error: FilesError) -> Self {
        Self::Service(error.into())
    }
}

/// Checks a tape to its end. May run twice, also at once: the first worker counts.
pub async fn check(core: &Core, org: &OrgId, id: &TapeId) -> Result<(), ServiceError> {
    let mut connection = core.store.read().await?;
    let tape = rows::get(&mut connection, org, id).await?;
    drop(connection);
    let Some(tape) = tape.filter(|tape| tape.status == TapeStatus::Checking) else {
        return Ok(());
    };

    match run(core, tape.clone()).await {
        Ok(()) => Ok(()),
        Err(CheckFailure::Refused(refusal)) => {
            end(core, &tape, TapeStatus::Refused, &refusal).await
        }
        // Also a conflict with another worker: that one may have died or lost its lease by now, so the job has to run
        // again until the tape has a result.
        Err(CheckFailure::Service(error)) => again(core, &tape, error).await,
    }
}

/// Returns the error, so that the job runs again, unless the stored file was damaged or missing several times.
async fn again(core: &Core, tape: &Tape, error: ServiceError) -> Result<(), ServiceError> {
    let defect = match &error {
        ServiceError::Files(error) => defect(error),
        _ => None,
    };
    let Some(defect) = defect else {
        return Err(error);
    };
    if tape.failures + 1 >= ATTEMPTS {
        tracing::warn!(tape_id = %tape.id, %error, "check of a tape given up");
        return end(core, tape, TapeStatus::Failed, &defect).await;
    }

    let mut tx = core.store.begin().await?;
    rows::count_failure(&mut tx, tape).await?;
    tx.commit().await?;
    Err(error)
}

async fn end(
    core: &Core,
    tape: &Tape,
    status: TapeStatus,
    reason: &StoredRefusal,
) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    rows::end(&mut tx, tape, status, reason, core.clock.now()).await?;
    tx.commit().await?;
    Ok(())
}

/// Returns the defect of a stored file: a retry helps only after an operator put it back.
fn defect(error: &FilesError) -> Option<StoredRefusal> {
    let (code, message) = match error {
        FilesError::Tampered { .. } | FilesError::Damaged => (
            "file_damaged",
            "The stored file of the tape is not the one that was sent; send it again",
        ),
        FilesError::Gone => (
            "file_missing",
            "The stored file of the tape is missing; send it again",
        ),
        _ => return None,
    };
    Some(StoredRefusal {
        code: code.into(),
        message: message.into(),
    })
}

async fn run(core: &Core, mut tape: Tape) -> Result<(), CheckFailure> {
    let spooled = core
        .files
        .spooled(&tape.file, &core.config.spool_folder())
        .await?;
    let (format, map) = (tape.format, tape.map.clone());
    let scanned = tokio::task::spawn_blocking(move || {
        let file = spooled.into_file().map_err(OpenError::Read)?;
        scan(file, format, &map)
    });
    let (file, shared) = joined(scanned.await)??;

    let index = population::index(core, &tape).await?;
    let done = tape
        .progress
        .clone()
        .unwrap_or_else(|| RowsChecked::none(&tape.map));
    let mut check = TapeCheck::new(tape.map.clone(), index, shared, done);
    restore(core, &tape, &mut check).await?;
    let mut connection = core.store.read().await?;
    let newest = rows::newest_of_names(&mut connection, &tape, OTHERS + 1).await?;
    drop(connection);
    let (same, others): (Vec<Tape>, Vec<Tape>) = newest
        .into_iter()
        .partition(|other| other.name == tape.name);
    let neighbours = OtherTapes {
        before: same.into_iter().next(),
        others,
    };

    // Unlisted records come last, so none is there while rows are missing.
    if check.done().unlisted == 0 {
        let behind = check.done().last_line;
        let (sender, mut receiver) = mpsc::channel::<Vec<ReadRow>>(QUEUE);
        let map = tape.map.clone();
        let reading =
            tokio::task::spawn_blocking(move || send_rows(file, format, &map, behind, &sender));
        while let Some(chunk) = receiver.recv().await {
            let lane = core.pace.begin();
            add_chunk(core, &mut tape, &mut check, &neighbours, chunk).await?;
            faults::pass("tape chunk");
            tokio::time::sleep(lane.end()).await;
        }
        joined(reading.await)??;
    }

    add_unlisted(core, &tape, &mut check).await?;
    finish(core, &tape, &check).await
}

/// Returns what a blocking task returned.
fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, CheckFailure> {
    result.map_err(|error| CheckFailure::Service(ServiceError::Internal(error.to_string())))
}

impl From<OpenError> for CheckFailure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Refused(refusal) => Self::Refused(StoredRefusal {
                code: refusal.code.to_owned(),
                message: refusal.message,
            }),
            OpenError::Read(error) => match error.get_ref() {
                Some(inner) if inner.is::<TooManyRows>() => Self::Refused(StoredRefusal {
                    code: "too_many_rows".into(),
                    message: error.to_string(),
                }),
                _ => Self::Service(FilesError::Spool(error).into()),
            },
        }
    }
}

/// Reads the whole file once for rows that share a key. Returns the file at its beginning.
fn scan(
    mut file: File,
    format: TapeFormat,
    map: &TapeMap,
) -> Result<(File, SharedKeys), OpenError> {
    let mut reader = TapeReader::open(file.try_clone()?, format, map)?;
    let mut keys = KeyScan::default();
    while let Some(row) = reader.next_row()? {
        if let Ok(row) = row {
            keys.add(&row, map);
        }
    }

    // The copy of the handle has moved the position of both.
    file.rewind()?;
    Ok((file, keys.finish()))
}

/// Sends the rows behind a line in chunks.
fn send_rows(
    file: File,
    format: TapeFormat,
    map: &TapeMap,
    behind: u64,
    sender: &mpsc::Sender<Vec<ReadRow>>,
) -> Result<(), OpenError> {
    let mut reader = TapeReader::open(file, format, map)?;
    let (mut chunk, mut size) = (Vec::with_capacity(CHUNK), 0);
    while let Some(row) = reader.next_row()? {
        if line_of(&row) <= behind {
            continue;
        }

        size += text_of(&row);
        chunk.push(row);
        if chunk.len() == CHUNK || size > CHUNK_TEXT {
            size = 0;
            // A send fails if the check failed, which has the reason.
            if sender.blocking_send(std::mem::take(&mut chunk)).is_err() {
                return Ok(());
            }
        }
    }

    if !chunk.is_empty() {
        let _ = sender.blocking_send(chunk);
    }
    Ok(())
}

fn text_of(row: &ReadRow) -> usize {
    match row {
        Ok(row) => row.cells.iter().flatten().map(String::len).sum(),
        Err(_) => 0,
    }
}

fn line_of(row: &ReadRow) -> u64 {
    match row {
        Ok(row) => row.line,
        Err(problem) => problem.line,
    }
}

/// Reads which records the rows of before list.
async fn restore(core: &Core, tape: &Tape, check: &mut TapeCheck) -> Result<(), CheckFailure> {
    let (mut after, last) = (0, check.done().last_line);
    while check.done().totals.rows > 0 {
        let mut connection = core.store.read().await?;
        let page = rows::rows(&mut connection, tape, RowFilter::default(), after, PAGE).await?;
        let Some(end) = page.last() else {
            break;
        };

        after = end.line;
        for row in &page {
            let line = u64::try_from(row.line).unwrap_or_default();
            if let Some(envelope) = row.envelope.as_ref().filter(|_| line <= last) {
                check.was_listed(envelope, line);
            }
        }
    }
    Ok(())
}

/// Tapes with results that matter for this one.
struct OtherTapes {
    /// The newest one of the same name.
    before: Option<Tape>,
    /// The newest one of each other name, at most [`OTHERS`].
    others: Vec<Tape>,
}

/// What the database knows about the records of a chunk.
struct KnownRecords {
    digests: HashMap<EnvelopeId, String>,
    sheets: HashMap<u32, FactSheet>,
    /// Comparisons of before, by their hash.
    before: HashMap<String, RowComparison>,
    /// Findings of other tapes and claims.
    elsewhere: HashMap<EnvelopeId, Vec<TapeFinding>>,
}

/// Compares a chunk of rows, and stores the results.
async fn add_chunk(
    core: &Core,
    tape: &mut Tape,
    check: &mut TapeCheck,
    neighbours: &OtherTapes,
    chunk: Vec<ReadRow>,
) -> Result<(), CheckFailure> {
    let found: Vec<RowMatch> = chunk
        .iter()
        .map(|row| match row {
            Ok(row) => check.index.look_up(row, &check.map),
            Err(_) => RowMatch::None,
        })
        .collect();
    let known = known(core, tape, check, neighbours, &chunk, &found).await?;

    let before = check.done().clone();
    let mut stored = Vec::with_capacity(chunk.len());
    for (number, (row, found)) in chunk.into_iter().zip(&found).enumerate() {
        if number % AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
        stored.push(add_row(tape, check, &known, row, found));
    }

    let mut tx = core.store.begin().await?;
    rows::add_rows(&mut tx, tape, &before, check.done(), &stored).await?;
    tx.commit().await?;
    Ok(())
}

fn add_row(
    tape: &mut Tape,
    check: &mut TapeCheck,
    known: &KnownRecords,
    row: ReadRow,
    found: &RowMatch,
) -> StoredRow {
    let (line, row) = match row {
        Ok(row) => (row.line, row),
        Err(problem) => {
            let line = problem.line;
            let result = check.add(line, RowCase::Problem(problem));
            return stored(result, usize::MAX, Vec::new(), None);
        }
    };

    let digest_of = |record: u32| {
        let record = check.index.record(record)?;
        known.digests.get(&record.envelope)
    };
    let case = match found {
        RowMatch::One(record) => {
            let reuse =
                digest_of(*record).map(|digest| reuse_hash(&row, digest, &check.map_sha256));
            let before = reuse.and_then(|reuse| known.before.get(&reuse));
            tape.reused += i64::from(before.is_some());
            before.map(|before| RowCase::Compared(*record, before.clone()))
        }
        _ => None,
    };
    let case =
        case.unwrap_or_else(|| check.compared(&row, found, |record| known.sheets.get(&record)));

    let compared = match &case {
        RowCase::Compared(record, compared) => {
            let digest = digest_of(*record);
            let reuse = digest.map(|digest| reuse_hash(&row, digest, &check.map_sha256));
            (compared.findings.len(), reuse)
        }
        _ => (usize::MAX, None),
    };
    let result = check.add(line, case);
    let elsewhere = result
        .envelope_id
        .as_ref()
        .and_then(|id| known.elsewhere.get(id));
    let elsewhere = elsewhere.cloned().unwrap_or_default();

    let has = |code: FindingCode| elsewhere.iter().any(|finding| finding.code == code);
    tape.other_tapes += i64::from(has(FindingCode::OtherTape));
    tape.other_claims += i64::from(has(FindingCode::OtherClaim));
    let (of_comparison, reuse) = compared;
    let is_first = result.envelope_id.is_some()
        && !result
            .findings
            .iter()
            .any(|finding| finding.code == FindingCode::DuplicateRecord);
    StoredRow {
        is_first,
        ..stored(result, of_comparison, elsewhere, reuse)
    }
}

/// Returns a result as it is stored. The first findings are those of the comparison.
fn stored(
    mut result: RowResult,
    of_comparison: usize,
    elsewhere: Vec<TapeFinding>,
    reuse: Option<String>,
) -> StoredRow {
    let all = result.findings.iter().chain(&elsewhere);
    let heaviest = Severity::ALL
        .iter()
        .find(|severity| all.clone().any(|finding| finding.severity == **severity));
    let heaviest = heaviest.copied();
    let at = of_comparison.min(result.findings.len());
    let repeated = result.findings.split_off(at);
    // A clean row that others list or claim has to be looked at.
    let status = match result.status {
        RowStatus::Clean if !elsewhere.is_empty() => RowStatus::Exceptions,
        status => status,
    };

    StoredRow {
        line: i64::try_from(result.line).unwrap_or(i64::MAX),
        status,
        severity: heaviest,
        envelope: result.envelope_id,
        is_first: false,
        cells: result.cells,
        findings: result.findings,
        repeated,
        elsewhere,
        reuse,
    }
}

/// Reads what the comparison of a chunk needs.
async fn known(
    core: &Core,
    tape: &Tape,
    check: &TapeCheck,
    neighbours: &OtherTapes,
    chunk: &[ReadRow],
    found: &[RowMatch],
) -> Result<KnownRecords, CheckFailure> {
    let owned = |number: u32| {
        let record = check.index.record(number)?;
        Some(OwnedEnvelope {
            org: record.org,
            envelope: record.envelope,
        })
    };
    let mut numbers: HashSet<u32> = HashSet::new();
    for found in found {
        match found {
            RowMatch::None | RowMatch::TooMany(_) => {}
            RowMatch::One(record) => {
                numbers.insert(*record);
            }
            // Only the date distinguishes records with one VIN.
            RowMatch::Several { key, records } if *key == TapeKey::VinAndDate => {
                numbers.extend(records);
            }
            RowMatch::Several { .. } => {}
        }
    }
    let mut numbers: Vec<u32> = numbers.into_iter().collect();
    numbers.sort_unstable();
    let records: Vec<OwnedEnvelope> = numbers.iter().filter_map(|number| owned(*number)).collect();

    let mut connection = core.store.read().await?;
    let digests = rows::facts_digests(&mut connection, &records).await?;
    let before = match &neighbours.before {
        Some(before) => comparisons_of(&mut connection, before, &records).await?,
        None => HashMap::new(),
    };
    drop(connection);

    // Records of rows with a comparison of before need no facts.
    let mut needed: HashSet<u32> = HashSet::new();
    for (row, found) in chunk.iter().zip(found) {
        let (Ok(row), RowMatch::One(record)) = (row, found) else {
            if let RowMatch::Several { records, .. } = found {
                needed.extend(records);
            }
            continue;
        };
        let digest = owned(*record).and_then(|record| digests.get(&record.envelope));
        let reuse = digest.map(|digest| reuse_hash(row, digest, &check.map_sha256));
        if !reuse.is_some_and(|reuse| before.contains_key(&reuse)) {
            needed.insert(*record);
        }
    }
    let needed: Vec<u32> = numbers
        .iter()
        .copied()
        .filter(|number| needed.contains(number))
        .collect();
    let sheets = sheets_of(core, check, &needed).await?;
    let elsewhere = elsewhere(core, tape, neighbours, &records).await?;

    Ok(KnownRecords {
        digests,
        sheets,
        before,
        elsewhere,
    })
}

/// Returns the comparisons of an earlier tape with these records, by their hash.
async fn comparisons_of(
    connection: &mut holdfast_store::SqlConnection,
    before: &Tape,
    records: &[OwnedEnvelope],
) -> Result<HashMap<String, RowComparison>, StoreError> {
    let ids: Vec<EnvelopeId> = records
        .iter()
        .map(|record| record.envelope.clone())
        .collect();
    let found = rows::rows_of_records(connection, before, &ids).await?;
    let found = found
        .into_iter()
        .filter(|row| outcomes(&row.cells).is_some());
    Ok(found
        .filter_map(|row| {
            let comparison = RowComparison {
                cells: row.cells,
                findings: row.findings,
            };
            Some((row.reuse?, comparison))
        })
        .collect())
}

/// Returns the facts of records. Those that were vaulted before there was a map for them are read now.
async fn sheets_of(
    core: &Core,
    check: &TapeCheck,
    needed: &[u32],
) -> Result<HashMap<u32, FactSheet>, CheckFailure> {
    let mut records: Vec<OwnedEnvelope> = Vec::with_capacity(needed.len());
    let mut numbers: HashMap<EnvelopeId, u32> = HashMap::new();
    for number in needed {
        if let Some(record) = check.index.record(*number) {
            numbers.insert(record.envelope.clone(), *number);
            records.push(OwnedEnvelope {
                org: record.org,
                envelope: record.envelope,
            });
        }
    }

    let mut connection = core.store.read().await?;
    let stored = rows::facts_of(&mut connection, &records).await?;
    drop(connection);
    let mut sheets = HashMap::new();
    for facts in stored {
        if let Some(number) = numbers.remove(&facts.envelope) {
            sheets.insert(number, facts.sheet);
        }
    }

    for record in &records {
        let Some(number) = numbers.get(&record.envelope) else {
            continue;
        };
        match facts::of_envelope(core, &record.org, &record.envelope).await {
            Ok(sheet) => {
                sheets.extend(sheet.map(|sheet| (*number, sheet)));
            }
            Err(error) if error.is_outage() => return Err(error.into()),
            // One contract that cannot be read must not stop a tape of thousands.
            Err(error) => {
                tracing::warn!(envelope_id = %record.envelope, %error, "facts for a tape could not be read");
            }
        }
    }
    Ok(sheets)
}

/// Finds the records in other tapes of the organization, and claims of other parties. These are found for records of the
/// organization only: a row with any other VIN finds nothing.
async fn elsewhere(
    core: &Core,
    tape: &Tape,
    neighbours: &OtherTapes,
    records: &[OwnedEnvelope],
) -> Result<HashMap<EnvelopeId, Vec<TapeFinding>>, CheckFailure> {
    let mut found: HashMap<EnvelopeId, Vec<TapeFinding>> = HashMap::new();
    let ids: Vec<EnvelopeId> = records
        .iter()
        .map(|record| record.envelope.clone())
        .collect();
    let mut connection = core.store.read().await?;
    for other in &neighbours.others {
        for row in rows::rows_of_records(&mut connection, other, &ids).await? {
            let Some(envelope) = row.envelope else {
                continue;
            };
            let detail = format!(
                "also on line {} of the tape \"{}\" ({})",
                row.line, other.name, other.id
            );
            let finding = TapeFinding::of_row(FindingCode::OtherTape, detail);
            found.entry(envelope).or_default().push(finding);
        }
    }

    let mut of_org: HashMap<&OrgId, Vec<EnvelopeId>> = HashMap::new();
    for record in records {
        of_org
            .entry(&record.org)
            .or_default()
            .push(record.envelope.clone());
    }
    for (originator, envelopes) in of_org {
        let mut claims = Vec::new();
        // A statement has a limited number of parameters.
        for envelopes in envelopes.chunks(CHUNK) {
            claims.extend(
                fingerprints::claims_on(&mut connection, originator, envelopes, &tape.org).await?,
            );
        }
        for claim in claims {
            let mut detail = format!(
                "another party has control or a pledge of this collateral or document since {}",
                claim.since
            );
            if let Some(reference) = &claim.reference {
                detail += &format!(", reference {reference}");
            }
            let finding = TapeFinding::of_row(FindingCode::OtherClaim, detail);
            found.entry(claim.envelope).or_default().push(finding);
        }
    }
    Ok(found)
}

/// Adds the records that no row lists.
async fn add_unlisted(core: &Core, tape: &Tape, check: &mut TapeCheck) -> Result<(), CheckFailure> {
    let done = usize::try_from(check.done().unlisted).unwrap_or(usize::MAX);
    let unlisted = check.unlisted();
    for chunk in unlisted.get(done..).unwrap_or_default().chunks(CHUNK) {
        let before = check.done().clone();
        let results = chunk.iter().map(|envelope| {
            let result = check.add_unlisted(envelope.clone());
            stored(result, usize::MAX, Vec::new(), None)
        });
        let results: Vec<StoredRow> = results.collect();

        let mut tx = core.store.begin().await?;
        rows::add_rows(&mut tx, tape, &before, check.done(), &results).await?;
        tx.commit().await?;
        faults::pass("tape unlisted");
    }
    Ok(())
}

/// Records the result in the ledger of the organization.
async fn finish(core: &Core, tape: &Tape, check: &TapeCheck) -> Result<(), CheckFailure> {
    let (summary, now) = (check.summary(&tape.file.sha256), core.clock.now());
    // The party knows these claims from now on. The other parties are not informed: the check of a tape is a look at
    // one's own records, and a notice would show them which ones are on it, and when.
    let claims = claims(core, tape).await?;
    let entry = NewEntry {
        at: now,
        actor: tape.made_by.clone(),
        action: TAPE_CHECKED.into(),
        details: json!({
            "tape_id": tape.id, "name": tape.name, "part": tape.part, "pool": tape.pool, "sha256": summary.sha256(),
            "summary": summary, "other_tapes": tape.other_tapes, "other_claims": tape.other_claims, "claims": claims,
        }),
    };

    let mut tx = core.store.begin().await?;
    // At the same moment, another tape may be checked or deleted: each entry follows the last one.
    organizations::lock(&mut tx, &tape.org).await?;
    let entry = ledger::append(&mut tx, Some(&tape.org), &TapeChain::of(&tape.org), entry).await?;
    // Another worker that finishes the same tape makes this a conflict, and takes the entry back.
    rows::finish(&mut tx, tape, &summary, entry.sequence, now).await?;
    tx.commit().await?;
    Ok(())
}

/// Returns the first claims of others on the records of a tape, as the ledger lists them.
async fn claims(core: &Core, tape: &Tape) -> Result<Vec<Value>, StoreError> {
    // A search through all rows with findings, of which a tape can have a million.
    if tape.other_claims == 0 {
        return Ok(Vec::new());
    }

    let mut connection = core.store.read().await?;
    let claimed = rows::claimed(&mut connection, tape, CLAIMS).await?;
    Ok(claimed.iter().flat_map(claims_of).collect())
}

/// Returns the claims on a row's record, as the ledger lists them.
fn claims_of(row: &StoredRow) -> Vec<Value> {
    let claims = row
        .elsewhere
        .iter()
        .filter(|finding| finding.code == FindingCode::OtherClaim);
    let entry = |claim: &TapeFinding| json!({ "line": row.line, "envelope_id": row.envelope, "detail": claim.detail });
    claims.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: FindingCode) -> TapeFinding {
        TapeFinding::of_row(code, "")
    }

    fn result(findings: Vec<TapeFinding>) -> RowResult {
        RowResult {
            line: 2,
            status: RowStatus::Clean,
            envelope_id: None,
            cells: "ew".into(),
            findings,
        }
    }

    #[test]
    fn findings_are_stored_apart_by_what_they_depend_on() {
        let within = finding(FindingCode::WithinTolerance);
        let twice = finding(FindingCode::DuplicateVin);
        let row = stored(
            result(vec![within.clone(), twice.clone()]),
            1,
            Vec::new(),
            None,
        );
        assert_eq!(row.findings, std::slice::from_ref(&within));
        assert_eq!(row.repeated, [twice]);
        assert_eq!(row.severity, Some(Severity::Stop));
        assert_eq!(row.status, RowStatus::Clean);

        let claim = finding(FindingCode::OtherClaim);
        let row = stored(result(vec![within]), 1, vec![claim], None);
        assert_eq!(row.status, RowStatus::Exceptions);
        assert_eq!(row.severity, Some(Severity::Stop));
        let clean = stored(result(Vec::new()), 0, Vec::new(), None);
        assert_eq!((clean.severity, clean.status), (None, RowStatus::Clean));
    }

    #[test]
    fn only_a_damaged_or_missing_file_is_given_up() {
        let code = |error: FilesError| defect(&error).map(|defect| defect.code);
        assert_eq!(code(FilesError::Gone).as_deref(), Some("file_missing"));
        assert_eq!(code(FilesError::Damaged).as_deref(), Some("file_damaged"));
        for passing in [
            FilesError::TimedOut,
            FilesError::BrokenOff,
            FilesError::no_room(),
        ] {
            assert_eq!(code(passing), None);
        }
    }

    #[test]
    fn the_ledger_lists_claims_and_no_other_findings() {
        let found = vec![
            finding(FindingCode::OtherTape),
            finding(FindingCode::OtherClaim),
        ];
        let row = stored(result(Vec::new()), 0, found, None);
        assert_eq!(claims_of(&row).len(), 1);
        assert_eq!(claims_of(&row)[0]["line"], 2);
    }

    #[test]
    fn a_file_with_too_many_rows_is_refused_and_a_broken_disk_is_not() {
        let too_many = OpenError::Read(std::io::Error::other(TooManyRows));
        let CheckFailure::Refused(refusal) = CheckFailure::from(too_many) else {
            panic!("not refused");
        };
        assert_eq!(refusal.code, "too_many_rows");
        let broken = OpenError::Read(std::io::Error::other("broken"));
        assert!(matches!(
            CheckFailure::from(broken),
            CheckFailure::Service(_)
        ));
    }
}
