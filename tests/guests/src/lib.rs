//! Components that the tests need and nobody else.

/// A signing plugin that does what its setting `behaviour` says, and without one
/// refuses everything.
pub const MISBEHAVING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/misbehaving.wasm"));

/// Compliance rules that want an identifier of the secured party, and waive every check of an
/// envelope that is called `Waived…`.
pub const OPINIONATED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/opinionated.wasm"));

/// Lifecycle rules that let an unsigned document into the vault.
pub const LENIENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lenient.wasm"));
