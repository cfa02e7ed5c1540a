//! Rate limit windows of API keys, shared by all nodes.

use crate::SqlConnection;

use super::StoreError;
use super::row::{query_rows, table_row};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::organization::ApiKeyRecord;

/// Window after a node has leased a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedWindow {
    pub started_at: Timestamp,
    /// Requests leased by all nodes; may exceed the key's limit by one share.
    pub leased: i64,
}

/// Leases `share` requests in the current window, or in a new one if the current window began at or
/// before `expired`.
pub async fn lease(
    connection: &mut SqlConnection,
    key: &ApiKeyRecord,
    share: i64,
    now: Timestamp,
    expired: Timestamp,
) -> Result<SharedWindow, StoreError> {
    // One upsert, because nodes add their shares to the same row:
    // with a read before it, two could start the same window.
    query_rows(
        "insert into rate_window (bucket, key_id, org_id, started_at, leased)
         values ($1, $2, $3, $4, $5)
         on conflict (bucket, key_id) do update set
             leased = case when rate_window.started_at <= $6 then $5
                 else rate_window.leased + $5 end,
             started_at = case when rate_window.started_at <= $6 then $4
                 else rate_window.started_at end
         returning {columns}",
    )
    .bind_key(&key.org, key.id.as_str())
    .bind(key.org.as_str())
    .bind(now.to_string())
    .bind(share)
    .bind(expired.to_string())
    .fetch_one(connection)
    .await
}

table_row! {
    SharedWindow of "rate_window" by "key_id" also "key_id" {
        started_at: time("started_at"),
        leased: number("leased"),
    }
}
