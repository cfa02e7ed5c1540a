//! Legal holds, in the bucket of the organization that placed them.

use sqlx::AssertSqlSafe;

use super::row::{OwnedEnvelope, json_text, locked_by_id, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{SqlConnection, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::hold::{HoldScope, LegalHold, RequestedLift, StoreHold};
use holdfast_domain::id::{CustomerId, EnvelopeId, HoldId, OrgId};

pub async fn insert(tx: &mut WriteTransaction, hold: &LegalHold) -> Result<(), StoreError> {
    sqlx::query(
        "insert into legal_hold (bucket, hold_id, org_id, scope, subject, subject_bucket, reason, case_reference,
             placed_by, placed_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind_key(&hold.org, hold.id.as_str())
    .bind(hold.org.as_str())
    .bind(hold.scope.as_str())
    .bind(&hold.subject)
    .bind(hold.subject_bucket)
    .bind(&hold.reason)
    .bind(&hold.case_reference)
    .bind(&hold.placed_by)
    .bind(hold.placed_at.to_string())
    .run(tx)
    .await
}

/// Returns a hold of an organization.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &HoldId,
) -> Result<Option<LegalHold>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Returns a hold of an organization with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &HoldId,
) -> Result<Option<LegalHold>, StoreError> {
    locked_by_id(tx, org, id.as_str()).await
}

/// Lists the holds of an organization, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&HoldId>,
    limit: i64,
) -> Result<Vec<LegalHold>, StoreError> {
    query_rows(
        "select {columns} from legal_hold where bucket = $1 and org_id = $2 and hold_id < $3
         order by hold_id desc limit $4",
    )
    .bind_org(org)
    .bind(after.map_or(HoldId::LAST, HoldId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Returns the oldest hold in force by which an organization, its controller, holds a record.
pub async fn covering(
    connection: &mut SqlConnection,
    controller: &OrgId,
    envelope: &Envelope,
) -> Result<Option<LegalHold>, StoreError> {
    // Only the originator knows the customer of a record.
    let customer = if *controller == envelope.org {
        envelope.customer.as_str()
    } else {
        ""
    };
    let found: Vec<LegalHold> = query_rows(
        "select {columns} from legal_hold
         where bucket = $1 and org_id = $2 and lifted_at is null
             and (scope in ('organization', 'pool')
                 or (scope = 'envelope' and subject = $3)
                 or (scope = 'customer' and subject = $4))
         order by hold_id",
    )
    .bind_org(controller)
    .bind(envelope.id.as_str())
    .bind(customer)
    .fetch_all(&mut *connection)
    .await?;

    // The records of a pool may be in the bucket of another organization, which no statement joins with this one.
    for hold in found {
        if hold.scope != HoldScope::Pool || is_pooled(connection, &hold, &envelope.id).await? {
            return Ok(Some(hold));
        }
    }
    Ok(None)
}

/// Whether a record is part of the transfer that a hold is about.
async fn is_pooled(
    connection: &mut SqlConnection,
    hold: &LegalHold,
    envelope: &EnvelopeId,
) -> Result<bool, StoreError> {
    // In every state: the hold itself makes the transfer refuse the record, and has to cover it afterwards.
    sqlx::query(
        "select envelope_id from control_transfer_record
         where bucket = $1 and transfer_id = $2 and envelope_id = $3",
    )
    .bind(hold.subject_bucket)
    .bind(&hold.subject)
    .bind(envelope.as_str())
    .finds_row(connection)
    .await
}

/// Returns the oldest hold in force on a whole organization.
pub async fn on_organization(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Option<LegalHold>, StoreError> {
    query_rows(
        "select {columns} from legal_hold
         where bucket = $1 and org_id = $2 and lifted_at is null and scope = 'organization'
         order by hold_id limit 1",
    )
    .bind_org(org)
    .fetch_optional(connection)
    .await
}

/// Returns the oldest hold in force on a customer, or on the whole organization.
pub async fn on_customer(
    connection: &mut SqlConnection,
    org: &OrgId,
    customer: &CustomerId,
) -> Result<Option<LegalHold>, StoreError> {
    query_rows(
        "select {columns} from legal_hold
         where bucket = $1 and org_id = $2 and lifted_at is null
             and (scope = 'organization' or (scope = 'customer' and subject = $3))
         order by hold_id limit 1",
    )
    .bind_org(org)
    .bind(customer.as_str())
    .fetch_optional(connection)
    .await
}

/// Whether an organization has a hold in force, or another party has one and controls a record of it.
pub async fn concern(connection: &mut SqlConnection, org: &OrgId) -> Result<bool, StoreError> {
    let controllers: Vec<String> = sqlx::query_scalar(
        "select distinct controller_id from control_record where bucket = $1 and org_id = $2",
    )
    .bind(org.bucket())
    .bind(org.as_str())
    .fetch_all(&mut *connection)
    .await?;

    let controllers = controllers.iter().filter_map(|id| OrgId::parse(id));
    for party in controllers.chain([org.clone()]) {
        let found = sqlx::query(
            "select hold_id from legal_hold where bucket = $1 and org_id = $2 and lifted_at is null limit 1",
        );
        let found = found.bind_org(&party);
        if found.finds_row(connection).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the holds in force of all organizations.
pub async fn in_force(connection: &mut SqlConnection) -> Result<Vec<LegalHold>, StoreError> {
    query_rows("select {columns} from legal_hold where lifted_at is null")
        .fetch_all(connection)
        .await
}

/// Returns the holds of all organizations that were lifted after a time.
pub async fn lifted_since(
    connection: &mut SqlConnection,
    since: Timestamp,
) -> Result<Vec<LegalHold>, StoreError> {
    query_rows("select {columns} from legal_hold where lifted_at > $1")
        .bind(since.to_string())
        .fetch_all(connection)
        .await
}

/// Lists envelopes of an organization, newest first; with a customer, only that customer's.
pub async fn envelopes(
    connection: &mut SqlConnection,
    org: &OrgId,
    customer: Option<&str>,
    before: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let of_customer = if customer.is_some() {
        " and customer_id = $5"
    } else {
        ""
    };
    let text = format!(
        "select {{columns}} from envelope where bucket = $1 and org_id = $2 and envelope_id < $3{of_customer}
         order by envelope_id desc limit $4"
    );
    let query = query_rows(AssertSqlSafe(text))
        .bind_org(org)
        // Behind every id.
        .bind(before.map_or("f", EnvelopeId::as_str))
        .bind(limit);
    let query = match customer {
        Some(customer) => query.bind(customer),
        None => query,
    };
    query.fetch_all(connection).await
}

/// Lists records of a pool, with any outcome of the transfer, newest first. Their originators are unknown here.
pub async fn pooled(
    connection: &mut SqlConnection,
    hold: &LegalHold,
    before: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<EnvelopeId>, StoreError> {
    let found: Vec<String> = sqlx::query_scalar(
        "select envelope_id from control_transfer_record
         where bucket = $1 and transfer_id = $2 and envelope_id < $3 order by envelope_id desc limit $4",
    )
    .bind(hold.subject_bucket)
    .bind(&hold.subject)
    .bind(before.map_or("f", EnvelopeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await?;

    Ok(found
        .iter()
        .filter_map(|id| EnvelopeId::parse(id))
        .collect())
}

/// Whether something happened to a record since a time, by its ledger.
pub async fn is_changed(
    connection: &mut SqlConnection,
    record: &OwnedEnvelope,
    since: Timestamp,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select sequence from ledger_entry where bucket = $1 and envelope_id = $2 and at > $3 limit 1",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(since.to_string())
    .finds_row(connection)
    .await
}

/// Records how far the object store follows a hold.
///
/// # Errors
/// [`StoreError::Conflict`] if another worker came first, or the end of the hold.
pub async fn set_store_hold(
    tx: &mut WriteTransaction,
    before: &LegalHold,
    next: &StoreHold,
) -> Result<(), StoreError> {
    let lifted_at = before.lifted.as_ref().map(|(_, at)| at.to_string());
    sqlx::query(
        "update legal_hold set store_hold = $3
         where bucket = $1 and hold_id = $2 and coalesce(store_hold, '') = $4 and coalesce(lifted_at, '') = $5",
    )
    .bind_key(&before.org, before.id.as_str())
    .bind(json_text(next))
    .bind(before.store.as_ref().map(json_text).unwrap_or_default())
    .bind(lifted_at.unwrap_or_default())
    .run_guarded(tx)
    .await
}

/// Writes the request to lift a hold, or its end.
///
/// # Errors
/// [`StoreError::Conflict`] if it was lifted before.
pub async fn update(tx: &mut WriteTransaction, hold: &LegalHold) -> Result<(), StoreError> {
    let (lift, lifted) = (hold.lift.as_ref(), hold.lifted.as_ref());
    let account = lift.and_then(|lift| lift.requested_as.as_ref());
    // A lifted hold never changes again: it is the record of the protection and its end.
    sqlx::query(
        "update legal_hold set lift_reason = $3, lift_requested_by = $4, lift_requested_as = $5,
             lift_requested_at = $6, lifted_by = $7, lifted_at = $8, store_hold = $9
         where bucket = $1 and hold_id = $2 and lifted_at is null",
    )
    .bind_key(&hold.org, hold.id.as_str())
    .bind(lift.map(|lift| &lift.reason))
    .bind(lift.map(|lift| &lift.requested_by))
    .bind(account.map(json_text))
    .bind(lift.map(|lift| lift.requested_at.to_string()))
    .bind(lifted.map(|(by, _)| by))
    .bind(lifted.map(|(_, at)| at.to_string()))
    .bind(hold.store.as_ref().map(json_text))
    .run_guarded(tx)
    .await
}

table_row! {
    LegalHold of "legal_hold" by "hold_id"
        also "lift_reason", "lift_requested_by", "lift_requested_as", "lift_requested_at", "lifted_by", "lifted_at"
    {
        id: parsed("hold_id", HoldId::parse),
        org: parsed("org_id", OrgId::parse),
        scope: parsed("scope", HoldScope::parse),
        subject: text("subject"),
        subject_bucket: number("subject_bucket"),
        reason: text("reason"),
        case_reference: text("case_reference"),
        placed_by: text("placed_by"),
        placed_at: time("placed_at"),
        lift: |row| match row.optional_text("lift_reason")? {
            None => None,
            Some(reason) => Some(RequestedLift {
                reason,
                requested_by: row.text("lift_requested_by")?,
                requested_as: row.optional_json("lift_requested_as")?,
                requested_at: row.time("lift_requested_at")?,
            }),
        },
        lifted: |row| row.optional_text("lifted_by")?.zip(row.optional_time("lifted_at")?),
        store: optional_json("store_hold"),
    }
}
