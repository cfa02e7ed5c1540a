//! What an organization holds about a person: everything of it as one file, and its erasure.

pub mod erasure;
pub mod export;
