//! Envelopes until they are signed.

mod durability;
mod lifecycle;
mod sending;
pub mod truth;
mod verdicts;
