//! Connections for writing, and their transactions.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::AnyPool;
use tokio::sync::oneshot;

use super::connection::{ConnectionOf, SqlConnection};
use super::sqlite::{BUSY, SqliteConnection, SqliteFailure, SqliteFile};
use super::turns::WriterTurn;
use super::{Committed, SqlDialect};
use holdfast_base::disk;

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

/// The connection that writes to a file, and who waits for its commit. Only the writer with the turn uses it.
///
/// Each writer after the first has a part of the open transaction, a savepoint, which is undone by itself. A writer
/// is notified after the commit that is durable for all of them; until then no reader sees its changes.
///
/// This cannot lock up: a writer with the turn may wait for something that another holds until notified only if
/// that was taken inside its transaction, and inside a transaction nothing is taken that outlasts it.
pub(super) struct SqliteWriter {
    file: SqliteFile,
    kept: Mutex<KeptConnection>,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct KeptConnection {
    connection: Option<Box<SqliteConnection>>,
    /// Writers with finished parts of the open transaction.
    waiting: Vec<WaitingWriter>,
}

struct WaitingWriter {
    tell: oneshot::Sender<Result<(), SqliteFailure>>,
    /// Here and not with the writer, which is dropped if its client goes away.
    then: Committed,
}

impl KeptConnection {
    fn tell(&mut self, committed: &Result<(), SqliteFailure>) {
        for waiting in self.waiting.drain(..) {
            if committed.is_ok() {
                waiting.then.tell();
            }
            // Who does not wait any more has gone without an answer.
            drop(waiting.tell.send(committed.clone()));
        }
    }
}

impl SqliteWriter {
    pub fn new(file: SqliteFile) -> Self {
        Self {
            file,
            kept: Mutex::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    fn kept(&self) -> MutexGuard<'_, KeptConnection> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of writers that wait for the commit of the open transaction.
    pub fn sharing(&self) -> usize {
        self.kept().waiting.len()
    }

    fn connection(&self) -> sqlx::Result<Box<SqliteConnection>> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(sqlx::Error::PoolClosed);
        }
        if let Some(kept) = self.kept().connection.take() {
            return Ok(kept);
        }
        let opened = self.file.open(SqlDialect::Sqlite.session_statements())?;
        Ok(Box::new(opened))
    }

    /// Takes a connection back with a finished part; the commit notifies its writer.
    fn share(
        &self,
        connection: Box<SqliteConnection>,
        then: Committed,
    ) -> oneshot::Receiver<Result<(), SqliteFailure>> {
        let (tell, told) = oneshot::channel();
        let mut kept = self.kept();
        kept.connection = Some(connection);
        kept.waiting.push(WaitingWriter { tell, then });
        told
    }

    /// Commits what writers left open and notifies them.
    pub fn commit_shared(&self) {
        let mut kept = self.kept();
        if kept.waiting.is_empty() {
            return;
        }

        let committed = match kept.connection.as_mut() {
            Some(connection) => connection.commit(),
            None => Err(SqliteFailure::of_shared_rollback()),
        };
        if let Err(failure) = &committed {
            // Whether the commit is durable is unknown now; the restart reads the actual state.
            if failure.is_of_the_disk() {
                disk::failed("the database", failure);
            }
            Self::roll_back(&mut kept.connection);
        }
        kept.tell(&committed);
    }

    /// Takes a connection back from an unfinished writer: its part is undone.
    fn undo(&self, mut connection: Box<SqliteConnection>, is_part: bool) {
        let mut kept = self.kept();
        if is_part && connection.rollback_part().is_ok() {
            kept.connection = Some(connection);
            return;
        }

        // SQLite ends the whole transaction by itself after some errors, such as a full disk.
        let mut connection = Some(connection);
        Self::roll_back(&mut connection);
        kept.tell(&Err(SqliteFailure::of_shared_rollback()));
        if !self.is_closed.load(Ordering::Relaxed) {
            kept.connection = connection;
        }
    }

    /// Ends the transaction of a connection. Closes the connection if that fails.
    fn roll_back(connection: &mut Option<Box<SqliteConnection>>) {
        if let Some(Err(error)) = connection.as_mut().map(|connection| connection.rollback()) {
            tracing::warn!(%error, "a transaction could not be rolled back, its connection is closed");
            *connection = None;
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
            is_part: false,
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
                writer.commit_shared();
                writer.is_closed.store(true, Ordering::Relaxed);
                drop(writer.kept().connection.take());
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
    /// Whether another writer began the transaction, and waits for its commit.
    is_part: bool,
}

impl OpenTransaction {
    /// Begins on SQLite, unless another process writes. Writers of this process take turns.
    fn is_begun(&mut self) -> sqlx::Result<bool> {
        match (&mut self.connection, &self.home) {
            (Some(SqlConnection(ConnectionOf::Sqlite(connection))), Some(home)) => {
                if home.sharing() == 0 {
                    return connection.begin(SqlDialect::Sqlite.begin_write());
                }
                connection.begin_part()?;
                self.is_part = true;
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// Commits. On SQLite, passes the turn on first: the next writer may share the commit.
    pub async fn commit(mut self, turn: Option<WriterTurn>, then: Committed) -> sqlx::Result<()> {
        match (self.connection.take(), &self.home) {
            (Some(SqlConnection(ConnectionOf::Transaction(transaction))), _) => {
                transaction.commit().await?;
                then.tell();
                Ok(())
            }
            (Some(SqlConnection(ConnectionOf::Sqlite(mut connection))), Some(home)) => {
                if self.is_part
                    && let Err(error) = connection.end_part()
                {
                    home.undo(connection, true);
                    return Err(error);
                }

                let told = home.share(connection, then);
                match turn {
                    Some(turn) => drop(turn),
                    None => home.commit_shared(),
                }
                let committed = told.await.map_err(|_| sqlx::Error::WorkerCrashed)?;
                Ok(committed?)
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
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        // sqlx rolls a transaction of PostgreSQL back by itself.
        if let Some(SqlConnection(ConnectionOf::Sqlite(connection))) = self.connection.take()
            && let Some(home) = &self.home
        {
            home.undo(connection, self.is_part);
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
    use holdfast_domain::priority::PriorityClass::{Request, Urgent};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::turns::WriterQueue;

    fn file(folder: &tempfile::TempDir) -> SqliteFile {
        let url = format!("sqlite://{}/test.db?mode=rwc", folder.path().display());
        SqliteFile::parse(&url).unwrap()
    }

    fn writer(folder: &tempfile::TempDir) -> WriterPool {
        WriterPool::Sqlite(Arc::new(SqliteWriter::new(file(folder))))
    }

    /// A file with a table, its writer, and the queue for it.
    async fn shared(folder: &tempfile::TempDir) -> (WriterPool, WriterQueue) {
        let writer = Arc::new(SqliteWriter::new(file(folder)));
        let turns = WriterQueue::of(writer.clone());
        let writer = WriterPool::Sqlite(writer);

        let mut begun = writer.begin().await.unwrap();
        let create = "create table item (id integer primary key, \
            of integer references item deferrable initially deferred)";
        sqlx::query(create).execute(&mut *begun).await.unwrap();
        begun.commit(None, Committed::default()).await.unwrap();
        (writer, turns)
    }

    async fn insert(transaction: &mut OpenTransaction, id: i64, of: Option<i64>) {
        let insert = sqlx::query("insert into item (id, of) values ($1, $2)");
        let insert = insert.bind(id).bind(of).execute(&mut **transaction);
        insert.await.unwrap();
    }

    /// Returns what another connection sees.
    async fn items(folder: &tempfile::TempDir) -> i64 {
        let connection = file(folder).open(&[]).unwrap();
        let mut connection = SqlConnection(ConnectionOf::Sqlite(Box::new(connection)));
        let count = sqlx::query_scalar("select count(*) from item");
        count.fetch_one(&mut connection).await.unwrap()
    }

    /// Lets a first writer insert and commit while a second one waits. Returns the result of the first, which is
    /// open, and the transaction of the second with its turn.
    async fn two_writers(
        (writer, turns): &(WriterPool, WriterQueue),
        of: Option<i64>,
    ) -> (
        JoinHandle<sqlx::Result<()>>,
        OpenTransaction,
        Option<WriterTurn>,
    ) {
        let turn = turns.wait(Request).await;
        let mut first = writer.begin().await.unwrap();
        insert(&mut first, 1, of).await;

        let next = tokio::spawn({
            let turns = turns.clone();
            async move { turns.wait(Request).await }
        });
        tokio::task::yield_now().await;
        let first = tokio::spawn(first.commit(Some(turn), Committed::default()));
        let turn = next.await.unwrap();
        let second = writer.begin().await.unwrap();
        (first, second, Some(turn))
    }

    #[tokio::test]
    async fn writers_that_wait_share_a_commit() {
        let folder = tempfile::tempdir().unwrap();
        let (first, mut second, turn) = two_writers(&shared(&folder).await, None).await;
        insert(&mut second, 2, None).await;
        assert_eq!(items(&folder).await, 0);
        assert!(!first.is_finished(), "told before the commit");

        second.commit(turn, Committed::default()).await.unwrap();
        first.await.unwrap().unwrap();
        assert_eq!(items(&folder).await, 2);
    }

    #[tokio::test]
    async fn urgent_work_does_not_wait_for_further_writers() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, turns) = shared(&folder).await;
        let turn = turns.wait(Urgent).await;
        let mut urgent = writer.begin().await.unwrap();
        insert(&mut urgent, 1, None).await;

        let waits = turns.wait(Request);
        let mut waits = std::pin::pin!(waits);
        assert!(futures::poll!(&mut waits).is_pending());
        urgent
            .commit(Some(turn), Committed::default())
            .await
            .unwrap();
        assert_eq!(items(&folder).await, 1);
        drop(waits.await);
    }

    #[tokio::test]
    async fn a_part_that_is_dropped_leaves_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let (first, mut second, turn) = two_writers(&shared(&folder).await, None).await;
        insert(&mut second, 2, None).await;

        drop(second);
        drop(turn);
        first.await.unwrap().unwrap();
        assert_eq!(items(&folder).await, 1);
    }

    #[tokio::test]
    async fn a_writer_that_gives_up_its_turn_commits_what_others_left() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, turns) = shared(&folder).await;
        let turn = turns.wait(Request).await;
        let mut first = writer.begin().await.unwrap();
        insert(&mut first, 1, None).await;

        let waits = turns.wait(Request);
        let gives_up = async {
            assert!(futures::poll!(std::pin::pin!(waits)).is_pending());
        };
        gives_up.await;
        first
            .commit(Some(turn), Committed::default())
            .await
            .unwrap();
        assert_eq!(items(&folder).await, 1);
    }

    /// The commit finds that an item refers to one that does not exist.
    #[tokio::test]
    async fn a_commit_that_fails_is_told_to_all_who_share_it() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared(&folder).await;
        let (first, mut second, turn) = two_writers(&shared, Some(99)).await;
        insert(&mut second, 2, None).await;

        assert!(second.commit(turn, Committed::default()).await.is_err());
        assert!(first.await.unwrap().is_err());
        assert_eq!(items(&folder).await, 0);

        let mut after = shared.0.begin().await.unwrap();
        insert(&mut after, 3, None).await;
        after.commit(None, Committed::default()).await.unwrap();
        assert_eq!(items(&folder).await, 1);
    }

    #[tokio::test]
    async fn writers_in_a_queue_share_commits() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, turns) = shared(&folder).await;
        let turn = turns.wait(Request).await;

        let mut tasks = Vec::new();
        for id in 0..12 {
            let (writer, turns) = (writer.clone(), turns.clone());
            tasks.push(tokio::spawn(async move {
                let turn = turns.wait(Request).await;
                let mut transaction = writer.begin().await.unwrap();
                insert(&mut transaction, id, None).await;
                transaction.commit(Some(turn), Committed::default()).await
            }));
            tokio::task::yield_now().await;
        }
        drop(turn);
        let mut seen = Vec::new();
        for task in tasks {
            task.await.unwrap().unwrap();
            seen.push(items(&folder).await);
        }
        assert!(seen[0] >= 8, "{seen:?}");
        assert_eq!(seen[11], 12);
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
        begun
            .unwrap()
            .commit(None, Committed::default())
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn a_transaction_that_is_dropped_leaves_nothing_and_gives_its_connection_back() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(&folder);
        let mut kept = writer.begin().await.unwrap();
        let create = "create table item (id integer primary key)";
        sqlx::query(create).execute(&mut *kept).await.unwrap();
        kept.commit(None, Committed::default()).await.unwrap();

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
