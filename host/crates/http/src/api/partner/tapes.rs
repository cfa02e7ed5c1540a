//! Loan tapes: tables that a party writes itself, compared with the contracts of its records.

use std::collections::BTreeMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::HttpError;
use crate::middleware::caller::Authorized;
use crate::middleware::extract::{
    MultipartForm, PageWindow, ResourceId, TapeLinePath, TapeMapPath, ValidJson, ValidQuery,
    WholeListQuery,
};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{
    Accepted, CsvOrJsonOrPdf, CursorReply, DataReply, FileReply, Found, PageReply, Png,
};
use holdfast_domain::id::TapeId;
use holdfast_domain::tape::{RowStatus, Severity, TapeFormat, TapeMap, TapePart};
use holdfast_service::App;
use holdfast_service::tapes::maps::{self, TapeMapView};
use holdfast_service::tapes::report::{self, ReportFile, ReportFormat, ReportOptions};
use holdfast_service::tapes::{
    self, SentMap, SentTape, TAPE_LIMIT, TapeRowView, TapeView, picture, removal,
};
use holdfast_store::tapes::RowFilter;

/// Form with a tape.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{
    "file": "tape.csv", "name": "Warehouse line 12", "map_name": "Warehouse line 12", "part": "pledgee",
}]))]
#[expect(dead_code, reason = "documents the form")]
pub struct TapeForm {
    /// CSV or JSON Lines in UTF-8 or UTF-16, up to 1,000,000 rows and 250 MiB.
    #[schemars(extend("format" = "binary"))]
    file: String,
    /// Name of the line or pool, at most 100 characters. Tapes of one name follow each other: unchanged rows are not
    /// compared again. A record that tapes of two names list is reported.
    name: String,
    /// Map as JSON: columns and their facts, keys, tolerances. Either this or `map_name`.
    map: Option<String>,
    /// Name of a stored map.
    map_name: Option<String>,
    /// `csv` or `jsonl`; found by the content when absent.
    format: Option<String>,
    /// Looks rows up only in records in which you have this part: `controller`, `named`, `pledgee` or `originator`. Any
    /// part when absent.
    part: Option<String>,
    /// Id of a transfer that you sell or buy in: rows are looked up only in its records, and `unlisted` are those of them
    /// that no row lists. All records when absent.
    pool: Option<String>,
}

/// A deleted tape.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "tape_id": "tap_01jdk7m3e8f4x9s2w5v6b0c1dc", "deleted": true }]))]
pub struct DeletedTape {
    /// Id of the tape.
    tape_id: TapeId,
    /// Always true.
    deleted: bool,
}

/// Builds a tape of the texts of a form.
pub fn sent(
    texts: &mut BTreeMap<String, String>,
    file: holdfast_adapters::files::SpooledFile,
) -> Result<SentTape, HttpError> {
    let mut take = |name: &str| texts.remove(name).filter(|text| !text.trim().is_empty());
    let name = take("name").ok_or_else(|| HttpError::bad_request("name is required"))?;
    let map = match (take("map"), take("map_name")) {
        (Some(text), None) => {
            let map = TapeMap::parse(&text);
            SentMap::Document(map.map_err(|problems| maps::refused(&["map"], &problems))?)
        }
        (None, Some(name)) => SentMap::Named(name),
        _ => {
            let why = "A tape needs a map: either map, as JSON, or map_name";
            return Err(HttpError::bad_request(why));
        }
    };

    let unknown = |name: &str, known: &[&str]| {
        HttpError::bad_request(format!("{name} must be one of: {}", known.join(", ")))
    };
    let format = match take("format") {
        None => None,
        Some(text) => {
            let known = || unknown("format", &["csv", "jsonl"]);
            Some(TapeFormat::parse(&text).ok_or_else(known)?)
        }
    };
    let part = match take("part") {
        None => None,
        Some(text) => {
            let known: Vec<&str> = TapePart::ALL.iter().map(|part| part.as_str()).collect();
            Some(TapePart::parse(&text).ok_or_else(|| unknown("part", &known))?)
        }
    };

    Ok(SentTape {
        file,
        name,
        format,
        map,
        part,
        pool: take("pool"),
    })
}

/// The rows are compared in the background; `status` and `totals` of the tape show the progress. A file in which the
/// columns of the map cannot be found is a 422 with an issue of the code `no_header`, `missing_column`,
/// `duplicated_column`, `wrong_separator`, `encoding`, `spreadsheet` or the like.
pub async fn submit<C: Authorized>(
    State(app): State<App>,
    user: C,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<TapeForm, TAPE_LIMIT>,
) -> Result<Accepted<TapeView>, HttpError> {
    // The form is taken apart before the key is claimed: a missing part must not use the key up.
    let file = form.file()?.file;
    let tape = sent(&mut form.texts, file)?;
    once.run(&app, user.caller(), |app, caller, answer| async move {
        tapes::submit(&app, &caller, tape, &answer).await
    })
    .await
}

#[derive(Deserialize, JsonSchema)]
pub struct TapesQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the tapes behind this one: the last one of the page before.
    starting_after: Option<TapeId>,
}

pub async fn list<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<TapesQuery>,
) -> Result<CursorReply<TapeView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = tapes::list(&app, user.caller(), after, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn read<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<TapeView>, HttpError> {
    let tape = tapes::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&tape))
}

/// Deletes the file and the results, also while the tape is being checked. Your ledger keeps the digests of the file and
/// of the result, and has the entry `tape.deleted`. The next tape of this name is compared in full.
pub async fn delete<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<DeletedTape>, HttpError> {
    let tape_id = removal::delete(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&DeletedTape {
        tape_id,
        deleted: true,
    }))
}

#[derive(Deserialize, JsonSchema)]
pub struct TapeRowsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th row.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 1,000; 100 when absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    /// Returns the rows behind this line.
    #[schemars(range(min = 0))]
    starting_after: Option<i64>,
    /// Returns only rows with this result; `unlisted` are records that no row lists.
    status: Option<RowStatus>,
    /// Returns only rows with this weight of their heaviest finding.
    severity: Option<Severity>,
    /// True: leaves out clean rows.
    exceptions: Option<bool>,
}

/// Rows come in the order of their lines; behind the last one come the records that no row lists.
pub async fn rows<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<TapeRowsQuery>,
) -> Result<CursorReply<TapeRowView>, HttpError> {
    let after = query.starting_after;
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 100, 1000)?;
    let filter = RowFilter {
        status: query.status,
        severity: query.severity,
        exceptions: query.exceptions.unwrap_or(false),
    };
    let behind = after.unwrap_or(0);
    let found = tapes::rows(&app, user.caller(), &id, filter, behind, window.read()).await?;
    Ok(window.reply(found))
}

#[derive(Deserialize, JsonSchema)]
pub struct TapePictureQuery {
    /// Number of the finding in the row, from 0; the first one with a place when absent.
    finding: Option<usize>,
}

/// Shows the page of the contract around the place of a finding, with a frame around the place. 404 for a finding without a
/// place, and for a record in which you have no part any more.
pub async fn place<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    TapeLinePath(line): TapeLinePath,
    ValidQuery(query): ValidQuery<TapePictureQuery>,
) -> Result<FileReply<Png>, HttpError> {
    // A line that is no number is in no tape.
    let line = line.parse().unwrap_or(-1);
    let drawn = picture::picture(&app, &app.pages, user.caller(), &id, line, query.finding).await?;
    FileReply::of_bytes(&app, &format!("{id}-{line}.png"), &drawn).await
}

#[derive(Deserialize, JsonSchema)]
pub struct TapeReportQuery {
    /// `csv` when absent. `json` has all that a repeat of the check needs, and `pdf` is for people.
    format: Option<ReportFormat>,
    /// Reports a random sample of this many matched rows, clean ones too. It needs a `seed`.
    #[schemars(range(min = 1, max = 10000))]
    sample: Option<u32>,
    /// The sample has the rows with the smallest SHA-256 of seed, colon and the id of their record: the same for
    /// everyone.
    #[schemars(length(min = 1, max = 200))]
    seed: Option<String>,
}

/// Without a sample, the report lists all rows that are not clean. Cells that could be formulas begin with an apostrophe.
pub async fn report<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<TapeReportQuery>,
) -> Result<FileReply<CsvOrJsonOrPdf>, HttpError> {
    let options = ReportOptions {
        format: query.format.unwrap_or(ReportFormat::Csv),
        sample: query.sample,
        seed: query.seed,
    };
    let file = report::report(&app, &app.vault, user.caller(), &id, &options).await?;
    report_reply(&app, &id, options.format, file).await
}

/// Sends a report.
pub async fn report_reply(
    app: &App,
    id: &str,
    format: ReportFormat,
    file: ReportFile,
) -> Result<FileReply<CsvOrJsonOrPdf>, HttpError> {
    let name = format!("{id}.{format}");
    match file {
        ReportFile::Spooled(file) => Ok(FileReply::named_as(format.content_type(), &name, file)),
        ReportFile::Pdf(pdf) => FileReply::of_type(app, format.content_type(), &name, &pdf).await,
    }
}

pub async fn list_maps<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<TapeMapView>, HttpError> {
    let found = maps::list(&app, user.caller()).await?;
    query.page_of(&found)
}

pub async fn read_map<C: Authorized>(
    State(app): State<App>,
    user: C,
    TapeMapPath(name): TapeMapPath,
) -> Result<Found<TapeMapView>, HttpError> {
    let map = maps::get(&app, user.caller(), &name).await?;
    Ok(DataReply::new(&map))
}

/// Replaces a map of this name. Tapes that were sent before keep the one they were sent with.
pub async fn put_map<C: Authorized>(
    State(app): State<App>,
    user: C,
    TapeMapPath(name): TapeMapPath,
    once: IdempotencyKeyHeader,
    ValidJson(map): ValidJson<TapeMap>,
) -> Result<Found<TapeMapView>, HttpError> {
    once.run(&app, user.caller(), |app, caller, answer| async move {
        maps::put(&app, &caller, &name, map, &answer).await
    })
    .await
}
