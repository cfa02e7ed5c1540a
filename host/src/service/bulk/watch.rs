//! Who watches batches: each stream asks the database now and then, so there are only
//! so many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::id::OrgId;

/// Streams that one node serves at once.
const STREAMS: usize = 256;
/// Of those, one organization's.
const OF_ONE: usize = 32;

/// The open streams.
#[derive(Clone, Default)]
pub struct Streams {
    open: Arc<Mutex<HashMap<OrgId, usize>>>,
}

/// The place of one stream; whoever drops it gives it back.
pub struct Place {
    streams: Streams,
    org: OrgId,
}

impl Streams {
    /// None when there are too many.
    pub fn enter(&self, org: &OrgId) -> Option<Place> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        let own = open.get(org).copied().unwrap_or_default();
        if all >= STREAMS || own >= OF_ONE {
            return None;
        }
        open.insert(org.clone(), own + 1);
        Some(Place {
            streams: self.clone(),
            org: org.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<OrgId, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
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
    fn one_organization_leaves_room_for_others() {
        let streams = Streams::default();
        let (own, other) = (OrgId::new(), OrgId::new());
        let mut places: Vec<Place> = (0..OF_ONE).filter_map(|_| streams.enter(&own)).collect();
        assert_eq!(places.len(), OF_ONE);
        assert!(streams.enter(&own).is_none());
        assert!(streams.enter(&other).is_some());
        places.pop();
        assert!(streams.enter(&own).is_some());
    }
}
