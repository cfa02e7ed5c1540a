//! The web-app surface, with a bearer token.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse as _;

use super::caller::Admin;
use super::error::HttpError;
use super::extract::ResourceId;
use super::reply::FileReply;
use crate::app::App;
use crate::service::custody;

/// The evidence bundle of a released envelope, as one zip.
pub async fn bundle(
    State(app): State<App>,
    Admin(caller): Admin,
    ResourceId(id): ResourceId,
) -> Result<FileReply<true>, HttpError> {
    let zip = custody::bundle(&app, &caller, &id).await?;
    let disposition = format!("attachment; filename=\"{id}-bundle.zip\"");
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok(FileReply((headers, zip).into_response()))
}
