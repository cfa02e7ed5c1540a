//! Log of organizations' provider instances.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{InstanceLogLevel, InstanceLogLine, Slot};
use holdfast_domain::id::{LogLineId, OrgId};

/// Adds a line.
pub async fn insert(tx: &mut WriteTransaction, line: &InstanceLogLine) -> Result<(), StoreError> {
    sqlx::query(
        "insert into instance_log (bucket, line_id, org_id, slot, instance, at, level, component,
             message)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_key(&line.org, line.id.as_str())
    .bind(line.org.as_str())
    .bind(line.slot.as_str())
    .bind(&line.instance)
    .bind(line.at.to_string())
    .bind(line.level.as_str())
    .bind(&line.component)
    .bind(&line.message)
    .run(tx)
    .await
}

/// Deletes the lines of an instance that are older than the newest `kept`.
pub async fn keep_newest(
    tx: &mut WriteTransaction,
    of: &InstanceLogLine,
    kept: i64,
) -> Result<(), StoreError> {
    // Plugins may log without end. With fewer lines than `kept` the subquery is null, and nothing is deleted.
    sqlx::query(
        "delete from instance_log
         where bucket = $1 and org_id = $2 and slot = $3 and instance = $4 and line_id <= (
             select line_id from instance_log
             where bucket = $1 and org_id = $2 and slot = $3 and instance = $4
             order by line_id desc limit 1 offset $5)",
    )
    .bind_org(&of.org)
    .bind(of.slot.as_str())
    .bind(&of.instance)
    .bind(kept)
    .run(tx)
    .await
}

/// Deletes the lines from before a time.
pub async fn delete_before(tx: &mut WriteTransaction, at: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from instance_log where at < $1")
        .bind(at.to_string())
        .run(tx)
        .await
}

/// Lists the lines of an organization's instances in a slot, or of one of them, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    slot: Slot,
    instance: Option<&str>,
    after: Option<&LogLineId>,
    limit: i64,
) -> Result<Vec<InstanceLogLine>, StoreError> {
    query_rows(
        "select {columns} from instance_log
         where bucket = $1 and org_id = $2 and slot = $3 and ($4 = '' or instance = $4) and line_id < $5
         order by line_id desc limit $6",
    )
    .bind_org(org)
    .bind(slot.as_str())
    .bind(instance.unwrap_or_default())
    .bind(after.map_or(LogLineId::LAST, LogLineId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    InstanceLogLine of "instance_log" by "line_id" {
        id: parsed("line_id", LogLineId::parse),
        org: parsed("org_id", OrgId::parse),
        slot: parsed("slot", Slot::parse),
        instance: text("instance"),
        at: time("at"),
        level: parsed("level", InstanceLogLevel::parse),
        component: text("component"),
        message: text("message"),
    }
}
