//! The operator's tool.

pub mod operator;
mod plugin_kit;
mod rules_kit;
