//! Templates, packages, and the field builder.

mod field_builder;
mod library;
mod open_links;
mod packages;
mod sharing;
mod variables;
mod versions;
mod word_documents;
