//! Bindings generated from the WIT contract, and the component's export.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/lifecycle"
)]

wit_bindgen::generate!({
    path: "../../wit/lifecycle",
    world: "lifecycle-rules",
    additional_derives: [PartialEq, Eq],
    generate_unused_types: true,
});

/// Statuses, triggers and refusals, documented in `wit/lifecycle/lifecycle.wit`.
pub mod types {
    pub use super::holdfast::lifecycle::types::{
        BatchStatus, BatchTrigger, EnvelopeFacts, EnvelopeKind, EnvelopeStatus, EnvelopeTrigger,
        PaymentStatus, Refusal, RefusalReason,
    };
}

#[cfg(target_arch = "wasm32")]
mod component {
    use super::types::{
        BatchStatus, BatchTrigger, EnvelopeFacts, EnvelopeStatus, EnvelopeTrigger, Refusal,
    };

    struct LifecycleComponent;

    impl super::exports::holdfast::lifecycle::lifecycle::Guest for LifecycleComponent {
        fn envelope(
            current: Option<EnvelopeStatus>,
            trigger: EnvelopeTrigger,
            facts: EnvelopeFacts,
        ) -> Result<EnvelopeStatus, Refusal> {
            crate::envelope(current, trigger, &facts)
        }

        fn batch(
            current: Option<BatchStatus>,
            trigger: BatchTrigger,
        ) -> Result<BatchStatus, Refusal> {
            crate::batch(current, trigger)
        }
    }

    super::export!(LifecycleComponent with_types_in super);
}
