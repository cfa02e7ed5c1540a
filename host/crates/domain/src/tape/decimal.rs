//! Decimal numbers of contracts. No binary fractions: `0.1` is a tenth.

use std::fmt;

/// Digits behind the point.
const PLACES: usize = 12;
/// Digits before the point.
const WHOLE: usize = 24;

/// Decimal number with up to 24 digits before the point and 12 behind it. Differences are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExactDecimal(
    /// In units of the last place, so that all numbers have one scale.
    i128,
);

impl ExactDecimal {
    pub const ZERO: Self = Self(0);

    /// Parses an optional minus, digits, and an optional point with digits behind it.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, places) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number =
            |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
        if !is_number(whole) || !is_number(places) {
            return None;
        }

        // Zeros at both ends say nothing, so they do not count against the limits.
        let (whole, places) = (whole.trim_start_matches('0'), places.trim_end_matches('0'));
        if whole.len() > WHOLE || places.len() > PLACES {
            return None;
        }

        let units: i128 = format!("{whole}{places:0<PLACES$}").parse().ok()?;
        Some(Self(if is_negative { -units } else { units }))
    }

    /// Returns how far two numbers are apart.
    pub fn distance(self, other: Self) -> Self {
        // Both have at most 36 digits, and an `i128` has room for 38.
        Self((self.0 - other.0).abs())
    }

    /// Returns the number divided by a power of ten, or none if it then has too many places.
    pub fn shifted(self, places: i32) -> Option<Self> {
        let factor = 10_i128.checked_pow(places.unsigned_abs())?;
        let most = 10_i128.pow((WHOLE + PLACES) as u32);
        let shifted = if places >= 0 {
            self.0.checked_mul(factor)?
        } else if self.0 % factor == 0 {
            self.0 / factor
        } else {
            return None;
        };

        (shifted.abs() < most).then_some(Self(shifted))
    }

    /// Whether the number has no digits behind the point.
    pub fn is_whole(self) -> bool {
        self.0 % 10_i128.pow(PLACES as u32) == 0
    }

    /// Writes the number with at least `least` places, and no further closing zeros.
    pub fn written(self, least: usize) -> String {
        let digits = format!("{:0>1$}", self.0.unsigned_abs(), PLACES + 1);
        let (whole, places) = digits.split_at(digits.len() - PLACES);
        let kept = places.trim_end_matches('0').len().max(least.min(PLACES));
        let sign = if self.0 < 0 { "-" } else { "" };

        match &places[..kept] {
            "" => format!("{sign}{whole}"),
            places => format!("{sign}{whole}.{places}"),
        }
    }
}

impl fmt::Display for ExactDecimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> ExactDecimal {
        ExactDecimal::parse(text).unwrap()
    }

    #[test]
    fn tenths_add_up() {
        assert_eq!(number("0.3").distance(number("0.1")), number("0.2"));
        assert_eq!(number("-1.50").distance(number("1.5")), number("3"));
        assert_eq!(number("007.900"), number("7.9"));
        assert_eq!(number("-0"), ExactDecimal::ZERO);
        assert!(number("-2") < number("-1.99"));
    }

    #[test]
    fn numbers_are_written_with_their_places() {
        assert_eq!(number("21500").written(2), "21500.00");
        assert_eq!(number("7.900").written(0), "7.9");
        assert_eq!(number("-0.050").written(2), "-0.05");
        assert_eq!(number("0.000000000001").to_string(), "0.000000000001");
        assert!(number("72.00").is_whole());
        assert!(!number("72.01").is_whole());
    }

    #[test]
    fn a_fraction_becomes_a_percentage() {
        assert_eq!(number("0.0799").shifted(2), Some(number("7.99")));
        assert_eq!(number("7.99").shifted(-2), Some(number("0.0799")));
        assert_eq!(number("0.000000000001").shifted(-1), None);
        assert_eq!(number("999999999999999999999999").shifted(2), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let long = format!("1{}", "0".repeat(24));
        for wrong in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1e5",
            "NaN",
            "1,000",
            "--1",
            "0.0000000000001",
            &long,
        ] {
            assert_eq!(ExactDecimal::parse(wrong), None, "{wrong}");
        }
    }
}
