//! Conversion to paper: an original that is printed once replaces the authoritative copy.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_store::SqlConnection;

use super::copies::{self, OutgoingCopy};
use super::custody_sheet::RecordWriter;
use super::repeats;
use super::vault_out::{ReleaseForm, ReleaseMedium};
use holdfast_adapters::files::{FilesError, SpoolWriter};
use holdfast_components::rules::copies::SignatureHandling;
use holdfast_components::rules::watermarks::WatermarkRequest;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus};
use holdfast_platform::{Core, ServiceError};

/// Action of the ledger entry of a paper original that was downloaded completely.
pub const DOWNLOADED: &str = "paper_original.downloaded";

/// Makes the document to print: the pages of the authoritative copy, each with a line at its head that names
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

    // To be printed, so that signatures are pictures. The sealed file must not be a part of it: that one would
    // go on as an electronic copy beside the paper.
    let signatures = SignatureHandling::Flatten;
    copies::watermarked(core, envelope, authoritative, request, signatures).await
}

/// Makes the document to print of a record that was converted. `archive` is its former authoritative copy.
pub async fn printed(
    core: &Core,
    envelope: &Envelope,
    archive: OutgoingCopy,
) -> Result<OutgoingCopy, ServiceError> {
    let released = repeats::recorded(&mut *core.store.read().await?, envelope).await?;
    let released = released.ok_or(ServiceError::NotFound("Download"))?;
    let pdf = original(core, envelope, &released.form, archive, released.at).await?;

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
    connection: &mut SqlConnection,
    envelope: &Envelope,
) -> Result<bool, ServiceError> {
    if envelope.status != EnvelopeStatus::VaultedOut {
        return Ok(false);
    }
    let released = repeats::recorded(connection, envelope).await?;
    Ok(released.is_some_and(|released| released.form.medium == ReleaseMedium::Paper))
}
