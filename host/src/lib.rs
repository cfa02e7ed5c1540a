//! Electronic signatures, tamper-evident authoritative copies, and their proof.
//!
//! | Module | Holds |
//! |---|---|
//! | [`config`] | settings, read and checked once |
//! | [`app`] | everything wired together |
//! | [`domain`] | the nouns; knows no I/O |
//! | `http` | the only code that knows axum |
//! | `service` | what a caller can ask for, one file per intention |
//! | [`components`] | WebAssembly: engines, typed calls, egress |
//! | `room` | the built-in signing room, a provider like any other |
//! | `sandbox` | payment and identity providers for development |
//! | `store` | every line of SQL |
//! | [`files`] | stored bytes |
//! | [`backup`] | copying a running installation, and putting the copy back |
//! | `disk` | what happens when a disk fails or is full |
//! | `fair_queue` | turns of organizations at what is scarce |
//! | `keys` | the secrets of this installation, and replacing them |
//! | `faults` | deaths at named places, in debug builds |
//! | [`delivery`] | what goes out to addresses that others chose |
//! | `mail` | what mails say and how they leave |
//! | `worker` | work that was committed with the change that asked for it |
//! | [`evidence`] | checking a released bundle, offline |
//! | [`cli`] | the operator's commands |
//!
//! Arrows point one way: `http` and `worker` call `service`; `service` calls
//! `components`, `store`, `files`; all of them may use `domain`.

pub mod app;
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
#[allow(missing_docs, reason = "plain records; each type says what it is")]
pub mod domain;
pub mod evidence;
mod fair_queue;
mod faults;
#[allow(missing_docs, reason = "public for tests that let a store fail")]
pub mod files;
#[allow(missing_docs, reason = "handlers are named by their routes")]
pub mod http;
mod keys;
mod mail;
pub mod metrics;
mod node;
mod patience;
mod room;
mod sandbox;
pub mod sealing;
pub mod server;
mod service;
#[allow(missing_docs, reason = "functions are named by their statement")]
pub mod store;
mod traces;
mod worker;

#[cfg(test)]
fn test_folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
