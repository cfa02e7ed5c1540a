//! Typed calls of WebAssembly components, activations, and the host interfaces of providers.
//! Engines, artifacts and rules are in the crate `holdfast-rules`, parts of which are re-exported for the crates above.
//!
//! | File | Holds |
//! |---|---|
//! | `bindings.rs` | `bindgen!` output for the provider worlds of `wit/` |
//! | `registry.rs` | all components of this process, and the active ones by organization |
//! | `documents.rs` | calls of the slots that work on documents |
//! | `drawing.rs` | pages on which two placement components differ, as SVG |
//! | `providers/` | calls of provider plugins, a file for each kind |
//! | `instance_log.rs` | log of the organizations' provider instances |
//! | `lent.rs` | host interfaces for providers: blobs, secrets, settings, clock, log |
//! | `room.rs` | host interface for the component of the signing room |
//! | `wasi.rs` | WASI, for languages that require it |
//! | `egress.rs` | outgoing requests of providers, and their allow-list |
//! | `conformance.rs` | test vectors that a candidate must pass |
//! | `script.rs` | scripted external services, written by plugin authors |
//!
//! Begin with [`ComponentRegistry`]: a method for each slot returns the component that is active for an organization.
//! Calls of providers take a lease ([`providers::ProviderLease`]): settings, secrets, network access and clock.
//! `holdfast_platform::components` decides which component is active, and replaces the [`ActivationTable`].
//!
//! Every call runs in a fresh instance: no state passes between
//! organizations, and a trap affects only one call.

#![allow(
    missing_docs,
    reason = "documented by its files; public for benches and tests"
)]

mod bindings;
mod conformance;
mod documents;
pub mod drawing;
pub mod egress;
pub mod instance_log;
mod lent;
pub mod providers;
mod registry;
pub mod room;
pub mod script;
mod wasi;

pub use conformance::ExaminedComponent;
pub use documents::{AnswerRules, Documents, Placement, WordedMark, early_style};
pub use holdfast_rules::background;
pub use holdfast_rules::contract_facts;
pub use holdfast_rules::{
    CallFailure, ComponentArtifact, ComponentError, EngineSet, RulesBase, answers, behaviour,
    branches, built_in, compiler, compliance_alone, embedded, inspection, is_reserved_name,
    known_compliance, known_digests, load_compliance, replay, room_component, rules,
    rules_template, shared_files, values, vectors, worlds,
};
use holdfast_rules::{artifact, baseline, engine, error, gate, limits, program, slot};
pub use registry::{ActivationTable, ComponentRegistry, LiveActivation};
