//! Marks on documents, and the check that a document can be vaulted.

use bytes::Bytes;

use crate::ServiceError;
use holdfast_adapters::sealing::SIGNATURE_BYTES;
use holdfast_components::rules::documents::{CopyKind, MarkRequest, Marked, SealRequest};
use holdfast_components::rules::placement::ReadError;
use holdfast_components::rules::vaulting::VaultRequest;
use holdfast_components::{Documents, Placement, WordedMark};
use holdfast_domain::clock::Timestamp;

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

/// Appends `tail` to `head`, without copying `head` when it has no other owner.
pub fn joined(head: Bytes, tail: &[u8]) -> Bytes {
    let mut whole = Vec::from(head);
    whole.reserve_exact(tail.len());
    whole.extend_from_slice(tail);
    whole.into()
}
