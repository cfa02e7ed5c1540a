//! Electronic signatures, tamper-evident authoritative copies, and their proof.
//!
//! `ARCHITECTURE.md` describes the modules ("The map") and their allowed imports ("Layers").

mod allocator;
pub mod backup;
pub mod cli;
#[allow(
    missing_docs,
    reason = "documented by its files; public for benches and tests"
)]
pub mod components;
pub mod config;
#[allow(
    missing_docs,
    reason = "public for tests that look names up themselves"
)]
pub mod delivery;
mod disk;
pub mod doctor;
mod fair_queue;
mod faults;
#[allow(missing_docs, reason = "public for tests that let a store fail")]
pub mod files;
#[allow(missing_docs, reason = "handlers are named by their routes")]
pub mod http;
mod keys;
mod mail;
pub mod metrics;
mod publishers;
mod room;
mod sandbox;
pub mod sealing;
pub mod server;
mod service;
pub mod start;
#[allow(missing_docs, reason = "functions are named by their statement")]
pub mod store;
mod texts;
mod tls;
mod traces;
mod worker;

pub use holdfast_domain as domain;
pub use holdfast_evidence as evidence;
use holdfast_rules as rules;
use holdfast_verify as verify;

#[cfg(test)]
fn test_folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
