//! Slot `rules.documents`: everything that writes a PDF or shows one.
//!
//! Values and pictures on pages ([`fill`]), the marks of authoritative and other copies
//! ([`mark`]), pictures as documents ([`picture_to_pdf`]), page images ([`page_image`]),
//! joined documents ([`merge`]), tags taken out ([`strip_tags`]) and the custody record ([`custody_record`]).
//!
//! Uploads are hostile until proven otherwise, so every function here returns a
//! [`DocumentError`] with a reason where it refuses, and none reads a clock or a random
//! number: equal input gives equal bytes. What a refusal cannot catch (a decoder that wants
//! gigabytes) is stopped by the memory and time budget of the sandbox this crate runs in.
//!
//! New content is never woven into old content. It is drawn on an *overlay* page of the size
//! at which the page is displayed, becomes a form XObject, and is painted on top through one
//! matrix. That keeps it searchable and leaves the original objects as they were.

#[cfg(target_arch = "wasm32")]
mod component;
mod contract;
mod custody;
mod error;
mod fill;
mod fit;
mod flatten;
mod geometry;
mod marks;
mod merge;
mod moment;
mod overlay;
mod painting;
mod picture;
mod render;
mod seal;
mod source;
mod strip;
mod target;
mod text;
pub mod typeset;

pub use contract::{
    Area, CheckResult, CopyKind, CustodyFacts, DocumentError, FieldValue, FilledField, MarkRequest,
    Marked, PageImage, Party, Picture, PictureFormat, SealRequest, SealSpace, TimelineEntry,
};
pub use custody::custody_record;
pub use fill::fill;
pub use marks::mark;
pub use merge::merge;
pub use picture::picture_to_pdf;
pub use render::page_image;
pub use seal::prepare_seal;
pub use strip::strip_tags;
