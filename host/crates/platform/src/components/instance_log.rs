//! Log of an organization's provider instances, for its administrators.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{InstanceLogLevel, InstanceLogLine, Slot};
use holdfast_domain::id::{LogLineId, OrgId};
use holdfast_store::{chores, instance_log};

/// Lines that are kept of an instance.
const KEPT: i64 = 1_000;
/// Time that lines are kept.
const TIME: Duration = Duration::from_secs(30 * 86_400);
const DAY: Duration = Duration::from_secs(86_400);

/// Line in the log of a provider instance.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "line_id": "log_01jt8s5gq2e6m9x4k7w3c5d8fa", "at": "2026-05-04T15:04:05.000Z", "instance": "acme",
    "level": "warn", "component": "acme-sign 1.2.0", "message": "POST api.sign.example/templates: 401 Unauthorized",
}]))]
pub struct LogLineView {
    pub line_id: LogLineId,
    pub at: Timestamp,
    /// Provider instance.
    pub instance: String,
    pub level: InstanceLogLevel,
    /// Name and version of the component.
    pub component: String,
    /// What the plugin wrote, or the request or call that failed.
    pub message: String,
}

impl From<InstanceLogLine> for LogLineView {
    fn from(line: InstanceLogLine) -> Self {
        Self {
            line_id: line.id,
            at: line.at,
            instance: line.instance,
            level: line.level,
            component: line.component,
            message: line.message,
        }
    }
}

/// Stores the lines that wait on this node. A node that is killed loses them.
pub async fn flush(core: &Core) -> Result<(), ServiceError> {
    let lines = core.instance_log.take();
    if lines.is_empty() {
        return Ok(());
    }

    let mut tx = core.store.begin().await?;
    let mut instances = BTreeMap::new();
    for line in &lines {
        instance_log::insert(&mut tx, line).await?;
        instances.insert((&line.org, line.slot.as_str(), &line.instance), line);
    }

    // Once for an instance and not for each line: it is a statement of its own.
    for line in instances.into_values() {
        instance_log::keep_newest(&mut tx, line, KEPT).await?;
    }

    Ok(tx.commit().await?)
}

/// Deletes old lines, once a day.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    // One node does it for all.
    if !chores::claim(&core.store, "instance log", now, now + DAY).await? {
        return Ok(());
    }
    let mut tx = core.store.begin().await?;
    instance_log::delete_before(&mut tx, now - TIME).await?;
    Ok(tx.commit().await?)
}

/// Lists the lines of a slot's instances, or of one of them, newest first. Those of this node are complete; other
/// nodes store theirs every few seconds.
///
/// # Errors
/// [`ServiceError::Semantic`] for rules, which write nothing.
pub async fn list(
    core: &Core,
    org: &OrgId,
    slot: Slot,
    instance: Option<&str>,
    after: Option<&LogLineId>,
    limit: i64,
) -> Result<Vec<LogLineView>, ServiceError> {
    if !slot.is_provider() {
        return Err(ServiceError::Semantic(format!(
            "{slot} has no instances that write a log"
        )));
    }

    // So that the author of a plugin sees the call of a moment ago.
    flush(core).await?;
    let mut connection = core.store.read().await?;
    let found = instance_log::list(&mut connection, org, slot, instance, after, limit).await?;
    Ok(found.into_iter().map(LogLineView::from).collect())
}
