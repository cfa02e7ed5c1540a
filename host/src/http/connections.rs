//! The open connections: what each one is doing, when it has taken too long, and which
//! one is closed when there are too many.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use crate::config::HttpSettings;

/// The beginning of every HTTP/2 connection.
const HTTP2_PREFACE: &[u8] = b"PRI";

/// All open connections.
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    connections: BTreeMap<u64, Arc<Connection>>,
    next: u64,
}

/// Result of asking for room for one more connection.
pub(super) enum Admission {
    /// There is room; another connection may have been closed for it.
    Admitted { entry: Entry, shed: bool },
    /// Every connection has a request in hand.
    Full,
}

/// A connection's place among the open ones; dropping it gives the place back.
pub(super) struct Entry {
    all: Arc<Connections>,
    id: u64,
    pub connection: Arc<Connection>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.lock().connections.remove(&self.id);
    }
}

impl Connections {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            open: Mutex::default(),
        })
    }

    /// Takes a place. When all are taken, the connection that has waited longest for a
    /// request is closed: first among those that never sent a whole one.
    pub fn admit(self: &Arc<Self>) -> Admission {
        let mut open = self.lock();
        let mut shed = false;
        if open.connections.len() >= self.most {
            let waiting = open.connections.iter();
            let waiting = waiting.filter_map(|(id, connection)| Some((connection.rank()?, *id)));
            let Some((_, id)) = waiting.min() else {
                return Admission::Full;
            };
            if let Some(connection) = open.connections.remove(&id) {
                connection.close.cancel();
            }
            shed = true;
        }
        let id = open.next;
        open.next += 1;
        let connection = Arc::new(Connection::new());
        open.connections.insert(id, connection.clone());
        let entry = Entry {
            all: self.clone(),
            id,
            connection,
        };
        Admission::Admitted { entry, shed }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection.
pub(super) struct Connection {
    /// Cancelled when it has to end at once.
    pub close: CancellationToken,
    activity: Mutex<Activity>,
}

struct Activity {
    /// None before the first byte.
    http2: Option<bool>,
    /// Requests in hand: from a complete head to the last piece of the answer.
    requests: usize,
    next_request: u64,
    /// Since when there is no request in hand and nothing was written.
    waiting_since: Instant,
    /// Since when a request's head is awaited or incomplete.
    head_since: Option<Instant>,
    /// How fast the client takes bytes.
    reading: Pace,
    /// Answers of which a piece was handed out and no further one asked for.
    unasked: BTreeMap<u64, Instant>,
}

/// Why a connection is closed by its time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// A head did not arrive in time.
    Head,
    /// No request arrived for a while.
    Idle,
    /// The client does not read its answer.
    Reading,
}

impl Connection {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            close: CancellationToken::new(),
            activity: Mutex::new(Activity {
                http2: None,
                requests: 0,
                next_request: 0,
                waiting_since: now,
                head_since: Some(now),
                reading: Pace::new(),
                unasked: BTreeMap::new(),
            }),
        }
    }

    /// Which limit is exceeded, if any.
    pub fn overdue(&self, settings: &HttpSettings) -> Option<Overdue> {
        let activity = self.lock();
        let patience = settings.write_timeout;
        let mut unasked = activity.unasked.values();
        if activity.reading.is_over(patience) || unasked.any(|since| since.elapsed() > patience) {
            return Some(Overdue::Reading);
        }
        if activity.requests > 0 {
            return None;
        }
        match activity.head_since {
            Some(since) if since.elapsed() > settings.header_timeout => Some(Overdue::Head),
            Some(_) => None,
            None => {
                let idle = activity.waiting_since.elapsed() > settings.idle_timeout;
                idle.then_some(Overdue::Idle)
            }
        }
    }

    /// Whether nothing of a request is lost when the connection is closed now.
    pub fn is_half_open(&self) -> bool {
        let activity = self.lock();
        activity.requests == 0 && activity.head_since.is_some()
    }

    /// Which connection to close first: none of those with a request in hand, then those
    /// without a whole head, then the longest idle.
    fn rank(&self) -> Option<(bool, Instant)> {
        let activity = self.lock();
        (activity.requests == 0).then(|| match activity.head_since {
            Some(since) => (false, since),
            None => (true, activity.waiting_since),
        })
    }

    /// Notes that a request's head is complete. Dropping the result ends the request.
    pub fn begin(self: &Arc<Self>) -> InHand {
        let mut activity = self.lock();
        activity.requests += 1;
        activity.head_since = None;
        activity.next_request += 1;
        InHand {
            request: activity.next_request,
            connection: self.clone(),
        }
    }

    fn received(&self, bytes: &[u8]) {
        let mut activity = self.lock();
        let http2 = *activity
            .http2
            .get_or_insert_with(|| bytes.starts_with(HTTP2_PREFACE));
        // What arrives between requests of HTTP/2 need not be a head.
        if activity.requests == 0 && activity.head_since.is_none() && !http2 {
            activity.head_since = Some(Instant::now());
        }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        let mut activity = self.lock();
        match written {
            Poll::Pending => {
                activity.reading.wait();
            }
            Poll::Ready(written) => {
                activity.reading.moved(*written.as_ref().unwrap_or(&0));
                if activity.requests == 0 {
                    activity.waiting_since = Instant::now();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in hand.
pub(super) struct InHand {
    connection: Arc<Connection>,
    request: u64,
}

impl InHand {
    /// Notes that the next piece of the answer is wanted.
    pub fn asked(&self) {
        self.connection.lock().unasked.remove(&self.request);
    }

    /// Notes that a piece of the answer was handed out.
    pub fn handed_out(&self) {
        let mut activity = self.connection.lock();
        activity.unasked.insert(self.request, Instant::now());
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut activity = self.connection.lock();
        activity.unasked.remove(&self.request);
        activity.requests -= 1;
        if activity.requests == 0 {
            activity.waiting_since = Instant::now();
        }
    }
}

/// A socket that keeps its connection's activity up to date.
pub(super) struct Watched {
    pub stream: TcpStream,
    pub connection: Arc<Connection>,
}

impl AsyncRead for Watched {
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

impl AsyncWrite for Watched {
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
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
