//! Removing glyphs from content streams without moving any other glyph.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use crate::page_text::{PageText, ShowKind, ShowOperator, TextElement};

/// A replacement of bytes in a decoded content stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentEdit {
    /// Index into [`PageText::streams`].
    pub stream: usize,
    /// Bytes to replace.
    pub range: Range<usize>,
    /// New bytes.
    pub replacement: Vec<u8>,
}

/// Returns the edits that remove glyphs, given by their index in [`PageText::glyphs`].
///
/// Each operator that shows one of them becomes a `TJ` with the advance of the glyph in its place,
/// so that the rest of the line does not move. `/ActualText` that covers a removed glyph is removed
/// too. Edits are sorted by stream and position and do not overlap. A stream with a form as its
/// `source` may have other uses and must be copied before it is edited for this page alone.
pub fn cut(page: &PageText, removed: &BTreeSet<usize>) -> Vec<ContentEdit> {
    // One operator often shows several of the glyphs, and two edits of it would overlap.
    let operators: BTreeSet<u32> = removed
        .iter()
        .filter_map(|glyph| page.glyphs.get(*glyph))
        .map(|glyph| glyph.operator)
        .collect();

    let mut edits: Vec<ContentEdit> = operators
        .iter()
        .filter_map(|index| page.operators.get(*index as usize))
        .map(|operator| ContentEdit {
            stream: operator.stream,
            range: operator.range.clone(),
            replacement: rewritten(page, operator, removed),
        })
        .collect();

    edits.extend(
        page.replaced
            .iter()
            .filter(|span| span.glyphs.clone().any(|glyph| removed.contains(&glyph)))
            .map(|span| ContentEdit {
                stream: span.stream,
                range: span.range.clone(),
                // Keeps the marked content balanced: its EMC stays in the stream.
                replacement: b"/Span BMC".to_vec(),
            }),
    );

    edits.sort_by_key(|edit| (edit.stream, edit.range.start));
    edits
}

fn rewritten(page: &PageText, operator: &ShowOperator, removed: &BTreeSet<usize>) -> Vec<u8> {
    let mut out = String::new();
    // `TJ` neither moves to the next line nor sets spacing, so both come before it.
    match operator.kind {
        ShowKind::Show | ShowKind::ShowAdjusted => {}
        ShowKind::NextLineShow => out.push_str("T* "),
        ShowKind::SpacedNextLineShow {
            word_spacing,
            character_spacing,
        } => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{word_spacing} Tw {character_spacing} Tc T* ");
        }
    }

    out.push('[');
    let elements = page
        .elements
        .get(operator.elements.clone())
        .unwrap_or_default();
    let mut array = ArrayWriter {
        out: &mut out,
        pending: 0.0,
        in_string: false,
    };
    for element in elements {
        match element {
            TextElement::Adjustment(number) => array.adjust(*number),
            TextElement::Glyphs(range) => {
                for index in range.clone() {
                    let Some(glyph) = page.glyphs.get(index) else {
                        continue;
                    };

                    if removed.contains(&index) {
                        array.adjust(f64::from(glyph.adjustment));
                    } else {
                        array.code(glyph.code, glyph.code_bytes);
                    }
                }
            }
        }
    }

    array.finish();
    out.push_str("] TJ");
    out.into_bytes()
}

/// Writer of a `TJ` array that joins adjacent adjustments into one number and adjacent codes into
/// one string.
struct ArrayWriter<'o> {
    out: &'o mut String,
    pending: f64,
    in_string: bool,
}

impl ArrayWriter<'_> {
    fn adjust(&mut self, number: f64) {
        self.close_string();
        self.pending += number;
    }

    fn code(&mut self, code: u32, code_bytes: u8) {
        self.flush_adjustment();
        if !self.in_string {
            // Hexadecimal digits need no escapes, which a literal string would.
            self.out.push('<');
            self.in_string = true;
        }
        let digits = usize::from(code_bytes) * 2;
        let _ = write!(self.out, "{code:0digits$X}");
    }

    fn finish(&mut self) {
        self.close_string();
        self.flush_adjustment();
    }

    fn close_string(&mut self) {
        if self.in_string {
            self.out.push('>');
            self.in_string = false;
        }
    }

    fn flush_adjustment(&mut self) {
        if self.pending != 0.0 && self.pending.is_finite() {
            self.close_string();
            let _ = write!(self.out, "{:.4} ", self.pending);
        }
        self.pending = 0.0;
    }
}
