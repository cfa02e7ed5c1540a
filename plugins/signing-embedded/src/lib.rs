//! Signing in the built-in signing room: what stands behind instance `embedded`.
//!
//! The host keeps the room's records and lends them (`holdfast:host/room`); which template or
//! submission a request may make of them is decided here.
//!
//! | File | Holds |
//! |---|---|
//! | `component.rs` | the functions of the world |
//! | `templates.rs` | templates and their fields |
//! | `submissions.rs` | who is invited to sign what, and how it stands |

#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(target_arch = "wasm32")]
mod submissions;
#[cfg(target_arch = "wasm32")]
mod templates;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
