//! Compliance rules after the Uniform Commercial Code as amended in 2022: §9-105
//! "Control of Electronic Copy of Record Evidencing Chattel Paper", as Delaware,
//! Vermont and others have adopted it and as it is in force in New York since June
//! 2026.
//!
//! The amended section asks in (a) that the system reliably establishes the
//! purchaser as the person to which the authoritative electronic copy was assigned,
//! and says in (b) and in (c), independently of each other, when a system does. A
//! record that passes here satisfies both.
//!
//! How checks are run, scored and certified is the same as for the default rules,
//! and the same source.

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
