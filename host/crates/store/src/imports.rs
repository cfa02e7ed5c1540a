//! Imports of documents that were signed in another system, and the results of their rows.

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::row::{file_json, json_text, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::KeptFile;
use holdfast_domain::id::{EnvelopeId, ImportId, OrgId};
use holdfast_domain::import::{Import, ImportLayout, ImportRow, ImportRowStatus, ImportStatus};
use holdfast_domain::tape::StoredRefusal;

/// Adds an import.
pub async fn insert(tx: &mut WriteTransaction, import: &Import) -> Result<(), StoreError> {
    sqlx::query(
        "insert into record_import (bucket, import_id, org_id, layout, file, customer, status, planned, made_by,
             creator, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind_key(&import.org, import.id.as_str())
    .bind(import.org.as_str())
    .bind(import.layout.as_str())
    .bind(file_json(Some(&import.file)))
    .bind(import.customer.as_ref().map(json_text))
    .bind(import.status.as_str())
    .bind(import.planned)
    .bind(&import.made_by)
    .bind(&import.creator)
    .bind(import.created_at.to_string())
    .run(tx)
    .await
}

/// Returns an import of an organization.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &ImportId,
) -> Result<Option<Import>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Lists the imports of an organization, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&ImportId>,
    limit: i64,
) -> Result<Vec<Import>, StoreError> {
    query_rows(
        "select {columns} from record_import where bucket = $1 and org_id = $2 and import_id < $3
         order by import_id desc limit $4",
    )
    .bind_org(org)
    .bind(after.map_or(ImportId::LAST, ImportId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Counts the imports of an organization that are running.
pub async fn unfinished(connection: &mut SqlConnection, org: &OrgId) -> Result<i64, StoreError> {
    use sqlx::Row as _;

    let row = sqlx::query(
        "select count(*) as unfinished from record_import
         where bucket = $1 and org_id = $2 and status = 'running'",
    )
    .bind_org(org)
    .fetch_one(connection)
    .await?;
    Ok(row.try_get("unfinished")?)
}

table_row! {
    Import of "record_import" by "import_id" also "file" {
        id: parsed("import_id", ImportId::parse),
        org: parsed("org_id", OrgId::parse),
        layout: parsed("layout", ImportLayout::parse),
        file: |row| row.json::<KeptFile>("file")?.0,
        customer: optional_json("customer"),
        status: parsed("status", ImportStatus::parse),
        planned: number("planned"),
        done: number("done"),
        imported: number("imported"),
        duplicates: number("duplicates"),
        failed: number("failed"),
        failures: number("failures"),
        refusal: optional_json("refusal"),
        made_by: text("made_by"),
        creator: text("creator"),
        created_at: time("created_at"),
        finished_at: optional_time("finished_at"),
    }
}

/// Returns the record of an earlier row with the same document. One that was voided, or whose destruction has begun, is
/// none: its document can be imported again.
pub async fn with_document(
    connection: &mut SqlConnection,
    org: &OrgId,
    sha256: &str,
) -> Result<Option<EnvelopeId>, StoreError> {
    let found: Option<ImportRow> = query_rows(
        "select {columns} from record_import_row where bucket = $1 and org_id = $2 and document_sha256 = $3
             and status = 'imported' and exists (
                 select 1 from envelope e where e.bucket = $1 and e.envelope_id = record_import_row.envelope_id
                     and e.status <> 'voided' and e.destruction is null)
         order by import_id limit 1",
    )
    .bind_org(org)
    .bind(sha256)
    .fetch_optional(connection)
    .await?;
    Ok(found.and_then(|row| row.envelope))
}

/// Adds the result of the next row, and counts it.
///
/// # Errors
/// [`StoreError::Conflict`] if another worker has come further.
pub async fn add_row(
    tx: &mut WriteTransaction,
    import: &Import,
    row: &ImportRow,
) -> Result<(), StoreError> {
    let counts = |status: ImportRowStatus| i64::from(row.status == status);
    // First, so that a worker that was overtaken inserts nothing.
    sqlx::query(
        "update record_import set done = $3, imported = imported + $4, duplicates = duplicates + $5,
             failed = failed + $6
         where bucket = $1 and import_id = $2 and done = $7 and status = 'running'",
    )
    .bind_key(&import.org, import.id.as_str())
    .bind(row.number)
    .bind(counts(ImportRowStatus::Imported))
    .bind(counts(ImportRowStatus::Duplicate))
    .bind(counts(ImportRowStatus::Failed))
    .bind(row.number - 1)
    .run_guarded(tx)
    .await?;

    sqlx::query(
        "insert into record_import_row (bucket, import_id, number, org_id, line, file, status, envelope_id,
             document_sha256, signatures, code, message)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind_key(&import.org, import.id.as_str())
    .bind(row.number)
    .bind(import.org.as_str())
    .bind(row.line)
    .bind(&row.file)
    .bind(row.status.as_str())
    .bind(row.envelope.as_ref().map(EnvelopeId::as_str))
    .bind(row.document_sha256.as_deref())
    .bind(row.signatures.as_ref().map(json_text))
    .bind(row.problem.as_ref().map(|problem| problem.code.as_str()))
    .bind(row.problem.as_ref().map(|problem| problem.message.as_str()))
    .run(tx)
    .await
}

/// Returns results of rows behind a number, in their order.
pub async fn rows(
    connection: &mut SqlConnection,
    import: &Import,
    status: Option<ImportRowStatus>,
    after: i64,
    limit: i64,
) -> Result<Vec<ImportRow>, StoreError> {
    // Words of this program, never input.
    let condition = status.map(|status| format!(" and status = '{status}'"));
    let text = format!(
        "select {{columns}} from record_import_row where bucket = $1 and import_id = $2 and number > $3{}
         order by number limit $4",
        condition.unwrap_or_default()
    );
    query_rows(AssertSqlSafe(text))
        .bind_key(&import.org, import.id.as_str())
        .bind(after)
        .bind(limit)
        .fetch_all(connection)
        .await
}

table_row! {
    ImportRow of "record_import_row" by "import_id" also "import_id", "code", "message" {
        number: number("number"),
        line: number("line"),
        file: text("file"),
        status: parsed("status", ImportRowStatus::parse),
        envelope: optional_parsed("envelope_id", EnvelopeId::parse),
        document_sha256: optional_text("document_sha256"),
        signatures: optional_json("signatures"),
        problem: |row| {
            let message = row.optional_text("message")?.unwrap_or_default();
            row.optional_text("code")?.map(|code| StoredRefusal { code, message })
        },
    }
}

/// Ends an import: all rows have a result, or its archive is damaged.
///
/// # Errors
/// [`StoreError::Conflict`] if it has ended.
pub async fn end(
    tx: &mut WriteTransaction,
    import: &Import,
    refusal: Option<&StoredRefusal>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let status = if refusal.is_some() {
        ImportStatus::Failed
    } else {
        ImportStatus::Completed
    };
    sqlx::query(
        "update record_import set status = $3, refusal = $4, finished_at = $5
         where bucket = $1 and import_id = $2 and status = 'running'",
    )
    .bind_key(&import.org, import.id.as_str())
    .bind(status.as_str())
    .bind(refusal.map(json_text))
    .bind(now.to_string())
    .run_guarded(tx)
    .await
}

/// Counts a run that ended with a defect of the stored archive.
pub async fn count_failure(tx: &mut WriteTransaction, import: &Import) -> Result<(), StoreError> {
    sqlx::query(
        "update record_import set failures = failures + 1
         where bucket = $1 and import_id = $2 and status = 'running'",
    )
    .bind_key(&import.org, import.id.as_str())
    .run(tx)
    .await
}
