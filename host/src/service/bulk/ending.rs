//! How a batch ends: by itself, without its master, or cancelled.

use std::time::Duration;

use serde_json::json;

use super::drive::{CHUNK, LEASE, LONGEST_WAIT, NO_MASTER, SHORTEST_WAIT};
use crate::components::rules::lifecycle::BatchTrigger;
use crate::domain::bulk::{Batch, BatchStatus, ItemStatus, Outcome};
use crate::domain::event::{Event, EventType};
use crate::domain::id::{BatchId, OrgId};
use crate::domain::job::Next;
use crate::service::envelopes::{self, lifecycle};
use crate::service::{Caller, Core, ServiceError};
use crate::store::{bulk, deliveries, events as event_store};

/// How long envelopes wait that the rules do not let go.
const REFUSED_WAIT: Duration = Duration::from_secs(300);

/// Without its master a batch sends nothing more: it ends as failed.
pub(super) async fn lose_master(core: &Core, batch: &Batch) -> Result<(), ServiceError> {
    tracing::error!(batch = %batch.id, "a batch's master template cannot be read any more");
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(mut batch) = bulk::lock(&mut tx, &batch.org, &batch.id).await? else {
        return Ok(());
    };
    if batch.status != BatchStatus::Running {
        return Ok(());
    }
    if let Some(master) = &mut batch.submitted {
        master.lost = true;
    }
    bulk::update(&mut tx, &batch, now).await?;
    let (from, to) = (ItemStatus::Pending, ItemStatus::Failed);
    bulk::move_items(&mut tx, &batch, from, to, Some(NO_MASTER), now).await?;
    Ok(tx.commit().await?)
}

/// Ends a batch that has no unfinished item, and tells of it: once, as one of those who
/// find it so has the row first.
pub(super) async fn finish(core: &Core, batch: &Batch) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(mut batch) = bulk::lock(&mut tx, &batch.org, &batch.id).await? else {
        return Ok(());
    };
    let counts = bulk::counts_of(&mut tx, &batch.org, &batch.id).await?;
    if batch.status != BatchStatus::Running || counts.unfinished() > 0 {
        return Ok(());
    }
    let lost = batch.submitted.as_ref().is_some_and(|master| master.lost);
    let trigger = match lost || counts.sent == 0 && counts.failed > 0 {
        true => BatchTrigger::Fail,
        false => BatchTrigger::Finish,
    };
    batch.status =
        lifecycle::next_batch_status(core, &batch.org, Some(batch.status), trigger).await?;
    batch.updated_at = now;
    bulk::update(&mut tx, &batch, now).await?;
    let data = json!({ "batch_id": batch.id, "status": batch.status, "counts": counts });
    let ended = EventType::BulkCompleted;
    let event = Event::of_organization(batch.org.clone(), ended, now, data);
    event_store::insert(&mut tx, &event).await?;
    deliveries::fan_out(&mut tx, &event).await?;
    tx.commit().await?;
    tracing::info!(batch = %batch.id, status = %batch.status, sent = counts.sent, failed = counts.failed, "a batch has ended");
    Ok(())
}

/// Ends what a cancelled batch has left: items whose worker died, and envelopes of
/// cancelled items, which nobody will send.
pub async fn tidy(core: &Core, org: &OrgId, id: &BatchId) -> Result<Next, ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let batch = bulk::get(&mut connection, org, id).await?;
    drop(connection);
    let Some(batch) = batch.filter(|batch| batch.status == BatchStatus::Cancelled) else {
        return Ok(Next::Done);
    };
    let mut tx = core.store.begin().await?;
    let forsaken = bulk::claim(&mut tx, &batch, now, LEASE, CHUNK as i64).await?;
    for item in &forsaken {
        bulk::settle(&mut tx, item, &Outcome::Cancelled).await?;
    }
    tx.commit().await?;
    let mut connection = core.store.read().await?;
    let abandoned = bulk::abandoned(&mut connection, org, id, CHUNK as i64).await?;
    let due = bulk::next_due(&mut connection, &batch).await?;
    drop(connection);
    let mut voided = 0;
    for envelope in &abandoned {
        let caller = Caller::system(org.clone());
        let reason = "Bulk send was cancelled".to_owned();
        match envelopes::void_unsent(core, &caller, envelope.as_str(), reason).await {
            Ok(()) => voided += 1,
            Err(ServiceError::Refused(refusal)) => {
                tracing::error!(%envelope, %refusal.message, "an envelope that is not sent stays");
            }
            Err(error) => return Err(error),
        }
    }
    if voided > 0 || !forsaken.is_empty() {
        return Ok(Next::Again(now));
    }
    let later = now + LONGEST_WAIT;
    Ok(match due {
        Some(at) => Next::Again(at.clamp(now + SHORTEST_WAIT, later)),
        None if abandoned.is_empty() => Next::Done,
        // Rules that do not let them go may be others later.
        None => Next::Again(now + REFUSED_WAIT),
    })
}
