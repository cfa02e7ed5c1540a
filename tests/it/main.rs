//! The integration tests: one program, folders like the modules in ARCHITECTURE.md, "Layers".

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod backup;
#[path = "../../guest-rules/reader/tests/support/mod.rs"]
mod builder;
mod claims;
mod cli;
mod components;
mod config;
#[path = "../../guest-rules/reader/tests/support/damage.rs"]
mod damage;
mod delivery;
mod docs;
mod evidence;
mod files;
mod guides;
mod http;
mod journeys;
mod keys;
mod layers;
mod mail;
mod moving;
mod packaging;
mod release;
mod room;
mod sdk;
mod sealing;
mod service;
mod store;
mod support;
mod traces;
