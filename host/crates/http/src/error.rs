//! The only conversion of service errors to HTTP: status, `error`, `details`, `code`.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use holdfast_adapters::sealing::SealError;
use holdfast_components::providers::ProviderError;
use holdfast_components::rules::control;
use holdfast_components::rules::lifecycle::RefusalReason;
use holdfast_components::{CallFailure, ComponentError};
use holdfast_platform::problems::{ChangeProblem, StatementProblem};
use holdfast_platform::{ServiceError, kind_of};
use holdfast_service::control::refusal_code;
use holdfast_store::StoreError;

/// `Retry-After` in seconds while a dependency cannot be reached.
const RETRY: u32 = 5;

/// Error code of requests that failed because a disk is full.
pub const DISK_FULL: &str = "disk_full";

/// Error code of a dry run that found nothing to refuse.
pub const DRY_RUN: &str = "dry_run";

/// `Retry-After` in seconds while a disk is full, which takes an operator to resolve.
const RETRY_FULL: u32 = 60;

/// `Retry-After` in seconds after a conflict with a concurrent change.
const RETRY_SOON: u32 = 1;

/// How the documents component begins the reason of a refusal for which the contract has a code.
const READS_DIFFERENTLY: &str = "readers do not agree about it";

/// Error answer in the shape of the API contract.
#[derive(Debug)]
pub struct HttpError {
    status: StatusCode,
    message: String,
    details: Option<Box<Value>>,
    /// Machine-readable code beside the message.
    code: Option<&'static str>,
    /// Seconds for the `Retry-After` header.
    retry_after: Option<u32>,
    /// Cause for the log; never part of the answer.
    cause: Option<String>,
}

/// Error code of a response, for metrics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub &'static str);

/// Cause of a failed request, for its log line.
#[derive(Clone)]
pub struct FailureCause(pub String);

impl HttpError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            details: None,
            code: None,
            retry_after: None,
            cause: None,
        }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn internal(cause: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error").because(cause)
    }

    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Returns the message, and that of each issue.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = vec![self.message.clone()];
        let issues = self.details.as_deref().and_then(Value::as_array);
        for issue in issues.into_iter().flatten() {
            let steps = issue["path"].as_array().into_iter().flatten();
            let steps = steps.map(|step| match step {
                Value::String(name) => name.clone(),
                other => other.to_string(),
            });
            let path: Vec<String> = steps.collect();
            let message = issue["message"].as_str().unwrap_or_default();
            reasons.push(format!("{}: {message}", path.join(".")));
        }

        reasons
    }

    /// `{ error, code?, details? }`.
    pub fn body(&self) -> Value {
        let mut body = json!({ "error": self.message });
        if let Some(code) = self.code {
            body["code"] = code.into();
        }
        if let Some(details) = &self.details {
            body["details"] = (**details).clone();
        }
        body
    }

    /// Returns a 503 with `Retry-After`.
    fn unavailable(message: &str, retry_after: u32) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(retry_after)
    }

    fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

/// Texts of an error, for pages that show them.
#[derive(Clone)]
pub struct ErrorReasons(pub Vec<String>);

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        response
            .extensions_mut()
            .insert(ErrorReasons(self.reasons()));

        // Layers outside see the response only, and read code, cause and texts from its extensions.
        if let Some(seconds) = self.retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }

        if let Some(code) = self.code {
            response.extensions_mut().insert(ErrorCode(code));
        }

        if let Some(cause) = self.cause {
            response.extensions_mut().insert(FailureCause(cause));
        }

        response
    }
}

impl From<ServiceError> for HttpError {
    fn from(error: ServiceError) -> Self {
        // Taken before the match moves parts of the error out.
        let (text, busy) = (error.to_string(), error.is_busy());
        // First, because a full disk hides in errors of the database and of files, which have answers of
        // their own.
        if error.is_disk_full() {
            let message = "There is no room on the disk right now; nothing was changed";
            return Self::unavailable(message, RETRY_FULL)
                .with_code(DISK_FULL)
                .because(text);
        }

        match error {
            ServiceError::Invalid(issues) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, text).with_details(json!(issues))
            }
            ServiceError::Malformed(_) => Self::bad_request(text),
            ServiceError::UnsupportedType(_) => Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text),
            ServiceError::Unreadable { message, reason } => {
                // The component reports reasons as text, and the contract has a code for this one only.
                let differs = reason.starts_with(READS_DIFFERENTLY);
                let answer = Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
                    .with_details(json!({ "reason": reason }));
                if differs {
                    answer.with_code("document_reads_differently")
                } else {
                    answer
                }
            }
            ServiceError::NotFound(_) | ServiceError::NotFoundText(_) => {
                Self::new(StatusCode::NOT_FOUND, text)
            }
            // 422 where the request itself makes no sense, 409 where it can succeed in another state.
            ServiceError::Refused(refusal) => {
                let status = match refusal.reason {
                    RefusalReason::Semantic => StatusCode::UNPROCESSABLE_ENTITY,
                    RefusalReason::Status
                    | RefusalReason::WrongKind
                    | RefusalReason::Missing
                    | RefusalReason::Unpaid => StatusCode::CONFLICT,
                };
                Self::new(status, refusal.message)
            }
            ServiceError::ControlRefused(refusal) => {
                let status = match refusal.reason {
                    // No change of the record's state could make this act possible.
                    control::RefusalReason::ToOneself => StatusCode::UNPROCESSABLE_ENTITY,
                    _ => StatusCode::CONFLICT,
                };
                let source = Some(&refusal.source).filter(|source| !source.is_empty());

                let error = Self::new(status, &refusal.message).with_code(refusal_code(&refusal));
                match source {
                    Some(source) => error.with_details(json!({ "source": source })),
                    None => error,
                }
            }
            // No name of the other party: a refusal must not tell who financed the collateral. The reference
            // serves a dispute.
            ServiceError::AlreadyControlled(conflict) => Self::new(StatusCode::CONFLICT, text)
                .with_code("already_controlled")
                .with_details(json!({ "since": conflict.since, "reference": conflict.reference })),
            ServiceError::ConsentRequired(release) => Self::new(StatusCode::CONFLICT, text)
                .with_code("control_consent_required")
                .with_details(json!({ "release_id": release })),
            ServiceError::CopyMarked(_) => {
                Self::new(StatusCode::CONFLICT, text).with_code("copy_marked")
            }
            ServiceError::CopyRemoved => {
                Self::new(StatusCode::CONFLICT, text).with_code("copy_removed")
            }
            ServiceError::Change(problem) => {
                let status = match problem {
                    // The person lacks a role. All other problems are states of the request.
                    ChangeProblem::RoleReviews => StatusCode::FORBIDDEN,
                    _ => StatusCode::CONFLICT,
                };
                let error = Self::new(status, text).with_code(problem.code());
                match problem {
                    ChangeProblem::ApprovalsMissing { given, required } => {
                        error.with_details(json!({ "given": given, "required": required }))
                    }
                    ChangeProblem::Closed(state) => error.with_details(json!({ "state": state })),
                    _ => error,
                }
            }
            ServiceError::ConvertedToPaper => {
                Self::new(StatusCode::CONFLICT, text).with_code("converted_to_paper")
            }
            ServiceError::ReleasedToAnother => {
                Self::new(StatusCode::CONFLICT, text).with_code("released_to_another")
            }
            ServiceError::Pledged => {
                Self::new(StatusCode::CONFLICT, text).with_code("record_pledged")
            }
            ServiceError::Statement(problem) => {
                let status = if problem.is_semantic() {
                    StatusCode::UNPROCESSABLE_ENTITY
                } else {
                    StatusCode::CONFLICT
                };
                let error = Self::new(status, text).with_code(problem.code());
                match problem {
                    StatementProblem::Missing { draft, member } => {
                        error.with_details(json!({ "member": member, "statement": draft }))
                    }
                    _ => error,
                }
            }
            ServiceError::Semantic(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, text),
            ServiceError::NotAdmitted(reasons) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, text).with_details(json!(reasons))
            }
            ServiceError::Conflict(_) => Self::new(StatusCode::CONFLICT, text),
            // The first request with the key will end soon, and the repeat then gets its answer.
            ServiceError::StillRunning => {
                Self::new(StatusCode::CONFLICT, text).retry_after(RETRY_SOON)
            }
            ServiceError::QuotaUsed { retry_after, .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, text).retry_after(retry_after)
            }
            ServiceError::NotAllowed(_) => Self::new(StatusCode::FORBIDDEN, text),
            ServiceError::OnlyTest => {
                Self::new(StatusCode::FORBIDDEN, text).with_code("test_key_required")
            }
            ServiceError::NotInTest => Self::new(StatusCode::CONFLICT, text).with_code("test_data"),
            ServiceError::Gone(_) => Self::new(StatusCode::GONE, text),
            // Before the arms of providers: a component that is still loading is no bad gateway.
            _ if busy => {
                let message = "This organization's component cannot answer right now";
                Self::unavailable(message, RETRY).because(text)
            }
            // The provider's text can quote settings or persons, so it goes to the log and not to the caller.
            ServiceError::Provider(ProviderError::NotConfigured(_)) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Provider is not configured",
            )
            .because(text),
            ServiceError::Provider(_) => {
                Self::new(StatusCode::BAD_GATEWAY, "Signing provider request failed").because(text)
            }
            ServiceError::OtherProvider(slot, error) => {
                let kind = kind_of(slot);
                let configured = !matches!(error, ProviderError::NotConfigured(_));
                let (status, what) = if configured {
                    (StatusCode::BAD_GATEWAY, "request failed")
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, "is not configured")
                };
                Self::new(status, format!("{kind} provider {what}")).because(text)
            }
            ServiceError::KbaRequired => {
                Self::new(StatusCode::CONFLICT, text).with_code("kba_required")
            }
            ServiceError::Busy => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, text).retry_after(RETRY)
            }
            ServiceError::NotConfigured(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, text),
            // The document exhausted the reader's limits, so the caller has to change it. Other components
            // are not the caller's fault.
            ServiceError::Component(error) if error.by_document => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "The PDF could not be read",
            )
            .with_details(json!({ "reason": "it takes more time or memory than a document may" }))
            .because(text),
            ServiceError::Component(ComponentError {
                kind: CallFailure::Timeout | CallFailure::Memory(_),
                ..
            }) => {
                let message = "The rules or another component of this call need more time or memory than a call has; \
                               whoever activated the component has to simplify it";
                Self::unavailable(message, RETRY).because(text)
            }
            // Only the caller of the rehearsal sees this answer.
            ServiceError::Store(StoreError::Rehearsed) => {
                Self::new(StatusCode::ACCEPTED, text).with_code(DRY_RUN)
            }
            ServiceError::Store(StoreError::Conflict) => Self::new(
                StatusCode::CONFLICT,
                "Changed by another request in the meantime",
            )
            .retry_after(RETRY_SOON),
            // A database that restarts is back soon, and nothing was changed.
            ServiceError::Store(error) if error.is_unreachable() => {
                Self::unavailable("The database cannot be reached right now", RETRY).because(text)
            }
            // A deadlock or a serialization failure: the same request succeeds a moment later.
            ServiceError::Store(error) if error.is_rolled_back() => {
                let message = "The change met another; please try again";
                Self::unavailable(message, RETRY_SOON).because(text)
            }
            ServiceError::Files(error) if error.is_unreachable() => {
                Self::unavailable("The document store cannot be reached right now", RETRY)
                    .because(text)
            }
            ServiceError::Seal(SealError::ClockBehind { .. }) => {
                let message = "Nothing is sealed until the clock of the service is right again";
                Self::unavailable(message, RETRY).because(text)
            }
            // Listed one by one, so a new kind of error does not become a 500 unnoticed.
            ServiceError::Component(_)
            | ServiceError::Store(_)
            | ServiceError::Files(_)
            | ServiceError::Seal(_)
            | ServiceError::DoublePledge(_)
            | ServiceError::Internal(_) => Self::internal(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(kind: CallFailure, on_document: bool) -> u16 {
        let error = ComponentError {
            component: "rules 1.0.0".into(),
            kind,
            by_document: false,
        };
        let error = if on_document {
            error.on_document()
        } else {
            error
        };

        HttpError::from(ServiceError::from(error)).status().as_u16()
    }

    /// A document that exhausts its reader's limits is refused with 422, and rules that exhaust theirs are unavailable.
    /// Any other failure of a component is an internal error.
    #[test]
    fn resource_exhaustion_is_attributed_to_the_document() {
        assert_eq!(status(CallFailure::Timeout, true), 422);
        assert_eq!(status(CallFailure::Trap("stack".into()), true), 422);
        assert_eq!(status(CallFailure::Memory("512 MiB".into()), true), 422);
        assert_eq!(status(CallFailure::Link("missing".into()), true), 500);
        assert_eq!(status(CallFailure::Busy, true), 503);
        assert_eq!(status(CallFailure::Absent("compiling".into()), false), 503);
        assert_eq!(status(CallFailure::Timeout, false), 503);
        assert_eq!(status(CallFailure::Memory("2 MiB".into()), false), 503);
        assert_eq!(status(CallFailure::Trap("stack".into()), false), 500);
    }
}
