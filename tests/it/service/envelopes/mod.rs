//! Envelopes until they are signed.

mod contract_dates;
mod durability;
mod lifecycle;
mod sending;
pub mod truth;
mod verdicts;
