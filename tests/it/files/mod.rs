//! Stored bytes.

mod full_disk;
mod object_storage;
