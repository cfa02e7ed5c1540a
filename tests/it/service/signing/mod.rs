//! Signers and their links.

mod embed;
mod form;
