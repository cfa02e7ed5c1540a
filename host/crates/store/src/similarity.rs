//! Signatures of documents for finding scans and reprints, and records that were found similar.
//! Comparisons span all organizations.

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::row::{OwnedEnvelope, RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::ControlRecord;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{DisputeId, EnvelopeId, OrgId};
use holdfast_domain::similarity::Signature;

/// Records that one is compared with: those with most bands in common.
const COMPARED: i64 = 100;

/// Records with a band that make it one of a form, and not of a contract. Such bands are not compared.
const COMMON: i64 = 500;

/// Another record that may be similar.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub record: OwnedEnvelope,
    pub signature: Signature,
    /// Since when its controller has control, or its pledgee the pledge.
    pub since: Timestamp,
}

/// A record that was found similar to another one.
#[derive(Clone, Debug)]
pub struct FoundSimilar {
    pub reference: DisputeId,
    /// Part of the words that both share, in percent.
    pub percent: i64,
    pub since: Timestamp,
}

/// Returns the signature of a record: none if it was not computed, and a none inside if its document has
/// too few words.
pub async fn signature(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<Option<Signature>>, StoreError> {
    let row = sqlx::query(
        "select envelope_id, signature from record_text where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .fetch_optional(connection)
    .await?;

    row.map(|row| {
        let columns = RowColumns::of(&row, "record_text", "envelope_id");
        columns.optional_parsed("signature", Signature::parse)
    })
    .transpose()
}

/// Stores the signature of a record, unless it has one.
pub async fn insert(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    signature: Option<&Signature>,
) -> Result<(), StoreError> {
    // A null signature is kept, too, so that a document with too few words is not read again.
    sqlx::query(
        "insert into record_text (bucket, envelope_id, org_id, signature, signed_here)
         values ($1, $2, $3, $4, $5)
         on conflict (bucket, envelope_id) do nothing",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(signature.map(Signature::text))
    .bind(i64::from(!envelope.is_upload()))
    .execute(&mut **tx)
    .await?;

    let bands = signature.map(Signature::bands).unwrap_or_default();
    if bands.is_empty() {
        return Ok(());
    }

    let rows = (0..bands.len()).map(|index| format!("($1, $2, $3, ${})", index + 4));
    let text = format!(
        "insert into record_band (bucket, envelope_id, org_id, band) values {}
         on conflict (bucket, envelope_id, band) do nothing",
        rows.collect::<Vec<_>>().join(", ")
    );
    let mut query = sqlx::query(AssertSqlSafe(text))
        .bind_key(&envelope.org, envelope.id.as_str())
        .bind(envelope.org.as_str());
    for band in bands {
        query = query.bind(band);
    }

    query.run(tx).await
}

/// Returns live records that another party controls or has a pledge of, and that share a band with this one:
/// those with most bands in common. Two documents that were signed here are two contracts.
pub async fn candidates(
    connection: &mut SqlConnection,
    record: &ControlRecord,
) -> Result<Vec<Candidate>, StoreError> {
    // Shared bands choose a bounded number of records; only their signatures are
    // compared. Originators that control their own records claim nothing yet.
    let rows = sqlx::query(
        "select t.org_id, t.envelope_id, t.signature, coalesce(p.created_at, c.controlled_since) as since
         from (select other.bucket, other.envelope_id, count(*) as bands
             from record_band own
             join record_band other on other.band = own.band
             join record_text mine on mine.bucket = own.bucket and mine.envelope_id = own.envelope_id
             join record_text theirs on theirs.bucket = other.bucket
                 and theirs.envelope_id = other.envelope_id
             join control_record c on c.bucket = other.bucket and c.envelope_id = other.envelope_id
             where own.bucket = $1 and own.envelope_id = $2 and other.envelope_id <> $2
                 and (select count(*) from
                     (select 1 from record_band b where b.band = own.band limit $6) as many) < $6
                 and mine.signed_here + theirs.signed_here < 2 and c.stage <> 'released'
                 and (c.controller_id <> $3 and c.controller_id <> c.org_id or c.pledgee_id <> $5)
             group by other.bucket, other.envelope_id
             order by bands desc, other.envelope_id limit $4) as near
         join record_text t on t.bucket = near.bucket and t.envelope_id = near.envelope_id
         join control_record c on c.bucket = near.bucket and c.envelope_id = near.envelope_id
         left join control_pledge p on p.bucket = c.bucket and p.pledge_id = c.pledge_id",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(record.controller.as_str())
    .bind(COMPARED)
    // A lender that has a pledge of both is no second one.
    .bind(record.pledgee().map_or("", OrgId::as_str))
    .bind(COMMON)
    .fetch_all(connection)
    .await?;

    let mut found = Vec::new();
    for row in rows {
        let columns = RowColumns::of(&row, "record_text", "envelope_id");
        if let Some(signature) = columns.optional_parsed("signature", Signature::parse)? {
            found.push(Candidate {
                record: columns.envelope()?,
                signature,
                since: columns.time("since")?,
            });
        }
    }

    Ok(found)
}

/// Records that one record is similar to another, of which a party has control since `since`. Returns false
/// if the pair is known.
pub async fn found(
    tx: &mut WriteTransaction,
    record: &OwnedEnvelope,
    other: &EnvelopeId,
    found: &FoundSimilar,
) -> Result<bool, StoreError> {
    // A pair is reported once, although each comparison of either record finds it again.
    sqlx::query(
        "insert into record_similar (bucket, envelope_id, other_id, org_id, reference, percent, since)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (bucket, envelope_id, other_id) do nothing",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .bind(other.as_str())
    .bind(record.org.as_str())
    .bind(found.reference.as_str())
    .bind(found.percent)
    .bind(found.since.to_string())
    .changes_row(tx)
    .await
}

/// Lists the similar documents of a record, the most similar first.
pub async fn list(
    connection: &mut SqlConnection,
    record: &OwnedEnvelope,
) -> Result<Vec<FoundSimilar>, StoreError> {
    query_rows(
        "select {columns} from record_similar where bucket = $1 and envelope_id = $2
         order by percent desc, reference",
    )
    .bind_key(&record.org, record.envelope.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    FoundSimilar of "record_similar" by "envelope_id" also "envelope_id" {
        reference: parsed("reference", DisputeId::parse),
        percent: number("percent"),
        since: time("since"),
    }
}
