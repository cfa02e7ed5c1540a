//! What is around every request: who asks, how often and from where, and what was sent.

pub mod bodies;
pub mod caller;
pub mod extract;
pub mod limits;
pub mod notes;
pub mod once;
pub mod origin;
pub mod unknown;
