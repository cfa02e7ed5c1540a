//! Compliance rules by jurisdiction and date: a record is evaluated by UCC §9-105 as amended in 2022 if the
//! amendments are in effect in its jurisdiction when the question is asked, and by the section before otherwise.
//!
//! The table of the laws is `laws.txt`. `holdfast component build` writes another table into the component
//! (`space.rs`).

#[path = "../../compliance-ucc2022/src/checks.rs"]
mod amended;
#[path = "../../compliance/src/bindings.rs"]
mod bindings;
mod calendar;
mod certified;
mod checks;
mod evaluate;
mod pack;
#[path = "../../compliance/src/record.rs"]
mod record;
#[path = "../../conditions/src/space.rs"]
mod space;
#[path = "../../compliance/src/checks.rs"]
mod specified;
#[cfg(test)]
mod tests;
#[path = "../../compliance/src/certificate.rs"]
mod written;

pub use bindings::types;
pub use calendar::{BUILT_IN, EnactedLaw, laws};
pub use certified::certificate;
pub use evaluate::evaluate;
pub use space::write as write_laws;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
