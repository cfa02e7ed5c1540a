//! What every layer of the host uses: settings, keys of the installation, clients' TLS, measures and fair scheduling.
//! Nothing here knows a contract.
//!
//! | Module | Holds | Begin with |
//! |---|---|---|
//! | `config` | settings, from a file and the environment | [`config::Config::load`] |
//! | `keys` | keys in the data folder, and those derived from them | [`keys::InstallationKeys`] |
//! | `tls` | cryptography and roots of clients | [`tls::use_one`] |
//! | `metrics` | the metrics of `/metrics`, a row of a macro each | [`metrics::Metrics`] |
//! | `traces` | spans for an OpenTelemetry collector | [`traces::TraceExporter`] |
//! | `fair_queue` | turns of organizations at a scarce resource | [`fair_queue::FairQueue`] |
//! | `publishers` | signatures on components and states | [`publishers::BundleVerifier`] |
//! | `disk` | private files, full and failing disks | [`disk::is_full`], [`disk::failed`] |
//! | `faults` | places where crash tests kill the process | [`faults::pass`] |
//!
//! Settings are checked when they are loaded, so other code may rely on them. A failing disk ends the process; a full
//! one is an error. In release builds [`faults::pass`] does nothing.
//!
//! Below are `holdfast-domain` and `holdfast-rules`. ARCHITECTURE.md, "Layers", has a row for each module.

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
