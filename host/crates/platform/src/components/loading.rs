//! Loading components on this node: off the request path, a few at a time, and for
//! organizations only when a call needs one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, watch};

use super::{ComponentManager, artifact};
use crate::{Core, ServiceError};
use holdfast_components::{ComponentError, built_in};
use holdfast_domain::component::{ComponentIdentity, Slot};
use holdfast_store::components;

/// Number of components that are read and linked concurrently.
const AT_ONCE: usize = 2;
/// Maximum time a call waits for its component.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time until a failed load is retried.
const AGAIN: Duration = Duration::from_secs(5);
/// Time until a failed compilation is retried; compiling can occupy a processor for minutes.
const COMPILE_AGAIN: Duration = Duration::from_secs(60);

/// Components being loaded on this node, and those that failed to load.
pub(super) struct ComponentLoader {
    states: Mutex<HashMap<(Slot, ComponentIdentity), LoadState>>,
    turns: Semaphore,
}

#[derive(Clone)]
enum LoadState {
    /// The receiver becomes true at the end. With the reason of the previous failure, if any.
    Underway(watch::Receiver<bool>, Option<String>),
    Failed {
        why: String,
        again_at: Instant,
    },
}

/// Loading progress of a component.
pub(super) enum LoadProgress {
    /// Loaded, or loadable without compiling by the first call that needs it.
    AtHand,
    Underway(watch::Receiver<bool>),
    /// Failed, with a reason that may be shown to the component's owner.
    Failed(String),
}

impl Default for ComponentLoader {
    fn default() -> Self {
        Self {
            states: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl ComponentLoader {
    fn states(&self) -> MutexGuard<'_, HashMap<(Slot, ComponentIdentity), LoadState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why the last completed attempt to load a component failed.
    pub fn failure(&self, slot: Slot, identity: &ComponentIdentity) -> Option<String> {
        match self.states().get(&(slot, identity.clone()))? {
            LoadState::Failed { why, .. } => Some(why.clone()),
            LoadState::Underway(_, before) => before.clone(),
        }
    }

    /// Returns whether loads are in progress or failed, so that polling again may help.
    pub fn is_unsettled(&self) -> bool {
        !self.states().is_empty()
    }
}

/// Returns a component's progress. Starts loading if it is not loaded and has to be compiled,
/// or if it failed before.
pub(super) fn progress(
    core: &Core,
    management: &Arc<ComponentManager>,
    slot: Slot,
    identity: &ComponentIdentity,
) -> LoadProgress {
    if core.components.has(slot, identity) {
        return LoadProgress::AtHand;
    }

    let known = management
        .followed
        .loading
        .failure(slot, identity)
        .is_some();
    // One that failed is loaded again, although its native code is there: that may be the reason.
    if known || !is_at_hand(core, slot, identity) {
        begin(core, management, slot, identity)
    } else {
        LoadProgress::AtHand
    }
}

/// Returns whether this node can load a component without compiling it.
pub(super) fn is_at_hand(core: &Core, slot: Slot, identity: &ComponentIdentity) -> bool {
    built_in().any(|one| one.identity.sha256 == identity.sha256)
        || core.components.keeps_native(slot, &identity.sha256)
}

/// Loads a component for a call that needs it, and waits for at most [`PATIENCE`].
pub(super) async fn on_demand(
    core: &Core,
    management: &Arc<ComponentManager>,
    slot: Slot,
    identity: &ComponentIdentity,
) -> Result<(), ComponentError> {
    let mut ended = match begin(core, management, slot, identity) {
        LoadProgress::AtHand => return Ok(()),
        LoadProgress::Failed(why) => return Err(ComponentError::absent(identity, why)),
        LoadProgress::Underway(ended) => ended,
    };
    // Loading continues in its task, so that a repeat of the call finds the component.
    let waited = tokio::time::timeout(PATIENCE, ended.wait_for(|ended| *ended)).await;
    if waited.is_err() {
        return Err(ComponentError::absent(identity, "it is still being loaded"));
    }

    match management.followed.loading.failure(slot, identity) {
        Some(why) => Err(ComponentError::absent(identity, why)),
        None => Ok(()),
    }
}

/// Waits until a component is loaded or has failed to load, without a time limit.
pub(super) async fn settle(
    core: &Core,
    management: &Arc<ComponentManager>,
    slot: Slot,
    identity: &ComponentIdentity,
) {
    if let LoadProgress::Underway(mut ended) = begin(core, management, slot, identity) {
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Starts to load a component, unless that is in progress or failed recently.
fn begin(
    core: &Core,
    management: &Arc<ComponentManager>,
    slot: Slot,
    identity: &ComponentIdentity,
) -> LoadProgress {
    let place = (slot, identity.clone());
    // Held until the state is set, so that two calls do not start two tasks.
    let mut states = management.followed.loading.states();
    let before = match states.get(&place) {
        Some(LoadState::Underway(ended, _)) => return LoadProgress::Underway(ended.clone()),
        Some(LoadState::Failed { why, again_at }) if *again_at > Instant::now() => {
            return LoadProgress::Failed(why.clone());
        }
        _ if core.components.has(slot, identity) => return LoadProgress::AtHand,
        Some(LoadState::Failed { why, .. }) => Some(why.clone()),
        None => None,
    };

    let (end, ended) = watch::channel(false);
    states.insert(place.clone(), LoadState::Underway(ended.clone(), before));
    drop(states);

    // A task of its own: loading continues when the caller stops waiting.
    let (core, management) = (core.clone(), management.clone());
    tokio::spawn(async move {
        let loaded = load(&core, &management, slot, &place.1).await;
        let mut states = management.followed.loading.states();
        match loaded {
            Ok(()) => states.remove(&place),
            Err(error) => {
                tracing::error!(component = %place.1, %slot, %error, "component could not be loaded");
                states.insert(place, failed(&error))
            }
        };

        drop(states);
        let _ = end.send(true);
    });

    LoadProgress::Underway(ended)
}

/// Builds the failure state. Its reason reveals no storage paths.
fn failed(error: &ServiceError) -> LoadState {
    let (why, wait) = match error {
        // The message of a refusal is for the author of the component. Other errors can name paths, and stay
        // in the log.
        ServiceError::Component(error) => (error.kind.to_string(), COMPILE_AGAIN),
        ServiceError::NotAdmitted(reasons) => {
            let reasons: Vec<&str> = reasons.iter().map(|one| one.message.as_str()).collect();
            (reasons.join("; "), COMPILE_AGAIN)
        }
        ServiceError::Files(_) => ("its bytes cannot be read".to_owned(), AGAIN),
        _ => ("it cannot be loaded at the moment".to_owned(), AGAIN),
    };

    LoadState::Failed {
        why,
        again_at: Instant::now() + wait,
    }
}

/// Loads a component, from native code on disk if available.
pub(super) async fn load(
    core: &Core,
    management: &Arc<ComponentManager>,
    slot: Slot,
    identity: &ComponentIdentity,
) -> Result<(), ServiceError> {
    let turn = management.followed.loading.turns.acquire().await;
    let (loading, wanted) = (core.clone(), identity.clone());
    let kept = tokio::task::spawn_blocking(move || loading.components.add_kept(slot, &wanted));

    // Missing or unusable native code is compiled again below.
    if let Ok(Some(Ok(()))) = kept.await {
        return Ok(());
    }

    // Compiling takes long: give up the turn, so that other components can be loaded.
    drop(turn);
    let mut connection = core.store.read().await?;
    let component = components::by_sha256(&mut connection, &identity.sha256).await?;
    drop(connection);
    let component = component.ok_or(ServiceError::NotFound("Component"))?;
    let mut artifact = artifact(core, management, &component).await?;
    artifact.identity = identity.clone();

    let _turn = management.followed.loading.turns.acquire().await;
    // Linking is processor time, so it is off the async threads and limited like reading.
    let adding = core.clone();
    tokio::task::spawn_blocking(move || adding.components.add(&artifact))
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))??;

    Ok(())
}
