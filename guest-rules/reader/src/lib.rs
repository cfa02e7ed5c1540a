//! Reads what a PDF says and where it says it.
//!
//! The reader knows text and geometry and nothing about fields, anchors or tags'
//! meaning. It answers three questions:
//!
//! * What is this document? [`Document::open`], [`Document::pages`], [`Document::signatures`].
//! * Where is its text? [`TextReader::page`] gives every glyph in *displayed* coordinates,
//!   [`TextLayer`] puts them together into words and lines.
//! * How would that text be taken out again? Each [`Glyph`] knows the [`ShowOperator`] that
//!   drew it and the bytes of that operator in its [`ContentStream`]; [`cut`] turns a choice
//!   of glyphs into byte edits which leave every other glyph where it is, and
//!   [`find_tags`] names the glyphs of each `{{...}}` tag.
//!
//! # Coordinates
//!
//! A displayed page is what a person sees: after `/Rotate`, `CropBox` and `UserUnit`, origin in
//! the top-left corner, y growing downward. Rectangles are fractions of its width and height.
//! Page indices are 0-based in this crate.
//!
//! # Hostile input
//!
//! Parsing runs inside a sandbox which bounds memory and time; nothing here can harm the host.
//! The [`Limit`]s exist so that an ordinary refusal can be explained instead of ending as a trap.

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
