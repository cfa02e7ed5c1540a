//! Slot `rules.placement`: facts and text of a PDF, and the position of signing fields on its
//! pages.
//!
//! The functions are both the exports of the component and plain Rust, so every rule can be
//! tested without a runtime. Types come from `wit/placement/placement.wit`.
//!
//! * [`inspect`] and [`text`] describe an upload.
//! * [`place`] resolves fields given by coordinates or by anchor text.
//! * [`occurrences`] lists every place an anchor text could mean, and [`wordings`] how each is written.
//! * [`tags`] reads the fields a document carries as `{{name;attribute=value}}`.
//! * [`signature`] makes documents comparable.
//! * [`read`] reads the facts of a contract, and [`normalize`] gives their words one form.
//! * [`check`] and [`apply`] are the rules about the answers of signers.
//!
//! Pages are 1-based here and 0-based in the reader; [`Area`] converts between them.

mod anchors;
mod area;
mod bindings;
#[cfg(target_arch = "wasm32")]
mod component;
mod fact_reading;
mod fact_values;
mod facts;
mod field_rules;
mod issues;
mod misses;
mod place;
mod search;
mod similarity;
mod tag_fields;
mod tag_grammar;
mod validate;

pub use bindings::exports::holdfast::placement::facts::{
    Direction, FactRequest, PrintedSource, PrintedWords, Reading, ValueFormat, ValueKind,
};
pub use bindings::exports::holdfast::placement::field_rules::{
    Entry as FieldEntry, FieldState, Problem as RuleProblem, RuledField,
};
pub use bindings::exports::holdfast::placement::wordings::Wording;
pub use bindings::holdfast::placement::types::{
    Anchor, Area, DocumentFacts, FieldRequest, Issue, PageFacts, PlaceError, Position, ReadError,
    ResolvedField, TextLine,
};
pub use fact_reading::read;
pub use fact_values::normalize;
pub use facts::{inspect, text};
pub use field_rules::{apply, check};
pub use place::{occurrences, place, wordings};
pub use similarity::signature;
pub use tag_fields::tags;
