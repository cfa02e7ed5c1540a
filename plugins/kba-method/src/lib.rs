//! Identity questions at signing through Method's HTTP API: the plugin registers a person, verifies
//! their phone with a code, and then asks questions from their history.
//!
//! | File | Holds |
//! |---|---|
//! | `api.rs` | requests and responses: authentication, errors |
//! | `wire.rs` | responses of Method and the meaning of its errors |
//! | `identity.rs` | identity fields of a signer |
//!
//! Settings: `base_url` (`https://production.methodfi.com`), `identity_fields` (comma-separated
//! names of the fields to ask for; all fields by default). Secret: `secret_key`.

#![cfg_attr(
    not(target_arch = "wasm32"),
    allow(dead_code, reason = "what only the component uses")
)]

#[cfg(target_arch = "wasm32")]
mod api;
#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(any(test, target_arch = "wasm32"))]
mod identity;
#[cfg(any(test, target_arch = "wasm32"))]
mod wire;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
