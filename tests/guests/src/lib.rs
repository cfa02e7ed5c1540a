//! Components that only the tests use.

/// A signing plugin that misbehaves as its setting `behaviour` asks; without the setting it
/// refuses every call.
pub const MISBEHAVING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/misbehaving.wasm"));

/// Compliance rules that demand an identifier of the secured party, and waive every check of an
/// envelope with a name that starts with `Waived`.
pub const OPINIONATED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/opinionated.wasm"));

/// Lifecycle rules that let an unsigned document into the vault.
pub const LENIENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lenient.wasm"));
