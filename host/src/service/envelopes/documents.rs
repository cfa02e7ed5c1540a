//! The document of an envelope as it was sent, before anybody signed.

use bytes::Bytes;

use crate::domain::envelope::{Envelope, EnvelopeKind, StoredFile};
use crate::domain::template::Template;
use crate::service::envelopes::parties::room_submission;
use crate::service::{Core, ServiceError};
use crate::store::{room, templates};

/// Returns the unsigned document of an envelope.
///
/// # Errors
///
/// `Conflict` for an envelope without a document, one that was signed elsewhere, and one of another
/// signing provider whose template has changed since.
pub async fn unsigned(core: &Core, envelope: &Envelope) -> Result<Bytes, ServiceError> {
    if envelope.kind == EnvelopeKind::Paper {
        let why = "Envelope was signed elsewhere: there is no unsigned document";
        return Err(ServiceError::Conflict(why.into()));
    }
    let file = file(core, envelope).await?;
    let file = file.ok_or_else(|| ServiceError::Conflict("Envelope has no document".into()))?;
    Ok(core.files.get(&file).await?)
}

async fn file(core: &Core, envelope: &Envelope) -> Result<Option<StoredFile>, ServiceError> {
    let mut connection = core.store.read().await?;
    let org = &envelope.org;
    if let Some(id) = room_submission(envelope) {
        let submission = room::submission(&mut connection, org, id).await?;
        return Ok(submission.map(|submission| submission.file()));
    }
    if let Some(id) = &envelope.template {
        let template = templates::find(&mut connection, org, id).await?;
        let changed = |template: &Template| {
            envelope.sending.submission.is_some() && template.updated_at > envelope.created_at
        };
        if template.as_ref().is_some_and(changed) {
            let why = "The signing provider keeps the document as it was sent";
            return Err(ServiceError::Conflict(why.into()));
        }
        return Ok(template.and_then(|template| template.document));
    }
    Ok(envelope.upload.clone())
}
