//! Signing in the built-in signing room: the component of instance `embedded`.
//!
//! The host stores the room's records and provides access to them (`holdfast:host/room`). This
//! component decides which templates and submissions a request may make of them.
//!
//! | File | Holds |
//! |---|---|
//! | `component.rs` | the functions of the world |
//! | `templates.rs` | templates and their fields |
//! | `submissions.rs` | submissions, their invitations and their status |

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
