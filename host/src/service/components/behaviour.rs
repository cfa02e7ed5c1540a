//! Behaviour differences of a component on generated facts. Changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sqlx::AnyConnection;
use tokio::sync::Semaphore;

use super::activation::active_component;
use super::admission::vectors_of;
use super::{ComponentManager, ComponentOwner, artifact, get};
use crate::components::behaviour::{self, BaseQuestion, BehaviourDiff, QuestionPlan};
use crate::components::vectors::VectorSet;
use crate::domain::component::{Component, Slot};
use crate::domain::id::OrgId;
use crate::service::{Caller, Core, ServiceError};
use crate::store::{control, decisions};

/// Default number of questions for each function.
const QUESTIONS: usize = 10_000;
/// Most questions about documents, which take longer.
const ABOUT_DOCUMENTS: usize = 100;
/// Recorded decisions from which questions begin.
const RECORDED: i64 = 20;
/// Limits concurrent comparisons: each occupies a thread for seconds.
static RUNS: Semaphore = Semaphore::const_new(1);

/// Body of `POST /components/{id}/diff`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("examples" = [{ "questions": 10_000 }]))]
pub struct DiffRequest {
    /// Component to compare with; the active one if absent.
    pub against: Option<String>,
    /// Number of questions for each function; 10,000 if absent. At most 100 about documents.
    #[schemars(range(min = 1, max = 100_000))]
    pub questions: Option<usize>,
}

/// Compares a component with another one, or with the active one, on generated facts around the published
/// vectors, the vectors of both, and the organization's latest decisions.
///
/// # Errors
/// [`ServiceError::NotFound`] for an unknown component, [`ServiceError::Semantic`] for components that are no
/// rules or of different slots.
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
    if slot.is_provider() || slot == Slot::Documents {
        return Err(ServiceError::Semantic(format!(
            "For {slot} no facts can be generated"
        )));
    }
    let mut connection = core.store.read().await?;
    let before = match &request.against {
        Some(id) => get(core, &owner, id).await?,
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
        recorded: recorded(&mut connection, &caller.org, slot).await?,
        most: match slot {
            Slot::Placement => most.min(ABOUT_DOCUMENTS),
            _ => most,
        },
        threads: 1,
    };
    drop(connection);
    let _turn = RUNS.acquire().await;
    let before = program(core, management, &before).await?;
    let after = program(core, management, &after).await?;
    let compared = core
        .components
        .in_background(move || behaviour::compare(&before, &after, &plan));
    compared
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))
}

async fn program(
    core: &Core,
    management: &Arc<ComponentManager>,
    component: &Component,
) -> Result<behaviour::RulesProgram, ServiceError> {
    let artifact = artifact(core, management, component).await?;
    Ok(core.components.program(&artifact)?)
}

/// Returns the latest recorded calls of the organization, by function.
async fn recorded(
    connection: &mut AnyConnection,
    org: &OrgId,
    slot: Slot,
) -> Result<BTreeMap<String, Vec<BaseQuestion>>, ServiceError> {
    let call = |name: &str, with: Value| BaseQuestion {
        name: name.to_owned(),
        with: match with {
            Value::Object(with) => with,
            _ => Map::new(),
        },
    };
    let (function, calls) = match slot {
        Slot::Compliance => {
            let all = decisions::last_evaluations(connection, org, RECORDED).await?;
            let calls = all.into_iter();
            let calls = calls.map(|one| call(one.envelope.as_str(), json!({ "facts": one.facts })));
            ("evaluate", calls.collect())
        }
        Slot::Lifecycle => {
            let all = decisions::last_moves(connection, org, RECORDED).await?;
            let calls = all.into_iter().map(|one| {
                let with =
                    json!({ "current": one.from, "trigger": one.trigger, "facts": one.facts });
                call(one.envelope.as_str(), with)
            });
            ("envelope", calls.collect())
        }
        Slot::Control => {
            let all = control::last_decisions(connection, org, RECORDED).await?;
            let calls = all.into_iter().map(|one| {
                let with = json!({ "act": one.act, "facts": one.facts });
                call(one.envelope.as_str(), with)
            });
            ("decide", calls.collect())
        }
        _ => return Ok(BTreeMap::new()),
    };
    Ok(BTreeMap::from([(function.to_owned(), calls)]))
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
