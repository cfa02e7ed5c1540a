//! Requests that change something, as one argument of a handler.
//!
//! Such a request has a credential, perhaps the id of a resource, an idempotency key and perhaps a body. Its service
//! function takes the same in this order, and the recorder of the answer.

use std::future::Future;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::Serialize;

use super::caller::Authorized;
use super::extract::{JsonOrToml, LineNumbers, ResourceId, ValidJson};
use super::once::IdempotencyKeyHeader;
use crate::error::HttpError;
use crate::reply::DataReply;
use holdfast_platform::idempotency::ResponseRecorder;
use holdfast_platform::{Caller, Core, ServiceError};
use holdfast_service::App;

/// A request that changes something: credential `C`, what the path names, and the body.
pub struct IdempotentAct<C, P, B> {
    app: App,
    credential: C,
    path: P,
    once: IdempotencyKeyHeader,
    body: B,
}

/// Act on the resource in the path, with a JSON body.
pub type ActOn<C, T> = IdempotentAct<C, ResourceId, ValidJson<T>>;
/// Act on the resource in the path, without a body.
pub type BareAct<C> = IdempotentAct<C, ResourceId, AbsentPart>;
/// Act that creates something, with a JSON body.
pub type NewAct<C, T> = IdempotentAct<C, AbsentPart, ValidJson<T>>;

/// Act on the resource in the path, with a body in JSON or TOML.
pub type TomlActOn<C, T> = IdempotentAct<C, ResourceId, JsonOrToml<T>>;
/// Act that creates something, with a body in JSON or TOML.
pub type NewTomlAct<C, T> = IdempotentAct<C, AbsentPart, JsonOrToml<T>>;

/// Part that a request does not have.
pub struct AbsentPart;

impl FromRequestParts<App> for AbsentPart {
    type Rejection = HttpError;

    async fn from_request_parts(_: &mut Parts, _: &App) -> Result<Self, HttpError> {
        Ok(Self)
    }
}

impl FromRequest<App> for AbsentPart {
    type Rejection = HttpError;

    async fn from_request(_: Request, _: &App) -> Result<Self, HttpError> {
        Ok(Self)
    }
}

impl OperationInput for AbsentPart {}

impl<C, P, B> FromRequest<App> for IdempotentAct<C, P, B>
where
    C: Authorized,
    P: FromRequestParts<App, Rejection = HttpError> + Send,
    B: FromRequest<App, Rejection = HttpError>,
{
    type Rejection = HttpError;

    async fn from_request(request: Request, app: &App) -> Result<Self, HttpError> {
        let (mut parts, body) = request.into_parts();

        // The credential comes first: a stranger learns nothing about the rest of the request.
        let credential = C::from_request_parts(&mut parts, app).await?;
        let path = P::from_request_parts(&mut parts, app).await?;
        let once = IdempotencyKeyHeader::from_request_parts(&mut parts, app).await?;
        let request = Request::from_parts(parts, body);

        Ok(Self {
            app: app.clone(),
            credential,
            path,
            once,
            body: B::from_request(request, app).await?,
        })
    }
}

impl<C, P, B> OperationInput for IdempotentAct<C, P, B>
where
    C: OperationInput,
    P: OperationInput,
    B: OperationInput,
{
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        C::operation_input(context, operation);
        P::operation_input(context, operation);
        IdempotencyKeyHeader::operation_input(context, operation);
        B::operation_input(context, operation);
    }
}

/// Service function of an act: `async fn(&Core, &Caller, id, body, &ResponseRecorder<T>)`, without the id or the body
/// for acts that have none.
pub trait ServiceFunction<'a, P, B, T: 'static>: Send + 'static {
    type Result: Future<Output = Result<T, ServiceError>> + Send + 'a;

    fn call(
        self,
        core: &'a Core,
        caller: &'a Caller,
        path: &'a P,
        body: B,
        recorder: &'a ResponseRecorder<T>,
    ) -> Self::Result;
}

impl<'a, B, T, W, F> ServiceFunction<'a, ResourceId, ValidJson<B>, T> for W
where
    T: 'static,
    W: FnOnce(&'a Core, &'a Caller, &'a str, B, &'a ResponseRecorder<T>) -> F + Send + 'static,
    F: Future<Output = Result<T, ServiceError>> + Send + 'a,
{
    type Result = F;

    fn call(
        self,
        core: &'a Core,
        caller: &'a Caller,
        path: &'a ResourceId,
        body: ValidJson<B>,
        recorder: &'a ResponseRecorder<T>,
    ) -> F {
        self(core, caller, &path.0, body.0, recorder)
    }
}

impl<'a, T, W, F> ServiceFunction<'a, ResourceId, AbsentPart, T> for W
where
    T: 'static,
    W: FnOnce(&'a Core, &'a Caller, &'a str, &'a ResponseRecorder<T>) -> F + Send + 'static,
    F: Future<Output = Result<T, ServiceError>> + Send + 'a,
{
    type Result = F;

    fn call(
        self,
        core: &'a Core,
        caller: &'a Caller,
        path: &'a ResourceId,
        _: AbsentPart,
        recorder: &'a ResponseRecorder<T>,
    ) -> F {
        self(core, caller, &path.0, recorder)
    }
}

impl<'a, B, T, W, F> ServiceFunction<'a, AbsentPart, ValidJson<B>, T> for W
where
    T: 'static,
    W: FnOnce(&'a Core, &'a Caller, B, &'a ResponseRecorder<T>) -> F + Send + 'static,
    F: Future<Output = Result<T, ServiceError>> + Send + 'a,
{
    type Result = F;

    fn call(
        self,
        core: &'a Core,
        caller: &'a Caller,
        _: &'a AbsentPart,
        body: ValidJson<B>,
        recorder: &'a ResponseRecorder<T>,
    ) -> F {
        self(core, caller, body.0, recorder)
    }
}

impl<C, P, T> IdempotentAct<C, P, JsonOrToml<T>> {
    /// Returns the act with its body in either form, and the lines for its errors.
    pub fn with_lines(self) -> (IdempotentAct<C, P, ValidJson<T>>, LineNumbers) {
        let act = IdempotentAct {
            app: self.app,
            credential: self.credential,
            path: self.path,
            once: self.once,
            body: ValidJson(self.body.value),
        };
        (act, self.body.lines)
    }
}

impl<C, P, B> IdempotentAct<C, P, B>
where
    C: Authorized,
    P: Send + Sync + 'static,
    B: Send + 'static,
{
    /// Calls the service function and wraps its result, or replays the stored answer.
    pub async fn run<const STATUS: u16, T, W>(
        self,
        work: W,
    ) -> Result<DataReply<STATUS, T>, HttpError>
    where
        T: Serialize + Send + 'static,
        W: for<'a> ServiceFunction<'a, P, B, T>,
    {
        let (path, body, caller) = (self.path, self.body, self.credential.caller());
        let work = |app: App, caller: Caller, recorder: Arc<ResponseRecorder<T>>| async move {
            work.call(&app, &caller, &path, body, &recorder).await
        };
        self.once.run(&self.app, caller, work).await
    }

    /// Like [`Self::run`], with the result shown as another type.
    pub async fn answer<const STATUS: u16, T, V, W>(
        self,
        work: W,
    ) -> Result<DataReply<STATUS, V>, HttpError>
    where
        T: Send + 'static,
        V: Serialize + for<'r> From<&'r T> + 'static,
        W: for<'a> ServiceFunction<'a, P, B, T>,
    {
        let (path, body, caller) = (self.path, self.body, self.credential.caller());
        let work = |app: App, caller: Caller, recorder: Arc<ResponseRecorder<T>>| async move {
            work.call(&app, &caller, &path, body, &recorder).await
        };
        self.once.answer(&self.app, caller, work).await
    }
}
