//! Work that one node does for all, each at its time.

use sqlx::Row as _;

use super::{Store, StoreError};
use crate::domain::clock::Timestamp;

/// Whether it is time for a chore and this node is to do it; it is due again at
/// `next`. A chore that nobody has heard of is due at once.
pub async fn claim(
    store: &Store,
    name: &str,
    now: Timestamp,
    next: Timestamp,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("insert into chore (name, due_at) values ($1, $2) on conflict (name) do nothing")
        .bind(name)
        .bind(now.to_string())
        .execute(&mut *tx)
        .await?;
    let claimed = sqlx::query("update chore set due_at = $3 where name = $1 and due_at <= $2")
        .bind(name)
        .bind(now.to_string())
        .bind(next.to_string())
        .execute(&mut *tx)
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(claimed == 1)
}

/// Removing objects waits until this is due.
pub const BACKUP: &str = "backup";

/// Has a chore wait until then, at least.
pub async fn hold(store: &Store, name: &str, until: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
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

/// Has a chore wait no longer that waits until then, and not for somebody else.
pub async fn let_go(store: &Store, name: &str, until: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query("delete from chore where name = $1 and due_at = $2")
        .bind(name)
        .bind(until.to_string())
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

/// When a chore is due, if anybody has said so.
pub async fn due(store: &Store, name: &str) -> Result<Option<Timestamp>, StoreError> {
    let mut connection = store.read().await?;
    let row = sqlx::query("select due_at from chore where name = $1")
        .bind(name)
        .fetch_optional(&mut *connection)
        .await?;
    let at: Option<String> = row.map(|row| row.try_get("due_at")).transpose()?;
    Ok(at.as_deref().and_then(Timestamp::parse))
}
