//! Web API: the erasure of a person, which takes two people. An API key could act for either of them, so keys can only ask.

use axum::extract::State;

use crate::api::partner::persons::EraseQuery;
use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, may};
use crate::middleware::extract::{ResourceId, ValidQuery};
use crate::reply::{DataReply, Found};
use holdfast_service::App;
use holdfast_service::persons::erasure::{self, ErasureStep, ErasureView};

/// Nothing is erased until another person approves. Once one did, the same request tries the refused parts
/// again. What a duty keeps is refused by name: a legal hold, a running retention schedule, a signed contract without
/// one, a record that another organization has a part in, an envelope that can still be signed.
pub async fn erase(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
    ValidQuery(query): ValidQuery<EraseQuery>,
) -> Result<Found<ErasureView>, HttpError> {
    let view = if query.is_dry_run() {
        erasure::preview(&app, &user.caller, &id).await?
    } else {
        erasure::request(&app, &user.caller, user.identity.as_ref(), &id).await?
    };
    Ok(DataReply::new(&view))
}

/// Not by the person who asked for it, nor by one of the same chain of invitations, under any policy of the organization. If a
/// key asked, the first approval makes its person the one who asked, and another one erases.
pub async fn approve_erasure(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<ErasureView>, HttpError> {
    decide(&app, &user, &id, ErasureStep::Approve).await
}

/// One person is enough: nothing is erased.
pub async fn withdraw_erasure(
    State(app): State<App>,
    user: WebCaller<may::Hold>,
    ResourceId(id): ResourceId,
) -> Result<Found<ErasureView>, HttpError> {
    decide(&app, &user, &id, ErasureStep::Withdraw).await
}

async fn decide(
    app: &App,
    user: &WebCaller<may::Hold>,
    id: &str,
    step: ErasureStep,
) -> Result<Found<ErasureView>, HttpError> {
    let view = erasure::decide(app, &user.officer(), id, step).await?;
    Ok(DataReply::new(&view))
}
