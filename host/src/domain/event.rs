//! Events: what webhook receivers are told.

use serde::Serialize;
use serde_json::{Value, json};

use super::clock::Timestamp;
use super::envelope::{Envelope, words};
use super::id::{EnvelopeId, EventId, OrgId};

words! {
    /// The event types of the specification and the contract, and one of our own.
    EventType {
        EnvelopeCreated = "envelope.created",
        EnvelopeSent = "envelope.sent",
        SignerViewed = "signer.viewed",
        SignerStarted = "signer.started",
        SignerCompleted = "signer.completed",
        EnvelopeCompleted = "envelope.completed",
        EnvelopeVoided = "envelope.voided",
        EnvelopeDeclined = "envelope.declined",
        EnvelopeExpired = "envelope.expired",
        EnvelopeReminderSent = "envelope.reminder_sent",
        VaultStored = "vault.stored",
        VaultCompliancePassed = "vault.compliance.passed",
        VaultComplianceFailed = "vault.compliance.failed",
        VaultReleased = "vault.released",
        VaultTamperDetected = "vault.tamper_detected",
        // An addition: a seal that no time stamping authority vouches for.
        VaultWithoutTrustedTime = "vault.without_trusted_time",
    }
}

/// An event as it is written to the outbox; its JSON is the delivered body.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    pub event_type: EventType,
    pub event_id: EventId,
    pub org_id: OrgId,
    pub envelope_id: Option<EnvelopeId>,
    pub timestamp: Timestamp,
    pub data: Value,
}

impl Event {
    /// An event about an envelope. `data` must be an object; the envelope's
    /// ids are put before its members.
    pub fn about(envelope: &Envelope, event_type: EventType, at: Timestamp, data: Value) -> Self {
        let mut members = json!({
            "envelope_id": envelope.id,
            "customer_id": envelope.customer,
            "external_id": envelope.external_id,
        });
        if let (Value::Object(members), Value::Object(data)) = (&mut members, data) {
            members.extend(data);
        }
        Self {
            event_type,
            event_id: EventId::new(),
            org_id: envelope.org.clone(),
            envelope_id: Some(envelope.id.clone()),
            timestamp: at,
            data: members,
        }
    }
}
