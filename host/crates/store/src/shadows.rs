//! Shadow runs: candidate components evaluated beside the active ones, and the differences found.

use crate::SqlConnection;
use serde_json::Value;

use super::row::{RowColumns, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::id::{ComponentId, OrgId, ShadowId};

/// Candidate evaluated beside an organization's active component.
#[derive(Clone, Debug)]
pub struct ShadowRun {
    pub id: ShadowId,
    pub org: OrgId,
    pub slot: Slot,
    pub component: ComponentId,
    pub sha256: String,
    pub started_by: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub counts: ShadowCounts,
}

/// Numbers of comparisons by result.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShadowCounts {
    pub compared: i64,
    pub differing: i64,
    pub failed: i64,
    pub left_out: i64,
}

pub async fn insert(tx: &mut WriteTransaction, shadow: &ShadowRun) -> Result<(), StoreError> {
    sqlx::query(
        "insert into component_shadow (bucket, shadow_id, org_id, slot, component_id, sha256,
             started_by, started_at, compared, differing, failed, left_out)
         values ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0)",
    )
    .bind_key(&shadow.org, shadow.id.as_str())
    .bind(shadow.org.as_str())
    .bind(shadow.slot.as_str())
    .bind(shadow.component.as_str())
    .bind(&shadow.sha256)
    .bind(&shadow.started_by)
    .bind(shadow.started_at.to_string())
    .run(tx)
    .await
}

/// Ends the running shadow; returns false if there is none.
pub async fn end(
    tx: &mut WriteTransaction,
    org: &OrgId,
    slot: Slot,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "update component_shadow set ended_at = $4
         where bucket = $1 and org_id = $2 and slot = $3 and ended_at is null",
    )
    .bind_org(org)
    .bind(slot.as_str())
    .bind(now.to_string())
    .execute(&mut **tx)
    .await?;

    Ok(done.rows_affected() > 0)
}

/// Returns the running shadows of all organizations.
pub async fn running(connection: &mut SqlConnection) -> Result<Vec<ShadowRun>, StoreError> {
    // Any node may answer a request that has to be compared, so each node runs all of them.
    query_rows("select {columns} from component_shadow where ended_at is null order by shadow_id")
        .fetch_all(connection)
        .await
}

/// Returns the latest shadow of a slot.
pub async fn last(
    connection: &mut SqlConnection,
    org: &OrgId,
    slot: Slot,
) -> Result<Option<ShadowRun>, StoreError> {
    // An ended one counts, so that its result can be read afterwards.
    query_rows(
        "select {columns} from component_shadow where bucket = $1 and org_id = $2 and slot = $3
         order by shadow_id desc limit 1",
    )
    .bind_org(org)
    .bind(slot.as_str())
    .fetch_optional(connection)
    .await
}

/// Adds to the shadow's counts.
pub async fn count(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &ShadowId,
    more: &ShadowCounts,
) -> Result<(), StoreError> {
    // Added in SQL, because several nodes count for one shadow.
    sqlx::query(
        "update component_shadow set compared = compared + $4, differing = differing + $5,
             failed = failed + $6, left_out = left_out + $7
         where bucket = $1 and org_id = $2 and shadow_id = $3",
    )
    .bind_org(org)
    .bind(id.as_str())
    .bind(more.compared)
    .bind(more.differing)
    .bind(more.failed)
    .bind(more.left_out)
    .run(tx)
    .await
}

/// Records a difference unless `most` are recorded already.
/// Only the first one per record and check is kept.
pub async fn insert_difference(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &ShadowId,
    found: (&str, &str, &Value, &Value),
    most: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (record, what, before, after) = found;
    // Counted without a lock: two nodes may exceed the limit by a few rows, which harms nothing.
    sqlx::query(
        "insert into component_difference (bucket, shadow_id, org_id, record_id, what,
             before_value, after_value, at)
         select $1, $2, $9, $3, $4, $5, $6, $7
         where (select count(*) from component_difference where bucket = $1 and shadow_id = $2) < $8
         on conflict (bucket, shadow_id, record_id, what) do nothing",
    )
    .bind_key(org, id.as_str())
    .bind(record)
    .bind(what)
    .bind(json_text(before))
    .bind(json_text(after))
    .bind(now.to_string())
    .bind(most)
    .bind(org.as_str())
    .run(tx)
    .await
}

/// Returns record, check, and both results of each difference, latest first.
pub async fn differences(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &ShadowId,
    limit: i64,
) -> Result<Vec<(String, String, Value, Value)>, StoreError> {
    sqlx::query(
        "select record_id, what, before_value, after_value from component_difference
         where bucket = $1 and shadow_id = $2 and org_id = $3
         order by at desc, record_id, what limit $4",
    )
    .bind_key(org, id.as_str())
    .bind(org.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await?
    .iter()
    .map(|row| {
        let columns = RowColumns::of(row, "component_difference", "record_id");
        Ok((
            columns.text("record_id")?,
            columns.text("what")?,
            columns.json("before_value")?,
            columns.json("after_value")?,
        ))
    })
    .collect()
}

table_row! {
    ShadowRun of "component_shadow" by "shadow_id" also "compared", "differing", "failed", "left_out" {
        id: parsed("shadow_id", ShadowId::parse),
        org: parsed("org_id", OrgId::parse),
        slot: parsed("slot", Slot::parse),
        component: parsed("component_id", ComponentId::parse),
        sha256: text("sha256"),
        started_by: text("started_by"),
        started_at: time("started_at"),
        ended_at: optional_time("ended_at"),
        counts: |row| ShadowCounts {
            compared: row.number("compared")?,
            differing: row.number("differing")?,
            failed: row.number("failed")?,
            left_out: row.number("left_out")?,
        },
    }
}
