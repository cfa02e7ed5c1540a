//! Connections for writing, and their transactions.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::AnyPool;

use super::SqlDialect;
use super::connection::{ConnectionOf, SqlConnection};
use super::sqlite::{BUSY, SqliteConnection, SqliteFile};

/// Time between two tries to write while another process does.
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// Connections that write.
#[derive(Clone)]
pub(super) enum WriterPool {
    /// PostgreSQL.
    Pool(AnyPool),
    /// The single writer of a file. Who writes has the turn.
    Sqlite(Arc<SqliteWriter>),
}

pub(super) struct SqliteWriter {
    file: SqliteFile,
    kept: Mutex<Option<Box<SqliteConnection>>>,
    is_closed: AtomicBool,
}

impl SqliteWriter {
    pub fn new(file: SqliteFile) -> Self {
        Self {
            file,
            kept: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Box<SqliteConnection>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> sqlx::Result<Box<SqliteConnection>> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(sqlx::Error::PoolClosed);
        }
        if let Some(kept) = self.kept().take() {
            return Ok(kept);
        }
        let opened = self.file.open(SqlDialect::Sqlite.session_statements())?;
        Ok(Box::new(opened))
    }

    /// Takes a connection back, unless its transaction cannot be ended.
    fn keep(&self, mut connection: Box<SqliteConnection>) {
        if let Err(error) = connection.rollback() {
            tracing::warn!(%error, "a transaction could not be rolled back, its connection is closed");
            return;
        }
        if !self.is_closed.load(Ordering::Relaxed) {
            *self.kept() = Some(connection);
        }
    }
}

impl WriterPool {
    /// Begins a transaction.
    pub async fn begin(&self) -> sqlx::Result<OpenTransaction> {
        let (connection, home) = match self {
            Self::Pool(pool) => {
                let begun = pool.begin_with(SqlDialect::Postgres.begin_write()).await?;
                (ConnectionOf::Transaction(begun), None)
            }
            Self::Sqlite(writer) => {
                let connection = ConnectionOf::Sqlite(writer.connection()?);
                (connection, Some(writer.clone()))
            }
        };

        // From here on, a connection of SQLite goes back also if this is cancelled.
        let mut opened = OpenTransaction {
            connection: Some(SqlConnection(connection)),
            home,
        };
        let begun = Instant::now();
        while !opened.is_begun()? {
            if begun.elapsed() > BUSY {
                return Err(sqlx::Error::PoolTimedOut);
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        Ok(opened)
    }

    pub async fn close(&self) {
        match self {
            Self::Pool(pool) => pool.close().await,
            Self::Sqlite(writer) => {
                writer.is_closed.store(true, Ordering::Relaxed);
                drop(writer.kept().take());
            }
        }
    }
}

/// A transaction; dropping it without [`OpenTransaction::commit`] rolls it back.
pub(super) struct OpenTransaction {
    /// Present until the end.
    connection: Option<SqlConnection>,
    /// Where a connection of SQLite goes back to.
    home: Option<Arc<SqliteWriter>>,
}

impl OpenTransaction {
    /// Begins on SQLite, unless another process writes. Writers of this process take turns.
    fn is_begun(&mut self) -> sqlx::Result<bool> {
        match &mut self.connection {
            Some(SqlConnection(ConnectionOf::Sqlite(connection))) => {
                connection.begin(SqlDialect::Sqlite.begin_write())
            }
            _ => Ok(true),
        }
    }

    pub async fn commit(mut self) -> sqlx::Result<()> {
        match self.connection.take() {
            Some(SqlConnection(ConnectionOf::Transaction(transaction))) => {
                transaction.commit().await
            }
            Some(SqlConnection(ConnectionOf::Sqlite(mut connection))) => {
                let committed = connection.commit();
                self.give_back(connection);
                committed
            }
            _ => Ok(()),
        }
    }

    pub async fn rollback(mut self) -> sqlx::Result<()> {
        match self.connection.take() {
            Some(SqlConnection(ConnectionOf::Transaction(transaction))) => {
                transaction.rollback().await
            }
            other => {
                // Goes back at the drop.
                self.connection = other;
                Ok(())
            }
        }
    }

    fn give_back(&self, connection: Box<SqliteConnection>) {
        if let Some(home) = &self.home {
            home.keep(connection);
        }
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        // sqlx rolls a transaction of PostgreSQL back by itself.
        if let Some(SqlConnection(ConnectionOf::Sqlite(connection))) = self.connection.take() {
            self.give_back(connection);
        }
    }
}

const PRESENT: &str = "a transaction has a connection until its end";

impl Deref for OpenTransaction {
    type Target = SqlConnection;

    #[expect(clippy::expect_used, reason = "present until the end")]
    fn deref(&self) -> &SqlConnection {
        self.connection.as_ref().expect(PRESENT)
    }
}

impl DerefMut for OpenTransaction {
    #[expect(clippy::expect_used, reason = "present until the end")]
    fn deref_mut(&mut self) -> &mut SqlConnection {
        self.connection.as_mut().expect(PRESENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(folder: &tempfile::TempDir) -> WriterPool {
        let url = format!("sqlite://{}/test.db?mode=rwc", folder.path().display());
        let file = SqliteFile::parse(&url).unwrap();
        WriterPool::Sqlite(Arc::new(SqliteWriter::new(file)))
    }

    /// The wait for the operator's tool holds up nothing else, not even in the same task.
    #[tokio::test]
    async fn a_writer_waits_for_another_process_beside_other_work() {
        let folder = tempfile::tempdir().unwrap();
        let (server, tool) = (writer(&folder), writer(&folder));
        let held = tool.begin().await.unwrap();
        let release = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(held);
        };

        let (begun, ()) = tokio::join!(server.begin(), release);
        begun.unwrap().commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_transaction_that_is_dropped_leaves_nothing_and_gives_its_connection_back() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(&folder);
        let mut kept = writer.begin().await.unwrap();
        let create = "create table item (id integer primary key)";
        sqlx::query(create).execute(&mut *kept).await.unwrap();
        kept.commit().await.unwrap();

        let mut dropped = writer.begin().await.unwrap();
        let insert = "insert into item (id) values (1)";
        sqlx::query(insert).execute(&mut *dropped).await.unwrap();
        drop(dropped);

        let mut after = writer.begin().await.unwrap();
        let count = sqlx::query_scalar("select count(*) from item");
        let count: i64 = count.fetch_one(&mut *after).await.unwrap();
        assert_eq!(count, 0);
        after.rollback().await.unwrap();

        writer.close().await;
        let refused = writer.begin().await.err();
        assert!(matches!(refused, Some(sqlx::Error::PoolClosed)));
    }
}
