//! Envelopes until they are signed.

mod contract_dates;
mod durability;
mod lifecycle;
mod sending;
mod successors;
pub mod truth;
mod verdicts;
