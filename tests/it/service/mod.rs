//! What a caller can ask for.

mod access;
mod bulk;
pub mod components;
mod customers;
mod envelopes;
mod idempotency;
mod kba;
mod payments;
mod signing;
mod templates;
mod vault;
mod webhooks;
