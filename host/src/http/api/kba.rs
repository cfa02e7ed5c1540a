//! How identity questions were answered, for the back office.

use axum::extract::State;

use crate::http::error::HttpError;
use crate::http::middleware::caller::Admin;
use crate::http::middleware::extract::ResourceId;
use crate::http::reply::{Found, Reply};
use crate::service::App;
use crate::service::kba::{self, KbaResult};

/// An envelope's results.
pub async fn results(
    State(app): State<App>,
    Admin(caller): Admin,
    ResourceId(id): ResourceId,
) -> Result<Found<Vec<KbaResult>>, HttpError> {
    Ok(Reply::new(&kba::results(&app, &caller, &id).await?))
}
