//! Objects of the caller's organization.

use crate::{Caller, Core, ServiceError};
use holdfast_base::config::EMBEDDED;
use holdfast_domain::envelope::Envelope;
use holdfast_domain::id::{EnvelopeId, OrgId};
use holdfast_store::{WriteTransaction, envelopes};

/// Returns an envelope of the caller's organization if its record is whole.
pub async fn envelope(core: &Core, caller: &Caller, id: &str) -> Result<Envelope, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Envelope"))?;
    let mut connection = core.store.read().await?;
    envelopes::get(&mut connection, &caller.org, &id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))
}

/// Returns an envelope of the caller's organization, also one with a destroyed record.
pub async fn with_destroyed(
    core: &Core,
    caller: &Caller,
    id: &str,
) -> Result<Envelope, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Envelope"))?;
    let mut connection = core.store.read().await?;
    envelopes::get_with_destroyed(&mut connection, &caller.org, &id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))
}

/// Returns an envelope with its row locked until the transaction ends.
pub async fn lock_envelope(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EnvelopeId,
) -> Result<Envelope, ServiceError> {
    let envelope = envelopes::lock(tx, org, id).await?;
    envelope.ok_or(ServiceError::NotFound("Envelope"))
}

/// Returns the id of the submission in the signing room; none at other providers.
pub fn room_submission(envelope: &Envelope) -> Option<i64> {
    let embedded = envelope.sending.provider_instance.as_deref() == Some(EMBEDDED);
    let submission = envelope.sending.submission.as_ref();
    submission.filter(|_| embedded)?.parse().ok()
}
