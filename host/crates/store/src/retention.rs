//! Retention schedules, reported events, and records with an ended retention.

use sqlx::AssertSqlSafe;

use super::row::{RowColumns, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{SqlConnection, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus, JURISDICTION};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::retention::{
    Date, EndEvent, Retention, RetentionFacts, RetentionSchedule, parse_day,
};

/// Schedules of an organization.
pub struct OwnedSchedules {
    pub org: OrgId,
    pub schedules: Vec<RetentionSchedule>,
    pub changed_by: String,
    pub changed_at: Timestamp,
}

/// Record with what its retention depends on.
pub struct RetentionCandidate {
    pub envelope: EnvelopeId,
    pub facts: RetentionFacts,
    /// When the record was found due, if it was.
    pub proposed_at: Option<Timestamp>,
}

/// Record with an ended retention.
pub struct RetentionProposal {
    pub envelope: EnvelopeId,
    pub schedule: String,
    pub event: EndEvent,
    pub event_date: Date,
    pub destroy_after: Date,
    pub proposed_at: Timestamp,
}

/// Returns the schedules of an organization.
pub async fn schedules(
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<Option<OwnedSchedules>, StoreError> {
    query_rows("select {columns} from retention_schedules where bucket = $1 and org_id = $2")
        .bind_org(org)
        .fetch_optional(connection)
        .await
}

/// Returns the schedules of all organizations that have any.
pub async fn all_schedules(
    connection: &mut SqlConnection,
) -> Result<Vec<OwnedSchedules>, StoreError> {
    query_rows("select {columns} from retention_schedules order by org_id")
        .fetch_all(connection)
        .await
}

/// Replaces the schedules of an organization.
pub async fn set_schedules(
    tx: &mut WriteTransaction,
    new: &OwnedSchedules,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into retention_schedules (bucket, org_id, schedules, changed_by, changed_at)
         values ($1, $2, $3, $4, $5)
         on conflict (bucket, org_id) do update set schedules = excluded.schedules,
             changed_by = excluded.changed_by, changed_at = excluded.changed_at",
    )
    .bind_org(&new.org)
    .bind(json_text(&new.schedules))
    .bind(&new.changed_by)
    .bind(new.changed_at.to_string())
    .run(tx)
    .await
}

/// Records the day on which a contract was paid off, in place of an earlier report.
pub async fn set_paid_off(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    date: Date,
    by: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into retention_event (bucket, envelope_id, event, org_id, event_date, reported_by, reported_at)
         values ($1, $2, 'paid_off', $3, $4, $5, $6)
         on conflict (bucket, envelope_id, event) do update set event_date = excluded.event_date,
             reported_by = excluded.reported_by, reported_at = excluded.reported_at",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(date.to_string())
    .bind(by)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Records of one organization with their facts. A condition and an order follow.
const CANDIDATES: &str = "select {columns} from (
     select envelope.envelope_id as envelope_id, envelope.kind as kind, envelope.status as status,
         envelope.metadata as metadata, envelope.created_at as created_at,
         envelope.updated_at as updated_at, envelope.expires_at as expires_at,
         released.released_at as released_at, reported.event_date as paid_off,
         proposal.proposed_at as proposed_at
     from envelope
     left join vault_release released on released.bucket = envelope.bucket
         and released.envelope_id = envelope.envelope_id
     left join retention_event reported on reported.bucket = envelope.bucket
         and reported.envelope_id = envelope.envelope_id and reported.event = 'paid_off'
     left join retention_proposal proposal on proposal.bucket = envelope.bucket
         and proposal.envelope_id = envelope.envelope_id
     where envelope.bucket = $1 and envelope.org_id = $2 and envelope.destruction is null";

/// Returns what the retention of one record depends on.
pub async fn candidate(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Option<RetentionCandidate>, StoreError> {
    let text = format!("{CANDIDATES} and envelope.envelope_id = $3) as candidate");
    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

/// Returns a page of the records of an organization, oldest first.
pub async fn candidates(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<RetentionCandidate>, StoreError> {
    // Pages by the index of the organization, so that a run of many records holds no connection for long.
    let text = format!(
        "{CANDIDATES} and envelope.envelope_id > $3
         order by envelope.envelope_id limit $4) as candidate order by envelope_id"
    );
    query_rows(AssertSqlSafe(text))
        .bind_org(org)
        .bind(after.map_or("", EnvelopeId::as_str))
        .bind(limit)
        .fetch_all(connection)
        .await
}

/// Proposes the destruction of a record. Returns false if it was proposed before.
pub async fn propose(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    retention: &Retention,
    now: Timestamp,
) -> Result<bool, StoreError> {
    sqlx::query(
        "insert into retention_proposal (bucket, envelope_id, org_id, schedule, event, event_date,
             destroy_after, proposed_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (bucket, envelope_id) do nothing",
    )
    .bind_key(&envelope.org, envelope.id.as_str())
    .bind(envelope.org.as_str())
    .bind(&retention.schedule)
    .bind(retention.event.as_str())
    .bind(retention.event_date.map(|day| day.to_string()))
    .bind(retention.destroy_after.map(|day| day.to_string()))
    .bind(now.to_string())
    .changes_row(tx)
    .await
}

/// Withdraws the proposal of a record, which is not due any more. Returns whether there was one.
pub async fn withdraw(tx: &mut WriteTransaction, envelope: &Envelope) -> Result<bool, StoreError> {
    sqlx::query("delete from retention_proposal where bucket = $1 and envelope_id = $2")
        .bind_key(&envelope.org, envelope.id.as_str())
        .changes_row(tx)
        .await
}

/// Lists the records of an organization that are due, by the ids of their envelopes.
pub async fn proposals(
    connection: &mut SqlConnection,
    org: &OrgId,
    after: Option<&EnvelopeId>,
    limit: i64,
) -> Result<Vec<RetentionProposal>, StoreError> {
    query_rows(
        "select {columns} from retention_proposal
         where bucket = $1 and org_id = $2 and envelope_id > $3 order by envelope_id limit $4",
    )
    .bind_org(org)
    .bind(after.map_or("", EnvelopeId::as_str))
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    OwnedSchedules of "retention_schedules" by "org_id" {
        org: parsed("org_id", OrgId::parse),
        schedules: json("schedules"),
        changed_by: text("changed_by"),
        changed_at: time("changed_at"),
    }
}

table_row! {
    RetentionProposal of "retention_proposal" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        schedule: text("schedule"),
        event: parsed("event", EndEvent::parse),
        event_date: parsed("event_date", parse_day),
        destroy_after: parsed("destroy_after", parse_day),
        proposed_at: time("proposed_at"),
    }
}

table_row! {
    RetentionCandidate of "envelope" by "envelope_id"
        also "kind", "status", "metadata", "created_at", "updated_at", "expires_at", "released_at", "paid_off"
    {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        facts: |row| facts(row)?,
        proposed_at: optional_time("proposed_at"),
    }
}

fn facts(row: &RowColumns<'_>) -> Result<RetentionFacts, StoreError> {
    let status = row.parsed("status", EnvelopeStatus::parse)?;
    let metadata: serde_json::Map<String, serde_json::Value> = row.json("metadata")?;
    let stated = metadata.get(JURISDICTION).and_then(|text| text.as_str());
    // An expired envelope ended at its expiry. Of a declined one, the last change is never earlier than its end.
    let changed = row.time("updated_at")?;
    let expiry = row.optional_time("expires_at")?;
    let ended = expiry.filter(|_| status == EnvelopeStatus::Expired);

    Ok(RetentionFacts {
        kind: row.parsed("kind", EnvelopeKind::parse)?,
        jurisdiction: stated.map(str::to_owned),
        status,
        created: row.time("created_at")?.date(),
        ended: ended.unwrap_or(changed).date(),
        released: row.optional_time("released_at")?.map(Timestamp::date),
        paid_off: row.optional_parsed("paid_off", parse_day)?,
    })
}
