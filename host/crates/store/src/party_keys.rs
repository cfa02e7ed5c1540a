//! Keys of parties, and the nonces of the statements that they signed.

use crate::SqlConnection;

use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{PartyKey, PartyKeyRequest};
use holdfast_domain::id::{OrgId, PartyKeyId, PasskeyId};

/// # Errors
/// [`StoreError::Conflict`] if the organization has registered this key already.
pub async fn insert(tx: &mut WriteTransaction, key: &PartyKey) -> Result<(), StoreError> {
    // The thumbprint (RFC 7638) is the same for every spelling of a key as JWK.
    sqlx::query(
        "insert into party_key (bucket, key_id, org_id, name, public_key, thumbprint, created_at,
             created_by, registration)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (bucket, org_id, thumbprint) do nothing",
    )
    .bind_key(&key.org, key.id.as_str())
    .bind(key.org.as_str())
    .bind(key.name.as_deref())
    .bind(json_text(&key.public_key))
    .bind(key.public_key.thumbprint())
    .bind(key.created_at.to_string())
    .bind(&key.created_by)
    .bind(json_text(&key.registration))
    .run_guarded(tx)
    .await
}

/// Lists all keys of an organization, revoked ones too, oldest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Vec<PartyKey>, StoreError> {
    // A party that ever had a key has to sign: without the revoked
    // ones, a thief could revoke the key first and then act unsigned.
    query_rows("select {columns} from party_key where bucket = $1 and org_id = $2 order by key_id")
        .bind_org(org)
        .fetch_all(connection)
        .await
}

/// # Errors
/// [`StoreError::Conflict`] if the key was revoked already.
pub async fn revoke(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &PartyKeyId,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update party_key set revoked_at = $4
         where bucket = $1 and key_id = $2 and org_id = $3 and revoked_at is null",
    )
    .bind_key(org, id.as_str())
    .bind(org.as_str())
    .bind(at.to_string())
    .run_guarded(tx)
    .await
}

/// Stores a request; an earlier one for the same passkey is replaced. Forgets those of the organization before `since`.
pub async fn request(
    tx: &mut WriteTransaction,
    request: &PartyKeyRequest,
    since: Timestamp,
) -> Result<(), StoreError> {
    // Old requests end with the next one, so no chore has to delete them.
    sqlx::query(
        "delete from party_key_request where bucket = $1 and org_id = $2 and requested_at <= $3",
    )
    .bind_org(&request.org)
    .bind(since.to_string())
    .execute(&mut **tx)
    .await?;

    sqlx::query(
        "insert into party_key_request (bucket, passkey_id, org_id, requested_by, body, requested_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, passkey_id) do update set body = excluded.body,
             requested_at = excluded.requested_at",
    )
    .bind_key(&request.org, request.passkey.as_str())
    .bind(request.org.as_str())
    .bind(&request.requested_by)
    .bind(json_text(&request.body))
    .bind(request.requested_at.to_string())
    .run(tx)
    .await
}

/// Lists the requests of an organization since a time, oldest first.
pub async fn requests(
    connection: &mut SqlConnection,
    org: &OrgId,
    since: Timestamp,
) -> Result<Vec<PartyKeyRequest>, StoreError> {
    query_rows(
        "select {columns} from party_key_request
         where bucket = $1 and org_id = $2 and requested_at > $3 order by requested_at, passkey_id",
    )
    .bind_org(org)
    .bind(since.to_string())
    .fetch_all(connection)
    .await
}

/// Deletes the request for a passkey.
pub async fn forget_request(
    tx: &mut WriteTransaction,
    org: &OrgId,
    passkey: &PasskeyId,
) -> Result<(), StoreError> {
    sqlx::query(
        "delete from party_key_request where bucket = $1 and org_id = $2 and passkey_id = $3",
    )
    .bind_org(org)
    .bind(passkey.as_str())
    .run(tx)
    .await
}

/// Uses a nonce of an organization until `expires_at`. Forgets those that have expired.
///
/// # Errors
/// [`StoreError::Conflict`] if it was used before.
pub async fn use_nonce(
    tx: &mut WriteTransaction,
    org: &OrgId,
    nonce: &str,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    // An expired statement is refused by its time, so its nonce needs no row.
    sqlx::query(
        "delete from statement_nonce where bucket = $1 and org_id = $2 and expires_at < $3",
    )
    .bind_org(org)
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;

    // The insert is the check: two requests with one statement cannot both pass.
    sqlx::query(
        "insert into statement_nonce (bucket, org_id, nonce, expires_at) values ($1, $2, $3, $4)
         on conflict (bucket, org_id, nonce) do nothing",
    )
    .bind_org(org)
    .bind(nonce)
    .bind(expires_at.to_string())
    .run_guarded(tx)
    .await
}

table_row! {
    PartyKeyRequest of "party_key_request" by "passkey_id" {
        passkey: parsed("passkey_id", PasskeyId::parse),
        org: parsed("org_id", OrgId::parse),
        requested_by: text("requested_by"),
        body: json("body"),
        requested_at: time("requested_at"),
    }
}

table_row! {
    PartyKey of "party_key" by "key_id" {
        id: parsed("key_id", PartyKeyId::parse),
        org: parsed("org_id", OrgId::parse),
        name: optional_text("name"),
        public_key: json("public_key"),
        created_at: time("created_at"),
        created_by: text("created_by"),
        registration: json("registration"),
        revoked_at: optional_time("revoked_at"),
    }
}
