//! Routes with handlers of one type.
//!
//! The future of a handler is nested as deep as its calls. The compiler asks of every layer of a router whether that
//! future may be sent to another thread, and makes code for each: five hundred handlers took minutes of each build.
//! Behind a box, it asks once for each handler.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use aide::operation::{OperationHandler, OperationInput, OperationOutput};
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::MethodRouter;

use holdfast_service::App;

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler. The document of the API has its input `I` and its output `O`.
pub struct BoxedHandler<I = (), O = ()> {
    call: Arc<dyn Fn(Request, App) -> ResponseFuture + Send + Sync>,
    documented: PhantomData<fn(I) -> O>,
}

impl<I, O> Clone for BoxedHandler<I, O> {
    fn clone(&self) -> Self {
        Self {
            call: Arc::clone(&self.call),
            documented: PhantomData,
        }
    }
}

impl<I: 'static, O: 'static> Handler<(), App> for BoxedHandler<I, O> {
    type Future = ResponseFuture;

    fn call(self, request: Request, app: App) -> Self::Future {
        (self.call)(request, app)
    }
}

impl<I: OperationInput, O: OperationOutput> OperationHandler<I, O> for BoxedHandler<I, O> {}

/// Puts a handler of a page into a box.
pub fn boxed<H, T>(handler: H) -> BoxedHandler
where
    H: Handler<T, App, Future = ResponseFuture>,
{
    in_box(handler)
}

/// Puts a handler of the API into a box, with its documentation.
pub fn operation<H, T, I, O>(handler: H) -> BoxedHandler<I, O>
where
    H: Handler<T, App, Future = ResponseFuture> + OperationHandler<I, O>,
    I: OperationInput,
    O: OperationOutput,
{
    in_box(handler)
}

fn in_box<H, T, I, O>(handler: H) -> BoxedHandler<I, O>
where
    H: Handler<T, App, Future = ResponseFuture>,
{
    BoxedHandler {
        call: Arc::new(move |request, app| handler.clone().call(request, app)),
        documented: PhantomData,
    }
}

/// Routes `GET` requests to the handler of a page.
pub fn get<H, T>(handler: H) -> MethodRouter<App>
where
    H: Handler<T, App, Future = ResponseFuture>,
{
    axum::routing::get(boxed(handler))
}

/// Routes `POST` requests to the handler of a page.
pub fn post<H, T>(handler: H) -> MethodRouter<App>
where
    H: Handler<T, App, Future = ResponseFuture>,
{
    axum::routing::post(boxed(handler))
}
