//! Connections for reading.
//!
//! A pool of sqlx tests each connection when it is given back. On SQLite that is another change to the connection's
//! thread and back, on PostgreSQL another round trip: as much as most reads take. A reader leaves no transaction
//! behind, so its connection is kept beside the pool, and goes through the pool once a minute.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ACQUIRE_TIMEOUT;

/// Time that a connection stays outside the pool, which replaces worn ones.
const KEPT: Duration = Duration::from_secs(60);

/// Connections of one pool that only read.
#[derive(Clone)]
pub struct ReaderPool {
    pool: AnyPool,
    /// As many as the pool has connections: a reader never waits in the pool for a kept one.
    permits: Arc<Semaphore>,
    kept: Arc<Mutex<Vec<KeptConnection>>>,
    /// Whether a connection can break while it is kept.
    tested: bool,
}

struct KeptConnection {
    inner: PoolConnection<Any>,
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
    pub fn unkept(inner: PoolConnection<Any>) -> Self {
        Self {
            connection: Some(KeptConnection::new(inner)),
            home: None,
        }
    }
}

impl KeptConnection {
    fn new(inner: PoolConnection<Any>) -> Self {
        Self {
            inner,
            acquired: Instant::now(),
        }
    }
}

impl ReaderPool {
    pub fn new(pool: AnyPool, tested: bool) -> Self {
        let most = pool.options().get_max_connections();
        Self {
            permits: Arc::new(Semaphore::new(most as usize)),
            pool,
            kept: Arc::default(),
            tested,
        }
    }

    /// Waits for a connection, as long as for one of the pool.
    pub async fn acquire(&self) -> sqlx::Result<ReadConnection> {
        let permit = tokio::time::timeout(ACQUIRE_TIMEOUT, self.permits.clone().acquire_owned());
        let permit = permit.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let permit = permit.map_err(|_| sqlx::Error::PoolClosed)?;
        let connection = match self.usable().await {
            Some(kept) => kept,
            None => KeptConnection::new(self.pool.acquire().await?),
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
            if !self.tested || kept.inner.ping().await.is_ok() {
                return Some(kept);
            }
        }
    }

    pub async fn close(&self) {
        self.permits.close();
        drop(mem::take(&mut *self.lock()));
        self.pool.close().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<KeptConnection>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, connection: KeptConnection) {
        let mut kept = self.lock();
        // Under the lock: `close` closes the permits before it empties the list.
        if !self.permits.is_closed()
            && connection.acquired.elapsed() < KEPT
            && !connection.inner.is_in_transaction()
        {
            kept.push(connection);
        }
        // Any other goes back to the pool.
    }
}

impl Drop for ReadConnection {
    fn drop(&mut self) {
        if let (Some(connection), Some((home, _))) = (self.connection.take(), &self.home) {
            home.keep(connection);
        }
    }
}

const PRESENT: &str = "a connection is taken at the drop only";

impl Deref for ReadConnection {
    type Target = AnyConnection;

    #[expect(clippy::expect_used, reason = "present until the drop")]
    fn deref(&self) -> &AnyConnection {
        &self.connection.as_ref().expect(PRESENT).inner
    }
}

impl DerefMut for ReadConnection {
    #[expect(clippy::expect_used, reason = "present until the drop")]
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.connection.as_mut().expect(PRESENT).inner
    }
}

#[cfg(test)]
mod tests {
    use sqlx::any::AnyPoolOptions;

    use super::*;

    async fn readers() -> ReaderPool {
        sqlx::any::install_default_drivers();
        let pool = AnyPoolOptions::new().max_connections(2);
        let pool = pool.connect("sqlite::memory:").await;
        ReaderPool::new(pool.expect("a database in memory"), true)
    }

    #[tokio::test]
    async fn a_connection_is_kept_beside_the_pool() {
        let readers = readers().await;
        for _ in 0..3 {
            drop(readers.acquire().await.expect("a connection"));
        }
        assert_eq!((readers.pool.size(), readers.pool.num_idle()), (1, 0));
        assert_eq!(readers.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_connection_in_a_transaction_is_not_kept() {
        let readers = readers().await;
        let mut connection = readers.acquire().await.expect("a connection");
        let begun = connection.begin().await.expect("a transaction");
        mem::forget(begun);
        drop(connection);
        assert!(readers.lock().is_empty());
    }

    #[tokio::test]
    async fn the_pool_closes_when_the_last_reader_is_done() {
        let readers = readers().await;
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
        assert_eq!(readers.pool.size(), 0);

        let refused = readers.acquire().await.err();
        assert!(matches!(refused, Some(sqlx::Error::PoolClosed)));
    }
}
