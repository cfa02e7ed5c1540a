//! Values of facts: the words of a contract in one canonical form, and the reason where they have none.

use holdfast_values::{
    AmountProblem, DateOrder, DateProblem, DecimalMark, Notation, NumberProblem, WrittenNumber,
    amount, boolean, collapsed, date, number, percentage, plain_vin,
};

use crate::{ValueFormat, ValueKind};

pub(crate) use holdfast_values::is_currency;

/// Most characters of a text.
const TEXT: usize = 4_000;
/// Most digits before and behind the decimal separator.
const WHOLE: usize = 18;
const FRACTION: usize = 8;
/// Characters of a vehicle identification number (49 CFR 565.23).
const VIN: usize = 17;

/// Returns the canonical value of words, or why they are no value of this kind.
///
/// # Errors
///
/// The text is for people who read a fact sheet.
pub fn normalize(format: &ValueFormat, words: &str) -> Result<String, String> {
    let words = collapsed(words);
    if words.is_empty() {
        return Err("there are no words".into());
    }

    match format.kind {
        ValueKind::Text if words.chars().count() > TEXT => {
            Err(format!("the text has more than {TEXT} characters"))
        }
        ValueKind::Text => Ok(words),
        ValueKind::Integer => integer(&words, format),
        ValueKind::Money => money(&words, format),
        ValueKind::Percentage => points(&words, format),
        ValueKind::Date => day(&words, format.date_order.as_deref()),
        ValueKind::Vin => vin(&words),
        ValueKind::Boolean => match boolean(&words, Notation::Words) {
            Some(value) => Ok(value.to_string()),
            None => Err(format!("{words:?} is neither yes nor no")),
        },
    }
}

/// Returns whether words are a number: an amount, a percentage or a count.
pub(crate) fn is_number(format: &ValueFormat, words: &str) -> bool {
    let any_currency = ValueFormat {
        currency: None,
        ..format.clone()
    };
    let words = collapsed(words);
    money(&words, &any_currency).is_ok() || points(&words, &any_currency).is_ok()
}

fn mark(format: &ValueFormat) -> DecimalMark {
    if format.decimal_separator.as_deref() == Some(",") {
        DecimalMark::Comma
    } else {
        DecimalMark::Point
    }
}

fn integer(words: &str, format: &ValueFormat) -> Result<String, String> {
    let read = number(words, mark(format), Notation::Words);
    let read = limited(words, read.map_err(|problem| no_number(words, problem))?)?;
    if read.is_whole() {
        Ok(read.text(0))
    } else {
        Err(format!("{words:?} is no whole number"))
    }
}

fn money(words: &str, format: &ValueFormat) -> Result<String, String> {
    let expected = format.currency.as_deref();
    let read = amount(words, expected, mark(format), Notation::Words);
    let read = read.map_err(|problem| match problem {
        AmountProblem::Number(problem) => no_number(words, problem),
        AmountProblem::OtherCurrency(other) => {
            let expected = expected.unwrap_or_default();
            format!("the currency is {other} and not {expected}")
        }
        AmountProblem::TwoCurrencies => format!("{words:?} names two currencies"),
    })?;
    Ok(limited(words, read.number)?.text(2))
}

fn points(words: &str, format: &ValueFormat) -> Result<String, String> {
    let read = percentage(words, mark(format), Notation::Words);
    let (read, _) = read.map_err(|problem| no_number(words, problem))?;
    Ok(limited(words, read)?.text(0))
}

fn no_number(words: &str, problem: NumberProblem) -> String {
    match problem {
        NumberProblem::NoNumber | NumberProblem::OtherMark => format!("{words:?} is no number"),
        NumberProblem::TwoSigns => format!("{words:?} has two signs"),
        NumberProblem::Grouping => {
            format!("{words:?} has separators that do not stand between groups of three digits")
        }
    }
}

/// Refuses numbers that no contract has.
fn limited(words: &str, read: WrittenNumber) -> Result<WrittenNumber, String> {
    let (whole, fraction) = read.size();
    if whole > WHOLE || fraction > FRACTION {
        return Err(format!(
            "{words:?} has more than {WHOLE} digits, or more than {FRACTION} decimals"
        ));
    }
    Ok(read)
}

fn day(words: &str, order: Option<&str>) -> Result<String, String> {
    let known = order.and_then(|order| match order {
        "mdy" => Some(DateOrder::MonthFirst),
        "dmy" => Some(DateOrder::DayFirst),
        "ymd" => Some(DateOrder::YearFirst),
        _ => None,
    });
    let read = date(words, known, Notation::Words);
    let read = read.map_err(|problem| match problem {
        DateProblem::TwoWays(Some((one, other))) => {
            format!("{words:?} can be {one} or {other}: set date_order in the fact map")
        }
        DateProblem::TwoWays(None) => {
            format!("{words:?} has no year of four digits: set date_order in the fact map")
        }
        DateProblem::OtherOrder => {
            let order = order.unwrap_or_default();
            format!("{words:?} is no date in the order {order}")
        }
        DateProblem::ShortYear => format!("{words:?} has no year of four digits"),
        DateProblem::NoDate | DateProblem::NoSuchDay | DateProblem::PlainNumber => {
            format!("{words:?} is no date")
        }
    })?;
    Ok(read.to_string())
}

fn vin(words: &str) -> Result<String, String> {
    let vin = plain_vin(words);
    let is_alphanumeric = vin.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let count = vin.chars().count();
    if !is_alphanumeric || count != VIN {
        return Err(format!(
            "{words:?} is no VIN: it has {count} characters, and a VIN has {VIN} letters and digits"
        ));
    }
    if vin.contains(['I', 'O', 'Q']) {
        return Err(format!(
            "{words:?} is no VIN: it has I, O or Q, which no VIN has"
        ));
    }

    Ok(vin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(kind: ValueKind) -> ValueFormat {
        ValueFormat {
            kind,
            currency: None,
            date_order: None,
            decimal_separator: None,
        }
    }

    fn dollars(words: &str) -> Result<String, String> {
        let format = ValueFormat {
            currency: Some("USD".into()),
            ..format(ValueKind::Money)
        };
        normalize(&format, words)
    }

    fn ordered(order: &str, words: &str) -> Result<String, String> {
        let format = ValueFormat {
            date_order: Some(order.into()),
            ..format(ValueKind::Date)
        };
        normalize(&format, words)
    }

    #[track_caller]
    fn all(kind: ValueKind, cases: &[(&str, Option<&str>)]) {
        for (words, value) in cases {
            let found = normalize(&format(kind), words);
            assert_eq!(found.as_deref().ok(), *value, "{words}: {found:?}");
        }
    }

    #[test]
    fn money_has_a_point_and_two_decimals() {
        for (words, value) in [
            ("$21,500.00", "21500.00"),
            ("$ 21,500", "21500.00"),
            ("21500", "21500.00"),
            ("USD 21,500.5", "21500.50"),
            ("US$1.00", "1.00"),
            ("1,000.00 USD", "1000.00"),
            ("(1,000.00)", "-1000.00"),
            ("($1,000.00)", "-1000.00"),
            ("1,000.00-", "-1000.00"),
            ("-$1,000.00", "-1000.00"),
            ("$-1,000.00", "-1000.00"),
            ("−5", "-5.00"),
            ("+7.10", "7.10"),
            ("0.00-", "0.00"),
            (".5", "0.50"),
            ("007", "7.00"),
            ("1'234.50", "1234.50"),
            ("0.12500", "0.125"),
        ] {
            assert_eq!(dollars(words).as_deref(), Ok(value), "{words}");
        }
    }

    #[test]
    fn a_currency_without_a_symbol_has_its_code() {
        let format = ValueFormat {
            currency: Some("SEK".into()),
            ..format(ValueKind::Money)
        };
        for words in ["SEK 1,000", "1,000 SEK", "1,000"] {
            assert_eq!(normalize(&format, words).as_deref(), Ok("1000.00"));
        }
        assert!(normalize(&format, "USD 1,000").is_err());
    }

    #[test]
    fn words_that_are_no_amount_say_why() {
        for (words, why) in [
            ("", "there are no words"),
            ("$", "\"$\" is no number"),
            ("NaN", "\"NaN\" is no number"),
            ("1e5", "\"1e5\" is no number"),
            ("12.34.56", "\"12.34.56\" is no number"),
            ("1.234,50", "\"1.234,50\" is no number"),
            ("(-5)", "\"(-5)\" has two signs"),
            ("€5", "the currency is EUR and not USD"),
            ("CA$5", "the currency is CAD and not USD"),
            (
                "1,00.00",
                "\"1,00.00\" has separators that do not stand between groups of three digits",
            ),
            (
                "1234567890123456789",
                "\"1234567890123456789\" has more than 18 digits, or more than 8 decimals",
            ),
            ("60 359.04", "\"60 359.04\" is no number"),
        ] {
            assert_eq!(dollars(words).unwrap_err(), why);
        }
    }

    #[test]
    fn a_comma_separates_decimals_where_the_map_says_so() {
        let format = ValueFormat {
            currency: Some("EUR".into()),
            decimal_separator: Some(",".into()),
            ..format(ValueKind::Money)
        };
        for (words, value) in [
            ("1.234,50 €", "1234.50"),
            ("1 234,50", "1234.50"),
            ("12,5", "12.50"),
        ] {
            assert_eq!(normalize(&format, words).as_deref(), Ok(value));
        }
        assert!(normalize(&format, "1,234.50").is_err());
    }

    #[test]
    fn percentages_have_no_sign_and_no_closing_zeros() {
        all(
            ValueKind::Percentage,
            &[
                ("7.90 %", Some("7.9")),
                ("7.9%", Some("7.9")),
                ("7.9", Some("7.9")),
                ("8.00 percent", Some("8")),
                ("0 %", Some("0")),
                ("12.125%", Some("12.125")),
                ("%", None),
                ("$7.90", None),
            ],
        );
    }

    #[test]
    fn integers_are_whole() {
        all(
            ValueKind::Integer,
            &[
                ("60", Some("60")),
                ("1,200", Some("1200")),
                ("60.00", Some("60")),
                ("-3", Some("-3")),
                ("60.5", None),
                ("sixty", None),
            ],
        );
    }

    #[test]
    fn dates_with_one_reading_are_iso_dates() {
        all(
            ValueKind::Date,
            &[
                ("2026-11-30", Some("2026-11-30")),
                ("2026/1/5", Some("2026-01-05")),
                ("11/30/2026", Some("2026-11-30")),
                ("30.11.2026", Some("2026-11-30")),
                ("05/05/2026", Some("2026-05-05")),
                ("November 30, 2026", Some("2026-11-30")),
                ("Nov. 30th, 2026", Some("2026-11-30")),
                ("30 Nov 2026", Some("2026-11-30")),
                ("30-Nov-2026", Some("2026-11-30")),
                ("the 30th day of November, 2026", Some("2026-11-30")),
                ("Monday, November 30, 2026", Some("2026-11-30")),
                ("May 1, 2026", Some("2026-05-01")),
                ("11/30/26", None),
                ("02/30/2026", None),
                ("November 2026", None),
                ("Nov 30, 26", None),
                ("2026-11-30T00:00:00Z", None),
                ("20261130", None),
            ],
        );
    }

    #[test]
    fn a_date_with_two_readings_needs_an_order() {
        assert_eq!(
            normalize(&format(ValueKind::Date), "05/06/2026").unwrap_err(),
            "\"05/06/2026\" can be 2026-05-06 or 2026-06-05: set date_order in the fact map"
        );
        for (order, words, value) in [
            ("mdy", "05/06/2026", "2026-05-06"),
            ("dmy", "05/06/2026", "2026-06-05"),
            ("mdy", "5/6/26", "2026-05-06"),
            ("ymd", "26-05-06", "2026-05-06"),
            ("mdy", "2026-05-06", "2026-05-06"),
        ] {
            assert_eq!(ordered(order, words).as_deref(), Ok(value), "{words}");
        }
        assert_eq!(
            ordered("mdy", "30/11/2026").unwrap_err(),
            "\"30/11/2026\" is no date in the order mdy"
        );
    }

    #[test]
    fn a_vin_has_seventeen_letters_and_digits() {
        all(
            ValueKind::Vin,
            &[
                ("1M8GDM9AXKP042788", Some("1M8GDM9AXKP042788")),
                ("1m8gd m9axk-p0427 88", Some("1M8GDM9AXKP042788")),
                ("1M8GDM9AXKP04278", None),
                ("1M8GDM9AXKP0427888", None),
                ("1M8GDM9AXKPO42788", None),
                ("1M8GDM9AXKP04278É", None),
            ],
        );
    }

    #[test]
    fn booleans_are_ticks_or_words() {
        all(
            ValueKind::Boolean,
            &[
                ("Yes", Some("true")),
                ("X", Some("true")),
                ("☒", Some("true")),
                ("checked", Some("true")),
                ("no", Some("false")),
                ("false", Some("false")),
                ("☐", Some("false")),
                ("maybe", None),
            ],
        );
    }

    #[test]
    fn white_space_in_a_text_is_collapsed() {
        all(
            ValueKind::Text,
            &[
                ("  Jordan \n Lee ", Some("Jordan Lee")),
                (" \u{a0} ", None),
                (&"a".repeat(4_001), None),
            ],
        );
    }
}
