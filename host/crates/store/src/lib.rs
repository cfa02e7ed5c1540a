//! All SQL of the service, one file per aggregate.
//!
//! The same SQL serves SQLite and PostgreSQL. Functions take a
//! connection, which a transaction dereferences to: `envelopes::get(&mut
//! tx, &org, &id)`. Every function on tenant data names the organization.
//!
//! - [`Store`] is the handle: [`Store::connect`], then [`Store::migrate`]. It carries the priority of its work
//!   ([`Store::at`]).
//! - [`Store::read`] returns a connection for reading, [`Store::begin`] a [`WriteTransaction`]. Both dereference to
//!   [`SqlConnection`]. A transaction that is dropped is rolled back.
//! - [`WriteTransaction::commit`] adds ledger leaves, events, deliveries and counts of envelopes at its end
//!   (`outbox.rs`, `counts.rs`), and then wakes workers and dispatchers, on other nodes by `NOTIFY` (`wakeups.rs`).
//! - SQLite has one writer, for which transactions queue by priority (`turns.rs`), and runs on the caller's thread
//!   (`sqlite.rs`). PostgreSQL has pools. [`SqlDialect`] names the differences.
//! - Due rows are claimed with a lease and an epoch, one bucket at a time (`claims.rs`).
//! - A type that is read from a table names its columns once (`row.rs`). Statements have `{columns}` in their place.
//!
//! Statements on tenant data name the bucket; `tests/it/layers.rs` lists the exceptions. A new table needs
//! a migration in `migrations/` and a line in `migrate.rs`; released migrations never change.

#![allow(missing_docs, reason = "functions are named by their statement")]

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::any::{Any, AnyArguments, AnyConnectOptions, AnyPoolOptions};
use sqlx::query::Query;
use sqlx::{Connection as _, Executor as _, Row as _};
use sqlx_core::any::AnyValueKind;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use holdfast_domain::clock::Timestamp;
use holdfast_domain::id::OrgId;
use holdfast_domain::priority::PriorityClass;

mod claims;
mod connection;
mod dialect;
mod migrate;
mod outbox;
mod page;
mod readers;
pub mod row;
mod sqlite;
mod statement;
mod turns;
mod wakeups;
mod writers;

pub mod access_codes;
pub mod activity;
pub mod api_keys;
pub mod bulk;
pub mod chores;
pub mod component_changes;
pub mod component_state;
pub mod components;
pub mod contract_facts;
pub mod control;
pub mod control_statements;
pub mod counts;
pub mod customers;
pub mod decision_blocks;
pub mod decisions;
pub mod deliveries;
pub mod destructions;
pub mod disclosures;
pub mod disputes;
pub mod downloads;
pub mod drawings;
pub mod envelopes;
pub mod erasures;
pub mod event_feed;
pub mod events;
pub mod fact_maps;
pub mod fingerprints;
pub mod funding;
pub mod funding_packs;
pub mod glances;
pub mod idempotency;
pub mod imports;
pub mod installation;
pub mod instance_log;
pub mod integrity;
pub mod jobs;
pub mod kba;
pub mod ledger;
pub mod legal_holds;
pub mod log;
pub mod log_witnesses;
pub mod moves;
pub mod objects;
pub mod open_links;
pub mod organizations;
pub mod packages;
pub mod page_facts;
pub mod party_invitations;
pub mod party_keys;
pub mod passkeys;
pub mod payments;
pub mod provider_poll;
pub mod questions;
pub mod rate_windows;
pub mod record_rows;
pub mod request_log;
pub mod retention;
pub mod room;
pub mod sandbox;
pub mod saved_filters;
pub mod seal_states;
pub mod sealed;
pub mod sealed_records;
pub mod search;
pub mod shadows;
pub mod signers;
pub mod similarity;
pub mod tapes;
pub mod template_versions;
pub mod templates;
pub mod test_mode;
pub mod tokens;
pub mod transfers;
pub mod users;
pub mod vault;
pub mod views;
pub mod webhooks;

use connection::ConnectionOf;
pub use connection::SqlConnection;
use counts::CountChanges;
pub use dialect::SqlDialect;
pub use migrate::SchemaState;
use outbox::OutboxRows;
pub use readers::ReadConnection;
use readers::ReaderPool;
use sqlite::SqliteFile;
use turns::{WriterQueue, WriterTurn};
pub use wakeups::run as share_wakeups;
use webhooks::OwnedEndpoint;
use writers::{OpenTransaction, SqliteWriter, WriterPool};

/// Error of the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database returned an error or could not be reached.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A row violates the expectations of its table.
    #[error("inconsistent database: {table} {id}: {why}")]
    Inconsistent {
        table: &'static str,
        id: String,
        why: String,
    },
    /// Another writer changed the row first.
    #[error("changed by somebody else in the meantime")]
    Conflict,
    /// The record is being destroyed, or is destroyed.
    #[error("The record was destroyed; its ledger and its certificate of destruction are left")]
    Destroyed,
    /// The change passed its checks and was rolled back, as [`Store::rehearsing`] promises.
    #[error("only rehearsed")]
    Rehearsed,
    /// A migration's text differs from when it was applied.
    #[error("migration {0} was changed after it had been applied")]
    ChangedMigration(i64),
}

impl StoreError {
    /// Returns whether a unique key was taken already.
    pub fn is_unique_violation(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => error.is_unique_violation(),
            _ => false,
        }
    }

    /// Returns whether the database rolled the transaction back because of a concurrent one, so
    /// that it must be retried: class 40 of PostgreSQL's appendix A (a deadlock, or a serialization
    /// failure on PostgreSQL-like databases with stricter isolation), and on SQLite an error of a
    /// writer that shared the transaction.
    pub fn is_rolled_back(&self) -> bool {
        let is_shared = match self {
            Self::Database(sqlx::Error::Database(error)) => {
                error.code().as_deref() == Some(sqlite::SHARED_ROLLBACK)
            }
            _ => false,
        };
        is_shared || self.class().as_deref() == Some("40")
    }

    /// Returns whether the database was unreachable or unavailable, so that a retry may succeed.
    /// Includes classes 08, 53 and 57 of PostgreSQL's appendix A.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Database(
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::Protocol(_),
            ) => true,
            _ => matches!(self.class().as_deref(), Some("08" | "53" | "57")),
        }
    }

    /// Returns whether the database's disk is full.
    pub fn is_full(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return false;
        };

        // SQLite's extended codes use the higher bits: SQLITE_FULL is 13 in the lowest eight.
        let code = error.code().unwrap_or_default();
        code == POSTGRES_DISK_FULL
            || (code.len() < 5
                && code
                    .parse()
                    .is_ok_and(|code: u32| code & 0xff == SQLITE_FULL))
    }

    /// Returns whether a retry may succeed.
    pub fn is_outage(&self) -> bool {
        self.is_unreachable() || self.is_rolled_back()
    }

    /// Returns the class of an SQLSTATE, its first two characters; none for SQLite's numeric codes.
    fn class(&self) -> Option<String> {
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return None;
        };
        let code = error.code().filter(|code| code.len() == 5)?;
        code.get(..2).map(str::to_owned)
    }
}

/// Number of connections that read.
const READERS: u32 = 8;

/// Number of connections for look-ups of unknown credentials.
pub const STRANGERS: u32 = 2;

/// Maximum number of PostgreSQL connections that write for batch work.
const BATCH_WRITERS: usize = 4;

/// `disk_full` of PostgreSQL's appendix A.
const POSTGRES_DISK_FULL: &str = "53100";
const SQLITE_FULL: u32 = 13;

/// Time to wait for a connection.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum age of a connection to a database server. Renewing connections frees the server's memory
/// and follows changes of its DNS name.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(1800);

/// Handle to the database; cheap to clone.
#[derive(Clone)]
pub struct Store {
    readers: ReaderPool,
    /// Connections for look-ups of credentials that this node does not know, so that guesses never
    /// take those of known callers.
    strangers: ReaderPool,
    writers: WriterPool,
    /// Connections for work that must not wait behind requests: a separate pool on PostgreSQL, the
    /// writer on SQLite, where urgent work takes the next turn.
    urgent: WriterPool,
    dialect: SqlDialect,
    /// Queue for the single writer (SQLite only).
    turns: Option<WriterQueue>,
    /// Limits the connections for batch work (PostgreSQL only).
    batch: Arc<Semaphore>,
    /// Priority of the transactions begun with this handle.
    priority: PriorityClass,
    work: Arc<Notify>,
    fresh: Arc<FreshEndpointSet>,
    /// URL for the connection that listens for notifications, outside the pools.
    url: Arc<str>,
    wakeups: wakeups::WakeupChannel,
    /// Number of commits.
    commits: Arc<AtomicU64>,
    /// Whether transactions begun with this handle are rolled back instead of committed.
    rehearses: bool,
}

/// Endpoints with newly committed deliveries or settings.
type FreshEndpoints = BTreeMap<OwnedEndpoint, EndpointTouch>;

/// Commit that concerns an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointTouch {
    /// Whether its settings changed.
    pub changed: bool,
    /// Whether this process made the commit, so that other nodes may not know of it yet.
    pub here: bool,
}

#[derive(Default)]
struct FreshEndpointSet {
    endpoints: Mutex<FreshEndpoints>,
    added: Notify,
}

/// Options of a pool of connections to PostgreSQL.
fn server_pool(connections: u32) -> AnyPoolOptions {
    let dialect = SqlDialect::Postgres;
    AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // sqlx's reaper of idle connections can count below zero and then spins
        // (transact-rs/sqlx#3645), so connections expire when they are released instead.
        .idle_timeout(None)
        .max_lifetime(None)
        .after_release(|_, about| {
            let is_worn = about.age > CONNECTION_LIFETIME;
            Box::pin(async move { Ok(!is_worn) })
        })
        .test_before_acquire(true)
        // After a failed commit, a connection counts as being in a transaction forever.
        .before_acquire(|connection, _| {
            let usable = !connection.is_in_transaction();
            Box::pin(async move { Ok(usable) })
        })
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for statement in dialect.session_statements() {
                    connection.execute(*statement).await?;
                }
                Ok(())
            })
        })
}

impl Store {
    /// Connects, without migrating.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let dialect = SqlDialect::of(url);
        let url: Arc<str> = dialect.connect_url(url).into();
        let mut turns = None;
        let (readers, strangers, writers, urgent) = match dialect {
            SqlDialect::Sqlite => {
                let file = SqliteFile::parse(&url)?;
                let readers = ReaderPool::of_file(file.clone(), READERS);
                // Opens the file now: a damaged one has to be named at the start.
                drop(readers.acquire().await?);
                let strangers = ReaderPool::of_file(file.clone(), STRANGERS);
                let writer = Arc::new(SqliteWriter::new(file));
                turns = Some(WriterQueue::of(writer.clone()));
                let writers = WriterPool::Sqlite(writer);
                (readers, strangers, writers.clone(), writers)
            }
            SqlDialect::Postgres => {
                sqlx::any::install_default_drivers();
                let options = AnyConnectOptions::from_str(&url)?;
                let readers = server_pool(READERS).connect_with(options.clone()).await?;
                let strangers = server_pool(STRANGERS).connect_lazy_with(options.clone());
                let writers = server_pool(12).connect_with(options.clone()).await?;
                let urgent = server_pool(4).connect_with(options).await?;
                (
                    ReaderPool::of_pool(readers),
                    ReaderPool::of_pool(strangers),
                    WriterPool::Pool(writers),
                    WriterPool::Pool(urgent),
                )
            }
        };

        Ok(Self {
            readers,
            strangers,
            writers,
            urgent,
            dialect,
            turns,
            batch: Arc::new(Semaphore::new(BATCH_WRITERS)),
            priority: PriorityClass::Request,
            work: Arc::new(Notify::new()),
            fresh: Arc::default(),
            url,
            wakeups: wakeups::WakeupChannel::default(),
            commits: Arc::default(),
            rehearses: false,
        })
    }

    /// Brings the schema up to date. Several nodes may call this at once.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate::run(self).await
    }

    /// Compares the schema with that of this program, and changes nothing.
    pub async fn schema(&self) -> Result<SchemaState, StoreError> {
        migrate::state(self).await
    }

    /// Returns a connection for reading.
    pub async fn read(&self) -> Result<ReadConnection, StoreError> {
        Ok(self.readers.acquire().await?)
    }

    /// Checks that the database answers and has its tables.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.read().await?;
        sqlx::query("select org_id from organization limit 1")
            .fetch_optional(&mut *connection)
            .await?;
        Ok(())
    }

    /// Returns the database server's time (PostgreSQL only).
    pub async fn time(&self) -> Result<Timestamp, StoreError> {
        let mut connection = self.read_urgently().await?;
        let text = "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";
        let millis = sqlx::query_scalar(text).fetch_one(&mut *connection).await?;
        Ok(Timestamp::from_millis(millis))
    }

    /// Writes a consistent snapshot of the running database to a new file (SQLite only).
    pub async fn snapshot_into(&self, file: &Path) -> Result<(), StoreError> {
        let Some(database) = self.readers.file().cloned() else {
            let why = "only SQLite has snapshots of its own";
            return Err(sqlx::Error::Configuration(why.into()).into());
        };
        // On a thread of its own: it takes minutes, and its caller has other work beside it in the same task.
        let to = file.display().to_string();
        let copied = tokio::task::spawn_blocking(move || {
            let mut connection = database.open(SqlDialect::Sqlite.session_statements())?;
            let to = vec![AnyValueKind::Text(Arc::new(to))];
            connection.run("vacuum into $1", Some(to), 1)
        });
        match copied.await {
            Ok(copied) => copied?,
            Err(_) => return Err(sqlx::Error::WorkerCrashed.into()),
        };
        Ok(())
    }

    /// Moves all committed changes from the write-ahead log into the file and empties the log, so that deleted values are in
    /// neither. Returns false if a reader still needs the log. PostgreSQL removes deleted rows by itself, with `vacuum`.
    pub async fn empty_write_ahead_log(&self) -> Result<bool, StoreError> {
        let Some(database) = self.readers.file().cloned() else {
            return Ok(true);
        };
        // On a thread of its own: it waits for readers.
        let emptied = tokio::task::spawn_blocking(move || {
            let mut connection = database.open(SqlDialect::Sqlite.session_statements())?;
            connection.run("pragma wal_checkpoint(truncate)", Some(Vec::new()), 1)
        });
        let answer = match emptied.await {
            Ok(emptied) => emptied?,
            Err(_) => return Err(sqlx::Error::WorkerCrashed.into()),
        };

        let busy: i64 = match answer.rows.first() {
            Some(row) => row.try_get(0)?,
            None => 1,
        };
        Ok(busy == 0)
    }

    /// Returns a handle to the same database with another priority.
    pub fn at(&self, priority: PriorityClass) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// Returns a handle that rolls back each transaction at its commit, with [`StoreError::Rehearsed`]:
    /// it runs all checks of a change, and keeps nothing of it.
    pub fn rehearsing(&self) -> Self {
        Self {
            rehearses: true,
            ..self.clone()
        }
    }

    /// Returns the handle that commits, for records about a rehearsal itself.
    pub fn committing(&self) -> Self {
        Self {
            rehearses: false,
            ..self.clone()
        }
    }

    /// Returns a handle that reads with the connections for unknown credentials.
    pub fn for_strangers(&self) -> Self {
        Self {
            readers: self.strangers.clone(),
            ..self.clone()
        }
    }

    /// Returns whether nothing is committed with this handle.
    pub fn rehearses(&self) -> bool {
        self.rehearses
    }

    /// Returns the priority of this handle.
    pub fn priority(&self) -> PriorityClass {
        self.priority
    }

    /// Begins a write transaction.
    pub async fn begin(&self) -> Result<WriteTransaction, StoreError> {
        self.begin_in(&self.writers, self.priority).await
    }

    /// Returns a connection for reading, even if requests use up the others.
    pub async fn read_urgently(&self) -> Result<ReadConnection, StoreError> {
        // SQLite readers never wait for requests that write, so its readers are good enough.
        Ok(match &self.urgent {
            WriterPool::Sqlite(_) => self.readers.acquire().await?,
            WriterPool::Pool(pool) => {
                let connection = ConnectionOf::Pool(pool.acquire().await?);
                ReadConnection::unkept(SqlConnection(connection))
            }
        })
    }

    /// Like [`Store::begin`], ahead of all other waiting writers.
    pub async fn begin_urgently(&self) -> Result<WriteTransaction, StoreError> {
        self.begin_in(&self.urgent, PriorityClass::Urgent).await
    }

    /// Like [`Store::begin`], with connections separate from those of requests on PostgreSQL, and
    /// in the same queue as requests on SQLite.
    pub async fn begin_apart(&self) -> Result<WriteTransaction, StoreError> {
        self.begin_in(&self.urgent, PriorityClass::Request).await
    }

    async fn begin_in(
        &self,
        pool: &WriterPool,
        priority: PriorityClass,
    ) -> Result<WriteTransaction, StoreError> {
        // Batch work leaves most of the writing connections to requests.
        let batch = match (&self.turns, priority) {
            (None, PriorityClass::Batch) => self.batch.clone().acquire_owned().await.ok(),
            _ => None,
        };
        let turn = match &self.turns {
            None => None,
            Some(turns) => {
                // The same limit as for a pooled connection,
                // so that callers see one kind of timeout.
                let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, turns.wait(priority));
                Some(turn.await.map_err(|_| sqlx::Error::PoolTimedOut)?)
            }
        };

        // The turn comes first: waiting writers must queue by priority, not in the pool.
        let inner = pool.begin().await?;
        Ok(WriteTransaction {
            inner,
            dialect: self.dialect,
            work: self.work.clone(),
            added_jobs: false,
            committed: self.fresh.clone(),
            wakeups: self.wakeups.clone(),
            commits: self.commits.clone(),
            rehearses: self.rehearses,
            fresh: BTreeMap::new(),
            counts: CountChanges::new(),
            outbox: Box::default(),
            turn,
            _batch: batch,
        })
    }

    /// Runs a statement at startup of the database's only node (SQLite), which ends the work of the earlier run.
    async fn end_earlier_run(
        &self,
        statement: Query<'_, Any, AnyArguments>,
    ) -> Result<(), StoreError> {
        // On PostgreSQL, other nodes may be at work, so their leases have to run out.
        if self.dialect != SqlDialect::Sqlite {
            return Ok(());
        }

        let mut tx = self.begin().await?;
        statement.execute(&mut *tx).await?;
        tx.commit().await
    }

    /// Resolves when a committed transaction has added jobs, in this process or in another one that
    /// announced it ([`share_wakeups`]).
    pub async fn work_added(&self) {
        self.work.notified().await;
    }

    /// Waits for commits that concern webhook endpoints, and returns these endpoints.
    pub async fn fresh_endpoints(&self) -> FreshEndpoints {
        loop {
            // Register before checking, so that a commit in between is not missed.
            let added = self.fresh.added.notified();
            let fresh = std::mem::take(&mut *self.fresh.lock());
            if !fresh.is_empty() {
                return fresh;
            }

            added.await;
        }
    }

    /// Returns the number of commits that this process has made.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Returns the database engine.
    pub fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    /// Waits for open connections to finish and closes the pools.
    pub async fn close(&self) {
        self.readers.close().await;
        self.strangers.close().await;
        // The writer of a file is done when it passes its turn on.
        let _turn = match &self.turns {
            Some(turns) => Some(turns.wait(PriorityClass::Urgent).await),
            None => None,
        };
        self.writers.close().await;
        self.urgent.close().await;
    }
}

/// Write transaction; dropping it without [`WriteTransaction::commit`] rolls it back.
pub struct WriteTransaction {
    inner: OpenTransaction,
    dialect: SqlDialect,
    work: Arc<Notify>,
    added_jobs: bool,
    committed: Arc<FreshEndpointSet>,
    wakeups: wakeups::WakeupChannel,
    commits: Arc<AtomicU64>,
    rehearses: bool,
    /// Endpoints concerned, and whether their settings change.
    fresh: BTreeMap<OwnedEndpoint, bool>,
    /// Numbers of envelopes that change with the commit.
    counts: CountChanges,
    /// Rows that the commit adds.
    outbox: Box<OutboxRows>,
    /// Dropped after the connection, so that the next writer finds the connection free.
    turn: Option<WriterTurn>,
    _batch: Option<OwnedSemaphorePermit>,
}

impl FreshEndpointSet {
    fn lock(&self) -> std::sync::MutexGuard<'_, FreshEndpoints> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, endpoints: impl IntoIterator<Item = (OwnedEndpoint, bool)>, here: bool) {
        let mut known = self.lock();
        for (endpoint, changed) in endpoints {
            let touch = known.entry(endpoint).or_default();
            touch.changed |= changed;
            touch.here |= here;
        }
        drop(known);
        self.added.notify_one();
    }
}

impl WriteTransaction {
    /// Commits, then wakes the workers and dispatchers concerned.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        let (outbox, counts) = (
            std::mem::take(&mut self.outbox),
            std::mem::take(&mut self.counts),
        );

        // Boxed, as every larger future holds a commit.
        Box::pin(async {
            outbox.add(&mut self).await?;
            counts::apply(&mut self, &counts).await
        })
        .await?;

        if self.rehearses {
            self.inner.rollback().await?;
            return Err(StoreError::Rehearsed);
        }
        let told = Committed {
            work: self.added_jobs.then(|| self.work.clone()),
            endpoints: (self.committed.clone(), std::mem::take(&mut self.fresh)),
            wakeups: (self.dialect == SqlDialect::Postgres).then(|| self.wakeups.clone()),
            commits: self.commits.clone(),
        };
        self.inner.commit(self.turn.take(), told).await?;

        Ok(())
    }

    /// Marks an endpoint as concerned: when this commits, its dispatcher is woken for a new
    /// delivery or for `changed` settings.
    fn touch(&mut self, endpoint: OwnedEndpoint, changed: bool) {
        *self.fresh.entry(endpoint).or_default() |= changed;
    }
}

/// Returns bucket and `org_id` of an owner's rows; `None` is the installation.
fn owned(org: Option<&OrgId>) -> (i64, &str) {
    org.map_or((0, ""), |org| (org.bucket(), org.as_str()))
}

/// Effects of a commit: it wakes the workers and dispatchers concerned.
#[derive(Default)]
struct Committed {
    /// Woken by added jobs.
    work: Option<Arc<Notify>>,
    /// Endpoints concerned, and whether their settings change.
    endpoints: (Arc<FreshEndpointSet>, BTreeMap<OwnedEndpoint, bool>),
    /// Wakes other nodes (PostgreSQL).
    wakeups: Option<wakeups::WakeupChannel>,
    commits: Arc<AtomicU64>,
}

impl Committed {
    /// Only after the commit: others would not see the rows before.
    fn tell(self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if let Some(work) = &self.work {
            work.notify_one();
        }

        let (set, fresh) = self.endpoints;
        if let Some(wakeups) = &self.wakeups
            && (self.work.is_some() || !fresh.is_empty())
        {
            wakeups.tell(self.work.is_some(), &fresh);
        }
        if !fresh.is_empty() {
            set.add(fresh, true);
        }
    }
}

impl Deref for WriteTransaction {
    type Target = SqlConnection;

    fn deref(&self) -> &SqlConnection {
        &self.inner
    }
}

impl DerefMut for WriteTransaction {
    fn deref_mut(&mut self) -> &mut SqlConnection {
        &mut self.inner
    }
}
