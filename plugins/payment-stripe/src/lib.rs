//! Payments at signing through Stripe's HTTP API: one payment intent for each
//! payment, as a destination charge with a platform fee where the money goes to a
//! connected account.
//!
//! | File | Holds |
//! |---|---|
//! | `api.rs` | one request and its answer: authentication, idempotency, errors |
//! | `form.rs` | bodies as Stripe takes them |
//! | `intent.rs` | creating and reading payment intents |
//! | `callback.rs` | verifying a webhook and reading what it is about |
//!
//! Settings: `base_url` (`https://api.stripe.com`), `publishable_key` (shown to payers'
//! browsers), `script` (Stripe's library for browsers, when it is not at its own place),
//! `payment_page` (pages for payers, by intent; then no script is needed). Secrets: `secret_key`, `webhook_secret`.

#[cfg(target_arch = "wasm32")]
mod api;
#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(any(test, target_arch = "wasm32"))]
mod callback;
#[cfg(target_arch = "wasm32")]
mod component;
#[cfg(any(test, target_arch = "wasm32"))]
mod form;
#[cfg(any(test, target_arch = "wasm32"))]
mod intent;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
