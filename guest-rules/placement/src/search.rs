//! Search for a phrase on a page, without regard to case; white space counts as single spaces or is
//! ignored.

use holdfast_reader::{LayerChar, PageRect, PageText, TextLayer, layer_text};

/// A phrase, normalized for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchPhrase {
    spaced: String,
    compact: String,
}

impl SearchPhrase {
    pub(crate) fn new(text: &str) -> Self {
        let spaced: String = layer_text(text)
            .chars()
            .flat_map(char::to_lowercase)
            .collect();
        Self {
            compact: spaced.replace(' ', ""),
            spaced,
        }
    }

    /// Returns whether the normalized phrase is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.compact.is_empty()
    }

    /// Returns whether a page with this compact text can contain the phrase.
    pub(crate) fn may_occur_in(&self, compact: &str) -> bool {
        compact.contains(&self.compact)
    }

    /// Returns the words, in lower case.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.spaced.split(' ')
    }
}

/// How white space is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhraseSpacing {
    /// A single space matches a single space, however wide it is drawn.
    Collapsed,
    /// All white space is ignored: finds letter-spaced headings.
    Ignored,
}

/// Position of an occurrence of a phrase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PhraseMatch {
    /// Bounding box of the whole match.
    pub(crate) rect: PageRect,
    /// Bounding box of its part on the first line it touches.
    pub(crate) first_line: PageRect,
}

/// A page prepared for searching.
pub(crate) struct SearchPage<'p> {
    page: &'p PageText,
    layer: TextLayer,
}

impl<'p> SearchPage<'p> {
    pub(crate) fn new(page: &'p PageText) -> Self {
        Self {
            page,
            layer: TextLayer::visible(page),
        }
    }

    pub(crate) fn index(&self, spacing: PhraseSpacing) -> PageIndex<'_> {
        PageIndex::new(self.page, &self.layer, spacing)
    }

    /// Returns the running text of the page.
    pub(crate) fn text(&self) -> String {
        self.layer.chars().iter().map(|c| c.character).collect()
    }
}

/// The text of a page, normalized for comparison, with the source character of each byte.
pub(crate) struct PageIndex<'p> {
    page: &'p PageText,
    layer: &'p TextLayer,
    spacing: PhraseSpacing,
    text: String,
    char_of_byte: Vec<u32>,
}

impl<'p> PageIndex<'p> {
    fn new(page: &'p PageText, layer: &'p TextLayer, spacing: PhraseSpacing) -> Self {
        let count = layer.chars().len();
        let mut text = String::with_capacity(count);
        let mut char_of_byte = Vec::with_capacity(count);
        for (position, character) in (0_u32..).zip(layer.chars()) {
            if spacing == PhraseSpacing::Ignored && character.character == ' ' {
                continue;
            }
            match character.character {
                ascii if ascii.is_ascii() => text.push(ascii.to_ascii_lowercase()),
                other => text.extend(other.to_lowercase()),
            }
            char_of_byte.resize(text.len(), position);
        }
        Self {
            page,
            layer,
            spacing,
            text,
            char_of_byte,
        }
    }

    /// Returns every match in drawing order; matches do not overlap.
    pub(crate) fn matches<'i>(
        &'i self,
        phrase: &'i SearchPhrase,
    ) -> impl Iterator<Item = PhraseMatch> + 'i {
        let needle = match self.spacing {
            PhraseSpacing::Collapsed => phrase.spaced.as_str(),
            PhraseSpacing::Ignored => phrase.compact.as_str(),
        };
        self.text
            .match_indices(needle)
            .filter(|(_, found)| !found.is_empty())
            .filter_map(|(start, found)| self.located(start, start + found.len()))
    }

    fn located(&self, start: usize, end: usize) -> Option<PhraseMatch> {
        let first = *self.char_of_byte.get(start)? as usize;
        let last = *self.char_of_byte.get(end.checked_sub(1)?)? as usize;
        let chars: &[LayerChar] = self.layer.chars().get(first..=last)?;
        let line = chars.first()?.line;
        let rect = self.layer.bounds(self.page, chars);
        let first_line = self.layer.bounds(
            self.page,
            chars.iter().take_while(|character| character.line == line),
        );
        (rect.is_sane() && first_line.is_sane()).then_some(PhraseMatch { rect, first_line })
    }
}
