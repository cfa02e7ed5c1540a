//! Live compliance evaluation, and the stored certificate.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelopes::facts;
use holdfast_components::rules::compliance::EnvelopeFacts;
use holdfast_components::rules::{ComplianceJudgement, RulesOpinion};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::envelope::{AuthoritativeCopy, Envelope, EnvelopeStatus};
use holdfast_domain::event::EventType;
use holdfast_platform::components::questions::{self, RulesQuestion};
use holdfast_platform::components::{self, ComponentManager};
use holdfast_platform::lookup;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::ledger;

/// Result of a compliance evaluation.
#[derive(Serialize, JsonSchema)]
pub struct ComplianceView {
    pub compliant: bool,
    pub score: u32,
    pub evaluated_at: Timestamp,
    pub missing_requirements: Vec<String>,
    pub checks: Vec<CheckView>,
    pub rules_component: ComponentIdentity,
    /// Present when an organization's or operator's own rules decide: their result, and that of
    /// the built-in pack of the same family. `compliant` requires both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evaluations: Vec<RulesOpinion>,
}

/// Result of one compliance check.
#[derive(Serialize, JsonSchema)]
pub struct CheckView {
    pub requirement: String,
    pub ucc_reference: String,
    pub satisfied: bool,
    pub detail: String,
}

/// Selects the rules that evaluate a released record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RulesAsOf {
    /// The rules in force now, instead of those at the time of the release.
    Now,
}

/// Evaluates the record in any status. A released record is evaluated with the rules in force
/// at its release, unless `as_of` requests today's.
pub async fn evaluate(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    id: &str,
    as_of: Option<RulesAsOf>,
) -> Result<(Envelope, ComplianceView), ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let mut connection = core.store.read().await?;
    let facts = facts::compliance_facts(&mut connection, &envelope, core.clock.now()).await?;
    let at_release = match as_of {
        None => in_force_at_release(&mut connection, &envelope).await?,
        Some(RulesAsOf::Now) => None,
    };

    // The rules may wait for a turn in the sandbox. The connection must not wait with them.
    drop(connection);
    let view = judge(core, management, caller, &facts, at_release).await?;
    Ok((envelope, view))
}

/// Evaluates a released record as it stood at its release, with the rules in force then. A record in the vault is
/// evaluated as it stands.
pub async fn evaluate_at_release(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    envelope: &Envelope,
    released_at: Timestamp,
) -> Result<ComplianceView, ServiceError> {
    // Most checks ask about the vault, which a released record has left.
    let mut before = envelope.clone();
    if let Some(archived) = envelope.record.authoritative.archived() {
        before.status = EnvelopeStatus::Vaulted;
        before.record.authoritative = AuthoritativeCopy::Live(archived.clone());
    }

    let mut connection = core.store.read().await?;
    let facts = facts::compliance_facts(&mut connection, &before, released_at).await?;
    let at_release = in_force_at_release(&mut connection, envelope).await?;
    drop(connection);

    judge(core, management, caller, &facts, at_release).await
}

/// Evaluates facts with the rules in force at the release, or with the active ones.
async fn judge(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    facts: &EnvelopeFacts,
    at_release: Option<ComponentIdentity>,
) -> Result<ComplianceView, ServiceError> {
    let mut rules = core.components.compliance(Some(&caller.org));
    // Other rules are active now: load the ones in force at the release by their digest.
    if let Some(named) = at_release.filter(|named| rules.identity().ok().as_ref() != Some(named)) {
        let decided = components::that_decided(core, management, &named).await;
        let decided = decided.map_err(|error| match error {
            ServiceError::NotFound(_) => ServiceError::NotConfigured(format!(
                "The rules in force at the release ({named}) are not at hand; ?as_of=now asks today's"
            )),
            error => error,
        })?;
        rules = core.components.compliance_from(&decided)?;
    }

    let component = rules.identity()?;
    let ComplianceJudgement {
        evaluation,
        opinions,
        ..
    } = rules.judge_for_request(facts).await?;
    let record = facts.envelope_id.as_str();
    // A candidate component gets the same facts. Its result changes nothing here.
    core.shadows
        .offer(Slot::Compliance, &caller.org, record, || {
            let question = RulesQuestion::Evaluation(Box::new(facts.clone()));
            (question, questions::evaluation_answer(&evaluation))
        });

    Ok(ComplianceView {
        compliant: evaluation.compliant,
        score: evaluation.score,
        evaluated_at: core.clock.now(),
        missing_requirements: evaluation.missing_requirements,
        checks: evaluation
            .checks
            .into_iter()
            .map(|check| CheckView {
                requirement: check.requirement,
                ucc_reference: check.ucc_reference,
                satisfied: check.satisfied,
                detail: check.detail,
            })
            .collect(),
        rules_component: component,
        evaluations: opinions,
    })
}

/// Returns the rules in force at the record's release. The release's ledger entry names them;
/// releases by earlier versions of this program use the certificate's writer.
async fn in_force_at_release(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<ComponentIdentity>, ServiceError> {
    if envelope.status != EnvelopeStatus::VaultedOut {
        return Ok(None);
    }

    let entries = ledger::list(connection, Some(&envelope.org), &envelope.id).await?;
    let named = |action: &str, member: &str| {
        let entry = entries.iter().rev().find(|entry| entry.action == action)?;
        serde_json::from_value(entry.details[member].clone()).ok()
    };
    let released = named(EventType::VaultReleased.as_str(), "rules_component");

    Ok(released.or_else(|| named("compliance.evaluated", "component")))
}

/// Returns the stored certificate, byte for byte.
pub async fn certificate(core: &Core, caller: &Caller, id: &str) -> Result<Bytes, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let file = envelope.record.certificate.ok_or_else(|| {
        Problem::new(ProblemKind::NotFound, None, "Certificate not yet generated")
    })?;
    Ok(core.files.get(&file).await?)
}
