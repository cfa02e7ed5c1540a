//! A slot: its default component, those that take its place, and one call of
//! whichever it is.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use futures::future::BoxFuture;
use wasmtime::component::Component;
use wasmtime::{Engine, Store};

use super::artifact::{Artifact, NativeCodeCache, embedded};
use super::engine::{Engines, Limited, fueled_store};
use super::error::{ComponentError, Failure};
use crate::limits::Limits;
use crate::metrics::ComponentMeter;
use holdfast_domain::component::{ComponentIdentity, Slot};

/// What `bindgen!` makes of a slot's world, ready to be instantiated.
pub trait World: Sized + Send + Sync + 'static {
    const SLOT: Slot;

    /// Gives a component exactly what its world grants.
    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self>;

    /// Questions with known answers. Linking does not check the types of
    /// exports; calling them does.
    fn canary(&self, active: &Probe<'_>) -> Result<(), ComponentError>;
}

/// What a canary is asked with.
pub struct Probe<'a> {
    pub engine: &'a Engine,
    pub limits: &'a Limits,
    pub identity: &'a ComponentIdentity,
    pub meter: &'a ComponentMeter,
}

/// A component that is ready to be called, and what it is.
pub struct Active<P> {
    pub identity: ComponentIdentity,
    pub pre: P,
    pub engine: Engine,
    pub limits: Limits,
    pub meter: ComponentMeter,
}

/// Loaded by whoever needs it first: the code of a document component is
/// megabytes to read, and seconds to compile where none is kept. Callers wait
/// for it.
pub type Deferred<P> = Arc<
    LazyLock<
        Result<Active<P>, ComponentError>,
        Box<dyn FnOnce() -> Result<Active<P>, ComponentError> + Send>,
    >,
>;

/// The components of one slot on this node.
pub struct Loaded<P> {
    /// The one that came with the binary, and what it is.
    default: Deferred<P>,
    identity: Option<ComponentIdentity>,
    /// Others: the same bytes may have been uploaded under two names.
    others: RwLock<HashMap<ComponentIdentity, Deferred<P>>>,
    slot: Slot,
    loader: Loader,
}

type LoadOnDemand =
    dyn Fn(Slot, ComponentIdentity) -> BoxFuture<'static, Result<(), ComponentError>> + Send + Sync;

/// Loads a component that a call asks for and that this node does not hold.
#[derive(Clone, Default)]
pub struct Loader(Arc<OnceLock<Box<LoadOnDemand>>>);

impl Loader {
    /// The first one set stays.
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

/// A component as a call finds it.
pub enum Handle<P> {
    /// On this node, or a default that is loaded when it is first used.
    Held(Deferred<P>),
    /// Loaded by the first call that needs it.
    Absent {
        slot: Arc<Loaded<P>>,
        identity: ComponentIdentity,
    },
}

impl<P> Clone for Handle<P> {
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

impl<P> Handle<P> {
    /// Which component answers.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        match self {
            Self::Held(held) => Ok(active(held)?.identity.clone()),
            Self::Absent { identity, .. } => Ok(identity.clone()),
        }
    }

    /// The component, without waiting for it to be loaded.
    pub fn held(&self) -> Result<Deferred<P>, ComponentError> {
        match self {
            Self::Held(held) => Ok(held.clone()),
            Self::Absent { slot, identity } => slot.other(identity).ok_or_else(|| absent(identity)),
        }
    }

    /// The component, loaded if this node does not hold it.
    pub async fn ready(&self) -> Result<Deferred<P>, ComponentError> {
        if let Self::Absent { slot, identity } = self
            && slot.other(identity).is_none()
        {
            slot.loader.load(slot.slot, identity).await?;
        }
        self.held()
    }
}

/// What was loaded, or why it could not be.
pub fn active<P>(held: &Deferred<P>) -> Result<&Active<P>, ComponentError> {
    (***held).as_ref().map_err(ComponentError::again)
}

fn absent(identity: &ComponentIdentity) -> ComponentError {
    ComponentError::new(identity, Failure::Absent("it is not loaded yet".into()))
}

type Load<P> = Box<dyn FnOnce() -> Result<Active<P>, ComponentError> + Send>;

impl<P> Loaded<P> {
    fn other(&self, identity: &ComponentIdentity) -> Option<Deferred<P>> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        others.get(identity).cloned()
    }
}

impl<P: World> Loaded<P> {
    /// With the default, which is loaded when it is first needed.
    pub fn new(engines: &Engines, cache: &NativeCodeCache, loader: Loader) -> Self {
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

    /// The default, which is loaded when it is first needed.
    pub fn default(&self) -> Deferred<P> {
        self.default.clone()
    }

    /// The default, once it is loaded.
    pub fn force(&self) -> Result<(), ComponentError> {
        match LazyLock::force(&self.default) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.again()),
        }
    }

    /// None while the default is still being loaded.
    pub fn state(&self) -> Option<Result<(), ComponentError>> {
        LazyLock::get(&self.default)
            .map(|loaded| loaded.as_ref().map(|_| ()).map_err(ComponentError::again))
    }

    /// This component; none: the default. No other one answers in its place.
    pub fn get(self: &Arc<Self>, identity: Option<&ComponentIdentity>) -> Handle<P> {
        let Some(identity) = identity else {
            return Handle::Held(self.default.clone());
        };
        if let Some(other) = self.other(identity) {
            return Handle::Held(other);
        }
        if self.identity.as_ref() == Some(identity) {
            return Handle::Held(self.default.clone());
        }
        Handle::Absent {
            slot: self.clone(),
            identity: identity.clone(),
        }
    }

    pub fn has(&self, identity: &ComponentIdentity) -> bool {
        if self.identity.as_ref() == Some(identity) {
            return true;
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let loaded = others.get(identity).and_then(|there| LazyLock::get(there));
        loaded.is_some_and(Result::is_ok)
    }

    pub fn put(&self, active: Active<P>) {
        let identity = active.identity.clone();
        let ready = ready(active);
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.insert(identity, ready);
    }

    /// Forgets those that are not wanted. Calls under way keep theirs.
    pub fn keep(&self, wanted: impl Fn(&ComponentIdentity) -> bool) {
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.retain(|identity, _| wanted(identity));
    }
}

fn missing(component: String, why: &str) -> ComponentError {
    ComponentError {
        component,
        kind: Failure::Link(why.into()),
        by_document: false,
    }
}

/// A built-in component that is loaded when it is first needed.
pub fn deferred<P: World>(
    engines: &Engines,
    cache: &NativeCodeCache,
    artifact: Option<Artifact>,
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

/// A component that is loaded already.
pub fn ready<P: Send + Sync + 'static>(active: Active<P>) -> Deferred<P> {
    let load: Load<P> = Box::new(move || Ok(active));
    let ready = Arc::new(LazyLock::new(load));
    LazyLock::force(&ready);
    ready
}

/// Native code, linked, instantiated and asked what it must know.
pub fn load<P: World>(
    engines: &Engines,
    cache: &NativeCodeCache,
    artifact: &Artifact,
) -> Result<Active<P>, ComponentError> {
    let meter = engines.metrics.of(&artifact.identity.to_string());
    load_with(engines, cache, artifact, meter)
}

/// The same of a candidate, whose failures are its author's: nothing of it is logged,
/// and no metric names it.
pub fn load_candidate<P: World>(
    engines: &Engines,
    cache: &NativeCodeCache,
    artifact: &Artifact,
) -> Result<Active<P>, ComponentError> {
    load_with(engines, cache, artifact, ComponentMeter::of_candidate())
}

fn load_with<P: World>(
    engines: &Engines,
    cache: &NativeCodeCache,
    artifact: &Artifact,
    meter: ComponentMeter,
) -> Result<Active<P>, ComponentError> {
    let engine = engines.of(P::SLOT);
    let component = cache
        .load(engine, artifact)
        .map_err(|error| ComponentError::unfit(&artifact.identity, &error))?;
    prepare(engines, &component, &artifact.identity, meter)
}

/// The same of native code that this node keeps, without the component's bytes. None
/// where it keeps none.
pub fn load_kept<P: World>(
    engines: &Engines,
    cache: &NativeCodeCache,
    identity: &ComponentIdentity,
) -> Option<Result<Active<P>, ComponentError>> {
    let component = cache.kept(engines.of(P::SLOT), &identity.sha256)?;
    let meter = engines.metrics.of(&identity.to_string());
    Some(prepare(engines, &component, identity, meter))
}

fn prepare<P: World>(
    engines: &Engines,
    component: &Component,
    identity: &ComponentIdentity,
    meter: ComponentMeter,
) -> Result<Active<P>, ComponentError> {
    let engine = engines.of(P::SLOT);
    let pre =
        P::link(engine, component).map_err(|error| ComponentError::unfit(identity, &error))?;
    let active = Active {
        identity: identity.clone(),
        pre,
        engine: engine.clone(),
        limits: engines.limits.of(P::SLOT),
        meter,
    };
    active.pre.canary(&active.probe())?;
    Ok(active)
}

impl<P> Active<P> {
    /// One call in a fresh store.
    pub fn call<R>(
        &self,
        work: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<R>,
    ) -> Result<R, ComponentError> {
        self.probe().call(|store| work(store, &self.pre))
    }

    /// The same, and what it took; its failure is nobody's but the caller's.
    pub fn measured<R>(
        &self,
        work: impl FnOnce(&mut Store<Limited<()>>, &P) -> wasmtime::Result<R>,
    ) -> (Result<R, ComponentError>, Used) {
        self.probe().measured(|store| work(store, &self.pre))
    }

    fn probe(&self) -> Probe<'_> {
        Probe {
            engine: &self.engine,
            limits: &self.limits,
            identity: &self.identity,
            meter: &self.meter,
        }
    }
}

impl Probe<'_> {
    /// One call in a fresh store.
    pub fn call<R>(
        &self,
        work: impl FnOnce(&mut Store<Limited<()>>) -> wasmtime::Result<R>,
    ) -> Result<R, ComponentError> {
        let span =
            tracing::debug_span!(target: crate::TRACES, "component", component = %self.identity);
        let (answer, used) = span.in_scope(|| self.measured(work));
        self.meter.used(used.memory);
        answer.map_err(|error| error.reported(self.meter))
    }

    fn measured<R>(
        &self,
        work: impl FnOnce(&mut Store<Limited<()>>) -> wasmtime::Result<R>,
    ) -> (Result<R, ComponentError>, Used) {
        let mut used = Used::default();
        let result = fueled_store(self.engine, self.limits).and_then(|mut store| {
            let result = work(&mut store);
            used.memory = store.data().limits.memory;
            used.fuel = self.limits.fuel.saturating_sub(store.get_fuel()?);
            result
        });
        let result = result.map_err(|error| ComponentError::from_call(self.identity, &error));
        (result, used)
    }
}

/// What a call took.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// Bytes of its largest linear memory.
    pub memory: usize,
    pub fuel: u64,
}
