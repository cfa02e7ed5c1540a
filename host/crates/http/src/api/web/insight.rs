//! Usage, the request log, and the installation as its operator sees it.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{PageWindow, ResourceId, ValidJson, ValidQuery, WholeListQuery};
use crate::reply::{CursorReply, DataReply, Found, PageReply};
use holdfast_domain::id::{EnvelopeId, RequestId};
use holdfast_platform::ServiceError;
use holdfast_platform::request_log::{self, LoggedRequest, RequestSearch};
use holdfast_service::App;
use holdfast_service::control::disputes::{
    self, OperatorDisputeView, SuspensionForm, SuspensionStep,
};
use holdfast_service::doctor;
use holdfast_service::installation::{self, InstallationView, UsageView};

#[derive(Deserialize, JsonSchema)]
pub struct UsageQuery {
    /// Calendar month in UTC, such as `2026-11`; the present one when absent.
    month: Option<String>,
}

pub async fn usage(
    State(app): State<App>,
    user: WebCaller<may::Audit>,
    ValidQuery(query): ValidQuery<UsageQuery>,
) -> Result<Found<UsageView>, HttpError> {
    let usage = installation::usage(&app, &user.caller.org, query.month.as_deref()).await?;
    Ok(DataReply::new(&usage))
}

#[derive(Deserialize, JsonSchema)]
pub struct RequestLogQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Id of an API key, a token or a session.
    credential: Option<String>,
    /// Begin of the path, such as `/api/v2/partner/envelopes`.
    path: Option<String>,
    method: Option<String>,
    /// A status such as `404`, or a class such as `4xx`.
    status: Option<String>,
    envelope_id: Option<EnvelopeId>,
    /// Last id of the page before.
    starting_after: Option<RequestId>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

/// Parses a status or a class of them.
pub fn statuses(text: &str) -> Option<(i64, i64)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: i64 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }

    let status = text
        .parse()
        .ok()
        .filter(|status| (100..=599).contains(status))?;
    Some((status, status))
}

/// Returns the requests of the last 30 days, newest first. Bodies are kept without values of documents, answers of
/// signers and secrets.
pub async fn request_log(
    State(app): State<App>,
    user: WebCaller<may::Integrate>,
    ValidQuery(query): ValidQuery<RequestLogQuery>,
) -> Result<CursorReply<LoggedRequest>, HttpError> {
    let behind = query.starting_after.is_some();
    let window = PageWindow::checked((query.page, query.limit), behind, 20, 100)?;
    let wrong =
        || HttpError::bad_request("status must be a status such as 404, or a class such as 4xx");
    let statuses = match &query.status {
        Some(text) => Some(statuses(text).ok_or_else(wrong)?),
        None => None,
    };
    let search = RequestSearch {
        id: None,
        credential: query.credential,
        path: query.path,
        method: query.method,
        statuses,
        envelope: query.envelope_id,
        after: query.starting_after,
    };

    let found = request_log::list(&app, &user.caller.org, &search, window.read()).await?;
    Ok(window.reply(found))
}

pub async fn logged_request(
    State(app): State<App>,
    user: WebCaller<may::Integrate>,
    ResourceId(id): ResourceId,
) -> Result<Found<LoggedRequest>, HttpError> {
    let request = request_log::get(&app, &user.caller.org, &id).await?;
    Ok(DataReply::new(&request))
}

/// A check of something that the service depends on.
#[derive(Serialize, JsonSchema)]
pub struct DependencyCheckView {
    name: &'static str,
    ok: bool,
    detail: String,
}

/// The installation, with the checks of `holdfast doctor`.
#[derive(Serialize, JsonSchema)]
pub struct CheckedInstallation {
    #[serde(flatten)]
    installation: InstallationView,
    checks: Vec<DependencyCheckView>,
}

/// Returns the state of the installation, to owners and admins of the organization that operates it
/// (`console.operator_org`). For others, it does not exist.
pub async fn installation(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
) -> Result<Found<CheckedInstallation>, HttpError> {
    // 404 for others: the address of the installation's page must not tell who operates it.
    operates(&app, &user)?;
    let checks = doctor::checks(&app).await.into_iter();
    let view = CheckedInstallation {
        installation: installation::view(&app).await?,
        checks: checks
            .map(|check| DependencyCheckView {
                name: check.name,
                ok: check.ok,
                detail: check.detail,
            })
            .collect(),
    };

    Ok(DataReply::new(&view))
}

/// Refuses users of organizations that do not operate the installation: for them, its pages do not exist.
fn operates(app: &App, user: &WebCaller<may::Administer>) -> Result<(), ServiceError> {
    if installation::is_operator(app, &user.caller.org, user.role) {
        Ok(())
    } else {
        Err(ServiceError::NotFound("Page"))
    }
}

/// Those in which a side has stated its case, or a suspension was requested; newest first, at most 200.
pub async fn disputes(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<OperatorDisputeView>, HttpError> {
    operates(&app, &user)?;
    query.page_of(&disputes::list(&app).await?)
}

/// It takes effect when another operator approves it. Both sides see the reason.
pub async fn request_suspension(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
    ValidJson(form): ValidJson<SuspensionForm>,
) -> Result<Found<OperatorDisputeView>, HttpError> {
    decide(&app, &user, &id, SuspensionStep::Request(form.reason)).await
}

/// The claim then holds up no other record. Not by the operator who requested it, nor by a user of their own invitation.
pub async fn approve_suspension(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
) -> Result<Found<OperatorDisputeView>, HttpError> {
    decide(&app, &user, &id, SuspensionStep::Approve).await
}

/// One operator is enough: the claim counts again.
pub async fn lift_suspension(
    State(app): State<App>,
    user: WebCaller<may::Administer>,
    ResourceId(id): ResourceId,
) -> Result<Found<OperatorDisputeView>, HttpError> {
    decide(&app, &user, &id, SuspensionStep::Lift).await
}

async fn decide(
    app: &App,
    user: &WebCaller<may::Administer>,
    id: &str,
    step: SuspensionStep,
) -> Result<Found<OperatorDisputeView>, HttpError> {
    operates(app, user)?;
    let decided = disputes::decide(app, &user.officer(), id, step).await?;

    Ok(DataReply::new(&decided))
}
