//! Layers and extractors of every request: credentials, rate limits, origin, bodies.

pub mod act;
pub mod bodies;
pub mod caller;
pub mod downloads;
pub mod extract;
pub mod limits;
pub mod notes;
pub mod once;
pub mod origin;
pub mod unknown;
