//! Search in the guides and in the reference.

use super::guides::{self, Section};
use super::reference::ApiReference;

/// Most hits of a question.
const MOST: usize = 30;
/// Characters of an excerpt before and after the word.
const AROUND: usize = 80;

/// A section that has all words of a question.
pub struct Hit {
    pub address: String,
    pub title: String,
    pub excerpt: String,
}

/// A place that can be found: address and title of its page, and the section.
type SearchPlace<'a> = (String, &'a str, &'a Section);

/// Returns the sections of guides that have all words.
pub fn sections(question: &str) -> Vec<Hit> {
    let places = guides::all().iter().flat_map(|guide| {
        let sections = guide.sections.iter();
        sections.map(move |section| (guide.address(), guide.title.as_str(), section))
    });

    ranked(question, places)
}

/// Returns the operations of the reference that have all words.
pub fn operations(question: &str, reference: &ApiReference) -> Vec<Hit> {
    ranked(question, reference.sections())
}

/// Returns the places that have all words, those with words in their heading first.
fn ranked<'a>(question: &str, places: impl Iterator<Item = SearchPlace<'a>>) -> Vec<Hit> {
    let question = question.to_lowercase();
    // Each word is searched in every guide, so their number bounds the work of a request.
    let words: Vec<&str> = question.split_whitespace().take(8).collect();
    if words.is_empty() {
        return Vec::new();
    }

    let mut found = Vec::new();
    for place in places {
        let section = place.2;
        let heading = section.title.to_lowercase();
        let text = section.text.to_lowercase();
        let has_all = words
            .iter()
            .all(|word| heading.contains(word) || text.contains(word));
        // Text before a page's title is in a section without an id, to which no link could lead.
        if has_all && !section.title.is_empty() {
            let in_heading = words.iter().filter(|word| heading.contains(**word)).count();
            let times: usize = words.iter().map(|word| text.matches(word).count()).sum();
            found.push(((in_heading, times), place));
        }
    }

    // A stable sort: equal sections stay in the order of their pages.
    found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    let hits = found.into_iter().take(MOST);
    hits.map(|(_, place)| hit(place, words[0])).collect()
}

fn hit((page, page_title, section): SearchPlace<'_>, word: &str) -> Hit {
    let title = if section.title == page_title {
        section.title.clone()
    } else {
        format!("{page_title} · {}", section.title)
    };
    // Cut by characters, because a cut by bytes could fall into one.
    let text: Vec<char> = section
        .text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .collect();
    // Only ASCII is lowered: other letters can change their length, and the place would be another one
    // in `text`.
    let lower: String = text.iter().map(char::to_ascii_lowercase).collect();
    // A word that stands in the heading only gets the beginning of the section.
    let at = lower.find(word).map_or(0, |at| lower[..at].chars().count());
    let from = at.saturating_sub(AROUND);

    let to = (at + AROUND).min(text.len());
    let (before, after) = (
        if from > 0 { "…" } else { "" },
        if to < text.len() { "…" } else { "" },
    );

    let middle: String = text[from..to].iter().collect();
    Hit {
        address: format!("{page}#{}", section.id),
        title,
        excerpt: format!("{before}{middle}{after}"),
    }
}
