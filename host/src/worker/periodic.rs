//! What is due by time: expiry, use of keys, kept answers.
//!
//! Everything here may run on several nodes at once, and may be missed.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::service::{ServiceError, access, expiry, idempotency};
use crate::store;

/// Period of all periodic work, unless a setting says otherwise.
const PERIOD: Duration = Duration::from_secs(10);

/// Works until told to stop.
pub(super) async fn run(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(PERIOD);
    while !stop.is_cancelled() {
        for (what, result) in [
            ("expiry", expire(&app).await),
            ("use of keys", access::flush_key_usage(&app).await),
            ("kept answers", forget_answers(&app).await),
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
