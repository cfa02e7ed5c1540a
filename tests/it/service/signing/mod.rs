//! The signing form and embedded widgets.

mod access;
mod embed;
mod form;
mod people;
mod languages;
