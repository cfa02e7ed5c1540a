//! The signing form and embedded widgets.

mod embed;
mod form;
mod languages;
