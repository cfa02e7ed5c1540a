//! Replaying stored decisions: compares a candidate with the active component on past records
//! and reports every difference. Changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::questions::{self, AskedRules, RecordedQuestion, move_answer, stored};
use crate::components::{ComponentManager, ComponentOwner, artifact, get, that_decided};
use crate::{Caller, Core, ServiceError};
use holdfast_components::answers::{
    ComponentAnswer, DifferenceGroups, differences, gave_no_answer,
};
use holdfast_components::rules::{compliance, control as rules_control};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_domain::component_change::{DecisionDifference, DifferenceGroup};
use holdfast_domain::envelope::EnvelopeKind;
use holdfast_domain::id::{ComponentId, EnvelopeId, OrgId};
use holdfast_domain::ledger::CERTIFIED;
use holdfast_store::decisions::{self, DecisionWindow, StoredEvaluation};
use holdfast_store::{control, envelopes, funding, ledger, templates};

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

/// Accumulated comparison of two components.
#[derive(Default)]
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
    /// Compares the chosen decisions page by page, on blocking threads.
    async fn decisions(
        &mut self,
        core: &Core,
        org: &OrgId,
        compared: ComparedRules,
        request: &ReplayRequest,
        progress: &impl Fn(u64),
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
            let slot = compared.slot;
            let page = questions::recorded(&mut connection, org, slot, &window, limit).await?;
            drop(connection);

            let Some(last) = page.last() else {
                break;
            };

            window.after = Some(last.id.clone());
            left -= limit;
            // A short page is the last one, which saves another query.
            let is_last = i64::try_from(page.len()).is_ok_and(|found| found < limit);
            let rules = compared.clone();
            // On a blocking thread: a page of evaluations would hold an async one for its whole time.
            let task = tokio::task::spawn_blocking(move || {
                let answers = page.iter().map(|one| rules.answers(one));
                answers.collect::<Result<Vec<_>, _>>()
            });

            let answers = task
                .await
                .map_err(|error| ServiceError::Internal(error.to_string()))??;
            for one in answers {
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

    /// Compares work on the latest documents of templates.
    async fn documents(
        &mut self,
        core: &Core,
        org: &OrgId,
        compared: ComparedRules,
        request: &ReplayRequest,
        progress: &impl Fn(u64),
    ) -> Result<(), ServiceError> {
        let records = request.number().min(DOCUMENTS);
        let mut connection = core.store.read().await?;
        let all = templates::last_documents(&mut connection, org, records).await?;
        drop(connection);

        for (template, document) in all {
            let pdf = core.files.get(&document).await?;
            // Behind the read from storage, which is no component's time.
            let began = Instant::now();
            let before = compared.active.answer_about(pdf.clone()).await;
            self.active += began.elapsed();
            let began = Instant::now();
            let after = compared.candidate.answer_about(pdf).await;
            self.candidate += began.elapsed();

            self.note(template.as_str(), &before, &after);
            progress(self.compared);
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

/// The two components of a comparison.
#[derive(Clone)]
struct ComparedRules {
    slot: Slot,
    active: AskedRules,
    candidate: AskedRules,
}

impl ComparedRules {
    /// Asks both components the question of a recorded decision.
    fn answers(&self, recorded: &RecordedQuestion) -> Result<ComparedRecord, ServiceError> {
        let question = recorded.decoded(self.slot)?;
        let began = Instant::now();
        let before = self.active.answer(&question);
        let middle = Instant::now();
        let after = self.candidate.answer(&question);

        Ok(ComparedRecord {
            record: recorded.record.clone(),
            before,
            after,
            active: middle - began,
            candidate: middle.elapsed(),
        })
    }
}

/// Answers of both components about one record, and the time each took.
struct ComparedRecord {
    record: String,
    before: ComponentAnswer,
    after: ComponentAnswer,
    active: Duration,
    candidate: Duration,
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
    let (org, slot) = (&caller.org, component.slot);
    let (Some(active), Some(candidate)) = (
        AskedRules::active(core, org, slot),
        AskedRules::candidate(core, slot, &candidate)?,
    ) else {
        return Err(ServiceError::Semantic(format!(
            "Of {slot} nothing is recorded that could be asked again"
        )));
    };

    let active_identity = active.identity()?;
    let mut comparison = ReplayComparison::default();
    let rules = ComparedRules {
        slot,
        active,
        candidate,
    };
    match slot {
        Slot::Placement | Slot::Documents => {
            let compared = comparison.documents(core, org, rules, request, &progress);
            compared.await?;
        }
        _ => {
            let compared = comparison.decisions(core, org, rules, request, &progress);
            compared.await?;
        }
    }

    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    Ok(ShadowReport {
        component_id: component.id,
        slot,
        active: active_identity,
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
    // Of a destroyed record, the facts are gone.
    envelopes::get(&mut connection, org, id).await?;
    let moves = decisions::moves_of(&mut connection, org, id).await?;
    let evaluation = decisions::evaluation_of(&mut connection, org, id).await?;
    let acts = control::decisions_of(&mut connection, org, id).await?;
    let checks = funding::decisions_of(&mut connection, org, id).await?;
    drop(connection);

    let mut replayed = Vec::new();
    for record in moves {
        // The component of then, not the active one: the question is whether it answers the same again.
        let rules = that_decided(core, management, &identity(&record.component)?).await?;
        let rules = core.components.lifecycle_from(&rules)?;
        let facts = stored(id.as_str(), &record.facts)?;
        let trigger = stored(id.as_str(), &json!(record.trigger))?;
        // A move has one part: the status that it leads to, or the reason why not.
        let led_to = rules.envelope_anew(record.from, trigger, &facts);
        let answer = move_answer(record.from, trigger, &led_to);
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
        let act = stored(id.as_str(), &json!(record.act))?;
        let facts = stored(id.as_str(), &record.facts)?;

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

    for record in checks {
        let rules = that_decided(core, management, &identity(&record.component)?).await?;
        let rules = core.components.funding_from(&rules)?;
        let facts = stored(id.as_str(), &record.facts)?;

        let same = json!(rules.check(&facts)?) == record.answer;
        replayed.push(ReplayedDecision {
            decision: format!("funding check {}", record.stage),
            component: record.component,
            facts: record.facts,
            same,
            detail: if same {
                format!("is {} again, with the same findings", record.outcome)
            } else {
                "has other findings now".into()
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
