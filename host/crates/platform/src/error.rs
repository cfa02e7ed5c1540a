//! Why a service call failed, as facts without HTTP. `http/error.rs` is the only place that
//! maps them to status codes.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::problems::{ChangeProblem, ControlProblem, Problem, StatementProblem, UnreadableFile};
use crate::room::form::FormError;
use holdfast_adapters::files::FilesError;
use holdfast_adapters::sealing::SealError;
use holdfast_components::inspection::AdmissionReason;
use holdfast_components::providers::ProviderError;
use holdfast_components::rules::TransitionError;
use holdfast_components::rules::documents::DocumentError;
use holdfast_components::rules::lifecycle::Refusal;
use holdfast_components::rules::placement::ReadError;
use holdfast_components::{CallFailure, ComponentError};
use holdfast_domain::component::Slot;
use holdfast_store::StoreError;

const NEEDS_PASSWORD: &str =
    "it opens with a password only: remove its protection and send it again";

/// One problem in a request body.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValidationIssue {
    /// Kind of the problem, such as `invalid_type`.
    pub code: String,
    /// Description of a valid value.
    pub expected: String,
    /// Value that was sent, or its type.
    pub received: String,
    /// Member names and list indexes from the root of the body.
    #[schemars(extend("items" = { "type": ["string", "integer"] }))]
    pub path: Vec<Value>,
    /// The problem in words.
    pub message: String,
    /// Closest known name, for an unknown member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

impl ValidationIssue {
    /// Creates an issue for a well-formed value that is not acceptable.
    pub fn new(
        code: &str,
        path: &[&str],
        expected: impl Into<String>,
        received: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            expected: expected.into(),
            received: received.into(),
            path: path
                .iter()
                .map(|step| match step.parse::<u64>() {
                    Ok(index) => Value::from(index),
                    Err(_) => Value::from(*step),
                })
                .collect(),
            message: message.into(),
            nearest: None,
        }
    }

    /// Creates an issue for a text that has to have 1 to `longest` characters and has not.
    pub fn of_length(
        path: &[&str],
        text: &str,
        longest: usize,
        message: impl Into<String>,
    ) -> Self {
        let length = text.trim().chars().count();
        let code = if length == 0 { "too_small" } else { "too_big" };
        let expected = format!("1 to {longest} characters");
        Self::new(
            code,
            path,
            expected,
            format!("{length} characters"),
            message,
        )
    }
}

/// Reason why a service call failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request is well-formed, but some of its values are not acceptable.
    #[error("Validation failed")]
    Invalid(Vec<ValidationIssue>),
    /// The parts of the request contradict each other.
    #[error("{0}")]
    Malformed(String),
    /// The document cannot be read.
    #[error(transparent)]
    Unreadable(UnreadableFile),
    /// No such resource. Carries its kind, capitalized: `Envelope`.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The lifecycle rules refused the transition.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The act on the record is not permitted.
    #[error(transparent)]
    Control(#[from] ControlProblem),
    /// The policy of changes does not permit this change of components.
    #[error(transparent)]
    Change(#[from] ChangeProblem),
    /// The act needs another signed statement of its party.
    #[error(transparent)]
    Statement(#[from] StatementProblem),
    /// The request is well-formed and was refused for the given reason.
    #[error("{0}")]
    Semantic(String),
    /// The component failed admission, for these reasons.
    #[error("The component is not admitted")]
    NotAdmitted(Vec<AdmissionReason>),
    #[error("{0}")]
    Conflict(String),
    /// The operator's configuration does not allow the request.
    #[error("{0}")]
    NotAllowed(&'static str),
    /// A refusal for which no caller needs a variant.
    #[error(transparent)]
    Problem(#[from] Problem),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// Failure of a payment or identity provider.
    #[error("{0}: {1}")]
    OtherProvider(Slot, ProviderError),
    #[error("{0}")]
    NotConfigured(String),
    /// Too many calls are queued for the component, or the call timed out in the queue.
    #[error("Too much work of this kind is waiting; please try again")]
    Busy,
    #[error(transparent)]
    Component(ComponentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The authoritative copy cannot be sealed at the moment.
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("{0}")]
    Internal(String),
}

impl From<ComponentError> for ServiceError {
    fn from(error: ComponentError) -> Self {
        match error.kind {
            // A used-up share of the node is no failure of the component: 503 and not 500.
            CallFailure::Busy => Self::Busy,
            _ => Self::Component(error),
        }
    }
}

impl From<FormError> for ServiceError {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Store(error) => error.into(),
            FormError::Files(error) => error.into(),
            FormError::Component(error) => error.into(),
            FormError::Busy => Self::Busy,
            error => Self::Conflict(error.to_string()),
        }
    }
}

impl From<TransitionError> for ServiceError {
    fn from(error: TransitionError) -> Self {
        match error {
            TransitionError::Refused(refusal) => Self::Refused(refusal),
            TransitionError::Component(error) => Self::Component(error),
        }
    }
}

impl ServiceError {
    /// Refuses one well-formed value that is not acceptable.
    pub fn invalid(
        code: &str,
        path: &[&str],
        expected: impl Into<String>,
        received: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let issue = ValidationIssue::new(code, path, expected, received, message);
        Self::Invalid(vec![issue])
    }

    /// Returns whether a disk is full, on this node or in the built-in provider.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Store(error) => error.is_full(),
            Self::Files(error) => error.is_full(),
            // The signing room runs as a plugin. A full disk under its records arrives as a failed call.
            Self::Provider(error) | Self::OtherProvider(_, error) => matches!(
                error,
                ProviderError::Component(ComponentError {
                    kind: CallFailure::DiskFull,
                    ..
                })
            ),
            _ => false,
        }
    }

    /// Returns whether a dependency was unreachable or overloaded, so that a retry may succeed.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_outage(),
            Self::Files(error) => error.is_unreachable(),
            Self::Provider(error) | Self::OtherProvider(_, error) => {
                matches!(
                    error,
                    ProviderError::Unreachable(_) | ProviderError::RateLimited(_)
                ) || self.is_busy()
            }
            Self::Component(_) => self.is_busy(),
            Self::Busy => true,
            _ => false,
        }
    }

    /// Returns whether the component is still loading, or its organization's share of this
    /// node is in use.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Component(error)
            | Self::Provider(ProviderError::Component(error))
            | Self::OtherProvider(_, ProviderError::Component(error)) => error.is_temporary(),
            _ => false,
        }
    }

    /// Returns the error for one of several callers that waited for the same shared work. A
    /// sole owner gets the original error, others a copy with the same meaning.
    pub fn shared(error: Arc<Self>) -> Self {
        // Sources cannot be cloned, so a copy keeps the facts that decide the HTTP response.
        Arc::try_unwrap(error).unwrap_or_else(|error| match &*error {
            Self::Unreadable(file) => Self::Unreadable(file.clone()),
            Self::Busy => Self::Busy,
            Self::Provider(ProviderError::NotFound) => Self::Provider(ProviderError::NotFound),
            Self::NotFound(what) => Self::NotFound(what),
            Self::Conflict(why) => Self::Conflict(why.clone()),
            Self::Component(error) => Self::Component(error.again()),
            error if error.is_disk_full() => Self::Files(FilesError::no_room()),
            Self::Files(error) if error.is_unreachable() => Self::Files(FilesError::TimedOut),
            Self::Files(FilesError::Shredded) => Self::Files(FilesError::Shredded),
            Self::Store(error) if error.is_unreachable() => {
                Self::Store(sqlx::Error::PoolTimedOut.into())
            }
            other => Self::Internal(other.to_string()),
        })
    }

    /// Writes "the picture" for an upload that is one.
    #[must_use]
    pub fn about_picture(self) -> Self {
        match self {
            Self::Unreadable(file) => Self::Unreadable(UnreadableFile {
                message: "The picture could not be read",
                ..file
            }),
            other => other,
        }
    }

    /// Creates the error for a PDF that cannot be read, with the reader's reason.
    pub fn unreadable(reason: impl Into<String>) -> Self {
        Self::Unreadable(UnreadableFile {
            message: "The PDF could not be read",
            reason: reason.into(),
        })
    }
}

impl From<ReadError> for ServiceError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable(why) | ReadError::OverLimit(why) => Self::unreadable(why),
            ReadError::Encrypted => Self::unreadable(NEEDS_PASSWORD),
        }
    }
}

impl From<DocumentError> for ServiceError {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Unreadable(why)
            | DocumentError::OverLimit(why)
            | DocumentError::Other(why) => Self::unreadable(why),
            DocumentError::Encrypted => Self::unreadable(NEEDS_PASSWORD),
        }
    }
}

/// Reason why a callback was rejected.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The plugin could not verify the callback.
    #[error("the callback could not be verified: {0}")]
    Unverified(String),
    /// Verified, but not understood.
    #[error("the callback is malformed: {0}")]
    Malformed(String),
    #[error(transparent)]
    Service(#[from] ServiceError),
}
