//! Events that are delivered to webhook endpoints.

use serde::Serialize;
use serde_json::{Value, json};

use super::clock::Timestamp;
use super::envelope::{Envelope, words};
use super::id::{EnvelopeId, EventId, OrgId};

words! {
    /// Event types of the specification and the contract, and additions.
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
        // An addition: another name, address or person for a signer who has not signed.
        SignerChanged = "signer.changed",
        // An addition: too many wrong codes before a document.
        SignerAccessFailed = "signer.access_failed",
        // An addition: the provider refuses a text message to a signer.
        SignerTextFailed = "signer.text_failed",
        // An addition: the signer's mail server refuses a mail, or returned it.
        SignerDeliveryFailed = "signer.delivery_failed",
        VaultStored = "vault.stored",
        VaultCompliancePassed = "vault.compliance.passed",
        VaultComplianceFailed = "vault.compliance.failed",
        VaultReleased = "vault.released",
        VaultTamperDetected = "vault.tamper_detected",
        // An addition: a seal without a time stamp of a trusted authority.
        VaultWithoutTrustedTime = "vault.without_trusted_time",
        PaymentSucceeded = "payment.succeeded",
        KbaVerified = "kba.verified",
        BulkCompleted = "bulk.completed",
        // Additions: control of records, for all parties of a record.
        ControlDesignated = "control.designated",
        ControlAccepted = "control.accepted",
        ControlDeclined = "control.declined",
        ControlReleaseRequested = "control.release.requested",
        ControlReleaseConsented = "control.release.consented",
        ControlReleaseRefused = "control.release.refused",
        ControlReleased = "control.released",
        ControlConflict = "control.conflict",
        ControlTransferProposed = "control.transfer.proposed",
        ControlTransferAccepted = "control.transfer.accepted",
        ControlTransferConfirmed = "control.transfer.confirmed",
        ControlTransferCancelled = "control.transfer.cancelled",
        ControlTransferExpired = "control.transfer.expired",
        ControlTransferFailed = "control.transfer.failed",
        ControlPledged = "control.pledged",
        ControlPledgeReleased = "control.pledge.released",
        ControlViewGranted = "control.view.granted",
        ControlViewRevoked = "control.view.revoked",
        ControlViewed = "control.viewed",
        ControlStated = "control.statement.issued",
        ControlSimilar = "control.similar",
        // Additions: keys that a party signs its acts with, for that party only.
        ControlKeyRegistered = "control.key.registered",
        ControlKeyRevoked = "control.key.revoked",
        // An addition: for the organization that invited the party.
        ControlPartyJoined = "control.party.joined",
        WebhookTest = "webhook.test",
        ControlDisputed = "control.disputed",
        // The newest ones are at the end, because programs were recorded that count in the list.
        // Additions: a signer asks the sender, who answers or dismisses the question.
        SignerQuestionAsked = "signer.question_asked",
        SignerQuestionClosed = "signer.question_closed",
        // An addition: the rules or a check refuse a sending at its planned time.
        EnvelopeNotSent = "envelope.not_sent",
        // An addition: a date of the contract is near.
        EnvelopeDateNear = "envelope.date_near",
        // Additions: results of the funding rules.
        FundingReady = "funding.ready",
        FundingIncomplete = "funding.incomplete",
        FundingRefused = "funding.refused",
        // Additions: legal holds, for the organization that placed them, and retention.
        HoldPlaced = "hold.placed",
        HoldLifted = "hold.lifted",
        EnvelopePaidOff = "envelope.paid_off",
        RetentionDue = "retention.due",
        // An addition: signers were warned of the time limit.
        EnvelopeExpiresSoon = "envelope.expires_soon",
        // Additions: the destruction of a record, for its originator and the party that controls it.
        DestructionRequested = "record.destruction_requested",
        RecordDestroyed = "record.destroyed",
        // Additions: the data of a customer was exported, or is erased by two people.
        CustomerExported = "customer.exported",
        CustomerErasureRequested = "customer.erasure_requested",
        CustomerErased = "customer.erased",
    }
}

/// Members of events about the funding of a contract.
const FUNDING: &[&str] = &[
    "decision_id",
    "stage",
    "findings",
    "rules_component",
    "pack",
];

/// Members of events about a legal hold.
const HOLD: &[&str] = &[
    "hold_id",
    "scope",
    "subject_id",
    "state",
    "reason",
    "case_reference",
    "placed_by",
    "placed_at",
    "lift",
    "lifted_by",
    "lifted_at",
];

/// Members of events about the control of a record, and further ones.
macro_rules! control {
    ($($more:literal),*) => {
        &[
            "originator", "controller", "designee", "buyer", "pledgee", "stage", "epoch", $($more),*
        ]
    };
}

/// Members of events about a transfer.
const TRANSFER: &[&str] = &[
    "transfer_id",
    "state",
    "seller",
    "buyer",
    "atomic",
    "terms",
    "price_reference",
    "seller_copy",
    "expires_at",
    "created_at",
    "changed_at",
    "counts",
    "offer",
    "receipt",
];
/// Members of events about the key of a party.
const KEY: &[&str] = &[
    "key_id",
    "name",
    "public_key",
    "thumbprint",
    "created_at",
    "revoked_at",
    "by",
];

impl EventType {
    /// Returns a description, and the members that `data` has besides `envelope_id`,
    /// `customer_id` and `external_id` (contract, section 3).
    pub fn described(self) -> (&'static str, &'static [&'static str]) {
        // This list is documentation for partners: pages and the API show it. No wildcard arm, so that a new
        // event cannot go out without its description.
        match self {
            Self::EnvelopeCreated => ("An envelope was created", &["status", "envelope_kind"]),
            Self::EnvelopeSent => ("An envelope was sent to its signers", &["signers"]),
            Self::SignerViewed => ("A signer has opened the document", &["signer", "at"]),
            Self::SignerStarted => ("A signer has filled in a first field", &["signer", "at"]),
            Self::SignerCompleted => ("A signer has completed their part", &["signer", "at"]),

            // `fields` can be as large as a contract, so the event has a member for the case that it was cut.
            Self::EnvelopeCompleted => (
                "Every party has completed their part",
                &["completed_at", "signers", "fields", "fields_truncated"],
            ),
            Self::EnvelopeVoided => ("An envelope was voided", &["reason"]),
            Self::EnvelopeDeclined => ("A signer has declined", &["signer", "reason"]),
            Self::EnvelopeExpired => ("Nobody finished an envelope in time", &["expired_at"]),
            Self::EnvelopeReminderSent => ("Signers were reminded", &["reminded"]),
            Self::EnvelopeNotSent => (
                "An envelope could not be sent at its planned time",
                &["planned_for", "reason"],
            ),
            Self::EnvelopeDateNear => ("A date of the contract is near", &["name", "date", "days"]),
            Self::FundingReady => ("A contract is ready for funding", FUNDING),
            Self::FundingIncomplete => (
                "Something is missing for the funding of a contract",
                FUNDING,
            ),
            Self::FundingRefused => ("The funding rules refuse a contract", FUNDING),
            Self::EnvelopeExpiresSoon => (
                "Signers were warned that an envelope expires",
                &["expires_at", "reminded"],
            ),
            Self::HoldPlaced => ("Your organization has placed a legal hold", HOLD),
            Self::HoldLifted => ("Two people have lifted a legal hold", HOLD),
            Self::EnvelopePaidOff => ("A contract was reported as paid off", &["date"]),
            Self::RetentionDue => (
                "The retention of a record is over; nothing is deleted",
                &["schedule", "event", "event_date", "destroy_after"],
            ),
            Self::DestructionRequested => (
                "A record shall be destroyed; the party that controls it has to consent",
                &["destruction_id"],
            ),
            Self::RecordDestroyed => (
                "A record is destroyed; its ledger and the certificate are left",
                &["certificate_sha256"],
            ),
            Self::CustomerExported => (
                "Everything that is held about a customer was exported",
                &["customer_id", "records", "files"],
            ),
            Self::CustomerErasureRequested => (
                "The erasure of a customer was requested; another person approves it",
                &["customer_id"],
            ),
            Self::CustomerErased => (
                "The data of a customer was erased, apart from what a duty keeps",
                &["customer_id", "state", "erased", "refused"],
            ),
            Self::SignerChanged => (
                "A signer has another name or address, or another person signs",
                &["signer", "previous", "reason", "at"],
            ),
            Self::SignerAccessFailed => (
                "A signer has entered too many wrong codes",
                &["signer", "method", "ip_address", "at"],
            ),
            Self::SignerTextFailed => (
                "A text message cannot be delivered to a signer",
                &["signer", "message", "reason", "at"],
            ),
            Self::SignerDeliveryFailed => (
                "A mail cannot be delivered to a signer",
                &["signer", "message", "reason", "at"],
            ),
            Self::SignerQuestionAsked => (
                "A signer has asked the sender a question",
                &["signer", "question_id", "question", "at"],
            ),
            Self::SignerQuestionClosed => (
                "The sender has answered a question of a signer, or dismissed it",
                &["signer", "question_id", "question", "answer", "at"],
            ),

            Self::VaultStored => ("The authoritative copy is in the vault", &["path", "hash"]),
            Self::VaultCompliancePassed => (
                "The certificate's checks have all passed",
                &["score", "missing_requirements"],
            ),
            Self::VaultComplianceFailed => (
                "A check of the certificate has failed",
                &["score", "missing_requirements"],
            ),
            Self::VaultReleased => (
                "The authoritative copy was released",
                &["recipient_organization"],
            ),
            Self::VaultTamperDetected => (
                "A stored document is not what was stored",
                &["expected_hash", "actual_hash"],
            ),
            Self::VaultWithoutTrustedTime => (
                "A document was sealed without a trusted time stamp",
                &["reason"],
            ),
            Self::PaymentSucceeded => (
                "A requested payment was made",
                &["amount_cents", "currency"],
            ),
            Self::KbaVerified => (
                "A signer has answered the identity questions",
                &["signer", "status"],
            ),
            Self::BulkCompleted => ("A bulk send has ended", &["batch_id", "status", "counts"]),
            Self::ControlDesignated => (
                "The originator has offered control of a record to another party",
                control!(),
            ),
            Self::ControlAccepted => ("A party has taken control of a record", control!()),
            Self::ControlDeclined => (
                "A designated party has declined, or the originator has withdrawn the designation",
                control!("reason"),
            ),
            Self::ControlReleaseRequested => (
                "A release of the authoritative copy waits for its controller",
                control!("release"),
            ),
            Self::ControlReleaseConsented => (
                "The controller has agreed to a requested release",
                control!("release"),
            ),
            Self::ControlReleaseRefused => (
                "The controller has refused a requested release",
                control!("release"),
            ),
            Self::ControlReleased => (
                "A controlled record was released from the vault",
                control!("release_id"),
            ),
            Self::ControlConflict => (
                "An act was refused, because two records have the same document or collateral",
                control!("reference", "kind", "since"),
            ),
            Self::ControlDisputed => (
                "A claim on a document or collateral was outranked, a side has stated its case, or operators have decided",
                control!("reference", "step", "suspension"),
            ),
            Self::ControlTransferProposed => ("A seller has offered records to a buyer", TRANSFER),
            Self::ControlTransferAccepted => ("The buyer has accepted a transfer", TRANSFER),
            Self::ControlTransferConfirmed => (
                "The seller has confirmed a transfer; the buyer has control",
                TRANSFER,
            ),
            Self::ControlTransferCancelled => ("A party has ended a transfer", TRANSFER),
            Self::ControlTransferExpired => ("The time of a transfer is over", TRANSFER),
            Self::ControlTransferFailed => ("No record of a transfer can move", TRANSFER),
            Self::ControlPledged => ("The controller has pledged a record", control!("pledge")),
            Self::ControlPledgeReleased => {
                ("A pledgee has released its pledge", control!("pledge"))
            }
            Self::ControlViewGranted => (
                "The controller lets a person look at a record",
                control!("view"),
            ),
            Self::ControlViewRevoked => (
                "The controller has ended a person's view of a record",
                control!("view"),
            ),
            Self::ControlViewed => (
                "A party, or a person with a view, has looked at a record",
                control!(
                    "party", "look", "purpose", "view_id", "name", "email", "copy_id"
                ),
            ),
            Self::ControlStated => (
                "The controller has issued a statement of control for the obligor",
                control!("party", "statement_id", "sha256", "requested_by"),
            ),
            Self::ControlSimilar => (
                "Another party controls a record with a similar document, has a pledge or an offer of it",
                control!("reference", "similarity", "since"),
            ),
            Self::ControlKeyRegistered => (
                "Your organization registered a key that it signs its acts of control with",
                KEY,
            ),
            Self::ControlKeyRevoked => ("A key of your organization was revoked", KEY),
            Self::ControlPartyJoined => (
                "A party that your organization invited has joined",
                &[
                    "invitation_id",
                    "name",
                    "email",
                    "created_at",
                    "expires_at",
                    "organization_id",
                    "joined_at",
                ],
            ),
            Self::WebhookTest => ("An administrator tests an endpoint", &["message"]),
        }
    }
}

/// Event in the outbox. Its JSON is the delivered body.
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
    /// Serializes the body that receivers get, byte for byte.
    pub fn body(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Creates an event that belongs to no envelope.
    pub fn of_organization(org: OrgId, event_type: EventType, at: Timestamp, data: Value) -> Self {
        Self {
            event_type,
            event_id: EventId::new(),
            org_id: org,
            envelope_id: None,
            timestamp: at,
            data,
        }
    }

    /// Creates an event about another organization's envelope. `data` must be an object.
    pub fn for_party(
        org: OrgId,
        envelope: &Envelope,
        event_type: EventType,
        at: Timestamp,
        data: Value,
    ) -> Self {
        // A customer id and an external id are the originator's own
        // business, so other parties do not get them.
        let mut members = json!({ "envelope_id": envelope.id });
        if let (Value::Object(members), Value::Object(data)) = (&mut members, data) {
            members.extend(data);
        }
        Self {
            envelope_id: Some(envelope.id.clone()),
            ..Self::of_organization(org, event_type, at, members)
        }
    }

    /// Creates an event about an envelope. `data` must be an object; the envelope's
    /// ids come before its members.
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
