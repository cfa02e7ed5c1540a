//! Which node takes up the work of which organizations: a lease on each bucket.
//!
//! A claim names one bucket, so that it stays on one shard where the database has
//! several (Citus refuses others). A node takes up what is due in its own buckets first,
//! so that nodes with much to do keep out of each other's way; and then what is due
//! elsewhere, so that no organization is bound to the slots of one node, and nobody waits
//! for a node that has died. What is claimed is fenced by the epoch of its own row: two
//! nodes that both believe to hold a bucket do nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::{Dialect, Store, StoreError};
use crate::domain::clock::Timestamp;
use crate::domain::id::BUCKETS;

/// How long a bucket is held without a renewal.
pub const LEASE: Duration = Duration::from_secs(10);
/// Period of renewals.
pub const RENEWAL: Duration = Duration::from_secs(3);
/// A look at what is due goes over so many rows, the oldest.
const LOOK: i64 = 1000;
/// Who holds a bucket goes first to it for so long.
const LONG: Duration = Duration::from_secs(5);
/// How long a claim goes through buckets: a part of the shortest lease.
const CLAIM_TIME: Duration = Duration::from_secs(3);

/// The buckets that this process holds, and until when.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<Mutex<(BTreeSet<i64>, Option<Instant>)>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, (BTreeSet<i64>, Option<Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, buckets: impl IntoIterator<Item = i64>, until: Instant) {
        *self.lock() = (buckets.into_iter().collect(), Some(until));
    }

    /// Brings those that are held before the others, but for those that have waited long:
    /// their holder may be stuck. Else their order stays.
    fn first(&self, buckets: &mut [Due]) {
        let held = self.lock();
        if held.1.is_some_and(|until| Instant::now() < until) {
            buckets.sort_by_key(|due| !due.long && !held.0.contains(&due.bucket));
        }
    }
}

/// A bucket in which something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    bucket: i64,
    /// For longer than a node with a free slot leaves it.
    long: bool,
}

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
    /// Takes up to `limit` rows that are due at `due`, by buckets: those that are held
    /// first, else the longest due first. Each bucket has its own transaction.
    pub async fn take(
        &self,
        store: &Store,
        due: Timestamp,
        limit: i64,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let began = Instant::now();
        let mut taken = Vec::new();
        for Due { bucket, .. } in self.buckets(store, due).await? {
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
    async fn buckets(&self, store: &Store, due: Timestamp) -> Result<Vec<Due>, StoreError> {
        let Self {
            table,
            since,
            condition,
            ..
        } = self;
        let text = format!(
            "select bucket, min(since) as since from (
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
        let long = (due - LONG).to_string();
        let buckets = rows.iter().map(|row| {
            Ok::<_, sqlx::Error>(Due {
                bucket: row.try_get("bucket")?,
                long: row.try_get::<String, _>("since")? < long,
            })
        });
        let mut buckets = buckets.collect::<Result<Vec<_>, _>>()?;
        store.held.first(&mut buckets);
        Ok(buckets)
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

/// A bucket, and who holds it.
#[derive(Clone, Debug)]
struct Lease {
    bucket: i64,
    node: String,
    epoch: i64,
    held_until: Option<Timestamp>,
}

/// Keeps the buckets that `node` holds until `now` and [`LEASE`], takes its share of the
/// others, and has claims begin with them. `earlier` is a pattern for runs of the same node
/// that have ended. Returns how many it holds.
///
/// SQLite has one node, which holds everything.
pub async fn hold(
    store: &Store,
    node: &str,
    earlier: Option<&str>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    if store.dialect() == Dialect::Sqlite {
        return Ok(usize::from(BUCKETS));
    }
    let asked = Instant::now();
    let until = (now + LEASE).to_string();
    let mut tx = store.begin_urgently().await?;
    sqlx::query(
        "update bucket_lease set held_until = $3, node = $1,
             epoch = epoch + case when node = $1 then 0 else 1 end
         where bucket in (
             select bucket from bucket_lease
             where (node = $1 and held_until > $2) or ($4 <> '' and node like $4)
             order by bucket for update
         )",
    )
    .bind(node)
    .bind(now.to_string())
    .bind(&until)
    .bind(earlier.unwrap_or_default())
    .execute(&mut *tx)
    .await?;
    let rows =
        sqlx::query("select bucket, node, epoch, held_until from bucket_lease order by bucket")
            .fetch_all(&mut *tx)
            .await?;
    let leases = rows.iter().map(lease).collect::<Result<Vec<_>, _>>()?;
    let mut held: BTreeSet<i64> = leases
        .iter()
        .filter(|lease| lease.node == node)
        .map(|lease| lease.bucket)
        .collect();
    // Every transaction goes through the buckets in their order.
    tx.commit().await?;
    store.held.set(held.iter().copied(), asked + LEASE);
    let wanted = wanted(&leases, node, now);
    if wanted.is_empty() {
        return Ok(held.len());
    }
    let mut tx = store.begin_urgently().await?;
    for (bucket, epoch) in wanted {
        let taken = sqlx::query(
            "update bucket_lease set node = $1, epoch = epoch + 1, held_until = $2
             where bucket = $3 and epoch = $4",
        )
        .bind(node)
        .bind(&until)
        .bind(bucket)
        .bind(epoch)
        .execute(&mut *tx)
        .await?
        .rows_affected();
        if taken == 1 {
            held.insert(bucket);
        }
    }
    tx.commit().await?;
    store.held.set(held.iter().copied(), asked + LEASE);
    Ok(held.len())
}

/// Leaves to others at once what a run of a node holds.
pub async fn let_go(store: &Store, node: &str) -> Result<(), StoreError> {
    if store.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    store.held.set([], Instant::now());
    let mut tx = store.begin_urgently().await?;
    sqlx::query("update bucket_lease set node = '', held_until = '' where node = $1")
        .bind(node)
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

fn lease(row: &AnyRow) -> Result<Lease, StoreError> {
    let held_until: String = row.try_get("held_until")?;
    Ok(Lease {
        bucket: row.try_get("bucket")?,
        node: row.try_get("node")?,
        epoch: row.try_get("epoch")?,
        held_until: Timestamp::parse(&held_until),
    })
}

/// What a node takes, with the epochs by which it knows them: free ones up to an equal
/// share, and so many of who holds more than that.
fn wanted(leases: &[Lease], node: &str, now: Timestamp) -> Vec<(i64, i64)> {
    let mut free = Vec::new();
    let mut of_nodes: BTreeMap<&str, Vec<&Lease>> = BTreeMap::from([(node, Vec::new())]);
    for lease in leases {
        match lease.held_until {
            Some(until) if until > now => of_nodes.entry(&lease.node).or_default().push(lease),
            _ => free.push(lease),
        }
    }
    let mine = of_nodes.remove(node).map_or(0, |mine| mine.len());
    let (all, nodes) = (leases.len(), of_nodes.len() + 1);
    free.truncate(all.div_ceil(nodes).saturating_sub(mine));
    let mut wanted = free;
    let share = all / nodes;
    while mine + wanted.len() < share {
        let richest = of_nodes.values_mut().max_by_key(|held| held.len());
        let Some(lease) = richest.and_then(Vec::pop) else {
            break;
        };
        wanted.push(lease);
    }
    let mut wanted: Vec<_> = wanted
        .iter()
        .map(|lease| (lease.bucket, lease.epoch))
        .collect();
    wanted.sort_unstable();
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Clock;

    fn leases(now: Timestamp, holders: &[(&str, i64, Duration)]) -> Vec<Lease> {
        let all = holders.iter().flat_map(|(node, count, left)| {
            (0..*count).map(|_| (node.to_string(), Some(now + *left)))
        });
        let nobody = std::iter::repeat((String::new(), None));
        all.chain(nobody)
            .take(BUCKETS as usize)
            .enumerate()
            .map(|(bucket, (node, held_until))| Lease {
                bucket: bucket as i64,
                node,
                epoch: 1,
                held_until,
            })
            .collect()
    }

    #[test]
    fn a_node_takes_an_equal_share_and_no_more() {
        const LEFT: Duration = Duration::from_secs(5);
        const OVER: Duration = Duration::ZERO;
        let now = Clock::default().now();
        for (holders, takes) in [
            (vec![], 64),
            (vec![("b", 64, LEFT)], 32),
            (vec![("b", 32, LEFT), ("c", 32, LEFT)], 21),
            (vec![("a", 21, LEFT), ("b", 22, LEFT), ("c", 21, LEFT)], 0),
            (vec![("a", 22, LEFT), ("b", 21, LEFT), ("c", 21, LEFT)], 0),
            // Somebody has died.
            (vec![("a", 32, LEFT), ("b", 32, OVER)], 32),
            (vec![("a", 21, LEFT), ("b", 21, LEFT), ("c", 22, OVER)], 11),
            // Others were quicker, or slower.
            (vec![("a", 32, LEFT), ("b", 10, LEFT)], 0),
            (vec![("a", 10, LEFT), ("b", 10, LEFT)], 22),
        ] {
            let leases = leases(now, &holders);
            let wanted = wanted(&leases, "a", now);
            assert_eq!(wanted.len(), takes, "{holders:?}");
            let own = |bucket: i64| {
                let lease = &leases[bucket as usize];
                lease.node == "a" && lease.held_until > Some(now)
            };
            assert!(wanted.iter().all(|(bucket, _)| !own(*bucket)));
        }
    }

    #[test]
    fn what_is_held_goes_first_while_it_is_renewed() {
        let held = Held::default();
        let order = |long: usize| {
            let mut nth = 0;
            let mut buckets = [7, 5, 1, 3].map(|bucket| {
                nth += 1;
                let long = nth <= long;
                Due { bucket, long }
            });
            held.first(&mut buckets);
            buckets.map(|due| due.bucket)
        };
        assert_eq!(order(0), [7, 5, 1, 3]);
        held.set([3, 5], Instant::now() + LEASE);
        assert_eq!(order(0), [5, 3, 7, 1]);
        assert_eq!(order(1), [7, 5, 3, 1], "its holder may be stuck");
        held.set([3, 5], Instant::now());
        assert_eq!(order(0), [7, 5, 1, 3]);
    }
}
