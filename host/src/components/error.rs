//! What can go wrong with a component, told apart by what it means for callers.

use super::artifact::Identity;
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
    /// Every instance is in use. Not the component's fault.
    #[error("no instance is free")]
    Busy,
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
    pub(super) fn new(identity: &Identity, kind: Failure) -> Self {
        Self {
            component: identity.to_string(),
            kind,
            by_document: false,
        }
    }

    /// The same, for the next who asks for a component that could not be loaded.
    pub(super) fn again(&self) -> Self {
        Self {
            component: self.component.clone(),
            kind: Failure::Link(self.kind.to_string()),
            by_document: false,
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

    /// Logs and counts a failed call.
    pub(super) fn reported(self, meter: &ComponentMeter) -> Self {
        let (component, kind) = (self.component.as_str(), &self.kind);
        tracing::error!(component, %kind, "component call failed");
        meter.failures.inc();
        self
    }

    /// Sorts a wasmtime error into a [`Failure`].
    pub(super) fn from_call(identity: &Identity, error: &wasmtime::Error) -> Self {
        use wasmtime::Trap;
        let text = format!("{error:#}");
        let kind = match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt | Trap::OutOfFuel) => Failure::Timeout,
            Some(trap) => Failure::Trap(trap.to_string()),
            None if text.contains("forcing trap when growing memory") => Failure::Memory(text),
            None if text.contains("maximum concurrent") => Failure::Busy,
            None => Failure::Link(text),
        };
        Self::new(identity, kind)
    }
}
