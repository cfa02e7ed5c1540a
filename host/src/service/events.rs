//! Recording what happened: the ledger entry and the event of one change.

use serde_json::Value;

use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;
use crate::domain::event::{Event, EventType};
use crate::domain::ledger::{LedgerEntry, NewEntry};
use crate::store::{StoreError, Tx, events, ledger};

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
    ledger::append(tx, &envelope.org, &envelope.id, entry).await
}

/// Puts an event about the envelope into the outbox.
pub async fn emit(
    tx: &mut Tx,
    envelope: &Envelope,
    event_type: EventType,
    data: Value,
    at: Timestamp,
) -> Result<(), StoreError> {
    events::insert(tx, &Event::about(envelope, event_type, at, data)).await
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
