//! Components of organizations and operators.

mod behaviour;
mod changes;
pub mod registry;
mod uploads;
mod vectors;
