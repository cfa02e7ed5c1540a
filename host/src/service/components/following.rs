//! What this node has loaded: the components that came with it, and those that were
//! activated here or elsewhere.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::object_name;
use crate::app::App;
use crate::components::{
    Activations, Artifact, ComponentError, Failure, Identity, built_in, embedded,
};
use crate::domain::clock::Timestamp;
use crate::domain::component::{Activation, Component, Conformance, Slot};
use crate::domain::id::{ComponentId, OrgId};
use crate::service::{ServiceError, live_shadow};
use crate::store::components;

/// How often a node looks whether something was changed.
const LOOK: Duration = Duration::from_millis(500);
/// So many of the last uploads are compiled before they are activated.
const AHEAD: i64 = 16;
/// How long it waits before it tries again to load what it could not.
const AGAIN: Duration = Duration::from_secs(5);
/// The same where it could not be compiled, which costs a processor for minutes.
const COMPILE_AGAIN: Duration = Duration::from_secs(60);

/// The component that came with the binary, as one that was uploaded.
pub(super) fn default_component(slot: Slot, at: Timestamp) -> Result<Component, ServiceError> {
    embedded()
        .find(|artifact| artifact.slot == slot)
        .map(|artifact| of_default(&artifact, at))
        .ok_or_else(|| ServiceError::Internal(format!("{slot} has no default component")))
}

fn of_default(artifact: &Artifact, at: Timestamp) -> Component {
    let identity = &artifact.identity;
    let mut digest = [0; 32];
    let _ = hex::decode_to_slice(&identity.sha256, &mut digest);
    Component {
        id: ComponentId::of_default(&digest),
        org: None,
        slot: artifact.slot,
        name: identity.name.clone(),
        version: identity.version.clone(),
        sha256: identity.sha256.clone(),
        size: artifact.bytes.len() as i64,
        imports: Vec::new(),
        conformance: Conformance {
            vectors_version: "built in".into(),
            vectors: 0,
            memory_bytes: 0,
            fuel: None,
            slowest_us: 0,
        },
        signed_by: None,
        uploaded_by: "system".into(),
        created_at: at,
    }
}

/// Keeps the components that came with this binary, so that what they decide can be
/// asked again when another binary serves.
pub async fn keep_defaults(app: &App) -> Result<(), ServiceError> {
    for artifact in built_in() {
        let component = of_default(&artifact, app.clock.now());
        let mut connection = app.store.read().await?;
        let there = components::get(&mut connection, None, &component.id).await?;
        drop(connection);
        if there.is_some() {
            continue;
        }
        let bytes = Bytes::from(artifact.bytes.into_owned());
        app.files
            .keep(&object_name(&component.sha256), bytes)
            .await?;
        let mut tx = app.store.begin().await?;
        components::insert(&mut tx, &component).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Loads a component on this node, so that what cannot be loaded is not activated.
pub(super) async fn prepare(app: &App, component: &Component) -> Result<(), ServiceError> {
    if app
        .components
        .has(component.slot, &Identity::from(component))
    {
        return Ok(());
    }
    let artifact = artifact(app, component).await?;
    let adding = app.clone();
    tokio::task::spawn_blocking(move || adding.components.add(&artifact))
        .await
        .map_err(|error| ServiceError::Internal(error.to_string()))??;
    Ok(())
}

/// The bytes of a component by their digest; none where they are larger than `limit`,
/// or not kept here.
pub async fn bytes_of(app: &App, digest: &str, limit: i64) -> Result<Option<Bytes>, ServiceError> {
    let mut connection = app.store.read().await?;
    let component = components::by_sha256(&mut connection, digest).await?;
    drop(connection);
    match component.filter(|component| component.size <= limit) {
        Some(component) => Ok(Some(kept(app, &component).await?)),
        None => Ok(None),
    }
}

/// The bytes that are kept of a component.
pub async fn kept(app: &App, component: &Component) -> Result<Bytes, ServiceError> {
    let name = object_name(&component.sha256);
    let kept = app.files.kept(&name, &component.sha256, component.size);
    Ok(kept.await?)
}

/// A component's bytes, with native code for them on this node.
pub async fn artifact(app: &App, component: &Component) -> Result<Artifact, ServiceError> {
    let (slot, name, version) = (component.slot, &component.name, &component.version);
    let artifact = match built_in().find(|one| one.identity.sha256 == component.sha256) {
        Some(built_in) if built_in.is_compiled() => return Ok(built_in),
        Some(built_in) => built_in,
        None => {
            let bytes = kept(app, component).await?;
            Artifact::uploaded(slot, name, version, bytes)
        }
    };
    let looking = app.clone();
    let (artifact, compiled) = tokio::task::spawn_blocking(move || {
        let compiled = looking.components.is_compiled(&artifact);
        (artifact, compiled)
    })
    .await
    .map_err(|error| ServiceError::Internal(error.to_string()))?;
    if !compiled {
        let bytes = Bytes::from(artifact.bytes.clone().into_owned());
        let (_, native) = app.compiler.compile(bytes).await?;
        app.components.keep_native(&artifact, &native)?;
    }
    Ok(artifact)
}

/// Which components this node has loaded, as of which revision.
#[derive(Default)]
pub struct Followed {
    revision: Option<i64>,
    /// What could not be loaded, and why.
    broken: BTreeMap<String, String>,
    tried_at: Option<Instant>,
    /// Something that counts is still being compiled.
    waiting: bool,
    compiling: Arc<Mutex<HashMap<Identity, Compiling>>>,
}

/// A component that is compiled beside all else, or was in vain.
enum Compiling {
    Underway,
    Failed { at: Instant, why: String },
}

/// Whether a component can be called on this node.
enum Fitness {
    Ready,
    /// Soon.
    Waiting,
    Broken(String),
}

impl Followed {
    /// What this node cannot load.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        self.broken
            .iter()
            .map(|(component, why)| (component.as_str(), why.as_str()))
    }

    /// Loads what can be loaded at once. What must be compiled is compiled beside all
    /// else, except before this node serves anybody.
    async fn fitness(&self, app: &App, activation: &Activation, identity: &Identity) -> Fitness {
        if app.components.has(activation.slot, identity) {
            return Fitness::Ready;
        }
        match self.compiling().get(identity) {
            Some(Compiling::Underway) => return Fitness::Waiting,
            Some(Compiling::Failed { at, why }) if at.elapsed() < COMPILE_AGAIN => {
                return Fitness::Broken(why.clone());
            }
            _ => {}
        }
        if self.revision.is_none() || is_at_hand(app, activation.slot, identity) {
            return match load(app, activation, identity).await {
                Ok(()) => Fitness::Ready,
                Err(error) => Fitness::Broken(error.to_string()),
            };
        }
        self.compiling()
            .insert(identity.clone(), Compiling::Underway);
        let (app, compiling) = (app.clone(), self.compiling.clone());
        let (activation, identity) = (activation.clone(), identity.clone());
        tokio::spawn(async move {
            let ended = load(&app, &activation, &identity).await;
            let mut compiling = compiling.lock().unwrap_or_else(PoisonError::into_inner);
            match ended {
                Ok(()) => compiling.remove(&identity),
                Err(error) => {
                    let (at, why) = (Instant::now(), error.to_string());
                    compiling.insert(identity, Compiling::Failed { at, why })
                }
            };
        });
        Fitness::Waiting
    }

    /// Compiles what was uploaded at another node, so that this one can follow at once
    /// when it is activated.
    fn compile_ahead(&self, app: &App, component: Component) {
        let identity = Identity::from(&component);
        let at_hand = is_at_hand(app, component.slot, &identity);
        let mut compiling = self.compiling();
        if at_hand || compiling.contains_key(&identity) {
            return;
        }
        compiling.insert(identity.clone(), Compiling::Underway);
        let (app, compiling) = (app.clone(), self.compiling.clone());
        tokio::spawn(async move {
            if let Err(error) = artifact(&app, &component).await {
                tracing::warn!(component = %identity, %error, "an upload could not be compiled");
            }
            let mut compiling = compiling.lock().unwrap_or_else(PoisonError::into_inner);
            compiling.remove(&identity);
        });
    }

    fn compiling(&self) -> MutexGuard<'_, HashMap<Identity, Compiling>> {
        self.compiling
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a component needs no compiling on this node.
fn is_at_hand(app: &App, slot: Slot, identity: &Identity) -> bool {
    built_in().any(|one| one.identity.sha256 == identity.sha256)
        || app.components.keeps_native(slot, &identity.sha256)
}

/// What may count at one place: the activations for it, oldest first.
type Place = Vec<(Activation, Identity)>;

fn places(live: Vec<(Activation, Identity)>) -> Vec<Place> {
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

/// Takes over what was activated since the last look.
pub async fn refresh(app: &App) -> Result<(), ServiceError> {
    let mut followed = app.followed.lock().await;
    let mut connection = app.store.read_urgently().await?;
    let revision = components::revision(&mut connection).await?;
    let again =
        !followed.broken.is_empty() && followed.tried_at.is_none_or(|at| at.elapsed() >= AGAIN);
    if followed.revision == Some(revision) && !again && !followed.waiting {
        return Ok(());
    }
    let live = components::live(&mut connection).await?;
    let uploaded = components::newest(&mut connection, AHEAD).await?;
    drop(connection);
    followed.tried_at = Some(Instant::now());
    followed.broken.clear();
    followed.waiting = false;
    let mut activations = Activations::default();
    for place in places(live) {
        take_over(app, &mut followed, &mut activations, place).await;
    }
    app.components.switch(activations);
    live_shadow::follow(app).await?;
    app.metrics
        .components_broken
        .set(followed.broken.len() as i64);
    followed.revision = Some(revision);
    for component in uploaded {
        followed.compile_ahead(app, component);
    }
    Ok(())
}

/// What counts at a place now, and what will. In place of what this node cannot load
/// it goes on with the last before it that it has; where there is none, nobody is
/// answered by other rules than those that were chosen.
async fn take_over(app: &App, followed: &mut Followed, to: &mut Activations, place: Place) {
    let now = app.clock.now();
    let begun = place.partition_point(|(activation, _)| activation.effective_at <= now);
    let first = begun.saturating_sub(1);
    for (index, (activation, identity)) in place.iter().enumerate().skip(first) {
        let why = match followed.fitness(app, activation, identity).await {
            Fitness::Ready => {
                to.take(activation, identity);
                continue;
            }
            Fitness::Waiting => {
                followed.waiting = true;
                None
            }
            Fitness::Broken(why) => {
                tracing::error!(
                    activation = %activation.id, slot = %activation.slot, error = why,
                    "a component cannot be loaded on this node"
                );
                followed.broken.insert(identity.sha256.clone(), why.clone());
                Some(why)
            }
        };
        let earlier = place[..index]
            .iter()
            .rev()
            .find(|(earlier, identity)| app.components.has(earlier.slot, identity));
        match (earlier, why) {
            (Some((earlier, identity)), _) if index == first => to.take(earlier, identity),
            (Some(_), _) | (None, None) => {}
            (None, Some(why)) => {
                let error = ComponentError {
                    component: identity.to_string(),
                    kind: Failure::Link(why),
                    by_document: false,
                };
                app.components.add_broken(activation.slot, identity, &error);
                to.take(activation, identity);
            }
        }
    }
}

async fn load(app: &App, activation: &Activation, identity: &Identity) -> Result<(), ServiceError> {
    let mut connection = app.store.read_urgently().await?;
    let org = activation.org.as_ref();
    let component = components::get(&mut connection, org, &activation.component).await?;
    drop(connection);
    let component = component
        .filter(|component| Identity::from(component) == *identity)
        .ok_or(ServiceError::NotFound("Component"))?;
    prepare(app, &component).await
}

/// Follows what other nodes and operators activate, until told to stop.
pub async fn follow(app: App, stop: CancellationToken) {
    let period = app.config.sweep_interval.unwrap_or(LOOK).min(LOOK);
    while !stop.is_cancelled() {
        if let Err(error) = refresh(&app).await {
            tracing::error!(%error, "activations could not be read");
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(period) => {}
        }
    }
}

/// A component that a decision names: these bytes, under the name that they had.
pub async fn that_decided(app: &App, identity: &Identity) -> Result<Artifact, ServiceError> {
    let mut found = by_digest(app, &identity.sha256).await?;
    found.identity = identity.clone();
    Ok(found)
}

/// A component by the digest of its bytes.
pub async fn by_digest(app: &App, digest: &str) -> Result<Artifact, ServiceError> {
    if let Some(default) = embedded().find(|artifact| artifact.identity.sha256 == digest) {
        return Ok(default);
    }
    let mut connection = app.store.read().await?;
    let component = components::by_sha256(&mut connection, digest).await?;
    drop(connection);
    let component = component.ok_or(ServiceError::NotFound("Component"))?;
    artifact(app, &component).await
}
