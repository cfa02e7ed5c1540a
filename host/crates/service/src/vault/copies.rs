//! Copies of a signed document, and the marks that tell authoritative from
//! non-authoritative copies.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _};
use holdfast_store::SqlConnection;
use moka::future::Cache;
use serde::{Deserialize, Serialize};

use crate::vault::Vault;
use crate::vault::custody_sheet::mark_words;
use crate::vault::downloads::untouched;
use holdfast_adapters::files::{FilesError, Pieces, SpoolWriter, SpooledFile};
use holdfast_base::fair_queue::WorkOwner;
use holdfast_components::rules::copies::SignatureHandling;
use holdfast_components::rules::documents::{CopyKind, MarkRequest};
use holdfast_components::rules::watermarks::WatermarkRequest;
use holdfast_components::rules::wording::MarkWords;
use holdfast_components::{Documents, Placement, WordedMark};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::ComponentIdentity;
use holdfast_domain::envelope::{Envelope, EnvelopeStatus};
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_domain::organization::RecordWording;
use holdfast_platform::documents::admit;
use holdfast_platform::documents::marks::{MarkedCopy, joined, mark, read_back};
use holdfast_platform::providers::provider;
use holdfast_platform::{Core, ServiceError};
use holdfast_store::organizations;

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

impl CopyCache {
    /// Forgets the copies of a record that is destroyed.
    pub async fn forget(&self, envelope: &EnvelopeId) {
        for is_vaulted in [false, true] {
            self.0.invalidate(&(envelope.clone(), is_vaulted)).await;
        }
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
    connection: &mut SqlConnection,
    org: &OrgId,
) -> Result<RecordWording, ServiceError> {
    let organization = organizations::get(connection, org).await?;
    let settings = organization.map(|organization| organization.settings.wording());
    Ok(settings.unwrap_or_default())
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
