//! The control rules: who may decide about an authoritative copy (UCC §9-105, with the amendments of
//! 2022).
//!
//! The host stores who has control, and asks before every act. Each rule names its source.

mod bindings;
mod rules;
#[cfg(test)]
mod tests;

pub use bindings::types;
pub use rules::decide;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
