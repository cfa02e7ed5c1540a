//! What the metrics say of rows.

use std::time::{Duration, Instant};

use crate::domain::clock::Timestamp;
use crate::service::Core;
use crate::service::vault::integrity;
use crate::store::{self, StoreError, jobs};

/// What was looked at lately and is good for a while.
#[derive(Default)]
pub struct Seen {
    /// Until when what the metrics say of rows is new enough.
    pub(crate) gauges_good_until: tokio::sync::Mutex<Option<Instant>>,
    /// What the object store could do when it was last tried.
    pub(crate) storage: tokio::sync::Mutex<Option<(Instant, Result<String, String>)>>,
}

/// Counting rows takes no more than one in so many seconds, however many rows there are.
const GAUGES_SHARE: u32 = 20;
/// The oldest that a gauge gets for that.
const GAUGES_AGE: Duration = Duration::from_secs(600);

/// Brings the gauges of the metrics up to date, if they are not good enough.
pub async fn update(core: &Core, seen: &Seen) -> Result<(), StoreError> {
    let mut good_until = seen.gauges_good_until.lock().await;
    let began = Instant::now();
    if good_until.is_some_and(|until| began < until) {
        return Ok(());
    }
    count(core).await?;
    let age = (began.elapsed() * GAUGES_SHARE).min(GAUGES_AGE);
    *good_until = Some(Instant::now() + age);
    Ok(())
}

async fn count(core: &Core) -> Result<(), StoreError> {
    let mut connection = core.store.read().await?;
    let waiting = store::log::pending_count(&mut connection).await?;
    core.metrics.ledger_pending.set(waiting);
    if let Some(head) = store::log::head(&mut connection).await? {
        core.metrics.ledger_size.set(head.size.cast_signed());
    }
    let since = core.clock.now() - integrity::PERIOD;
    let progress = store::integrity::progress(&mut connection, since).await?;
    core.metrics.integrity_total.set(progress.total);
    core.metrics.integrity_this_week.set(progress.checked);
    core.metrics.integrity_problems.set(progress.with_problems);
    let now = core.clock.now();
    let lag = |since: Option<Timestamp>| since.map_or(0, |at| now.as_seconds() - at.as_seconds());
    let counts = jobs::counts(&mut connection, now).await?;
    core.metrics.jobs_waiting.set(counts.waiting);
    core.metrics.jobs_failed.set(counts.failed);
    core.metrics.job_lag.set(lag(counts.due_since));
    let due = store::deliveries::counts(&mut connection, now).await?;
    core.metrics.webhook_due.set(due.due);
    core.metrics.webhook_lag.set(lag(due.oldest));
    let endpoints = store::webhooks::counts(&mut connection).await?;
    core.metrics.webhook_paused.set(endpoints.paused);
    core.metrics.webhook_disabled.set(endpoints.disabled);
    Ok(())
}
