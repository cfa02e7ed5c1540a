//! What every layer of the host uses: settings, keys of the installation, clients' TLS, measures and fair scheduling.
//!
//! Nothing here knows a contract. Each file says what it is for; ARCHITECTURE.md, "Layers", lists them.

#![allow(missing_docs, reason = "errors are documented by their messages")]

pub mod config;
pub mod disk;
pub mod fair_queue;
pub mod faults;
pub mod keys;
pub mod metrics;
pub mod publishers;
pub mod tls;
pub mod traces;
