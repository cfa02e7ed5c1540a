//! Destruction of records: the request, the steps of people towards it, and the certificate of the destruction.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::{EnvelopeDestruction, EnvelopeKind, EnvelopeStatus, words};
use super::id::{DestructionId, EnvelopeId, OrgId, UserId};
use super::organization::Role;
use super::statement::InstallationName;
use super::user::IssuerIdentity;

words! {
    /// State of a request to destroy records.
    DestructionState {
        Requested = "requested",
        // Another person has authorized it.
        Authorized = "authorized",
        // Its records are being destroyed, or are destroyed.
        CarriedOut = "carried_out",
        Withdrawn = "withdrawn",
    }
}

words! {
    /// State of one record of a request.
    DestructionRecordState {
        Waiting = "waiting",
        Destroying = "destroying",
        Destroyed = "destroyed",
        // Something stood against it when its turn came. The record is whole.
        Refused = "refused",
    }
}

/// Step of a person or a key towards a destruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestructionStep {
    /// Actor, as in audit lists: `user:…` or `key:…`.
    pub by: String,
    /// Organization of the actor.
    pub org: OrgId,
    /// Id of the user; `None` for keys, and for people known only to an issuer.
    pub user: Option<UserId>,
    /// Role of the user.
    pub role: Option<Role>,
    /// Account at an issuer with which the person signed in.
    pub identity: Option<IssuerIdentity>,
    /// When.
    pub at: Timestamp,
}

impl DestructionStep {
    /// Returns the actor without an address of a person: `key:…`, `user:usr_…`, or `user`.
    pub fn actor(&self) -> String {
        match (&self.user, self.by.strip_prefix("key:")) {
            (Some(user), _) => format!("user:{user}"),
            (None, Some(_)) => self.by.clone(),
            (None, None) => "user".into(),
        }
    }
}

/// Request to destroy records.
#[derive(Clone, Debug)]
pub struct Destruction {
    /// Its id.
    pub id: DestructionId,
    /// Organization of the request, and of its records.
    pub org: OrgId,
    /// Why, for people of the organization only.
    pub reason: String,
    /// Organization that the certificates are made out to.
    pub certificate_recipient: Option<String>,
    /// Request.
    pub requested: DestructionStep,
    /// Authorization, by another person than the request.
    pub authorized: Option<DestructionStep>,
    /// Order to destroy, by another person than the authorization.
    pub carried_out: Option<DestructionStep>,
    /// End of the request without a destruction.
    pub withdrawn: Option<DestructionStep>,
}

impl Destruction {
    /// Returns the state of the request.
    pub fn state(&self) -> DestructionState {
        if self.withdrawn.is_some() {
            DestructionState::Withdrawn
        } else if self.carried_out.is_some() {
            DestructionState::CarriedOut
        } else if self.authorized.is_some() {
            DestructionState::Authorized
        } else {
            DestructionState::Requested
        }
    }
}

/// Record of a request.
#[derive(Clone, Debug)]
pub struct DestructionRecord {
    /// The request.
    pub destruction: DestructionId,
    /// Originator of the record.
    pub org: OrgId,
    /// The record.
    pub envelope: EnvelopeId,
    /// Party that controlled the record when it was requested, or when it consented.
    pub controller: OrgId,
    /// Consent of that party.
    pub consented: Option<DestructionStep>,
    /// What stood against the destruction when its turn came.
    pub refusal: Option<DestructionRefusal>,
    /// Progress of the destruction.
    pub progress: Option<EnvelopeDestruction>,
}

impl DestructionRecord {
    /// Returns the state of the record.
    pub fn state(&self) -> DestructionRecordState {
        match (self.progress, &self.refusal) {
            (Some(EnvelopeDestruction::Destroyed), _) => DestructionRecordState::Destroyed,
            (Some(EnvelopeDestruction::Destroying), _) => DestructionRecordState::Destroying,
            (None, Some(_)) => DestructionRecordState::Refused,
            (None, None) => DestructionRecordState::Waiting,
        }
    }
}

/// Why a record was not destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DestructionRefusal {
    /// Code, such as `legal_hold`.
    pub code: Option<String>,
    /// In words.
    pub message: String,
}

/// Cause of a destruction. Its JSON is `{"destruction_id": …}` or `{"erasure_id": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DestructionCause {
    /// Request that two people made.
    #[serde(rename = "destruction_id")]
    Destruction(DestructionId),
    /// Erasure of a person, by its id.
    #[serde(rename = "erasure_id")]
    Erasure(String),
}

/// Record that is being destroyed, or is destroyed.
#[derive(Clone, Debug)]
pub struct DestroyedRecord {
    /// Originator of the record.
    pub org: OrgId,
    /// The record.
    pub envelope: EnvelopeId,
    /// JSON of the certificate. The ledger has the SHA-256 of its canonical form (RFC 8785).
    pub certificate: String,
    /// When the destruction began. From then on the record is unreadable.
    pub begun_at: Timestamp,
    /// When nothing was left.
    pub destroyed_at: Option<Timestamp>,
}

/// Value of `certificate_type`.
pub const CERTIFICATE_TYPE: &str = "holdfast_destruction_certificate";

/// Certificate of the destruction of a record. It has ids, hashes, acts and times, and no values of people.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DestructionCertificate {
    /// `holdfast_destruction_certificate`.
    pub certificate_type: String,
    /// `1.0`.
    pub certificate_version: String,
    /// Public name of the installation.
    pub issuer: String,
    /// The installation, by its log.
    pub installation: InstallationName,
    /// Organization that the certificate is made out to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_out_to: Option<String>,
    /// The record.
    pub record: CertifiedRecord,
    /// Cause of the destruction.
    pub cause: DestructionCause,
    /// Acts of people and keys, in their order.
    pub acts: Vec<CertifiedAct>,
    /// SHA-256 of each file that is destroyed, lower-case hex, by what the file was.
    pub destroyed: BTreeMap<String, Vec<String>>,
    /// Last entry of the ledger before the destruction.
    pub ledger: CertifiedLedger,
    /// When the record became unreadable. Its bytes are deleted from then on.
    pub destroyed_at: Timestamp,
}

/// Record of a certificate of destruction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CertifiedRecord {
    /// The record.
    pub envelope_id: EnvelopeId,
    /// Originator of the record.
    pub organization_id: OrgId,
    /// Party that controlled the record.
    pub controller_id: OrgId,
    /// Kind of the envelope.
    pub kind: EnvelopeKind,
    /// Status, which stays.
    pub status: EnvelopeStatus,
    /// When the envelope was created.
    pub created_at: Timestamp,
    /// Always `SHA-256`.
    pub hash_algorithm: String,
    /// Hash of the authoritative copy; none if it was never in the vault.
    pub document_hash: Option<String>,
}

/// Act of a certificate of destruction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CertifiedAct {
    /// `requested`, `authorized`, `consented`, `carried_out`, or `erased` for an erasure.
    pub act: String,
    /// Organization of the actor.
    pub organization_id: OrgId,
    /// Id of the user or key: `user:usr_…` or `key:key_…`.
    pub by: String,
    /// Role of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When.
    pub at: Timestamp,
}

impl CertifiedAct {
    /// Returns a step as an act, without the address of its person.
    pub fn of(act: &str, step: &DestructionStep) -> Self {
        Self {
            act: act.into(),
            organization_id: step.org.clone(),
            by: step.actor(),
            role: step.role,
            at: step.at,
        }
    }
}

/// State of a ledger.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CertifiedLedger {
    /// Number of entries.
    pub sequence: i64,
    /// Hash of the last one, lower-case hex.
    pub hash: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cause_is_written_with_the_name_of_its_id() {
        let id = DestructionId::new();
        let cause = DestructionCause::Destruction(id.clone());
        assert_eq!(json!(cause), json!({ "destruction_id": id }));
        let erasure = json!({ "erasure_id": "era_1" });
        let read: DestructionCause = serde_json::from_value(erasure).unwrap();
        assert_eq!(read, DestructionCause::Erasure("era_1".into()));
    }

    #[test]
    fn an_act_names_a_person_by_id() {
        let step = |by: &str, user| DestructionStep {
            by: by.into(),
            org: OrgId::new(),
            user,
            role: Some(Role::Compliance),
            identity: None,
            at: Timestamp::from_millis(0),
        };
        let id = UserId::new();
        let named = CertifiedAct::of("requested", &step("user:ada@oak.example", Some(id.clone())));
        assert_eq!(named.by, format!("user:{id}"));
        assert_eq!(step("user:ada@oak.example", None).actor(), "user");
        assert_eq!(step("key:key_1", None).actor(), "key:key_1");
    }
}
