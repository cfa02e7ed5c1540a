//! Open envelopes at their providers: which was not read back for the longest
//! time, and what was seen there.

use sqlx::{AnyConnection, Row as _};

use super::claims::Claim;
use super::row::{Columns, OwnedEnvelope};
use super::{Store, StoreError, Tx};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::Envelope;

/// Takes up to `limit` open envelopes that were not looked at since `since`, the
/// longest forgotten first. Taking one counts as the look: who dies with it, or
/// finds its provider away, leaves it to the next turn.
pub async fn claim(
    store: &Store,
    since: Timestamp,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let due = Claim {
        table: "envelope",
        id: "envelope_id",
        since: "looked_at",
        condition: "status in ('sent', 'viewed') and provider_submission is not null",
        set: "looked_at = $3",
        texts: &[now.to_string()],
        returning: "org_id, envelope_id",
    };
    let rows = due.take(store, since, limit).await?;
    rows.iter()
        .map(|row| {
            let columns = Columns {
                row,
                table: "envelope",
                id: "envelope_id",
            };
            columns.envelope()
        })
        .collect()
}

/// When the last look was noted.
pub async fn looked_at(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query("select looked_at from envelope where bucket = $1 and envelope_id = $2")
        .bind(envelope.org.bucket())
        .bind(envelope.id.as_str())
        .fetch_optional(connection)
        .await?;
    let at: Option<String> = row.map(|row| row.try_get("looked_at")).transpose()?;
    Ok(at.as_deref().and_then(Timestamp::parse))
}

/// Notes a look at the provider and whether it held the submission archived;
/// returns since when it has been seen so.
pub async fn looked(
    tx: &mut Tx,
    envelope: &Envelope,
    archived: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let row = sqlx::query(
        "update envelope set looked_at = $3,
             archived_since = case when $4 = 1 then coalesce(archived_since, $3) end
         where bucket = $1 and envelope_id = $2
         returning envelope_id, archived_since",
    )
    .bind(envelope.org.bucket())
    .bind(envelope.id.as_str())
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
