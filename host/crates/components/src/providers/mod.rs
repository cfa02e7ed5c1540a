//! Calls of provider plugins: asynchronous, each in a fresh instance, with
//! exactly the imports that their world grants.

mod conversion_plugin;
mod kba_plugin;
mod messaging_plugin;
mod payment_plugin;
mod signing_plugin;

use std::future::Future;
use std::pin::Pin;

use tracing::Instrument as _;
use wasmtime::component::{Component, HasSelf, InstancePre, Lift, Linker};
use wasmtime::{Engine, Store};

use super::bindings;
use super::engine::{LimitedEngine, provider_store};
use super::error::{CallFailure, ComponentError};
use super::gate::CallGate;
use super::instance_log::InstanceLogger;
use super::lent::LentResources;
use super::slot::{ActiveComponent, ComponentHandle, ComponentWorld, ContractProbe, active};
use super::worlds;
use holdfast_base::traces;
use holdfast_domain::component::{ComponentIdentity, InstanceLogLevel, Slot};

pub use super::lent::LentHost as ProviderLease;
pub use conversion_plugin::{ConversionPlugin, conversion};
pub use kba_plugin::{KbaPlugin, KbaProvider, kba};
pub use messaging_plugin::{MessagingPlugin, MessagingProvider, messaging};
pub use payment_plugin::{PaymentPlugin, PaymentProvider, payment};
pub use signing_plugin::{SigningPlugin, signing};

/// Error of a provider.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// A setting or secret is missing.
    #[error("the provider is not configured: {0}")]
    NotConfigured(String),
    /// The provider rejected the request.
    #[error("the provider refused: {0}")]
    Rejected(String),
    /// The provider does not know the object.
    #[error("the provider does not know it")]
    NotFound,
    /// The provider did not respond; a later attempt can succeed.
    #[error("the provider could not be reached: {0}")]
    Unreachable(String),
    /// Too many requests, with the seconds to wait if the provider states them.
    #[error("the provider limits the rate{}", .0.map_or(String::new(), |seconds| format!(" for {seconds} seconds")))]
    RateLimited(Option<u32>),
    /// The plugin failed.
    #[error(transparent)]
    Component(#[from] ComponentError),
}

/// Converts the provider errors of each world. The last word is the variant of any other failure.
macro_rules! provider_errors {
    ($($types:path => { $($not_found:ident)? } or $other:ident;)+) => {$(
        const _: () = {
            use $types as types;
            impl From<types::ProviderError> for ProviderError {
                fn from(error: types::ProviderError) -> Self {
                    match error {
                        types::ProviderError::NotConfigured(what) => Self::NotConfigured(what),
                        types::ProviderError::Rejected(why) => Self::Rejected(why),
                        $(types::ProviderError::$not_found => Self::NotFound,)?
                        types::ProviderError::Unreachable(why) => Self::Unreachable(why),
                        types::ProviderError::RateLimited(wait) => Self::RateLimited(wait),
                        types::ProviderError::Other(why) => Self::$other(why),
                    }
                }
            }
        };
    )+};
}

provider_errors! {
    bindings::signing::holdfast::signing::types => { NotFound } or Rejected;
    bindings::payment::holdfast::payment::types => { NotFound } or Rejected;
    bindings::kba::holdfast::kba::types => {} or Rejected;
    bindings::messaging::holdfast::messaging::types => {} or Rejected;
    // States nothing about the document: the sender reads reasons of refusals only, and may try again.
    bindings::conversion::holdfast::conversion::types => {} or Unreachable;
}

/// Optional function of a provider that checks its settings; see [`probing`].
pub(super) const PROBE: &str = "probe";

/// Returns the optional interface that [`PROBE`] stands in.
pub(super) fn probing(slot: Slot) -> String {
    let package = slot.interface().split('/').next().unwrap_or_default();
    format!("{package}/probing@{}", worlds::VERSION)
}

/// World of components that call an external service.
pub trait ProviderCalls: Send + Sync + 'static {
    /// Exports of an instance.
    type Exports: Send + Sync;

    /// Returns the linked component.
    fn instance_pre(&self) -> &InstancePre<LimitedEngine<LentResources>>;

    /// Creates an instance.
    fn fresh(
        &self,
        store: &mut Store<LimitedEngine<LentResources>>,
    ) -> impl Future<Output = wasmtime::Result<Self::Exports>> + Send;
}

macro_rules! provider_worlds {
    ($($slot:ident: $pre:ident = $module:ident :: $made:ident of $exports:ident;)+) => {$(
        /// Linked component, instantiated for each call.
        pub type $pre = bindings::$module::$made<LimitedEngine<LentResources>>;

        impl ProviderCalls for $pre {
            type Exports = bindings::$module::$exports;

            fn instance_pre(&self) -> &InstancePre<LimitedEngine<LentResources>> {
                self.instance_pre()
            }

            async fn fresh(
                &self,
                store: &mut Store<LimitedEngine<LentResources>>,
            ) -> wasmtime::Result<Self::Exports> {
                self.instantiate_async(store).await
            }
        }

        impl ComponentWorld for $pre {
            const SLOT: Slot = Slot::$slot;

            fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
                let mut linker: Linker<LimitedEngine<LentResources>> = Linker::new(engine);
                bindings::$module::$exports::add_to_linker::<_, HasSelf<_>>(
                    &mut linker,
                    |limited| &mut limited.data,
                )?;
                super::wasi::link(&mut linker)?;
                super::room::link(&mut linker)?;
                Self::new(linker.instantiate_pre(component)?)
            }

            /// Does nothing: the behaviour of a provider depends on its external service. See
            /// [`super::conformance`].
            fn canary(&self, _: &ContractProbe<'_>) -> Result<(), ComponentError> {
                Ok(())
            }
        }
    )+};
}

provider_worlds! {
    Signing: SigningPre = signing::SigningProviderPre of SigningProvider;
    Payment: PaymentPre = payment::PaymentProviderPre of PaymentProvider;
    Kba: KbaPre = kba::KbaProviderPre of KbaProvider;
    Messaging: MessagingPre = messaging::MessagingProviderPre of MessagingProvider;
    Conversion: ConversionPre = conversion::ConversionProviderPre of ConversionProvider;
}

/// Plugin with the lease for its calls.
pub struct LeasedPlugin<P> {
    pub plugin: P,
    pub lease: ProviderLease,
}

/// Component of a provider slot, with the gate that limits its calls.
pub struct PluginRuntime<P> {
    slot: ComponentHandle<P>,
    gate: CallGate,
}

impl<P> Clone for PluginRuntime<P> {
    fn clone(&self) -> Self {
        Self {
            slot: self.slot.clone(),
            gate: self.gate.clone(),
        }
    }
}

type Call<'a, R> = Pin<Box<dyn Future<Output = wasmtime::Result<R>> + Send + 'a>>;

impl<P: ProviderCalls> PluginRuntime<P> {
    pub(super) fn new(slot: ComponentHandle<P>, gate: CallGate) -> Self {
        Self { slot, gate }
    }

    pub(super) fn gate(&self) -> &CallGate {
        &self.gate
    }

    /// Replaces the gate.
    pub(super) fn with_gate(self, gate: CallGate) -> Self {
        Self { gate, ..self }
    }

    /// Returns the peak linear memory of a call of the component, in bytes.
    pub(super) fn memory_peak(&self) -> usize {
        self.slot
            .held()
            .ok()
            .and_then(|held| active(&held).ok().map(peak))
            .unwrap_or_default()
    }

    /// Returns the identity of the component.
    pub fn identity(&self) -> Result<ComponentIdentity, ComponentError> {
        self.slot.identity()
    }

    async fn call<R>(
        &self,
        lease: ProviderLease,
        work: impl for<'a> FnOnce(
            &'a mut Store<LimitedEngine<LentResources>>,
            &'a P::Exports,
        ) -> Call<'a, R>
        + Send
        + 'static,
    ) -> Result<R, ComponentError> {
        self.run(lease, |store, linked| {
            Box::pin(async move {
                let exports = linked.fresh(store).await?;
                work(store, &exports).await
            })
        })
        .await
    }

    /// Calls the optional function `probe`, which changes nothing. `None` if the component has none.
    ///
    /// # Errors
    /// The plugin's own, and a component that fails.
    pub async fn probe<E>(&self, lease: ProviderLease) -> Result<Option<()>, ProviderError>
    where
        P: ComponentWorld,
        Result<(), E>: Lift + Send + Sync + 'static,
        ProviderError: From<E>,
    {
        let answered = self.run(lease, |store, linked| {
            Box::pin(async move {
                let instance = linked.instance_pre().instantiate_async(&mut *store).await?;
                let at = instance.get_export_index(&mut *store, None, &probing(P::SLOT));
                let function =
                    at.and_then(|at| instance.get_export_index(&mut *store, Some(&at), PROBE));
                // The function came after 1.0, so a component without it is complete.
                let Some(function) = function else {
                    return Ok(None);
                };

                let function =
                    instance.get_typed_func::<(), (Result<(), E>,)>(&mut *store, function)?;
                let (answer,) = function.call_async(&mut *store, ()).await?;
                Ok(Some(answer))
            })
        });

        Ok(answered.await?.transpose()?)
    }

    async fn run<R>(
        &self,
        lease: ProviderLease,
        work: impl for<'a> FnOnce(&'a mut Store<LimitedEngine<LentResources>>, &'a P) -> Call<'a, R>,
    ) -> Result<R, ComponentError> {
        let held = self.slot.ready().await?;
        let active = active(&held)?;
        let span = traces::span!("provider", component = %active.identity, instance = %lease.label);
        self.call_of(active, lease, work).instrument(span).await
    }

    async fn call_of<R>(
        &self,
        active: &ActiveComponent<P>,
        lease: ProviderLease,
        work: impl for<'a> FnOnce(&'a mut Store<LimitedEngine<LentResources>>, &'a P) -> Call<'a, R>,
    ) -> Result<R, ComponentError> {
        let limits = &active.limits;
        let mut lease = lease;
        let named = |log: InstanceLogger| log.with_component(active.identity.to_string());
        lease.log = lease.log.map(named);
        let log = lease.log.clone();
        // The operator's log is not for tenants, so the instance's log gets the failure as well.
        let failed = |error: ComponentError| {
            if let Some(log) = &log {
                log.write(
                    InstanceLogLevel::Error,
                    &format!("call failed: {}", error.kind),
                );
            }

            error.reported(&active.meter)
        };

        // The peak of earlier calls is reserved first: without room for
        // it, the call would fail in the middle.
        let Some(mut turn) = self.gate.pass(limits.deadline, peak(active)).await else {
            let busy = ComponentError::new(&active.identity, CallFailure::Busy);
            return Err(failed(busy));
        };

        let lent = LentResources::new(lease, limits, turn.fetched.take());
        let memory = turn.memory.take();
        let (mut store, watch) =
            provider_store(&active.engine, limits, memory, self.gate.time.clone(), lent);
        // The watch counts processor time only, so the timeout also ends a call that waits for the network.
        let run = watch.run(work(&mut store, &active.pre));
        let ended = tokio::time::timeout(limits.deadline, run).await;
        active.meter.used(store.data().limits.memory);

        let error = match ended {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => ComponentError::from_call(&active.identity, limits, &error),
            Err(_) => {
                let late = limits.past_deadline(limits.deadline);
                ComponentError::new(&active.identity, CallFailure::Timeout(late.to_string()))
            }
        };
        match error.kind {
            // The signing room's disk is full: not a fault of the component, so not counted.
            CallFailure::DiskFull => Err(error),
            _ => Err(failed(error)),
        }
    }
}

fn peak<P>(active: &ActiveComponent<P>) -> usize {
    usize::try_from(active.meter.memory_peak()).unwrap_or_default()
}
