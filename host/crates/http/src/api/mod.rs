//! The REST API: one handler per operation, with JSON answers.

mod callbacks;
mod component_changes;
mod component_state;
mod components;
mod decisions;
mod downloads;
mod embed;
mod kba;
pub mod ledger;
pub mod partner;
mod payments;
pub mod routes;
pub mod web;
mod webhooks;
