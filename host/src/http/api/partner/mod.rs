//! The partner surface: `/partner/*`, with an API key.

pub mod customers;
pub mod envelopes;
pub mod templates;
pub mod vault;
pub(super) mod views;
