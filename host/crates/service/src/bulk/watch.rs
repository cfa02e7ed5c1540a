//! Limits the open progress streams, because each one polls the database.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::id::{OrgId, SessionId};

/// Maximum number of streams on one node.
const STREAMS: usize = 256;
/// Maximum number of one organization's streams.
const OF_ONE: usize = 32;
/// Maximum number of one session's streams: the pages that a person has open at once, and a quarter of
/// what the colleagues share.
const OF_SESSION: usize = 8;

/// Owners of open streams.
#[derive(Clone, Default)]
pub struct ProgressStreams {
    open: Arc<Mutex<Vec<StreamOwner>>>,
}

/// Organization of a stream, and session for a page of the console.
#[derive(Clone, PartialEq, Eq)]
struct StreamOwner {
    org: OrgId,
    session: Option<SessionId>,
}

/// Slot of one stream; dropping it releases the slot.
pub struct StreamSlot {
    streams: ProgressStreams,
    owner: StreamOwner,
}

/// Reason why no further stream is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamLimit {
    /// The session has too many.
    Session,
    /// The organization, or the node, has too many.
    Shared,
}

impl ProgressStreams {
    /// Takes a slot.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn enter(
        &self,
        org: &OrgId,
        session: Option<&SessionId>,
    ) -> Result<StreamSlot, StreamLimit> {
        let mut open = self.lock();
        let of_org = open.iter().filter(|owner| owner.org == *org);
        let (own, of_session) = of_org.fold((0, 0), |(own, of_session), owner| {
            let is_same = session.is_some() && owner.session.as_ref() == session;
            (own + 1, of_session + usize::from(is_same))
        });
        // Before the shared limits, so that a person with many open pages does not shut colleagues out.
        if of_session >= OF_SESSION {
            return Err(StreamLimit::Session);
        }

        if open.len() >= STREAMS || own >= OF_ONE {
            return Err(StreamLimit::Shared);
        }

        let owner = StreamOwner {
            org: org.clone(),
            session: session.cloned(),
        };
        open.push(owner.clone());

        Ok(StreamSlot {
            streams: self.clone(),
            owner,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StreamOwner>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        // Streams of one owner are equal to each other, so any of their entries may go.
        if let Some(place) = open.iter().position(|owner| *owner == self.owner) {
            open.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_streams_of_an_organization_are_limited() {
        let streams = ProgressStreams::default();
        let (own, other) = (OrgId::new(), OrgId::new());
        let enter = |org: &OrgId| streams.enter(org, None);
        let mut places: Vec<StreamSlot> = (0..OF_ONE).map_while(|_| enter(&own).ok()).collect();
        assert_eq!(places.len(), OF_ONE);
        assert_eq!(enter(&own).err(), Some(StreamLimit::Shared));
        assert!(enter(&other).is_ok());

        places.pop();
        assert!(enter(&own).is_ok());
    }

    #[test]
    fn one_session_leaves_streams_to_its_colleagues() {
        let streams = ProgressStreams::default();
        let (org, one, other) = (OrgId::new(), SessionId::new(), SessionId::new());
        let enter = |session: &SessionId| streams.enter(&org, Some(session));
        let mut places: Vec<StreamSlot> = (0..OF_ONE).map_while(|_| enter(&one).ok()).collect();
        assert_eq!(places.len(), OF_SESSION);
        assert_eq!(enter(&one).err(), Some(StreamLimit::Session));
        assert!(enter(&other).is_ok());

        places.pop();
        assert!(enter(&one).is_ok());
    }
}
