//! Bindings generated from the WIT contract, and the component's export.

#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from wit/compliance"
)]

wit_bindgen::generate!({
    path: "../../wit/compliance",
    world: "compliance-rules",
    additional_derives: [PartialEq, Eq, serde::Serialize, serde::Deserialize],
    generate_unused_types: true,
});

/// Facts and evaluations, documented in `wit/compliance/compliance.wit`.
pub mod types {
    pub use super::exports::holdfast::compliance::compliance::ComponentIdentity;
    pub use super::holdfast::compliance::types::{
        Check, Custodian, CustodianStatus, EnvelopeFacts, EnvelopeStatus, Evaluation,
        IdentityVerification, SecuredParty, SignedDocument, Submitter,
    };
}

#[cfg(target_arch = "wasm32")]
mod component {
    use super::types::{ComponentIdentity, EnvelopeFacts, Evaluation};

    struct ComplianceComponent;

    impl super::exports::holdfast::compliance::compliance::Guest for ComplianceComponent {
        fn evaluate(facts: EnvelopeFacts) -> Evaluation {
            crate::evaluate(&facts)
        }

        fn certificate(
            facts: EnvelopeFacts,
            issued_at: String,
            issuer: String,
            component: ComponentIdentity,
        ) -> String {
            crate::certificate(&facts, &issued_at, &issuer, &component)
        }
    }

    super::export!(ComplianceComponent with_types_in super);
}
