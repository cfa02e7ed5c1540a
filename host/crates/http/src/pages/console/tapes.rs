//! Loan tapes: which columns they have, how they compare with contracts, and the rows that need attention.

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::api::partner::tapes::{report_reply, sent};
use crate::error::HttpError;
use crate::middleware::extract::{MultipartForm, valid};
use holdfast_adapters::texts::Texts;
use holdfast_domain::organization::Permission;
use holdfast_domain::tape::{
    DateOrder, DecimalMark, ExactDecimal, Severity, TapeColumn, TapeFinding, TapeKey, TapeMap,
    TapeStatus,
};
use holdfast_domain::transfer::TransferState;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::control::transfers;
use holdfast_service::tapes::columns::{self, ColumnChoice, ProbableColumn, SentFile};
use holdfast_service::tapes::maps::{self, TapeMapView};
use holdfast_service::tapes::report::{self, ReportFormat, ReportOptions};
use holdfast_service::tapes::{self, TAPE_LIMIT, TapeRowView, TapeView, picture, removal};
use holdfast_store::tapes::RowFilter;

/// Tapes of a page.
const TAPES: i64 = 25;
/// Rows of a page.
const ROWS: i64 = 50;
/// Transfers that are offered as pools.
const POOLS: i64 = 50;

fn address(id: impl std::fmt::Display) -> String {
    format!("{PATH}/tapes/{id}")
}

/// Lists tapes, newest first, with the forms for another one and for its columns.
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    list_page(&app, &visitor, None).await
}

async fn list_page(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let tapes = tapes::list(app, &visitor.caller, None, TAPES).await?;
    let maps = maps::list(app, &visitor.caller).await?;
    let may_send = visitor.may(Permission::Control);
    let pools = if may_send {
        pools(app, visitor).await?
    } else {
        Vec::new()
    };

    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("tapes-hint")) }
        @if tapes.is_empty() { p { (texts.text("tapes-none")) } }
        ul.rows {
            @for tape in &tapes {
                li {
                    a href=(address(&tape.tape_id)) { (tape.name) }
                    p.soft {
                        (status(texts, tape)) " " (counts(texts, tape)) " · " (visitor.moment(tape.created_at))
                    }
                }
            }
        }
        @if may_send {
            (upload_form(visitor, &maps, &pools, refused))
            (map_form(visitor, &maps, refused))
        }
    };
    let title = texts.text("tapes-title");
    Ok(visitor.form_page(Place::Control, None, &title, body, refused))
}

fn status(texts: Texts, tape: &TapeView) -> Markup {
    let (name, is_wrong) = match tape.status {
        TapeStatus::Choosing => ("tapes-choosing", false),
        TapeStatus::Failed => ("tapes-failed", true),
        TapeStatus::Checking => ("tapes-checking", false),
        TapeStatus::Checked => ("tapes-checked", tape.totals.stop > 0),
        TapeStatus::Refused => ("tapes-refused", true),
    };
    html! { span.tag.wrong[is_wrong] { (texts.text(name)) } }
}

fn counts(texts: Texts, tape: &TapeView) -> String {
    let values = [("clean", tape.totals.clean), ("rows", tape.totals.rows)];
    texts.with("tapes-clean", values)
}

/// Returns the ids of the transfers that a tape can be about, newest first, with their names.
async fn pools(app: &App, visitor: &Visitor) -> Result<Vec<(String, String)>, ServiceError> {
    let found = transfers::list(app, &visitor.caller, None, POOLS).await?;
    let settled = found.into_iter().filter(|transfer| {
        let (state, done) = (transfer.state, TransferState::Confirmed);
        [TransferState::Proposed, TransferState::Accepted, done].contains(&state)
    });
    let named = settled.map(|transfer| {
        let id = transfer.transfer_id.to_string();
        (id.clone(), transfer.price_reference.unwrap_or(id))
    });
    Ok(named.collect())
}

/// Puts a choice in front of the others that has no value.
fn with_none(label: String, others: &[(String, String)]) -> Vec<(String, String)> {
    let none = std::iter::once((String::new(), label));
    none.chain(others.iter().cloned()).collect()
}

fn upload_form(
    visitor: &Visitor,
    maps: &[TapeMapView],
    pools: &[(String, String)],
    refused: Option<&RefusedForm>,
) -> Markup {
    let (texts, action) = (visitor.texts, format!("{PATH}/tapes"));
    let form = FormView::new(texts, &action, refused);
    let names = maps.iter().map(|map| (map.name.clone(), map.name.clone()));
    let names = with_none(texts.text("tapes-choose"), &names.collect::<Vec<_>>());
    let pools = with_none(texts.text("tapes-pool-all"), pools);

    html! {
        section.card {
            h2 { (texts.text("tapes-send")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.file(&texts.text("tapes-file"), None))
                (form.text(&TextField {
                    limit: 100,
                    ..TextField::required("name", &texts.text("tapes-line"))
                }))
                (form.select("pool", &texts.text("tapes-pool"), &pools, ""))
                (form.select("map_name", &texts.text("tapes-columns"), &names, ""))
                button type="submit" { (texts.text("tapes-send")) }
            }
        }
    }
}

/// Orders of dates; the empty one is none.
fn orders() -> Vec<(String, String)> {
    let known = DateOrder::ALL.iter();
    let known: Vec<_> = known
        .map(|order| (order.to_string(), order.to_string()))
        .collect();
    with_none("—".into(), &known)
}

fn marks() -> Vec<(String, String)> {
    let marks = DecimalMark::ALL.iter();
    marks
        .map(|mark| (mark.to_string(), mark.to_string()))
        .collect()
}

/// Renders the form for the columns of a tape: a line for each, and one form for each map to change it.
fn map_form(visitor: &Visitor, maps: &[TapeMapView], refused: Option<&RefusedForm>) -> Markup {
    let (texts, action) = (visitor.texts, format!("{PATH}/tapes/maps"));
    let form = FormView::new(texts, &action, refused);
    let example = "Loan Number = contract_number\nVIN = vin\nAmount Financed = amount_financed";

    html! {
        details.card open[form.is_refused()] {
            summary { (texts.text("tapes-columns")) }
            ul.rows {
                @for map in maps {
                    li {
                        (map.name)
                        p.soft {
                            @for column in &map.map.columns { code { (column.column) " = " (column.fact) } " " }
                        }
                    }
                }
            }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.text(&TextField {
                    limit: 100,
                    ..TextField::required("map", &texts.text("rules-name"))
                }))
                (form.lines("columns", &texts.text("tapes-columns-lines"), 8, example))
                (form.select("date_order", &texts.text("tapes-date-order"), &orders(), ""))
                (form.select("decimal", &texts.text("tapes-decimal"), &marks(), "."))
                button type="submit" { (texts.text("tapes-columns-save")) }
            }
        }
    }
}

/// Fields of the form for a tape.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct TapeFields {
    token: String,
    file: String,
    name: String,
    map_name: String,
    pool: String,
}

/// Takes a tape, and leads to its page.
pub async fn upload(State(app): State<App>, request: Request) -> PageResult {
    // The session is checked before the body is read, so that a stranger uploads nothing.
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::from_request_parts(&mut parts, &app).await?;
    visitor.require(Permission::Control)?;

    let request = Request::from_parts(parts, body);
    let form = visitor.upload_within::<TapeFields, TAPE_LIMIT>(&app, request);
    let mut form = form.await?;
    let entries = form.texts.clone();
    match submit(&app, &visitor, &mut form).await {
        Ok(tape) if tape.status == TapeStatus::Choosing => {
            let next = format!("{}/columns", address(&tape.tape_id));
            Ok(Redirect::to(&next).into_response())
        }
        Ok(tape) => Ok(Redirect::to(&address(&tape.tape_id)).into_response()),
        Err(error) => {
            let action = format!("{PATH}/tapes");
            let refused = if error.status() == StatusCode::NOT_FOUND {
                // Only the pool and the map are looked up.
                let pools = pools(&app, &visitor).await?;
                let pool = entries.get("pool").filter(|pool| !pool.is_empty());
                let is_known = pool.is_none_or(|pool| pools.iter().any(|(id, _)| id == pool));
                let field = if is_known { "map_name" } else { "pool" };
                let problem = visitor.texts.text("problem-option");
                RefusedForm::at(&action, &entries, field, problem)
            } else {
                let members = [("file".to_owned(), "file".to_owned())];
                RefusedForm::of(&action, &entries, error, &members)?
            };
            list_page(&app, &visitor, Some(&refused)).await
        }
    }
}

/// Takes a tape with the columns of a map, or a file of which a person chooses the columns next.
async fn submit(
    app: &App,
    visitor: &Visitor,
    form: &mut MultipartForm<TapeFields, TAPE_LIMIT>,
) -> Result<TapeView, HttpError> {
    let file = form.file()?.file;
    let map = form.texts.get("map_name");
    if map.is_some_and(|name| !name.trim().is_empty()) {
        let tape = sent(&mut form.texts, file)?;
        return Ok(tapes::submit(app, &visitor.caller, tape, &unrecorded()).await?);
    }

    let pool = form.texts.remove("pool").filter(|pool| !pool.is_empty());
    let sent = SentFile {
        file,
        name: form.texts.remove("name").unwrap_or_default(),
        part: None,
        pool,
    };
    Ok(columns::wait(app, &visitor.caller, sent, &unrecorded()).await?)
}

/// Asks which facts the columns of a file hold.
pub async fn choose(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::Control)?;

    choice_page(&app, &visitor, &id, None).await
}

async fn choice_page(
    app: &App,
    visitor: &Visitor,
    id: &str,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let choice = columns::choice(app, &visitor.caller, id).await?;
    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("tapes-choose-hint")) }
        (choice_form(visitor, &choice, refused))
    };
    Ok(visitor.form_page(Place::Control, None, &choice.tape.name, body, refused))
}

fn choice_form(visitor: &Visitor, choice: &ColumnChoice, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{}/columns", address(&choice.tape.tape_id));
    let form = FormView::new(texts, &action, refused);
    let pair = |text: &str| (text.to_owned(), text.to_owned());
    let facts = choice.facts.iter().map(|fact| pair(fact));
    let facts = with_none(texts.text("tapes-not-compared"), &facts.collect::<Vec<_>>());
    let keys = TapeKey::ALL.iter().map(|key| pair(key.as_str()));
    let keys = with_none("—".into(), &keys.collect::<Vec<_>>());

    let before = choice.remembered.as_ref();
    let present = before.map_or(TapeKey::ALL, |map| &map.keys[..]);
    let order = before.and_then(|map| map.date_order);
    let decimal = before.map_or(DecimalMark::Point, |map| map.decimal);
    html! {
        form.card method="post" action=(action) {
            (visitor.token())
            (form.summary())
            @for (at, column) in choice.columns.iter().enumerate() {
                (column_fields(&form, at, column, &facts))
            }
            @for at in 0..TapeKey::ALL.len() {
                (form.select(
                    &format!("key-{at}"),
                    &texts.with("tapes-key", [("number", at + 1)]),
                    &keys,
                    present.get(at).map_or("", |key| key.as_str()),
                ))
            }
            (form.select(
                "date_order",
                &texts.text("tapes-date-order"),
                &orders(),
                order.map_or("", |order| order.as_str()),
            ))
            (form.select("decimal", &texts.text("tapes-decimal"), &marks(), decimal.as_str()))
            button type="submit" { (texts.text("tapes-compare")) }
        }
    }
}

/// Returns the names of a column's fields: its fact, tolerance, weight, and whether percentages are fractions.
fn fields_of(at: usize) -> [String; 4] {
    ["fact", "tolerance", "severity", "fraction"].map(|name| format!("{name}-{at}"))
}

fn column_fields(
    form: &FormView<'_>,
    at: usize,
    column: &ProbableColumn,
    facts: &[(String, String)],
) -> Markup {
    let (texts, holds) = (form.texts, column.holds.as_ref());
    let [fact, tolerance, severity, fraction] = fields_of(at);
    let weights = Severity::ALL.iter();
    let weights: Vec<_> = weights
        .map(|weight| (weight.to_string(), weight.to_string()))
        .collect();
    let weight = holds.and_then(|holds| holds.severity);
    let weight = weight.unwrap_or(Severity::Stop);

    html! {
        (form.select(&fact, &column.name, facts, holds.map_or("", |holds| holds.fact.as_str())))
        details open[form.is_refused()] {
            summary { (texts.text("tapes-column-more")) }
            (form.text(&TextField {
                kind: "number",
                limit: 20,
                present: holds.and_then(|holds| holds.tolerance.as_deref()).unwrap_or_default(),
                ..TextField::new(&tolerance, &texts.text("tapes-tolerance"))
            }))
            (form.select(&severity, &texts.text("tapes-severity"), &weights, weight.as_str()))
            (form.tick(&fraction, &texts.text("tapes-fraction"), holds.is_some_and(|holds| holds.fraction)))
        }
    }
}

/// A field with an entry that is no choice, and the name of the text with the reason.
#[derive(Debug, PartialEq, Eq)]
struct WrongChoice {
    field: String,
    text: &'static str,
}

impl WrongChoice {
    fn new(field: &str, text: &'static str) -> Self {
        Self {
            field: field.to_owned(),
            text,
        }
    }
}

/// Returns the map of a form.
fn chosen(value: impl Fn(&str) -> String, choice: &ColumnChoice) -> Result<TapeMap, WrongChoice> {
    let no_option = |field: &str| WrongChoice::new(field, "problem-option");
    let mut columns: Vec<TapeColumn> = Vec::new();
    for (at, column) in choice.columns.iter().enumerate() {
        let [fact_field, tolerance_field, severity_field, fraction_field] = fields_of(at);
        let (fact, tolerance) = (value(&fact_field), value(&tolerance_field));
        if !fact.is_empty() && !choice.facts.contains(&fact) {
            return Err(no_option(&fact_field));
        }
        let severity = match value(&severity_field).as_str() {
            "" => Severity::Stop,
            text => Severity::parse(text).ok_or_else(|| no_option(&severity_field))?,
        };
        let size = ExactDecimal::parse(&tolerance);
        if !tolerance.is_empty() && size.is_none_or(|size| size < ExactDecimal::ZERO) {
            return Err(WrongChoice::new(&tolerance_field, "tapes-problem-number"));
        }

        if fact.is_empty() {
            continue;
        }
        if columns.iter().any(|other| other.fact == fact) {
            return Err(WrongChoice::new(&fact_field, "tapes-problem-twice"));
        }
        // The page does not ask for the type, which an earlier map can have.
        let kept = column.holds.as_ref().filter(|holds| holds.fact == fact);
        columns.push(TapeColumn {
            column: column.name.clone(),
            kind: kept.and_then(|holds| holds.kind),
            fact,
            tolerance: (!tolerance.is_empty()).then_some(tolerance),
            severity: (severity != Severity::Stop).then_some(severity),
            fraction: value(&fraction_field) == "yes",
        });
    }

    let mut keys = Vec::new();
    for at in 0..TapeKey::ALL.len() {
        let field = format!("key-{at}");
        let text = value(&field);
        if !text.is_empty() {
            keys.push(TapeKey::parse(&text).ok_or_else(|| no_option(&field))?);
        }
    }
    let has_column = |key: &TapeKey| columns.iter().any(|column| column.fact == key.column());
    if !keys.iter().any(has_column) {
        return Err(WrongChoice::new("key-0", "tapes-problem-key"));
    }

    let date_order = match value("date_order").as_str() {
        "" => None,
        text => Some(DateOrder::parse(text).ok_or_else(|| no_option("date_order"))?),
    };
    let decimal = match value("decimal").as_str() {
        "" => DecimalMark::Point,
        text => DecimalMark::parse(text).ok_or_else(|| no_option("decimal"))?,
    };
    let before = choice.remembered.as_ref();
    Ok(TapeMap {
        columns,
        keys,
        date_order,
        decimal,
        separator: before.and_then(|map| map.separator),
        date_fact: before.and_then(|map| map.date_fact.clone()),
    })
}

/// Keeps the choice under the tape's name, and begins the comparison.
pub async fn take_columns(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Control)?;

    let choice = columns::choice(&app, &visitor.caller, &id).await?;
    let map = match chosen(|name| form.value(name).to_owned(), &choice) {
        Ok(map) => map,
        Err(wrong) => {
            let refused = form.refused_at(&wrong.field, visitor.texts.text(wrong.text));
            return choice_page(&app, visitor, &id, Some(&refused)).await;
        }
    };
    match columns::choose(&app, &visitor.caller, &id, map, &unrecorded()).await {
        Ok(tape) => Ok(Redirect::to(&address(&tape.tape_id)).into_response()),
        Err(error) => {
            let refused = form.refused(error)?;
            choice_page(&app, visitor, &id, Some(&refused)).await
        }
    }
}

/// Deletes a tape.
pub async fn delete(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    let (visitor, texts) = (&form.visitor, form.visitor.texts);
    visitor.require(Permission::Control)?;

    let tape = tapes::get(&app, &visitor.caller, &id).await?;
    form.meant(&SensitiveAct {
        label: texts.text("tapes-delete"),
        objects: vec![tape.name],
        consequence: texts.text("sure-tape-delete"),
        is_typed: false,
        back: address(&tape.tape_id),
    })?;
    removal::delete(&app, &visitor.caller, &id).await?;
    Ok(Redirect::to(&format!("{PATH}/tapes")).into_response())
}

/// Shows the place of a finding: `4711-0.png` is that of the first finding of line 4711.
pub async fn place(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, name)): Path<(String, String)>,
) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    let named = name
        .strip_suffix(".png")
        .and_then(|name| name.split_once('-'))
        .and_then(|(line, finding)| Some((line.parse().ok()?, finding.parse().ok()?)));
    let (line, finding) = named.ok_or(ServiceError::NotFound("Picture"))?;
    let caller = &visitor.caller;
    let drawn = picture::picture(&app, &app.pages, caller, &id, line, Some(finding)).await?;
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        // A browser would show it after the record has left the organization.
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, Body::from(drawn)).into_response())
}

/// Stores the columns of tapes under a name.
pub async fn save_map(State(app): State<App>, form: ConsoleForm) -> PageResult {
    let visitor = &form.visitor;
    visitor.require(Permission::Control)?;

    let saved = match valid::<TapeMap>(map_of(&form)) {
        Ok(map) => maps::put(&app, &visitor.caller, form.value("map"), map, &unrecorded())
            .await
            .map_err(HttpError::from),
        Err(error) => Err(error),
    };
    match saved {
        Ok(_) => Ok(Redirect::to(&format!("{PATH}/tapes")).into_response()),
        Err(error) => {
            let refused = form.refused_with(error, &[("name".into(), "map".into())])?;
            list_page(&app, visitor, Some(&refused)).await
        }
    }
}

/// Returns the body of a request for a form: its columns are lines with `name in the tape = fact`.
fn map_of(form: &ConsoleForm) -> Value {
    let lines = form.value("columns").lines();
    let columns = lines.filter(|line| !line.trim().is_empty()).map(|line| {
        // A line without a sign has no fact, which the check of the map names.
        let (column, fact) = line.rsplit_once('=').unwrap_or((line, ""));
        json!({ "column": column.trim(), "fact": fact.trim() })
    });
    let mut map = json!({ "columns": columns.collect::<Vec<_>>() });
    for member in ["date_order", "decimal"] {
        let chosen = form.value(member);
        if !chosen.is_empty() {
            map[member] = json!(chosen);
        }
    }

    map
}

#[derive(Deserialize)]
pub struct RowsQuery {
    after: Option<i64>,
}

/// Shows a tape, and its rows that need attention.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<RowsQuery>,
) -> PageResult {
    visitor.require(Permission::ReadControl)?;

    let filter = RowFilter {
        exceptions: true,
        ..RowFilter::default()
    };
    let tape = tapes::get(&app, &visitor.caller, &id).await?;
    let after = query.after.unwrap_or(0);
    // One row more than a page shows whether there are others.
    let rows = tapes::rows(&app, &visitor.caller, &id, filter, after, ROWS + 1).await?;
    Ok(shown(&visitor, &tape, rows))
}

fn shown(visitor: &Visitor, tape: &TapeView, mut rows: Vec<TapeRowView>) -> Response {
    let texts = visitor.texts;
    let page = usize::try_from(ROWS).unwrap_or_default();
    let more = rows.len() > page;
    rows.truncate(page);
    let own = address(&tape.tape_id);

    let body = html! {
        p.soft {
            (status(texts, tape)) " " code { (tape.tape_id) } " · " (visitor.moment(tape.created_at))
        }
        @if let Some(refusal) = &tape.refusal { p.problem { (refusal.message) } }
        @if let Some(pool) = &tape.pool {
            p { (texts.text("tapes-pool")) " " a href={ (PATH) "/transfers/" (pool) } { code { (pool) } } }
        }
        @if tape.status == TapeStatus::Choosing && visitor.may(Permission::Control) {
            p { a href={ (own) "/columns" } { (texts.text("tapes-choose")) } }
        }
        p {
            (counts(texts, tape)) " · " (texts.with("tapes-stop", [("stop", tape.totals.stop)]))
        }
        @if tape.status == TapeStatus::Checked {
            p {
                @for format in ReportFormat::ALL {
                    a href={ (own) "/report/" (format) } download {
                        (texts.with("tapes-report", [("format", format.as_str().to_uppercase())]))
                    }
                    " "
                }
            }
        }
        @if tape.status != TapeStatus::Choosing {
            section.card {
                h2 { (texts.text("tapes-exceptions")) }
                @if rows.is_empty() { p { (texts.text("tapes-all-clean")) } }
                ul.rows { @for row in &rows { li { (row_of(texts, &own, row)) } } }
                @if let Some(last) = rows.last().filter(|_| more) {
                    p { a href={ (own) "?after=" (last.line) } { (texts.text("tapes-further")) } }
                }
            }
        }
        @if visitor.may(Permission::Control) {
            form method="post" action={ (own) "/delete" } {
                (visitor.token())
                button.danger type="submit" { (texts.text("tapes-delete")) }
            }
        }
    };
    visitor.page(Place::Control, &tape.name, body)
}

fn row_of(texts: Texts, tape: &str, row: &TapeRowView) -> Markup {
    html! {
        p {
            strong { (texts.with("bulk-row", [("line", row.line)])) }
            @if let Some(envelope) = &row.envelope_id {
                " " a href={ (PATH) "/control/records/" (envelope) } { code { (envelope) } }
            }
        }
        @for (number, finding) in row.findings.iter().enumerate() {
            p.soft { (finding_of(texts, finding)) }
            @if let (Some(place), Some(_)) = (&finding.place, &row.envelope_id) {
                // Loaded when it is opened: each picture is drawn from the document.
                details.excerpt {
                    summary { (texts.text("tapes-picture")) }
                    img src={ (tape) "/pictures/" (row.line) "-" (number) ".png" } loading="lazy"
                        alt=(texts.with("tapes-page", [("page", place.page)]));
                }
            }
        }
    }
}

/// Renders a finding with both values, and where the contract has its own.
fn finding_of(texts: Texts, finding: &TapeFinding) -> Markup {
    html! {
        code { (finding.code) }
        @if let Some(column) = &finding.column { " " (column) }
        @if let Some(tape) = &finding.tape { " · " (texts.text("tapes-in-tape")) " " strong { (tape) } }
        @if let Some(contract) = &finding.contract {
            " · " (texts.text("tapes-in-contract")) " " strong { (contract) }
        }
        @if let Some(place) = &finding.place {
            " · " (texts.with("tapes-page", [("page", place.page)]))
        }
        @if let Some(detail) = &finding.detail { " · " (detail) }
    }
}

/// Gives a report of a checked tape.
pub async fn report(
    State(app): State<App>,
    visitor: Visitor,
    Path((id, format)): Path<(String, String)>,
) -> PageResult {
    visitor.require(Permission::ReadControl)?;
    let format = ReportFormat::parse(&format).ok_or(ServiceError::NotFound("Report"))?;

    let options = ReportOptions {
        format,
        sample: None,
        seed: None,
    };
    let file = report::report(&app, &app.vault, &visitor.caller, &id, &options).await?;
    let reply = report_reply(&app, &id, format, file).await?;
    Ok(reply.into_response())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use holdfast_domain::tape::TapeFormat;

    fn choice() -> ColumnChoice {
        let columns = ["Loan", "Amount"].map(|name| ProbableColumn {
            name: name.into(),
            holds: None,
        });
        let facts = ["contract_number", "amount_financed"];
        ColumnChoice {
            tape: tape(),
            facts: facts.map(str::to_owned).into(),
            columns: columns.into(),
            remembered: None,
        }
    }

    fn tape() -> TapeView {
        TapeView {
            tape_id: holdfast_domain::id::TapeId::new(),
            name: "Line 12".into(),
            format: TapeFormat::Csv,
            part: None,
            pool: None,
            status: TapeStatus::Choosing,
            header: None,
            tape_sha256: String::new(),
            map_sha256: String::new(),
            totals: holdfast_domain::tape::TapeTotals::default(),
            reused: 0,
            other_tapes: 0,
            other_claims: 0,
            population: None,
            sha256: None,
            refusal: None,
            made_by: "user:olga".into(),
            created_at: holdfast_domain::clock::Timestamp::from_millis(0),
            checked_at: None,
        }
    }

    fn taken(entries: &[(&str, &str)]) -> Result<TapeMap, WrongChoice> {
        let entries: BTreeMap<&str, &str> = entries.iter().copied().collect();
        let value = |name: &str| entries.get(name).copied().unwrap_or_default().to_owned();
        chosen(value, &choice())
    }

    const RIGHT: [(&str, &str); 6] = [
        ("fact-0", "contract_number"),
        ("fact-1", "amount_financed"),
        ("tolerance-1", "0.50"),
        ("severity-1", "warn"),
        ("key-0", "contract_number"),
        ("date_order", "mdy"),
    ];

    #[test]
    fn choices_make_a_map() {
        let map = taken(&RIGHT).unwrap();
        assert_eq!(map.columns[1].tolerance.as_deref(), Some("0.50"));
        assert_eq!(map.columns[1].severity, Some(Severity::Warn));
        assert_eq!(map.columns[0].severity, None);
        assert_eq!(map.keys, [TapeKey::ContractNumber]);
        assert_eq!(map.date_order, Some(DateOrder::MonthFirst));
        assert!(map.problems().is_empty());
    }

    #[test]
    fn an_entry_that_is_no_choice_is_named() {
        for (field, entry, text) in [
            ("fact-1", "colour", "problem-option"),
            ("fact-1", "contract_number", "tapes-problem-twice"),
            ("tolerance-0", "-1", "tapes-problem-number"),
            ("severity-0", "heavy", "problem-option"),
            ("key-1", "name", "problem-option"),
            ("date_order", "any", "problem-option"),
            ("decimal", ";", "problem-option"),
        ] {
            let mut entries = RIGHT.to_vec();
            entries.push((field, entry));
            assert_eq!(
                taken(&entries).unwrap_err(),
                WrongChoice::new(field, text),
                "{entry}"
            );
        }
        let without_key = taken(&RIGHT[1..]).unwrap_err();
        assert_eq!(without_key, WrongChoice::new("key-0", "tapes-problem-key"));
    }
}
