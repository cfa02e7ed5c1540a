//! How the columns of a tape are read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::decimal::ExactDecimal;
use crate::envelope::words;
use crate::facts::FactKind;
use crate::hash::canonical_sha256;

/// Fact with the originator's number of the contract.
pub const CONTRACT_NUMBER: &str = "contract_number";
/// Fact with the vehicle's number.
pub const VIN: &str = "vin";
/// Fact with the date of the contract, unless the map names another one.
pub const CONTRACT_DATE: &str = "contract_date";
/// Name of the column with the record's id. It is no fact of the contract.
pub const ENVELOPE_ID: &str = "envelope_id";
/// Name of the column with the originator's own id of the record. It is no fact of the contract.
pub const EXTERNAL_ID: &str = "external_id";

/// Most columns of a map.
pub const COLUMNS: usize = 200;
/// Longest name of a column or fact, in characters.
pub(super) const NAME: usize = 200;

words! {
    /// Key by which a row finds its record.
    TapeKey {
        ContractNumber = "contract_number",
        // Records with the same VIN are told apart by the date of the contract.
        VinAndDate = "vin_and_date",
        EnvelopeId = "envelope_id",
        ExternalId = "external_id",
    }
}

impl TapeKey {
    /// Returns the name of the column that has the key.
    pub fn column(self) -> &'static str {
        match self {
            Self::ContractNumber => CONTRACT_NUMBER,
            Self::VinAndDate => VIN,
            Self::EnvelopeId => ENVELOPE_ID,
            Self::ExternalId => EXTERNAL_ID,
        }
    }
}

words! {
    /// Order of day, month and year in dates of digits.
    DateOrder {
        MonthFirst = "mdy",
        DayFirst = "dmy",
        YearFirst = "ymd",
        // Days since 30 December 1899, as spreadsheets count.
        Serial = "serial",
    }
}

words! {
    /// Character before the decimals.
    DecimalMark {
        Point = ".",
        Comma = ",",
    }
}

words! {
    /// Character between the columns of a CSV file.
    ColumnSeparator {
        Comma = ",",
        Semicolon = ";",
        Tab = "\t",
        Bar = "|",
    }
}

impl ColumnSeparator {
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Bar => b'|',
        }
    }
}

words! {
    /// Weight of a finding, the heaviest first.
    Severity {
        Stop = "stop",
        Warn = "warn",
        Note = "note",
    }
}

/// A column of the tape, and the fact that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TapeColumn {
    /// Name in the header of the tape. Case and white space at the ends are ignored.
    pub column: String,
    /// Name of the fact. `envelope_id` and `external_id` find the record and are not compared.
    pub fact: String,
    /// Type of the values; that of the fact when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FactKind>,
    /// Largest difference that is none: an amount of money, percentage points, or days. When absent: 1.00, 0.01, 1 day,
    /// and 0 for everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// Weight of a difference; `stop` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// True: percentages are fractions, `0.0799` for 7.99 %.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fraction: bool,
}

impl TapeColumn {
    /// Whether the column is compared with a fact of the contract.
    pub fn is_compared(&self) -> bool {
        self.fact != ENVELOPE_ID && self.fact != EXTERNAL_ID
    }

    /// Returns the largest difference of numbers and dates that is none.
    pub fn tolerance_of(&self, kind: FactKind) -> ExactDecimal {
        let usual = match kind {
            FactKind::Money | FactKind::Date => "1",
            FactKind::Percentage => "0.01",
            FactKind::Text | FactKind::Integer | FactKind::Vin | FactKind::Boolean => "0",
        };
        let given = self.tolerance.as_deref().and_then(ExactDecimal::parse);
        given
            .or_else(|| ExactDecimal::parse(usual))
            .unwrap_or(ExactDecimal::ZERO)
    }
}

/// How a tape is read and compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{
    "columns": [
        { "column": "Loan Number", "fact": "contract_number" },
        { "column": "VIN", "fact": "vin" },
        { "column": "Amount Financed", "fact": "amount_financed", "kind": "money", "tolerance": "1.00" },
        { "column": "APR", "fact": "apr", "kind": "percentage", "fraction": true },
    ],
    "keys": ["contract_number", "vin_and_date"], "date_order": "mdy",
}]))]
pub struct TapeMap {
    /// Columns of the tape; others are ignored.
    #[schemars(length(min = 1, max = 200))]
    pub columns: Vec<TapeColumn>,
    /// Keys by which a row finds its record, the first one first. When absent: all keys that have a column.
    #[serde(default = "all_keys")]
    pub keys: Vec<TapeKey>,
    /// Order of dates of digits. Without it, a date that can be read in two ways is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_order: Option<DateOrder>,
    /// Character before the decimals; a point when absent.
    #[serde(default = "point")]
    pub decimal: DecimalMark,
    /// Character between the columns of a CSV file. When absent: the one that makes the mapped columns appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<ColumnSeparator>,
    /// Fact that tells records with one VIN apart; `contract_date` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_fact: Option<String>,
}

fn all_keys() -> Vec<TapeKey> {
    TapeKey::ALL.to_vec()
}

fn point() -> DecimalMark {
    DecimalMark::Point
}

/// Something in a map that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapProblem {
    /// Members and numbers that lead to the place.
    pub path: Vec<String>,
    pub message: String,
}

impl TapeMap {
    /// Parses a map in JSON.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn parse(text: &str) -> Result<Self, Vec<MapProblem>> {
        let map: Self = serde_json::from_str(text).map_err(|error| {
            vec![MapProblem {
                path: Vec::new(),
                message: error.to_string(),
            }]
        })?;
        let problems = map.problems();
        if problems.is_empty() {
            Ok(map)
        } else {
            Err(problems)
        }
    }

    /// Returns everything in the map that cannot be used.
    pub fn problems(&self) -> Vec<MapProblem> {
        let mut problems = Vec::new();
        if self.columns.is_empty() || self.columns.len() > COLUMNS {
            problems.push(problem(
                &["columns"],
                format!("a map has 1 to {COLUMNS} columns"),
            ));
        }

        for (index, column) in self.columns.iter().enumerate() {
            let before = self.columns.iter().take(index);
            problems.extend(of_column(index, column, before));
        }

        let usable = self
            .keys
            .iter()
            .any(|key| self.index_of(key.column()).is_some());
        if !usable {
            let message =
                "no key has a column: map one to contract_number, vin, envelope_id or external_id";
            problems.push(problem(&["keys"], message.into()));
        }

        problems
    }

    /// Returns the place of the column with a fact.
    pub fn index_of(&self, fact: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.fact == fact)
    }

    /// Returns the fact that tells records with one VIN apart.
    pub fn date_fact(&self) -> &str {
        self.date_fact.as_deref().unwrap_or(CONTRACT_DATE)
    }

    /// Returns the SHA-256 of the map's canonical JSON (RFC 8785) in lower-case hex.
    pub fn sha256(&self) -> String {
        canonical_sha256(&json!(self))
    }
}

fn problem(path: &[&str], message: String) -> MapProblem {
    MapProblem {
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        message,
    }
}

fn of_column<'a>(
    index: usize,
    column: &TapeColumn,
    mut before: impl Iterator<Item = &'a TapeColumn> + Clone,
) -> Vec<MapProblem> {
    let mut problems = Vec::new();
    let place = index.to_string();
    let mut add = |member: &str, message: String| {
        problems.push(problem(&["columns", &place, member], message));
    };
    let is_name = |text: &str| (1..=NAME).contains(&text.trim().chars().count());
    if !is_name(&column.column) {
        add("column", format!("a name has 1 to {NAME} characters"));
    }
    if !is_name(&column.fact) {
        add("fact", format!("a name has 1 to {NAME} characters"));
    }

    let mut earlier = before.clone();
    if earlier.any(|other| same_name(&other.column, &column.column)) {
        add("column", format!("{} is mapped twice", column.column));
    }
    if before.any(|other| other.fact == column.fact) {
        add("fact", format!("{} has two columns", column.fact));
    }

    let tolerance = column.tolerance.as_deref();
    let is_usable =
        |text: &str| ExactDecimal::parse(text).is_some_and(|size| size >= ExactDecimal::ZERO);
    if let Some(text) = tolerance.filter(|text| !is_usable(text)) {
        add("tolerance", format!("{text} is no number of 0 or more"));
    }
    problems
}

/// Returns a column's name as it is compared.
pub fn plain_name(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

fn same_name(left: &str, right: &str) -> bool {
    plain_name(left) == plain_name(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: serde_json::Value) -> Result<TapeMap, Vec<MapProblem>> {
        TapeMap::parse(&value.to_string())
    }

    #[test]
    fn a_map_has_the_tolerances_of_the_trade() {
        let map = map(json!({ "columns": [
            { "column": "Loan", "fact": "contract_number" },
            { "column": "APR", "fact": "apr", "kind": "percentage" },
            { "column": "Down", "fact": "down_payment", "kind": "money", "tolerance": "0" },
        ] }))
        .unwrap();
        let tolerance = |index: usize, kind| map.columns[index].tolerance_of(kind).to_string();
        assert_eq!(tolerance(1, FactKind::Percentage), "0.01");
        assert_eq!(tolerance(1, FactKind::Money), "1");
        assert_eq!(tolerance(1, FactKind::Date), "1");
        assert_eq!(tolerance(2, FactKind::Money), "0");
        assert_eq!(tolerance(0, FactKind::Vin), "0");
        assert_eq!(map.keys, TapeKey::ALL);
        assert_eq!(map.decimal, DecimalMark::Point);

        // The digest does not depend on the order of members or on left-out defaults.
        let text = r#"{"keys":["contract_number","vin_and_date","envelope_id","external_id"],"columns":[
            {"fact":"contract_number","column":"Loan"},{"kind":"percentage","column":"APR","fact":"apr"},
            {"column":"Down","fact":"down_payment","kind":"money","tolerance":"0"}],"decimal":"."}"#;
        assert_eq!(TapeMap::parse(text).unwrap().sha256(), map.sha256());
    }

    #[test]
    fn a_map_that_cannot_be_used_says_where() {
        let found = map(json!({ "columns": [
            { "column": "VIN", "fact": "colour" },
            { "column": " vin ", "fact": "colour", "tolerance": "-1" },
            { "column": "", "fact": "apr" },
        ] }));
        let found: Vec<String> = found
            .unwrap_err()
            .into_iter()
            .map(|problem| problem.path.join("."))
            .collect();
        assert_eq!(
            found,
            [
                "columns.1.column",
                "columns.1.fact",
                "columns.1.tolerance",
                "columns.2.column",
                "keys"
            ]
        );
        assert!(map(json!({ "columns": [] })).is_err());
        assert!(map(json!({ "columns": [], "colour": 1 })).is_err());
    }
}
