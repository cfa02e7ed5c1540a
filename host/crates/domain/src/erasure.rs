//! Erasure of a person: the parts that are erased, and those that a duty protects.

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{CustomerId, EnvelopeId, OrgId};
use super::user::IssuerIdentity;

words! {
    /// State of the erasure of a customer.
    ErasureState {
        // One person has asked for it.
        Requested = "requested",
        // Two people have agreed, and something is left that a duty kept when it was last tried.
        Partly = "partly",
        Erased = "erased",
    }
}

words! {
    /// Part of the data held about a person.
    PersonPart {
        // Name, addresses and other values of the customer, and working data with them.
        Customer = "customer",
        Envelope = "envelope",
    }
}

words! {
    /// Why a part is kept.
    ErasureRefusal {
        LegalHold = "legal_hold",
        // Another organization controls the record, was offered it, or has a pledge on it.
        OtherPartyControls = "other_party_controls",
        // It is out for signing, or a batch sends it.
        OpenEnvelope = "open_envelope",
        // A retention schedule of the organization keeps it to a day, or waits for its event.
        RetentionRunning = "retention_running",
        // A signed contract that no schedule ends (UCC 9-105).
        AuthoritativeRecord = "authoritative_record",
        // Another person opened, signed or declined it, and no schedule has ended.
        OtherPeople = "other_people",
    }
}

/// Request to erase a customer.
#[derive(Clone, Debug)]
pub struct CustomerErasure {
    /// The customer.
    pub customer: CustomerId,
    /// Its organization.
    pub org: OrgId,
    /// Actor who asked for it.
    pub requested_by: String,
    /// Account at an issuer with which that person signed in.
    pub requested_as: Option<IssuerIdentity>,
    /// When that was.
    pub requested_at: Timestamp,
    /// Second person, who approved it, and when.
    pub approved: Option<(String, Timestamp)>,
    /// Envelopes that were erased.
    pub erased: Vec<EnvelopeId>,
    /// Envelopes that are left, once it was approved.
    pub remaining: Vec<EnvelopeId>,
}

impl CustomerErasure {
    /// Returns the state. `has_values` states whether the customer itself still has its values.
    pub fn state(&self, has_values: bool) -> ErasureState {
        if self.approved.is_none() {
            ErasureState::Requested
        } else if has_values || !self.remaining.is_empty() {
            ErasureState::Partly
        } else {
            ErasureState::Erased
        }
    }

    /// Whether a person asked for it. A key names no person.
    pub fn names_a_person(&self) -> bool {
        self.requested_by.starts_with("user:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested() -> CustomerErasure {
        CustomerErasure {
            customer: CustomerId::new(),
            org: OrgId::new(),
            requested_by: "user:ada@oak.example".into(),
            requested_as: None,
            requested_at: Timestamp::from_millis(0),
            approved: None,
            erased: Vec::new(),
            remaining: Vec::new(),
        }
    }

    #[test]
    fn an_erasure_is_over_when_nothing_is_left() {
        let mut erasure = requested();
        assert_eq!(erasure.state(true), ErasureState::Requested);

        erasure.approved = Some(("user:ben@oak.example".into(), Timestamp::from_millis(1)));
        erasure.remaining = vec![EnvelopeId::new()];
        assert_eq!(erasure.state(false), ErasureState::Partly);

        erasure.remaining.clear();
        assert_eq!(erasure.state(true), ErasureState::Partly);
        assert_eq!(erasure.state(false), ErasureState::Erased);
    }

    #[test]
    fn a_key_names_no_person() {
        let by_key = CustomerErasure {
            requested_by: "key:key_01jdk7m3e8f4x9s2w5v6b0c1dc".into(),
            ..requested()
        };
        assert!(!by_key.names_a_person());
        assert!(requested().names_a_person());
    }
}
