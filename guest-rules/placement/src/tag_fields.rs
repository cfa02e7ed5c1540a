//! Conversion of tags to fields.

use std::collections::HashMap;

use holdfast_reader::{FoundTag, PageRect, PageText, PdfDocument, find_tags};

use crate::issues::{FieldProblem, code, quoted};
use crate::tag_grammar::{FieldTag, parse};
use crate::{Area, Issue, PlaceError, ResolvedField};

/// Returns the fields that a document carries as tags, in document order. Identical tags make one
/// field with several areas.
///
/// A field starts at the top-left corner of its tag's first line and has the size given in the tag;
/// without width or height it is as large as that line. It is clipped at the edge of the page.
///
/// # Errors
///
/// [`PlaceError::Unreadable`], or all problems of all tags; the `field-index` of an issue counts
/// the tags of the document from 0.
pub fn tags(pdf: Vec<u8>) -> Result<Vec<ResolvedField>, PlaceError> {
    let document = PdfDocument::open(pdf).map_err(unreadable)?;
    let mut reader = document.text_reader();
    let mut collected = CollectedTags::default();
    for index in 0..document.page_count() {
        let page = reader.page(index).map_err(unreadable)?;
        for found in find_tags(&page).map_err(unreadable)? {
            collected.add(index, &page, &found);
        }
    }

    if collected.issues.is_empty() {
        Ok(collected.fields)
    } else {
        Err(PlaceError::Rejected(collected.issues))
    }
}

fn unreadable(error: holdfast_reader::ReadError) -> PlaceError {
    PlaceError::Unreadable(error.into())
}

#[derive(Default)]
struct CollectedTags {
    fields: Vec<ResolvedField>,
    issues: Vec<Issue>,
    tags_seen: usize,
    type_of_name: HashMap<String, String>,
}

impl CollectedTags {
    fn add(&mut self, page_index: usize, page: &PageText, found: &FoundTag) {
        let position = self.tags_seen;
        self.tags_seen += 1;
        if !found.is_closed {
            self.reject(position, [unclosed(found)]);
            return;
        }

        let tag = match parse(&found.text) {
            Ok(tag) => tag,
            Err(problems) => return self.reject(position, problems),
        };
        // The first tag of a name decides about the type, as the first field does in a request.
        let known = self
            .type_of_name
            .entry(tag.name.clone())
            .or_insert_with(|| tag.field_type.clone());
        if *known != tag.field_type {
            let problem = conflict(&tag, known, found);
            return self.reject(position, [problem]);
        }

        match area(page_index, page, found, &tag) {
            Ok(area) => self.place(tag, area),
            Err(problem) => self.reject(position, [problem]),
        }
    }

    fn reject(&mut self, position: usize, problems: impl IntoIterator<Item = FieldProblem>) {
        self.issues.extend(
            problems
                .into_iter()
                .map(|problem| problem.of_field(position)),
        );
    }

    fn place(&mut self, tag: FieldTag, area: Area) {
        // Size and rules may differ, because authors often write them in one of the tags only.
        let same = self.fields.iter_mut().find(|field| {
            field.name == tag.name
                && field.field_type == tag.field_type
                && field.role == tag.role
                && field.required == tag.required
                && field.readonly == tag.readonly
                && field.default_value == tag.default_value
                && field.options == tag.options
        });

        if let Some(field) = same {
            field.areas.push(area);
            // The rules of a field may stand in any of its tags.
            for (name, value) in tag.attributes {
                if !field.attributes.iter().any(|(known, _)| *known == name) {
                    field.attributes.push((name, value));
                }
            }

            return;
        }

        self.fields.push(ResolvedField {
            name: tag.name,
            field_type: tag.field_type,
            role: tag.role,
            required: tag.required,
            readonly: tag.readonly,
            default_value: tag.default_value,
            options: tag.options,
            areas: vec![area],
            anchor_match: None,
            attributes: tag.attributes,
        });
    }
}

fn unclosed(found: &FoundTag) -> FieldProblem {
    FieldProblem::at(&[], code::INVALID_TAG)
        .expected("}} on the same page")
        .received(&found.text)
        .message(format!("the tag {} has no end", quoted(&found.text)))
}

fn conflict(tag: &FieldTag, known: &str, found: &FoundTag) -> FieldProblem {
    FieldProblem::at(&["type"], code::CONFLICTING_TYPE)
        .expected(known)
        .received(&tag.field_type)
        .message(format!(
            "the tag {} is of type {}, but an earlier one named {} is of type {}",
            quoted(&found.text),
            quoted(&tag.field_type),
            quoted(&tag.name),
            quoted(known)
        ))
}

fn area(
    index: usize,
    page: &PageText,
    found: &FoundTag,
    tag: &FieldTag,
) -> Result<Area, FieldProblem> {
    let line = &found.first_line;
    // A tag may begin beside the page. Its field begins at the edge.
    let x0 = line.x0.max(0.0);
    let y0 = line.y0.max(0.0);
    let width = tag.width.map_or(line.width(), |points| points / page.width);
    let height = tag
        .height
        .map_or(line.height(), |points| points / page.height);
    let rect = PageRect {
        x0,
        y0,
        x1: (x0 + width).min(1.0),
        y1: (y0 + height).min(1.0),
    };
    if rect.is_sane() && rect.width() > 0.0 && rect.height() > 0.0 {
        Ok(Area::on_page(index, &rect))
    } else {
        Err(FieldProblem::at(&[], code::OUTSIDE_PAGE)
            .expected("a tag inside the visible page")
            .received(&found.text)
            .message(format!(
                "the tag {} lies outside of the visible page {}",
                quoted(&found.text),
                crate::area::page_number(index)
            )))
    }
}
