//! Funding of contracts: checks by the rules of slot `rules.funding`, before sending, after signing and when a record
//! changes hands.
//!
//! The originator's active rules decide, or the pack of a lender that the originator has subscribed to. Each check is
//! recorded with its facts and component.

pub mod packs;
mod questions;
pub mod stipulations;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::facts;
use holdfast_components::rules::funding::{Assessment, Decision, Finding, FundingFacts, Severity};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::envelope::{Envelope, Signer};
use holdfast_domain::facts::{FactMapIdentity, FactPlace, FactSheet, FactStatus};
use holdfast_domain::funding::{
    AppliedPack, FindingSeverity, FundingMode, FundingOutcome, FundingStage,
};
use holdfast_domain::id::{DecisionId, EnvelopeId, OrgId};
use holdfast_domain::job::{CheckFunding, NextStep};
use holdfast_domain::warning::Warning;
use holdfast_platform::components::questions::{RulesQuestion, funding_answer};
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::organizations;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, events, lookup};
use holdfast_store::funding::FundingCheck;
use holdfast_store::{
    StoreError, WriteTransaction, envelopes, funding as rows, jobs,
    organizations as organization_rows, signers,
};

/// Code of a refused sending.
pub(crate) const REFUSED: &str = "funding_refused";
/// Code of the warning about a sending that would be refused with `enforce`.
const WARNED: &str = "funding";

/// Body of `POST /partner/envelopes/{id}/funding-check`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "stage": "after_signing" }]))]
pub struct CheckRequest {
    /// Moment to check for. Defaults to `before_sending` for an envelope that was not sent, and to `after_signing`
    /// otherwise.
    pub stage: Option<FundingStage>,
}

/// Result of a check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "decision_id": "dec_01jdk7m3e8f4x9s2w5v6b0c1dc", "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc",
    "stage": "before_sending", "decision": "refused", "checked_at": "2026-11-21T09:45:00.000Z",
    "rules_component": { "name": "holdfast-funding", "version": "0.1.0", "sha256": "4be1…" },
    "pack": null, "fact_map": null,
    "findings": [{
        "rule": "box.total_of_payments", "severity": "stop", "expected": "29107.20", "actual": "29170.20",
        "sentence": "The total of payments is not the sum of the payments, 60 × 485.12 = 29107.20.",
        "source": "12 CFR 1026.18(h)",
        "facts": [{
            "name": "total_of_payments", "status": "known", "value": "29170.20", "words": "$29,170.20",
            "place": { "page": 1, "x": 0.62, "y": 0.31, "w": 0.11, "h": 0.02 }, "field": null, "role": null,
        }],
    }],
}]))]
pub struct FundingCheckView {
    /// Id of the recorded decision.
    pub decision_id: DecisionId,
    /// Envelope that was checked.
    pub envelope_id: EnvelopeId,
    /// Moment of the check.
    pub stage: FundingStage,
    /// `ready`: nothing stands against funding. `incomplete`: something is missing. `refused`: something is wrong.
    pub decision: FundingOutcome,
    /// Time of the check.
    pub checked_at: Timestamp,
    /// Component that decided.
    pub rules_component: ComponentIdentity,
    /// Pack of a lender that decided; null for the rules of the organization.
    pub pack: Option<AppliedPack>,
    /// Fact map that the contract was read with; null for a contract without facts.
    pub fact_map: Option<FactMapIdentity>,
    /// What stands against funding, and notes.
    pub findings: Vec<FindingView>,
}

/// Finding of the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingView {
    /// Name of the rule, such as `box.apr`.
    pub rule: String,
    /// Weight of the finding.
    pub severity: FindingSeverity,
    /// Facts that it is about, with the places where they stand.
    pub facts: Vec<FoundFact>,
    /// What the rule expects.
    pub expected: String,
    /// What stands there.
    pub actual: String,
    /// The finding in words.
    pub sentence: String,
    /// Law or agreement behind the rule.
    pub source: String,
}

/// Fact of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoundFact {
    /// Name.
    pub name: String,
    /// Null for a fact that the fact map does not name.
    pub status: Option<FactStatus>,
    /// Canonical value.
    pub value: Option<String>,
    /// The words as they stand there.
    pub words: Option<String>,
    /// Where the words stand.
    pub place: Option<FactPlace>,
    /// Name of the signed field.
    pub field: Option<String>,
    /// Role of the signer who fills the field in.
    pub role: Option<String>,
}

/// A contract that was checked, before the check is recorded.
struct AssessedContract {
    check: FundingCheck,
    identity: ComponentIdentity,
    assessment: Assessment,
    sheet: Option<FactSheet>,
}

impl AssessedContract {
    /// Returns the result with the places of the facts.
    fn view(&self) -> FundingCheckView {
        let findings = self.assessment.findings.iter();
        FundingCheckView {
            decision_id: self.check.id.clone(),
            envelope_id: self.check.envelope.clone(),
            stage: self.check.stage,
            decision: self.check.outcome,
            checked_at: self.check.at,
            rules_component: self.identity.clone(),
            pack: self.check.pack.clone(),
            fact_map: self.sheet.as_ref().map(|sheet| sheet.fact_map.clone()),
            findings: findings
                .map(|finding| shown(finding, self.sheet.as_ref()))
                .collect(),
        }
    }

    fn has_stop(&self) -> bool {
        let mut findings = self.assessment.findings.iter();
        findings.any(|finding| finding.severity == Severity::Stop)
    }
}

fn shown(finding: &Finding, sheet: Option<&FactSheet>) -> FindingView {
    let facts = finding.facts.iter().map(|name| {
        let fact = sheet.and_then(|sheet| sheet.get(name));
        let strongest = fact.and_then(|fact| fact.sources.first());
        FoundFact {
            name: name.clone(),
            status: fact.map(|fact| fact.status),
            value: fact.and_then(|fact| fact.value.clone()),
            words: strongest.map(|source| source.words.clone()),
            place: strongest.and_then(|source| source.place.clone()),
            field: strongest.and_then(|source| source.field.clone()),
            role: strongest.and_then(|source| source.role.clone()),
        }
    });

    FindingView {
        rule: finding.rule.clone(),
        severity: match finding.severity {
            Severity::Stop => FindingSeverity::Stop,
            Severity::Warn => FindingSeverity::Warn,
            Severity::Note => FindingSeverity::Note,
        },
        facts: facts.collect(),
        expected: finding.expected.clone(),
        actual: finding.actual.clone(),
        sentence: finding.sentence.clone(),
        source: finding.source.clone(),
    }
}

/// Checks an envelope, and records the result.
///
/// # Errors
///
/// `NotFound` for an unknown envelope; `Component` if the rules fail, which is no result.
pub async fn check(
    core: &Core,
    caller: &Caller,
    id: &str,
    request: CheckRequest,
    answer: &ResponseRecorder<FundingCheckView>,
) -> Result<FundingCheckView, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let stage = request.stage.unwrap_or(if envelope.status.is_unsent() {
        FundingStage::BeforeSending
    } else {
        FundingStage::AfterSigning
    });
    let people = people(core, &envelope).await?;
    let assessed = assess(core, &envelope, &people, stage).await?;

    let view = assessed.view();
    let mut tx = core.store.begin().await?;
    rows::insert_decision(&mut tx, &envelope.org, &assessed.check).await?;
    emit(&mut tx, &envelope, &view).await?;
    answer.commit(tx, &view).await?;

    Ok(view)
}

/// Returns the newest check of an envelope, with the places where its facts stand now; `None` for one that was never
/// checked.
pub async fn newest(
    core: &Core,
    envelope: &Envelope,
) -> Result<Option<FundingCheckView>, ServiceError> {
    let mut connection = core.store.read().await?;
    let checks = rows::decisions_of(&mut connection, &envelope.org, &envelope.id).await?;
    drop(connection);
    let Some(check) = checks.into_iter().next_back() else {
        return Ok(None);
    };

    // Facts are stored from the last signature on, and those of a draft are read from its own file. Findings about a
    // contract that waits for signatures have no places.
    let sheet = if envelope.status.is_unsent() {
        facts::of_draft(core, envelope).await?
    } else {
        facts::stored(core, &envelope.org, &envelope.id).await?
    };
    let unreadable = |error: serde_json::Error| {
        ServiceError::Internal(format!("the funding check {}: {error}", check.id))
    };
    let assessed = AssessedContract {
        identity: serde_json::from_value(check.component.clone()).map_err(unreadable)?,
        assessment: serde_json::from_value(check.answer.clone()).map_err(unreadable)?,
        sheet,
        check,
    };
    Ok(Some(assessed.view()))
}

/// Check of a contract before it is sent; nothing for an organization that has none.
#[derive(Default)]
pub struct SendingCheck(Option<(FundingMode, AssessedContract)>);

impl SendingCheck {
    /// Returns the refusal of the sending, if the setting is `enforce` and a finding stops it. Each of its details has
    /// the places of its facts.
    pub fn refusal(&self) -> Option<Problem> {
        let (mode, assessed) = self.0.as_ref()?;
        if *mode != FundingMode::Enforce || !assessed.has_stop() {
            return None;
        }

        let mut findings = assessed.view().findings;
        findings.retain(|finding| finding.severity == FindingSeverity::Stop);
        let sentences = findings.iter().map(|finding| finding.sentence.as_str());
        let sentences = sentences.collect::<Vec<_>>().join(" ");
        let message = format!(
            "The funding rules stop this contract: {sentences} Correct it and send it again."
        );

        Some(Problem::new(ProblemKind::Request, REFUSED, message).with_details(json!(findings)))
    }

    /// Returns a warning for each finding that would refuse the sending with `enforce`.
    pub fn warnings(&self) -> Vec<Warning> {
        let findings = self.0.iter().flat_map(|(_, one)| &one.assessment.findings);
        let stops = findings.filter(|finding| finding.severity == Severity::Stop);
        stops
            .map(|finding| Warning::new(WARNED, &[], finding.sentence.clone()))
            .collect()
    }

    /// Returns the check, for the transaction of the sending.
    pub fn into_record(self) -> Option<FundingCheck> {
        self.0.map(|(_, assessed)| assessed.check)
    }
}

/// Checks an envelope before it is sent, by the setting of the organization or a stricter one of the request.
pub async fn before_sending(
    core: &Core,
    envelope: &Envelope,
    people: &[Signer],
    narrowed: Option<FundingMode>,
) -> Result<SendingCheck, ServiceError> {
    let organization = organizations::read(core, &envelope.org).await?;
    let setting = organization.settings.funding;
    let mode = setting.stricter(narrowed.unwrap_or(FundingMode::Off));
    if !mode.checks() {
        return Ok(SendingCheck::default());
    }

    match assess(core, envelope, people, FundingStage::BeforeSending).await {
        Ok(assessed) => Ok(SendingCheck(Some((mode, assessed)))),
        // Rules that fail decide nothing. They stop contracts only where the organization asked for a decision.
        Err(ServiceError::Component(error)) if mode == FundingMode::Warn => {
            tracing::warn!(envelope = %envelope.id, %error, "funding rules failed before a sending");
            Ok(SendingCheck::default())
        }
        Err(error) => Err(error),
    }
}

/// Records the check that refused the sending of a stored envelope. A dry run records nothing.
pub async fn record_refusal(
    core: &Core,
    envelope: &Envelope,
    check: SendingCheck,
) -> Result<(), ServiceError> {
    let Some(made) = check.into_record() else {
        return Ok(());
    };
    let mut tx = core.store.begin().await?;
    rows::insert_decision(&mut tx, &envelope.org, &made).await?;
    match tx.commit().await {
        Ok(()) | Err(StoreError::Rehearsed) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Adds the job that checks an envelope, if its organization has contracts checked.
pub async fn queue(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    stage: FundingStage,
    now: Timestamp,
) -> Result<(), StoreError> {
    let organization = organization_rows::get(tx, &envelope.org).await?;
    let is_checked = organization.is_some_and(|one| one.settings.funding.checks());
    if !is_checked {
        return Ok(());
    }

    let job = CheckFunding {
        envelope: envelope.id.clone(),
        stage,
        asked_at: now,
    };
    let key = format!("{} {stage}", envelope.id);
    jobs::insert(tx, &envelope.org, &job, Some(&key), now).await
}

/// Checks an envelope for a job: the result is recorded, and reported by an event.
pub async fn run(core: &Core, org: &OrgId, job: &CheckFunding) -> Result<NextStep, ServiceError> {
    let mut connection = core.store.read().await?;
    let envelope = envelopes::get(&mut connection, org, &job.envelope).await?;
    let checks = rows::decisions_of(&mut connection, org, &job.envelope).await?;
    drop(connection);

    // A repeat after a crash finds its own result.
    let mut checks = checks.iter();
    let is_done = checks.any(|check| check.stage == job.stage && check.at >= job.asked_at);
    let Some(envelope) = envelope.filter(|_| !is_done) else {
        return Ok(NextStep::Done);
    };

    let people = people(core, &envelope).await?;
    let assessed = assess(core, &envelope, &people, job.stage).await?;
    let mut tx = core.store.begin().await?;
    rows::insert_decision(&mut tx, &envelope.org, &assessed.check).await?;
    emit(&mut tx, &envelope, &assessed.view()).await?;
    tx.commit().await?;

    Ok(NextStep::Done)
}

async fn people(core: &Core, envelope: &Envelope) -> Result<Vec<Signer>, StoreError> {
    let mut connection = core.store.read().await?;
    signers::list(&mut connection, &envelope.org, &envelope.id).await
}

/// Reports a check to the organization's endpoints.
async fn emit(
    tx: &mut WriteTransaction,
    envelope: &Envelope,
    view: &FundingCheckView,
) -> Result<(), StoreError> {
    // Before sending, only the caller waits for the answer.
    if view.stage == FundingStage::BeforeSending {
        return Ok(());
    }

    let data = json!({
        "decision_id": view.decision_id,
        "stage": view.stage,
        "findings": view.findings,
        "rules_component": view.rules_component,
        "pack": view.pack,
    });
    events::emit(tx, envelope, view.decision.event(), data, view.checked_at).await
}

/// Asks the rules about a contract.
async fn assess(
    core: &Core,
    envelope: &Envelope,
    people: &[Signer],
    stage: FundingStage,
) -> Result<AssessedContract, ServiceError> {
    let now = core.clock.now();
    let sheet = questions::sheet(core, envelope, stage).await?;
    let required = stipulations::of_envelope(core, envelope).await?;
    let organization = organizations::read(core, &envelope.org).await?;
    let today = organization
        .settings
        .dates
        .time_zone
        .local(now)
        .date()
        .to_string();
    let facts = questions::facts(envelope, people, sheet.as_ref(), &required, stage, today);

    let pack = packs::subscribed(core, &envelope.org, now).await?;
    let rules = match &pack {
        Some(version) => core
            .components
            .published_funding(&version.org, &version.identity),
        None => core.components.funding(Some(&envelope.org)),
    };
    let identity = rules.identity()?;
    let assessed = rules.check_for_request(&facts).await;
    if pack.is_none() {
        offer(core, envelope, &facts, &assessed);
    }

    let assessment = assessed?;
    Ok(AssessedContract {
        check: FundingCheck {
            id: DecisionId::new(),
            envelope: envelope.id.clone(),
            stage,
            outcome: match assessment.decision {
                Decision::Ready => FundingOutcome::Ready,
                Decision::Incomplete => FundingOutcome::Incomplete,
                Decision::Refused => FundingOutcome::Refused,
            },
            facts: json!(facts),
            answer: json!(assessment),
            component: json!(identity),
            pack: pack.map(|version| AppliedPack {
                pack_id: version.pack,
                version: version.version,
                lender_id: version.org,
            }),
            at: now,
        },
        identity,
        assessment,
        sheet,
    })
}

/// Gives a candidate beside the organization's rules the same facts. Its result changes nothing here.
fn offer(
    core: &Core,
    envelope: &Envelope,
    facts: &FundingFacts,
    assessed: &Result<Assessment, holdfast_components::ComponentError>,
) {
    let record = envelope.id.as_str();
    core.shadows
        .offer(Slot::Funding, &envelope.org, record, || {
            let question = RulesQuestion::Funding(Box::new(facts.clone()));
            (question, funding_answer(assessed))
        });
}

/// Returns the text of an attribute's value.
fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
