//! Use cases of the API, in folders like the areas of the crates `service` and `platform`.

mod access;
pub mod bulk;
pub mod components;
pub mod control;
mod customers;
mod envelopes;
mod facts;
pub mod funding;
mod idempotency;
pub mod imports;
mod kba;
mod payments;
mod persons;
mod retention;
mod search;
pub mod signing;
mod templates;
pub mod test_mode;
mod vault;
mod webhooks;
