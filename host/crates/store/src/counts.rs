//! Numbers of envelopes by status, kept with every change of a status.
//!
//! A transaction collects its changes and applies them as its last statement, in the order of the
//! keys: transactions wait for each other only while they commit, and never in a circle.

use std::collections::BTreeMap;

use crate::SqlConnection;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::outbox::placeholders;
use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{SqlDialect, Store, StoreError, WriteTransaction};
use holdfast_domain::envelope::{Envelope, EnvelopeStatus};
use holdfast_domain::id::OrgId;

/// Rows over which PostgreSQL spreads the changes of one number.
const SHARDS: u8 = 16;

/// Changes of numbers by bucket, organization, status and shard.
pub(super) type CountChanges = BTreeMap<(i64, String, &'static str, i64), i64>;

/// Bucket, organization, status and shard of a number.
type CountKey<'a> = (i64, &'a str, &'a str, i64);

/// Notes that an envelope with this status was added.
pub(super) fn added(tx: &mut WriteTransaction, envelope: &Envelope) {
    note(tx, envelope, envelope.status, 1);
}

/// Notes that an envelope's status changes from `before`.
pub(super) fn moved(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    before: EnvelopeStatus,
    after: EnvelopeStatus,
) {
    note(tx, envelope, before, -1);
    note(tx, envelope, after, 1);
}

fn note(tx: &mut WriteTransaction, envelope: &Envelope, status: EnvelopeStatus, change: i64) {
    let shard = match tx.dialect {
        // There is one writer.
        SqlDialect::Sqlite => 0,
        SqlDialect::Postgres => {
            let last = envelope.id.as_str().bytes().next_back();
            i64::from(last.unwrap_or_default() % SHARDS)
        }
    };

    let org = envelope.org.as_str().to_owned();
    let key = (envelope.org.bucket(), org, status.as_str(), shard);
    *tx.counts.entry(key).or_default() += change;
}

/// Applies the changes of a transaction.
pub(super) async fn apply(
    connection: &mut SqlConnection,
    changes: &CountChanges,
) -> Result<(), StoreError> {
    // A status that changed back would lock a row for nothing.
    let changes = changes.iter().filter(|(_, change)| **change != 0);
    let changes: Vec<_> = changes
        .map(|((bucket, org, status, shard), change)| {
            ((*bucket, org.as_str(), *status, *shard), *change)
        })
        .collect();
    if changes.is_empty() {
        Ok(())
    } else {
        add(connection, &changes).await
    }
}

/// Adds changes to numbers, by bucket, organization, status and shard.
async fn add(
    connection: &mut SqlConnection,
    changes: &[(CountKey<'_>, i64)],
) -> Result<(), StoreError> {
    // The keys are sorted, so that concurrent commits lock the rows in one order.
    let text = format!(
        "insert into envelope_count (bucket, org_id, status, shard, envelopes) values {}
         on conflict (bucket, org_id, status, shard)
         do update set envelopes = envelope_count.envelopes + excluded.envelopes",
        placeholders(connection, 5, changes.len())
    );

    let mut query = sqlx::query(AssertSqlSafe(text));
    for ((bucket, org, status, shard), change) in changes {
        query = query
            .bind(*bucket)
            .bind(*org)
            .bind(*status)
            .bind(*shard)
            .bind(*change);
    }

    query.run(connection).await
}

/// Returns the number of envelopes as the column `total` of a query. Its first parameters are bucket,
/// organization, and the status if there is one.
pub(super) fn total_column(status: Option<EnvelopeStatus>) -> &'static str {
    match status {
        None => {
            "(select cast(coalesce(sum(envelopes), 0) as bigint) from envelope_count of_all
              where of_all.bucket = $1 and of_all.org_id = $2) as total"
        }
        Some(_) => {
            "(select cast(coalesce(sum(envelopes), 0) as bigint) from envelope_count of_all
              where of_all.bucket = $1 and of_all.org_id = $2 and of_all.status = $3) as total"
        }
    }
}

/// Reads a total.
pub(super) fn total(row: &AnyRow) -> Result<i64, StoreError> {
    // Below zero only while a node of an earlier version adds envelopes.
    Ok(row.try_get::<i64, _>("total")?.max(0))
}

/// Returns the number of an organization's envelopes, of one status if given.
pub async fn envelopes(
    connection: &mut SqlConnection,
    org: &OrgId,
    status: Option<EnvelopeStatus>,
) -> Result<i64, StoreError> {
    let text = format!("select {}", total_column(status));
    let mut query = sqlx::query(AssertSqlSafe(text)).bind_org(org);
    if let Some(status) = status {
        query = query.bind(status.as_str());
    }

    let row = query.fetch_one(connection).await?;
    total(&row)
}

/// Returns the numbers of an organization's envelopes by status.
pub async fn by_status(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<BTreeMap<String, i64>, StoreError> {
    let rows = sqlx::query(
        "select status, cast(sum(envelopes) as bigint) as total from envelope_count
         where bucket = $1 and org_id = $2 group by status",
    )
    .bind_org(org)
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| Ok((row.try_get("status")?, row.try_get("total")?)))
        .collect()
}

/// Number of a status that differs from the envelopes themselves.
#[derive(Debug, PartialEq, Eq)]
pub struct CountDifference {
    pub status: String,
    pub kept: i64,
    pub counted: i64,
}

/// Counts an organization's envelopes and corrects its numbers. Returns the corrected ones: a node of an
/// earlier version does not keep them.
pub async fn check(store: &Store, org: &OrgId) -> Result<Vec<CountDifference>, StoreError> {
    // Counting takes a while; it must not keep SQLite's writer.
    if differences(&mut *store.read().await?, org)
        .await?
        .is_empty()
    {
        return Ok(Vec::new());
    }

    let mut tx = store.begin().await?;
    let wrong = differences(&mut tx, org).await?;
    for CountDifference {
        status,
        kept,
        counted,
    } in &wrong
    {
        // Added, not set: other transactions may be changing the number.
        let key = (org.bucket(), org.as_str(), status.as_str(), 0);
        add(&mut tx, &[(key, counted - kept)]).await?;
    }

    tx.commit().await?;
    Ok(wrong)
}

async fn differences(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Vec<CountDifference>, StoreError> {
    // One statement, so that envelopes and numbers are those of one moment.
    query_rows(
        "select status, cast(sum(kept) as bigint) as kept, cast(sum(counted) as bigint) as counted
         from (
             select status, envelopes as kept, 0 as counted from envelope_count
             where bucket = $1 and org_id = $2
             union all
             select status, 0 as kept, count(*) as counted from envelope
             where bucket = $1 and org_id = $2 group by status
         ) as both_numbers
         group by status having sum(kept) <> sum(counted) order by status",
    )
    .bind_org(org)
    .fetch_all(connection)
    .await
}

table_row! {
    CountDifference of "envelope_count" by "status" {
        status: text("status"),
        kept: number("kept"),
        counted: number("counted"),
    }
}
