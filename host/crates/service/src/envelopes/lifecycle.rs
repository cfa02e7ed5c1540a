//! Asks the lifecycle rules which status changes of an envelope are allowed.

use serde_json::{Value, json};

use holdfast_components::rules::lifecycle;
use holdfast_components::rules::lifecycle::{
    BatchTrigger, EnvelopeFacts, EnvelopeKind, EnvelopeTrigger, PaymentStatus,
};
use holdfast_domain::bulk::BatchStatus;
use holdfast_domain::clock::Timestamp;
use holdfast_domain::component::Slot;
use holdfast_domain::envelope::{self, Envelope, EnvelopeStatus};
use holdfast_domain::id::{DecisionId, EnvelopeId, OrgId};
use holdfast_platform::components::questions::{self, RulesQuestion};
use holdfast_platform::{Core, ServiceError, lookup};
use holdfast_store::decisions::{self, LifecycleMove};
use holdfast_store::{StoreError, WriteTransaction};

/// An allowed transition, with its facts and the component that decided it.
pub struct LifecycleDecision {
    /// The resulting status. Some triggers leave the status unchanged.
    pub status: EnvelopeStatus,
    made: LifecycleMove,
}

impl LifecycleDecision {
    /// Stores the decision, in the transaction that makes the transition.
    pub async fn record(
        &self,
        tx: &mut WriteTransaction,
        envelope: &Envelope,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        decisions::insert_move(tx, envelope, &self.made, at).await
    }
}

/// Decides the initial status of an envelope.
pub async fn first_status(
    core: &Core,
    envelope: &Envelope,
) -> Result<LifecycleDecision, ServiceError> {
    ask(core, envelope, None, EnvelopeTrigger::Create).await
}

/// Decides whether `trigger` is allowed, and the resulting status.
pub async fn decide(
    core: &Core,
    envelope: &Envelope,
    trigger: EnvelopeTrigger,
) -> Result<LifecycleDecision, ServiceError> {
    ask(core, envelope, Some(envelope.status), trigger).await
}

/// Like [`decide`], for a transition that is only being checked or that changes nothing.
pub async fn next_status(
    core: &Core,
    envelope: &Envelope,
    trigger: EnvelopeTrigger,
) -> Result<EnvelopeStatus, ServiceError> {
    Ok(decide(core, envelope, trigger).await?.status)
}

async fn ask(
    core: &Core,
    envelope: &Envelope,
    from: Option<EnvelopeStatus>,
    trigger: EnvelopeTrigger,
) -> Result<LifecycleDecision, ServiceError> {
    let rules = core.components.lifecycle(Some(&envelope.org));
    let facts = facts(envelope);
    let led_to = rules.envelope_for_change(from, trigger, &facts).await;
    let (org, record) = (&envelope.org, envelope.id.as_str());

    // Candidates are compared with the rules' own result, before the payment check below.
    core.shadows.offer(Slot::Lifecycle, org, record, || {
        let question = RulesQuestion::Move {
            from,
            trigger,
            facts: facts.clone(),
        };
        (question, questions::move_answer(from, trigger, &led_to))
    });
    let status = led_to?;

    // Enforced by the host as well, so that an organization's own rules cannot vault or
    // release an unpaid contract.
    if envelope.payment == Some(envelope::PaymentStatus::RequiresPayment) && is_custody(trigger) {
        return Err(ServiceError::Refused(lifecycle::Refusal {
            reason: lifecycle::RefusalReason::Unpaid,
            message: "Payment has not been completed".into(),
        }));
    }

    Ok(LifecycleDecision {
        status,
        made: LifecycleMove {
            id: DecisionId::new(),
            envelope: envelope.id.clone(),
            from,
            trigger: trigger_name(trigger),
            to: status,
            facts: json!(facts),
            component: json!(rules.identity().map_err(ServiceError::from)?),
        },
    })
}

/// Decides the next status of a bulk batch.
pub async fn next_batch_status(
    core: &Core,
    org: &OrgId,
    current: Option<BatchStatus>,
    trigger: BatchTrigger,
) -> Result<BatchStatus, ServiceError> {
    Ok(core
        .components
        .lifecycle(Some(org))
        .batch_for_change(current, trigger)
        .await?)
}

/// Decides the initial status of a bulk item's envelope.
pub async fn first_status_in_bulk(
    core: &Core,
    envelope: &Envelope,
) -> Result<LifecycleDecision, ServiceError> {
    ask(core, envelope, None, EnvelopeTrigger::CreateInBulk).await
}

/// Returns whether a trigger takes a document into custody or releases it.
fn is_custody(trigger: EnvelopeTrigger) -> bool {
    // No catch-all arm: a new trigger has to be judged here.
    match trigger {
        EnvelopeTrigger::VaultInSigned
        | EnvelopeTrigger::VaultInUpload
        | EnvelopeTrigger::VaultOut
        | EnvelopeTrigger::EmbedVault
        | EnvelopeTrigger::DownloadAuthoritative
        | EnvelopeTrigger::DownloadCopy => true,
        EnvelopeTrigger::Create
        | EnvelopeTrigger::CreateInBulk
        | EnvelopeTrigger::Upload
        | EnvelopeTrigger::Send
        | EnvelopeTrigger::View
        | EnvelopeTrigger::Progress
        | EnvelopeTrigger::Complete
        | EnvelopeTrigger::Decline
        | EnvelopeTrigger::Void
        | EnvelopeTrigger::Expire
        | EnvelopeTrigger::Remind
        | EnvelopeTrigger::SigningLinks
        | EnvelopeTrigger::EmbedSign => false,
    }
}

/// Returns the trigger's name as stored in decisions.
fn trigger_name(trigger: EnvelopeTrigger) -> String {
    match json!(trigger) {
        Value::String(name) => name,
        other => other.to_string(),
    }
}

/// Locks the envelope until the transaction ends, and decides `trigger` for it.
pub async fn lock_for(
    core: &Core,
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &EnvelopeId,
    trigger: EnvelopeTrigger,
) -> Result<(Envelope, LifecycleDecision), ServiceError> {
    let envelope = lookup::lock_envelope(tx, org, id).await?;
    let next = decide(core, &envelope, trigger).await?;
    Ok((envelope, next))
}

/// Returns whether a refusal is permanent, so that retrying cannot help.
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
        is_upload: envelope.is_upload(),
        has_file: envelope.upload.is_some(),
        has_vault_file: envelope.record.authoritative.live().is_some(),
        payment: match envelope.payment {
            None => PaymentStatus::NotRequested,
            Some(envelope::PaymentStatus::RequiresPayment) => PaymentStatus::RequiresPayment,
            Some(envelope::PaymentStatus::Paid) => PaymentStatus::Paid,
        },
        attributes: Vec::new(),
    }
}
