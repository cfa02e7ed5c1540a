//! Compliance rules that an organization declares in a file, without a programming language: the
//! checks of a built-in pack with other texts, references, weights and further conditions, and
//! checks of its own. Conditions are expressions of the Common Expression Language.
//!
//! The component is built once. `holdfast component build` writes the rules into a space of its
//! bytes that is reserved for them (`holdfast-conditions`).

#[path = "../../compliance/src/bindings.rs"]
mod bindings;
#[path = "../../compliance/src/certificate.rs"]
mod certificate;
#[path = "../../compliance/src/checks.rs"]
mod checks;
mod evaluate;
#[path = "../../compliance/src/record.rs"]
mod record;
mod record_facts;
mod rules;
#[path = "../../compliance/src/evaluate.rs"]
mod specified;
#[cfg(test)]
mod tests;

pub use bindings::types;
pub use certificate::certificate;
pub use evaluate::{evaluate, evaluate_with, requirements};
pub use record_facts::{VARIABLES, conditions, set_check};
pub use rules::{AddedCheck, ChangedCheck, DeclaredRules};

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
