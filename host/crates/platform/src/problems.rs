//! Refusals that need facts of their own.

use holdfast_domain::clock::Timestamp;
use holdfast_domain::component_change::ChangeState;
use holdfast_domain::id::DisputeId;
use holdfast_domain::statement::Statement;
use holdfast_store::fingerprints::OtherRecord;
use holdfast_store::row::OwnedEnvelope;

/// An act that was refused because there is another record.
#[derive(Debug)]
pub struct FoundConflict {
    pub(crate) record: OwnedEnvelope,
    pub(crate) other: OtherRecord,
}

/// Answer to a refused act.
#[derive(Clone, Debug)]
pub struct ControlConflict {
    /// Since when another party controls such a record.
    pub since: Timestamp,
    /// Reference that both sides can take to a dispute.
    pub reference: DisputeId,
}

/// Reason why a change of components is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeProblem {
    #[error("This change needs the approval of others: POST /component-changes requests it")]
    ApprovalRequired,
    #[error(
        "The installation's components are changed by a signed state: `holdfast components apply`"
    )]
    StateRequired,
    #[error("{given} of {required} signatures are given by keys that sign states")]
    SignaturesMissing { given: usize, required: usize },
    #[error("{given} of {required} approvals are given")]
    ApprovalsMissing { given: usize, required: usize },
    #[error("A second person must approve an emergency change first")]
    SecondPersonMissing,
    #[error("You requested this change; another person reviews it")]
    RequesterReviews,
    #[error("You uploaded this component; another person reviews it")]
    UploaderReviews,
    #[error(
        "You, and the requester or another reviewer, are in one chain of invitations; another person reviews it"
    )]
    InviteeReviews,
    #[error(
        "The sign-in of your organization changed: confirm with a passkey or a mailed link before you approve"
    )]
    IdentityUnconfirmed,
    #[error("The policy does not let your role review changes")]
    RoleReviews,
    #[error("This change request is {}", .0.as_str())]
    Closed(ChangeState),
    #[error("Another change was made since this one was requested; request it again")]
    BaseMoved,
    #[error("The component is not the one that was requested")]
    ComponentChanged,
    #[error("The comparison on past records is missing or too old; make it again")]
    ShadowStale,
}

impl ChangeProblem {
    /// Returns the code of the error response.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ApprovalRequired => "approval_required",
            Self::StateRequired => "state_required",
            Self::SignaturesMissing { .. } => "signatures_missing",
            Self::ApprovalsMissing { .. } => "approvals_missing",
            Self::SecondPersonMissing => "second_person_missing",
            Self::RequesterReviews => "requester_reviews",
            Self::UploaderReviews => "uploader_reviews",
            Self::InviteeReviews => "invitee_reviews",
            Self::IdentityUnconfirmed => "identity_unconfirmed",
            Self::RoleReviews => "role_reviews",
            Self::Closed(_) => "change_closed",
            Self::BaseMoved => "base_moved",
            Self::ComponentChanged => "component_changed",
            Self::ShadowStale => "shadow_stale",
        }
    }
}

/// Reason why an act is not accepted without another statement.
#[derive(Debug, thiserror::Error)]
pub enum StatementProblem {
    /// A signature is needed. Carries the statement to sign, and the member to send it in.
    #[error("Sign this statement and repeat the request with it in `{member}`")]
    Missing {
        draft: Box<Statement>,
        member: &'static str,
    },
    #[error("{0}")]
    Invalid(String),
    #[error("This key was revoked")]
    Revoked,
    /// Carries the member that differs.
    #[error("`{0}` of the statement does not fit this act")]
    Mismatch(&'static str),
    #[error("Another act with the record came first; sign a statement with its present epoch")]
    Outdated,
    #[error("The statement is not valid at this time")]
    Expired,
    #[error("The nonce of the statement was used before")]
    Replayed,
}

impl StatementProblem {
    /// Returns the code of the problem, as in errors of the API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "control_signature_required",
            Self::Invalid(_) => "invalid_signature",
            Self::Revoked => "signing_key_revoked",
            Self::Mismatch(_) => "statement_mismatch",
            Self::Outdated => "statement_outdated",
            Self::Expired => "statement_expired",
            Self::Replayed => "statement_replayed",
        }
    }

    /// Whether the statement itself is at fault, and not the state of the record.
    pub fn is_semantic(&self) -> bool {
        matches!(self, Self::Invalid(_) | Self::Mismatch(_))
    }
}
