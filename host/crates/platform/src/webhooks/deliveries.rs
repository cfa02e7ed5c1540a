//! Log of webhook deliveries, and redelivery.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::EndpointView;
use crate::idempotency::ResponseRecorder;
use crate::{Caller, Core, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{BUCKETS, DeliveryId, EndpointId, EnvelopeId, EventId};
use holdfast_domain::webhook::DeliveryStatus;
use holdfast_store::deliveries::{self, Delivery, DeliveryAttempt, DeliveryFilter, PeriodCounts};
use holdfast_store::{chores, event_feed, webhooks};

/// Maximum number of rows pruned in one transaction.
const PRUNED_AT_ONCE: i64 = 1_000;
/// Interval of pruning.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Delivery, as a row of the log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "delivery_id": "wdel_01jdk7m3e8f4x9s2w5v6b0c1dg", "endpoint_id": "whep_01jdk7m3e8f4x9s2w5v6b0c1de",
    "event_id": "evt_01jdk7m3e8f4x9s2w5v6b0c1dh", "event_type": "vault.stored",
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "status": "pending", "attempt_count": 1,
    "response_code": 503, "response_body": "down for maintenance", "error": null, "duration_ms": 84,
    "next_retry_at": "2026-11-21T09:31:03.118Z", "redelivery_of": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.091Z",
}]))]
pub struct DeliveryView {
    pub delivery_id: DeliveryId,
    pub endpoint_id: EndpointId,
    /// Unchanged across endpoints, retries and redeliveries.
    pub event_id: EventId,
    pub event_type: EventType,
    pub envelope_id: Option<EnvelopeId>,
    pub status: DeliveryStatus,
    pub attempt_count: i64,
    /// Of the last attempt, like the next four members. Null without an answer.
    pub response_code: Option<i64>,
    /// First 64 KiB. Null once pruned, and for a test.
    pub response_body: Option<String>,
    /// Reason why there is no complete answer.
    pub error: Option<String>,
    pub duration_ms: Option<i64>,
    /// Null if no retry is scheduled.
    pub next_retry_at: Option<Timestamp>,
    /// Delivery that this one repeats.
    pub redelivery_of: Option<DeliveryId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl From<&Delivery> for DeliveryView {
    fn from(delivery: &Delivery) -> Self {
        let last = delivery.last.as_ref();
        Self {
            delivery_id: delivery.id.clone(),
            endpoint_id: delivery.endpoint.clone(),
            event_id: delivery.event.clone(),
            event_type: delivery.event_type,
            envelope_id: delivery.envelope.clone(),
            status: delivery.status,
            attempt_count: delivery.attempts,
            response_code: last.and_then(|attempt| attempt.response_code),
            response_body: last.and_then(|attempt| attempt.response_body.clone()),
            error: last.and_then(|attempt| attempt.error.clone()),
            duration_ms: last.map(|attempt| attempt.duration_ms),
            next_retry_at: delivery.due_at,
            redelivery_of: delivery.redelivery_of.clone(),
            created_at: delivery.created_at,
            updated_at: delivery.updated_at,
        }
    }
}

/// Delivery with its payload and attempts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "delivery_id": "wdel_01jdk7m3e8f4x9s2w5v6b0c1dg", "endpoint_id": "whep_01jdk7m3e8f4x9s2w5v6b0c1de",
    "event_id": "evt_01jdk7m3e8f4x9s2w5v6b0c1dh", "event_type": "vault.stored",
    "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "status": "delivered", "attempt_count": 1,
    "response_code": 200, "response_body": "", "error": null, "duration_ms": 84,
    "next_retry_at": null, "redelivery_of": null,
    "created_at": "2026-11-21T09:30:00.000Z", "updated_at": "2026-11-21T09:30:00.091Z",
    "payload": { "event_type": "vault.stored", "event_id": "evt_01jdk7m3e8f4x9s2w5v6b0c1dh" },
    "attempts": [{ "attempt": 1, "at": "2026-11-21T09:30:00.007Z", "response_code": 200,
                   "response_body": "", "error": null, "duration_ms": 84 }],
}]))]
pub struct DeliveryDetails {
    #[serde(flatten)]
    pub delivery: DeliveryView,
    /// Sent payload; null once pruned.
    pub payload: Option<Value>,
    /// Oldest first.
    pub attempts: Vec<AttemptView>,
}

/// Attempt of a delivery.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AttemptView {
    /// Number of the attempt, from 1.
    pub attempt: i64,
    pub at: Timestamp,
    pub response_code: Option<i64>,
    pub response_body: Option<String>,
    pub error: Option<String>,
    pub duration_ms: i64,
}

impl From<DeliveryAttempt> for AttemptView {
    fn from(attempt: DeliveryAttempt) -> Self {
        Self {
            attempt: attempt.number,
            at: attempt.at,
            response_code: attempt.response_code,
            response_body: attempt.response_body,
            error: attempt.error,
            duration_ms: attempt.duration_ms,
        }
    }
}

/// Returns a page of an endpoint's log, newest first, and the total number. A deleted endpoint
/// keeps its log.
pub async fn list(
    core: &Core,
    caller: &Caller,
    endpoint: &str,
    filter: &DeliveryFilter,
    page: i64,
    limit: i64,
) -> Result<(Vec<DeliveryView>, i64), ServiceError> {
    let not_found = || ServiceError::NotFound("Webhook endpoint");
    let id = EndpointId::parse(endpoint).ok_or_else(not_found)?;
    let mut connection = core.store.read().await?;
    if !webhooks::was_there(&mut connection, &caller.org, &id).await? {
        return Err(not_found());
    }

    let (found, total) =
        deliveries::list(&mut connection, &caller.org, &id, filter, page, limit).await?;
    Ok((found.iter().map(DeliveryView::from).collect(), total))
}

/// Returns the numbers of deliveries to an endpoint on each of the last days (UTC) with the begin of the day, today last.
pub async fn by_day(
    core: &Core,
    caller: &Caller,
    endpoint: &str,
    days: u32,
) -> Result<Vec<(Timestamp, PeriodCounts)>, ServiceError> {
    let not_found = || ServiceError::NotFound("Webhook endpoint");
    let id = EndpointId::parse(endpoint).ok_or_else(not_found)?;
    let mut connection = core.store.read().await?;
    if !webhooks::was_there(&mut connection, &caller.org, &id).await? {
        return Err(not_found());
    }

    let mut found = Vec::new();
    for from in core.clock.now().last_days(days) {
        let counts =
            deliveries::counts_between(&mut connection, &caller.org, &id, from, from + DAY).await?;
        found.push((from, counts));
    }

    Ok(found)
}

/// Returns the caller's endpoints with the numbers of their deliveries in the last days in UTC, today with them.
pub async fn by_endpoint(
    core: &Core,
    caller: &Caller,
    days: u32,
) -> Result<Vec<(EndpointView, PeriodCounts)>, ServiceError> {
    let endpoints = super::list(core, caller, None).await?;
    let now = core.clock.now();
    let from = now.last_days(days).next().unwrap_or(now);
    let mut connection = core.store.read().await?;

    let mut found = Vec::new();
    for endpoint in endpoints {
        let id = &endpoint.endpoint_id;
        let counts =
            deliveries::counts_between(&mut connection, &caller.org, id, from, now + DAY).await?;
        found.push((endpoint, counts));
    }

    Ok(found)
}

/// Returns one delivery.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<DeliveryDetails, ServiceError> {
    let not_found = || ServiceError::NotFound("Webhook delivery");
    let id = DeliveryId::parse(id).ok_or_else(not_found)?;
    let mut connection = core.store.read().await?;
    let delivery = deliveries::get(&mut connection, &caller.org, &id)
        .await?
        .ok_or_else(not_found)?;
    let body = deliveries::body(&mut connection, &caller.org, &delivery.event).await?;

    let attempts = deliveries::attempts(&mut connection, &caller.org, &id).await?;
    Ok(DeliveryDetails {
        delivery: DeliveryView::from(&delivery),
        payload: body.and_then(|body| serde_json::from_str(&body).ok()),
        attempts: attempts.into_iter().map(AttemptView::from).collect(),
    })
}

/// Sends an event to its endpoint again, as a new delivery.
pub async fn redeliver(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<DeliveryView>,
) -> Result<DeliveryView, ServiceError> {
    let not_found = || ServiceError::NotFound("Webhook delivery");
    let id = DeliveryId::parse(id).ok_or_else(not_found)?;
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let original = deliveries::get(&mut tx, &caller.org, &id)
        .await?
        .ok_or_else(not_found)?;

    // Locked, so that the endpoint cannot be disabled before the new delivery is committed.
    let endpoint = webhooks::lock(&mut tx, &caller.org, &original.endpoint).await?;
    if !endpoint.is_some_and(|endpoint| endpoint.is_active) {
        return Err(ServiceError::Conflict(
            "Webhook endpoint is not active".into(),
        ));
    }

    let body = deliveries::body(&mut tx, &caller.org, &original.event).await?;
    if body.is_none() {
        return Err(ServiceError::Conflict(
            "The payload of this delivery is no longer kept".into(),
        ));
    }

    // A delivery of its own, with all attempts, and the same event id for receivers that have it already.
    let replay = Delivery {
        id: DeliveryId::new(),
        status: DeliveryStatus::Pending,
        attempts: 0,
        due_at: Some(now),
        redelivery_of: Some(original.id.clone()),
        created_at: now,
        updated_at: now,
        last: None,
        ..original
    };

    let shown = DeliveryView::from(&replay);
    deliveries::insert(&mut tx, replay);
    answer.commit(tx, &shown).await?;

    Ok(shown)
}

/// Gives up deliveries that no node will settle, and prunes old bodies and log rows.
pub async fn tidy(core: &Core, stop: &CancellationToken) -> Result<(), ServiceError> {
    let now = core.clock.now();
    // Their endpoint was disabled while the event was committed, so no dispatcher takes them.
    deliveries::give_up_left_behind(&core.store, now).await?;

    // One node prunes per interval.
    if !chores::claim(&core.store, "webhook bodies", now, now + PRUNE_EVERY).await? {
        return Ok(());
    }

    let before = now - core.config.webhooks.retention;
    // In pieces, so that other writers get their turn and a stop is not delayed.
    let limit = PRUNED_AT_ONCE;
    while !stop.is_cancelled()
        && deliveries::prune(&core.store, before, limit).await? >= limit.unsigned_abs()
    {}

    // Places live as long as bodies. A reader that is further behind gets 410.
    let places = async || {
        let mut tx = core.store.begin().await?;
        let forgotten = event_feed::forget(&mut tx, before, limit).await?;
        tx.commit().await.map(|()| forgotten)
    };
    while !stop.is_cancelled() && places().await? >= limit.unsigned_abs() {}

    if let Some(kept) = core.config.webhooks.log_retention {
        // Bucket by bucket, so that each statement stays on one shard.
        for bucket in 0..i64::from(BUCKETS) {
            while !stop.is_cancelled()
                && deliveries::forget(&core.store, bucket, now - kept, limit).await? > 0
            {
            }
        }
    }

    Ok(())
}
