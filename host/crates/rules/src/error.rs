//! Errors of components, classified by their meaning for callers.

use super::engine::TooMuchMemory;
use super::gate::ShareInUse;
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
    /// The call used up its fuel, or exceeded its processor time or deadline.
    #[error("exceeded its deadline")]
    Timeout,
    /// The component panicked, failed to allocate, or overflowed its stack.
    #[error("trapped: {0}")]
    Trap(String),
    /// The component needed more memory than its slot allows.
    #[error("exceeded its memory limit: {0}")]
    Memory(String),
    /// The component made more host calls than its slot allows.
    #[error("exceeded its limit of host calls")]
    HostCalls,
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
            CallFailure::Timeout | CallFailure::Trap(_) | CallFailure::Memory(_)
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

    /// Classifies a wasmtime error as a [`CallFailure`].
    pub fn from_call(identity: &ComponentIdentity, error: &wasmtime::Error) -> Self {
        use wasmtime::{PoolConcurrencyLimitError, Trap};

        let text = format!("{error:#}");
        let kind = match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt | Trap::OutOfFuel) => CallFailure::Timeout,
            Some(trap) => CallFailure::Trap(trap.to_string()),
            None if error.is::<TooManyHostCalls>() => CallFailure::HostCalls,
            None if error
                .downcast_ref::<RoomFailure>()
                .is_some_and(|room| room.disk_full) =>
            {
                CallFailure::DiskFull
            }
            None if error.is::<TooMuchMemory>() => CallFailure::Memory(text),
            None if error.is::<ShareInUse>() || error.is::<PoolConcurrencyLimitError>() => {
                CallFailure::Busy
            }
            // Wasmtime's `HostcallFuelExhausted` is private, so only its text identifies it.
            None if text.contains("fuel allocated for hostcalls") => {
                CallFailure::Answer("it is larger than its slot allows".into())
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
        for (error, expected) in [
            (Trap::Interrupt.into(), "exceeded its deadline"),
            (Trap::OutOfFuel.into(), "exceeded its deadline"),
            (Trap::StackOverflow.into(), "trapped: "),
            (Trap::UnreachableCodeReached.into(), "trapped: "),
            (TooManyHostCalls.into(), "exceeded its limit of host calls"),
            (ShareInUse.into(), "its share of this node is in use"),
            (room(true).into(), "the disk of the provider is full"),
            (room(false).into(), "does not fit its slot: "),
            (wasmtime::Error::msg("other"), "does not fit its slot: "),
        ] {
            let error: wasmtime::Error = error;
            let error = error.context("calling the component");
            let kind = ComponentError::from_call(&identity, &error)
                .kind
                .to_string();
            assert!(kind.starts_with(expected), "{kind}");
        }
    }
}
