//! Reading open envelopes back from their providers by time: what a lost
//! callback would have told is found out all the same.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;

use crate::service::{Core, ServiceError, signing};
use crate::store::envelopes;
use crate::store::provider_poll;
use crate::store::row::OwnedEnvelope;

/// An open envelope is looked at so often, unless a setting says otherwise.
const INTERVAL: Duration = Duration::from_secs(300);
/// Envelopes taken in one round. With more than can be looked at in the interval
/// each waits longer, and none is passed over.
const BATCH: i64 = 32;
/// Of these, looked at side by side: one slow provider does not hold up all.
const AT_ONCE: usize = 4;

/// Looks at the open envelopes that were not looked at for the longest time.
///
/// Several nodes may poll at once: each envelope is taken by one.
pub async fn round(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let interval = core.config.sweep_interval.unwrap_or(INTERVAL);
    let due = provider_poll::claim(&core.store, now - interval, now, BATCH).await?;
    stream::iter(due)
        .for_each_concurrent(AT_ONCE, |due| look(core, due))
        .await;
    Ok(())
}

/// What goes wrong with one envelope is said, and tried again at its next turn.
async fn look(core: &Core, due: OwnedEnvelope) {
    let looked = async {
        let mut connection = core.store.read().await?;
        let envelope = envelopes::get(&mut connection, &due.org, &due.envelope).await?;
        drop(connection);
        let envelope = envelope.ok_or(ServiceError::NotFound("Envelope"))?;
        signing::reconcile(core, &envelope).await.map(drop)
    };
    match looked.await {
        Ok(()) => drop(core.metrics.provider_polls.inc()),
        Err(error) => {
            core.metrics.provider_polls_failed.inc();
            tracing::warn!(envelope = %due.envelope, %error, "it could not be read back from its provider");
        }
    }
}
