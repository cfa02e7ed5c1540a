//! Rows of records in the database of a backup, sealed with the key of each record (SQLite only).
//!
//! They are the rows that the destruction of the record deletes or redacts. Without them the backup has the record as a
//! destroyed one. All statements run on the copy of a backup, which is no database of a running installation.

use sqlx::{AssertSqlSafe, Row as _};

use super::record_rows::{self, Fate, RECORD_TABLES, RecordTable};
use super::row::{OwnedEnvelope, RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction, envelopes, ledger};

/// Tables with rows of a record beside [`RECORD_TABLES`]; its destruction changes them as well.
const OWN: [&str; 2] = ["envelope", "ledger_entry"];

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

/// Returns whether a database has sealed rows.
pub async fn are_in(store: &Store) -> Result<bool, StoreError> {
    let mut connection = store.read().await?;
    sqlx::query("select name from sqlite_master where type = 'table' and name = 'sealed_record'")
        .finds_row(&mut connection)
        .await
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

/// Returns the rows of a record that its destruction deletes or redacts, as statements that put them back.
pub async fn rows(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
) -> Result<String, StoreError> {
    let named = RECORD_TABLES.iter().filter(|table| {
        let is_changed = !matches!(table.fate, Fate::Kept);
        is_changed && !OWN.contains(&table.table)
    });
    let named = named.map(|table| (table.table, condition(table)));
    let own = OWN.map(|table| (table, "envelope_id = $1".to_owned()));

    let mut statements = Vec::new();
    for (table, condition) in own.into_iter().chain(named) {
        statements.extend(rows_of(tx, table, &condition, record).await?);
    }
    Ok(statements.join("\n"))
}

/// Returns the condition that finds a record's rows by its id in `$1`.
fn condition(table: &RecordTable) -> String {
    if table.key.contains(' ') {
        table.key.to_owned()
    } else {
        format!("{} = $1", table.key)
    }
}

async fn rows_of(
    tx: &mut WriteTransaction,
    table: &str,
    condition: &str,
    record: &OwnedEnvelope,
) -> Result<Vec<String>, StoreError> {
    let columns = sqlx::query("select name from pragma_table_info($1)")
        .bind(table)
        .fetch_all(&mut **tx)
        .await?;
    let columns: Vec<String> = columns
        .iter()
        .map(|row| row.try_get("name"))
        .collect::<Result<_, sqlx::Error>>()?;

    // SQLite writes each value as a literal of its own type, so a row comes back as it was.
    let values: Vec<String> = columns
        .iter()
        .map(|column| format!("quote(\"{column}\")"))
        .collect();
    let text = format!(
        "select 'insert or replace into {table} (\"{}\") values (' || {} || ');' as statement
         from {table} where {condition}",
        columns.join("\", \""),
        values.join(" || ', ' || "),
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind(record.envelope.as_str())
        .fetch_all(&mut **tx)
        .await?;

    rows.iter()
        .map(|row| Ok(row.try_get("statement")?))
        .collect()
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

/// Deletes and redacts the rows of a record. A repeat changes nothing.
pub async fn destroy(tx: &mut WriteTransaction, record: &OwnedEnvelope) -> Result<(), StoreError> {
    let Some(envelope) = envelopes::get(tx, &record.org, &record.envelope).await? else {
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
        record: |row| <OwnedEnvelope as super::row::TableRow>::read(row)?,
        sealed: text("sealed"),
    }
}
