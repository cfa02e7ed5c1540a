//! Components that the tests need and nobody else.

/// A signing plugin that does what its setting `behaviour` says, and without one
/// refuses everything.
pub const MISBEHAVING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/misbehaving.wasm"));
