//! Web API: the end of legal holds, which takes two people. An API key could act for either of them, so keys have no part
//! in it.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidJson};
use crate::reply::{DataReply, Found};
use holdfast_service::App;
use holdfast_service::retention::holds::{self, HoldView, LiftRequest, LiftStep};

/// The hold stays in force until another person approves the lift.
pub async fn request_lift(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
    ValidJson(form): ValidJson<LiftRequest>,
) -> Result<Found<HoldView>, HttpError> {
    decide(&app, &user, &id, LiftStep::Request(form.reason)).await
}

/// Not by the person who requested it, nor by one of the same chain of invitations, under any policy of the
/// organization.
pub async fn approve_lift(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<HoldView>, HttpError> {
    decide(&app, &user, &id, LiftStep::Approve).await
}

/// One person is enough: the hold stays in force.
pub async fn withdraw_lift(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<HoldView>, HttpError> {
    decide(&app, &user, &id, LiftStep::Withdraw).await
}

async fn decide(
    app: &App,
    user: &WebCaller<may::Hold>,
    id: &str,
    step: LiftStep,
) -> Result<Found<HoldView>, HttpError> {
    let hold = holds::decide(app, &user.officer(), id, step).await?;
    Ok(DataReply::new(&hold))
}
