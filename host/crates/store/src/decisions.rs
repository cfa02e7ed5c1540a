//! Decisions of the rules with the facts they were based on, so that they can be evaluated again.

use crate::SqlConnection;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row as _};

use super::row::{RowQuery, TableRow, json_text, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus};
use holdfast_domain::id::{DecisionId, EnvelopeId, OrgId, TemplateId};
use holdfast_domain::template::Template;

/// Which stored decisions are read, newest first.
#[derive(Clone, Debug, Default)]
pub struct DecisionWindow {
    /// First time of a decision.
    pub since: Option<Timestamp>,
    /// Time that a decision is before.
    pub until: Option<Timestamp>,
    /// Kind of the envelopes.
    pub kind: Option<EnvelopeKind>,
    /// Id of the last decision of the page before.
    pub after: Option<String>,
}

/// The greatest time, as text.
const END_OF_TIME: &str = "9999-12-31T23:59:59.999Z";

impl DecisionWindow {
    /// Returns the query of a page of a table with decisions, which has their time in `at` and ids up to `last`. `owner`
    /// is the condition on their owner, with parameters from $6 on, which the caller binds.
    pub(super) fn page<T: TableRow>(
        &self,
        at: &str,
        last: &str,
        owner: &str,
        limit: i64,
    ) -> RowQuery<T> {
        let (table, id) = (T::TABLE, T::ID);
        // A page begins behind an id: decisions are made while a replay reads them. Those about destroyed records have only
        // digests left.
        let text = format!(
            "select {{columns}} from {table} d where {owner} and d.{id} < $1 and d.{at} >= $2 and d.{at} < $3
                 and d.digests is null
                 and ($4 = '' or exists (select 1 from envelope e where e.bucket = d.bucket
                     and e.envelope_id = d.envelope_id and e.kind = $4))
             order by d.{id} desc limit $5"
        );

        // Times are texts of a fixed width, and an empty text stands before all of them.
        let time = |at: Option<Timestamp>, absent: &str| {
            at.map_or_else(|| absent.to_owned(), |at| at.to_string())
        };
        query_rows(AssertSqlSafe(text))
            .bind(self.after.clone().unwrap_or_else(|| last.to_owned()))
            .bind(time(self.since, ""))
            .bind(time(self.until, END_OF_TIME))
            .bind(self.kind.map_or("", EnvelopeKind::as_str))
            .bind(limit)
    }
}

/// Status change of an envelope.
#[derive(Clone, Debug)]
pub struct LifecycleMove {
    pub id: DecisionId,
    pub envelope: EnvelopeId,
    /// Status before; none for a new envelope.
    pub from: Option<EnvelopeStatus>,
    pub trigger: String,
    pub to: EnvelopeStatus,
    pub facts: Value,
    /// Name, version and digest of the deciding component.
    pub component: Value,
}

/// Compliance evaluation of an envelope's record.
#[derive(Clone, Debug)]
pub struct StoredEvaluation {
    pub envelope: EnvelopeId,
    pub facts: Value,
    pub component: Value,
}

/// Records a status change, in the transaction that makes it.
pub async fn insert_move(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    made: &LifecycleMove,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into lifecycle_decision (bucket, decision_id, org_id, envelope_id, from_status,
             trigger_name, to_status, facts, component, at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(envelope.org.bucket())
    .bind(made.id.as_str())
    .bind(envelope.org.as_str())
    .bind(envelope.id.as_str())
    .bind(made.from.map(EnvelopeStatus::as_str))
    .bind(&made.trigger)
    .bind(made.to.as_str())
    .bind(json_text(&made.facts))
    .bind(json_text(&made.component))
    .bind(at.to_string())
    .run(tx)
    .await
}

/// Lists an organization's most recent status changes, newest first.
pub async fn last_moves(
    connection: &mut SqlConnection,
    org: &OrgId,
    window: &DecisionWindow,
    limit: i64,
) -> Result<Vec<LifecycleMove>, StoreError> {
    window
        .page(
            "at",
            DecisionId::LAST,
            "d.bucket = $6 and d.org_id = $7",
            limit,
        )
        .bind_org(org)
        .fetch_all(connection)
        .await
}

/// Lists an envelope's status changes in order.
pub async fn moves_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<LifecycleMove>, StoreError> {
    query_rows(
        "select {columns} from lifecycle_decision
         where bucket = $1 and envelope_id = $2 and org_id = $3 order by decision_id",
    )
    .bind_key(org, envelope.as_str())
    .bind(org.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    LifecycleMove of "lifecycle_decision" by "decision_id" {
        id: parsed("decision_id", DecisionId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        from: optional_parsed("from_status", EnvelopeStatus::parse),
        trigger: text("trigger_name"),
        to: parsed("to_status", EnvelopeStatus::parse),
        facts: json("facts"),
        component: json("component"),
    }
}

/// Lists an organization's most recent evaluations, newest first.
pub async fn last_evaluations(
    connection: &mut SqlConnection,
    org: &OrgId,
    window: &DecisionWindow,
    limit: i64,
) -> Result<Vec<StoredEvaluation>, StoreError> {
    // An envelope is evaluated once, so its id is that of the decision.
    window
        .page(
            "evaluated_at",
            EnvelopeId::LAST,
            "d.bucket = $6 and d.org_id = $7",
            limit,
        )
        .bind_org(org)
        .fetch_all(connection)
        .await
}

/// Returns the evaluation made when an envelope was vaulted.
pub async fn evaluation_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Option<StoredEvaluation>, StoreError> {
    query_rows(
        "select {columns} from evaluation
         where bucket = $1 and envelope_id = $2 and org_id = $3",
    )
    .bind_key(org, envelope.as_str())
    .bind(org.as_str())
    .fetch_optional(connection)
    .await
}

table_row! {
    StoredEvaluation of "evaluation" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        facts: json("facts"),
        component: json("component"),
    }
}

/// Placement of a template's fields.
#[derive(Clone, Debug)]
pub struct PlacementDecision {
    pub id: DecisionId,
    /// SHA-256 of the document, lower-case hex; `None` for that of the template. A document loses its tags.
    pub document: Option<String>,
    /// Parameters of the call, without the document.
    pub facts: Value,
    /// What the component returned.
    pub answer: Value,
    /// Name, version and digest of the deciding component.
    pub component: Value,
}

/// Records a placement, in the transaction that changes the template.
pub async fn insert_placement(
    tx: &mut WriteTransaction,
    template: &Template,
    made: &PlacementDecision,
    at: Timestamp,
) -> Result<(), StoreError> {
    let org = &template.org;
    // The component read the tags of an upload, and the stored document has lost them: the hashes may differ.
    let stored = template.document.as_ref().map(|file| &file.sha256);
    sqlx::query(
        "insert into placement_decision (bucket, decision_id, org_id, template_id, document, facts,
             answer, component, at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind_key(org, made.id.as_str())
    .bind(org.as_str())
    .bind(template.id.as_str())
    .bind(made.document.as_ref().or(stored))
    .bind(json_text(&made.facts))
    .bind(json_text(&made.answer))
    .bind(json_text(&made.component))
    .bind(at.to_string())
    .execute(&mut **tx)
    .await?;

    // Vault-in names this component as a participant, without searching the decisions of the template.
    sqlx::query(
        "update template set placed_by = $4 where bucket = $1 and org_id = $2 and template_id = $3",
    )
    .bind_org(org)
    .bind(template.id.as_str())
    .bind(json_text(&made.component))
    .run(tx)
    .await
}

/// Lists a template's most recent placements, newest first.
pub async fn placements_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
    limit: i64,
) -> Result<Vec<PlacementDecision>, StoreError> {
    query_rows(
        "select {columns} from placement_decision
         where bucket = $1 and template_id = $2 and org_id = $3
         order by decision_id desc limit $4",
    )
    .bind_key(org, template.as_str())
    .bind(org.as_str())
    .bind(limit)
    .fetch_all(connection)
    .await
}

table_row! {
    PlacementDecision of "placement_decision" by "decision_id" {
        id: parsed("decision_id", DecisionId::parse),
        document: optional_text("document"),
        facts: json("facts"),
        answer: json("answer"),
        component: json("component"),
    }
}

/// Returns the component that placed a template's fields last.
pub async fn placed_by(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
) -> Result<Option<Value>, StoreError> {
    let row = sqlx::query(
        "select placed_by from template where bucket = $1 and org_id = $2 and template_id = $3",
    )
    .bind_org(org)
    .bind(template.as_str())
    .fetch_optional(connection)
    .await?;
    let text: Option<String> = match row {
        Some(row) => row.try_get("placed_by")?,
        None => None,
    };

    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
