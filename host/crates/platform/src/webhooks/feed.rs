//! Feed of events, for partners with an outage of their receiver, or without a public one.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::deliveries::DeliveryView;
use crate::idempotency::ResponseRecorder;
use crate::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::{EnvelopeId, EventId, OrgId};
use holdfast_store::deliveries;
use holdfast_store::event_feed::{self, FeedPart};

/// Places that one transaction gives.
const AT_ONCE: i64 = 1000;
/// Transactions of one reading.
const ROUNDS: u32 = 20;
/// Longest time between the generation of an event's id and its commit, with the difference of the nodes' clocks.
/// PostgreSQL ends sessions that idle in a transaction after ten seconds.
const LATEST: Duration = Duration::from_secs(600);

/// An event, as receivers of webhooks get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "event_type": "vault.stored", "event_id": "evt_01jdk7m3e8f4x9s2w5v6b0c1dh",
    "org_id": "org_01jdk7m3e8f4x9s2w5v6b0c1da", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "timestamp": "2026-11-21T09:41:08.911Z",
    "data": { "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "customer_id": null, "external_id": "deal-2041" },
}]))]
pub struct EventView {
    #[schemars(with = "EventType")]
    pub event_type: String,
    pub event_id: EventId,
    pub org_id: OrgId,
    pub envelope_id: Option<EnvelopeId>,
    pub timestamp: Timestamp,
    /// As the section `webhooks` describes it for this type.
    pub data: Map<String, Value>,
}

/// Which events are asked for.
#[derive(Clone, Debug)]
pub enum FeedStart {
    /// From the oldest one that is kept.
    Oldest,
    /// Those after an event.
    After(EventId),
    /// The newest ones.
    Newest,
}

/// Returns events in the order of the feed.
///
/// # Errors
/// Not found for the id of no event; gone if events behind it are not kept any more; busy while so many events are new
/// to the feed that their order takes further requests.
pub async fn list(
    core: &Core,
    caller: &Caller,
    start: &FeedStart,
    types: &[EventType],
    limit: i64,
) -> Result<Vec<EventView>, ServiceError> {
    let kept = core.clock.now() - core.config.webhooks.retention;
    let is_whole = place(core, &caller.org, kept).await?;
    let mut connection = core.store.read().await?;
    let part = match start {
        FeedStart::Oldest => FeedPart::After(0),
        // Which event is the last one is known when all have their places.
        FeedStart::Newest if !is_whole => return Err(ServiceError::Busy),
        FeedStart::Newest => FeedPart::Last,
        FeedStart::After(id) => {
            match event_feed::position(&mut connection, &caller.org, id).await? {
                Some(position) => {
                    let kept = EventId::before(kept + LATEST);
                    // The body of an event behind it is gone: a reader that continues would miss it without
                    // notice.
                    if event_feed::has_gap(&mut connection, &caller.org, position, &kept).await? {
                        return Err(gone());
                    }
                    FeedPart::After(position)
                }
                None if !event_feed::is_known(&mut connection, &caller.org, id).await? => {
                    // An id that the organization never had. The other cases are known events without a
                    // place.
                    return Err(ServiceError::NotFound("Event"));
                }
                None if !is_whole => return Err(ServiceError::Busy),
                None => return Err(gone()),
            }
        }
    };

    let bodies = event_feed::bodies(&mut connection, &caller.org, &part, types, limit).await?;
    let mut events = bodies
        .iter()
        .map(|body| read(body))
        .collect::<Result<Vec<_>, _>>()?;
    if matches!(part, FeedPart::Last) {
        events.reverse();
    }

    Ok(events)
}

fn gone() -> ServiceError {
    let message = "The feed does not go back to this event; begin without starting_after";
    Problem::new(ProblemKind::Gone, None, message).into()
}

fn read(body: &str) -> Result<EventView, ServiceError> {
    serde_json::from_str(body).map_err(|error| ServiceError::Internal(format!("an event: {error}")))
}

/// Gives places to new events; returns whether all have one.
async fn place(core: &Core, org: &OrgId, kept: Timestamp) -> Result<bool, ServiceError> {
    let (now, kept) = (core.clock.now(), EventId::before(kept));
    for _ in 0..ROUNDS {
        let mut connection = core.store.read().await?;
        let latest = event_feed::latest(&mut connection, org).await?;
        // An event can commit after one with a later id. So far back, all have committed.
        let from = latest.map(|latest| EventId::before(latest.generated_at() - LATEST));
        let from = from.map_or(kept.clone(), |from| from.max(kept.clone()));
        if !event_feed::lacks_places(&mut connection, org, &from).await? {
            return Ok(true);
        }

        drop(connection);
        let mut tx = core.store.begin().await?;
        match event_feed::place(&mut tx, org, &from, now, AT_ONCE).await {
            // Another reader was first. The next round gives places to the remaining events.
            Err(error) if error.is_unique_violation() => {}
            placed => {
                placed?;
                tx.commit().await?;
            }
        }
    }

    Ok(false)
}

/// Returns an event, if its body is still stored.
pub async fn get(core: &Core, caller: &Caller, id: &str) -> Result<EventView, ServiceError> {
    let unknown = ServiceError::NotFound("Event");
    let Some(id) = EventId::parse(id) else {
        return Err(unknown);
    };

    let mut connection = core.store.read().await?;
    let body = deliveries::body(&mut connection, &caller.org, &id).await?;

    // An organization's bucket has events of others, too.
    let event = body.as_deref().map(read).transpose()?;
    event
        .filter(|event| event.org_id == caller.org)
        .ok_or(unknown)
}

/// Sends an event again to each active endpoint that is subscribed to it, as new deliveries.
pub async fn resend(
    core: &Core,
    caller: &Caller,
    id: &str,
    answer: &ResponseRecorder<Vec<DeliveryView>>,
) -> Result<Vec<DeliveryView>, ServiceError> {
    let found = get(core, caller, id).await?;
    let event_type = EventType::parse(&found.event_type);
    let event = Event {
        event_type: event_type.ok_or_else(|| {
            ServiceError::Conflict("Events of this type are not sent any more".into())
        })?,
        event_id: found.event_id,
        org_id: found.org_id,
        envelope_id: found.envelope_id,
        timestamp: found.timestamp,
        data: found.data.into(),
    };

    let mut tx = core.store.begin().await?;
    let added = deliveries::send_again(&mut tx, &event, core.clock.now()).await?;
    let shown: Vec<DeliveryView> = added.iter().map(DeliveryView::from).collect();
    answer.commit(tx, &shown).await?;

    Ok(shown)
}
