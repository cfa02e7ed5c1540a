//! The web-app surface, with a bearer token.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::caller::Admin;
use super::error::HttpError;
use crate::app::App;
use crate::service::custody;

/// The evidence bundle of a released envelope, as one zip.
pub async fn bundle(
    State(app): State<App>,
    Admin(caller): Admin,
    Path(id): Path<String>,
) -> Result<Response, HttpError> {
    let zip = custody::bundle(&app, &caller, &id).await?;
    let disposition = format!("attachment; filename=\"{id}-bundle.zip\"");
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, zip).into_response())
}
