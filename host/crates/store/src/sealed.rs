//! Long-lived encrypted columns, listed so that they can be sealed again with another key.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};

/// Column of sealed texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedColumn {
    /// Secrets of webhook endpoints.
    Webhook,
    /// Previous secrets of webhook endpoints, during their grace period.
    PreviousWebhook,
    /// Settings of organizations' provider instances.
    Instance,
    /// The same in change requests that are open.
    RequestedInstance,
    /// Passcodes that signers enter before a document opens.
    Passcode,
    /// Key of the fingerprints of records.
    Fingerprints,
    /// Secrets of clients at organizations' OpenID Connect issuers.
    SignOn,
    /// Tokens of open links.
    OpenLink,
    /// Passcodes that visitors of open links enter.
    OpenLinkCode,
}

impl SealedColumn {
    /// All columns.
    pub const ALL: [Self; 9] = [
        Self::Webhook,
        Self::PreviousWebhook,
        Self::Instance,
        Self::RequestedInstance,
        Self::Passcode,
        Self::Fingerprints,
        Self::SignOn,
        Self::OpenLink,
        Self::OpenLinkCode,
    ];

    /// Returns the table, its id column, the sealed column, and the expression for the instance.
    fn columns(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Webhook => ("webhook_endpoint", "endpoint_id", "secret", "''"),
            Self::PreviousWebhook => ("webhook_endpoint", "endpoint_id", "previous_secret", "''"),
            Self::Instance => (
                "component_activation",
                "activation_id",
                "config",
                "instance",
            ),
            Self::RequestedInstance => ("component_change", "change_id", "config", "instance"),
            Self::Passcode => ("signer", "envelope_id", "passcode", "''"),
            Self::Fingerprints => ("fingerprint_key", "key_id", "sealed", "''"),
            Self::SignOn => ("organization", "org_id", "sign_on_secret", "''"),
            Self::OpenLink => ("open_link", "open_link_id", "token", "''"),
            Self::OpenLinkCode => ("open_link", "open_link_id", "code", "''"),
        }
    }
}

/// Sealed text with its location.
#[derive(Clone, Debug)]
pub struct SealedText {
    bucket: i64,
    pub id: String,
    /// Empty for the installation.
    pub org: String,
    pub instance: String,
    pub sealed: String,
}

/// Returns all texts of a column, of every organization.
pub async fn list(
    connection: &mut SqlConnection,
    place: SealedColumn,
) -> Result<Vec<SealedText>, StoreError> {
    let (table, id, column, instance) = place.columns();
    // The names come from `columns`. All organizations are
    // read, because no text may stay under a replaced key.
    let text = format!(
        "select bucket, {id} as id, org_id, {instance} as instance, {column} as sealed
         from {table} where {column} is not null order by bucket, {id}"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .fetch_all(connection)
        .await?;

    rows.iter()
        .map(|row| {
            Ok(SealedText {
                bucket: row.try_get("bucket")?,
                id: row.try_get("id")?,
                org: row.try_get("org_id")?,
                instance: row.try_get("instance")?,
                sealed: row.try_get("sealed")?,
            })
        })
        .collect()
}

/// Replaces a text; returns false if it has changed since it was read.
pub async fn replace(
    tx: &mut WriteTransaction,
    place: SealedColumn,
    text: &SealedText,
    sealed: &str,
) -> Result<bool, StoreError> {
    let (table, id, column, _) = place.columns();
    let update = format!(
        "update {table} set {column} = $4 where bucket = $1 and {id} = $2 and {column} = $3"
    );
    // A secret that was replaced meanwhile is sealed with the new key already and stays.
    sqlx::query(AssertSqlSafe(update))
        .bind(text.bucket)
        .bind(&text.id)
        .bind(&text.sealed)
        .bind(sealed)
        .changes_row(tx)
        .await
}
