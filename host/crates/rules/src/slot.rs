//! Slots: the default component, other loaded components, and calls of either.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use futures::future::BoxFuture;
use wasmtime::component::Component;
use wasmtime::{Engine, Store};

use super::artifact::{ComponentArtifact, NativeCodeCache, embedded};
use super::engine::{EngineSet, LimitedEngine, fueled_store};
use super::error::{CallFailure, ComponentError};
use crate::limits::CallLimits;
use crate::metrics::ComponentMeter;
use holdfast_domain::component::{ComponentIdentity, Slot};

/// World of a slot, linked and ready to be instantiated. Implemented by `bindgen!` types.
pub trait ComponentWorld: Sized + Send + Sync + 'static {
    const SLOT: Slot;

    /// Links a component with exactly the imports that its world grants.
    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self>;

    /// Calls the component with known inputs. Linking does not check the types of
    /// exports; calling them does.
    fn canary(&self, active: &ContractProbe<'_>) -> Result<(), ComponentError>;
}

/// Context of a call of a component: engine, limits and meter.
pub struct ContractProbe<'a> {
    pub engine: &'a Engine,
    pub limits: &'a CallLimits,
    pub identity: &'a ComponentIdentity,
    pub meter: &'a ComponentMeter,
}

/// Loaded component, ready to be called.
pub struct ActiveComponent<P> {
    pub identity: ComponentIdentity,
    pub pre: P,
    pub engine: Engine,
    pub limits: CallLimits,
    pub meter: ComponentMeter,
}

/// Component that the first caller loads while the others wait. Loading is lazy because the code
/// of a document component takes megabytes to read, and seconds to compile if it is not cached.
pub type Deferred<P> = Arc<
    LazyLock<
        Result<ActiveComponent<P>, ComponentError>,
        Box<dyn FnOnce() -> Result<ActiveComponent<P>, ComponentError> + Send>,
    >,
>;

/// Components of one slot on this node.
pub struct LoadedComponent<P> {
    /// Built-in component, and its identity.
    default: Deferred<P>,
    identity: Option<ComponentIdentity>,
    /// Uploaded components. The whole identity is the key because the same bytes can be uploaded
    /// under two names.
    others: RwLock<HashMap<ComponentIdentity, Deferred<P>>>,
    slot: Slot,
    loader: ComponentSource,
}

type LoadOnDemand =
    dyn Fn(Slot, ComponentIdentity) -> BoxFuture<'static, Result<(), ComponentError>> + Send + Sync;

/// Callback that loads a component which a call needs and this node lacks. It is set after the
/// slots are created, because the service that implements it needs them.
#[derive(Clone, Default)]
pub struct ComponentSource(Arc<OnceLock<Box<LoadOnDemand>>>);

impl ComponentSource {
    /// Sets the callback. Later calls have no effect.
    pub fn set(&self, load: Box<LoadOnDemand>) {
        let _ = self.0.set(load);
    }

    async fn load(&self, slot: Slot, identity: &ComponentIdentity) -> Result<(), ComponentError> {
        match self.0.get() {
            Some(load) => load(slot, identity.clone()).await,
            None => Err(absent(identity)),
        }
    }
}

/// Reference to a component, which may not be loaded yet.
pub enum ComponentHandle<P> {
    /// Loaded on this node, or a built-in component that is loaded at its first use.
    Held(Deferred<P>),
    /// Not on this node when the handle was made; the first call that needs it loads it.
    Absent {
        slot: Arc<LoadedComponent<P>>,
        identity: ComponentIdentity,
    },
}

impl<P> Clone for ComponentHandle<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Held(held) => Self::Held(held.clone()),
            Self::Absent { slot, identity } => Self::Absent {
                slot: slot.clone(),
                identity: identity.clone(),
            },
        }
    }
}

impl<P> ComponentHandle<P> {
    /// Returns the identity of the component.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        match self {
            Self::Held(held) => Ok(active(held)?.identity.clone()),
            Self::Absent { identity, .. } => Ok(identity.clone()),
        }
    }

    /// Returns the component if it is on this node.
    pub fn held(&self) -> Result<Deferred<P>, ComponentError> {
        match self {
            Self::Held(held) => Ok(held.clone()),
            Self::Absent { slot, identity } => slot.other(identity).ok_or_else(|| absent(identity)),
        }
    }

    /// Returns the component. Loads it first if this node lacks it.
    pub async fn ready(&self) -> Result<Deferred<P>, ComponentError> {
        if let Self::Absent { slot, identity } = self
            && slot.other(identity).is_none()
        {
            slot.loader.load(slot.slot, identity).await?;
        }
        self.held()
    }
}

/// Returns the loaded component, or the error of loading it.
pub fn active<P>(held: &Deferred<P>) -> Result<&ActiveComponent<P>, ComponentError> {
    (***held).as_ref().map_err(ComponentError::again)
}

fn absent(identity: &ComponentIdentity) -> ComponentError {
    ComponentError::new(identity, CallFailure::Absent("it is not loaded yet".into()))
}

type Load<P> = Box<dyn FnOnce() -> Result<ActiveComponent<P>, ComponentError> + Send>;

impl<P> LoadedComponent<P> {
    fn other(&self, identity: &ComponentIdentity) -> Option<Deferred<P>> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        others.get(identity).cloned()
    }
}

impl<P: ComponentWorld> LoadedComponent<P> {
    /// Creates a slot with its built-in component, which is loaded at its first use.
    pub fn new(engines: &EngineSet, cache: &NativeCodeCache, loader: ComponentSource) -> Self {
        let artifact = embedded().find(|artifact| artifact.slot == P::SLOT);
        let identity = artifact.as_ref().map(|artifact| artifact.identity.clone());
        Self {
            default: deferred(engines, cache, artifact),
            identity,
            others: RwLock::default(),
            slot: P::SLOT,
            loader,
        }
    }

    /// Returns the built-in component, which is loaded at its first use.
    pub fn default(&self) -> Deferred<P> {
        self.default.clone()
    }

    /// Returns the identity of the component for [`LoadedComponent::get`], which may not be loaded.
    pub fn identity(&self, identity: Option<ComponentIdentity>) -> Option<ComponentIdentity> {
        identity.or_else(|| self.identity.clone())
    }

    /// Loads the built-in component now.
    pub fn force(&self) -> Result<(), ComponentError> {
        match LazyLock::force(&self.default) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.again()),
        }
    }

    /// Result of loading the built-in component; `None` until it is finished.
    pub fn state(&self) -> Option<Result<(), ComponentError>> {
        LazyLock::get(&self.default)
            .map(|loaded| loaded.as_ref().map(|_| ()).map_err(ComponentError::again))
    }

    /// Returns a handle for exactly this component; `None` selects the built-in one.
    pub fn get(self: &Arc<Self>, identity: Option<&ComponentIdentity>) -> ComponentHandle<P> {
        let Some(identity) = identity else {
            return ComponentHandle::Held(self.default.clone());
        };
        if let Some(other) = self.other(identity) {
            return ComponentHandle::Held(other);
        }
        if self.identity.as_ref() == Some(identity) {
            return ComponentHandle::Held(self.default.clone());
        }

        // Making a handle never waits. The first call loads the component.
        ComponentHandle::Absent {
            slot: self.clone(),
            identity: identity.clone(),
        }
    }

    pub fn has(&self, identity: &ComponentIdentity) -> bool {
        if self.identity.as_ref() == Some(identity) {
            return true;
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        // A look-up must not start the load, which would block this thread.
        let loaded = others.get(identity).and_then(|there| LazyLock::get(there));
        loaded.is_some_and(Result::is_ok)
    }

    pub fn put(&self, active: ActiveComponent<P>) {
        let identity = active.identity.clone();
        let ready = ready(active);
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.insert(identity, ready);
    }

    /// Unloads the components that are not wanted. Running calls are not affected.
    pub fn keep(&self, wanted: impl Fn(&ComponentIdentity) -> bool) {
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.retain(|identity, _| wanted(identity));
    }
}

fn missing(component: String, why: &str) -> ComponentError {
    ComponentError {
        component,
        kind: CallFailure::Link(why.into()),
        by_document: false,
    }
}

/// Returns a built-in component that is loaded at its first use.
pub fn deferred<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: Option<ComponentArtifact>,
) -> Deferred<P> {
    let (engines, cache) = (engines.clone(), cache.clone());
    let load: Load<P> = Box::new(move || match artifact {
        Some(artifact) => load::<P>(&engines, &cache, &artifact),
        None => Err(missing(
            P::SLOT.to_string(),
            "this binary has no default component for the slot",
        )),
    });

    Arc::new(LazyLock::new(load))
}

/// Wraps a component that is loaded already.
pub fn ready<P: Send + Sync + 'static>(active: ActiveComponent<P>) -> Deferred<P> {
    let load: Load<P> = Box::new(move || Ok(active));
    let ready = Arc::new(LazyLock::new(load));
    LazyLock::force(&ready);
    ready
}

/// Loads a component: gets its native code, links it, and runs its canary.
pub fn load<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ActiveComponent<P>, ComponentError> {
    let meter = engines.metrics.of(&artifact.identity.to_string());
    load_with(engines, cache, artifact, meter)
}

/// Like [`load`], for a candidate that is being admitted. Its failures concern only its author:
/// they are neither logged nor counted.
pub fn load_candidate<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
) -> Result<ActiveComponent<P>, ComponentError> {
    load_with(engines, cache, artifact, ComponentMeter::of_candidate())
}

fn load_with<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    artifact: &ComponentArtifact,
    meter: ComponentMeter,
) -> Result<ActiveComponent<P>, ComponentError> {
    let engine = engines.of(P::SLOT);
    let component = cache
        .load(engine, artifact)
        .map_err(|error| ComponentError::unfit(&artifact.identity, &error))?;
    prepare(engines, &component, &artifact.identity, meter)
}

/// Like [`load`], from cached native code and without the component's bytes. `None` if the cache
/// has no code for it.
pub fn load_kept<P: ComponentWorld>(
    engines: &EngineSet,
    cache: &NativeCodeCache,
    identity: &ComponentIdentity,
) -> Option<Result<ActiveComponent<P>, ComponentError>> {
    let component = cache.kept(engines.of(P::SLOT), &identity.sha256)?;
    let meter = engines.metrics.of(&identity.to_string());
    Some(prepare(engines, &component, identity, meter))
}

fn prepare<P: ComponentWorld>(
    engines: &EngineSet,
    component: &Component,
    identity: &ComponentIdentity,
    meter: ComponentMeter,
) -> Result<ActiveComponent<P>, ComponentError> {
    let engine = engines.of(P::SLOT);
    let pre =
        P::link(engine, component).map_err(|error| ComponentError::unfit(identity, &error))?;
    let active = ActiveComponent {
        identity: identity.clone(),
        pre,
        engine: engine.clone(),
        limits: engines.limits.of(P::SLOT),
        meter,
    };
    // Linking does not check the types of exports, so a call has to show that they fit.
    active.pre.canary(&active.probe())?;

    Ok(active)
}

impl<P> ActiveComponent<P> {
    /// Runs one call in a fresh store.
    pub fn call<R>(
        &self,
        work: impl FnOnce(&mut Store<LimitedEngine<()>>, &P) -> wasmtime::Result<R>,
    ) -> Result<R, ComponentError> {
        self.probe().call(|store| work(store, &self.pre))
    }

    /// Like [`ActiveComponent::call`], and returns the resources used. A failure is neither logged nor
    /// counted.
    pub fn measured<R>(
        &self,
        work: impl FnOnce(&mut Store<LimitedEngine<()>>, &P) -> wasmtime::Result<R>,
    ) -> (Result<R, ComponentError>, UsedFuel) {
        self.probe().measured(|store| work(store, &self.pre))
    }

    fn probe(&self) -> ContractProbe<'_> {
        ContractProbe {
            engine: &self.engine,
            limits: &self.limits,
            identity: &self.identity,
            meter: &self.meter,
        }
    }
}

impl ContractProbe<'_> {
    /// Runs one call in a fresh store.
    pub fn call<R>(
        &self,
        work: impl FnOnce(&mut Store<LimitedEngine<()>>) -> wasmtime::Result<R>,
    ) -> Result<R, ComponentError> {
        let span =
            tracing::debug_span!(target: crate::TRACES, "component", component = %self.identity);
        let (answer, used) = span.in_scope(|| self.measured(work));
        self.meter.used(used.memory);
        answer.map_err(|error| error.reported(self.meter))
    }

    /// Like [`ContractProbe::call`], and returns the resources used. A failure is neither logged nor counted.
    pub fn measured<R>(
        &self,
        work: impl FnOnce(&mut Store<LimitedEngine<()>>) -> wasmtime::Result<R>,
    ) -> (Result<R, ComponentError>, UsedFuel) {
        let mut used = UsedFuel::default();
        let result = fueled_store(self.engine, self.limits).and_then(|mut store| {
            let result = work(&mut store);
            // Read after a failure too, since a report about limits needs it most then.
            used.memory = store.data().limits.memory;
            used.fuel = self.limits.fuel.saturating_sub(store.get_fuel()?);
            result
        });
        let result =
            result.map_err(|error| ComponentError::from_call(self.identity, self.limits, &error));

        (result, used)
    }
}

/// Resources used by a call.
#[derive(Clone, Copy, Default)]
pub struct UsedFuel {
    /// Bytes of all linear memories together.
    pub memory: usize,
    pub fuel: u64,
}
