//! Payments at signing through Stripe's HTTP API. Each payment has one payment intent. If the money
//! goes to a connected account, it is a destination charge with a platform fee.
//!
//! | File | Holds |
//! |---|---|
//! | `api.rs` | requests and responses: authentication, idempotency, errors |
//! | `intent.rs` | creating and reading payment intents |
//! | `callback.rs` | verifying and parsing webhooks |
//!
//! Settings: `base_url` (`https://api.stripe.com`), `publishable_key` (visible in payers'
//! browsers), `script` (URL of Stripe's JavaScript library, if not the usual one), `payment_page`
//! (pages for payers, by intent; no script is needed then). Secrets: `secret_key`,
//! `webhook_secret`.

#[cfg(target_arch = "wasm32")]
mod api;
#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(any(test, target_arch = "wasm32"))]
mod callback;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(any(test, target_arch = "wasm32"))]
mod intent;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
