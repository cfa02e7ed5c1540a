//! Bulk send: one document for many clients, an envelope for each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::{VaultTerms, words};
use super::field::Field;
use super::id::{BatchId, CustomerId, EnvelopeId, ItemId, OrgId, PackageId, TemplateId};
use super::reminders::ReminderPlan;

words! {
    /// Status of a batch (specification, "Bulk batch status").
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
    /// Status of one client of a batch.
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
    /// Source of a batch's document.
    DocumentSource {
        Template = "template",
        Package = "package",
        New = "new",
    }
}

/// Error of an item for a client without an e-mail address.
pub const NO_EMAIL: &str = "No email address";
/// Error of an item for a client with the sender's e-mail address.
pub const OWN_EMAIL: &str = "Email address is the sender's own";

/// Record of a batch.
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
    /// Whether the creator signs as the second party.
    pub add_me_as_signer: bool,
    /// The sender's choice. It takes effect only with accepted `terms`.
    pub auto_vault_enabled: bool,
    pub terms: Option<VaultTerms>,
    pub tags: Vec<String>,
    /// Master template, made from the source in the builder.
    pub master: Option<TemplateId>,
    /// Provider instance of the master; `None` before there is one.
    pub provider_instance: Option<String>,
    /// Snapshot of the master at submission.
    pub submitted: Option<SubmittedMaster>,
    pub status: BatchStatus,
    /// Number of submissions.
    pub runs: i64,
    /// E-mail address of the sender.
    pub created_by: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Batch {
    /// Returns the reason for skipping a client with this address, if there is one
    /// (specification, "Bulk item": `skipped`).
    pub fn skips(&self, email: Option<&str>) -> Option<&'static str> {
        match email.map(str::trim) {
            None | Some("") => Some(NO_EMAIL),
            Some(email) if email.eq_ignore_ascii_case(self.created_by.trim()) => Some(OWN_EMAIL),
            Some(_) => None,
        }
    }

    /// Returns the number of signers of each envelope: the client, and the sender if added.
    pub fn signers(&self) -> usize {
        if self.add_me_as_signer { 2 } else { 1 }
    }
}

/// Snapshot of the master template at submission: later changes of the template do not affect
/// the items of this run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubmittedMaster {
    /// Id at the provider of the copy that is cloned for each client.
    pub provider_template: String,
    /// Roles in signing order.
    pub roles: Vec<String>,
    pub fields: Vec<Field>,
    /// Whether signers cannot decline.
    #[serde(default)]
    pub forbids_declining: bool,
    /// Plan of reminders; without one, that of the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminders: Option<ReminderPlan>,
    /// Whether the provider has lost the copy.
    #[serde(default)]
    pub lost: bool,
}

/// One client of a batch.
#[derive(Clone, Debug)]
pub struct BatchItem {
    pub id: ItemId,
    pub org: OrgId,
    pub batch: BatchId,
    /// Position in the batch, from 0.
    pub position: i64,
    pub customer: CustomerId,
    pub customer_name: String,
    pub email: Option<String>,
    pub status: ItemStatus,
    /// Envelope of this client; `None` before it is created.
    pub envelope: Option<EnvelopeId>,
    pub error: Option<String>,
    pub sent_at: Option<Timestamp>,
    /// Number of attempts that could not reach the provider.
    pub attempts: i64,
    /// Fencing token of the item's lease, incremented by every claim.
    pub lease_epoch: i64,
}

/// Number of items of a batch by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchCounts {
    pub pending: i64,
    pub running: i64,
    pub sent: i64,
    pub failed: i64,
    pub skipped: i64,
    pub cancelled: i64,
}

impl BatchCounts {
    /// Returns the count of one status.
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

    /// Returns the number of all items.
    pub fn total(&self) -> i64 {
        self.unfinished() + self.sent + self.failed + self.skipped + self.cancelled
    }

    /// Returns the number of items that are not settled yet.
    pub fn unfinished(&self) -> i64 {
        self.pending + self.running
    }
}

/// Result of working on a claimed item.
#[derive(Clone, Debug)]
pub enum ItemOutcome {
    Sent(Timestamp),
    Failed(String),
    Skipped(String),
    Cancelled,
    /// Retry at `at`. `counts` adds one to the item's failed attempts.
    Later {
        at: Timestamp,
        why: String,
        counts: bool,
    },
}
