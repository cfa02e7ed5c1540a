//! Web API: the steps of people towards a destruction, and the consent of the party that controls a record. An API key could
//! act for either of two people, so keys have no part in them.

use axum::extract::State;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidQuery, WholeListQuery};
use crate::reply::{DataReply, Found, PageReply};
use holdfast_service::App;
use holdfast_service::retention::destruction::consents::{self, AskedDestruction};
use holdfast_service::retention::destruction::{self, DestructionAct, DestructionView};

/// Not by the person who requested it, nor by one of the same chain of invitations, under any policy of the organization.
/// Nothing is deleted by it.
pub async fn authorize(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<DestructionView>, HttpError> {
    decide(&app, &user, &id, DestructionAct::Authorize).await
}

/// One person is enough: the records stay.
pub async fn take_back(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<DestructionView>, HttpError> {
    decide(&app, &user, &id, DestructionAct::TakeBack).await
}

/// Not by the person who authorized it, nor by one of the same chain of invitations. The records are unreadable from the
/// beginning of their jobs on, and cannot be had back. A record that something stands against stays whole, with the reason in
/// `refusal`.
pub async fn carry_out(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<DestructionView>, HttpError> {
    decide(&app, &user, &id, DestructionAct::CarryOut).await
}

/// One person is enough: the records stay. Not after the order to carry it out.
pub async fn withdraw(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<DestructionView>, HttpError> {
    decide(&app, &user, &id, DestructionAct::Withdraw).await
}

async fn decide(
    app: &App,
    user: &WebCaller<may::Hold>,
    id: &str,
    act: DestructionAct,
) -> Result<Found<DestructionView>, HttpError> {
    let view = destruction::decide(app, &user.officer(), id, act).await?;
    Ok(DataReply::new(&view))
}

/// Requests of other organizations with records that your organization controls, newest first.
pub async fn asked(
    State(app): State<App>,
    user: WebCaller<may::ReadControl>,
    ValidQuery(query): ValidQuery<WholeListQuery>,
) -> Result<PageReply<AskedDestruction>, HttpError> {
    query.page_of(&consents::list(&app, &user.caller).await?)
}

/// For all records of the request that your organization controls. Without it, they are not destroyed.
pub async fn consent(
    State(app): State<App>,
    user: WebCaller<may::Control>,
    ResourceId(id): ResourceId,
) -> Result<Found<AskedDestruction>, HttpError> {
    let view = consents::answer(&app, &user.caller, &id, true).await?;
    Ok(DataReply::new(&view))
}

/// Not once the destruction of the record has begun.
pub async fn withdraw_consent(
    State(app): State<App>,
    user: WebCaller<may::Control>,
    ResourceId(id): ResourceId,
) -> Result<Found<AskedDestruction>, HttpError> {
    let view = consents::answer(&app, &user.caller, &id, false).await?;
    Ok(DataReply::new(&view))
}
