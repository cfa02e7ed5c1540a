//! Cells of a tape as typed values. What can be read in two ways is refused.

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::decimal::ExactDecimal;
use super::map::{DateOrder, DecimalMark, TapeColumn, TapeMap};
use crate::facts::FactKind;

/// Years of two digits up to this one are in the 21st century (POSIX.1-2017, `strptime`).
const LAST_SHORT_YEAR: i16 = 68;
/// Characters that stand between groups of three digits, beside the comma or the point.
const GROUPING: [char; 4] = [' ', '\u{a0}', '\u{202f}', '\''];
/// Currency signs, and the codes of those that only one country uses.
const SIGNS: [(char, Option<&str>); 3] = [('$', None), ('€', Some("EUR")), ('£', Some("GBP"))];

/// A typed value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellValue {
    Text(String),
    Number(ExactDecimal),
    Date(Date),
    Boolean(bool),
}

/// A value as a cell has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCell {
    pub value: CellValue,
    /// ISO 4217 code, if the cell names its currency.
    pub currency: Option<String>,
}

impl From<CellValue> for ReadCell {
    fn from(value: CellValue) -> Self {
        Self {
            value,
            currency: None,
        }
    }
}

/// Whether a cell has no value.
pub fn is_empty(cell: &str) -> bool {
    let cell = cell.trim();
    let marks = ["null", "n/a", "#n/a", "none"];
    cell.is_empty() || marks.iter().any(|mark| cell.eq_ignore_ascii_case(mark))
}

/// Reads a cell as a value of a kind.
///
/// # Errors
/// Why it is no such value, or could be two of them.
pub fn read(
    cell: &str,
    kind: FactKind,
    column: &TapeColumn,
    map: &TapeMap,
) -> Result<ReadCell, String> {
    let cell = cell.trim();
    // A spreadsheet shows the result, and the file has the formula: neither is what the writer saw.
    if cell.starts_with('=') || cell.starts_with('@') {
        return Err("a formula is no value; export the values".into());
    }

    match kind {
        FactKind::Text => Ok(CellValue::Text(collapsed(cell)).into()),
        FactKind::Vin => Ok(CellValue::Text(plain_vin(cell)).into()),
        FactKind::Boolean => boolean(cell).map(ReadCell::from),
        FactKind::Date => date(cell, map.date_order).map(|date| CellValue::Date(date).into()),
        FactKind::Integer => {
            let number = number(cell, map.decimal)?;
            if number.is_whole() {
                Ok(CellValue::Number(number).into())
            } else {
                Err("not a whole number".into())
            }
        }
        FactKind::Money => money(cell, map.decimal),
        FactKind::Percentage => percentage(cell, column.fraction, map.decimal),
    }
}

/// Reads the canonical value of a fact.
pub fn canonical(value: &str, kind: FactKind) -> Option<CellValue> {
    match kind {
        FactKind::Text => Some(CellValue::Text(collapsed(value))),
        FactKind::Vin => Some(CellValue::Text(plain_vin(value))),
        FactKind::Boolean => boolean(value).ok(),
        FactKind::Date => iso_date(value).map(CellValue::Date),
        FactKind::Integer | FactKind::Money | FactKind::Percentage => {
            ExactDecimal::parse(value).map(CellValue::Number)
        }
    }
}

fn collapsed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

fn plain_vin(text: &str) -> String {
    let kept = text
        .chars()
        .filter(|one| !one.is_whitespace() && *one != '-');
    kept.collect::<String>().to_uppercase()
}

fn boolean(cell: &str) -> Result<CellValue, String> {
    match cell.to_lowercase().as_str() {
        "true" | "yes" | "y" | "1" | "x" => Ok(CellValue::Boolean(true)),
        "false" | "no" | "n" | "0" => Ok(CellValue::Boolean(false)),
        _ => Err("neither yes nor no".into()),
    }
}

fn money(cell: &str, mark: DecimalMark) -> Result<ReadCell, String> {
    let (amount, currency) = without_currency(cell);
    Ok(ReadCell {
        value: CellValue::Number(number(&amount, mark)?),
        currency,
    })
}

/// Takes the sign or code of a currency off an amount, wherever it stands.
fn without_currency(cell: &str) -> (String, Option<String>) {
    let mut currency = None;
    let mut amount = cell.to_owned();
    for (sign, code) in SIGNS {
        if amount.contains(sign) {
            amount = amount.replacen(sign, "", 1);
            currency = code.map(str::to_owned);
        }
    }

    let is_code = |text: &str| text.len() == 3 && text.bytes().all(|one| one.is_ascii_uppercase());
    let named = amount
        .get(..3)
        .filter(|code| is_code(code))
        .map(str::to_owned);
    if let Some(code) = named {
        amount = amount.split_off(3);
        currency = Some(code);
    }
    let end = amount.len().saturating_sub(3);
    let named = amount
        .get(end..)
        .filter(|code| is_code(code))
        .map(str::to_owned);
    if let Some(code) = named {
        amount.truncate(end);
        currency = Some(code);
    }

    (amount.trim().to_owned(), currency)
}

fn percentage(cell: &str, is_fraction: bool, mark: DecimalMark) -> Result<ReadCell, String> {
    let signed = cell.strip_suffix('%');
    let read = number(signed.unwrap_or(cell).trim(), mark)?;
    // With its sign, the number is a percentage whatever the map says of the column.
    if !is_fraction || signed.is_some() {
        return Ok(CellValue::Number(read).into());
    }
    let shifted = read.shifted(2);
    let shifted = shifted.ok_or_else(|| "the number has too many digits".to_owned())?;
    Ok(CellValue::Number(shifted).into())
}

/// Reads a number with thousands separators, and a minus or brackets if it is negative.
fn number(cell: &str, mark: DecimalMark) -> Result<ExactDecimal, String> {
    let unreadable = || "not a number".to_owned();
    let (is_negative, digits) = sign(cell.trim()).ok_or_else(unreadable)?;
    let digits = digits.trim();
    if digits.is_empty() || digits.starts_with(['-', '+']) {
        return Err(unreadable());
    }

    let (point, group) = match mark {
        DecimalMark::Point => ('.', ','),
        DecimalMark::Comma => (',', '.'),
    };
    let (whole, places) = match digits.rsplit_once(point) {
        Some((whole, places)) => (whole, Some(places)),
        None => (digits, None),
    };
    let is_digits = |text: &str| text.bytes().all(|one| one.is_ascii_digit());
    if let Some(places) = places
        && !is_digits(places)
    {
        return Err(other_mark(digits, mark).unwrap_or_else(unreadable));
    }

    let separator = |one: &char| *one == group || GROUPING.contains(one);
    let whole = match whole.chars().find(separator) {
        Some(separator) => grouped(whole, separator),
        None => Some(whole.to_owned()),
    };
    let whole = whole.filter(|whole| is_digits(whole));
    let whole = whole.ok_or_else(|| other_mark(digits, mark).unwrap_or_else(unreadable))?;

    let places = places.filter(|places| !places.is_empty()).unwrap_or("0");
    // `.50` is usual in spreadsheets.
    let whole = if whole.is_empty() { "0" } else { &whole };
    let text = format!("{whole}.{places}");
    let read = ExactDecimal::parse(&text);
    let read = read.ok_or_else(|| "the number has too many digits".to_owned())?;
    Ok(if is_negative { negated(read) } else { read })
}

fn negated(number: ExactDecimal) -> ExactDecimal {
    ExactDecimal::parse(&format!("-{}", number.written(0))).unwrap_or(number)
}

/// Splits off a minus before or behind the digits, or the brackets of accountants.
fn sign(cell: &str) -> Option<(bool, &str)> {
    if let Some(rest) = cell.strip_prefix('(') {
        return rest.strip_suffix(')').map(|inner| (true, inner));
    }
    for minus in ['-', '\u{2212}'] {
        let inner = cell
            .strip_prefix(minus)
            .or_else(|| cell.strip_suffix(minus));
        if let Some(inner) = inner {
            return Some((true, inner));
        }
    }
    Some((false, cell.strip_prefix('+').unwrap_or(cell)))
}

/// Returns the digits of groups of three, or none for other groups.
fn grouped(whole: &str, separator: char) -> Option<String> {
    let mut groups = whole.split(separator);
    let first = groups.next()?;
    let is_usual = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    is_usual.then(|| whole.replace(separator, ""))
}

/// Explains a number that is one with the other decimal mark only.
fn other_mark(digits: &str, mark: DecimalMark) -> Option<String> {
    let other = match mark {
        DecimalMark::Point => DecimalMark::Comma,
        DecimalMark::Comma => DecimalMark::Point,
    };
    let has_other = digits.contains(other.as_str());
    has_other.then(|| {
        format!("not a number with a decimal \"{mark}\"; if \"{other}\" stands before the decimals, set \"decimal\" in the map")
    })
}

/// Reads a date of any usual form.
fn date(cell: &str, order: Option<DateOrder>) -> Result<Date, String> {
    // Spreadsheets append a time that is midnight.
    let cell = match cell.split_once(['T', ' ']) {
        Some((day, time))
            if time.starts_with(|one: char| one.is_ascii_digit()) && time.contains(':') =>
        {
            day
        }
        _ => cell,
    };
    if let Some(date) = iso_date(cell) {
        return Ok(date);
    }

    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if is_digits(cell) {
        return of_digits(cell, order);
    }
    let separators = ['/', '-', '.', ' ', ','];
    let parts: Vec<&str> = cell
        .split(separators)
        .filter(|part| !part.is_empty())
        .collect();
    let [first, second, third] = parts[..] else {
        return Err("not a date".into());
    };

    if parts.iter().all(|part| is_digits(part)) {
        return of_three(first, second, third, order);
    }
    // The name of the month says which number it is not.
    let (day, month, year) = match (month_of(first), month_of(second)) {
        (Some(month), None) => (second, month, third),
        (None, Some(month)) if first.len() == 4 => (third, month, first),
        (None, Some(month)) => (first, month, third),
        _ => return Err("not a date".into()),
    };
    let ordinal = |one: char| one.is_ascii_alphabetic();
    day_of(year, month, day.trim_end_matches(ordinal))
}

fn iso_date(text: &str) -> Option<Date> {
    let is_form = text.len() == 10 && text.is_ascii() && &text[4..5] == "-" && &text[7..8] == "-";
    if !is_form {
        return None;
    }
    let number = |part: &str| {
        part.parse::<i16>()
            .ok()
            .filter(|_| !part.starts_with(['+', '-']))
    };
    let (year, month, day) = (
        number(&text[..4])?,
        number(&text[5..7])?,
        number(&text[8..])?,
    );
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Reads `20261121`, or the number of a day in a spreadsheet if the map says so.
fn of_digits(cell: &str, order: Option<DateOrder>) -> Result<Date, String> {
    if order == Some(DateOrder::Serial) && cell.len() < 8 {
        let days: i32 = cell.parse().map_err(|_| "not a date".to_owned())?;
        let first = Date::constant(1899, 12, 30);
        return first
            .checked_add(days.days())
            .map_err(|_| "not a date".to_owned());
    }
    if cell.len() != 8 {
        return Err("a number is a date only if the map has \"date_order\": \"serial\"".into());
    }

    let by_year = || day_of(&cell[..4], number_of(&cell[4..6])?, &cell[6..]);
    match order {
        Some(DateOrder::MonthFirst) => day_of(&cell[4..], number_of(&cell[..2])?, &cell[2..4]),
        Some(DateOrder::DayFirst) => day_of(&cell[4..], number_of(&cell[2..4])?, &cell[..2]),
        Some(DateOrder::YearFirst | DateOrder::Serial) => by_year(),
        // No year of a contract reads as a day and a month: 2026 would be month 26 or day 26 of month 20.
        None if matches!(&cell[..2], "19" | "20") => by_year(),
        None => Err(two_ways()),
    }
}

/// Reads three numbers. Without an order, only if one order alone makes a date of them.
fn of_three(
    first: &str,
    second: &str,
    third: &str,
    order: Option<DateOrder>,
) -> Result<Date, String> {
    if first.len() == 4 {
        return day_of(first, number_of(second)?, third);
    }

    let month_first = || day_of(third, number_of(first)?, second);
    let day_first = || day_of(third, number_of(second)?, first);
    match order {
        Some(DateOrder::MonthFirst) => month_first(),
        Some(DateOrder::DayFirst) => day_first(),
        Some(DateOrder::YearFirst) => day_of(first, number_of(second)?, third),
        // A year of two digits could be any of the three.
        Some(DateOrder::Serial) | None if third.len() != 4 => Err(two_ways()),
        Some(DateOrder::Serial) | None => match (month_first(), day_first()) {
            (Ok(one), Ok(other)) if one == other => Ok(one),
            (Ok(_), Ok(_)) => Err(two_ways()),
            (Ok(date), Err(_)) | (Err(_), Ok(date)) => Ok(date),
            (Err(error), Err(_)) => Err(error),
        },
    }
}

fn two_ways() -> String {
    "the date can be read in two ways; set \"date_order\" in the map".into()
}

fn number_of(text: &str) -> Result<i8, String> {
    text.parse().map_err(|_| "not a date".to_owned())
}

fn day_of(year: &str, month: i8, day: &str) -> Result<Date, String> {
    let number: i16 = year.parse().map_err(|_| "not a date".to_owned())?;
    let year = match year.len() {
        4 => number,
        2 if number <= LAST_SHORT_YEAR => 2000 + number,
        2 => 1900 + number,
        _ => return Err("not a date".into()),
    };
    Date::new(year, month, number_of(day)?).map_err(|_| "there is no such day".into())
}

/// Returns the number of an English month, by its name or at least three letters of it.
fn month_of(text: &str) -> Option<i8> {
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
    let text = text.to_lowercase();
    let found = MONTHS
        .iter()
        .position(|month| text.len() >= 3 && month.starts_with(&text))?;
    i8::try_from(found + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TapeMap {
        TapeMap::parse(r#"{"columns":[{"column":"n","fact":"contract_number"}]}"#).unwrap()
    }

    fn with(
        kind: FactKind,
        change: impl FnOnce(&mut TapeMap),
        cell: &str,
    ) -> Result<CellValue, String> {
        let mut map = map();
        change(&mut map);
        read(cell, kind, &map.columns[0], &map).map(|read| read.value)
    }

    fn dated(order: Option<DateOrder>, cell: &str) -> Result<String, String> {
        let read = with(FactKind::Date, |map| map.date_order = order, cell)?;
        match read {
            CellValue::Date(date) => Ok(date.to_string()),
            other => panic!("{other:?}"),
        }
    }

    fn amount(cell: &str) -> Result<String, String> {
        let read = with(FactKind::Money, |_| {}, cell)?;
        match read {
            CellValue::Number(number) => Ok(number.written(2)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn amounts_have_separators_signs_and_brackets() {
        for (cell, read) in [
            ("21500", "21500.00"),
            ("21,500.00", "21500.00"),
            ("1,234,567.8", "1234567.80"),
            ("$ 21 500.00", "21500.00"),
            ("1'234.50", "1234.50"),
            ("USD 12.00", "12.00"),
            ("12.00 USD", "12.00"),
            ("(1,250.00)", "-1250.00"),
            ("($1,250.00)", "-1250.00"),
            ("-$3.10", "-3.10"),
            ("3.10-", "-3.10"),
            ("\u{2212}4", "-4.00"),
            ("+5", "5.00"),
            (".50", "0.50"),
            ("7.", "7.00"),
        ] {
            assert_eq!(amount(cell).as_deref(), Ok(read), "{cell}");
        }

        for cell in [
            "NaN", "inf", "1e5", "1.234,56", "12,34.00", "1,23", "0x10", "(5", "5)", "--5", "abc",
            "-", "=1+1", "@sum", "1 23", "$", "1.2.3",
        ] {
            assert!(amount(cell).is_err(), "{cell}: {:?}", amount(cell));
        }
        let hint = amount("1.234,56").unwrap_err();
        assert!(hint.contains("decimal"), "{hint}");
    }

    #[test]
    fn a_decimal_comma_is_read_if_the_map_says_so() {
        let comma = |cell: &str| {
            with(
                FactKind::Money,
                |map| map.decimal = DecimalMark::Comma,
                cell,
            )
        };
        let number = |text: &str| Ok(CellValue::Number(ExactDecimal::parse(text).unwrap()));
        assert_eq!(comma("1.234,56"), number("1234.56"));
        assert_eq!(comma("12,5"), number("12.5"));
        assert!(comma("1,234.56").is_err());
    }

    #[test]
    fn an_amount_names_its_currency() {
        let map = map();
        let currency = |cell: &str| {
            let read = read(cell, FactKind::Money, &map.columns[0], &map);
            read.unwrap().currency
        };
        assert_eq!(currency("CAD 12.00").as_deref(), Some("CAD"));
        assert_eq!(currency("12,000 €").as_deref(), Some("EUR"));
        assert_eq!(currency("$12"), None);
    }

    #[test]
    fn percentages_are_points_or_fractions() {
        let points = |fraction: bool, cell: &str| {
            with(
                FactKind::Percentage,
                |map| map.columns[0].fraction = fraction,
                cell,
            )
        };
        let number = |text: &str| Ok(CellValue::Number(ExactDecimal::parse(text).unwrap()));
        assert_eq!(points(false, "7.99"), number("7.99"));
        assert_eq!(points(false, "7.99 %"), number("7.99"));
        assert_eq!(points(true, "0.0799"), number("7.99"));
        assert_eq!(points(true, "7.99%"), number("7.99"));
        assert!(points(false, "NaN").is_err());
    }

    #[test]
    fn dates_of_every_usual_form_are_read() {
        for cell in [
            "2026-11-21",
            "2026-11-21T00:00:00Z",
            "2026-11-21 00:00:00",
            "2026/11/21",
            "2026.11.21",
            "20261121",
            "11/21/2026",
            "21/11/2026",
            "21.11.2026",
            "11-21-2026",
            "21 Nov 2026",
            "21-Nov-2026",
            "Nov 21, 2026",
            "November 21, 2026",
            "NOV 21 2026",
            "21-NOV-26",
            "Nov 21st, 2026",
            "2026-Nov-21",
        ] {
            assert_eq!(dated(None, cell).as_deref(), Ok("2026-11-21"), "{cell}");
        }
        assert_eq!(dated(None, "5/5/2026").as_deref(), Ok("2026-05-05"));
    }

    #[test]
    fn an_ambiguous_date_needs_an_order() {
        for cell in ["03/04/2026", "3.4.2026", "11/21/26", "03042026", "46347"] {
            let refused = dated(None, cell).unwrap_err();
            assert!(refused.contains("date_order"), "{cell}: {refused}");
        }

        let (month, day) = (Some(DateOrder::MonthFirst), Some(DateOrder::DayFirst));
        assert_eq!(dated(month, "03/04/2026").as_deref(), Ok("2026-03-04"));
        assert_eq!(dated(day, "03/04/2026").as_deref(), Ok("2026-04-03"));
        assert_eq!(dated(month, "11/21/26").as_deref(), Ok("2026-11-21"));
        assert_eq!(dated(month, "03042026").as_deref(), Ok("2026-03-04"));
        assert_eq!(
            dated(Some(DateOrder::YearFirst), "26/11/21").as_deref(),
            Ok("2026-11-21")
        );
        assert_eq!(
            dated(Some(DateOrder::Serial), "46347").as_deref(),
            Ok("2026-11-21")
        );
        assert_eq!(dated(month, "11/21/99").as_deref(), Ok("1999-11-21"));

        // The order of the map counts, also where only another one makes a date.
        assert!(dated(month, "21/11/2026").is_err());
        for wrong in [
            "2026-02-30",
            "13/13/2026",
            "tomorrow",
            "11/2026",
            "1/2/3/4",
            "",
            "2026-+1-01",
        ] {
            assert!(dated(None, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_vins_and_booleans_have_one_form() {
        let text = |text: &str| Ok(CellValue::Text(text.into()));
        assert_eq!(
            with(FactKind::Text, |_| {}, "  Ford\u{a0} F-150 "),
            text("Ford F-150")
        );
        assert_eq!(
            with(FactKind::Vin, |_| {}, "1m8-gdm9 axkp042788"),
            text("1M8GDM9AXKP042788")
        );
        assert_eq!(
            with(FactKind::Boolean, |_| {}, "Yes"),
            Ok(CellValue::Boolean(true))
        );
        assert!(with(FactKind::Boolean, |_| {}, "perhaps").is_err());
        assert_eq!(
            with(FactKind::Integer, |_| {}, "72.00"),
            Ok(CellValue::Number(ExactDecimal::parse("72").unwrap()))
        );
        assert!(with(FactKind::Integer, |_| {}, "72.5").is_err());
        assert!(with(FactKind::Text, |_| {}, "=HYPERLINK(\"x\")").is_err());

        for empty in ["", "  ", "NULL", "n/a", "#N/A"] {
            assert!(is_empty(empty), "{empty}");
        }
        assert!(!is_empty("0"));
    }

    #[test]
    fn values_of_facts_are_read_as_they_are_written() {
        let number = ExactDecimal::parse("21500").map(CellValue::Number);
        assert_eq!(canonical("21500.00", FactKind::Money), number);
        assert_eq!(canonical("7,9", FactKind::Percentage), None);
        let date = CellValue::Date(Date::constant(2026, 11, 21));
        assert_eq!(canonical("2026-11-21", FactKind::Date), Some(date));
        assert_eq!(canonical("11/21/2026", FactKind::Date), None);
    }
}
