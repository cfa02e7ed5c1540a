//! The vault: storing authoritative copies, proving them, and releasing them.

pub mod certify_anew;
pub mod completion;
pub mod consent_words;
pub mod copies;
pub mod custody;
pub mod custody_record;
pub mod custody_sheet;
pub mod downloads;
pub mod evidence_copy;
pub mod funding_package;
pub mod history;
pub mod integrity;
pub mod long_term;
pub mod orphans;
pub mod overview;
pub mod paper;
pub mod repeats;
pub mod timekeeping;
pub mod vault_in;
pub mod vault_out;

use std::sync::Arc;

use copies::CopyCache;
use holdfast_adapters::delivery::revocation::RevocationFetcher;
use holdfast_adapters::sealing::{SealingKey, TimestampAuthority};
pub use holdfast_platform::envelope_locks::EnvelopeLocks;
use holdfast_platform::log::LogSequencer;

/// State of the vault: keys for seals and the log, and caches.
pub struct Vault {
    /// Seals authoritative copies.
    pub sealing: SealingKey,
    /// Time stamping authority for seals, if configured.
    pub timestamps: Option<TimestampAuthority>,
    /// Fetches statements about the revocation of certificates.
    pub revocation: RevocationFetcher,
    /// Extends the log over all ledgers.
    pub log: Arc<LogSequencer>,
    /// Copies that signers downloaded recently.
    pub copies: CopyCache,
    pub locks: EnvelopeLocks,
}
