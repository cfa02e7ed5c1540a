//! Work that one node does for all, each at its time.

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
