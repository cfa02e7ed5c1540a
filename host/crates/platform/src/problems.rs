//! What stands against a request, without HTTP.
//!
//! A feature refuses a request with a [`Problem`]. A refusal that callers tell apart is a type of its own here, with a
//! conversion to [`Problem`].

use serde_json::{Value, json};

use holdfast_components::rules::control::{self, RefusalReason};
use holdfast_components::rules::lifecycle;
use holdfast_domain::component_change::ChangeState;
use holdfast_domain::id::{HoldId, ReleaseId};
use holdfast_domain::statement::Statement;
use holdfast_store::fingerprints::OtherRecord;
use holdfast_store::row::OwnedEnvelope;

/// How the documents component begins the reason of a refusal for which the contract has a code.
const READS_DIFFERENTLY: &str = "readers do not agree about it";

/// Refusal of a request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    pub kind: ProblemKind,
    /// Code for programs, for a problem that the contract names.
    pub code: Option<&'static str>,
    pub message: String,
    pub details: Option<Box<Value>>,
}

/// What a problem is about.
#[derive(Clone, Copy, Debug)]
pub enum ProblemKind {
    /// The request itself makes no sense.
    Request,
    /// The request can succeed in another state.
    State,
    /// The first request with the same key is still running.
    Running,
    Forbidden,
    NotFound,
    Gone,
    /// The endpoint does not accept this type of file.
    UnsupportedType,
    /// A quota is used up. Carries the seconds to wait.
    Quota(u32),
}

impl Problem {
    pub fn new(
        kind: ProblemKind,
        code: impl Into<Option<&'static str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            code: code.into(),
            message: message.into(),
            details: None,
        }
    }

    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }
}

/// A document or a picture that cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct UnreadableFile {
    pub message: &'static str,
    pub reason: String,
}

impl From<&UnreadableFile> for Problem {
    fn from(file: &UnreadableFile) -> Self {
        // The component reports reasons as text, and the contract has a code for this one only.
        let differs = file.reason.starts_with(READS_DIFFERENTLY);
        let code = differs.then_some("document_reads_differently");
        let details = json!({ "reason": file.reason });
        Self::new(ProblemKind::Request, code, file.message).with_details(details)
    }
}

impl From<&lifecycle::Refusal> for Problem {
    fn from(refusal: &lifecycle::Refusal) -> Self {
        let kind = match refusal.reason {
            lifecycle::RefusalReason::Semantic => ProblemKind::Request,
            lifecycle::RefusalReason::Status
            | lifecycle::RefusalReason::WrongKind
            | lifecycle::RefusalReason::Missing
            | lifecycle::RefusalReason::Unpaid => ProblemKind::State,
        };
        Self::new(kind, None, &refusal.message)
    }
}

/// An act that was refused because there is another record.
#[derive(Debug)]
pub struct FoundConflict {
    pub(crate) record: OwnedEnvelope,
    pub(crate) other: OtherRecord,
}

/// Reason why an act on a record is not permitted.
#[derive(Debug, thiserror::Error)]
pub enum ControlProblem {
    /// The control rules refused the act.
    #[error("{}", .0.message)]
    Refused(control::Refusal),
    /// Another party controls a record with the same fingerprint. Reported before it is answered.
    #[error("another record with this document or collateral is controlled already")]
    DoublePledge(Box<FoundConflict>),
    /// The record's controller must agree first. Carries the release that waits for it, if one does.
    #[error("The controller of this record must consent first")]
    ConsentRequired(Option<ReleaseId>),
    /// The record was released to another recipient, or for another purpose.
    #[error("The record was released with another form: another recipient or purpose")]
    ReleasedToAnother,
    /// A pledgee would have to agree.
    #[error("The record is pledged; its pledgee must release the pledge first")]
    Pledged,
    /// A legal hold is in force. Names it for callers of the organization that placed it.
    #[error(
        "A legal hold is in force: nothing under it leaves, changes hands or is deleted until two people lift it"
    )]
    LegalHold(Option<Box<NamedHold>>),
}

/// Legal hold, as its own organization gets to know it.
#[derive(Debug)]
pub struct NamedHold {
    pub id: HoldId,
    pub case_reference: String,
}

impl ControlProblem {
    /// Creates the refusal of an act for which the rules are not asked.
    pub fn refused(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self::Refused(control::Refusal {
            reason,
            message: message.into(),
            source: String::new(),
        })
    }
}

impl From<&ControlProblem> for Problem {
    fn from(problem: &ControlProblem) -> Self {
        let state = |code| Self::new(ProblemKind::State, code, problem.to_string());

        match problem {
            ControlProblem::Refused(refusal) => refusal.into(),
            ControlProblem::DoublePledge(_) => state("already_controlled"),
            ControlProblem::ConsentRequired(release) => {
                state("control_consent_required").with_details(json!({ "release_id": release }))
            }
            ControlProblem::ReleasedToAnother => state("released_to_another"),
            ControlProblem::Pledged => state("record_pledged"),
            // Other organizations get the code alone: a hold may be secret.
            ControlProblem::LegalHold(None) => state("legal_hold"),
            ControlProblem::LegalHold(Some(hold)) => state("legal_hold")
                .with_details(json!({ "hold_id": hold.id, "case_reference": hold.case_reference })),
        }
    }
}

impl From<&control::Refusal> for Problem {
    fn from(refusal: &control::Refusal) -> Self {
        let (kind, code) = match refusal.reason {
            RefusalReason::OutOfOrder => (ProblemKind::State, "control_out_of_order"),
            RefusalReason::WrongParty => (ProblemKind::State, "control_wrong_party"),
            // No change of the record's state could make this act possible.
            RefusalReason::ToOneself => (ProblemKind::Request, "control_to_oneself"),
            RefusalReason::NotVaulted => (ProblemKind::State, "record_not_vaulted"),
            RefusalReason::Unpaid => (ProblemKind::State, "record_unpaid"),
            RefusalReason::IdentityOpen => (ProblemKind::State, "record_identity_open"),
            RefusalReason::Held => (ProblemKind::State, "record_held"),
            RefusalReason::Expired => (ProblemKind::State, "transfer_expired"),
        };
        let source = Some(&refusal.source).filter(|source| !source.is_empty());

        Self {
            details: source.map(|source| Box::new(json!({ "source": source }))),
            ..Self::new(kind, code, &refusal.message)
        }
    }
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

impl From<&ChangeProblem> for Problem {
    fn from(problem: &ChangeProblem) -> Self {
        let state = |code| Self::new(ProblemKind::State, code, problem.to_string());

        match problem {
            ChangeProblem::ApprovalRequired => state("approval_required"),
            ChangeProblem::StateRequired => state("state_required"),
            ChangeProblem::SignaturesMissing { .. } => state("signatures_missing"),
            ChangeProblem::ApprovalsMissing { given, required } => state("approvals_missing")
                .with_details(json!({ "given": given, "required": required })),
            ChangeProblem::SecondPersonMissing => state("second_person_missing"),
            ChangeProblem::RequesterReviews => state("requester_reviews"),
            ChangeProblem::UploaderReviews => state("uploader_reviews"),
            ChangeProblem::InviteeReviews => state("invitee_reviews"),
            ChangeProblem::IdentityUnconfirmed => state("identity_unconfirmed"),
            // The person lacks a role. All other problems are states of the request.
            ChangeProblem::RoleReviews => {
                Self::new(ProblemKind::Forbidden, "role_reviews", problem.to_string())
            }
            ChangeProblem::Closed(now) => {
                state("change_closed").with_details(json!({ "state": now }))
            }
            ChangeProblem::BaseMoved => state("base_moved"),
            ChangeProblem::ComponentChanged => state("component_changed"),
            ChangeProblem::ShadowStale => state("shadow_stale"),
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

impl From<&StatementProblem> for Problem {
    fn from(problem: &StatementProblem) -> Self {
        // The state of the record is at fault, or the statement itself.
        let state = |code| Self::new(ProblemKind::State, code, problem.to_string());
        let request = |code| Self::new(ProblemKind::Request, code, problem.to_string());

        match problem {
            StatementProblem::Missing { draft, member } => state("control_signature_required")
                .with_details(json!({ "member": member, "statement": draft })),
            StatementProblem::Invalid(_) => request("invalid_signature"),
            StatementProblem::Revoked => state("signing_key_revoked"),
            StatementProblem::Mismatch(_) => request("statement_mismatch"),
            StatementProblem::Outdated => state("statement_outdated"),
            StatementProblem::Expired => state("statement_expired"),
            StatementProblem::Replayed => state("statement_replayed"),
        }
    }
}
