//! Loan tapes: which columns they have, how they compare with contracts, and the rows that need attention.

use axum::extract::{FromRequestParts as _, Path, Query, Request, State};
use axum::http::StatusCode;
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
use crate::api::partner::tapes::{report_reply, sent};
use crate::error::HttpError;
use crate::middleware::extract::{MultipartForm, valid};
use holdfast_adapters::texts::Texts;
use holdfast_domain::organization::Permission;
use holdfast_domain::tape::{TapeFinding, TapeMap, TapeStatus};
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::tapes::maps::{self, TapeMapView};
use holdfast_service::tapes::report::{self, ReportFormat, ReportOptions};
use holdfast_service::tapes::{self, TAPE_LIMIT, TapeRowView, TapeView};
use holdfast_store::tapes::RowFilter;

/// Tapes of a page.
const TAPES: i64 = 25;
/// Rows of a page.
const ROWS: i64 = 50;
/// Orders of dates that the page offers; the empty one is none.
const ORDERS: [&str; 5] = ["", "mdy", "dmy", "ymd", "serial"];

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
        @if visitor.may(Permission::Control) {
            (upload_form(visitor, &maps, refused))
            (map_form(visitor, &maps, refused))
        }
    };
    let title = texts.text("tapes-title");
    Ok(visitor.form_page(Place::Control, None, &title, body, refused))
}

fn status(texts: Texts, tape: &TapeView) -> Markup {
    let (name, is_wrong) = match tape.status {
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

fn upload_form(visitor: &Visitor, maps: &[TapeMapView], refused: Option<&RefusedForm>) -> Markup {
    let (texts, action) = (visitor.texts, format!("{PATH}/tapes"));
    let form = FormView::new(texts, &action, refused);
    let names = maps.iter().map(|map| (map.name.clone(), map.name.clone()));
    let names: Vec<(String, String)> = names.collect();

    html! {
        section.card {
            h2 { (texts.text("tapes-send")) }
            @if names.is_empty() {
                p { (texts.text("tapes-columns-first")) }
            } @else {
                form method="post" action=(action) enctype="multipart/form-data" {
                    (visitor.token())
                    (form.summary())
                    (form.field("file", &html! { (texts.text("tapes-file")) }, html! {
                        input id="file" name="file" type="file" required
                            aria-invalid=[form.invalid("file")] aria-describedby=[form.described("file")];
                    }))
                    (form.text(&TextField {
                        limit: 100,
                        ..TextField::required("name", &texts.text("tapes-line"))
                    }))
                    (form.select("map_name", &texts.text("tapes-columns"), &names, ""))
                    button type="submit" { (texts.text("tapes-send")) }
                }
            }
        }
    }
}

/// Renders the form for the columns of a tape: a line for each, and one form for each map to change it.
fn map_form(visitor: &Visitor, maps: &[TapeMapView], refused: Option<&RefusedForm>) -> Markup {
    let (texts, action) = (visitor.texts, format!("{PATH}/tapes/maps"));
    let form = FormView::new(texts, &action, refused);
    let label = |order: &str| if order.is_empty() { "—" } else { order }.to_owned();
    let orders = ORDERS.map(|order| (order.to_owned(), label(order)));
    let marks = [".", ","].map(|mark| (mark.to_owned(), mark.to_owned()));
    let example = "Loan Number = contract_number\nVIN = vin\nAmount Financed = amount_financed";

    html! {
        details.card open[form.is_refused() || maps.is_empty()] {
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
                (form.select("date_order", &texts.text("tapes-date-order"), &orders, ""))
                (form.select("decimal", &texts.text("tapes-decimal"), &marks, "."))
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
        Ok(tape) => Ok(Redirect::to(&address(&tape.tape_id)).into_response()),
        Err(error) => {
            let action = format!("{PATH}/tapes");
            let refused = if error.status() == StatusCode::NOT_FOUND {
                let problem = visitor.texts.text("problem-option");
                RefusedForm::at(&action, &entries, "map_name", problem)
            } else {
                let members = [("file".to_owned(), "file".to_owned())];
                RefusedForm::of(&action, &entries, error, &members)?
            };
            list_page(&app, &visitor, Some(&refused)).await
        }
    }
}

async fn submit(
    app: &App,
    visitor: &Visitor,
    form: &mut MultipartForm<TapeFields, TAPE_LIMIT>,
) -> Result<TapeView, HttpError> {
    let file = form.file()?.file;
    let tape = sent(&mut form.texts, file)?;
    Ok(tapes::submit(app, &visitor.caller, tape, &unrecorded()).await?)
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
        section.card {
            h2 { (texts.text("tapes-exceptions")) }
            @if rows.is_empty() { p { (texts.text("tapes-all-clean")) } }
            ul.rows { @for row in &rows { li { (row_of(texts, row)) } } }
            @if let Some(last) = rows.last().filter(|_| more) {
                p { a href={ (own) "?after=" (last.line) } { (texts.text("tapes-further")) } }
            }
        }
    };
    visitor.page(Place::Control, &tape.name, body)
}

fn row_of(texts: Texts, row: &TapeRowView) -> Markup {
    html! {
        p {
            strong { (texts.with("bulk-row", [("line", row.line)])) }
            @if let Some(envelope) = &row.envelope_id {
                " " a href={ (PATH) "/control/records/" (envelope) } { code { (envelope) } }
            }
        }
        @for finding in &row.findings { p.soft { (finding_of(texts, finding)) } }
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
