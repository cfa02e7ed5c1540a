//! Statements of control. A row is in the bucket of the originator; the person who has the link knows only
//! its id.

use crate::SqlConnection;
use serde_json::Value;

use super::row::{RowColumns, json_text};
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
    .bind(stored.org.bucket())
    .bind(stored.id.as_str())
    .bind(stored.envelope.as_str())
    .bind(stored.org.as_str())
    .bind(stored.party.as_str())
    .bind(json_text(&stored.body))
    // Shows later whether the same control still lasts, or the party only got the record back.
    .bind(stored.controlled_since.to_string())
    .execute(&mut **tx)
    .await?;

    Ok(())
}

/// Returns a statement about a record of any organization.
pub async fn get(
    connection: &mut SqlConnection,
    id: &ControlStatementId,
) -> Result<Option<StoredStatement>, StoreError> {
    let row = sqlx::query("select * from control_statement where statement_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        let columns = RowColumns {
            row: &row,
            table: "control_statement",
            id: "statement_id",
        };
        Ok(StoredStatement {
            id: columns.parsed("statement_id", ControlStatementId::parse)?,
            org: columns.parsed("org_id", OrgId::parse)?,
            envelope: columns.parsed("envelope_id", EnvelopeId::parse)?,
            party: columns.parsed("party_id", OrgId::parse)?,
            body: columns.json("body")?,
            controlled_since: columns.time("controlled_since")?,
        })
    })
    .transpose()
}
