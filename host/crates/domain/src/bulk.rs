//! Bulk send: one document for many clients, an envelope for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::{VaultTerms, words};
use super::field::Field;
use super::id::{BatchId, CustomerId, EnvelopeId, ItemId, OrgId, PackageId, TemplateId};

words! {
    /// Where a batch stands (specification, "Bulk batch status").
    BatchStatus {
        Draft = "draft",
        Ready = "ready",
        Running = "running",
        Completed = "completed",
        Cancelled = "cancelled",
        Failed = "failed",
    }
}

words! {
    /// Where one client of a batch stands.
    ItemStatus {
        Pending = "pending",
        Running = "running",
        Sent = "sent",
        Failed = "failed",
        Skipped = "skipped",
        Cancelled = "cancelled",
    }
}

words! {
    /// What a batch's document is made of.
    DocumentSource {
        Template = "template",
        Package = "package",
        New = "new",
    }
}

/// The error of an item whose client has no address.
pub const NO_EMAIL: &str = "No email address";
/// The error of an item whose client has the sender's address.
pub const OWN_EMAIL: &str = "Email address is the sender's own";

/// A batch's record.
#[derive(Clone, Debug)]
pub struct Batch {
    pub id: BatchId,
    pub org: OrgId,
    pub name: String,
    pub source: DocumentSource,
    pub source_template: Option<TemplateId>,
    pub source_package: Option<PackageId>,
    pub kba_required: bool,
    pub preserve_signing_order: bool,
    /// The creator signs as the second party.
    pub add_me_as_signer: bool,
    /// The toggle; what authorizes vaulting is `terms`.
    pub auto_vault_enabled: bool,
    pub terms: Option<VaultTerms>,
    pub tags: Vec<String>,
    /// What the builder made of the source.
    pub master: Option<TemplateId>,
    /// Where the master is; none before there is one.
    pub provider_instance: Option<String>,
    /// The master as it was submitted.
    pub submitted: Option<SubmittedMaster>,
    pub status: BatchStatus,
    /// How often it was submitted.
    pub runs: i64,
    /// E-mail address of the sender.
    pub created_by: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Batch {
    /// Why nothing is sent to a client with this address, if nothing is (specification,
    /// "Bulk item": `skipped`).
    pub fn skips(&self, email: Option<&str>) -> Option<&'static str> {
        match email.map(str::trim) {
            None | Some("") => Some(NO_EMAIL),
            Some(email) if email.eq_ignore_ascii_case(self.created_by.trim()) => Some(OWN_EMAIL),
            Some(_) => None,
        }
    }

    /// How many sign each envelope: the client, and the sender when added.
    pub fn signers(&self) -> usize {
        if self.add_me_as_signer { 2 } else { 1 }
    }
}

/// The master template as it was submitted: whoever changes the template
/// afterwards changes nothing of what is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubmittedMaster {
    /// The provider's id of the copy that is cloned for each client.
    pub provider_template: String,
    /// Parties in order.
    pub roles: Vec<String>,
    pub fields: Vec<Field>,
    /// The provider does not have it any more.
    #[serde(default)]
    pub lost: bool,
}

/// One client of a batch.
#[derive(Clone, Debug)]
pub struct Item {
    pub id: ItemId,
    pub org: OrgId,
    pub batch: BatchId,
    /// From 0, in the order of the list.
    pub position: i64,
    pub customer: CustomerId,
    pub customer_name: String,
    pub email: Option<String>,
    pub status: ItemStatus,
    /// None before it is created.
    pub envelope: Option<EnvelopeId>,
    pub error: Option<String>,
    pub sent_at: Option<Timestamp>,
    /// How often its provider could not be reached.
    pub attempts: i64,
    /// Whoever works on it has raised this.
    pub lease_epoch: i64,
}

/// How many items of a batch stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub pending: i64,
    pub running: i64,
    pub sent: i64,
    pub failed: i64,
    pub skipped: i64,
    pub cancelled: i64,
}

impl Counts {
    /// The count of one status.
    pub fn of(&mut self, status: ItemStatus) -> &mut i64 {
        match status {
            ItemStatus::Pending => &mut self.pending,
            ItemStatus::Running => &mut self.running,
            ItemStatus::Sent => &mut self.sent,
            ItemStatus::Failed => &mut self.failed,
            ItemStatus::Skipped => &mut self.skipped,
            ItemStatus::Cancelled => &mut self.cancelled,
        }
    }

    /// All items.
    pub fn total(&self) -> i64 {
        self.unfinished() + self.sent + self.failed + self.skipped + self.cancelled
    }

    /// Items that are still to be sent.
    pub fn unfinished(&self) -> i64 {
        self.pending + self.running
    }
}

/// What became of an item that was claimed.
#[derive(Clone, Debug)]
pub enum Outcome {
    Sent(Timestamp),
    Failed(String),
    Skipped(String),
    Cancelled,
    /// To be tried again; whether it counts as an attempt that failed.
    Later {
        at: Timestamp,
        why: String,
        counts: bool,
    },
}
