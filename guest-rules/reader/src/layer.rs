//! The glyphs of a page as running text.

use rustc_hash::FxHashMap;

use crate::geometry::PageRect;
use crate::page_text::{PageText, PlacedGlyph, ShowOperator};
use crate::unicode::{is_ignorable, ligature};

/// Gap that starts a new word, in ems.
const WORD_GAP: f32 = 0.16;
/// Baseline shift that starts a new line, in ems.
const LINE_SHIFT: f32 = 0.4;
/// Distance in ems within which the same glyph counts as drawn twice.
const OVERPRINT: f32 = 0.12;
/// Backward jump of the pen that ends a word, in ems.
const JUMP_BACK: f32 = 1.0;

/// The text of a page in drawing order. White space is collapsed to single spaces, gaps become
/// spaces, ligatures are expanded, and invisible characters are omitted.
#[derive(Debug, Clone, Default)]
pub struct TextLayer {
    chars: Vec<LayerChar>,
}

/// One character of a [`TextLayer`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerChar {
    /// The character; white space is always `' '`.
    pub character: char,
    /// Index into [`PageText::glyphs`]; for a space, the preceding glyph.
    pub glyph: u32,
    /// Line number on the page, from 0.
    pub line: u32,
    /// Whether it is a space inferred from a gap.
    pub is_inferred: bool,
    /// Index of this part of the glyph's text, and the number of parts.
    part: u16,
    parts: u16,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerLine {
    /// Its text, without white space at either end.
    pub text: String,
    /// Its box.
    pub rect: PageRect,
}

impl TextLayer {
    /// Builds the layer of visible (or, over a scan, selectable) text, without glyphs outside of
    /// the page, and without glyphs that are drawn once more at the same place.
    pub fn visible(page: &PageText) -> Self {
        Self::build(page, true, PlacedGlyph::is_on_page)
    }

    /// Builds the layer of all text, including text outside of the visible page.
    pub fn complete(page: &PageText) -> Self {
        Self::build(page, false, |_| true)
    }

    /// Returns the characters in order.
    pub fn chars(&self) -> &[LayerChar] {
        &self.chars
    }

    /// Returns the box of one character. Characters that share a glyph get equal parts of its box.
    pub fn rect(&self, page: &PageText, character: &LayerChar) -> PageRect {
        let Some(glyph) = page.glyphs.get(character.glyph as usize) else {
            return PageRect::EMPTY;
        };

        let whole = glyph.rect();
        if character.parts <= 1 {
            return whole;
        }

        // Letters of a ligature follow each other along the line, which is turned on a turned page.
        let direction = page
            .operators
            .get(glyph.operator as usize)
            .map_or([1.0, 0.0], |operator| operator.direction);
        part_of(&whole, direction, character.part, character.parts)
    }

    /// Returns the bounding box of characters, ignoring inferred spaces.
    pub fn bounds<'c>(
        &self,
        page: &PageText,
        characters: impl IntoIterator<Item = &'c LayerChar>,
    ) -> PageRect {
        characters
            .into_iter()
            .filter(|character| character.character != ' ')
            .fold(PageRect::EMPTY, |bounds, character| {
                bounds.union(&self.rect(page, character))
            })
    }

    /// Returns the lines of the page in drawing order.
    pub fn lines(&self, page: &PageText) -> Vec<LayerLine> {
        self.chars
            .chunk_by(|left, right| left.line == right.line)
            .map(|line| {
                let text: String = line.iter().map(|character| character.character).collect();
                LayerLine {
                    text: text.trim().to_owned(),
                    rect: self.bounds(page, line),
                }
            })
            .filter(|line| !line.text.is_empty() && line.rect.is_sane())
            .collect()
    }

    fn build(
        page: &PageText,
        leaves_out_repeated: bool,
        is_wanted: impl Fn(&PlacedGlyph) -> bool,
    ) -> Self {
        let mut builder = LayerBuilder {
            leaves_out_repeated,
            ..LayerBuilder::default()
        };
        for (index, glyph) in page.glyphs.iter().enumerate() {
            if is_wanted(glyph)
                && let Some(operator) = page.operators.get(glyph.operator as usize)
                && let Ok(index) = u32::try_from(index)
            {
                builder.add(page, index, glyph, operator);
            }
        }

        Self {
            chars: builder.chars,
        }
    }
}

/// Normalizes a phrase as a [`TextLayer`] does: ligatures are expanded, invisible characters
/// removed, white space collapsed and trimmed. Case is kept.
pub fn layer_text(phrase: &str) -> String {
    let mut text = String::with_capacity(phrase.len());
    for character in phrase.chars() {
        if character.is_whitespace() {
            if !text.ends_with(' ') && !text.is_empty() {
                text.push(' ');
            }
        } else if let Some(letters) = ligature(character) {
            text.push_str(letters);
        } else if !is_ignorable(character) {
            text.push(character);
        }
    }

    text.truncate(text.trim_end().len());
    text
}

#[derive(Default)]
struct LayerBuilder<'p> {
    chars: Vec<LayerChar>,
    line: u32,
    previous: Option<(&'p PlacedGlyph, &'p ShowOperator)>,
    /// Glyphs so far, by their text and place; only where repeated ones are left out.
    drawn: FxHashMap<(&'p str, i64, i64), [f32; 2]>,
    leaves_out_repeated: bool,
}

enum ReadingStep {
    SameWord,
    NewWord,
    NewLine,
}

impl<'p> LayerBuilder<'p> {
    fn add(
        &mut self,
        page: &'p PageText,
        index: u32,
        glyph: &'p PlacedGlyph,
        operator: &'p ShowOperator,
    ) {
        let text = page.glyph_text(glyph);
        if text.is_empty() || self.is_drawn_again(glyph, operator, text) {
            return;
        }

        if let Some((last, last_operator)) = self.previous {
            match step(last, last_operator, glyph, operator) {
                ReadingStep::SameWord => {}
                ReadingStep::NewWord => self.space(true),
                // The end of a line separates words as well, so a phrase is found across it.
                ReadingStep::NewLine => {
                    self.space(true);
                    self.line = self.line.saturating_add(1);
                }
            }
        }

        self.previous = Some((glyph, operator));
        self.characters(text, index);
    }

    /// Returns whether the same glyph stands at this place already: bold letters may be drawn twice.
    fn is_drawn_again(
        &mut self,
        glyph: &PlacedGlyph,
        operator: &ShowOperator,
        text: &'p str,
    ) -> bool {
        let near = OVERPRINT * operator.em;
        if !self.leaves_out_repeated || near <= 0.0 || text.trim().is_empty() {
            return false;
        }

        let [x, y] = glyph.origin;
        let (column, row) = ((x / near).round() as i64, (y / near).round() as i64);
        let is_here =
            |[other_x, other_y]: [f32; 2]| (x - other_x).abs() < near && (y - other_y).abs() < near;
        // The first drawing may lie just across the edge of a square.
        for across in -1..=1 {
            for down in -1..=1 {
                let place = (text, column + across, row + down);
                if self
                    .drawn
                    .get(&place)
                    .is_some_and(|origin| is_here(*origin))
                {
                    return true;
                }
            }
        }

        self.drawn.insert((text, column, row), glyph.origin);
        false
    }

    fn characters(&mut self, text: &str, glyph: u32) {
        // Nearly every glyph is one plain character, which needs no list.
        let mut single = text.chars();
        if let (Some(character), None) = (single.next(), single.next())
            && ligature(character).is_none()
        {
            self.push(character, glyph, 0, 1);
            return;
        }

        let expanded: Vec<char> = text
            .chars()
            .flat_map(|character| match ligature(character) {
                Some(letters) => letters.chars().collect(),
                None => vec![character],
            })
            .filter(|character| !is_ignorable(*character))
            .collect();
        let parts = u16::try_from(expanded.len()).unwrap_or(u16::MAX);

        for (part, character) in expanded.into_iter().enumerate() {
            self.push(character, glyph, u16::try_from(part).unwrap_or(0), parts);
        }
    }

    fn push(&mut self, character: char, glyph: u32, part: u16, parts: u16) {
        if character.is_whitespace() {
            self.space(false);
        } else if !is_ignorable(character) {
            self.chars.push(LayerChar {
                character,
                glyph,
                line: self.line,
                is_inferred: false,
                part,
                parts,
            });
        }
    }

    fn space(&mut self, is_inferred: bool) {
        match self.chars.last_mut() {
            // A drawn space beside a gap counts as drawn.
            // Only gaps may be ignored between the braces of a tag.
            Some(last) if last.character == ' ' => last.is_inferred &= is_inferred,
            Some(last) => {
                let space = LayerChar {
                    character: ' ',
                    is_inferred,
                    ..*last
                };
                self.chars.push(space);
            }
            None => {}
        }
    }
}

/// Returns how a glyph continues the text of the preceding one.
fn step(
    last: &PlacedGlyph,
    last_operator: &ShowOperator,
    glyph: &PlacedGlyph,
    operator: &ShowOperator,
) -> ReadingStep {
    // The larger font decides: a small index beside large letters belongs to their line.
    let em = last_operator.em.max(operator.em);
    let [along_x, along_y] = last_operator.direction;
    let [next_x, next_y] = operator.direction;
    // Turned text, as along the edge of a form, does not continue the line before it.
    if along_x * next_x + along_y * next_y < 0.9 {
        return ReadingStep::NewLine;
    }

    let shift_x = glyph.origin[0] - last.origin[0];
    let shift_y = glyph.origin[1] - last.origin[1];
    let gap = shift_x * along_x + shift_y * along_y - last.advance;

    let across = (shift_y * along_x - shift_x * along_y).abs();
    if across > LINE_SHIFT * em {
        ReadingStep::NewLine
    } else if gap > WORD_GAP * em || gap < -JUMP_BACK * em {
        ReadingStep::NewWord
    } else {
        ReadingStep::SameWord
    }
}

/// Returns a part of a glyph's box, cut along the writing direction.
fn part_of(whole: &PageRect, [along_x, along_y]: [f32; 2], part: u16, parts: u16) -> PageRect {
    let (part, parts) = (f64::from(part), f64::from(parts));
    let slice = |low: f64, high: f64, is_forward: bool| {
        let step = (high - low) / parts;
        if is_forward {
            (low + step * part, low + step * (part + 1.0))
        } else {
            (high - step * (part + 1.0), high - step * part)
        }
    };

    let mut rect = *whole;
    if along_x.abs() >= along_y.abs() {
        (rect.x0, rect.x1) = slice(whole.x0, whole.x1, along_x >= 0.0);
    } else {
        (rect.y0, rect.y1) = slice(whole.y0, whole.y1, along_y >= 0.0);
    }

    rect
}
