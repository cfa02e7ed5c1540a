//! Suggestions for an anchor text that does not occur.

use crate::search::SearchPhrase;

/// Number of suggestions kept.
const KEPT: usize = 3;
/// Longest phrase, in characters, that gets suggestions.
const LONGEST_PHRASE: usize = 200;
/// Limit on the cells of the distance table per anchor; suggestions are a courtesy and must stay
/// cheap.
const WORK: usize = 20_000_000;

/// The nearest runs of words seen so far, nearest first.
#[derive(Debug)]
pub(crate) struct NearMisses {
    kept: Vec<NearMiss>,
    work_left: usize,
}

#[derive(Debug)]
struct NearMiss {
    distance: usize,
    text: String,
    /// 1-based.
    page: u32,
}

impl Default for NearMisses {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            work_left: WORK,
        }
    }
}

impl NearMisses {
    /// Compares the phrase with every run of the same number of words on a page.
    pub(crate) fn look_at(&mut self, phrase: &SearchPhrase, page: &str, number: u32) {
        let wanted: Vec<char> = phrase
            .words()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .collect();
        if wanted.len() > LONGEST_PHRASE {
            return;
        }

        let wanted_letters = letters(&wanted);

        // Up to a third of the phrase may differ.
        let tolerance = wanted.len().div_ceil(3);
        let words: Vec<&str> = page.split(' ').collect();
        for run in words.windows(phrase.words().count()) {
            let candidate = run.join(" ");
            let lowered: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
            let limit = self.limit(tolerance);

            // Two cheap lower bounds of the distance skip most candidates.
            if lowered.len().abs_diff(wanted.len()) > limit
                || difference(&wanted_letters, &letters(&lowered)) > limit * 2
            {
                continue;
            }

            let cost = wanted.len() * lowered.len();

            // A large document with many anchors must not exhaust the time of the call for mere
            // suggestions.
            let Some(left) = self.work_left.checked_sub(cost) else {
                return;
            };

            self.work_left = left;
            let distance = distance(&wanted, &lowered);
            if distance <= limit {
                self.keep(NearMiss {
                    distance,
                    text: candidate,
                    page: number,
                });
            }
        }
    }

    /// Returns the suggestions with their pages, nearest first.
    pub(crate) fn nearest(&self) -> impl Iterator<Item = (&str, u32)> {
        self.kept.iter().map(|miss| (miss.text.as_str(), miss.page))
    }

    fn limit(&self, tolerance: usize) -> usize {
        match self.kept.last() {
            Some(worst) if self.kept.len() == KEPT => worst.distance.saturating_sub(1),
            _ => tolerance,
        }
    }

    fn keep(&mut self, miss: NearMiss) {
        if self.kept.iter().any(|kept| kept.text == miss.text) {
            return;
        }
        let position = self
            .kept
            .partition_point(|kept| kept.distance <= miss.distance);
        self.kept.insert(position, miss);
        self.kept.truncate(KEPT);
    }
}

/// Counts each letter, folded to a few buckets: a cheap lower bound of the distance.
fn letters(text: &[char]) -> [usize; 32] {
    let mut counts = [0; 32];
    for character in text {
        if let Some(count) = counts.get_mut(*character as usize % 32) {
            *count += 1;
        }
    }
    counts
}

fn difference(left: &[usize; 32], right: &[usize; 32]) -> usize {
    left.iter()
        .zip(right)
        .map(|(left, right)| left.abs_diff(*right))
        .sum()
}

/// Returns the Levenshtein distance.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, left) in left.iter().enumerate() {
        let mut diagonal = index;
        let mut before = index + 1;
        let mut next = vec![before];
        for (right, above) in right.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(left != right);
            before = replaced.min(above + 1).min(before + 1);
            diagonal = *above;
            next.push(before);
        }

        row = next;
    }

    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("buyer"), &chars("buyer")), 0);
        assert_eq!(distance(&chars("buyer"), &chars("byuer:")), 3);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
    }

    #[test]
    fn suggestions_are_ordered_by_edit_distance() {
        let mut misses = NearMisses::default();
        misses.look_at(
            &SearchPhrase::new("Buyer Signature"),
            "The Buyers Signature and the Dealer Signature or Buyer Signatur here",
            3,
        );
        let nearest: Vec<_> = misses.nearest().collect();
        assert_eq!(
            nearest.first().copied(),
            Some(("Buyers Signature", 3)),
            "{nearest:?}"
        );
        assert!(nearest.contains(&("Buyer Signatur", 3)));
        assert!(nearest.iter().all(|(text, _)| !text.starts_with("The")));
    }
}
