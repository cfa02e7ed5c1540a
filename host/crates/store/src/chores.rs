//! Periodic work that one node does for all.

use sqlx::Row as _;

use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;

/// Claims a chore if it is due and schedules its next run at `next`; returns whether this node must
/// do it. A chore without a row is due at once.
pub async fn claim(
    store: &Store,
    name: &str,
    now: Timestamp,
    next: Timestamp,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    // A chore of a new release has no row yet, and two nodes may add it at the same moment.
    sqlx::query("insert into chore (name, due_at) values ($1, $2) on conflict (name) do nothing")
        .bind(name)
        .bind(now.to_string())
        .execute(&mut *tx)
        .await?;

    // Compare-and-swap on the due time: only one node can win.
    let is_claimed = sqlx::query("update chore set due_at = $3 where name = $1 and due_at <= $2")
        .bind(name)
        .bind(now.to_string())
        .bind(next.to_string())
        .changes_row(&mut tx)
        .await?;

    tx.commit().await?;
    Ok(is_claimed)
}

/// Makes a chore due at `now`, unless it is due already.
pub async fn bring_forward(
    tx: &mut WriteTransaction,
    name: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A chore without a row is due.
    sqlx::query("update chore set due_at = $2 where name = $1 and due_at > $2")
        .bind(name)
        .bind(now.to_string())
        .run(tx)
        .await
}

/// Name of the chore row that postpones the deletion of objects while a backup runs.
pub const BACKUP: &str = "backup";

/// Postpones a chore until at least `until`.
pub async fn hold(store: &Store, name: &str, until: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    // A longer postponement of another caller stays: two backups may run at once.
    sqlx::query(
        "insert into chore (name, due_at) values ($1, $2)
         on conflict (name) do update set due_at = excluded.due_at
             where chore.due_at < excluded.due_at",
    )
    .bind(name)
    .bind(until.to_string())
    .execute(&mut *tx)
    .await?;

    tx.commit().await
}

/// Ends a postponement until exactly `until`. A later one, set by another caller, stays.
pub async fn let_go(store: &Store, name: &str, until: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("delete from chore where name = $1 and due_at = $2")
        .bind(name)
        .bind(until.to_string())
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// Returns when a chore is due, if it has a row.
pub async fn due(store: &Store, name: &str) -> Result<Option<Timestamp>, StoreError> {
    let mut connection = store.read().await?;
    let row = sqlx::query("select due_at from chore where name = $1")
        .bind(name)
        .fetch_optional(&mut *connection)
        .await?;
    let at: Option<String> = row.map(|row| row.try_get("due_at")).transpose()?;
    Ok(at.as_deref().and_then(Timestamp::parse))
}
