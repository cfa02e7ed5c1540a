//! The operator's tool.

pub mod operator;
pub mod plugin_kit;
mod registries;
pub mod rules_kit;
