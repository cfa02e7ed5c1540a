//! Lines of text. Each is shaped once, so that measuring and drawing use the same glyphs.

use harfrust::{Buffer, Direction, ShapeOptions, ShaperFont};
use holdfast_handwriting::Handwriting;
use krilla::geom::Point;
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};

use crate::error::{Result, other};

/// Faces of this component: Noto Sans (SIL Open Font License), and those of typed signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// Upright.
    Regular,
    /// Upright and bold.
    Bold,
    /// Slanted.
    Italic,
    /// For a typed signature.
    Written(Handwriting),
}

/// Shaped text, ready to be drawn in one style.
#[derive(Clone, Debug)]
pub(crate) struct TextLine {
    text: String,
    glyphs: Vec<KrillaGlyph>,
    style: TextStyle,
    /// Advance in units of the font size.
    em: f32,
}

impl TextLine {
    pub(crate) fn width(&self, size: f32) -> f32 {
        self.em * size
    }
}

/// One face and the data that layout needs.
struct LoadedTypeface {
    font: Font,
    shapes: harfrust::Font,
    stand_in: harfrust::GlyphId,
}

/// All loaded faces.
pub(crate) struct FontSet {
    regular: LoadedTypeface,
    bold: LoadedTypeface,
    italic: LoadedTypeface,
    /// In the order of [`Handwriting::ALL`].
    written: [LoadedTypeface; 3],
}

/// Noto Sans: height over and depth under the baseline in units of the font size.
pub(crate) const ASCENT: f32 = 0.78;
pub(crate) const DESCENT: f32 = 0.24;
/// Distance of baselines in units of the font size.
pub(crate) const LEADING: f32 = 1.3;

impl LoadedTypeface {
    fn load(data: &'static [u8]) -> Result<Self> {
        let font = Font::new(data.into(), 0).ok_or_else(|| other("a built-in font is damaged"))?;
        let shapes =
            harfrust::Font::new(data, 0).ok_or_else(|| other("a built-in font is damaged"))?;
        let stand_in = ['\u{FFFD}', '?']
            .into_iter()
            .find_map(|character| shapes.charmap().map_unicode(character))
            .unwrap_or_default();
        Ok(Self {
            font,
            shapes,
            stand_in,
        })
    }
}

impl FontSet {
    pub(crate) fn load() -> Result<Self> {
        Ok(Self {
            regular: LoadedTypeface::load(notosans::REGULAR_TTF)?,
            bold: LoadedTypeface::load(notosans::BOLD_TTF)?,
            italic: LoadedTypeface::load(notosans::ITALIC_TTF)?,
            written: [
                LoadedTypeface::load(Handwriting::Casual.font())?,
                LoadedTypeface::load(Handwriting::Formal.font())?,
                LoadedTypeface::load(Handwriting::Light.font())?,
            ],
        })
    }

    /// Returns whether the face has a glyph for each character of `text`.
    pub(crate) fn covers(&self, text: &str, style: TextStyle) -> bool {
        let characters = self.typeface(style).shapes.charmap();
        let has = |character: char| characters.map_unicode(character).is_some();
        printable(text).chars().all(has)
    }

    fn typeface(&self, style: TextStyle) -> &LoadedTypeface {
        match style {
            TextStyle::Regular => &self.regular,
            TextStyle::Bold => &self.bold,
            TextStyle::Italic => &self.italic,
            TextStyle::Written(Handwriting::Casual) => &self.written[0],
            TextStyle::Written(Handwriting::Formal) => &self.written[1],
            TextStyle::Written(Handwriting::Light) => &self.written[2],
        }
    }

    /// Shapes one line, left to right.
    ///
    /// A character that the font lacks is drawn as a replacement sign but keeps its Unicode value,
    /// so that searching and copying still find the original text.
    #[expect(
        clippy::expect_used,
        reason = "shaping fails for a buffer without a direction, or one that does not match its plan"
    )]
    pub(crate) fn line(&self, text: &str, style: TextStyle) -> TextLine {
        let typeface = self.typeface(style);
        let text = printable(text);
        let mut shaped = Buffer::new();
        shaped.push_str(&text);
        shaped.guess_segment_properties();
        shaped.set_direction(Direction::LeftToRight);
        let font = ShaperFont::new(&typeface.shapes);
        harfrust::shape(&font, &mut shaped, ShapeOptions::new())
            .expect("the buffer has a direction, and no plan is given");
        let units = f32::from(font.units_per_em());
        let stand_in_advance = font.glyph_h_advance(typeface.stand_in) as f32 / units;

        let infos = shaped.glyph_infos();
        let mut glyphs = Vec::with_capacity(infos.len());
        let mut em = 0.0;
        for (index, (info, position)) in infos.iter().zip(shaped.glyph_positions()).enumerate() {
            let start = info.cluster as usize;
            let end = infos[index..]
                .iter()
                .find(|next| next.cluster != info.cluster)
                .map_or(text.len(), |next| next.cluster as usize);
            let missing = info.glyph_id == 0;
            let advance = if missing {
                stand_in_advance
            } else {
                position.x_advance as f32 / units
            };
            em += advance;
            glyphs.push(KrillaGlyph::new(
                GlyphId::new(if missing {
                    typeface.stand_in.to_u32()
                } else {
                    info.glyph_id
                }),
                advance,
                position.x_offset as f32 / units,
                position.y_offset as f32 / units,
                position.y_advance as f32 / units,
                start..end,
                None,
            ));
        }
        TextLine {
            text,
            glyphs,
            style,
            em,
        }
    }

    /// Draws a line with its baseline starting at a point, in the current paint of the surface.
    pub(crate) fn draw(
        &self,
        surface: &mut Surface<'_>,
        line: &TextLine,
        x: f32,
        baseline: f32,
        size: f32,
    ) {
        if line.glyphs.is_empty() {
            return;
        }
        let font = self.typeface(line.style).font.clone();
        let start = Point::from_xy(x, baseline);
        surface.draw_glyphs(start, &line.glyphs, font, &line.text, size, false);
    }

    /// Draws the outlines of a line, which readers do not extract as text.
    pub(crate) fn draw_outlines(
        &self,
        surface: &mut Surface<'_>,
        line: &TextLine,
        x: f32,
        baseline: f32,
        size: f32,
    ) {
        let font = self.typeface(line.style).font.clone();
        let start = Point::from_xy(x, baseline);
        surface.draw_glyphs(start, &line.glyphs, font, &line.text, size, true);
    }

    /// Breaks text into shaped lines no wider than `width` at `size`.
    pub(crate) fn wrap(
        &self,
        text: &str,
        style: TextStyle,
        size: f32,
        width: f32,
    ) -> Vec<TextLine> {
        WordIterator::new(self, text, style)
            .lines(width / size)
            .iter()
            .map(|line| self.line(line, style))
            .collect()
    }
}

/// Words with known widths, to be laid out at many sizes.
pub(crate) struct WordIterator {
    paragraphs: Vec<Vec<LaidOutWord>>,
    space: f32,
}

struct LaidOutWord {
    text: String,
    em: f32,
    /// Advance of each character alone, for words that have to break.
    characters: Vec<(char, f32)>,
}

impl LaidOutWord {
    /// Splits a word that is wider than a line. In the second half of the line it prefers to break
    /// after a separator of an address or path.
    fn pieces(&self, room: f32) -> Vec<(String, f32)> {
        let mut pieces = Vec::new();
        let mut rest = self.characters.as_slice();
        while !rest.is_empty() {
            let mut used = 0.0;
            let mut fitting = 0;
            let mut natural = 0;
            while let Some((character, advance)) = rest.get(fitting) {
                if fitting > 0 && used + advance > room {
                    break;
                }
                used += advance;
                fitting += 1;
                if matches!(character, '@' | '.' | '-' | '_' | '/' | ':' | ',') && used * 2.0 > room
                {
                    natural = fitting;
                }
            }
            let cut = if fitting < rest.len() && natural > 0 {
                natural
            } else {
                fitting
            };
            let (piece, after) = rest.split_at(cut);
            let width = piece.iter().map(|(_, advance)| advance).sum();
            pieces.push((
                piece.iter().map(|(character, _)| character).collect(),
                width,
            ));
            rest = after;
        }
        pieces
    }
}

impl WordIterator {
    pub(crate) fn new(fonts: &FontSet, text: &str, style: TextStyle) -> Self {
        let font = ShaperFont::new(&fonts.typeface(style).shapes);
        let units = f32::from(font.units_per_em());
        let advance = |character: char| {
            font.nominal_glyph(character.into())
                .map_or(1.0, |glyph| font.glyph_h_advance(glyph) as f32 / units)
        };
        let paragraphs = text
            .split(['\n', '\u{2028}', '\u{2029}'])
            .map(|paragraph| {
                paragraph
                    .split_whitespace()
                    .map(|word| LaidOutWord {
                        em: fonts.line(word, style).em,
                        characters: word
                            .chars()
                            .map(|character| (character, advance(character)))
                            .collect(),
                        text: word.to_owned(),
                    })
                    .collect()
            })
            .collect();
        Self {
            paragraphs,
            space: advance(' '),
        }
    }

    /// Returns the width of the widest word, in units of the font size.
    pub(crate) fn widest(&self) -> f32 {
        self.paragraphs
            .iter()
            .flatten()
            .map(|word| word.em)
            .fold(0.0, f32::max)
    }

    /// Returns lines no wider than `room` (in units of the font size). Words wider than a line
    /// break between characters.
    pub(crate) fn lines(&self, room: f32) -> Vec<String> {
        let mut lines = Vec::new();
        for paragraph in &self.paragraphs {
            let (mut line, mut used) = (String::new(), 0.0);
            for word in paragraph {
                let gap = if line.is_empty() { 0.0 } else { self.space };
                if used + gap + word.em <= room {
                    if !line.is_empty() {
                        line.push(' ');
                    }
                    line.push_str(&word.text);
                    used += gap + word.em;
                    continue;
                }
                if !line.is_empty() {
                    lines.push(std::mem::take(&mut line));
                }
                if word.em <= room {
                    line.push_str(&word.text);
                    used = word.em;
                    continue;
                }
                let mut pieces = word.pieces(room);
                (line, used) = pieces.pop().unwrap_or_default();
                lines.extend(pieces.into_iter().map(|(piece, _)| piece));
            }
            lines.push(line);
        }
        lines
    }
}

/// Removes characters that cannot be printed on a line.
fn printable(text: &str) -> String {
    text.chars()
        .filter_map(|character| match character {
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => Some(' '),
            // Invisible direction marks could make a line display differently from its text.
            '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FEFF}' => None,
            character if character.is_control() => None,
            character => Some(character),
        })
        .collect()
}
