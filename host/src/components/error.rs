//! What can go wrong with a component, told apart by what it means for callers.

use super::engine::TooMuchMemory;
use super::gate::ShareInUse;
use super::lent::TooManyHostCalls;
use super::room::RoomFailure;
use crate::domain::component::ComponentIdentity;
use crate::metrics::ComponentMeter;

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
    pub(super) fn new(identity: &ComponentIdentity, kind: Failure) -> Self {
        Self {
            component: identity.to_string(),
            kind,
            by_document: false,
        }
    }

    /// A component that does not fit its slot.
    pub(super) fn unfit(identity: &ComponentIdentity, error: &wasmtime::Error) -> Self {
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
    pub(crate) fn again(&self) -> Self {
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
    pub(super) fn on_document(mut self) -> Self {
        self.by_document = matches!(
            self.kind,
            Failure::Timeout | Failure::Trap(_) | Failure::Memory(_)
        );
        self
    }

    /// Logs and counts a failed call, unless it is a candidate's.
    pub(super) fn reported(self, meter: &ComponentMeter) -> Self {
        if !meter.is_reported() {
            return self;
        }
        let (component, kind) = (self.component.as_str(), &self.kind);
        tracing::error!(component, %kind, "component call failed");
        meter.failures.inc();
        self
    }

    /// Sorts a wasmtime error into a [`Failure`].
    pub(super) fn from_call(identity: &ComponentIdentity, error: &wasmtime::Error) -> Self {
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
    use crate::http::error::HttpError;
    use crate::service::ServiceError;

    fn status(kind: Failure, on_document: bool) -> u16 {
        let error = ComponentError {
            component: "rules 1.0.0".into(),
            kind,
            by_document: false,
        };
        let error = if on_document {
            error.on_document()
        } else {
            error
        };
        HttpError::from(ServiceError::from(error)).status().as_u16()
    }

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

    /// A document that exhausts its reader is refused; a component that fails
    /// on its own account is our fault.
    #[test]
    fn a_document_is_to_blame_for_what_it_exhausts() {
        assert_eq!(status(Failure::Timeout, true), 422);
        assert_eq!(status(Failure::Trap("stack".into()), true), 422);
        assert_eq!(status(Failure::Memory("512 MiB".into()), true), 422);
        assert_eq!(status(Failure::Link("missing".into()), true), 500);
        assert_eq!(status(Failure::Busy, true), 503);
        assert_eq!(status(Failure::Absent("compiling".into()), false), 503);
        assert_eq!(status(Failure::Timeout, false), 500);
    }
}
