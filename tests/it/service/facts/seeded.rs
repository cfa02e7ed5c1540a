//! Measures the check on made contracts: five layouts of a tape, and errors of the usual kinds at known places.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Cursor;

use serde_json::json;

use super::*;
use crate::component::ComponentIdentity;
use crate::facts::{
    Fact, FactKind, FactMapIdentity, FactOrigin, FactPlace, FactSheet, FactSource, FactStatus,
};
use crate::id::{EnvelopeId, OrgId};

const CONTRACTS: usize = 2_000;
const ERRORS: usize = 10_000;
const FACTS: [(&str, FactKind); 12] = [
    ("contract_number", FactKind::Text),
    ("vin", FactKind::Vin),
    ("contract_date", FactKind::Date),
    ("amount_financed", FactKind::Money),
    ("finance_charge", FactKind::Money),
    ("total_of_payments", FactKind::Money),
    ("apr", FactKind::Percentage),
    ("number_of_payments", FactKind::Integer),
    ("payment_amount", FactKind::Money),
    ("first_payment_date", FactKind::Date),
    ("make", FactKind::Text),
    ("down_payment", FactKind::Money),
];

/// SeededNumbers that are the same in each run (Marsaglia, xorshift64).
struct SeededNumbers(u64);

impl SeededNumbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn cents(number: u64) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

fn date(numbers: &mut SeededNumbers) -> String {
    let (month, day) = (1 + numbers.below(12), 1 + numbers.below(28));
    format!("{}-{month:02}-{day:02}", 2024 + numbers.below(3))
}

fn value(name: &str, contract: usize, numbers: &mut SeededNumbers) -> String {
    match name {
        "contract_number" => format!("C-{contract:06}"),
        // Without a check digit: the comparison does not need one.
        "vin" => format!("1HGCM82633A{contract:06}"),
        "contract_date" | "first_payment_date" => date(numbers),
        "apr" => {
            let text = cents(100 + numbers.below(2400));
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        "number_of_payments" => (12 * (2 + numbers.below(6))).to_string(),
        "make" => {
            ["Ford", "Toyota", "Škoda", "Mercedes-Benz"][numbers.below(4) as usize].to_owned()
        }
        _ => cents(10_000 + numbers.below(9_000_000)),
    }
}

fn sheet(contract: usize, numbers: &mut SeededNumbers) -> FactSheet {
    let facts = FACTS.iter().map(|(name, kind)| {
        let value = Some(value(name, contract, numbers));
        let place = FactPlace {
            page: 1,
            x: 0.1,
            y: 0.1,
            w: 0.2,
            h: 0.02,
        };
        let source = FactSource {
            origin: FactOrigin::Printed,
            value: value.clone(),
            words: String::new(),
            problem: None,
            place: Some(place),
            field: None,
            role: None,
        };
        Fact {
            name: (*name).into(),
            kind: *kind,
            currency: None,
            status: FactStatus::Known,
            value,
            origin: Some(FactOrigin::Printed),
            sources: vec![source],
        }
    });

    FactSheet {
        fact_map: FactMapIdentity {
            fact_map_id: String::new(),
            version: 1,
            sha256: String::new(),
        },
        component: ComponentIdentity {
            name: String::new(),
            version: String::new(),
            sha256: String::new(),
        },
        document_sha256: String::new(),
        facts: facts.collect(),
    }
}

/// A layout of the tape: how its writer writes values.
fn written(layout: usize, kind: FactKind, value: &str) -> String {
    let grouped = |separator: &str| {
        let (whole, places) = value.split_once('.').unwrap();
        let mut groups: Vec<&str> = whole
            .as_bytes()
            .rchunks(3)
            .map(|group| std::str::from_utf8(group).unwrap())
            .collect();
        groups.reverse();
        (groups.join(separator), places.to_owned())
    };

    let parts = || -> Vec<String> { value.split('-').map(str::to_owned).collect() };
    match (layout, kind) {
        (1, FactKind::Money) => format!("${}", {
            let (whole, places) = grouped(",");
            format!("{whole}.{places}")
        }),
        (2, FactKind::Money) => {
            let (whole, places) = grouped(".");
            format!("{whole},{places}")
        }
        (2, FactKind::Percentage) => value.replace('.', ","),
        (3, FactKind::Money) => format!("USD {value}"),
        (3, FactKind::Percentage) => {
            let points = ExactDecimal::parse(value).unwrap();
            points.shifted(-2).unwrap().to_string()
        }
        (1, FactKind::Date) => {
            let parts = parts();
            format!("{}/{}/{}", parts[1], parts[2], parts[0])
        }
        (2, FactKind::Date) => {
            let parts = parts();
            format!("{}.{}.{}", parts[2], parts[1], parts[0])
        }
        (3, FactKind::Date) => value.replace('-', ""),
        (4, FactKind::Date) => format!("{value} 00:00:00"),
        (4, FactKind::Text) => value.to_uppercase(),
        (1, FactKind::Vin) => value.to_lowercase(),
        (4, FactKind::Integer) => format!("{value}.00"),
        _ => value.to_owned(),
    }
}

fn map(layout: usize) -> TapeMap {
    let columns = FACTS.iter().map(|(name, _)| json!({ "column": name, "fact": name, "fraction": layout == 3 && *name == "apr" }));
    let mut map = json!({ "columns": columns.collect::<Vec<_>>(), "keys": ["contract_number", "vin_and_date"] });
    match layout {
        1 => map["date_order"] = "mdy".into(),
        2 => {
            map["date_order"] = "dmy".into();
            map["decimal"] = ",".into();
        }
        _ => {}
    }
    TapeMap::parse(&map.to_string()).unwrap()
}

/// Changes a value to a wrong one, by the kinds of errors that accountants report.
fn wrong(kind: FactKind, value: &str, numbers: &mut SeededNumbers) -> (&'static str, String) {
    let moved = |by: &str| {
        let (one, by) = (
            ExactDecimal::parse(value).unwrap(),
            ExactDecimal::parse(by).unwrap(),
        );
        // The distance to a negative number is the sum.
        let negative = ExactDecimal::parse(&format!("-{by}")).unwrap();
        one.distance(negative).written(2)
    };

    match kind {
        FactKind::Money if numbers.below(2) == 0 => {
            ("amount just above the tolerance", moved("1.01"))
        }
        FactKind::Money => ("another amount", moved("1000")),
        FactKind::Percentage => {
            let text = moved("0.02");
            (
                "rate just above the tolerance",
                text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            )
        }
        FactKind::Date => {
            let date: jiff::civil::Date = value.parse().unwrap();
            let days = 2 + numbers.below(40) as i32;
            let later = date.checked_add(jiff::ToSpan::days(days)).unwrap();
            ("another day", later.to_string())
        }
        FactKind::Integer => (
            "another number of payments",
            (value.parse::<u64>().unwrap() + 12).to_string(),
        ),
        FactKind::Vin => {
            // Two neighbouring digits in the wrong order, or one of them mistyped.
            let mut text: Vec<u8> = value.bytes().collect();
            let last = text.len() - 1;
            text[last] = if text[last] == b'9' {
                b'0'
            } else {
                text[last] + 1
            };
            ("mistyped VIN", String::from_utf8(text).unwrap())
        }
        FactKind::Text | FactKind::Boolean => ("another text", format!("{value} X")),
    }
}

#[test]
fn seeded_errors_are_found_and_clean_rows_have_none() {
    let mut numbers = SeededNumbers(0x9e37_79b9_7f4a_7c15);
    let org = OrgId::new();
    let mut sheets: Vec<(EnvelopeId, FactSheet)> = (0..CONTRACTS)
        .map(|contract| (EnvelopeId::new(), sheet(contract, &mut numbers)))
        .collect();
    sheets.sort_by(|one, other| one.0.cmp(&other.0));
    let of_record: HashMap<u32, &FactSheet> = (0..)
        .zip(&sheets)
        .map(|(number, (_, sheet))| (number, sheet))
        .collect();

    // Known errors, as contract, fact and kind. Every fifth contract stays clean.
    let mut seeded: BTreeMap<(usize, usize), &'static str> = BTreeMap::new();
    let (mut found, mut false_differences, mut rows) = (0, Vec::new(), 0);
    let mut changed: BTreeMap<(usize, usize), String> = BTreeMap::new();
    while seeded.len() < ERRORS {
        let (contract, fact) = (
            numbers.below(CONTRACTS as u64) as usize,
            numbers.below(11) as usize + 1,
        );
        if contract / 5 % 5 == 0 || seeded.contains_key(&(contract, fact)) {
            continue;
        }
        let value = sheets[contract].1.facts[fact].value.clone().unwrap();
        let (kind, value) = wrong(FACTS[fact].1, &value, &mut numbers);
        seeded.insert((contract, fact), kind);
        changed.insert((contract, fact), value);
    }

    let mut table: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut exceptions: BTreeSet<(usize, usize)> = BTreeSet::new();
    for layout in 0..5 {
        let separator = if layout == 2 { ';' } else { ',' };
        let mut text = FACTS.map(|(name, _)| name).join(&separator.to_string());
        text.push('\n');
        let of_layout: Vec<usize> = (0..CONTRACTS)
            .filter(|contract| contract % 5 == layout)
            .collect();
        for contract in &of_layout {
            let cells = FACTS.iter().enumerate().map(|(fact, (_, kind))| {
                let own = sheets[*contract].1.facts[fact].value.clone().unwrap();
                let value = changed.get(&(*contract, fact)).cloned().unwrap_or(own);
                // The contract number is a key and exact, whatever the layout.
                let cell = if fact == 0 {
                    value
                } else {
                    written(layout, *kind, &value)
                };
                format!("\"{cell}\"")
            });
            text += &cells.collect::<Vec<_>>().join(&separator.to_string());
            text.push('\n');
        }

        let map = map(layout);
        let mut index = RecordIndex::default();
        for (envelope, sheet) in &sheets {
            let record = index.add(envelope, &org).unwrap();
            let value = |name: &str| sheet.get(name).unwrap().value.clone().unwrap();
            index.add_key(record, TapeKey::ContractNumber, &value("contract_number"));
            index.add_key(record, TapeKey::VinAndDate, &value("vin"));
        }
        let done = RowsChecked::none(&map);
        let mut check = TapeCheck::new(map.clone(), index, KeyScan::default().finish(), done);
        let mut reader =
            TapeReader::open(Cursor::new(text.into_bytes()), TapeFormat::Csv, &map).unwrap();
        let mut contracts = of_layout.iter();
        while let Some(row) = reader.next_row().unwrap() {
            let (row, contract) = (row.unwrap(), contracts.next().unwrap());
            let case = check.compared(&row, &check.index.look_up(&row, &map), |record| {
                of_record.get(&record).copied()
            });
            let result = check.add(row.line, case);
            rows += 1;
            let own = &sheets[*contract].0;
            assert_eq!(result.envelope_id.as_ref(), Some(own), "{result:?}");

            for (fact, outcome) in outcomes(&result.cells).unwrap().into_iter().enumerate() {
                let error = seeded.get(&(*contract, fact));
                let is_found = outcome.is_exception();
                if let Some(kind) = error {
                    let of_kind = table.entry(kind).or_default();
                    of_kind.0 += 1;
                    of_kind.1 += u64::from(is_found);
                    found += usize::from(is_found && exceptions.insert((*contract, fact)));
                } else if is_found {
                    false_differences.push((
                        layout,
                        *contract,
                        FACTS[fact].0,
                        result.findings.clone(),
                    ));
                }
            }
        }
    }

    for (kind, (made, found)) in &table {
        println!("| {kind} | {made} | {found} |");
    }
    assert_eq!(rows, CONTRACTS);
    assert!(
        false_differences.is_empty(),
        "{} {:?}",
        false_differences.len(),
        &false_differences[..false_differences.len().min(3)]
    );
    assert!(found * 1000 >= ERRORS * 995, "{found} of {ERRORS}");
}
