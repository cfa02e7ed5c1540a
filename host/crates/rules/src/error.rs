//! What can go wrong with a component, told apart by what it means for callers.

use super::engine::TooMuchMemory;
use super::gate::ShareInUse;
use crate::metrics::ComponentMeter;
use holdfast_domain::component::ComponentIdentity;

/// The component asked the host for more than it may in one call.
#[derive(Debug, thiserror::Error)]
#[error("it asked the host for something too often")]
pub struct TooManyHostCalls;

/// A record of the signing room could not be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("the signing room failed: {why}")]
pub struct RoomFailure {
    /// The disk is full.
    pub disk_full: bool,
    pub why: String,
}

/// A component's call that did not give an answer. The component is named so
/// that a log line and a metric can point at it; callers are told less.
#[derive(Debug, thiserror::Error)]
#[error("component {component}: {kind}")]
pub struct ComponentError {
    /// Name and version.
    pub component: String,
    /// What happened.
    pub kind: Failure,
    /// The document that it worked on is to blame: it takes more time or
    /// memory than a document may, or leads a reader into a trap.
    pub by_document: bool,
}

/// What happened in the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Fuel, epoch or wall-clock deadline.
    #[error("exceeded its deadline")]
    Timeout,
    /// A panic, a failed allocation or an overrun stack.
    #[error("trapped: {0}")]
    Trap(String),
    /// Asked for more memory than its slot has.
    #[error("exceeded its memory limit: {0}")]
    Memory(String),
    /// Asked the host for something more often than its slot allows.
    #[error("exceeded its limit of host calls")]
    HostCalls,
    /// Its share of instances, memory or time is in use. Not the component's fault.
    #[error("its share of this node is in use")]
    Busy,
    /// The built-in provider that it asked has no room on its disk. Not the component's
    /// fault.
    #[error("the disk of the provider is full")]
    DiskFull,
    /// This node has not loaded it, or cannot.
    #[error("is not available on this node: {0}")]
    Absent(String),
    /// It does not fit its slot.
    #[error("does not fit its slot: {0}")]
    Link(String),
    /// It answered a known question wrongly.
    #[error("failed its canary: {0}")]
    Canary(String),
    /// The answer is larger than the slot allows, or makes no sense.
    #[error("gave an unusable answer: {0}")]
    Answer(String),
}

impl ComponentError {
    pub fn new(identity: &ComponentIdentity, kind: Failure) -> Self {
        Self {
            component: identity.to_string(),
            kind,
            by_document: false,
        }
    }

    /// A component that does not fit its slot.
    pub fn unfit(identity: &ComponentIdentity, error: &wasmtime::Error) -> Self {
        Self::new(identity, Failure::Link(format!("{error:#}")))
    }

    /// A component that this node cannot load.
    pub fn absent(component: impl ToString, why: impl Into<String>) -> Self {
        Self {
            component: component.to_string(),
            kind: Failure::Absent(why.into()),
            by_document: false,
        }
    }

    /// A later call may be answered: nothing is wrong with the component or its input.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Failure::Busy | Failure::Absent(_))
    }

    /// The same, for the next caller.
    pub fn again(&self) -> Self {
        Self {
            component: self.component.clone(),
            kind: match &self.kind {
                Failure::Absent(why) => Failure::Absent(why.clone()),
                other => Failure::Link(other.to_string()),
            },
            by_document: self.by_document,
        }
    }

    /// The failure of a call that worked on somebody's document.
    pub fn on_document(mut self) -> Self {
        self.by_document = matches!(
            self.kind,
            Failure::Timeout | Failure::Trap(_) | Failure::Memory(_)
        );
        self
    }

    /// Logs and counts a failed call, unless it is a candidate's.
    pub fn reported(self, meter: &ComponentMeter) -> Self {
        if !meter.is_reported() {
            return self;
        }
        let (component, kind) = (self.component.as_str(), &self.kind);
        tracing::error!(component, %kind, "component call failed");
        meter.failures.inc();
        self
    }

    /// Sorts a wasmtime error into a [`Failure`].
    pub fn from_call(identity: &ComponentIdentity, error: &wasmtime::Error) -> Self {
        use wasmtime::{PoolConcurrencyLimitError, Trap};
        let text = format!("{error:#}");
        let kind = match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt | Trap::OutOfFuel) => Failure::Timeout,
            Some(trap) => Failure::Trap(trap.to_string()),
            None if error.is::<TooManyHostCalls>() => Failure::HostCalls,
            None if error
                .downcast_ref::<RoomFailure>()
                .is_some_and(|room| room.disk_full) =>
            {
                Failure::DiskFull
            }
            None if error.is::<TooMuchMemory>() => Failure::Memory(text),
            None if error.is::<ShareInUse>() || error.is::<PoolConcurrencyLimitError>() => {
                Failure::Busy
            }
            // Wasmtime's `HostcallFuelExhausted` is private: its text is all there is.
            None if text.contains("fuel allocated for hostcalls") => {
                Failure::Answer("it is larger than its slot allows".into())
            }
            None => Failure::Link(text),
        };
        Self::new(identity, kind)
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::Trap;

    use super::*;

    /// Where an error comes from is found below what callers say about it.
    #[test]
    fn errors_of_calls_are_sorted_by_their_type() {
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
