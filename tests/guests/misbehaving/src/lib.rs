//! A signing plugin that misbehaves in the way its setting `behaviour` names. Without that
//! setting it refuses every call, like a plugin without a vendor.

#[cfg(target_arch = "wasm32")]
mod component;

#[cfg(target_arch = "wasm32")]
use holdfast_plugin_sdk as _;
