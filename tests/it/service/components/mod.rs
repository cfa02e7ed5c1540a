//! Components of organizations and operators.

pub mod registry;
mod uploads;
