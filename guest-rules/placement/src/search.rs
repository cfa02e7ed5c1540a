//! Search for a phrase on a page, without regard to case; white space counts as single spaces or is
//! ignored.

use holdfast_reader::{
    LayerChar, PageRect, PageText, TextLayer, fold, is_combining_mark, is_right_to_left, layer_text,
};

/// A phrase, normalized for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchPhrase {
    /// The folded phrase, and from right to left as older programs draw it.
    orders: Vec<PhraseOrder>,
    words: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PhraseOrder {
    spaced: String,
    compact: String,
}

impl PhraseOrder {
    fn of(text: &str) -> Self {
        let mut spaced = String::with_capacity(text.len());
        for character in text.chars() {
            fold(character, |part| spaced.push(part));
        }
        Self {
            compact: spaced.replace(' ', ""),
            spaced,
        }
    }
}

impl SearchPhrase {
    pub(crate) fn new(text: &str) -> Self {
        let text = layer_text(text);
        let mut orders = vec![PhraseOrder::of(&text)];
        if text.chars().any(is_right_to_left) {
            orders.push(PhraseOrder::of(&visual_order(&text)));
        }

        Self {
            orders,
            words: text.to_lowercase(),
        }
    }

    /// Returns whether the normalized phrase is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.orders.iter().all(|order| order.compact.is_empty())
    }

    /// Returns whether a page with this compact text can contain the phrase.
    pub(crate) fn may_occur_in(&self, compact: &str) -> bool {
        let mut orders = self.orders.iter();
        orders.any(|order| compact.contains(&order.compact))
    }

    /// Returns the words, in lower case.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.split(' ')
    }
}

/// Returns a text from right to left in the order of its glyphs from left to right. Numbers and words of other
/// scripts keep their order.
fn visual_order(text: &str) -> String {
    let mut clusters: Vec<String> = Vec::new();
    let mut is_number_open = false;
    // Older programs draw each line glyph by glyph from the left.
    for character in text.chars() {
        let is_forward = character.is_alphanumeric() && !is_right_to_left(character);
        let joins = is_combining_mark(character) || (is_forward && is_number_open);
        match clusters.last_mut().filter(|_| joins) {
            Some(last) => last.push(character),
            None => clusters.push(character.into()),
        }

        is_number_open = is_forward;
    }

    clusters.reverse();
    clusters.concat()
}

/// Returns whether two texts that match have the same apostrophes, quotation marks, hyphens and dashes.
pub(crate) fn has_same_punctuation(one: &str, other: &str) -> bool {
    let punctuation = |text: &str| -> Vec<char> {
        let is_in_a_class = |character: &char| {
            let mut is_in_a_class = false;
            fold(*character, |part| {
                is_in_a_class |= matches!(part, '\'' | '"' | '-')
            });
            is_in_a_class
        };
        text.chars().filter(is_in_a_class).collect()
    };

    let (one, other) = (punctuation(one), punctuation(other));

    // Older programs draw texts from right to left in the order of their glyphs.
    one == other || one.iter().rev().eq(&other)
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
    /// Bounding box of its part on the last line it touches.
    pub(crate) last_line: PageRect,
    /// Its first and last character on the page.
    characters: (usize, usize),
}

impl PhraseMatch {
    /// Returns whether it has one of these characters of the page.
    pub(crate) fn touches(&self, first: usize, last: usize) -> bool {
        first <= self.characters.1 && self.characters.0 <= last
    }

    /// Returns whether it has the character at this position of the page.
    pub(crate) fn covers(&self, position: usize) -> bool {
        (self.characters.0..=self.characters.1).contains(&position)
    }
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

    /// Returns the characters of the page in order.
    pub(crate) fn characters(&self) -> &[LayerChar] {
        self.layer.chars()
    }

    /// Returns the box of a character.
    pub(crate) fn rect_of(&self, character: &LayerChar) -> PageRect {
        self.layer.rect(self.page, character)
    }

    /// Returns whether a match ends where its words end, on both sides.
    pub(crate) fn is_of_whole_words(&self, found: &PhraseMatch) -> bool {
        let characters = self.layer.chars();
        let are_of_one_word = |inside: usize, beside: Option<usize>| {
            let beside = beside.and_then(|position| characters.get(position));
            let pair = characters.get(inside).zip(beside);
            pair.is_some_and(|(inside, beside)| {
                inside.line == beside.line
                    && is_letter_of_spaced_words(inside.character)
                    && is_letter_of_spaced_words(beside.character)
            })
        };

        let (first, last) = found.characters;
        !are_of_one_word(first, first.checked_sub(1)) && !are_of_one_word(last, last.checked_add(1))
    }

    /// Returns a match as it stands on the page.
    pub(crate) fn text_of(&self, found: &PhraseMatch) -> String {
        let (first, last) = found.characters;
        let characters = self.layer.chars().get(first..=last);
        let characters = characters.unwrap_or_default().iter();
        characters.map(|character| character.character).collect()
    }
}

/// Returns whether a character is a letter of a script that puts spaces between words. The scripts from Arabic on
/// join words, or write without spaces.
fn is_letter_of_spaced_words(character: char) -> bool {
    character < '\u{600}' && character.is_alphabetic()
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
            fold(character.character, |part| text.push(part));
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
        let needle = |order: &'i PhraseOrder| match self.spacing {
            PhraseSpacing::Collapsed => order.spaced.as_str(),
            PhraseSpacing::Ignored => order.compact.as_str(),
        };

        // A text is drawn in one of the two orders.
        let mut orders = phrase.orders.iter().map(needle);
        let order = orders.find(|needle| self.text.contains(needle));
        order
            .into_iter()
            .flat_map(|needle| self.text.match_indices(needle))
            .filter(|(start, found)| !found.is_empty() && self.ends_at(start + found.len()))
            .filter_map(|(start, found)| self.located(start, start + found.len()))
    }

    /// Returns whether a letter ends here: an accent after it would make it another one.
    fn ends_at(&self, end: usize) -> bool {
        let next = self.text.get(end..).and_then(|rest| rest.chars().next());
        !next.is_some_and(is_combining_mark)
    }

    fn located(&self, start: usize, end: usize) -> Option<PhraseMatch> {
        let first = *self.char_of_byte.get(start)? as usize;
        let last = *self.char_of_byte.get(end.checked_sub(1)?)? as usize;
        let chars: &[LayerChar] = self.layer.chars().get(first..=last)?;
        let (line, last_line) = (chars.first()?.line, chars.last()?.line);
        let rect = self.layer.bounds(self.page, chars);
        let bounds_on = |line: u32| {
            let on_line = chars.iter().filter(move |character| character.line == line);
            self.layer.bounds(self.page, on_line)
        };
        let (first_line, last_line) = (bounds_on(line), bounds_on(last_line));

        // Text with a broken matrix has no usable place, and a field there could not be drawn.
        let is_sane = rect.is_sane() && first_line.is_sane() && last_line.is_sane();
        is_sane.then_some(PhraseMatch {
            rect,
            first_line,
            last_line,
            characters: (first, last),
        })
    }
}
