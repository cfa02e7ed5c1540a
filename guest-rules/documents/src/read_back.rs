//! Reading a document back after every write, with the reader that drew its pages for the signer.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

use hayro_syntax::PdfData;
use holdfast_reader::{PageInfo, PageText, PdfDocument};

use crate::DocumentError;
use crate::error::{Result, unreadable};
use crate::source::refusal;

/// Points that a writer's rounding may move a glyph or a picture.
const TOLERANCE: f32 = 0.5;

/// Contents of pages before a write.
pub(crate) struct ShownPages {
    pages: Vec<ShownPage>,
}

#[derive(Clone)]
struct ShownPage {
    info: PageInfo,
    content: Rc<ShownContent>,
    /// The page had no size of its own, so places on it are unknown.
    is_without_size: bool,
}

/// Words and pictures of a page. Small, because all pages of a document are in memory together.
struct ShownContent {
    /// Glyphs on the page, without white space, in the order in which they are drawn.
    glyphs: Vec<Placed<u32>>,
    images: Vec<Placed<ImageKey>>,
}

/// Pixels and size of a picture.
type ImageKey = ((u32, u32), usize);

/// A glyph, by the hash of its text, or a picture.
#[derive(Clone, Copy)]
struct Placed<T> {
    item: T,
    /// Top left corner, in points of the displayed page.
    x: f32,
    y: f32,
}

impl ShownPages {
    /// The pages of no document, to be extended.
    pub(crate) fn none() -> Self {
        Self { pages: Vec::new() }
    }

    /// Reads all pages of a document.
    pub(crate) fn of(pdf: &Arc<Vec<u8>>) -> Result<Self> {
        Self::of_reader(&PdfDocument::open(Arc::clone(pdf)).map_err(refusal)?)
    }

    /// Reads all pages of an opened document.
    pub(crate) fn of_reader(reader: &PdfDocument) -> Result<Self> {
        let mut text = reader.text_reader();
        let mut shown = Self::none();
        for (index, info) in reader.pages().into_iter().enumerate() {
            shown.push(info, &text.page(index).map_err(refusal)?, &BTreeSet::new());
        }
        Ok(shown)
    }

    /// Appends a page without some of its glyphs, given by their indices.
    pub(crate) fn push(&mut self, info: PageInfo, page: &PageText, removed: &BTreeSet<usize>) {
        self.pages.push(ShownPage {
            info,
            content: Rc::new(ShownContent::without(page, removed)),
            is_without_size: false,
        });
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

    /// Requires that a written document has these pages, with every word and picture in its place. Marks that were
    /// added comes on top.
    ///
    /// # Errors
    ///
    /// `unreadable`, with the page and the missing part.
    pub(crate) fn confirm(&self, written: impl Into<PdfData>) -> Result<()> {
        let reader = PdfDocument::open(written).map_err(refusal)?;
        // The number comes first: pages are compared in pairs, and a lost last page would have no partner.
        let found = reader.page_count();
        if found != self.pages.len() {
            let expected = self.pages.len();
            return Err(unreadable(format!(
                "{READS_DIFFERENTLY}: {found} of {expected} pages survive being written"
            )));
        }

        let mut text = reader.text_reader();
        for (index, (shown, info)) in self.pages.iter().zip(reader.pages()).enumerate() {
            let written = ShownContent::of(&text.page(index).map_err(refusal)?);
            shown
                .difference(&info, &written)
                .map_or(Ok(()), |what| Err(differs(index + 1, what)))?;
        }

        Ok(())
    }
}

/// The beginning of every refusal for this reason; the host gives it a code of its own.
pub(crate) const READS_DIFFERENTLY: &str = "readers do not agree about it";

/// Refuses a document because of what a page (from 1) would have.
pub(crate) fn differs(page: usize, what: &str) -> DocumentError {
    unreadable(format!(
        "{READS_DIFFERENTLY}: page {page} would have {what}"
    ))
}

impl ShownPage {
    /// Returns the parts of this page that are missing on the written one.
    fn difference(&self, info: &PageInfo, written: &ShownContent) -> Option<&'static str> {
        // The repair gave such a page a size, so its places moved and only the words can be compared.
        let has_places = !self.is_without_size;
        if has_places && !same_box(&self.info, info) {
            return Some("another size");
        }
        if !self.content.has_glyphs_in(written, has_places) {
            return Some("other words");
        }

        let images = (&self.content.images, &written.images);
        (has_places && !all_found(images.0, images.1)).then_some("other pictures")
    }
}

impl ShownContent {
    fn of(page: &PageText) -> Self {
        Self::without(page, &BTreeSet::new())
    }

    fn without(page: &PageText, removed: &BTreeSet<usize>) -> Self {
        let place = |x: f64, y: f64| ((x * page.width) as f32, (y * page.height) as f32);
        let glyphs = page.glyphs.iter().enumerate();
        let glyphs = glyphs.filter(|(index, glyph)| glyph.is_on_page() && !removed.contains(index));
        let glyphs = glyphs.filter_map(|(_, glyph)| {
            // Spaces have no ink, and a writer may set them in another way.
            let text = page.glyph_text(glyph).trim();
            let rect = glyph.rect();
            let (x, y) = place(rect.x0, rect.y0);
            (!text.is_empty()).then(|| Placed {
                item: hash(text),
                x,
                y,
            })
        });

        let images = page.images.iter().map(|image| {
            let (x, y) = place(image.rect.x0, image.rect.y0);
            Placed {
                item: (image.pixels, image.size),
                x,
                y,
            }
        });

        Self {
            glyphs: glyphs.collect(),
            images: images.collect(),
        }
    }

    fn has_glyphs_in(&self, written: &Self, has_places: bool) -> bool {
        // Nearly always the same glyphs come in the same order, and ours after them.
        let pairs = self.glyphs.iter().zip(&written.glyphs);
        let mut same =
            pairs.map(|(old, new)| old.item == new.item && (!has_places || old.is_at(new)));
        let in_order = self.glyphs.len() <= written.glyphs.len() && same.all(|same| same);
        in_order || (has_places && all_found(&self.glyphs, &written.glyphs))
    }
}

impl<T> Placed<T> {
    fn is_at(&self, other: &Self) -> bool {
        (self.x - other.x).abs() < TOLERANCE && (self.y - other.y).abs() < TOLERANCE
    }

    /// Returns the square of the page in which it lies, as wide as the tolerance.
    fn cell(&self) -> (i32, i32) {
        let square = |place: f32| (place / TOLERANCE).floor() as i32;
        (square(self.x), square(self.y))
    }
}

/// Returns whether each item occurs among the others, at its place or right beside it.
fn all_found<T: Copy + Eq + Hash>(wanted: &[Placed<T>], among: &[Placed<T>]) -> bool {
    let mut places: HashMap<(T, (i32, i32)), u32> = HashMap::new();
    for placed in among {
        *places.entry((placed.item, placed.cell())).or_default() += 1;
    }

    wanted.iter().all(|placed| {
        let (x, y) = placed.cell();
        // A move within the tolerance can lead over the edge of a square, so its neighbours count, too.
        let beside = [0, -1, 1].into_iter().flat_map(|across| {
            [0, -1, 1].map(|down| (x.saturating_add(across), y.saturating_add(down)))
        });
        for cell in beside {
            // Each found item is used up: a word that stood on the page twice has to be there twice.
            if let Some(count) = places.get_mut(&(placed.item, cell))
                && *count > 0
            {
                *count -= 1;
                return true;
            }
        }

        false
    })
}

fn same_box(before: &PageInfo, after: &PageInfo) -> bool {
    // Equal sizes are not enough: a page that is turned upside down has them as well.
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
        .all(|(before, after)| (before - after).abs() < f64::from(TOLERANCE))
}

/// FNV-1a: equal in every run, as a component has to be.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(items: &[(u32, f32)]) -> Vec<Placed<u32>> {
        let at = |(item, x): &(u32, f32)| Placed {
            item: *item,
            x: *x,
            y: 1.0,
        };
        items.iter().map(at).collect()
    }

    #[test]
    fn an_item_is_found_once_and_only_near_its_place() {
        let page = placed(&[(1, 10.0), (2, 20.0)]);
        assert!(all_found(&placed(&[(2, 20.3), (1, 9.8)]), &page));
        assert!(!all_found(&placed(&[(1, 10.0), (1, 10.0)]), &page));
        assert!(!all_found(&placed(&[(1, 12.0)]), &page));
        assert!(!all_found(&placed(&[(3, 10.0)]), &page));
    }
}
