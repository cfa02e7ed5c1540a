//! The compliance rules: eight checks over an envelope's record, and the certificate that reports
//! their results.
//!
//! Source: the specification's table "The 8 checks" and its section
//! "Compliance certificate". The requirement names, references and their
//! numbering are returned exactly as specified; where the statute numbers its
//! paragraphs differently, the true paragraph is in the certificate's
//! `statute_reference`.
//!
//! Nothing here reads a clock or a random number generator: the same record always gives the same
//! result.

mod bindings;
mod certificate;
mod checks;
mod evaluate;
mod record;
#[cfg(test)]
mod tests;

pub use bindings::types;
pub use certificate::certificate;
pub use evaluate::evaluate;
pub use record::status_text;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
