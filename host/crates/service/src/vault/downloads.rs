//! Download links and the files they lead to.

use std::time::Duration;

use holdfast_store::SqlConnection;
use serde_json::json;

use crate::control::releases;
use crate::envelopes::lifecycle;
use crate::vault::copies::OutgoingCopy;
use crate::vault::paper;
use holdfast_adapters::files::{FilesError, Pieces};
use holdfast_components::rules::lifecycle::EnvelopeTrigger;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{Envelope, StoredFile};
use holdfast_domain::event::EventType;
use holdfast_domain::token::LinkToken;
use holdfast_evidence::formats;
use holdfast_platform::events;
use holdfast_platform::lookup;
use holdfast_platform::permits;
use holdfast_platform::{Caller, Core, Problem, ProblemKind, ServiceError};
use holdfast_store::downloads::{self, DownloadLink, LinkedFile};
use holdfast_store::{StoreError, envelopes};

/// Lifetime of a download link.
pub const LIFE: Duration = Duration::from_secs(3600);

/// A link as the API returns it.
pub struct IssuedLink {
    pub url: String,
    pub filename: String,
    pub expires_at: Timestamp,
}

/// Issues a link to the authoritative copy, valid for one complete download.
pub async fn authoritative(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<IssuedLink, ServiceError> {
    issue_for(
        core,
        caller,
        id,
        EnvelopeTrigger::DownloadAuthoritative,
        LinkedFile::Authoritative,
    )
    .await
}

/// Issues a link to the non-authoritative copy.
pub async fn copy(core: &Core, caller: &Caller, id: &str) -> Result<IssuedLink, ServiceError> {
    issue_for(
        core,
        caller,
        id,
        EnvelopeTrigger::DownloadCopy,
        LinkedFile::Copy,
    )
    .await
}

/// Checks with the lifecycle rules, and for the authoritative copy with its controller's; issues the
/// link and records it in the ledger.
async fn issue_for(
    core: &Core,
    caller: &Caller,
    id: &str,
    trigger: EnvelopeTrigger,
    file: LinkedFile,
) -> Result<IssuedLink, ServiceError> {
    let envelope = lookup::envelope(core, caller, id).await?;
    let mut tx = core.store.begin().await?;
    let (envelope, _) =
        lifecycle::lock_for(core, &mut tx, &envelope.org, &envelope.id, trigger).await?;
    if file == LinkedFile::Authoritative {
        releases::permit_retrieval(core, &mut tx, caller, &envelope).await?;
    } else {
        permits::copies::permit_copy(&mut tx, caller, &envelope).await?;
    }

    // Link and ledger entry commit together: no link leads out of the vault without an entry.
    let now = core.clock.now();
    let link = issue(core, &mut tx, &envelope, file).await?;
    let details = json!({ "file": file });
    events::record(
        &mut tx,
        &envelope,
        &caller.actor,
        "download_link.issued",
        details,
        now,
    )
    .await?;

    tx.commit().await?;
    Ok(link)
}

/// Issues a link. Links to the authoritative copy, live or archived, and to a paper original are single-use.
pub async fn issue(
    core: &Core,
    connection: &mut SqlConnection,
    envelope: &Envelope,
    file: LinkedFile,
) -> Result<IssuedLink, StoreError> {
    let filename = match file {
        LinkedFile::Authoritative | LinkedFile::Archive => formats::AUTHORITATIVE,
        LinkedFile::PaperOriginal => formats::PAPER_ORIGINAL,
        LinkedFile::Copy => formats::COPY,
        LinkedFile::Certificate => formats::CERTIFICATE,
        LinkedFile::CustodyRecord => formats::CUSTODY_RECORD,
    };

    let now = core.clock.now();
    let link = DownloadLink {
        org: envelope.org.clone(),
        envelope: envelope.id.clone(),
        file,
        filename: filename.into(),
        single_use: is_single_use(file),
        expires_at: now + LIFE,
        used: false,
    };

    // The token carries the bucket of its organization, so an anonymous download asks one bucket only.
    let token = LinkToken::generate(envelope.org.bucket());
    downloads::insert(connection, &token, &link, now).await?;
    Ok(IssuedLink {
        url: format!("{}/downloads/{}", core.config.base_url(), token.reveal()),
        filename: link.filename,
        expires_at: link.expires_at,
    })
}

/// Whether a link to the file is good for one complete download.
fn is_single_use(file: LinkedFile) -> bool {
    matches!(
        file,
        LinkedFile::Authoritative | LinkedFile::Archive | LinkedFile::PaperOriginal
    )
}

/// A file being sent to a client.
pub struct FileDownload {
    pub pieces: Pieces,
    /// Bytes.
    pub size: u64,
    pub filename: String,
    pub content_type: String,
    /// Set for a single-use link, which must be released when the transfer breaks off.
    pub redeemed: Option<LinkToken>,
}

/// Returns whether a link was issued, also if it is over.
pub async fn is_known(core: &Core, token: &str) -> Result<bool, ServiceError> {
    let Some(token) = LinkToken::parse(token) else {
        return Ok(false);
    };
    let mut connection = core.store.read().await?;
    Ok(downloads::get(&mut connection, &token).await?.is_some())
}

/// Opens the file behind a link. With `peek` (a HEAD request) a single-use link stays
/// unused.
///
/// The file is re-hashed before its first byte is sent.
pub async fn redeem(core: &Core, token: &str, peek: bool) -> Result<FileDownload, ServiceError> {
    let unknown = || ServiceError::NotFound("Download");
    let token = LinkToken::parse(token).ok_or_else(unknown)?;
    let mut connection = core.store.read().await?;
    let link = downloads::get(&mut connection, &token)
        .await?
        .ok_or_else(unknown)?;
    // The compare-and-swap below decides. This check spares the reading of a file that cannot be sent.
    if link.used || link.expires_at <= core.clock.now() {
        return Err(gone());
    }

    let envelope = envelopes::get(&mut connection, &link.org, &link.envelope)
        .await?
        .ok_or_else(unknown)?;
    // A release that was made before a legal hold: its copy is not handed over while the hold is in force.
    let is_released = matches!(link.file, LinkedFile::Archive | LinkedFile::PaperOriginal);
    if is_released {
        permits::legal_holds::check(&mut connection, None, &envelope).await?;
    }
    drop(connection);

    // The file may have moved since the link was issued, for example by vault-out.
    let file = linked_file(&envelope, link.file).ok_or_else(gone)?.clone();

    // Verified before the link is consumed, so that a failed read does not use it up.
    let pieces = untouched(core, &envelope, core.files.read_in_pieces(&file).await).await?;
    let stored = OutgoingCopy {
        pieces,
        size: file.size.unsigned_abs(),
    };
    let content = match link.file {
        LinkedFile::PaperOriginal => paper::printed(core, &envelope, stored).await?,
        _ => stored,
    };

    let mut redeemed = None;

    // By the file, too: an earlier release issued links to the archive for any number of downloads.
    if (link.single_use || is_single_use(link.file)) && !peek {
        let now = core.clock.now();
        let mut tx = core.store.begin().await?;
        if is_released {
            // A repeated release may end this link and issue another one at this moment, or a hold be placed.
            let envelope = envelopes::lock(&mut tx, &link.org, &link.envelope).await?;
            let envelope = envelope.ok_or_else(unknown)?;
            permits::legal_holds::permit(&mut tx, None, &envelope).await?;
        }

        // Compare-and-swap: of concurrent requests with a single-use link, one succeeds.
        if !downloads::redeem(&mut tx, &token, now).await? {
            return Err(gone());
        }

        tx.commit().await?;
        redeemed = Some(token);
    }

    Ok(FileDownload {
        pieces: content.pieces,
        size: content.size,
        filename: link.filename,
        content_type: file.content_type,
        redeemed,
    })
}

/// Records a completed download. The link stays used.
pub async fn completed(core: &Core, token: &LinkToken) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    if let Some(link) = downloads::get(&mut tx, token).await?
        && let Some(envelope) = envelopes::lock(&mut tx, &link.org, &link.envelope).await?
    {
        let details = json!({ "file": link.file });
        // `repeats` refuses another print of a paper original once its entry exists.
        let action = match link.file {
            LinkedFile::PaperOriginal => paper::DOWNLOADED,
            _ => "authoritative.downloaded",
        };
        let now = core.clock.now();
        events::record(&mut tx, &envelope, "download", action, details, now).await?;
    }

    Ok(tx.commit().await?)
}

/// Records a download that broke off, and makes the link usable again. The entry matters
/// because the client may have received most of the copy.
pub async fn broken_off(core: &Core, token: &LinkToken) -> Result<(), ServiceError> {
    let mut tx = core.store.begin().await?;
    downloads::release(&mut tx, token).await?;
    if let Some(link) = downloads::get(&mut tx, token).await?
        && let Some(envelope) = envelopes::lock(&mut tx, &link.org, &link.envelope).await?
    {
        let (action, details) = (
            "authoritative.download_broken_off",
            json!({ "file": link.file }),
        );
        let now = core.clock.now();
        events::record(&mut tx, &envelope, "download", action, details, now).await?;
    }

    Ok(tx.commit().await?)
}

fn linked_file(envelope: &Envelope, file: LinkedFile) -> Option<&StoredFile> {
    match file {
        LinkedFile::Authoritative => envelope.record.authoritative.live(),
        LinkedFile::Copy => envelope.record.copy.as_ref(),
        // A paper original is made of the archive.
        LinkedFile::Archive | LinkedFile::PaperOriginal => envelope.record.authoritative.archived(),
        LinkedFile::Certificate => envelope.record.certificate.as_ref(),
        LinkedFile::CustodyRecord => envelope.record.custody_record.as_ref(),
    }
}

fn gone() -> ServiceError {
    let message = "Download link has expired or was already used";
    Problem::new(ProblemKind::Gone, None, message).into()
}

/// Returns the result of reading an envelope's file. If the file was changed, records the
/// tampering, emits the event, and returns a conflict instead of the bytes.
pub async fn untouched<T>(
    core: &Core,
    envelope: &Envelope,
    read: Result<T, FilesError>,
) -> Result<T, ServiceError> {
    match read {
        Err(FilesError::Tampered { expected, actual }) => {
            report_tampering(core, envelope, &expected, &actual).await?;
            Err(ServiceError::Conflict(
                "Document integrity check failed".into(),
            ))
        }
        read => Ok(read?),
    }
}

async fn report_tampering(
    core: &Core,
    envelope: &Envelope,
    expected: &str,
    actual: &str,
) -> Result<(), ServiceError> {
    tracing::error!(envelope = %envelope.id, "stored bytes do not match their hash");
    let data = json!({ "expected_hash": expected, "actual_hash": actual });
    let now = core.clock.now();
    let mut tx = core.store.begin().await?;
    let Some(envelope) = envelopes::lock(&mut tx, &envelope.org, &envelope.id).await? else {
        return Ok(());
    };

    let event_type = EventType::VaultTamperDetected;
    events::record_and_emit(&mut tx, &envelope, "system", event_type, data, now).await?;
    Ok(tx.commit().await?)
}
