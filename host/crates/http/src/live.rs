//! Server-sent events about a value that changes.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, stream};
use serde::Serialize;
use tokio::time::Instant;

use super::error::HttpError;
use holdfast_domain::id::{OrgId, SessionId};
use holdfast_service::App;
use holdfast_service::bulk::watch::{StreamLimit, StreamSlot};

/// Maximum duration of a stream. The client then reconnects, with a token that is still valid.
const LIFE: Duration = Duration::from_secs(3600);
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Name of an event after which the stream ends.
pub const END: &str = "end";

/// A stream that reads a value at an interval.
struct LiveValue<T, R> {
    app: App,
    every: Duration,
    until: Instant,
    /// Value to send next, read before the stream began.
    next: Option<T>,
    shown: Option<T>,
    read: R,
    _place: StreamSlot,
}

/// Takes a place for a stream: every open one polls the database, so their number is limited.
///
/// # Errors
/// 503 when too many are open.
pub fn place(app: &App, org: &OrgId) -> Result<StreamSlot, HttpError> {
    app.bulk.streams.enter(org, None).map_err(too_many)
}

/// Like [`place`], for a page of the console in a session.
///
/// # Errors
/// 429 when the session has too many, 503 when too many are open.
pub fn page_place(app: &App, org: &OrgId, session: &SessionId) -> Result<StreamSlot, HttpError> {
    app.bulk.pages.enter(org, Some(session)).map_err(too_many)
}

fn too_many(limit: StreamLimit) -> HttpError {
    let (status, text) = match limit {
        // 429 blames the session for its own pages. 503 is the server's limit, which others may have used up.
        StreamLimit::Session => (
            StatusCode::TOO_MANY_REQUESTS,
            "Too many pages of this session are open; close some",
        ),
        StreamLimit::Shared => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many event streams are open",
        ),
    };

    HttpError::new(status, text).retry_after(5)
}

/// Streams a value: as it is at first, so that a client that reconnects has missed nothing, and after every change.
/// `name` is the name of its event, [`END`] for the last one. The stream ends if `read` returns none.
pub fn stream<T, R, F>(
    app: App,
    place: StreamSlot,
    every: Duration,
    first: T,
    name: fn(&T) -> &'static str,
    read: R,
) -> Response
where
    T: PartialEq + Serialize + Send + Sync + 'static,
    R: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = Option<T>> + Send,
{
    let live = LiveValue {
        app,
        every,
        until: Instant::now() + LIFE,
        next: Some(first),
        shown: None,
        read,
        _place: place,
    };

    let events = stream::unfold(Some(live), move |live| async move {
        let mut live = live?;
        loop {
            let seen = match live.next.take() {
                Some(first) => first,
                None => look(&live).await?,
            };

            // An unchanged value is not sent again; the keep-alive shows that the stream lives.
            if live.shown.as_ref() == Some(&seen) {
                continue;
            }

            let name = name(&seen);
            let event = Event::default().event(name).json_data(&seen).ok()?;
            live.shown = Some(seen);

            return Some((Ok::<_, Infallible>(event), (name != END).then_some(live)));
        }
    });

    let events = Sse::new(events.fuse()).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    let mut response = events.into_response();

    // Buffering proxies would hold events back.
    response.headers_mut().insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );

    response
}

/// Waits one interval and reads the value. Returns none when the stream has to end.
async fn look<T, R, F>(live: &LiveValue<T, R>) -> Option<T>
where
    R: Fn() -> F,
    F: Future<Output = Option<T>>,
{
    // An open stream would otherwise hold the server's stop for its whole grace period.
    tokio::select! {
        () = live.app.stopping.cancelled() => return None,
        () = tokio::time::sleep(live.every) => {}
    }

    if Instant::now() >= live.until {
        None
    } else {
        (live.read)().await
    }
}
