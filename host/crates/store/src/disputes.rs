//! Disputes about two records of one collateral or document, by the reference of their conflict.

use crate::SqlConnection;

use super::row::{OwnedEnvelope, RowColumns, json_text, query_locked, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::{DisputeId, EnvelopeId, OrgId};
use holdfast_domain::user::IssuerIdentity;

/// A conflict, with what its sides and the operators say.
#[derive(Clone, Debug)]
pub struct Dispute {
    pub reference: DisputeId,
    /// Record of the act that met the claim.
    pub record: OwnedEnvelope,
    /// Record with the claim.
    pub claim: EnvelopeId,
    pub attempts: i64,
    pub first_at: Timestamp,
    /// Of the record's side.
    pub statement: Option<String>,
    /// Of the claim's side.
    pub other_statement: Option<String>,
    pub suspension: Option<ClaimSuspension>,
}

/// Suspension of the claim, which a second operator has to approve.
#[derive(Clone, Debug)]
pub struct ClaimSuspension {
    pub reason: String,
    pub requested_by: String,
    /// Account at an issuer with which that operator signed in.
    pub requested_as: Option<IssuerIdentity>,
    pub requested_at: Timestamp,
    /// Who approved it, and when.
    pub approved: Option<(String, Timestamp)>,
}

/// Returns a dispute.
pub async fn get(
    connection: &mut SqlConnection,
    reference: &DisputeId,
) -> Result<Option<Dispute>, StoreError> {
    query_rows("select {columns} from control_conflict where reference = $1")
        .bind(reference.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns a dispute with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    reference: &DisputeId,
) -> Result<Option<Dispute>, StoreError> {
    query_locked(
        tx,
        "select {columns} from control_conflict where reference = $1",
    )
    .bind(reference.as_str())
    .fetch_optional(tx)
    .await
}

/// Returns the disputes in which a side has made a statement, or a suspension was requested: first those that wait for a
/// second operator, then the newest.
pub async fn list(connection: &mut SqlConnection, limit: i64) -> Result<Vec<Dispute>, StoreError> {
    // Other conflicts are only counted attempts, about which operators have nothing to decide.
    query_rows(
        "select {columns} from control_conflict
         where statement is not null or other_statement is not null or requested_at is not null
         order by case when requested_at is not null and suspended_at is null then 0 else 1 end,
             first_at desc, reference limit $1",
    )
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Whether two records have met before.
pub async fn have_met(
    connection: &mut SqlConnection,
    record: &OwnedEnvelope,
    claim: &EnvelopeId,
) -> Result<bool, StoreError> {
    // The row stays for ever, so that each pair is reported once.
    sqlx::query(
        "select reference from control_conflict
         where bucket = $1 and envelope_id = $2 and other_id = $3",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(claim.as_str())
    .finds_row(connection)
    .await
}

/// Writes statements and suspension of a dispute.
pub async fn update(tx: &mut WriteTransaction, dispute: &Dispute) -> Result<(), StoreError> {
    let suspension = dispute.suspension.as_ref();
    let approved = suspension.and_then(|suspension| suspension.approved.as_ref());
    // The account is kept because the second operator needs another one, even as another user.
    let account = suspension.and_then(|suspension| suspension.requested_as.as_ref());
    sqlx::query(
        "update control_conflict set statement = $4, other_statement = $5, suspension_reason = $6,
             requested_by = $7, requested_at = $8, suspended_by = $9, suspended_at = $10, requested_as = $11
         where bucket = $1 and envelope_id = $2 and other_id = $3",
    )
    .bind(dispute.record.org.bucket())
    .bind(dispute.record.envelope.as_str())
    .bind(dispute.claim.as_str())
    .bind(&dispute.statement)
    .bind(&dispute.other_statement)
    .bind(suspension.map(|suspension| &suspension.reason))
    .bind(suspension.map(|suspension| &suspension.requested_by))
    .bind(suspension.map(|suspension| suspension.requested_at.to_string()))
    .bind(approved.map(|(by, _)| by))
    .bind(approved.map(|(_, at)| at.to_string()))
    .bind(account.map(json_text))
    .run(tx)
    .await
}

/// Whether the two records of a dispute share a fingerprint, which is suspended.
pub async fn share_fingerprint(
    connection: &mut SqlConnection,
    dispute: &Dispute,
    claimant: &OrgId,
) -> Result<bool, StoreError> {
    // Declared collateral may change after the conflict; a suspension then has no object any more.
    sqlx::query(
        "select own.kind from record_fingerprint own
         join record_fingerprint other on other.fingerprint = own.fingerprint
         where own.bucket = $1 and own.envelope_id = $2 and other.bucket = $3 and other.envelope_id = $4
         limit 1",
    )
    .bind(dispute.record.org.bucket())
    .bind(dispute.record.envelope.as_str())
    .bind(claimant.bucket())
    .bind(dispute.claim.as_str())
    .finds_row(connection)
    .await
}

table_row! {
    Dispute of "control_conflict" by "envelope_id"
        also "org_id", "envelope_id", "suspension_reason", "requested_by", "requested_as", "requested_at",
            "suspended_by", "suspended_at"
    {
        reference: parsed("reference", DisputeId::parse),
        record: |row| row.envelope()?,
        claim: parsed("other_id", EnvelopeId::parse),
        attempts: number("attempts"),
        first_at: time("first_at"),
        statement: optional_text("statement"),
        other_statement: optional_text("other_statement"),
        suspension: |row| suspension(row)?,
    }
}

fn suspension(row: &RowColumns<'_>) -> Result<Option<ClaimSuspension>, StoreError> {
    // A request alone suspends nothing: two operators decide.
    let approved = row
        .optional_text("suspended_by")?
        .zip(row.optional_time("suspended_at")?);

    let requested = row
        .optional_text("requested_by")?
        .zip(row.optional_time("requested_at")?);
    let requested_as = row.optional_json("requested_as")?;
    let reason = row.optional_text("suspension_reason")?;

    let suspension = reason.zip(requested);
    Ok(
        suspension.map(|(reason, (requested_by, requested_at))| ClaimSuspension {
            reason,
            requested_by,
            requested_as,
            requested_at,
            approved,
        }),
    )
}
