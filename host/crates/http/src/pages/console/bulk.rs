//! Bulk send: batches, their clients from a CSV file, live progress, and another try of failures.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde_json::json;

use super::PATH;
use super::envelopes::unrecorded;
use super::forms::{FormView, RefusedForm, TextField};
use super::live::LiveList;
use super::navigation::{OtherAnswer, PageResult, Place, export};
use super::sign_on::{open_builder, to_builder};
use super::signed_in::{ConsoleForm, Visitor};
use super::sure::SensitiveAct;
use crate::api::web::bulk::progress_stream;
use crate::error::HttpError;
use crate::middleware::extract::{MultipartForm, valid};
use holdfast_adapters::texts::Texts;
use holdfast_domain::bulk::{BatchStatus, DocumentSource, ItemStatus};
use holdfast_domain::organization::Permission;
use holdfast_platform::{Caller, ServiceError};
use holdfast_service::bulk::{
    self, BatchOverview, BatchView, ChangeBatch, CreateBatch, SetClients,
};
use holdfast_service::envelopes::consent::VaultConsent;
use holdfast_service::templates::packages;
use holdfast_service::{App, customers, templates};

/// Batches and choices of a page.
const PAGE: i64 = 25;
const CHOICE: i64 = 100;
/// Most clients of a batch, as in the API.
const CLIENTS: usize = 1_000;
/// Rows of a preview, and most bytes of a table.
const PREVIEW: usize = 5;
const TABLE: u64 = 1024 * 1024;
/// Rows to correct on one page.
const MENDED: usize = 50;
/// Items of a page; failures are shown first.
const ITEMS: usize = 200;

fn address(id: &impl std::fmt::Display) -> String {
    format!("{PATH}/bulk/{id}")
}

/// Lists the batches, with a form for another one.
pub async fn list(State(app): State<App>, visitor: Visitor) -> PageResult {
    visitor.require(Permission::Send)?;

    list_page(&app, &visitor, None).await
}

async fn list_page(app: &App, visitor: &Visitor, refused: Option<&RefusedForm>) -> PageResult {
    let caller = &visitor.caller;
    let (found, _) = bulk::list(app, caller, 1, PAGE).await?;
    let all = templates::TemplateFilter::default();
    let (templates, _) = templates::list(app, caller, &all, 1, CHOICE).await?;
    let (packages, _) = packages::list(app, caller, 1, CHOICE).await?;

    let texts = visitor.texts;
    let action = format!("{PATH}/bulk");
    let form = FormView::new(texts, &action, refused);
    let source = form.value("source", "");
    // A template without fields would ask its clients for nothing, and one with variables has another text for each, so
    // the list leaves them out.
    let body = html! {
        section.card {
            h2 { (texts.text("bulk-new")) }
            form method="post" action=(action) {
                (visitor.token())
                (form.summary())
                (form.text(&TextField::required("name", &texts.text("rules-name"))))
                (form.field("source", &html! { (texts.text("bulk-document")) }, html! {
                    select id="source" name="source" required
                        aria-invalid=[form.invalid("source")] aria-describedby=[form.described("source")] {
                        optgroup label=(texts.text("console-templates")) {
                            @for one in templates.iter().filter(|one| !one.fields.is_empty() && one.variables().is_empty()) {
                                option value=(one.id) selected[one.id.as_str() == source] { (one.name) }
                            }
                        }
                        optgroup label=(texts.text("console-packages")) {
                            @for one in &packages {
                                option value=(one.package_id) selected[one.package_id.as_str() == source] { (one.name) }
                            }
                        }
                    }
                }))
                (form.tick("add_me", &texts.text("bulk-add-me"), false))
                (form.tick("vault", &texts.text("bulk-vault"), false))
                button type="submit" { (texts.text("bulk-new")) }
            }
        }
        @if found.is_empty() { p { (texts.text("empty-bulk")) } }
        ul.rows {
            @for batch in &found {
                li {
                    a href=(address(&batch.batch_id)) { (batch.name) }
                    p.soft {
                        span.tag { (status(texts, batch.status)) } " "
                        (batch.sent_count) " / " (batch.total_count) " · " (visitor.moment(batch.created_at))
                    }
                }
            }
        }
        (export(texts, "batches.csv"))
    };

    Ok(visitor.form_page(
        Place::Send,
        Some(&LiveList::Batches),
        &texts.text("console-bulk"),
        body,
        refused,
    ))
}

fn status(texts: Texts, status: BatchStatus) -> String {
    texts.text(match status {
        BatchStatus::Draft => "batch-draft",
        BatchStatus::Ready => "batch-ready",
        BatchStatus::Running => "batch-running",
        BatchStatus::Completed => "batch-completed",
        BatchStatus::Cancelled => "batch-cancelled",
        BatchStatus::Failed => "batch-failed",
    })
}

fn item_status(texts: Texts, status: ItemStatus) -> String {
    texts.text(match status {
        ItemStatus::Pending => "item-pending",
        ItemStatus::Running => "item-running",
        ItemStatus::Sent => "item-sent",
        ItemStatus::Failed => "item-failed",
        ItemStatus::Skipped => "item-skipped",
        ItemStatus::Cancelled => "item-cancelled",
    })
}

/// Makes a batch. A template is used as it is; the document of a package is put together in the builder.
pub async fn create(State(app): State<App>, form: ConsoleForm) -> PageResult {
    form.visitor.require(Permission::Send)?;

    // One select offers templates and packages, so the prefix of the id decides between them.
    let source = form.value("source");
    let is_package = source.starts_with("pkg_");
    let (kind, member) = if is_package {
        (DocumentSource::Package, "source_package_id")
    } else {
        (DocumentSource::Template, "source_template_id")
    };
    let body = json!({
        "name": form.value("name"), "document_source": kind, member: source,
        "add_me_as_signer": form.value("add_me") == "yes",
    });
    let new = match valid::<CreateBatch>(body) {
        Ok(new) => new,
        Err(error) => return again(&app, &form, error).await,
    };
    // Three calls in a row, each in its own transaction. If a later one fails, a draft remains, which
    // the list shows and its page can delete.
    let made = async {
        let caller = &form.visitor.caller;
        let batch = bulk::create(&app, caller, new, &unrecorded()).await?;
        let id = batch.batch_id.as_str();
        if !is_package {
            let change = json!({ "master_template_id": source });
            // The body is ours, so a refusal is a mistake of this program and not of the user.
            let change = valid::<ChangeBatch>(change)
                .map_err(|_| ServiceError::Internal("a change of a batch".into()))?;
            bulk::change(&app, caller, id, change).await?;
        }

        if form.value("vault") == "yes" {
            // Unattended vaulting needs an acceptance by a person, which is this tick.
            let consent = VaultConsent {
                auto_vault_enabled: true,
                acknowledge_authoritative_copy: true,
            };
            bulk::consent(&app, caller, id, consent, &unrecorded()).await?;
        }

        Ok::<_, ServiceError>(batch)
    };
    match made.await {
        Ok(batch) => Ok(Redirect::to(&address(&batch.batch_id)).into_response()),
        // The document was deleted after the page was opened.
        Err(ServiceError::NotFound(_)) => {
            let problem = form.visitor.texts.text("bulk-source-gone");
            let refused = form.refused_at("source", problem);
            list_page(&app, &form.visitor, Some(&refused)).await
        }
        Err(error) => again(&app, &form, error).await,
    }
}

/// Shows the list with a refused form.
async fn again(app: &App, form: &ConsoleForm, error: impl Into<HttpError>) -> PageResult {
    let members = ["source_template_id", "source_package_id"];
    let renamed = members.map(|member| (member.to_owned(), "source".to_owned()));
    let refused = form.refused_with(error, &renamed)?;
    list_page(app, &form.visitor, Some(&refused)).await
}

/// Shows one batch.
pub async fn show(State(app): State<App>, visitor: Visitor, Path(id): Path<String>) -> PageResult {
    visitor.require(Permission::Send)?;
    show_again(&app, &visitor, &id, None).await
}

async fn show_again(
    app: &App,
    visitor: &Visitor,
    id: &str,
    refused: Option<&RefusedForm>,
) -> PageResult {
    let found = bulk::overview(app, &visitor.caller, id).await?;
    Ok(shown(visitor, &found, refused))
}

fn shown(visitor: &Visitor, found: &BatchOverview, refused: Option<&RefusedForm>) -> Response {
    let texts = visitor.texts;
    let BatchOverview {
        batch,
        counts,
        items,
    } = found;
    let act = |name: &str| format!("{}/{name}", address(&batch.batch_id));
    let button = |name: &'static str, text: &'static str, kind: &'static str| {
        html! {
            form method="post" action=(act(name)) {
                (visitor.token())
                button class=(kind) type="submit" { (texts.text(text)) }
            }
        }
    };

    let is_open = matches!(batch.status, BatchStatus::Draft | BatchStatus::Ready);
    // Failures first, because the list is cut and these need a person. The sort is stable, so the
    // others stay in sending order.
    let mut sorted: Vec<_> = items.iter().collect();
    sorted.sort_by_key(|item| item.status != ItemStatus::Failed);
    let numbers = [
        ("pending", "item-pending", counts.pending),
        ("running", "item-running", counts.running),
        ("sent", "item-sent", counts.sent),
        ("failed", "item-failed", counts.failed),
        ("skipped", "item-skipped", counts.skipped),
    ];

    // Cancelled items count as done, as in the script of the page. The bar then reaches its end.
    let done = batch.total_count - counts.pending - counts.running;
    let body = html! {
        section.card data-progress=[(batch.status == BatchStatus::Running).then(|| act("events"))] {
            p { span.tag { (status(texts, batch.status)) } }
            progress max=(batch.total_count.max(1)) value=(done) aria-label=(texts.text("bulk-progress")) {}
            p.soft {
                @for (name, text, number) in numbers {
                    (texts.text(text)) ": " strong data-count=(name) { (number) } " "
                }
            }
            div.actions {
                @match batch.status {
                    BatchStatus::Draft => {}
                    BatchStatus::Ready => (button("submit", "bulk-submit", "")),
                    BatchStatus::Running => (button("cancel", "bulk-cancel", "danger")),
                    _ if counts.failed > 0 => (button("retry", "bulk-retry", "")),
                    _ => {}
                }
                @if is_open && batch.source_package_id.is_some() { (button("edit", "template-edit", "quiet")) }
                @if is_open { (button("delete", "bulk-delete", "danger")) }
            }
        }
        @if is_open { (clients_form(visitor, batch, refused)) }
        @if !sorted.is_empty() {
            section.card {
                h2 { (texts.text("bulk-clients")) }
                p { a href=(act("clients.csv")) download { (texts.text("console-export")) } }
                ul.rows {
                    @for item in sorted.iter().take(ITEMS) {
                        li {
                            p {
                                @match &item.envelope_id {
                                    Some(envelope) => { a href={ (PATH) "/envelopes/" (envelope) } { (item.customer_name) } }
                                    None => { strong { (item.customer_name) } }
                                }
                                " " span.tag.wrong[item.status == ItemStatus::Failed] { (item_status(texts, item.status)) }
                            }
                            @if let Some(email) = &item.email { p.soft { (email) } }
                            @if let Some(error) = &item.error { p.soft { (error) } }
                        }
                    }
                }
            }
        }
    };

    visitor.form_page(Place::Send, None, &batch.name, body, refused)
}

fn clients_form(visitor: &Visitor, batch: &BatchView, refused: Option<&RefusedForm>) -> Markup {
    let texts = visitor.texts;
    let action = format!("{}/table", address(&batch.batch_id));
    let form = FormView::new(texts, &action, refused);
    html! {
        section.card {
            h2 { (texts.text("bulk-choose-clients")) }
            p.soft { (texts.text("bulk-csv-hint")) }
            form method="post" action=(action) enctype="multipart/form-data" {
                (visitor.token())
                (form.summary())
                (form.file(&texts.text("bulk-csv"), Some(".csv,text/csv")))
                button type="submit" { (texts.text("bulk-read")) }
            }
        }
    }
}

/// Fields of the form with a table.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the parts of the form")]
struct TableFields {
    token: String,
    file: String,
}

/// A table of clients.
struct ClientTable {
    separator: u8,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Row of a table that names no client.
struct WrongRow {
    /// Line of the file.
    line: usize,
    name: String,
    email: String,
}

impl WrongRow {
    /// Returns the text with the reason.
    fn reason(&self) -> &'static str {
        if self.name.trim().is_empty() {
            "bulk-row-name"
        } else if !customers::is_person("-", &self.email) {
            "bulk-row-email"
        } else {
            "bulk-row-long"
        }
    }
}

impl ClientTable {
    /// Reads a table with a head. Semicolons and tabs separate values, too, as some spreadsheets write them.
    fn read(text: &str) -> Result<Self, HttpError> {
        // Spreadsheets write a byte order mark before the first heading.
        let text = text.trim_start_matches('\u{feff}');
        let head = text.lines().next().unwrap_or_default();
        let separators = [b',', b';', b'\t'];
        // Only the heading is counted, because values may contain commas of their own.
        let count = |one: &u8| head.bytes().filter(|byte| byte == one).count();
        let separator = separators.into_iter().max_by_key(count).unwrap_or(b',');
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());

        let wrong = |error: csv::Error| HttpError::bad_request(format!("The table: {error}"));
        let columns = reader.headers().map_err(wrong)?.iter().map(str::to_owned);
        let columns: Vec<String> = columns.collect();

        let mut rows = Vec::new();
        // A file of a megabyte can have far more rows than a batch, so the limit ends the loop early.
        for row in reader.records() {
            rows.push(row.map_err(wrong)?.iter().map(str::to_owned).collect());
            if rows.len() > CLIENTS {
                let why = format!("A batch has at most {CLIENTS} clients");
                return Err(HttpError::bad_request(why));
            }
        }

        if rows.is_empty() {
            Err(HttpError::bad_request("The table has no rows"))
        } else {
            Ok(Self {
                separator,
                columns,
                rows,
            })
        }
    }

    /// Returns the column with one of these words in its head, or with an at sign in its values.
    fn guessed(&self, words: &[&str]) -> usize {
        let named = self.columns.iter().position(|column| {
            let column = column.to_lowercase();
            words.iter().any(|word| column.contains(word))
        });
        // A wrong guess does no harm, because the user confirms the columns in the form.
        named.unwrap_or_default()
    }

    /// Returns name and address of each client, and the rows that name none.
    fn people(&self, name: usize, email: usize) -> (Vec<(String, String)>, Vec<WrongRow>) {
        let (mut people, mut wrong) = (Vec::new(), Vec::new());
        // Line 1 of the file is the heading.
        for (row, line) in self.rows.iter().zip(2..) {
            let of = |column: usize| row.get(column).cloned().unwrap_or_default();
            let (name, email) = (of(name), of(email));
            if customers::is_person(&name, &email) {
                people.push((name, email));
            } else {
                wrong.push(WrongRow { line, name, email });
            }
        }

        (people, wrong)
    }

    /// Puts corrected values of a form into the rows.
    fn correct(&mut self, form: &ConsoleForm, name: usize, email: usize) {
        for (row, line) in self.rows.iter_mut().zip(2..) {
            for (column, field) in [(name, "name"), (email, "email")] {
                let corrected = form.values.get(&field_of(line, field));
                if let (Some(cell), Some(corrected)) = (row.get_mut(column), corrected) {
                    corrected.trim().clone_into(cell);
                }
            }
        }
    }

    /// Writes the table as a file.
    fn written(&self) -> Result<String, ServiceError> {
        // The table is in memory, so only a mistake of this program can fail here.
        let unwritten = |error: String| ServiceError::Internal(format!("a table: {error}"));
        let mut table = csv::WriterBuilder::new()
            .delimiter(self.separator)
            .from_writer(Vec::new());
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            let written = table.write_record(row);
            written.map_err(|error| unwritten(error.to_string()))?;
        }

        let bytes = table
            .into_inner()
            .map_err(|error| unwritten(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| unwritten(error.to_string()))
    }
}

/// Returns the name of the field that corrects a row.
fn field_of(line: usize, field: &str) -> String {
    format!("row-{line}-{field}")
}

/// Shows what a table has, and asks which columns count. The session is checked before the body is read, so that a
/// stranger uploads nothing.
pub async fn table(
    State(app): State<App>,
    Path(id): Path<String>,
    visitor: Visitor,
    request: Request,
) -> PageResult {
    visitor.require(Permission::Send)?;

    // An unknown batch is refused before the user chooses columns for it.
    let batch = bulk::get(&app, &visitor.caller, &id).await?;
    let mut form = visitor.upload::<TableFields>(&app, request).await?;
    let (text, table) = match table_of(&mut form).await {
        Ok(read) => read,
        Err(error) => {
            let action = format!("{}/table", address(&batch.id));
            let refused = RefusedForm::of(&action, &form.texts, error, &[])?;
            return show_again(&app, &visitor, &id, Some(&refused)).await;
        }
    };

    // The next form carries the text itself. Nothing is stored until the user confirms the columns.
    let id = batch.id.to_string();
    Ok(mapping(&visitor, &id, &text, &table, None))
}

/// Reads the table of an upload.
async fn table_of(
    form: &mut MultipartForm<TableFields>,
) -> Result<(String, ClientTable), HttpError> {
    let file = form.file()?.file;
    if file.size() > TABLE {
        let why = format!("The table is larger than {TABLE} bytes");
        return Err(HttpError::bad_request(why));
    }

    // The upload is a file on disk, and reading it would block the thread of other requests.
    let read = tokio::task::spawn_blocking(|| std::io::read_to_string(file.into_file()?));
    let read = read
        .await
        .map_err(|error| HttpError::internal(error.to_string()))?;
    let text = read.map_err(|_| HttpError::bad_request("The table is not UTF-8 text"))?;
    let table = ClientTable::read(&text)?;

    Ok((text, table))
}

/// Asks which columns count; again with the problems of a refused form.
fn mapping(
    visitor: &Visitor,
    id: &str,
    text: &str,
    table: &ClientTable,
    refused: Option<&RefusedForm>,
) -> Response {
    let texts = visitor.texts;
    let action = format!("{}/clients", address(&id));
    let form = FormView::new(texts, &action, refused);
    // Headings in the languages of the console. Any other file starts with its first column.
    let guesses = [
        (
            "name",
            "rules-name",
            table.guessed(&["name", "nombre", "nom", "nome", "姓名", "اسم"]),
        ),
        (
            "email",
            "sign-in-email",
            table.guessed(&["mail", "correo", "邮", "بريد"]),
        ),
    ];

    let columns = table.columns.iter().enumerate();
    let columns: Vec<_> = columns
        .map(|(at, column)| (at.to_string(), column.clone()))
        .collect();
    let body = html! {
        (form.summary())
        p { (texts.with("bulk-rows", [("count", table.rows.len())])) }
        form.card method="post" action=(action) {
            (visitor.token())
            @for (name, label, guess) in guesses {
                (form.select(name, &texts.text(label), &columns, &guess.to_string()))
            }
            textarea name="table" hidden aria-hidden="true" tabindex="-1" { (text) }
            button type="submit" { (texts.text("bulk-take")) }
        }
        div.scroll tabindex="0" role="region" aria-label=(texts.text("bulk-csv")) {
            table {
                thead { tr { @for column in &table.columns { th scope="col" { (column) } } } }
                tbody {
                    @for row in table.rows.iter().take(PREVIEW) {
                        tr { @for value in row { td { (value) } } }
                    }
                }
            }
        }
    };

    visitor.page(Place::Send, &texts.text("bulk-choose-clients"), body)
}

/// Shows how many clients are ready, and the other rows with their reasons, to correct them or to leave them out.
fn mending(form: &ConsoleForm, id: &str, text: &str, ready: usize, wrong: &[WrongRow]) -> Response {
    let texts = form.visitor.texts;
    let counts = [("ready", ready), ("wrong", wrong.len())];
    let field = |row: &WrongRow, field: &str, label: &'static str, value: &str| {
        let name = field_of(row.line, field);
        html! {
            div.field {
                label for=(name) { (texts.text(label)) }
                input id=(name) name=(name) value=(value) maxlength="500" autocomplete="off";
            }
        }
    };

    let body = html! {
        p role="status" { (texts.with("bulk-ready", counts)) }
        form method="post" action={ (address(&id)) "/clients" } {
            (form.visitor.token())
            @for name in ["name", "email"] { input type="hidden" name=(name) value=(form.value(name)); }
            textarea name="table" hidden aria-hidden="true" tabindex="-1" { (text) }
            @for row in wrong.iter().take(MENDED) {
                fieldset.card {
                    legend { (texts.with("bulk-row", [("line", row.line)])) }
                    p { span.tag.wrong { (texts.text(row.reason())) } }
                    (field(row, "name", "rules-name", &row.name))
                    (field(row, "email", "sign-in-email", &row.email))
                }
            }
            div.actions {
                button type="submit" { (texts.text("bulk-correct")) }
                button.quiet type="submit" name="wrong" value="skip" { (texts.text("bulk-skip")) }
            }
        }
    };

    form.visitor
        .page(Place::Send, &texts.text("bulk-choose-clients"), body)
}

/// Takes the clients of a table.
pub async fn clients(
    State(app): State<App>,
    Path(id): Path<String>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;

    // Not trimmed like other values: the first cell of a table with tabs may be empty.
    let text = form.values.get("table").map_or("", String::as_str);
    let mut table = ClientTable::read(text)?;
    // Without a readable number no row has the column, and every row is refused.
    let column = |name: &str| form.value(name).parse().unwrap_or(usize::MAX);
    let (name, email) = (column("name"), column("email"));
    table.correct(&form, name, email);

    let (people, wrong) = table.people(name, email);
    // No row of a wrong column names a client, and to correct all of them would be no help.
    if people.is_empty() {
        let refused = form.refused_at("email", form.visitor.texts.text("bulk-none-ready"));
        let page = mapping(&form.visitor, &id, text, &table, Some(&refused));
        return Ok(refused.answer(page));
    }

    let is_left_out = form.value("wrong") == "skip";
    if !wrong.is_empty() && !is_left_out {
        let text = table.written()?;
        return Ok(mending(&form, &id, &text, people.len(), &wrong));
    }

    let caller = &form.visitor.caller;
    let taken = async {
        // Checked before customers are created: a wrong id of a batch must leave none behind.
        bulk::get(&app, caller, &id).await?;
        let ids = customers::of_people(&app, caller, &people).await?;
        let clients = SetClients {
            customer_ids: ids.iter().map(ToString::to_string).collect(),
        };
        bulk::set_clients(&app, caller, &id, clients, &unrecorded()).await
    };
    if let Err(error) = taken.await {
        let refused = form.refused(error)?;
        // With the corrections of this form.
        let text = table.written().unwrap_or_else(|_| text.to_owned());
        let page = mapping(&form.visitor, &id, &text, &table, Some(&refused));
        return Ok(refused.answer(page));
    }

    Ok(Redirect::to(&address(&id)).into_response())
}

/// Submits, stops, repeats or deletes a batch.
pub async fn act(
    State(app): State<App>,
    Path((id, act)): Path<(String, String)>,
    form: ConsoleForm,
) -> PageResult {
    form.visitor.require(Permission::Send)?;
    ask_if_sure(&app, &form, &id, &act).await?;

    if act == "edit" {
        let back = address(&id);
        return Ok(open_builder(&app, &form.visitor, ("batch_id", &id), &back).await);
    }
    let (core, caller, batch) = (app.clone(), form.visitor.caller.clone(), id.clone());

    // Completes even if the browser goes away.
    let done = tokio::spawn(async move { run(&core, &caller, &batch, &act).await });
    Ok(match done.await?? {
        Some(to) => to_builder(&app, form.visitor.texts, &to),
        None => Redirect::to(&address(&id)).into_response(),
    })
}

/// Asks before an act that cannot be undone.
async fn ask_if_sure(
    app: &App,
    form: &ConsoleForm,
    id: &str,
    act: &str,
) -> Result<(), OtherAnswer> {
    let texts = form.visitor.texts;
    let (label, consequence) = match act {
        "submit" => ("bulk-submit", "sure-bulk-submit"),
        "cancel" => ("bulk-cancel", "sure-bulk-cancel"),
        "delete" => ("bulk-delete", "sure-bulk-delete"),
        _ => return Ok(()),
    };
    let batch = bulk::get(app, &form.visitor.caller, id).await?;

    form.meant(&SensitiveAct {
        label: texts.text(label),
        objects: vec![batch.name],
        consequence: texts.text(consequence),
        is_typed: false,
        back: address(&id),
    })?;
    Ok(())
}

/// Performs an act. Returns where it leads to, if that is not the batch.
async fn run(
    app: &App,
    caller: &Caller,
    id: &str,
    act: &str,
) -> Result<Option<String>, ServiceError> {
    match act {
        "submit" => bulk::submit(app, caller, id, &unrecorded())
            .await
            .map(|_| None),
        "cancel" => bulk::cancel(app, caller, id, &unrecorded())
            .await
            .map(|_| None),
        "retry" => bulk::retry(app, caller, id, &unrecorded())
            .await
            .map(|_| None),
        "delete" => {
            bulk::delete(app, caller, id).await?;
            Ok(Some(format!("{}{PATH}/bulk", app.config.console_url())))
        }
        _ => Err(ServiceError::NotFound("Page")),
    }
}

/// Streams the progress of a batch.
pub async fn events(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> PageResult {
    visitor.require(Permission::Send)?;
    Ok(progress_stream(app, visitor.caller, id)
        .await
        .into_response())
}
