//! Fact maps of organizations, and their versions.

use crate::SqlConnection;

use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::fact_map::FactMap;
use holdfast_domain::id::{FactMapId, OrgId};

/// Inserts a map with its first version.
pub async fn insert(tx: &mut WriteTransaction, map: &FactMap) -> Result<(), StoreError> {
    sqlx::query(
        "insert into fact_map (bucket, fact_map_id, org_id, version, document, made_by, created_at,
             updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_key(&map.org, map.id.as_str())
    .bind(map.org.as_str())
    .bind(i64::from(map.version))
    .bind(json_text(&map.document))
    .bind(&map.made_by)
    .bind(map.created_at.to_string())
    .bind(map.updated_at.to_string())
    .run(tx)
    .await?;

    insert_version(tx, map).await
}

/// Adds a version, expecting the one before it (compare-and-swap).
pub async fn replace(tx: &mut WriteTransaction, map: &FactMap) -> Result<(), StoreError> {
    sqlx::query(
        "update fact_map set version = $3, document = $4, made_by = $5, updated_at = $6
         where bucket = $1 and fact_map_id = $2 and version = $7 and deleted_at is null",
    )
    .bind_key(&map.org, map.id.as_str())
    .bind(i64::from(map.version))
    .bind(json_text(&map.document))
    .bind(&map.made_by)
    .bind(map.updated_at.to_string())
    .bind(i64::from(map.version) - 1)
    .run_guarded(tx)
    .await?;

    insert_version(tx, map).await
}

async fn insert_version(tx: &mut WriteTransaction, map: &FactMap) -> Result<(), StoreError> {
    sqlx::query(
        "insert into fact_map_version (bucket, fact_map_id, version, org_id, document, made_by, made_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind_key(&map.org, map.id.as_str())
    .bind(i64::from(map.version))
    .bind(map.org.as_str())
    .bind(json_text(&map.document))
    .bind(&map.made_by)
    .bind(map.updated_at.to_string())
    .run(tx)
    .await
}

/// Deletes a map. Its versions stay, because the facts of contracts name them.
pub async fn delete(
    tx: &mut WriteTransaction,
    map: &FactMap,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update fact_map set deleted_at = $3
         where bucket = $1 and fact_map_id = $2 and deleted_at is null",
    )
    .bind_key(&map.org, map.id.as_str())
    .bind(now.to_string())
    .run_guarded(tx)
    .await
}

/// Returns the present version of a map that is not deleted.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &FactMapId,
) -> Result<Option<FactMap>, StoreError> {
    query_rows(
        "select {columns} from fact_map
         where bucket = $1 and org_id = $2 and fact_map_id = $3 and deleted_at is null",
    )
    .bind_org(org)
    .bind(id.as_str())
    .fetch_optional(connection)
    .await
}

/// Returns a version of a map, also of a deleted one.
pub async fn version(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &FactMapId,
    version: u32,
) -> Result<Option<FactMap>, StoreError> {
    query_rows(
        "select fact_map_id, org_id, version, document, made_by, made_at as created_at,
             made_at as updated_at
         from fact_map_version
         where bucket = $1 and org_id = $2 and fact_map_id = $3 and version = $4",
    )
    .bind_org(org)
    .bind(id.as_str())
    .bind(i64::from(version))
    .fetch_optional(connection)
    .await
}

/// Returns the versions of a map, newest first.
pub async fn versions(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &FactMapId,
    limit: i64,
) -> Result<Vec<FactMap>, StoreError> {
    query_rows(
        "select fact_map_id, org_id, version, document, made_by, made_at as created_at,
             made_at as updated_at
         from fact_map_version
         where bucket = $1 and org_id = $2 and fact_map_id = $3
         order by version desc limit $4",
    )
    .bind_org(org)
    .bind(id.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns the maps of an organization, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    limit: i64,
) -> Result<Vec<FactMap>, StoreError> {
    query_rows(
        "select {columns} from fact_map where bucket = $1 and org_id = $2 and deleted_at is null
         order by fact_map_id desc limit $3",
    )
    .bind_org(org)
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    FactMap of "fact_map" by "fact_map_id" also "version" {
        id: parsed("fact_map_id", FactMapId::parse),
        org: parsed("org_id", OrgId::parse),
        version: |row| u32::try_from(row.number("version")?).unwrap_or_default(),
        document: json("document"),
        made_by: text("made_by"),
        created_at: time("created_at"),
        updated_at: time("updated_at"),
    }
}
