//! Asking the lifecycle rules what an envelope may do next.

use super::ServiceError;
use crate::app::App;
use crate::components::rules::lifecycle::{
    EnvelopeFacts, EnvelopeKind, EnvelopeTrigger, PaymentStatus,
};
use crate::components::rules::{TransitionError, lifecycle};
use crate::domain::envelope::{self, Envelope, EnvelopeStatus};
use crate::domain::id::{EnvelopeId, OrgId};
use crate::store::{Tx, envelopes};

/// The status in which an envelope begins.
pub fn first_status(app: &App, envelope: &Envelope) -> Result<EnvelopeStatus, TransitionError> {
    let create = EnvelopeTrigger::Create;
    app.components
        .lifecycle(Some(&envelope.org))
        .envelope(None, create, &facts(envelope))
}

/// Where `trigger` leads the envelope: for some triggers, where it is already.
pub fn next_status(
    app: &App,
    envelope: &Envelope,
    trigger: EnvelopeTrigger,
) -> Result<EnvelopeStatus, TransitionError> {
    let current = Some(envelope.status);
    app.components
        .lifecycle(Some(&envelope.org))
        .envelope(current, trigger, &facts(envelope))
}

/// The envelope, locked until the transaction ends, and where `trigger` leads it.
pub async fn lock_for(
    app: &App,
    tx: &mut Tx,
    org: &OrgId,
    id: &EnvelopeId,
    trigger: EnvelopeTrigger,
) -> Result<(Envelope, EnvelopeStatus), ServiceError> {
    let envelope = envelopes::lock(tx, org, id)
        .await?
        .ok_or(ServiceError::NotFound("Envelope"))?;
    let next = next_status(app, &envelope, trigger)?;
    Ok((envelope, next))
}

/// Whether a refusal is for good: retrying it would not help.
pub fn is_final(refusal: &lifecycle::Refusal) -> bool {
    refusal.reason != lifecycle::RefusalReason::Unpaid
}

fn facts(envelope: &Envelope) -> EnvelopeFacts {
    EnvelopeFacts {
        kind: match envelope.kind {
            envelope::EnvelopeKind::Esign => EnvelopeKind::Esign,
            envelope::EnvelopeKind::Paper => EnvelopeKind::Paper,
        },
        has_template: envelope.template.is_some(),
        is_upload: envelope.is_upload,
        has_file: envelope.upload.is_some(),
        has_vault_file: envelope.vault.is_some(),
        payment: match envelope.payment {
            None => PaymentStatus::NotRequested,
            Some(envelope::PaymentStatus::RequiresPayment) => PaymentStatus::RequiresPayment,
            Some(envelope::PaymentStatus::Paid) => PaymentStatus::Paid,
        },
        attributes: Vec::new(),
    }
}
