//! Lines of text. Each is shaped once, so measuring and drawing use the same glyphs.
//!
//! Characters that Noto Sans lacks come from the face of their script ([`crate::faces`]). Lines with letters
//! that are read from right to left are reordered for display (Unicode Standard Annex 9).

use std::ops::Range;

use harfrust::{Buffer, Direction, ShapeOptions, ShaperFont};
use holdfast_handwriting::Handwriting;
use krilla::geom::Point;
use krilla::surface::Surface;
use krilla::text::{Font, GlyphId, KrillaGlyph};
use unicode_bidi::{BidiInfo, Level};

use crate::error::{Result, other};
use crate::faces;

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

/// Source of the glyphs of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    Style(TextStyle),
    /// By the code of the script.
    Script(&'static str),
}

/// Glyphs of one face and one direction, from left to right.
#[derive(Clone, Debug)]
struct TextRun {
    face: Face,
    glyphs: Vec<KrillaGlyph>,
    /// Advance in units of the font size.
    em: f32,
    ink: InkExtent,
}

/// How far ink reaches over and under the baseline, in units of the font size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InkExtent {
    pub(crate) above: f32,
    pub(crate) below: f32,
}

impl InkExtent {
    fn with(self, other: Self) -> Self {
        Self {
            above: self.above.max(other.above),
            below: self.below.max(other.below),
        }
    }
}

/// Shaped text, ready to be drawn.
#[derive(Clone, Debug)]
pub(crate) struct TextLine {
    text: String,
    /// From left to right.
    runs: Vec<TextRun>,
    /// Advance in units of the font size.
    em: f32,
    /// Whether the text is read from right to left and stands at the right.
    pub(crate) right_to_left: bool,
}

impl TextLine {
    pub(crate) fn width(&self, size: f32) -> f32 {
        self.em * size
    }

    /// Returns how far its ink reaches. Some scripts go deeper than Latin letters.
    pub(crate) fn ink(&self) -> InkExtent {
        let runs = self.runs.iter().map(|run| run.ink);
        runs.fold(InkExtent::default(), InkExtent::with)
    }
}

/// One face and the data that layout needs.
pub(crate) struct LoadedTypeface {
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
    pub(crate) fn load(data: &'static [u8]) -> Result<Self> {
        let font = Font::new(data.into(), 0).ok_or_else(|| other("a built-in font is damaged"))?;
        let shapes =
            harfrust::Font::new(data, 0).ok_or_else(|| other("a built-in font is damaged"))?;
        // A sign for a missing letter has to show. An empty place would look as if nothing were missing.
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

    fn has(&self, character: char) -> bool {
        self.shapes.charmap().map_unicode(character).is_some()
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
        let face = self.styled(style);
        let text = printable(text);
        text.chars()
            .all(|character| is_ignorable(character) || face.has(character))
    }

    /// Returns the characters of `text` that no face has, each once.
    pub(crate) fn missing(&self, text: &str) -> String {
        let text = printable(text);
        // A value without ink would be signed and not be seen.
        if !text.trim().is_empty() && text.chars().all(is_invisible) {
            return text;
        }

        let mut missing = String::new();
        for character in text.chars() {
            let is_drawn = is_ignorable(character)
                || self
                    .typeface(self.face_of(character, TextStyle::Regular, None))
                    .has(character);
            // The refusal lists each character once, for the person who has to replace it.
            if !is_drawn && !missing.contains(character) {
                missing.push(character);
            }
        }

        missing
    }

    fn typeface(&self, face: Face) -> &LoadedTypeface {
        match face {
            Face::Style(style) => self.styled(style),
            Face::Script(code) => faces::of_script(code).unwrap_or(&self.regular),
        }
    }

    /// Returns the face for a character after one in the face `before`; that of the style if none has it.
    fn face_of(&self, character: char, style: TextStyle, before: Option<Face>) -> Face {
        let own = Face::Style(style);
        // A mark, a joiner or a selector is shaped with the character that it belongs to.
        if let Some(before) = before
            && (is_ignorable(character)
                || (faces::is_inherited(character) && self.typeface(before).has(character)))
        {
            return before;
        }
        if self.styled(style).has(character) {
            return own;
        }

        // Punctuation that several scripts share continues the one it stands in.
        if let Some(before @ Face::Script(_)) = before
            && self.typeface(before).has(character)
        {
            return before;
        }

        // A face is asked for only now: each one is a file of the host, which most texts do not need.
        let scripts = faces::candidates(character, is_wide(character));
        let found = scripts
            .into_iter()
            .find(|code| faces::of_script(code).is_some_and(|face| face.has(character)));
        found.map_or(own, Face::Script)
    }

    fn styled(&self, style: TextStyle) -> &LoadedTypeface {
        match style {
            TextStyle::Regular => &self.regular,
            TextStyle::Bold => &self.bold,
            TextStyle::Italic => &self.italic,
            TextStyle::Written(Handwriting::Casual) => &self.written[0],
            TextStyle::Written(Handwriting::Formal) => &self.written[1],
            TextStyle::Written(Handwriting::Light) => &self.written[2],
        }
    }

    /// Shapes one line.
    ///
    /// A character that all fonts lack is drawn as a replacement sign but keeps its Unicode value,
    /// so that searching and copying still find the original text.
    pub(crate) fn line(&self, text: &str, style: TextStyle) -> TextLine {
        self.shaped(text, style, None)
    }

    /// Shapes one line of a paragraph.
    pub(crate) fn line_of(&self, line: &WrappedLine, style: TextStyle) -> TextLine {
        self.shaped(&line.text, style, Some(line.level))
    }

    fn shaped(&self, text: &str, style: TextStyle, level: Option<Level>) -> TextLine {
        let text = printable(text);
        let bidi = BidiInfo::new(&text, level);
        let mut runs = Vec::new();
        let mut right_to_left = false;

        // Characters that separate paragraphs are not printable: there is one, or none.
        for paragraph in &bidi.paragraphs {
            right_to_left = paragraph.level.is_rtl();
            let (levels, ranges) = bidi.visual_runs(paragraph, paragraph.range.clone());
            for range in ranges {
                let turned = levels.get(range.start).is_some_and(Level::is_rtl);
                let mut pieces = self.of_one_face(&text, range, style);
                // The pieces are in the order of reading, and runs stand from left to right.
                if turned {
                    pieces.reverse();
                }

                let shaped = pieces
                    .into_iter()
                    .map(|(face, range)| self.shape(&text, range, face, turned));
                runs.extend(shaped);
            }
        }

        let em = runs.iter().map(|run| run.em).sum();
        TextLine {
            text,
            runs,
            em,
            right_to_left,
        }
    }

    /// Splits a part of a text where the face changes.
    fn of_one_face(
        &self,
        text: &str,
        range: Range<usize>,
        style: TextStyle,
    ) -> Vec<(Face, Range<usize>)> {
        let mut pieces: Vec<(Face, Range<usize>)> = Vec::new();
        let part = text.get(range.clone()).unwrap_or_default();
        for (at, character) in part.char_indices() {
            let before = pieces.last().map(|(face, _)| *face);
            let face = self.face_of(character, style, before);
            let start = range.start + at;
            let end = start + character.len_utf8();
            match pieces.last_mut() {
                Some((last, piece)) if *last == face => piece.end = end,
                _ => pieces.push((face, start..end)),
            }
        }

        pieces
    }

    #[expect(
        clippy::expect_used,
        reason = "shaping fails for a buffer without a direction, or one that does not match its plan"
    )]
    fn shape(&self, text: &str, range: Range<usize>, face: Face, right_to_left: bool) -> TextRun {
        let typeface = self.typeface(face);
        let mut shaped = Buffer::new();
        shaped.push_str(text.get(range.clone()).unwrap_or_default());
        // The guess finds the script.
        // The direction comes from the whole line, because digits belong to no script.
        shaped.guess_segment_properties();
        shaped.set_direction(if right_to_left {
            Direction::RightToLeft
        } else {
            Direction::LeftToRight
        });

        let font = ShaperFont::new(&typeface.shapes);
        harfrust::shape(&font, &mut shaped, ShapeOptions::new())
            .expect("the buffer has a direction, and no plan is given");
        let units = f32::from(font.units_per_em());
        let stand_in_advance = font.glyph_h_advance(typeface.stand_in) as f32 / units;

        let infos = shaped.glyph_infos();
        let mut glyphs = Vec::with_capacity(infos.len());
        let mut em = 0.0;

        let mut ink = InkExtent::default();
        for (index, (info, position)) in infos.iter().zip(shaped.glyph_positions()).enumerate() {
            // Glyphs stand from left to right; clusters are places in the text.
            let other = |next: &&harfrust::GlyphInfo| next.cluster != info.cluster;
            let (before, after) = infos.split_at(index);
            let next = if right_to_left {
                before.iter().rev().find(other)
            } else {
                after.iter().find(other)
            };

            let start = range.start + info.cluster as usize;
            let end = next.map_or(range.end, |next| range.start + next.cluster as usize);
            // Glyph 0 is drawn as the stand-in, so the width of the stand-in counts.
            let missing = info.glyph_id == 0;
            let advance = if missing {
                stand_in_advance
            } else {
                position.x_advance as f32 / units
            };
            em += advance;

            // A signature has to stay in its box, also in scripts that reach far above or below the line.
            if let Some(extents) = font.glyph_extents(info.glyph_id.into()) {
                let top = (extents.y_bearing + position.y_offset) as f32 / units;
                ink = ink.with(InkExtent {
                    above: top,
                    below: -(top + extents.height as f32 / units),
                });
            }

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

        TextRun {
            face,
            glyphs,
            em,
            ink,
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
        self.draw_runs(surface, line, (x, baseline), size, false);
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
        self.draw_runs(surface, line, (x, baseline), size, true);
    }

    fn draw_runs(
        &self,
        surface: &mut Surface<'_>,
        line: &TextLine,
        (mut x, baseline): (f32, f32),
        size: f32,
        outlined: bool,
    ) {
        for run in line.runs.iter().filter(|run| !run.glyphs.is_empty()) {
            let font = self.typeface(run.face).font.clone();
            let start = Point::from_xy(x, baseline);
            surface.draw_glyphs(start, &run.glyphs, font, &line.text, size, outlined);
            x += run.em * size;
        }
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
            .map(|line| self.line_of(line, style))
            .collect()
    }
}

/// A line of a paragraph, with the direction of the whole paragraph.
#[derive(Clone, Debug)]
pub(crate) struct WrappedLine {
    pub(crate) text: String,
    level: Level,
}

/// Words with known widths, to be laid out at many sizes.
pub(crate) struct WordIterator {
    paragraphs: Vec<(Level, Vec<LaidOutWord>)>,
    space: f32,
}

struct LaidOutWord {
    text: String,
    /// Whether a space stands before it, unless it begins a line.
    spaced: bool,
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
                // Each piece has one character at least.
                // In a field narrower than a letter, the loop would never end.
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
        let own = ShaperFont::new(&fonts.styled(style).shapes);
        let units = f32::from(own.units_per_em());
        // Widths are in units of the font size, so one measurement serves every size that is tried.
        let advance = |character: char| {
            if let Some(glyph) = own.nominal_glyph(character.into()) {
                return own.glyph_h_advance(glyph) as f32 / units;
            }

            let typeface = fonts.typeface(fonts.face_of(character, style, None));
            let font = ShaperFont::new(&typeface.shapes);
            let units = f32::from(font.units_per_em());
            font.nominal_glyph(character.into())
                .map_or(1.0, |glyph| font.glyph_h_advance(glyph) as f32 / units)
        };

        let laid_out = |(text, spaced): (&str, bool)| LaidOutWord {
            em: fonts.line(text, style).em,
            characters: text
                .chars()
                .map(|character| (character, advance(character)))
                .collect(),
            spaced,
            text: text.to_owned(),
        };

        let paragraphs = text
            .split(['\n', '\u{2028}', '\u{2029}'])
            .map(|paragraph| {
                let words = paragraph.split_whitespace().flat_map(segments);
                // The direction is that of the paragraph: a line with only Latin words in an Arabic text
                // stands at the right.
                let bidi = BidiInfo::new(paragraph, None);
                let level = bidi.paragraphs.first().map(|first| first.level);
                (
                    level.unwrap_or_else(Level::ltr),
                    words.map(laid_out).collect(),
                )
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
            .flat_map(|(_, words)| words)
            .map(|word| word.em)
            .fold(0.0, f32::max)
    }

    /// Returns lines no wider than `room` (in units of the font size). Words wider than a line
    /// break between characters.
    pub(crate) fn lines(&self, room: f32) -> Vec<WrappedLine> {
        let mut lines = Vec::new();
        for (level, words) in &self.paragraphs {
            let wrapped = |text| WrappedLine {
                text,
                level: *level,
            };

            let (mut line, mut used) = (String::new(), 0.0);
            for word in words {
                let spaced = word.spaced && !line.is_empty();
                let gap = if spaced { self.space } else { 0.0 };
                if used + gap + word.em <= room {
                    if spaced {
                        line.push(' ');
                    }
                    line.push_str(&word.text);
                    used += gap + word.em;
                    continue;
                }

                if !line.is_empty() {
                    lines.push(wrapped(std::mem::take(&mut line)));
                }

                if word.em <= room {
                    line.push_str(&word.text);
                    used = word.em;
                    continue;
                }

                // The next word may continue behind the last piece.
                let mut pieces = word.pieces(room);
                (line, used) = pieces.pop().unwrap_or_default();
                lines.extend(pieces.into_iter().map(|(piece, _)| wrapped(piece)));
            }

            lines.push(wrapped(line));
        }

        lines
    }
}

/// Returns whether a character is as wide as high, so lines may break beside it (Unicode Standard
/// Annex 14, class ID).
fn is_wide(character: char) -> bool {
    matches!(
        character,
        '\u{2E80}'..='\u{A4CF}'
            | '\u{AC00}'..='\u{D7AF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FE30}'..='\u{FE4F}'
            | '\u{FF00}'..='\u{FFEF}'
            | '\u{20000}'..='\u{3FFFF}'
    )
}

/// Splits a word where a line may break: beside wide characters, but not before punctuation that
/// closes or after one that opens. The first part has a space before it.
fn segments(word: &str) -> Vec<(&str, bool)> {
    const CLOSING: &str = "、。，．：；！？）］｝〉》」』】〕”’…,.:;!?)]}";
    const OPENING: &str = "（［｛〈《「『【〔“‘([{";

    let mut parts = Vec::new();
    // Chinese and Japanese have no spaces, so a whole sentence may be one word here.
    let (mut begin, mut before) = (0, None);
    for (at, character) in word.char_indices() {
        let breaks = before.is_some_and(|before: char| {
            (is_wide(before) || is_wide(character))
                && !CLOSING.contains(character)
                && !OPENING.contains(before)
        });
        if breaks {
            parts.push((&word[begin..at], begin == 0));
            begin = at;
        }

        before = Some(character);
    }

    parts.push((&word[begin..], begin == 0));
    parts
}

/// Returns whether a character only changes how others are drawn: joiners and variation selectors.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{200C}' | '\u{200D}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0020}'..='\u{E01EF}'
    )
}

/// Returns whether a character has no ink of its own.
fn is_invisible(character: char) -> bool {
    let is_blank = matches!(
        character,
        '\u{AD}' | '\u{115F}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}'
    );
    is_blank || character.is_whitespace() || is_ignorable(character)
}

/// Removes characters that cannot be printed on a line.
fn printable(text: &str) -> String {
    text.chars()
        .filter_map(|character| match character {
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => Some(' '),
            // Invisible direction marks could make a line display differently from its text. Joiners stay:
            // Persian, the scripts of India and emoji are written with them.
            '\u{200B}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}'
            | '\u{FEFF}' => None,
            character if character.is_control() => None,
            character => Some(character),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> TextLine {
        FontSet::load().unwrap().line(text, TextStyle::Regular)
    }

    fn is_complete(line: &TextLine) -> bool {
        let fonts = FontSet::load().unwrap();
        line.runs.iter().all(|run| {
            let stand_in = fonts.typeface(run.face).stand_in;
            run.glyphs
                .iter()
                .all(|glyph| krilla::text::Glyph::glyph_id(glyph).to_u32() != stand_in.to_u32())
        })
    }

    #[test]
    fn names_in_chinese_and_arabic_have_glyphs() {
        for name in ["李小龙 Lee", "王麗華", "محمد بن علي", "Жанна Ωμέγα"]
        {
            assert!(is_complete(&line(name)), "{name}");
        }
        // A character that no font has.
        assert!(!is_complete(&line("\u{12000}")));
    }

    #[test]
    fn arabic_letters_join_and_stand_from_right_to_left() {
        let whole = line("محمد");
        assert!(whole.right_to_left);

        // The first letter stands at the right, in the form that joins.
        let first = whole.runs[0].glyphs.last().unwrap();
        let alone = line("م");
        let glyph = krilla::text::Glyph::glyph_id;
        assert_ne!(glyph(first), glyph(&alone.runs[0].glyphs[0]));
        assert_eq!(krilla::text::Glyph::text_range(first).start, 0);

        let mixed = line("Contract 7 محمد");
        assert!(!mixed.right_to_left);
        assert!(matches!(
            mixed.runs.last().unwrap().face,
            Face::Script("Arab")
        ));
    }

    #[test]
    fn a_line_keeps_the_direction_of_its_paragraph() {
        let fonts = FontSet::load().unwrap();
        let words = WordIterator::new(&fonts, "شارع الملك 2148 Larkspur", TextStyle::Regular);
        for line in words.lines(5.5) {
            let shaped = fonts.line_of(&line, TextStyle::Regular);
            assert!(shaped.right_to_left, "{}", line.text);
        }
    }

    #[test]
    fn chinese_breaks_between_characters_and_not_before_a_full_stop() {
        let fonts = FontSet::load().unwrap();
        let words = WordIterator::new(&fonts, "甲方同意付款。 Buyer pays", TextStyle::Regular);
        assert_eq!(words.lines(3.0)[0].text, "甲方同");

        let lines = words.lines(6.5);
        let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            lines[0], "甲方同意付",
            "the full stop stays with its character"
        );
        assert_eq!(lines[1], "款。 Buyer");
        assert_eq!(lines[2], "pays");
    }
}
