//! What people and programs enter in a field, by the field's type.

use crate::field::FieldType;

/// Length of an ISO date, in characters.
const DATE: usize = 10;

/// Returns the stored form of an entry; none if a field of this type does not take it. An empty entry is taken by all.
///
/// Numbers are stored as decimals (`-4500.00`), dates as ISO 8601, ticks as `true` or `false`.
pub fn stored(field_type: &str, options: &[String], entry: &str) -> Option<String> {
    if entry.is_empty() {
        return Some(String::new());
    }

    // Rules compare and add stored values, so each type has one spelling by the time it is stored.
    let fits = match FieldType::parse(field_type) {
        Some(FieldType::Number) => return decimal(entry),
        // The parser takes `20261121` as well, and times.
        Some(FieldType::Date) => entry.len() == DATE && entry.parse::<jiff::civil::Date>().is_ok(),
        Some(FieldType::Checkbox) => entry == "true" || entry == "false",
        // Without known options there is nothing to compare with, so any choice is taken.
        Some(FieldType::Select | FieldType::Radio) if !options.is_empty() => {
            options.iter().any(|option| option == entry)
        }
        _ => true,
    };

    fits.then(|| entry.to_owned())
}

/// Returns what a field of this type takes, in words.
pub fn expected(field_type: &str) -> &'static str {
    match FieldType::parse(field_type) {
        Some(FieldType::Number) => "a number",
        Some(FieldType::Date) => "a date such as 2026-11-21",
        Some(FieldType::Checkbox) => "true or false",
        Some(FieldType::Select | FieldType::Radio) => "one of its options",
        _ => "a text",
    }
}

/// Returns the decimal of a number as people write it: `4,500`, `$4,500`, `4 500`, `4.500,00` and `(4,500.00)`, which is
/// negative.
///
/// The last of several kinds of separators is the decimal one. A comma alone is one of thousands if three digits follow
/// it and no zero begins the number, so `4,5` is four and a half and `0,500` a half; a point alone is decimal.
pub fn decimal(text: &str) -> Option<String> {
    let text = text.trim();
    let (text, in_brackets) = match text
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(inner) => (inner, true),
        None => (text, false),
    };
    let (text, is_marked) = unsigned(text);

    // A sign stands before or behind the currency.
    let (text, is_marked_inside) = unsigned(without_currency(text));
    let is_negative = match [in_brackets, is_marked, is_marked_inside]
        .iter()
        .filter(|one| **one)
        .count()
    {
        0 => false,
        1 => true,
        _ => return None,
    };

    let (whole, fraction) = match parts(text)? {
        ("", Some(fraction)) => ("0", Some(fraction)),
        (whole, Some("")) => (whole, None),
        parts => parts,
    };
    let groups: Vec<&str> = whole.split(is_group_separator).collect();
    let is_digits =
        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());

    let (first, others) = groups.split_first()?;
    let grouped =
        others.is_empty() || first.len() <= 3 && others.iter().all(|group| group.len() == 3);
    if !groups.iter().all(is_digits) || !grouped {
        return None;
    }

    let digits = groups.concat();
    let digits = digits.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };

    let sign = if is_negative { "-" } else { "" };
    match fraction {
        None => Some(format!("{sign}{digits}")),
        Some(fraction) if is_digits(&fraction) => Some(format!("{sign}{digits}.{fraction}")),
        Some(_) => None,
    }
}

/// Takes a sign off. Returns whether it was a minus.
fn unsigned(text: &str) -> (&str, bool) {
    let text = text.trim();
    let negative = text.strip_prefix(['-', '\u{2212}']);
    (
        negative.or(text.strip_prefix('+')).unwrap_or(text),
        negative.is_some(),
    )
}

fn without_currency(text: &str) -> &str {
    let is_currency = |character: char| {
        matches!(
            character,
            '$' | '€' | '£' | '¥' | '₹' | '₩' | '₽' | '₺' | '₪' | '₴' | '¢'
        )
    };
    text.trim_matches(|character: char| is_currency(character) || character.is_whitespace())
}

fn is_group_separator(character: char) -> bool {
    matches!(character, ',' | '.' | '\'' | '\u{2019}') || character.is_whitespace()
}

/// Splits a number into its whole part, with separators of thousands, and its fraction.
fn parts(text: &str) -> Option<(&str, Option<&str>)> {
    let last = text.rfind([',', '.']);
    let Some(last) = last else {
        return Some((text, None));
    };

    let separator = &text[last..=last];
    let (whole, fraction) = (&text[..last], &text[last + 1..]);
    let other = if separator == "," { '.' } else { ',' };
    let is_grouped_otherwise = whole
        .chars()
        .any(|one| is_group_separator(one) && one != ',' && one != '.');
    let begins_with_zero = whole.trim_start().starts_with('0');
    let is_decimal = if whole.contains(separator) {
        // Several of one kind separate thousands, and stand for no fraction.
        if whole.contains(other) {
            return None;
        }
        false
    } else {
        separator == "."
            || whole.contains(other)
            || is_grouped_otherwise
            || begins_with_zero
            || fraction.len() != 3
    };

    Some(if is_decimal {
        (whole, Some(fraction))
    } else {
        (text, None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_stored_as_decimals() {
        for (written, stored) in [
            ("12.5", "12.5"),
            ("-3", "-3"),
            ("+3", "3"),
            ("007", "7"),
            ("4,500", "4500"),
            ("$4,500", "4500"),
            ("-$4,500.10", "-4500.10"),
            ("$-4,500.10", "-4500.10"),
            ("4 500", "4500"),
            ("4\u{a0}500,5 €", "4500.5"),
            ("4'500.00", "4500.00"),
            ("(4,500.00)", "-4500.00"),
            ("($4,500.00)", "-4500.00"),
            ("4.500,00", "4500.00"),
            ("1.234.567", "1234567"),
            ("1,234,567.891", "1234567.891"),
            ("4,5", "4.5"),
            ("4.500", "4.500"),
            ("0,25", "0.25"),
            ("0,500", "0.500"),
            ("1 234,567", "1234.567"),
            ("1'234,567", "1234.567"),
            (".5", "0.5"),
            ("3.", "3"),
        ] {
            assert_eq!(decimal(written).as_deref(), Some(stored), "{written}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_taken() {
        for written in [
            "",
            "twelve",
            "NaN",
            "inf",
            "1e5",
            "1,2,3",
            "12,34,567",
            "1.234,567.8",
            "--3",
            "(-3)",
            ".",
            "4 50",
            "0x10",
            "1,234.567.890",
            "$",
            "()",
        ] {
            assert_eq!(decimal(written), None, "{written}");
        }
    }

    #[test]
    fn each_type_takes_its_own_entries() {
        let colors = ["red".to_owned(), "blue".to_owned()];
        for (kind, taken, refused) in [
            ("date", "2026-11-21", "21.11.2026"),
            ("date", "2026-02-28", "today"),
            ("date", "2026-02-28", "20260228"),
            ("checkbox", "true", "yes"),
            ("select", "red", "green"),
            ("radio", "blue", "Blue"),
            ("number", "4,500", "many"),
        ] {
            assert!(stored(kind, &colors, taken).is_some(), "{kind} {taken}");
            assert_eq!(stored(kind, &colors, refused), None, "{kind} {refused}");
            assert_eq!(stored(kind, &colors, "").as_deref(), Some(""));
        }

        assert_eq!(stored("text", &[], "anything").as_deref(), Some("anything"));
    }
}
