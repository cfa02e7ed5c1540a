//! Use cases on contracts, one file each: templates, envelopes, signing, vault and control. Contains neither HTTP
//! handlers nor SQL.
//!
//! What they stand on is in the crate `holdfast-platform`. ARCHITECTURE.md, "Areas of `service`", lists the areas of both:
//! each imports only those below it. `app.rs` wires their state.

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
pub mod gauges;
pub mod inspection;
pub mod installation;
pub mod signing;
pub mod templates;
pub mod test_mode;
pub mod vault;

pub use app::{App, ServiceState};
