//! Pages of documents by the document's hash, as one component read them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::AnyConnection;

use super::row::{RowColumns, json_text};
use super::{StoreError, WriteTransaction};
use crate::domain::id::OrgId;

/// Keeps the pages of a document, instead of what another component read.
pub async fn keep(
    tx: &mut WriteTransaction,
    org: &OrgId,
    sha256: &str,
    component: &str,
    pages: &impl Serialize,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into page_facts (bucket, org_id, sha256, component, pages)
         values ($1, $2, $3, $4, $5)
         on conflict (bucket, org_id, sha256)
         do update set component = excluded.component, pages = excluded.pages",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(sha256)
    .bind(component)
    .bind(json_text(pages))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns the pages of a document as this component read them.
pub async fn get<T: DeserializeOwned>(
    connection: &mut AnyConnection,
    org: &OrgId,
    sha256: &str,
    component: &str,
) -> Result<Option<T>, StoreError> {
    let row = sqlx::query(
        "select pages from page_facts
         where bucket = $1 and org_id = $2 and sha256 = $3 and component = $4",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(sha256)
    .bind(component)
    .fetch_optional(connection)
    .await?;
    let columns = |row| RowColumns {
        row,
        table: "page_facts",
        id: "sha256",
    };
    row.map(|row| columns(&row).json("pages")).transpose()
}
