//! Comparison of a tape with the facts of contracts.
//!
//! A tape is a table that a party writes itself: a row for each contract. Each row finds its record by the keys of a
//! map ([`TapeMap`]), and its cells are compared with what the contract says. A cell or row that cannot be read is
//! reported and never guessed.
//!
//! Nothing here knows a database or a network: the service and the offline check use the same code, so that anyone
//! with the tape, the map and the facts gets the same result.

mod cells;
mod check;
mod compare;
mod decimal;
mod guess;
mod index;
mod map;
mod reader;
mod result;
mod stored;

pub use check::{RowCase, RowsChecked, TapeCheck};
pub use compare::{RowComparison, compare, of_date, reuse_hash};
pub use decimal::ExactDecimal;
pub use guess::{KEY_FACTS, guessed};
pub use index::{IndexedRecord, KeyScan, ListedRecords, RecordIndex, RowMatch, SharedKeys};
pub use map::{
    CONTRACT_DATE, CONTRACT_NUMBER, ColumnSeparator, DateOrder, DecimalMark, ENVELOPE_ID,
    EXTERNAL_ID, MapProblem, Severity, TapeColumn, TapeKey, TapeMap, VIN, plain_name,
};
pub use reader::{
    OpenError, ROWS, RowProblem, TapeFormat, TapeReader, TapeRefusal, TapeRow, TooManyRows,
    column_names,
};
pub use result::{
    CellOutcome, ColumnTotals, FindingCode, RowResult, RowStatus, RowsDigest, TapeFinding,
    TapeSummary, TapeTotals, outcomes, sample_number,
};
pub use stored::{
    StoredRefusal, TAPE_CHECKED, TAPE_DELETED, Tape, TapeChain, TapePart, TapeStatus,
};
