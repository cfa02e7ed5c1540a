//! Checks of contracts by funding rules, and stipulations.

use crate::SqlConnection;
use serde_json::Value;

use super::decisions::DecisionWindow;
use super::row::{json_text, query_rows, row_by_id, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::funding::{
    AppliedPack, FundingOutcome, FundingStage, Stipulation, StipulationState,
};
use holdfast_domain::id::{DecisionId, EnvelopeId, OrgId, TemplateId};

/// Recorded check of a contract.
#[derive(Clone, Debug)]
pub struct FundingCheck {
    pub id: DecisionId,
    pub envelope: EnvelopeId,
    pub stage: FundingStage,
    pub outcome: FundingOutcome,
    pub facts: Value,
    /// The assessment of the component.
    pub answer: Value,
    /// Name, version and digest of the deciding component.
    pub component: Value,
    /// Pack of a lender; none for the rules of the organization itself.
    pub pack: Option<AppliedPack>,
    pub at: Timestamp,
}

/// Records a check.
pub async fn insert_decision(
    tx: &mut WriteTransaction,
    org: &OrgId,
    made: &FundingCheck,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into funding_decision (bucket, decision_id, org_id, envelope_id, stage, outcome, facts, answer,
             component, pack, at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind_key(org, made.id.as_str())
    .bind(org.as_str())
    .bind(made.envelope.as_str())
    .bind(made.stage.as_str())
    .bind(made.outcome.as_str())
    .bind(json_text(&made.facts))
    .bind(json_text(&made.answer))
    .bind(json_text(&made.component))
    .bind(made.pack.as_ref().map(json_text))
    .bind(made.at.to_string())
    .run(tx)
    .await
}

/// Lists an organization's most recent checks, newest first.
pub async fn last_decisions(
    connection: &mut SqlConnection,
    org: &OrgId,
    window: &DecisionWindow,
    limit: i64,
) -> Result<Vec<FundingCheck>, StoreError> {
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

/// Lists the checks of an envelope, in order.
pub async fn decisions_of(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<FundingCheck>, StoreError> {
    query_rows(
        "select {columns} from funding_decision
         where bucket = $1 and org_id = $2 and envelope_id = $3 order by decision_id",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

table_row! {
    FundingCheck of "funding_decision" by "decision_id" {
        id: parsed("decision_id", DecisionId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
        stage: parsed("stage", FundingStage::parse),
        outcome: parsed("outcome", FundingOutcome::parse),
        facts: json("facts"),
        answer: json("answer"),
        component: json("component"),
        pack: optional_json("pack"),
        at: time("at"),
    }
}

/// Lists the stipulations of an envelope, in the order of their list.
pub async fn stipulations(
    connection: &mut SqlConnection,
    org: &OrgId,
    envelope: &EnvelopeId,
) -> Result<Vec<Stipulation>, StoreError> {
    query_rows(
        "select {columns} from stipulation where bucket = $1 and org_id = $2 and envelope_id = $3
         order by position",
    )
    .bind_org(org)
    .bind(envelope.as_str())
    .fetch_all(connection)
    .await
}

/// Replaces the stipulations of an envelope.
pub async fn set_stipulations(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    all: &[Stipulation],
) -> Result<(), StoreError> {
    sqlx::query("delete from stipulation where bucket = $1 and org_id = $2 and envelope_id = $3")
        .bind_org(&envelope.org)
        .bind(envelope.id.as_str())
        .run(tx)
        .await?;

    for (position, one) in (0_i64..).zip(all) {
        sqlx::query(
            "insert into stipulation (bucket, envelope_id, kind, org_id, position, field, state, document_envelope,
                 document_sha256, document_name, reason, settled_by, settled_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        )
        .bind_key(&envelope.org, envelope.id.as_str())
        .bind(&one.kind)
        .bind(envelope.org.as_str())
        .bind(position)
        .bind(one.field.as_deref())
        .bind(one.state.as_str())
        .bind(one.document_envelope.as_ref().map(EnvelopeId::as_str))
        .bind(one.document_sha256.as_deref())
        .bind(one.document_name.as_deref())
        .bind(one.reason.as_deref())
        .bind(one.settled_by.as_deref())
        .bind(one.settled_at.map(|at| at.to_string()))
        .run(tx)
        .await?;
    }

    Ok(())
}

table_row! {
    Stipulation of "stipulation" by "envelope_id" {
        envelope: parsed("envelope_id", EnvelopeId::parse),
        kind: text("kind"),
        field: optional_text("field"),
        state: parsed("state", StipulationState::parse),
        document_envelope: optional_parsed("document_envelope", EnvelopeId::parse),
        document_sha256: optional_text("document_sha256"),
        document_name: optional_text("document_name"),
        reason: optional_text("reason"),
        settled_by: optional_text("settled_by"),
        settled_at: optional_time("settled_at"),
    }
}

/// Stipulations that envelopes of a template begin with.
#[derive(Clone, Debug)]
pub struct TemplateStipulations {
    pub template: TemplateId,
    /// As in the request that set them.
    pub stipulations: Value,
}

/// Returns the stipulations of a template.
pub async fn of_template(
    connection: &mut SqlConnection,
    org: &OrgId,
    template: &TemplateId,
) -> Result<Option<TemplateStipulations>, StoreError> {
    row_by_id(connection, org, template.as_str()).await
}

/// Sets the stipulations of a template.
pub async fn set_of_template(
    tx: &mut WriteTransaction,
    org: &OrgId,
    set: &TemplateStipulations,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into template_stipulation (bucket, template_id, org_id, stipulations)
         values ($1, $2, $3, $4)
         on conflict (bucket, template_id) do update set stipulations = excluded.stipulations",
    )
    .bind_key(org, set.template.as_str())
    .bind(org.as_str())
    .bind(json_text(&set.stipulations))
    .run(tx)
    .await
}

table_row! {
    TemplateStipulations of "template_stipulation" by "template_id" {
        template: parsed("template_id", TemplateId::parse),
        stipulations: json("stipulations"),
    }
}
