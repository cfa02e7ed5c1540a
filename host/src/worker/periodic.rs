//! What is due by time: expiry, use of keys, kept answers, the sealing key, and
//! looking after what is in the vault and what is open at providers.
//!
//! Everything here may run on several nodes at once, and may be missed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::priority::Priority;
use crate::service::envelopes::expiry;
use crate::service::signing::provider_poll;
use crate::service::vault::{integrity, orphans};
use crate::service::webhooks::deliveries;
use crate::service::{App, ServiceError, access, idempotency, kba, payments};
use crate::store;

/// Period of all periodic work, unless a setting says otherwise.
const PERIOD: Duration = Duration::from_secs(10);

const DAY: Duration = Duration::from_secs(86_400);
/// A sealing key that ends sooner is said each day.
const SEAL_WARNING: Duration = Duration::from_secs(30 * 86_400);

/// Works until told to stop.
pub(super) async fn run(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        for (what, result) in [
            ("expiry", expire(&app).await),
            (
                "use of keys",
                access::flush_key_usage(&app, &app.access).await,
            ),
            ("kept answers", forget_answers(&app).await),
            ("revoked tokens", access::forget_revoked(&app).await),
            ("sealing key", check_seal(&app).await),
            ("identity questions", kba::forget(&app).await),
        ] {
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

/// Re-reads what is in the vault, and looks for bytes that nobody needs: slow
/// work, beside everything else.
pub(super) async fn sweep(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        let looked = match integrity::sweep(&app).await {
            Ok(looked) => looked.len(),
            Err(error) => {
                tracing::error!(%error, "the vault could not be re-read");
                0
            }
        };
        if let Err(error) = deliveries::tidy(&app.at(Priority::Batch), &stop).await {
            tracing::error!(%error, "webhooks could not be tidied up");
        }
        if let Err(error) = orphans::sweep_when_due(&app, &app.vault).await {
            tracing::error!(%error, "orphaned objects could not be looked for");
        }
        if looked > 0 {
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// Reads open envelopes back from their providers: a provider may take its time,
/// so this too is beside everything else.
pub(super) async fn poll(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        if let Err(error) = provider_poll::round(&app).await {
            tracing::error!(%error, "no envelope could be chosen to be read back");
        }
        if let Err(error) = payments::round(&app).await {
            tracing::error!(%error, "no payment could be chosen to be read back");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// A key that is about to end is said each day, and one that has ended each day
/// again: nothing is sealed with it.
async fn check_seal(app: &App) -> Result<(), ServiceError> {
    let now = app.clock.now();
    if !store::chores::claim(&app.store, "seal", now, now + DAY).await? {
        return Ok(());
    }
    app.vault.sealing.check(now)?;
    if app.vault.sealing.check(now + SEAL_WARNING).is_err() {
        let ends = app.vault.sealing.expires_at();
        tracing::warn!(%ends, "the sealing key's certificate ends soon");
    }
    Ok(())
}

async fn expire(app: &App) -> Result<(), ServiceError> {
    let expired = expiry::sweep(app).await?;
    app.metrics.expired.inc_by(expired as u64);
    Ok(())
}

async fn forget_answers(app: &App) -> Result<(), ServiceError> {
    let mut tx = app.store.begin().await?;
    store::idempotency::forget(&mut tx, app.clock.now() - idempotency::LIFE).await?;
    Ok(tx.commit().await?)
}
