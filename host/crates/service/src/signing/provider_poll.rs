//! Polling of open envelopes at their signing providers, so that a lost callback is only a
//! delay.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;

use crate::signing;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::envelopes;
use holdfast_store::provider_poll;
use holdfast_store::row::OwnedEnvelope;

/// Default interval at which an open envelope is polled.
const INTERVAL: Duration = Duration::from_secs(300);
/// Number of envelopes claimed in one round. With more than fit into the interval, each
/// waits longer and none is skipped.
const BATCH: i64 = 32;
/// Number of claimed envelopes polled concurrently, so that one slow provider does not
/// block the round.
const AT_ONCE: usize = 4;

/// Polls the open envelopes that were unchecked the longest.
///
/// Several nodes may poll at the same time: each envelope is claimed by one.
pub async fn round(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let interval = core.config.sweep_interval.unwrap_or(INTERVAL);
    let due = provider_poll::claim(&core.store, now - interval, now, BATCH).await?;
    stream::iter(due)
        .for_each_concurrent(AT_ONCE, |due| look(core, due))
        .await;
    Ok(())
}

/// Polls one envelope. A failure is logged and retried at its next turn.
async fn look(core: &Core, due: OwnedEnvelope) {
    let looked = async {
        let mut connection = core.store.read().await?;
        let envelope = envelopes::get(&mut connection, &due.org, &due.envelope).await?;
        // The provider may answer slowly, so the connection returns to the pool first.
        drop(connection);
        let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
        signing::reconcile(core, &envelope).await.map(drop)
    };

    match looked.await {
        Ok(()) => drop(core.metrics.provider_polls.inc()),
        Err(error) => {
            core.metrics.provider_polls_failed.inc();
            tracing::warn!(envelope = %due.envelope, %error, "envelope could not be read back from its signing provider");
        }
    }
}
