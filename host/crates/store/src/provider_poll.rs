//! Polling of open envelopes at their providers: which is due, and what the last poll found.

use crate::SqlConnection;
use sqlx::Row as _;

use super::claims::RowClaim;
use super::row::OwnedEnvelope;
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;

/// Claims up to `limit` open envelopes that were not polled since `since`, the longest unpolled
/// first. The claim itself counts as a poll: if the worker dies or the provider is unreachable, the
/// envelope waits for the next round.
pub async fn claim(
    store: &Store,
    since: Timestamp,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let due = RowClaim {
        table: "envelope",
        id: "envelope_id",
        since: "looked_at",
        condition: "status in ('sent', 'viewed') and provider_submission is not null",
        set: "looked_at = $3",
        texts: &[now.to_string()],
    };

    due.take(store, since, limit).await
}

/// Returns the time of the last recorded poll.
pub async fn looked_at(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query("select looked_at from envelope where bucket = $1 and envelope_id = $2")
        .bind_key(&envelope.org, envelope.id.as_str())
        .fetch_optional(connection)
        .await?;
    let at: Option<String> = row.map(|row| row.try_get("looked_at")).transpose()?;
    Ok(at.as_deref().and_then(Timestamp::parse))
}

/// Records a poll and whether the provider reported the submission as archived; returns the time
/// since which it has been archived.
pub async fn looked(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    archived: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    // The first time stays. A void archives the submission
    // before our status changes, so only a longer gap counts.
    let row = sqlx::query(
        "update envelope set looked_at = $3,
             archived_since = case when $4 = 1 then coalesce(archived_since, $3) end
         where bucket = $1 and envelope_id = $2
         returning envelope_id, archived_since",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(now.to_string())
    .bind(i64::from(archived))
    .fetch_optional(&mut **tx)
    .await?;

    let Some(row) = row else {
        return Ok(None);
    };

    let since: Option<String> = row.try_get("archived_since")?;
    Ok(since.as_deref().and_then(Timestamp::parse))
}
