//! Passkeys of users.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{OrgId, PasskeyId, UserId};
use holdfast_domain::user::{Passkey, User};

/// # Errors
/// [`StoreError::Conflict`] if the credential is known already.
pub async fn insert(tx: &mut WriteTransaction, passkey: &Passkey) -> Result<(), StoreError> {
    // Unique over all organizations, because a sign-in begins with nothing but the credential.
    sqlx::query(
        "insert into passkey (bucket, passkey_id, org_id, user_id, credential_id, public_key, name,
             use_count, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (credential_id) do nothing",
    )
    .bind_key(&passkey.org, passkey.id.as_str())
    .bind(passkey.org.as_str())
    .bind(passkey.user.as_str())
    .bind(&passkey.credential_id)
    .bind(&passkey.public_key)
    .bind(passkey.name.as_deref())
    .bind(passkey.use_count)
    .bind(passkey.created_at.to_string())
    .run_guarded(tx)
    .await
}

/// Lists the passkeys of a user, oldest first.
pub async fn list(connection: &mut SqlConnection, user: &User) -> Result<Vec<Passkey>, StoreError> {
    query_rows(
        "select {columns} from passkey where bucket = $1 and org_id = $2 and user_id = $3
         order by passkey_id",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .fetch_all(connection)
    .await
}

/// Returns the passkey with a credential, of any organization; who signs in knows only the credential.
pub async fn of_credential(
    connection: &mut SqlConnection,
    credential_id: &str,
) -> Result<Option<Passkey>, StoreError> {
    query_rows("select {columns} from passkey where credential_id = $1")
        .bind(credential_id)
        .fetch_optional(connection)
        .await
}

/// Notes a use.
pub async fn used(
    tx: &mut WriteTransaction,
    passkey: &Passkey,
    use_count: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    // A later use with a lower counter shows a copied device (WebAuthn, section 6.1.1).
    sqlx::query(
        "update passkey set use_count = $4, used_at = $5
         where bucket = $1 and org_id = $2 and passkey_id = $3",
    )
    .bind_org(&passkey.org)
    .bind(passkey.id.as_str())
    .bind(use_count)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Deletes one passkey of a user, or all of them. Returns how many.
pub async fn delete(
    tx: &mut WriteTransaction,
    user: &User,
    only: Option<&PasskeyId>,
) -> Result<u64, StoreError> {
    let deleted = sqlx::query(
        "delete from passkey
         where bucket = $1 and org_id = $2 and user_id = $3 and ($4 = '' or passkey_id = $4)",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(only.map_or("", PasskeyId::as_str))
    .execute(&mut **tx)
    .await?;

    Ok(deleted.rows_affected())
}

table_row! {
    Passkey of "passkey" by "passkey_id" {
        id: parsed("passkey_id", PasskeyId::parse),
        org: parsed("org_id", OrgId::parse),
        user: parsed("user_id", UserId::parse),
        credential_id: text("credential_id"),
        public_key: text("public_key"),
        name: optional_text("name"),
        use_count: number("use_count"),
        created_at: time("created_at"),
        used_at: optional_time("used_at"),
    }
}
