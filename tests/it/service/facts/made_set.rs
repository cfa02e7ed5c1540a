//! Facts of made contracts and of public forms, read by the component in its sandbox. Tapes with errors at known places
//! are compared with them.

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast::components::{ComponentError, ComponentRegistry, Placement};
use holdfast::domain::fact_map::{FactInputs, FactMapDocument, FactWords};
use holdfast::domain::facts::{FactMapIdentity, FactSheet, FactStatus};
use holdfast::domain::hash::sha256;
use holdfast::domain::id::{EnvelopeId, OrgId};
use holdfast::domain::priority::PriorityClass;
use holdfast::domain::tape::{
    FindingCode, KeyScan, RecordIndex, RowCase, RowResult, RowsChecked, TapeCheck, TapeFormat,
    TapeKey, TapeMap, TapeReader, outcomes,
};

use super::contracts::{ContractLayout, FACTS, MadeContract, starter};
use super::seeded::{FORMS, LEFT_OUT, PlannedRow, SeededNumbers, SeededTape};
use crate::support::pdf;

/// Contracts of a short run; each has five errors on average. They need a few seconds.
const CONTRACTS: usize = 75;

/// The built-in component that reads documents.
struct SandboxedReader {
    reader: Placement,
    _components: ComponentRegistry,
    _cache: tempfile::TempDir,
}

impl SandboxedReader {
    fn new() -> Self {
        let cache = tempfile::tempdir().unwrap();
        let components = ComponentRegistry::with_defaults(cache.path().into(), [0; 32]).unwrap();
        components.load_documents();
        Self {
            reader: components.embedded_placement(&OrgId::new(), PriorityClass::Request),
            _components: components,
            _cache: cache,
        }
    }

    async fn facts(
        &self,
        map: &Arc<FactMapDocument>,
        pdf: Vec<u8>,
    ) -> Result<FactSheet, ComponentError> {
        let document_sha256 = sha256(&pdf);
        let words: Arc<[FactWords]> = Arc::new([]);
        let answers = self.reader.facts(pdf.into(), map.clone(), words).await?;
        let answers = answers.expect("the built-in component reads facts");
        let facts = map.facts(&FactInputs::default(), &answers);

        Ok(FactSheet {
            fact_map: FactMapIdentity {
                fact_map_id: String::new(),
                version: 1,
                sha256: map.sha256(),
            },
            component: self.reader.identity()?,
            document_sha256,
            facts: facts.expect("an answer for each fact"),
        })
    }
}

/// Errors that were made and found, and findings without an error.
#[derive(Default)]
struct ConfusionTable {
    /// Errors made and found, by kind.
    kinds: BTreeMap<&'static str, (usize, usize)>,
    clean_cells: usize,
    false_findings: Vec<String>,
}

impl ConfusionTable {
    fn note(&mut self, kind: &'static str, is_found: bool) {
        let (made, found) = self.kinds.entry(kind).or_default();
        *made += 1;
        *found += usize::from(is_found);
    }

    /// Compares the result of a row with the errors that were made in it.
    fn judge(&mut self, tape: &SeededTape, plan: &PlannedRow, result: &RowResult) {
        let of_row = result
            .findings
            .iter()
            .filter(|finding| finding.column.is_none());
        let of_row: Vec<FindingCode> = of_row.map(|finding| finding.code).collect();
        if let Some(error) = plan.error {
            let needs_difference = (0..FACTS.len()).any(|fact| error.explains(fact));
            let mut findings = result.findings.iter();
            let differs = findings.any(|finding| finding.code == FindingCode::Different);
            let has_all = plan.expected.iter().all(|code| of_row.contains(code));
            self.note(error.kind(), has_all && (differs || !needs_difference));
        }
        let unexpected = of_row.iter().filter(|code| !plan.expected.contains(code));
        let in_line = |code: &FindingCode| format!("{code} in line {}", result.line);
        self.false_findings.extend(unexpected.map(in_line));

        let Some(contract) = plan.contract else {
            return;
        };
        let outcomes = outcomes(&result.cells).unwrap();
        for (fact, (name, _)) in FACTS.iter().enumerate() {
            if plan.error.is_some_and(|error| error.explains(fact)) {
                continue;
            }
            let outcome = outcomes.get(fact);
            if let Some(error) = tape.cells.get(&(contract, fact)) {
                self.note(error.kind, outcome == Some(&error.expected));
                continue;
            }

            self.clean_cells += 1;
            if outcome.is_some_and(|outcome| outcome.is_exception()) {
                let finding = format!("{name} in line {}: {:?}", result.line, result.findings);
                self.false_findings.push(finding);
            }
        }
    }

    /// Returns how many errors were made and found.
    fn sums(&self) -> (usize, usize) {
        let counts = self.kinds.values();
        counts.fold((0, 0), |sums, kind| (sums.0 + kind.0, sums.1 + kind.1))
    }

    fn print(&self) {
        println!("| Error | Made | Found | Missed |\n|---|---|---|---|");
        for (kind, (made, found)) in &self.kinds {
            println!("| {kind} | {made} | {found} | {} |", made - found);
        }
        let (made, found) = self.sums();
        println!("| all | {made} | {found} | {} |", made - found);
        println!(
            "\n{} cells without an error, {} findings in them or in their rows",
            self.clean_cells,
            self.false_findings.len()
        );
    }
}

fn rows(file: &str, map: &TapeMap) -> TapeReader {
    let file = Cursor::new(file.as_bytes().to_vec());
    TapeReader::open(file, TapeFormat::Csv, map).unwrap()
}

/// Checks a tape against the facts that were read from its contracts.
fn check(tape: &SeededTape, read: &[(EnvelopeId, FactSheet)], table: &mut ConfusionTable) {
    let mut own = tape.contracts.clone();
    own.sort_by(|one, other| read[*one].0.cmp(&read[*other].0));
    let (org, mut index) = (OrgId::new(), RecordIndex::default());
    let mut sheets: HashMap<u32, &FactSheet> = HashMap::new();
    for (envelope, sheet) in own.iter().map(|contract| &read[*contract]) {
        let record = index.add(envelope, &org).unwrap();
        for key in [TapeKey::ContractNumber, TapeKey::VinAndDate] {
            let value = sheet
                .get(key.column())
                .and_then(|fact| fact.value.as_deref());
            if let Some(value) = value {
                index.add_key(record, key, value);
            }
        }
        sheets.insert(record, sheet);
    }

    let (map, file) = (tape.map(), tape.csv());
    let (mut keys, mut scanned) = (KeyScan::default(), rows(&file, &map));
    while let Some(row) = scanned.next_row().unwrap() {
        if let Ok(row) = row {
            keys.add(&row, &map);
        }
    }

    let done = RowsChecked::none(&map);
    let mut check = TapeCheck::new(map.clone(), index, keys.finish(), done);
    let (mut reader, mut plans) = (rows(&file, &map), tape.rows.iter());
    while let Some(row) = reader.next_row().unwrap() {
        let plan = plans.next().unwrap();
        let (line, case) = match row {
            Ok(row) => {
                let found = check.index.look_up(&row, &map);
                let sheet = |record: u32| sheets.get(&record).copied();
                (row.line, check.compared(&row, &found, sheet))
            }
            Err(problem) => (problem.line, RowCase::Problem(problem)),
        };
        let result = check.add(line, case);
        let own = plan.contract.map(|contract| &read[contract].0);
        assert_eq!(result.envelope_id.as_ref(), own, "{result:?}");
        table.judge(tape, plan, &result);
    }
    assert!(plans.next().is_none());

    let unlisted = check.unlisted();
    for contract in &tape.left_out {
        table.note(LEFT_OUT, unlisted.contains(&read[*contract].0));
    }
    assert_eq!(unlisted.len(), tape.left_out.len());
}

/// Prints the tables of docs/tape.md: `make facts-set` reads 2,000 contracts, and makes 10,000 errors.
#[tokio::test(flavor = "multi_thread")]
async fn seeded_errors_are_found_and_clean_rows_have_none() {
    let count: usize = std::env::var("HOLDFAST_CONTRACTS").map_or(CONTRACTS, |count| {
        count.parse().expect("a number of contracts")
    });
    let mut numbers = SeededNumbers::new(0x9e37_79b9_7f4a_7c15);
    let contracts: Vec<MadeContract> = (0..count)
        .map(|number| MadeContract::new(number, &mut numbers))
        .collect();

    let reader = SandboxedReader::new();
    let of_layout = |layout: ContractLayout| (layout, Arc::new(layout.fact_map()));
    let maps = BTreeMap::from(ContractLayout::ALL.map(of_layout));
    let mut read = Vec::with_capacity(count);
    let mut of_layouts: BTreeMap<ContractLayout, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for contract in &contracts {
        let sheet = reader.facts(&maps[&contract.layout], contract.pdf()).await;
        let sheet = sheet.unwrap();
        let (facts, misread) = of_layouts.entry(contract.layout).or_default();
        for (name, _) in FACTS {
            let (value, expected) = (sheet.get(name).unwrap().value.clone(), contract.value(name));
            *facts += 1;
            if value != expected {
                *misread += 1;
                wrong.push((contract.layout, name, value, expected));
            }
        }
        read.push((EnvelopeId::new(), sheet));
    }
    println!("| Layout | Facts | Read wrong or not at all |\n|---|---|---|");
    for (layout, (facts, misread)) in of_layouts {
        println!("| {layout:?} | {facts} | {misread} |");
    }
    assert!(wrong.is_empty(), "{:?}", &wrong[..wrong.len().min(5)]);

    let mut table = ConfusionTable::default();
    for form in 0..FORMS {
        // Five tapes of a fifth of the contracts: five errors a contract.
        let tape = SeededTape::new(form, &contracts, count, &mut numbers);
        check(&tape, &read, &mut table);
    }
    table.print();

    let first = table.false_findings.iter().take(3).collect::<Vec<_>>();
    assert!(first.is_empty(), "{first:?}");
    let (made, found) = table.sums();
    assert_eq!(made, FORMS * count);
    assert!(found * 1000 >= made * 995, "{found} of {made}");
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

/// Returns the PDFs of a folder by their names.
fn documents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let documents = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let is_pdf = name.ends_with(".pdf");
        is_pdf.then(|| (name, std::fs::read(file.path()).unwrap()))
    });
    documents.collect()
}

/// Returns the facts of a sheet with this status, with their values.
fn with_status(sheet: &FactSheet, status: FactStatus) -> Vec<(&str, &str)> {
    let facts = sheet.facts.iter().filter(|fact| fact.status == status);
    facts
        .map(|fact| {
            (
                fact.name.as_str(),
                fact.value.as_deref().unwrap_or_default(),
            )
        })
        .collect()
}

/// Documents of others have no known values, so the test prints the facts that are read. `HOLDFAST_CORPUS` names folders with
/// further ones, separated by colons.
#[tokio::test(flavor = "multi_thread")]
async fn the_starter_map_reads_forms_and_finds_nothing_elsewhere() {
    let reader = SandboxedReader::new();
    let map = Arc::new(starter());
    let own = [fixtures(), fixtures().join("hunt")];
    let given = std::env::var("HOLDFAST_CORPUS").unwrap_or_default();
    let given = given.split(':').filter(|folder| !folder.is_empty());
    let others: Vec<PathBuf> = given.map(PathBuf::from).collect();

    // An anchor of three letters is in many words.
    let agenda = pdf::with_lines(&["April 6, 2016", "18 Apr 2017", "Calvin 12"]);
    let sheet = reader.facts(&map, agenda).await.unwrap();
    let known = with_status(&sheet, FactStatus::Known);
    assert!(known.is_empty(), "{known:?}");

    println!("| Document | Read | Not read |\n|---|---|---|");
    for folder in own.iter().chain(&others) {
        for (name, pdf) in documents(folder) {
            // A hostile file can exceed the limits of a call.
            let Ok(sheet) = reader.facts(&map, pdf).await else {
                continue;
            };
            let known = with_status(&sheet, FactStatus::Known);
            let unreadable = with_status(&sheet, FactStatus::Unreadable);
            if !known.is_empty() || !unreadable.is_empty() {
                println!(
                    "| {name} | {known:?} | {} missing, {} unreadable |",
                    sheet.facts.len() - known.len() - unreadable.len(),
                    unreadable.len()
                );
            }
            if name == "retail-installment-contract.pdf" {
                assert_eq!(known, OF_THE_CONTRACT);
            } else if own.contains(folder) {
                assert!(known.is_empty(), "{name}: {known:?}");
            }
        }
    }
}

/// Facts that the starter map finds in the contract of the demo. Names stand below their captions there, where it does
/// not look: every line below would be a name.
const OF_THE_CONTRACT: [(&str, &str); 10] = [
    ("apr", "6.49"),
    ("finance_charge", "4920.56"),
    ("amount_financed", "27815.15"),
    ("total_of_payments", "32735.71"),
    ("number_of_payments", "59"),
    ("payment_amount", "545.60"),
    ("first_payment_date", "2026-06-18"),
    ("vin", "5HDMR2AX6T1004187"),
    ("contract_date", "2026-05-04"),
    ("contract_number", "RIC-2026-004187"),
];
