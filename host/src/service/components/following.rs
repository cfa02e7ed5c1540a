//! What this node has loaded: the components that came with it, and those that were
//! activated here or elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::loading::{self, Loading, Progress};
use super::{Management, object_name};
use crate::components::{Activations, Artifact, built_in, embedded, room_component};
use crate::config::EMBEDDED;
use crate::domain::clock::Timestamp;
use crate::domain::component::{Activation, Component, ComponentIdentity, Conformance, Slot};
use crate::domain::id::{ActivationId, ComponentId, OrgId};
use crate::service::components::live_shadow;
use crate::service::{Core, ServiceError};
use crate::store::components;

/// How often a node looks whether something was changed.
const LOOK: Duration = Duration::from_millis(500);
/// So many of the last uploads are compiled before they are activated.
const AHEAD: i64 = 16;
/// Time between two looks while something is not loaded.
const AGAIN: Duration = Duration::from_secs(1);
/// Uploads that wait to be compiled ahead hold nothing but their rows.
static AHEAD_TURN: Semaphore = Semaphore::const_new(1);

/// The component that came with the binary, as one that was uploaded.
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

fn of_default(artifact: &Artifact, at: Timestamp) -> Component {
    let mut digest = [0; 32];
    let _ = hex::decode_to_slice(&artifact.identity.sha256, &mut digest);
    Component {
        id: ComponentId::of_default(&digest),
        org: None,
        slot: artifact.slot,
        identity: artifact.identity.clone(),
        size: artifact.bytes.len() as i64,
        imports: Vec::new(),
        conformance: Conformance {
            vectors_version: "built in".into(),
            vectors: 0,
            memory_bytes: 0,
            fuel: None,
            slowest_us: 0,
            not_reached: None,
        },
        signed_by: None,
        uploaded_by: "system".into(),
        created_at: at,
    }
}

/// Keeps the components that came with this binary, so that what they decide can be
/// asked again when another binary serves.
pub async fn keep_defaults(core: &Core) -> Result<(), ServiceError> {
    for artifact in built_in() {
        let component = of_default(&artifact, core.clock.now());
        let mut connection = core.store.read().await?;
        let there = components::get(&mut connection, None, &component.id).await?;
        drop(connection);
        if there.is_some() {
            continue;
        }
        let bytes = Bytes::from(artifact.bytes.into_owned());
        core.files
            .keep(&object_name(&component.identity.sha256), bytes)
            .await?;
        let mut tx = core.store.begin().await?;
        components::insert(&mut tx, &component).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Loads a component on this node, so that what cannot be loaded is not activated.
pub(super) async fn prepare(
    core: &Core,
    management: &Arc<Management>,
    component: &Component,
) -> Result<(), ServiceError> {
    match core.components.has(component.slot, &component.identity) {
        true => Ok(()),
        false => loading::load(core, management, component.slot, &component.identity).await,
    }
}

/// The bytes of a component by their digest; none where they are larger than `limit`,
/// or not kept here.
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

/// The bytes that are kept of a component.
pub async fn kept(core: &Core, component: &Component) -> Result<Bytes, ServiceError> {
    let name = object_name(&component.identity.sha256);
    let kept = core
        .files
        .kept(&name, &component.identity.sha256, component.size);
    Ok(kept.await?)
}

/// A component's bytes, with native code for them on this node.
pub async fn artifact(
    core: &Core,
    management: &Arc<Management>,
    component: &Component,
) -> Result<Artifact, ServiceError> {
    let ComponentIdentity {
        name,
        version,
        sha256,
    } = &component.identity;
    let artifact = match built_in().find(|one| one.identity.sha256 == *sha256) {
        Some(built_in) if built_in.is_compiled() => return Ok(built_in),
        Some(built_in) => built_in,
        None => {
            let bytes = kept(core, component).await?;
            Artifact::uploaded(component.slot, name, version, bytes)
        }
    };
    let looking = core.clone();
    let (artifact, compiled) = tokio::task::spawn_blocking(move || {
        let compiled = looking.components.is_compiled(&artifact);
        (artifact, compiled)
    })
    .await
    .map_err(|error| ServiceError::Internal(error.to_string()))?;
    if !compiled {
        let bytes = Bytes::from(artifact.bytes.clone().into_owned());
        let _turn = management.compiler.turn(component.org.as_ref()).await;
        let (_, native) = management.compiler.compile(bytes).await?;
        core.components
            .keep_native(artifact.slot, &artifact.identity, native)
            .await?;
    }
    Ok(artifact)
}

/// What this node follows, and what it could not load.
#[derive(Default)]
pub struct Followed {
    look: tokio::sync::Mutex<Look>,
    pub(super) loading: Loading,
    /// As of the last look. Read without waiting for one.
    broken: ArcSwap<Vec<Broken>>,
}

/// What the last look found.
#[derive(Default)]
struct Look {
    revision: Option<i64>,
    places: Vec<Place>,
    at: Option<Instant>,
}

/// An activation whose component this node cannot load.
#[derive(Clone)]
pub struct Broken {
    /// None: the operator's.
    pub org: Option<OrgId>,
    pub activation: ActivationId,
    /// Name and version.
    pub component: String,
    pub why: String,
}

impl Followed {
    /// What this node cannot load, the operator's first.
    pub fn broken(&self) -> Arc<Vec<Broken>> {
        self.broken.load_full()
    }

    /// Compiles what was uploaded at another node, so that this one can follow at once
    /// when it is activated.
    fn compile_ahead(core: &Core, management: &Arc<Management>, component: Component) {
        if loading::is_at_hand(core, component.slot, &component.identity) {
            return;
        }
        let (core, management) = (core.clone(), management.clone());
        tokio::spawn(async move {
            let _turn = AHEAD_TURN.acquire().await;
            if let Err(error) = artifact(&core, &management, &component).await {
                let component = &component.identity;
                tracing::warn!(%component, %error, "upload could not be compiled ahead");
            }
        });
    }
}

/// What may count at one place: the activations for it, oldest first.
type Place = Vec<(Activation, ComponentIdentity)>;

fn places(live: Vec<(Activation, ComponentIdentity)>) -> Vec<Place> {
    let mut places: BTreeMap<(Slot, Option<OrgId>, String), Place> = BTreeMap::new();
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
    for place in places.values_mut() {
        place.sort_by(|(one, _), (other, _)| {
            (one.effective_at, &one.id).cmp(&(other.effective_at, &other.id))
        });
    }
    places.into_values().collect()
}

/// Takes over what was activated since the last look. Loads nothing of an organization:
/// its calls do, or a task of its own.
pub async fn refresh(core: &Core, management: &Arc<Management>) -> Result<(), ServiceError> {
    let mut look = management.followed.look.lock().await;
    let mut connection = core.store.read_urgently().await?;
    let revision = components::revision(&mut connection).await?;
    let known = look.revision == Some(revision);
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
    look.at = Some(Instant::now());
    let mut activations = Activations::default();
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
    look.revision = Some(revision);
    for component in uploaded {
        Followed::compile_ahead(core, management, component);
    }
    Ok(())
}

/// What counts at a place now, and what will. In place of what this node cannot load
/// it goes on with the last before it that it has; where there is none, calls fail, as
/// other rules than the chosen ones must not answer.
async fn take_over(
    core: &Core,
    management: &Arc<Management>,
    starting: bool,
    to: &mut Activations,
    broken: &mut Vec<Broken>,
    place: &Place,
) {
    let now = core.clock.now();
    let begun = place.partition_point(|(activation, _)| activation.effective_at <= now);
    let first = begun.saturating_sub(1);
    for (index, (activation, identity)) in place.iter().enumerate().skip(first) {
        let slot = activation.slot;
        // A node that starts serves with the operator's own set.
        if starting && activation.org.is_none() && !core.components.has(slot, identity) {
            loading::settle(core, management, slot, identity).await;
        }
        if let Progress::AtHand = loading::progress(core, management, slot, identity) {
            to.take(activation, identity);
            continue;
        }
        if let Some(why) = management.followed.loading.failure(slot, identity) {
            broken.push(Broken {
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
        match earlier.next() {
            Some((earlier, identity)) if index == first => to.take(earlier, identity),
            Some(_) => {}
            None => to.take(activation, identity),
        }
    }
}

/// Follows what other nodes and operators activate, until told to stop.
pub async fn follow(core: Core, management: Arc<Management>, stop: CancellationToken) {
    let period = core.config.sweep_interval.unwrap_or(LOOK).min(LOOK);
    while !stop.is_cancelled() {
        if let Err(error) = refresh(&core, &management).await {
            tracing::error!(%error, "activations could not be read");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// A component that a decision names: these bytes, under the name that they had.
pub async fn that_decided(
    core: &Core,
    management: &Arc<Management>,
    identity: &ComponentIdentity,
) -> Result<Artifact, ServiceError> {
    let mut found = by_digest(core, management, &identity.sha256).await?;
    found.identity = identity.clone();
    Ok(found)
}

/// A component by the digest of its bytes.
pub async fn by_digest(
    core: &Core,
    management: &Arc<Management>,
    digest: &str,
) -> Result<Artifact, ServiceError> {
    if let Some(default) = embedded().find(|artifact| artifact.identity.sha256 == digest) {
        return Ok(default);
    }
    let mut connection = core.store.read().await?;
    let component = components::by_sha256(&mut connection, digest).await?;
    drop(connection);
    let component = component.ok_or(ServiceError::NotFound("Component"))?;
    artifact(core, management, &component).await
}
