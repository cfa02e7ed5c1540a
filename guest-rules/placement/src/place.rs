//! Resolving requested fields.

use holdfast_reader::{PageRect, PdfDocument, layer_text};

use crate::anchors::{AnchorOutcome, find};
use crate::area::{page_index, page_number};
use crate::issues::{FieldProblem, code};
use crate::search::{PhraseMatch, PhraseSpacing, SearchPage, SearchPhrase, has_same_punctuation};
use crate::validate;
use crate::{
    Anchor, Area, FieldRequest, Issue, PlaceError, Position, ReadError, ResolvedField, Wording,
};

/// Resolves every field, in the given order.
///
/// # Errors
///
/// [`PlaceError::Unreadable`] when the document cannot be read; otherwise every issue of every
/// field, sorted by field.
pub fn place(pdf: Vec<u8>, fields: Vec<FieldRequest>) -> Result<Vec<ResolvedField>, PlaceError> {
    let document = PdfDocument::open(pdf).map_err(unreadable)?;
    let page_count = page_number(document.page_count().saturating_sub(1));
    let mut issues = validate::issues(&fields, page_count);
    // Anchors are searched also when other fields have problems: the caller gets all of them at once.
    let anchored: Vec<(usize, &Anchor)> = fields
        .iter()
        .enumerate()
        .filter_map(|(index, field)| match &field.position {
            Position::Anchor(anchor) if validate::is_searchable(anchor, page_count) => {
                Some((index, anchor))
            }
            _ => None,
        })
        .collect();

    let wanted: Vec<&Anchor> = anchored.iter().map(|(_, anchor)| *anchor).collect();
    let outcomes = if wanted.is_empty() {
        Vec::new()
    } else {
        find(&document, &wanted).map_err(unreadable)?
    };

    let mut placed: Vec<Option<(Area, Area)>> = vec![None; fields.len()];
    for ((index, anchor), outcome) in anchored.into_iter().zip(outcomes) {
        match located(anchor, outcome) {
            Ok(areas) => {
                if let Some(slot) = placed.get_mut(index) {
                    *slot = areas;
                }
            }
            Err(problem) => issues.push(problem.of_field(index)),
        }
    }

    // All problems are reported at once, so a caller can fix them in one go.
    if !issues.is_empty() {
        issues.sort_by_key(|issue: &Issue| issue.field_index);
        return Err(PlaceError::Rejected(issues));
    }

    Ok(fields
        .into_iter()
        .zip(placed)
        .map(|(field, placed)| resolved(field, placed))
        .collect())
}

/// Returns every area in which a text occurs, in document order.
///
/// # Errors
///
/// Those of [`inspect`](crate::inspect). A text that is empty or does not occur gives an empty
/// list.
pub fn occurrences(pdf: Vec<u8>, text: &str, page: Option<u32>) -> Result<Vec<Area>, ReadError> {
    found(pdf, text, page, |index, _, found| {
        Area::on_page(index, &found.rect)
    })
}

/// Returns how the document writes a text, for each of its [`occurrences`].
///
/// # Errors
///
/// Those of [`occurrences`].
pub fn wordings(pdf: Vec<u8>, text: &str, page: Option<u32>) -> Result<Vec<Wording>, ReadError> {
    let wanted = layer_text(text);
    found(pdf, text, page, |index, page, found| {
        let text = page.text_of(&found);
        Wording {
            page: page_number(index),
            exact: has_same_punctuation(&text, &wanted),
            text,
        }
    })
}

fn found<T>(
    pdf: Vec<u8>,
    text: &str,
    page: Option<u32>,
    describe: impl Fn(usize, &SearchPage<'_>, PhraseMatch) -> T,
) -> Result<Vec<T>, ReadError> {
    let document = PdfDocument::open(pdf)?;
    let phrase = SearchPhrase::new(text);
    if phrase.is_empty() {
        return Ok(Vec::new());
    }

    let pages: Vec<usize> = match page {
        None => (0..document.page_count()).collect(),
        Some(number) => page_index(number).into_iter().collect(),
    };

    // Pages that may have it, which shows without the places of their glyphs.
    let mut reader = document.text_reader();
    let mut promising = Vec::new();
    for index in pages {
        let compact = reader.compact(index)?;
        if compact.is_none_or(|text| phrase.may_occur_in(&text)) {
            promising.push(index);
        }
    }

    // Ignoring white space can match too much, so it is only the fallback, as for anchors.
    for spacing in [PhraseSpacing::Collapsed, PhraseSpacing::Ignored] {
        reader.start_over();
        let mut all = Vec::new();
        for index in &promising {
            let page_text = reader.page(*index)?;
            let page = SearchPage::new(&page_text);
            let on_page = page.index(spacing);
            let matches = on_page.matches(&phrase);
            all.extend(matches.map(|found| describe(*index, &page, found)));
        }

        if !all.is_empty() {
            return Ok(all);
        }
    }

    Ok(Vec::new())
}

fn unreadable(error: holdfast_reader::ReadError) -> PlaceError {
    PlaceError::Unreadable(error.into())
}

/// Returns the field's rectangle and that of the matched text; `None` for an invalid size, which
/// has already been reported.
fn located(anchor: &Anchor, outcome: AnchorOutcome) -> Result<Option<(Area, Area)>, FieldProblem> {
    let (page, found) = match outcome {
        AnchorOutcome::Found(page, found) => (page, found),
        AnchorOutcome::NotFound(problem) => return Err(problem),
    };

    // The size has its own issue already, and an area of it would only add a second one.
    if !validate::is_measurable(anchor) {
        return Ok(None);
    }

    let x0 = found.first_line.x0 + anchor.offset_x;
    let y0 = found.first_line.y0 + anchor.offset_y;
    let area = Area::on_page(
        page,
        &PageRect {
            x0,
            y0,
            x1: x0 + anchor.w,
            y1: y0 + anchor.h,
        },
    );

    if area.leaves_page() {
        return Err(FieldProblem::at(&["placement"], code::OUTSIDE_PAGE)
            .expected("an area inside the page")
            .received(format!(
                "x {} y {} w {} h {}",
                area.x, area.y, area.w, area.h
            ))
            .message(format!(
                "the area reaches beyond the edge of page {}: from ({}, {}) to ({}, {})",
                area.page,
                area.x,
                area.y,
                crate::area::tidy(area.x + area.w),
                crate::area::tidy(area.y + area.h)
            )));
    }

    Ok(Some((area, Area::on_page(page, &found.rect))))
}

fn resolved(field: FieldRequest, placed: Option<(Area, Area)>) -> ResolvedField {
    let (areas, anchor_match) = match (field.position, placed) {
        (Position::Absolute(areas), _) => (areas, None),
        (Position::Anchor(_), Some((area, matched))) => (vec![area], Some(matched)),
        (Position::Anchor(_), None) => (Vec::new(), None),
    };
    ResolvedField {
        name: field.name,
        field_type: field.field_type,
        role: field.role,
        required: field.required,
        readonly: false,
        default_value: field.default_value,
        options: Vec::new(),
        areas,
        anchor_match,
        attributes: Vec::new(),
    }
}
