//! The signing form and embedded widgets.

mod access;
mod answers;
mod consent;
mod drawings;
mod embed;
mod entries;
mod form;
mod languages;
mod link_hosts;
mod people;
mod questions;
pub(crate) mod reads;
pub mod text_messages;
mod untranslated;
