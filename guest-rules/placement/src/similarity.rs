//! Similarity of texts, to find scans and reprints of a document.

use std::collections::BTreeSet;

use holdfast_reader::{PdfDocument, TextLayer};

use crate::ReadError;

/// Number of MinHash values.
pub const VALUES: usize = 128;
/// Fewest words that make a signature: a few numbers in common prove nothing.
const FEWEST: usize = 8;
/// Fewest characters of a word.
const LENGTH: usize = 3;

/// Returns the MinHash values of a document's words that contain a digit, of any page. None if there are
/// fewer than eight different ones, as in a scan without text.
///
/// The words of two contracts on one form are the same, apart from names and numbers. Words with digits (amounts,
/// dates, numbers of vehicles, houses and telephones) tell them apart, and a scan or a reprint keeps most of
/// them. Two documents share about the part of their values that they share of these words (Broder, 1997).
///
/// # Errors
///
/// Those of [`crate::inspect`].
pub fn signature(pdf: Vec<u8>) -> Result<Option<Vec<u32>>, ReadError> {
    let document = PdfDocument::open(pdf)?;
    let mut reader = document.text_reader();
    let mut words = BTreeSet::new();
    for page in 0..document.page_count() {
        // Text beside the page is on no scan, so only lines on the page count.
        let text = reader.page(page)?;
        for line in TextLayer::visible(&text).lines(&text) {
            add_words(&line.text, &mut words);
        }
    }

    Ok(of_words(&words))
}

/// Adds the words of a line that contain a digit, in lower case and without punctuation.
fn add_words(line: &str, words: &mut BTreeSet<String>) {
    for word in line.split_whitespace() {
        let plain = word.chars().filter(|character| character.is_alphanumeric());
        let plain: String = plain.flat_map(char::to_lowercase).collect();
        let has_digit = plain.bytes().any(|byte| byte.is_ascii_digit());
        if has_digit && plain.chars().count() >= LENGTH {
            words.insert(plain);
        }
    }
}

fn of_words(words: &BTreeSet<String>) -> Option<Vec<u32>> {
    if words.len() < FEWEST {
        return None;
    }

    let mut values = vec![u32::MAX; VALUES];
    for word in words {
        let hash = fnv(word.as_bytes());
        let (first, step) = (mixed(hash), mixed(hash ^ 0x9e37_79b9_7f4a_7c15) | 1);
        for (value, number) in values.iter_mut().zip(0_u64..) {
            // One hash function for each value, by double hashing.
            let of_word = mixed(first.wrapping_add(number.wrapping_mul(step)));
            let short = u32::try_from(of_word >> 32).unwrap_or(u32::MAX);
            *value = short.min(*value);
        }
    }

    Some(values)
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The last steps of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(lines: &[&str]) -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        for line in lines {
            add_words(line, &mut words);
        }
        words
    }

    fn numbers(range: std::ops::Range<u32>) -> BTreeSet<String> {
        range.map(|number| format!("no{number}")).collect()
    }

    /// Part of the values that two sets of words share.
    fn shared(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
        let (one, other) = (of_words(one).unwrap(), of_words(other).unwrap());
        let equal = one.iter().zip(&other).filter(|(left, right)| left == right);
        equal.count() as f64 / VALUES as f64
    }

    #[test]
    fn only_words_with_a_digit_count() {
        let found = words(&[
            "Amount: $18,400.00 at 7.25%, in 60 months",
            "VIN 1M8GDM9AXKP042788",
        ]);
        let expected = ["1840000", "1m8gdm9axkp042788", "725"];
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn values_are_shared_as_words_are() {
        let all = numbers(0..200);
        assert_eq!(shared(&all, &all), 1.0);
        // 180 of 200 words, and 100 of 300.
        assert!((shared(&all, &numbers(0..180)) - 0.9).abs() < 0.1);
        assert!((shared(&all, &numbers(100..300)) - 1.0 / 3.0).abs() < 0.12);
        assert!(shared(&all, &numbers(500..700)) < 0.05);
    }

    #[test]
    fn a_text_with_few_numbers_has_no_signature() {
        assert_eq!(of_words(&numbers(0..7)), None);
        assert_eq!(of_words(&numbers(0..8)).unwrap().len(), VALUES);
    }
}
