//! Checks that acts of several areas make first. They read and decide, and know no act.

pub mod chain;
pub mod copies;
pub mod double_pledge;
pub mod erased_customers;
pub mod four_eyes;
pub mod legal_holds;
pub mod link_codes;
pub mod live_data;
mod names;

pub use names::{ControlView, PartyNames, PartyView, control_view};
