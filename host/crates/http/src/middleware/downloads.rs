//! Answers that a client reads for a while: how many one network may have open.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::error::HttpError;
use holdfast_adapters::files::TransferShare;
use holdfast_service::App;

/// Answers up to this size fit into the buffers of the connection, so that a client that does not read
/// them holds nothing else.
const SMALL: u64 = 256 * 1024;
/// `Retry-After` in seconds for a refused download.
const RETRY: u32 = 5;

/// Counts a large answer to a network until it is read, or refuses it.
pub fn limit(app: &App, network: Option<&str>, response: Response) -> Response {
    let announced = response.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
    // A streamed file states its length in the header only. Its body does not know it.
    let size = announced.unwrap_or_else(|| response.body().size_hint().lower());
    let is_large = size > SMALL && !response.body().is_end_stream();
    // Without an address, as on a listener behind no known proxy, there is nothing to count by.
    let Some(network) = network.filter(|_| is_large) else {
        return response;
    };

    match app.transfers.download(network) {
        Some(share) => response.map(|body| {
            Body::new(CountedBody {
                body,
                _share: share,
            })
        }),
        None => HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many downloads at once; read the others first",
        )
        .retry_after(RETRY)
        .into_response(),
    }
}

/// Body of an answer that counts as a download.
struct CountedBody {
    body: Body,
    _share: TransferShare,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
