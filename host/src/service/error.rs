//! Facts about why something was not done. The conversion to HTTP is in
//! `http/error.rs`, and only there.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::components::inspection::Reason;
use crate::components::providers::ProviderError;
use crate::components::rules::TransitionError;
use crate::components::rules::lifecycle::Refusal;
use crate::components::{ComponentError, Failure};
use crate::domain::component::Slot;
use crate::files::FilesError;
use crate::sealing::SealError;
use crate::store::StoreError;

const KBA_REQUIRED: &str =
    "This envelope's signers are asked about their identity; use their signing links";

/// One thing wrong with a request body.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Issue {
    pub code: String,
    pub expected: String,
    pub received: String,
    /// Member names and list indexes from the root of the body.
    pub path: Vec<Value>,
    pub message: String,
    /// The known name that is most like an unknown one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

impl Issue {
    /// An issue with a value that is well-formed and not acceptable.
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
}

/// Why a service did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Well-formed, and breaks these rules.
    #[error("Validation failed")]
    Invalid(Vec<Issue>),
    /// A request whose parts do not go together.
    #[error("{0}")]
    Malformed(String),
    /// A body or file type the endpoint does not take.
    #[error("{0}")]
    UnsupportedType(String),
    /// The document cannot be read.
    #[error("{message}")]
    Unreadable { message: String, reason: String },
    /// The kind of thing, capitalized: `Envelope`.
    #[error("{0} not found")]
    NotFound(&'static str),
    #[error("{0}")]
    NotFoundText(String),
    /// The lifecycle rules say no.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// Well-formed, and refused for one reason.
    #[error("{0}")]
    Semantic(String),
    /// A component, and why it may not be used.
    #[error("The component is not admitted")]
    NotAdmitted(Vec<Reason>),
    #[error("{0}")]
    Conflict(String),
    /// A share of the organization's is used up for a time.
    #[error("{message}")]
    QuotaUsed { message: String, retry_after: u32 },
    /// The operator does not allow it.
    #[error("{0}")]
    NotAllowed(&'static str),
    #[error("{0}")]
    Gone(String),
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A provider of another kind than signing.
    #[error("{0}: {1}")]
    OtherProvider(Slot, ProviderError),
    /// A verified envelope is signed nowhere but at the signing host.
    #[error("{KBA_REQUIRED}")]
    KbaRequired,
    #[error("{0}")]
    NotConfigured(String),
    /// Too many calls wait for the same component already, or waited in vain.
    #[error("Too much work of this kind is waiting; please try again")]
    Busy,
    #[error(transparent)]
    Component(ComponentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The authoritative copy cannot be sealed now.
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("{0}")]
    Internal(String),
}

impl From<ComponentError> for ServiceError {
    fn from(error: ComponentError) -> Self {
        match error.kind {
            Failure::Busy => Self::Busy,
            _ => Self::Component(error),
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
    /// A disk is full, here or at the built-in provider.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Store(error) => error.is_full(),
            Self::Files(error) => error.is_full(),
            Self::Provider(error) | Self::OtherProvider(_, error) => matches!(
                error,
                ProviderError::Component(ComponentError {
                    kind: Failure::DiskFull,
                    ..
                })
            ),
            _ => false,
        }
    }

    /// What it takes could not be reached, and may well be, later.
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

    /// The component that is asked for is not loaded yet, or its organization's share of
    /// this node is in use.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::Component(error)
            | Self::Provider(ProviderError::Component(error))
            | Self::OtherProvider(_, ProviderError::Component(error)) => error.is_temporary(),
            _ => false,
        }
    }

    /// What several callers wait for failed for all of them: the error itself for the
    /// only one, and its facts for each of several.
    pub fn shared(error: Arc<Self>) -> Self {
        Arc::try_unwrap(error).unwrap_or_else(|error| match &*error {
            Self::Unreadable { message, reason } => Self::Unreadable {
                message: message.clone(),
                reason: reason.clone(),
            },
            Self::Busy => Self::Busy,
            Self::Provider(ProviderError::NotFound) => Self::Provider(ProviderError::NotFound),
            Self::NotFound(what) => Self::NotFound(what),
            Self::Conflict(why) => Self::Conflict(why.clone()),
            Self::Component(error) => Self::Component(error.again()),
            error if error.is_disk_full() => Self::Files(FilesError::no_room()),
            Self::Files(error) if error.is_unreachable() => Self::Files(FilesError::TimedOut),
            Self::Store(error) if error.is_unreachable() => {
                Self::Store(sqlx::Error::PoolTimedOut.into())
            }
            other => Self::Internal(other.to_string()),
        })
    }

    /// A document that cannot be read, with the reason its reader gave.
    pub fn unreadable(reason: impl Into<String>) -> Self {
        Self::Unreadable {
            message: "The PDF could not be read".into(),
            reason: reason.into(),
        }
    }
}

impl From<crate::components::rules::placement::ReadError> for ServiceError {
    fn from(error: crate::components::rules::placement::ReadError) -> Self {
        use crate::components::rules::placement::ReadError;
        match error {
            ReadError::Unreadable(why) => Self::unreadable(why),
            ReadError::Encrypted => Self::unreadable("it needs a password"),
            ReadError::OverLimit(why) => Self::unreadable(why),
        }
    }
}

impl From<crate::components::rules::documents::DocumentError> for ServiceError {
    fn from(error: crate::components::rules::documents::DocumentError) -> Self {
        use crate::components::rules::documents::DocumentError;
        match error {
            DocumentError::Unreadable(why)
            | DocumentError::OverLimit(why)
            | DocumentError::Other(why) => Self::unreadable(why),
            DocumentError::Encrypted => Self::unreadable("it needs a password"),
        }
    }
}
