//! Downloads by link.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use futures::Stream;

use crate::error::HttpError;
use crate::middleware::extract::LinkPath;
use crate::middleware::limits::CredentialLookup;
use crate::reply::{FileReply, PdfOrJson};
use holdfast_adapters::files::{FilesError, Pieces};
use holdfast_domain::token::LinkToken;
use holdfast_service::App;
use holdfast_service::vault::downloads;

pub async fn download(
    State(app): State<App>,
    LinkPath(token): LinkPath,
    request: Request,
) -> Result<FileReply<PdfOrJson>, HttpError> {
    let (parts, _) = request.into_parts();
    // A guessed token counts against its network before the database is asked.
    let lookup = CredentialLookup::begin(&app, None, &token, &parts).await?;
    let is_known = downloads::is_known(lookup.core(), &token).await?;
    lookup.settle(&app, is_known)?;

    // A link preview asks with HEAD: that must not burn a single-use link.
    let peek = parts.method == Method::HEAD;
    let download = downloads::redeem(&app, &token, peek).await?;
    let headers = [
        (header::CONTENT_TYPE, download.content_type),
        (header::CONTENT_LENGTH, download.size.to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}\"", download.filename),
        ),
        // The file may be a contract, and a cached one would outlive the single use of its link.
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];

    let body = Body::from_stream(DownloadStream {
        pieces: download.pieces,
        left: download.size,
        settle: download.redeemed.map(|token| DownloadSettlement {
            app,
            token,
            complete: false,
        }),
    });

    Ok(FileReply::new((headers, body).into_response()))
}

/// File stream that records whether its last piece was sent.
struct DownloadStream {
    pieces: Pieces,
    left: u64,
    settle: Option<DownloadSettlement>,
}

impl Stream for DownloadStream {
    type Item = Result<Bytes, FilesError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(self.pieces.as_mut().poll_next(context));
        match &piece {
            Some(Ok(piece)) => {
                self.left = self.left.saturating_sub(piece.len() as u64);
                // The server does not poll past the declared length, so the end of the stream is
                // never seen.
                let complete = self.left == 0;
                if let Some(settle) = &mut self.settle {
                    settle.complete = complete;
                }
            }
            Some(Err(error)) => tracing::error!(%error, "download stream failed"),
            None => {}
        }

        Poll::Ready(piece)
    }
}

/// Settles a single-use link when the stream is dropped: used up after a complete read, released
/// after an interrupted one.
struct DownloadSettlement {
    app: App,
    token: LinkToken,
    complete: bool,
}

impl Drop for DownloadSettlement {
    fn drop(&mut self) {
        let (app, token, complete) = (self.app.clone(), self.token.clone(), self.complete);
        // Outside the runtime, at shutdown, the link stays redeemed: it fails closed.
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
                tracing::error!(%error, "single-use download link could not be settled");
            }
        });
    }
}
