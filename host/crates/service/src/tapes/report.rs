//! Reports of checked tapes: a table or JSON for programs, and a PDF that an accountant attaches ("agreed-upon
//! procedures": procedure, population, sample, exceptions).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::{self, Write};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{TapeRowView, TapeView, find, invalid};
use crate::vault::{Vault, vault_in};
use holdfast_adapters::files::{FilesError, SpooledFile};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::wording as sheets;
use holdfast_domain::cell::inert;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::words;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::tape::{
    RowStatus, Tape, TapeChain, TapeFinding, TapeStatus, TapeSummary, sample_number,
};
use holdfast_evidence::formats::LogEvidence;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, log};
use holdfast_store::tapes::{self as rows, RowFilter, StoredRow};
use holdfast_store::{ledger, log as log_rows};

/// Rows that are read at once.
const PAGE: i64 = 2_000;
/// Rows that may wait for the writer of the file.
const QUEUE: usize = 64;
/// Largest sample.
const SAMPLE: u32 = 10_000;
/// Longest seed, in characters.
const SEED: usize = 200;
/// Findings that a PDF lists. The table has all of them.
const PRINTED: usize = 2_000;
/// Longest text of a cell of the PDF, in characters.
const PRINTED_CELL: usize = 60;

words! {
    /// Format of a report.
    ReportFormat {
        Csv = "csv",
        Json = "json",
        Pdf = "pdf",
    }
}

impl ReportFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Json => "application/json",
            Self::Pdf => "application/pdf",
        }
    }
}

/// What a report contains.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    pub format: ReportFormat,
    /// Number of matched rows of a random sample. Without it, all rows that are not clean.
    pub sample: Option<u32>,
    pub seed: Option<String>,
}

/// A report's file.
pub enum ReportFile {
    Spooled(SpooledFile),
    Pdf(Bytes),
}

/// Names of the columns of a table.
const COLUMNS: [&str; 16] = [
    "line",
    "status",
    "envelope_id",
    "severity",
    "code",
    "column",
    "fact",
    "tape",
    "contract",
    "origin",
    "page",
    "x",
    "y",
    "w",
    "h",
    "detail",
];

/// Writes the report of a checked tape.
pub async fn report(
    core: &Core,
    vault: &Vault,
    caller: &Caller,
    id: &str,
    options: &ReportOptions,
) -> Result<ReportFile, ServiceError> {
    let tape = find(core, caller, id).await?;
    let Some(summary) = tape
        .summary
        .clone()
        .filter(|_| tape.status == TapeStatus::Checked)
    else {
        let message =
            "The tape is not checked yet, or is no tape for its map; GET the tape shows its status";
        return Err(Problem::new(ProblemKind::State, "tape_not_checked", message).into());
    };

    let chosen = chosen(core, &tape, options).await?;
    if options.format == ReportFormat::Pdf {
        let pdf = pdf(core, &tape, &summary, options, chosen.as_ref()).await?;
        return Ok(ReportFile::Pdf(pdf));
    }

    let head = match options.format {
        ReportFormat::Json => Some(head(core, vault, &tape, &summary, options).await?),
        ReportFormat::Csv | ReportFormat::Pdf => None,
    };
    let is_sample = chosen.is_some();
    let (sender, mut receiver) = mpsc::channel::<StoredRow>(QUEUE);
    let write = move |file: &mut std::fs::File| {
        let mut out = ReportWriter::new(io::BufWriter::new(file), head)?;
        while let Some(row) = receiver.blocking_recv() {
            out.row(row, is_sample)?;
        }
        out.finish()
    };

    let folder = core.config.spool_folder();
    let written = SpooledFile::written(&folder, write);
    let read = async {
        // Owned by this future, so that the channel closes and the writer ends after the last row.
        let sender = sender;
        let mut after = 0;
        loop {
            let page = page(core, &tape, chosen.as_ref(), &mut after).await?;
            let Some(page) = page else {
                break;
            };
            for row in page {
                // A send fails if the writer failed, which has the reason.
                if sender.send(row).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok::<(), ServiceError>(())
    };

    // After a failed read the writer sees a closed channel and succeeds with half a file, so the reader's
    // error counts first.
    let (written, read) = tokio::join!(written, read);
    read?;
    Ok(ReportFile::Spooled(written.map_err(FilesError::Spool)?))
}

/// Returns the next reported rows; none at the end.
async fn page(
    core: &Core,
    tape: &Tape,
    chosen: Option<&BTreeSet<i64>>,
    after: &mut i64,
) -> Result<Option<Vec<StoredRow>>, ServiceError> {
    let filter = RowFilter {
        exceptions: chosen.is_none(),
        ..RowFilter::default()
    };
    let mut connection = core.store.read().await?;
    let mut page = rows::rows(&mut connection, tape, filter, *after, PAGE).await?;
    let Some(last) = page.last() else {
        return Ok(None);
    };

    *after = last.line;
    if let Some(chosen) = chosen {
        page.retain(|row| chosen.contains(&row.line));
    }
    Ok(Some(page))
}

/// Returns the lines of the sample; none without one. It has the rows with the smallest SHA-256 of seed, colon and the id
/// of their record.
async fn chosen(
    core: &Core,
    tape: &Tape,
    options: &ReportOptions,
) -> Result<Option<BTreeSet<i64>>, ServiceError> {
    let (count, seed) = match (options.sample, options.seed.as_deref()) {
        (None, None) => return Ok(None),
        (Some(count), Some(seed))
            if (1..=SEED).contains(&seed.chars().count()) && (1..=SAMPLE).contains(&count) =>
        {
            (count as usize, seed)
        }
        _ => {
            let expected = format!("sample of 1 to {SAMPLE} with a seed of 1 to {SEED} characters");
            let message = "A sample has a seed, so that others can repeat it";
            return Err(invalid("seed", &expected, "", message));
        }
    };

    let mut drawn: BinaryHeap<([u8; 32], Reverse<i64>)> = BinaryHeap::new();
    let mut after = 0;
    loop {
        let mut connection = core.store.read().await?;
        let page = rows::rows(&mut connection, tape, RowFilter::default(), after, PAGE).await?;
        drop(connection);
        let Some(last) = page.last() else {
            break;
        };

        after = last.line;
        for row in page.iter().filter(|row| row.status != RowStatus::Unlisted) {
            let Some(envelope) = &row.envelope else {
                continue;
            };
            drawn.push((sample_number(seed, envelope.as_str()), Reverse(row.line)));
            if drawn.len() > count {
                drawn.pop();
            }
        }
    }
    Ok(Some(
        drawn.into_iter().map(|(_, Reverse(line))| line).collect(),
    ))
}

/// Returns the members of a report in JSON before its rows: everything that is needed to repeat the check and to prove
/// that its digest is in the ledger.
async fn head(
    core: &Core,
    vault: &Vault,
    tape: &Tape,
    summary: &TapeSummary,
    options: &ReportOptions,
) -> Result<Value, ServiceError> {
    let size = log::cosignatures::catch_up(core, &vault.log).await?;
    let (entry, log) = recorded(core, tape, size).await?;
    Ok(json!({
        "report_type": "holdfast_tape_report", "report_version": "1.0", "tape": TapeView::from(tape), "map": tape.map,
        "summary": summary, "sha256": summary.sha256(), "sample": options.sample, "seed": options.seed,
        "entry": entry, "log": log,
    }))
}

/// Returns the ledger's entry about a tape, with the proof that the log has it.
async fn recorded(
    core: &Core,
    tape: &Tape,
    covered: u64,
) -> Result<(Option<LedgerEntry>, Option<LogEvidence>), ServiceError> {
    let Some(sequence) = tape.ledger_sequence else {
        return Ok((None, None));
    };

    let (org, chain) = (&tape.org, TapeChain::of(&tape.org));
    let evidence = log::signed_head(core, covered).await?;
    let size = log::size_of(&evidence.checkpoint).unwrap_or_default();
    let mut connection = core.store.read().await?;
    let entries = ledger::behind(&mut connection, org, &chain, sequence - 1, 1).await?;
    let places =
        log_rows::places_behind(&mut connection, Some(org), &chain, sequence - 1, 1).await?;
    let inclusion = log::proofs(&mut connection, &places, size).await?;
    Ok((
        entries.into_iter().next(),
        Some(LogEvidence {
            inclusion,
            ..evidence
        }),
    ))
}

/// Writes the rows of a report.
enum ReportWriter<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Json { out: W, is_first: bool },
}

impl<W: Write> ReportWriter<W> {
    /// Begins a table, or JSON with these members.
    fn new(mut out: W, head: Option<Value>) -> io::Result<Self> {
        let Some(head) = head else {
            let mut table = Box::new(csv::Writer::from_writer(out));
            table.write_record(COLUMNS)?;
            return Ok(Self::Csv(table));
        };

        // The rows are the last member, which is written as they come.
        let text = head.to_string();
        out.write_all(text.strip_suffix('}').unwrap_or(&text).as_bytes())?;
        out.write_all(b",\"rows\":[")?;
        Ok(Self::Json {
            out,
            is_first: true,
        })
    }

    fn row(&mut self, row: StoredRow, is_sample: bool) -> io::Result<()> {
        let row = TapeRowView::from(row);
        match self {
            Self::Json { out, is_first } => {
                if !std::mem::take(is_first) {
                    out.write_all(b",\n")?;
                }
                Ok(serde_json::to_writer(out, &row)?)
            }
            Self::Csv(out) => {
                for finding in &row.findings {
                    out.write_record(cells(&row, Some(finding)))?;
                }
                // A row of a sample is listed also if nothing was found.
                if is_sample && row.findings.is_empty() {
                    out.write_record(cells(&row, None))?;
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(mut out) => out.flush(),
            Self::Json { mut out, .. } => {
                out.write_all(b"]}\n")?;
                out.flush()
            }
        }
    }
}

/// Returns the cells of a finding. Names of columns and values come from the tape, and could be formulas.
fn cells(row: &TapeRowView, finding: Option<&TapeFinding>) -> [String; COLUMNS.len()] {
    let text = |text: Option<&String>| text.map(|text| inert(text)).unwrap_or_default();
    let place = finding.and_then(|finding| finding.place.as_ref());
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let origin = finding.and_then(|finding| finding.origin);

    [
        row.line.to_string(),
        row.status.to_string(),
        row.envelope_id
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        finding
            .map(|finding| finding.severity.to_string())
            .unwrap_or_default(),
        finding
            .map(|finding| finding.code.to_string())
            .unwrap_or_default(),
        text(finding.and_then(|finding| finding.column.as_ref())),
        text(finding.and_then(|finding| finding.fact.as_ref())),
        text(finding.and_then(|finding| finding.tape.as_ref())),
        text(finding.and_then(|finding| finding.contract.as_ref())),
        origin
            .and_then(|origin| json!(origin).as_str().map(str::to_owned))
            .unwrap_or_default(),
        place
            .map(|place| place.page.to_string())
            .unwrap_or_default(),
        number(place.map(|place| place.x)),
        number(place.map(|place| place.y)),
        number(place.map(|place| place.w)),
        number(place.map(|place| place.h)),
        text(finding.and_then(|finding| finding.detail.as_ref())),
    ]
}

/// Writes the report for people. Equal results give equal bytes.
async fn pdf(
    core: &Core,
    tape: &Tape,
    summary: &TapeSummary,
    options: &ReportOptions,
    chosen: Option<&BTreeSet<i64>>,
) -> Result<Bytes, ServiceError> {
    let (mut printed, mut after, mut left_out) = (Vec::new(), 0, 0);
    while let Some(page) = page(core, tape, chosen, &mut after).await? {
        for row in page {
            let row = TapeRowView::from(row);
            for finding in &row.findings {
                if printed.len() < PRINTED {
                    printed.push(printed_row(&row, finding));
                } else {
                    left_out += 1;
                }
            }
        }
    }

    let issuer = vault_in::issuer(core, &tape.org);
    let sheet = sheet(tape, summary, options, &issuer, (printed, left_out));
    // A report has no replaceable meaning, so the built-in writer makes it.
    let documents = core
        .components
        .embedded_documents(&tape.org, core.store.priority())
        .for_owner(WorkOwner::new(&tape.org, tape.id.as_str()));
    Ok(documents.sheet(sheet).await??.into())
}

fn printed_row(row: &TapeRowView, finding: &TapeFinding) -> sheets::TableRow {
    let short = |text: &str| text.chars().take(PRINTED_CELL).collect::<String>();
    let place = finding
        .place
        .as_ref()
        .map(|place| format!(", page {}", place.page));
    let contract = finding.contract.as_deref().map(short);
    let contract = contract.map(|value| value + place.as_deref().unwrap_or_default());
    let what = match (&finding.column, &finding.detail) {
        (Some(column), Some(detail)) => format!("{column}: {detail}"),
        (Some(text), None) | (None, Some(text)) => text.clone(),
        (None, None) => String::new(),
    };
    let cells = [
        row.line.to_string(),
        finding.code.to_string(),
        what.chars().take(3 * PRINTED_CELL).collect(),
        finding.tape.as_deref().map(short).unwrap_or_default(),
        contract.unwrap_or_default(),
    ];
    sheets::TableRow {
        satisfied: None,
        cells: cells.into(),
    }
}

fn section(heading: &str, facts: Vec<(String, String)>, note: &str) -> sheets::CustodySection {
    sheets::CustodySection {
        heading: heading.into(),
        facts,
        columns: Vec::new(),
        rows: Vec::new(),
        note: note.into(),
    }
}

fn columns<const N: usize>(columns: [(&str, f32); N]) -> Vec<sheets::TableColumn> {
    let column = |(title, width): (&str, f32)| sheets::TableColumn {
        title: title.into(),
        width,
    };
    columns.map(column).into()
}

fn fact(label: &str, value: impl ToString) -> (String, String) {
    (label.into(), value.to_string())
}

/// Composes the pages of a report.
fn sheet(
    tape: &Tape,
    summary: &TapeSummary,
    options: &ReportOptions,
    issuer: &str,
    (printed, left_out): (Vec<sheets::TableRow>, usize),
) -> sheets::CustodySheet {
    let totals = &summary.totals;
    let checked_at = tape.checked_at.unwrap_or(tape.created_at);
    let mut note = "Every finding is in the table (CSV) of this report.".to_owned();
    if left_out > 0 {
        note = format!("{left_out} further findings are in the table (CSV) of this report only.");
    }
    let exceptions = sheets::CustodySection {
        columns: columns([
            ("Line", 0.09),
            ("Finding", 0.19),
            ("Column", 0.32),
            ("Tape", 0.2),
            ("Contract", 0.2),
        ]),
        rows: printed,
        ..section(exceptions_heading(options), Vec::new(), &note)
    };

    let attached = json!({ "summary": summary, "sha256": summary.sha256(), "map": tape.map, "tape_id": tape.id });
    let is_good = totals.stop == 0 && tape.other_tapes == 0 && tape.other_claims == 0;
    let verdict = format!(
        "{} of {} rows agree with their contracts; {} findings stop",
        totals.clean, totals.rows, totals.stop
    );
    sheets::CustodySheet {
        envelope_id: tape.id.to_string(),
        document_hash: summary.sha256(),
        recorded_at: checked_at.to_string(),
        language: "en-US".into(),
        issuer: issuer.into(),
        title: "Tape compared with contracts".into(),
        file_title: format!("Report of the tape {}", tape.id),
        file_subject: format!(
            "Comparison of the tape \"{}\" with the facts of contracts",
            tape.name
        ),
        document_name: tape.name.clone(),
        byline: format!("Issued by {issuer}, {}", moment(checked_at)),
        verdict: Some((verdict, is_good)),
        sections: vec![
            procedure(tape),
            population(tape, summary, options),
            results(tape, summary),
            of_columns(summary),
            exceptions,
        ],
        foot: format!(
            "Tape {}, SHA-256 of the result {}",
            tape.id,
            summary.sha256()
        ),
        certificate_json: serde_json::to_string_pretty(&attached).unwrap_or_default(),
        certificate_about: "Summary of the comparison, with the map".into(),
    }
}

fn moment(at: Timestamp) -> String {
    at.to_string()
}

fn exceptions_heading(options: &ReportOptions) -> &'static str {
    if options.sample.is_some() {
        "Findings in the sample"
    } else {
        "Exceptions"
    }
}

/// Describes the procedure, so that a reader can repeat it.
fn procedure(tape: &Tape) -> sheets::CustodySection {
    let keys: Vec<&str> = tape.map.keys.iter().map(|key| key.as_str()).collect();
    let compared = tape
        .map
        .columns
        .iter()
        .filter(|column| column.is_compared());
    let compared = compared.map(|column| {
        let kind = column
            .kind
            .map(|kind| column.tolerance_of(kind).to_string());
        let tolerance = column.tolerance.clone().or(kind);
        let tolerance = tolerance.unwrap_or_else(|| "by the type of the fact".into());
        fact(
            &column.column,
            format!("{}, tolerance {tolerance}", column.fact),
        )
    });
    let mut facts = vec![
        fact(
            "Procedure",
            "Each row of the tape was looked up by its keys, and each mapped column was compared with the signed or \
             printed value of the contract. What only the originator declares does not count as a value of the contract.",
        ),
        fact("Keys, in this order", keys.join(", ")),
    ];
    facts.extend(compared);

    let note = "Tolerances without a number in the map: 1.00 for amounts, 0.01 points for percentages, 1 day for dates; \
                everything else is exact.";
    section("Procedure", facts, note)
}

fn population(
    tape: &Tape,
    summary: &TapeSummary,
    options: &ReportOptions,
) -> sheets::CustodySection {
    let part = tape.part.map_or("any", |part| part.as_str());
    let sample = match (options.sample, &options.seed) {
        (Some(count), Some(seed)) => {
            format!("{count} matched rows, drawn with the seed \"{seed}\"")
        }
        _ => "none: every row was compared and every exception is listed".into(),
    };
    let pool = tape.pool.as_ref();
    let mut facts = vec![
        fact("Tape", &tape.file.sha256),
        fact("Map", &summary.map_sha256),
        fact("Rows", summary.totals.rows),
        fact(
            "Records of the organization, by its part in them",
            format!("{} ({part})", summary.population),
        ),
        fact("Ids of the records", &summary.population_sha256),
        fact("Sample", sample),
    ];
    facts.extend(pool.map(|pool| fact("Records of the pool only", pool)));
    let note = "A sample has the rows with the smallest SHA-256 of seed, colon and the id of their record. Hashes are \
                SHA-256.";
    section("Population", facts, note)
}

fn results(tape: &Tape, summary: &TapeSummary) -> sheets::CustodySection {
    let totals = &summary.totals;
    let facts = vec![
        fact("Clean", totals.clean),
        fact("With exceptions", totals.exceptions),
        fact("Without a record", totals.unmatched),
        fact("With several records", totals.ambiguous),
        fact("Unreadable rows", totals.unreadable),
        fact("Records that no row lists", totals.unlisted),
        fact(
            "Findings that stop / warn / are notes",
            format!("{} / {} / {}", totals.stop, totals.warn, totals.note),
        ),
        fact("Also in tapes of other names", tape.other_tapes),
        fact("With claims of other parties", tape.other_claims),
        fact("Results of all rows", &summary.rows_sha256),
        fact("Result", summary.sha256()),
    ];
    section(
        "Results",
        facts,
        "The digest of the result is in the organization's ledger.",
    )
}

fn of_columns(summary: &TapeSummary) -> sheets::CustodySection {
    let rows = summary.totals.columns.iter().map(|column| {
        let counts = [
            column.equal,
            column.within_tolerance,
            column.different,
            column.missing_in_contract,
            column.missing_in_tape,
            column.unreadable,
        ];
        let counts = counts.iter().map(ToString::to_string);
        sheets::TableRow {
            satisfied: Some(column.different == 0),
            cells: std::iter::once(column.column.clone())
                .chain(counts)
                .collect(),
        }
    });

    sheets::CustodySection {
        columns: columns([
            ("Column", 0.28),
            ("Equal", 0.12),
            ("In tolerance", 0.12),
            ("Different", 0.12),
            ("Not in contract", 0.12),
            ("Not in tape", 0.12),
            ("Unreadable", 0.12),
        ]),
        rows: rows.collect(),
        ..section("Columns", Vec::new(), "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::tape::{FindingCode, Severity};

    fn row(findings: Vec<TapeFinding>) -> StoredRow {
        StoredRow {
            line: 7,
            status: RowStatus::Exceptions,
            severity: Some(Severity::Stop),
            envelope: None,
            is_first: false,
            cells: String::new(),
            findings,
            repeated: Vec::new(),
            elsewhere: Vec::new(),
            reuse: None,
        }
    }

    fn written(head: Option<Value>, rows: Vec<StoredRow>, is_sample: bool) -> String {
        let mut text = Vec::new();
        let mut out = ReportWriter::new(&mut text, head).unwrap();
        for row in rows {
            out.row(row, is_sample).unwrap();
        }
        out.finish().unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn cells_of_a_tape_are_no_formulas_in_the_report() {
        let finding = TapeFinding {
            column: Some("=2+2".into()),
            tape: Some("@SUM(A1)".into()),
            contract: Some("-5.00".into()),
            ..TapeFinding::of_row(FindingCode::Different, "+1")
        };
        let text = written(None, vec![row(vec![finding])], false);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(&row[5], "'=2+2");
        assert_eq!(&row[7], "'@SUM(A1)");
        assert_eq!(&row[8], "'-5.00");
        assert_eq!(&row[15], "'+1");
        assert_eq!(&row[4], "different");
    }

    #[test]
    fn a_sample_lists_clean_rows_too() {
        let lines = |is_sample| {
            written(None, vec![row(Vec::new())], is_sample)
                .lines()
                .count()
        };
        assert_eq!(lines(false), 1);
        assert_eq!(lines(true), 2);
    }

    #[test]
    fn rows_are_the_last_member_of_the_json() {
        let finding = TapeFinding::of_row(FindingCode::Unmatched, "no record");
        let rows = vec![row(vec![finding]), row(Vec::new())];
        let read: Value =
            serde_json::from_str(&written(Some(json!({ "a": 1 })), rows, false)).unwrap();
        assert_eq!(read["a"], 1);
        assert_eq!(read["rows"][0]["findings"][0]["code"], "unmatched");
        assert_eq!(read["rows"].as_array().unwrap().len(), 2);
    }
}
