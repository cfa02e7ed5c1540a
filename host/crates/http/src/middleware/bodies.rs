//! Request bodies: how slowly they may arrive, and how much memory all requests together may hold.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use crate::error::HttpError;
use crate::pace::TransferPace;
use holdfast_base::config::HttpSettings;

/// Bytes that every request may hold, even when the total limit is used up, so that large requests
/// do not crowd out ordinary ones.
const ALWAYS: usize = 64 * 1024;
/// `Retry-After` in seconds for a refused request.
const RETRY: u32 = 2;

/// Total bytes of request bodies held in memory.
#[derive(Default)]
pub struct BufferedBytes(AtomicUsize);

/// Reason why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyReadFailure {
    /// It arrived too slowly.
    Slow,
    /// Other requests use up the memory limit.
    Full,
    /// The client disconnected.
    Broken,
}

impl BodyReadFailure {
    fn answer(self) -> Response {
        match self {
            Self::Slow => {
                let error = HttpError::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "The request body did not arrive in time",
                );
                let mut response = error.into_response();

                // The rest of the body is not read, so the connection cannot be reused.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);

                response
            }
            Self::Full => HttpError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many large requests at once; please try again",
            )
            .retry_after(RETRY)
            .into_response(),
            Self::Broken => {
                HttpError::bad_request("Request body could not be read").into_response()
            }
        }
    }
}

/// Replaces the handler's error answer if the body could not be read to its end.
pub async fn guard(
    State((settings, all)): State<(HttpSettings, Arc<BufferedBytes>)>,
    request: Request,
    next: Next,
) -> Response {
    // Most requests have no body and need no clock.
    if request.body().is_end_stream() {
        return next.run(request).await;
    }

    let held = Arc::new(BodyMemory {
        bytes: AtomicUsize::new(0),
        failure: OnceLock::new(),
        // A form's file is spooled to disk as it arrives, so forms hold little memory.
        limit: (!is_form(request.headers())).then_some(settings.buffered_bytes),
        all,
    });

    let patience = settings.body_timeout;
    let request = request.map(|body| Body::new(IncomingBody::new(body, held.clone(), patience)));
    let response = next.run(request).await;
    let failed = response.status().is_client_error() || response.status().is_server_error();
    match held.failure.get() {
        // A handler that succeeded without the whole body keeps its answer.
        Some(failure) if failed => failure.answer(),
        _ => response,
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| {
        let form = b"multipart/";
        let begin = value.as_bytes().get(..form.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(form))
    })
}

/// Memory of one request, counted until its handler is done and the body is dropped.
struct BodyMemory {
    bytes: AtomicUsize,
    failure: OnceLock<BodyReadFailure>,
    /// Limit over all requests; none where the body is not held in memory.
    limit: Option<usize>,
    all: Arc<BufferedBytes>,
}

impl BodyMemory {
    /// Counts received bytes. Returns false when the limit is exceeded.
    fn count(&self, bytes: usize) -> bool {
        let Some(limit) = self.limit else { return true };
        let own = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Counted even when refused, because `drop` takes all of it off again.
        let before = self.all.0.fetch_add(bytes, Ordering::Relaxed);
        own <= ALWAYS || before + bytes <= limit
    }

    fn fail(&self, failure: BodyReadFailure) -> axum::Error {
        // The first failure is the cause. Later ones follow from it.
        let failure = self.failure.get_or_init(|| failure);
        axum::Error::new(std::io::Error::other(format!("{failure:?}")))
    }
}

impl Drop for BodyMemory {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.all.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Request body as it arrives, with its timeout and memory count.
struct IncomingBody {
    body: Body,
    held: Arc<BodyMemory>,
    pace: TransferPace,
    patience: Duration,
    alarm: Pin<Box<Sleep>>,
}

impl IncomingBody {
    fn new(body: Body, held: Arc<BodyMemory>, patience: Duration) -> Self {
        Self {
            body,
            held,
            alarm: Box::pin(tokio::time::sleep(patience)),
            pace: TransferPace::new(),
            patience,
        }
    }
}

impl HttpBody for IncomingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.pace.moved(bytes);
                if this.held.count(bytes) {
                    Poll::Ready(Some(Ok(frame)))
                } else {
                    Poll::Ready(Some(Err(this.held.fail(BodyReadFailure::Full))))
                }
            }
            // A client that aborts is logged as its own failure, and not as the server's.
            Poll::Ready(Some(Err(_))) => {
                Poll::Ready(Some(Err(this.held.fail(BodyReadFailure::Broken))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                // Only the beginning of a wait sets the alarm: every poll would push it back otherwise.
                if this.pace.wait() {
                    let until = tokio::time::Instant::now() + this.pace.left(this.patience);
                    this.alarm.as_mut().reset(until);
                }

                match this.alarm.as_mut().poll(context) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(()) => {
                        Poll::Ready(Some(Err(this.held.fail(BodyReadFailure::Slow))))
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
