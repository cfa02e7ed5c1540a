//! Rows of records in the database of a backup, sealed with the key of each record (SQLite only).
//!
//! They are the rows that the destruction of the record changes. Without them the backup has the record as a
//! destroyed one. All statements run on the copy of a backup, which is no database of a running installation.
//!
//! Records are sealed by batches, each with a few statements for a table. Rows are found by the record, in every
//! bucket: parties of a record have rows about it in buckets of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::any::{Any, AnyArguments};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Row as _};

use super::record_rows::{self, Fate, RECORD_TABLES, RecordTable, Through, Way};
use super::row::{OwnedEnvelope, json_text, numbered, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction, decision_blocks, envelopes, ledger};
use holdfast_domain::id::{EnvelopeId, TemplateId};
use holdfast_domain::job::{DestroyRecord, JobPayload as _};

/// Tables for the work: records of a batch, their rows by table and number, and the jobs of all records.
const TABLES: &str = "
    create table sealed_record (envelope_id text primary key, org_id text not null, sealed text not null);
    create table sealing (record text primary key, bucket bigint not null);
    create table sealing_row (name text, record text, number bigint, primary key (name, record, number));
    create table sealing_job (record text, number bigint, primary key (record, number));";

/// Column with the record in rows of batches. They are found by it alone: a copy has no more of them.
const BATCH: &str = "envelope_id";

/// External ids of submitters are the id of the record, or begin with it and a dot, which a slash comes after.
const SUBMITTERS: &str = "insert or ignore into sealing_row (name, record, number)
     select 'room_submitter', sealing.record, own.rowid from sealing
     cross join room_submitter own on own.bucket = sealing.bucket
         and own.external_id >= sealing.record and own.external_id < sealing.record || '/'";

/// Documents that were made for a record alone. One that was deleted since has no owner any more.
const TEMPLATES: &str = "insert or ignore into sealing_row (name, record, number)
     select 'template', sealing.record, own.rowid from sealing
     cross join template own on own.bucket = sealing.bucket and own.owner_id = sealing.record
         and own.origin = 'document'
     union all
     select 'template', sealing.record, own.rowid from sealing
     cross join envelope sent on sent.bucket = sealing.bucket and sent.envelope_id = sealing.record
         and sent.bulk_batch is null
     cross join template own on own.bucket = sent.bucket and own.template_id = sent.template_id
         and own.origin = 'document' and own.owner_id is null";

/// Table with rows that the destruction of a record changes by itself: it redacts the entries.
const LEDGER: &str = "ledger_entry";
/// Table with jobs. Their payloads name records.
const JOBS: &str = "job";

/// Sealed rows of a record.
pub struct SealedRecord {
    pub record: OwnedEnvelope,
    pub sealed: String,
}

/// Rows of one table, before they are sealed.
#[derive(Serialize, Deserialize)]
struct TableRows {
    table: String,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// Returns the tables with rows that change. Those through which rows of others are found come first.
fn tables() -> impl Iterator<Item = &'static RecordTable> {
    let tables = RECORD_TABLES.iter().rev();
    tables.filter(|table| !matches!(table.fate, Fate::Kept) || table.table == LEDGER)
}

/// Returns the columns of the index by which the rows of records are found in a table.
fn indexed(table: &RecordTable) -> String {
    match table.way {
        Way::Column(column) => column.to_owned(),
        Way::Batch => BATCH.to_owned(),
        Way::Submitters => "bucket, external_id".to_owned(),
        Way::Documents => "bucket, owner_id".to_owned(),
        Way::Through(way) => format!("bucket, {}", way.column),
    }
}

/// Returns the statement that notes the rows of the batch in a table.
fn finding(table: &RecordTable) -> String {
    match table.way {
        Way::Column(column) => finding_by(table.table, column),
        Way::Batch => finding_by(table.table, BATCH),
        Way::Submitters => SUBMITTERS.to_owned(),
        Way::Documents => TEMPLATES.to_owned(),
        Way::Through(way) => finding_through(table.table, &way),
    }
}

fn finding_by(name: &str, column: &str) -> String {
    format!(
        "insert or ignore into sealing_row (name, record, number)
         select '{name}', sealing.record, own.rowid from sealing
         cross join {name} own on own.{column} = sealing.record"
    )
}

fn finding_through(name: &str, way: &Through) -> String {
    let (column, other, of_other) = (way.column, way.other.table, way.of_other);
    // SQLite keeps the order of cross joins.
    format!(
        "insert or ignore into sealing_row (name, record, number)
         select '{name}', found.record, own.rowid from sealing_row found
         cross join {other} parent on parent.rowid = found.number
         cross join {name} own on own.bucket = parent.bucket and own.{column} = parent.{of_other}
         where found.name = '{other}'"
    )
}

/// Returns the statement that changes the rows of the batch as a destruction does; none if that needs more than a
/// statement.
fn changing(table: &RecordTable) -> Option<String> {
    let name = table.table;
    match table.fate {
        Fate::Kept | Fate::Digested => None,
        Fate::Deleted => Some(format!("delete from {name} where {}", of_batch(name))),
        Fate::Redacted(columns) => {
            let assigned = record_rows::assignments(columns);
            Some(format!(
                "update {name} set {assigned} where {}",
                of_batch(name)
            ))
        }
    }
}

/// Returns the condition for the rows of the batch in a table.
fn of_batch(name: &str) -> String {
    format!("rowid in (select number from sealing_row where name = '{name}')")
}

/// Prepares the database of a backup for sealing.
pub async fn prepare(store: &Store) -> Result<(), StoreError> {
    // Without these indexes, each batch would read whole tables.
    let indexes = tables().map(|table| {
        let (name, columns) = (table.table, indexed(table));
        format!("create index sealing_of_{name} on {name} ({columns});")
    });
    let script: String = std::iter::once(TABLES.to_owned()).chain(indexes).collect();

    let mut tx = store.begin().await?;
    sqlx::raw_sql(AssertSqlSafe(script))
        .execute(&mut *tx)
        .await?;
    note_jobs(&mut tx).await?;
    tx.commit().await
}

/// Notes which jobs name which records: the destruction of such a record removes its jobs.
async fn note_jobs(tx: &mut WriteTransaction) -> Result<(), StoreError> {
    let jobs = sqlx::query("select rowid as number, payload from job where kind <> $1")
        .bind(DestroyRecord::NAME)
        .fetch_all(&mut **tx)
        .await?;
    for job in &jobs {
        let number: i64 = job.try_get("number")?;
        let payload: String = job.try_get("payload")?;
        for record in records_in(&payload) {
            sqlx::query("insert or ignore into sealing_job (record, number) values ($1, $2)")
                .bind(record.as_str())
                .bind(number)
                .run(tx)
                .await?;
        }
    }

    Ok(())
}

/// Returns the records that a text names, also within words such as the keys of objects.
fn records_in(text: &str) -> impl Iterator<Item = EnvelopeId> {
    let begins = text.match_indices(EnvelopeId::PREFIX);
    begins.filter_map(move |(at, _)| {
        let rest = text.get(at..)?;
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        EnvelopeId::parse(rest.get(..end.unwrap_or(rest.len()))?)
    })
}

/// Returns records in order, from the one behind `after` on.
pub async fn records(
    store: &Store,
    after: Option<&OwnedEnvelope>,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let (bucket, id) = after.map_or((-1, ""), |last| (last.org.bucket(), last.envelope.as_str()));
    let mut connection = store.read().await?;
    query_rows(
        "select {columns} from envelope where (bucket, envelope_id) > ($1, $2)
         order by bucket, envelope_id limit $3",
    )
    .bind(bucket)
    .bind(id)
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

/// Begins a batch: returns the rows of each record that its destruction changes, as text for [`put_back`].
pub async fn rows(
    tx: &mut WriteTransaction,
    records: &[OwnedEnvelope],
) -> Result<Vec<(OwnedEnvelope, String)>, StoreError> {
    sqlx::raw_sql("delete from sealing; delete from sealing_row")
        .execute(&mut **tx)
        .await?;
    for record in records {
        sqlx::query("insert into sealing (record, bucket) values ($1, $2)")
            .bind(record.envelope.as_str())
            .bind(record.org.bucket())
            .run(tx)
            .await?;
    }

    for table in tables() {
        sqlx::query(AssertSqlSafe(finding(table))).run(tx).await?;
    }
    sqlx::query(
        "insert or ignore into sealing_row (name, record, number)
         select $1, sealing.record, own.number from sealing
         cross join sealing_job own on own.record = sealing.record",
    )
    .bind(JOBS)
    .run(tx)
    .await?;

    let mut found = BTreeMap::new();
    for name in tables().map(|table| table.table).chain([JOBS]) {
        read_rows(tx, name, &mut found).await?;
    }
    let rows = records.iter().map(|record| {
        let rows = found.remove(record.envelope.as_str()).unwrap_or_default();
        (record.clone(), json_text(&rows))
    });
    Ok(rows.collect())
}

/// Adds the rows of the batch in one table to those of their records.
async fn read_rows(
    tx: &mut WriteTransaction,
    name: &'static str,
    found: &mut BTreeMap<String, Vec<TableRows>>,
) -> Result<(), StoreError> {
    let columns: Vec<String> = sqlx::query_scalar("select name from pragma_table_info($1)")
        .bind(name)
        .fetch_all(&mut **tx)
        .await?;

    // Numbers and texts are all that the schema has.
    let own = columns.join(", own.");
    let text = format!(
        "select found.record as record, json_array(own.{own}) as content from sealing_row found
         cross join {name} own on own.rowid = found.number
         where found.name = $1 order by found.record"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind(name)
        .fetch_all(&mut **tx)
        .await?;

    for row in &rows {
        let record: String = row.try_get("record")?;
        let content: String = row.try_get("content")?;
        let content = parsed(&record, &content)?;
        let all = found.entry(record).or_default();
        match all.last_mut().filter(|last| last.table == name) {
            Some(last) => last.rows.push(content),
            None => all.push(TableRows {
                table: name.to_owned(),
                columns: columns.clone(),
                rows: vec![content],
            }),
        }
    }

    Ok(())
}

fn parsed<T: serde::de::DeserializeOwned>(record: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Inconsistent {
        table: "sealed_record",
        id: record.to_owned(),
        why: error.to_string(),
    })
}

/// Leaves the records of the batch as destroyed ones, with their sealed rows. One with a destroyed key has none.
pub async fn seal(
    tx: &mut WriteTransaction,
    records: &[(OwnedEnvelope, Option<String>)],
) -> Result<(), StoreError> {
    for (record, sealed) in records {
        if let Some(sealed) = sealed {
            sqlx::query(
                "insert into sealed_record (envelope_id, org_id, sealed) values ($1, $2, $3)",
            )
            .bind(record.envelope.as_str())
            .bind(record.org.as_str())
            .bind(sealed)
            .run(tx)
            .await?;
        }

        digest_decisions(tx, record).await?;
        ledger::redact(tx, &record.org, &record.envelope).await?;
    }

    for text in tables().filter_map(changing) {
        sqlx::query(AssertSqlSafe(text)).run(tx).await?;
    }
    let text = format!("delete from {JOBS} where {}", of_batch(JOBS));
    sqlx::query(AssertSqlSafe(text)).run(tx).await
}

async fn digest_decisions(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
) -> Result<(), StoreError> {
    let found = envelopes::get_with_destroyed(tx, &record.org, &record.envelope).await?;
    let Some(envelope) = found else {
        return Ok(());
    };

    for table in tables().filter(|table| matches!(table.fate, Fate::Digested)) {
        let name = table.table;
        let rows = format!(
            "rowid in (select number from sealing_row where name = '{name}' and record = $2)"
        );
        decision_blocks::digest(tx, name, &rows, &envelope).await?;
    }
    Ok(())
}

/// Removes the tables and indexes that sealing needed.
pub async fn finish(store: &Store) -> Result<(), StoreError> {
    let indexes = tables().map(|table| format!("drop index sealing_of_{};", table.table));
    let rest = "drop table sealing; drop table sealing_row; drop table sealing_job;";
    let script: String = indexes.chain([rest.to_owned()]).collect();

    let mut tx = store.begin().await?;
    sqlx::raw_sql(AssertSqlSafe(script))
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// Puts the rows of a record back, as [`rows`] returned them.
pub async fn put_back(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
    rows: &str,
) -> Result<(), StoreError> {
    let tables: Vec<TableRows> = parsed(record.envelope.as_str(), rows)?;
    for TableRows {
        table,
        columns,
        rows,
    } in tables
    {
        let names = columns.join(", ");
        let values = numbered(1, columns.len());
        let text = format!("insert or replace into {table} ({names}) values ({values})");
        for row in rows {
            insert(&text, row).run(tx).await?;
        }
    }

    Ok(())
}

/// Binds the values of a row. They are no part of a statement, which errors and the log name.
fn insert(text: &str, row: Vec<Value>) -> Query<'static, Any, AnyArguments> {
    let query = sqlx::query(AssertSqlSafe(text));
    row.into_iter().fold(query, |query, value| match value {
        Value::Null => query.bind(None::<String>),
        Value::Number(number) => query.bind(number.as_i64()),
        Value::String(text) => query.bind(text),
        other => query.bind(other.to_string()),
    })
}

/// Removes the table of sealed rows.
pub async fn remove(store: &Store) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("drop table sealed_record")
        .execute(&mut *tx)
        .await?;
    tx.commit().await
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

/// Destroys the rows of a record if the backup does not have its destruction, and marks it as destroyed.
pub async fn destroy(tx: &mut WriteTransaction, record: &OwnedEnvelope) -> Result<(), StoreError> {
    let found = envelopes::get_with_destroyed(tx, &record.org, &record.envelope).await?;
    let Some(envelope) = found else {
        return Ok(());
    };

    record_rows::destroy(tx, &envelope).await?;
    ledger::redact(tx, &record.org, &record.envelope).await?;
    sqlx::query(
        "update envelope set destruction = 'destroyed' where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .run(tx)
    .await
}

table_row! {
    SealedRecord of "sealed_record" by "envelope_id" also "org_id", "envelope_id" {
        record: |row| row.envelope()?,
        sealed: text("sealed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_within_words() {
        let (one, other) = (EnvelopeId::new(), EnvelopeId::new());
        let text =
            format!(r#"{{"key":"vault/07/org_1/{one}/ab","text":"\n{other}","id":"env_1"}}"#);
        assert_eq!(records_in(&text).collect::<Vec<_>>(), [one, other]);
    }

    /// Rows that a destruction finds through those of another table are found so here as well.
    #[test]
    fn each_table_has_a_way_to_its_rows() {
        let mut found = Vec::new();
        for table in tables() {
            let name = table.table;
            if let Way::Through(way) = table.way {
                assert!(found.contains(&way.other.table), "{name}");
            }
            found.push(name);
        }
    }

    #[tokio::test]
    async fn sealing_fits_the_schema_and_leaves_no_table() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/test.db", folder.path().display());
        let store = Store::connect(&url).await.unwrap();
        store.migrate().await.unwrap();
        prepare(&store).await.unwrap();

        let mut tx = store.begin().await.unwrap();
        assert!(rows(&mut tx, &[]).await.unwrap().is_empty());
        seal(&mut tx, &[]).await.unwrap();
        tx.commit().await.unwrap();

        finish(&store).await.unwrap();
        remove(&store).await.unwrap();
        let mut connection = store.read().await.unwrap();
        let left: Vec<String> =
            sqlx::query_scalar("select name from sqlite_master where name like 'sealing%'")
                .fetch_all(&mut *connection)
                .await
                .unwrap();
        assert_eq!(left, [] as [&str; 0]);
    }
}
