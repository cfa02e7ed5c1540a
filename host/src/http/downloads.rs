//! What a download link gives.

use std::pin::Pin;
use std::task::{Context, Poll};

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures::Stream;

use super::error::HttpError;
use super::extract::{path_parameter, path_text};
use super::openapi::FileReply;
use crate::app::App;
use crate::domain::token::LinkToken;
use crate::service::downloads;

/// Pieces in which a file leaves.
const PIECE: usize = 64 * 1024;

/// The token in a link's path.
pub struct TokenPath(String);

impl FromRequestParts<App> for TokenPath {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        Ok(Self(path_text(parts, app).await))
    }
}

impl OperationInput for TokenPath {
    fn operation_input(context: &mut GenContext, operation: &mut Operation) {
        path_parameter(context, operation, "token");
    }
}

pub async fn download(
    State(app): State<App>,
    method: Method,
    TokenPath(token): TokenPath,
) -> Result<FileReply<false>, HttpError> {
    // A link preview asks with HEAD: that must not burn a single-use link.
    let peek = method == Method::HEAD;
    let download = downloads::redeem(&app, &token, peek).await?;
    let headers = [
        (header::CONTENT_TYPE, download.content_type),
        (header::CONTENT_LENGTH, download.bytes.len().to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}\"", download.filename),
        ),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let body = Body::from_stream(Outgoing {
        rest: download.bytes,
        settle: download.redeemed.map(|token| Settle {
            app,
            token,
            complete: false,
        }),
    });
    Ok(FileReply((headers, body).into_response()))
}

/// A file in pieces that knows whether its last piece was taken.
struct Outgoing {
    rest: Bytes,
    settle: Option<Settle>,
}

impl Stream for Outgoing {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        // Who sends a body of known length does not ask for its end.
        if self.rest.is_empty()
            && let Some(settle) = &mut self.settle
        {
            settle.complete = true;
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

/// Keeps a single-use link used after a complete read, and gives it back
/// after one that broke off.
struct Settle {
    app: App,
    token: LinkToken,
    complete: bool,
}

impl Drop for Settle {
    fn drop(&mut self) {
        let (app, token, complete) = (self.app.clone(), self.token.clone(), self.complete);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let settled = if complete {
                downloads::completed(&app, &token).await
            } else {
                downloads::broken_off(&app, &token).await
            };
            if let Err(error) = settled {
                tracing::error!(%error, "a download could not be settled");
            }
        });
    }
}
