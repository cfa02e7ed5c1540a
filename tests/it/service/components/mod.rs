//! Components of organizations and operators.

mod approvers;
mod attestations;
mod behaviour;
mod calendar;
mod changes;
mod decisions;
pub mod registry;
pub mod state;
mod uploads;
mod vectors;
