//! Recording what happened: the ledger entry and the event of one change.

use serde_json::Value;

use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;
use crate::domain::event::{Event, EventType};
use crate::domain::ledger::{LedgerEntry, NewEntry};
use crate::store::{StoreError, Tx, deliveries, events, ledger};

/// Appends to the envelope's custody ledger.
pub async fn record(
    tx: &mut Tx,
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

/// Puts an event about the envelope into the outbox, and its deliveries with it.
pub async fn emit(
    tx: &mut Tx,
    envelope: &Envelope,
    event_type: EventType,
    data: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    let event = Event::about(envelope, event_type, at, data);
    events::insert(tx, &event).await?;
    deliveries::fan_out(tx, &event).await
}

/// Both, for what is told outside as it is recorded inside.
pub async fn record_and_emit(
    tx: &mut Tx,
    envelope: &Envelope,
    actor: &str,
    event_type: EventType,
    data: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    record(tx, envelope, actor, event_type.as_str(), data.clone(), at).await?;
    emit(tx, envelope, event_type, data, at).await
}
