//! The operator's tool.

pub mod operator;
mod plugin_kit;
