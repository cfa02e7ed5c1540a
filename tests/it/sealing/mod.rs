//! Seals and time stamps.

pub mod existing;
mod long_term;
mod read_alike;
pub mod seals;
mod trusted_time;
