//! Connections for reading.
//!
//! A pool of sqlx tests each connection when it is given back: on PostgreSQL another round trip, as much as most reads
//! take. A reader leaves no transaction behind, so its connection is kept beside the pool, and goes through the pool
//! once a minute. Those of SQLite have no pool.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::AnyPool;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::connection::{ConnectionOf, SqlConnection};
use super::sqlite::SqliteFile;
use super::{ACQUIRE_TIMEOUT, SqlDialect};

/// Time that a connection stays outside the pool, which replaces worn ones.
const KEPT: Duration = Duration::from_secs(60);

/// Connections that only read.
#[derive(Clone)]
pub struct ReaderPool {
    source: ReaderSource,
    most: u32,
    /// As many as there are connections: a reader never waits in the pool for a kept one.
    permits: Arc<Semaphore>,
    /// Told when a reader is done.
    returned: Arc<Notify>,
    kept: Arc<Mutex<Vec<KeptConnection>>>,
}

#[derive(Clone)]
enum ReaderSource {
    /// PostgreSQL.
    Pool(AnyPool),
    Sqlite(SqliteFile),
}

struct KeptConnection {
    inner: SqlConnection,
    acquired: Instant,
}

/// Connection for reading.
pub struct ReadConnection {
    /// Present until the drop.
    connection: Option<KeptConnection>,
    /// Where it is kept, and the permit to use it; none if it goes back to its pool.
    home: Option<(ReaderPool, OwnedSemaphorePermit)>,
}

impl ReadConnection {
    /// A connection that goes back to its pool.
    pub fn unkept(inner: SqlConnection) -> Self {
        Self {
            connection: Some(KeptConnection::new(inner)),
            home: None,
        }
    }
}

impl KeptConnection {
    fn new(inner: SqlConnection) -> Self {
        Self {
            inner,
            acquired: Instant::now(),
        }
    }
}

impl ReaderPool {
    /// Returns readers of PostgreSQL.
    pub fn of_pool(pool: AnyPool) -> Self {
        let most = pool.options().get_max_connections();
        Self::new(ReaderSource::Pool(pool), most)
    }

    /// Returns so many readers of a file.
    pub fn of_file(file: SqliteFile, most: u32) -> Self {
        Self::new(ReaderSource::Sqlite(file), most)
    }

    fn new(source: ReaderSource, most: u32) -> Self {
        Self {
            source,
            most,
            permits: Arc::new(Semaphore::new(most as usize)),
            returned: Arc::default(),
            kept: Arc::default(),
        }
    }

    /// Waits for a connection, as long as for one of the pool.
    pub async fn acquire(&self) -> sqlx::Result<ReadConnection> {
        let permit = tokio::time::timeout(ACQUIRE_TIMEOUT, self.permits.clone().acquire_owned());
        let permit = permit.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
        let connection = match self.usable().await {
            Some(kept) => kept,
            None => KeptConnection::new(self.source.connect().await?),
        };

        Ok(ReadConnection {
            connection: Some(connection),
            home: Some((self.clone(), permit)),
        })
    }

    /// Returns a kept connection that works. The pool tests the others again, and closes them.
    async fn usable(&self) -> Option<KeptConnection> {
        loop {
            let mut kept = self.lock().pop()?;
            if kept.inner.ping().await.is_ok() {
                return Some(kept);
            }
        }
    }

    pub async fn close(&self) {
        self.permits.close();
        drop(mem::take(&mut *self.lock()));
        match &self.source {
            ReaderSource::Pool(pool) => pool.close().await,
            ReaderSource::Sqlite(_) => self.all_returned().await,
        }
    }

    async fn all_returned(&self) {
        loop {
            // Registered before the check, so that a return in between is not missed.
            let mut returned = pin!(self.returned.notified());
            returned.as_mut().enable();
            if self.permits.available_permits() == self.most as usize {
                return;
            }
            returned.await;
        }
    }

    /// Returns the file of SQLite.
    pub fn file(&self) -> Option<&SqliteFile> {
        match &self.source {
            ReaderSource::Pool(_) => None,
            ReaderSource::Sqlite(file) => Some(file),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<KeptConnection>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, mut connection: KeptConnection) {
        let is_worn = match self.source {
            ReaderSource::Pool(_) => connection.acquired.elapsed() >= KEPT,
            // A connection to a file does not break.
            ReaderSource::Sqlite(_) => false,
        };
        let mut kept = self.lock();
        // Under the lock: `close` closes the permits before it empties the list.
        if !self.permits.is_closed() && !is_worn && !connection.inner.is_in_transaction() {
            kept.push(connection);
        }
        // Any other goes back to the pool.
    }
}

impl ReaderSource {
    async fn connect(&self) -> sqlx::Result<SqlConnection> {
        let connection = match self {
            Self::Pool(pool) => ConnectionOf::Pool(pool.acquire().await?),
            Self::Sqlite(file) => {
                let connection = file.open(SqlDialect::Sqlite.session_statements())?;
                ConnectionOf::Sqlite(Box::new(connection))
            }
        };
        Ok(SqlConnection(connection))
    }
}

impl Drop for ReadConnection {
    fn drop(&mut self) {
        if let (Some(connection), Some((home, permit))) = (self.connection.take(), self.home.take())
        {
            home.keep(connection);
            drop(permit);
            home.returned.notify_waiters();
        }
    }
}

const PRESENT: &str = "a connection is taken at the drop only";

impl Deref for ReadConnection {
    type Target = SqlConnection;

    #[expect(clippy::expect_used, reason = "present until the drop")]
    fn deref(&self) -> &SqlConnection {
        &self.connection.as_ref().expect(PRESENT).inner
    }
}

impl DerefMut for ReadConnection {
    #[expect(clippy::expect_used, reason = "present until the drop")]
    fn deref_mut(&mut self) -> &mut SqlConnection {
        &mut self.connection.as_mut().expect(PRESENT).inner
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Executor as _;

    use super::*;

    fn readers(folder: &tempfile::TempDir) -> ReaderPool {
        let url = format!("sqlite://{}/test.db?mode=rwc", folder.path().display());
        ReaderPool::of_file(SqliteFile::parse(&url).unwrap(), 2)
    }

    #[tokio::test]
    async fn a_connection_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(&folder);
        for _ in 0..3 {
            drop(readers.acquire().await.expect("a connection"));
        }
        assert_eq!(readers.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_connection_in_a_transaction_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(&folder);
        let mut connection = readers.acquire().await.expect("a connection");
        connection.execute("begin").await.expect("a transaction");
        drop(connection);
        assert!(readers.lock().is_empty());
    }

    #[tokio::test]
    async fn the_readers_close_when_the_last_one_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(&folder);
        drop(readers.acquire().await.expect("a connection"));
        let last = readers.acquire().await.expect("a connection");
        let closed = tokio::spawn({
            let readers = readers.clone();
            async move { readers.close().await }
        });

        tokio::task::yield_now().await;
        assert!(!closed.is_finished());

        drop(last);
        closed.await.expect("closed");
        assert!(readers.lock().is_empty());

        let refused = readers.acquire().await.err();
        assert!(matches!(refused, Some(sqlx::Error::PoolClosed)));
    }
}
