//! The integration tests: one program, folders like `host/src`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod components;
mod crash;
mod journeys;
mod operator;
mod partner;
mod signing;
mod store;
mod support;
mod vault;
