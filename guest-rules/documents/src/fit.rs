//! Fitting text to a box. A value may be part of the agreement, so none of it is ever cut off.

use holdfast_handwriting::{Handwriting, LetterExtent};
use krilla::surface::Surface;

use crate::Misfit;
use crate::geometry::DisplayedBox;
use crate::text::{
    ASCENT, DESCENT, FontSet, LEADING, TextLine, TextStyle, WordIterator, WrappedLine,
};

/// Limit on the characters of one value.
const MAX_CHARACTERS: usize = 20_000;

/// Font size that reads comfortably; boxes on forms are often taller than their line.
const LARGEST: f32 = 11.0;

/// Smallest font size, in points. Forms are printed in 6 points at the least; a value may be a little smaller
/// than that, and is refused where it would have to be smaller still. In a field that is lower than such a line,
/// letters are as high as the field: its author made it so, as on a page of the size of a stamp.
pub(crate) const SMALLEST: f32 = 5.0;

/// Smallest font size of texts that no signer can enter differently: values of a form in the document, and names on
/// certificates.
pub(crate) const FAINT: f32 = 0.4;

/// Font size from which words may break anywhere, as smaller text would be worse.
const BREAKS_WORDS: f32 = 6.0;

/// Font size of a signature below which a long name is set in several lines.
const SMALL_SIGNATURE: f32 = 9.0;

/// Extent of the letters of Noto Sans.
const UPRIGHT: LetterExtent = LetterExtent {
    ascent: ASCENT,
    descent: DESCENT,
};

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
///
/// # Errors
///
/// `too-long`, with the number of characters that fit, where it does not fit at the smallest size.
pub(crate) fn text(
    fonts: &FontSet,
    text: &str,
    style: TextStyle,
    space: DisplayedBox,
    smallest: f32,
) -> Result<FittedText, Misfit> {
    // Line breaks at the end would take the room of lines on which nothing stands.
    let text = text.trim_end();
    let padding = (space.width * 0.04).min(2.0);
    let width = (space.width - 2.0 * padding).max(0.0);
    let smallest = smallest.min(space.height / (ASCENT + DESCENT));
    // Shaping comes after this limit: an endless text would use up
    // the time of the sandbox before it is refused.
    let fitted = if text.chars().count() > MAX_CHARACTERS {
        None
    } else {
        let words = WordIterator::new(fonts, text, style);
        lines_in(&words, (LARGEST, smallest), (width, space.height), 1.0)
    };

    match fitted {
        Some((lines, size)) => Ok(place(fonts, &lines, style, size, space, padding)),
        None => Err(Misfit::TooLong(room_for(
            fonts,
            text,
            (style, smallest),
            (width, space.height),
        ))),
    }
}

/// Finds the largest size, in steps of 4 %, at which words fit, and their lines. `extent` is the height of a
/// line as a multiple of that of Noto Sans.
fn lines_in(
    words: &WordIterator,
    (largest, smallest): (f32, f32),
    (width, height): (f32, f32),
    extent: f32,
) -> Option<(Vec<WrappedLine>, f32)> {
    let mut size = largest.min(height / (extent * (ASCENT + DESCENT)));
    // A field without a height has no room at all.
    while size >= smallest && size > 0.0 {
        let room = width / size;
        if size <= BREAKS_WORDS || words.widest() <= room {
            let lines = words.lines(room);
            if extent * block_height(lines.len(), size) <= height + 0.01 {
                return Some((lines, size));
            }
        }

        // The smallest size itself is tried, too.
        let next = size * 0.96;
        size = if size > smallest {
            next.max(smallest)
        } else {
            next
        };
    }

    None
}

/// Returns how many of a text's characters fit at the smallest size.
fn room_for(
    fonts: &FontSet,
    text: &str,
    (style, smallest): (TextStyle, f32),
    space: (f32, f32),
) -> u32 {
    let characters: Vec<char> = text.chars().take(MAX_CHARACTERS).collect();
    let fits = |count: usize| {
        let part: String = characters.iter().take(count).collect();
        let words = WordIterator::new(fonts, part.trim_end(), style);
        lines_in(&words, (smallest, smallest), space, 1.0).is_some()
    };

    let fitting = most_that(characters.len(), fits);
    u32::try_from(fitting).unwrap_or(u32::MAX)
}

/// Returns the largest count up to `all` that fits, or 0. Less than a fitting count fits, too.
pub(crate) fn most_that(all: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut most) = (0, all);
    while fitting < most {
        let middle = (fitting + most).div_ceil(2);
        if fits(middle) {
            fitting = middle;
        } else {
            most = middle - 1;
        }
    }

    fitting
}

/// Lays out a name as a signature: as large as the box allows, on its bottom line. A name that would be small
/// on one line stands on several. A handwriting that lacks a letter of the name is replaced as a whole.
///
/// # Errors
///
/// `too-long`, as [`text`].
pub(crate) fn signature(
    fonts: &FontSet,
    name: &str,
    hand: Option<Handwriting>,
    space: DisplayedBox,
    smallest: f32,
) -> Result<FittedText, Misfit> {
    let name = name.trim();
    let hand = hand.filter(|hand| fonts.covers(name, TextStyle::Written(*hand)));
    let (style, extent) = match hand {
        Some(hand) => (TextStyle::Written(hand), hand.extent()),
        None => (TextStyle::Italic, UPRIGHT),
    };
    let line = fonts.line(name, style);
    let ink = line.ink();
    // Letters with several accents, and some scripts, reach further than the typeface states.
    let extent = LetterExtent {
        ascent: extent.ascent.max(ink.above),
        descent: extent.descent.max(ink.below),
    };
    let tallest = (space.height * 0.8 / (extent.ascent + extent.descent)).min(28.0);

    let width = space.width * 0.94;
    let smallest = smallest.min(tallest);
    let size = tallest.min(width / line.width(1.0).max(0.01));
    if size >= SMALL_SIGNATURE.min(tallest) && size >= smallest {
        return Ok(on_the_line(vec![line], size, extent, space));
    }

    let long = name.chars().count() > MAX_CHARACTERS;
    let words = WordIterator::new(fonts, name, style);
    let tall = (extent.ascent + extent.descent) / (ASCENT + DESCENT);

    let room = (width, space.height * 0.8);
    match lines_in(&words, (tallest, smallest), room, tall).filter(|_| !long) {
        Some((lines, size)) => {
            let lines = lines.iter().map(|line| fonts.line_of(line, style));
            Ok(on_the_line(lines.collect(), size, extent, space))
        }
        None => Err(Misfit::TooLong(room_for(
            fonts,
            name,
            (style, smallest),
            room,
        ))),
    }
}

/// Places the lines of a signature so that the last one stands on the line of the box.
fn on_the_line(
    lines: Vec<TextLine>,
    size: f32,
    extent: LetterExtent,
    space: DisplayedBox,
) -> FittedText {
    let tall = (extent.ascent + extent.descent) / (ASCENT + DESCENT);
    let distance = LEADING * size * tall;
    let above = distance * lines.len().saturating_sub(1) as f32;
    let widest = lines.iter().map(|line| line.width(size));
    FittedText {
        width: widest.fold(0.0, f32::max),
        x: space.x + space.width * 0.03,
        // In a flat box the descenders of a hand could take more room than the letters, hence the share.
        first_baseline: signature_baseline(space)
            - (extent.descent * size).min(space.height * 0.3)
            - above,
        lines,
        size,
        distance,
    }
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
            let shift = if line.right_to_left {
                (self.width - line.width(self.size)).max(0.0)
            } else {
                0.0
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
        let fitted = text(
            &fonts,
            "2026-05-01",
            TextStyle::Regular,
            space(120.0, 18.0),
            SMALLEST,
        )
        .unwrap();
        assert_eq!(fitted.lines.len(), 1);
        assert!((fitted.size - LARGEST).abs() < 0.01);
    }

    #[test]
    fn a_tall_box_wraps_before_it_shrinks() {
        let fonts = FontSet::load().unwrap();
        let value = "1200 West Peachtree Street Northwest, Suite 2200, Atlanta, Georgia";
        let fitted = text(
            &fonts,
            value,
            TextStyle::Regular,
            space(150.0, 60.0),
            SMALLEST,
        )
        .unwrap();
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
                if let Ok(fitted) = text(
                    &fonts,
                    value,
                    TextStyle::Regular,
                    space(width, height),
                    SMALLEST,
                ) {
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
            SMALLEST,
        );
        assert!(matches!(outcome, Err(Misfit::TooLong(_))));
    }

    #[test]
    fn no_value_is_smaller_than_five_points_and_the_stated_part_of_a_longer_one_fits() {
        let fonts = FontSet::load().unwrap();
        let line = "sixty lines of terms ";
        for (width, height) in [(184.0, 16.0), (60.0, 30.0), (300.0, 100.0)] {
            let space = space(width, height);
            let value = line.repeat(400);
            let Err(Misfit::TooLong(room)) =
                text(&fonts, &value, TextStyle::Regular, space, SMALLEST)
            else {
                panic!("{width} x {height}");
            };

            let part: String = value.chars().take(room as usize).collect();
            let fitted = text(&fonts, &part, TextStyle::Regular, space, SMALLEST).unwrap();
            assert!(fitted.size >= SMALLEST, "{}", fitted.size);
        }
    }

    #[test]
    fn a_long_name_is_signed_on_several_lines() {
        let fonts = FontSet::load().unwrap();
        let name = "Maximiliana Wilhelmina Featherstonehaugh-Cholmondeley von und zu Hohenlohe";
        for hand in [None, Some(Handwriting::Formal), Some(Handwriting::Casual)] {
            let fitted = signature(&fonts, name, hand, space(120.0, 40.0), SMALLEST).unwrap();
            assert!(fitted.lines.len() > 1, "{hand:?}");
            assert!(fitted.size >= SMALLEST, "{hand:?}");
            assert!(widest(&fitted) <= 120.0, "{hand:?}");
            assert!(fitted.first_baseline > 0.0, "{hand:?}");
        }

        let tiny = signature(&fonts, name, None, space(20.0, 10.0), SMALLEST);
        assert!(matches!(tiny, Err(Misfit::TooLong(_))));
    }
}
