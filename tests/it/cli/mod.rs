//! The operator's tool.

pub mod operator;
pub mod plugin_kit;
mod rules_kit;
