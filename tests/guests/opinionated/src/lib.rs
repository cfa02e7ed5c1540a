//! Compliance rules that are stricter than the specification for every record, and waive every
//! check of a record with a name that is in no published vector.

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
