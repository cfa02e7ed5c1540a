//! The operator's tool.

mod dev;
mod import;
mod listen;
pub mod operator;
pub mod plugin_kit;
mod registries;
pub mod rules_kit;
