//! Transactional outbox of events.

use crate::SqlConnection;
use sqlx::Row as _;

use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::event::Event;
use holdfast_domain::id::{EnvelopeId, OrgId};

/// Adds an event, in the transaction that causes it.
pub fn insert(tx: &mut WriteTransaction, event: &Event) {
    // A copy, because the caller still makes the deliveries of this event.
    tx.outbox.events.push(event.clone());
}

/// Returns the bodies of an envelope's events, oldest first.
pub async fn bodies(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(
        "select body from event where bucket = $1 and org_id = $2 and envelope_id = $3
         order by event_id",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await?;

    rows.iter().map(|row| Ok(row.try_get("body")?)).collect()
}
