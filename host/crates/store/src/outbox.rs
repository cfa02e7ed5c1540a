//! Rows that a transaction adds at its end: entries for the log, events, and their deliveries.
//!
//! Nothing reads them in the transaction that adds them, so all rows of a table are added by one
//! statement. What further rows need to know is kept with them instead of being read again.

use std::collections::HashMap;

use crate::SqlConnection;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use super::StoreError;
use super::deliveries::Delivery;
use super::statement::RunStatement as _;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::Event;
use holdfast_domain::id::{EndpointId, EnvelopeId, OrgId};
use holdfast_domain::ledger::LedgerEntry;
use holdfast_domain::webhook::EventSelector;

/// Maximum number of rows of one statement.
const ROWS: usize = 100;

/// Active endpoints, with the events that they want.
pub(super) type Subscriptions = Vec<(EndpointId, Vec<EventSelector>)>;

/// Rows to add, and facts about them for further rows.
#[derive(Default)]
pub(super) struct OutboxRows {
    /// Entries of ledgers for the log, with their bucket and chain.
    pub leaves: Vec<(i64, String, LedgerEntry)>,
    pub events: Vec<Event>,
    pub deliveries: Vec<Delivery>,
    /// Last entries of ledgers by bucket, organization and chain; none for a new ledger.
    pub tails: HashMap<(i64, String, String), Option<LedgerEntry>>,
    /// Active endpoints of an organization, with the events that they want.
    pub endpoints: Option<(OrgId, Subscriptions)>,
    /// Time of an envelope's latest event.
    pub latest: HashMap<EnvelopeId, Timestamp>,
}

impl OutboxRows {
    /// Adds the rows.
    pub async fn add(&self, connection: &mut SqlConnection) -> Result<(), StoreError> {
        // One statement per table, however many rows: on PostgreSQL each is a round trip.
        insert(
            connection,
            "insert into ledger_pending (bucket, envelope_id, sequence, hash, at)",
            &self.leaves,
            |query, (bucket, chain, entry)| {
                query
                    .bind(*bucket)
                    .bind(chain.as_str())
                    .bind(entry.sequence)
                    .bind(entry.hash.as_str())
                    .bind(entry.at.to_string())
            },
        )
        .await?;

        insert(
            connection,
            "insert into event (bucket, event_id, org_id, envelope_id, event_type, body, created_at)",
            &self.events,
            |query, event| {
                query
                    .bind(event.org_id.bucket())
                    .bind(event.event_id.as_str())
                    .bind(event.org_id.as_str())
                    .bind(event.envelope_id.as_ref().map(EnvelopeId::as_str))
                    .bind(event.event_type.as_str())
                    .bind(event.body())
                    .bind(event.timestamp.to_string())
            },
        )
        .await?;

        insert(
            connection,
            "insert into webhook_delivery (bucket, delivery_id, org_id, endpoint_id, event_id, event_type,
                 envelope_id, status, attempts, due_at, redelivery_of, created_at, updated_at)",
            &self.deliveries,
            |query, delivery| {
                let created = delivery.created_at.to_string();
                query
                    .bind_key(&delivery.org, delivery.id.as_str())
                    .bind(delivery.org.as_str())
                    .bind(delivery.endpoint.as_str())
                    .bind(delivery.event.as_str())
                    .bind(delivery.event_type.as_str())
                    .bind(delivery.envelope.as_ref().map(EnvelopeId::as_str))
                    .bind(delivery.status.as_str())
                    .bind(delivery.attempts)
                    .bind(delivery.due_at.map(|at| at.to_string()))
                    .bind(delivery.redelivery_of.as_ref().map(|id| id.as_str()))
                    .bind(created.clone())
                    .bind(created)
            },
        )
        .await
    }
}

/// Inserts rows. `into` names the table and its columns; `bind` binds the columns of a row.
async fn insert<'q, R>(
    connection: &mut SqlConnection,
    into: &str,
    rows: &'q [R],
    bind: impl Fn(Query<'q, Any, AnyArguments>, &'q R) -> Query<'q, Any, AnyArguments>,
) -> Result<(), StoreError> {
    // Counted in the text, so that it has as many parameters as columns.
    let columns = into.matches(',').count() + 1;
    // A bulk change adds thousands of rows, and both databases limit the parameters of a statement.
    for rows in rows.chunks(ROWS) {
        let mut query = sqlx::query(AssertSqlSafe(format!(
            "{into} values {}",
            placeholders(connection, columns, rows.len())
        )));
        for row in rows {
            query = bind(query, row);
        }

        query.execute(&mut *connection).await?;
    }

    Ok(())
}

/// Returns parameters for rows of a statement, which has no others: `($1, $2), ($3, $4)`. SQLite's are not named: it
/// looks a name up among all of them, which takes longer than most inserts for hundreds of parameters.
pub(super) fn placeholders(connection: &SqlConnection, columns: usize, rows: usize) -> String {
    let named = !connection.is_sqlite();
    let mut text = String::with_capacity(rows * columns * 6);
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ", (" });
        for column in 1..=columns {
            text.push_str(if column == 1 { "" } else { ", " });
            if named {
                text += &format!("${}", row * columns + column)
            } else {
                text.push('?')
            }
        }

        text.push(')');
    }

    text
}
