//! Reading a document back after every write, with the reader that drew its pages for the signer.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use hayro_syntax::PdfData;
use holdfast_reader::{PageInfo, PageText, PdfDocument, PlacedImage};

use crate::DocumentError;
use crate::error::{Result, unreadable};
use crate::source::refusal;

/// Points that a writer's rounding may move a glyph or a picture.
const TOLERANCE: f64 = 0.5;

/// Contents of pages before a write.
pub(crate) struct ShownPages {
    pages: Vec<ShownPage>,
}

#[derive(Clone)]
struct ShownPage {
    info: PageInfo,
    text: Rc<PageText>,
    /// The page had no size of its own, so that places on it are unknown.
    is_without_size: bool,
}

impl ShownPages {
    /// Reads all pages of a document.
    pub(crate) fn of(pdf: &Arc<Vec<u8>>) -> Result<Self> {
        let reader = PdfDocument::open(Arc::clone(pdf)).map_err(refusal)?;
        let mut text = reader.text_reader();
        let mut pages = Vec::with_capacity(reader.page_count());
        for (index, info) in reader.pages().into_iter().enumerate() {
            let mut text = text.page(index).map_err(refusal)?;
            // Only places are compared: the content itself may be large.
            text.streams = Vec::new();
            text.elements = Vec::new();
            pages.push(ShownPage {
                info,
                text: Rc::new(text),
                is_without_size: false,
            });
        }
        Ok(Self { pages })
    }

    /// The pages of no document, to be extended.
    pub(crate) fn none() -> Self {
        Self { pages: Vec::new() }
    }

    /// Appends the pages of another document.
    pub(crate) fn extend(&mut self, others: Self) {
        self.pages.extend(others.pages);
    }

    /// Returns the pages in another order, in which some occur more than once.
    pub(crate) fn arranged(&self, order: &[usize], without_size: &BTreeSet<usize>) -> Self {
        let pages = order.iter().enumerate().filter_map(|(position, index)| {
            Some(ShownPage {
                is_without_size: without_size.contains(&position),
                ..self.pages.get(*index)?.clone()
            })
        });
        Self {
            pages: pages.collect(),
        }
    }

    /// Requires that a written document has these pages, with every word and picture in its place. What was
    /// added comes on top.
    ///
    /// # Errors
    ///
    /// `unreadable`, with the page and what is missing on it.
    pub(crate) fn confirm(&self, written: impl Into<PdfData>) -> Result<()> {
        let reader = PdfDocument::open(written).map_err(refusal)?;
        let found = reader.page_count();
        if found != self.pages.len() {
            return Err(unreadable(format!(
                "{found} of {} pages survive being written",
                self.pages.len()
            )));
        }
        let mut text = reader.text_reader();
        for (index, (shown, info)) in self.pages.iter().zip(reader.pages()).enumerate() {
            let number = index + 1;
            let written = text.page(index).map_err(refusal)?;
            if shown.is_without_size {
                if shown.text.has_text() != written.has_text() {
                    return Err(differs(number, "other words"));
                }
                continue;
            }
            if !same_box(&shown.info, &info) {
                return Err(differs(number, "another size"));
            }
            if !has_glyphs(&shown.text, &written) {
                return Err(differs(number, "other words"));
            }
            if !has_images(&shown.text, &written) {
                return Err(differs(number, "other pictures"));
            }
        }
        Ok(())
    }
}

/// The beginning of every refusal for this reason; the host gives it a code of its own.
fn differs(page: usize, what: &str) -> DocumentError {
    unreadable(format!(
        "{READS_DIFFERENTLY}: page {page} would have {what}"
    ))
}

const READS_DIFFERENTLY: &str = "readers do not agree about it";

fn same_box(before: &PageInfo, after: &PageInfo) -> bool {
    let (one, two) = (&before.matrix, &after.matrix);
    let numbers = [
        (before.width, after.width),
        (before.height, after.height),
        (one.a, two.a),
        (one.b, two.b),
        (one.c, two.c),
        (one.d, two.d),
        (one.e, two.e),
        (one.f, two.f),
    ];
    numbers
        .iter()
        .all(|(before, after)| (before - after).abs() < TOLERANCE)
}

/// Pixels and size of a picture.
type ImageKey = ((u32, u32), usize);

/// A glyph or picture at a place, to be counted.
type Place<T> = (T, i64, i64);

fn has_glyphs(before: &PageText, after: &PageText) -> bool {
    let of = |page: &PageText, index: usize| {
        page.glyphs
            .get(index)
            .map(|glyph| (page.glyph_text(glyph).to_owned(), glyph.rect()))
    };
    // Nearly always the same glyphs come in the same order, and ours after them.
    let same_order = (0..before.glyphs.len()).all(|index| {
        let (Some((old, at)), Some((new, now))) = (of(before, index), of(after, index)) else {
            return false;
        };
        old == new && is_near(before, (at.x0, at.y0), (now.x0, now.y0))
    });
    if same_order {
        return true;
    }

    let mut places: HashMap<Place<&str>, i64> = HashMap::new();
    for glyph in after.glyphs.iter().filter(|glyph| glyph.is_on_page()) {
        let (x, y) = cell(after, (glyph.rect().x0, glyph.rect().y0));
        *places.entry((after.glyph_text(glyph), x, y)).or_default() += 1;
    }
    before
        .glyphs
        .iter()
        .filter(|glyph| glyph.is_on_page())
        .filter(|glyph| !before.glyph_text(glyph).trim().is_empty())
        .all(|glyph| {
            let place = cell(before, (glyph.rect().x0, glyph.rect().y0));
            take(&mut places, before.glyph_text(glyph), place)
        })
}

fn has_images(before: &PageText, after: &PageText) -> bool {
    let key = |image: &PlacedImage| (image.pixels, image.size);
    let mut places: HashMap<Place<ImageKey>, i64> = HashMap::new();
    for image in &after.images {
        let (x, y) = cell(after, (image.rect.x0, image.rect.y0));
        *places.entry((key(image), x, y)).or_default() += 1;
    }
    before.images.iter().all(|image| {
        let place = cell(before, (image.rect.x0, image.rect.y0));
        take(&mut places, key(image), place)
    })
}

/// Takes one item at a place or right beside it.
fn take<T: Copy + Eq + std::hash::Hash>(
    places: &mut HashMap<Place<T>, i64>,
    item: T,
    (x, y): (i64, i64),
) -> bool {
    for (across, down) in [
        (0, 0),
        (1, 0),
        (-1, 0),
        (0, 1),
        (0, -1),
        (1, 1),
        (1, -1),
        (-1, 1),
        (-1, -1),
    ] {
        if let Some(count) = places.get_mut(&(item, x + across, y + down))
            && *count > 0
        {
            *count -= 1;
            return true;
        }
    }
    false
}

/// Returns the square of the page in which a point lies, as wide as the tolerance.
fn cell(page: &PageText, (x, y): (f64, f64)) -> (i64, i64) {
    let square = |fraction: f64, size: f64| (fraction * size / TOLERANCE).floor() as i64;
    (square(x, page.width), square(y, page.height))
}

fn is_near(page: &PageText, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> bool {
    ((x0 - x1) * page.width).abs() < TOLERANCE && ((y0 - y1) * page.height).abs() < TOLERANCE
}
