//! Looking at pages: drawn before and after a write, where reading them is not enough.
//!
//! Reading finds words and pictures also where they do not show: behind a layer that is off, or under an
//! annotation. Pages on which that can happen are drawn small, with the renderer that draws them for signers.

use hayro::RenderCache;
use hayro_syntax::PdfData;
use hayro_syntax::page::Page;
use holdfast_reader::PdfDocument;

use crate::error::Result;
use crate::geometry::DisplayedBox;
use crate::read_back::differs;
use crate::render::{Drawn, draw_small};
use crate::source::refusal;

/// Difference in brightness, of 255, from which ink has changed a pixel. Small grey letters cover a part of it only.
const CONTRAST: u8 = 32;

/// Smaller differences in a colour come from rounding, or from the light phrase across a page.
const TOLERANCE: u8 = 72;

/// Pixels that may differ more: edges of letters and lines, drawn in another order.
const STRAY: usize = 6;

/// Pixels of a mark or value that have to show.
const ENOUGH: usize = 4;

/// A page to look at, with the additions.
#[derive(Debug)]
pub(crate) struct PageLook {
    /// From 0.
    pub(crate) page: usize,
    pub(crate) added: Vec<AddedInk>,
}

/// A place with new content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedInk {
    pub(crate) place: DisplayedBox,
    /// A picture may be as light as its ground.
    pub(crate) has_to_show: bool,
}

/// Requires that pages look as before, apart from the additions, and that these show.
///
/// # Errors
///
/// `unreadable`, with the page, in the words of [`differs`].
pub(crate) fn compare(
    before: impl Into<PdfData>,
    after: impl Into<PdfData>,
    looks: &[PageLook],
) -> Result<()> {
    let looks = looks
        .iter()
        .map(|look| (look.page, look.page, &look.added[..]));
    compare_pages(before, after, looks)
}

/// Requires that pages of a document look like pages of another. Pairs are numbers from 0.
pub(crate) fn compare_same(
    before: impl Into<PdfData>,
    after: impl Into<PdfData>,
    pairs: impl Iterator<Item = (usize, usize)>,
) -> Result<()> {
    compare_pages(before, after, pairs.map(|(old, new)| (old, new, &[][..])))
}

fn compare_pages<'l>(
    before: impl Into<PdfData>,
    after: impl Into<PdfData>,
    looks: impl Iterator<Item = (usize, usize, &'l [AddedInk])>,
) -> Result<()> {
    let before = PdfDocument::open(before).map_err(refusal)?;
    let after = PdfDocument::open(after).map_err(refusal)?;
    let caches = (RenderCache::new(), RenderCache::new());
    let (old_pages, new_pages) = (before.parsed().pages(), after.parsed().pages());

    // The pages are drawn one after the other, because drawings of all pages would fill the sandbox.
    for (old, new, added) in looks {
        let number = new + 1;
        let (Some(old), Some(new)) = (old_pages.get(old), new_pages.get(new)) else {
            return Err(differs(number, "no place in the document"));
        };
        if let Some(what) = difference((old, &caches.0), (new, &caches.1), added)? {
            return Err(differs(number, what));
        }
    }

    Ok(())
}

/// Returns what looks wrong on a page.
fn difference<'a>(
    before: (&'a Page<'a>, &RenderCache<'a>),
    after: (&'a Page<'a>, &RenderCache<'a>),
    added: &[AddedInk],
) -> Result<Option<&'static str>> {
    let (old, new) = (
        draw_small(before.0, before.1)?,
        draw_small(after.0, after.1)?,
    );
    if (old.width, old.height) != (new.width, new.height) {
        return Ok(Some("another size"));
    }

    let mut stray = 0;
    let mut shown = vec![0; added.len()];
    for (at, (old_pixel, new_pixel)) in old.pixels.iter().zip(&new.pixels).enumerate() {
        // Places overlap on small pages, so a pixel can show several additions.
        let mut is_ours = false;
        for (ink, shown) in added.iter().zip(&mut shown) {
            if new.has_inside(ink.place, at) {
                is_ours = true;
                let contrast = brightness(*old_pixel).abs_diff(brightness(*new_pixel));
                *shown += usize::from(contrast >= CONTRAST);
            }
        }

        // Inside an addition every change is wanted. Elsewhere only rounding may change a pixel.
        let moved = old_pixel.iter().zip(new_pixel);
        let moved = moved.map(|(old, new)| old.abs_diff(*new)).max();
        stray += usize::from(!is_ours && moved > Some(TOLERANCE));
    }

    if stray > STRAY {
        return Ok(Some("another look"));
    }

    let hidden = added.iter().zip(&shown);
    let mut hidden = hidden.filter(|(ink, shown)| ink.has_to_show && **shown < ENOUGH);
    Ok(hidden
        .next()
        .map(|_| "something that hides what is added to it"))
}

/// Pages of a document, drawn small to see how dark they are.
pub(crate) struct Grounds {
    document: PdfDocument,
    drawn: Option<(usize, Drawn)>,
}

impl Grounds {
    pub(crate) fn of(pdf: impl Into<PdfData>) -> Result<Self> {
        Ok(Self {
            document: PdfDocument::open(pdf).map_err(refusal)?,
            drawn: None,
        })
    }

    /// Returns whether dark ink would be hard to read in a place of a page (from 0).
    pub(crate) fn is_dark(&mut self, page: usize, place: DisplayedBox) -> Result<bool> {
        // Only the last page is kept: fields of one page mostly follow each other, and memory is limited.
        if self.drawn.as_ref().is_none_or(|(drawn, _)| *drawn != page) {
            let Some(found) = self.document.parsed().pages().get(page) else {
                return Ok(false);
            };
            self.drawn = Some((page, draw_small(found, &RenderCache::new())?));
        }

        let Some((_, drawn)) = &self.drawn else {
            return Ok(false);
        };

        let inside = drawn.pixels.iter().enumerate();
        let inside = inside.filter(|(at, _)| drawn.has_inside(place, *at));
        let (mut all, mut dark) = (0, 0);
        for (_, pixel) in inside {
            all += 1;
            dark += usize::from(brightness(*pixel) < 128);
        }

        // Lines and words of the form take less than that.
        Ok(dark * 10 > all * 3)
    }
}

/// Returns the brightness of a colour (ITU-R BT.601).
fn brightness([red, green, blue]: [u8; 3]) -> u8 {
    let weighted = u32::from(red) * 299 + u32::from(green) * 587 + u32::from(blue) * 114;
    u8::try_from(weighted / 1_000).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocumentError;
    use crate::typeset::TypesetSheet;

    fn sheet(width: f32, boxes: &[(f32, f32)]) -> Vec<u8> {
        let mut sheet = TypesetSheet::new(width, 400.0).unwrap();
        for (x, y) in boxes {
            sheet.fill(*x, *y, 40.0, 40.0, (0, 0, 0));
        }
        sheet.into_pdf("").unwrap()
    }

    fn difference_of(before: &[u8], after: &[u8], added: Vec<AddedInk>) -> Option<String> {
        let looks = [PageLook { page: 0, added }];
        match compare(before.to_vec(), after.to_vec(), &looks) {
            Ok(()) => None,
            Err(DocumentError::Unreadable(why)) => Some(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn ink(x: f32, y: f32) -> AddedInk {
        AddedInk {
            place: DisplayedBox {
                x,
                y,
                width: 40.0,
                height: 40.0,
            },
            has_to_show: true,
        }
    }

    #[test]
    fn only_what_was_added_may_differ_and_it_has_to_show() {
        let before = sheet(300.0, &[(10.0, 10.0)]);
        let after = sheet(300.0, &[(10.0, 10.0), (200.0, 200.0)]);
        assert_eq!(difference_of(&before, &before, Vec::new()), None);
        assert_eq!(
            difference_of(&before, &after, vec![ink(200.0, 200.0)]),
            None
        );

        let prefix = "readers do not agree about it: page 1 would have ";
        let cases = [
            (&after, Vec::new(), "another look"),
            (
                &before,
                vec![ink(200.0, 200.0)],
                "something that hides what is added to it",
            ),
            (&sheet(310.0, &[(10.0, 10.0)]), Vec::new(), "another size"),
        ];
        for (after, added, what) in cases {
            let found = difference_of(&before, after, added);
            assert_eq!(found, Some(format!("{prefix}{what}")));
        }

        let missing = [PageLook {
            page: 1,
            added: Vec::new(),
        }];
        let why = compare(before.clone(), before, &missing).unwrap_err();
        let why = format!("{why:?}");
        assert!(
            why.contains("page 2 would have no place in the document"),
            "{why}"
        );
    }
}
