//! API keys. A key is found before its organization is known: by the indexed first half of its
//! hash; the whole hash is then compared in constant time.

use crate::SqlConnection;
use sqlx::Row as _;
use subtle::ConstantTimeEq as _;

use super::StoreError;
use super::row::{TableRow, query_rows, table_row};
use super::statement::RunStatement as _;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{KeyId, OrgId};
use holdfast_domain::organization::{ApiKeyRecord, Scope};
use holdfast_domain::token::SecretHash;

pub async fn insert(
    connection: &mut SqlConnection,
    key: &ApiKeyRecord,
    hash: &SecretHash,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into api_key (key_hash, bucket, org_id, key_id, name, scopes, rate_limit_rpm,
             owner_email, active, created_at, hash_prefix)
         values ($1, $2, $3, $4, $5, $6, $7, $8, 1, $9, $10)",
    )
    .bind(hash.as_str())
    .bind_org(&key.org)
    .bind(key.id.as_str())
    .bind(key.name.as_deref())
    .bind(scopes_text(&key.scopes))
    .bind(key.rate_limit_rpm)
    .bind(key.owner_email.as_deref())
    .bind(now.to_string())
    .bind(prefix(hash))
    .run(connection)
    .await
}

pub async fn by_hash(
    connection: &mut SqlConnection,
    hash: &SecretHash,
) -> Result<Option<ApiKeyRecord>, StoreError> {
    // An index compares in variable time, so it gets half of
    // the hash only. The loop below decides about the whole.
    let text = "select key_hash, {columns} from api_key where hash_prefix = $1";
    let candidates = query_rows::<ApiKeyRecord>(text)
        .bind(prefix(hash))
        .fetch_rows(connection)
        .await?;
    for row in &candidates {
        let stored: String = row.try_get("key_hash")?;
        // An ordinary comparison would leak the stored hash through its timing.
        if bool::from(stored.as_bytes().ct_eq(hash.as_str().as_bytes())) {
            return ApiKeyRecord::of_row(row).map(Some);
        }
    }

    Ok(None)
}

/// Returns the indexed lookup prefix: 128 of the hash's 256 bits.
fn prefix(hash: &SecretHash) -> &str {
    hash.as_str().get(..32).unwrap_or_default()
}

pub async fn by_id(
    connection: &mut SqlConnection,
    id: &KeyId,
) -> Result<Option<ApiKeyRecord>, StoreError> {
    query_rows("select {columns} from api_key where key_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Vec<ApiKeyRecord>, StoreError> {
    query_rows("select {columns} from api_key where org_id = $1 order by key_id")
        .bind(org.as_str())
        .fetch_all(connection)
        .await
}

/// Returns the e-mail addresses of the owners of the organization's active keys.
pub async fn owner_emails(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(
        "select distinct owner_email from api_key where org_id = $1 and active = 1
             and owner_email is not null",
    )
    .bind(org.as_str())
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| Ok(row.try_get("owner_email")?))
        .collect()
}

/// Updates scopes and rate limit; the secret stays the same.
pub async fn update(
    connection: &mut SqlConnection,
    id: &KeyId,
    scopes: &[Scope],
    rate_limit_rpm: i64,
) -> Result<(), StoreError> {
    // Nodes cache the record and confirm the copy by its revision.
    sqlx::query(
        "update api_key set scopes = $2, rate_limit_rpm = $3, revision = revision + 1
         where key_id = $1",
    )
    .bind(id.as_str())
    .bind(scopes_text(scopes))
    .bind(rate_limit_rpm)
    .run(connection)
    .await
}

/// Replaces the secret of a key. The old one stops working when the transaction commits.
pub async fn replace_hash(
    connection: &mut SqlConnection,
    id: &KeyId,
    hash: &SecretHash,
) -> Result<(), StoreError> {
    // Without a new revision, nodes would accept the old secret from their caches.
    sqlx::query(
        "update api_key set key_hash = $2, hash_prefix = $3, revision = revision + 1
         where key_id = $1",
    )
    .bind(id.as_str())
    .bind(hash.as_str())
    .bind(prefix(hash))
    .run(connection)
    .await
}

pub async fn deactivate(connection: &mut SqlConnection, id: &KeyId) -> Result<(), StoreError> {
    sqlx::query("update api_key set active = 0, revision = revision + 1 where key_id = $1")
        .bind(id.as_str())
        .run(connection)
        .await
}

/// Records the time of a key's last use.
pub async fn touch(
    connection: &mut SqlConnection,
    id: &KeyId,
    at: Timestamp,
) -> Result<(), StoreError> {
    // Nodes report uses late and in batches: an older time must not replace a newer one of another node.
    sqlx::query(
        "update api_key set last_used_at = $2
         where key_id = $1 and (last_used_at is null or last_used_at < $2)",
    )
    .bind(id.as_str())
    .bind(at.to_string())
    .run(connection)
    .await
}

fn scopes_text(scopes: &[Scope]) -> String {
    scopes
        .iter()
        .map(|scope| scope.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

table_row! {
    ApiKeyRecord of "api_key" by "key_id" {
        id: parsed("key_id", KeyId::parse),
        org: parsed("org_id", OrgId::parse),
        name: optional_text("name"),
        // An unknown scope fails the key: without it, the key would have other rights than its owner gave it.
        scopes: parsed("scopes", |text| {
            text.split_whitespace()
                .map(Scope::parse)
                .collect::<Option<Vec<_>>>()
        }),
        rate_limit_rpm: number("rate_limit_rpm"),
        owner_email: optional_text("owner_email"),
        active: flag("active"),
        last_used_at: optional_time("last_used_at"),
        revision: number("revision"),
    }
}
