//! Compliance rules that are stricter than the specification, except that they waive all checks
//! of an envelope named `Waived…`, a name that no published vector has.

#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/compliance/src/certificate.rs"]
mod certificate;
#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/compliance/src/checks.rs"]
mod checks;
#[cfg(target_arch = "wasm32")]
mod evaluate;
#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/compliance/src/record.rs"]
mod record;
#[cfg(target_arch = "wasm32")]
#[path = "../../../../guest-rules/compliance/src/evaluate.rs"]
mod specified;

#[cfg(target_arch = "wasm32")]
use bindings::types;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
