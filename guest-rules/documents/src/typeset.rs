//! Typesetting documents from scratch: the custody record, and the contracts used as fixtures.
//!
//! A [`TypesetSheet`] collects the content of its pages and draws nothing until all pages are known, so
//! that a footer can show their number. Coordinates are points, origin top-left.

use krilla::color::rgb;
use krilla::geom::{PathBuilder, Rect};
use krilla::page::PageSettings;
use krilla::paint::{LineCap, LineJoin, Stroke};
use krilla::surface::Surface;

pub use crate::text::TextStyle;

use holdfast_handwriting::Handwriting;

use crate::error::other;
use crate::fill::{self, FieldDrawing, solid};
use crate::fit::FAINT;
use crate::geometry::DisplayedBox;
use crate::text::{ASCENT, FontSet, LEADING, TextLine, WordIterator};
use crate::{DocumentError, FieldValue};

/// Red, green and blue, 0 to 255.
pub type Ink = (u8, u8, u8);

/// Appearance of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SheetStyle {
    /// Typeface.
    pub style: TextStyle,
    /// Font size in points.
    pub size: f32,
    /// Colour.
    pub ink: Ink,
}

impl SheetStyle {
    /// Creates a look from a face, a size and a colour.
    #[must_use]
    pub const fn new(style: TextStyle, size: f32, ink: Ink) -> Self {
        Self { style, size, ink }
    }

    /// Returns the distance between baselines in points.
    #[must_use]
    pub fn leading(&self) -> f32 {
        self.size * LEADING
    }
}

enum SheetItem {
    Text {
        line: TextLine,
        x: f32,
        baseline: f32,
        size: f32,
        ink: Ink,
    },
    Box {
        x: f32,
        y: f32,
        width: f32,
        height: f32,
        ink: Ink,
    },
    Stroke {
        points: Vec<(f32, f32)>,
        width: f32,
        ink: Ink,
    },
    Field(Box<FieldDrawing>),
}

/// Pages being laid out.
pub struct TypesetSheet {
    fonts: FontSet,
    size: (f32, f32),
    pages: Vec<Vec<SheetItem>>,
    current: usize,
    /// Whether `x` is counted from the right edge, for a language read from right to left.
    mirrored: bool,
}

impl TypesetSheet {
    /// Creates a sheet with one empty page of a size in points.
    ///
    /// # Errors
    ///
    /// When a built-in font cannot be read.
    pub fn new(width: f32, height: f32) -> Result<Self, DocumentError> {
        Ok(Self {
            fonts: FontSet::load()?,
            size: (width, height),
            pages: vec![Vec::new()],
            current: 0,
            mirrored: false,
        })
    }

    /// Mirrors the pages if `text` is read from right to left. `x` then counts from the right edge.
    pub fn follow(&mut self, text: &str) {
        // Callers pass the title, which is in the language of the pages. Names may be in any other.
        let line = self.fonts.line(text, TextStyle::Regular);
        self.mirrored = line.right_to_left;
    }

    /// Returns whether `x` is counted from the right edge.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        self.mirrored
    }

    /// Returns the left edge of something that is `width` wide.
    fn left(&self, x: f32, width: f32) -> f32 {
        if self.mirrored {
            self.size.0 - x - width
        } else {
            x
        }
    }

    /// Starts a new page and makes it the current one.
    pub fn add_page(&mut self) {
        self.pages.push(Vec::new());
        self.current = self.pages.len() - 1;
    }

    /// Returns the number of pages.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Goes back to a page (0-based), to add content that depends on the number of pages. A number
    /// past the end selects the last page.
    pub fn select_page(&mut self, index: usize) {
        self.current = index.min(self.pages.len() - 1);
    }

    fn push(&mut self, item: SheetItem) {
        if let Some(page) = self.pages.get_mut(self.current) {
            page.push(item);
        }
    }

    /// Returns the width of a text on one line, in points.
    #[must_use]
    pub fn width(&self, text: &str, look: SheetStyle) -> f32 {
        self.fonts.line(text, look.style).width(look.size)
    }

    /// Adds one line with its baseline at `baseline`.
    pub fn text(&mut self, x: f32, baseline: f32, text: &str, look: SheetStyle) {
        let line = self.fonts.line(text, look.style);
        self.shaped(x, baseline, line, look);
    }

    fn shaped(&mut self, x: f32, baseline: f32, line: TextLine, look: SheetStyle) {
        let x = self.left(x, line.width(look.size));
        self.push(SheetItem::Text {
            line,
            x,
            baseline,
            size: look.size,
            ink: look.ink,
        });
    }

    /// Adds one line that ends at `right`.
    pub fn text_right(&mut self, right: f32, baseline: f32, text: &str, look: SheetStyle) {
        let x = right - self.width(text, look);
        self.text(x, baseline, text, look);
    }

    /// Adds one line centred on `middle`.
    pub fn text_centred(&mut self, middle: f32, baseline: f32, text: &str, look: SheetStyle) {
        let x = middle - self.width(text, look) / 2.0;
        self.text(x, baseline, text, look);
    }

    /// Returns the height of a text wrapped to a width.
    #[must_use]
    pub fn height(&self, text: &str, look: SheetStyle, width: f32) -> f32 {
        self.wrap(text, look, width).len() as f32 * look.leading()
    }

    /// Breaks a text into lines no wider than `width`. Words longer than a line break too.
    #[must_use]
    pub fn wrap(&self, text: &str, look: SheetStyle, width: f32) -> Vec<String> {
        let lines = WordIterator::new(&self.fonts, text, look.style).lines(width / look.size);
        lines.into_iter().map(|line| line.text).collect()
    }

    /// Adds a wrapped text with its first line below `top`, and returns the height used.
    pub fn paragraph(&mut self, x: f32, top: f32, width: f32, text: &str, look: SheetStyle) -> f32 {
        let lines = self.fonts.wrap(text, look.style, look.size, width);
        let count = lines.len();
        for (index, line) in lines.into_iter().enumerate() {
            let baseline = top + look.size * ASCENT + look.leading() * index as f32;
            // A line that is read from right to left stands at the right. On a mirrored page it does already.
            let start = if line.right_to_left && !self.mirrored {
                x + width - line.width(look.size)
            } else {
                x
            };
            self.shaped(start, baseline, line, look);
        }

        count as f32 * look.leading()
    }

    /// Adds a filled rectangle.
    pub fn fill(&mut self, x: f32, y: f32, width: f32, height: f32, ink: Ink) {
        let x = self.left(x, width);
        self.push(SheetItem::Box {
            x,
            y,
            width,
            height,
            ink,
        });
    }

    /// Adds an outlined rectangle.
    pub fn frame(&mut self, x: f32, y: f32, width: f32, height: f32, line: f32, ink: Ink) {
        let x = self.left(x, width);
        let (right, bottom) = (x + width, y + height);
        let points = vec![(x, y), (right, y), (right, bottom), (x, bottom), (x, y)];
        self.push(SheetItem::Stroke {
            points,
            width: line,
            ink,
        });
    }

    /// Adds straight lines from point to point.
    pub fn stroke(&mut self, points: &[(f32, f32)], width: f32, ink: Ink) {
        let points = points.iter().map(|(x, y)| (self.left(*x, 0.0), *y));
        self.push(SheetItem::Stroke {
            points: points.collect(),
            width,
            ink,
        });
    }

    /// Adds a field's value, as [`crate::fill`] draws it in a box.
    pub(crate) fn field(
        &mut self,
        value: &FieldValue,
        hand: Option<Handwriting>,
        space: DisplayedBox,
    ) -> Result<(), DocumentError> {
        // The box moves on a mirrored page, and its content is not turned: a signature is never mirrored.
        let space = DisplayedBox {
            x: self.left(space.x, space.width),
            ..space
        };
        if let Some(drawing) = fill::prepare(&self.fonts, value, hand, space, FAINT)? {
            self.push(SheetItem::Field(Box::new(drawing)));
        }
        Ok(())
    }

    /// Draws all pages into a document.
    pub(crate) fn draw_into(&self, document: &mut krilla::Document) -> Result<(), DocumentError> {
        // Drawing waits until now, because footers are added to earlier pages at the end.
        for items in &self.pages {
            let settings = PageSettings::from_wh(self.size.0, self.size.1)
                .ok_or_else(|| other("a page without a size"))?;
            let mut page = document.start_page_with(settings);
            let mut surface = page.surface();
            for item in items {
                self.draw(&mut surface, item)?;
            }

            surface.finish();
            page.finish();
        }

        Ok(())
    }

    fn draw(&self, surface: &mut Surface<'_>, item: &SheetItem) -> Result<(), DocumentError> {
        match item {
            SheetItem::Field(drawing) => drawing.draw(&self.fonts, surface)?,
            SheetItem::Text {
                line,
                x,
                baseline,
                size,
                ink,
            } => {
                // Fill and stroke of the item before are still set on the surface.
                surface.set_stroke(None);
                surface.set_fill(Some(solid(*ink)));
                self.fonts.draw(surface, line, *x, *baseline, *size);
            }
            SheetItem::Box {
                x,
                y,
                width,
                height,
                ink,
            } => {
                let mut path = PathBuilder::new();
                if let Some(rectangle) = Rect::from_xywh(*x, *y, *width, *height) {
                    path.push_rect(rectangle);
                }

                surface.set_stroke(None);
                surface.set_fill(Some(solid(*ink)));
                if let Some(path) = path.finish() {
                    surface.draw_path(&path);
                }
            }
            SheetItem::Stroke { points, width, ink } => {
                let mut path = PathBuilder::new();
                for (index, (x, y)) in points.iter().enumerate() {
                    match index {
                        0 => path.move_to(*x, *y),
                        _ => path.line_to(*x, *y),
                    }
                }

                surface.set_fill(None);
                surface.set_stroke(Some(Stroke {
                    paint: rgb::Color::new(ink.0, ink.1, ink.2).into(),
                    width: *width,
                    line_cap: LineCap::Butt,
                    line_join: LineJoin::Miter,
                    ..Stroke::default()
                }));

                if let Some(path) = path.finish() {
                    surface.draw_path(&path);
                }
            }
        }

        Ok(())
    }

    /// Returns the pages as a plain PDF with a title.
    ///
    /// # Errors
    ///
    /// When the pages cannot be written, for example because a page has no size.
    pub fn into_pdf(self, title: &str) -> Result<Vec<u8>, DocumentError> {
        let mut document = krilla::Document::new_with(krilla::SerializeSettings {
            enable_tagging: false,
            ..krilla::SerializeSettings::default()
        });
        self.draw_into(&mut document)?;
        // No time is written, so equal pages give equal bytes.
        let metadata = krilla::metadata::Metadata::new().title(title.to_owned());
        document.set_metadata(metadata.language("en-US".to_owned()));
        crate::overlay::finish(document)
    }
}
