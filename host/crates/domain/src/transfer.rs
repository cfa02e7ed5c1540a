//! Transfers of control from a seller to a buyer: offer, acceptance, confirmation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{EnvelopeId, OrgId, TransferId};
use super::merkle::{self, MissingTile, TileReader};

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

words! {
    /// What becomes of the seller's copy of a sold record.
    SellerCopy {
        // The seller may still get copies, as before.
        Kept = "kept",
        // Its copies have a watermark that states the sale.
        Marked = "marked",
        // It gets no copy any more.
        Removed = "removed",
    }
}

/// A record that a party has sold.
#[derive(Clone, Debug)]
pub struct SoldRecord {
    /// Originator of the record.
    pub org: OrgId,
    pub envelope: EnvelopeId,
    /// The seller.
    pub party: OrgId,
    pub transfer: TransferId,
    pub copy: SellerCopy,
    pub sold_at: Timestamp,
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
    pub seller_copy: SellerCopy,
    pub expires_at: Timestamp,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    /// The party that asked for the step in progress; `None` if the time was over.
    pub acting: Option<OrgId>,
    /// Its credential, for the ledger.
    pub actor: String,
    /// Time at which the buyer got the offer; `None` for one that ended before.
    pub offered_at: Option<Timestamp>,
    /// What the buyer is offered.
    pub offered: Option<RecordsRoot>,
    pub receipt: Option<TransferReceipt>,
    /// The signed statement of the party that asked for the step in progress, for the ledger.
    pub signed: Option<serde_json::Value>,
}

/// Records of a transfer in one hash: the root of their Merkle tree (RFC 6962). Its leaves are the lines
/// `envelope_id document_hash` in the order of the ids; before they are offered, only the ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordsRoot {
    /// Number of records.
    pub records: u64,
    /// Lower-case hex.
    pub root: String,
}

/// Proof that a record is among others (RFC 6962, section 2.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInclusion {
    #[serde(flatten)]
    pub among: RecordsRoot,
    pub index: u64,
    /// Hashes in lower-case hex.
    pub path: Vec<String>,
}

/// Merkle tree over records.
pub struct RecordTree {
    tiles: TileReader,
    ids: Vec<EnvelopeId>,
    root: RecordsRoot,
}

impl RecordTree {
    /// Builds the tree over records in the order of their ids.
    ///
    /// # Errors
    /// Never: the tree has all its tiles.
    pub fn new<'a>(
        records: impl IntoIterator<Item = (&'a EnvelopeId, Option<&'a str>)>,
    ) -> Result<Self, MissingTile> {
        let (mut tiles, mut ids) = (TileReader::default(), Vec::new());
        for (envelope, hash) in records {
            let line = record_line(envelope.as_str(), hash);
            // A line holds the record and its hash, so a proof does not fit another version of the document.
            tiles.append(ids.len() as u64, merkle::leaf_hash(line.as_bytes()))?;
            ids.push(envelope.clone());
        }

        let records = ids.len() as u64;
        let root = hex::encode(tiles.root(records)?);
        Ok(Self {
            tiles,
            ids,
            root: RecordsRoot { records, root },
        })
    }

    /// Returns the root, with the number of records.
    pub fn root(&self) -> &RecordsRoot {
        &self.root
    }

    /// Proves that a record is in the tree; `None` if it is not.
    ///
    /// # Errors
    /// Never: the tree has all its tiles.
    pub fn inclusion(&self, envelope: &EnvelopeId) -> Result<Option<RecordInclusion>, MissingTile> {
        // Records come in the order of their ids, which the search relies on.
        let Ok(index) = self.ids.binary_search(envelope) else {
            return Ok(None);
        };

        let (among, index) = (self.root.clone(), index as u64);
        let path = self.tiles.inclusion(index, among.records)?;
        Ok(Some(RecordInclusion {
            path: path.iter().map(hex::encode).collect(),
            among,
            index,
        }))
    }
}

/// Leaf of a record in its tree.
fn record_line(envelope: &str, hash: Option<&str>) -> String {
    match hash {
        Some(hash) => format!("{envelope} {hash}"),
        None => envelope.to_owned(),
    }
}

impl RecordInclusion {
    /// Whether a record is among the others.
    pub fn holds(&self, envelope: &str, hash: Option<&str>) -> bool {
        let leaf = merkle::leaf_hash(record_line(envelope, hash).as_bytes());
        let path: Option<Vec<_>> = self.path.iter().map(|hash| merkle::parse(hash)).collect();
        let (Some(path), Some(root)) = (path, merkle::parse(&self.among.root)) else {
            return false;
        };
        merkle::includes(leaf, self.index, &path, self.among.records, &root)
    }
}

/// What the buyer accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferReceipt {
    pub accepted_at: Timestamp,
    #[serde(flatten)]
    pub accepted: RecordsRoot,
}

/// A record in a transfer.
#[derive(Clone, Debug)]
pub struct TransferRecord {
    pub envelope: EnvelopeId,
    pub state: RecordState,
    /// SHA-256 of the authoritative copy when it was offered.
    pub document_hash: Option<String>,
    /// Whether it is part of the buyer's receipt.
    pub accepted: bool,
    /// Code of the API and sentence, for a record that does not move.
    pub code: Option<String>,
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_of_a_tree_is_proved_and_no_other() {
        let mut ids: Vec<EnvelopeId> = (0..700).map(|_| EnvelopeId::new()).collect();
        ids.sort_unstable();
        let tree = RecordTree::new(ids.iter().map(|id| (id, Some("ab")))).unwrap();
        for id in &ids {
            let inclusion = tree.inclusion(id).unwrap().unwrap();
            assert_eq!(inclusion.among, *tree.root());
            assert!(inclusion.holds(id.as_str(), Some("ab")));
            assert!(!inclusion.holds(id.as_str(), Some("ac")));
            assert!(!inclusion.holds(id.as_str(), None));
            assert!(!inclusion.holds(EnvelopeId::new().as_str(), Some("ab")));
        }

        assert_eq!(tree.inclusion(&EnvelopeId::new()).unwrap(), None);
        let fewer = RecordTree::new(ids[1..].iter().map(|id| (id, Some("ab")))).unwrap();
        assert_ne!(fewer.root().root, tree.root().root);
    }
}
