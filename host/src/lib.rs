//! holdfast.
pub mod config;
pub mod components;
mod delivery;
pub mod domain;
