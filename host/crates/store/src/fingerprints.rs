//! Fingerprints of records, and refused acts with records that are registered twice. Comparisons span
//! all organizations.

use crate::SqlConnection;
use sqlx::Row as _;

use super::row::{OwnedEnvelope, RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlRecord;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{DisputeId, EnvelopeId, OrgId, TransferId};

/// Kind of the fingerprints of documents. Those of collateral have its kind.
pub const DOCUMENT: &str = "document";
/// Kind of the fingerprints of executed documents that were signed here.
pub const SIGNED_HERE: &str = "signed_here";

/// Fingerprint of a record.
#[derive(Clone, Debug)]
pub struct Fingerprint {
    pub value: String,
    pub kind: String,
}

/// Another record with the same fingerprint, under another controller.
#[derive(Clone, Debug)]
pub struct OtherRecord {
    pub record: OwnedEnvelope,
    pub kind: String,
    /// Since when its controller has control.
    pub since: Timestamp,
    /// Whether it was signed elsewhere, and this record here: every organization can upload a document with the collateral of a
    /// contract, or its copy, so it does not hold up the contract.
    pub outranked: bool,
}

/// Returns the sealed key of the fingerprints.
pub async fn key(connection: &mut SqlConnection) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select sealed from fingerprint_key where bucket = 0 and key_id = '1'")
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|row| row.try_get("sealed")).transpose()?)
}

/// Stores the sealed key, unless there is one.
pub async fn insert_key(tx: &mut WriteTransaction, sealed: &str) -> Result<(), StoreError> {
    // Of two nodes that start at once, the first key counts. The caller reads it back.
    sqlx::query(
        "insert into fingerprint_key (bucket, key_id, org_id, sealed) values (0, '1', '', $1)
         on conflict (bucket, key_id) do nothing",
    )
    .bind(sealed)
    .run(tx)
    .await
}

/// Adds fingerprints of a record. Those that it has already stay.
pub async fn insert(
    tx: &mut WriteTransaction,
    org: &OrgId,
    envelope: &EnvelopeId,
    fingerprints: &[Fingerprint],
) -> Result<(), StoreError> {
    for fingerprint in fingerprints {
        sqlx::query(
            "insert into record_fingerprint (bucket, envelope_id, org_id, fingerprint, kind)
             values ($1, $2, $3, $4, $5)
             on conflict (bucket, envelope_id, fingerprint) do nothing",
        )
        .bind_key(org, envelope.as_str())
        .bind(org.as_str())
        .bind(&fingerprint.value)
        .bind(&fingerprint.kind)
        .execute(&mut **tx)
        .await?;
    }

    Ok(())
}

/// Gives an envelope the fingerprints of another one's collateral.
pub async fn copy_collateral(
    tx: &mut WriteTransaction,
    from: &Envelope,
    to: &EnvelopeId,
) -> Result<(), StoreError> {
    // Fingerprints of documents are made of the executed document, which the other envelope does not have yet.
    sqlx::query(
        "insert into record_fingerprint (bucket, envelope_id, org_id, fingerprint, kind)
         select bucket, $3, org_id, fingerprint, kind from record_fingerprint
             where bucket = $1 and envelope_id = $2 and kind <> $4 and kind <> $5",
    )
    .bind_key(&from.org, from.id.as_str())
    .bind(to.as_str())
    .bind(DOCUMENT)
    .bind(SIGNED_HERE)
    .run(tx)
    .await
}

/// Whether a record has fingerprints of its document.
pub async fn has_document(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select fingerprint from record_fingerprint
         where bucket = $1 and envelope_id = $2 and kind = 'document' limit 1",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .finds_row(connection)
    .await
}

/// Makes acts with records that share a fingerprint with this one wait for each other until the
/// transaction ends.
pub async fn lock(tx: &mut WriteTransaction, record: &ControlRecord) -> Result<(), StoreError> {
    // In one order for all, so that two acts do not wait for each other forever.
    // The update without effect also locks rows that exist, which `do nothing` would not.
    sqlx::query(
        "insert into fingerprint_lock (fingerprint)
         select fingerprint from record_fingerprint where bucket = $1 and envelope_id = $2
             order by fingerprint
         on conflict (fingerprint) do update set fingerprint = excluded.fingerprint",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .run(tx)
    .await
}

/// Returns the records with a fingerprint of this one that a party other than its originator and
/// `controller` controls, or that is pledged to a party other than `controller`, at most 50. Two documents that were signed here are two contracts, also
/// if they are equal; and records that one transfer passes on stay in one hand. Claims that operators have suspended do
/// not count. Those that are not outranked come first; `signed_here` is about this record.
pub async fn other_records(
    connection: &mut SqlConnection,
    before: &ControlRecord,
    record: &ControlRecord,
    controller: &OrgId,
    signed_here: bool,
) -> Result<Vec<OtherRecord>, StoreError> {
    // An act that gives control calls this under `lock`, so no other one claims a fingerprint in between.
    // Originators that control their own records claim nothing yet, and a pledge counts since it was made.
    query_rows(
        "select other.org_id, other.envelope_id, own.kind,
             coalesce(p.created_at, c.controlled_since) as since,
             case when $7 = 1 and not exists
                 (select 1 from record_fingerprint signed where signed.bucket = other.bucket
                     and signed.envelope_id = other.envelope_id and signed.kind = 'signed_here')
             then 1 else 0 end as outranked
         from record_fingerprint own
         join record_fingerprint other on other.fingerprint = own.fingerprint
         join control_record c on c.bucket = other.bucket and c.envelope_id = other.envelope_id
         left join control_pledge p on p.bucket = c.bucket and p.pledge_id = c.pledge_id
         where own.bucket = $1 and own.envelope_id = $2 and other.envelope_id <> $2
             and not (own.kind = 'signed_here' and other.kind = 'signed_here')
             and (c.controller_id <> $3 and c.controller_id <> c.org_id or c.pledgee_id <> $3)
             and c.stage <> 'released'
             and not exists (select 1 from control_conflict k
                 join record_fingerprint met on met.envelope_id = k.envelope_id
                 where k.other_id = other.envelope_id and k.suspended_at is not null
                     and met.fingerprint = other.fingerprint)
             and not exists (select 1 from control_transfer_record t
                 where t.bucket = $4 and t.transfer_id = $5 and t.envelope_id = other.envelope_id
                     and c.controller_id = $6 and t.state in ('pending', 'proposed', 'accepted'))
         order by outranked, since limit 50",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(controller.as_str())
    // The transfer that moves this record now or has just moved it: its other records stay in one hand.
    .bind(before.controller.bucket())
    .bind(
        before
            .transfer
            .as_ref()
            .or(record.transfer.as_ref())
            .map(TransferId::as_str),
    )
    .bind(before.controller.as_str())
    .bind(i64::from(signed_here))
    .fetch_all(connection)
    .await
}

table_row! {
    OtherRecord of "record_fingerprint" by "envelope_id" also "org_id", "envelope_id" {
        record: |row| row.envelope()?,
        kind: text("kind"),
        since: time("since"),
        outranked: flag("outranked"),
    }
}

/// Counts the declared collateral of documents that were signed elsewhere, of an organization since `since`.
pub async fn unsigned_claims(
    connection: &mut SqlConnection,
    org: &OrgId,
    since: Timestamp,
) -> Result<i64, StoreError> {
    // An upload with declared collateral costs nothing and can
    // hold up contracts of others, so their number is limited.
    let row = sqlx::query(
        "select count(*) as claims from record_fingerprint f
         join envelope e on e.bucket = f.bucket and e.envelope_id = f.envelope_id
         where f.bucket = $1 and f.org_id = $2 and f.kind not in ('document', 'signed_here')
             and e.is_upload = 1 and e.created_at > $3",
    )
    .bind_org(org)
    .bind(since.to_string())
    .fetch_one(connection)
    .await?;

    Ok(row.try_get("claims")?)
}

/// Counts a refused act. Returns the reference of the conflict between the two records, and the number
/// of attempts so far.
pub async fn count_conflict(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
    other: &EnvelopeId,
    now: Timestamp,
) -> Result<(DisputeId, i64), StoreError> {
    // The reference of the first attempt stays: both sides speak of one conflict.
    let row = sqlx::query(
        "insert into control_conflict (bucket, envelope_id, other_id, org_id, reference, attempts,
             first_at)
         values ($1, $2, $3, $4, $5, 1, $6)
         on conflict (bucket, envelope_id, other_id) do update set
             attempts = control_conflict.attempts + 1
         returning reference, attempts, envelope_id",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(other.as_str())
    .bind(record.org.as_str())
    .bind(DisputeId::new().as_str())
    .bind(now.to_string())
    .fetch_one(&mut **tx)
    .await?;

    let columns = RowColumns::of(&row, "control_conflict", "envelope_id");
    Ok((
        columns.parsed("reference", DisputeId::parse)?,
        columns.number("attempts")?,
    ))
}

/// Claim of another party on the collateral or the document of a record.
#[derive(Clone, Debug)]
pub struct OtherClaim {
    pub envelope: EnvelopeId,
    /// Since when another party has control or a pledge.
    pub since: Timestamp,
    /// Reference of the conflict, if an act with the record has met the claim.
    pub reference: Option<DisputeId>,
}

table_row! {
    OtherClaim of "record_fingerprint" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        since: time("since"),
        reference: optional_parsed("reference", DisputeId::parse),
    }
}

/// Returns the oldest claim of parties other than `party` for each of these records of an originator. The conditions are
/// those of [`other_records`], without claims that a record that was signed here outranks.
pub async fn claims_on(
    connection: &mut SqlConnection,
    originator: &OrgId,
    envelopes: &[EnvelopeId],
    party: &OrgId,
) -> Result<Vec<OtherClaim>, StoreError> {
    // `in ()` is not valid SQL.
    if envelopes.is_empty() {
        return Ok(Vec::new());
    }

    let text = format!(
        "select own.envelope_id as envelope_id, min(coalesce(p.created_at, c.controlled_since)) as since,
             min(k.reference) as reference
         from record_fingerprint own
         join envelope e on e.bucket = own.bucket and e.envelope_id = own.envelope_id
         join record_fingerprint other on other.fingerprint = own.fingerprint
         join control_record c on c.bucket = other.bucket and c.envelope_id = other.envelope_id
         left join control_pledge p on p.bucket = c.bucket and p.pledge_id = c.pledge_id
         left join control_conflict k on k.bucket = own.bucket and k.envelope_id = own.envelope_id
             and k.other_id = other.envelope_id
         where own.bucket = $1 and own.org_id = $2 and other.envelope_id <> own.envelope_id
             and not (own.kind = 'signed_here' and other.kind = 'signed_here')
             and (c.controller_id <> $3 and c.controller_id <> c.org_id or c.pledgee_id <> $3)
             and c.stage <> 'released'
             and (e.is_upload = 1 or exists (select 1 from record_fingerprint signed
                 where signed.bucket = other.bucket and signed.envelope_id = other.envelope_id
                     and signed.kind = 'signed_here'))
             and not exists (select 1 from control_conflict s
                 join record_fingerprint met on met.envelope_id = s.envelope_id
                 where s.other_id = other.envelope_id and s.suspended_at is not null
                     and met.fingerprint = other.fingerprint)
             and own.envelope_id in ({})
         group by own.envelope_id",
        super::row::numbered(4, envelopes.len())
    );
    let mut query = query_rows::<OtherClaim>(sqlx::AssertSqlSafe(text))
        .bind_org(originator)
        .bind(party.as_str());
    for envelope in envelopes {
        query = query.bind(envelope.as_str());
    }
    query.fetch_all(connection).await
}
