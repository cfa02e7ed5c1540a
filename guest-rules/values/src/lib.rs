//! Values as people write them: numbers, amounts, dates, vehicle numbers and ticks.
//!
//! The component that reads the facts of contracts and the comparison of tapes both read with these functions, so that the
//! same words have the same value in a contract and in a tape. Numbers are handled digit by digit, so no value is ever
//! rounded. Words with two readings are refused.

mod amounts;
mod dates;
mod numbers;

pub use amounts::{AmountProblem, WrittenAmount, amount, is_currency};
pub use dates::{DateOrder, DateProblem, date, iso_date};
pub use numbers::{DecimalMark, NumberProblem, WrittenNumber, number, percentage};

/// What stands around a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Words of a document. What stands beside them can be another value: a space ends a number, and the reader of a date
    /// wants a year of four digits.
    Words,
    /// The whole cell of a table, as spreadsheets and databases export it.
    Cell,
}

/// Returns a text with one space between its words.
pub fn collapsed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Whether a character is a minus, a hyphen or a dash.
fn is_minus(character: char) -> bool {
    matches!(
        character,
        '-' | '\u{2010}' | '\u{2011}' | '\u{2012}' | '\u{2013}' | '\u{2212}'
    )
}

/// Returns the number of a vehicle in capital letters, without spaces and hyphens. It need not be a valid one.
pub fn plain_vin(words: &str) -> String {
    let kept = words
        .chars()
        .filter(|one| !one.is_whitespace() && !is_minus(*one));
    kept.flat_map(char::to_uppercase).collect()
}

/// Reads a tick, or a word for yes or no. None for anything else.
pub fn boolean(words: &str, notation: Notation) -> Option<bool> {
    match words.trim().to_lowercase().as_str() {
        "yes" | "y" | "true" | "x" | "[x]" | "[ x ]" | "on" | "checked" | "☒" | "☑" | "✓" | "✔"
        | "✗" => Some(true),
        "no" | "n" | "false" | "[]" | "[ ]" | "off" | "unchecked" | "☐" => Some(false),
        // Beside the box of a document, a digit is the number of something else.
        "1" if notation == Notation::Cell => Some(true),
        "0" if notation == Notation::Cell => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_collapsed() {
        assert_eq!(collapsed("  Ford\u{a0} F-150 \n"), "Ford F-150");
        assert_eq!(collapsed(" \u{a0} "), "");
    }

    #[test]
    fn a_vin_has_one_form() {
        for words in [
            "1m8-gdm9 axkp042788",
            "1M8GDM9AXKP042788",
            "1m8gd m9axk\u{2013}p0427 88",
        ] {
            assert_eq!(plain_vin(words), "1M8GDM9AXKP042788", "{words}");
        }
    }

    #[test]
    fn booleans_are_ticks_or_words_and_in_cells_also_digits() {
        for notation in [Notation::Words, Notation::Cell] {
            for yes in ["Yes", "X", "☒", "checked", "TRUE"] {
                assert_eq!(boolean(yes, notation), Some(true), "{yes}");
            }
            for no in ["no", "false", "☐", "[ ]"] {
                assert_eq!(boolean(no, notation), Some(false), "{no}");
            }
            assert_eq!(boolean("maybe", notation), None);
        }
        assert_eq!(boolean("1", Notation::Cell), Some(true));
        assert_eq!(boolean("0", Notation::Cell), Some(false));
        assert_eq!(boolean("1", Notation::Words), None);
    }
}
