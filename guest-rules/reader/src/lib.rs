//! Reader of the text of a PDF and of its positions.
//!
//! The reader handles text and geometry; fields, anchors and the meaning of tags are left to its
//! users. It covers three tasks:
//!
//! * Facts about a document: [`Document::open`], [`Document::pages`], [`Document::signatures`].
//! * Positions of text: [`TextReader::page`] returns every glyph in *displayed* coordinates,
//!   [`TextLayer`] groups glyphs into words and lines.
//! * Removal of text: each [`Glyph`] refers to the [`ShowOperator`] that drew it and thereby to
//!   its bytes in a [`ContentStream`]; [`cut`] turns a set of glyphs into byte edits that move
//!   no other glyph, and [`find_tags`] returns the glyphs of each `{{...}}` tag.
//!
//! # Coordinates
//!
//! A page is displayed after `/Rotate`, `CropBox` and `UserUnit`, with the origin in the top-left
//! corner and y growing downward. Rectangles are fractions of its width and height. Page indices
//! are 0-based in this crate.
//!
//! # Hostile input
//!
//! Parsing runs inside a sandbox with limits on memory and time, so it cannot harm the host. The
//! [`Limit`]s turn an excess into an error with an explanation instead of a trap.

mod annotations;
mod content;
mod cut;
mod decode;
mod document;
mod error;
mod facts;
mod font;
mod geometry;
mod interpret;
mod layer;
mod limits;
mod objects;
mod page_text;
mod tag;
mod text_state;
mod unicode;
mod xref;

pub use cut::{Edit, cut};
pub use document::{Document, PageInfo, TextReader};
pub use error::ReadError;
pub use facts::Signatures;
pub use geometry::{Matrix, Rect};
pub use layer::{LayerChar, Line, TextLayer, layer_text};
pub use limits::Limit;
pub use page_text::{
    ContentStream, Element, Glyph, PageText, ReplacedText, ShowKind, ShowOperator, Source,
};
pub use tag::{FoundTag, find_tags};
pub use xref::is_encrypted;
