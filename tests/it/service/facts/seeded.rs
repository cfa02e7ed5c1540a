//! Tapes of made contracts: five ways of writing values, and errors of the usual kinds at known places.

use std::collections::BTreeMap;

use holdfast::domain::facts::FactKind;
use holdfast::domain::tape::{CellOutcome, ExactDecimal, FindingCode, TapeMap};
use jiff::ToSpan as _;
use jiff::civil::Date;
use serde_json::json;

use super::contracts::{FACTS, MadeContract, grouped};

/// Ways of writing the values of a tape.
pub const FORMS: usize = 5;
/// Form with a decimal comma.
const COMMA: usize = 2;
/// Place of the VIN among the facts.
const VIN: usize = 1;
/// Part of a tape's rows that have each kind of an error of a whole row.
const ROWS_OF_KIND: usize = 20;
/// Characters of a made VIN before its serial number. Errors are there, so that no wrong number is that of another one.
const VIN_BEGINNING: u64 = 11;
/// Characters of a VIN (49 CFR 565.13).
const VIN_CHARACTERS: &[u8] = b"0123456789ABCDEFGHJKLMNPRSTUVWXYZ";

/// Numbers that are the same in each run (Marsaglia, xorshift64).
pub struct SeededNumbers(u64);

impl SeededNumbers {
    /// Begins at a number other than 0.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn choice<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// An error in one cell.
#[derive(Clone, Debug)]
pub struct CellError {
    /// Kind in words, as accountants report it.
    pub kind: &'static str,
    pub expected: CellOutcome,
    cell: WrongCell,
}

/// Content of a wrong cell.
#[derive(Clone, Debug)]
enum WrongCell {
    /// A value, which the form of the tape writes.
    Value(String),
    /// The cell as it is.
    Text(String),
}

/// An error of a whole row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The other cells are those of another loan.
    SwappedRows,
    Repeated,
    VinOfAnotherLoan,
    UnknownContract,
    Damaged,
}

/// Kind of the error of a contract that no row has.
pub const LEFT_OUT: &str = "row left out";

impl RowError {
    /// Returns the kind in words.
    pub fn kind(self) -> &'static str {
        match self {
            Self::SwappedRows => "values of two rows exchanged",
            Self::Repeated => "row listed twice",
            Self::VinOfAnotherLoan => "VIN of another loan",
            Self::UnknownContract => "contract that does not exist",
            Self::Damaged => "row with missing cells",
        }
    }

    /// Whether differences in this column are part of the error.
    pub fn explains(self, fact: usize) -> bool {
        match self {
            Self::SwappedRows => fact > VIN,
            Self::VinOfAnotherLoan => fact == VIN,
            Self::Repeated | Self::UnknownContract | Self::Damaged => false,
        }
    }
}

/// A row of a tape, and what a check has to find in it.
pub struct PlannedRow {
    /// Contract with its number.
    pub contract: Option<usize>,
    pub error: Option<RowError>,
    /// Findings about the whole row, because of this error or of one in another row.
    pub expected: Vec<FindingCode>,
    text: String,
}

/// A tape with errors at known places.
pub struct SeededTape {
    pub form: usize,
    pub rows: Vec<PlannedRow>,
    /// Contracts that it is about.
    pub contracts: Vec<usize>,
    /// Those of them that no row lists.
    pub left_out: Vec<usize>,
    /// Errors by contract and fact.
    pub cells: BTreeMap<(usize, usize), CellError>,
}

impl SeededTape {
    /// Writes a tape about every fifth contract, with `errors` errors.
    pub fn new(
        form: usize,
        contracts: &[MadeContract],
        errors: usize,
        numbers: &mut SeededNumbers,
    ) -> Self {
        // Each form has contracts of all layouts.
        let own: Vec<usize> = (0..contracts.len())
            .filter(|number| number / FORMS % FORMS == form)
            .collect();
        let of_kind = (own.len() / ROWS_OF_KIND).max(1);

        // No contract has two errors of rows, so that each finding belongs to one.
        let mut free = own.clone();
        let mut take = |count: usize| -> Vec<usize> {
            let draw = |_| {
                let at = numbers.below(free.len() as u64) as usize;
                free.swap_remove(at)
            };
            (0..count).map(draw).collect()
        };
        let (swapped, listed_twice) = (take(2 * of_kind), take(of_kind));
        let (borrowers, owners) = (take(of_kind), take(of_kind));
        let left_out = take(of_kind);
        // A fifth stays clean.
        take(own.len() / 5);

        let mut tape = Self {
            form,
            rows: Vec::new(),
            contracts: own,
            left_out,
            cells: BTreeMap::new(),
        };
        let of_rows = swapped.len() + 5 * of_kind;
        tape.seed_cells(contracts, &free, errors.saturating_sub(of_rows), numbers);

        let mut partner: BTreeMap<usize, usize> = BTreeMap::new();
        for pair in swapped.chunks_exact(2) {
            partner.extend([(pair[0], pair[1]), (pair[1], pair[0])]);
        }
        let vin_of: BTreeMap<usize, usize> = borrowers.into_iter().zip(owners.clone()).collect();
        for contract in tape.contracts.clone() {
            if !tape.left_out.contains(&contract) {
                let row = tape.row(
                    contracts,
                    contract,
                    partner.get(&contract),
                    vin_of.get(&contract),
                );
                tape.rows.push(row);
            }
        }

        // The other row of a pair has the finding, too.
        for row in &mut tape.rows {
            if row
                .contract
                .is_some_and(|contract| owners.contains(&contract))
            {
                row.expected.push(FindingCode::DuplicateVin);
            }
            if row
                .contract
                .is_some_and(|contract| listed_twice.contains(&contract))
            {
                row.expected.extend(SHARED_KEYS);
            }
        }

        for contract in listed_twice {
            let mut row = tape.row(contracts, contract, None, None);
            row.error = Some(RowError::Repeated);
            row.expected.extend(SHARED_KEYS);
            row.expected.push(FindingCode::DuplicateRecord);
            tape.rows.push(row);
        }
        for number in 0..of_kind {
            tape.rows.push(unknown(form, number));
            tape.rows.push(damaged(form, number));
        }
        tape
    }

    /// Seeds errors in cells. The rows of the contracts `free` have no other error.
    fn seed_cells(
        &mut self,
        contracts: &[MadeContract],
        free: &[usize],
        errors: usize,
        numbers: &mut SeededNumbers,
    ) {
        // Not in the contract number, which finds the record.
        assert!(
            errors <= free.len() * (FACTS.len() - 1),
            "too few contracts"
        );
        while self.cells.len() < errors {
            let contract = free[numbers.below(free.len() as u64) as usize];
            let fact = 1 + numbers.below(FACTS.len() as u64 - 1) as usize;
            if !self.cells.contains_key(&(contract, fact)) {
                let (name, kind) = FACTS[fact];
                let error = match contracts[contract].value(name) {
                    Some(value) => wrong(self.form, kind, &value, numbers),
                    None => CellError {
                        kind: "value that the contract does not have",
                        expected: CellOutcome::MissingInContract,
                        cell: WrongCell::Value("500.00".into()),
                    },
                };
                self.cells.insert((contract, fact), error);
            }
        }
    }

    fn row(
        &self,
        contracts: &[MadeContract],
        contract: usize,
        partner: Option<&usize>,
        vin_of: Option<&usize>,
    ) -> PlannedRow {
        let cells = (0..FACTS.len()).map(|fact| {
            let (name, kind) = FACTS[fact];
            let source = match fact {
                0 => contract,
                VIN => *vin_of.unwrap_or(&contract),
                _ => *partner.unwrap_or(&contract),
            };
            let error = self.cells.get(&(contract, fact)).map(|error| &error.cell);
            let value = match error {
                Some(WrongCell::Text(text)) => return text.clone(),
                Some(WrongCell::Value(value)) => Some(value.clone()),
                None => contracts[source].value(name),
            };
            // The contract number is a key and exact in every form.
            match value {
                Some(value) if fact == 0 => value,
                Some(value) => written(self.form, kind, &value),
                None => String::new(),
            }
        });

        let error = match (partner, vin_of) {
            (Some(_), _) => Some(RowError::SwappedRows),
            (None, Some(_)) => Some(RowError::VinOfAnotherLoan),
            (None, None) => None,
        };
        let is_shared = error == Some(RowError::VinOfAnotherLoan);
        PlannedRow {
            contract: Some(contract),
            error,
            expected: is_shared
                .then_some(FindingCode::DuplicateVin)
                .into_iter()
                .collect(),
            text: line(self.form, cells),
        }
    }

    /// Returns the file.
    pub fn csv(&self) -> String {
        let header = line(self.form, FACTS.iter().map(|(name, _)| (*name).to_owned()));
        let rows = self.rows.iter().map(|row| row.text.as_str());
        std::iter::once(header.as_str()).chain(rows).collect()
    }

    /// Returns the map of the form.
    pub fn map(&self) -> TapeMap {
        let column = |name: &str| json!({ "column": name, "fact": name, "fraction": self.form == 3 && name == "apr" });
        let columns: Vec<_> = FACTS.iter().map(|(name, _)| column(name)).collect();
        let mut map = json!({ "columns": columns, "keys": ["contract_number", "vin_and_date"] });
        match self.form {
            1 => map["date_order"] = "mdy".into(),
            COMMA => {
                map["date_order"] = "dmy".into();
                map["decimal"] = ",".into();
            }
            _ => {}
        }
        TapeMap::parse(&map.to_string()).unwrap()
    }
}

/// Findings of two rows with the same keys.
const SHARED_KEYS: [FindingCode; 2] = [
    FindingCode::DuplicateVin,
    FindingCode::DuplicateContractNumber,
];

/// Returns a row about a contract that no record has.
fn unknown(form: usize, number: usize) -> PlannedRow {
    let cells = FACTS.iter().map(|(name, _)| match *name {
        "contract_number" => format!("X-{number:06}"),
        "vin" => format!("5YJSA1E26HF{number:06}"),
        _ => String::new(),
    });
    PlannedRow {
        contract: None,
        error: Some(RowError::UnknownContract),
        expected: vec![FindingCode::Unmatched],
        text: line(form, cells),
    }
}

/// Returns a row with fewer cells than the header.
fn damaged(form: usize, number: usize) -> PlannedRow {
    let cells = [format!("Y-{number:06}"), String::new()];
    PlannedRow {
        contract: None,
        error: Some(RowError::Damaged),
        expected: vec![FindingCode::UnreadableRow],
        text: line(form, cells),
    }
}

fn line(form: usize, cells: impl IntoIterator<Item = String>) -> String {
    let separator = if form == COMMA { ";" } else { "," };
    let cells = cells.into_iter().map(|cell| format!("\"{cell}\""));
    let cells: Vec<String> = cells.collect();
    cells.join(separator) + "\n"
}

/// Writes a value in the way of a form.
fn written(form: usize, kind: FactKind, value: &str) -> String {
    let parts = || -> Vec<&str> { value.split('-').collect() };

    match (form, kind) {
        // Amounts, rates and counts.
        (1, FactKind::Money) => format!("${}", grouped(value, ",")),
        (COMMA, FactKind::Money) => {
            let points = grouped(value, ".");
            let (whole, places) = points.rsplit_once('.').unwrap();
            format!("{whole},{places}")
        }
        (COMMA, FactKind::Percentage) => value.replace('.', ","),
        (3, FactKind::Money) => format!("USD {value}"),
        (3, FactKind::Percentage) => {
            let points = ExactDecimal::parse(value).unwrap();
            points.shifted(-2).unwrap().written(0)
        }
        (4, FactKind::Integer) => format!("{value}.00"),

        (1, FactKind::Date) => {
            let parts = parts();
            format!("{}/{}/{}", parts[1], parts[2], parts[0])
        }
        (COMMA, FactKind::Date) => {
            let parts = parts();
            format!("{}.{}.{}", parts[2], parts[1], parts[0])
        }
        (3, FactKind::Date) => value.replace('-', ""),
        (4, FactKind::Date) => format!("{value} 00:00:00"),

        (4, FactKind::Text) => value.to_uppercase(),
        (1, FactKind::Vin) => value.to_lowercase(),
        _ => value.to_owned(),
    }
}

/// Changes a value to a wrong one, by the kinds of errors that accountants report.
fn wrong(form: usize, kind: FactKind, value: &str, numbers: &mut SeededNumbers) -> CellError {
    if numbers.below(8) == 0 {
        return CellError {
            kind: "empty cell",
            expected: CellOutcome::MissingInTape,
            cell: WrongCell::Text(String::new()),
        };
    }
    if let Some(text) = unreadable(kind, numbers) {
        return CellError {
            kind: "cell that is no value",
            expected: CellOutcome::Unreadable,
            cell: WrongCell::Text(text.to_owned()),
        };
    }

    let (kind, cell) = match kind {
        FactKind::Money => wrong_amount(form, value, numbers),
        FactKind::Percentage => wrong_rate(value, numbers),
        FactKind::Date => wrong_date(value, numbers),
        FactKind::Integer => {
            let more = value.parse::<u64>().unwrap() + 12;
            (
                "another number of payments",
                WrongCell::Value(more.to_string()),
            )
        }
        FactKind::Vin => wrong_vin(value, numbers),
        FactKind::Text | FactKind::Boolean => {
            ("another text", WrongCell::Value(format!("{value} II")))
        }
    };
    CellError {
        kind,
        expected: CellOutcome::Different,
        cell,
    }
}

/// Returns in one of eight cases a text that is no number, amount or date.
fn unreadable(kind: FactKind, numbers: &mut SeededNumbers) -> Option<&'static str> {
    let texts: &[&str] = match kind {
        FactKind::Money => &["NaN", "=A1*2", "1e5", "12.34.56"],
        FactKind::Percentage | FactKind::Integer => &["NaN", "=A1*2"],
        FactKind::Date => &["2026-02-30", "soon", "=A1*2"],
        FactKind::Text | FactKind::Vin | FactKind::Boolean => return None,
    };
    (numbers.below(8) == 0).then(|| numbers.choice(texts))
}

/// Returns the sum of two positive numbers.
fn sum(value: &str, more: &str) -> String {
    let one = ExactDecimal::parse(value).unwrap();
    // The distance to a negative number is the sum.
    let negative = ExactDecimal::parse(&format!("-{more}")).unwrap();
    one.distance(negative).written(2)
}

fn wrong_amount(
    form: usize,
    value: &str,
    numbers: &mut SeededNumbers,
) -> (&'static str, WrongCell) {
    // Without the signs that a form adds.
    let plain = match form {
        COMMA => written(COMMA, FactKind::Money, value),
        _ => value.to_owned(),
    };

    match numbers.below(6) {
        0 => (
            "amount just above the tolerance",
            WrongCell::Value(sum(value, "1.01")),
        ),
        1 => match exchanged_digits(value) {
            Some(value) => ("two digits of an amount exchanged", WrongCell::Value(value)),
            None => ("another amount", WrongCell::Value(sum(value, "1000"))),
        },
        2 => {
            let tenfold = ExactDecimal::parse(value).unwrap().shifted(1).unwrap();
            (
                "decimal point in another place",
                WrongCell::Value(tenfold.written(2)),
            )
        }
        3 => ("negative amount", WrongCell::Text(format!("({plain})"))),
        4 => (
            "amount in another currency",
            WrongCell::Text(format!("CAD {plain}")),
        ),
        _ => ("another amount", WrongCell::Value(sum(value, "1000"))),
    }
}

/// Exchanges the first two neighbouring digits before the point that differ.
fn exchanged_digits(value: &str) -> Option<String> {
    let mut digits: Vec<u8> = value.bytes().collect();
    let point = value.find('.')?;
    let is_usable = |at: &usize| {
        let (left, right) = (digits[*at], digits[at + 1]);
        left != right && (*at > 0 || right != b'0')
    };
    let at = (0..point - 1).find(is_usable)?;
    digits.swap(at, at + 1);
    String::from_utf8(digits).ok()
}

fn wrong_rate(value: &str, numbers: &mut SeededNumbers) -> (&'static str, WrongCell) {
    if numbers.below(2) == 0 {
        let text = sum(value, "0.02");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        (
            "rate just above the tolerance",
            WrongCell::Value(text.to_owned()),
        )
    } else {
        let hundredth = ExactDecimal::parse(value).unwrap().shifted(-2).unwrap();
        (
            "rate as a fraction by mistake",
            WrongCell::Value(hundredth.written(0)),
        )
    }
}

fn wrong_date(value: &str, numbers: &mut SeededNumbers) -> (&'static str, WrongCell) {
    let date: Date = value.parse().unwrap();
    let (kind, later) = if numbers.below(3) == 0 {
        ("another year", date.checked_add(1.year()))
    } else {
        let days = 2 + numbers.below(40) as i64;
        ("another day", date.checked_add(days.days()))
    };
    (kind, WrongCell::Value(later.unwrap().to_string()))
}

fn wrong_vin(value: &str, numbers: &mut SeededNumbers) -> (&'static str, WrongCell) {
    let mut text: Vec<u8> = value.bytes().collect();
    let at = numbers.below(VIN_BEGINNING) as usize;
    let (kind, next) = ("one character of a VIN exchanged with the next", at + 1);
    if numbers.below(2) == 0 && next < VIN_BEGINNING as usize && text[at] != text[next] {
        text.swap(at, next);
        return (kind, WrongCell::Value(String::from_utf8(text).unwrap()));
    }

    let others: Vec<u8> = VIN_CHARACTERS
        .iter()
        .copied()
        .filter(|one| *one != text[at])
        .collect();
    text[at] = others[numbers.below(others.len() as u64) as usize];
    (
        "one character of a VIN mistyped",
        WrongCell::Value(String::from_utf8(text).unwrap()),
    )
}
