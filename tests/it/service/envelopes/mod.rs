//! Envelopes until they are signed.

mod durability;
mod lifecycle;
mod sending;
mod successors;
pub mod truth;
mod verdicts;
