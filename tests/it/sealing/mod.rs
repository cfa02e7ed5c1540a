//! Seals and time stamps.

mod existing;
pub mod seals;
mod trusted_time;
