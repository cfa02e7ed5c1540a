//! Facts from the printed text of a contract: values beside and below anchor texts.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Range;

use holdfast_reader::{PageRect, PageText, PdfDocument, ReadError as Unread, TextReader};

use crate::area::page_index;
use crate::fact_values::{is_currency, is_number, normalize};
use crate::search::{PhraseMatch, PhraseSpacing, SearchPage, SearchPhrase};
use crate::{
    Area, Direction, FactRequest, PrintedSource, PrintedWords, ReadError, Reading, ValueFormat,
    ValueKind,
};

/// Gap that separates two cells of a row, in heights of a word.
const CELL_GAP: f64 = 1.0;
/// Part of the smaller height that two words of a row share.
const SAME_ROW: f64 = 0.5;
/// Distance from an anchor to the value below it, as a part of the page.
const REACH_BELOW: f64 = 0.2;

/// Reads facts from the printed text, one reading for each request.
///
/// # Errors
///
/// Those of [`inspect`](crate::inspect).
pub fn read(pdf: Vec<u8>, requests: &[FactRequest]) -> Result<Vec<Reading>, ReadError> {
    let document = PdfDocument::open(pdf)?;
    let mut sources: Vec<SourceSearch<'_>> = requests
        .iter()
        .enumerate()
        .flat_map(|(request, asked)| {
            let sources = asked.sources.iter();
            sources.map(move |source| SourceSearch::new(request, source, &asked.format))
        })
        .collect();

    let mut pages = PageCache::new(&document);
    pages.find_promising(&mut sources)?;
    // Ignoring white space can match too much, so it is only the fallback, as for anchors of fields.
    for spacing in [PhraseSpacing::Collapsed, PhraseSpacing::Ignored] {
        let mut open: Vec<_> = sources
            .iter_mut()
            .filter(|source| source.seen == 0)
            .collect();
        for index in 0..document.page_count() {
            pages.look(index, &mut open, spacing)?;
        }
    }

    let mut readings = Vec::with_capacity(requests.len());
    for request in 0..requests.len() {
        let own: Vec<&SourceSearch<'_>> = sources
            .iter()
            .filter(|source| source.request == request)
            .collect();
        readings.push(pages.reading(&own)?);
    }

    Ok(readings)
}

/// State of one printed source.
struct SourceSearch<'r> {
    /// Index of its request.
    request: usize,
    source: &'r PrintedSource,
    format: &'r ValueFormat,
    phrase: SearchPhrase,
    /// Pages that may have the anchor, 0-based.
    promising: Vec<usize>,
    /// Occurrences so far.
    seen: u32,
    found: Option<PrintedWords>,
}

impl<'r> SourceSearch<'r> {
    fn new(request: usize, source: &'r PrintedSource, format: &'r ValueFormat) -> Self {
        Self {
            request,
            source,
            format,
            phrase: SearchPhrase::new(&source.anchor),
            promising: Vec::new(),
            seen: 0,
            found: None,
        }
    }

    fn looks_at(&self, index: usize) -> bool {
        let page = self.source.page;
        page.is_none_or(|page| page_index(page) == Some(index))
    }

    fn wanted(&self) -> u32 {
        self.source.occurrence.unwrap_or(1)
    }

    /// Returns whether the wanted occurrence is still to come.
    fn is_open(&self) -> bool {
        self.seen < self.wanted()
    }

    /// Counts an occurrence of the anchor, and reads beside the wanted one.
    fn count(&mut self, page: &WordPage<'_>, text: &PageText, anchor: PhraseMatch, index: usize) {
        let direction = self.source.direction;
        let is_counted_by_line = matches!(direction, Direction::NumberOfLine(_));
        let is_last = self.seen.saturating_add(1) == self.wanted();
        // An anchor can occur thousands of times.
        if !is_counted_by_line && !is_last {
            self.seen = self.seen.saturating_add(1);
            return;
        }

        let looked = LookedUp {
            words: page.words_beside(&anchor),
            anchor,
            text,
        };
        if !looked.counts(direction) {
            return;
        }
        self.seen = self.seen.saturating_add(1);
        if is_last {
            self.found = looked.value(direction, self.format, index);
        }
    }
}

/// Pages of a document that were read.
struct PageCache<'d> {
    reader: TextReader<'d>,
    count: usize,
    pages: BTreeMap<usize, PageText>,
    /// Whether a page has pictures and no text: each look is charged to the limits of the reader.
    pictures: BTreeMap<usize, bool>,
}

impl<'d> PageCache<'d> {
    fn new(document: &'d PdfDocument) -> Self {
        Self {
            reader: document.text_reader(),
            count: document.page_count(),
            pages: BTreeMap::new(),
            pictures: BTreeMap::new(),
        }
    }

    /// Lists the pages that may have each anchor, which shows without the places of their glyphs.
    fn find_promising(&mut self, sources: &mut [SourceSearch<'_>]) -> Result<(), Unread> {
        for index in 0..self.count {
            let mut open = sources
                .iter_mut()
                .filter(|source| source.looks_at(index) && !source.phrase.is_empty())
                .peekable();
            if open.peek().is_none() {
                continue;
            }

            let compact = self.reader.compact(index)?;
            for source in open {
                let is_promising = compact
                    .as_ref()
                    .is_none_or(|text| source.phrase.may_occur_in(text));
                if is_promising {
                    source.promising.push(index);
                }
            }
        }

        Ok(())
    }

    fn page(&mut self, index: usize) -> Result<&PageText, Unread> {
        // Not the entry API: reading a page can fail.
        if !self.pages.contains_key(&index) {
            let page = self.reader.page(index)?;
            self.pages.insert(index, page);
        }
        Ok(&self.pages[&index])
    }

    /// Looks on a page for the wanted occurrences of anchors, and reads what stands beside them.
    fn look(
        &mut self,
        index: usize,
        sources: &mut [&mut SourceSearch<'_>],
        spacing: PhraseSpacing,
    ) -> Result<(), Unread> {
        let mut open = sources
            .iter_mut()
            // The pages are listed in order.
            .filter(|source| source.is_open() && source.promising.binary_search(&index).is_ok())
            .peekable();
        if open.peek().is_none() {
            return Ok(());
        }

        let text = self.page(index)?;
        let page = WordPage::new(SearchPage::new(text));
        let running_text = page.search.index(spacing);
        for source in open {
            // The copy lets the search count while the matches still borrow the phrase.
            let phrase = source.phrase.clone();
            for anchor in running_text.matches(&phrase) {
                // `APR` is not the beginning of `April`.
                if !page.search.is_of_whole_words(&anchor) {
                    continue;
                }

                source.count(&page, text, anchor, index);
                if !source.is_open() {
                    break;
                }
            }
        }

        Ok(())
    }

    /// Returns the reading of a request from its sources: the first value, else the first words that are none.
    fn reading(&mut self, sources: &[&SourceSearch<'_>]) -> Result<Reading, Unread> {
        let found = || sources.iter().filter_map(|source| source.found.as_ref());
        let value = found().find(|words| words.value.is_ok());
        if let Some(words) = value.or_else(|| found().next()) {
            return Ok(Reading::Words(words.clone()));
        }
        // An anchor with nothing beside it is an empty place of a page that can be read.
        if sources.iter().any(|source| source.seen > 0) {
            return Ok(Reading::Missing);
        }

        for index in 0..self.count {
            let is_searched = sources.iter().any(|source| source.looks_at(index));
            if is_searched && self.is_picture(index)? {
                return Ok(Reading::Unreadable);
            }
        }

        Ok(Reading::Missing)
    }

    /// Returns whether a page has pictures and no text. An empty page hides nothing.
    fn is_picture(&mut self, index: usize) -> Result<bool, Unread> {
        if let Some(known) = self.pictures.get(&index) {
            return Ok(*known);
        }

        let is_picture = !self.reader.has_text(index)? && !self.page(index)?.images.is_empty();
        self.pictures.insert(index, is_picture);
        Ok(is_picture)
    }
}

/// A word of a page.
#[derive(Debug, Clone)]
struct PageWord {
    text: String,
    rect: PageRect,
    /// Its first and last character on the page.
    characters: (usize, usize),
}

impl PageWord {
    /// Returns whether it is a line to write on, or a mark between a label and its value.
    fn is_filler(&self) -> bool {
        let mut characters = self.text.chars();
        characters.all(|one| matches!(one, '_' | '.' | ':' | '=' | '\u{2026}'))
    }
}

/// A page with its words. They are split once, which is most of the work, and an anchor cuts a few of them.
struct WordPage<'p> {
    search: SearchPage<'p>,
    words: OnceCell<Vec<PageWord>>,
}

impl<'p> WordPage<'p> {
    fn new(search: SearchPage<'p>) -> Self {
        Self {
            search,
            words: OnceCell::new(),
        }
    }

    /// Returns the words of the page, without the characters of the anchor.
    fn words_beside(&self, anchor: &PhraseMatch) -> Vec<Cow<'_, PageWord>> {
        let all = self
            .words
            .get_or_init(|| self.split(0..self.search.characters().len(), |_| false));

        let mut words = Vec::with_capacity(all.len());
        for word in all {
            let (first, last) = word.characters;
            if anchor.touches(first, last) {
                let pieces = self.split(first..last + 1, |position| anchor.covers(position));
                words.extend(pieces.into_iter().map(Cow::Owned));
            } else {
                words.push(Cow::Borrowed(word));
            }
        }

        words
    }

    /// Splits a part of the page into words, without the characters that are left out.
    fn split(&self, part: Range<usize>, is_left_out: impl Fn(usize) -> bool) -> Vec<PageWord> {
        let mut words: Vec<PageWord> = Vec::new();
        let mut last_line = None;
        let mut is_open = false;
        let start = part.start;
        let characters = self.search.characters().get(part).unwrap_or_default();
        for (position, character) in (start..).zip(characters) {
            if character.character == ' ' || is_left_out(position) {
                is_open = false;
                continue;
            }

            let rect = self.search.rect_of(character);
            if !rect.is_sane() {
                continue;
            }
            if last_line != Some(character.line) {
                is_open = false;
            }
            last_line = Some(character.line);

            match words.last_mut().filter(|_| is_open) {
                Some(word) => {
                    word.text.push(character.character);
                    word.rect = word.rect.union(&rect);
                    word.characters.1 = position;
                }
                None => words.push(PageWord {
                    text: character.character.into(),
                    rect,
                    characters: (position, position),
                }),
            }
            is_open = true;
        }

        words.retain(|word| !word.is_filler());
        // A colon right behind a label belongs to the label.
        for word in &mut words {
            let text = word.text.trim_start_matches([':', '=', '_']);
            if text.len() < word.text.len() {
                word.text = text.to_owned();
            }
        }

        words
    }
}

/// Value among the words of a row.
#[derive(Debug, Clone)]
struct RowValue {
    words: String,
    rect: PageRect,
}

impl RowValue {
    fn of(words: &[&PageWord]) -> Self {
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let rects = words.iter().map(|word| word.rect);
        Self {
            words: texts.join(" "),
            rect: rects.fold(PageRect::EMPTY, |all, one| all.union(&one)),
        }
    }

    fn is_money_or_count(&self, format: &ValueFormat) -> bool {
        is_number(format, self.bare())
    }

    fn is_value(&self, format: &ValueFormat) -> bool {
        normalize(format, self.bare()).is_ok()
    }

    /// Returns the words without the end of a sentence.
    fn bare(&self) -> &str {
        self.words.trim_end_matches([',', ';', ':', '.'])
    }

    fn printed(&self, format: &ValueFormat, page: usize) -> PrintedWords {
        let words = if format.kind == ValueKind::Text {
            self.words.as_str()
        } else {
            self.bare()
        };
        PrintedWords {
            words: words.to_owned(),
            area: Area::on_page(page, &self.rect),
            value: normalize(format, words),
        }
    }
}

/// An anchor, and the words around it.
struct LookedUp<'p> {
    words: Vec<Cow<'p, PageWord>>,
    anchor: PhraseMatch,
    text: &'p PageText,
}

impl LookedUp<'_> {
    /// Returns whether an occurrence counts: for numbers of a line, only one that begins a line does.
    fn counts(&self, direction: Direction) -> bool {
        let Direction::NumberOfLine(_) = direction else {
            return true;
        };
        let line = &self.anchor.first_line;
        let before = self
            .row_of(line)
            .into_iter()
            .filter(|word| word.rect.x0 < line.x0);
        let nearest = before.map(|word| word.rect.x1).fold(0.0, f64::max);
        nearest == 0.0 || line.x0 - nearest > self.gap(line)
    }

    /// Returns the words that the source means, with their value.
    fn value(
        &self,
        direction: Direction,
        format: &ValueFormat,
        page: usize,
    ) -> Option<PrintedWords> {
        let found = match direction {
            Direction::RightOf => self.right_of(format),
            Direction::Below => self.below(format),
            Direction::NumberOfLine(number) => self.number_of_line(format, number),
        };
        found.map(|found| found.printed(format, page))
    }

    fn right_of(&self, format: &ValueFormat) -> Option<RowValue> {
        let row = self.right_row();
        let mut values = self.values(&row, format, RowValue::is_value).into_iter();
        values
            .next()
            .or_else(|| self.cells(&row).into_iter().next())
    }

    fn below(&self, format: &ValueFormat) -> Option<RowValue> {
        let anchor = &self.anchor.rect;
        let reach = anchor.y1 + REACH_BELOW;
        let mut under: Vec<&PageWord> = self
            .words
            .iter()
            .map(Cow::as_ref)
            .filter(|word| middle(&word.rect) > anchor.y1 && middle(&word.rect) < reach)
            .collect();
        under.sort_by(|one, other| middle(&one.rect).total_cmp(&middle(&other.rect)));

        let mut first_words = None;
        while let Some(first) = under.first() {
            let line = first.rect;
            let (row, rest): (Vec<&PageWord>, Vec<&PageWord>) = under
                .into_iter()
                .partition(|word| shares_row(&word.rect, &line));
            under = rest;
            let row = sorted(row);

            let values = self.values(&row, format, RowValue::is_value);
            if let Some(value) = self.nearest_in_column(values) {
                return Some(value);
            }
            let cell = self.nearest_in_column(self.cells(&row));
            first_words = first_words.or(cell);
        }

        first_words
    }

    fn number_of_line(&self, format: &ValueFormat, number: u32) -> Option<RowValue> {
        let row = self.right_row();
        let is_wanted = match format.kind {
            ValueKind::Integer | ValueKind::Money | ValueKind::Percentage => {
                RowValue::is_money_or_count
            }
            _ => RowValue::is_value,
        };
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.values(&row, format, is_wanted).into_iter().nth(index)
    }

    /// Returns of the values in the column of the anchor the one that is nearest to its middle.
    fn nearest_in_column(&self, values: Vec<RowValue>) -> Option<RowValue> {
        let anchor = &self.anchor.rect;
        let margin = self.gap(&self.anchor.last_line);
        let centre = |rect: &PageRect| f64::midpoint(rect.x0, rect.x1);
        let distance = |value: &RowValue| (centre(&value.rect) - centre(anchor)).abs();
        values
            .into_iter()
            .filter(|value| {
                value.rect.x1 > anchor.x0 - margin && value.rect.x0 < anchor.x1 + margin
            })
            .min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }

    /// Returns the words right of the anchor, on its last line.
    fn right_row(&self) -> Vec<&PageWord> {
        let line = &self.anchor.last_line;
        let mut row = self.row_of(line);
        row.retain(|word| word.rect.x0 >= line.x1 - self.gap(line) / 4.0);
        row
    }

    /// Returns the words of a line, from left to right.
    fn row_of(&self, line: &PageRect) -> Vec<&PageWord> {
        let words = self.words.iter().map(Cow::as_ref);
        sorted(words.filter(|word| shares_row(&word.rect, line)).collect())
    }

    /// Returns the widest gap within a cell, as a fraction of the page's width.
    fn gap(&self, rect: &PageRect) -> f64 {
        let (width, height) = (self.text.width.max(1.0), self.text.height.max(1.0));
        CELL_GAP * rect.height() * height / width
    }

    /// Returns the values of a row from left to right. Of several readings at one place, the longest counts.
    fn values(
        &self,
        row: &[&PageWord],
        format: &ValueFormat,
        is_wanted: impl Fn(&RowValue, &ValueFormat) -> bool,
    ) -> Vec<RowValue> {
        let longest = match format.kind {
            ValueKind::Text => return self.cells(row),
            ValueKind::Integer | ValueKind::Money | ValueKind::Percentage | ValueKind::Boolean => 3,
            ValueKind::Date => 8,
            ValueKind::Vin => 17,
        };

        let mut values = Vec::new();
        let mut rest = row;
        while !rest.is_empty() {
            let reach = self.joined(&rest[..rest.len().min(longest)]);
            let found = (1..=reach).rev().find_map(|length| {
                let value = RowValue::of(&rest[..length]);
                is_wanted(&value, format).then_some((length, value))
            });
            let length = found.as_ref().map_or(1, |(length, _)| *length);
            values.extend(found.map(|(_, value)| value));
            rest = &rest[length..];
        }

        values
    }

    /// Returns the number of words that can be one value: those of a cell. A currency and a percent sign may be
    /// printed, with the amount filled in far from them.
    fn joined(&self, words: &[&PageWord]) -> usize {
        let is_next = |pair: &&[&PageWord]| {
            let (left, right) = (pair[0], pair[1]);
            let gap = right.rect.x0 - left.rect.x1;
            gap <= self.gap(&left.rect).max(self.gap(&right.rect))
                || is_currency(&left.text)
                || matches!(right.text.as_str(), "%" | ")" | "-")
        };
        1 + words.windows(2).take_while(is_next).count()
    }

    /// Returns the cells of a row.
    fn cells(&self, row: &[&PageWord]) -> Vec<RowValue> {
        let mut cells = Vec::new();
        let mut rest = row;
        while !rest.is_empty() {
            let length = self.joined(rest);
            cells.push(RowValue::of(&rest[..length]));
            rest = &rest[length..];
        }
        cells
    }
}

fn sorted(mut row: Vec<&PageWord>) -> Vec<&PageWord> {
    row.sort_by(|one, other| one.rect.x0.total_cmp(&other.rect.x0));
    row
}

fn middle(rect: &PageRect) -> f64 {
    f64::midpoint(rect.y0, rect.y1)
}

/// Returns whether two rectangles stand on one line.
fn shares_row(one: &PageRect, other: &PageRect) -> bool {
    let shared = one.y1.min(other.y1) - one.y0.max(other.y0);
    shared > SAME_ROW * one.height().min(other.height())
}
