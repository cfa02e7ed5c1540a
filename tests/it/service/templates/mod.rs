//! Templates, packages, and the field builder.

mod field_builder;
mod library;
mod packages;
mod word_documents;
