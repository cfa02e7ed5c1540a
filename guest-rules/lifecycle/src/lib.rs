//! The lifecycle rules: the transitions that an envelope or a bulk batch may make.
//!
//! This is the only place that defines the transition tables of the specification ("Envelope
//! status", "Bulk batch status"). The host asks for a transition and then applies it with
//! compare-and-swap on the status it asked about.

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
