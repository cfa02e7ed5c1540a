//! Identity questions at signing through Method's HTTP API: a person is made known,
//! their phone is verified by a code, then questions from their history are asked.
//!
//! | File | Holds |
//! |---|---|
//! | `api.rs` | one request and its answer: authentication, errors |
//! | `wire.rs` | what Method answers, and what its errors mean |
//! | `identity.rs` | what has to be known of a signer, and how Method takes it |
//!
//! Settings: `base_url` (`https://production.methodfi.com`), `identity_fields` (names
//! of the fields to ask for, with commas between; all of them when absent). Secret:
//! `secret_key`.

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
