//! Webhook deliveries: committed with their event, settled in batches.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::SqlConnection;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row as _};

use super::outbox::Subscriptions;
use super::page::PagedQuery;
use super::row::{RowColumns, TableRow, query_rows, table_row};
use super::statement::RunStatement as _;
use super::webhooks::OwnedEndpoint;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::{DeliveryId, EndpointId, EnvelopeId, EventId, OrgId};
use holdfast_domain::webhook::AttemptOutcome;
use holdfast_domain::webhook::{DeliveryStatus, Endpoint, EventSelector};

/// Delivery with its last attempt.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub id: DeliveryId,
    pub org: OrgId,
    pub endpoint: EndpointId,
    pub event: EventId,
    pub event_type: EventType,
    pub envelope: Option<EnvelopeId>,
    pub status: DeliveryStatus,
    pub attempts: i64,
    /// Time of the next attempt.
    pub due_at: Option<Timestamp>,
    pub redelivery_of: Option<DeliveryId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Last attempt, if there was one.
    pub last: Option<DeliveryAttempt>,
}

/// One attempt of a delivery.
#[derive(Clone, Debug)]
pub struct DeliveryAttempt {
    /// Number of the attempt, starting at 1.
    pub number: i64,
    pub at: Timestamp,
    pub response_code: Option<i64>,
    pub response_body: Option<String>,
    pub error: Option<String>,
    pub duration_ms: i64,
}

impl DeliveryAttempt {
    /// Builds the record of attempt `number`, which began at `at`.
    pub fn of(number: i64, at: Timestamp, outcome: AttemptOutcome) -> Self {
        Self {
            number,
            at,
            response_code: outcome.status.map(i64::from),
            response_body: outcome.body,
            error: outcome.error,
            duration_ms: i64::try_from(outcome.duration.as_millis()).unwrap_or(i64::MAX),
        }
    }
}

/// Criteria of a list of deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    pub event_type: Option<EventType>,
    pub event: Option<EventId>,
}

/// Adds a delivery for each active endpoint subscribed to the event, in the transaction of the
/// change that caused it.
pub async fn fan_out(tx: &mut WriteTransaction, event: &Event) -> Result<(), StoreError> {
    let wanting = wanting(tx, event).await?;
    // Computed once, so that all endpoints get the event at the same time.
    let due_at = if wanting.is_empty() {
        return Ok(());
    } else {
        Some(due_at(tx, event).await?)
    };
    for endpoint in wanting {
        let delivery = Delivery {
            due_at,
            ..Delivery::new(event, endpoint, event.timestamp)
        };
        insert(tx, delivery);
    }

    Ok(())
}

/// Adds a delivery of an earlier event for each active endpoint subscribed to it, due now.
pub async fn send_again(
    tx: &mut WriteTransaction,
    event: &Event,
    now: Timestamp,
) -> Result<Vec<Delivery>, StoreError> {
    let wanting = wanting(tx, event).await?.into_iter();
    let added: Vec<Delivery> = wanting
        .map(|endpoint| Delivery::new(event, endpoint, now))
        .collect();
    for delivery in &added {
        insert(tx, delivery.clone());
    }
    Ok(added)
}

/// Returns the active endpoints that are subscribed to an event.
async fn wanting(tx: &mut WriteTransaction, event: &Event) -> Result<Vec<EndpointId>, StoreError> {
    // A transaction may emit several events, so it reads the endpoints once and keeps them.
    let known = tx.outbox.endpoints.take();
    let endpoints = match known.filter(|(org, _)| *org == event.org_id) {
        Some((_, endpoints)) => endpoints,
        None => active_endpoints(tx, &event.org_id).await?,
    };
    let wants = |selectors: &[EventSelector]| {
        let mut selectors = selectors.iter();
        selectors.any(|selector| selector.matches(event.event_type))
    };
    let wanting = endpoints.iter().filter(|(_, selectors)| wants(selectors));
    let wanting: Vec<EndpointId> = wanting.map(|(endpoint, _)| endpoint.clone()).collect();

    tx.outbox.endpoints = Some((event.org_id.clone(), endpoints));
    Ok(wanting)
}

/// Returns an organization's active endpoints, with the events that they want.
async fn active_endpoints(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Subscriptions, StoreError> {
    // Not locked: an endpoint that is disabled meanwhile leaves deliveries, which `give_up_left_behind` ends.
    let rows = sqlx::query(
        "select endpoint_id, events from webhook_endpoint
         where bucket = $1 and org_id = $2 and is_active = 1",
    )
    .bind_org(org)
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| {
            let columns = RowColumns::of(row, "webhook_endpoint", "endpoint_id");
            let id = columns.parsed("endpoint_id", EndpointId::parse)?;
            Ok((id, columns.json("events")?))
        })
        .collect()
}

/// Returns when an event is due. Events of one envelope must be due in commit order, although a
/// writer that waited for the envelope's lock read the clock earlier; so an event is never due
/// before the envelope's latest one.
async fn due_at(tx: &mut WriteTransaction, event: &Event) -> Result<Timestamp, StoreError> {
    let Some(envelope) = &event.envelope_id else {
        return Ok(event.timestamp);
    };

    let latest = match tx.outbox.latest.get(envelope) {
        Some(latest) => Some(*latest),
        // The first event of an envelope.
        None if event.event_type == EventType::EnvelopeCreated => None,
        None => latest_event(tx, &event.org_id, envelope).await?,
    };
    let due_at = latest.map_or(event.timestamp, |latest| latest.max(event.timestamp));
    tx.outbox.latest.insert(envelope.clone(), due_at);

    Ok(due_at)
}

async fn latest_event(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "select max(created_at) as latest from event where bucket = $1 and envelope_id = $2",
    )
    .bind_key(org, envelope.as_str())
    .fetch_one(connection)
    .await?;
    let latest: Option<String> = row.try_get("latest")?;

    Ok(latest.as_deref().and_then(Timestamp::parse))
}

impl Delivery {
    /// Creates a delivery of a new event.
    pub fn new(event: &Event, endpoint: EndpointId, now: Timestamp) -> Self {
        Self {
            id: DeliveryId::new(),
            org: event.org_id.clone(),
            endpoint,
            event: event.event_id.clone(),
            event_type: event.event_type,
            envelope: event.envelope_id.clone(),
            status: DeliveryStatus::Pending,
            attempts: 0,
            due_at: Some(now),
            redelivery_of: None,
            created_at: now,
            updated_at: now,
            last: None,
        }
    }
}

/// Adds a delivery. If it is pending, its endpoint is woken when the transaction commits.
pub fn insert(tx: &mut WriteTransaction, delivery: Delivery) {
    if delivery.status == DeliveryStatus::Pending {
        let endpoint = OwnedEndpoint {
            org: delivery.org.clone(),
            endpoint: delivery.endpoint.clone(),
        };
        // Takes effect at the commit; a rolled-back delivery wakes no dispatcher.
        tx.touch(endpoint, false);
    }

    tx.outbox.deliveries.push(delivery);
}

/// Adds the attempt of a delivery that was sent before its row existed.
pub async fn insert_attempt(
    tx: &mut WriteTransaction,
    delivery: &Delivery,
    attempt: &DeliveryAttempt,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into webhook_attempt (bucket, delivery_id, attempt, org_id, at, response_code,
             response_body, error, duration_ms)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_key(&delivery.org, delivery.id.as_str())
    .bind(attempt.number)
    .bind(delivery.org.as_str())
    .bind(attempt.at.to_string())
    .bind(attempt.response_code)
    .bind(attempt.response_body.as_deref())
    .bind(attempt.error.as_deref())
    .bind(attempt.duration_ms)
    .run(tx)
    .await
}

const SELECT: &str = "select {columns} from webhook_delivery left join webhook_attempt a
         on a.bucket = webhook_delivery.bucket and a.delivery_id = webhook_delivery.delivery_id
         and a.attempt = webhook_delivery.attempts";

pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &DeliveryId,
) -> Result<Option<Delivery>, StoreError> {
    let text = format!(
        "{SELECT} where webhook_delivery.bucket = $1 and webhook_delivery.org_id = $2
             and webhook_delivery.delivery_id = $3"
    );
    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns a page of the log of one of the organization's
/// endpoints, newest first, and the total number.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    endpoint: &EndpointId,
    filter: &DeliveryFilter,
    page: i64,
    limit: i64,
) -> Result<(Vec<Delivery>, i64), StoreError> {
    let list = PagedQuery {
        select: SELECT,
        bucket: org.bucket(),
        // The caller has checked that the endpoint belongs to the organization. Filtering by
        // organization here would make SQLite read all rows of the organization.
        wanted: &[
            ("endpoint_id", Some(endpoint.as_str())),
            ("status", filter.status.map(DeliveryStatus::as_str)),
            ("event_type", filter.event_type.map(EventType::as_str)),
            ("event_id", filter.event.as_ref().map(EventId::as_str)),
        ],
        compared: &[],
        also: "",
    };

    list.page(connection, page, limit).await
}

/// Deliveries of a period by their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeriodCounts {
    pub pending: i64,
    pub delivered: i64,
    pub failed: i64,
}

/// Counts the deliveries to one of the organization's endpoints in a period.
pub async fn counts_between(
    connection: &mut SqlConnection,
    org: &OrgId,
    endpoint: &EndpointId,
    from: Timestamp,
    until: Timestamp,
) -> Result<PeriodCounts, StoreError> {
    // Ids have the time of the creation, so that the index by status answers without reading rows.
    let rows = sqlx::query(
        "select status, count(*) as total from webhook_delivery
         where bucket = $1 and endpoint_id = $2 and status in ('pending', 'delivered', 'failed')
             and delivery_id >= $3 and delivery_id < $4
         group by status",
    )
    .bind_key(org, endpoint.as_str())
    .bind(DeliveryId::first_at(from).as_str())
    .bind(DeliveryId::first_at(until).as_str())
    .fetch_all(connection)
    .await?;

    let mut counts = PeriodCounts::default();
    for row in &rows {
        let columns = RowColumns::of(row, "webhook_delivery", "status");
        let total = columns.number("total")?;
        match columns.parsed("status", DeliveryStatus::parse)? {
            DeliveryStatus::Pending => counts.pending = total,
            DeliveryStatus::Delivered => counts.delivered = total,
            DeliveryStatus::Failed => counts.failed = total,
        }
    }

    Ok(counts)
}

/// Returns all attempts of a delivery, first to last.
pub async fn attempts(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &DeliveryId,
) -> Result<Vec<DeliveryAttempt>, StoreError> {
    query_rows(
        "select {columns} from webhook_attempt where bucket = $1 and delivery_id = $2
         order by attempt",
    )
    .bind_key(org, id.as_str())
    .fetch_all(connection)
    .await
}

/// Returns the body of an event; none once it has been pruned.
pub async fn body(
    connection: &mut SqlConnection,
    org: &OrgId,
    event: &EventId,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select body from event where bucket = $1 and event_id = $2")
        .bind_key(org, event.as_str())
        .fetch_optional(connection)
        .await?;
    // Pruning empties the body and keeps the row, because deliveries and the feed name the event.
    let body: Option<String> = row.map(|row| row.try_get("body")).transpose()?;
    Ok(body.filter(|body| !body.is_empty()))
}

/// Fails all pending deliveries of an endpoint, including those in flight.
pub async fn give_up(
    tx: &mut WriteTransaction,
    endpoint: &Endpoint,
    now: Timestamp,
) -> Result<(), StoreError> {
    // An attempt in flight finds its delivery settled: `settle_in` records nothing for it.
    sqlx::query(
        "update webhook_delivery set status = 'failed', due_at = null, updated_at = $3
         where bucket = $1 and endpoint_id = $2 and status = 'pending'",
    )
    .bind_key(&endpoint.org, endpoint.id.as_str())
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Fails the pending deliveries of disabled endpoints. They
/// were committed while their endpoint was being disabled.
pub async fn give_up_left_behind(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "update webhook_delivery set status = 'failed', due_at = null, updated_at = $1
         where status = 'pending' and exists (
             select 1 from webhook_endpoint e
             where e.bucket = webhook_delivery.bucket
                 and e.endpoint_id = webhook_delivery.endpoint_id and e.is_active = 0
         )",
    )
    .bind(now.to_string())
    .execute(&mut *tx)
    .await?;

    tx.commit().await
}

/// Pending delivery with the event's body.
#[derive(Clone, Debug)]
pub struct PendingDelivery {
    pub id: DeliveryId,
    pub event: EventId,
    pub event_type: EventType,
    pub envelope: Option<EnvelopeId>,
    pub attempts: i64,
    pub due_at: Timestamp,
    pub body: String,
}

/// Returns the next `limit` pending deliveries of an endpoint in order of their due time, including
/// those not yet due.
pub async fn next(
    connection: &mut SqlConnection,
    wanted: &OwnedEndpoint,
    limit: i64,
) -> Result<Vec<PendingDelivery>, StoreError> {
    // Deliveries that are not due are included: the lane sleeps until the first of them is.
    query_rows::<PendingDelivery>(
        "select d.delivery_id, d.event_id, d.event_type, d.envelope_id, d.attempts, d.due_at,
             (select body from event e where e.bucket = d.bucket and e.event_id = d.event_id) as body
         from webhook_delivery d
         where d.bucket = $1 and d.endpoint_id = $2 and d.status = 'pending'
         order by d.due_at, d.delivery_id limit $3",
    )
    .bind_key(&wanted.org, wanted.endpoint.as_str())
    .bind(limit)
    .fetch_rows(connection)
    .await?
    .iter()
    .map(PendingDelivery::of_row)
    .filter_map(|row| match row {
        Ok(due) => Some(Ok(due)),
        // Possibly written by a newer version; it must not block the other deliveries.
        Err(StoreError::Inconsistent { id, why, .. }) => {
            tracing::error!(delivery = id, why, "webhook delivery cannot be read, skipping it");
            None
        }
        Err(error) => Some(Err(error)),
    })
    .collect()
}

table_row! {
    PendingDelivery of "webhook_delivery" by "delivery_id" {
        id: parsed("delivery_id", DeliveryId::parse),
        event: parsed("event_id", EventId::parse),
        event_type: parsed("event_type", EventType::parse),
        envelope: optional_parsed("envelope_id", EnvelopeId::parse),
        attempts: number("attempts"),
        due_at: time("due_at"),
        body: text("body"),
    }
}

/// Result of an attempt, ready to be recorded.
#[derive(Clone, Debug)]
pub struct AttemptSettlement {
    pub at: OwnedEndpoint,
    /// Lease epoch under which the node holds the endpoint.
    pub epoch: i64,
    pub delivery: DeliveryId,
    pub attempt: DeliveryAttempt,
    pub status: DeliveryStatus,
    /// Time of the next attempt, if the delivery is still pending.
    pub due_at: Option<Timestamp>,
}

/// Records attempts and the resulting state of their deliveries in one
/// transaction. Deliveries that were given up meanwhile stay so. Nothing
/// is recorded for an endpoint that another node has leased since.
pub async fn settle(
    tx: &mut WriteTransaction,
    settlements: &[AttemptSettlement],
) -> Result<(), StoreError> {
    // One statement per bucket, which stays on one shard, in a fixed order that prevents deadlocks.
    let mut by_bucket: BTreeMap<i64, Vec<&AttemptSettlement>> = BTreeMap::new();
    for settlement in settlements {
        let of_bucket = by_bucket.entry(settlement.at.org.bucket()).or_default();
        of_bucket.push(settlement);
    }

    for (bucket, settlements) in by_bucket {
        settle_in(tx, bucket, &settlements).await?;
    }

    Ok(())
}

async fn settle_in(
    tx: &mut WriteTransaction,
    bucket: i64,
    settlements: &[&AttemptSettlement],
) -> Result<(), StoreError> {
    // Fenced twice: the epoch refuses a node that lost its lease, and the
    // number of the attempt refuses a result that is recorded already.
    let text = format!(
        "update webhook_delivery set status = s.status, attempts = s.attempt, due_at = s.due_at,
             updated_at = s.at
         from (
             select value ->> 'delivery' as delivery_id, value ->> 'endpoint' as endpoint_id,
                 cast(value ->> 'epoch' as bigint) as epoch,
                 cast(value ->> 'attempt' as bigint) as attempt,
                 value ->> 'status' as status, value ->> 'due_at' as due_at,
                 value ->> 'settled_at' as at
             from {} limit {}
         ) s join webhook_endpoint e
             on e.bucket = $2 and e.endpoint_id = s.endpoint_id and e.lease_epoch = s.epoch
         where webhook_delivery.bucket = $2 and webhook_delivery.delivery_id = s.delivery_id
             and webhook_delivery.status = 'pending' and webhook_delivery.attempts = s.attempt - 1
         returning webhook_delivery.delivery_id",
        tx.dialect.json_rows(),
        // The planner estimates a hundred rows for any JSON array and then scans the whole table.
        // The limit gives it a bound; powers of two keep the number of distinct statements small.
        settlements.len().next_power_of_two()
    );

    let settled = sqlx::query(AssertSqlSafe(text))
        .bind(Value::from_iter(settlements.iter().copied().map(standing)).to_string())
        .bind(bucket)
        .fetch_all(&mut **tx)
        .await?;
    let settled: std::collections::HashSet<String> = settled
        .iter()
        .map(|row| row.try_get("delivery_id"))
        .collect::<Result<_, _>>()?;

    // Attempts are added only for deliveries that the fenced update above has changed.
    let recorded = settlements
        .iter()
        .copied()
        .filter(|settlement| settled.contains(settlement.delivery.as_str()));
    let text = format!(
        "insert into webhook_attempt (bucket, delivery_id, attempt, org_id, at, response_code,
             response_body, error, duration_ms)
         select cast($2 as bigint), value ->> 'delivery', cast(value ->> 'attempt' as bigint),
             value ->> 'org', value ->> 'at', cast(value ->> 'code' as bigint),
             value ->> 'body', value ->> 'error', cast(value ->> 'duration_ms' as bigint)
         from {}",
        tx.dialect.json_rows()
    );

    sqlx::query(AssertSqlSafe(text))
        .bind(Value::from_iter(recorded.map(attempted)).to_string())
        .bind(bucket)
        .run(tx)
        .await
}

/// Returns the new state of a delivery.
fn standing(settlement: &AttemptSettlement) -> Value {
    let attempt = &settlement.attempt;
    // A delivery is settled when its attempt ends; the row of the attempt has the time of its begin.
    let took = Duration::from_millis(attempt.duration_ms.unsigned_abs());
    json!({
        "endpoint": settlement.at.endpoint,
        "epoch": settlement.epoch,
        "delivery": settlement.delivery,
        "attempt": attempt.number,
        "settled_at": attempt.at + took,
        "status": settlement.status,
        "due_at": settlement.due_at,
    })
}

/// Returns the row of the attempt.
fn attempted(settlement: &AttemptSettlement) -> Value {
    let attempt = &settlement.attempt;
    json!({
        "org": settlement.at.org,
        "delivery": settlement.delivery,
        "attempt": attempt.number,
        "at": attempt.at,
        "code": attempt.response_code,
        "body": attempt.response_body,
        "error": attempt.error,
        "duration_ms": attempt.duration_ms,
    })
}

/// Clears up to `limit` event bodies and as many response bodies older than `before`; returns the
/// larger of the two counts. Bodies of pending deliveries are kept.
pub async fn prune(store: &Store, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
    // Bounded by `limit`: SQLite's only writer is free for requests between two calls.
    let mut tx = store.begin().await?;
    let events = sqlx::query(
        "update event set body = '' where (bucket, event_id) in (
             select bucket, event_id from event
             where created_at < $1 and body <> '' and not exists (
                 select 1 from webhook_delivery d
                 where d.bucket = event.bucket and d.event_id = event.event_id
                     and d.status = 'pending'
             )
             order by created_at limit $2
         )",
    )
    .bind(before.to_string())
    .bind(limit)
    .execute(&mut *tx)
    .await?;

    let answers = sqlx::query(
        "update webhook_attempt set response_body = null where (bucket, delivery_id, attempt) in (
             select bucket, delivery_id, attempt from webhook_attempt
             where at < $1 and response_body is not null
             order by at limit $2
         )",
    )
    .bind(before.to_string())
    .bind(limit)
    .execute(&mut *tx)
    .await?;

    tx.commit().await?;
    // The caller repeats until neither statement reaches the limit.
    Ok(events.rows_affected().max(answers.rows_affected()))
}

/// Deletes up to `limit` settled deliveries of a bucket created before `before`, with their
/// attempts; returns the number of deliveries.
pub async fn forget(
    store: &Store,
    bucket: i64,
    before: Timestamp,
    limit: i64,
) -> Result<usize, StoreError> {
    let mut tx = store.begin().await?;
    // Ids sort by time, so the primary key finds old rows without reading the others.
    let rows = sqlx::query(
        "delete from webhook_delivery where bucket = $1 and delivery_id in (
             select delivery_id from webhook_delivery
             where bucket = $1 and delivery_id < $2 and created_at < $4 and status <> 'pending'
             order by delivery_id limit $3
         )
         returning delivery_id",
    )
    .bind(bucket)
    .bind(DeliveryId::first_at(before).as_str())
    .bind(limit)
    // Ids contain the time of a machine's clock, which may be wrong: `created_at` decides.
    .bind(before.to_string())
    .fetch_all(&mut *tx)
    .await?;

    let gone: Vec<String> = rows
        .iter()
        .map(|row| row.try_get("delivery_id"))
        .collect::<Result<_, _>>()?;
    let Some(last) = gone.iter().max() else {
        return Ok(0);
    };

    // A missing delivery identifies the rows, which needs no list of thousands of ids.
    sqlx::query(
        "delete from webhook_attempt
         where bucket = $1 and delivery_id <= $2 and not exists (
             select 1 from webhook_delivery d
             where d.bucket = webhook_attempt.bucket
                 and d.delivery_id = webhook_attempt.delivery_id
         )",
    )
    .bind(bucket)
    .bind(last)
    .execute(&mut *tx)
    .await?;

    tx.commit().await?;
    Ok(gone.len())
}

/// Backlog figures for the metrics.
#[derive(Clone, Copy, Debug)]
pub struct DueCounts {
    pub due: i64,
    /// Due time of the oldest one.
    pub oldest: Option<Timestamp>,
}

/// Counts the due deliveries of all organizations.
pub async fn counts(
    connection: &mut SqlConnection,
    now: Timestamp,
) -> Result<DueCounts, StoreError> {
    let row = sqlx::query(
        "select count(*) as due, min(due_at) as oldest from webhook_delivery
         where status = 'pending' and due_at <= $1",
    )
    .bind(now.to_string())
    .fetch_one(connection)
    .await?;
    let oldest: Option<String> = row.try_get("oldest")?;

    Ok(DueCounts {
        due: row.try_get("due")?,
        oldest: oldest.as_deref().and_then(Timestamp::parse),
    })
}

table_row! {
    DeliveryAttempt of "webhook_attempt" by "delivery_id" also "delivery_id" {
        number: number("attempt"),
        at: time("at"),
        response_code: optional_number("response_code"),
        response_body: optional_text("response_body"),
        error: optional_text("error"),
        duration_ms: number("duration_ms"),
    }
}

impl TableRow for Delivery {
    const TABLE: &'static str = "webhook_delivery";
    const ID: &'static str = "delivery_id";
    // With those of the last attempt. The table of attempts has two of these names as well.
    const COLUMNS: &'static str =
        "webhook_delivery.delivery_id, webhook_delivery.org_id, endpoint_id, event_id, event_type,
         envelope_id, status, attempts, due_at, redelivery_of, created_at, updated_at, attempt, at,
         response_code, response_body, error, duration_ms";

    fn read(row: &RowColumns<'_>) -> Result<Self, StoreError> {
        // The left join gives nulls without an attempt, and each attempt has a time.
        let attempted = row.optional_text("at")?.is_some();
        Ok(Self {
            id: row.parsed("delivery_id", DeliveryId::parse)?,
            org: row.parsed("org_id", OrgId::parse)?,
            endpoint: row.parsed("endpoint_id", EndpointId::parse)?,
            event: row.parsed("event_id", EventId::parse)?,
            event_type: row.parsed("event_type", EventType::parse)?,
            envelope: row.optional_parsed("envelope_id", EnvelopeId::parse)?,
            status: row.parsed("status", DeliveryStatus::parse)?,
            attempts: row.number("attempts")?,
            due_at: row.optional_time("due_at")?,
            redelivery_of: row.optional_parsed("redelivery_of", DeliveryId::parse)?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            last: attempted.then(|| DeliveryAttempt::read(row)).transpose()?,
        })
    }
}
