//! Comparison of a row with the facts of its contract.

use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use super::cells::{self, CellValue, ReadCell};
use super::decimal::ExactDecimal;
use super::map::{CONTRACT_NUMBER, TapeColumn, TapeMap};
use super::reader::TapeRow;
use super::result::{CellOutcome, FindingCode, TapeFinding, letters, shown};
use crate::facts::{Fact, FactKind, FactOrigin, FactSheet, FactStatus};

/// Comparison of a row, which depends on row, facts and map alone.
#[derive(Clone, Debug, PartialEq)]
pub struct RowComparison {
    /// Outcomes of the compared columns, as letters.
    pub cells: String,
    pub findings: Vec<TapeFinding>,
}

impl RowComparison {
    /// Whether every column is equal or within its tolerance, and the contract agrees with itself.
    pub fn is_clean(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|finding| finding.code == FindingCode::WithinTolerance)
    }
}

/// A cell's outcome with what explains it.
struct JudgedCell<'a> {
    outcome: CellOutcome,
    fact: Option<&'a Fact>,
    detail: Option<String>,
}

impl<'a> JudgedCell<'a> {
    fn new(outcome: CellOutcome, fact: Option<&'a Fact>) -> Self {
        Self {
            outcome,
            fact,
            detail: None,
        }
    }

    fn because(self, detail: impl Into<String>) -> Self {
        Self {
            detail: Some(detail.into()),
            ..self
        }
    }
}

/// Compares a row with the facts of its contract.
pub fn compare(row: &TapeRow, sheet: &FactSheet, map: &TapeMap) -> RowComparison {
    let (mut outcomes, mut findings) = (Vec::new(), Vec::new());
    for (column, cell) in map.columns.iter().zip(&row.cells) {
        if !column.is_compared() {
            continue;
        }

        let cell = cell.as_deref().filter(|cell| !cells::is_empty(cell));
        let judged = judge(cell, sheet.get(&column.fact), column, map);
        outcomes.push(judged.outcome);
        findings.extend(finding(cell, column, &judged));
        findings.extend(judged.fact.and_then(|fact| conflict(fact, column)));
    }

    RowComparison {
        cells: letters(&outcomes),
        findings,
    }
}

fn judge<'a>(
    cell: Option<&str>,
    fact: Option<&'a Fact>,
    column: &TapeColumn,
    map: &TapeMap,
) -> JudgedCell<'a> {
    if let Some(fact) = fact.filter(|fact| fact.status == FactStatus::Unreadable) {
        let why = "the contract's page has no text that can be read";
        return JudgedCell::new(CellOutcome::Unreadable, Some(fact)).because(why);
    }

    let kind = column
        .kind
        .or(fact.map(|fact| fact.kind))
        .unwrap_or(FactKind::Text);
    let read = cell
        .map(|cell| cells::read(cell, kind, column, map))
        .transpose();
    let read = match read {
        Ok(read) => read,
        Err(why) => return JudgedCell::new(CellOutcome::Unreadable, fact).because(why),
    };

    // Metadata of the originator is no word of the contract: it may come from the same table as the tape.
    let of_contract = fact.filter(|fact| {
        fact.origin
            .is_some_and(|origin| origin != FactOrigin::Declared)
    });
    let value = of_contract.and_then(|fact| fact.value.as_deref());
    match (read, value) {
        (None, None) => JudgedCell::new(CellOutcome::Equal, fact),
        (None, Some(_)) => JudgedCell::new(CellOutcome::MissingInTape, fact),
        (Some(_), None) => {
            let judged = JudgedCell::new(CellOutcome::MissingInContract, fact);
            if fact.is_some_and(|fact| fact.value.is_some()) {
                judged.because("the originator declares a value that the contract does not have")
            } else {
                judged
            }
        }
        (Some(read), Some(value)) => match cells::canonical(value, kind) {
            Some(canonical) => {
                let currency = fact.and_then(|fact| fact.currency.as_deref());
                against(&read, &canonical, currency, kind, column, fact)
            }
            None => {
                let why = format!("the contract's value is no {}", name_of(kind));
                JudgedCell::new(CellOutcome::Unreadable, fact).because(why)
            }
        },
    }
}

fn name_of(kind: FactKind) -> &'static str {
    match kind {
        FactKind::Text => "text",
        FactKind::Integer => "whole number",
        FactKind::Money => "amount of money",
        FactKind::Percentage => "percentage",
        FactKind::Date => "date",
        FactKind::Vin => "VIN",
        FactKind::Boolean => "yes or no",
    }
}

/// Compares a cell with the contract's value.
fn against<'a>(
    cell: &ReadCell,
    contract: &CellValue,
    currency: Option<&str>,
    kind: FactKind,
    column: &TapeColumn,
    fact: Option<&'a Fact>,
) -> JudgedCell<'a> {
    // Equal numbers of two currencies are two amounts.
    if let (Some(own), Some(contract)) = (cell.currency.as_deref(), currency)
        && own != contract
    {
        let why = format!("the contract is in {contract}");
        return JudgedCell::new(CellOutcome::Different, fact).because(why);
    }

    if cell.value == *contract {
        return JudgedCell::new(CellOutcome::Equal, fact);
    }
    let tolerance = column.tolerance_of(kind);
    let is_near = match (&cell.value, contract) {
        (CellValue::Number(one), CellValue::Number(other)) => one.distance(*other) <= tolerance,
        (CellValue::Date(one), CellValue::Date(other)) => days_between(*one, *other) <= tolerance,
        // Systems write names in capital letters. A contract number may have both.
        (CellValue::Text(one), CellValue::Text(other)) => {
            kind == FactKind::Text
                && column.fact != CONTRACT_NUMBER
                && one.to_lowercase() == other.to_lowercase()
        }
        _ => false,
    };

    if is_near {
        JudgedCell::new(CellOutcome::WithinTolerance, fact)
    } else {
        JudgedCell::new(CellOutcome::Different, fact)
    }
}

fn days_between(one: Date, other: Date) -> ExactDecimal {
    // Years of four digits are less than ten million days apart.
    let days = one
        .since(other)
        .map(|span| span.get_days())
        .unwrap_or(i32::MAX);
    ExactDecimal::parse(&days.unsigned_abs().to_string()).unwrap_or(ExactDecimal::ZERO)
}

/// Returns what is reported about a cell.
fn finding(
    cell: Option<&str>,
    column: &TapeColumn,
    judged: &JudgedCell<'_>,
) -> Option<TapeFinding> {
    let code = FindingCode::of_cell(judged.outcome)?;
    let severity = match judged.outcome {
        CellOutcome::Different => column.severity.unwrap_or(code.severity()),
        _ => code.severity(),
    };
    let fact = judged.fact;
    let place = fact.and_then(|fact| {
        let of_value = fact
            .sources
            .iter()
            .find(|source| source.place.is_some() && source.value == fact.value);
        of_value.and_then(|source| source.place.clone())
    });

    Some(TapeFinding {
        code,
        severity,
        column: Some(column.column.clone()),
        fact: Some(column.fact.clone()),
        tape: cell.map(shown),
        contract: fact.and_then(|fact| fact.value.as_deref()).map(shown),
        origin: fact.and_then(|fact| fact.origin),
        place,
        detail: judged.detail.clone(),
    })
}

/// Reports a contract that says two things. The comparison uses the stronger one.
fn conflict(fact: &Fact, column: &TapeColumn) -> Option<TapeFinding> {
    if fact.status != FactStatus::Conflicting {
        return None;
    }

    let sources = fact
        .sources
        .iter()
        .filter(|source| source.value != fact.value);
    let others: Vec<&str> = sources
        .filter_map(|source| source.value.as_deref())
        .collect();
    let finding = TapeFinding::of_row(
        FindingCode::Conflicting,
        format!("other sources have {}", shown(&others.join(", "))),
    );
    Some(TapeFinding {
        column: Some(column.column.clone()),
        fact: Some(column.fact.clone()),
        contract: fact.value.as_deref().map(shown),
        origin: fact.origin,
        ..finding
    })
}

/// Of several records with a row's VIN, returns the one whose contract has the row's date.
pub fn of_date<'a, T: Copy>(
    candidates: impl Iterator<Item = (T, &'a FactSheet)>,
    row: &TapeRow,
    map: &TapeMap,
) -> Option<T> {
    let index = map.index_of(map.date_fact())?;
    let (column, cell) = (map.columns.get(index)?, row.cells.get(index)?.as_deref()?);
    let read = cells::read(cell, FactKind::Date, column, map).ok()?;
    let CellValue::Date(date) = read.value else {
        return None;
    };

    let tolerance = column.tolerance_of(FactKind::Date);
    let is_of_day = |sheet: &FactSheet| {
        let value = sheet
            .get(map.date_fact())
            .and_then(|fact| fact.value.as_deref());
        let value = value.and_then(|value| cells::canonical(value, FactKind::Date));
        matches!(value, Some(CellValue::Date(other)) if days_between(date, other) <= tolerance)
    };
    let mut matching = candidates
        .filter(|(_, sheet)| is_of_day(sheet))
        .map(|(one, _)| one);
    let first = matching.next()?;
    matching.next().is_none().then_some(first)
}

/// Returns the hash under which a comparison can be used again: of the row's cells, the contract's facts and the map.
pub fn reuse_hash(row: &TapeRow, facts_sha256: &str, map_sha256: &str) -> String {
    let mut hasher = Sha256::new();
    for part in [facts_sha256, map_sha256] {
        hasher.update(part.as_bytes());
        hasher.update(b"\n");
    }
    for cell in &row.cells {
        // With its length, so that no text moves from one cell to the next.
        let (mark, text) = cell.as_deref().map_or(("-", ""), |text| ("+", text));
        hasher.update(format!("{mark}{}\n", text.len()));
        hasher.update(text.as_bytes());
    }
    hex::encode(&hasher.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{FactMapIdentity, FactPlace, FactSource};

    fn fact(name: &str, kind: FactKind, value: &str, origin: FactOrigin) -> Fact {
        let place = FactPlace {
            page: 2,
            x: 0.1,
            y: 0.2,
            w: 0.3,
            h: 0.04,
        };
        Fact {
            name: name.into(),
            kind,
            currency: (kind == FactKind::Money).then(|| "USD".into()),
            status: FactStatus::Known,
            value: Some(value.into()),
            origin: Some(origin),
            sources: vec![FactSource {
                origin,
                value: Some(value.into()),
                words: value.into(),
                problem: None,
                place: Some(place),
                field: None,
                role: None,
            }],
        }
    }

    fn sheet() -> FactSheet {
        use FactKind::{Date, Integer, Money, Percentage, Text, Vin};
        use FactOrigin::{Printed, Signed};
        let missing = Fact {
            status: FactStatus::Missing,
            value: None,
            origin: None,
            sources: Vec::new(),
            ..fact("mileage", Integer, "", Printed)
        };
        FactSheet {
            fact_map: FactMapIdentity {
                fact_map_id: "fmap".into(),
                version: 1,
                sha256: "0".into(),
            },
            component: crate::component::ComponentIdentity {
                name: "placement".into(),
                version: "1.0.0".into(),
                sha256: "0".into(),
            },
            document_sha256: "0".into(),
            facts: vec![
                fact("contract_number", Text, "A-1", Signed),
                fact("vin", Vin, "1M8GDM9AXKP042788", Printed),
                fact("amount_financed", Money, "21500.00", Printed),
                fact("apr", Percentage, "7.9", Printed),
                fact("contract_date", Date, "2026-11-21", Signed),
                fact("make", Text, "Ford", Printed),
                missing,
                fact("state", Text, "TX", FactOrigin::Declared),
            ],
        }
    }

    fn map() -> TapeMap {
        let columns = [
            "contract_number",
            "vin",
            "amount_financed",
            "apr",
            "contract_date",
            "make",
            "mileage",
            "state",
        ];
        let columns: Vec<serde_json::Value> = columns
            .iter()
            .map(|name| serde_json::json!({ "column": name, "fact": name }))
            .collect();
        TapeMap::parse(&serde_json::json!({ "columns": columns }).to_string()).unwrap()
    }

    fn row(cells: [&str; 8]) -> TapeRow {
        let cells = cells.map(|cell| (!cell.is_empty()).then(|| cell.to_owned()));
        TapeRow {
            line: 2,
            cells: cells.into(),
        }
    }

    const SAME: [&str; 8] = [
        "A-1",
        "1m8gdm9axkp042788",
        "21,500.00",
        "7.90",
        "11/21/2026",
        "Ford",
        "",
        "",
    ];

    fn cells_of(cells: [&str; 8]) -> String {
        compare(&row(cells), &sheet(), &map()).cells
    }

    fn changed(index: usize, cell: &'static str) -> char {
        let mut cells = SAME;
        cells[index] = cell;
        cells_of(cells).chars().nth(index).unwrap()
    }

    #[test]
    fn equal_values_in_other_forms_are_no_difference() {
        let compared = compare(&row(SAME), &sheet(), &map());
        assert_eq!(compared.cells, "eeeeeeee");
        assert!(compared.findings.is_empty());
        assert!(compared.is_clean());
    }

    #[test]
    fn tolerances_end_exactly() {
        assert_eq!(changed(2, "21501.00"), 'w');
        assert_eq!(changed(2, "21499"), 'w');
        assert_eq!(changed(2, "21501.01"), 'd');
        assert_eq!(changed(3, "7.91"), 'w');
        assert_eq!(changed(3, "7.911"), 'd');
        assert_eq!(changed(4, "2026-11-22"), 'w');
        assert_eq!(changed(4, "2026-11-23"), 'd');
        assert_eq!(changed(4, "2027-11-21"), 'd');
        assert_eq!(changed(5, "FORD"), 'w');
        assert_eq!(changed(5, "Fort"), 'd');

        // Exact: the vehicle and the contract.
        assert_eq!(changed(0, "a-1"), 'd');
        assert_eq!(changed(1, "1M8GDM9AXKP042789"), 'd');
    }

    #[test]
    fn a_value_on_one_side_only_is_named() {
        assert_eq!(changed(2, ""), 't');
        assert_eq!(changed(6, "12"), 'c');
        assert_eq!(changed(2, "NaN"), 'u');
        assert_eq!(changed(2, "=1+1"), 'u');
        assert_eq!(changed(2, "CAD 21500.00"), 'd');

        // What only the originator says is no word of the contract.
        assert_eq!(changed(7, "TX"), 'c');
    }

    #[test]
    fn a_difference_names_both_values_and_the_place() {
        let mut cells = SAME;
        cells[2] = "22,500.00";
        let compared = compare(&row(cells), &sheet(), &map());
        let [finding] = &compared.findings[..] else {
            panic!("{compared:?}");
        };
        assert_eq!(finding.tape.as_deref(), Some("22,500.00"));
        assert_eq!(finding.contract.as_deref(), Some("21500.00"));
        assert_eq!(finding.place.as_ref().unwrap().page, 2);
        assert_eq!(finding.severity, super::super::map::Severity::Stop);
        assert!(!compared.is_clean());
    }

    #[test]
    fn pages_without_text_and_contradictions_are_reported() {
        let mut sheet = sheet();
        sheet.facts[2].status = FactStatus::Unreadable;
        sheet.facts[2].value = None;
        sheet.facts[3].status = FactStatus::Conflicting;
        let mut other = sheet.facts[3].sources[0].clone();
        other.value = Some("8.1".into());
        sheet.facts[3].sources.push(other);

        let compared = compare(&row(SAME), &sheet, &map());
        assert_eq!(compared.cells, "eeueeeee");
        let codes: Vec<FindingCode> = compared
            .findings
            .iter()
            .map(|finding| finding.code)
            .collect();
        assert_eq!(codes, [FindingCode::Unreadable, FindingCode::Conflicting]);
        assert!(
            compared.findings[1]
                .detail
                .as_ref()
                .unwrap()
                .contains("8.1")
        );
    }

    #[test]
    fn records_with_one_vin_are_told_apart_by_the_date() {
        let (first, mut second) = (sheet(), sheet());
        second.facts[4].value = Some("2028-01-05".into());
        let both = [(1, &first), (2, &second)];
        let dated = |date: &'static str| {
            let mut cells = SAME;
            cells[4] = date;
            of_date(both.into_iter(), &row(cells), &map())
        };
        assert_eq!(dated("2028-01-04"), Some(2));
        assert_eq!(dated("2026-11-21"), Some(1));
        assert_eq!(dated("2027-01-01"), None);
        let twice = [(1, &first), (2, &first)];
        assert_eq!(of_date(twice.into_iter(), &row(SAME), &map()), None);
    }

    #[test]
    fn a_comparison_is_used_again_only_for_the_same_row_facts_and_map() {
        let base = reuse_hash(&row(SAME), "facts", "map");
        assert_eq!(
            reuse_hash(
                &TapeRow {
                    line: 99,
                    ..row(SAME)
                },
                "facts",
                "map"
            ),
            base
        );
        assert_ne!(reuse_hash(&row(SAME), "other", "map"), base);
        assert_ne!(reuse_hash(&row(SAME), "facts", "other"), base);
        let moved = |one: &str, next: &str| TapeRow {
            line: 1,
            cells: vec![Some(one.into()), Some(next.into())],
        };
        assert_ne!(
            reuse_hash(&moved("ab", "c"), "", ""),
            reuse_hash(&moved("a", "bc"), "", "")
        );
    }
}
