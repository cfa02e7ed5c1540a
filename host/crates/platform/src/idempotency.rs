//! Idempotency keys: repeating a request with the same `Idempotency-Key` and body within
//! 24 hours returns the first response (contract, section 2).
//!
//! A request claims its key before it changes anything. The response is stored in the
//! transaction of the change, so that after a crash either both exist or neither does. A
//! claim is a lease: when the request died, a repeat takes the key over once the lease
//! has expired. Stored responses are encrypted, because some carry links that are
//! credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_domain::at_rest::AtRestCipher;
use holdfast_domain::id::RequestId;
use holdfast_store::idempotency::{self, IdempotentResponse, RequestKey};
use holdfast_store::{StoreError, WriteTransaction};

/// Retention of a stored response.
pub const LIFE: Duration = Duration::from_secs(24 * 3600);
/// Lease of a claimed key. A request that takes longer is presumed dead.
const LEASE: Duration = Duration::from_secs(180);

/// Outcome of claiming an idempotency key.
pub enum IdempotencyClaim {
    /// First request with this key: run it and settle the receipt.
    Go(IdempotencyReceipt),
    /// Repeated request: status and body of the stored response.
    Replay(u16, String),
}

/// The right to run a request and to store its response. Empty for requests without a key.
#[derive(Clone, Default)]
pub struct IdempotencyReceipt(Option<Arc<ClaimedKey>>);

/// The claimed key, with the token that fences off an earlier claim.
struct ClaimedKey {
    key: RequestKey,
    claim: String,
    cipher: Arc<AtRestCipher>,
    settled: AtomicBool,
}

/// Claims `key` for a request with this fingerprint.
///
/// # Errors
/// [`ServiceError::Semantic`] when the key was used for another request,
/// [`ProblemKind::Running`] while the first request is still running.
pub async fn claim(
    core: &Core,
    caller: &Caller,
    key: &str,
    fingerprint: &str,
) -> Result<IdempotencyClaim, ServiceError> {
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
            // The first request may still run, also on another node.
            if kept.lease_until > now {
                return Err(still_running());
            }

            Some(kept)
        }
        outdated => outdated,
    };

    let claim = RequestId::new().to_string();

    // Compare-and-swap on the row read above: of several repeats that find an expired
    // claim, one takes it over.
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
        return Err(still_running());
    }

    tx.commit().await?;
    Ok(IdempotencyClaim::Go(IdempotencyReceipt(Some(Arc::new(
        ClaimedKey {
            key,
            claim,
            cipher: core.cipher.clone(),
            settled: AtomicBool::new(false),
        },
    )))))
}

fn still_running() -> ServiceError {
    let message = "A request with this Idempotency-Key is still running";
    Problem::new(ProblemKind::Running, None, message).into()
}

/// Returns the stored response, or none while the first request has not stored one.
fn known(
    core: &Core,
    key: &RequestKey,
    kept: &IdempotentResponse,
    fingerprint: &str,
) -> Result<Option<IdempotencyClaim>, ServiceError> {
    if kept.fingerprint != fingerprint {
        return Err(ServiceError::Semantic(
            "Idempotency-Key was used for another request".into(),
        ));
    }
    let Some((status, body)) = &kept.answer else {
        return Ok(None);
    };

    // The key is part of the encryption context: a response moved to another row does not open.
    let body = core
        .cipher
        .open(body, &key.key)
        .ok_or_else(|| ServiceError::Internal("a kept answer cannot be opened".into()))?;

    let status = u16::try_from(*status).unwrap_or(500);
    Ok(Some(IdempotencyClaim::Replay(status, body)))
}

impl IdempotencyReceipt {
    /// Commits a change together with its response.
    async fn commit(
        &self,
        mut tx: WriteTransaction,
        status: u16,
        body: impl FnOnce() -> String,
    ) -> Result<(), StoreError> {
        let Some(claimed) = &self.0 else {
            return tx.commit().await;
        };
        let sealed = claimed.cipher.encrypt(&body(), &claimed.key.key);
        idempotency::settle(&mut tx, &claimed.key, &claimed.claim, status, &sealed).await?;
        tx.commit().await?;
        claimed.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Stores a response that has no transaction of its own, unless one is stored already.
    pub async fn keep(&self, core: &Core, status: u16, body: &str) -> Result<(), StoreError> {
        match &self.0 {
            // A handler that committed a change has stored its response with it.
            Some(claimed) if !claimed.settled.load(Ordering::Acquire) => {
                let tx = core.store.begin().await?;
                self.commit(tx, status, || body.to_owned()).await
            }
            _ => Ok(()),
        }
    }

    /// Releases the key, so that the client can retry the request.
    pub async fn release(&self, core: &Core) -> Result<(), StoreError> {
        let Some(claimed) = &self.0 else {
            return Ok(());
        };
        let mut tx = core.store.begin().await?;
        idempotency::release(&mut tx, &claimed.key, &claimed.claim).await?;
        tx.commit().await
    }
}

/// Builds and stores the response to a change, in the transaction of the change.
pub struct ResponseRecorder<T> {
    receipt: IdempotencyReceipt,
    status: u16,
    body: Box<dyn Fn(&T) -> Value + Send + Sync>,
}

impl<T> ResponseRecorder<T> {
    /// `body` builds the whole response body from the result.
    pub fn new(
        receipt: IdempotencyReceipt,
        status: u16,
        body: impl Fn(&T) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self {
            receipt,
            status,
            body: Box::new(body),
        }
    }

    /// Returns a recorder for work that no idempotency key belongs to.
    pub fn unrecorded() -> Self {
        // With an empty receipt the change commits without a stored answer.
        Self::new(IdempotencyReceipt::default(), 200, |_| Value::Null)
    }

    /// Commits the transaction that produced `result`, with the response.
    pub async fn commit(&self, tx: WriteTransaction, result: &T) -> Result<(), StoreError> {
        let body = || self.body(result).to_string();
        self.receipt.commit(tx, self.status, body).await
    }

    /// Returns the response body for `result`.
    pub fn body(&self, result: &T) -> Value {
        (self.body)(result)
    }
}
