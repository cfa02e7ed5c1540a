//! Envelopes until they are signed.

mod durability;
mod lifecycle;
mod planned_sending;
mod sending;
pub mod truth;
mod verdicts;
