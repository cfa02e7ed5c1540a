//! Components: what is built in, and what others write.

mod artifacts;
mod compatibility;
mod documents;
mod docuseal;
pub mod isolation;
pub mod misbehaving;
