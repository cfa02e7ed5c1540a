//! Seals and time stamps.

mod existing;
mod seals;
mod trusted_time;
