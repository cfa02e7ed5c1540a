//! Storing authoritative copies, proving them, and releasing them.

pub mod copies;
pub mod custody;
pub mod downloads;
pub mod integrity;
pub mod log;
pub mod orphans;
pub mod timekeeping;
pub mod vault_in;
pub mod vault_out;
