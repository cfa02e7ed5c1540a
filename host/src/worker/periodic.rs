//! Periodic tasks: expiry, last use of keys, idempotent answers, the sealing key, integrity of the
//! vault, and polling of providers.
//!
//! Every task may run on several nodes at once, and may be skipped.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::node::NodeRun;
use holdfast_domain::organization::Organization;
use holdfast_domain::priority::PriorityClass;
use holdfast_platform::components::{changes, decisions, instance_log};
use holdfast_platform::webhooks::deliveries;
use holdfast_platform::{
    ServiceError, access, idempotency, kba, link_hosts, payments, request_log,
};
use holdfast_service::control::transfers;
use holdfast_service::retention::store_holds;
use holdfast_service::signing::drawings;
use holdfast_service::signing::expiry;
use holdfast_service::signing::provider_poll;
use holdfast_service::vault::{integrity, long_term, orphans};
use holdfast_service::{App, installation, retention, tapes, test_mode};
use holdfast_store as store;

/// Interval of periodic tasks, unless configured.
const PERIOD: Duration = Duration::from_secs(10);

/// Time for which the sizes of a document's pages are kept; then they are read again.
const PAGES: Duration = Duration::from_secs(180 * 86_400);

const DAY: Duration = Duration::from_secs(86_400);
/// Interval at which the numbers of envelopes are checked.
const COUNTING: Duration = Duration::from_secs(6 * 3600);
/// Remaining validity of the sealing certificate below which a daily warning is logged.
const SEAL_WARNING: Duration = Duration::from_secs(30 * 86_400);

/// Runs short tasks until `stop` is cancelled.
pub(super) async fn run(app: App, node: Arc<NodeRun>, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        let sign = installation::note_node(&app, node.name()).await;
        // Its reads would show what the new database no longer has.
        if sign.is_err() && matches!(store::moves::unsettled(&app.store).await, Ok(Some(_))) {
            tracing::error!("the installation was moved to another database, stopping");
            app.stopping.cancel();
            return;
        }

        for (what, result) in [
            ("sign of life", sign),
            ("expiry", expire(&app).await),
            (
                "use of keys",
                access::flush_key_usage(&app, &app.access).await,
            ),
            ("kept answers", forget_answers(&app).await),
            ("revoked tokens", access::forget_revoked(&app).await),
            ("ended sessions", access::sessions::forget(&app).await),
            ("expired changes", changes::forget_expired(&app).await),
            ("logs of instances", instance_log::flush(&app).await),
            ("old logs of instances", instance_log::forget(&app).await),
            ("request log", request_log::flush(&app).await),
            ("old requests", request_log::forget(&app).await),
            ("old messages of tests", test_mode::forget(&app).await),
            ("sealing key", check_seal(&app).await),
            ("identity questions", kba::forget(&app).await),
            ("addresses for drawings", drawings::forget(&app).await),
            ("transfers", transfers::expire(&app).await),
            (
                "old tapes",
                tapes::removal::forget(&app.at(PriorityClass::Batch)).await,
            ),
            (
                "blocks of decisions",
                decisions::record_when_due(&app.at(PriorityClass::Batch)).await,
            ),
        ] {
            // The tasks are independent, so a failure is logged and the next round tries again.
            if let Err(error) = result {
                tracing::error!(what, %error, "periodic work failed");
            }
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// Verifies the vault, removes orphaned objects, proposes records that are due, lets the object store follow legal holds and
/// checks hosts of signing links. These tasks are slow, so they have a loop of their own.
pub(super) async fn sweep(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        let looked = match integrity::sweep(&app).await {
            Ok(looked) => looked.len(),
            Err(error) => {
                tracing::error!(%error, "vault could not be re-read");
                0
            }
        };

        // With the priority of a batch: deleting old rows must not slow requests.
        if let Err(error) = deliveries::tidy(&app.at(PriorityClass::Batch), &stop).await {
            tracing::error!(%error, "webhook log could not be pruned");
        }

        if let Err(error) = orphans::sweep_when_due(&app, &app.vault).await {
            tracing::error!(%error, "orphaned objects could not be searched");
        }

        if let Err(error) = retention::propose_when_due(&app.at(PriorityClass::Batch)).await {
            tracing::error!(%error, "records that are due could not be proposed");
        }

        if let Err(error) = store_holds::queue_when_due(&app).await {
            tracing::error!(%error, "new objects of held records could not be searched");
        }

        if let Err(error) = link_hosts::check_when_due(&app, &stop).await {
            tracing::error!(%error, "hosts of signing links could not be checked");
        }

        if let Err(error) = check_counts(&app, &stop).await {
            tracing::error!(%error, "numbers of envelopes could not be checked");
        }

        // More files may be due, so the next round follows without a pause.
        if looked > 0 {
            continue;
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// Keeps seals provable. Authorities and the places of revocation data may be slow, so this has a loop of its own.
pub(super) async fn seals(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    let app = app.at(PriorityClass::Batch);
    while !stop.is_cancelled() {
        let swept = tokio::select! {
            swept = long_term::sweep(&app, &app.vault) => swept,
            // Others may let a round wait for minutes. Unfinished work is due again when its lease ends.
            () = stop.cancelled() => return,
        };
        match swept {
            // More seals may be due, so the next round follows without a pause.
            Ok(worked_on) if worked_on > 0 => continue,
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "due seals could not be found"),
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// Polls providers for open envelopes and payments. A provider may be slow, so this too has a loop
/// of its own.
pub(super) async fn poll(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        if let Err(error) = provider_poll::round(&app).await {
            tracing::error!(%error, "open envelopes could not be polled");
        }

        if let Err(error) = payments::round(&app).await {
            tracing::error!(%error, "open payments could not be polled");
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// Once a day, warns about a sealing certificate that expires soon and fails for an expired one,
/// with which nothing can be sealed.
async fn check_seal(app: &App) -> Result<(), ServiceError> {
    let now = app.clock.now();
    // One node a day is enough.
    if !store::chores::claim(&app.store, "seal", now, now + DAY).await? {
        return Ok(());
    }

    app.vault.sealing.check(now)?;
    if app.vault.sealing.check(now + SEAL_WARNING).is_err() {
        let ends = app.vault.sealing.expires_at();
        tracing::warn!(%ends, "sealing certificate expires soon");
    }

    Ok(())
}

/// Counts the envelopes of every organization now and then, and corrects the numbers that lists show.
async fn check_counts(app: &App, stop: &CancellationToken) -> Result<(), ServiceError> {
    let now = app.clock.now();
    if !store::chores::claim(&app.store, "counts", now, now + COUNTING).await? {
        return Ok(());
    }

    let batch = app.store.at(PriorityClass::Batch);
    let organizations = store::organizations::list(&mut *batch.read().await?).await?;
    // One organization at a time, so a shutdown need not wait for all of them.
    for Organization { id, .. } in organizations {
        if stop.is_cancelled() {
            break;
        }

        match store::counts::check(&batch, &id).await {
            Ok(wrong) if wrong.is_empty() => {}
            Ok(wrong) => tracing::warn!(org = %id, ?wrong, "numbers of envelopes corrected"),
            Err(error) => tracing::error!(org = %id, %error, "envelopes could not be counted"),
        }
    }

    Ok(())
}

async fn expire(app: &App) -> Result<(), ServiceError> {
    let expired = expiry::sweep(app, None).await?;
    app.metrics.expired.inc_by(expired as u64);
    Ok(())
}

async fn forget_answers(app: &App) -> Result<(), ServiceError> {
    let mut tx = app.store.begin().await?;
    let now = app.clock.now();
    // Past this age a repeated request counts as a new one, as documented for the API.
    store::idempotency::forget(&mut tx, now - idempotency::LIFE).await?;
    store::page_facts::forget(&mut tx, now - PAGES).await?;
    Ok(tx.commit().await?)
}
