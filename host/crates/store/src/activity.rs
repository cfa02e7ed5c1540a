//! Numbers about an organization's envelopes over a time, read from the ledgers.

use std::collections::BTreeMap;

use crate::SqlConnection;
use sqlx::AssertSqlSafe;

use super::StoreError;
use super::dialect::SqlDialect;
use super::row::{RowColumns, query_rows, table_row};
use super::statement::RunStatement as _;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::event::EventType;
use holdfast_domain::id::OrgId;

/// Condition of the index `ledger_entry_activity`, word for word.
const COUNTED: &str = "action in ('envelope.created', 'envelope.sent', 'envelope.completed')";

/// What happened to envelopes on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayCounts {
    pub created: i64,
    pub sent: i64,
    /// Envelopes that all signers have signed.
    pub completed: i64,
}

/// Returns what happened to an organization's envelopes since a time, by the date in UTC (`2026-11-30`). Days on which
/// nothing happened are left out.
pub async fn by_day(
    connection: &mut SqlConnection,
    org: &OrgId,
    from: Timestamp,
) -> Result<BTreeMap<String, DayCounts>, StoreError> {
    // The index has all columns that are read, in this order. An envelope that was sent again on a day counts once.
    let text = format!(
        "select substr(at, 1, 10) as day, action, count(distinct envelope_id) as total from ledger_entry
         where bucket = $1 and org_id = $2 and {COUNTED} and at >= $3
         group by substr(at, 1, 10), action"
    );
    let rows = sqlx::query(AssertSqlSafe(text))
        .bind_org(org)
        .bind(from.to_string())
        .fetch_all(connection)
        .await?;

    let mut days: BTreeMap<String, DayCounts> = BTreeMap::new();
    for row in rows {
        let columns = RowColumns::of(&row, "ledger_entry", "day");
        let counts = days.entry(columns.text("day")?).or_default();
        let number = match columns.parsed("action", EventType::parse)? {
            EventType::EnvelopeCreated => &mut counts.created,
            EventType::EnvelopeSent => &mut counts.sent,
            _ => &mut counts.completed,
        };
        *number = columns.number("total")?;
    }

    Ok(days)
}

/// Times from sending to the last signature, in milliseconds. Percentiles are by nearest rank, and none without an
/// envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigningTimes {
    pub envelopes: i64,
    pub median: Option<i64>,
    /// 90th percentile.
    pub ninetieth: Option<i64>,
}

/// Returns the times to sign of an organization's envelopes that were completed since a time.
pub async fn signing_times(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    org: &OrgId,
    from: Timestamp,
) -> Result<SigningTimes, StoreError> {
    // Ranked by the database, so that no row leaves it. An envelope that was sent again counts from its first sending.
    let took = dialect.milliseconds_between("sent_at", "completed_at");
    let text = format!(
        "with completed as (
             select done.at as completed_at,
                 (select min(sent.at) from ledger_entry sent where sent.bucket = done.bucket
                     and sent.envelope_id = done.envelope_id and sent.action = 'envelope.sent') as sent_at
             from ledger_entry done
             where bucket = $1 and org_id = $2 and {COUNTED} and action = 'envelope.completed'
                 and at >= $3
         ), ranked as (
             select took, row_number() over (order by took) as place, count(*) over () as total
             from (select {took} as took from completed where sent_at is not null) timed
         )
         select count(*) as envelopes,
             max(case when place = (total + 1) / 2 then took end) as median,
             max(case when place = (total * 9 + 9) / 10 then took end) as ninetieth
         from ranked"
    );

    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(from.to_string())
        .fetch_one(connection)
        .await
}

table_row! {
    SigningTimes of "ledger_entry" by "envelopes" {
        envelopes: number("envelopes"),
        median: optional_number("median"),
        ninetieth: optional_number("ninetieth"),
    }
}

/// How far envelopes have come that were sent since a time. Each number contains the next ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunnelCounts {
    pub sent: i64,
    /// At least one signer opened the document.
    pub viewed: i64,
    /// All signers have signed.
    pub signed: i64,
    /// In the vault, or released from it.
    pub vaulted: i64,
}

/// Returns how far an organization's envelopes have come that were sent since a time.
pub async fn funnel(
    connection: &mut SqlConnection,
    org: &OrgId,
    from: Timestamp,
) -> Result<FunnelCounts, StoreError> {
    // The status alone does not tell whether a declined or expired envelope was opened before.
    let text = format!(
        "with sent as (
             select distinct envelope_id from ledger_entry
             where bucket = $1 and org_id = $2 and {COUNTED} and action = 'envelope.sent' and at >= $3
         )
         select count(*) as sent,
             count(case when e.signed_at is not null or e.status = 'viewed'
                 or exists (select 1 from ledger_entry opened where opened.bucket = e.bucket
                     and opened.envelope_id = e.envelope_id and opened.action = 'signer.viewed')
                 then 1 end) as viewed,
             count(case when e.signed_at is not null then 1 end) as signed,
             count(case when e.signed_at is not null and e.status in ('vaulted', 'vaulted_out')
                 then 1 end) as vaulted
         from sent join envelope e on e.bucket = $1 and e.envelope_id = sent.envelope_id
         where e.org_id = $2"
    );

    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(from.to_string())
        .fetch_one(connection)
        .await
}

table_row! {
    FunnelCounts of "envelope" by "sent" {
        sent: number("sent"),
        viewed: number("viewed"),
        signed: number("signed"),
        vaulted: number("vaulted"),
    }
}
