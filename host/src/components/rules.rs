//! Calls into the rules slots that are asked all the time. Rules import nothing:
//! their linker is empty.

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::artifact::{Identity, NativeCodeCache};
use super::bindings;
use super::canaries;
use super::engine::{Engines, Limited};
use super::error::ComponentError;
use super::slot::{Active, Deferred, Loaded, Probe, World, ready};
use crate::domain::bulk::BatchStatus;
use crate::domain::component::Slot;
use crate::domain::envelope::EnvelopeStatus;

pub use bindings::compliance::exports::holdfast::compliance::compliance::ComponentIdentity;
pub use bindings::compliance::holdfast::compliance::types as compliance;
pub use bindings::documents::holdfast::documents::types as documents;
pub use bindings::lifecycle::holdfast::lifecycle::types as lifecycle;
pub use bindings::placement::holdfast::placement::types as placement;

pub(super) type CompliancePre = bindings::compliance::ComplianceRulesPre<Limited<()>>;
pub(super) type LifecyclePre = bindings::lifecycle::LifecycleRulesPre<Limited<()>>;

impl World for CompliancePre {
    const SLOT: Slot = Slot::Compliance;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &Probe<'_>) -> Result<(), ComponentError> {
        canaries::compliance(self, probe)
    }
}

impl World for LifecyclePre {
    const SLOT: Slot = Slot::Lifecycle;

    fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        Self::new(Linker::new(engine).instantiate_pre(component)?)
    }

    fn canary(&self, probe: &Probe<'_>) -> Result<(), ComponentError> {
        canaries::lifecycle(self, probe)
    }
}

/// One component of slot `rules.compliance`. All that a verification needs.
#[derive(Clone)]
pub struct Compliance(Deferred<CompliancePre>);

impl Compliance {
    pub(super) fn new(slot: Deferred<CompliancePre>) -> Self {
        Self(slot)
    }

    pub(super) fn of(active: Active<CompliancePre>) -> Self {
        Self(ready(active))
    }

    /// The default component.
    pub(super) fn load(engines: &Engines, cache: &NativeCodeCache) -> Result<Self, ComponentError> {
        let loaded = Loaded::new(engines, cache);
        loaded.force()?;
        Ok(Self(loaded.get(None)))
    }

    fn active(&self) -> Result<&Active<CompliancePre>, ComponentError> {
        (**self.0).as_ref().map_err(ComponentError::again)
    }

    /// The component that [`Compliance::evaluate`] and [`Compliance::certificate`] call.
    pub fn identity(&self) -> Result<Identity, ComponentError> {
        Ok(self.active()?.identity.clone())
    }

    /// Runs the compliance checks.
    pub fn evaluate(
        &self,
        facts: &compliance::EnvelopeFacts,
    ) -> Result<compliance::Evaluation, ComponentError> {
        self.active()?.call(|store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_compliance_compliance()
                .call_evaluate(store, facts)
        })
    }

    /// The compliance certificate, and which component wrote it.
    pub fn certificate(
        &self,
        facts: &compliance::EnvelopeFacts,
        issued_at: &str,
        issuer: &str,
    ) -> Result<(String, Identity), ComponentError> {
        let active = self.active()?;
        let identity = ComponentIdentity {
            name: active.identity.name.clone(),
            version: active.identity.version.clone(),
            sha256: active.identity.sha256.clone(),
        };
        let text = active.call(|store, pre| {
            let instance = pre.instantiate(&mut *store)?;
            instance
                .holdfast_compliance_compliance()
                .call_certificate(store, facts, issued_at, issuer, &identity)
        })?;
        Ok((text, active.identity.clone()))
    }
}

/// Why a move did not happen.
#[derive(Debug, thiserror::Error)]
pub enum TransitionError {
    /// The rules say no.
    #[error("{}", .0.message)]
    Refused(lifecycle::Refusal),
    /// The rules could not answer. Never read as yes or no.
    #[error(transparent)]
    Component(#[from] ComponentError),
}

/// One component of slot `rules.lifecycle`.
#[derive(Clone)]
pub struct Lifecycle(Deferred<LifecyclePre>);

impl Lifecycle {
    pub(super) fn new(slot: Deferred<LifecyclePre>) -> Self {
        Self(slot)
    }

    pub(super) fn of(active: Active<LifecyclePre>) -> Self {
        Self(ready(active))
    }

    fn active(&self) -> Result<&Active<LifecyclePre>, ComponentError> {
        (**self.0).as_ref().map_err(ComponentError::again)
    }

    /// The component that [`Lifecycle::envelope`] calls.
    pub fn identity(&self) -> Result<Identity, ComponentError> {
        Ok(self.active()?.identity.clone())
    }

    /// Which status `trigger` leads to from `current`.
    pub fn envelope(
        &self,
        current: Option<EnvelopeStatus>,
        trigger: lifecycle::EnvelopeTrigger,
        facts: &lifecycle::EnvelopeFacts,
    ) -> Result<EnvelopeStatus, TransitionError> {
        let current = current.map(to_lifecycle);
        self.active()?
            .call(|store, pre| {
                let instance = pre.instantiate(&mut *store)?;
                instance
                    .holdfast_lifecycle_lifecycle()
                    .call_envelope(store, current, trigger, facts)
            })?
            .map(from_lifecycle)
            .map_err(TransitionError::Refused)
    }

    /// Which status `trigger` leads a bulk batch to from `current`.
    pub fn batch(
        &self,
        current: Option<BatchStatus>,
        trigger: lifecycle::BatchTrigger,
    ) -> Result<BatchStatus, TransitionError> {
        let current = current.map(to_batch);
        self.active()?
            .call(|store, pre| {
                let instance = pre.instantiate(&mut *store)?;
                instance
                    .holdfast_lifecycle_lifecycle()
                    .call_batch(store, current, trigger)
            })?
            .map(from_batch)
            .map_err(TransitionError::Refused)
    }
}

fn to_batch(status: BatchStatus) -> lifecycle::BatchStatus {
    match status {
        BatchStatus::Draft => lifecycle::BatchStatus::Draft,
        BatchStatus::Ready => lifecycle::BatchStatus::Ready,
        BatchStatus::Running => lifecycle::BatchStatus::Running,
        BatchStatus::Completed => lifecycle::BatchStatus::Completed,
        BatchStatus::Cancelled => lifecycle::BatchStatus::Cancelled,
        BatchStatus::Failed => lifecycle::BatchStatus::Failed,
    }
}

fn from_batch(status: lifecycle::BatchStatus) -> BatchStatus {
    match status {
        lifecycle::BatchStatus::Draft => BatchStatus::Draft,
        lifecycle::BatchStatus::Ready => BatchStatus::Ready,
        lifecycle::BatchStatus::Running => BatchStatus::Running,
        lifecycle::BatchStatus::Completed => BatchStatus::Completed,
        lifecycle::BatchStatus::Cancelled => BatchStatus::Cancelled,
        lifecycle::BatchStatus::Failed => BatchStatus::Failed,
    }
}

macro_rules! same_statuses {
    ($to:ident, $from:ident, $module:ident) => {
        pub(crate) fn $to(status: EnvelopeStatus) -> $module::EnvelopeStatus {
            match status {
                EnvelopeStatus::Pending => $module::EnvelopeStatus::Pending,
                EnvelopeStatus::Uploaded => $module::EnvelopeStatus::Uploaded,
                EnvelopeStatus::Preparing => $module::EnvelopeStatus::Preparing,
                EnvelopeStatus::Sent => $module::EnvelopeStatus::Sent,
                EnvelopeStatus::Viewed => $module::EnvelopeStatus::Viewed,
                EnvelopeStatus::Completed => $module::EnvelopeStatus::Completed,
                EnvelopeStatus::Vaulted => $module::EnvelopeStatus::Vaulted,
                EnvelopeStatus::VaultedOut => $module::EnvelopeStatus::VaultedOut,
                EnvelopeStatus::Declined => $module::EnvelopeStatus::Declined,
                EnvelopeStatus::Voided => $module::EnvelopeStatus::Voided,
                EnvelopeStatus::Expired => $module::EnvelopeStatus::Expired,
            }
        }

        #[allow(dead_code)]
        pub(crate) fn $from(status: $module::EnvelopeStatus) -> EnvelopeStatus {
            match status {
                $module::EnvelopeStatus::Pending => EnvelopeStatus::Pending,
                $module::EnvelopeStatus::Uploaded => EnvelopeStatus::Uploaded,
                $module::EnvelopeStatus::Preparing => EnvelopeStatus::Preparing,
                $module::EnvelopeStatus::Sent => EnvelopeStatus::Sent,
                $module::EnvelopeStatus::Viewed => EnvelopeStatus::Viewed,
                $module::EnvelopeStatus::Completed => EnvelopeStatus::Completed,
                $module::EnvelopeStatus::Vaulted => EnvelopeStatus::Vaulted,
                $module::EnvelopeStatus::VaultedOut => EnvelopeStatus::VaultedOut,
                $module::EnvelopeStatus::Declined => EnvelopeStatus::Declined,
                $module::EnvelopeStatus::Voided => EnvelopeStatus::Voided,
                $module::EnvelopeStatus::Expired => EnvelopeStatus::Expired,
            }
        }
    };
}

same_statuses!(to_lifecycle, from_lifecycle, lifecycle);
same_statuses!(to_compliance, from_compliance, compliance);
