//! Transfers of control from a seller to a buyer: offer, acceptance, confirmation.

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{EnvelopeId, OrgId, TransferId};

words! {
    /// State of a transfer. In states that end in `-ing` a job works through its records.
    TransferState {
        Proposing = "proposing",
        // The records are locked; the buyer inspects them.
        Proposed = "proposed",
        Accepting = "accepting",
        // The buyer accepted; the seller confirms.
        Accepted = "accepted",
        Confirming = "confirming",
        // The buyer has control.
        Confirmed = "confirmed",
        Cancelling = "cancelling",
        Cancelled = "cancelled",
        Expiring = "expiring",
        Expired = "expired",
        // The records of an atomic transfer cannot all move; those that moved go back.
        Failing = "failing",
        // No record moved.
        Failed = "failed",
    }
}

words! {
    /// State of a record in a transfer.
    RecordState {
        Pending = "pending",
        Proposed = "proposed",
        Accepted = "accepted",
        Confirmed = "confirmed",
        Cancelled = "cancelled",
        Expired = "expired",
        // The record does not move, for the reason beside it.
        Refused = "refused",
    }
}

/// Step that a job makes for every record of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferStep {
    /// States of records that have the step before them.
    pub from: &'static [RecordState],
    pub to: RecordState,
    /// State of the transfer when the step is done.
    pub done: TransferState,
}

impl TransferState {
    /// Returns the step in progress, if there is one.
    pub fn step(self) -> Option<TransferStep> {
        use RecordState::{Accepted, Cancelled, Confirmed, Expired, Pending, Proposed};
        let (from, to, done): (&[RecordState], _, _) = match self {
            Self::Proposing => (&[Pending], Proposed, Self::Proposed),
            Self::Accepting => (&[Proposed], Accepted, Self::Accepted),
            Self::Confirming => (&[Accepted], Confirmed, Self::Confirmed),
            Self::Cancelling => (&[Pending, Proposed, Accepted], Cancelled, Self::Cancelled),
            Self::Expiring => (&[Pending, Proposed, Accepted], Expired, Self::Expired),
            Self::Failing => (&[Pending, Proposed, Accepted], Cancelled, Self::Failed),
            Self::Proposed
            | Self::Accepted
            | Self::Confirmed
            | Self::Cancelled
            | Self::Expired
            | Self::Failed => return None,
        };
        Some(TransferStep { from, to, done })
    }
}

/// Transfer of control over records.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub id: TransferId,
    pub seller: OrgId,
    pub buyer: OrgId,
    pub state: TransferState,
    /// Whether all records move together or none.
    pub atomic: bool,
    pub terms: Option<String>,
    pub price_reference: Option<String>,
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// The party that asked for the step in progress; `None` if the time was over.
    pub acting: Option<OrgId>,
    /// Its credential, for the ledger.
    pub actor: String,
    /// Time at which the buyer got the offer; `None` for one that ended before.
    pub offered_at: Option<Timestamp>,
    pub receipt: Option<TransferReceipt>,
}

/// What the buyer accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferReceipt {
    pub accepted_at: Timestamp,
    /// Number of records.
    pub records: u64,
    /// SHA-256 over the lines `envelope_id document_hash` of all records, in the order of their ids,
    /// each with a line feed; lower-case hex.
    pub sha256: String,
}

/// A record in a transfer.
#[derive(Clone, Debug)]
pub struct TransferRecord {
    pub envelope: EnvelopeId,
    pub state: RecordState,
    /// SHA-256 of the authoritative copy when it was offered.
    pub document_hash: Option<String>,
    /// Code of the API and sentence, for a record that does not move.
    pub code: Option<String>,
    pub reason: Option<String>,
}
