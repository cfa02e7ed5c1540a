//! Numbers with separators of thousands, signs and brackets.

use crate::{Notation, collapsed, is_minus};

/// Character before the decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalMark {
    /// `1,234.50`
    Point,
    /// `1.234,50`
    Comma,
}

impl DecimalMark {
    fn character(self) -> char {
        match self {
            Self::Point => '.',
            Self::Comma => ',',
        }
    }

    fn other(self) -> char {
        match self {
            Self::Point => ',',
            Self::Comma => '.',
        }
    }
}

/// Why words are no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberProblem {
    /// They have other characters, or no digits.
    NoNumber,
    /// They have two signs, or brackets and a sign.
    TwoSigns,
    /// Separators do not stand between groups of three digits.
    Grouping,
    /// They seem to have the other decimal mark.
    OtherMark,
}

/// A number as its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenNumber {
    is_negative: bool,
    /// Without leading zeros; `0` for none.
    whole: String,
    /// As written, with closing zeros.
    fraction: String,
}

impl WrittenNumber {
    /// Returns how many digits stand before and behind the decimal mark, without leading zeros.
    pub fn size(&self) -> (usize, usize) {
        (self.whole.len(), self.fraction.len())
    }

    /// Whether all decimals are zeros.
    pub fn is_whole(&self) -> bool {
        self.fraction.bytes().all(|digit| digit == b'0')
    }

    /// Writes the number with a point, at least so many decimals, and no further closing zeros.
    pub fn text(&self, decimals: usize) -> String {
        let is_zero = self.is_whole() && self.whole == "0";
        let sign = if self.is_negative && !is_zero {
            "-"
        } else {
            ""
        };
        let mut fraction = self.fraction.trim_end_matches('0').to_owned();
        while fraction.len() < decimals {
            fraction.push('0');
        }

        let whole = &self.whole;
        if fraction.is_empty() {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{fraction}")
        }
    }
}

/// Reads a number. Cells may have the brackets of accountants in the place of a minus.
///
/// # Errors
/// The words are no number, or could be two.
pub fn number(
    words: &str,
    mark: DecimalMark,
    notation: Notation,
) -> Result<WrittenNumber, NumberProblem> {
    let words = collapsed(words);
    let (bare, is_bracketed) = if notation == Notation::Cell {
        without_brackets(&words)
    } else {
        (words.as_str(), false)
    };
    let (bare, sign) = without_sign(bare);
    signed(bare, &[is_bracketed.then_some(true), sign], mark, notation)
}

/// Reads a percentage in points. Returns also whether it has a percent sign or the word.
///
/// # Errors
/// The words are no percentage.
pub fn percentage(
    words: &str,
    mark: DecimalMark,
    notation: Notation,
) -> Result<(WrittenNumber, bool), NumberProblem> {
    let lower = collapsed(words).to_lowercase();
    let named = ["%", "percent", "per cent"]
        .iter()
        .find_map(|sign| lower.strip_suffix(sign));
    let read = number(named.unwrap_or(&lower), mark, notation)?;
    Ok((read, named.is_some()))
}

/// Reads digits, of which the signs were taken off; `true` stands for a minus.
pub(crate) fn signed(
    digits: &str,
    signs: &[Option<bool>],
    mark: DecimalMark,
    notation: Notation,
) -> Result<WrittenNumber, NumberProblem> {
    let mut signs = signs.iter().flatten();
    let sign = signs.next().copied();
    if signs.next().is_some() {
        return Err(NumberProblem::TwoSigns);
    }

    let read = unsigned(digits, mark, notation)?;
    Ok(WrittenNumber {
        is_negative: sign == Some(true),
        ..read
    })
}

/// Takes off the brackets of a negative number.
pub(crate) fn without_brackets(words: &str) -> (&str, bool) {
    let inner = words
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    inner.map_or((words, false), |inner| (inner.trim(), true))
}

/// Takes a sign off, before or behind. Returns whether it is a minus; none without a sign.
pub(crate) fn without_sign(words: &str) -> (&str, Option<bool>) {
    let minus = words
        .strip_prefix(is_minus)
        .or_else(|| words.strip_suffix(is_minus));
    if let Some(rest) = minus {
        return (rest.trim(), Some(true));
    }

    match words.strip_prefix('+') {
        Some(rest) => (rest.trim(), Some(false)),
        None => (words, None),
    }
}

fn unsigned(
    words: &str,
    mark: DecimalMark,
    notation: Notation,
) -> Result<WrittenNumber, NumberProblem> {
    let (decimal, other) = (mark.character(), mark.other());
    let split = words.split_once(decimal);
    let (whole, fraction) = split.unwrap_or((words, ""));

    // In a document with decimal points, a space stands between two numbers: `60 359.04` is a count and an amount.
    let has_spaces = notation == Notation::Cell || mark == DecimalMark::Comma;
    let is_separator =
        |one: char| one == other || matches!(one, '\'' | '\u{2019}') || (has_spaces && one == ' ');
    let separator = whole.chars().find(|one| is_separator(*one));
    let groups: Vec<&str> = match separator {
        Some(separator) => whole.split(separator).collect(),
        None => vec![whole],
    };

    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !groups.iter().all(|group| is_digits(group)) || !is_digits(fraction) {
        let problem = if words.contains(other) {
            NumberProblem::OtherMark
        } else {
            NumberProblem::NoNumber
        };
        return Err(problem);
    }

    let digits = groups.concat();
    if digits.is_empty() && fraction.is_empty() {
        return Err(NumberProblem::NoNumber);
    }
    if !are_thousands(&groups) {
        // `1,23` has one mark, in the place of decimals.
        let is_decimal = split.is_none() && separator == Some(other) && groups.len() == 2;
        return Err(if is_decimal {
            NumberProblem::OtherMark
        } else {
            NumberProblem::Grouping
        });
    }

    let digits = digits.trim_start_matches('0');
    Ok(WrittenNumber {
        is_negative: false,
        whole: if digits.is_empty() { "0" } else { digits }.to_owned(),
        fraction: fraction.to_owned(),
    })
}

/// Whether digits are one group, or groups of three behind a first one of at most three.
fn are_thousands(groups: &[&str]) -> bool {
    match groups.split_first() {
        Some((_, [])) => true,
        Some((first, others)) => {
            (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecimalMark::{Comma, Point};
    use Notation::{Cell, Words};

    fn text(words: &str, mark: DecimalMark, notation: Notation) -> Result<String, NumberProblem> {
        number(words, mark, notation).map(|read| read.text(0))
    }

    #[test]
    fn numbers_of_documents_and_cells_are_read_alike() {
        for (words, read) in [
            ("60", "60"),
            ("1,200", "1200"),
            ("60.00", "60"),
            ("-3", "-3"),
            ("3-", "-3"),
            ("\u{2212}4", "-4"),
            ("+5", "5"),
            (".5", "0.5"),
            ("7.", "7"),
            ("007", "7"),
            ("0.12500", "0.125"),
            ("1'234.50", "1234.5"),
            ("1\u{2019}234", "1234"),
            ("1,234,567.8", "1234567.8"),
            ("-0.00", "0"),
        ] {
            for notation in [Words, Cell] {
                assert_eq!(text(words, Point, notation).as_deref(), Ok(read), "{words}");
            }
        }
        assert_eq!(number("1250", Point, Words).unwrap().text(2), "1250.00");
    }

    #[test]
    fn words_that_are_no_number_say_why() {
        for (words, problem) in [
            ("", NumberProblem::NoNumber),
            ("-", NumberProblem::NoNumber),
            ("NaN", NumberProblem::NoNumber),
            ("inf", NumberProblem::NoNumber),
            ("1e5", NumberProblem::NoNumber),
            ("0x10", NumberProblem::NoNumber),
            ("--5", NumberProblem::NoNumber),
            ("(5", NumberProblem::NoNumber),
            ("12.34.56", NumberProblem::NoNumber),
            ("1.234,56", NumberProblem::OtherMark),
            ("1,23", NumberProblem::OtherMark),
            ("1,00.00", NumberProblem::Grouping),
            ("12,34.00", NumberProblem::Grouping),
            ("1'234,567", NumberProblem::OtherMark),
        ] {
            for notation in [Words, Cell] {
                assert_eq!(text(words, Point, notation), Err(problem), "{words}");
            }
        }
        assert_eq!(text("(-5)", Point, Cell), Err(NumberProblem::TwoSigns));
        assert_eq!(text("1 23", Point, Cell), Err(NumberProblem::Grouping));
    }

    #[test]
    fn a_space_groups_digits_unless_another_number_can_stand_beside_it() {
        assert_eq!(text("21 500.00", Point, Cell).as_deref(), Ok("21500"));
        assert_eq!(text("21\u{202f}500", Point, Cell).as_deref(), Ok("21500"));
        assert_eq!(
            text("60 359.04", Point, Words),
            Err(NumberProblem::NoNumber)
        );
        assert_eq!(text("1 234,50", Comma, Words).as_deref(), Ok("1234.5"));
    }

    #[test]
    fn brackets_are_a_minus_in_a_cell() {
        assert_eq!(text("(1,250.00)", Point, Cell).as_deref(), Ok("-1250"));
        assert_eq!(text("(1)", Point, Words), Err(NumberProblem::NoNumber));
    }

    #[test]
    fn a_comma_separates_decimals_where_it_is_said() {
        assert_eq!(text("1.234,56", Comma, Cell).as_deref(), Ok("1234.56"));
        assert_eq!(text("12,5", Comma, Words).as_deref(), Ok("12.5"));
        assert_eq!(
            text("1,234.50", Comma, Words),
            Err(NumberProblem::OtherMark)
        );
    }

    #[test]
    fn percentages_may_have_their_sign() {
        for (words, read) in [
            ("7.90 %", ("7.9", true)),
            ("7.9%", ("7.9", true)),
            ("7.9", ("7.9", false)),
            ("8.00 percent", ("8", true)),
            ("12.125 Per Cent", ("12.125", true)),
            ("0 %", ("0", true)),
        ] {
            for notation in [Words, Cell] {
                let (number, is_named) = percentage(words, Point, notation).unwrap();
                assert_eq!((number.text(0).as_str(), is_named), read, "{words}");
            }
        }
        assert!(percentage("%", Point, Words).is_err());
        assert!(percentage("$7.90", Point, Cell).is_err());
    }

    #[test]
    fn digits_are_counted_without_leading_zeros() {
        let read = number("0,001.250", Point, Words).unwrap();
        assert_eq!(read.size(), (1, 3));
        assert!(!read.is_whole());
        assert!(number("72.00", Point, Words).unwrap().is_whole());
    }
}
