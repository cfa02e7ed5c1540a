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
pub mod existing;
pub mod history;
pub mod integrity;
pub mod log;
pub mod orphans;
pub mod overview;
pub mod paper;
pub mod repeats;
pub mod timekeeping;
pub mod vault_in;
pub mod vault_out;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::domain::id::EnvelopeId;
use crate::sealing::{SealingKey, TimestampAuthority};
use copies::CopyCache;
use log::LogSequencer;

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

/// In-process locks, one per envelope that is being worked on.
#[derive(Default)]
pub struct EnvelopeLocks(Mutex<HashMap<EnvelopeId, Weak<tokio::sync::Mutex<()>>>>);

impl EnvelopeLocks {
    /// Returns the lock of an envelope. One pipeline runs per envelope and process; a second
    /// call waits and then finds the work done. Between processes the database decides.
    pub(crate) fn of(&self, envelope: &EnvelopeId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A lock that no caller holds is dropped here. The map would otherwise grow by every envelope.
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(envelope).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        locks.insert(envelope.clone(), Arc::downgrade(&lock));
        lock
    }
}
