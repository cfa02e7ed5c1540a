//! Conversion to paper: an original that is printed once replaces the authoritative copy.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize as _;
use serde_json::json;
use sqlx::AnyConnection;

use super::copies::{self, OutgoingCopy};
use super::custody_sheet::RecordWriter;
use super::downloads::LIFE;
use super::vault_out::{ReleaseForm, ReleaseMedium};
use crate::components::rules::watermarks::WatermarkRequest;
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, EnvelopeStatus};
use crate::domain::event::EventType;
use crate::domain::ledger::LedgerEntry;
use crate::files::{FilesError, SpoolWriter};
use crate::service::{Core, ServiceError};
use crate::store::downloads::{self, LinkedFile};
use crate::store::ledger;

/// Action of the ledger entry of a paper original that was downloaded completely.
pub const DOWNLOADED: &str = "paper_original.downloaded";

/// Makes the document to print: the authoritative copy with a line at the head of every page that names
/// record, moment, recipient and hash. Equal input gives equal bytes.
pub async fn original(
    core: &Core,
    envelope: &Envelope,
    form: &ReleaseForm,
    authoritative: OutgoingCopy,
    at: Timestamp,
) -> Result<Bytes, ServiceError> {
    let wording = copies::wording(&mut *core.store.read().await?, &envelope.org).await?;
    let writer = RecordWriter::new(&wording);
    let moment = writer.moment(&at.to_string());
    let hash = envelope.record.document_hash.as_deref();
    let values = [
        ("id", envelope.id.as_str()),
        ("moment", &moment),
        ("recipient", &form.recipient_organization),
        ("hash", hash.unwrap_or_default()),
    ];
    let request = WatermarkRequest {
        line: writer.texts.with("paper-line", values),
        at_head: true,
        hidden: envelope.id.to_string(),
        marked_at: at.to_string(),
    };
    copies::watermarked(core, envelope, authoritative, request).await
}

/// Makes the document to print of a record that was converted. `archive` is its former authoritative copy.
pub async fn printed(
    core: &Core,
    envelope: &Envelope,
    archive: OutgoingCopy,
) -> Result<OutgoingCopy, ServiceError> {
    let released = release_of(&mut *core.store.read().await?, envelope).await?;
    let (form, at) = released.ok_or(ServiceError::NotFound("Download"))?;
    let pdf = original(core, envelope, &form, archive, at).await?;
    // Sent in pieces from the disk: a download that breaks off has not sent the last one.
    let mut spool = SpoolWriter::new(&core.config.spool_folder())
        .await
        .map_err(FilesError::Spool)?;
    spool.write(&pdf).await.map_err(FilesError::Spool)?;
    let spooled = Arc::new(spool.finish().await.map_err(FilesError::Spool)?);
    Ok(OutgoingCopy {
        pieces: spooled.pieces(),
        size: spooled.size(),
    })
}

/// Whether a paper original replaced the authoritative copy.
pub async fn is_converted(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<bool, ServiceError> {
    if envelope.status != EnvelopeStatus::VaultedOut {
        return Ok(false);
    }
    let released = release_of(connection, envelope).await?;
    Ok(released.is_some_and(|(form, _)| form.medium == ReleaseMedium::Paper))
}

/// Permits a repeated release, with the envelope's row locked. One paper original leaves the service: its
/// link is the only one, and there is none after the first complete download.
///
/// # Errors
/// `ConvertedToPaper` if the paper original was downloaded, or for a file instead of it; `Conflict` while
/// it is being downloaded, for paper instead of a file, and for another form than that of the conversion.
pub async fn permit_repeat(
    connection: &mut AnyConnection,
    envelope: &Envelope,
    form: &ReleaseForm,
    now: Timestamp,
) -> Result<(), ServiceError> {
    let released = release_of(connection, envelope).await?;
    let converted = released.filter(|(released, _)| released.medium == ReleaseMedium::Paper);
    match (converted, form.medium) {
        (None, ReleaseMedium::Electronic) => return Ok(()),
        (None, ReleaseMedium::Paper) => {
            let message = "The authoritative copy has left the vault as a file";
            return Err(ServiceError::Conflict(message.into()));
        }
        (Some(_), ReleaseMedium::Electronic) => return Err(ServiceError::ConvertedToPaper),
        (Some((converted, _)), ReleaseMedium::Paper) if json!(converted) != json!(form) => {
            let message = "The record was converted with another form";
            return Err(ServiceError::Conflict(message.into()));
        }
        (Some(_), ReleaseMedium::Paper) => {}
    }
    let (org, id) = (&envelope.org, &envelope.id);
    let file = LinkedFile::PaperOriginal;
    if ledger::last_of(connection, org, id, DOWNLOADED)
        .await?
        .is_some()
    {
        return Err(ServiceError::ConvertedToPaper);
    }
    if downloads::in_use(connection, envelope, file, now - LIFE).await? {
        let message = "The paper original is being downloaded; after a failure there is a new link in an hour";
        return Err(ServiceError::Conflict(message.into()));
    }
    downloads::expire(connection, org, id, file, now).await?;
    Ok(())
}

/// Returns the form and the moment of a record's release.
async fn release_of(
    connection: &mut AnyConnection,
    envelope: &Envelope,
) -> Result<Option<(ReleaseForm, Timestamp)>, ServiceError> {
    let action = EventType::VaultReleased.as_str();
    let entry = ledger::last_of(connection, &envelope.org, &envelope.id, action).await?;
    entry.map(read_form).transpose()
}

fn read_form(entry: LedgerEntry) -> Result<(ReleaseForm, Timestamp), ServiceError> {
    let form = ReleaseForm::deserialize(&entry.details["form"]);
    let form = form.map_err(|error| ServiceError::Internal(format!("a release form: {error}")))?;
    Ok((form, entry.at))
}
