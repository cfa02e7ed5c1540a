//! Copies of a signed document, and the marks that tell authoritative from
//! non-authoritative copies.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _};
use moka::future::Cache;
use serde::{Deserialize, Serialize};
use sqlx::AnyConnection;

use crate::components::rules::copies::SignatureHandling;
use crate::components::rules::documents::{CopyKind, MarkRequest, Marked, SealRequest};
use crate::components::rules::placement::ReadError;
use crate::components::rules::vaulting::VaultRequest;
use crate::components::rules::watermarks::WatermarkRequest;
use crate::components::rules::wording::MarkWords;
use crate::components::{Documents, Placement, WordedMark};
use crate::domain::clock::Timestamp;
use crate::domain::component::ComponentIdentity;
use crate::domain::envelope::{Envelope, EnvelopeStatus};
use crate::domain::id::{EnvelopeId, OrgId};
use crate::domain::organization::RecordWording;
use crate::fair_queue::WorkOwner;
use crate::files::{FilesError, Pieces, SpoolWriter, SpooledFile};
use crate::sealing::SIGNATURE_BYTES;
use crate::service::envelopes::uploads::admit;
use crate::service::signing::provider::provider;
use crate::service::vault::Vault;
use crate::service::vault::custody_sheet::mark_words;
use crate::service::vault::downloads::untouched;
use crate::service::{Core, ServiceError};
use crate::store::organizations;

/// Time to live of a cached copy.
const KEPT: Duration = Duration::from_secs(120);
/// Disk space for cached copies.
const KEPT_BYTES: u64 = 512 * 1024 * 1024;

/// Cache of copies that signers downloaded recently, in unlinked temporary files. Each copy
/// is rendered, or read and re-hashed, once, however many signers download it.
pub struct CopyCache(Cache<CopyKey, Arc<SpooledFile>>);

/// Cache key: the envelope, and whether its copy is in the vault.
type CopyKey = (EnvelopeId, bool);

impl Default for CopyCache {
    fn default() -> Self {
        let weight =
            |_: &CopyKey, copy: &Arc<SpooledFile>| u32::try_from(copy.size()).unwrap_or(u32::MAX);
        Self(
            Cache::builder()
                .weigher(weight)
                .max_capacity(KEPT_BYTES)
                .time_to_live(KEPT)
                .build(),
        )
    }
}

/// A copy being sent to a client.
pub struct OutgoingCopy {
    pub pieces: Pieces,
    /// Bytes.
    pub size: u64,
}

impl OutgoingCopy {
    /// A copy that is in memory.
    pub fn of(bytes: Bytes) -> Self {
        Self {
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            pieces: futures::stream::iter([Ok(bytes)]).boxed(),
        }
    }

    /// Reads the whole copy into memory.
    pub async fn whole(self) -> Result<Bytes, FilesError> {
        let mut bytes = BytesMut::with_capacity(usize::try_from(self.size).unwrap_or_default());
        let mut pieces = self.pieces;
        while let Some(piece) = pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }
}

/// Returns the signers' copy of a finished envelope: the executed document, marked as a
/// non-authoritative copy on every page.
///
/// Before the envelope is vaulted, the copy is rendered from the provider's executed
/// document. Rendering is deterministic.
pub async fn signers_copy(
    core: &Core,
    vault: &Vault,
    envelope: &Envelope,
) -> Result<OutgoingCopy, ServiceError> {
    let make = async {
        match &envelope.record.copy {
            Some(copy) => {
                let read = core.files.spooled(copy, &core.config.spool_folder()).await;
                Ok(Arc::new(untouched(core, envelope, read).await?))
            }
            None if envelope.status != EnvelopeStatus::Completed => {
                Err(ServiceError::Conflict("Envelope is not completed".into()))
            }
            None => unvaulted(core, envelope).await,
        }
    };

    // Vaulting changes the key: the cached pre-vault copy is not served in place of the
    // vaulted one.
    let key = (envelope.id.clone(), envelope.record.copy.is_some());

    // Concurrent requests for the same key share one rendering.
    let made = vault.copies.0.try_get_with(key, make).await;
    let made = made.map_err(ServiceError::shared)?;
    Ok(OutgoingCopy {
        pieces: made.pieces(),
        size: made.size(),
    })
}

/// Renders the copy of an envelope that is not vaulted yet.
async fn unvaulted(core: &Core, envelope: &Envelope) -> Result<Arc<SpooledFile>, ServiceError> {
    let (executed, _) = signed_document(core, envelope).await?;
    // A fixed time makes every rendering the same.
    let at = envelope.signed_at.unwrap_or(envelope.updated_at);
    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let documents = core.documents(Some(&envelope.org));
    let documents = documents.for_owner(owner.clone());
    let reader = core.placement(Some(&envelope.org));
    let reader = reader.for_owner(owner);

    let built_in = core
        .components
        .embedded_documents(&envelope.org, core.store.priority())
        .for_owner(WorkOwner::new(&envelope.org, envelope.id.as_str()));
    let wording = wording(&mut *core.store.read().await?, &envelope.org).await?;
    let mark = mark_request(envelope, CopyKind::NonAuthoritative, at, &wording);
    let copy = non_authoritative(&documents, &built_in, &reader, executed, mark).await?;
    let copy = copy.bytes;

    let mut spool = SpoolWriter::new(&core.config.spool_folder())
        .await
        .map_err(FilesError::Spool)?;
    spool.write(&copy).await.map_err(FilesError::Spool)?;

    Ok(Arc::new(spool.finish().await.map_err(FilesError::Spool)?))
}

/// Fetches the executed document from its signing provider. Returns it with the identity of
/// the plugin that fetched it.
pub async fn signed_document(
    core: &Core,
    envelope: &Envelope,
) -> Result<(Bytes, ComponentIdentity), ServiceError> {
    let Some((instance, submission)) = envelope.submitted() else {
        return Err(ServiceError::Conflict(
            "Envelope has no signed document".into(),
        ));
    };
    let signing = provider(core, &envelope.org, instance)?;
    let identity = signing.identity()?;
    Ok((signing.signed_document(submission).await?, identity))
}

/// How the file of a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyForm {
    /// A file of its own: no beginning of it is the document without the mark.
    NewFile,
    /// The document and an update with the mark, so that the document's signatures stay valid.
    UpdateOfSigned,
    /// The document and an update with the mark, because the document could not be written anew.
    UpdateOfUnwritable,
}

/// A marked copy.
pub struct CopyFile {
    pub bytes: Bytes,
    pub form: CopyForm,
}

/// Marks an executed document as a non-authoritative copy. The built-in writer makes it a file of its own.
pub async fn non_authoritative(
    documents: &Documents,
    built_in: &Documents,
    reader: &Placement,
    executed: Bytes,
    request: WordedMark,
) -> Result<CopyFile, ServiceError> {
    match mark(documents, reader, executed, request).await? {
        MarkedCopy::Appended(copy) | MarkedCopy::Rewritten(copy) => {
            as_file_of_its_own(built_in, reader, copy).await
        }
        MarkedCopy::Unchanged => Err(ServiceError::Internal(
            "a copy came back without a mark".into(),
        )),
    }
}

/// Writes a marked document anew, unless its signatures have to stay valid. A document that does not survive
/// it keeps the form that it has.
pub async fn as_file_of_its_own(
    built_in: &Documents,
    reader: &Placement,
    marked: Bytes,
) -> Result<CopyFile, ServiceError> {
    let written = match built_in
        .write_anew(marked.clone(), SignatureHandling::Keep)
        .await
    {
        Ok(Ok(Some(written))) => Bytes::from(written),
        Ok(Ok(None)) => {
            return Ok(CopyFile {
                bytes: marked,
                form: CopyForm::UpdateOfSigned,
            });
        }
        Ok(Err(error)) => return Ok(unwritable(marked, &error)),
        Err(error) if error.by_document => return Ok(unwritable(marked, &error)),
        Err(error) => return Err(error.into()),
    };

    // A writer's mistake is found here, not when the copy is opened years later.
    match reader.inspect(written.clone()).await? {
        Ok(_) => Ok(CopyFile {
            bytes: written,
            form: CopyForm::NewFile,
        }),
        Err(error) => Ok(unwritable(marked, &error)),
    }
}

fn unwritable(marked: Bytes, error: &dyn std::fmt::Debug) -> CopyFile {
    tracing::warn!(?error, "a copy stays an update of its document");
    CopyFile {
        bytes: marked,
        form: CopyForm::UpdateOfUnwritable,
    }
}

/// Result of marking a document.
pub enum MarkedCopy {
    /// The document permits no changes, so it has no mark.
    Unchanged,
    /// The original bytes, with the mark appended as an incremental update.
    Appended(Bytes),
    /// Rewritten bytes, because the incremental update could not be read back.
    Rewritten(Bytes),
}

/// Marks a document, and checks that a reader other than its writer can read the result. The
/// document is in memory once here, and once more in the sandbox during the call.
pub async fn mark(
    documents: &Documents,
    reader: &Placement,
    pdf: Bytes,
    request: WordedMark,
) -> Result<MarkedCopy, ServiceError> {
    let length = pdf.len();
    let (pdf, refused) = match documents.mark(pdf.clone(), request.clone()).await? {
        Ok(Marked::Unchanged) => return Ok(MarkedCopy::Unchanged),
        Ok(Marked::Rewritten(whole)) => return Ok(MarkedCopy::Rewritten(whole.into())),
        Ok(Marked::Appended(tail)) => {
            let whole = joined(pdf, &tail);
            // A writer's mistake is found here, not when the copy is opened years later.
            match reader.inspect(whole.clone()).await? {
                Ok(_) => return Ok(MarkedCopy::Appended(whole)),
                Err(error) => (whole.slice(..length), error.into()),
            }
        }
        Err(error) => (pdf, ServiceError::from(error)),
    };

    // The appended update is unreadable or impossible: retry as a full rewrite, and report
    // the first error if that fails, too.
    let mut request = request;
    request.request.rewrite = true;

    match documents.mark(pdf, request).await? {
        Ok(Marked::Rewritten(whole)) => Ok(MarkedCopy::Rewritten(whole.into())),
        _ => Err(refused),
    }
}

/// Returns the request that marks a copy of the envelope's document.
pub fn mark_request(
    envelope: &Envelope,
    kind: CopyKind,
    at: Timestamp,
    wording: &RecordWording,
) -> WordedMark {
    let request = MarkRequest {
        kind,
        envelope_id: envelope.id.to_string(),
        secured_party: envelope
            .secured_party
            .as_ref()
            .map(|party| party.name.trim().to_owned())
            .filter(|name| !name.is_empty()),
        marked_at: at.to_string(),
        rewrite: false,
    };

    if envelope.org.is_test() {
        return test_mark(request);
    }

    WordedMark {
        request,
        words: mark_words(wording),
    }
}

/// Marks every copy of test data as not authoritative, with `TEST` across its pages.
fn test_mark(request: MarkRequest) -> WordedMark {
    let word = || "TEST".to_owned();
    WordedMark {
        request: MarkRequest {
            kind: CopyKind::NonAuthoritative,
            ..request
        },
        words: Some(MarkWords {
            authoritative: word(),
            non_authoritative: word(),
            secured_party: word(),
        }),
    }
}

/// Returns the language and the dates of an organization's records.
pub async fn wording(
    connection: &mut AnyConnection,
    org: &OrgId,
) -> Result<RecordWording, ServiceError> {
    let organization = organizations::get(connection, org).await?;
    let settings = organization.map(|organization| organization.settings.wording());
    Ok(settings.unwrap_or_default())
}

/// Marks a PDF, in English, and prepares its seal as vault-in will, and drops the result: a document
/// that is accepted now can be vaulted later.
pub async fn check_vaultable(
    documents: &Documents,
    reader: &Placement,
    pdf: Bytes,
    at: Timestamp,
) -> Result<(), ServiceError> {
    let mark_as = |kind| MarkRequest {
        kind,
        envelope_id: "check".into(),
        secured_party: None,
        marked_at: at.to_string(),
        rewrite: false,
    };

    let seal = SealRequest {
        name: String::new(),
        reason: String::new(),
        signed_at: at.to_string(),
        signature_bytes: SIGNATURE_BYTES,
    };
    let request = VaultRequest {
        authoritative: mark_as(CopyKind::Authoritative),
        seal: seal.clone(),
        copy: mark_as(CopyKind::NonAuthoritative),
        words: None,
    };
    let made = match documents.prepare_copies(pdf.clone(), request).await {
        // A document that exceeds the limits of the single call may pass the separate steps, as at
        // vault-in.
        Err(error) if error.by_document => Ok(None),
        made => made?,
    };
    let pdf = match made {
        Ok(Some(made)) => {
            let (pdf, read) = read_back(reader, pdf, &made.authoritative.appended).await?;
            if read.is_ok() {
                return Ok(());
            }
            pdf
        }
        _ => pdf,
    };

    let request = WordedMark {
        request: mark_as(CopyKind::Authoritative),
        words: None,
    };
    match mark(documents, reader, pdf, request).await? {
        // A document certified against any change is vaulted without mark and seal.
        MarkedCopy::Unchanged => {}
        MarkedCopy::Appended(pdf) | MarkedCopy::Rewritten(pdf) => {
            documents.prepare_seal(pdf, seal).await??;
        }
    }

    Ok(())
}

/// Checks that a reader other than its writer can read `pdf` with `update` appended, and returns `pdf`.
/// A writer's mistake is found here, not when a copy is opened years later. Updates that are checked one
/// after the other take turns in the memory of the document.
pub async fn read_back(
    reader: &Placement,
    pdf: Bytes,
    update: &[u8],
) -> Result<(Bytes, Result<(), ReadError>), ServiceError> {
    let length = pdf.len();
    // One buffer serves both checks: a second copy of a large document would need a second place in
    // memory.
    let whole = joined(pdf, update);
    let read = reader.inspect(whole.clone()).await?;
    let mut pdf = Vec::from(whole);
    pdf.truncate(length);
    Ok((pdf.into(), read.map(drop)))
}

/// Writes a line at the head or foot of every page of an envelope's document, and makes a file of its own of
/// it. Signatures that are kept and valid keep it an update of the document.
pub async fn watermarked(
    core: &Core,
    envelope: &Envelope,
    pdf: OutgoingCopy,
    request: WatermarkRequest,
    signatures: SignatureHandling,
) -> Result<Bytes, ServiceError> {
    let owner = WorkOwner::new(&envelope.org, envelope.id.as_str());
    let documents = core
        .components
        .embedded_documents(&envelope.org, core.store.priority())
        .for_owner(owner.clone());

    // The document, the one with the mark, and that one written anew.
    let _room = admit(core, &owner, 3 * pdf.size).await?;
    let pdf = pdf.whole().await?;
    let update = documents.watermark(pdf.clone(), request).await??;
    let reader = core.placement(None).for_owner(owner);
    let (pdf, read) = read_back(&reader, pdf, &update).await?;
    read?;

    let marked = joined(pdf, &update);
    match signatures {
        SignatureHandling::Keep => Ok(as_file_of_its_own(&documents, &reader, marked).await?.bytes),
        SignatureHandling::Flatten => {
            let written = documents.write_anew(marked, signatures).await??;
            let written = written.ok_or_else(|| {
                ServiceError::Internal("a document without its signatures was not written".into())
            })?;
            let written = Bytes::from(written);
            reader.inspect(written.clone()).await??;
            Ok(written)
        }
    }
}

/// Appends `tail` to `head`, without copying `head` when it has no other owner.
pub fn joined(head: Bytes, tail: &[u8]) -> Bytes {
    let mut whole = Vec::from(head);
    whole.reserve_exact(tail.len());
    whole.extend_from_slice(tail);
    whole.into()
}
