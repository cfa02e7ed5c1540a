//! Gauges that are computed from database rows.

use std::time::{Duration, Instant};

use crate::vault::integrity;
use holdfast_domain::clock::Timestamp;
use holdfast_platform::Core;
use holdfast_platform::log;
use holdfast_store::{self as store, StoreError, jobs};

/// Cached results of expensive checks.
#[derive(Default)]
pub struct ProbeCache {
    /// Time until which the row-count gauges count as fresh.
    pub gauges_good_until: tokio::sync::Mutex<Option<Instant>>,
    /// Time and result of the last object store probe.
    pub storage: tokio::sync::Mutex<Option<(Instant, Result<String, String>)>>,
}

/// Counting uses at most one twentieth of the time, however many rows there are.
const GAUGES_SHARE: u32 = 20;
/// Maximum age of a gauge value; bounds the interval derived from [`GAUGES_SHARE`].
const GAUGES_AGE: Duration = Duration::from_secs(600);

/// Recomputes the gauges from the database, unless they are still fresh.
pub async fn update(core: &Core, seen: &ProbeCache) -> Result<(), StoreError> {
    // Held while counting, so that concurrent scrapes wait for one count instead of
    // starting their own.
    let mut good_until = seen.gauges_good_until.lock().await;
    let began = Instant::now();
    if good_until.is_some_and(|until| began < until) {
        return Ok(());
    }

    count(core).await?;

    // The longer a count takes, the later is the next one.
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
        log::cosignatures::count(core, &head);
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
