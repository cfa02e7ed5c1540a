//! Objects of the caller's organization.

use crate::domain::envelope::Envelope;
use crate::domain::id::EnvelopeId;
use crate::service::{Caller, Core, ServiceError};
use crate::store::envelopes;

/// Returns an envelope of the caller's organization.
pub async fn envelope(core: &Core, caller: &Caller, id: &str) -> Result<Envelope, ServiceError> {
    let id = EnvelopeId::parse(id).ok_or(ServiceError::NotFound("Envelope"))?;
    let mut connection = core.store.read().await?;
    envelopes::get(&mut connection, &caller.org, &id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))
}
