//! End of a batch: finished, without its master, or cancelled.

use std::time::Duration;

use serde_json::json;

use super::drive::{CHUNK, LEASE, LONGEST_WAIT, NO_MASTER, SHORTEST_WAIT};
use crate::envelopes::{self, lifecycle};
use holdfast_components::rules::lifecycle::BatchTrigger;
use holdfast_domain::bulk::{Batch, BatchStatus, ItemOutcome, ItemStatus};
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::{BatchId, OrgId};
use holdfast_domain::job::NextStep;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_store::{bulk, deliveries, events as event_store};

/// Retry interval while the rules refuse to void envelopes of a cancelled batch.
const REFUSED_WAIT: Duration = Duration::from_secs(300);

/// Records that the master template is lost and fails the pending items, so that the batch ends as
/// failed.
pub(super) async fn lose_master(core: &Core, batch: &Batch) -> Result<(), ServiceError> {
    tracing::error!(batch = %batch.id, "bulk master template cannot be read");
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(mut batch) = bulk::lock(&mut tx, &batch.org, &batch.id).await? else {
        return Ok(());
    };
    // A user may have cancelled the batch, or another lane may have ended it.
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

/// Ends a batch that has no unfinished item and emits the event. The row lock makes sure that only
/// one worker does.
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

    // A batch that has reached none of its clients counts as failed too.
    let lost = batch.submitted.as_ref().is_some_and(|master| master.lost);
    let trigger = if lost || counts.sent == 0 && counts.failed > 0 {
        BatchTrigger::Fail
    } else {
        BatchTrigger::Finish
    };
    batch.status =
        lifecycle::next_batch_status(core, &batch.org, Some(batch.status), trigger).await?;

    batch.updated_at = now;
    bulk::update(&mut tx, &batch, now).await?;
    let data = json!({ "batch_id": batch.id, "status": batch.status, "counts": counts });
    let ended = EventType::BulkCompleted;
    let event = Event::of_organization(batch.org.clone(), ended, now, data);
    event_store::insert(&mut tx, &event);
    deliveries::fan_out(&mut tx, &event).await?;

    tx.commit().await?;
    tracing::info!(batch = %batch.id, status = %batch.status, sent = counts.sent, failed = counts.failed, "bulk batch ended");
    Ok(())
}

/// Cleans up after a cancelled batch: settles items left by a dead worker, and voids envelopes of
/// cancelled items, which will never be sent.
pub async fn tidy(core: &Core, org: &OrgId, id: &BatchId) -> Result<NextStep, ServiceError> {
    let now = core.clock.now();
    let mut connection = core.store.read().await?;
    let batch = bulk::get(&mut connection, org, id).await?;
    drop(connection);

    let Some(batch) = batch.filter(|batch| batch.status == BatchStatus::Cancelled) else {
        return Ok(NextStep::Done);
    };

    let mut tx = core.store.begin().await?;

    // Pending items were cancelled with the batch, so these are the ones with an expired lease.
    let forsaken = bulk::claim(&mut tx, &batch, now, LEASE, CHUNK as i64).await?;
    for item in &forsaken {
        bulk::settle(&mut tx, item, &ItemOutcome::Cancelled).await?;
    }

    // Committed before the envelopes are voided, because each void locks its
    // envelope in a transaction of its own.
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
                tracing::error!(%envelope, %refusal.message, "unsent envelope could not be voided");
            }
            Err(error) => return Err(error),
        }
    }

    if voided > 0 || !forsaken.is_empty() {
        return Ok(NextStep::Again(now));
    }

    let later = now + LONGEST_WAIT;
    Ok(match due {
        Some(at) => NextStep::Again(at.clamp(now + SHORTEST_WAIT, later)),
        None if abandoned.is_empty() => NextStep::Done,
        // The rules may allow it after a change of component.
        None => NextStep::Again(now + REFUSED_WAIT),
    })
}
