//! Request bodies of early answers: a request that was refused before its body was read.
//!
//! A connection carries its next request only behind the whole body of this one. A small body is
//! read and discarded, and the connection stays open. For any other, the answer announces the end of
//! the connection (RFC 9112, 9.6); without that, the client would lose its next request.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt as _;
use http_body::{Body as HttpBody, Frame, SizeHint};

/// Bytes of a body that are read and discarded.
const DISCARDED: u64 = 256 * 1024;
/// Time within which they have to arrive. The answer waits for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rest of a request's body, once its handler dropped it.
pub(super) struct UnreadBody {
    rest: Arc<Mutex<Option<BodyRest>>>,
    waits_for_continue: bool,
}

struct BodyRest {
    body: Body,
    /// Whether the handler read some of it.
    is_begun: bool,
}

impl UnreadBody {
    /// Wraps the body of a request, to get back what its handler leaves.
    pub fn watch(request: Request<Body>) -> (Self, Request<Body>) {
        let rest = Arc::new(Mutex::new(None));
        let expect = request.headers().get(header::EXPECT);
        let unread = Self {
            rest: rest.clone(),
            waits_for_continue: expect.is_some(),
        };
        let request = request.map(|body| {
            Body::new(ReturningBody {
                body: Some(body),
                is_begun: false,
                rest,
            })
        });

        (unread, request)
    }

    /// Discards the rest, or announces the end of the connection. Returns whether it ends.
    pub async fn settle(self, response: &mut Response) -> bool {
        let rest = self.rest.lock();
        // None means that the handler read the whole body, or drops it later in a task of its own.
        let rest = rest.unwrap_or_else(PoisonError::into_inner).take();
        let Some(BodyRest { body, is_begun }) = rest else {
            return false;
        };
        if ends(response.headers()) {
            return true;
        }

        // Reading would ask a client that waits for `100 Continue` to send a useless body.
        let is_held_back = self.waits_for_continue && !is_begun;
        let is_small = body.size_hint().lower() <= DISCARDED;
        if is_small && !is_held_back && discard(body).await {
            return false;
        }

        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
        true
    }
}

fn ends(headers: &HeaderMap) -> bool {
    let connection = headers.get(header::CONNECTION);
    connection.is_some_and(|value| value.as_bytes() == b"close")
}

/// Reads a body to its end. Returns false if it is too long, too slow or broken.
async fn discard(body: Body) -> bool {
    let whole = async {
        let (mut pieces, mut size) = (body.into_data_stream(), 0);
        while let Some(piece) = pieces.next().await {
            // A broken body counts as too long: nothing after it on the connection can be read as a request.
            size += piece
                .as_ref()
                .map_or(DISCARDED + 1, |piece| piece.len() as u64);
            if size > DISCARDED {
                return false;
            }
        }

        true
    };

    tokio::time::timeout(PATIENCE, whole).await.unwrap_or(false)
}

/// Body that gives back its rest when it is dropped before its end.
struct ReturningBody {
    /// None after the end.
    body: Option<Body>,
    is_begun: bool,
    rest: Arc<Mutex<Option<BodyRest>>>,
}

impl HttpBody for ReturningBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_begun = true;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };

        let polled = Pin::new(body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }

        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for ReturningBody {
    fn drop(&mut self) {
        let body = self.body.take().filter(|body| !body.is_end_stream());
        if let Some(body) = body {
            let rest = BodyRest {
                body,
                is_begun: self.is_begun,
            };
            *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
        }
    }
}
