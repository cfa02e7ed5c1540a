//! Schedule and results of the integrity checks of vaulted envelopes.

use std::collections::HashMap;

use crate::SqlConnection;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::claims::RowClaim;
use super::row::{OwnedEnvelope, RowColumns};
use super::statement::RunStatement as _;
use super::{Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{EnvelopeId, OrgId};

/// Progress of the checks.
#[derive(Clone, Copy, Debug)]
pub struct IntegrityProgress {
    /// Envelopes in the vault or released from it.
    pub total: i64,
    /// Envelopes checked since the requested time.
    pub checked: i64,
    /// Envelopes with a problem in their last check.
    pub with_problems: i64,
}

/// Schedules an envelope's first check for `due`.
pub async fn plan(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    due: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into integrity_check (bucket, envelope_id, org_id, due_at)
         values ($1, $2, $3, $4) on conflict (bucket, envelope_id) do nothing",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(due.to_string())
    .run(tx)
    .await
}

/// Claims up to `limit` envelopes due before `before`. If the worker dies, its claims are due again
/// at `lease_until`.
pub async fn claim(
    store: &Store,
    before: Timestamp,
    lease_until: Timestamp,
    limit: i64,
) -> Result<Vec<OwnedEnvelope>, StoreError> {
    let due = RowClaim {
        table: "integrity_check",
        id: "envelope_id",
        since: "due_at",
        condition: "true",
        set: "due_at = $3",
        texts: &[lease_until.to_string()],
    };

    due.take(store, before, limit).await
}

/// Returns the problems that the last check recorded, as text.
pub async fn problems(
    connection: &mut SqlConnection,
    due: &OwnedEnvelope,
) -> Result<Option<String>, StoreError> {
    let row =
        sqlx::query("select problems from integrity_check where bucket = $1 and envelope_id = $2")
            .bind_key(&due.org, due.envelope.as_str())
            .fetch_optional(connection)
            .await?;

    Ok(row
        .map(|row| row.try_get("problems"))
        .transpose()?
        .flatten())
}

/// Records the result of a check and schedules the next.
pub async fn checked(
    tx: &mut WriteTransaction,
    due: &OwnedEnvelope,
    now: Timestamp,
    next: Timestamp,
    problems: Option<&str>,
) -> Result<(), StoreError> {
    // No lease is compared: checks change no record, so two at once do no harm, and the later one counts.
    sqlx::query(
        "update integrity_check set checked_at = $3, due_at = $4, problems = $5
         where bucket = $1 and envelope_id = $2",
    )
    .bind_key(&due.org, due.envelope.as_str())
    .bind(now.to_string())
    .bind(next.to_string())
    .bind(problems)
    .run(tx)
    .await
}

/// Makes every envelope due that was not checked since `since`.
pub async fn make_due(
    tx: &mut WriteTransaction,
    since: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    // Envelopes that were checked since `since` stay, so that an interrupted command can be resumed.
    sqlx::query(
        "update integrity_check set due_at = $2
         where due_at > $2 and (checked_at is null or checked_at < $1)",
    )
    .bind(since.to_string())
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns the envelopes with problems, and the problems.
pub async fn with_problems<T: DeserializeOwned>(
    connection: &mut SqlConnection,
) -> Result<Vec<(EnvelopeId, T)>, StoreError> {
    let rows = sqlx::query(
        "select envelope_id, problems from integrity_check where problems is not null
         order by envelope_id",
    )
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| {
            let columns = columns(row);
            let envelope = columns.parsed("envelope_id", EnvelopeId::parse)?;
            Ok((envelope, columns.json("problems")?))
        })
        .collect()
}

/// Envelope with problems in its last check.
pub struct EnvelopeProblems<T> {
    pub envelope: EnvelopeId,
    pub name: String,
    pub checked_at: Option<Timestamp>,
    pub problems: T,
}

/// Returns the envelopes of an organization with problems, newest first, or those behind one.
pub async fn problems_of<T: DeserializeOwned>(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<EnvelopeProblems<T>>, StoreError> {
    // A page begins behind an id: checks go on between two pages.
    let rows = sqlx::query(
        "select i.envelope_id, i.problems, i.checked_at, e.name
         from integrity_check i
             join envelope e on e.bucket = i.bucket and e.envelope_id = i.envelope_id
         where i.bucket = $1 and i.org_id = $2 and i.problems is not null
             and ($3 = '' or i.envelope_id < $3)
         order by i.envelope_id desc limit $4",
    )
    .bind_org(org)
    .bind(after.map_or("", EnvelopeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await?;

    rows.iter()
        .map(|row| {
            let columns = columns(row);
            Ok(EnvelopeProblems {
                envelope: columns.parsed("envelope_id", EnvelopeId::parse)?,
                name: columns.text("name")?,
                checked_at: columns.optional_time("checked_at")?,
                problems: columns.json("problems")?,
            })
        })
        .collect()
}

/// Custodians and last check of a vaulted record.
#[derive(Default)]
pub struct VaultedRecord {
    /// Addresses of those who accepted.
    pub custodians: Vec<String>,
    /// When the record was last read back.
    pub checked_at: Option<Timestamp>,
    /// Whether that found problems.
    pub has_problems: bool,
}

/// Returns custodians and last checks of records.
pub async fn of_records(
    connection: &mut SqlConnection,
    org: &OrgId,
    ids: &[&EnvelopeId],
) -> Result<HashMap<EnvelopeId, VaultedRecord>, StoreError> {
    let mut found: HashMap<EnvelopeId, VaultedRecord> = HashMap::new();
    // `in ()` is not valid SQL.
    if ids.is_empty() {
        return Ok(found);
    }

    let places: Vec<String> = (3..ids.len() + 3).map(|at| format!("${at}")).collect();
    let places = places.join(", ");
    // Two statements with equal columns: a join would repeat the check of a record for each custodian.
    for text in [
        format!(
            "select envelope_id, checked_at, problems, cast(null as text) as email from integrity_check
             where bucket = $1 and org_id = $2 and envelope_id in ({places})"
        ),
        format!(
            "select envelope_id, cast(null as text) as checked_at, cast(null as text) as problems, email from custodian
             where bucket = $1 and org_id = $2 and status = 'accepted' and envelope_id in ({places})"
        ),
    ] {
        let mut query = sqlx::query(AssertSqlSafe(text))
            .bind_org(org);
        for id in ids {
            query = query.bind(id.as_str());
        }

        for row in query.fetch_all(&mut *connection).await? {
            let columns = columns(&row);
            let id = columns.parsed("envelope_id", EnvelopeId::parse)?;
            let record = found.entry(id).or_default();
            // Each statement gives nulls for the columns of the other one.
            record.custodians.extend(columns.optional_text("email")?);
            record.checked_at = record.checked_at.or(columns.optional_time("checked_at")?);
            record.has_problems |= columns.optional_text("problems")?.is_some();
        }
    }

    Ok(found)
}

/// Returns the progress of the checks since `since`.
pub async fn progress(
    connection: &mut SqlConnection,
    since: Timestamp,
) -> Result<IntegrityProgress, StoreError> {
    let row = sqlx::query(
        "select count(*) as total,
             count(case when checked_at >= $1 then 1 end) as checked,
             count(problems) as with_problems
         from integrity_check",
    )
    .bind(since.to_string())
    .fetch_one(connection)
    .await?;

    Ok(IntegrityProgress {
        total: row.try_get("total")?,
        checked: row.try_get("checked")?,
        with_problems: row.try_get("with_problems")?,
    })
}

fn columns(row: &AnyRow) -> RowColumns<'_> {
    RowColumns::of(row, "integrity_check", "envelope_id")
}
