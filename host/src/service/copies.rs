//! Copies of a signed document, and the marks that tell which one is which.

use bytes::Bytes;

use super::ServiceError;
use super::downloads::untouched;
use crate::app::App;
use crate::components::rules::documents::{CopyKind, MarkRequest, Marked};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, EnvelopeStatus};

/// What a signer of a finished envelope may have: the document with everything
/// that was signed, marked as a non-authoritative copy on every page.
///
/// Before the envelope is vaulted it is made of what the provider executed, and
/// the same each time.
pub async fn signers_copy(app: &App, envelope: &Envelope) -> Result<Bytes, ServiceError> {
    if let Some(copy) = &envelope.copy {
        return untouched(app, envelope, app.files.get(copy).await).await;
    }
    if envelope.status != EnvelopeStatus::Completed {
        return Err(ServiceError::Conflict("Envelope is not completed".into()));
    }
    let executed = signed_document(app, envelope).await?;
    let at = envelope.signed_at.unwrap_or(envelope.updated_at);
    non_authoritative(app, envelope, executed, at).await
}

/// The document as its signing provider executed it.
pub async fn signed_document(app: &App, envelope: &Envelope) -> Result<Bytes, ServiceError> {
    let (Some(instance), Some(submission)) = (&envelope.provider_instance, &envelope.submission)
    else {
        return Err(ServiceError::Conflict(
            "Envelope has no signed document".into(),
        ));
    };
    let lease = app.signing_lease(Some(&envelope.org), instance)?;
    let signing = app.components.signing(Some(&envelope.org), instance);
    Ok(signing.signed_document(lease, submission).await?)
}

/// An executed document, marked as a non-authoritative copy.
pub async fn non_authoritative(
    app: &App,
    envelope: &Envelope,
    executed: Bytes,
    at: Timestamp,
) -> Result<Bytes, ServiceError> {
    let copy = mark(app, envelope, executed, CopyKind::NonAuthoritative, at).await?;
    copy.ok_or_else(|| ServiceError::Internal("a copy came back without a mark".into()))
}

/// The marked document, which another reader than its writer can read; none
/// when nothing may be added to it. It is in memory once here, and once more in
/// the sandbox while that is at work.
pub async fn mark(
    app: &App,
    envelope: &Envelope,
    pdf: Bytes,
    kind: CopyKind,
    at: Timestamp,
) -> Result<Option<Bytes>, ServiceError> {
    let rules = app.components.documents(Some(&envelope.org));
    let length = pdf.len();
    let request = mark_request(envelope, kind, at);
    let (pdf, refused) = match rules.mark(pdf.clone(), request.clone()).await? {
        Ok(Marked::Unchanged) => return Ok(None),
        Ok(Marked::Rewritten(whole)) => return Ok(Some(whole.into())),
        Ok(Marked::Appended(tail)) => {
            let whole = joined(pdf, &tail);
            let reader = app.components.placement(Some(&envelope.org));
            match reader.inspect(whole.clone()).await? {
                Ok(_) => return Ok(Some(whole)),
                Err(error) => (whole.slice(..length), error.into()),
            }
        }
        Err(error) => (pdf, ServiceError::from(error)),
    };
    let request = MarkRequest {
        rewrite: true,
        ..request
    };
    match rules.mark(pdf, request).await? {
        Ok(Marked::Rewritten(whole)) => Ok(Some(whole.into())),
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
