//! Components of organizations and operators.

mod behaviour;
mod calendar;
mod changes;
mod decisions;
pub mod registry;
mod state;
mod uploads;
mod vectors;
