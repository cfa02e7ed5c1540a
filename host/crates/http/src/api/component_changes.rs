//! Change requests of components, and the policy of changes, for web-app users with the role `admin` or
//! `compliance`. Providers and the policy are an admin's; waivers are a sender's, too.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::components::{ChangingOfficer, ComponentOfficer, RequestingOfficer};
use crate::error::HttpError;
use crate::middleware::caller::may;
use crate::middleware::extract::{PageWindow, ResourceId, ValidJson, ValidQuery};
use crate::reply::{Created, CursorReply, DataReply, Found};
use holdfast_domain::component_change::ChangePolicy;
use holdfast_domain::id::ChangeId;
use holdfast_domain::organization::Permission;
use holdfast_platform::components::changes::{self, ChangeView, NewChange, NewReview};
use holdfast_service::App;

/// Refuses an officer who may not make this change. Reviewing it takes the policy's roles only.
async fn may_make<P>(app: &App, officer: &ComponentOfficer<P>, id: &str) -> Result<(), HttpError> {
    // The needed permission is known from the request only, so it is read before the role is checked.
    let change = changes::find(app, &officer.caller.org, id).await?;
    officer.require(change.content.change.permission())
}

#[derive(Deserialize, JsonSchema)]
pub struct ChangesQuery {
    /// Page number, from 1; not together with `starting_after`. Pages have numbers up to the 1000th item.
    #[schemars(range(min = 1))]
    page: Option<i64>,
    /// Last id of the page before.
    starting_after: Option<ChangeId>,
    /// 1 to 100; 20 when absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
}

pub async fn list(
    State(app): State<App>,
    officer: ComponentOfficer,
    ValidQuery(query): ValidQuery<ChangesQuery>,
) -> Result<CursorReply<ChangeView>, HttpError> {
    let after = query.starting_after.as_ref();
    let window = PageWindow::checked((query.page, query.limit), after.is_some(), 20, 100)?;
    let found = changes::list(&app, &officer.caller.org, after, window.read()).await?;
    Ok(window.reply(found))
}

/// Requests a change. It has no effect until it is applied. It takes the permission of the act that it replaces: a sender
/// requests a waiver, and the role `compliance` those about rules.
pub async fn create(
    State(app): State<App>,
    officer: RequestingOfficer,
    ValidJson(new): ValidJson<NewChange>,
) -> Result<Created<ChangeView>, HttpError> {
    officer.require(new.change.permission())?;
    let change = changes::create(&app, &app.management, &officer.into(), new).await?;
    Ok(DataReply::new(&change))
}

/// Senders read requests about waivers.
pub async fn read(
    State(app): State<App>,
    officer: ComponentOfficer<may::ReadEnvelopes>,
    ResourceId(id): ResourceId,
) -> Result<Found<ChangeView>, HttpError> {
    let change = changes::find(&app, &officer.caller.org, &id).await?;
    if !officer.may(Permission::ReadEvidence) {
        officer.require(change.content.change.permission())?;
    }
    Ok(DataReply::new(&changes::view(&app, change).await?))
}

/// Reviews a change request. Neither its requester nor the uploader of its component approves it; one
/// refusal closes it. A later review by the same person replaces the one before.
pub async fn review(
    State(app): State<App>,
    officer: ChangingOfficer,
    ResourceId(id): ResourceId,
    ValidJson(new): ValidJson<NewReview>,
) -> Result<Found<ChangeView>, HttpError> {
    let change = changes::review(&app, &officer.into(), &id, new).await?;
    Ok(DataReply::new(&change))
}

/// Makes an approved change. If another change came first, all approvals are void and the request is
/// closed.
pub async fn apply(
    State(app): State<App>,
    officer: RequestingOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<ChangeView>, HttpError> {
    may_make(&app, &officer, &id).await?;
    let applied = changes::apply(&app, &app.management, &officer.into(), &id).await?;
    Ok(DataReply::new(&applied))
}

pub async fn withdraw(
    State(app): State<App>,
    officer: RequestingOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<ChangeView>, HttpError> {
    let change = changes::withdraw(&app, &officer.into(), &id).await?;
    Ok(DataReply::new(&change))
}

/// Compares the candidate on past records again. Approvals that were given before are void.
pub async fn compare(
    State(app): State<App>,
    officer: ChangingOfficer,
    ResourceId(id): ResourceId,
) -> Result<Found<ChangeView>, HttpError> {
    may_make(&app, &officer, &id).await?;
    let compared = changes::compare(&app, &app.management, &officer.into(), &id).await?;
    Ok(DataReply::new(&compared))
}

pub async fn policy(
    State(app): State<App>,
    officer: ComponentOfficer,
) -> Result<Found<ChangePolicy>, HttpError> {
    let policy = changes::policy(&app, &officer.caller.org).await?;
    Ok(DataReply::new(&policy))
}

/// Sets the policy of changes. Where it requires approvals already, a change request changes it.
pub async fn set_policy(
    State(app): State<App>,
    officer: ComponentOfficer<may::ChangeProviders>,
    ValidJson(policy): ValidJson<ChangePolicy>,
) -> Result<Found<ChangePolicy>, HttpError> {
    let policy = changes::set_policy(&app, &officer.into(), policy).await?;
    Ok(DataReply::new(&policy))
}
