//! Reader of the text of a PDF and of its positions.
//!
//! The reader handles text and geometry; fields, anchors and the meaning of tags are left to its
//! users. It covers three tasks:
//!
//! * Facts about a document: [`PdfDocument::open`], [`PdfDocument::pages`], [`PdfDocument::signatures`].
//! * Positions of text: [`TextReader::page`] returns every glyph in *displayed* coordinates,
//!   [`TextLayer`] groups glyphs into words and lines.
//! * Removal of text: each [`PlacedGlyph`] refers to the [`ShowOperator`] that drew it and thereby to
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
//! [`ReadLimit`]s turn an excess into an error with an explanation instead of a trap.

mod annotations;
mod content;
mod cut;
mod decode;
mod document;
mod ending;
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

pub use cut::{ContentEdit, cut};
pub use decode::FlateState;
pub use document::{PageContent, PageInfo, PdfDocument, TextReader};
pub use ending::ContentEnding;
pub use error::ReadError;
pub use facts::SignatureFacts;
pub use geometry::{AffineMap, PageRect};
pub use layer::{LayerChar, LayerLine, TextLayer, layer_text};
pub use limits::ReadLimit;
pub use page_text::{
    ContentStream, PageText, PlacedGlyph, PlacedImage, ReplacedText, ShowKind, ShowOperator,
    TextElement, TextSource,
};
pub use tag::{FoundTag, find_tags};
pub use unicode::{fold, is_right_to_left};
pub use unicode_normalization::char::is_combining_mark;
pub use xref::{FileSurvey, is_encrypted, survey};
