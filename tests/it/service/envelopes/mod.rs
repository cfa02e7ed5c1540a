//! Envelopes until they are signed.

mod durability;
mod lifecycle;
mod sending;
mod truth;
mod verdicts;
