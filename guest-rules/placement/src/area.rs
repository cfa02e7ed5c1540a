//! Conversion of rectangles to the contract.

use holdfast_reader::PageRect;

use crate::Area;

/// Tolerance at the page edge, because sums of fractions are rarely exact.
pub(crate) const EDGE_TOLERANCE: f64 = 1e-6;

impl Area {
    /// Converts a rectangle on a page given by its 0-based index.
    pub(crate) fn on_page(index: usize, rect: &PageRect) -> Self {
        Self {
            page: page_number(index),
            x: tidy(rect.x0),
            y: tidy(rect.y0),
            w: tidy(rect.width()),
            h: tidy(rect.height()),
        }
    }

    /// Returns whether some of it lies beyond an edge of the page.
    pub(crate) fn leaves_page(&self) -> bool {
        self.x < -EDGE_TOLERANCE
            || self.y < -EDGE_TOLERANCE
            || self.x + self.w > 1.0 + EDGE_TOLERANCE
            || self.y + self.h > 1.0 + EDGE_TOLERANCE
    }
}

/// Returns the 1-based number of a page given by its index.
pub(crate) fn page_number(index: usize) -> u32 {
    u32::try_from(index).map_or(u32::MAX, |index| index.saturating_add(1))
}

/// Returns the 0-based index of a page given by its number; `None` for page 0, which does not
/// exist.
pub(crate) fn page_index(number: u32) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}

/// Rounds to a millionth of a page, which is finer than any display and removes the noise of
/// floating point.
pub(crate) fn tidy(fraction: f64) -> f64 {
    (fraction * 1e6).round() / 1e6
}
