//! Use cases on contracts, one file each: templates, envelopes, signing, vault and control. Contains neither HTTP
//! handlers nor SQL.
//!
//! | Modules | Hold |
//! |---|---|
//! | `envelopes` | creating, sending, voiding and judging contracts |
//! | `signing` | visits, callbacks and polling of providers, reminders, corrections |
//! | `templates`, `builder` | templates, packages, pictures of pages; the field builder |
//! | `bulk` | one document for many clients |
//! | `imports` | records of documents that were signed in other systems |
//! | `vault` | vault-in, copies, certificates, release, integrity |
//! | `facts` | facts of contracts, and the maps that they are read with |
//! | `funding` | checks by funding rules, stipulations, packs of lenders |
//! | `control`, `inspection` | parties of a record and their acts; looks, statements, pools |
//! | `persons` | data held about a person: export and erasure |
//! | `retention` | legal holds, retention schedules, records that are due, destruction |
//! | `tapes` | tables that a party writes itself, compared with the contracts of its records |
//! | `customers`, `test_mode` | customers and their files; test data |
//! | `installation`, `gauges`, `doctor` | the operator's view, metrics, health checks |
//!
//! A use case is a public function that the API, a page, a job or a command calls. It gets the context
//! ([`Core`](holdfast_platform::Core)) and mostly a [`Caller`](holdfast_platform::Caller), asks the rules first, then
//! acts. [`App`] is the context with the state of the areas (`app.rs`).
//!
//! Areas stand on the crate `holdfast-platform`. ARCHITECTURE.md, "Areas of `service`", lists the areas of both: each
//! imports only those below it. `docs/walks.md` follows requests through them.

#![allow(
    missing_docs,
    reason = "use cases are named by their functions, and arguments by their types"
)]

mod app;
pub mod builder;
pub mod bulk;
pub mod control;
pub mod customers;
pub mod doctor;
pub mod envelopes;
pub mod facts;
pub mod funding;
pub mod gauges;
pub mod imports;
pub mod inspection;
pub mod installation;
pub mod persons;
pub mod retention;
pub mod signing;
pub mod tapes;
pub mod templates;
pub mod test_mode;
pub mod vault;

pub use app::{App, ServiceState};
