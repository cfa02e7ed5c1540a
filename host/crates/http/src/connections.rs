//! Open connections: the activity of each, its time limits, and which one is closed when there are
//! too many.

use std::collections::BTreeMap;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::pace::TransferPace;
use holdfast_base::config::HttpSettings;

/// First bytes of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI";

/// Time for a client to read the last answer while it still sends.
const LINGER: Duration = Duration::from_secs(5);
/// Bytes that such a client may send meanwhile.
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// Registry of open connections.
pub(super) struct ConnectionRegistry {
    most: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    connections: BTreeMap<u64, Arc<ClientConnection>>,
    next: u64,
}

/// Result of registering one more connection.
pub(super) enum ConnectionAdmission {
    /// Registered. `shed` is set if another connection was closed to make room.
    Admitted { entry: ConnectionEntry, shed: bool },
    /// Every connection has a request in progress.
    Full,
}

/// Registration of an open connection; dropping it removes the connection.
pub(super) struct ConnectionEntry {
    all: Arc<ConnectionRegistry>,
    id: u64,
    pub connection: Arc<ClientConnection>,
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.all.lock().connections.remove(&self.id);
    }
}

impl ConnectionRegistry {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            open: Mutex::default(),
        })
    }

    /// Registers a connection. When the limit is reached, closes the connection that has waited
    /// longest for a request, preferring those that never sent a complete request head.
    pub fn admit(self: &Arc<Self>) -> ConnectionAdmission {
        // One lock for the check and the entry: two connections at once must not both take the last place.
        let mut open = self.lock();
        let mut shed = false;
        if open.connections.len() >= self.most {
            let waiting = open.connections.iter();
            let waiting = waiting.filter_map(|(id, connection)| Some((connection.rank()?, *id)));
            // Attackers can open connections faster than clients, so refusing new ones would lock clients
            // out.
            let Some((_, id)) = waiting.min() else {
                return ConnectionAdmission::Full;
            };

            // Removed here and not by its task, so that the limit holds at once.
            if let Some(connection) = open.connections.remove(&id) {
                connection.close.cancel();
            }

            shed = true;
        }

        let id = open.next;
        open.next += 1;
        let connection = Arc::new(ClientConnection::new());
        open.connections.insert(id, connection.clone());
        let entry = ConnectionEntry {
            all: self.clone(),
            id,
            connection,
        };

        ConnectionAdmission::Admitted { entry, shed }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Activity and close signal of one connection.
pub(super) struct ClientConnection {
    /// Cancelled when the connection has to close immediately.
    pub close: CancellationToken,
    /// Whether the client still sends a body that is discarded.
    lingers: AtomicBool,
    activity: Mutex<ConnectionActivity>,
}

struct ConnectionActivity {
    /// None until the first byte has arrived.
    http2: Option<bool>,
    /// Requests in progress: from the complete head to the last piece of the answer.
    requests: usize,
    next_request: u64,
    /// Start of the period without a request in progress and without a write.
    waiting_since: Instant,
    /// Start of waiting for a complete request head.
    head_since: Option<Instant>,
    /// Pace at which the client reads.
    reading: TransferPace,
    /// Answers with a piece handed to the connection and no further poll since.
    unasked: BTreeMap<u64, Instant>,
}

/// Time limit that a connection exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionTimeout {
    /// The request head did not arrive in time.
    Head,
    /// No request arrived within the idle timeout.
    Idle,
    /// The client does not read the answer.
    Reading,
}

impl ClientConnection {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            close: CancellationToken::new(),
            lingers: AtomicBool::new(false),
            activity: Mutex::new(ConnectionActivity {
                http2: None,
                requests: 0,
                next_request: 0,
                waiting_since: now,
                head_since: Some(now),
                reading: TransferPace::new(),
                unasked: BTreeMap::new(),
            }),
        }
    }

    /// Returns the exceeded time limit, if any.
    pub fn overdue(&self, settings: &HttpSettings) -> Option<ConnectionTimeout> {
        let activity = self.lock();
        let patience = settings.write_timeout;
        let mut unasked = activity.unasked.values();
        if activity.reading.is_over(patience) || unasked.any(|since| since.elapsed() > patience) {
            return Some(ConnectionTimeout::Reading);
        }
        // A request in progress may take as long as it needs. Its body and its answer have limits of their
        // own.
        if activity.requests > 0 {
            return None;
        }

        match activity.head_since {
            Some(since) if since.elapsed() > settings.header_timeout => {
                Some(ConnectionTimeout::Head)
            }
            Some(_) => None,
            None => {
                let idle = activity.waiting_since.elapsed() > settings.idle_timeout;
                idle.then_some(ConnectionTimeout::Idle)
            }
        }
    }

    /// Returns whether the connection can be closed now without losing a request in progress.
    pub fn is_half_open(&self) -> bool {
        let activity = self.lock();
        activity.requests == 0 && activity.head_since.is_some()
    }

    /// Returns the closing order; the smallest is closed first. Connections without a complete head
    /// come first, then the longest idle. None while a request is in progress.
    fn rank(&self) -> Option<(bool, Instant)> {
        let activity = self.lock();
        (activity.requests == 0).then(|| match activity.head_since {
            Some(since) => (false, since),
            None => (true, activity.waiting_since),
        })
    }

    /// Records that a request's head is complete. Dropping the result ends the request.
    pub fn begin(self: &Arc<Self>) -> ActiveRequest {
        let mut activity = self.lock();
        activity.requests += 1;
        // The clock of the head stops here: the handler's time is the server's and not the client's.
        activity.head_since = None;
        activity.next_request += 1;
        ActiveRequest {
            request: activity.next_request,
            connection: self.clone(),
        }
    }

    /// Records that the connection ends while the client still sends.
    pub fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    fn received(&self, bytes: &[u8]) {
        let mut activity = self.lock();
        let http2 = *activity
            .http2
            .get_or_insert_with(|| bytes.starts_with(HTTP2_PREFACE));
        // On HTTP/2, bytes between requests can be control frames rather than a head.
        if activity.requests == 0 && activity.head_since.is_none() && !http2 {
            activity.head_since = Some(Instant::now());
        }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        let mut activity = self.lock();
        match written {
            // A full send buffer means that the client does not read. The clock runs until it takes bytes
            // again.
            Poll::Pending => {
                activity.reading.wait();
            }
            Poll::Ready(written) => {
                activity.reading.moved(*written.as_ref().unwrap_or(&0));
                // The last bytes of an answer leave after its request has ended, and count as activity.
                if activity.requests == 0 {
                    activity.waiting_since = Instant::now();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Request in progress.
pub(super) struct ActiveRequest {
    connection: Arc<ClientConnection>,
    request: u64,
}

impl ActiveRequest {
    /// Records that the connection polled for the next piece of the answer.
    pub fn asked(&self) {
        self.connection.lock().unasked.remove(&self.request);
    }

    /// Records that a piece of the answer was handed to the connection.
    pub fn handed_out(&self) {
        let mut activity = self.connection.lock();
        // On HTTP/2, a client can leave one stream unread while the socket flows, so each answer has a clock.
        activity.unasked.insert(self.request, Instant::now());
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut activity = self.connection.lock();
        activity.unasked.remove(&self.request);
        activity.requests -= 1;
        if activity.requests == 0 {
            activity.waiting_since = Instant::now();
        }
    }
}

/// Socket that records reads and writes in its connection's activity.
pub(super) struct TrackedSocket {
    stream: TcpStream,
    connection: Arc<ClientConnection>,
    /// Present while the end of the connection waits for the client.
    lingering: Option<LingeringClose>,
}

/// End of a connection on which the client still sends. Closing at once would reset the connection, and the
/// client could lose the answer that it did not read yet (RFC 9112, 9.6).
struct LingeringClose {
    until: Pin<Box<Sleep>>,
    discarded: usize,
}

impl TrackedSocket {
    pub fn new(stream: TcpStream, connection: Arc<ClientConnection>) -> Self {
        Self {
            stream,
            connection,
            lingering: None,
        }
    }
}

impl AsyncRead for TrackedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if !read.is_empty() {
            self.connection.received(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrackedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.connection.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.connection.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // The end of our side is sent first. The client then stops sending and closes, as RFC 9112, section
        // 9.6 asks.
        ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        if !this.connection.lingers.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }

        let lingering = this.lingering.get_or_insert_with(|| LingeringClose {
            until: Box::pin(tokio::time::sleep(LINGER)),
            discarded: 0,
        });

        // Both limits are needed: a client can send slowly for ever, or fast without end.
        let mut space = [0; 16 * 1024];
        while lingering.discarded < LINGER_BYTES
            && lingering.until.as_mut().poll(context).is_pending()
        {
            let mut buffer = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
            lingering.discarded += buffer.filled().len();
        }

        Poll::Ready(Ok(()))
    }
}
