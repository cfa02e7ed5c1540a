//! Signing through DocuSeal's HTTP API.
//!
//! | File | Holds |
//! |---|---|
//! | `api.rs` | requests and responses: authentication, errors |
//! | `wire.rs` | the JSON shapes of DocuSeal |
//! | `values.rs` | conversion between texts and DocuSeal's JSON values |
//! | `templates.rs`, `submissions.rs` | the functions of the world |
//! | `callback.rs` | verifying webhooks |
//!
//! Settings: `base_url`. Secrets: `api_key`, `webhook_secret`. If documents are on another host
//! than the API, the instance has to allow that host too.

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
