//! Seals and time stamps.

pub mod existing;
pub mod seals;
mod trusted_time;
