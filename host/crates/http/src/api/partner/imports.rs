//! Imports: records of documents that were signed in other systems.

use std::collections::BTreeMap;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::HttpError;
use crate::middleware::caller::Authorized;
use crate::middleware::extract::{MultipartForm, PageWindow, ResourceId, ValidQuery};
use crate::middleware::once::IdempotencyKeyHeader;
use crate::reply::{Accepted, Csv, CursorReply, DataReply, FileReply, Found};
use holdfast_adapters::files::SpooledFile;
use holdfast_domain::id::ImportId;
use holdfast_domain::import::{ImportLayout, ImportRowStatus};
use holdfast_service::App;
use holdfast_service::imports::{
    self, IMPORT_LIMIT, ImportRowView, ImportView, SentImport, report,
};

/// Form with an archive.
#[derive(JsonSchema)]
#[schemars(extend("examples" = [{
    "file": "export.zip", "layout": "docusign", "customer_name": "Archive", "customer_email": "archive@example.com",
}]))]
#[expect(dead_code, reason = "documents the form")]
pub struct ImportForm {
    /// Zip of at most 250 MiB with up to 10,000 documents (PDF) of at most 50 MiB each, and perhaps `manifest.csv` or
    /// `manifest.json`.
    #[schemars(extend("format" = "binary"))]
    file: String,
    /// System whose export it is: `columns` (the layout of this service), `docusign`, `adobe_sign` or `docuseal`. Found by
    /// the names in the archive when absent.
    layout: Option<String>,
    /// Name of the customer of rows that name none; with `customer_email`.
    customer_name: Option<String>,
    /// E-mail address of the customer of rows that name none.
    customer_email: Option<String>,
}

/// Builds an import of the texts of a form.
pub fn sent(
    texts: &mut BTreeMap<String, String>,
    file: SpooledFile,
) -> Result<SentImport, HttpError> {
    let mut take = |name: &str| texts.remove(name).filter(|text| !text.trim().is_empty());
    let layout = match take("layout") {
        None => None,
        Some(text) => {
            let known: Vec<&str> = ImportLayout::ALL.iter().map(|one| one.as_str()).collect();
            let unknown =
                || HttpError::bad_request(format!("layout must be one of: {}", known.join(", ")));
            Some(ImportLayout::parse(&text).ok_or_else(unknown)?)
        }
    };
    let customer = match (take("customer_name"), take("customer_email")) {
        (None, None) => None,
        // Half a customer is refused with its issue by the service.
        (name, email) => Some((name.unwrap_or_default(), email.unwrap_or_default())),
    };

    Ok(SentImport {
        file,
        layout,
        customer,
    })
}

/// The records are made in the background; `status` and the counts of the import show the progress. Each document becomes a
/// paper envelope in status `uploaded`, with the report about the signatures in it, its certificate of completion among the
/// attachments, and signers and times as the manifest declares them. None of these is claimed as a signature of this
/// service. A file that is no such archive is a 422 with an issue of the code `no_archive`, `unsafe_archive`, `no_rows`,
/// `unknown_columns` or the like.
pub async fn submit<C: Authorized>(
    State(app): State<App>,
    user: C,
    once: IdempotencyKeyHeader,
    mut form: MultipartForm<ImportForm, IMPORT_LIMIT>,
) -> Result<Accepted<ImportView>, HttpError> {
    // The form is taken apart before the key is claimed: a missing part must not use the key up.
    let file = form.file()?.file;
    let import = sent(&mut form.texts, file)?;
    once.run(&app, user.caller(), |app, caller, answer| async move {
        imports::submit(&app, &caller, import, &answer).await
    })
    .await
}

#[derive(Deserialize, JsonSchema)]
pub struct ImportsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    /// Returns the imports behind this one: the last one of the page before.
    starting_after: Option<ImportId>,
}

pub async fn list<C: Authorized>(
    State(app): State<App>,
    user: C,
    ValidQuery(query): ValidQuery<ImportsQuery>,
) -> Result<CursorReply<ImportView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = imports::list(&app, user.caller(), after, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn read<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<Found<ImportView>, HttpError> {
    let import = imports::get(&app, user.caller(), &id).await?;
    Ok(DataReply::new(&import))
}

#[derive(Deserialize, JsonSchema)]
pub struct ImportRowsQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th row.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// 1 to 1,000; 100 when absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<i64>,
    /// Returns the rows behind this number.
    #[schemars(range(min = 0))]
    starting_after: Option<i64>,
    /// Returns only rows with this result.
    status: Option<ImportRowStatus>,
}

/// Rows come in the order of the archive, as far as they have a result.
pub async fn rows<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<ImportRowsQuery>,
) -> Result<CursorReply<ImportRowView>, HttpError> {
    let after = query.starting_after;
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 100, 1000)?;
    let behind = after.unwrap_or(0);
    let caller = user.caller();
    let found = imports::rows(&app, caller, &id, query.status, behind, window.read()).await?;
    Ok(window.reply(found))
}

/// Returns all results so far as CSV. Cells that could be formulas begin with an apostrophe.
pub async fn report<C: Authorized>(
    State(app): State<App>,
    user: C,
    ResourceId(id): ResourceId,
) -> Result<FileReply<Csv>, HttpError> {
    let file = report::report(&app, user.caller(), &id).await?;
    Ok(FileReply::named(&format!("{id}.csv"), file))
}
