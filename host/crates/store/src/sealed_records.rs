//! Rows of records in the database of a backup, sealed with the key of each record (SQLite only).
//!
//! They are the rows that the destruction of the record changes. Without them the backup has the record as a
//! destroyed one. All statements run on the copy of a backup, which is no database of a running installation.

use sqlx::{AssertSqlSafe, Row as _};

use super::record_rows::{self, Fate, RECORD_TABLES, RecordTable};
use super::row::{OwnedEnvelope, TableRow, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction, envelopes, ledger};
use holdfast_domain::id::TemplateId;

/// Rows of a record beside [`RECORD_TABLES`] that its destruction changes, with the condition that finds them.
const BESIDE: [(&str, &str); 2] = [
    ("ledger_entry", "envelope_id = $2"),
    ("job", "payload like '%' || $2 || '%'"),
];

/// Sealed rows of a record.
pub struct SealedRecord {
    pub record: OwnedEnvelope,
    pub sealed: String,
}

/// Adds the table of sealed rows to the database of a backup.
pub async fn prepare(store: &Store) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "create table sealed_record (
             envelope_id text primary key, org_id text not null, sealed text not null)",
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

/// Returns records in order, from the one behind `after` on.
pub async fn records(
    store: &Store,
    after: &str,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let mut connection = store.read().await?;
    query_rows(
        "select {columns} from envelope where envelope_id > $1 order by envelope_id limit $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(&mut connection)
    .await
}

/// Returns sealed rows in the order of their records, from the one behind `after` on.
pub async fn list(store: &Store, after: &str, limit: i64) -> Result<Vec<SealedRecord>, StoreError> {
    let mut connection = store.read().await?;
    query_rows(
        "select {columns} from sealed_record where envelope_id > $1 order by envelope_id limit $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(&mut connection)
    .await
}

/// Returns the rows of a record that its destruction changes, as statements that put them back.
pub async fn rows(tx: &mut WriteTransaction, record: &OwnedEnvelope) -> Result<String, StoreError> {
    // Parties of a record have rows about it in buckets of their own.
    let buckets = sqlx::query("select distinct bucket from organization order by bucket")
        .fetch_all(&mut **tx)
        .await?;
    let changed = RECORD_TABLES.iter();
    let changed = changed.filter(|table| !matches!(table.fate, Fate::Kept));
    let changed = changed.map(|table| (table.table, condition(table)));
    let beside = BESIDE.map(|(table, condition)| (table, condition.to_owned()));

    let mut statements = Vec::new();
    for (table, condition) in changed.chain(beside) {
        let text = statement_of(tx, table, &condition).await?;
        for bucket in &buckets {
            let rows = sqlx::query(AssertSqlSafe(text.clone()))
                .bind(bucket.try_get::<i64, _>("bucket")?)
                .bind(record.envelope.as_str())
                .fetch_all(&mut **tx)
                .await?;
            for row in &rows {
                statements.push(row.try_get::<String, _>("statement")?);
            }
        }
    }

    Ok(statements.join("\n"))
}

/// Returns the condition that finds a record's rows in the bucket `$1`, by its id in `$2`.
fn condition(table: &RecordTable) -> String {
    if table.key.contains(' ') {
        table.key.to_owned()
    } else {
        format!("{} = $2", table.key)
    }
}

/// Returns the query for the statements that put the rows of a table back.
async fn statement_of(
    tx: &mut WriteTransaction,
    table: &str,
    condition: &str,
) -> Result<String, StoreError> {
    let rows = sqlx::query("select name from pragma_table_info($1)")
        .bind(table)
        .fetch_all(&mut **tx)
        .await?;
    let mut columns: Vec<String> = Vec::new();
    for row in &rows {
        columns.push(row.try_get("name")?);
    }

    // SQLite writes each value as a literal of its own type, so a row comes back as it was.
    let values: Vec<String> = columns
        .iter()
        .map(|column| format!("quote(\"{column}\")"))
        .collect();
    let names = columns.join("\", \"");
    let values = values.join(" || ', ' || ");
    Ok(format!(
        "select 'insert or replace into {table} (\"{names}\") values (' || {values} || ');' as statement
         from {table} where bucket = $1 and ({condition})"
    ))
}

/// Leaves a record as a destroyed one, with its sealed rows, if there are any.
pub async fn seal(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
    sealed: Option<&str>,
) -> Result<(), StoreError> {
    if let Some(sealed) = sealed {
        sqlx::query("insert into sealed_record (envelope_id, org_id, sealed) values ($1, $2, $3)")
            .bind(record.envelope.as_str())
            .bind(record.org.as_str())
            .bind(sealed)
            .run(tx)
            .await?;
    }

    destroy(tx, record).await
}

/// Returns the documents that were made for a record alone, and have objects of their own.
pub async fn documents(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
) -> Result<Vec<TemplateId>, StoreError> {
    match envelopes::get_with_destroyed(tx, &record.org, &record.envelope).await? {
        Some(envelope) => record_rows::documents(tx, &envelope).await,
        None => Ok(Vec::new()),
    }
}

/// Marks a record as destroyed, whose destruction is not in the backup.
pub async fn mark_destroyed(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
) -> Result<(), StoreError> {
    sqlx::query(
        "update envelope set destruction = 'destroyed' where bucket = $1 and envelope_id = $2",
    )
    .bind(record.org.bucket())
    .bind(record.envelope.as_str())
    .run(tx)
    .await
}

/// Changes the rows of a record as its destruction does. A repeat changes nothing.
pub async fn destroy(tx: &mut WriteTransaction, record: &OwnedEnvelope) -> Result<(), StoreError> {
    let Some(envelope) = envelopes::get_with_destroyed(tx, &record.org, &record.envelope).await?
    else {
        return Ok(());
    };
    record_rows::destroy(tx, &envelope).await?;
    ledger::redact(tx, &record.org, &record.envelope).await
}

/// Puts the rows of a record back, as [`rows`] returned them.
pub async fn put_back(tx: &mut WriteTransaction, statements: &str) -> Result<(), StoreError> {
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Removes the table of sealed rows.
pub async fn remove(store: &Store) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("drop table sealed_record")
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

table_row! {
    SealedRecord of "sealed_record" by "envelope_id" also "org_id", "envelope_id" {
        record: |row| OwnedEnvelope::read(row)?,
        sealed: text("sealed"),
    }
}
