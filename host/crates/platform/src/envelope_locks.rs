//! Locks in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use holdfast_domain::id::EnvelopeId;

/// In-process locks, one per envelope that is being worked on.
#[derive(Default)]
pub struct EnvelopeLocks(Mutex<HashMap<EnvelopeId, Weak<tokio::sync::Mutex<()>>>>);

impl EnvelopeLocks {
    /// Returns the lock of an envelope. One pipeline runs per envelope and process; a second
    /// call waits and then finds the work done. Between processes the database decides.
    pub fn of(&self, envelope: &EnvelopeId) -> Arc<tokio::sync::Mutex<()>> {
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
