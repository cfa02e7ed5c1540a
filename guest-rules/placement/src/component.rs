//! Exports of the component.

#![allow(unsafe_code, reason = "the export macro writes the entry points")]

use crate::bindings::exports::holdfast::placement::placement::Guest;
use crate::{Area, DocumentFacts, FieldRequest, PlaceError, ReadError, ResolvedField, TextLine};

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

crate::bindings::export!(PlacementComponent with_types_in crate::bindings);
