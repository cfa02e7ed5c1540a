//! Marks that lead from a copy to the person it was made for.

use std::sync::Arc;

use krilla::color::rgb;
use krilla::num::NormalizedF32;
use krilla::paint::Fill;
use lopdf::text_string;

use crate::WatermarkRequest;
use crate::error::{Result, other, over_limit, unreadable};
use crate::marks::{draw_foot, draw_head, information, paint_each};
use crate::moment::CalendarTime;
use crate::source::SourceDocument;
use crate::text::{FontSet, TextStyle};
use crate::updating::CheckedUpdates;

/// Limits in characters.
const LINE: usize = 1_000;
const HIDDEN: usize = 100;
/// Heights of the hidden text on a page, as shares of the page: a part of the page still has one.
const PLACES: [f32; 3] = [0.1, 0.5, 0.9];

/// Writes a line at the foot or head of every page, and a text that is found by a search and not visible. The
/// information dictionary repeats the hidden text under the key `CopyId`.
///
/// The result is an update after the original bytes, which stay unchanged.
///
/// # Errors
///
/// `encrypted` and `unreadable` for the document, also for one with a broken cross-reference table;
/// `over-limit` for texts that are too long; `other` for a malformed time, or without a hidden text.
pub fn watermark(pdf: Vec<u8>, request: &WatermarkRequest) -> Result<Vec<u8>> {
    CalendarTime::parse(&request.marked_at, "marked-at")?;
    if request.hidden.trim().is_empty() {
        return Err(other("a watermark has a hidden text"));
    }

    for (text, limit) in [(&request.line, LINE), (&request.hidden, HIDDEN)] {
        if text.chars().count() > limit {
            return Err(over_limit(format!("{limit} characters in a watermark")));
        }
    }

    let pdf = Arc::new(pdf);
    let source = SourceDocument::open_for_update(&pdf)?;
    // The caller appends an update to the file. Readers would disagree about one behind a damaged table.
    if source.needs_rewrite() {
        return Err(unreadable("its structure is damaged"));
    }

    let mut updates = CheckedUpdates::of(pdf, source)?;
    let (update, looks) = updates.append(&format!("{request:?}"), |target, pages| {
        let fonts = FontSet::load()?;
        let hidden = fonts.line(&request.hidden, TextStyle::Regular);
        let looks = paint_each(target, pages, |surface, (width, height)| {
            let places = if request.at_head {
                draw_head(&fonts, surface, (width, height), &request.line)
            } else {
                draw_foot(&fonts, surface, (width, height), &request.line)
            };
            // Nothing of this text shows. A copy without its visible line still leads to the holder by it.
            surface.set_fill(Some(Fill {
                paint: rgb::Color::new(255, 255, 255).into(),
                opacity: NormalizedF32::ZERO,
                ..Fill::default()
            }));

            let size = (width * 0.3 / hidden.width(1.0)).min(4.0);
            for place in PLACES {
                fonts.draw(surface, &hidden, width * 0.05, height * place, size);
            }

            places
        })?;

        let dictionary = information(target)?;
        dictionary.set("CopyId", text_string(&request.hidden));
        dictionary.set("MarkedAt", text_string(&request.marked_at));

        Ok(looks)
    })?;

    updates.confirm(&update, &looks)?;
    Ok(update)
}
