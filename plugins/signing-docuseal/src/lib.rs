//! Signing through DocuSeal's HTTP API.
//!
//! | File | Holds |
//! |---|---|
//! | `api.rs` | one request and its answer: authentication, errors |
//! | `wire.rs` | the JSON shapes of DocuSeal |
//! | `values.rs` | our texts and DocuSeal's JSON values |
//! | `templates.rs`, `submissions.rs` | what the host asks for |
//! | `callback.rs` | verifying a webhook |
//!
//! Settings: `base_url`. Secrets: `api_key`, `webhook_secret`. An instance whose
//! documents are on another host than its API has to allow that host too.

#[cfg(target_arch = "wasm32")]
mod api;
#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(any(test, target_arch = "wasm32"))]
mod callback;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(target_arch = "wasm32")]
mod submissions;
#[cfg(target_arch = "wasm32")]
mod templates;
#[cfg(any(test, target_arch = "wasm32"))]
mod values;
#[cfg(any(test, target_arch = "wasm32"))]
mod wire;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
