//! Copies of a signed document, and the marks that tell which one is which.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt as _;
use moka::future::Cache;

use crate::components::rules::documents::{CopyKind, MarkRequest, Marked};
use crate::components::{Documents, Placement};
use crate::domain::clock::Timestamp;
use crate::domain::component::ComponentIdentity;
use crate::domain::envelope::{Envelope, EnvelopeStatus};
use crate::domain::id::EnvelopeId;
use crate::fair_queue::Owner;
use crate::files::{FilesError, Pieces, Spool, Spooled};
use crate::service::signing::provider::provider;
use crate::service::vault::Vault;
use crate::service::vault::downloads::untouched;
use crate::service::{Core, ServiceError};

/// How long a copy that was asked for is kept.
const KEPT: Duration = Duration::from_secs(120);
/// Bytes of such copies that are kept on the disk.
const KEPT_BYTES: u64 = 512 * 1024 * 1024;

/// Copies that signers asked for lately, in nameless files of this process: each is made
/// or read and re-hashed once, however many ask for it.
pub struct Copies(Cache<CopyKey, Arc<Spooled>>);

/// An envelope, and whether its copy is in the vault.
type CopyKey = (EnvelopeId, bool);

impl Default for Copies {
    fn default() -> Self {
        let weight =
            |_: &CopyKey, copy: &Arc<Spooled>| u32::try_from(copy.size()).unwrap_or(u32::MAX);
        Self(
            Cache::builder()
                .weigher(weight)
                .max_capacity(KEPT_BYTES)
                .time_to_live(KEPT)
                .build(),
        )
    }
}

/// A copy on its way out.
pub struct OutgoingCopy {
    pub pieces: Pieces,
    /// Bytes.
    pub size: u64,
}

impl OutgoingCopy {
    /// All of it, in memory.
    pub async fn whole(self) -> Result<Bytes, FilesError> {
        let mut bytes = BytesMut::with_capacity(usize::try_from(self.size).unwrap_or_default());
        let mut pieces = self.pieces;
        while let Some(piece) = pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }
}

/// The copy for a signer of a finished envelope: the document with everything
/// that was signed, marked as a non-authoritative copy on every page.
///
/// Before the envelope is vaulted it is made of what the provider executed, and
/// the same each time.
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
    let key = (envelope.id.clone(), envelope.record.copy.is_some());
    let made = vault.copies.0.try_get_with(key, make).await;
    let made = made.map_err(ServiceError::shared)?;
    Ok(OutgoingCopy {
        pieces: made.pieces(),
        size: made.size(),
    })
}

/// Makes the copy of an envelope that is not vaulted yet.
async fn unvaulted(core: &Core, envelope: &Envelope) -> Result<Arc<Spooled>, ServiceError> {
    let (executed, _) = signed_document(core, envelope).await?;
    let at = envelope.signed_at.unwrap_or(envelope.updated_at);
    let owner = Owner::new(&envelope.org, envelope.id.as_str());
    let documents = core.documents(Some(&envelope.org));
    let documents = documents.for_owner(owner.clone());
    let reader = core.placement(Some(&envelope.org));
    let reader = reader.for_owner(owner);
    let copy = non_authoritative(&documents, &reader, envelope, executed, at).await?;
    let mut spool = Spool::new(&core.config.spool_folder())
        .await
        .map_err(FilesError::Spool)?;
    spool.write(&copy).await.map_err(FilesError::Spool)?;
    Ok(Arc::new(spool.finish().await.map_err(FilesError::Spool)?))
}

/// The document as its signing provider executed it, and the plugin that fetched it.
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

/// An executed document, marked as a non-authoritative copy.
pub async fn non_authoritative(
    documents: &Documents,
    reader: &Placement,
    envelope: &Envelope,
    executed: Bytes,
    at: Timestamp,
) -> Result<Bytes, ServiceError> {
    let kind = CopyKind::NonAuthoritative;
    match mark(documents, reader, envelope, executed, kind, at).await? {
        MarkedCopy::Appended(copy) | MarkedCopy::Rewritten(copy) => Ok(copy),
        MarkedCopy::Unchanged => Err(ServiceError::Internal(
            "a copy came back without a mark".into(),
        )),
    }
}

/// A document after marking.
pub enum MarkedCopy {
    /// Nothing may be added to it.
    Unchanged,
    /// The document's own bytes, with the mark behind them.
    Appended(Bytes),
    /// Other bytes: an update behind the document's own could not be read.
    Rewritten(Bytes),
}

/// The marked document, which another reader than its writer can read. It is in
/// memory once here, and once more in the sandbox while that is at work.
pub async fn mark(
    documents: &Documents,
    reader: &Placement,
    envelope: &Envelope,
    pdf: Bytes,
    kind: CopyKind,
    at: Timestamp,
) -> Result<MarkedCopy, ServiceError> {
    let length = pdf.len();
    let request = mark_request(envelope, kind, at);
    let (pdf, refused) = match documents.mark(pdf.clone(), request.clone()).await? {
        Ok(Marked::Unchanged) => return Ok(MarkedCopy::Unchanged),
        Ok(Marked::Rewritten(whole)) => return Ok(MarkedCopy::Rewritten(whole.into())),
        Ok(Marked::Appended(tail)) => {
            let whole = joined(pdf, &tail);
            match reader.inspect(whole.clone()).await? {
                Ok(_) => return Ok(MarkedCopy::Appended(whole)),
                Err(error) => (whole.slice(..length), error.into()),
            }
        }
        Err(error) => (pdf, ServiceError::from(error)),
    };
    let request = MarkRequest {
        rewrite: true,
        ..request
    };
    match documents.mark(pdf, request).await? {
        Ok(Marked::Rewritten(whole)) => Ok(MarkedCopy::Rewritten(whole.into())),
        _ => Err(refused),
    }
}

fn mark_request(envelope: &Envelope, kind: CopyKind, at: Timestamp) -> MarkRequest {
    MarkRequest {
        kind,
        envelope_id: envelope.id.to_string(),
        secured_party: envelope
            .secured_party
            .as_ref()
            .map(|party| party.name.trim().to_owned())
            .filter(|name| !name.is_empty()),
        marked_at: at.to_string(),
        rewrite: false,
    }
}

/// Bytes with others behind them; what nobody else holds is not copied.
pub fn joined(head: Bytes, tail: &[u8]) -> Bytes {
    let mut whole = Vec::from(head);
    whole.reserve_exact(tail.len());
    whole.extend_from_slice(tail);
    whole.into()
}
