//! Log of requests for those who integrate: caller, route and answer.
//!
//! Requests wait in memory and are stored in batches; a node that is killed loses those of the last seconds. Private
//! content leaves with [`LoggedMembers::redacted`] before it is stored.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

use crate::{Core, ServiceError};
use holdfast_domain::id::{EnvelopeId, OrgId, RequestId};
use holdfast_domain::priority::PriorityClass;
use holdfast_store::request_log::{self as rows, NewRequest};
use holdfast_store::{StoreError, WriteTransaction, chores};

pub use holdfast_domain::request_log::{LoggedMembers, LoggedRequest};
pub use holdfast_store::request_log::{ReceivedRequest, RequestSearch};

/// Most bytes of a body that is kept.
pub const BODY: usize = 16 * 1024;
/// Requests that wait before they are stored at once, and that wait at most.
const BATCH: usize = 250;
const MOST: usize = 10_000;
const DAY: Duration = Duration::from_secs(86_400);

/// Requests of this node that are not stored yet.
#[derive(Default)]
pub struct WaitingRequests {
    waiting: Mutex<Vec<ReceivedRequest>>,
}

impl WaitingRequests {
    /// Adds a request. Returns whether enough wait to be stored. While the database does not keep up, further ones
    /// are dropped.
    fn add(&self, request: ReceivedRequest) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST {
            return false;
        }
        waiting.push(request);
        waiting.len().is_multiple_of(BATCH)
    }

    fn take(&self) -> Vec<ReceivedRequest> {
        mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_empty(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.is_empty()
    }
}

/// Notes a request of an organization.
pub fn note(core: &Core, request: ReceivedRequest) {
    if core.config.request_log_days > 0 && core.request_log.add(request) {
        // Behind all other writes: the log must not delay a request.
        let core = core.at(PriorityClass::Batch);
        tokio::spawn(async move {
            if let Err(error) = flush(&core).await {
                tracing::warn!(%error, "requests could not be stored");
            }
        });
    }
}

/// An answer with the id of an envelope.
#[derive(Deserialize)]
struct AnswerWithEnvelope {
    data: DataWithEnvelope,
}

#[derive(Deserialize)]
struct DataWithEnvelope {
    envelope_id: EnvelopeId,
}

fn kept(mut received: ReceivedRequest) -> NewRequest {
    let (request, answer) = (received.request.take(), received.answer.take());
    let named = received.path.split('/').find_map(EnvelopeId::parse);
    // A create has the id in its answer only.
    let answered = || {
        let answer = serde_json::from_slice::<AnswerWithEnvelope>(answer.as_ref()?);
        Some(answer.ok()?.data.envelope_id)
    };
    let envelope = named.or_else(answered);

    let shown = |body: Option<Bytes>, members: &Option<Arc<LoggedMembers>>| {
        members.as_ref()?.redacted(&body?)
    };
    NewRequest {
        envelope,
        request: shown(request, &received.logged.0),
        answer: shown(answer, &received.logged.1),
        received,
    }
}

/// Stores the requests that wait on this node.
pub async fn flush(core: &Core) -> Result<(), ServiceError> {
    if core.request_log.is_empty() {
        return Ok(());
    }
    // Taken once the database is ready: while it is not, `MOST` bounds how many wait.
    let mut tx = core.store.committing().begin().await?;
    let mut requests: Vec<NewRequest> = core.request_log.take().into_iter().map(kept).collect();
    forget_destroyed(&mut tx, &mut requests).await?;
    rows::insert(&mut tx, &requests).await?;
    Ok(tx.commit().await?)
}

/// Empties the bodies of requests about destroyed records. The destruction emptied only the requests that were stored
/// before it; these were still waiting.
async fn forget_destroyed(
    tx: &mut WriteTransaction,
    requests: &mut [NewRequest],
) -> Result<(), StoreError> {
    let mut known: BTreeMap<(String, String), bool> = BTreeMap::new();
    for request in requests {
        let Some(envelope) = &request.envelope else {
            continue;
        };
        if request.request.is_none() && request.answer.is_none() {
            continue;
        }

        let org = &request.received.org;
        let key = (org.to_string(), envelope.to_string());
        let is_destroyed = match known.get(&key) {
            Some(is_destroyed) => *is_destroyed,
            None => rows::names_destroyed(tx, org, envelope).await?,
        };
        known.insert(key, is_destroyed);
        if is_destroyed {
            request.request = None;
            request.answer = None;
        }
    }
    Ok(())
}

/// Deletes old requests, once a day.
pub async fn forget(core: &Core) -> Result<(), ServiceError> {
    let now = core.clock.now();
    if !chores::claim(&core.store, "request log", now, now + DAY).await? {
        return Ok(());
    }
    let mut tx = core.store.begin().await?;
    let kept = DAY * core.config.request_log_days;
    rows::delete_before(&mut tx, now - kept).await?;
    Ok(tx.commit().await?)
}

/// Lists requests of an organization, newest first. Those of this node are complete; other nodes store theirs every few
/// seconds.
pub async fn list(
    core: &Core,
    org: &OrgId,
    search: &RequestSearch,
    limit: i64,
) -> Result<Vec<LoggedRequest>, ServiceError> {
    // So that callers see their request of a moment ago.
    flush(core).await?;
    let mut connection = core.store.read().await?;
    Ok(rows::list(&mut connection, org, search, limit).await?)
}

/// Returns a request by its id.
pub async fn get(core: &Core, org: &OrgId, id: &str) -> Result<LoggedRequest, ServiceError> {
    let unknown = ServiceError::NotFound("Request");
    let Some(id) = RequestId::parse(id) else {
        return Err(unknown);
    };

    let search = RequestSearch {
        id: Some(id),
        ..RequestSearch::default()
    };
    let found = list(core, org, &search, 1).await?;
    found.into_iter().next().ok_or(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::clock::Timestamp;

    #[test]
    fn further_requests_are_dropped_while_the_database_does_not_keep_up() {
        let waiting = WaitingRequests::default();
        let request = || ReceivedRequest {
            id: RequestId::new(),
            org: OrgId::new(),
            at: Timestamp::from_millis(0),
            method: "GET".into(),
            route: "/api/v2/partner/envelopes".into(),
            path: "/api/v2/partner/envelopes".into(),
            status: 200,
            credential: None,
            duration: Duration::ZERO,
            request: None,
            answer: None,
            logged: (None, None),
        };

        let stored = (0..MOST + 3).filter(|_| waiting.add(request())).count();
        assert_eq!(stored, MOST / BATCH);
        assert_eq!(waiting.take().len(), MOST);
        assert!(waiting.is_empty());
    }
}
