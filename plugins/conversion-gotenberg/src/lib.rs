//! PDFs of word processor documents through the LibreOffice route of Gotenberg's HTTP API.
//!
//! | File | Holds |
//! |---|---|
//! | `component.rs` | the request, and the meaning of responses |
//! | `form.rs` | the form around the document |
//!
//! Setting: `base_url`. For a service with basic authentication also the setting `username` and the
//! secret `password`.

#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(any(test, target_arch = "wasm32"))]
mod form;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
