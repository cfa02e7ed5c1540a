//! Requests to destroy records, and records that are destroyed.

use super::row::{json_text, locked_by_id, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{SqlConnection, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::destruction::{
    DestroyedRecord, Destruction, DestructionRecord, DestructionRefusal,
};
use holdfast_domain::envelope::{Envelope, EnvelopeDestruction};
use holdfast_domain::id::{DestructionId, EnvelopeId, OrgId};

/// Adds a request with its records, all of its organization.
pub async fn insert(
    tx: &mut WriteTransaction,
    new: &Destruction,
    records: &[DestructionRecord],
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into destruction (bucket, destruction_id, org_id, reason, certificate_recipient, requested)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind_key(&new.org, new.id.as_str())
    .bind(new.org.as_str())
    .bind(&new.reason)
    .bind(new.certificate_recipient.as_deref())
    .bind(json_text(&new.requested))
    .run(tx)
    .await?;

    for record in records {
        sqlx::query(
            "insert into destruction_record (bucket, destruction_id, envelope_id, org_id, controller_id)
             values ($1, $2, $3, $4, $5)",
        )
        .bind_key(&record.org, record.destruction.as_str())
        .bind(record.envelope.as_str())
        .bind(record.org.as_str())
        .bind(record.controller.as_str())
        .run(tx)
        .await?;
    }
    Ok(())
}

/// Returns a request of an organization.
pub async fn get(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &DestructionId,
) -> Result<Option<Destruction>, StoreError> {
    row_by_id(connection, org, id.as_str()).await
}

/// Returns a request of an organization with its row locked until the transaction ends.
pub async fn lock(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &DestructionId,
) -> Result<Option<Destruction>, StoreError> {
    locked_by_id(tx, org, id.as_str()).await
}

/// Lists the requests of an organization, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&DestructionId>,
    limit: i64,
) -> Result<Vec<Destruction>, StoreError> {
    query_rows(
        "select {columns} from destruction
         where bucket = $1 and org_id = $2 and destruction_id < $3
         order by destruction_id desc limit $4",
    )
    .bind_org(org)
    // Behind every id.
    .bind(after.map_or("e", DestructionId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

/// Writes the steps of a request.
///
/// # Errors
/// [`StoreError::Conflict`] if it was carried out or withdrawn before.
pub async fn update(tx: &mut WriteTransaction, request: &Destruction) -> Result<(), StoreError> {
    sqlx::query(
        "update destruction set authorized = $3, carried_out = $4, withdrawn = $5
         where bucket = $1 and destruction_id = $2 and carried_out is null and withdrawn is null",
    )
    .bind_key(&request.org, request.id.as_str())
    .bind(request.authorized.as_ref().map(json_text))
    .bind(request.carried_out.as_ref().map(json_text))
    .bind(request.withdrawn.as_ref().map(json_text))
    .run_guarded(tx)
    .await
}

/// Records of a request, with their progress. A condition and an order follow.
const RECORDS: &str = "select {columns} from (
     select record.bucket as bucket, record.destruction_id as destruction_id,
         record.envelope_id as envelope_id, record.org_id as org_id,
         record.controller_id as controller_id, record.consented as consented,
         record.refusal as refusal, envelope.destruction as progress
     from destruction_record record
     join envelope on envelope.bucket = record.bucket and envelope.envelope_id = record.envelope_id";

/// Returns the records of a request, in the order of their ids.
pub async fn records(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &DestructionId,
) -> Result<Vec<DestructionRecord>, StoreError> {
    let text = format!(
        "{RECORDS} where record.bucket = $1 and record.org_id = $2 and record.destruction_id = $3
         ) as found order by envelope_id"
    );
    query_rows(sqlx::AssertSqlSafe(text))
        .bind_org(org)
        .bind(id.as_str())
        .fetch_all(connection)
        .await
}

/// Returns a record of a request.
pub async fn record(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    id: &DestructionId,
) -> Result<Option<DestructionRecord>, StoreError> {
    let text = format!(
        "{RECORDS} where record.bucket = $1 and record.envelope_id = $2 and record.destruction_id = $3
         ) as found"
    );
    query_rows(sqlx::AssertSqlSafe(text))
        .bind_key(&envelope.org, envelope.id.as_str())
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns the open request with a record, or the one that is destroying it.
pub async fn open_of(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<DestructionId>, StoreError> {
    let found: Option<String> = sqlx::query_scalar(
        "select record.destruction_id from destruction_record record
         join destruction on destruction.bucket = record.bucket
             and destruction.destruction_id = record.destruction_id
         where record.bucket = $1 and record.envelope_id = $2 and record.refusal is null
             and destruction.withdrawn is null
         order by record.destruction_id limit 1",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
    .fetch_optional(connection)
    .await?;
    Ok(found.as_deref().and_then(DestructionId::parse))
}

/// Returns the records that a party of another organization controls, of all requests that were not withdrawn, or of one.
pub async fn controlled_by(
    connection: &mut SqlConnection,
    controller: &OrgId,
    id: Option<&DestructionId>,
    limit: i64,
) -> Result<Vec<DestructionRecord>, StoreError> {
    // The party knows neither the organization of a request nor its bucket.
    let text = format!(
        "{RECORDS} join destruction on destruction.bucket = record.bucket
             and destruction.destruction_id = record.destruction_id and destruction.withdrawn is null
         where record.controller_id = $1 and record.org_id <> $1
             and ($2 = '' or record.destruction_id = $2)
         ) as found order by destruction_id desc, envelope_id limit $3"
    );
    query_rows(sqlx::AssertSqlSafe(text))
        .bind(controller.as_str())
        .bind(id.map_or("", DestructionId::as_str))
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// Writes the consent of the party that controls a record, or takes it back.
pub async fn consent(
    tx: &mut WriteTransaction,
    record: &DestructionRecord,
) -> Result<(), StoreError> {
    sqlx::query(
        "update destruction_record set consented = $4
         where bucket = $1 and destruction_id = $2 and envelope_id = $3",
    )
    .bind_key(&record.org, record.destruction.as_str())
    .bind(record.envelope.as_str())
    .bind(record.consented.as_ref().map(json_text))
    .run_guarded(tx)
    .await
}

/// Records what stood against the destruction of a record when its turn came.
pub async fn refuse(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    id: &DestructionId,
    refusal: &DestructionRefusal,
) -> Result<(), StoreError> {
    sqlx::query(
        "update destruction_record set refusal = $4
         where bucket = $1 and destruction_id = $2 and envelope_id = $3",
    )
    .bind(envelope.org.bucket())
    .bind(id.as_str())
    .bind(envelope.id.as_str())
    .bind(json_text(refusal))
    .run_guarded(tx)
    .await
}

/// Adds a record at the beginning of its destruction, with its certificate.
pub async fn insert_destroyed(
    tx: &mut WriteTransaction,
    record: &DestroyedRecord,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into destroyed_record (bucket, envelope_id, org_id, certificate, begun_at)
         values ($1, $2, $3, $4, $5)",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(record.org.as_str())
    .bind(&record.certificate)
    .bind(record.begun_at.to_string())
    .run(tx)
    .await
}

/// Returns a record that is being destroyed, or is destroyed.
pub async fn destroyed(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<DestroyedRecord>, StoreError> {
    row_by_id(connection, org, envelope.as_str()).await
}

/// Notes that nothing of a record is left.
pub async fn finish(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "update destroyed_record set destroyed_at = $3
         where bucket = $1 and envelope_id = $2 and destroyed_at is null",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(now.to_string())
    .run_guarded(tx)
    .await
}

table_row! {
    Destruction of "destruction" by "destruction_id" {
        id: parsed("destruction_id", DestructionId::parse),
        org: parsed("org_id", OrgId::parse),
        reason: text("reason"),
        certificate_recipient: optional_text("certificate_recipient"),
        requested: json("requested"),
        authorized: optional_json("authorized"),
        carried_out: optional_json("carried_out"),
        withdrawn: optional_json("withdrawn"),
    }
}

table_row! {
    DestructionRecord of "destruction_record" by "envelope_id" {
        destruction: parsed("destruction_id", DestructionId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        controller: parsed("controller_id", OrgId::parse),
        consented: optional_json("consented"),
        refusal: optional_json("refusal"),
        progress: optional_parsed("progress", EnvelopeDestruction::parse),
    }
}

table_row! {
    DestroyedRecord of "destroyed_record" by "envelope_id" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        certificate: text("certificate"),
        begun_at: time("begun_at"),
        destroyed_at: optional_time("destroyed_at"),
    }
}
