//! Responses stored under idempotency keys.

use crate::SqlConnection;
use sqlx::any::{Any, AnyArguments};
use sqlx::query::Query;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;

/// Identity of an idempotent request: organization, caller and idempotency key.
#[derive(Clone, Debug)]
pub struct RequestKey {
    pub org: OrgId,
    pub actor: String,
    pub key: String,
}

/// Stored request, with its response once there is one.
#[derive(Clone, Debug)]
pub struct IdempotentResponse {
    pub fingerprint: String,
    pub created_at: Timestamp,
    pub lease_until: Timestamp,
    /// Status and body; none while the first request is running.
    pub answer: Option<(i64, String)>,
}

/// Builds a statement with the key as its first four parameters.
fn keyed<'q>(sql: &'static str, key: &'q RequestKey) -> Query<'q, Any, AnyArguments> {
    sqlx::query(sql)
        .bind_org(&key.org)
        .bind(&key.actor)
        .bind(&key.key)
}

pub async fn get(
    connection: &mut SqlConnection,
    key: &RequestKey,
) -> Result<Option<IdempotentResponse>, StoreError> {
    query_rows(
        "select {columns} from idempotency
         where bucket = $1 and org_id = $2 and actor = $3 and idempotency_key = $4",
    )
    .bind_org(&key.org)
    .bind(&key.actor)
    .bind(&key.key)
    .fetch_optional(connection)
    .await
}

table_row! {
    IdempotentResponse of "idempotency" by "idempotency_key" also "idempotency_key", "status", "body" {
        fingerprint: text("fingerprint"),
        created_at: time("created_at"),
        lease_until: time("lease_until"),
        // Both are written together. Without them, the request is running, or its node died.
        answer: |row| row.optional_number("status")?.zip(row.optional_text("body")?),
    }
}

/// Claims the key for a request, replacing an expired row if `replaced` is given. Returns false if
/// a concurrent request was faster.
pub async fn claim(
    connection: &mut SqlConnection,
    key: &RequestKey,
    fingerprint: &str,
    claim: &str,
    now: Timestamp,
    lease_until: Timestamp,
    replaced: Option<&IdempotentResponse>,
) -> Result<bool, StoreError> {
    // The lease in the condition makes this a compare-and-swap: only one caller replaces the row.
    if let Some(old) = replaced {
        keyed(
            "delete from idempotency where bucket = $1 and org_id = $2 and actor = $3
                 and idempotency_key = $4 and lease_until = $5",
            key,
        )
        .bind(old.lease_until.to_string())
        .execute(&mut *connection)
        .await?;
    }

    keyed(
        "insert into idempotency (bucket, org_id, actor, idempotency_key, fingerprint, claim,
             lease_until, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (bucket, org_id, actor, idempotency_key) do nothing",
        key,
    )
    .bind(fingerprint)
    .bind(claim)
    .bind(lease_until.to_string())
    .bind(now.to_string())
    .changes_row(connection)
    .await
}

/// Stores the response, in the transaction of the change it describes.
pub async fn settle(
    connection: &mut SqlConnection,
    key: &RequestKey,
    claim: &str,
    status: u16,
    body: &str,
) -> Result<(), StoreError> {
    // No row means that the lease ran out and another request claimed the key.
    keyed(
        "update idempotency set status = $6, body = $7
         where bucket = $1 and org_id = $2 and actor = $3 and idempotency_key = $4 and claim = $5
             and status is null",
        key,
    )
    .bind(claim)
    .bind(i64::from(status))
    .bind(body)
    .run_guarded(connection)
    .await
}

/// Releases the key of a request that changed nothing.
pub async fn release(
    connection: &mut SqlConnection,
    key: &RequestKey,
    claim: &str,
) -> Result<(), StoreError> {
    // Only without a response: a settled request is replayed, and never runs again.
    keyed(
        "delete from idempotency
         where bucket = $1 and org_id = $2 and actor = $3 and idempotency_key = $4 and claim = $5
             and status is null",
        key,
    )
    .bind(claim)
    .run(connection)
    .await
}

/// Deletes rows created before `before`.
pub async fn forget(connection: &mut SqlConnection, before: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from idempotency where created_at < $1")
        .bind(before.to_string())
        .run(connection)
        .await
}

/// Releases the keys of requests that an earlier run of
/// the database's only node (SQLite) did not finish.
pub async fn forget_claims(store: &Store) -> Result<(), StoreError> {
    let statement = sqlx::query("delete from idempotency where status is null");
    store.end_earlier_run(statement).await
}
