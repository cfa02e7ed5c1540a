//! Electronic signatures, tamper-evident authoritative copies, and their proof.
//!
//! This crate is the program: commands, wiring, server and background tasks. The layers below are crates in
//! `host/crates`; `ARCHITECTURE.md` describes them ("The map") and their allowed imports ("Layers").

mod allocator;
pub mod backup;
pub mod cli;
mod moving;
pub mod server;
pub mod start;
mod worker;

// One name for tests and benches.
pub use holdfast_adapters::{delivery, files, sealing};
pub use holdfast_base::{config, metrics};
pub use holdfast_components as components;
pub use holdfast_domain as domain;
pub use holdfast_evidence as evidence;
pub use holdfast_http as http;
pub use holdfast_service::{doctor, retention, vault};
pub use holdfast_store as store;
