//! The built-in signing room: the provider for `provider_instance` `embedded`.
//!
//! The room has templates, submissions and submitters, and knows nothing of envelopes, except that external ids name the
//! owners of its files. The rest of the host calls it like every signing provider, through the room's own component
//! (`plugins/signing-embedded`), which can use the room's records (`records.rs`). The signing
//! form calls the room directly (`form.rs`): it is the room's own user interface.

use std::sync::Arc;

use holdfast_store::SqlConnection;

use holdfast_adapters::files::Files;
use holdfast_components::ComponentRegistry;
use holdfast_domain::clock::Clock;
use holdfast_domain::dates::DateSettings;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::job::FollowSubmission;
use holdfast_store::room::{RoomSubmission, RoomSubmitter};
use holdfast_store::{Store, StoreError, WriteTransaction, jobs, organizations};

mod answers;
pub mod attachments;
pub mod changes;
pub mod disclosures;
pub mod execute;
pub mod fitting;
pub mod form;
mod records;
pub mod shown;
pub mod signature;

pub use answers::ruled_field;
pub use form::unsent;
pub use records::BufferedRoomRecords;

/// The signing room.
#[derive(Clone)]
pub struct Room {
    pub store: Store,
    pub files: Files,
    pub components: Arc<ComponentRegistry>,
    pub clock: Clock,
}

/// Returns the owner of a submission's files: the record that it was sent for, or `other`. The owner's key
/// encrypts them.
///
/// The external id of a submission begins with the id of its record.
fn owner_of<'a>(submitter: &'a RoomSubmitter, other: &'a str) -> &'a str {
    let sent_for = submitter.external_id.as_deref().unwrap_or_default();
    let record = sent_for.split('.').next().unwrap_or_default();
    if EnvelopeId::parse(record).is_some() {
        record
    } else {
        other
    }
}

/// Returns how an organization writes dates.
async fn dates_of(connection: &mut SqlConnection, org: &OrgId) -> Result<DateSettings, StoreError> {
    let organization = organizations::get(connection, org).await?;
    Ok(organization.map_or_else(DateSettings::default, |found| found.settings.dates))
}

/// Returns how the dates of a submission are written. Their form does not follow a later change of the setting:
/// signers have seen it.
async fn dates_in(
    connection: &mut SqlConnection,
    submission: &RoomSubmission,
) -> Result<DateSettings, StoreError> {
    let dates = dates_of(connection, &submission.org).await?;
    Ok(DateSettings {
        format: submission.date_format.unwrap_or(dates.format),
        ..dates
    })
}

impl Room {
    pub fn new(
        store: Store,
        files: Files,
        components: Arc<ComponentRegistry>,
        clock: Clock,
    ) -> Self {
        Self {
            store,
            files,
            components,
            clock,
        }
    }

    /// Adds the job that updates the envelope after a change of its submission.
    async fn tell(
        &self,
        tx: &mut WriteTransaction,
        submitter: &RoomSubmitter,
    ) -> Result<(), StoreError> {
        // Without a key: a job that is running may have read the submission before this change.
        let job = FollowSubmission::of(submitter.submission);
        jobs::insert(tx, &submitter.org, &job, None, self.clock.now()).await
    }
}
