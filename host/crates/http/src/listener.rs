//! Accepts and serves connections, each within its time limits.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Version};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

use super::connections::{
    ActiveRequest, ConnectionAdmission, ConnectionEntry, ConnectionRegistry, ConnectionTimeout,
    TrackedSocket,
};
use super::unread::UnreadBody;
use holdfast_base::config::HttpSettings;
use holdfast_base::metrics::ConnectionMetrics;

/// Write buffer of one connection or one HTTP/2 stream, and size limit of a request head, in bytes.
const BUFFER: usize = 64 * 1024;
/// Flow-control window of an HTTP/2 connection, in bytes.
const HTTP2_WINDOW: u32 = 1024 * 1024;
/// Flow-control window of an HTTP/2 stream, in bytes.
const HTTP2_STREAM_WINDOW: u32 = 256 * 1024;
/// Interval of HTTP/2 keep-alive pings.
const HTTP2_PING: Duration = Duration::from_secs(20);
/// Pause after a failed accept that this process caused, for example by running out of file
/// descriptors.
const NO_FILES: Duration = Duration::from_millis(50);
/// Time for the closing handshake of an idle connection.
const FAREWELL: Duration = Duration::from_secs(1);

/// Share of the grace period for requests in progress. The rest is for closing connections and the
/// database.
const GRACE_OF_REQUESTS: f64 = 0.9;

/// Serves until `stop` is cancelled, then finishes requests in progress within
/// [`HttpSettings::stop_grace`].
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: HttpSettings,
    metrics: ConnectionMetrics,
    stop: CancellationToken,
) {
    let grace = settings.stop_grace.mul_f64(GRACE_OF_REQUESTS);
    let server = Arc::new(ConnectionServer {
        builder: builder(&settings),
        connections: ConnectionRegistry::new(settings.connections),
        // A client that does not read must not use up the whole grace period.
        stopping: HttpSettings {
            write_timeout: settings.write_timeout.min(settings.stop_grace / 4),
            ..settings.clone()
        },
        settings,
        router,
        metrics,
        stop: stop.clone(),
        cut_off: CancellationToken::new(),
    });

    let tasks = TaskTracker::new();
    loop {
        // Accepting can be abandoned at any point: the system keeps a connection that was not taken.
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(entry) = server.admit() {
                    tasks.spawn(server.clone().serve(entry, stream, peer));
                }
            }
            // A client that is gone before it was accepted must not slow the loop down for others.
            Err(error) if is_of_the_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "connection could not be accepted");
                tokio::time::sleep(NO_FILES).await;
            }
        }
    }

    // Stop accepting before waiting, so that clients connect to another node.
    drop(listener);
    tasks.close();

    if tokio::time::timeout(grace, tasks.wait()).await.is_err() {
        tracing::warn!(
            connections = tasks.len(),
            "closing connections that did not finish in time"
        );
        // Waiting is bounded: the signal drops every connection without another message.
        server.cut_off.cancel();
        tasks.wait().await;
    }
}

fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused | Kind::ConnectionAborted | Kind::ConnectionReset
    )
}

fn builder(settings: &HttpSettings) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.streams)
        .max_send_buf_size(BUFFER)
        // The same limit for both protocols, because HPACK lets a small frame grow into large headers.
        .max_header_list_size(BUFFER as u32)
        .initial_connection_window_size(HTTP2_WINDOW)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .keep_alive_interval(HTTP2_PING)
        .keep_alive_timeout(settings.write_timeout);

    builder
}

struct ConnectionServer {
    builder: Builder<TokioExecutor>,
    connections: Arc<ConnectionRegistry>,
    settings: HttpSettings,
    /// Settings that apply after `stop`.
    stopping: HttpSettings,
    router: Router,
    metrics: ConnectionMetrics,
    stop: CancellationToken,
    /// Cancelled when the grace period after `stop` is over.
    cut_off: CancellationToken,
}

impl ConnectionServer {
    fn admit(&self) -> Option<ConnectionEntry> {
        match self.connections.admit() {
            ConnectionAdmission::Admitted { entry, shed } => {
                if shed {
                    self.metrics.closed("shed");
                }
                Some(entry)
            }
            // The socket is dropped without an answer: writing one could block, and no place is free to wait
            // in.
            ConnectionAdmission::Full => {
                self.metrics.closed("refused");
                None
            }
        }
    }

    async fn serve(self: Arc<Self>, entry: ConnectionEntry, stream: TcpStream, peer: SocketAddr) {
        let _open = self.metrics.opened();
        // Sends small answers without delay. A socket that fails here fails again at its next
        // write.
        let _ = stream.set_nodelay(true);
        let connection = entry.connection.clone();
        let watched = TrackedSocket::new(stream, connection.clone());
        let handler = ConnectionHandler {
            router: self.router.clone(),
            peer,
            connection: connection.clone(),
        };
        let service = TowerToHyperService::new(handler);
        let mut serving = pin!(
            self.builder
                .serve_connection(TokioIo::new(watched), service)
        );

        // One timer for all limits: timers of single reads and writes would be armed thousands of times a
        // second.
        let mut looks = tokio::time::interval(self.look_every());
        let mut ending = false;
        let mut settings = &self.settings;
        loop {
            tokio::select! {
                // A client that disconnects is not a server error.
                _ = serving.as_mut() => return,
                () = connection.close.cancelled() => return,
                () = self.cut_off.cancelled() => return self.metrics.closed("stopping"),
                () = self.stop.cancelled(), if !ending => {
                    // No request is in progress, so nothing is lost.
                    if connection.is_half_open() {
                        return;
                    }
                    // The shorter limits apply from now on, and the branch must not be taken again.
                    ending = true;
                    settings = &self.stopping;
                    serving.as_mut().graceful_shutdown();
                }
                _ = looks.tick() => match connection.overdue(settings) {
                    None => {}
                    Some(ConnectionTimeout::Head) => return self.metrics.closed("half-open"),
                    Some(ConnectionTimeout::Reading) => return self.metrics.closed("not-reading"),
                    // A client may be sending its next request right now. The handshake lets HTTP/2 clients
                    // repeat it elsewhere.
                    Some(ConnectionTimeout::Idle) => {
                        self.metrics.closed("idle");
                        serving.as_mut().graceful_shutdown();
                        let _ = tokio::time::timeout(FAREWELL, serving).await;
                        return;
                    }
                }
            }
        }
    }

    /// Returns the interval of timeout checks: short enough for the shortest limit, long enough for
    /// thousands of connections.
    fn look_every(&self) -> Duration {
        let settings = &self.stopping;
        let shortest = settings
            .header_timeout
            .min(settings.write_timeout)
            .min(settings.idle_timeout);
        (shortest / 4).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }
}

/// Passes requests of one connection to the router.
#[derive(Clone)]
struct ConnectionHandler {
    router: Router,
    peer: SocketAddr,
    connection: Arc<super::connections::ClientConnection>,
}

impl<B> Service<Request<B>> for ConnectionHandler
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let connection = self.connection.clone();
        // Begins before the router: time in queues and middleware counts as a request in progress, too.
        let in_hand = connection.begin();

        // On HTTP/2 a request is a stream of its own, which ends without an effect on others.
        let has_rest = request.version() < Version::HTTP_2 && !request.body().is_end_stream();
        let (unread, request) = if has_rest {
            let (unread, request) = UnreadBody::watch(request);
            (Some(unread), request)
        } else {
            (None, request)
        };
        let answer = self.router.call(request);

        Box::pin(async move {
            let mut response = answer.await?;
            if let Some(unread) = unread
                && unread.settle(&mut response).await
            {
                connection.linger();
            }

            Ok(response.map(|body| Body::new(TrackedBody { body, in_hand })))
        })
    }
}

/// Response body that records whether the client reads it.
struct TrackedBody {
    body: Body,
    in_hand: ActiveRequest,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // The connection polls for a piece only when there is room for it, so a poll shows that the client
        // reads.
        self.in_hand.asked();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(_)) = polled {
            self.in_hand.handed_out();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
