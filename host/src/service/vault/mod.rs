//! The vault: storing authoritative copies, proving them, and releasing them.

pub mod certify_anew;
pub mod completion;
pub(crate) mod consent_words;
pub mod copies;
pub mod custody;
pub mod custody_record;
pub(crate) mod custody_sheet;
pub mod downloads;
pub mod evidence_copy;
pub mod history;
pub mod integrity;
pub mod orphans;
pub mod overview;
pub mod paper;
pub mod repeats;
pub mod timekeeping;
pub mod vault_in;
pub mod vault_out;

use crate::sealing::{SealingKey, TimestampAuthority};
pub use crate::service::envelope_locks::EnvelopeLocks;
use crate::service::log::LogSequencer;
use copies::CopyCache;

/// State of the vault: keys for seals and the log, and caches.
pub struct Vault {
    /// Seals authoritative copies.
    pub(crate) sealing: SealingKey,
    /// Time stamping authority for seals, if configured.
    pub(crate) timestamps: Option<TimestampAuthority>,
    /// Extends the log over all ledgers.
    pub(crate) log: LogSequencer,
    /// Copies that signers downloaded recently.
    pub(crate) copies: CopyCache,
    pub(crate) locks: EnvelopeLocks,
}
