//! Text messages through the Messages resource of Twilio's HTTP API, and of services that copy it.
//!
//! | File | Holds |
//! |---|---|
//! | `component.rs` | the request |
//! | `wire.rs` | the response and the meaning of errors |
//!
//! Settings: `base_url` (`https://api.twilio.com`), `account_sid`, and the sender: `from` (a number or
//! a sender id) or `messaging_service_sid`. `api_key_sid` names the API key that `auth_token` belongs
//! to, if it is not the account's own. Secret: `auth_token`.

#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(any(test, target_arch = "wasm32"))]
mod wire;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
