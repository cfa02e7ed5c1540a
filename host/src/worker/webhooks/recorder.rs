//! Recorder of attempts' results.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;

use super::DispatcherEvent;
use super::lane::{AttemptResult, DisableRequest};
use holdfast_platform::{mails, webhooks as webhook_service};
use holdfast_service::App;
use holdfast_store::{StoreError, deliveries, webhooks};

/// Maximum number of results in one transaction.
const BATCH: usize = 128;
/// Pause after a failed transaction.
const AGAIN: Duration = Duration::from_millis(200);
/// Maximum number of tries once this node has to stop.
const LAST_TRIES: u32 = 10;

/// Records results, batching all that arrive during the previous transaction. Deliveries without a
/// recorded result when this node stops are attempted again.
pub(super) async fn record(
    app: App,
    mut verdicts: UnboundedReceiver<AttemptResult>,
    reports: UnboundedSender<DispatcherEvent>,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while verdicts.recv_many(&mut batch, BATCH).await > 0 {
        let mut tries = 0;
        while let Err(error) = record_all(&app, &batch).await {
            tracing::error!(%error, "webhook delivery results could not be recorded");
            tries += 1;
            if stop.is_cancelled() && tries >= LAST_TRIES {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }

        // After the results are stored: an admin who sees the disabled endpoint finds the attempt behind it.
        let mut disabled = HashSet::new();
        for verdict in &batch {
            let endpoint = &verdict.settlement.at;
            if let Some(disable) = &verdict.disable
                && disabled.insert(endpoint)
            {
                // A task of its own, because the next results must not wait for a further transaction.
                tokio::spawn(disable_endpoint(app.clone(), disable.clone()));
            }
        }

        let recorded = DispatcherEvent::Recorded(std::mem::take(&mut batch));
        if reports.send(recorded).is_err() {
            return;
        }
    }
}

async fn disable_endpoint(app: App, disable: DisableRequest) {
    let id = disable.endpoint.endpoint.clone();
    let DisableRequest {
        endpoint,
        url,
        reason,
    } = disable;
    if let Err(error) = webhook_service::disable(&app, &endpoint, &url, reason).await {
        // The next failure requests it again.
        tracing::error!(endpoint = %id, %error, "webhook endpoint could not be disabled");
    }
}

async fn record_all(app: &App, verdicts: &[AttemptResult]) -> Result<(), StoreError> {
    // A lane stops after sixteen unrecorded attempts, so a queue of other writers would stall deliveries.
    let mut tx = app.store.begin_urgently().await?;
    let settlements: Vec<_> = verdicts
        .iter()
        .map(|verdict| verdict.settlement.clone())
        .collect();

    // Endpoints before their deliveries, and in one order everywhere, to avoid deadlocks.
    let endpoints = settlements.iter().map(|settlement| settlement.at.clone());
    webhooks::lock_all(&mut tx, &endpoints.collect()).await?;
    deliveries::settle(&mut tx, &settlements).await?;

    for verdict in verdicts {
        let Some(health) = &verdict.health else {
            continue;
        };

        let settlement = &verdict.settlement;
        let (at, epoch, url) = (&settlement.at, settlement.epoch, &verdict.target.url);
        webhooks::note_health(&mut tx, at, epoch, url, health).await?;

        if verdict.warn {
            let now = app.clock.now();
            mails::endpoint_failing(&mut tx, &at.org, &at.endpoint, now).await?;
        }
    }

    tx.commit().await
}
