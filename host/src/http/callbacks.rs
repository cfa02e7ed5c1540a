//! What providers tell us.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, Request, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::error::HttpError;
use super::extract::{InstancePath, JSON_LIMIT, read_limited};
use super::openapi;
use super::reply::{Found, Reply};
use crate::app::App;
use crate::service::ServiceError;
use crate::service::payments;
use crate::service::signing::{self, CallbackError};

/// A request as it came, for a plugin to verify and read.
pub struct RawRequest {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl FromRequest<App> for RawRequest {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &App) -> Result<Self, HttpError> {
        let (parts, body) = request.into_parts();
        let headers = parts
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        Ok(Self {
            headers,
            body: read_limited(body, JSON_LIMIT).await?.to_vec(),
        })
    }
}

impl OperationInput for RawRequest {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        for status in [400, 401, 413] {
            openapi::error(operation, status);
        }
    }
}

/// The callback was taken.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "received": true }]))]
pub struct Received {
    received: bool,
}

/// A signing provider's callback. A repeat is harmless.
pub async fn signing(
    State(app): State<App>,
    InstancePath(instance): InstancePath,
    request: RawRequest,
) -> Result<Found<Received>, HttpError> {
    answered(signing::callback(&app, &instance, request.headers, request.body).await)
}

/// A payment provider's callback. A repeat is harmless.
pub async fn payment(
    State(app): State<App>,
    InstancePath(instance): InstancePath,
    request: RawRequest,
) -> Result<Found<Received>, HttpError> {
    answered(payments::callback(&app, &instance, request.headers, request.body).await)
}

fn answered(taken: Result<(), CallbackError>) -> Result<Found<Received>, HttpError> {
    match taken {
        Ok(()) => Ok(Reply::new(&Received { received: true })),
        Err(CallbackError::Unverified(_)) => Err(HttpError::new(
            StatusCode::UNAUTHORIZED,
            "Callback could not be verified",
        )),
        Err(CallbackError::Malformed(why)) => Err(HttpError::bad_request(why)),
        Err(CallbackError::Service(ServiceError::NotConfigured(_))) => Err(HttpError::new(
            StatusCode::NOT_FOUND,
            "Provider instance not found",
        )),
        Err(CallbackError::Service(error)) => Err(error.into()),
    }
}
