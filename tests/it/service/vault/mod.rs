//! The vault, and the log over it.

mod bundles;
mod clock;
mod completion;
mod copies;
mod in_and_out;
mod integrity;
mod log;
mod pipeline;
mod witnesses;
