//! Locating the text of anchors.

use std::collections::BTreeSet;

use holdfast_reader::{PdfDocument, ReadError};

use crate::Anchor;
use crate::area::{page_index, page_number};
use crate::issues::{FieldProblem, code, quoted};
use crate::misses::NearMisses;
use crate::search::{PhraseMatch, PhraseSpacing, SearchPage, SearchPhrase};

/// Result of looking for an anchor.
#[derive(Debug)]
pub(crate) enum AnchorOutcome {
    /// Found on the page with this 0-based index.
    Found(usize, PhraseMatch),
    NotFound(FieldProblem),
}

/// State of the search for one anchor.
struct AnchorSearch {
    phrase: SearchPhrase,
    text: String,
    /// Page to search, 0-based; `None` searches all pages.
    page: Option<usize>,
    /// Requested occurrence, 1-based.
    wanted: u32,
    seen: u32,
    found: Option<(usize, PhraseMatch)>,
    spacing: PhraseSpacing,
    near_misses: NearMisses,
    /// Whether any searched page has text.
    text_there: bool,
    /// Pages other than the requested one that contain the phrase, 1-based.
    elsewhere: BTreeSet<u32>,
}

/// Looks for all anchors in one pass over the document, which ends as soon as every anchor is
/// found. If some are missing, a second pass ignores white space for them and collects near misses.
pub(crate) fn find(
    document: &PdfDocument,
    anchors: &[&Anchor],
) -> Result<Vec<AnchorOutcome>, ReadError> {
    let mut hunts: Vec<AnchorSearch> = anchors
        .iter()
        .map(|anchor| AnchorSearch::new(anchor))
        .collect();
    first_pass(document, &mut hunts)?;
    // An anchor that was seen too few times needs no second pass, because its text is there.
    if hunts.iter().any(|hunt| hunt.seen == 0) {
        second_pass(document, &mut hunts)?;
    }

    Ok(hunts.into_iter().map(AnchorSearch::outcome).collect())
}

fn first_pass(document: &PdfDocument, hunts: &mut [AnchorSearch]) -> Result<(), ReadError> {
    let mut reader = document.text_reader();
    for index in 0..document.page_count() {
        if hunts.iter().all(|hunt| hunt.found.is_some()) {
            break;
        }

        let mut open = hunts.iter().filter(|hunt| hunt.looks_at(index)).peekable();
        if open.peek().is_none() {
            continue;
        }

        // Most pages have none of the texts, which shows without the places of their glyphs.
        if let Some(text) = reader.compact(index)?
            && !open.any(|hunt| hunt.phrase.may_occur_in(&text))
        {
            continue;
        }

        let page_text = reader.page(index)?;
        let page = SearchPage::new(&page_text);
        let text = page.index(PhraseSpacing::Collapsed);
        for hunt in hunts.iter_mut().filter(|hunt| hunt.looks_at(index)) {
            // The copy lets the search count while the matches still borrow the phrase.
            hunt.count(index, text.matches(&hunt.phrase.clone()));
        }
    }

    Ok(())
}

fn second_pass(document: &PdfDocument, hunts: &mut [AnchorSearch]) -> Result<(), ReadError> {
    let mut missing: Vec<&mut AnchorSearch> =
        hunts.iter_mut().filter(|hunt| hunt.seen == 0).collect();
    for hunt in &mut missing {
        hunt.spacing = PhraseSpacing::Ignored;
    }

    let mut reader = document.text_reader();
    // All pages are read, also for an anchor of one page: another page with the text is the best hint.
    for index in 0..document.page_count() {
        let page_text = reader.page(index)?;
        let page = SearchPage::new(&page_text);
        let compact = page.index(PhraseSpacing::Ignored);

        let running_text = page.text();
        for hunt in &mut missing {
            let phrase = hunt.phrase.clone();
            if hunt.page.is_none_or(|wanted| wanted == index) {
                hunt.count(index, compact.matches(&phrase));
                hunt.near_misses
                    .look_at(&phrase, &running_text, page_number(index));
                hunt.text_there |= !running_text.trim().is_empty();
            } else if compact.matches(&phrase).next().is_some() {
                hunt.elsewhere.insert(page_number(index));
            }
        }
    }

    Ok(())
}

impl AnchorSearch {
    fn new(anchor: &Anchor) -> Self {
        Self {
            phrase: SearchPhrase::new(&anchor.text),
            text: anchor.text.clone(),
            page: anchor.page.and_then(page_index),
            wanted: anchor.occurrence.unwrap_or(1),
            seen: 0,
            found: None,
            spacing: PhraseSpacing::Collapsed,
            near_misses: NearMisses::default(),
            text_there: false,
            elsewhere: BTreeSet::new(),
        }
    }

    fn looks_at(&self, index: usize) -> bool {
        self.found.is_none() && self.page.is_none_or(|page| page == index)
    }

    fn count(&mut self, index: usize, matches: impl Iterator<Item = PhraseMatch>) {
        for found in matches {
            self.seen = self.seen.saturating_add(1);
            if self.seen == self.wanted {
                self.found = Some((index, found));
                return;
            }
        }
    }

    fn outcome(self) -> AnchorOutcome {
        if let Some((page, found)) = self.found {
            return AnchorOutcome::Found(page, found);
        }

        let place = match self.page {
            Some(index) => format!(" on page {}", page_number(index)),
            None => String::new(),
        };
        // With the text in the document, the number is the mistake. Otherwise the text is.
        AnchorOutcome::NotFound(if self.seen > 0 {
            FieldProblem::at(&["placement", "occurrence"], code::OCCURRENCE_OUT_OF_RANGE)
                .expected(format!("1 to {}", self.seen))
                .received(self.wanted)
                .message(format!(
                    "occurrence {} of {}: the anchor text {} occurs {}{place}",
                    self.wanted,
                    self.seen,
                    quoted(&self.text),
                    times(self.seen),
                ))
        } else {
            FieldProblem::at(&["placement", "anchor_text"], code::ANCHOR_NOT_FOUND)
                .expected(format!("text that occurs in the document{place}"))
                .received(&self.text)
                .message(format!(
                    "anchor text not found{place}: {}{}",
                    quoted(&self.text),
                    self.hint()
                ))
        })
    }

    fn hint(&self) -> String {
        if !self.elsewhere.is_empty() {
            let pages: Vec<String> = self
                .elsewhere
                .iter()
                .take(3)
                .map(ToString::to_string)
                .collect();
            let noun = if pages.len() == 1 { "page" } else { "pages" };
            return format!("; it occurs on {noun} {}", pages.join(", "));
        }

        if !self.text_there {
            return "; there is no text at all, it may be a scan".to_owned();
        }

        // Similar texts help only where there is text, so a scan has its own hint before.
        let nearest: Vec<String> = self
            .near_misses
            .nearest()
            .map(|(text, page)| format!("{} on page {page}", quoted(text)))
            .collect();
        if nearest.is_empty() {
            String::new()
        } else {
            format!("; nearest: {}", nearest.join(", "))
        }
    }
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}
