//! The custody ledger. Entries are appended inside the transaction of the
//! change they record.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};

use super::row::{Columns, json_text};
use super::{StoreError, Tx, log};
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::ledger::{LedgerEntry, NewEntry};

/// Appends an entry. Two writers at once cannot both get the next sequence
/// number: the primary key refuses the second.
pub async fn append(
    tx: &mut Tx,
    org: &OrgId,
    envelope: &EnvelopeId,
    new: NewEntry,
) -> Result<LedgerEntry, StoreError> {
    let last = sqlx::query(
        "select * from ledger_entry where bucket = $1 and org_id = $2 and envelope_id = $3
         order by sequence desc limit 1",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(envelope.as_str())
    .fetch_optional(&mut **tx)
    .await?
    .map(|row| entry(&row))
    .transpose()?;
    let entry = LedgerEntry::after(last.as_ref(), new);
    sqlx::query(
        "insert into ledger_entry (bucket, envelope_id, sequence, org_id, at, actor, action,
             details, previous_hash, hash)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(org.bucket())
    .bind(envelope.as_str())
    .bind(entry.sequence)
    .bind(org.as_str())
    .bind(entry.at.to_string())
    .bind(&entry.actor)
    .bind(&entry.action)
    .bind(json_text(&entry.details))
    .bind(&entry.previous_hash)
    .bind(&entry.hash)
    .execute(&mut **tx)
    .await?;
    log::enqueue(tx, org, envelope, &entry).await?;
    Ok(entry)
}

/// The sequence of the last entry; 0 before the first.
pub async fn last_sequence(
    connection: &mut AnyConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "select coalesce(max(sequence), 0) as last from ledger_entry
         where bucket = $1 and org_id = $2 and envelope_id = $3",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(envelope.as_str())
    .fetch_one(connection)
    .await?;
    Ok(row.try_get("last")?)
}

/// The whole chain, from the first entry on.
pub async fn list(
    connection: &mut AnyConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<LedgerEntry>, StoreError> {
    sqlx::query(
        "select * from ledger_entry where bucket = $1 and org_id = $2 and envelope_id = $3
         order by sequence",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await?
    .iter()
    .map(entry)
    .collect()
}

fn entry(row: &AnyRow) -> Result<LedgerEntry, StoreError> {
    let columns = Columns {
        row,
        table: "ledger_entry",
        id: "envelope_id",
    };
    Ok(LedgerEntry {
        sequence: columns.number("sequence")?,
        at: columns.time("at")?,
        actor: columns.text("actor")?,
        action: columns.text("action")?,
        details: columns.json("details")?,
        previous_hash: columns.text("previous_hash")?,
        hash: columns.text("hash")?,
    })
}
