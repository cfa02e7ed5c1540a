//! What a download link gives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures::Stream;

use crate::domain::token::LinkToken;
use crate::files::{FilesError, Pieces};
use crate::http::error::HttpError;
use crate::http::middleware::extract::LinkPath;
use crate::http::reply::FileReply;
use crate::service::App;
use crate::service::vault::downloads;

pub async fn download(
    State(app): State<App>,
    method: Method,
    LinkPath(token): LinkPath,
) -> Result<FileReply<false>, HttpError> {
    // A link preview asks with HEAD: that must not burn a single-use link.
    let peek = method == Method::HEAD;
    let download = downloads::redeem(&app, &token, peek).await?;
    let headers = [
        (header::CONTENT_TYPE, download.content_type),
        (header::CONTENT_LENGTH, download.size.to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}\"", download.filename),
        ),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let body = Body::from_stream(Outgoing {
        pieces: download.pieces,
        left: download.size,
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
    pieces: Pieces,
    left: u64,
    settle: Option<Settle>,
}

impl Stream for Outgoing {
    type Item = Result<Bytes, FilesError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(self.pieces.as_mut().poll_next(context));
        match &piece {
            Some(Ok(piece)) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                // Who sends a body of known length does not ask for its end.
                let complete = self.left == 0;
                if let Some(settle) = &mut self.settle {
                    settle.complete = complete;
                }
            }
            Some(Err(error)) => tracing::error!(%error, "a download broke off"),
            None => {}
        }
        Poll::Ready(piece)
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
