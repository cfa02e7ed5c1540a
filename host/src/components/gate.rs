//! Turns: how many calls there may be at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls of a slot there may be at once: in all, and of the component of
/// one organization.
#[derive(Clone)]
pub(super) struct Gate {
    pub all: Arc<Semaphore>,
    pub of_organization: Option<Arc<Semaphore>>,
}

impl Gate {
    /// Waits for a turn, not for ever.
    pub async fn pass(
        &self,
        patience: Duration,
    ) -> Option<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)> {
        let turn = async {
            let own = match &self.of_organization {
                Some(own) => Some(own.clone().acquire_owned().await.ok()?),
                None => None,
            };
            Some((self.all.clone().acquire_owned().await.ok()?, own))
        };
        tokio::time::timeout(patience, turn).await.ok().flatten()
    }
}
