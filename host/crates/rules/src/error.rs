//! Errors of components, classified by their meaning for callers.

use super::engine::TooMuchMemory;
use super::gate::ShareInUse;
use crate::limits::{CallLimits, TooMuchTime};
use crate::metrics::ComponentMeter;
use holdfast_domain::component::ComponentIdentity;

/// Error: the component made more host calls than its slot allows.
#[derive(Debug, thiserror::Error)]
#[error("it asked the host for something too often")]
pub struct TooManyHostCalls;

/// Error: a record of the signing room could not be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("the signing room failed: {why}")]
pub struct RoomFailure {
    /// Whether the disk is full.
    pub disk_full: bool,
    pub why: String,
}

/// Failed call of a component. Logs and metrics name the component; API responses do not.
#[derive(Debug, thiserror::Error)]
#[error("component {component}: {kind}")]
pub struct ComponentError {
    /// Name and version of the component.
    pub component: String,
    /// Kind of the failure.
    pub kind: CallFailure,
    /// Whether the processed document is the cause: it needs more time or
    /// memory than the limits allow, or makes the component trap.
    pub by_document: bool,
}

/// Kind of a failed call.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// The call used up its fuel, or exceeded its processor time or deadline. Names the limit.
    #[error("{0}")]
    Timeout(String),
    /// The component panicked, failed to allocate, or overflowed its stack.
    #[error("trapped: {0}")]
    Trap(String),
    /// The component needed more memory than its slot allows.
    #[error("exceeded its memory limit: {0}")]
    Memory(String),
    /// The component made more host calls than its slot allows.
    #[error("exceeded its limit of host calls: {0}")]
    HostCalls(String),
    /// The share of instances, memory or time is in use. Not a fault of the component.
    #[error("its share of this node is in use")]
    Busy,
    /// The disk of the built-in provider is full. Not a fault of the component.
    #[error("the disk of the provider is full")]
    DiskFull,
    /// The component is not loaded on this node.
    #[error("is not available on this node: {0}")]
    Absent(String),
    /// The component does not fit its slot.
    #[error("does not fit its slot: {0}")]
    Link(String),
    /// The component failed its canary.
    #[error("failed its canary: {0}")]
    Canary(String),
    /// The result is larger than the slot allows, or invalid.
    #[error("gave an unusable answer: {0}")]
    Answer(String),
}

impl ComponentError {
    pub fn new(identity: &ComponentIdentity, kind: CallFailure) -> Self {
        Self {
            component: identity.to_string(),
            kind,
            by_document: false,
        }
    }

    /// A component that does not fit its slot.
    pub fn unfit(identity: &ComponentIdentity, error: &wasmtime::Error) -> Self {
        Self::new(identity, CallFailure::Link(format!("{error:#}")))
    }

    /// A component that this node cannot load.
    pub fn absent(component: impl ToString, why: impl Into<String>) -> Self {
        Self {
            component: component.to_string(),
            kind: CallFailure::Absent(why.into()),
            by_document: false,
        }
    }

    /// Whether a later call can succeed: nothing is wrong with the component or its input.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, CallFailure::Busy | CallFailure::Absent(_))
    }

    /// Copies the error of loading a component for the next caller.
    pub fn again(&self) -> Self {
        // `Absent` stays a temporary failure; any other means that the component does not fit.
        Self {
            component: self.component.clone(),
            kind: match &self.kind {
                CallFailure::Absent(why) => CallFailure::Absent(why.clone()),
                other => CallFailure::Link(other.to_string()),
            },
            by_document: self.by_document,
        }
    }

    /// Marks the failure of a call that processed a user's document.
    pub fn on_document(mut self) -> Self {
        self.by_document = matches!(
            self.kind,
            CallFailure::Timeout(_) | CallFailure::Trap(_) | CallFailure::Memory(_)
        );
        self
    }

    /// Logs and counts a failed call, unless the component is a candidate.
    pub fn reported(self, meter: &ComponentMeter) -> Self {
        if !meter.is_reported() {
            return self;
        }
        let (component, kind) = (self.component.as_str(), &self.kind);
        tracing::error!(component, %kind, "component call failed");
        meter.failures.inc();
        self
    }

    /// Classifies a wasmtime error as a [`CallFailure`]. Failures by a limit name its setting.
    pub fn from_call(
        identity: &ComponentIdentity,
        limits: &CallLimits,
        error: &wasmtime::Error,
    ) -> Self {
        use wasmtime::{PoolConcurrencyLimitError, Trap};

        if let Some(spent) = error.downcast_ref::<TooMuchTime>() {
            return Self::new(identity, CallFailure::Timeout(spent.to_string()));
        }
        if let Some(memory) = error.downcast_ref::<TooMuchMemory>() {
            let why = match memory {
                TooMuchMemory::Bytes(_) => {
                    let limit = limits.named("memory_bytes", limits.memory);
                    format!("{memory}; {limit}")
                }
                // No setting changes it, because the pool of tables has a fixed size.
                TooMuchMemory::TableElements(_) => memory.to_string(),
            };
            return Self::new(identity, CallFailure::Memory(why));
        }

        let text = format!("{error:#}");
        let kind = match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => {
                let limit = limits.named("fuel", format_args!("{} units", limits.fuel));
                CallFailure::Timeout(format!("used up its fuel; {limit}"))
            }
            Some(trap) => CallFailure::Trap(trap.to_string()),
            None if error.is::<TooManyHostCalls>() => {
                CallFailure::HostCalls(limits.named("host_calls", limits.host_calls))
            }
            None if error
                .downcast_ref::<RoomFailure>()
                .is_some_and(|room| room.disk_full) =>
            {
                CallFailure::DiskFull
            }
            None if error.is::<ShareInUse>() || error.is::<PoolConcurrencyLimitError>() => {
                CallFailure::Busy
            }
            // Wasmtime's `HostcallFuelExhausted` is private, so only its text identifies it.
            None if text.contains("fuel allocated for hostcalls") => {
                let limit = limits.named("output_bytes", limits.output);
                CallFailure::Answer(format!("it is larger than its slot allows; {limit}"))
            }
            None => CallFailure::Link(text),
        };

        Self::new(identity, kind)
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::Trap;

    use super::*;
    use crate::limits::AllLimits;
    use holdfast_domain::component::Slot;

    /// The cause is found below the context that callers add to an error.
    #[test]
    fn call_errors_are_classified_by_type() {
        let room = |disk_full| RoomFailure {
            disk_full,
            why: "put".into(),
        };
        let identity = ComponentIdentity {
            name: "rules".into(),
            version: "1.0.0".into(),
            sha256: String::new(),
        };
        let limits = AllLimits::default().of(Slot::Lifecycle);
        let spent = limits.out_of_processor_time(limits.cpu);
        for (error, expected) in [
            (
                spent.into(),
                "took 20 ms of processor time on this machine; the limit \
                 `components.limits.\"rules.lifecycle\".cpu` is 20 ms",
            ),
            (
                Trap::OutOfFuel.into(),
                "used up its fuel; the limit \
                 `components.limits.\"rules.lifecycle\".fuel` is 1000000 units",
            ),
            (Trap::StackOverflow.into(), "trapped: "),
            (Trap::UnreachableCodeReached.into(), "trapped: "),
            (
                TooManyHostCalls.into(),
                "exceeded its limit of host calls: the limit \
                 `components.limits.\"rules.lifecycle\".host_calls` is 0",
            ),
            (
                TooMuchMemory::Bytes(12_582_913).into(),
                "exceeded its memory limit: 12582913 bytes in all; the limit \
                 `components.limits.\"rules.lifecycle\".memory_bytes` is 12582912",
            ),
            (
                TooMuchMemory::TableElements(100_001).into(),
                "exceeded its memory limit: 100001 elements of all tables, of 100000",
            ),
            (ShareInUse.into(), "its share of this node is in use"),
            (room(true).into(), "the disk of the provider is full"),
            (room(false).into(), "does not fit its slot: "),
            (wasmtime::Error::msg("other"), "does not fit its slot: "),
        ] {
            let error: wasmtime::Error = error;
            let error = error.context("calling the component");
            let kind = ComponentError::from_call(&identity, &limits, &error)
                .kind
                .to_string();
            assert!(kind.starts_with(expected), "{kind}");
        }
    }
}
