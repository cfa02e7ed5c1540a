//! Bindings generated from the WIT contract, and the component's export.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/control"
)]

wit_bindgen::generate!({
    path: "../../wit/control",
    world: "control-rules",
    additional_derives: [PartialEq, Eq],
    generate_unused_types: true,
});

/// Acts, facts and decisions, documented in `wit/control/control.wit`.
pub mod types {
    pub use super::holdfast::control::types::{
        Act, ControlFacts, Decision, Obstacle, Party, Refusal, RefusalReason, Stage,
    };
}

#[cfg(target_arch = "wasm32")]
mod component {
    use super::types::{Act, ControlFacts, Decision};

    struct ControlComponent;

    impl super::exports::holdfast::control::control::Guest for ControlComponent {
        fn decide(act: Act, facts: ControlFacts) -> Decision {
            crate::decide(act, &facts)
        }
    }

    super::export!(ControlComponent with_types_in super);
}
