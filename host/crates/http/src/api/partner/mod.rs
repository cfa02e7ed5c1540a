//! The partner surface: `/partner/*`, authenticated by API key.

pub(super) mod answers;
pub mod control;
pub mod customers;
pub mod destructions;
pub mod envelopes;
pub mod events;
pub mod funding;
pub mod imports;
pub mod open_links;
pub mod persons;
pub mod retention;
pub mod tapes;
pub mod templates;
pub mod test_mode;
pub mod vault;
