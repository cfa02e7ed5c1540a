//! Limits the open progress streams, because each one polls the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::id::OrgId;

/// Maximum number of streams on one node.
const STREAMS: usize = 256;
/// Maximum number of one organization's streams.
const OF_ONE: usize = 32;

/// Counts of open streams by organization.
#[derive(Clone, Default)]
pub struct ProgressStreams {
    open: Arc<Mutex<HashMap<OrgId, usize>>>,
}

/// Slot of one stream; dropping it releases the slot.
pub struct StreamSlot {
    streams: ProgressStreams,
    org: OrgId,
}

impl ProgressStreams {
    /// Takes a slot. None when a limit is reached.
    pub fn enter(&self, org: &OrgId) -> Option<StreamSlot> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let own = open.get(org).copied().unwrap_or_default();
        if all >= STREAMS || own >= OF_ONE {
            return None;
        }
        open.insert(org.clone(), own + 1);
        Some(StreamSlot {
            streams: self.clone(),
            org: org.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrgId, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        let left = open.get(&self.org).map_or(0, |own| own.saturating_sub(1));
        match left {
            0 => open.remove(&self.org),
            left => open.insert(self.org.clone(), left),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_streams_of_an_organization_are_limited() {
        let streams = ProgressStreams::default();
        let (own, other) = (OrgId::new(), OrgId::new());
        let mut places: Vec<StreamSlot> = (0..OF_ONE).filter_map(|_| streams.enter(&own)).collect();
        assert_eq!(places.len(), OF_ONE);
        assert!(streams.enter(&own).is_none());
        assert!(streams.enter(&other).is_some());
        places.pop();
        assert!(streams.enter(&own).is_some());
    }
}
