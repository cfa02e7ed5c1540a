//! Payments: requests of a payer's browser with an embed token, and the same for the back office.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::error::HttpError;
use crate::middleware::caller::{WebCaller, bearer_token, may};
use crate::middleware::extract::ResourceId;
use crate::middleware::unknown::check_query;
use crate::openapi;
use crate::reply::{DataReply, Found};
use holdfast_platform::payments::{self, PaymentIntent, PaymentStatusView};
use holdfast_service::App;
use holdfast_service::signing::embed::{self, OpenedEmbedToken};

/// Holder of a valid embed token.
pub struct TokenHolder(OpenedEmbedToken);

impl FromRequestParts<App> for TokenHolder {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let token = bearer_token(parts)?;
        // Opening also checks that the key that issued the token is still in force.
        let opened = embed::open_any(app, &app.access, token).await?;
        let invalid = || HttpError::new(StatusCode::UNAUTHORIZED, "Invalid token");
        let holder = opened.map(Self).ok_or_else(invalid)?;
        check_query(parts)?;
        Ok(holder)
    }
}

impl OperationInput for TokenHolder {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        openapi::security(operation, "embed", &[]);
        openapi::error(operation, 401);
    }
}

/// Returns the data that the payer's browser needs to pay, if the token's holder is the payer.
pub async fn intent(
    State(app): State<App>,
    TokenHolder(opened): TokenHolder,
) -> Result<Found<PaymentIntent>, HttpError> {
    let intent = payments::intent(&app, &opened.envelope, &opened.email, None).await?;
    Ok(DataReply::new(&intent))
}

/// Returns the payment's status.
pub async fn status(
    State(app): State<App>,
    TokenHolder(opened): TokenHolder,
) -> Result<Found<PaymentStatusView>, HttpError> {
    let standing = payments::standing(&app, &opened.envelope).await?;
    Ok(DataReply::new(&standing))
}

/// Returns the same for the organization's back office, regardless of who the payer is.
pub async fn collect(
    State(app): State<App>,
    WebCaller { caller, .. }: WebCaller<may::Send>,
    ResourceId(id): ResourceId,
) -> Result<Found<PaymentIntent>, HttpError> {
    Ok(DataReply::new(
        &payments::collect(&app, &caller, &id).await?,
    ))
}
