//! Results of identity questions, for the back office.

use axum::extract::State;

use crate::http::error::HttpError;
use crate::http::middleware::caller::Admin;
use crate::http::middleware::extract::ResourceId;
use crate::http::reply::{Found, Reply};
use crate::service::App;
use crate::service::kba::{self, KbaResult};

/// Returns the KBA results of an envelope.
pub async fn results(
    State(app): State<App>,
    Admin(caller): Admin,
    ResourceId(id): ResourceId,
) -> Result<Found<Vec<KbaResult>>, HttpError> {
    Ok(Reply::new(&kba::results(&app, &caller, &id).await?))
}
