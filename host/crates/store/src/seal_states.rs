//! What the seals of authoritative copies prove, and the updates that keep them provable.

use crate::SqlConnection;
use sqlx::Row as _;

use super::claims::RowClaim;
use super::row::{OwnedEnvelope, json_text, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, KeptFile, StoredFile};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::signature::{DigestAlgorithm, SealLevel};

/// State of one seal.
#[derive(Clone, Debug)]
pub struct StoredSealState {
    pub level: SealLevel,
    /// Why the level is not higher.
    pub reason: Option<String>,
    /// Bytes behind the authoritative copy; none before the first update.
    pub updates: Option<StoredFile>,
    /// Time stamps over the document among the updates.
    pub stamps: i64,
    /// Digest algorithm of the newest time stamp.
    pub digest: Option<DigestAlgorithm>,
    /// When the certificate of the newest time stamp ends.
    pub ends_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When to look again; none if nothing can be added.
    pub due_at: Option<Timestamp>,
}

table_row! {
    StoredSealState of "seal_state" by "envelope_id" {
        level: parsed("level", SealLevel::parse),
        reason: optional_text("reason"),
        updates: optional_file("updates"),
        stamps: number("stamps"),
        digest: optional_parsed("digest", DigestAlgorithm::parse),
        ends_at: optional_time("ends_at"),
        created_at: time("created_at"),
        due_at: optional_time("due_at"),
    }
}

/// Stores the state of a seal that was just made.
pub async fn insert(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    state: &StoredSealState,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into seal_state (bucket, envelope_id, org_id, level, reason, stamps, created_at, due_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (bucket, envelope_id) do nothing",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(state.level.as_str())
    .bind(state.reason.as_deref())
    .bind(state.stamps)
    .bind(state.created_at.to_string())
    .bind(state.due_at.map(|due| due.to_string()))
    .run(tx)
    .await
}

/// Returns the state of an envelope's seal.
pub async fn of_envelope(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<StoredSealState>, StoreError> {
    row_by_id(connection, org, envelope.as_str()).await
}

/// Replaces a state that was read before.
///
/// # Errors
/// [`StoreError::Conflict`] if another worker added an update meanwhile.
pub async fn replace(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    before: &StoredSealState,
    after: &StoredSealState,
) -> Result<(), StoreError> {
    let sha256 = |state: &StoredSealState| state.updates.as_ref().map(|file| file.sha256.clone());
    let updates = after.updates.clone().map(KeptFile);
    sqlx::query(
        "update seal_state set level = $4, reason = $5, updates = $6, updates_sha256 = $7,
             stamps = $8, digest = $9, ends_at = $10, due_at = $11
         where bucket = $1 and envelope_id = $2 and coalesce(updates_sha256, '') = $3",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(sha256(before).unwrap_or_default())
    .bind(after.level.as_str())
    .bind(after.reason.as_deref())
    .bind(updates.as_ref().map(json_text))
    .bind(sha256(after))
    .bind(after.stamps)
    .bind(after.digest.map(DigestAlgorithm::as_str))
    .bind(after.ends_at.map(|ends| ends.to_string()))
    .bind(after.due_at.map(|due| due.to_string()))
    .run_guarded(tx)
    .await
}

/// Claims up to `limit` seals due before `before`. If the worker dies, its claims are due again
/// at `lease_until`.
pub async fn claim(
    store: &Store,
    before: Timestamp,
    lease_until: Timestamp,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let due = RowClaim {
        table: "seal_state",
        id: "envelope_id",
        since: "due_at",
        condition: "due_at is not null",
        set: "due_at = $3",
        texts: &[lease_until.to_string()],
    };

    due.take(store, before, limit).await
}

/// Makes every seal due whose newest time stamp has another digest algorithm, unless it is due until `soon` anyway: it is
/// being worked on then, or was lately without success.
pub async fn make_due(
    tx: &mut WriteTransaction,
    wanted: DigestAlgorithm,
    now: Timestamp,
    soon: Timestamp,
) -> Result<(), StoreError> {
    // One statement for each, because an index finds equal values only. Usually there are no such rows.
    for other in DigestAlgorithm::ALL
        .iter()
        .filter(|other| **other != wanted)
    {
        sqlx::query("update seal_state set due_at = $2 where digest = $1 and due_at > $3")
            .bind(other.as_str())
            .bind(now.to_string())
            .bind(soon.to_string())
            .run(tx)
            .await?;
    }
    Ok(())
}

/// Returns the number of seals whose newest time stamp ends before `end`, and the earliest end. Those to which nothing can be
/// added are left out.
pub async fn ending(
    connection: &mut SqlConnection,
    end: Timestamp,
) -> Result<(i64, Option<String>), StoreError> {
    let row = sqlx::query(
        "select count(*) as ending, min(ends_at) as earliest from seal_state
         where ends_at is not null and ends_at < $1 and due_at is not null",
    )
    .bind(end.to_string())
    .fetch_one(connection)
    .await?;

    Ok((row.try_get("ending")?, row.try_get("earliest")?))
}
