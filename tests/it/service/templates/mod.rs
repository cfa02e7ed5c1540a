//! Templates, packages, and the field builder.

mod field_builder;
mod library;
mod open_links;
mod packages;
mod versions;
