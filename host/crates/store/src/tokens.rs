//! Web-app tokens revoked before their expiry.

use crate::SqlConnection;

use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, TokenId};

/// Revokes a token on all nodes, from their next
/// request on. Returns false if it was revoked already.
pub async fn revoke(
    tx: &mut WriteTransaction,
    org: &OrgId,
    token: &TokenId,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // The row is needed until the token itself expires; then no clock accepts it any more.
    sqlx::query(
        "insert into revoked_token (bucket, token_id, org_id, revoked_at, expires_at)
         values ($1, $2, $3, $4, $5) on conflict (bucket, token_id) do nothing",
    )
    .bind_key(org, token.as_str())
    .bind(org.as_str())
    .bind(now.to_string())
    .bind(expires_at.to_string())
    .changes_row(tx)
    .await
}

/// Returns whether a token of the organization was revoked.
pub async fn is_revoked(
    connection: &mut SqlConnection,
    org: &OrgId,
    token: &TokenId,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select token_id from revoked_token
         where bucket = $1 and token_id = $2 and org_id = $3",
    )
    .bind_key(org, token.as_str())
    .bind(org.as_str())
    .finds_row(connection)
    .await
}

/// Deletes the revocations of expired tokens.
pub async fn forget(tx: &mut WriteTransaction, ended_before: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from revoked_token where expires_at < $1")
        .bind(ended_before.to_string())
        .run(tx)
        .await
}
