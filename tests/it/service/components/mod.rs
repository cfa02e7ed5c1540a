//! Components of organizations and operators.

mod attestations;
mod behaviour;
mod calendar;
mod changes;
mod decisions;
pub mod registry;
pub mod state;
mod uploads;
mod vectors;
