//! Callbacks of signing and payment providers.

use std::marker::PhantomData;
use std::time::Instant;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::HttpError;
use crate::middleware::extract::{InstancePath, JSON_LIMIT, read_limited};
use crate::middleware::limits;
use crate::openapi;
use crate::reply::{DataReply, Found};
use holdfast_domain::component::Slot;
use holdfast_platform::error::CallbackError;
use holdfast_platform::{ServiceError, payments};
use holdfast_service::App;
use holdfast_service::signing;
use holdfast_service::signing::callbacks::CallbackRejection;

/// Raw headers and body of a request, for a plugin to verify and parse.
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
            // A header that is not text is left out: plugins get text only.
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

/// Kind of provider that sends callbacks.
pub trait CallbackSlot: Send + 'static {
    const SLOT: Slot;
}

/// Marks callbacks of signing providers.
pub struct SigningCallbacks;

impl CallbackSlot for SigningCallbacks {
    const SLOT: Slot = Slot::Signing;
}

/// Marks callbacks of payment providers.
pub struct PaymentCallbacks;

impl CallbackSlot for PaymentCallbacks {
    const SLOT: Slot = Slot::Payment;
}

/// Permit to process one callback of an instance, acquired before the body is read.
pub struct CallbackPermit<K> {
    instance: String,
    /// Network of the caller, which pays for a callback that cannot be verified.
    network: Option<String>,
    _permit: OwnedSemaphorePermit,
    kind: PhantomData<fn() -> K>,
}

impl<K: CallbackSlot> FromRequestParts<App> for CallbackPermit<K> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        // Everything here runs before the body is read: a flood of callbacks costs no memory and no
        // plugin call.
        let InstancePath(instance) = InstancePath::from_request_parts(parts, app).await?;
        // A network that sent forged callbacks is refused before it costs the instance one of its permits.
        let network = limits::counted_address(app, parts);
        limits::check_network(app, network.as_deref())?;

        if !app.has_provider(K::SLOT, &instance) {
            // Names of instances are guesses as well.
            limits::note_unknown(app, network);
            return Err(unknown_instance());
        }

        let most = app.config.providers.callbacks_per_minute();
        let taken = app.callbacks.take(K::SLOT, &instance, most, Instant::now());
        match taken {
            Ok(permit) => Ok(Self {
                instance,
                network,
                _permit: permit,
                kind: PhantomData,
            }),
            Err(CallbackRejection::TooMany(seconds)) => Err(HttpError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "Too many callbacks of this provider instance",
            )
            .retry_after(seconds)),
            Err(CallbackRejection::Busy) => Err(HttpError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many callbacks of this provider instance are in hand",
            )
            .retry_after(1)),
        }
    }
}

impl<K> OperationInput for CallbackPermit<K> {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        InstancePath::operation_input(context, operation);
        for status in [429, 503] {
            openapi::error(operation, status);
        }
    }
}

fn unknown_instance() -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, "Provider instance not found")
}

/// Confirmation that the callback was processed.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{ "received": true }]))]
pub struct CallbackReceipt {
    received: bool,
}

/// Accepts a signing provider's callback. Repeats are harmless.
pub async fn signing(
    State(app): State<App>,
    turn: CallbackPermit<SigningCallbacks>,
    request: RawRequest,
) -> Result<Found<CallbackReceipt>, HttpError> {
    let taken = signing::callback(&app, &turn.instance, request.headers, request.body).await;
    turn.answered(&app, taken)
}

/// Accepts a payment provider's callback. Repeats are harmless.
pub async fn payment(
    State(app): State<App>,
    turn: CallbackPermit<PaymentCallbacks>,
    request: RawRequest,
) -> Result<Found<CallbackReceipt>, HttpError> {
    let taken = payments::callback(&app, &turn.instance, request.headers, request.body).await;
    turn.answered(&app, taken)
}

impl<K> CallbackPermit<K> {
    fn answered(
        self,
        app: &App,
        taken: Result<(), CallbackError>,
    ) -> Result<Found<CallbackReceipt>, HttpError> {
        match taken {
            Ok(()) => Ok(DataReply::new(&CallbackReceipt { received: true })),
            // The answer has no reason: a forger would learn which check to pass next.
            Err(CallbackError::Unverified(_)) => {
                limits::note_unknown(app, self.network);
                Err(HttpError::new(
                    StatusCode::UNAUTHORIZED,
                    "Callback could not be verified",
                ))
            }
            Err(CallbackError::Malformed(why)) => Err(HttpError::bad_request(why)),
            // An instance without its secrets takes no callbacks, and does not tell strangers why.
            Err(CallbackError::Service(ServiceError::NotConfigured(_))) => Err(unknown_instance()),
            Err(CallbackError::Service(error)) => Err(error.into()),
        }
    }
}
