//! Cells of a tape as typed values. Cells with two readings are refused.

use holdfast_values::{
    self as values, AmountProblem, DateProblem, Notation, NumberProblem, WrittenNumber,
};
use jiff::civil::Date;

use super::decimal::ExactDecimal;
use super::map::{DateOrder, DecimalMark, TapeColumn, TapeMap};
use crate::facts::FactKind;

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
        FactKind::Text => Ok(CellValue::Text(values::collapsed(cell)).into()),
        FactKind::Vin => Ok(CellValue::Text(values::plain_vin(cell)).into()),
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
        FactKind::Text => Some(CellValue::Text(values::collapsed(value))),
        FactKind::Vin => Some(CellValue::Text(values::plain_vin(value))),
        FactKind::Boolean => boolean(value).ok(),
        FactKind::Date => values::iso_date(value).map(CellValue::Date),
        FactKind::Integer | FactKind::Money | FactKind::Percentage => {
            ExactDecimal::parse(value).map(CellValue::Number)
        }
    }
}

fn boolean(cell: &str) -> Result<CellValue, String> {
    let read = values::boolean(cell, Notation::Cell).map(CellValue::Boolean);
    read.ok_or_else(|| "neither yes nor no".into())
}

fn mark_of(mark: DecimalMark) -> values::DecimalMark {
    match mark {
        DecimalMark::Point => values::DecimalMark::Point,
        DecimalMark::Comma => values::DecimalMark::Comma,
    }
}

fn number(cell: &str, mark: DecimalMark) -> Result<ExactDecimal, String> {
    let read = values::number(cell, mark_of(mark), Notation::Cell);
    exact(&read.map_err(|problem| no_number(problem, mark))?)
}

fn money(cell: &str, mark: DecimalMark) -> Result<ReadCell, String> {
    let read = values::amount(cell, None, mark_of(mark), Notation::Cell);
    let read = read.map_err(|problem| match problem {
        AmountProblem::Number(problem) => no_number(problem, mark),
        AmountProblem::OtherCurrency(_) | AmountProblem::TwoCurrencies => {
            "the amount names two currencies".to_owned()
        }
    })?;

    // A sign of several currencies, such as that of dollars, names none of them.
    let currency = match &read.currencies[..] {
        [currency] => Some(currency.clone()),
        _ => None,
    };
    Ok(ReadCell {
        value: CellValue::Number(exact(&read.number)?),
        currency,
    })
}

fn percentage(cell: &str, is_fraction: bool, mark: DecimalMark) -> Result<ReadCell, String> {
    let read = values::percentage(cell, mark_of(mark), Notation::Cell);
    let (read, is_named) = read.map_err(|problem| no_number(problem, mark))?;
    let read = exact(&read)?;
    // With its sign, the number is a percentage, also in a column of fractions.
    if !is_fraction || is_named {
        return Ok(CellValue::Number(read).into());
    }
    let shifted = read.shifted(2).ok_or_else(too_many_digits)?;
    Ok(CellValue::Number(shifted).into())
}

fn exact(read: &WrittenNumber) -> Result<ExactDecimal, String> {
    ExactDecimal::parse(&read.text(0)).ok_or_else(too_many_digits)
}

fn too_many_digits() -> String {
    "the number has too many digits".into()
}

fn no_number(problem: NumberProblem, mark: DecimalMark) -> String {
    let other = match mark {
        DecimalMark::Point => DecimalMark::Comma,
        DecimalMark::Comma => DecimalMark::Point,
    };
    match problem {
        NumberProblem::NoNumber => "not a number".into(),
        NumberProblem::TwoSigns => "the number has two signs".into(),
        NumberProblem::Grouping => {
            "not a number: its separators do not stand between groups of three digits".into()
        }
        NumberProblem::OtherMark => format!(
            "not a number with a decimal \"{mark}\"; if \"{other}\" stands before the decimals, set \"decimal\" in the map"
        ),
    }
}

/// Reads a date of any usual form.
fn date(cell: &str, order: Option<DateOrder>) -> Result<Date, String> {
    let known = order.map(|order| match order {
        DateOrder::MonthFirst => values::DateOrder::MonthFirst,
        DateOrder::DayFirst => values::DateOrder::DayFirst,
        DateOrder::YearFirst => values::DateOrder::YearFirst,
        DateOrder::Serial => values::DateOrder::Serial,
    });
    values::date(cell, known, Notation::Cell).map_err(|problem| match problem {
        DateProblem::NoDate | DateProblem::ShortYear => "not a date".into(),
        DateProblem::NoSuchDay => "there is no such day".into(),
        DateProblem::OtherOrder => "not a date in the order that the map has".into(),
        DateProblem::TwoWays(_) => {
            "the date can be read in two ways; set \"date_order\" in the map".into()
        }
        DateProblem::PlainNumber => {
            "a number is a date only if the map has \"date_order\": \"serial\"".into()
        }
    })
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
