//! Components of organizations and operators.

mod behaviour;
mod calendar;
mod changes;
mod decisions;
pub mod registry;
mod uploads;
mod vectors;
