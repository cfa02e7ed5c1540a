//! Pages at the end of a document for texts that are too long for their fields.

use crate::error::{Result, unreadable};
use crate::fill::{StyledField, fill_styled, hand};
use crate::fit::{self, SMALLEST};
use crate::merge::merge;
use crate::source::{SourceDocument, SourcePage, is_signed};
use crate::text::{FontSet, TextStyle};
use crate::typeset::{Ink, SheetStyle, TypesetSheet};
use crate::{Continuation, FieldValue, FilledField, FlowingField};
use holdfast_handwriting::Handwriting;

const INK: Ink = (16, 24, 72);
const HEADING: SheetStyle = SheetStyle::new(TextStyle::Bold, 11.0, INK);
const BODY: SheetStyle = SheetStyle::new(TextStyle::Regular, 10.0, INK);
/// Of the pages, in points.
const MARGIN: f32 = 54.0;

/// Lines of one text. One of many short lines is set as running text.
const MAX_LINES: usize = 300;

/// A text that stands on a page at the end.
struct MovedText<'a> {
    /// Index of its field.
    field: usize,
    text: &'a str,
    continuation: &'a Continuation,
}

/// Like [`crate::fill_written`], with pages at the end for texts that are too long. The whole text stands
/// there, and its field has the beginning and a reference.
///
/// # Errors
///
/// As [`crate::fill`]. A signed document gets no pages: its texts are set as small as they have to be.
pub fn fill_flowing(pdf: &[u8], fields: &[FlowingField]) -> Result<Vec<u8>> {
    let plain =
        |flowing: &FlowingField| (flowing.field.field.clone(), flowing.field.style.map(hand));
    let mut written: Vec<_> = fields.iter().map(plain).collect();
    let mut added = None;

    // Most fields need no page, and then the document is opened once. Pages would end the signatures of a signed one.
    if fields.iter().any(|field| field.continuation.is_some()) && !is_signed(pdf) {
        let source = SourceDocument::open_whole(&pdf.to_vec().into())?;
        let moved = moved_texts(&source.pages, fields)?;
        if !moved.is_empty() {
            added = Some(continue_texts(&source.pages, &moved, &mut written)?);
        }
    }

    let styled: Vec<StyledField<'_>> = written
        .iter()
        .map(|(field, style)| (field, *style))
        .collect();
    // The pages are joined at the end, so no page that the fields name gets another number.
    let filled = fill_styled(pdf, &styled)?;
    match added {
        Some(pages) => merge(&[filled, pages]),
        None => Ok(filled),
    }
}

/// Returns the texts that do not fit one of their places.
fn moved_texts<'a>(pages: &[SourcePage], fields: &'a [FlowingField]) -> Result<Vec<MovedText<'a>>> {
    let fonts = FontSet::load()?;
    let mut moved = Vec::new();
    for (index, flowing) in fields.iter().enumerate() {
        let (FieldValue::Text(text), Some(continuation)) =
            (&flowing.field.field.value, &flowing.continuation)
        else {
            continue;
        };

        for area in &flowing.field.field.areas {
            let place = page(pages, area.page)?.geometry.area(area)?;
            if fit::text(&fonts, text, TextStyle::Regular, place, SMALLEST).is_err() {
                // One place that is too small moves the text: all places of a field show the same value.
                moved.push(MovedText {
                    field: index,
                    text,
                    continuation,
                });
                break;
            }
        }
    }

    Ok(moved)
}

/// Sets the texts on pages of their own, and shortens the values of their fields to a reference.
fn continue_texts(
    pages: &[SourcePage],
    moved: &[MovedText<'_>],
    written: &mut [(FilledField, Option<Handwriting>)],
) -> Result<Vec<u8>> {
    let last = pages.last().ok_or_else(|| unreadable("no page"))?;
    let size = (last.geometry.width, last.geometry.height);

    // A text needs some room on its page.
    let size = (size.0.max(300.0), size.1.max(300.0));
    let mut sheet = TypesetSheet::new(size.0, size.1)?;
    let mut top = MARGIN;

    for text in moved {
        let needed = HEADING.leading() + BODY.leading() * 2.0;
        if top > MARGIN && top + needed > size.1 - MARGIN {
            sheet.add_page();
            top = MARGIN;
        }

        // The number is taken before the text is set. A text of several pages is found by its first one.
        let number = pages.len() + sheet.page_count();
        top = set_text(&mut sheet, size, top, text);
        if let Some((field, _)) = written.get_mut(text.field) {
            let reference = text
                .continuation
                .reference
                .replace("{page}", &number.to_string());
            field.value = FieldValue::Text(shortened(pages, field, text.text, &reference)?);
        }
    }

    sheet.into_pdf("")
}

/// Sets a text below `top`, on as many pages as it needs, and returns where the next one can begin.
fn set_text(
    sheet: &mut TypesetSheet,
    (width, height): (f32, f32),
    mut top: f32,
    text: &MovedText<'_>,
) -> f32 {
    let room = width - 2.0 * MARGIN;
    top += sheet.paragraph(MARGIN, top, room, &text.continuation.heading, HEADING) + 4.0;

    let is_list = text.text.lines().count() > MAX_LINES;
    let running = text.text.lines().collect::<Vec<_>>().join(" / ");
    let words = if is_list { &running } else { text.text };
    // The text is set line by line, because it may be longer than a page.
    for line in sheet.wrap(words, BODY, room) {
        if top + BODY.leading() > height - MARGIN {
            sheet.add_page();
            top = MARGIN;
        }
        sheet.paragraph(MARGIN, top, room, &line, BODY);
        top += BODY.leading();
    }

    top + BODY.leading()
}

/// Returns as much of a text as fits all places of its field with the reference behind it.
fn shortened(
    pages: &[SourcePage],
    field: &FilledField,
    text: &str,
    reference: &str,
) -> Result<String> {
    let fonts = FontSet::load()?;
    let mut places = Vec::with_capacity(field.areas.len());
    for area in &field.areas {
        places.push(page(pages, area.page)?.geometry.area(area)?);
    }

    let characters: Vec<char> = text.chars().collect();
    let part = |count: usize| {
        let beginning: String = characters.iter().take(count).collect();
        match beginning.trim_end() {
            "" => reference.to_owned(),
            beginning => format!("{beginning} {reference}"),
        }
    };
    let fits = |count: usize| {
        let part = part(count);
        let mut places = places.iter();
        places.all(|place| fit::text(&fonts, &part, TextStyle::Regular, *place, SMALLEST).is_ok())
    };

    // Where not even the reference has room, it is set small: the text was signed.
    Ok(part(fit::most_that(characters.len(), fits)))
}

fn page(pages: &[SourcePage], number: u32) -> Result<&SourcePage> {
    crate::fill::page_of(pages, number).map(|(_, page)| page)
}
