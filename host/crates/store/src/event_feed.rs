//! Feed of an organization's events, in the order in which they became visible.
//!
//! Ids of events sort by the clocks of the nodes, and an event becomes visible when its transaction commits, which may
//! be after that of a later id. So a reader of the feed first gives places to events that have none: each is behind all
//! places that any reader has seen.

use crate::SqlConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::EventType;
use holdfast_domain::id::{EventId, OrgId};

/// Returns the latest event that has a place.
pub async fn latest(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Option<EventId>, StoreError> {
    let row = sqlx::query(
        "select max(event_id) as latest from event_place where bucket = $1 and org_id = $2",
    )
    .bind_org(org)
    .fetch_one(connection)
    .await?;
    let latest: Option<String> = row.try_get("latest")?;

    Ok(latest.as_deref().and_then(EventId::parse))
}

/// Whether an event after `from` has no place. Events before it were visible when the last place was given.
pub async fn lacks_places(
    connection: &mut SqlConnection,
    org: &OrgId,
    from: &EventId,
) -> Result<bool, StoreError> {
    // Most readings find nothing to place, so they look first and write nothing.
    sqlx::query(
        "select e.event_id from event e
         where e.bucket = $1 and e.org_id = $2 and e.event_id > $3 and not exists (
             select 1 from event_place p
             where p.bucket = e.bucket and p.org_id = e.org_id and p.event_id = e.event_id
         )
         limit 1",
    )
    .bind_org(org)
    .bind(from.as_str())
    .finds_row(connection)
    .await
}

/// Gives places to up to `limit` events after `from`, without a gap.
///
/// # Errors
/// A violation of uniqueness, if another reader gave a place meanwhile.
pub async fn place(
    tx: &mut WriteTransaction,
    org: &OrgId,
    from: &EventId,
    now: Timestamp,
    limit: i64,
) -> Result<(), StoreError> {
    // Readers at the same time compute the same first position. The
    // primary key lets one insert pass, so no position is given twice.
    sqlx::query(
        "insert into event_place (bucket, org_id, position, event_id, placed_at)
         select e.bucket, e.org_id,
             row_number() over (order by e.event_id) + (
                 select coalesce(max(position), 0) from event_place where bucket = $1 and org_id = $2
             ),
             e.event_id, $4
         from event e
         where e.bucket = $1 and e.org_id = $2 and e.event_id > $3 and not exists (
             select 1 from event_place p
             where p.bucket = e.bucket and p.org_id = e.org_id and p.event_id = e.event_id
         )
         order by e.event_id limit $5",
    )
        .bind_org(org)
        .bind(from.as_str())
        .bind(now.to_string())
        .bind(limit)
        .run(tx)
        .await
}

/// Returns the place of an event.
pub async fn position(
    connection: &mut SqlConnection,
    org: &OrgId,
    event: &EventId,
) -> Result<Option<i64>, StoreError> {
    let row = sqlx::query(
        "select position from event_place where bucket = $1 and org_id = $2 and event_id = $3",
    )
    .bind_org(org)
    .bind(event.as_str())
    .fetch_optional(connection)
    .await?;

    Ok(row.map(|row| row.try_get("position")).transpose()?)
}

/// Whether the organization has, or had, an event.
pub async fn is_known(
    connection: &mut SqlConnection,
    org: &OrgId,
    event: &EventId,
) -> Result<bool, StoreError> {
    // The row outlives the body and the place of its event: a lost cursor is another answer than a wrong id.
    sqlx::query("select event_id from event where bucket = $1 and org_id = $2 and event_id = $3")
        .bind_org(org)
        .bind(event.as_str())
        .finds_row(connection)
        .await
}

/// Whether an event behind a place has lost its body. Events from `kept` on have theirs.
pub async fn has_gap(
    connection: &mut SqlConnection,
    org: &OrgId,
    position: i64,
    kept: &EventId,
) -> Result<bool, StoreError> {
    sqlx::query(
        "select p.position from event_place p
         where p.bucket = $1 and p.org_id = $2 and p.event_id < $3 and p.position > $4 and not exists (
             select 1 from event e
             where e.bucket = p.bucket and e.event_id = p.event_id and e.body <> ''
         )
         limit 1",
    )
    .bind_org(org)
    .bind(kept.as_str())
    .bind(position)
    .finds_row(connection)
    .await
}

/// Which events are read.
pub enum FeedPart {
    /// Those behind a place, first ones first.
    After(i64),
    /// The last ones, latest first.
    Last,
}

/// Returns bodies of events of these types, or of all.
pub async fn bodies(
    connection: &mut SqlConnection,
    org: &OrgId,
    part: &FeedPart,
    types: &[EventType],
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let (after, order) = match part {
        FeedPart::After(position) => (*position, "asc"),
        FeedPart::Last => (0, "desc"),
    };

    // Words of an enumeration, not of the caller.
    let named: Vec<String> = types.iter().map(|one| format!("'{one}'")).collect();
    let wanted = if named.is_empty() {
        String::new()
    } else {
        format!("and e.event_type in ({})", named.join(", "))
    };
    let text = format!(
        "select e.body from event_place p
         join event e on e.bucket = p.bucket and e.event_id = p.event_id
         where p.bucket = $1 and p.org_id = $2 and p.position > $3 and e.body <> '' {wanted}
         order by p.position {order} limit $4"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(after)
        .bind(limit)
        .fetch_all(connection)
        .await?;

    rows.iter().map(|row| Ok(row.try_get("body")?)).collect()
}

/// Forgets up to `limit` places from before a time if the next place is from before it, too. Returns their number. So a
/// reader that has handled all events can go on after any time without events.
pub async fn forget(
    tx: &mut WriteTransaction,
    before: Timestamp,
    limit: i64,
) -> Result<u64, StoreError> {
    // The newest place of each organization stays, however old: a reader may have it as cursor.
    let done = sqlx::query(
        "delete from event_place where (bucket, org_id, position) in (
             select p.bucket, p.org_id, p.position from event_place p
             join event_place next on next.bucket = p.bucket and next.org_id = p.org_id
                 and next.position = p.position + 1
             where p.placed_at < $1 and next.placed_at < $1
             order by p.placed_at, p.position limit $2
         )",
    )
    .bind(before.to_string())
    .bind(limit)
    .execute(&mut **tx)
    .await?;

    Ok(done.rows_affected())
}
