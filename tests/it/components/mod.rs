//! Components: built-in ones, and those of third parties.

mod artifacts;
mod compatibility;
mod documents;
mod docuseal;
pub mod isolation;
pub mod misbehaving;
