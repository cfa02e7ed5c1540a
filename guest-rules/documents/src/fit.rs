//! Fitting text to a box. A value may be part of the agreement, so none of it is ever cut off.

use holdfast_handwriting::{Handwriting, LetterExtent};
use krilla::surface::Surface;

use crate::error::{Result, over_limit};
use crate::geometry::DisplayedBox;
use crate::text::{
    ASCENT, DESCENT, FontSet, LEADING, TextLine, TextStyle, WordIterator, WrappedLine,
};

/// Limit on the characters of one value.
const MAX_CHARACTERS: usize = 20_000;

/// Font size that reads comfortably; boxes on forms are often taller than their line.
const LARGEST: f32 = 11.0;

/// Below this font size words may break anywhere, as smaller text would be worse.
const SMALLEST_READABLE: f32 = 5.0;

/// Extent of the letters of Noto Sans.
const UPRIGHT: LetterExtent = LetterExtent {
    ascent: ASCENT,
    descent: DESCENT,
};

/// Font size below which the text would be illegible.
const SMALLEST: f32 = 0.4;

/// Lines of text with their position in a box.
pub(crate) struct FittedText {
    lines: Vec<TextLine>,
    size: f32,
    x: f32,
    /// Of the place for the lines. Those read from right to left end at its right.
    width: f32,
    first_baseline: f32,
    distance: f32,
}

/// Fits text to a box: as large as is comfortable, wrapped in a tall box, smaller where necessary.
pub(crate) fn text(
    fonts: &FontSet,
    text: &str,
    style: TextStyle,
    space: DisplayedBox,
) -> Result<FittedText> {
    if text.chars().count() > MAX_CHARACTERS {
        return Err(over_limit(format!(
            "{MAX_CHARACTERS} characters in a field"
        )));
    }
    let words = WordIterator::new(fonts, text.trim_end(), style);
    let padding = (space.width * 0.04).min(2.0);
    let width = (space.width - 2.0 * padding).max(0.0);
    let mut size = LARGEST.min(space.height / (ASCENT + DESCENT));
    // Shrink in steps of 4 % until the text fits.
    while size >= SMALLEST {
        let room = width / size;
        let may_break_words = size <= SMALLEST_READABLE;
        if may_break_words || words.widest() <= room {
            let lines = words.lines(room);
            let height = block_height(lines.len(), size);
            if height <= space.height + 0.01 {
                return Ok(place(fonts, &lines, style, size, space, padding));
            }
        }
        size *= 0.96;
    }
    Err(over_limit(format!(
        "a text of {} characters in a box of {:.1} x {:.1} points",
        text.chars().count(),
        space.width,
        space.height
    )))
}

/// Lays out a name as a signature: one line, as large as the box allows, on its bottom line. The
/// preview in the signing form (`signing.js`) has the same size and place. A handwriting that lacks
/// a letter of the name is replaced as a whole.
pub(crate) fn signature(
    fonts: &FontSet,
    name: &str,
    hand: Option<Handwriting>,
    space: DisplayedBox,
) -> Result<FittedText> {
    if name.chars().count() > MAX_CHARACTERS {
        return Err(over_limit(format!(
            "{MAX_CHARACTERS} characters in a signature"
        )));
    }
    let name = name.trim();
    let hand = hand.filter(|hand| fonts.covers(name, TextStyle::Written(*hand)));
    let (style, extent) = match hand {
        Some(hand) => (TextStyle::Written(hand), hand.extent()),
        None => (TextStyle::Italic, UPRIGHT),
    };
    let line = fonts.line(name, style);
    let size = (space.height * 0.8 / (extent.ascent + extent.descent))
        .min(28.0)
        .min(space.width * 0.94 / line.width(1.0).max(0.01));
    Ok(FittedText {
        width: line.width(size),
        x: space.x + space.width * 0.03,
        first_baseline: signature_baseline(space)
            - (extent.descent * size).min(space.height * 0.16),
        lines: vec![line],
        size,
        distance: 0.0,
    })
}

/// Returns the vertical position of the thin line under a typed signature.
pub(crate) fn signature_baseline(space: DisplayedBox) -> f32 {
    space.y + space.height * 0.95
}

fn block_height(lines: usize, size: f32) -> f32 {
    size * (ASCENT + DESCENT + LEADING * lines.saturating_sub(1) as f32)
}

fn place(
    fonts: &FontSet,
    lines: &[WrappedLine],
    style: TextStyle,
    size: f32,
    space: DisplayedBox,
    padding: f32,
) -> FittedText {
    let free = space.height - block_height(lines.len(), size);
    // A single line is centred vertically; several start at the top, as in handwriting.
    let above = if lines.len() == 1 && space.height < 3.0 * size * LEADING {
        free / 2.0
    } else {
        free.min(padding)
    };
    FittedText {
        lines: lines
            .iter()
            .map(|line| fonts.line_of(line, style))
            .collect(),
        size,
        x: space.x + padding,
        width: space.width - 2.0 * padding,
        first_baseline: space.y + above.max(0.0) + ASCENT * size,
        distance: LEADING * size,
    }
}

impl FittedText {
    pub(crate) fn draw(&self, fonts: &FontSet, surface: &mut Surface<'_>) {
        for (index, line) in self.lines.iter().enumerate() {
            let baseline = self.first_baseline + self.distance * index as f32;
            let shift = match line.right_to_left {
                true => (self.width - line.width(self.size)).max(0.0),
                false => 0.0,
            };
            fonts.draw(surface, line, self.x + shift, baseline, self.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(width: f32, height: f32) -> DisplayedBox {
        DisplayedBox {
            x: 0.0,
            y: 0.0,
            width,
            height,
        }
    }

    fn widest(fitted: &FittedText) -> f32 {
        fitted
            .lines
            .iter()
            .map(|line| line.width(fitted.size))
            .fold(0.0, f32::max)
    }

    #[test]
    fn a_short_value_keeps_the_default_font_size() {
        let fonts = FontSet::load().unwrap();
        let fitted = text(&fonts, "2026-05-01", TextStyle::Regular, space(120.0, 18.0)).unwrap();
        assert_eq!(fitted.lines.len(), 1);
        assert!((fitted.size - LARGEST).abs() < 0.01);
    }

    #[test]
    fn a_tall_box_wraps_before_it_shrinks() {
        let fonts = FontSet::load().unwrap();
        let value = "1200 West Peachtree Street Northwest, Suite 2200, Atlanta, Georgia";
        let fitted = text(&fonts, value, TextStyle::Regular, space(150.0, 60.0)).unwrap();
        assert!(fitted.lines.len() > 1);
        assert!(fitted.size > 9.0, "{}", fitted.size);
    }

    #[test]
    fn every_value_fits_its_box_or_is_refused() {
        let fonts = FontSet::load().unwrap();
        for (width, height) in [
            (200.0, 12.0),
            (40.0, 10.0),
            (300.0, 4.0),
            (12.0, 12.0),
            (6.0, 90.0),
        ] {
            for value in [
                "A",
                "Maximiliana Featherstonehaugh-Cholmondeley",
                "a b c d e f g\nsecond\nthird",
                "x".repeat(700).as_str(),
            ] {
                if let Ok(fitted) = text(&fonts, value, TextStyle::Regular, space(width, height)) {
                    assert!(widest(&fitted) <= width + 0.01, "{width} {height} {value}");
                    let bottom = fitted.first_baseline
                        + fitted.distance * (fitted.lines.len() - 1) as f32
                        + DESCENT * fitted.size;
                    assert!(
                        bottom <= height + 0.02,
                        "{width} {height} {value}: {bottom}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused_and_not_truncated() {
        let fonts = FontSet::load().unwrap();
        let outcome = text(
            &fonts,
            &"word ".repeat(700),
            TextStyle::Regular,
            space(10.0, 4.0),
        );
        assert!(matches!(outcome, Err(crate::DocumentError::OverLimit(_))));
    }
}
