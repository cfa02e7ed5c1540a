//! Addresses by which signers draw an entry of the form on another device.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::id::{EnvelopeId, OrgId, SignerId};
use holdfast_domain::token::LinkToken;

/// Address by which a signer draws an entry on another device.
#[derive(Clone, Debug)]
pub struct DrawingHandover {
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// Place of the signer in the envelope.
    pub position: i64,
    /// Person who asked for the address.
    pub signer: SignerId,
    /// Submitter of the signing room.
    pub submitter: i64,
    /// Name of the field that gets the drawing.
    pub field: String,
    /// Type of the field: `signature` or `initials`.
    pub kind: String,
    pub expires_at: Timestamp,
    /// None while the drawing is awaited.
    pub drawn_at: Option<Timestamp>,
}

impl DrawingHandover {
    /// Returns whether the address still takes a drawing.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.drawn_at.is_none() && self.expires_at > now
    }
}

/// Inserts an address, in place of an earlier one of the same signer.
pub async fn put(
    tx: &mut WriteTransaction,
    handover: &DrawingHandover,
    token: &LinkToken,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into drawing_handover (bucket, envelope_id, position, org_id, signer_id, submitter_id, field,
             kind, token_hash, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (bucket, envelope_id, position) do update set
             signer_id = $5, submitter_id = $6, field = $7, kind = $8, token_hash = $9, expires_at = $10,
             drawn_at = null",
    )
    .bind_key(&handover.org, handover.envelope.as_str())
    .bind(handover.position)
    .bind(handover.org.as_str())
    .bind(handover.signer.as_str())
    .bind(handover.submitter)
    .bind(&handover.field)
    .bind(&handover.kind)
    // Only the hash: a copy of the database hands in no drawing.
    .bind(token.hash().as_str())
    .bind(handover.expires_at.to_string())
    .run(tx)
    .await
}

/// Returns the address with a token; none for an unknown one, or one that was replaced.
pub async fn by_token(
    connection: &mut SqlConnection,
    token: &LinkToken,
) -> Result<Option<DrawingHandover>, StoreError> {
    // The token carries the bucket, because the address names no organization.
    query_rows("select {columns} from drawing_handover where bucket = $1 and token_hash = $2")
        .bind(token.bucket())
        .bind(token.hash().as_str())
        .fetch_optional(connection)
        .await
}

/// Returns the newest address of a signer.
pub async fn of_signer(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    signer: &Signer,
) -> Result<Option<DrawingHandover>, StoreError> {
    query_rows(
        "select {columns} from drawing_handover
         where bucket = $1 and org_id = $2 and envelope_id = $3 and position = $4 and signer_id = $5",
    )
    .bind_org(&envelope.org)
    .bind(envelope.id.as_str())
    .bind(signer.position)
    .bind(signer.id.as_str())
    .fetch_optional(connection)
    .await
}

/// Uses up an address. Returns false if it was used before, replaced, or has expired.
pub async fn take(
    tx: &mut WriteTransaction,
    handover: &DrawingHandover,
    token: &LinkToken,
    now: Timestamp,
) -> Result<bool, StoreError> {
    // Compare-and-swap in one statement: two devices cannot both hand in a drawing.
    sqlx::query(
        "update drawing_handover set drawn_at = $4
         where bucket = $1 and org_id = $2 and token_hash = $3 and drawn_at is null and expires_at > $4",
    )
    .bind_org(&handover.org)
    .bind(token.hash().as_str())
    .bind(now.to_string())
    .changes_row(tx)
    .await
}

/// Deletes the addresses that expired before a time.
pub async fn forget(
    tx: &mut WriteTransaction,
    expired_before: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("delete from drawing_handover where expires_at < $1")
        .bind(expired_before.to_string())
        .run(tx)
        .await
}

table_row! {
    DrawingHandover of "drawing_handover" by "envelope_id" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        position: number("position"),
        signer: parsed("signer_id", SignerId::parse),
        submitter: number("submitter_id"),
        field: text("field"),
        kind: text("kind"),
        expires_at: time("expires_at"),
        drawn_at: optional_time("drawn_at"),
    }
}
