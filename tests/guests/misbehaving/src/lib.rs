//! A signing plugin that does what no plugin should: what its setting `behaviour`
//! says. Without one it refuses everything, as a plugin without a vendor does.

#[cfg(target_arch = "wasm32")]
mod component;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
