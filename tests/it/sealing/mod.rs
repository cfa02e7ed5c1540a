//! Seals and time stamps.

mod seals;
mod trusted_time;
