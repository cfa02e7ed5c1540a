//! Taking up what is due, one bucket at a time.
//!
//! A claim names one bucket, so that it stays on one shard where the database has
//! several (Citus refuses others), and the longest due goes first. What is claimed is
//! fenced by the epoch of its own row: two nodes do nothing twice.

use std::time::{Duration, Instant};

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::{Store, StoreError};
use crate::domain::clock::Timestamp;

/// A look at what is due goes over so many rows, the oldest.
const LOOK: i64 = 1000;
/// How long a claim goes through buckets: a part of the shortest lease.
const CLAIM_TIME: Duration = Duration::from_secs(3);

/// Rows to be taken up: which, and what is written into them.
pub(super) struct Claim<'a> {
    pub table: &'static str,
    /// With the bucket the table's key.
    pub id: &'static str,
    /// The column with the time since when a row is due.
    pub since: &'static str,
    /// What else must hold of a row. The texts are `$3` and on, here and in `set`.
    pub condition: &'a str,
    /// What becomes of it.
    pub set: &'static str,
    pub texts: &'a [String],
    pub returning: &'static str,
}

impl Claim<'_> {
    /// Takes up to `limit` rows that are due at `due`, by buckets: the longest due first.
    /// Each bucket has its own transaction.
    pub async fn take(
        &self,
        store: &Store,
        due: Timestamp,
        limit: i64,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let began = Instant::now();
        let mut taken = Vec::new();
        for bucket in self.buckets(store, due).await? {
            let left = limit - taken.len() as i64;
            // What is taken waits for this, and its leases run.
            let late = !taken.is_empty() && began.elapsed() > CLAIM_TIME;
            if left <= 0 || late {
                break;
            }
            match self.take_in(store, bucket, due, left).await {
                Ok(rows) => taken.extend(rows),
                Err(error) if taken.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, table = self.table, "less was taken up than is due");
                    break;
                }
            }
        }
        Ok(taken)
    }

    /// Where something is due.
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

    async fn take_in(
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
            returning,
        } = self;
        let last = 3 + texts.len();
        // Materialized, as a plan may else run it once for each row, and take them all.
        let text = format!(
            "with due as materialized (
                 select {id} from {table} where bucket = $1 and {condition} and {since} <= $2
                 order by {since}, {id} limit ${last} {}
             )
             update {table} set {set}
             where bucket = $1 and {condition} and {id} in (select {id} from due)
             returning {returning}",
            store.dialect().skip_locked()
        );
        let mut tx = store.begin().await?;
        let mut query = sqlx::query(AssertSqlSafe(text))
            .bind(bucket)
            .bind(due.to_string());
        for text in *texts {
            query = query.bind(text.as_str());
        }
        let rows = query.bind(limit).fetch_all(&mut *tx).await?;
        tx.commit().await?;
        Ok(rows)
    }
}
