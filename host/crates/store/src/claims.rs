//! Claiming due rows, one bucket at a time.
//!
//! Each claim names one bucket, so that it stays on one shard of a distributed database (Citus
//! rejects others). The longest-due rows go first. Claimed rows are fenced by their own lease
//! epoch, so that two nodes never complete the same row twice.

use std::time::{Duration, Instant};

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{RowColumns, TableRow, query_rows};
use super::{Store, StoreError};
use holdfast_domain::clock::Timestamp;

/// Number of oldest due rows that are inspected to find buckets.
const LOOK: i64 = 1000;
/// Time limit of one claim over several buckets, well below the shortest lease.
const CLAIM_TIME: Duration = Duration::from_secs(3);

/// Query that claims due rows of a table.
pub(super) struct RowClaim<'a> {
    pub table: &'static str,
    /// Column that identifies a row within its bucket.
    pub id: &'static str,
    /// Column with the time since which a row is due.
    pub since: &'static str,
    /// Additional condition. The values of `texts` are
    /// bound as `$3` and following, here and in `set`.
    pub condition: &'a str,
    /// Assignments to the claimed rows.
    pub set: &'static str,
    pub texts: &'a [String],
}

impl RowClaim<'_> {
    /// Claims up to `limit` rows that were due at `due`, bucket by bucket, the longest-due bucket
    /// first. Each bucket has its own transaction.
    pub async fn take<T: TableRow>(
        &self,
        store: &Store,
        due: Timestamp,
        limit: i64,
    ) -> Result<Vec<T>, StoreError> {
        let began = Instant::now();
        let mut taken: Vec<AnyRow> = Vec::new();
        for bucket in self.buckets(store, due).await? {
            let left = limit - taken.len() as i64;
            // Rows already claimed wait for this loop while their leases run.
            let late = !taken.is_empty() && began.elapsed() > CLAIM_TIME;
            if left <= 0 || late {
                break;
            }

            match self.take_in::<T>(store, bucket, due, left).await {
                Ok(rows) => taken.extend(rows),
                // Rows of earlier buckets are leased already and
                // must be returned, so a later error is only logged.
                Err(error) if taken.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, table = self.table, "due rows of some buckets could not be claimed");
                    break;
                }
            }
        }

        let taken = taken.iter();
        let columns = taken.map(|row| RowColumns::of(row, self.table, self.id));
        columns.map(|columns| T::read(&columns)).collect()
    }

    /// Returns the buckets with due rows, the longest-due first.
    async fn buckets(&self, store: &Store, due: Timestamp) -> Result<Vec<i64>, StoreError> {
        let Self {
            table,
            since,
            condition,
            ..
        } = self;
        let text = format!(
            "select bucket from (
                 select bucket, {since} as since from {table}
                 where {condition} and {since} <= $2
                 order by {since} limit $1
             ) as oldest
             group by bucket order by min(since)"
        );

        // Plain read without locks; the claim below checks the condition again.
        let mut connection = store.read().await?;
        let mut query = sqlx::query(AssertSqlSafe(text))
            .bind(LOOK)
            .bind(due.to_string());
        for text in self.texts {
            query = query.bind(text.as_str());
        }

        let rows = query.fetch_all(&mut *connection).await?;
        let buckets = rows.iter().map(|row| row.try_get("bucket"));
        Ok(buckets.collect::<Result<_, _>>()?)
    }

    async fn take_in<T: TableRow>(
        &self,
        store: &Store,
        bucket: i64,
        due: Timestamp,
        limit: i64,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let Self {
            table,
            id,
            since,
            condition,
            set,
            texts,
        } = self;

        let last = 3 + texts.len();

        // Materialized, as a plan may otherwise run the subquery once per row and ignore its limit.
        let text = format!(
            "with due as materialized (
                 select {id} from {table} where bucket = $1 and {condition} and {since} <= $2
                 order by {since}, {id} limit ${last} {}
             )
             update {table} set {set}
             where bucket = $1 and {condition} and {id} in (select {id} from due)
             returning {{columns}}",
            store.dialect().skip_locked()
        );

        let mut tx = store.begin().await?;
        let mut query = query_rows::<T>(AssertSqlSafe(text))
            .bind(bucket)
            .bind(due.to_string());
        for text in *texts {
            query = query.bind(text.as_str());
        }

        let rows = query.bind(limit).fetch_rows(&mut tx).await?;
        tx.commit().await?;
        Ok(rows)
    }
}
