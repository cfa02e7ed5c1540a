//! Declared compliance rules that begin with the pack for the Uniform Commercial Code as amended in
//! 2022. Everything else is as in `holdfast-declared`.

#![allow(dead_code, reason = "the host writes rules with holdfast-declared")]

#[path = "../../compliance/src/bindings.rs"]
mod bindings;
#[path = "../../compliance/src/certificate.rs"]
mod certificate;
#[path = "../../compliance-ucc2022/src/checks.rs"]
mod checks;
#[path = "../../declared/src/evaluate.rs"]
mod evaluate;
#[path = "../../compliance/src/record.rs"]
mod record;
#[path = "../../declared/src/record_facts.rs"]
mod record_facts;
#[path = "../../declared/src/rules.rs"]
mod rules;
#[path = "../../compliance/src/evaluate.rs"]
mod specified;

pub use bindings::types;
pub use certificate::certificate;
pub use evaluate::{evaluate, requirements};

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
