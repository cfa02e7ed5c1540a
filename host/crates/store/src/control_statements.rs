//! Statements of control. A row is in the bucket of the originator; the person who has the link knows only
//! its id.

use crate::SqlConnection;
use serde_json::Value;

use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{ControlStatementId, EnvelopeId, OrgId};

/// A statement of control as it was issued.
#[derive(Clone, Debug)]
pub struct StoredStatement {
    pub id: ControlStatementId,
    /// Originator of the record.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// The controller that issued it.
    pub party: OrgId,
    /// The statement.
    pub body: Value,
    /// Since when that party had control.
    pub controlled_since: Timestamp,
}

pub async fn insert(tx: &mut WriteTransaction, stored: &StoredStatement) -> Result<(), StoreError> {
    sqlx::query(
        "insert into control_statement (bucket, statement_id, envelope_id, org_id, party_id, body,
             controlled_since)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind_key(&stored.org, stored.id.as_str())
    .bind(stored.envelope.as_str())
    .bind(stored.org.as_str())
    .bind(stored.party.as_str())
    .bind(json_text(&stored.body))
    // Shows later whether the same control still lasts, or the party only got the record back.
    .bind(stored.controlled_since.to_string())
    .run(tx)
    .await
}

/// Returns a statement about a record of any organization.
pub async fn get(
    connection: &mut SqlConnection,
    id: &ControlStatementId,
) -> Result<Option<StoredStatement>, StoreError> {
    query_rows("select {columns} from control_statement where statement_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    StoredStatement of "control_statement" by "statement_id" {
        id: parsed("statement_id", ControlStatementId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        party: parsed("party_id", OrgId::parse),
        body: json("body"),
        controlled_since: time("controlled_since"),
    }
}
