//! Bindings generated from the WIT contract, and the component's export.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/funding"
)]

wit_bindgen::generate!({
    path: "../../wit/funding",
    world: "funding-rules",
    additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
    generate_unused_types: true,
});

/// Facts, findings and decisions, documented in `wit/funding/funding.wit`.
pub mod types {
    pub use super::holdfast::funding::types::{
        Area, Assessment, Decision, Fact, FactOrigin, FactStatus, Finding, FundingFacts, Severity,
        Signer, Stage, Stipulation, StipulationState, ValueKind,
    };
}

#[cfg(target_arch = "wasm32")]
mod component {
    use super::types::{Assessment, FundingFacts};

    struct FundingComponent;

    impl super::exports::holdfast::funding::funding::Guest for FundingComponent {
        fn check(facts: FundingFacts) -> Assessment {
            crate::check(&facts)
        }
    }

    super::export!(FundingComponent with_types_in super);
}
