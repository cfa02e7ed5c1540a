//! Keeps this node's components up to date: the built-in ones, and those activated on this or
//! another node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::loading::{self, ComponentLoader, LoadProgress};
use super::{ComponentManager, object_name};
use crate::components::live_shadow;
use crate::{Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_components::{ActivationTable, ComponentArtifact, built_in, embedded, room_component};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::{
    Component, ComponentActivation, ComponentIdentity, ConformanceResult, Slot,
};
use holdfast_domain::id::{ActivationId, ComponentId, OrgId};
use holdfast_store::components;

/// Interval at which a node polls for changes.
const LOOK: Duration = Duration::from_millis(500);
/// Number of recent uploads that are compiled before they are activated.
const AHEAD: i64 = 16;
/// Interval between polls while a component is not loaded.
const AGAIN: Duration = Duration::from_secs(1);
/// Serializes ahead-of-time compilation. A waiting upload holds only its row in memory.
static AHEAD_TURN: Semaphore = Semaphore::const_new(1);

/// Returns a slot's built-in component as if it had been uploaded.
pub(super) fn default_component(
    slot: Slot,
    instance: &str,
    at: Timestamp,
) -> Result<Component, ServiceError> {
    let room = room_component().filter(|room| room.slot == slot && instance == EMBEDDED);
    room.or_else(|| embedded().find(|artifact| artifact.slot == slot))
        .map(|artifact| of_default(&artifact, at))
        .ok_or_else(|| ServiceError::Internal(format!("{slot} has no default component")))
}

/// Returns the built-in component with this id.
pub(super) fn built_in_component(id: &ComponentId, at: Timestamp) -> Option<Component> {
    let mut all = built_in().map(|artifact| of_default(&artifact, at));
    all.find(|component| component.id == *id)
}

fn of_default(artifact: &ComponentArtifact, at: Timestamp) -> Component {
    let mut digest = [0; 32];
    // A digest of our own is always hex of this length.
    let _ = hex::decode_to_slice(&artifact.identity.sha256, &mut digest);
    Component {
        id: ComponentId::of_default(&digest),
        org: None,
        slot: artifact.slot,
        identity: artifact.identity.clone(),
        size: artifact.size() as i64,
        imports: Vec::new(),
        conformance: ConformanceResult {
            vectors_version: "built in".into(),
            vectors: 0,
            own_vectors: 0,
            memory_bytes: 0,
            fuel: None,
            slowest_us: 0,
            not_reached: None,
        },
        signed_by: None,
        uploaded_by: Component::OF_RELEASE.into(),
        created_at: at,
    }
}

/// Returns the rules that are active for an organization.
pub(super) fn active_rules(
    core: &Core,
    org: &OrgId,
    slot: Slot,
    now: Timestamp,
) -> Result<ComponentIdentity, ServiceError> {
    let active = core.components.active();
    match active.at(slot, Some(org), "", now) {
        Some((live, _)) => Ok(live.identity.clone()),
        None => Ok(default_component(slot, "", now)?.identity),
    }
}

/// Stores the built-in components, so that their decisions can be replayed when a later
/// version of the binary runs.
pub async fn keep_defaults(core: &Core) -> Result<(), ServiceError> {
    for artifact in built_in() {
        let component = of_default(&artifact, core.clock.now());
        // Read first: apart from the first start of a release, everything is there.
        let mut connection = core.store.read().await?;
        let there = components::get(&mut connection, None, &component.id).await?;
        drop(connection);

        if there.is_some() {
            continue;
        }

        // The bytes before the row, so that no row points to missing bytes.
        let bytes = artifact.read();
        let bytes = bytes.map_err(|error| ServiceError::Internal(error.to_string()))?;
        core.files
            .keep(&object_name(&component.identity.sha256), bytes)
            .await?;
        let mut tx = core.store.begin().await?;
        components::insert(&mut tx, &component).await?;

        tx.commit().await?;
    }

    Ok(())
}

/// Loads a component on this node before it is activated.
pub(super) async fn prepare(
    core: &Core,
    management: &Arc<ComponentManager>,
    component: &Component,
) -> Result<(), ServiceError> {
    if core.components.has(component.slot, &component.identity) {
        Ok(())
    } else {
        loading::load(core, management, component.slot, &component.identity).await
    }
}

/// Returns a component's bytes by digest. None if it is unknown or larger than `limit`.
pub async fn bytes_of(
    core: &Core,
    digest: &str,
    limit: i64,
) -> Result<Option<Bytes>, ServiceError> {
    let mut connection = core.store.read().await?;
    let component = components::by_sha256(&mut connection, digest).await?;
    drop(connection);
    match component.filter(|component| component.size <= limit) {
        Some(component) => Ok(Some(kept(core, &component).await?)),
        None => Ok(None),
    }
}

/// Returns a component's stored bytes.
pub async fn kept(core: &Core, component: &Component) -> Result<Bytes, ServiceError> {
    let name = object_name(&component.identity.sha256);
    let kept = core
        .files
        .kept(&name, &component.identity.sha256, component.size);
    Ok(kept.await?)
}

/// Returns a component's bytes and ensures that this node has native code for them.
pub async fn artifact(
    core: &Core,
    management: &Arc<ComponentManager>,
    component: &Component,
) -> Result<ComponentArtifact, ServiceError> {
    let ComponentIdentity {
        name,
        version,
        sha256,
    } = &component.identity;
    // Native code of the release is part of the program and needs no compiler.
    let artifact = match built_in().find(|one| one.identity.sha256 == *sha256) {
        Some(built_in) if built_in.is_compiled() => return Ok(built_in),
        Some(built_in) => built_in,
        None => {
            let bytes = kept(core, component).await?;
            ComponentArtifact::uploaded(component.slot, name, version, bytes)
        }
    };

    // Looking for native code reads the disk.
    let looking = core.clone();
    let (artifact, compiled) = tokio::task::spawn_blocking(move || {
        let compiled = looking.components.is_compiled(&artifact);
        (artifact, compiled)
    })
    .await
    .map_err(|error| ServiceError::Internal(error.to_string()))?;
    // New on this node, evicted from the cache, or of another version of the engine.
    if !compiled {
        let bytes = artifact.bytes();
        let _turn = management.compiler.turn(component.org.as_ref()).await;
        let (_, native) = management.compiler.compile(bytes).await?;
        core.components
            .keep_native(artifact.slot, &artifact.identity, native)
            .await?;
    }

    Ok(artifact)
}

/// The activations this node follows, and the components it could not load.
#[derive(Default)]
pub struct ActivationFollower {
    look: tokio::sync::Mutex<ActivationPoll>,
    pub(super) loading: ComponentLoader,
    /// Result of the last poll, readable without waiting for one.
    broken: ArcSwap<Vec<BrokenActivation>>,
}

/// State of the last poll.
#[derive(Default)]
struct ActivationPoll {
    revision: Option<i64>,
    places: Vec<ActivationSequence>,
    at: Option<Instant>,
}

/// An activation of a component that this node cannot load.
#[derive(Clone)]
pub struct BrokenActivation {
    /// None for an activation by the operator.
    pub org: Option<OrgId>,
    pub activation: ActivationId,
    /// Name and version of the component.
    pub component: String,
    pub why: String,
}

impl ActivationFollower {
    /// Returns the activations this node cannot load, the operator's first.
    pub fn broken(&self) -> Arc<Vec<BrokenActivation>> {
        self.broken.load_full()
    }

    /// Compiles a component uploaded on another node, so that this node is ready when it is
    /// activated.
    fn compile_ahead(core: &Core, management: &Arc<ComponentManager>, component: Component) {
        // A look at the cache of this node: loading may still show that the file is invalid.
        if loading::is_at_hand(core, component.slot, &component.identity) {
            return;
        }

        let (core, management) = (core.clone(), management.clone());
        tokio::spawn(async move {
            let _turn = AHEAD_TURN.acquire().await;
            if let Err(error) = artifact(&core, &management, &component).await {
                let component = &component.identity;
                tracing::warn!(%component, %error, "uploaded component could not be compiled ahead");
            }
        });
    }
}

/// The activations of one slot, owner and instance, ordered by effective time.
type ActivationSequence = Vec<(ComponentActivation, ComponentIdentity)>;

fn places(live: Vec<(ComponentActivation, ComponentIdentity)>) -> Vec<ActivationSequence> {
    let mut places: BTreeMap<(Slot, Option<OrgId>, String), ActivationSequence> = BTreeMap::new();
    for (activation, identity) in live {
        let place = (
            activation.slot,
            activation.org.clone(),
            activation.instance.clone(),
        );
        places
            .entry(place)
            .or_default()
            .push((activation, identity));
    }

    // Ordered as `ActivationTable` orders them, because the last effective one counts.
    for place in places.values_mut() {
        place.sort_by(|(one, _), (other, _)| {
            (one.effective_at, &one.id).cmp(&(other.effective_at, &other.id))
        });
    }

    places.into_values().collect()
}

/// Applies activation changes since the last poll. It waits for loading only at start, and
/// only for the operator's components. Others are loaded by the first call, or by a task.
pub async fn refresh(core: &Core, management: &Arc<ComponentManager>) -> Result<(), ServiceError> {
    // One poll at a time: a slower one would otherwise put an older table over a newer one.
    let mut look = management.followed.look.lock().await;
    // Read before the activations. A change in between has a higher revision, and the next poll reads it.
    let mut connection = core.store.read_urgently().await?;
    let revision = components::revision(&mut connection).await?;
    let known = look.revision == Some(revision);
    // A component that was being compiled or failed may be there now, without a change of the revision.
    let again =
        management.followed.loading.is_unsettled() || !management.followed.broken.load().is_empty();
    if known && !(again && look.at.is_none_or(|at| at.elapsed() >= AGAIN)) {
        return Ok(());
    }

    let mut uploaded = Vec::new();
    if !known {
        look.places = places(components::live(&mut connection).await?);
        uploaded = components::newest(&mut connection, AHEAD).await?;
    }

    drop(connection);

    // Recomputed even without changes: a component may have finished loading.
    look.at = Some(Instant::now());
    let mut activations = ActivationTable::default();

    let mut broken = Vec::new();
    for place in &look.places {
        take_over(
            core,
            management,
            look.revision.is_none(),
            &mut activations,
            &mut broken,
            place,
        )
        .await;
    }

    core.components.switch(activations);
    core.metrics.components_broken.set(broken.len() as i64);
    management.followed.broken.store(Arc::new(broken));
    if !known {
        live_shadow::follow(core, management).await?;
    }

    // Last, so that an error above makes the next poll read everything again.
    look.revision = Some(revision);
    for component in uploaded {
        ActivationFollower::compile_ahead(core, management, component);
    }

    Ok(())
}

/// Registers the current and the scheduled activations of one slot, owner and instance. If
/// this node cannot load the current component, the last earlier one that it has stays
/// active. Without one, calls fail, because no other rules may answer for the chosen ones.
async fn take_over(
    core: &Core,
    management: &Arc<ComponentManager>,
    starting: bool,
    to: &mut ActivationTable,
    broken: &mut Vec<BrokenActivation>,
    place: &ActivationSequence,
) {
    let now = core.clock.now();
    let begun = place.partition_point(|(activation, _)| activation.effective_at <= now);
    // The one before matters, too: it is effective now. Older ones are only stand-ins.
    let first = begun.saturating_sub(1);
    for (index, (activation, identity)) in place.iter().enumerate().skip(first) {
        let slot = activation.slot;
        // At start, wait for the operator's own components: the node must not serve without them.
        if starting && activation.org.is_none() && !core.components.has(slot, identity) {
            loading::settle(core, management, slot, identity).await;
        }

        if let LoadProgress::AtHand = loading::progress(core, management, slot, identity) {
            to.take(activation, identity);
            continue;
        }

        // Reported although an earlier component stands in: the operator has to know.
        if let Some(why) = management.followed.loading.failure(slot, identity) {
            broken.push(BrokenActivation {
                org: activation.org.clone(),
                activation: activation.id.clone(),
                component: identity.to_string(),
                why,
            });
        }

        let at_hand = |identity: &ComponentIdentity| {
            core.components.has(slot, identity) || loading::is_at_hand(core, slot, identity)
        };
        let earlier = place[..index].iter().rev();
        let mut earlier = earlier.filter(|(_, identity)| at_hand(identity));
        // Only the current one needs a stand-in. A scheduled one has time to be loaded.
        match earlier.next() {
            Some((earlier, identity)) if index == first => to.take(earlier, identity),
            Some(_) => {}
            None => to.take(activation, identity),
        }
    }
}

/// Polls for activations by other nodes and operators, until `stop` is cancelled.
pub async fn follow(core: Core, management: Arc<ComponentManager>, stop: CancellationToken) {
    let period = core.config.sweep_interval.unwrap_or(LOOK).min(LOOK);
    while !stop.is_cancelled() {
        // The node keeps the activations that it has, and asks again.
        if let Err(error) = refresh(&core, &management).await {
            tracing::error!(%error, "activations could not be read");
        }

        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// Returns the component that made a decision: its bytes, under the name it had then.
pub async fn that_decided(
    core: &Core,
    management: &Arc<ComponentManager>,
    identity: &ComponentIdentity,
) -> Result<ComponentArtifact, ServiceError> {
    let mut found = by_digest(core, management, &identity.sha256).await?;
    found.identity = identity.clone();
    Ok(found)
}

/// Returns a component by the digest of its bytes.
pub async fn by_digest(
    core: &Core,
    management: &Arc<ComponentManager>,
    digest: &str,
) -> Result<ComponentArtifact, ServiceError> {
    // A built-in component needs neither the database nor the compiler.
    if let Some(default) = embedded().find(|artifact| artifact.identity.sha256 == digest) {
        return Ok(default);
    }
    let mut connection = core.store.read().await?;
    let component = components::by_sha256(&mut connection, digest).await?;
    drop(connection);
    let component = component.ok_or(ServiceError::NotFound("Component"))?;
    artifact(core, management, &component).await
}
