//! Organizations.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::id::OrgId;
use holdfast_domain::organization::{OrgSettings, Organization};
use holdfast_domain::party_name;

pub async fn insert(
    connection: &mut SqlConnection,
    organization: &Organization,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into organization (bucket, org_id, name, settings, created_at)
         values ($1, $2, $3, $4, $5)",
    )
    .bind_org(&organization.id)
    .bind(&organization.name)
    .bind(json_text(&organization.settings.to_row()))
    .bind(organization.created_at.to_string())
    .run(connection)
    .await
}

/// Whether an organization has a name that looks like this one. Reads all names; the callers limit the number of questions.
pub async fn is_name_taken(connection: &mut SqlConnection, name: &str) -> Result<bool, StoreError> {
    /// Names in memory at a time.
    const NAMES: usize = 1_000;

    // No index finds names that look alike.
    let mut after = String::new();
    loop {
        let query = "select name from organization where name > $1 order by name limit $2";
        let names: Vec<String> = sqlx::query_scalar(query)
            .bind(&after)
            .bind(NAMES as i64)
            .fetch_all(&mut *connection)
            .await?;
        if names
            .iter()
            .any(|taken| party_name::look_alike(name, taken))
        {
            return Ok(true);
        }
        match names.into_iter().nth(NAMES - 1) {
            Some(last) => after = last,
            None => return Ok(false),
        }
    }
}

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Option<Organization>, StoreError> {
    query_rows("select {columns} from organization where bucket = $1 and org_id = $2")
        .bind_org(org)
        .fetch_optional(connection)
        .await
}

/// Locks the organization until the transaction ends,
/// which serializes changes that count against its quotas.
pub async fn lock(tx: &mut WriteTransaction, org: &OrgId) -> Result<(), StoreError> {
    let lock = tx.dialect.for_update();
    locked(tx, org, lock).await
}

/// Waits for those that [`lock`] the organization, and makes later ones wait. Transactions that share it do not wait for
/// each other.
pub async fn share(tx: &mut WriteTransaction, org: &OrgId) -> Result<(), StoreError> {
    let lock = tx.dialect.for_share();
    locked(tx, org, lock).await
}

async fn locked(tx: &mut WriteTransaction, org: &OrgId, lock: &str) -> Result<(), StoreError> {
    let text = format!("select org_id from organization where bucket = $1 and org_id = $2 {lock}");
    sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .fetch_optional(&mut **tx)
        .await?;

    Ok(())
}

pub async fn list(connection: &mut SqlConnection) -> Result<Vec<Organization>, StoreError> {
    query_rows("select {columns} from organization order by org_id")
        .fetch_all(connection)
        .await
}

/// Stores the settings of an organization, also for its test data.
pub async fn set_settings(
    tx: &mut WriteTransaction,
    organization: &Organization,
) -> Result<(), StoreError> {
    // Without test data the second update finds no row, which is no error.
    for one in [organization, &organization.test()] {
        sqlx::query("update organization set settings = $3 where bucket = $1 and org_id = $2")
            .bind_org(&one.id)
            .bind(json_text(&one.settings.to_row()))
            .execute(&mut **tx)
            .await?;
    }

    Ok(())
}

/// Makes a place for the test data of an organization, unless there is one. The organization is locked.
pub async fn open_test(tx: &mut WriteTransaction, org: &OrgId) -> Result<(), StoreError> {
    // Without it, two first test keys at the same moment would both insert the row, and one would fail.
    lock(tx, &org.live()).await?;
    if let Some(live) = get(tx, &org.live()).await?
        && get(tx, &org.test()).await?.is_none()
    {
        insert(tx, &live.test()).await?;
    }
    Ok(())
}

/// Stores the sealed secret of the client at the organization's issuer.
pub async fn set_sign_on_secret(
    tx: &mut WriteTransaction,
    org: &OrgId,
    sealed: Option<&str>,
) -> Result<(), StoreError> {
    // A column of its own, so that `sealed` can seal the secret again with another key.
    sqlx::query("update organization set sign_on_secret = $3 where bucket = $1 and org_id = $2")
        .bind_org(org)
        .bind(sealed)
        .run(tx)
        .await
}

/// Returns the sealed secret of the client at the organization's issuer.
pub async fn sign_on_secret(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Option<String>, StoreError> {
    let row =
        sqlx::query("select sign_on_secret from organization where bucket = $1 and org_id = $2")
            .bind_org(org)
            .fetch_optional(connection)
            .await?;

    match row {
        Some(row) => Ok(row.try_get("sign_on_secret")?),
        None => Ok(None),
    }
}

table_row! {
    Organization of "organization" by "org_id" also "settings" {
        id: parsed("org_id", OrgId::parse),
        name: text("name"),
        settings: |row| {
            let text = row.text("settings")?;
            let settings = OrgSettings::from_row(&text);
            settings.map_err(|error| row.inconsistent(format!("settings: {error}")))?
        },
        created_at: time("created_at"),
    }
}
