//! The vault, and the log over it.

mod completion;
mod in_and_out;
mod integrity;
mod log;
mod pipeline;
