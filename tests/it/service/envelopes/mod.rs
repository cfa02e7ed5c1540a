//! Envelopes until they are signed.

mod lifecycle;
mod sending;
mod verdicts;
