//! Repeated releases: the same form gives fresh links, another one is refused.

use holdfast_store::SqlConnection;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::downloads::LIFE;
use super::paper;
use super::vault_out::{ReleaseForm, ReleaseMedium};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::event::EventType;
use holdfast_domain::ledger::LedgerEntry;
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError, events};
use holdfast_store::downloads::{self, LinkedFile};
use holdfast_store::{StoreError, WriteTransaction, ledger};

/// Action of the ledger entry of links that were issued after the release.
const ISSUED: &str = "archive_links.issued";

/// The form of a release as it is recorded, and when it was made.
pub struct RecordedRelease {
    pub form: ReleaseForm,
    pub at: Timestamp,
    /// Number of the link that came with the release; none for one that a job made.
    link_number: Option<u64>,
}

/// Returns the release of a record.
pub async fn recorded(
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<Option<RecordedRelease>, ServiceError> {
    let action = EventType::VaultReleased.as_str();
    let entry = ledger::last_of(connection, &envelope.org, &envelope.id, action).await?;
    entry.map(read).transpose()
}

fn read(entry: LedgerEntry) -> Result<RecordedRelease, ServiceError> {
    if entry.withheld {
        let why = "The record was destroyed, and the recipient of its release with it";
        return Err(ServiceError::Conflict(why.into()));
    }

    // The form was checked before it was recorded. One that cannot be read is a fault of this program.
    let form = ReleaseForm::deserialize(&entry.details["form"]);
    let form = form.map_err(|error| ServiceError::Internal(format!("a release form: {error}")))?;
    Ok(RecordedRelease {
        form,
        at: entry.at,
        link_number: entry.details["link_number"].as_u64(),
    })
}

/// Binds a repeated release to the form of the release, with the envelope's row locked.
///
/// # Errors
/// `released_to_another` for another recipient or purpose; `converted_to_paper` for a file instead of the paper
/// original; `Conflict` for paper instead of a file.
pub async fn bind(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    form: &ReleaseForm,
) -> Result<RecordedRelease, ServiceError> {
    let released = recorded(connection, envelope).await?;
    let released = released
        .ok_or_else(|| ServiceError::Internal("a released record has no release".into()))?;

    // A file and a paper original must not stand side by side, so the first release fixes the medium.
    match (released.form.medium, form.medium) {
        (ReleaseMedium::Electronic, ReleaseMedium::Paper) => {
            let message = "The authoritative copy has left the vault as a file";
            return Err(ServiceError::Conflict(message.into()));
        }
        (ReleaseMedium::Paper, ReleaseMedium::Electronic) => {
            return Err(converted_to_paper());
        }
        (ReleaseMedium::Electronic, ReleaseMedium::Electronic)
        | (ReleaseMedium::Paper, ReleaseMedium::Paper) => {}
    }

    if !released.form.is_for_the_same(form) {
        return Err(ControlProblem::ReleasedToAnother.into());
    }

    Ok(released)
}

/// Ends the links to a released record that are still valid, so that one link leads to it at a time, and
/// records the new one. The envelope's row is locked.
///
/// # Errors
/// For a paper original: `converted_to_paper` after its download, `Conflict` during it.
pub async fn reissue(
    core: &Core,
    tx: &mut WriteTransaction,
    caller: &Caller,
    envelope: &Envelope,
    released: &RecordedRelease,
) -> Result<(), ServiceError> {
    let now = core.clock.now();
    let file = file_of(released.form.medium);
    if file == LinkedFile::PaperOriginal {
        permit_another_print(tx, envelope, now).await?;
    }

    // Links of running downloads end, too. One that breaks off must not come back beside the new link.
    downloads::expire(tx, &envelope.org, &envelope.id, file, now).await?;

    let form = &released.form;
    let details = json!({
        "file": file,
        "link_number": next_number(tx, envelope, released).await?,
        "recipient_name": form.recipient_name,
        "recipient_organization": form.recipient_organization,
        "recipient_email": form.recipient_email,
        "purpose_of_release": form.purpose_of_release,
    });
    events::record(tx, envelope, &caller.actor, ISSUED, details, now).await?;

    Ok(())
}

/// Returns the file that leaves with a release.
pub fn file_of(medium: ReleaseMedium) -> LinkedFile {
    match medium {
        ReleaseMedium::Electronic => LinkedFile::Archive,
        ReleaseMedium::Paper => LinkedFile::PaperOriginal,
    }
}

/// Counts the links to the released file by the ledger, because their rows are removed some day.
async fn next_number(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    released: &RecordedRelease,
) -> Result<u64, StoreError> {
    let last = ledger::last_of(connection, &envelope.org, &envelope.id, ISSUED).await?;
    let number = |entry: LedgerEntry| entry.details.get("link_number").and_then(Value::as_u64);
    // Entries of earlier releases have no number. Counting then starts at the release.
    let last = last.and_then(number).or(released.link_number);
    Ok(last.unwrap_or_default() + 1)
}

fn converted_to_paper() -> ServiceError {
    let message = "A paper original has replaced the authoritative copy of this record";
    Problem::new(ProblemKind::State, "converted_to_paper", message).into()
}

/// One paper original leaves the service: there is no link after the first complete download.
async fn permit_another_print(
    connection: &mut SqlConnection,
    envelope: &Envelope,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let (org, id) = (&envelope.org, &envelope.id);
    let downloaded = ledger::last_of(connection, org, id, paper::DOWNLOADED).await?;
    if downloaded.is_some() {
        return Err(converted_to_paper());
    }

    // A crash leaves it open how much arrived, so the link counts as used for as long as it lives.
    let file = LinkedFile::PaperOriginal;
    if downloads::in_use(connection, envelope, file, now - LIFE).await? {
        let message = "The paper original is being downloaded; after a failure there is a new link in an hour";
        return Err(ServiceError::Conflict(message.into()));
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::ledger::NewEntry;

    #[test]
    fn a_destroyed_release_is_refused() {
        let new = NewEntry {
            at: Timestamp::from_millis(0),
            actor: "key:key_1".into(),
            action: EventType::VaultReleased.as_str().into(),
            details: json!({ "form": { "recipient_name": "Ann" } }),
        };
        let entry = LedgerEntry::after(None, new).redacted();
        let Err(ServiceError::Conflict(why)) = read(entry) else {
            panic!("a destroyed form was read");
        };
        assert!(why.contains("The record was destroyed"), "{why}");
    }
}
