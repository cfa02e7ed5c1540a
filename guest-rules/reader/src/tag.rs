//! Finding `{{...}}` tags, without interpreting them.

use std::ops::Range;

use crate::error::ReadError;
use crate::geometry::PageRect;
use crate::layer::{LayerChar, TextLayer};
use crate::limits::{MAX_TAG_BYTES, ReadLimit};
use crate::page_text::PageText;

/// A tag, or the start of one.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundTag {
    /// Text including the braces, with white space collapsed. For an unclosed tag: the first words
    /// after `{{`.
    pub text: String,
    /// Whether `}}` follows on the same page. An unclosed tag has no glyphs to cut.
    pub is_closed: bool,
    /// The glyphs that draw it, as indices into [`PageText::glyphs`], in drawing order.
    pub glyphs: Vec<usize>,
    /// Bounding box of the tag.
    pub rect: PageRect,
    /// Bounding box of its part on its first line.
    pub first_line: PageRect,
}

/// Number of characters quoted from an unclosed tag.
const QUOTED_CHARS: usize = 60;

/// Returns every tag of a page in drawing order, including tags outside of the visible page.
///
/// A tag may span runs, fonts and lines. A gap between the two braces of a pair is ignored.
///
/// # Errors
///
/// [`ReadLimit::TagText`].
pub fn find_tags(page: &PageText) -> Result<Vec<FoundTag>, ReadError> {
    let layer = TextLayer::complete(page);
    let chars = layer.chars();
    let mut tags = Vec::new();
    let mut position = 0;

    let mut next_close: Option<Range<usize>> = None;
    while let Some(open) = next_pair(chars, position, '{') {
        // Hostile input may have many openings before one end, so the end is searched for only
        // once.
        let close = next_close
            .take()
            .filter(|close| close.start >= open.end)
            .or_else(|| next_pair(chars, open.end, '}'));

        // `{{ {{name}}`: the inner one is the tag.
        let inner = next_pair(chars, open.end, '{');
        let Some(close) = close else {
            tags.push(unclosed(page, &layer, &open));
            break;
        };
        if let Some(inner) = inner
            && inner.start < close.start
        {
            tags.push(unclosed(page, &layer, &open));
            position = inner.start;
            next_close = Some(close);
            continue;
        }

        let body = chars.get(open.end..close.start).unwrap_or_default();
        let bytes: usize = body.iter().map(|c| c.character.len_utf8()).sum();
        if bytes > MAX_TAG_BYTES {
            return Err(ReadError::OverLimit(ReadLimit::TagText));
        }

        let text: String = body.iter().map(|c| c.character).collect();
        let all = chars.get(open.start..close.end).unwrap_or_default();
        tags.push(FoundTag {
            text: format!("{{{{{}}}}}", text.trim()),
            is_closed: true,
            glyphs: glyphs_of(page, all),
            rect: layer.bounds(page, all),
            first_line: first_line(page, &layer, all),
        });

        position = close.end;
    }

    Ok(tags)
}

/// Finds the next two equal braces, allowing inferred spaces between them.
fn next_pair(chars: &[LayerChar], from: usize, brace: char) -> Option<Range<usize>> {
    let mut first: Option<usize> = None;
    for (index, character) in chars.iter().enumerate().skip(from) {
        if character.character == brace {
            match first {
                Some(start) => return Some(start..index + 1),
                None => first = Some(index),
            }
        } else if !character.is_inferred {
            first = None;
        }
    }

    None
}

fn unclosed(page: &PageText, layer: &TextLayer, open: &Range<usize>) -> FoundTag {
    let quoted = layer
        .chars()
        .get(open.start..)
        .unwrap_or_default()
        .get(..QUOTED_CHARS)
        .unwrap_or_else(|| layer.chars().get(open.start..).unwrap_or_default());
    let rect = first_line(page, layer, quoted);

    FoundTag {
        text: quoted.iter().map(|c| c.character).collect(),
        is_closed: false,
        glyphs: Vec::new(),
        rect,
        first_line: rect,
    }
}

fn first_line(page: &PageText, layer: &TextLayer, chars: &[LayerChar]) -> PageRect {
    let line = chars.first().map(|character| character.line);
    layer.bounds(
        page,
        chars
            .iter()
            .take_while(|character| Some(character.line) == line),
    )
}

/// Returns all glyphs from the first brace to the last, including spaces and unreadable glyphs,
/// that are characters of the tag or lie between two of them in one operator.
fn glyphs_of(page: &PageText, chars: &[LayerChar]) -> Vec<usize> {
    let mut drawn: Vec<usize> = chars
        .iter()
        .filter(|character| character.character != ' ')
        .map(|character| character.glyph as usize)
        .collect();
    drawn.sort_unstable();
    drawn.dedup();

    let mut glyphs = Vec::with_capacity(drawn.len());
    let mut previous: Option<usize> = None;
    for glyph in drawn {
        if let Some(previous) = previous {
            // Between two glyphs of the tag there are only its own spaces.
            glyphs.extend(
                (previous + 1..glyph).filter(|between| page.glyphs.get(*between).is_some()),
            );
        }

        glyphs.push(glyph);
        previous = Some(glyph);
    }

    glyphs
}
