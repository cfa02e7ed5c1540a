//! What providers tell us.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::error::HttpError;
use super::reply;
use crate::app::App;
use crate::service::signing::{self, CallbackError};

/// A signing provider's callback. A repeat is harmless.
pub async fn signing(
    State(app): State<App>,
    Path(instance): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, HttpError> {
    let headers = headers
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    match signing::callback(&app, &instance, headers, body.to_vec()).await {
        Ok(()) => Ok(reply::ok(json!({ "received": true }))),
        Err(CallbackError::Unverified(_)) => Err(HttpError::new(
            StatusCode::UNAUTHORIZED,
            "Callback could not be verified",
        )),
        Err(CallbackError::Malformed(why)) => Err(HttpError::bad_request(why)),
        Err(CallbackError::Service(error)) => Err(error.into()),
    }
}
