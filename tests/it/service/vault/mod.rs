//! The vault, and the log over it.

mod bundles;
mod clock;
mod completion;
mod copies;
mod in_and_out;
pub mod integrity;
mod log;
mod pipeline;
mod witnesses;
