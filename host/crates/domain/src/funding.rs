//! Funding of contracts: checks by funding rules, stipulations, and the packs of lenders.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::component::ComponentIdentity;
use crate::envelope::words;
use crate::event::EventType;
use crate::id::{ComponentId, EnvelopeId, FundingPackId, OrgId};

words! {
    /// What becomes of a contract that its funding rules stop before it is sent: it is not checked, it is sent with a
    /// warning, or the sending is refused.
    FundingMode {
        Off = "off",
        Warn = "warn",
        Enforce = "enforce",
    }
}

impl FundingMode {
    /// Returns the stricter one of two modes.
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Enforce, _) | (_, Self::Enforce) => Self::Enforce,
            (Self::Warn, _) | (_, Self::Warn) => Self::Warn,
            (Self::Off, Self::Off) => Self::Off,
        }
    }

    /// Whether contracts are checked.
    pub fn checks(self) -> bool {
        self != Self::Off
    }
}

words! {
    /// Moment of a check.
    FundingStage {
        BeforeSending = "before_sending",
        AfterSigning = "after_signing",
        Transfer = "transfer",
    }
}

words! {
    /// Result of a check: nothing stands against funding, something is missing, or something is wrong.
    FundingOutcome {
        Ready = "ready",
        Incomplete = "incomplete",
        Refused = "refused",
    }
}

impl FundingOutcome {
    /// Returns the event that reports the result.
    pub fn event(self) -> EventType {
        match self {
            Self::Ready => EventType::FundingReady,
            Self::Incomplete => EventType::FundingIncomplete,
            Self::Refused => EventType::FundingRefused,
        }
    }
}

words! {
    /// State of a required attachment.
    StipulationState {
        Open = "open",
        Received = "received",
        Waived = "waived",
    }
}

/// Attachment that the funding of a contract depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stipulation {
    pub envelope: EnvelopeId,
    /// Such as `proof_of_income`.
    pub kind: String,
    /// Field of a signer whose attached file satisfies it.
    pub field: Option<String>,
    pub state: StipulationState,
    /// Envelope with the uploaded file that satisfies it.
    pub document_envelope: Option<EnvelopeId>,
    /// SHA-256 of the file that satisfies it, lower-case hex.
    pub document_sha256: Option<String>,
    /// Name of that file.
    pub document_name: Option<String>,
    /// Reason of a waiver.
    pub reason: Option<String>,
    pub settled_by: Option<String>,
    pub settled_at: Option<Timestamp>,
}

impl Stipulation {
    /// Returns an open stipulation.
    pub fn open(envelope: EnvelopeId, kind: String, field: Option<String>) -> Self {
        Self {
            envelope,
            kind,
            field,
            state: StipulationState::Open,
            document_envelope: None,
            document_sha256: None,
            document_name: None,
            reason: None,
            settled_by: None,
            settled_at: None,
        }
    }
}

words! {
    /// Weight of a finding: the contract cannot be funded like this, a person should look at it, or it is a note.
    FindingSeverity {
        Stop = "stop",
        Warn = "warn",
        Note = "note",
    }
}

/// Funding rules that a lender publishes to organizations that it invites.
#[derive(Clone, Debug, PartialEq)]
pub struct FundingPack {
    pub id: FundingPackId,
    /// The lender.
    pub org: OrgId,
    pub name: String,
    pub created_by: String,
    pub created_at: Timestamp,
}

/// Version of a pack.
#[derive(Clone, Debug, PartialEq)]
pub struct FundingPackVersion {
    pub pack: FundingPackId,
    /// The lender.
    pub org: OrgId,
    /// From 1.
    pub version: u32,
    pub component: ComponentId,
    pub identity: ComponentIdentity,
    pub description: String,
    /// Time from which the version applies to those who follow the pack.
    pub effective_at: Timestamp,
    /// Contracts of the lender that show how the rules judge.
    pub samples: Vec<EnvelopeId>,
    pub published_by: String,
    pub published_at: Timestamp,
}

/// Returns the version that applies at a time: the newest that is in effect, or a pinned one.
pub fn applicable(
    versions: &[FundingPackVersion],
    pinned: Option<u32>,
    now: Timestamp,
) -> Option<&FundingPackVersion> {
    let mut found: Vec<&FundingPackVersion> = versions
        .iter()
        .filter(|one| match pinned {
            Some(version) => one.version == version,
            None => one.effective_at <= now,
        })
        .collect();
    found.sort_by_key(|one| (one.effective_at, one.version));

    found.pop()
}

/// Pack that an organization was invited to, and its subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct FundingInvitation {
    /// Invited organization.
    pub org: OrgId,
    pub pack: FundingPackId,
    pub lender: OrgId,
    pub invited_at: Timestamp,
    pub subscribed_at: Option<Timestamp>,
    /// Version that the subscription stays at. Without one, it follows the pack.
    pub pinned: Option<u32>,
}

/// Version of a pack that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedPack {
    /// Pack of a lender.
    pub pack_id: FundingPackId,
    pub version: u32,
    /// Organization that published it.
    pub lender_id: OrgId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_makes_the_setting_stricter_and_never_looser() {
        use FundingMode::{Enforce, Off, Warn};

        assert_eq!(Off.stricter(Enforce), Enforce);
        assert_eq!(Enforce.stricter(Off), Enforce);
        assert_eq!(Warn.stricter(Off), Warn);
        assert_eq!(Off.stricter(Off), Off);
    }

    #[test]
    fn followers_get_the_newest_version_in_effect_and_others_their_own() {
        let (pack, org) = (FundingPackId::new(), OrgId::new());
        let version = |version, effective| FundingPackVersion {
            pack: pack.clone(),
            org: org.clone(),
            version,
            component: ComponentId::new(),
            identity: ComponentIdentity {
                name: "bank".into(),
                version: "1.0.0".into(),
                sha256: "0".repeat(64),
            },
            description: String::new(),
            effective_at: Timestamp::from_millis(effective),
            samples: Vec::new(),
            published_by: "user:1".into(),
            published_at: Timestamp::from_millis(0),
        };
        let versions = [version(1, 100), version(2, 200), version(3, 300)];
        let at = |pinned, now| {
            applicable(&versions, pinned, Timestamp::from_millis(now)).map(|one| one.version)
        };

        assert_eq!(at(None, 99), None);
        assert_eq!(at(None, 250), Some(2));
        assert_eq!(at(None, 300), Some(3));
        assert_eq!(at(Some(1), 300), Some(1));
        assert_eq!(at(Some(4), 300), None);
    }
}
