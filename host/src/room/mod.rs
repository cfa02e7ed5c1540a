//! The built-in signing room: what is behind `provider_instance` `embedded`.
//!
//! It knows templates, submissions and submitters, not envelopes. The rest of the host asks
//! it what it asks every signing provider, through the room's own component
//! (`plugins/signing-embedded`), which is lent the room's records (`records.rs`). The signing
//! form talks to it directly (`form.rs`): that is the room's own user interface.

use std::sync::Arc;

use crate::components::Components;
use crate::domain::clock::Clock;
use crate::domain::job::FollowSubmission;
use crate::files::Files;
use crate::store::room::RoomSubmitter;
use crate::store::{Store, StoreError, Tx, jobs};

pub mod execute;
pub mod form;
mod records;
pub mod signature;

pub use records::Records;

/// The signing room.
#[derive(Clone)]
pub struct Room {
    pub(crate) store: Store,
    pub(crate) files: Files,
    pub(crate) components: Arc<Components>,
    pub(crate) clock: Clock,
}

impl Room {
    pub fn new(store: Store, files: Files, components: Arc<Components>, clock: Clock) -> Self {
        Self {
            store,
            files,
            components,
            clock,
        }
    }

    /// Has the envelope follow what was done to its submission, from the commit on.
    async fn tell(&self, tx: &mut Tx, submitter: &RoomSubmitter) -> Result<(), StoreError> {
        let job = FollowSubmission::of(submitter.submission);
        jobs::insert(tx, &submitter.org, &job, None, self.clock.now()).await
    }
}
