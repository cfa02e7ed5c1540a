//! The parts of the graphics state that affect text.

use crate::font::FontIndex;
use crate::geometry::Matrix;

/// State saved and restored by `q` and `Q`.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Map from the current coordinates to points of the displayed page.
    pub(crate) ctm: Matrix,
    pub(crate) font: Option<FontIndex>,
    pub(crate) size: f64,
    pub(crate) character_spacing: f64,
    pub(crate) word_spacing: f64,
    /// 1 is normal.
    pub(crate) horizontal_scale: f64,
    pub(crate) leading: f64,
    pub(crate) rise: f64,
}

impl State {
    pub(crate) fn new(ctm: Matrix) -> Self {
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
    pub(crate) text: Matrix,
    pub(crate) line: Matrix,
}

impl TextMatrices {
    pub(crate) fn new() -> Self {
        Self {
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
        }
    }

    pub(crate) fn set(&mut self, matrix: Matrix) {
        self.line = matrix;
        self.text = matrix;
    }

    /// Applies `Td`: moves relative to the start of the current line.
    pub(crate) fn next_line(&mut self, x: f64, y: f64) {
        self.set(Matrix::translation(x, y).then(&self.line));
    }

    /// Moves the pen along the baseline.
    pub(crate) fn advance(&mut self, x: f64, y: f64) {
        self.text = Matrix::translation(x, y).then(&self.text);
    }
}
