//! Components of organizations and operators.

mod changes;
pub mod registry;
mod uploads;
