//! What goes out to addresses that other people chose.

pub mod guard;
