//! HTML pages for people, with their scripts and styles.

pub mod assets;
mod attachments;
pub mod brand;
pub mod builder;
mod code;
pub mod console;
pub mod control;
pub mod docs;
pub mod embed;
pub mod inspection;
pub mod joining;
mod kba;
mod page_frame;
pub mod payments;
pub mod error_pages;
mod record;
pub mod signing;
mod signing_files;
mod signing_page;
pub mod verification;
mod viewing;
mod signer_link;
