//! Exports of the component.

#![allow(unsafe_code, reason = "the export macro writes the entry points")]

use crate::bindings::exports::holdfast::placement::facts::Guest as Facts;
use crate::bindings::exports::holdfast::placement::field_rules::Guest as FieldRules;
use crate::bindings::exports::holdfast::placement::placement::Guest;
use crate::bindings::exports::holdfast::placement::similarity::Guest as Similarity;
use crate::bindings::exports::holdfast::placement::wordings::Guest as Wordings;
use crate::{
    Area, DocumentFacts, FactRequest, FieldEntry, FieldRequest, FieldState, Issue, PlaceError,
    ReadError, Reading, ResolvedField, RuledField, TextLine, ValueFormat, Wording,
};

struct PlacementComponent;

impl Guest for PlacementComponent {
    fn inspect(pdf: Vec<u8>) -> Result<DocumentFacts, ReadError> {
        crate::inspect(pdf)
    }

    fn text(pdf: Vec<u8>, page: u32) -> Result<Vec<TextLine>, ReadError> {
        crate::text(pdf, page)
    }

    fn place(pdf: Vec<u8>, fields: Vec<FieldRequest>) -> Result<Vec<ResolvedField>, PlaceError> {
        crate::place(pdf, fields)
    }

    fn occurrences(pdf: Vec<u8>, text: String, page: Option<u32>) -> Result<Vec<Area>, ReadError> {
        crate::occurrences(pdf, &text, page)
    }

    fn tags(pdf: Vec<u8>) -> Result<Vec<ResolvedField>, PlaceError> {
        crate::tags(pdf)
    }
}

impl Similarity for PlacementComponent {
    fn signature(pdf: Vec<u8>) -> Result<Option<Vec<u32>>, ReadError> {
        crate::signature(pdf)
    }
}

impl Wordings for PlacementComponent {
    fn wordings(pdf: Vec<u8>, text: String, page: Option<u32>) -> Result<Vec<Wording>, ReadError> {
        crate::wordings(pdf, &text, page)
    }
}

impl Facts for PlacementComponent {
    fn read(pdf: Vec<u8>, requests: Vec<FactRequest>) -> Result<Vec<Reading>, ReadError> {
        crate::read(pdf, &requests)
    }

    fn normalize(format: ValueFormat, words: String) -> Result<String, String> {
        crate::normalize(&format, &words)
    }
}

impl FieldRules for PlacementComponent {
    fn check(fields: Vec<RuledField>) -> Vec<Issue> {
        crate::check(&fields)
    }

    fn apply(fields: Vec<RuledField>, entries: Vec<FieldEntry>, today: String) -> Vec<FieldState> {
        crate::apply(&fields, &entries, &today)
    }
}

crate::bindings::export!(PlacementComponent with_types_in crate::bindings);
