//! Text of one page, glyph by glyph.

use std::ops::Range;
use std::rc::Rc;

use crate::geometry::{AffineMap, PageRect};

/// All text of one page in drawing order: page content first, then the appearances of annotations.
#[derive(Debug, Clone, Default)]
pub struct PageText {
    /// Width of the displayed page in points.
    pub width: f64,
    /// Height of the displayed page in points.
    pub height: f64,
    /// All glyphs, including those outside of the visible part of the page.
    pub glyphs: Vec<PlacedGlyph>,
    /// The operators that show the glyphs.
    pub operators: Vec<ShowOperator>,
    /// The strings and adjustments of the operators.
    pub elements: Vec<TextElement>,
    /// The content streams of the operators: entry 0 is the page content, and every use of a form
    /// XObject or appearance has its own entry.
    pub streams: Vec<ContentStream>,
    /// The pictures, in drawing order.
    pub images: Vec<PlacedImage>,
    /// Marked content with its text in `/ActualText`.
    pub replaced: Vec<ReplacedText>,
    /// The text that glyphs refer to.
    pub(crate) text: String,
}

/// One glyph.
#[derive(Debug, Clone, Copy)]
pub struct PlacedGlyph {
    /// Edges in fractions of the displayed page: left, top, right, bottom.
    pub(crate) edges: [f32; 4],
    /// Pen position, in points of the displayed page.
    pub(crate) origin: [f32; 2],
    /// Advance of the glyph alone, without character or word spacing, in points of the displayed
    /// page.
    pub(crate) advance: f32,
    /// Unicode text, as a range of [`PageText::text`].
    pub(crate) text_start: u32,
    pub(crate) text_end: u32,
    /// Index into [`PageText::operators`].
    pub operator: u32,
    /// The bytes of the character code in its string, as one big-endian number.
    pub code: u32,
    /// Number of bytes of the code in the string.
    pub code_bytes: u8,
    /// Number in a `TJ` array that moves the pen as far as this glyph does: thousandths of text
    /// space, spacing included, sign as in `TJ`.
    pub adjustment: f32,
}

impl PlacedGlyph {
    /// Returns the box of the glyph: its advance wide, from the descent to the ascent of the font.
    pub fn rect(&self) -> PageRect {
        let [x0, y0, x1, y1] = self.edges.map(f64::from);
        PageRect { x0, y0, x1, y1 }
    }

    /// Returns whether any of it is inside the visible part of the page.
    pub fn is_on_page(&self) -> bool {
        let [x0, y0, x1, y1] = self.edges;
        x1 > 0.0 && y1 > 0.0 && x0 < 1.0 && y0 < 1.0
    }
}

/// A picture on the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlacedImage {
    /// Its box, in fractions of the displayed page.
    pub rect: PageRect,
    /// Pixels across and down; zero for an inline image.
    pub pixels: (u32, u32),
    /// Bytes of its encoded data; of the whole operator for an inline image.
    pub size: usize,
}

/// Kind of a text-showing operator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ShowKind {
    /// `Tj`
    Show,
    /// `TJ`
    ShowAdjusted,
    /// `'`: moves to the next line first.
    NextLineShow,
    /// `"`: sets word and character spacing, moves to the next line, shows.
    SpacedNextLineShow {
        /// First operand, unscaled text space.
        word_spacing: f64,
        /// Second operand, unscaled text space.
        character_spacing: f64,
    },
}

/// One text-showing operator.
#[derive(Debug, Clone)]
pub struct ShowOperator {
    /// Index into [`PageText::streams`].
    pub stream: usize,
    /// Its bytes in the decoded stream, operands included.
    pub range: Range<usize>,
    /// Kind of the operator.
    pub kind: ShowKind,
    /// Its glyphs, as a range of [`PageText::glyphs`].
    pub glyphs: Range<usize>,
    /// Its operands, as a range of [`PageText::elements`].
    pub elements: Range<usize>,
    /// Unit vector along the baseline on the displayed page (x right, y down).
    pub(crate) direction: [f32; 2],
    /// Height of the font in points of the displayed page.
    pub(crate) em: f32,
    /// Whether the font writes downwards: adjustments then move the pen along the other axis.
    pub vertical: bool,
}

/// A part of the operands of a text-showing operator.
#[derive(Debug, Clone, PartialEq)]
pub enum TextElement {
    /// A string: these glyphs, as a range of [`PageText::glyphs`].
    Glyphs(Range<usize>),
    /// A number of a `TJ` array.
    Adjustment(f64),
}

/// Origin of a content stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextSource {
    /// The page's `/Contents`. Several streams are joined with a space after each, omitting
    /// undecodable ones.
    Page,
    /// A form XObject, by object number and generation. The same object may be used on other
    /// pages, or several times on this one.
    Form {
        /// Object number.
        number: u32,
        /// Generation number.
        generation: i32,
    },
    /// The normal appearance of an annotation, by the appearance stream's object number.
    Appearance {
        /// Object number.
        number: u32,
        /// Generation number.
        generation: i32,
    },
}

/// One use of a content stream.
#[derive(Debug, Clone)]
pub struct ContentStream {
    /// Its origin.
    pub source: TextSource,
    /// For a form: the entry of [`PageText::streams`] that draws it with `Do`.
    pub parent: Option<usize>,
    /// For a form: its name in the XObject resources of the parent.
    pub name: Vec<u8>,
    /// For a form: the bytes of the `Do` in the decoded parent, operand included.
    pub invocation: Range<usize>,
    /// The decoded bytes, to which the ranges of operators refer.
    pub content: Rc<[u8]>,
    /// Map from the stream's coordinates to points of the displayed page.
    pub matrix: AffineMap,
}

/// Marked content with replacement text in `/ActualText`. The text must be removed together with
/// the glyphs.
#[derive(Debug, Clone)]
pub struct ReplacedText {
    /// Index into [`PageText::streams`].
    pub stream: usize,
    /// The bytes of the `BDC` operator, operands included.
    pub range: Range<usize>,
    /// The glyphs inside, as a range of [`PageText::glyphs`].
    pub glyphs: Range<usize>,
    /// Whether the text is in the operator itself, not in the `/Properties` resources.
    pub inline: bool,
}

impl PageText {
    /// Returns the Unicode text of a glyph; empty if unknown.
    pub fn glyph_text(&self, glyph: &PlacedGlyph) -> &str {
        self.text
            .get(glyph.text_start as usize..glyph.text_end as usize)
            .unwrap_or_default()
    }

    /// Returns whether the page has readable text.
    pub fn has_text(&self) -> bool {
        self.shows_text_in(0..self.glyphs.len())
    }

    /// Returns whether any of these glyphs is readable text.
    pub(crate) fn shows_text_in(&self, glyphs: Range<usize>) -> bool {
        // Text outside of the page does not count, because no signer can read it.
        let glyphs = self.glyphs.get(glyphs).unwrap_or_default();
        glyphs.iter().any(|glyph| {
            glyph.is_on_page() && self.glyph_text(glyph).chars().any(|c| !c.is_whitespace())
        })
    }
}
