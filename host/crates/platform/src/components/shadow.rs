//! Replaying stored decisions: compares a candidate with the active component on past records
//! and reports every difference. Changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::components::{ComponentManager, ComponentOwner, artifact, get, that_decided};
use crate::fields::resolved;
use crate::{Caller, Core, ServiceError};
use holdfast_components::answers::{
    AnswerPart, ComponentAnswer, DifferenceGroups, differences, failure, gave_no_answer, refused,
};
use holdfast_components::rules::{
    ComplianceRules, ControlRules, LifecycleRules, TransitionError, compliance,
    control as rules_control, documents, lifecycle, placement,
};
use holdfast_components::values::kebab;
use holdfast_components::{ComponentError, Documents, Placement, WordedMark};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::component_change::{DecisionDifference, DifferenceGroup};
use holdfast_domain::envelope::{EnvelopeKind, EnvelopeStatus};
use holdfast_domain::field::Field;
use holdfast_domain::hash::sha256;
use holdfast_domain::id::{ComponentId, EnvelopeId, OrgId};
use holdfast_domain::ledger::CERTIFIED;
use holdfast_store::control::{self, ControlDecision};
use holdfast_store::decisions::{self, DecisionWindow, LifecycleMove, StoredEvaluation};
use holdfast_store::{StoreError, envelopes, ledger, templates};

/// Default number of records to replay (contract, section 6).
const RECORDS: i64 = 1000;
/// Ledger actions of certificates.
const CERTIFYING: [&str; 2] = ["compliance.evaluated", CERTIFIED];
/// Time limit of a report.
const TIME: Duration = Duration::from_secs(60);
/// Number of differences returned. All of them are counted.
const SHOWN: usize = 1000;
/// Records that are read and compared at once.
const PAGE: i64 = 64;
/// Limits concurrent replays: each holds its records in memory and occupies a thread.
static RUNS: Semaphore = Semaphore::const_new(1);
/// Maximum number of documents to replay. They take longer than other records.
const DOCUMENTS: i64 = 50;
/// Width of rendered page images, in pixels.
const PICTURE: u32 = 400;

/// Body of `POST /components/{id}/shadow`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "records": 1000, "since": "2026-01-01T00:00:00.000Z", "kind": "esign" }]))]
pub struct ReplayRequest {
    /// Number of most recent records to replay; defaults to 1,000. At most 50 documents. A report has those that a
    /// minute suffices for, and `next`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub records: Option<i64>,
    /// Continues behind this id: `next` of a report.
    #[schemars(length(max = 100))]
    pub after: Option<String>,
    /// Only decisions from this time on.
    pub since: Option<Timestamp>,
    /// Only decisions before this time.
    pub until: Option<Timestamp>,
    /// Only decisions about envelopes of this kind.
    pub kind: Option<EnvelopeKind>,
}

/// Result of replaying stored records with a candidate.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa", "slot": "rules.compliance",
    "active": { "name": "holdfast-compliance", "version": "0.1.0", "sha256": "4be1…" },
    "compared": 1000, "differing": 1, "reworded": 0, "failed": 0, "active_ms": 14.1, "candidate_ms": 14.6,
    "differences": [{ "record_id": "env_01jdk7m3e8f4x9s2w5v6b0c1dc", "check": "Secured party identified",
                      "direction": "stricter", "before": true, "after": false,
                      "before_sentence": "First Example Bank", "after_sentence": "No secured party" }],
    "groups": [], "next": null,
}]))]
pub struct ShadowReport {
    pub component_id: ComponentId,
    pub slot: Slot,
    /// The active component that the candidate was compared with.
    pub active: ComponentIdentity,
    /// Number of records replayed.
    pub compared: u64,
    /// Number of replayed records with a difference.
    pub differing: u64,
    /// Number of replayed records on which only sentences differ.
    pub reworded: u64,
    /// Number of replayed records on which one of the two components failed.
    pub failed: u64,
    /// Total time of all calls to the active component, in milliseconds.
    pub active_ms: f64,
    pub candidate_ms: f64,
    /// The first thousand differences.
    pub differences: Vec<DecisionDifference>,
    /// All differences by check and direction, those of sentences only as well.
    pub groups: Vec<DifferenceGroup>,
    /// Value of `after` that the next report continues with; null if no decision is left.
    pub next: Option<String>,
}

impl ReplayRequest {
    fn number(&self) -> i64 {
        self.records.unwrap_or(RECORDS)
    }
}

/// Decisions that are replayed, newest first.
trait StoredDecision: Send + Sync + Sized + 'static {
    /// Returns a page.
    fn page(
        connection: &mut SqlConnection,
        org: &OrgId,
        window: &DecisionWindow,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Self>, StoreError>> + Send;

    /// Returns the id that the next page begins after.
    fn id(&self) -> String;
}

impl StoredDecision for StoredEvaluation {
    async fn page(
        connection: &mut SqlConnection,
        org: &OrgId,
        window: &DecisionWindow,
        limit: i64,
    ) -> Result<Vec<Self>, StoreError> {
        decisions::last_evaluations(connection, org, window, limit).await
    }

    fn id(&self) -> String {
        self.envelope.to_string()
    }
}

impl StoredDecision for LifecycleMove {
    async fn page(
        connection: &mut SqlConnection,
        org: &OrgId,
        window: &DecisionWindow,
        limit: i64,
    ) -> Result<Vec<Self>, StoreError> {
        decisions::last_moves(connection, org, window, limit).await
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl StoredDecision for ControlDecision {
    async fn page(
        connection: &mut SqlConnection,
        org: &OrgId,
        window: &DecisionWindow,
        limit: i64,
    ) -> Result<Vec<Self>, StoreError> {
        control::last_decisions(connection, org, window, limit).await
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

/// Accumulated comparison of two components.
struct ReplayComparison {
    compared: u64,
    differing: u64,
    reworded: u64,
    failed: u64,
    active: Duration,
    candidate: Duration,
    differences: Vec<DecisionDifference>,
    groups: DifferenceGroups,
    next: Option<String>,
}

impl ReplayComparison {
    fn new() -> Self {
        Self {
            compared: 0,
            differing: 0,
            reworded: 0,
            failed: 0,
            active: Duration::ZERO,
            candidate: Duration::ZERO,
            differences: Vec::new(),
            groups: DifferenceGroups::default(),
            next: None,
        }
    }

    /// Compares the chosen decisions page by page, on blocking threads.
    async fn replay<T: StoredDecision>(
        &mut self,
        core: &Core,
        org: &OrgId,
        request: &ReplayRequest,
        progress: &impl Fn(u64),
        compare: impl Fn(&T) -> Result<ComparedRecord, ServiceError> + Clone + Send + 'static,
    ) -> Result<(), ServiceError> {
        let mut window = DecisionWindow {
            since: request.since,
            until: request.until,
            kind: request.kind,
            after: request.after.clone(),
        };
        let mut left = request.number();

        // Looked at between pages, so that a report has whole pages and `next` continues behind them.
        let deadline = Instant::now() + TIME;
        loop {
            if left <= 0 || Instant::now() > deadline {
                self.next = window.after;
                break;
            }

            let limit = left.min(PAGE);
            let mut connection = core.store.read().await?;
            let page = T::page(&mut connection, org, &window, limit).await?;
            drop(connection);

            let Some(last) = page.last() else {
                break;
            };

            window.after = Some(last.id());
            left -= limit;
            // A short page is the last one, which saves another query.
            let is_last = i64::try_from(page.len()).is_ok_and(|found| found < limit);
            let compare = compare.clone();
            // On a blocking thread: a page of evaluations would hold an async one for its whole time.
            let task = tokio::task::spawn_blocking(move || {
                page.iter().map(compare).collect::<Result<Vec<_>, _>>()
            });

            let compared = task
                .await
                .map_err(|error| ServiceError::Internal(error.to_string()))??;
            for one in compared {
                self.active += one.active;
                self.candidate += one.candidate;
                self.note(&one.record, &one.before, &one.after);
                progress(self.compared);
            }

            if is_last {
                break;
            }
        }

        Ok(())
    }

    /// Adds both answers about one record.
    fn note(&mut self, record: &str, before: &ComponentAnswer, after: &ComponentAnswer) {
        self.compared += 1;
        self.failed += u64::from(gave_no_answer(before) || gave_no_answer(after));
        let mut found = differences(record, before, after);
        for difference in &found {
            self.groups.add(difference);
        }

        // Other words are counted apart. The list has changed decisions only.
        let all = found.len();
        found.retain(|difference| difference.before != difference.after);
        self.differing += u64::from(!found.is_empty());
        self.reworded += u64::from(found.is_empty() && all > 0);
        // All differences are counted, but the list is bounded: a wrong candidate differs on every record.
        let room = SHOWN.saturating_sub(self.differences.len());
        self.differences.extend(found.into_iter().take(room));
    }
}

/// Evaluates a record with compliance rules.
pub fn evaluated(rules: &ComplianceRules, facts: &compliance::EnvelopeFacts) -> ComponentAnswer {
    match rules.evaluate(facts) {
        Ok(evaluation) => evaluation_answer(&evaluation),
        // A trap is an answer, too: the report counts it and continues with the next record.
        Err(error) => failure(&error),
    }
}

/// Converts an evaluation to an answer, check by check.
pub fn evaluation_answer(evaluation: &compliance::Evaluation) -> ComponentAnswer {
    let checks = evaluation.checks.iter();
    checks
        .map(|check| AnswerPart {
            name: check.requirement.clone(),
            reference: Some(check.ucc_reference.clone()),
            value: json!(check.satisfied),
            sentence: Some(check.detail.clone()),
            is_verdict: true,
        })
        .chain([
            AnswerPart::new("compliant", json!(evaluation.compliant)),
            AnswerPart::new("score", json!(evaluation.score)),
        ])
        .collect()
}

/// Decides a transition with lifecycle rules.
pub fn moved(
    rules: &LifecycleRules,
    from: Option<EnvelopeStatus>,
    trigger: lifecycle::EnvelopeTrigger,
    facts: &lifecycle::EnvelopeFacts,
) -> ComponentAnswer {
    // Without the cache of answers, because the report compares the time of both.
    move_answer(from, trigger, &rules.envelope_anew(from, trigger, facts))
}

/// Converts a lifecycle decision to an answer.
pub fn move_answer(
    from: Option<EnvelopeStatus>,
    trigger: lifecycle::EnvelopeTrigger,
    led_to: &Result<EnvelopeStatus, TransitionError>,
) -> ComponentAnswer {
    let what = format!(
        "{} from {}",
        json!(trigger).as_str().unwrap_or_default(),
        from.map_or("nothing", EnvelopeStatus::as_str)
    );
    match led_to {
        Ok(to) => vec![AnswerPart::new(what, json!(to))],
        Err(TransitionError::Refused(refusal)) => {
            let reason = json!(refusal.reason);
            let reason = kebab(reason.as_str().unwrap_or_default());
            vec![AnswerPart {
                sentence: Some(refusal.message.clone()),
                ..AnswerPart::new(what, json!(refused(&reason)))
            }]
        }
        Err(TransitionError::Component(error)) => failure(error),
    }
}

/// Replays the organization's most recent records with a candidate.
pub async fn replay(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    id: &str,
    request: &ReplayRequest,
    progress: impl Fn(u64),
) -> Result<ShadowReport, ServiceError> {
    let owner = ComponentOwner::from(caller);
    let component = get(core, &owner, id).await?;
    // Before the candidate is loaded, so that waiting replays hold no component in memory.
    let _turn = RUNS.acquire().await;
    let candidate = artifact(core, management, &component).await?;
    let org = &caller.org;
    let mut comparison = ReplayComparison::new();
    let active = match component.slot {
        Slot::Compliance => {
            let active = core.components.compliance(Some(org));
            let candidate = core.components.compliance_from(&candidate)?;
            let identity = active.identity()?;
            let compare =
                move |record: &StoredEvaluation| compared_evaluation(&active, &candidate, record);
            comparison
                .replay(core, org, request, &progress, compare)
                .await?;

            identity
        }
        Slot::Lifecycle => {
            let active = core.components.lifecycle(Some(org));
            let candidate = core.components.lifecycle_from(&candidate)?;
            let identity = active.identity()?;
            let compare = move |record: &LifecycleMove| compared_move(&active, &candidate, record);
            comparison
                .replay(core, org, request, &progress, compare)
                .await?;

            identity
        }
        Slot::Control => {
            let active = core.components.control(Some(org));
            let candidate = core.components.control_from(&candidate)?;
            let identity = active.identity()?;
            let compare = move |record: &ControlDecision| compared_act(&active, &candidate, record);
            comparison
                .replay(core, org, request, &progress, compare)
                .await?;

            identity
        }
        Slot::Placement => {
            let records = request.number().min(DOCUMENTS);
            let mut connection = core.store.read().await?;
            let all = templates::last_documents(&mut connection, org, records).await?;
            drop(connection);
            let active = core.placement(Some(org));

            let candidate = core.components.placement_from(&candidate)?;
            for (number, (template, document)) in (1..).zip(all) {
                let pdf = core.files.get(&document).await?;
                // Behind the read from storage, which is no component's time.
                let began = Instant::now();
                let before = read(&active, pdf.clone()).await;
                comparison.active += began.elapsed();
                let began = Instant::now();
                let after = read(&candidate, pdf).await;
                comparison.candidate += began.elapsed();

                comparison.note(template.as_str(), &before, &after);
                progress(number);
            }

            active.identity()?
        }
        Slot::Documents => {
            let records = request.number().min(DOCUMENTS);
            let mut connection = core.store.read().await?;
            let all = templates::last_documents(&mut connection, org, records).await?;
            drop(connection);
            let active = core.documents(Some(org));

            let candidate = core.components.documents_from(&candidate)?;
            for (number, (template, document)) in (1..).zip(all) {
                let pdf = core.files.get(&document).await?;
                let began = Instant::now();
                let before = written(&active, pdf.clone()).await;
                comparison.active += began.elapsed();
                let began = Instant::now();
                let after = written(&candidate, pdf).await;
                comparison.candidate += began.elapsed();

                comparison.note(template.as_str(), &before, &after);
                progress(number);
            }

            active.identity()?
        }
        // A call to a provider acts on the vendor's side: asked again, it would act again.
        Slot::Signing | Slot::Payment | Slot::Kba | Slot::Messaging => {
            return Err(ServiceError::Semantic(format!(
                "Of {} nothing is recorded that could be asked again",
                component.slot
            )));
        }
    };

    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    Ok(ShadowReport {
        component_id: component.id,
        slot: component.slot,
        active,
        compared: comparison.compared,
        differing: comparison.differing,
        reworded: comparison.reworded,
        failed: comparison.failed,
        active_ms: millis(comparison.active),
        candidate_ms: millis(comparison.candidate),
        differences: comparison.differences,
        groups: comparison.groups.into_sorted(),
        next: comparison.next,
    })
}

/// Answers of both components about one record, and the time each took.
struct ComparedRecord {
    record: String,
    before: ComponentAnswer,
    after: ComponentAnswer,
    active: Duration,
    candidate: Duration,
}

/// Decodes a stored value.
fn stored<T: for<'de> Deserialize<'de>>(record: &str, value: &Value) -> Result<T, ServiceError> {
    serde_json::from_value(value.clone())
        .map_err(|error| ServiceError::Internal(format!("the record {record}: {error}")))
}

fn compared_evaluation(
    active: &ComplianceRules,
    candidate: &ComplianceRules,
    record: &StoredEvaluation,
) -> Result<ComparedRecord, ServiceError> {
    let facts: compliance::EnvelopeFacts = stored(record.envelope.as_str(), &record.facts)?;
    Ok(compared(
        record.envelope.as_str(),
        || evaluated(active, &facts),
        || evaluated(candidate, &facts),
    ))
}

fn compared_move(
    active: &LifecycleRules,
    candidate: &LifecycleRules,
    record: &LifecycleMove,
) -> Result<ComparedRecord, ServiceError> {
    let name = record.envelope.as_str();
    let facts: lifecycle::EnvelopeFacts = stored(name, &record.facts)?;
    let trigger = stored(name, &json!(record.trigger))?;
    Ok(compared(
        name,
        || moved(active, record.from, trigger, &facts),
        || moved(candidate, record.from, trigger, &facts),
    ))
}

fn compared_act(
    active: &ControlRules,
    candidate: &ControlRules,
    record: &ControlDecision,
) -> Result<ComparedRecord, ServiceError> {
    let name = record.envelope.as_str();
    let (act, facts) = recorded_act(record)?;
    Ok(compared(
        name,
        || decided(active, act, &facts),
        || decided(candidate, act, &facts),
    ))
}

/// Returns an act and its facts as the rules take them.
fn recorded_act(
    record: &ControlDecision,
) -> Result<(rules_control::Act, rules_control::ControlFacts), ServiceError> {
    let name = record.envelope.as_str();
    Ok((
        stored(name, &json!(record.act))?,
        stored(name, &record.facts)?,
    ))
}

/// Asks control rules about an act.
pub fn decided(
    rules: &ControlRules,
    act: rules_control::Act,
    facts: &rules_control::ControlFacts,
) -> ComponentAnswer {
    decision_answer(act, &rules.decide(act, facts))
}

/// Converts a decision about an act to an answer.
pub fn decision_answer(
    act: rules_control::Act,
    decision: &Result<rules_control::Decision, ComponentError>,
) -> ComponentAnswer {
    match decision {
        Ok(decision) => vec![AnswerPart::new(format!("{act:?}"), json!(decision))],
        Err(error) => failure(error),
    }
}

fn compared(
    record: &str,
    active: impl FnOnce() -> ComponentAnswer,
    candidate: impl FnOnce() -> ComponentAnswer,
) -> ComparedRecord {
    let began = Instant::now();
    let before = active();
    let middle = Instant::now();
    let after = candidate();
    ComparedRecord {
        record: record.into(),
        before,
        after,
        active: middle - began,
        candidate: middle.elapsed(),
    }
}

/// Inspects a document with a reader component.
async fn read(rules: &Placement, pdf: Bytes) -> ComponentAnswer {
    let facts = match rules.inspect(pdf.clone()).await {
        Ok(facts) => facts,
        Err(error) => return failure(&error),
    };
    // The first page only, because documents take longer than other records.
    let text = match rules.text(pdf, 1).await {
        Ok(text) => text,
        Err(error) => return failure(&error),
    };

    vec![
        AnswerPart::new("pages", json!(format!("{facts:?}"))),
        AnswerPart::new(
            "text of the first page, SHA-256",
            json!(sha256(format!("{text:?}").as_bytes())),
        ),
    ]
}

/// Marks and renders a document with a writer component.
async fn written(rules: &Documents, pdf: Bytes) -> ComponentAnswer {
    // Fixed values: with the present time, both copies would differ in each run.
    let request = documents::MarkRequest {
        kind: documents::CopyKind::NonAuthoritative,
        envelope_id: "env_shadow".into(),
        secured_party: Some("First Example Bank".into()),
        marked_at: "2026-01-02T03:04:05.000Z".into(),
        rewrite: false,
    };
    let request = WordedMark {
        request,
        words: None,
    };
    let marked = match rules.mark(pdf.clone(), request).await {
        Ok(Ok(documents::Marked::Unchanged)) => json!("as it was"),
        Ok(Ok(documents::Marked::Appended(bytes) | documents::Marked::Rewritten(bytes))) => {
            json!(sha256(&bytes))
        }
        Ok(Err(refused)) => json!(format!("{refused:?}")),
        Err(error) => return failure(&error),
    };

    let picture = match rules.page_image(pdf, 1, PICTURE).await {
        Ok(Ok(picture)) => json!(sha256(&picture.png)),
        Ok(Err(refused)) => json!(format!("{refused:?}")),
        Err(error) => return failure(&error),
    };
    vec![
        AnswerPart::new("the document with a copy's mark, SHA-256", marked),
        AnswerPart::new("picture of the first page, SHA-256", picture),
    ]
}

/// Converts placed fields to an answer, by field name.
pub fn placed(fields: &[Field]) -> ComponentAnswer {
    fields
        .iter()
        .map(|field| AnswerPart::new(format!("field {}", field.name), json!(field.areas)))
        .collect()
}

/// Places fields with placement rules.
pub async fn asked_to_place(
    rules: &Placement,
    pdf: Bytes,
    fields: Vec<placement::FieldRequest>,
) -> ComponentAnswer {
    match rules.place(pdf, fields).await {
        Ok(Ok(fields)) => placed(&fields.into_iter().map(resolved).collect::<Vec<_>>()),
        Ok(Err(refused)) => vec![AnswerPart::new("fields", json!(format!("{refused:?}")))],
        Err(error) => failure(&error),
    }
}

/// Result of replaying one decision.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "decision": "complete from viewed", "same": true, "detail": "leads to completed again",
    "facts": { "kind": "esign", "signers": [] },
    "component": { "name": "holdfast-lifecycle", "version": "0.1.0", "sha256": "4be1…" },
}]))]
pub struct ReplayedDecision {
    /// `certificate`, or the transition.
    pub decision: String,
    /// Component that made the decision and replayed it.
    pub component: Value,
    /// Facts of the call, in the names of the component's WIT package.
    pub facts: Value,
    pub same: bool,
    /// Explanation of the result.
    pub detail: String,
}

/// Replays all decisions about an envelope with exactly the components that made them.
pub async fn replay_envelope(
    core: &Core,
    management: &Arc<ComponentManager>,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Vec<ReplayedDecision>, ServiceError> {
    let mut connection = core.store.read().await?;
    let moves = decisions::moves_of(&mut connection, org, id).await?;
    let evaluation = decisions::evaluation_of(&mut connection, org, id).await?;
    let acts = control::decisions_of(&mut connection, org, id).await?;
    drop(connection);

    let mut replayed = Vec::new();
    for record in moves {
        // The component of then, not the active one: the question is whether it answers the same again.
        let rules = that_decided(core, management, &identity(&record.component)?).await?;
        let rules = core.components.lifecycle_from(&rules)?;
        let facts = stored(id.as_str(), &record.facts)?;
        let trigger = stored(id.as_str(), &json!(record.trigger))?;
        // A move has one part: the status that it leads to, or the reason why not.
        let answer = moved(&rules, record.from, trigger, &facts);
        let (what, to) = match answer.into_iter().next() {
            Some(part) => (part.name, part.value),
            None => (String::new(), Value::Null),
        };
        let same = to == json!(record.to);

        replayed.push(ReplayedDecision {
            decision: what,
            component: record.component,
            facts: record.facts,
            same,
            detail: if same {
                format!("leads to {} again", record.to.as_str())
            } else {
                format!("led to {}, and now {to}", record.to.as_str())
            },
        });
    }

    for record in acts {
        let rules = that_decided(core, management, &identity(&record.component)?).await?;
        let rules = core.components.control_from(&rules)?;
        let (act, facts) = recorded_act(&record)?;

        // Only permitted acts are recorded.
        let same = rules.decide(act, &facts)? == rules_control::Decision::Allowed;
        replayed.push(ReplayedDecision {
            decision: record.act,
            component: record.component,
            facts: record.facts,
            same,
            detail: if same {
                "is allowed again".into()
            } else {
                "was allowed, and now is not".into()
            },
        });
    }

    if let Some(record) = evaluation {
        replayed.push(recertified(core, management, org, id, record).await?);
    }

    Ok(replayed)
}

/// Regenerates the newest certificate and compares it byte for byte with the stored one.
async fn recertified(
    core: &Core,
    management: &Arc<ComponentManager>,
    org: &OrgId,
    id: &EnvelopeId,
    mut record: StoredEvaluation,
) -> Result<ReplayedDecision, ServiceError> {
    let mut connection = core.store.read().await?;
    let entries = ledger::list(&mut connection, Some(org), id).await?;
    let envelope = envelopes::get(&mut connection, org, id).await?;
    drop(connection);
    let entry = entries
        .iter()
        .rev()
        .find(|entry| CERTIFYING.contains(&entry.action.as_str()));

    // After a change of control, the certificate is that of other facts, perhaps by other rules.
    if let Some(entry) = entry.filter(|entry| entry.action == CERTIFIED) {
        record.component = entry.details["component"].clone();
        record.facts = entry.details["facts"].clone();
    }

    let rules = that_decided(core, management, &identity(&record.component)?).await?;
    let rules = core.components.compliance_from(&rules)?;
    let facts: compliance::EnvelopeFacts = stored(id.as_str(), &record.facts)?;
    let text = |what: &str| {
        let told = entry.and_then(|entry| entry.details[what].as_str());
        told.unwrap_or_default().to_owned()
    };

    // Certificates from before second evaluations were recorded contain the rules' result alone.
    let (issued_at, issuer) = (text("issued_at"), text("issuer"));
    let (certificate, _) = if entry.is_some_and(|entry| entry.details["evaluations"].is_array()) {
        rules.certificate(&facts, &issued_at, &issuer)?
    } else {
        rules.certificate_alone(&facts, &issued_at, &issuer)?
    };
    // A missing certificate is reported as a difference and not as an error.
    let kept = match envelope.and_then(|envelope| envelope.record.certificate) {
        Some(file) => core.files.get(&file).await?,
        None => Bytes::new(),
    };
    let same = certificate.as_bytes() == kept;

    Ok(ReplayedDecision {
        decision: "certificate".into(),
        component: record.component,
        facts: record.facts,
        same,
        detail: if same {
            "is written again byte for byte".into()
        } else {
            "comes out otherwise".into()
        },
    })
}

fn identity(component: &Value) -> Result<ComponentIdentity, ServiceError> {
    stored("of a decision", component)
}
