//! Tapes as they are stored.

use serde::{Deserialize, Serialize};

use super::check::RowsChecked;
use super::map::TapeMap;
use super::reader::TapeFormat;
use super::result::TapeSummary;
use crate::clock::Timestamp;
use crate::envelope::{StoredFile, words};
use crate::id::{OrgId, TapeId, TransferId};
use crate::ledger::LedgerChain;

words! {
    /// State of a tape's check.
    TapeStatus {
        // A person chooses the facts of the file's columns.
        Choosing = "choosing",
        Checking = "checking",
        Checked = "checked",
        // The file is no tape for the map.
        Refused = "refused",
        // The stored file is damaged or gone.
        Failed = "failed",
    }
}

words! {
    /// Part of the caller in the records that rows are looked up in.
    TapePart {
        Controller = "controller",
        // Designee or buyer.
        Named = "named",
        Pledgee = "pledgee",
        Originator = "originator",
    }
}

/// Why a file is no tape for its map, or why its check was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRefusal {
    /// Stable code for programs.
    pub code: String,
    pub message: String,
}

/// A tape of an organization.
#[derive(Clone, Debug)]
pub struct Tape {
    pub id: TapeId,
    pub org: OrgId,
    /// Name of the line or pool that it is about.
    pub name: String,
    pub format: TapeFormat,
    pub file: StoredFile,
    pub map: TapeMap,
    /// None: any part.
    pub part: Option<TapePart>,
    /// Transfer that limits the records that are looked up; none for all records of the part.
    pub pool: Option<TransferId>,
    pub status: TapeStatus,
    /// Names of the file's columns, while a person chooses their facts.
    pub header: Option<Vec<String>>,
    /// Checks that ended with a defect of the stored file.
    pub failures: i64,
    pub progress: Option<RowsChecked>,
    pub refusal: Option<StoredRefusal>,
    /// Rows whose comparison was taken from the tape before.
    pub reused: i64,
    /// Rows with a record that another tape lists.
    pub other_tapes: i64,
    /// Rows with a record that another party claims, too.
    pub other_claims: i64,
    pub summary: Option<TapeSummary>,
    /// Number of the ledger's entry about the result.
    pub ledger_sequence: Option<i64>,
    pub made_by: String,
    pub created_at: Timestamp,
    pub checked_at: Option<Timestamp>,
}

/// Action of the entry about a checked tape.
pub const TAPE_CHECKED: &str = "tape.checked";
/// Action of the entry about a deleted tape.
pub const TAPE_DELETED: &str = "tape.deleted";

/// Ledger of the tapes of an organization.
pub struct TapeChain(String);

impl TapeChain {
    pub fn of(org: &OrgId) -> Self {
        Self(format!("tapes:{org}"))
    }
}

impl LedgerChain for TapeChain {
    fn chain(&self) -> &str {
        &self.0
    }
}
