//! The only conversion of service errors to HTTP: status, `error`, `details`, `code`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use holdfast_adapters::files::FilesError;
use holdfast_adapters::sealing::SealError;
use holdfast_components::providers::ProviderError;
use holdfast_components::{CallFailure, ComponentError};
use holdfast_platform::problems::ControlProblem;
use holdfast_platform::{Problem, ProblemKind, ServiceError, ValidationIssue, kind_of};
use holdfast_store::StoreError;

/// `Retry-After` in seconds while a dependency cannot be reached.
const RETRY: u32 = 5;

/// Error code of requests that failed because a disk is full.
pub const DISK_FULL: &str = "disk_full";

/// Error code of a record that was destroyed.
pub const DESTROYED: &str = "destroyed";

/// Error code of a dry run that found nothing to refuse.
pub const DRY_RUN: &str = "dry_run";

/// `Retry-After` in seconds while a disk is full, which takes an operator to resolve.
const RETRY_FULL: u32 = 60;

/// `Retry-After` in seconds after a conflict with a concurrent change.
const RETRY_SOON: u32 = 1;

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
    /// Path of the guide that explains the refusal, for the `Link` header.
    guide: Option<&'static str>,
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
            guide: None,
            cause: None,
        }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
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

    /// Adds a link to the guide that explains the refusal (RFC 8288), unless the service failed.
    pub fn explained_at(mut self, guide: &'static str) -> Self {
        self.guide = self.status.is_client_error().then_some(guide);
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn details(&self) -> Option<&Value> {
        self.details.as_deref()
    }

    /// Returns path and message of each issue.
    pub fn issues(&self) -> Vec<(Vec<String>, String)> {
        let issues = self.details.as_deref().and_then(Value::as_array);
        // Other details, such as findings of rules, are no issues of members: the message has them.
        let issues = issues.into_iter().flatten().filter_map(|issue| {
            let message = issue["message"].as_str()?;
            let steps = issue["path"].as_array().into_iter().flatten();
            let steps = steps.map(|step| match step {
                Value::String(name) => name.clone(),
                other => other.to_string(),
            });
            Some((steps.collect(), message.to_owned()))
        });

        issues.collect()
    }

    /// Begins the message of each issue with its line, found by the issue's path.
    pub fn with_lines(mut self, line_of: impl Fn(&[String]) -> Option<usize>) -> Self {
        let lines: Vec<Option<usize>> = self
            .issues()
            .iter()
            .map(|(path, _)| line_of(path))
            .collect();
        let issues = self.details.as_deref_mut().and_then(Value::as_array_mut);
        let issues = issues.into_iter().flatten();
        let issues = issues.filter(|issue| issue["message"].is_string());
        for (issue, line) in issues.zip(lines) {
            if let (Some(line), Some(message)) = (line, issue["message"].as_str()) {
                issue["message"] = format!("line {line}: {message}").into();
            }
        }

        self
    }

    /// Returns the message, and that of each issue.
    fn reasons(&self) -> Vec<String> {
        let issues = self.issues().into_iter();
        let issues = issues.map(|(path, message)| format!("{}: {message}", path.join(".")));
        std::iter::once(self.message.clone())
            .chain(issues)
            .collect()
    }

    /// `{ error, code?, details? }`.
    pub fn body(&self) -> Value {
        let mut body = json!({ "error": self.message });
        if let Some(code) = self.code {
            body["code"] = code.into();
        }
        if let Some(details) = &self.details {
            body["details"] = (**details).clone();
        } else if self.status == StatusCode::UNPROCESSABLE_ENTITY {
            // Programs read the details of every 422, also of one that is about the request as a whole.
            body["details"] = json!([self.whole()]);
        }

        body
    }

    /// Returns the issue of a request that is refused as a whole.
    fn whole(&self) -> ValidationIssue {
        let expected = "a request that can be carried out";
        let code = self.code.unwrap_or("refused");
        ValidationIssue::new(code, &[], expected, "this request", &self.message)
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

        if let Some(guide) = self.guide {
            let link = format!("<{guide}>; rel=\"describedby\"; type=\"text/html\"");
            if let Ok(link) = HeaderValue::from_str(&link) {
                response.headers_mut().insert(header::LINK, link);
            }
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

impl From<Problem> for HttpError {
    fn from(problem: Problem) -> Self {
        let (status, retry_after) = match problem.kind {
            ProblemKind::Request => (StatusCode::UNPROCESSABLE_ENTITY, None),
            ProblemKind::State => (StatusCode::CONFLICT, None),
            // The first request will end soon, and the repeat then gets its answer.
            ProblemKind::Running => (StatusCode::CONFLICT, Some(RETRY_SOON)),
            ProblemKind::Forbidden => (StatusCode::FORBIDDEN, None),
            ProblemKind::NotFound => (StatusCode::NOT_FOUND, None),
            ProblemKind::Gone => (StatusCode::GONE, None),
            ProblemKind::UnsupportedType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, None),
            ProblemKind::Quota(seconds) => (StatusCode::TOO_MANY_REQUESTS, Some(seconds)),
        };

        Self {
            details: problem.details,
            code: problem.code,
            retry_after,
            ..Self::new(status, problem.message)
        }
    }
}

impl From<ServiceError> for HttpError {
    fn from(error: ServiceError) -> Self {
        let text = error.to_string();
        // Texts of dependencies can quote settings or persons, so they go to the log and not to the caller.
        let failed = |status, message: &str| Self::new(status, message).because(&*text);
        let unavailable =
            |message| failed(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(RETRY);

        // First, because a full disk hides in errors of the database and of files, which have answers of
        // their own.
        if error.is_disk_full() {
            return unavailable("There is no room on the disk right now; nothing was changed")
                .retry_after(RETRY_FULL)
                .with_code(DISK_FULL);
        }
        // Before the arms of providers: a component that is still loading is no bad gateway.
        if error.is_busy() {
            return unavailable("This organization's component cannot answer right now");
        }

        match error {
            ServiceError::Invalid(issues) => Self::unprocessable(text).with_details(json!(issues)),
            ServiceError::NotAdmitted(reasons) => {
                Self::unprocessable(text).with_details(json!(reasons))
            }
            ServiceError::Semantic(_) => Self::unprocessable(text),
            ServiceError::Malformed(_) => Self::bad_request(text),
            ServiceError::NotFound(_) => Self::new(StatusCode::NOT_FOUND, text),
            ServiceError::Conflict(_) => Self::new(StatusCode::CONFLICT, text),
            ServiceError::NotAllowed(_) => Self::new(StatusCode::FORBIDDEN, text),
            ServiceError::Unreadable(file) => Problem::from(&file).into(),
            ServiceError::Refused(refusal) => Problem::from(&refusal).into(),
            // One that arrives here was not reported.
            ServiceError::Control(ControlProblem::DoublePledge(_)) => Self::internal(text),
            ServiceError::Control(problem) => Problem::from(&problem).into(),
            ServiceError::Change(problem) => Problem::from(&problem).into(),
            ServiceError::Statement(problem) => Problem::from(&problem).into(),
            ServiceError::Problem(problem) => problem.into(),
            ServiceError::Provider(ProviderError::NotConfigured(_)) => failed(
                StatusCode::SERVICE_UNAVAILABLE,
                "Provider is not configured",
            ),
            ServiceError::Provider(_) => {
                failed(StatusCode::BAD_GATEWAY, "Signing provider request failed")
            }
            ServiceError::OtherProvider(slot, ProviderError::NotConfigured(_)) => {
                let message = format!("{} provider is not configured", kind_of(slot));
                failed(StatusCode::SERVICE_UNAVAILABLE, &message)
            }
            ServiceError::OtherProvider(slot, _) => {
                let message = format!("{} provider request failed", kind_of(slot));
                failed(StatusCode::BAD_GATEWAY, &message)
            }
            ServiceError::Busy => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, text).retry_after(RETRY)
            }
            ServiceError::NotConfigured(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, text),
            // The document exhausted the reader's limits, so the caller has to change it. Other components
            // are not the caller's fault.
            ServiceError::Component(error) if error.by_document => {
                let reason = "it takes more time or memory than a document may";
                failed(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "The PDF could not be read",
                )
                .with_details(json!({ "reason": reason }))
            }
            ServiceError::Component(ComponentError {
                kind: CallFailure::Timeout(_) | CallFailure::Memory(_),
                ..
            }) => {
                let message = "The rules or another component of this call need more time or memory than a call has; \
                               whoever activated the component has to simplify it";
                unavailable(message)
            }
            // Only the caller of the rehearsal sees this answer.
            ServiceError::Store(StoreError::Rehearsed) => {
                Self::new(StatusCode::ACCEPTED, text).with_code(DRY_RUN)
            }
            ServiceError::Store(StoreError::Destroyed) => {
                Self::new(StatusCode::GONE, text).with_code(DESTROYED)
            }
            ServiceError::Store(StoreError::Conflict) => Self::new(
                StatusCode::CONFLICT,
                "Changed by another request in the meantime",
            )
            .retry_after(RETRY_SOON),
            // A database that restarts is back soon, and nothing was changed.
            ServiceError::Store(error) if error.is_unreachable() => {
                unavailable("The database cannot be reached right now")
            }
            // A deadlock or a serialization failure: the same request succeeds a moment later.
            ServiceError::Store(error) if error.is_rolled_back() => {
                unavailable("The change met another; please try again").retry_after(RETRY_SOON)
            }
            ServiceError::Files(FilesError::Shredded) => {
                Self::new(StatusCode::GONE, "The record was destroyed")
            }
            ServiceError::Files(error) if error.is_unreachable() => {
                unavailable("The document store cannot be reached right now")
            }
            ServiceError::Seal(SealError::ClockBehind { .. }) => {
                unavailable("Nothing is sealed until the clock of the service is right again")
            }
            // Listed one by one, so a new kind of error does not become a 500 unnoticed.
            ServiceError::Component(_)
            | ServiceError::Store(_)
            | ServiceError::Files(_)
            | ServiceError::Seal(_)
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

    #[test]
    fn a_destroyed_record_is_gone() {
        let error = HttpError::from(ServiceError::from(FilesError::Shredded));
        assert_eq!(error.status(), StatusCode::GONE);
    }

    #[test]
    fn every_422_has_details() {
        let about_all = HttpError::from(ServiceError::Semantic("Endpoint limit reached".into()));
        let expected = json!({
            "error": "Endpoint limit reached",
            "details": [{
                "code": "refused", "expected": "a request that can be carried out",
                "received": "this request", "path": [], "message": "Endpoint limit reached",
            }],
        });
        assert_eq!(about_all.body(), expected);

        let coded = Problem::new(ProblemKind::Request, "word_template", "No");
        assert_eq!(
            HttpError::from(coded).body()["details"][0]["code"],
            "word_template"
        );

        // Other errors have details only where there is more to say.
        let conflict = HttpError::from(ServiceError::Conflict("Not now".into()));
        assert_eq!(conflict.body(), json!({ "error": "Not now" }));
    }

    /// A document that exhausts its reader's limits is refused with 422, and rules that exhaust theirs are unavailable.
    /// Any other failure of a component is an internal error.
    #[test]
    fn resource_exhaustion_is_attributed_to_the_document() {
        let late = || CallFailure::Timeout("took 21000 ms".into());
        assert_eq!(status(late(), true), 422);
        assert_eq!(status(CallFailure::Trap("stack".into()), true), 422);
        assert_eq!(status(CallFailure::Memory("512 MiB".into()), true), 422);
        assert_eq!(status(CallFailure::Link("missing".into()), true), 500);
        assert_eq!(status(CallFailure::Busy, true), 503);
        assert_eq!(status(CallFailure::Absent("compiling".into()), false), 503);
        assert_eq!(status(late(), false), 503);
        assert_eq!(status(CallFailure::Memory("2 MiB".into()), false), 503);
        assert_eq!(status(CallFailure::Trap("stack".into()), false), 500);
    }
}
