//! Transfers of control and their records. A row is in the bucket of the seller; the buyer finds a
//! transfer by its id, or by its own, over all buckets.

use std::collections::BTreeMap;

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{json_text, query_locked, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlRecord;
use holdfast_domain::id::{EnvelopeId, OrgId, TransferId};
use holdfast_domain::transfer::{
    RecordState, SellerCopy, SoldRecord, Transfer, TransferRecord, TransferState,
};

/// Rows of one insert.
const ROWS: usize = 500;

pub async fn insert(
    tx: &mut WriteTransaction,
    transfer: &Transfer,
    records: &[EnvelopeId],
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into control_transfer (bucket, transfer_id, org_id, buyer_id, state, atomic, terms,
             price_reference, expires_at, created_at, changed_at, acting_id, actor, signed, seller_copy)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12, $13, $14)",
    )
    .bind(transfer.seller.bucket())
    .bind(transfer.id.as_str())
    .bind(transfer.seller.as_str())
    .bind(transfer.buyer.as_str())
    .bind(transfer.state.as_str())
    .bind(i64::from(transfer.atomic))
    .bind(transfer.terms.as_deref())
    .bind(transfer.price_reference.as_deref())
    .bind(transfer.expires_at.to_string())
    .bind(transfer.created_at.to_string())
    .bind(transfer.acting.as_ref().map(OrgId::as_str))
    .bind(&transfer.actor)
    .bind(transfer.signed.as_ref().map(json_text))
    .bind(transfer.seller_copy.as_str())
    .execute(&mut **tx)
    .await?;

    // A pool has thousands of records, and each statement is a round trip.
    for records in records.chunks(ROWS) {
        let row = |index: usize| format!("($1, $2, ${}, $3, 'pending')", index + 4);
        let rows: Vec<String> = (0..records.len()).map(row).collect();
        let text = format!(
            "insert into control_transfer_record (bucket, transfer_id, envelope_id, org_id, state)
             values {}",
            rows.join(", ")
        );
        let mut query = sqlx::query(AssertSqlSafe(text))
            .bind(transfer.seller.bucket())
            .bind(transfer.id.as_str())
            .bind(transfer.seller.as_str());
        for record in records {
            query = query.bind(record.as_str());
        }

        query.execute(&mut **tx).await?;
    }

    Ok(())
}

pub async fn get(
    connection: &mut SqlConnection,
    id: &TransferId,
) -> Result<Option<Transfer>, StoreError> {
    query_rows("select {columns} from control_transfer where transfer_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns a transfer with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    id: &TransferId,
) -> Result<Option<Transfer>, StoreError> {
    query_locked(
        tx,
        "select {columns} from control_transfer where transfer_id = $1",
    )
    .bind(id.as_str())
    .fetch_optional(tx)
    .await
}

/// Lists transfers in which an organization is seller or buyer, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    party: &OrgId,
    after: Option<&TransferId>,
    limit: i64,
) -> Result<Vec<Transfer>, StoreError> {
    // Each half ends by itself, so that both use their index.
    query_rows(
        "select {columns} from (select {columns} from control_transfer
             where bucket = $1 and org_id = $2 and transfer_id < $3
             order by transfer_id desc limit $4) as sold
         union
         select {columns} from (select {columns} from control_transfer
             where buyer_id = $2 and transfer_id < $3 and offered_at is not null
             order by transfer_id desc limit $4) as bought
         order by transfer_id desc limit $4",
    )
    .bind_org(party)
    // Behind every id.
    .bind(after.map_or("u", TransferId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns expired transfers that are not confirmed.
pub async fn overdue(
    connection: &mut SqlConnection,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Transfer>, StoreError> {
    query_rows(
        "select {columns} from control_transfer where state in ('proposing', 'proposed', 'accepting', 'accepted')
             and expires_at <= $1 order by expires_at limit $2",
    )
    .bind(now.to_string())
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Moves a transfer to another state.
///
/// # Errors
/// [`StoreError::Conflict`] if it is not in the state of `transfer` any more.
pub async fn set_state(
    tx: &mut WriteTransaction,
    transfer: &Transfer,
    next: &Transfer,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Job, seller, buyer and the expiry act on one transfer: the expected state lets one of them win.
    sqlx::query(
        "update control_transfer set state = $4, changed_at = $5, acting_id = $6, actor = $7,
             receipt = $8, offered_at = $9, offered = $10, signed = $11
         where bucket = $1 and transfer_id = $2 and state = $3",
    )
    .bind(transfer.seller.bucket())
    .bind(transfer.id.as_str())
    .bind(transfer.state.as_str())
    .bind(next.state.as_str())
    .bind(now.to_string())
    .bind(next.acting.as_ref().map(OrgId::as_str))
    .bind(&next.actor)
    .bind(next.receipt.as_ref().map(json_text))
    .bind(next.offered_at.map(|at| at.to_string()))
    .bind(next.offered.as_ref().map(json_text))
    .bind(next.signed.as_ref().map(json_text))
    .run_guarded(tx)
    .await
}

/// Returns records in one of these states, in the order of their ids.
pub async fn records(
    connection: &mut SqlConnection,
    transfer: &Transfer,
    states: &[RecordState],
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<TransferRecord>, StoreError> {
    // Words of an enumeration, not of the caller.
    let states: Vec<String> = states.iter().map(|state| format!("'{state}'")).collect();
    let text = format!(
        "select {{columns}} from control_transfer_record
         where bucket = $1 and transfer_id = $2 and envelope_id > $3 and state in ({})
         order by envelope_id limit $4",
        states.join(", ")
    );
    query_rows(AssertSqlSafe(text))
        .bind(transfer.seller.bucket())
        .bind(transfer.id.as_str())
        .bind(after.map_or("", EnvelopeId::as_str))
        .bind(limit)
        .fetch_all(connection)
        .await
}

table_row! {
    TransferRecord of "control_transfer_record" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        state: parsed("state", RecordState::parse),
        document_hash: optional_text("document_hash"),
        accepted: flag("accepted"),
        code: optional_text("code"),
        reason: optional_text("reason"),
    }
}

/// Sets the states of a transfer's records.
pub async fn set_records(
    tx: &mut WriteTransaction,
    transfer: &Transfer,
    records: &[TransferRecord],
) -> Result<(), StoreError> {
    // One update for many rows: for single ones, PostgreSQL
    // without statistics chose the slower index by state.
    for part in records.chunks(ROWS) {
        let row = |index: usize| {
            let first = 3 + index * 6;
            let values: Vec<String> = (first..first + 6)
                .map(|number| format!("${number}"))
                .collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = (0..part.len()).map(row).collect();

        // Columns of a list of values have these names on both databases.
        let text = format!(
            "update control_transfer_record set state = column2, code = column3, reason = column4,
                 document_hash = column5, accepted = column6
             from (values {}) as changed
             where bucket = $1 and transfer_id = $2 and envelope_id = column1",
            rows.join(", ")
        );

        let mut update = sqlx::query(AssertSqlSafe(text))
            .bind(transfer.seller.bucket())
            .bind(transfer.id.as_str());
        for record in part {
            update = update
                .bind(record.envelope.as_str())
                .bind(record.state.as_str())
                .bind(record.code.as_deref())
                .bind(record.reason.as_deref())
                .bind(record.document_hash.as_deref())
                .bind(i64::from(record.accepted));
        }

        update.execute(&mut **tx).await?;
    }

    Ok(())
}

/// Counts a transfer's records by state.
pub async fn counts(
    connection: &mut SqlConnection,
    transfer: &Transfer,
) -> Result<BTreeMap<String, i64>, StoreError> {
    let rows = sqlx::query(
        "select state, count(*) as records from control_transfer_record
         where bucket = $1 and transfer_id = $2 group by state",
    )
    .bind(transfer.seller.bucket())
    .bind(transfer.id.as_str())
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| Ok((row.try_get("state")?, row.try_get("records")?)))
        .collect()
}

table_row! {
    Transfer of "control_transfer" by "transfer_id" {
        id: parsed("transfer_id", TransferId::parse),
        seller: parsed("org_id", OrgId::parse),
        buyer: parsed("buyer_id", OrgId::parse),
        state: parsed("state", TransferState::parse),
        atomic: flag("atomic"),
        terms: optional_text("terms"),
        price_reference: optional_text("price_reference"),
        expires_at: time("expires_at"),
        created_at: time("created_at"),
        changed_at: time("changed_at"),
        acting: optional_parsed("acting_id", OrgId::parse),
        actor: text("actor"),
        offered_at: optional_time("offered_at"),
        offered: optional_json("offered"),
        receipt: optional_json("receipt"),
        signed: optional_json("signed"),
        seller_copy: parsed("seller_copy", SellerCopy::parse),
    }
}

/// Records that a party has sold a record.
pub async fn sold(tx: &mut WriteTransaction, sold: &SoldRecord) -> Result<(), StoreError> {
    // A party may sell a record again after it bought it back. The last sale counts.
    sqlx::query(
        "insert into control_sold (bucket, envelope_id, party_id, org_id, transfer_id, copy, sold_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, envelope_id, party_id) do update set
             transfer_id = excluded.transfer_id, copy = excluded.copy, sold_at = excluded.sold_at",
    )
    .bind_key(&sold.org, sold.envelope.as_str())
    .bind(sold.party.as_str())
    .bind(sold.org.as_str())
    .bind(sold.transfer.as_str())
    .bind(sold.copy.as_str())
    .bind(sold.sold_at.to_string())
    .run(tx)
    .await
}

/// Forgets that the present controller of a record sold it once.
pub async fn bought_back(
    tx: &mut WriteTransaction,
    record: &ControlRecord,
) -> Result<(), StoreError> {
    // The agreement about the seller's copy ends when the party has control again.
    sqlx::query("delete from control_sold where bucket = $1 and envelope_id = $2 and party_id = $3")
        .bind_key(&record.org, record.envelope.as_str())
        .bind(record.controller.as_str())
        .run(tx)
        .await
}

/// Returns what a party agreed when it sold a record of any organization.
pub async fn sold_by(
    connection: &mut SqlConnection,
    party: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<SoldRecord>, StoreError> {
    query_rows("select {columns} from control_sold where party_id = $1 and envelope_id = $2")
        .bind(party.as_str())
        .bind(envelope.as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    SoldRecord of "control_sold" by "envelope_id" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        party: parsed("party_id", OrgId::parse),
        transfer: parsed("transfer_id", TransferId::parse),
        copy: parsed("copy", SellerCopy::parse),
        sold_at: time("sold_at"),
    }
}
