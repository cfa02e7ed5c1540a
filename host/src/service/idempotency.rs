//! Repeated requests: the same `Idempotency-Key` and body within 24 hours gives
//! the first answer again (contract, section 2).
//!
//! A request claims its key before it changes anything, and the answer is kept
//! in the transaction of the change: after a crash there is either both or
//! neither. A claim whose request never ended is taken over when its lease ends.
//! Answers are kept sealed, because some carry links that are credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::domain::id::RequestId;
use crate::domain::seal::Sealer;
use crate::service::{Caller, Core, ServiceError};
use crate::store::idempotency::{self, Kept, RequestKey};
use crate::store::{StoreError, Tx};

/// How long an answer is kept.
pub const LIFE: Duration = Duration::from_secs(24 * 3600);
/// A request that takes longer has died.
const LEASE: Duration = Duration::from_secs(180);

/// What to do with a request that names a key.
pub enum Claim {
    /// Do it, and settle the receipt.
    Go(Receipt),
    /// It was done before: status and body of the answer.
    Replay(u16, String),
}

/// The right to do a request and to keep its answer.
#[derive(Clone, Default)]
pub struct Receipt(Option<Arc<Claimed>>);

struct Claimed {
    key: RequestKey,
    claim: String,
    sealer: Arc<Sealer>,
    settled: AtomicBool,
}

/// Claims `key` for a request with this fingerprint.
pub async fn claim(
    core: &Core,
    caller: &Caller,
    key: &str,
    fingerprint: &str,
) -> Result<Claim, ServiceError> {
    let key = RequestKey {
        org: caller.org.clone(),
        actor: caller.actor.clone(),
        key: key.into(),
    };
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let kept = idempotency::get(&mut tx, &key).await?;
    let replaced = match kept {
        Some(kept) if kept.created_at + LIFE > now => {
            if let Some(known) = known(core, &key, &kept, fingerprint)? {
                return Ok(known);
            }
            if kept.lease_until > now {
                return Err(ServiceError::Conflict(
                    "A request with this Idempotency-Key is still running".into(),
                ));
            }
            Some(kept)
        }
        outdated => outdated,
    };
    let claim = RequestId::new().to_string();
    let won = idempotency::claim(
        &mut tx,
        &key,
        fingerprint,
        &claim,
        now,
        now + LEASE,
        replaced.as_ref(),
    )
    .await?;
    if !won {
        return Err(ServiceError::Conflict(
            "A request with this Idempotency-Key is still running".into(),
        ));
    }
    tx.commit().await?;
    Ok(Claim::Go(Receipt(Some(Arc::new(Claimed {
        key,
        claim,
        sealer: core.sealer.clone(),
        settled: AtomicBool::new(false),
    })))))
}

/// The kept answer; none while there is none yet.
fn known(
    core: &Core,
    key: &RequestKey,
    kept: &Kept,
    fingerprint: &str,
) -> Result<Option<Claim>, ServiceError> {
    if kept.fingerprint != fingerprint {
        return Err(ServiceError::Semantic(
            "Idempotency-Key was used for another request".into(),
        ));
    }
    let Some((status, body)) = &kept.answer else {
        return Ok(None);
    };
    let body = core
        .sealer
        .open(body, &key.key)
        .ok_or_else(|| ServiceError::Internal("a kept answer cannot be opened".into()))?;
    let status = u16::try_from(*status).unwrap_or(500);
    Ok(Some(Claim::Replay(status, body)))
}

impl Receipt {
    /// Commits a change together with the answer to it.
    async fn commit(
        &self,
        mut tx: Tx,
        status: u16,
        body: impl FnOnce() -> String,
    ) -> Result<(), StoreError> {
        let Some(claimed) = &self.0 else {
            return tx.commit().await;
        };
        let sealed = claimed.sealer.seal(&body(), &claimed.key.key);
        idempotency::settle(&mut tx, &claimed.key, &claimed.claim, status, &sealed).await?;
        tx.commit().await?;
        claimed.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Keeps an answer that came without a change of its own, if none is kept yet.
    pub async fn keep(&self, core: &Core, status: u16, body: &str) -> Result<(), StoreError> {
        match &self.0 {
            Some(claimed) if !claimed.settled.load(Ordering::Acquire) => {
                let tx = core.store.begin().await?;
                self.commit(tx, status, || body.to_owned()).await
            }
            _ => Ok(()),
        }
    }

    /// Gives the key back, so that the request can be made again.
    pub async fn release(&self, core: &Core) -> Result<(), StoreError> {
        let Some(claimed) = &self.0 else {
            return Ok(());
        };
        let mut tx = core.store.begin().await?;
        idempotency::release(&mut tx, &claimed.key, &claimed.claim).await?;
        tx.commit().await
    }
}

/// How a change is answered: made into JSON before it is committed.
pub struct Answering<T> {
    receipt: Receipt,
    status: u16,
    body: Box<dyn Fn(&T) -> Value + Send + Sync>,
}

impl<T> Answering<T> {
    /// `body` makes the whole body of the answer.
    pub fn new(
        receipt: Receipt,
        status: u16,
        body: impl Fn(&T) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self {
            receipt,
            status,
            body: Box::new(body),
        }
    }

    /// Commits the change of which `result` came.
    pub async fn commit(&self, tx: Tx, result: &T) -> Result<(), StoreError> {
        let body = || self.body(result).to_string();
        self.receipt.commit(tx, self.status, body).await
    }

    /// The body of the answer.
    pub fn body(&self, result: &T) -> Value {
        (self.body)(result)
    }
}
