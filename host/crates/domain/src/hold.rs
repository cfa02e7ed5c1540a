//! Legal holds: while one is in force, nothing that it covers leaves or is deleted.

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::envelope::words;
use super::id::{EnvelopeId, HoldId, OrgId};
use super::user::IssuerIdentity;

words! {
    /// What a legal hold covers.
    HoldScope {
        Envelope = "envelope",
        Customer = "customer",
        // The records of a transfer.
        Pool = "pool",
        Organization = "organization",
    }
}

words! {
    /// State of a legal hold. It binds until it is lifted.
    HoldState {
        InForce = "in_force",
        // One person has asked for the end of the hold.
        LiftRequested = "lift_requested",
        Lifted = "lifted",
    }
}

/// A legal hold.
#[derive(Clone, Debug)]
pub struct LegalHold {
    /// Its id.
    pub id: HoldId,
    /// Organization that placed it. The hold covers records while this organization controls them.
    pub org: OrgId,
    /// Scope of the hold.
    pub scope: HoldScope,
    /// Id of the envelope, customer, transfer or organization.
    pub subject: String,
    /// Bucket of the subject's rows, which may be another organization's.
    pub subject_bucket: i64,
    /// Why, in the words of the organization.
    pub reason: String,
    /// Reference of the case, such as a docket number.
    pub case_reference: String,
    /// Actor who placed it.
    pub placed_by: String,
    /// When that was.
    pub placed_at: Timestamp,
    /// Request to lift it, which a second person has to approve.
    pub lift: Option<RequestedLift>,
    /// Actor who approved the lift, and when.
    pub lifted: Option<(String, Timestamp)>,
    /// How far the object store's own hold follows this one; none before its first step.
    pub store: Option<StoreHold>,
}

/// How far the object store's own hold follows a legal hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreHold {
    /// Walk over the covered records that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<StoreHoldWalk>,
    /// Begin of the last finished walk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// Objects that it left behind, because the store refused.
    #[serde(default)]
    pub lacking: u64,
}

/// A walk over the records of a legal hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreHoldWalk {
    /// When it began.
    pub began_at: Timestamp,
    /// Last record it has been at.
    pub after: EnvelopeId,
    /// Objects that it left behind, because the store refused.
    pub lacking: u64,
}

/// Request to lift a legal hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedLift {
    /// Why it is no longer needed.
    pub reason: String,
    /// Actor who requested it.
    pub requested_by: String,
    /// Account at an issuer with which that person signed in.
    pub requested_as: Option<IssuerIdentity>,
    /// When that was.
    pub requested_at: Timestamp,
}

impl LegalHold {
    /// Returns the state.
    pub fn state(&self) -> HoldState {
        match (&self.lifted, &self.lift) {
            (Some(_), _) => HoldState::Lifted,
            (None, Some(_)) => HoldState::LiftRequested,
            (None, None) => HoldState::InForce,
        }
    }
}
