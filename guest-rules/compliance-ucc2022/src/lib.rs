//! Compliance rules for the Uniform Commercial Code as amended in 2022: §9-105 "Control of
//! Electronic Copy of Record Evidencing Chattel Paper", as adopted by Delaware, Vermont and other
//! states and in force in New York since June 2026.
//!
//! Paragraph (a) requires that the system reliably establish the purchaser as the person to which
//! the authoritative electronic copy was assigned; (b) and (c) are two independent tests for that.
//! A record that passes here satisfies both.
//!
//! Running, scoring and certifying the checks works as in the default rules and uses the same
//! source files.

#[path = "../../compliance/src/bindings.rs"]
mod bindings;
#[path = "../../compliance/src/certificate.rs"]
mod certificate;
mod checks;
#[path = "../../compliance/src/evaluate.rs"]
mod evaluate;
#[path = "../../compliance/src/record.rs"]
mod record;
#[cfg(test)]
mod tests;

pub use bindings::types;
pub use certificate::certificate;
pub use evaluate::evaluate;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
