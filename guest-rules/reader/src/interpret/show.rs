//! Text-showing operators.

use super::{ContentInterpreter, TextExtent, TextRun, owned_range};
use crate::content::{ContentOperand, ContentOperator, OperandStack};
use crate::error::ReadError;
use crate::font::FontIndex;
use crate::geometry::{AffineMap, PageRect};
use crate::page_text::{PlacedGlyph, ShowKind, ShowOperator, TextElement};
use crate::text_state::TextState;

/// Fractions of the page's width and height that are certainly on it.
const INSIDE: std::ops::Range<f64> = 0.001..0.999;

/// Box outside of every page, for coordinates that are not finite.
const NOWHERE: [f32; 4] = [-2.0, -2.0, -1.0, -1.0];

/// Pen and maps during one text-showing operator.
struct TextPen {
    /// Map from text space at the start of the operator to points of the displayed page.
    to_page: AffineMap,
    x: f64,
    y: f64,
    font: FontIndex,
    ascent: f64,
    descent: f64,
    is_vertical: bool,
}

impl<'a> ContentInterpreter<'_, 'a> {
    pub(super) fn show(
        &mut self,
        run: &mut TextRun<'_, 'a>,
        operator: &ContentOperator<'_>,
        operands: &OperandStack<'_>,
        kind: ShowKind,
    ) -> Result<(), ReadError> {
        let Some(font) = run.state.font else {
            return Ok(());
        };
        let Some(face) = self.fonts.face_mut(font) else {
            return Ok(());
        };

        let metrics = face.metrics;
        let is_vertical = face.is_vertical;
        let mut pen = TextPen {
            to_page: run.matrices.text.then(&run.state.ctm),
            x: 0.0,
            y: 0.0,
            font,
            ascent: metrics.ascent,
            descent: metrics.descent,
            is_vertical,
        };

        let first_glyph = self.page.glyphs.len();
        let first_element = self.page.elements.len();
        let single;
        let pieces = match operands.last() {
            Some(ContentOperand::Array(items)) => operands.items(items),
            Some(string @ ContentOperand::String(_)) => {
                single = [string.clone()];
                &single
            }
            _ => return Ok(()),
        };
        if self.extent == TextExtent::Compact {
            return self.show_compact(run, pen, pieces);
        }

        for piece in pieces {
            match piece {
                ContentOperand::String(bytes) => {
                    let start = self.page.glyphs.len();
                    self.show_string(&run.state, &mut pen, bytes)?;
                    let end = self.page.glyphs.len();
                    self.page.elements.push(TextElement::Glyphs(start..end));
                }
                ContentOperand::Number(number) => {
                    pen.advance(&run.state, -number / 1000.0 * run.state.size);
                    self.page.elements.push(TextElement::Adjustment(*number));
                }
                _ => {}
            }
        }

        run.matrices.advance(pen.x, pen.y);
        // A hidden layer may have kept all glyphs back. An operator without glyphs needs no entry.
        if self.page.glyphs.len() == first_glyph {
            self.page.elements.truncate(first_element);
            return Ok(());
        }

        let (direction, em) = baseline(&run.state, &pen, metrics.em_scale);
        let stream = self.current_stream();
        self.page.operators.push(ShowOperator {
            stream,
            range: owned_range(operator),
            kind,
            glyphs: first_glyph..self.page.glyphs.len(),
            elements: first_element..self.page.elements.len(),
            direction,
            em,
            vertical: is_vertical,
        });

        // The text of glyphs under a mark may be replaced at its end.
        if self.extent == TextExtent::First && self.replacing == 0 {
            self.is_done = self.page.shows_text_in(first_glyph..self.page.glyphs.len());
        }

        Ok(())
    }

    /// Collects the text of an operator, and notes whether all of it lies on the page.
    fn show_compact(
        &mut self,
        run: &mut TextRun<'_, 'a>,
        mut pen: TextPen,
        pieces: &[ContentOperand<'_>],
    ) -> Result<(), ReadError> {
        let state = &run.state;
        // Spacing can lead backwards, so both ends of the line are noted.
        let (mut least, mut most) = (0.0_f64, 0.0_f64);
        let before = self.compact_glyphs;

        for piece in pieces {
            match piece {
                ContentOperand::String(bytes) => {
                    let Some(face) = self.fonts.face_mut(pen.font) else {
                        continue;
                    };

                    let mut bytes: &[u8] = bytes;
                    while let Some((code, length)) = face.next_code(bytes) {
                        self.budget.spend_glyph()?;
                        bytes = bytes.get(length..).unwrap_or_default();
                        let facts = face.facts(code, u8::try_from(length).unwrap_or(1));
                        if self.hidden == 0 {
                            self.page.text.push_str(&facts.compact);
                            self.compact_glyphs += 1;
                        }

                        let own = facts.advance * state.size + state.character_spacing;
                        let spaced = if facts.is_word_space {
                            own + state.word_spacing
                        } else {
                            own
                        };
                        pen.advance(state, spaced);

                        least = least.min(pen.x);
                        most = most.max(pen.x);
                    }
                }
                ContentOperand::Number(number) => {
                    pen.advance(state, -number / 1000.0 * state.size);
                    least = least.min(pen.x);
                    most = most.max(pen.x);
                }
                _ => {}
            }
        }

        if self.compact_glyphs > before {
            let on_page = |x: f64| {
                let (x, y) = pen.to_page.apply(x, state.rise);
                let inside = INSIDE.contains(&(x / self.page.width));
                inside && INSIDE.contains(&(y / self.page.height))
            };

            // A glyph reaches from its origin upwards and downwards, so it is where its origin is.
            let is_usual =
                !pen.is_vertical && pen.ascent >= 0.0 && pen.descent <= 0.0 && pen.x.is_finite();
            self.is_uncertain |= !(is_usual && on_page(least) && on_page(most));

            // The page has to be read with the places of its glyphs anyway.
            self.is_done |= self.is_uncertain;
        }

        run.matrices.advance(pen.x, pen.y);
        Ok(())
    }

    fn show_string(
        &mut self,
        state: &TextState,
        pen: &mut TextPen,
        mut bytes: &[u8],
    ) -> Result<(), ReadError> {
        let operator = u32::try_from(self.page.operators.len()).unwrap_or(u32::MAX);
        // The advance of every glyph is measured along the same direction.
        let (unit_x, unit_y) = if pen.is_vertical {
            pen.to_page.apply_vector(0.0, 1.0)
        } else {
            pen.to_page.apply_vector(state.horizontal_scale, 0.0)
        };
        let unit = unit_x.hypot(unit_y);

        let Some(face) = self.fonts.face_mut(pen.font) else {
            return Ok(());
        };

        while let Some((code, length)) = face.next_code(bytes) {
            self.budget.spend_glyph()?;
            // The font returns code 0 for unknown bytes, but a rewritten string needs the original
            // ones.
            let raw_code = bytes
                .iter()
                .take(length)
                .fold(0, |value: u32, byte| value << 8 | u32::from(*byte));

            bytes = bytes.get(length..).unwrap_or_default();
            let code_bytes = u8::try_from(length).unwrap_or(1);
            let facts = face.facts(code, code_bytes);
            let spacing = if facts.is_word_space {
                state.character_spacing + state.word_spacing
            } else {
                state.character_spacing
            };

            let own = facts.advance * state.size;
            let bounds = pen.bounds(state, facts.displacement, facts.advance);
            let (origin_x, origin_y) = pen.to_page.apply(pen.x, pen.y);
            if self.hidden == 0 {
                let text_start = self.page.text.len();
                self.page.text.push_str(&facts.text);
                self.page.glyphs.push(PlacedGlyph {
                    edges: fractions(&bounds, self.page.width, self.page.height),
                    origin: [origin_x as f32, origin_y as f32],
                    advance: (own.abs() * unit) as f32,
                    text_start: u32::try_from(text_start).unwrap_or(u32::MAX),
                    text_end: u32::try_from(self.page.text.len()).unwrap_or(u32::MAX),
                    operator,
                    code: raw_code,
                    code_bytes,
                    adjustment: adjustment(facts.advance, spacing, state.size),
                });
            }

            // Hidden text moves the pen, too: the visible text after it must not change its place.
            pen.advance(state, own + spacing);
        }

        Ok(())
    }
}

impl TextPen {
    /// Moves along the baseline, by a length in unscaled text space.
    fn advance(&mut self, state: &TextState, length: f64) {
        if self.is_vertical {
            self.y += length;
        } else {
            self.x += length * state.horizontal_scale;
        }
    }

    fn bounds(&self, state: &TextState, displacement: (f64, f64), advance: f64) -> PageRect {
        let (shift_x, shift_y) = displacement;
        let scale = state.size * state.horizontal_scale;
        let left = self.x + shift_x * scale;

        let base = self.y + state.rise;
        if self.is_vertical {
            // The origin of a vertical glyph is the middle of its top edge.
            let right = self.x - shift_x * scale;
            self.to_page
                .bounds_of(left, base + advance * state.size, right, base)
        } else {
            let base = base + shift_y * state.size;
            self.to_page.bounds_of(
                left,
                base + self.descent * state.size,
                left + advance * scale,
                base + self.ascent * state.size,
            )
        }
    }
}

/// Returns the unit vector of the writing direction and the height of the font, on the displayed
/// page.
fn baseline(state: &TextState, pen: &TextPen, em_scale: f64) -> ([f32; 2], f32) {
    // A negative size turns the letters round, and the direction of writing with them.
    let flip = if state.size < 0.0 { -1.0 } else { 1.0 };
    let (along, up) = if pen.is_vertical {
        ((0.0, -flip), (state.size, 0.0))
    } else {
        let flip = flip * state.horizontal_scale.signum();
        ((flip, 0.0), (0.0, state.size))
    };
    let (x, y) = pen.to_page.apply_vector(along.0, along.1);
    let length = x.hypot(y);
    let direction = if length.is_finite() && length > 0.0 {
        [(x / length) as f32, (y / length) as f32]
    } else {
        [1.0, 0.0]
    };

    let (x, y) = pen.to_page.apply_vector(up.0, up.1);
    let em = x.hypot(y) * em_scale;
    let em = if em.is_finite() { em as f32 } else { 0.0 };
    (direction, em)
}

fn fractions(bounds: &PageRect, width: f64, height: f64) -> [f32; 4] {
    let edges = [
        (bounds.x0 / width) as f32,
        (bounds.y0 / height) as f32,
        (bounds.x1 / width) as f32,
        (bounds.y1 / height) as f32,
    ];

    if edges.iter().all(|edge| edge.is_finite()) {
        edges
    } else {
        NOWHERE
    }
}

/// Returns the value of [`PlacedGlyph::adjustment`].
fn adjustment(advance: f64, spacing: f64, size: f64) -> f32 {
    let spacing = if size == 0.0 { 0.0 } else { spacing / size };
    (-1000.0 * (advance + spacing)) as f32
}
