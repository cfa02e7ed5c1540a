//! Marked content: replacement text and hidden layers.

use std::ops::Range;

use hayro_syntax::object::{Dict, FromBytes, String as PdfString};

use super::{ContentInterpreter, TextExtent, TextRun, owned_range};
use crate::content::{ContentOperand, ContentOperator, OperandStack};
use crate::page_text::ReplacedText;
use crate::unicode::{compact_text, is_ignorable, text_string};

/// Maximum nesting of marks; deeper ones have no effect.
const MAX_MARKS: usize = 1_000;

/// An open marked-content sequence.
pub(super) struct MarkedContent {
    is_hidden: bool,
    replacement: Option<ReplacementText>,
}

struct ReplacementText {
    text: String,
    range: Range<usize>,
    first_glyph: usize,
    /// Length of the text before it.
    first_byte: usize,
    inline: bool,
}

impl MarkedContent {
    pub(super) fn plain() -> Self {
        Self {
            is_hidden: false,
            replacement: None,
        }
    }
}

impl<'a> ContentInterpreter<'_, 'a> {
    pub(super) fn begin_mark(&mut self, run: &mut TextRun<'_, 'a>, mark: MarkedContent) {
        if run.marks.len() < MAX_MARKS {
            self.hidden += usize::from(mark.is_hidden);
            self.replacing += usize::from(mark.replacement.is_some());
            run.marks.push(mark);
        }
    }

    pub(super) fn end_mark(&mut self, mark: MarkedContent) {
        self.hidden = self.hidden.saturating_sub(usize::from(mark.is_hidden));
        let Some(replacement) = mark.replacement else {
            return;
        };

        self.replacing = self.replacing.saturating_sub(1);
        let glyphs = replacement.first_glyph..self.glyph_count();
        if glyphs.is_empty() {
            return;
        }
        // Compact text has no places, so the replacement need not be spread over the glyphs.
        if self.extent == TextExtent::Compact {
            self.page.text.truncate(replacement.first_byte);
            self.page.text.push_str(&compact_text(&replacement.text));
            return;
        }

        self.replace_text(glyphs.clone(), &replacement.text);
        let stream = self.current_stream();
        self.page.replaced.push(ReplacedText {
            stream,
            range: replacement.range,
            glyphs,
            inline: replacement.inline,
        });

        // An outer mark may still replace this text.
        if self.extent == TextExtent::First && self.replacing == 0 {
            self.is_done = self.page.has_text();
        }
    }

    fn glyph_count(&self) -> usize {
        match self.extent {
            TextExtent::Compact => self.compact_glyphs,
            TextExtent::All | TextExtent::First => self.page.glyphs.len(),
        }
    }

    /// Reads the mark of a `BDC`: a tag, and a dictionary or its name in the resources.
    pub(super) fn described_mark(
        &self,
        run: &TextRun<'_, 'a>,
        operator: &ContentOperator<'_>,
        operands: &OperandStack<'_>,
    ) -> MarkedContent {
        let [.., ContentOperand::Name(tag), properties] = operands.values() else {
            return MarkedContent::plain();
        };

        let text = match properties {
            ContentOperand::Dict(bytes) => {
                Dict::from_bytes(bytes).and_then(|dict| actual_text(&dict))
            }
            ContentOperand::Name(name) => run
                .resources
                .properties
                .get::<Dict<'a>>(name.as_ref())
                .and_then(|dict| actual_text(&dict)),
            _ => None,
        };

        // A layer is an object of the resources, so only a name can mean one (ISO 32000-1, 8.11.3.2).
        let is_hidden = match properties {
            ContentOperand::Name(name) if tag.as_ref() == b"OC" => std::str::from_utf8(name)
                .is_ok_and(|name| {
                    self.hidden_layers
                        .hides_entry(&run.resources.properties, name)
                }),
            _ => false,
        };

        MarkedContent {
            is_hidden,
            replacement: text.map(|text| ReplacementText {
                text,
                range: owned_range(operator),
                first_glyph: self.glyph_count(),
                first_byte: self.page.text.len(),
                inline: matches!(properties, ContentOperand::Dict(_)),
            }),
        }
    }

    /// Spreads the replacement over the glyphs in order, so each part of it keeps a position.
    /// If it equals the text of the glyphs, they keep their exact text.
    fn replace_text(&mut self, glyphs: Range<usize>, replacement: &str) {
        let page = &mut self.page;
        let Some(shown) = page.glyphs.get_mut(glyphs) else {
            return;
        };

        let essence = |text: &str| -> String {
            text.chars()
                .filter(|c| !c.is_whitespace() && !is_ignorable(*c))
                .collect()
        };
        let said: String = shown
            .iter()
            .filter_map(|glyph| {
                page.text
                    .get(glyph.text_start as usize..glyph.text_end as usize)
            })
            .collect();
        if essence(&said) == essence(replacement) {
            return;
        }

        let mut bounds: Vec<usize> = replacement.char_indices().map(|(at, _)| at).collect();
        bounds.push(replacement.len());
        let characters = bounds.len() - 1;
        let count = shown.len();
        let base = page.text.len();
        let Ok(end) = u32::try_from(base.saturating_add(replacement.len())) else {
            return;
        };

        // The former text stays in between, because other glyphs refer to places behind it.
        page.text.push_str(replacement);
        for (position, glyph) in shown.iter_mut().enumerate() {
            let bound = |position: usize| -> u32 {
                bounds
                    .get(position * characters / count)
                    .and_then(|at| u32::try_from(base + at).ok())
                    .unwrap_or(end)
            };
            glyph.text_start = bound(position);

            glyph.text_end = bound(position + 1);
        }
    }
}

fn actual_text(dict: &Dict<'_>) -> Option<String> {
    dict.get::<PdfString<'_>>("ActualText")
        .map(|text| text_string(text.as_bytes()))
}
