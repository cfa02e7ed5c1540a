//! The check of a whole tape, row by row.

use serde::{Deserialize, Serialize};

use super::compare::{RowComparison, compare, of_date};
use super::index::{ListedRecords, RecordIndex, RowMatch, SharedKeys, also_on};
use super::map::{TapeKey, TapeMap};
use super::reader::{RowProblem, TapeRow};
use super::result::{
    FindingCode, RowResult, RowStatus, RowsDigest, TapeFinding, TapeSummary, TapeTotals,
};
use crate::facts::FactSheet;
use crate::id::EnvelopeId;

/// What a row is.
#[derive(Clone, Debug)]
pub enum RowCase {
    /// It cannot be read.
    Problem(RowProblem),
    /// No record has one of its keys.
    Unmatched,
    /// So many records have its keys.
    Ambiguous(usize),
    /// The record has no facts yet.
    WithoutFacts(u32),
    Compared(u32, RowComparison),
}

/// Results of the rows so far: enough to continue after a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsChecked {
    /// Line of the last row.
    pub last_line: u64,
    /// Unlisted records that were reported behind it.
    pub unlisted: u64,
    pub digest: RowsDigest,
    pub totals: TapeTotals,
}

impl RowsChecked {
    /// Returns the state before the first row.
    pub fn none(map: &TapeMap) -> Self {
        Self {
            last_line: 0,
            unlisted: 0,
            digest: RowsDigest::default(),
            totals: TapeTotals::of(map),
        }
    }
}

/// Check of a tape against the records of an index.
pub struct TapeCheck {
    pub map: TapeMap,
    pub map_sha256: String,
    pub index: RecordIndex,
    shared: SharedKeys,
    listed: ListedRecords,
    done: RowsChecked,
}

impl TapeCheck {
    /// Begins a check, or continues one behind the rows of `done`; [`Self::was_listed`] then names their records.
    pub fn new(
        map: TapeMap,
        mut index: RecordIndex,
        shared: SharedKeys,
        done: RowsChecked,
    ) -> Self {
        index.sort();
        Self {
            map_sha256: map.sha256(),
            map,
            listed: ListedRecords::new(&index),
            index,
            shared,
            done,
        }
    }

    /// Notes a row of before that lists a record.
    pub fn was_listed(&mut self, envelope: &EnvelopeId, line: u64) {
        if let Some(record) = self.index.number(envelope) {
            self.listed.note(record, line);
        }
    }

    pub fn done(&self) -> &RowsChecked {
        &self.done
    }

    /// Chooses among records with the same VIN by the date of their contracts, and compares the row with the facts of
    /// its record.
    pub fn compared<'a>(
        &self,
        row: &TapeRow,
        found: &RowMatch,
        facts: impl Fn(u32) -> Option<&'a FactSheet>,
    ) -> RowCase {
        let record = match found {
            RowMatch::None => return RowCase::Unmatched,
            RowMatch::TooMany(count) => return RowCase::Ambiguous(*count),
            RowMatch::One(record) => *record,
            RowMatch::Several { key, records } => {
                let sheets = records
                    .iter()
                    .filter_map(|record| Some((*record, facts(*record)?)));
                let dated = if *key == TapeKey::VinAndDate {
                    of_date(sheets, row, &self.map)
                } else {
                    None
                };
                match dated {
                    Some(record) => record,
                    None => return RowCase::Ambiguous(records.len()),
                }
            }
        };

        match facts(record) {
            Some(sheet) => RowCase::Compared(record, compare(row, sheet, &self.map)),
            None => RowCase::WithoutFacts(record),
        }
    }

    /// Adds the next row to the result.
    pub fn add(&mut self, line: u64, case: RowCase) -> RowResult {
        let mut result = self.result(line, case);
        let repeated = result.findings.len();
        result.findings.extend(self.shared.of(line));
        if let Some(record) = result
            .envelope_id
            .as_ref()
            .and_then(|id| self.index.number(id))
        {
            let first = self.listed.note(record, line);
            result
                .findings
                .extend(first.map(|first| also_on(FindingCode::DuplicateRecord, first)));
        }
        if result.status == RowStatus::Clean && result.findings.len() > repeated {
            result.status = RowStatus::Exceptions;
        }

        self.done.last_line = line;
        self.count(&result);
        result
    }

    fn result(&self, line: u64, case: RowCase) -> RowResult {
        let of = |record: u32| self.index.record(record).map(|record| record.envelope);
        let (status, envelope_id, cells, findings) = match case {
            RowCase::Problem(problem) => {
                let detail = format!("{}: {}", problem.code, problem.message);
                let finding = TapeFinding::of_row(FindingCode::UnreadableRow, detail);
                (RowStatus::Unreadable, None, String::new(), vec![finding])
            }
            RowCase::Unmatched => {
                let detail = "no record in which you have a part has a key of this row";
                let finding = TapeFinding::of_row(FindingCode::Unmatched, detail);
                (RowStatus::Unmatched, None, String::new(), vec![finding])
            }
            RowCase::Ambiguous(count) => {
                let detail = format!("{count} records have the keys of this row");
                let finding = TapeFinding::of_row(FindingCode::Ambiguous, detail);
                (RowStatus::Ambiguous, None, String::new(), vec![finding])
            }
            RowCase::WithoutFacts(record) => {
                let detail = "no facts were read from the contract; choose a fact map for it";
                let finding = TapeFinding::of_row(FindingCode::WithoutFacts, detail);
                (
                    RowStatus::Exceptions,
                    of(record),
                    String::new(),
                    vec![finding],
                )
            }
            RowCase::Compared(record, compared) => {
                let status = if compared.is_clean() {
                    RowStatus::Clean
                } else {
                    RowStatus::Exceptions
                };
                (status, of(record), compared.cells, compared.findings)
            }
        };

        RowResult {
            line,
            status,
            envelope_id,
            cells,
            findings,
        }
    }

    /// Returns the records that no row lists, in the order of their ids.
    pub fn unlisted(&self) -> Vec<EnvelopeId> {
        let records = self
            .listed
            .unlisted()
            .filter_map(|record| self.index.record(record));
        let mut ids: Vec<EnvelopeId> = records.map(|record| record.envelope).collect();
        ids.sort_unstable();
        ids
    }

    /// Adds the next record that no row lists, behind all rows.
    pub fn add_unlisted(&mut self, envelope: EnvelopeId) -> RowResult {
        self.done.unlisted += 1;
        let result = RowResult {
            line: self.done.last_line + self.done.unlisted,
            status: RowStatus::Unlisted,
            envelope_id: Some(envelope),
            cells: String::new(),
            findings: vec![TapeFinding::of_row(
                FindingCode::Unlisted,
                "no row lists this record",
            )],
        };
        self.count(&result);
        result
    }

    fn count(&mut self, result: &RowResult) {
        self.done.digest.add(result);
        self.done.totals.count(result);
    }

    /// Returns the summary that a digest is made of.
    pub fn summary(&self, tape_sha256: &str) -> TapeSummary {
        TapeSummary {
            tape_sha256: tape_sha256.into(),
            map_sha256: self.map_sha256.clone(),
            population: self.index.len() as u64,
            population_sha256: self.index.sha256(),
            rows_sha256: self.done.digest.as_str().to_owned(),
            totals: self.done.totals.clone(),
        }
    }
}
