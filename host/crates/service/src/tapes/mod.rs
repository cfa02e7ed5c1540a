//! Tapes: tables that a party writes itself, compared with what the contracts of its records say.
//!
//! Rows are looked up only in records in which the caller has a part, so a tape reveals nothing of others. A job reads
//! the file in chunks, and continues behind the last one after a crash ([`check`]).

pub mod check;
pub mod columns;
pub mod maps;
pub mod picture;
mod population;
pub mod removal;
pub mod report;

use schemars::JsonSchema;
use serde::Serialize;

use holdfast_adapters::files::{FilesError, SpooledFile, StorageArea};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{EnvelopeId, OrgId, TapeId, TransferId};
use holdfast_domain::job::CheckTape;
use holdfast_domain::tape::{
    OpenError, RowStatus, Severity, Tape, TapeFinding, TapeFormat, TapeMap, TapePart, TapeReader,
    TapeStatus, TapeSummary, TapeTotals,
};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::tapes::{self as rows, RowFilter, StoredRow};
use holdfast_store::{WriteTransaction, jobs, organizations};

/// Longest name of a tape or map, in characters.
const NAME: usize = 100;
/// Largest file of a tape: 250 MiB. The open uploads of a credential have 256 MiB together.
pub const TAPE_LIMIT: u64 = 262_144_000;
/// Tapes of an organization that are checked at once.
const UNFINISHED: i64 = 5;
/// Seconds until another tape is accepted.
const WAIT: u32 = 60;

/// A tape as it is sent.
pub struct SentTape {
    pub file: SpooledFile,
    /// Name of the line or pool.
    pub name: String,
    /// None: found by the content.
    pub format: Option<TapeFormat>,
    pub map: SentMap,
    pub part: Option<TapePart>,
    /// Transfer that limits the records that are looked up.
    pub pool: Option<String>,
}

/// Map of a tape.
pub enum SentMap {
    Document(TapeMap),
    /// One that was stored before.
    Named(String),
}

/// A tape with the counts of its check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "tape_id": "tap_01jdk7m3e8f4x9s2w5v6b0c1dc", "name": "Warehouse line 12", "format": "csv", "part": "pledgee",
    "pool": null, "status": "checked", "header": null, "tape_sha256": "9f86d081884c7d65…", "map_sha256": "1f8c…",
    "totals": {
        "rows": 70000, "clean": 69990, "exceptions": 7, "unmatched": 3, "ambiguous": 0, "unreadable": 0,
        "unlisted": 2, "stop": 11, "warn": 2, "note": 40,
        "columns": [{
            "column": "Amount Financed", "fact": "amount_financed", "equal": 69950, "within_tolerance": 40,
            "different": 7, "missing_in_contract": 0, "missing_in_tape": 0, "unreadable": 0,
        }],
    },
    "reused": 69800, "other_tapes": 0, "other_claims": 1, "population": 70000, "sha256": "4be1…",
    "refusal": null, "made_by": "key:key_01jdk7m3e8f4x9s2w5v6b0c1dc", "created_at": "2026-11-21T09:45:00.000Z",
    "checked_at": "2026-11-21T09:45:08.000Z",
}]))]
pub struct TapeView {
    /// Id of the tape.
    pub tape_id: TapeId,
    /// Name of the line or pool that the tape is about.
    pub name: String,
    /// Format of the file.
    pub format: TapeFormat,
    /// Your part in the records that rows are looked up in; null: any part.
    pub part: Option<TapePart>,
    /// Transfer that limits the records that rows are looked up in; null: all records of the part.
    pub pool: Option<TransferId>,
    /// Whether the check continues. `choosing`: a person chooses the columns in the console; `refused`: the file
    /// is no tape for the map; `failed`: the stored file is damaged or gone.
    pub status: TapeStatus,
    /// Names of the file's columns, while the status is `choosing`.
    pub header: Option<Vec<String>>,
    /// SHA-256 of the file, lower-case hex.
    pub tape_sha256: String,
    /// SHA-256 of the map's canonical JSON (RFC 8785).
    pub map_sha256: String,
    /// Counts of the comparison so far. Claims of others are counted in `other_tapes` and `other_claims` only.
    pub totals: TapeTotals,
    /// Rows with the comparison of the tape of this name before: neither row, facts nor map had changed.
    pub reused: i64,
    /// Rows with a record that the newest tape of another name lists, too.
    pub other_tapes: i64,
    /// Rows with a record whose collateral or document another party has control or a pledge of.
    pub other_claims: i64,
    /// Number of records that rows were looked up in; null before the end.
    pub population: Option<u64>,
    /// SHA-256 of the result, which your ledger has; null before the end.
    pub sha256: Option<String>,
    /// Why the file is no tape for the map, or why the check was given up.
    pub refusal: Option<RefusalView>,
    /// Who sent the tape: `key:…` or `user:…`.
    pub made_by: String,
    pub created_at: Timestamp,
    /// End of the check.
    pub checked_at: Option<Timestamp>,
}

/// Why a file is no tape for its map, or why its check was given up.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusalView {
    /// Stable code for programs, such as `no_header`.
    pub code: String,
    pub message: String,
}

impl From<&Tape> for TapeView {
    fn from(tape: &Tape) -> Self {
        let summary = tape.summary.as_ref();
        let progress = tape
            .progress
            .as_ref()
            .map(|progress| progress.totals.clone());

        Self {
            tape_id: tape.id.clone(),
            name: tape.name.clone(),
            format: tape.format,
            part: tape.part,
            pool: tape.pool.clone(),
            status: tape.status,
            header: tape.header.clone(),
            tape_sha256: tape.file.sha256.clone(),
            map_sha256: tape.map.sha256(),
            totals: progress.unwrap_or_else(|| TapeTotals::of(&tape.map)),
            reused: tape.reused,
            other_tapes: tape.other_tapes,
            other_claims: tape.other_claims,
            population: summary.map(|summary| summary.population),
            sha256: summary.map(TapeSummary::sha256),
            refusal: tape.refusal.as_ref().map(|refusal| RefusalView {
                code: refusal.code.clone(),
                message: refusal.message.clone(),
            }),
            made_by: tape.made_by.clone(),
            created_at: tape.created_at,
            checked_at: tape.checked_at,
        }
    }
}

/// Result of a row, or of a record that no row lists.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "line": 4711, "status": "exceptions", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "severity": "stop",
    "findings": [{
        "code": "different", "severity": "stop", "column": "Amount Financed", "fact": "amount_financed",
        "tape": "22,500.00", "contract": "21500.00", "origin": "printed",
        "place": { "page": 1, "x": 0.55, "y": 0.31, "w": 0.12, "h": 0.02 },
    }],
}]))]
pub struct TapeRowView {
    /// Line of the file on which the row begins. For a record that no row lists, a number behind the last line.
    pub line: i64,
    /// Result of the comparison.
    pub status: RowStatus,
    /// The record that the row was compared with.
    pub envelope_id: Option<EnvelopeId>,
    /// Weight of the heaviest finding.
    pub severity: Option<Severity>,
    /// Findings: in columns, in the tape as a whole, in other tapes and in claims of others.
    pub findings: Vec<TapeFinding>,
}

impl From<StoredRow> for TapeRowView {
    fn from(row: StoredRow) -> Self {
        let findings = [row.findings, row.repeated, row.elsewhere];
        Self {
            line: row.line,
            status: row.status,
            envelope_id: row.envelope,
            severity: row.severity,
            findings: findings.into_iter().flatten().collect(),
        }
    }
}

fn unknown() -> ServiceError {
    ServiceError::NotFound("Tape")
}

fn invalid(member: &str, expected: &str, received: &str, message: &str) -> ServiceError {
    ServiceError::invalid("invalid_request", &[member], expected, received, message)
}

/// Checks the name of a tape or map.
fn checked_name(name: &str) -> Result<String, ServiceError> {
    let name = name.trim();
    let is_usable =
        (1..=NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if is_usable {
        Ok(name.to_owned())
    } else {
        let expected = format!("1 to {NAME} characters");
        Err(invalid("name", &expected, "", "The name cannot be used"))
    }
}

/// Accepts a tape, and queues its check. A file that is no tape for the map is refused at once.
pub async fn submit(
    core: &Core,
    caller: &Caller,
    sent: SentTape,
    answer: &ResponseRecorder<TapeView>,
) -> Result<TapeView, ServiceError> {
    let name = checked_name(&sent.name)?;
    let map = match sent.map {
        SentMap::Document(map) => map,
        SentMap::Named(name) => maps::get(core, caller, &name).await?.map,
    };
    let pool = match &sent.pool {
        Some(pool) => Some(population::known_pool(core, caller, pool).await?),
        None => None,
    };
    let format = sent.format.unwrap_or_else(|| detected(sent.file.head()));
    check_header(&sent.file, format, &map).await?;

    let tape = NewTape {
        name,
        format,
        map,
        part: sent.part,
        pool,
        header: None,
    };
    let tape = stored(core, caller, tape, &sent.file).await?;
    let mut tx = core.store.begin().await?;
    admit(&mut tx, &caller.org).await?;
    rows::insert(&mut tx, &tape).await?;
    queue(&mut tx, &tape).await?;
    let view = TapeView::from(&tape);
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// A tape that has no row yet.
struct NewTape {
    name: String,
    format: TapeFormat,
    map: TapeMap,
    part: Option<TapePart>,
    pool: Option<TransferId>,
    /// Names of its columns, if a person has to choose their facts.
    header: Option<Vec<String>>,
}

/// Stores the file of a new tape.
async fn stored(
    core: &Core,
    caller: &Caller,
    new: NewTape,
    file: &SpooledFile,
) -> Result<Tape, ServiceError> {
    let (id, org) = (TapeId::new(), &caller.org);
    let content_type = new.format.content_type();
    let area = StorageArea::Tapes;
    let file = core
        .files
        .put_spooled(area, org, id.as_str(), file, content_type)
        .await?;

    let status = if new.header.is_some() {
        TapeStatus::Choosing
    } else {
        TapeStatus::Checking
    };
    Ok(Tape {
        id,
        org: org.clone(),
        name: new.name,
        format: new.format,
        file,
        map: new.map,
        part: new.part,
        pool: new.pool,
        status,
        header: new.header,
        failures: 0,
        progress: None,
        refusal: None,
        reused: 0,
        other_tapes: 0,
        other_claims: 0,
        summary: None,
        ledger_sequence: None,
        made_by: caller.actor.clone(),
        created_at: core.clock.now(),
        checked_at: None,
    })
}

/// Refuses a further tape while several of the organization are unfinished.
async fn admit(tx: &mut WriteTransaction, org: &OrgId) -> Result<(), ServiceError> {
    // Without the lock, two requests at once would both count the tapes before the other one's.
    organizations::lock(tx, org).await?;
    if rows::unfinished(tx, org).await? < UNFINISHED {
        return Ok(());
    }

    let message = format!(
        "{UNFINISHED} tapes of your organization are being checked, or wait for the choice of their columns; try again \
         when one is done, or delete one"
    );
    Err(Problem::new(ProblemKind::Quota(WAIT), "too_many_tapes", message).into())
}

async fn queue(tx: &mut WriteTransaction, tape: &Tape) -> Result<(), ServiceError> {
    let job = CheckTape {
        tape: tape.id.clone(),
    };
    let (org, id) = (&tape.org, tape.id.as_str());
    jobs::insert(tx, org, &job, Some(id), tape.created_at).await?;
    Ok(())
}

/// Returns the format of a file: lines of JSON begin with a bracket.
fn detected(head: &[u8]) -> TapeFormat {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        TapeFormat::JsonLines
    } else {
        TapeFormat::Csv
    }
}

/// Refuses a file in which the columns of the map cannot be found.
async fn check_header(
    file: &SpooledFile,
    format: TapeFormat,
    map: &TapeMap,
) -> Result<(), ServiceError> {
    let file = file
        .open()
        .await
        .map_err(FilesError::Spool)?
        .into_std()
        .await;
    let map = map.clone();
    let opened =
        tokio::task::spawn_blocking(move || TapeReader::open(file, format, &map).map(drop));
    let opened = opened
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))?;

    match opened {
        Ok(()) => Ok(()),
        Err(OpenError::Read(error)) => Err(FilesError::Spool(error).into()),
        Err(OpenError::Refused(refusal)) => Err(ServiceError::invalid(
            refusal.code,
            &["file"],
            "a table with the columns of the map",
            "",
            refusal.message,
        )),
    }
}

/// Lists the caller's tapes, newest first.
pub async fn list(
    core: &Core,
    caller: &Caller,
    after: Option<&TapeId>,
    limit: i64,
) -> Result<Vec<TapeView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let tapes = rows::list(&mut connection, &caller.org, after, limit).await?;
    Ok(tapes.iter().map(TapeView::from).collect())
}

/// Returns a tape of the caller.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<TapeView, ServiceError> {
    Ok(TapeView::from(&find(core, caller, id).await?))
}

async fn find(core: &Core, caller: &Caller, id: &str) -> Result<Tape, ServiceError> {
    let id = TapeId::parse(id).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let tape = rows::get(&mut connection, &caller.org, &id).await?;
    tape.ok_or_else(unknown)
}

/// Lists results of rows behind a line.
pub async fn rows(
    core: &Core,
    caller: &Caller,
    id: &str,
    filter: RowFilter,
    after: i64,
    limit: i64,
) -> Result<Vec<TapeRowView>, ServiceError> {
    let tape = find(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let found = rows::rows(&mut connection, &tape, filter, after, limit).await?;
    Ok(found.into_iter().map(TapeRowView::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_by_the_content() {
        assert_eq!(detected(b"Loan,Amount\n"), TapeFormat::Csv);
        assert_eq!(
            detected(b"\xef\xbb\xbf \n{\"Loan\":1}"),
            TapeFormat::JsonLines
        );
        assert_eq!(detected(b""), TapeFormat::Csv);
    }

    #[test]
    fn a_name_is_short_and_printable() {
        assert_eq!(checked_name(" Line 12 ").unwrap(), "Line 12");
        for wrong in ["", "  ", "a\nb", &"x".repeat(NAME + 1)] {
            assert!(checked_name(wrong).is_err(), "{wrong}");
        }
    }
}
