//! The lifecycle rules: which moves an envelope or a bulk batch may make.
//!
//! This is the only place where the transition tables of the specification
//! ("Envelope status", "Bulk batch status") are written down. The host asks,
//! and then writes the answer with compare-and-swap on the status it asked
//! about.

mod batch;
mod bindings;
mod envelope;
mod refusals;
#[cfg(test)]
mod tests;

pub use batch::batch;
pub use bindings::types;
pub use envelope::envelope;
pub use refusals::status_text;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
