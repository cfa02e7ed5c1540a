//! What the check of a tape found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::map::{Severity, TapeMap};
use crate::envelope::words;
use crate::facts::{FactOrigin, FactPlace};
use crate::id::EnvelopeId;

/// Longest value of a finding, in characters.
const SHOWN: usize = 200;

words! {
    /// Comparison of a cell with its fact.
    CellOutcome {
        Equal = "equal",
        WithinTolerance = "within_tolerance",
        Different = "different",
        MissingInContract = "missing_in_contract",
        MissingInTape = "missing_in_tape",
        Unreadable = "unreadable",
    }
}

impl CellOutcome {
    /// Returns the letter that stands for the outcome in a stored row.
    fn letter(self) -> char {
        match self {
            Self::Equal => 'e',
            Self::WithinTolerance => 'w',
            Self::Different => 'd',
            Self::MissingInContract => 'c',
            Self::MissingInTape => 't',
            Self::Unreadable => 'u',
        }
    }

    fn of_letter(letter: char) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|outcome| outcome.letter() == letter)
    }

    /// Whether the cell needs attention.
    pub fn is_exception(self) -> bool {
        !matches!(self, Self::Equal | Self::WithinTolerance)
    }
}

/// Writes the outcomes of a row's compared columns as letters.
pub fn letters(outcomes: &[CellOutcome]) -> String {
    outcomes.iter().map(|outcome| outcome.letter()).collect()
}

/// Reads the outcomes of a row's compared columns.
pub fn outcomes(letters: &str) -> Option<Vec<CellOutcome>> {
    letters.chars().map(CellOutcome::of_letter).collect()
}

words! {
    /// Result of a row.
    RowStatus {
        // Every compared column is equal or within its tolerance.
        Clean = "clean",
        Exceptions = "exceptions",
        // No record of the caller has a key of the row.
        Unmatched = "unmatched",
        // Several records of the caller have the keys of the row.
        Ambiguous = "ambiguous",
        // The row could not be read.
        Unreadable = "unreadable",
        // A record of the population that no row lists.
        Unlisted = "unlisted",
    }
}

words! {
    /// Kind of a finding.
    FindingCode {
        Different = "different",
        WithinTolerance = "within_tolerance",
        MissingInContract = "missing_in_contract",
        MissingInTape = "missing_in_tape",
        Unreadable = "unreadable",
        // The contract itself has two values.
        Conflicting = "conflicting",
        Unmatched = "unmatched",
        Ambiguous = "ambiguous",
        UnreadableRow = "unreadable_row",
        Unlisted = "unlisted",
        // The contract's facts are not known yet.
        WithoutFacts = "without_facts",
        DuplicateVin = "duplicate_vin",
        DuplicateContractNumber = "duplicate_contract_number",
        DuplicateRecord = "duplicate_record",
        // Another tape of the caller lists the record, too.
        OtherTape = "other_tape",
        // Another party has control or a pledge of the same collateral or document.
        OtherClaim = "other_claim",
    }
}

impl FindingCode {
    /// Returns the code of a cell's outcome, if it is reported.
    pub fn of_cell(outcome: CellOutcome) -> Option<Self> {
        match outcome {
            CellOutcome::Equal => None,
            CellOutcome::WithinTolerance => Some(Self::WithinTolerance),
            CellOutcome::Different => Some(Self::Different),
            CellOutcome::MissingInContract => Some(Self::MissingInContract),
            CellOutcome::MissingInTape => Some(Self::MissingInTape),
            CellOutcome::Unreadable => Some(Self::Unreadable),
        }
    }

    /// Returns the weight of a finding, unless its column has another one.
    pub fn severity(self) -> Severity {
        match self {
            Self::Different
            | Self::Unmatched
            | Self::Ambiguous
            | Self::UnreadableRow
            | Self::DuplicateVin
            | Self::DuplicateContractNumber
            | Self::DuplicateRecord
            | Self::OtherTape
            | Self::OtherClaim => Severity::Stop,
            Self::MissingInContract
            | Self::MissingInTape
            | Self::Unreadable
            | Self::Conflicting
            | Self::Unlisted
            | Self::WithoutFacts => Severity::Warn,
            Self::WithinTolerance => Severity::Note,
        }
    }
}

/// Something about a row, or about a record that no row lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapeFinding {
    /// Kind of the finding.
    pub code: FindingCode,
    /// Its weight.
    pub severity: Severity,
    /// Name of the column in the tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Name of the fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// The cell as it stands in the tape; shortened to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape: Option<String>,
    /// Value of the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    /// Where the contract's value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<FactOrigin>,
    /// Place in the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<FactPlace>,
    /// Explanation, or the other line or claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl TapeFinding {
    /// Returns a finding about a whole row.
    pub fn of_row(code: FindingCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            column: None,
            fact: None,
            tape: None,
            contract: None,
            origin: None,
            place: None,
            detail: Some(detail.into()),
        }
    }
}

/// Shortens a value that is shown to people.
pub(super) fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Result of a row, as the digest of a check has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowResult {
    /// Line of the tape; for an unlisted record, a number behind the last line.
    pub line: u64,
    pub status: RowStatus,
    pub envelope_id: Option<EnvelopeId>,
    /// Outcomes of the compared columns, as letters; empty for a row that was not compared.
    pub cells: String,
    /// From the comparison and the tape alone: what other tapes and parties claim changes from day to day.
    pub findings: Vec<TapeFinding>,
}

/// Digest over the results of all rows, in the order of their lines. It can be continued from its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowsDigest(String);

impl Default for RowsDigest {
    fn default() -> Self {
        Self(hex::encode(Sha256::digest([])))
    }
}

impl RowsDigest {
    /// Adds a row: SHA-256 of the digest so far and the row's canonical JSON (RFC 8785).
    pub fn add(&mut self, row: &RowResult) {
        let json = serde_json_canonicalizer::to_vec(row).unwrap_or_default();
        let mut hasher = Sha256::new();
        hasher.update(self.0.as_bytes());
        hasher.update(b"\n");
        hasher.update(json);
        self.0 = hex::encode(hasher.finalize());
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Counts of one compared column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnTotals {
    /// Name in the tape.
    pub column: String,
    /// Name of the fact.
    pub fact: String,
    /// Cells that say the same as the contract.
    pub equal: u64,
    /// Cells that differ by no more than the tolerance.
    pub within_tolerance: u64,
    /// Cells that say something else.
    pub different: u64,
    /// Cells with a value that the contract does not have.
    pub missing_in_contract: u64,
    /// Empty cells where the contract has a value.
    pub missing_in_tape: u64,
    /// Cells that are no value of their type, or whose page of the contract has no text.
    pub unreadable: u64,
}

impl ColumnTotals {
    fn count(&mut self, outcome: CellOutcome) {
        let of_outcome = match outcome {
            CellOutcome::Equal => &mut self.equal,
            CellOutcome::WithinTolerance => &mut self.within_tolerance,
            CellOutcome::Different => &mut self.different,
            CellOutcome::MissingInContract => &mut self.missing_in_contract,
            CellOutcome::MissingInTape => &mut self.missing_in_tape,
            CellOutcome::Unreadable => &mut self.unreadable,
        };
        *of_outcome += 1;
    }
}

/// Counts of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapeTotals {
    /// Rows of the tape.
    pub rows: u64,
    /// Rows that agree with their contracts.
    pub clean: u64,
    /// Rows that were compared and need attention.
    pub exceptions: u64,
    /// Rows without a record.
    pub unmatched: u64,
    /// Rows whose keys several records have.
    pub ambiguous: u64,
    /// Rows that cannot be read.
    pub unreadable: u64,
    /// Records that no row lists.
    pub unlisted: u64,
    /// Findings of severity `stop`.
    pub stop: u64,
    /// Findings of severity `warn`.
    pub warn: u64,
    /// Findings of severity `note`.
    pub note: u64,
    /// Counts of the compared columns, in the order of the map.
    pub columns: Vec<ColumnTotals>,
}

impl TapeTotals {
    pub fn of(map: &TapeMap) -> Self {
        let columns = map.columns.iter().filter(|column| column.is_compared());
        let columns = columns.map(|column| ColumnTotals {
            column: column.column.clone(),
            fact: column.fact.clone(),
            ..ColumnTotals::default()
        });
        Self {
            columns: columns.collect(),
            ..Self::default()
        }
    }

    /// Counts a row.
    pub fn count(&mut self, row: &RowResult) {
        let of_status = match row.status {
            RowStatus::Clean => &mut self.clean,
            RowStatus::Exceptions => &mut self.exceptions,
            RowStatus::Unmatched => &mut self.unmatched,
            RowStatus::Ambiguous => &mut self.ambiguous,
            RowStatus::Unreadable => &mut self.unreadable,
            RowStatus::Unlisted => &mut self.unlisted,
        };
        *of_status += 1;
        self.rows += u64::from(row.status != RowStatus::Unlisted);

        let outcomes = outcomes(&row.cells).unwrap_or_default();
        for (column, outcome) in self.columns.iter_mut().zip(outcomes) {
            column.count(outcome);
        }
        for finding in &row.findings {
            match finding.severity {
                Severity::Stop => self.stop += 1,
                Severity::Warn => self.warn += 1,
                Severity::Note => self.note += 1,
            }
        }
    }
}

/// What a check has found, in the form that its digest covers. Anyone who has the tape, the map and the facts of the
/// records can repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TapeSummary {
    /// SHA-256 of the tape, lower-case hex.
    pub tape_sha256: String,
    /// SHA-256 of the map's canonical JSON (RFC 8785).
    pub map_sha256: String,
    /// Number of records that rows were looked up in.
    pub population: u64,
    /// SHA-256 over the ids of the population in their order, each with a line feed.
    pub population_sha256: String,
    /// Digest over the results of all rows: begins with the SHA-256 of nothing; each row adds the SHA-256 of the
    /// digest so far in hex, a line feed, and the canonical JSON of `line`, `status`, `envelope_id`, `cells` and
    /// `findings`.
    pub rows_sha256: String,
    /// Counts that follow from these results.
    pub totals: TapeTotals,
}

impl TapeSummary {
    /// Returns the SHA-256 of the canonical JSON (RFC 8785) in lower-case hex.
    pub fn sha256(&self) -> String {
        crate::hash::canonical_sha256(&json!(self))
    }
}

/// Returns the number by which a row or record is drawn into a sample: those with the smallest one are in it. Anyone
/// with the seed can repeat it.
pub fn sample_number(seed: &str, id: &str) -> [u8; 32] {
    Sha256::digest(format!("{seed}:{id}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_stored_as_letters() {
        let all = CellOutcome::ALL.to_vec();
        assert_eq!(letters(&all), "ewdctu");
        assert_eq!(outcomes("ewdctu"), Some(all));
        assert_eq!(outcomes("ex"), None);
    }

    #[test]
    fn a_digest_can_be_continued_from_its_text() {
        let row = |line| RowResult {
            line,
            status: RowStatus::Clean,
            envelope_id: None,
            cells: "e".into(),
            findings: Vec::new(),
        };
        let mut whole = RowsDigest::default();
        whole.add(&row(2));
        let stored = json!(whole);
        whole.add(&row(3));

        let mut continued: RowsDigest = serde_json::from_value(stored).unwrap();
        continued.add(&row(3));
        assert_eq!(continued, whole);

        let mut other = RowsDigest::default();
        other.add(&row(3));
        assert_ne!(other, whole);
    }

    #[test]
    fn long_values_are_shortened() {
        assert_eq!(shown("21500.00"), "21500.00");
        assert_eq!(shown(&"é".repeat(300)).chars().count(), SHOWN + 1);
    }
}
