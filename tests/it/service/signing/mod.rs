//! The signing form and embedded widgets.

mod access;
mod embed;
mod form;
mod languages;
mod people;
