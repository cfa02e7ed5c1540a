//! Control of records, requested releases, and the decisions about acts.
//!
//! A row is in the bucket of the originator. Other parties find it by their own id, over all buckets.

use crate::SqlConnection;
use serde_json::Value;
use sqlx::AssertSqlSafe;

use super::decisions::DecisionWindow;
use super::row::{json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{SqlDialect, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::control::{
    ControlRecord, ControlStage, LivePledge, Pledge, ReleaseAnswer, ReleaseRequest, ReleaseState,
};
use holdfast_domain::envelope::{Envelope, OWN_METADATA, words};
use holdfast_domain::id::{DecisionId, EnvelopeId, OrgId, PledgeId, ReleaseId, TransferId};

words! {
    /// Part of the caller in the records of a list.
    ListedPart {
        Controller = "controller",
        // Designee or buyer.
        Named = "named",
        Pledgee = "pledgee",
        Originator = "originator",
    }
}

/// Criteria of a list of records.
#[derive(Clone, Debug)]
pub struct RecordFilter {
    pub part: ListedPart,
    pub stage: Option<ControlStage>,
    pub originator: Option<OrgId>,
    /// Only records with their last act at this time or later.
    pub changed_from: Option<Timestamp>,
    /// Only records with their last act before this time.
    pub changed_before: Option<Timestamp>,
    /// Only records of this transfer, with the bucket of its seller.
    pub transfer: Option<(TransferId, i64)>,
    /// Only records with this member and value in their own metadata.
    pub metadata: Option<(String, String)>,
    /// Only records that are neither offered nor released, and without an open release.
    pub is_free: bool,
    /// Only records behind this one, in the order of the list.
    pub after: Option<EnvelopeId>,
}

impl RecordFilter {
    /// Returns the filter of all records in which an organization has a part.
    pub fn of(part: ListedPart) -> Self {
        Self {
            part,
            stage: None,
            originator: None,
            changed_from: None,
            changed_before: None,
            transfer: None,
            metadata: None,
            is_free: false,
            after: None,
        }
    }
}

/// An allowed act, with the facts it was decided on.
#[derive(Clone, Debug)]
pub struct ControlDecision {
    pub id: DecisionId,
    pub envelope: EnvelopeId,
    /// The controller at that time, of which the rules decided.
    pub controller: OrgId,
    pub act: String,
    pub facts: Value,
    /// Name, version and digest of the deciding component.
    pub component: Value,
}

/// Returns who controls an envelope's record; its originator if there was no act yet.
pub async fn of_envelope(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<ControlRecord, StoreError> {
    let record =
        query_rows("select {columns} from control_record where bucket = $1 and envelope_id = $2")
            .bind_key(&envelope.org, envelope.id.as_str())
            .fetch_optional(connection)
            .await?;

    // The first act writes the row. Until then the originator has control.
    Ok(record.unwrap_or_else(|| ControlRecord::originated(envelope)))
}

/// Returns the record of an envelope that another organization originated, for its controller,
/// designee, buyer or pledgee.
pub async fn of_party(
    connection: &mut SqlConnection,
    party: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<ControlRecord>, StoreError> {
    // Three selects instead of `or`: each uses its own index over all buckets.
    query_rows(
        "select {columns} from control_record where controller_id = $1 and envelope_id = $2
         union select {columns} from control_record where named_id = $1 and envelope_id = $2
         union select {columns} from control_record where pledgee_id = $1 and envelope_id = $2",
    )
    .bind(party.as_str())
    .bind(envelope.as_str())
    .fetch_optional(connection)
    .await
}

/// Returns the record of an envelope of any organization.
pub async fn of_record(
    connection: &mut SqlConnection,
    envelope: &EnvelopeId,
) -> Result<Option<ControlRecord>, StoreError> {
    // A party that sold the record is in none of its columns, and knows only the id.
    query_rows("select {columns} from control_record where envelope_id = $1")
        .bind(envelope.as_str())
        .fetch_optional(connection)
        .await
}

/// Lists records of a party, newest first.
pub async fn list(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    party: &OrgId,
    filter: &RecordFilter,
    limit: i64,
) -> Result<Vec<ControlRecord>, StoreError> {
    let (mut conditions, mut values) = match filter.part {
        ListedPart::Controller => ("controller_id = $1".to_owned(), vec![party.to_string()]),
        ListedPart::Named => ("named_id = $1".to_owned(), vec![party.to_string()]),
        ListedPart::Pledgee => ("pledgee_id = $1".to_owned(), vec![party.to_string()]),
        ListedPart::Originator => ("org_id = $1".to_owned(), vec![party.to_string()]),
    };
    let mut also = |condition: &str, value: Option<String>| {
        if let Some(value) = value {
            values.push(value);
            conditions += &format!(" and {condition} ${}", values.len());
        }
    };
    also("stage =", filter.stage.map(|stage| stage.to_string()));

    also("org_id =", filter.originator.as_ref().map(OrgId::to_string));
    also(
        "changed_at >=",
        filter.changed_from.map(|at| at.to_string()),
    );
    also(
        "changed_at <",
        filter.changed_before.map(|at| at.to_string()),
    );

    also(
        "envelope_id <",
        filter.after.as_ref().map(EnvelopeId::to_string),
    );
    if filter.is_free {
        conditions += " and stage in ('originated', 'controlled') and release_id is null";
    }

    // Numbers, behind the texts.
    let mut numbers = vec![limit];
    // All texts are bound before the numbers, so texts that are still to come are counted here.
    let first = values.len() + usize::from(filter.transfer.is_some());
    let first = first + 2 * usize::from(filter.metadata.is_some());
    if let Some((transfer, seller)) = &filter.transfer {
        values.push(transfer.to_string());
        numbers.push(*seller);
        conditions += &format!(
            " and exists (select 1 from control_transfer_record t where t.bucket = ${}
                 and t.transfer_id = ${} and t.envelope_id = control_record.envelope_id)",
            first + numbers.len(),
            values.len()
        );
    }

    if let Some((member, value)) = &filter.metadata {
        let own = dialect.json_member("e.metadata", OWN_METADATA, member);
        // A text is stored with quotation marks, a number or a boolean without.
        values.extend([json_text(&Value::from(value.as_str())), value.clone()]);

        conditions += &format!(
            " and exists (select 1 from envelope e where e.bucket = control_record.bucket
                 and e.envelope_id = control_record.envelope_id and {own} in (${}, ${}))",
            values.len() - 1,
            values.len()
        );
    }

    // Only the originator's records are all in one bucket.
    if filter.part == ListedPart::Originator {
        numbers.push(party.bucket());
        conditions += &format!(" and bucket = ${}", first + numbers.len());
    }

    let text = format!(
        "select {{columns}} from control_record where {conditions} order by envelope_id desc limit ${}",
        first + 1
    );
    let mut query = query_rows(AssertSqlSafe(text));
    for value in values {
        query = query.bind(value);
    }

    for number in numbers {
        query = query.bind(number);
    }

    query.fetch_all(connection).await
}

/// Stores the next state of a record and counts its epoch up. `record` carries the epoch that the act
/// was decided on.
///
/// # Errors
/// [`StoreError::Conflict`] if another act came first.
pub async fn put(
    tx: &mut WriteTransaction,
    record: &ControlRecord,
    now: Timestamp,
) -> Result<ControlRecord, StoreError> {
    let next = ControlRecord {
        epoch: record.epoch + 1,
        changed_at: now,
        ..record.clone()
    };
    // The epoch makes the update a compare-and-swap. Of two first acts one inserts
    // the row, and the other one then meets a higher epoch than it expects.
    sqlx::query(
        "insert into control_record (bucket, envelope_id, org_id, controller_id, named_id, stage,
             epoch, release_id, changed_at, transfer_id, controlled_since, pledge_id, pledgee_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $11, $12, $13, $14)
         on conflict (bucket, envelope_id) do update set
             controller_id = excluded.controller_id, named_id = excluded.named_id,
             stage = excluded.stage, epoch = excluded.epoch, release_id = excluded.release_id,
             changed_at = excluded.changed_at, transfer_id = excluded.transfer_id,
             controlled_since = excluded.controlled_since, pledge_id = excluded.pledge_id,
             pledgee_id = excluded.pledgee_id
         where control_record.epoch = $10",
    )
    .bind_key(&next.org, next.envelope.as_str())
    .bind(next.org.as_str())
    .bind(next.controller.as_str())
    .bind(next.named.as_ref().map(OrgId::as_str))
    .bind(next.stage.as_str())
    .bind(next.epoch)
    .bind(next.release.as_ref().map(ReleaseId::as_str))
    .bind(now.to_string())
    .bind(record.epoch)
    .bind(next.transfer.as_ref().map(TransferId::as_str))
    .bind(next.controlled_since.to_string())
    .bind(next.pledge.as_ref().map(|pledge| pledge.id.as_str()))
    .bind(next.pledgee().map(OrgId::as_str))
    .run_guarded(tx)
    .await?;
    Ok(next)
}

table_row! {
    ControlRecord of "control_record" by "envelope_id" also "pledge_id", "pledgee_id" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        controller: parsed("controller_id", OrgId::parse),
        named: optional_parsed("named_id", OrgId::parse),
        stage: parsed("stage", ControlStage::parse),
        epoch: number("epoch"),
        release: optional_parsed("release_id", ReleaseId::parse),
        transfer: optional_parsed("transfer_id", TransferId::parse),
        // A live pledge is part of the record's row, so that an act sees it under the same epoch.
        pledge: |row| {
            let id = row.optional_parsed("pledge_id", PledgeId::parse)?;
            let pledgee = row.optional_parsed("pledgee_id", OrgId::parse)?;
            id.zip(pledgee).map(|(id, pledgee)| LivePledge { id, pledgee })
        },
        changed_at: time("changed_at"),
        controlled_since: time("controlled_since"),
    }
}

/// Records a pledge.
pub async fn insert_pledge(tx: &mut WriteTransaction, pledge: &Pledge) -> Result<(), StoreError> {
    sqlx::query(
        "insert into control_pledge (bucket, pledge_id, envelope_id, org_id, pledgor_id, pledgee_id,
             terms, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind_key(&pledge.org, pledge.id.as_str())
    .bind(pledge.envelope.as_str())
    .bind(pledge.org.as_str())
    .bind(pledge.pledgor.as_str())
    .bind(pledge.pledgee.as_str())
    .bind(pledge.terms.as_deref())
    .bind(pledge.created_at.to_string())
    .run(tx)
    .await
}

/// Returns a pledge; its pledgee does not know the bucket.
pub async fn pledge(
    connection: &mut SqlConnection,
    id: &PledgeId,
) -> Result<Option<Pledge>, StoreError> {
    query_rows("select {columns} from control_pledge where pledge_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    Pledge of "control_pledge" by "pledge_id" {
        id: parsed("pledge_id", PledgeId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        pledgor: parsed("pledgor_id", OrgId::parse),
        pledgee: parsed("pledgee_id", OrgId::parse),
        terms: optional_text("terms"),
        created_at: time("created_at"),
        released_at: optional_time("released_at"),
    }
}

/// # Errors
/// [`StoreError::Conflict`] if it was released already.
pub async fn end_pledge(
    tx: &mut WriteTransaction,
    pledge: &Pledge,
    at: Timestamp,
) -> Result<(), StoreError> {
    // A repeated release finds nothing to end, so the ledger has one entry for it.
    sqlx::query(
        "update control_pledge set released_at = $3
         where bucket = $1 and pledge_id = $2 and released_at is null",
    )
    .bind_key(&pledge.org, pledge.id.as_str())
    .bind(at.to_string())
    .run_guarded(tx)
    .await
}

/// Records a requested release.
pub async fn insert_release(
    tx: &mut WriteTransaction,
    request: &ReleaseRequest,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into control_release (bucket, release_id, envelope_id, org_id, controller_id, state,
             form, requested_by, requested_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_key(&request.org, request.id.as_str())
    .bind(request.envelope.as_str())
    .bind(request.org.as_str())
    .bind(request.controller.as_str())
    .bind(request.state.as_str())
    .bind(json_text(&request.form))
    .bind(&request.requested_by)
    .bind(request.requested_at.to_string())
    .run(tx)
    .await
}

/// Returns a requested release; its controller does not know the bucket.
pub async fn release(
    connection: &mut SqlConnection,
    id: &ReleaseId,
) -> Result<Option<ReleaseRequest>, StoreError> {
    query_rows("select {columns} from control_release where release_id = $1")
        .bind(id.as_str())
        .fetch_optional(connection)
        .await
}

table_row! {
    ReleaseRequest of "control_release" by "release_id" also "answered_by", "answered_at", "reason" {
        id: parsed("release_id", ReleaseId::parse),
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        controller: parsed("controller_id", OrgId::parse),
        state: parsed("state", ReleaseState::parse),
        form: json("form"),
        requested_by: text("requested_by"),
        requested_at: time("requested_at"),
        // A consent and a refusal have both columns; a request that waits has neither.
        answer: |row| {
            let answered = row.optional_text("answered_by")?;
            let answered = answered.zip(row.optional_time("answered_at")?);
            let reason = row.optional_text("reason")?;
            answered.map(|(by, at)| ReleaseAnswer { by, at, reason })
        },
    }
}

/// Changes the state of a requested release, with the controller's answer if there is one.
///
/// # Errors
/// [`StoreError::Conflict`] if it is in another state than `request` has.
pub async fn settle_release(
    tx: &mut WriteTransaction,
    request: &ReleaseRequest,
    state: ReleaseState,
    answer: Option<&ReleaseAnswer>,
) -> Result<(), StoreError> {
    // `coalesce` keeps the controller's answer when the state moves on without another one.
    sqlx::query(
        "update control_release set state = $4, answered_by = coalesce($5, answered_by),
             answered_at = coalesce($6, answered_at), reason = coalesce($7, reason)
         where bucket = $1 and release_id = $2 and state = $3",
    )
    .bind_key(&request.org, request.id.as_str())
    .bind(request.state.as_str())
    .bind(state.as_str())
    .bind(answer.map(|answer| answer.by.as_str()))
    .bind(answer.map(|answer| answer.at.to_string()))
    .bind(answer.and_then(|answer| answer.reason.as_deref()))
    .run_guarded(tx)
    .await
}

/// Records an allowed act, in the transaction that does it.
pub async fn insert_decision(
    tx: &mut WriteTransaction,
    org: &OrgId,
    made: &ControlDecision,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into control_decision (bucket, decision_id, org_id, envelope_id, act, facts,
             component, at, controller_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_key(org, made.id.as_str())
    .bind(org.as_str())
    .bind(made.envelope.as_str())
    .bind(&made.act)
    .bind(json_text(&made.facts))
    .bind(json_text(&made.component))
    .bind(at.to_string())
    // Rules of the controller at that time decided. A replay needs them after control has passed, too.
    .bind(made.controller.as_str())
    .run(tx)
    .await
}

/// Lists the most recent acts that an organization's rules decided, newest first.
pub async fn last_decisions(
    connection: &mut SqlConnection,
    org: &OrgId,
    window: &DecisionWindow,
    limit: i64,
) -> Result<Vec<ControlDecision>, StoreError> {
    // A controller's decisions are in the buckets of the originators.
    window
        .page("at", DecisionId::LAST, "d.controller_id = $6", limit)
        .bind(org.as_str())
        .fetch_all(connection)
        .await
}

/// Lists the acts with an envelope's record, in order.
pub async fn decisions_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<ControlDecision>, StoreError> {
    query_rows(
        "select {columns} from control_decision where bucket = $1 and org_id = $2 and envelope_id = $3
         order by decision_id",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    ControlDecision of "control_decision" by "decision_id" {
        id: parsed("decision_id", DecisionId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        controller: parsed("controller_id", OrgId::parse),
        act: text("act"),
        facts: json("facts"),
        component: json("component"),
    }
}
