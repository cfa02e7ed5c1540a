//! HTML pages for people, with their scripts and styles.

pub mod assets;
mod attachments;
pub mod brand;
pub mod builder;
mod code;
pub mod console;
pub mod control;
pub mod docs;
mod drawing;
pub mod embed;
pub mod error_pages;
pub mod inspection;
pub mod joining;
mod kba;
pub mod open_links;
mod page_frame;
pub mod payments;
mod record;
mod signer_link;
pub mod signing;
mod signing_files;
mod signing_page;
pub mod verification;
mod viewing;
