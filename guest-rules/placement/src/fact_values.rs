//! Values of facts: the words of a contract in one canonical form.
//!
//! Numbers are handled digit by digit, so no value is ever rounded.

use jiff::civil::Date;

use crate::{ValueFormat, ValueKind};

/// Most characters of a text.
const TEXT: usize = 4_000;
/// Most digits before and behind the decimal separator.
const WHOLE: usize = 18;
const FRACTION: usize = 8;
/// Characters of a vehicle identification number (49 CFR 565.23).
const VIN: usize = 17;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
/// Currencies with the symbols that stand for them.
const CURRENCIES: [(&str, &[&str]); 12] = [
    ("USD", &["US$", "$"]),
    ("CAD", &["CA$", "C$", "$"]),
    ("AUD", &["AU$", "A$", "$"]),
    ("NZD", &["NZ$", "$"]),
    ("MXN", &["MX$", "$"]),
    ("EUR", &["€"]),
    ("GBP", &["£"]),
    ("JPY", &["¥"]),
    ("CNY", &["¥"]),
    ("INR", &["₹"]),
    ("CHF", &["Fr."]),
    ("BRL", &["R$"]),
];

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
        ValueKind::Percentage => percentage(&words, format),
        ValueKind::Date => date(&words, format.date_order.as_deref()),
        ValueKind::Vin => vin(&words),
        ValueKind::Boolean => boolean(&words),
    }
}

/// Returns whether words are a number: an amount, a percentage or a count.
pub(crate) fn is_number(format: &ValueFormat, words: &str) -> bool {
    let any_currency = ValueFormat {
        currency: None,
        ..format.clone()
    };
    let words = collapsed(words);
    money(&words, &any_currency).is_ok() || percentage(&words, &any_currency).is_ok()
}

/// Returns whether words are nothing but the symbol or the code of a currency.
pub(crate) fn is_currency(words: &str) -> bool {
    CURRENCIES
        .iter()
        .any(|(code, symbols)| *code == words || symbols.contains(&words))
}

fn collapsed(words: &str) -> String {
    let parts: Vec<&str> = words.split_whitespace().collect();
    parts.join(" ")
}

/// A number as its digits.
struct Digits {
    is_negative: bool,
    /// Without leading zeros; `0` for none.
    whole: String,
    fraction: String,
}

impl Digits {
    fn is_zero(&self) -> bool {
        let digits = self.whole.bytes().chain(self.fraction.bytes());
        digits.into_iter().all(|digit| digit == b'0')
    }

    /// Returns the number with at least so many decimals, and no further closing zeros.
    fn text(&self, decimals: usize) -> String {
        let sign = if self.is_negative && !self.is_zero() {
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

fn integer(words: &str, format: &ValueFormat) -> Result<String, String> {
    let digits = digits(words, format)?;
    if digits.fraction.bytes().any(|digit| digit != b'0') {
        return Err(format!("{words:?} is no whole number"));
    }
    Ok(Digits {
        fraction: String::new(),
        ..digits
    }
    .text(0))
}

fn money(words: &str, format: &ValueFormat) -> Result<String, String> {
    let (bare, is_bracketed) = without_brackets(words);
    let (bare, is_signed) = without_sign(bare);
    let bare = without_currency(bare, format.currency.as_deref())?;
    // A sign may stand on either side of the currency.
    let mut digits = digits(bare, format)?;
    let negations = [is_bracketed, is_signed, digits.is_negative];
    digits.is_negative = match negations.into_iter().filter(|negation| *negation).count() {
        0 => false,
        1 => true,
        _ => return Err(format!("{words:?} has two signs")),
    };

    Ok(digits.text(2))
}

fn percentage(words: &str, format: &ValueFormat) -> Result<String, String> {
    let lower = words.to_lowercase();
    let bare = ["%", "percent", "per cent"]
        .iter()
        .find_map(|sign| lower.strip_suffix(sign))
        .unwrap_or(&lower);
    Ok(digits(bare.trim(), format)?.text(0))
}

/// Takes off the brackets of a negative amount.
fn without_brackets(words: &str) -> (&str, bool) {
    let inner = words
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    inner.map_or((words, false), |inner| (inner.trim(), true))
}

fn is_minus(character: char) -> bool {
    matches!(
        character,
        '-' | '\u{2010}' | '\u{2011}' | '\u{2012}' | '\u{2013}' | '\u{2212}'
    )
}

/// Takes a sign off, before or behind. Returns whether it was a minus.
fn without_sign(words: &str) -> (&str, bool) {
    if let Some(rest) = words
        .strip_prefix(is_minus)
        .or_else(|| words.strip_suffix(is_minus))
    {
        return (rest.trim(), true);
    }
    (words.strip_prefix('+').unwrap_or(words).trim(), false)
}

/// Takes a currency off, before or behind; another one than the expected one is refused.
fn without_currency<'a>(words: &'a str, expected: Option<&str>) -> Result<&'a str, String> {
    // Also the code of a currency that has no symbol here.
    let code = expected.and_then(|code| {
        let behind = || words.strip_suffix(code);
        words.strip_prefix(code).or_else(behind)
    });
    if let Some(rest) = code {
        return Ok(rest.trim());
    }

    let named = |(code, symbols): &(&'static str, &'static [&'static str])| {
        let names = std::iter::once(*code).chain(symbols.iter().copied());
        names
            .filter_map(|name| {
                let rest = words
                    .strip_prefix(name)
                    .or_else(|| words.strip_suffix(name));
                rest.map(|rest| (name.len(), rest.trim()))
            })
            .max_by_key(|(length, _)| *length)
    };
    let own = CURRENCIES
        .iter()
        .filter(|(code, _)| expected.is_none_or(|expected| *code == expected));
    let longest = |found: &(usize, &str)| found.0;
    let Some((length, rest)) = own.filter_map(named).max_by_key(longest) else {
        let other = CURRENCIES.iter().find(|one| named(one).is_some());
        return match (other, expected) {
            (Some((other, _)), Some(expected)) => {
                Err(format!("the currency is {other} and not {expected}"))
            }
            _ => Ok(words),
        };
    };

    // `CA$` ends with the symbol of another currency, so the longest name decides.
    let other = CURRENCIES.iter().find(|one| {
        let is_expected = expected.is_none_or(|expected| one.0 == expected);
        !is_expected && named(one).is_some_and(|found| found.0 > length)
    });
    match (other, expected) {
        (Some((other, _)), Some(expected)) => {
            Err(format!("the currency is {other} and not {expected}"))
        }
        _ => Ok(rest),
    }
}

/// Reads a plain number with separators of thousands.
fn digits(words: &str, format: &ValueFormat) -> Result<Digits, String> {
    let has_comma = format.decimal_separator.as_deref() == Some(",");
    let (decimal, thousands): (char, &[char]) = if has_comma {
        (',', &['.', '\'', '\u{2019}', ' '])
    } else {
        ('.', &[',', '\'', '\u{2019}'])
    };
    let (bare, is_negative) = without_sign(words);
    let (whole, fraction) = bare.split_once(decimal).unwrap_or((bare, ""));

    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let groups: Vec<&str> = whole.split(thousands).collect();
    if !groups.iter().all(|group| is_digits(group)) || !is_digits(fraction) {
        return Err(format!("{words:?} is no number"));
    }

    let digits = groups.concat();
    if digits.is_empty() && fraction.is_empty() {
        return Err(format!("{words:?} is no number"));
    }

    let is_grouped = match groups.split_first() {
        Some((first, [])) => first.len() <= WHOLE,
        Some((first, others)) => {
            (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3)
        }
        None => false,
    };
    if !is_grouped {
        return Err(format!(
            "{words:?} has separators that do not stand between groups of three digits"
        ));
    }
    if digits.len() > WHOLE || fraction.len() > FRACTION {
        return Err(format!(
            "{words:?} has more than {WHOLE} digits, or more than {FRACTION} decimals"
        ));
    }

    let digits = digits.trim_start_matches('0');
    Ok(Digits {
        is_negative,
        whole: if digits.is_empty() { "0" } else { digits }.to_owned(),
        fraction: fraction.to_owned(),
    })
}

fn date(words: &str, order: Option<&str>) -> Result<String, String> {
    let numbers: Vec<&str> = words
        .split(['/', '-', '.', '\u{2010}', '\u{2011}'])
        .collect();
    if let [first, second, third] = numbers[..] {
        let (first, second, third) = (first.trim(), second.trim(), third.trim());
        let is_number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if [first, second, third].into_iter().all(is_number) {
            return numeric_date(words, [first, second, third], order);
        }
    }

    named_date(words)
}

/// Reads a date of three numbers. Without an order, the reading must be the only one that is a date.
fn numeric_date(
    words: &str,
    [first, second, third]: [&str; 3],
    order: Option<&str>,
) -> Result<String, String> {
    if first.len() == 4 {
        let found = civil(first, second, third);
        return found.ok_or_else(|| format!("{words:?} is no date"));
    }

    let has_order = order.is_some();
    let year = |text: &str| match text.len() {
        4 => Some(text.to_owned()),
        // Without an order, `11/12/26` has too many readings.
        2 if has_order => Some(format!("20{text}")),
        _ => None,
    };
    let reading = |order: &str| match order {
        "mdy" => civil(&year(third)?, first, second),
        "dmy" => civil(&year(third)?, second, first),
        "ymd" => civil(&year(first)?, second, third),
        _ => None,
    };
    if let Some(order) = order {
        return reading(order).ok_or_else(|| format!("{words:?} is no date in the order {order}"));
    }

    match (reading("mdy"), reading("dmy")) {
        (Some(one), Some(other)) if one != other => Err(format!(
            "{words:?} can be {one} or {other}: set date_order in the fact map"
        )),
        (Some(one), _) | (None, Some(one)) => Ok(one),
        (None, None) => Err(format!("{words:?} is no date")),
    }
}

/// Reads a date with the English name of its month.
fn named_date(words: &str) -> Result<String, String> {
    let no_date = || format!("{words:?} is no date");
    let lower = words.to_lowercase();
    let is_separator = |character: char| {
        character.is_whitespace() || matches!(character, ',' | '.' | '-' | '/' | '\u{2011}')
    };
    let is_word = |word: &&str| {
        let is_filler = matches!(*word, "" | "the" | "day" | "of") || is_short_for(word, &WEEKDAYS);
        !is_filler
    };
    let parts: Vec<&str> = lower.split(is_separator).filter(is_word).collect();

    let (month, day, year) = match parts[..] {
        [first, second, year] => match (month(first), month(second)) {
            (Some(month), None) => (month, second, year),
            (None, Some(month)) => (month, first, year),
            _ => return Err(no_date()),
        },
        _ => return Err(no_date()),
    };

    let ordinals = ["st", "nd", "rd", "th"];
    let day = ordinals
        .iter()
        .find_map(|ordinal| day.strip_suffix(ordinal))
        .unwrap_or(day);
    if year.len() != 4 {
        return Err(format!("{words:?} has no year of four digits"));
    }

    civil(year, &month.to_string(), day).ok_or_else(no_date)
}

fn month(word: &str) -> Option<usize> {
    let mut names = MONTHS.iter();
    let found = names.position(|name| is_short_for(word, &[name]));
    found.map(|index| index + 1)
}

/// Returns whether a word is one of the names, or its first three or more letters.
fn is_short_for(word: &str, names: &[&str]) -> bool {
    word.len() >= 3 && names.iter().any(|name| name.starts_with(word))
}

fn civil(year: &str, month: &str, day: &str) -> Option<String> {
    if month.len() > 2 || day.len() > 2 {
        return None;
    }
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    Some(date.to_string())
}

fn vin(words: &str) -> Result<String, String> {
    let plain = words.chars().filter(|one| *one != ' ' && !is_minus(*one));
    let vin: String = plain.flat_map(char::to_uppercase).collect();
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

fn boolean(words: &str) -> Result<String, String> {
    let value = match words.to_lowercase().as_str() {
        "yes" | "y" | "true" | "x" | "[x]" | "[ x ]" | "on" | "checked" | "☒" | "☑" | "✓" | "✔"
        | "✗" => true,
        "no" | "n" | "false" | "[]" | "[ ]" | "off" | "unchecked" | "☐" => false,
        _ => return Err(format!("{words:?} is neither yes nor no")),
    };
    Ok(value.to_string())
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
            ("$", "\"\" is no number"),
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
                "\"1234567890123456789\" has separators that do not stand between groups of three digits",
            ),
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
