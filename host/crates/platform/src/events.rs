//! Recording a change: its custody ledger entry and its event.

use serde_json::{Map, Value, json};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, OPEN_LINK};
use holdfast_domain::event::{Event, EventType};
use holdfast_domain::id::OrgId;
use holdfast_domain::ledger::{LedgerEntry, NewEntry};
use holdfast_store::{StoreError, WriteTransaction, deliveries, events, ledger};

/// Appends an entry to the envelope's custody ledger.
pub async fn record(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    actor: &str,
    action: &str,
    details: Value,
    at: Timestamp,
) -> Result<LedgerEntry, StoreError> {
    let entry = NewEntry {
        at,
        actor: actor.into(),
        action: action.into(),
        details,
    };
    ledger::append(tx, Some(&envelope.org), &envelope.id, entry).await
}

/// Writes the first entry of an envelope's ledger, with `more` about its origin, and the event. The entry
/// names the organization, so that the ledger cannot be presented as that of another one.
pub async fn record_created(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    actor: &str,
    more: Map<String, Value>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let created = EventType::EnvelopeCreated;
    let mut data = json!({ "status": envelope.status, "envelope_kind": envelope.kind });
    if let Some(link) = envelope.metadata.get(OPEN_LINK) {
        data[OPEN_LINK] = link.clone();
    }

    let mut details = data.clone();
    details["org_id"] = json!(envelope.org);
    for (name, value) in more {
        details[name] = value;
    }

    record(tx, envelope, actor, created.as_str(), details, at).await?;
    emit(tx, envelope, created, data, at).await
}

/// Writes an event about the envelope to the outbox, with one delivery per subscribed endpoint.
pub async fn emit(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    event_type: EventType,
    data: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    // Both are written at the commit of the caller's change, so that there is no event of a change that did
    // not happen.
    let event = Event::about(envelope, event_type, at, data);
    events::insert(tx, &event);
    deliveries::fan_out(tx, &event).await
}

/// Writes an event about a record to the outbox of another party than its originator. It has none of
/// the originator's own references.
pub async fn emit_to_party(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    party: &OrgId,
    event_type: EventType,
    data: &Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    let event = Event::for_party(party.clone(), envelope, event_type, at, data.clone());
    events::insert(tx, &event);
    deliveries::fan_out(tx, &event).await
}

/// Appends the ledger entry and emits the event, when both carry the same data.
pub async fn record_and_emit(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    actor: &str,
    event_type: EventType,
    data: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    record(tx, envelope, actor, event_type.as_str(), data.clone(), at).await?;
    emit(tx, envelope, event_type, data, at).await
}
