//! The parts of the graphics state that affect text.

use crate::font::FontIndex;
use crate::geometry::AffineMap;

/// State saved and restored by `q` and `Q`.
#[derive(Debug, Clone)]
pub(crate) struct TextState {
    /// Map from the current coordinates to points of the displayed page.
    pub(crate) ctm: AffineMap,
    pub(crate) font: Option<FontIndex>,
    pub(crate) size: f64,
    pub(crate) character_spacing: f64,
    pub(crate) word_spacing: f64,
    /// 1 is normal.
    pub(crate) horizontal_scale: f64,
    pub(crate) leading: f64,
    pub(crate) rise: f64,
}

impl TextState {
    pub(crate) fn new(ctm: AffineMap) -> Self {
        Self {
            ctm,
            font: None,
            size: 0.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            horizontal_scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        }
    }
}

/// The two matrices of a text object.
#[derive(Debug, Clone)]
pub(crate) struct TextMatrices {
    pub(crate) text: AffineMap,
    pub(crate) line: AffineMap,
}

impl TextMatrices {
    pub(crate) fn new() -> Self {
        Self {
            text: AffineMap::IDENTITY,
            line: AffineMap::IDENTITY,
        }
    }

    pub(crate) fn set(&mut self, matrix: AffineMap) {
        self.line = matrix;
        self.text = matrix;
    }

    /// Applies `Td`: moves relative to the start of the current line.
    pub(crate) fn next_line(&mut self, x: f64, y: f64) {
        self.set(AffineMap::translation(x, y).then(&self.line));
    }

    /// Moves the pen along the baseline.
    pub(crate) fn advance(&mut self, x: f64, y: f64) {
        self.text = AffineMap::translation(x, y).then(&self.text);
    }
}
