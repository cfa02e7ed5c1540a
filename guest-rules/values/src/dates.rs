//! Dates of digits in any usual order, and with English names of months.

use jiff::ToSpan as _;
use jiff::civil::Date;

use crate::{Notation, collapsed};

/// Years of two digits up to this one are in the 21st century (POSIX.1-2017, `strptime`).
const LAST_SHORT_YEAR: i16 = 68;

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

/// Order of day, month and year in dates of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// `11/21/2026`
    MonthFirst,
    /// `21/11/2026`
    DayFirst,
    /// `2026/11/21`
    YearFirst,
    /// Days since 30 December 1899, as spreadsheets count. Other dates are read as without an order.
    Serial,
}

/// Why words are no date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateProblem {
    /// They have not the form of a date.
    NoDate,
    /// The month has no such day, or the year no such month.
    NoSuchDay,
    /// They are no date in the given order.
    OtherOrder,
    /// They could be these two days, or more for a short year.
    TwoWays(Option<(Date, Date)>),
    /// The year has not four digits.
    ShortYear,
    /// A number that is not a day as spreadsheets count, unless that is the order.
    PlainNumber,
}

/// Reads a date.
///
/// # Errors
/// The words are no date, or could be several.
pub fn date(
    words: &str,
    order: Option<DateOrder>,
    notation: Notation,
) -> Result<Date, DateProblem> {
    let words = collapsed(words);
    let words = if notation == Notation::Cell {
        without_time(&words)
    } else {
        words.as_str()
    };
    if notation == Notation::Cell && is_digits(words) {
        return of_digits(words, order);
    }

    let is_separator = |one: char| {
        let is_of_cell = notation == Notation::Cell && matches!(one, ' ' | ',');
        is_of_cell || matches!(one, '/' | '-' | '.' | '\u{2010}' | '\u{2011}')
    };
    let parts = words.split(is_separator).map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if let [first, second, third] = parts[..]
        && parts.iter().all(|part| is_digits(part))
    {
        return of_three(first, second, third, order);
    }

    named(words, notation)
}

/// Reads `2026-11-21`. None for any other form.
pub fn iso_date(text: &str) -> Option<Date> {
    let is_form = text.len() == 10 && text.is_ascii() && &text[4..5] == "-" && &text[7..8] == "-";
    if !is_form
        || ![&text[..4], &text[5..7], &text[8..]]
            .into_iter()
            .all(is_digits)
    {
        return None;
    }
    day_of(&text[..4], &text[5..7], &text[8..]).ok()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit())
}

/// Takes a time of day off, which spreadsheets append: it is midnight.
fn without_time(cell: &str) -> &str {
    match cell.split_once(['T', ' ']) {
        Some((day, time))
            if time.starts_with(|one: char| one.is_ascii_digit()) && time.contains(':') =>
        {
            day
        }
        _ => cell,
    }
}

/// Reads `20261121`, or the number of a day in a spreadsheet.
fn of_digits(cell: &str, order: Option<DateOrder>) -> Result<Date, DateProblem> {
    if order == Some(DateOrder::Serial) && cell.len() < 8 {
        let days: i32 = cell.parse().map_err(|_| DateProblem::NoDate)?;
        let first = Date::constant(1899, 12, 30);
        let day = first.checked_add(days.days());
        return day.map_err(|_| DateProblem::NoSuchDay);
    }
    if cell.len() != 8 {
        return Err(DateProblem::PlainNumber);
    }

    let by_year = || day_of(&cell[..4], &cell[4..6], &cell[6..]);
    match order {
        Some(DateOrder::MonthFirst) => day_of(&cell[4..], &cell[..2], &cell[2..4]),
        Some(DateOrder::DayFirst) => day_of(&cell[4..], &cell[2..4], &cell[..2]),
        Some(DateOrder::YearFirst | DateOrder::Serial) => by_year(),
        // No year of a contract reads as a day and a month: 2026 would be month 26 or day 26 of month 20.
        None if matches!(&cell[..2], "19" | "20") => by_year(),
        None => Err(DateProblem::TwoWays(None)),
    }
}

/// Reads three numbers. Without an order, only if one order alone makes a date of them.
fn of_three(
    first: &str,
    second: &str,
    third: &str,
    order: Option<DateOrder>,
) -> Result<Date, DateProblem> {
    if first.len() == 4 {
        return day_of(first, second, third);
    }

    let month_first = || day_of(third, first, second);
    let day_first = || day_of(third, second, first);
    let in_order = match order {
        Some(DateOrder::MonthFirst) => month_first(),
        Some(DateOrder::DayFirst) => day_first(),
        Some(DateOrder::YearFirst) => day_of(first, second, third),
        // A year of two digits could be any of the three.
        Some(DateOrder::Serial) | None if third.len() != 4 => {
            return Err(DateProblem::TwoWays(None));
        }
        Some(DateOrder::Serial) | None => {
            return match (month_first(), day_first()) {
                (Ok(one), Ok(other)) if one != other => {
                    Err(DateProblem::TwoWays(Some((one, other))))
                }
                (Ok(date), _) | (Err(_), Ok(date)) => Ok(date),
                (Err(problem), Err(_)) => Err(problem),
            };
        }
    };
    in_order.map_err(|_| DateProblem::OtherOrder)
}

/// Reads a date with the English name of its month. The name tells the other two numbers apart.
fn named(words: &str, notation: Notation) -> Result<Date, DateProblem> {
    let lower = words.to_lowercase();
    let is_separator = |one: char| {
        one.is_whitespace() || matches!(one, ',' | '.' | '-' | '/' | '\u{2010}' | '\u{2011}')
    };
    let is_filler =
        |word: &str| matches!(word, "" | "the" | "day" | "of") || is_short_for(word, &WEEKDAYS);
    let parts = lower.split(is_separator);
    let parts: Vec<&str> = parts.filter(|word| !is_filler(word)).collect();
    let [first, second, third] = parts[..] else {
        return Err(DateProblem::NoDate);
    };

    let (day, month, year) = match (month_of(first), month_of(second)) {
        (Some(month), None) => (second, month, third),
        (None, Some(month)) if first.len() == 4 && is_digits(first) => (third, month, first),
        (None, Some(month)) => (first, month, third),
        _ => return Err(DateProblem::NoDate),
    };
    let ordinals = ["st", "nd", "rd", "th"];
    let day = ordinals
        .iter()
        .find_map(|ordinal| day.strip_suffix(ordinal))
        .unwrap_or(day);
    if !is_digits(day) || !is_digits(year) {
        return Err(DateProblem::NoDate);
    }
    // Beside a document's words, two digits behind a day can be anything.
    if year.len() != 4 && notation == Notation::Words {
        return Err(DateProblem::ShortYear);
    }

    day_of(year, &month.to_string(), day)
}

/// Returns the number of an English month, by its name or at least three letters of it.
fn month_of(word: &str) -> Option<usize> {
    let found = MONTHS.iter().position(|name| is_short_for(word, &[name]));
    found.map(|index| index + 1)
}

/// Returns whether a word is one of the names, or its first three or more letters.
fn is_short_for(word: &str, names: &[&str]) -> bool {
    word.len() >= 3 && names.iter().any(|name| name.starts_with(word))
}

/// Returns the day of three numbers.
fn day_of(year: &str, month: &str, day: &str) -> Result<Date, DateProblem> {
    let number: i16 = year.parse().map_err(|_| DateProblem::NoDate)?;
    let year = match year.len() {
        4 => number,
        2 if number <= LAST_SHORT_YEAR => 2000 + number,
        2 => 1900 + number,
        _ => return Err(DateProblem::NoDate),
    };
    if month.len() > 2 || day.len() > 2 {
        return Err(DateProblem::NoDate);
    }

    let (month, day) = (month.parse::<i8>(), day.parse::<i8>());
    let (Ok(month), Ok(day)) = (month, day) else {
        return Err(DateProblem::NoDate);
    };
    Date::new(year, month, day).map_err(|_| DateProblem::NoSuchDay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use DateOrder::{DayFirst, MonthFirst, Serial, YearFirst};
    use Notation::{Cell, Words};

    fn read(
        words: &str,
        order: Option<DateOrder>,
        notation: Notation,
    ) -> Result<String, DateProblem> {
        date(words, order, notation).map(|date| date.to_string())
    }

    #[test]
    fn dates_of_documents_and_cells_are_read_alike() {
        for words in [
            "2026-11-30",
            "2026/11/30",
            "2026.11.30",
            "11/30/2026",
            "30/11/2026",
            "30.11.2026",
            "11-30-2026",
            "November 30, 2026",
            "Nov. 30th, 2026",
            "Nov 30, 2026",
            "NOV 30 2026",
            "30 Nov 2026",
            "30-Nov-2026",
            "2026-Nov-30",
            "the 30th day of November, 2026",
            "Monday, November 30, 2026",
        ] {
            for notation in [Words, Cell] {
                assert_eq!(
                    read(words, None, notation).as_deref(),
                    Ok("2026-11-30"),
                    "{words}"
                );
            }
        }
        assert_eq!(read("2026/1/5", None, Words).as_deref(), Ok("2026-01-05"));
        assert_eq!(read("05/05/2026", None, Words).as_deref(), Ok("2026-05-05"));
        assert_eq!(read("May 1, 2026", None, Cell).as_deref(), Ok("2026-05-01"));
    }

    #[test]
    fn cells_have_forms_that_words_of_a_document_have_not() {
        for (cell, problem) in [
            ("2026-11-30T00:00:00Z", DateProblem::NoDate),
            ("2026-11-30 00:00:00", DateProblem::NoDate),
            ("11/30/2026 12:00:00 AM", DateProblem::NoDate),
            ("20261130", DateProblem::NoDate),
            ("30-NOV-26", DateProblem::ShortYear),
            ("Nov 30, 26", DateProblem::ShortYear),
        ] {
            assert_eq!(
                read(cell, None, Cell).as_deref(),
                Ok("2026-11-30"),
                "{cell}"
            );
            assert_eq!(read(cell, None, Words), Err(problem), "{cell}");
        }
    }

    #[test]
    fn a_date_with_two_readings_needs_an_order() {
        let day = |text: &str| iso_date(text).unwrap();
        for notation in [Words, Cell] {
            assert_eq!(
                read("05/06/2026", None, notation),
                Err(DateProblem::TwoWays(Some((
                    day("2026-05-06"),
                    day("2026-06-05")
                ))))
            );
            assert_eq!(
                read("11/21/26", None, notation),
                Err(DateProblem::TwoWays(None))
            );
            for (order, words, value) in [
                (MonthFirst, "05/06/2026", "2026-05-06"),
                (DayFirst, "05/06/2026", "2026-06-05"),
                (MonthFirst, "5/6/26", "2026-05-06"),
                (MonthFirst, "11/21/99", "1999-11-21"),
                (YearFirst, "26-05-06", "2026-05-06"),
                (MonthFirst, "2026-05-06", "2026-05-06"),
            ] {
                assert_eq!(
                    read(words, Some(order), notation).as_deref(),
                    Ok(value),
                    "{words}"
                );
            }
            // The order counts, also where only another one makes a date.
            assert_eq!(
                read("30/11/2026", Some(MonthFirst), notation),
                Err(DateProblem::OtherOrder)
            );
        }
    }

    #[test]
    fn digits_alone_are_a_date_in_a_cell() {
        assert_eq!(
            read("03042026", None, Cell),
            Err(DateProblem::TwoWays(None))
        );
        assert_eq!(
            read("03042026", Some(MonthFirst), Cell).as_deref(),
            Ok("2026-03-04")
        );
        assert_eq!(
            read("03042026", Some(DayFirst), Cell).as_deref(),
            Ok("2026-04-03")
        );
        assert_eq!(read("46347", None, Cell), Err(DateProblem::PlainNumber));
        assert_eq!(
            read("46347", Some(Serial), Cell).as_deref(),
            Ok("2026-11-21")
        );
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for words in [
            "2026-02-30",
            "02/30/2026",
            "13/13/2026",
            "November 2026",
            "tomorrow",
            "11/2026",
            "1/2/3/4",
            "",
            "2026-+1-01",
            "123-Nov-2026",
        ] {
            for notation in [Words, Cell] {
                assert!(read(words, None, notation).is_err(), "{words}");
            }
        }
    }

    #[test]
    fn a_canonical_date_has_one_form() {
        assert_eq!(iso_date("2026-11-21"), Some(Date::constant(2026, 11, 21)));
        for other in ["2026-11-2", "11/21/2026", "2026-02-30", "2026-+1-01"] {
            assert_eq!(iso_date(other), None, "{other}");
        }
    }
}
