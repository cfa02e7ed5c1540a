//! Live shadowing: a candidate component evaluates real traffic off the request path, and its
//! differences from the active component are counted and stored.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::questions::{AskedRules, RulesQuestion, asked_to_place};
use crate::components::{
    ComponentManager, ComponentOwner, ComponentView, artifact, by_digest, get, record,
};
use crate::{Core, Problem, ProblemKind, ServiceError};
use holdfast_adapters::files::Files;
use holdfast_base::metrics::Metrics;
use holdfast_components::Placement;
use holdfast_components::answers::{ComponentAnswer, differences, direction, gave_no_answer};
use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::component::Slot;
use holdfast_domain::component_change::DecisionDifference;
use holdfast_domain::id::{OrgId, ShadowId};
use holdfast_store::Store;
use holdfast_store::components as rows;
use holdfast_store::shadows::{self, ShadowCounts, ShadowRun};

/// Queue length per candidate. Further questions are dropped and counted.
const WAITING: usize = 1024;
/// Number of questions compared and recorded together.
const BATCH: usize = 64;
/// Number of differences stored per run.
const KEPT: i64 = 10_000;
/// Number of differences returned by the API.
const SHOWN: i64 = 100;

/// A question with the active component's answer.
struct QueuedQuestion {
    record: String,
    question: RulesQuestion,
    before: ComponentAnswer,
}

/// Handle of a running candidate.
struct RunningShadow {
    id: ShadowId,
    asked: mpsc::Sender<QueuedQuestion>,
    left_out: AtomicI64,
}

/// Candidates running on this node beside active components.
#[derive(Default)]
pub struct LiveShadows {
    running: ArcSwap<HashMap<(Slot, OrgId), Arc<RunningShadow>>>,
}

impl LiveShadows {
    /// Offers a decision to the candidate without waiting: its question with the active component's answer. Copies
    /// nothing if no candidate runs in the slot.
    pub fn offer(
        &self,
        slot: Slot,
        org: &OrgId,
        record: &str,
        decision: impl FnOnce() -> (RulesQuestion, ComponentAnswer),
    ) {
        let running = self.running.load();
        // The usual case: no candidate runs on this node, and a decision pays one load for that.
        if running.is_empty() {
            return;
        }

        // Never waits: a slow candidate must not delay the decisions of real traffic.
        if let Some(running) = running.get(&(slot, org.clone())) {
            let (question, before) = decision();
            let asked = QueuedQuestion {
                record: record.into(),
                question,
                before,
            };
            if running.asked.try_send(asked).is_err() {
                running.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Starts and stops candidates according to the database.
pub async fn follow(core: &Core, management: &Arc<ComponentManager>) -> Result<(), ServiceError> {
    // Urgently, because it is part of the poll for activations, which must not wait behind requests.
    let mut connection = core.store.read_urgently().await?;
    let wanted = shadows::running(&mut connection).await?;
    drop(connection);
    let before = core.shadows.running.load_full();

    let mut running = HashMap::new();
    for shadow in wanted {
        let place = (shadow.slot, shadow.org.clone());
        let known = before.get(&place).filter(|known| known.id == shadow.id);

        // A closed channel means that its task ended, for example as loading failed: retry.
        let known = known.filter(|known| !known.asked.is_closed());
        let one = known
            .cloned()
            .unwrap_or_else(|| begin(core, management, shadow));
        running.insert(place, one);
    }

    // The senders of candidates that are no longer wanted are dropped here, which ends their tasks.
    core.shadows.running.store(Arc::new(running));
    Ok(())
}

/// Starts a candidate. A separate task loads it, so the caller does not wait.
fn begin(core: &Core, management: &Arc<ComponentManager>, shadow: ShadowRun) -> Arc<RunningShadow> {
    let (asked, questions) = mpsc::channel(WAITING);
    let running = Arc::new(RunningShadow {
        id: shadow.id.clone(),
        asked,
        left_out: AtomicI64::new(0),
    });

    // Weak, because a task that holds its own sender would never end.
    let weak = Arc::downgrade(&running);
    let (core, management) = (core.clone(), management.clone());
    tokio::spawn(async move {
        let candidate = match candidate(&core, &management, &shadow).await {
            Ok(candidate) => candidate,
            Err(error) => {
                tracing::error!(shadow = %shadow.id, %error, "shadow candidate could not be loaded");
                return;
            }
        };

        // Only some parts of `core`: all of it would hold this task's own sender, and the task
        // would never end.
        let Core {
            store,
            files,
            metrics,
            clock,
            ..
        } = core;

        let work = ShadowTask {
            store,
            files,
            metrics,
            clock,
            org: shadow.org,
            id: shadow.id,
            candidate,
        };

        let left_out = move || {
            let running = weak.upgrade();
            running.map_or(0, |running| running.left_out.swap(0, Ordering::Relaxed))
        };
        work.run(questions, left_out).await;
    });

    running
}

async fn candidate(
    core: &Core,
    management: &Arc<ComponentManager>,
    shadow: &ShadowRun,
) -> Result<AskedRules, ServiceError> {
    let artifact = by_digest(core, management, &shadow.sha256).await?;
    let (core, slot) = (core.clone(), shadow.slot);
    // Linking takes milliseconds of processor time, and is done on a blocking thread.
    let load = move || AskedRules::candidate(&core, slot, &artifact);
    let loaded = tokio::task::spawn_blocking(load)
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))?;

    loaded?.ok_or_else(|| not_live(slot))
}

fn not_live(slot: Slot) -> ServiceError {
    ServiceError::Semantic(format!(
        "Of {slot} no decision is made that could be compared"
    ))
}

/// Task of one candidate. Ends when the last sender of its questions is dropped.
struct ShadowTask {
    store: Store,
    files: Files,
    metrics: Arc<Metrics>,
    clock: Clock,
    org: OrgId,
    id: ShadowId,
    candidate: AskedRules,
}

impl ShadowTask {
    async fn run(self, mut questions: mpsc::Receiver<QueuedQuestion>, left_out: impl Fn() -> i64) {
        let mut batch = Vec::new();
        // In batches, so that a busy candidate costs one transaction for up to 64 decisions.
        while questions.recv_many(&mut batch, BATCH).await > 0 {
            let asked = std::mem::take(&mut batch);
            let compared = match &self.candidate {
                AskedRules::Placement(rules) => compare_placed(&self.files, rules, asked).await,
                rules => {
                    let rules = rules.clone();
                    tokio::task::spawn_blocking(move || compare(&rules, asked))
                        .await
                        .ok()
                }
            };

            // The batch is lost, and the next one is compared.
            let Some((mut counts, found)) = compared else {
                continue;
            };

            counts.left_out = left_out();
            self.metrics
                .shadow_compared
                .inc_by(counts.compared.unsigned_abs());
            self.metrics
                .shadow_differing
                .inc_by(counts.differing.unsigned_abs());

            self.metrics
                .shadow_failed
                .inc_by(counts.failed.unsigned_abs());

            // Not retried: a gap in the counts is harmless, and the queue fills up meanwhile.
            if let Err(error) = self.note(&counts, &found).await {
                tracing::warn!(%error, "shadow comparison could not be recorded");
            }
        }
    }

    async fn note(
        &self,
        counts: &ShadowCounts,
        found: &[DecisionDifference],
    ) -> Result<(), ServiceError> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        shadows::count(&mut tx, &self.org, &self.id, counts).await?;

        for one in found {
            let found = (
                one.record_id.as_str(),
                one.check.as_str(),
                &one.before,
                &one.after,
            );
            shadows::insert_difference(&mut tx, &self.org, &self.id, found, KEPT, now).await?;
        }

        Ok(tx.commit().await?)
    }
}

fn compare(
    candidate: &AskedRules,
    asked: Vec<QueuedQuestion>,
) -> (ShadowCounts, Vec<DecisionDifference>) {
    let mut counts = ShadowCounts::default();
    let mut all = Vec::new();
    for one in asked {
        let after = candidate.answer(&one.question);
        note(&mut counts, &mut all, &one, &after);
    }

    (counts, all)
}

/// Compares placements one after the other. None if a document cannot be read.
async fn compare_placed(
    files: &Files,
    rules: &Placement,
    asked: Vec<QueuedQuestion>,
) -> Option<(ShadowCounts, Vec<DecisionDifference>)> {
    let mut counts = ShadowCounts::default();
    let mut all = Vec::new();
    for one in asked {
        // Unreachable: the queue of a placement candidate has placements only.
        let RulesQuestion::Placement { document, fields } = &one.question else {
            continue;
        };

        let pdf = match files.get(document).await {
            Ok(pdf) => pdf,
            Err(error) => {
                tracing::warn!(%error, "document for a shadow comparison could not be read");
                return None;
            }
        };
        let after = asked_to_place(rules, pdf, fields.clone()).await;

        note(&mut counts, &mut all, &one, &after);
    }

    Some((counts, all))
}

fn note(
    counts: &mut ShadowCounts,
    all: &mut Vec<DecisionDifference>,
    one: &QueuedQuestion,
    after: &ComponentAnswer,
) {
    counts.compared += 1;
    counts.failed += i64::from(gave_no_answer(after));
    let mut found = differences(&one.record, &one.before, after);
    // Other words are no other decision.
    found.retain(|difference| difference.before != difference.after);
    counts.differing += i64::from(!found.is_empty());
    all.extend(found);
}

/// Body of `POST /component-slots/{slot}/shadow`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "component_id": "cmp_01jt8s5gq2e6m9x4k7w3c5d8fa" }]))]
pub struct StartShadow {
    pub component_id: String,
}

/// A candidate that runs, or ran, beside the active component.
#[derive(Clone, Serialize, JsonSchema)]
pub struct LiveShadow {
    pub slot: Slot,
    pub candidate: ComponentView,
    pub started_by: String,
    pub started_at: Timestamp,
    /// Null while the candidate runs.
    pub ended_at: Option<Timestamp>,
    /// Number of decisions made by both components.
    pub compared: i64,
    pub differing: i64,
    /// Number of decisions on which the candidate failed.
    pub failed: i64,
    /// Number of decisions dropped because the candidate could not keep up.
    pub left_out: i64,
    /// The last hundred differences.
    pub differences: Vec<DecisionDifference>,
}

/// Starts a candidate beside the active component. Replaces a running candidate.
pub async fn start(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    org: &OrgId,
    slot: Slot,
    request: &StartShadow,
) -> Result<LiveShadow, ServiceError> {
    let live = [
        Slot::Compliance,
        Slot::Lifecycle,
        Slot::Placement,
        Slot::Control,
        Slot::Funding,
    ];
    if !live.contains(&slot) {
        return Err(not_live(slot));
    }

    let component = get(core, owner, &request.component_id).await?;
    if component.slot != slot {
        return Err(ServiceError::Semantic(format!(
            "{} is for {}, not for {slot}",
            component.identity, component.slot
        )));
    }

    // Compiled here, so that an unusable candidate fails the request.
    artifact(core, management, &component).await?;
    let now = core.clock.now();
    let shadow = ShadowRun {
        id: ShadowId::new(),
        org: org.clone(),
        slot,
        component: component.id.clone(),
        sha256: component.identity.sha256.clone(),
        started_by: owner.actor.clone(),
        started_at: now,
        ended_at: None,
        counts: ShadowCounts::default(),
    };

    let mut tx = core.store.begin().await?;
    // Raises the revision, which makes every node start the candidate.
    rows::begin_change(&mut tx).await?;

    // One candidate per slot: ends the running one.
    shadows::end(&mut tx, org, slot, now).await?;
    shadows::insert(&mut tx, &shadow).await?;
    let details = serde_json::json!({ "slot": slot, "component_id": component.id });
    record(core, &mut tx, owner, "component.shadow_started", details).await?;
    tx.commit().await?;
    crate::components::refresh(core, management).await?;

    view(core, owner, org, slot).await
}

/// Stops the candidate. Its results are kept.
pub async fn stop(
    core: &Core,
    management: &Arc<ComponentManager>,
    owner: &ComponentOwner,
    org: &OrgId,
    slot: Slot,
) -> Result<LiveShadow, ServiceError> {
    let mut tx = core.store.begin().await?;
    // Raises the revision, which makes every node stop the candidate.
    rows::begin_change(&mut tx).await?;
    if !shadows::end(&mut tx, org, slot, core.clock.now()).await? {
        return Err(Problem::new(ProblemKind::NotFound, None, "No candidate is running").into());
    }

    let details = serde_json::json!({ "slot": slot });
    record(core, &mut tx, owner, "component.shadow_ended", details).await?;
    tx.commit().await?;
    crate::components::refresh(core, management).await?;

    view(core, owner, org, slot).await
}

/// Returns the last candidate of a slot.
pub async fn view(
    core: &Core,
    owner: &ComponentOwner,
    org: &OrgId,
    slot: Slot,
) -> Result<LiveShadow, ServiceError> {
    let mut connection = core.store.read().await?;
    let shadow = shadows::last(&mut connection, org, slot)
        .await?
        .ok_or_else(|| Problem::new(ProblemKind::NotFound, None, "No candidate has run"))?;
    let differences = shadows::differences(&mut connection, org, &shadow.id, SHOWN).await?;
    drop(connection);

    let candidate = get(core, owner, shadow.component.as_str()).await?;
    Ok(LiveShadow {
        slot,
        candidate: candidate.into(),
        started_by: shadow.started_by,
        started_at: shadow.started_at,
        ended_at: shadow.ended_at,
        compared: shadow.counts.compared,
        differing: shadow.counts.differing,
        failed: shadow.counts.failed,
        left_out: shadow.counts.left_out,
        differences: differences
            .into_iter()
            .map(
                |(record_id, check, before, after): (String, String, Value, Value)| {
                    DecisionDifference {
                        record_id,
                        check,
                        direction: direction(&before, &after),
                        before,
                        after,
                        before_sentence: None,
                        after_sentence: None,
                    }
                },
            )
            .collect(),
    })
}
