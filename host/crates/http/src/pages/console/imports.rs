//! Imports of documents that were signed in other systems: the archive, its progress and the result of each row.

use axum::extract::{FromRequestParts as _, Path, Query, Request, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::navigation::{PageResult, Place};
use super::signed_in::Visitor;
use crate::api::partner::imports::sent;
use crate::error::HttpError;
use crate::middleware::extract::MultipartForm;
use crate::reply::{Csv, FileReply};
use holdfast_adapters::texts::Texts;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::import::{ImportLayout, ImportRowStatus, ImportStatus, SignatureCounts};
use holdfast_domain::organization::Permission;
use holdfast_service::App;
use holdfast_service::imports::{
    self, IMPORT_LIMIT, ImportRowView, ImportView, ImportedView, report as reports,
};

/// Imports of a page.
const IMPORTS: i64 = 25;
/// Rows of a page.
const ROWS: i64 = 50;

fn address(id: impl std::fmt::Display) -> String {
    format!("{PATH}/imports/{id}")
}

/// Returns the name of a system. It is the same in all languages.
fn system(texts: Texts, layout: ImportLayout) -> String {
    match layout {
        ImportLayout::Columns => texts.text("imports-layout-columns"),
        ImportLayout::Docusign => "DocuSign".to_owned(),
        ImportLayout::AdobeSign => "Adobe Acrobat Sign".to_owned(),
        ImportLayout::Docuseal => "DocuSeal".to_owned(),
    }
}

/// Lists imports, newest first, with the form for another one.
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    list_page(&app, &visitor, None).await
}

async fn list_page(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let found = imports::list(app, &visitor.caller, None, IMPORTS).await?;
    let texts = visitor.texts;
    let body = html! {
        p { (texts.text("imports-hint")) }
        @if found.is_empty() { p { (texts.text("imports-none")) } }
        ul.rows {
            @for import in &found {
                li {
                    a href=(address(&import.import_id)) { (system(texts, import.layout)) }
                    p.soft {
                        (status(texts, import)) " " (counts(texts, import)) " · " (visitor.moment(import.created_at))
                    }
                }
            }
        }
        @if visitor.may(Permission::Send) { (upload_form(visitor, refused)) }
    };
    let title = texts.text("imports-title");
    Ok(visitor.form_page(Place::Send, None, &title, body, refused))
}

fn status(texts: Texts, import: &ImportView) -> Markup {
    let (name, is_wrong) = match import.status {
        ImportStatus::Running => ("batch-running", false),
        ImportStatus::Completed => ("batch-completed", import.failed > 0),
        ImportStatus::Failed => ("batch-failed", true),
    };
    html! { span.tag.wrong[is_wrong] { (texts.text(name)) } }
}

fn counts(texts: Texts, import: &ImportView) -> String {
    let values = [
        ("done", import.done),
        ("rows", import.rows),
        ("imported", import.imported),
        ("duplicates", import.duplicates),
        ("failed", import.failed),
    ];
    texts.with("imports-counts", values)
}

fn upload_form(visitor: &Visitor, refused: Option<&RefusedForm>) -> Markup {
    let (texts, action) = (visitor.texts, format!("{PATH}/imports"));
    let form = FormView::new(texts, &action, refused);
    let found = (String::new(), texts.text("imports-layout-found"));
    let systems = ImportLayout::ALL.iter();
    let systems = systems.map(|one| (one.to_string(), system(texts, *one)));
    let layouts: Vec<(String, String)> = std::iter::once(found).chain(systems).collect();

    html! {
        section.card {
            h2 { (texts.text("imports-send")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.file(&texts.text("imports-file"), Some(".zip,application/zip")))
                (form.select("layout", &texts.text("imports-layout"), &layouts, ""))
                (form.text(&TextField::new("customer_name", &texts.text("imports-customer-name"))))
                (form.text(&TextField {
                    kind: "email",
                    ..TextField::new("customer_email", &texts.text("imports-customer-email"))
                }))
                button type="submit" { (texts.text("imports-send")) }
            }
        }
    }
}

/// Fields of the form for an archive.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct ImportFields {
    token: String,
    file: String,
    layout: String,
    customer_name: String,
    customer_email: String,
}

/// Takes an archive, and leads to the page of its import.
pub async fn upload(State(app): State<App>, request: Request) -> PageResult {
    // The session is checked before the body is read, so that a stranger uploads nothing.
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::from_request_parts(&mut parts, &app).await?;
    visitor.require(Permission::Send)?;

    let request = Request::from_parts(parts, body);
    let form = visitor.upload_within::<ImportFields, IMPORT_LIMIT>(&app, request);
    let mut form = form.await?;
    let entries = form.texts.clone();
    match submit(&app, &visitor, &mut form).await {
        Ok(import) => Ok(Redirect::to(&address(&import.import_id)).into_response()),
        Err(error) => {
            let action = format!("{PATH}/imports");
            let members = ["file", "customer_email"];
            let members = members.map(|member| (member.to_owned(), member.to_owned()));
            let refused = RefusedForm::of(&action, &entries, error, &members)?;
            list_page(&app, &visitor, Some(&refused)).await
        }
    }
}

async fn submit(
    app: &App,
    visitor: &Visitor,
    form: &mut MultipartForm<ImportFields, IMPORT_LIMIT>,
) -> Result<ImportView, HttpError> {
    let file = form.file()?.file;
    let import = sent(&mut form.texts, file)?;
    Ok(imports::submit(app, &visitor.caller, import, &unrecorded()).await?)
}

#[derive(Deserialize)]
pub struct RowsQuery {
    after: Option<i64>,
    status: Option<ImportRowStatus>,
}

/// Shows an import with the results of its rows; first those without a record.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(query): Query<RowsQuery>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;

    let caller = &visitor.caller;
    let import = imports::get(&app, caller, &id).await?;
    let status = query.status.unwrap_or(ImportRowStatus::Failed);
    let after = query.after.unwrap_or(0);
    // One row more than a page shows whether there are others.
    let rows = imports::rows(&app, caller, &id, Some(status), after, ROWS + 1).await?;
    Ok(shown(&visitor, &import, status, rows))
}

fn shown(
    visitor: &Visitor,
    import: &ImportView,
    chosen: ImportRowStatus,
    mut rows: Vec<ImportRowView>,
) -> Response {
    let texts = visitor.texts;
    let page = usize::try_from(ROWS).unwrap_or_default();
    let more = rows.len() > page;
    rows.truncate(page);
    let own = address(&import.import_id);
    let parts = [
        (ImportRowStatus::Failed, "imports-row-failed"),
        (ImportRowStatus::Duplicate, "imports-row-duplicate"),
        (ImportRowStatus::Imported, "imports-row-imported"),
    ];

    let body = html! {
        p.soft {
            (status(texts, import)) " " code { (import.import_id) } " · " (visitor.moment(import.created_at))
        }
        @if let Some(refusal) = &import.refusal { p.problem { (refusal.message) } }
        progress max=(import.rows.max(1)) value=(import.done) aria-label=(texts.text("bulk-progress")) {}
        p { (counts(texts, import)) }
        p { a href={ (own) "/report.csv" } download { (texts.text("console-export")) } }
        section.card {
            p {
                @for (one, text) in parts {
                    @if one == chosen { strong { (texts.text(text)) } }
                    @else { a href={ (own) "?status=" (one) } { (texts.text(text)) } }
                    " "
                }
            }
            @if rows.is_empty() { p { (texts.text("imports-no-rows")) } }
            ul.rows { @for row in &rows { li { (row_of(texts, row)) } } }
            @if let Some(last) = rows.last().filter(|_| more) {
                p {
                    a href={ (own) "?status=" (chosen) "&after=" (last.number) } { (texts.text("tapes-further")) }
                }
            }
        }
    };
    visitor.page(Place::Send, &system(texts, import.layout), body)
}

fn row_of(texts: Texts, row: &ImportRowView) -> Markup {
    html! {
        p {
            strong { (texts.with("bulk-row", [("line", row.number)])) }
            @if let Some(envelope) = &row.envelope_id {
                " " a href={ (PATH) "/envelopes/" (envelope) } { code { (envelope) } }
            }
        }
        p.soft { (row.file) }
        @if let Some(counts) = row.signatures { p.soft { (signatures(texts, counts)) } }
        @if let Some(problem) = &row.problem {
            p.soft { code { (problem.code) } " " span lang="en" dir="ltr" { (problem.message) } }
        }
    }
}

fn signatures(texts: Texts, counts: SignatureCounts) -> String {
    let values = [
        ("found", counts.found),
        ("intact", counts.intact),
        ("trusted", counts.trusted),
    ];
    texts.with("imports-signatures", values)
}

/// Gives the results as a table.
pub async fn report(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::ReadEnvelopes)?;
    let file = reports::report(&app, &visitor.caller, &id).await?;
    Ok(FileReply::<Csv>::named(&format!("{id}.csv"), file).into_response())
}

/// Renders where a record was imported from: what the manifest declares, and what the signatures in the files say.
pub fn card(texts: Texts, envelope: &Envelope) -> Option<Markup> {
    let imported = ImportedView::of(envelope)?;
    let source = system(texts, imported.source);
    let of_document = SignatureCounts::of(&envelope.existing_signatures);
    let declared = &imported.declared;
    Some(html! {
        section.card {
            h2 { (texts.with("imports-origin", [("source", source.as_str())])) }
            p.soft { (texts.text("imports-declared")) }
            ul.rows {
                @for signer in &declared.signers {
                    li {
                        (signer.name.as_deref().unwrap_or_default()) " " (signer.email.as_deref().unwrap_or_default())
                        " " (signer.signed_at.as_deref().unwrap_or_default())
                    }
                }
            }
            p { (signatures(texts, of_document)) }
            @if let Some(certificate) = &imported.certificate {
                p {
                    (texts.text("imports-certificate")) " " (certificate.name) " · "
                    (signatures(texts, SignatureCounts::of(&certificate.existing_signatures)))
                }
            }
        }
    })
}
