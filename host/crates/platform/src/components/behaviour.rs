//! Behaviour differences of a component on generated facts. Changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use holdfast_store::SqlConnection;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::activation::active_component;
use super::admission::vectors_of;
use super::{ComponentManager, ComponentOwner, artifact, get, questions, quota};
use crate::{Caller, Core, ServiceError};
use holdfast_components::ComponentError;
use holdfast_components::background;
use holdfast_components::behaviour::{
    self, BaseQuestion, BehaviourDiff, FunctionDiff, QuestionPlan,
};
use holdfast_components::vectors::VectorSet;
use holdfast_domain::component::Slot;
use holdfast_domain::component_change::GeneratedComparison;
use holdfast_domain::id::OrgId;
use holdfast_store::decisions::DecisionWindow;

/// Default number of questions for each function.
const QUESTIONS: usize = 2_000;
/// Most questions about documents, which take longer.
const ABOUT_DOCUMENTS: usize = 100;
/// Recorded decisions from which questions begin.
const RECORDED: i64 = 20;
/// Time limit of a comparison. The report has the questions asked until then.
const TIME: Duration = Duration::from_secs(30);
/// Bytes of the parameters of a counterexample. Larger ones are left out.
const GIVEN: usize = 64 * 1024;
/// Limits concurrent comparisons: each occupies a thread for seconds.
static RUNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// Body of `POST /components/{id}/diff`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "questions": 500 }]))]
pub struct DiffRequest {
    /// Component to compare with; the active one if absent.
    pub against: Option<String>,
    /// Number of questions for each function; 2,000 if absent. At most 100 about documents.
    #[schemars(range(min = 1, max = 100_000))]
    pub questions: Option<usize>,
}

/// Groups of differences that a change request keeps.
const MAX_KEPT: usize = 100;

/// Whether facts can be generated for a slot.
pub fn can_generate(slot: Slot) -> bool {
    !slot.is_provider() && slot != Slot::Documents
}

/// Returns what a change request keeps of a report: counts, and the differences of its decisions.
pub fn evidence(report: BehaviourDiff) -> GeneratedComparison {
    let sum = |count: fn(&FunctionDiff) -> u64| report.functions.iter().map(count).sum();
    let (asked, differing, failed) = (
        sum(|one| one.stopped_after.unwrap_or(one.asked.all())),
        sum(|one| one.differing),
        sum(|one| one.failed),
    );
    let decides = |one: &FunctionDiff| !one.outcomes.is_empty();
    let repeats = report.functions.iter().any(decides);

    let functions = report.functions.into_iter();

    // A certificate repeats the checks.
    let functions = functions.filter(|one| decides(one) || !repeats);
    let groups = functions.flat_map(|one| one.groups).take(MAX_KEPT);
    GeneratedComparison {
        asked,
        differing,
        failed,
        groups: groups
            .map(|mut group| {
                // The content of a request is an entry of the ledger: whole parameters would fill it.
                group.counterexample.given.clear();
                group
            })
            .collect(),
    }
}

/// Compares a component with another one, or with the active one, on generated facts around the published
/// vectors, the vectors of both, and the organization's latest decisions. The time counts as compile time.
///
/// # Errors
/// [`ServiceError::NotFound`] for an unknown component, [`ServiceError::Semantic`] for components that are no
/// rules or of different slots, [`Quota`](crate::ProblemKind::Quota) when the organization's compile time is used up.
pub async fn diff(
    core: &Core,
    management: &Arc<ComponentManager>,
    caller: &Caller,
    id: &str,
    request: &DiffRequest,
) -> Result<BehaviourDiff, ServiceError> {
    let owner = ComponentOwner::from(caller);
    let after = get(core, &owner, id).await?;
    let slot = after.slot;
    if !can_generate(slot) {
        return Err(ServiceError::Semantic(format!(
            "For {slot} no facts can be generated"
        )));
    }

    let org = &caller.org;
    // A candidate's answers cost processor time like a compile, and count as such.
    quota::check_compile_time(core, Some(org)).await?;
    let against = match &request.against {
        Some(id) => Some(get(core, &owner, id).await?),
        None => None,
    };
    let mut connection = core.store.read().await?;
    let before = match against {
        Some(against) => against,
        None => active_component(core, &mut connection, &owner, slot).await?,
    };
    if before.slot != slot {
        return Err(ServiceError::Semantic(format!(
            "{} is for {}, and {} is for {slot}",
            before.identity, before.slot, after.identity
        )));
    }

    let vectors = [
        vectors_of(&mut connection, &before).await?,
        vectors_of(&mut connection, &after).await?,
    ];
    let most = request.questions.unwrap_or(QUESTIONS);
    let plan = QuestionPlan {
        vectors: vectors.to_vec(),
        recorded: recorded(&mut connection, org, slot).await?,
        most: match slot {
            Slot::Placement => most.min(ABOUT_DOCUMENTS),
            _ => most,
        },
        threads: 1,
        time: Some(TIME),
    };

    drop(connection);
    let turn = RUNS.clone().acquire_owned().await;
    let before = artifact(core, management, &before).await?;
    let after = artifact(core, management, &after).await?;
    let components = core.components.clone();
    let began = Instant::now();
    // On a thread of low priority, behind the threads of requests.
    let compared = background::run(move || {
        // Until the work has ended, even if its caller has gone.
        let _turn = turn;
        let (before, after) = (components.program(&before)?, components.program(&after)?);
        Ok::<_, ComponentError>(behaviour::compare(&before, &after, &plan))
    });
    let compared = compared.await;

    // Also for a comparison that failed: it has used the processor.
    quota::note_compile_time(core, Some(org), began.elapsed()).await?;
    let mut report = compared.map_err(|error| ServiceError::Internal(error.to_string()))??;
    let groups = report.functions.iter_mut().flat_map(|one| &mut one.groups);
    for example in groups.map(|group| &mut group.counterexample) {
        // Counterexamples of documents can be as large as the document.
        if serde_json::to_vec(&example.given).map_or(true, |text| text.len() > GIVEN) {
            example.given.clear();
        }
    }

    Ok(report)
}

/// Returns the latest recorded calls of the organization, by function.
async fn recorded(
    connection: &mut SqlConnection,
    org: &OrgId,
    slot: Slot,
) -> Result<BTreeMap<String, Vec<BaseQuestion>>, ServiceError> {
    let function = match slot {
        Slot::Compliance => "evaluate",
        Slot::Lifecycle => "envelope",
        Slot::Control => "decide",
        Slot::Funding => "check",
        _ => return Ok(BTreeMap::new()),
    };

    // Real facts to begin with, because random ones satisfy no check and reach few branches.
    let all = DecisionWindow::default();
    let found = questions::recorded(connection, org, slot, &all, RECORDED).await?;
    let calls = found.into_iter().map(|one| BaseQuestion {
        name: one.record,
        with: one.given,
    });

    Ok(BTreeMap::from([(function.to_owned(), calls.collect())]))
}

/// Returns the vectors that hold for a component.
pub async fn vectors(
    core: &Core,
    owner: &ComponentOwner,
    id: &str,
) -> Result<VectorSet, ServiceError> {
    let component = get(core, owner, id).await?;
    let mut connection = core.store.read().await?;
    vectors_of(&mut connection, &component).await
}
