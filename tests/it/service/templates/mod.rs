//! Templates, packages, and the field builder.

mod field_builder;
mod library;
mod packages;
mod versions;
