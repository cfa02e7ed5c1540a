//! HTML pages for people, with their scripts and styles.

pub mod assets;
mod attachments;
pub mod brand;
pub mod builder;
mod code;
pub mod docs;
pub mod embed;
mod kba;
mod look;
pub mod payments;
pub mod people;
pub mod signing;
mod signing_files;
mod signing_page;
pub mod verification;
mod viewing;
mod visit;
