//! Seals and time stamps.

pub mod existing;
mod read_alike;
pub mod seals;
mod trusted_time;
