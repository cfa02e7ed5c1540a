//! Pages of documents by the document's hash, as one component read them.

use crate::SqlConnection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;

use super::row::json_text;
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::id::OrgId;

/// Names the component that read a document.
pub fn reader(identity: &ComponentIdentity) -> String {
    format!("{identity} {}", identity.sha256)
}

/// Keeps the pages of a document, instead of what another component read.
pub async fn keep(
    tx: &mut WriteTransaction,
    org: &OrgId,
    sha256: &str,
    component: &str,
    pages: &[impl Serialize],
    now: Timestamp,
) -> Result<(), StoreError> {
    // One row per document: after another component was activated, the old facts have no use.
    sqlx::query(
        "insert into page_facts (bucket, org_id, sha256, component, pages, kept_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, org_id, sha256)
         do update set component = excluded.component, pages = excluded.pages,
             kept_at = excluded.kept_at",
    )
    .bind_org(org)
    .bind(sha256)
    .bind(component)
    .bind(json_text(&pages))
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns the pages of a document as this component read them; none if they cannot be decoded.
pub async fn get<T: DeserializeOwned>(
    connection: &mut SqlConnection,
    org: &OrgId,
    sha256: &str,
    component: &str,
) -> Result<Option<T>, StoreError> {
    let row = sqlx::query(
        "select pages from page_facts
         where bucket = $1 and org_id = $2 and sha256 = $3 and component = $4",
    )
    .bind_org(org)
    .bind(sha256)
    .bind(component)
    .fetch_optional(connection)
    .await?;

    let text: Option<String> = row.map(|row| row.try_get("pages")).transpose()?;

    // A size that is no number, or pages of another version: they are read again.
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Deletes the rows that were kept before `before`.
pub async fn forget(connection: &mut SqlConnection, before: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from page_facts where kept_at < $1")
        .bind(before.to_string())
        .run(connection)
        .await
}
