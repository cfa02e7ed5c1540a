//! Every line of SQL, one file per aggregate.
//!
//! One text serves SQLite and PostgreSQL. Functions take a connection, which a
//! transaction is too: `envelopes::get(&mut tx, &org, &id)`. Every function on
//! tenant data names the organization.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Executor as _, Transaction};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::disk;
use crate::domain::clock::Timestamp;
use crate::domain::id::OrgId;
use crate::domain::priority::Priority;

mod claims;
mod dialect;
mod migrate;
mod page;
pub mod row;
mod turns;
mod wakeups;

pub mod api_keys;
pub mod bulk;
pub mod chores;
pub mod components;
pub mod customers;
pub mod decisions;
pub mod deliveries;
pub mod downloads;
pub mod envelopes;
pub mod events;
pub mod idempotency;
pub mod integrity;
pub mod jobs;
pub mod kba;
pub mod ledger;
pub mod log;
pub mod objects;
pub mod organizations;
pub mod packages;
pub mod payments;
pub mod provider_poll;
pub mod rate_windows;
pub mod room;
pub mod sandbox;
pub mod sealed;
pub mod shadows;
pub mod signers;
pub mod templates;
pub mod tokens;
pub mod vault;
pub mod webhooks;

pub use dialect::Dialect;
use turns::{Turn, Turns};
pub use wakeups::run as share_wakeups;
use webhooks::OwnedEndpoint;

/// Something the database did not do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database refused or could not be reached.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// A row does not hold what its table promises.
    #[error("inconsistent database: {table} {id}: {why}")]
    Inconsistent {
        table: &'static str,
        id: String,
        why: String,
    },
    /// Somebody else changed the row first.
    #[error("changed by somebody else in the meantime")]
    Conflict,
    /// A migration that was applied before reads differently now.
    #[error("migration {0} was changed after it had been applied")]
    ChangedMigration(i64),
}

impl StoreError {
    /// A unique key was already taken.
    pub fn is_unique_violation(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => error.is_unique_violation(),
            _ => false,
        }
    }

    /// The database undid the transaction because of another, and asks for it once more:
    /// class 40 of PostgreSQL's appendix A (a deadlock; a conflict where an engine of its
    /// kind isolates transactions by more than reading what is committed).
    pub fn is_rolled_back(&self) -> bool {
        self.class().as_deref() == Some("40")
    }

    /// The database could not be reached, or does not serve: it may well, soon. Its own
    /// codes are classes 08, 57 and 53 of PostgreSQL's appendix A.
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

    /// The database has no room left on its disk.
    pub fn is_full(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return false;
        };
        // SQLite extends its codes in higher bits: SQLITE_FULL is 13 in the lowest eight.
        let code = error.code().unwrap_or_default();
        code == POSTGRES_DISK_FULL
            || (code.len() < 5
                && code
                    .parse()
                    .is_ok_and(|code: u32| code & 0xff == SQLITE_FULL))
    }

    /// The same may well succeed soon.
    pub(crate) fn is_outage(&self) -> bool {
        self.is_unreachable() || self.is_rolled_back()
    }

    /// The first two characters of an SQLSTATE; SQLite's codes are numbers.
    fn class(&self) -> Option<String> {
        let Self::Database(sqlx::Error::Database(error)) = self else {
            return None;
        };
        let code = error.code().filter(|code| code.len() == 5)?;
        code.get(..2).map(str::to_owned)
    }
}

/// Connections of PostgreSQL that write for work that nobody waits for.
const BATCH_WRITERS: usize = 4;

/// `disk_full` of PostgreSQL's appendix A.
const POSTGRES_DISK_FULL: &str = "53100";
const SQLITE_FULL: u32 = 13;

/// How long a connection is waited for.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// How old a connection to a server may be when somebody uses it once more: its memory
/// there, and what its name once stood for, are looked at anew in time.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(1800);

/// The database.
#[derive(Clone)]
pub struct Store {
    readers: AnyPool,
    /// SQLite has one writer; for PostgreSQL this is the same pool.
    writers: AnyPool,
    /// For what must not wait behind requests: a few connections of their own on
    /// PostgreSQL, the next turn on SQLite.
    urgent: AnyPool,
    dialect: Dialect,
    /// Where there is one writer.
    turns: Option<Turns>,
    /// Where there are several: how many are for work that nobody waits for.
    batch: Arc<Semaphore>,
    /// Of the transactions that are begun with this.
    priority: Priority,
    work: Arc<Notify>,
    fresh: Arc<Fresh>,
    /// For who listens beside the pools.
    url: Arc<str>,
    wakeups: wakeups::Wakeups,
}

/// Endpoints for which deliveries were committed, or whose settings were changed.
type FreshEndpoints = BTreeMap<OwnedEndpoint, Touch>;

/// What was committed about an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Touch {
    /// Its settings, too.
    pub changed: bool,
    /// By this process, which may be the first to know of it.
    pub here: bool,
}

#[derive(Default)]
struct Fresh {
    endpoints: Mutex<FreshEndpoints>,
    added: Notify,
}

impl Store {
    /// Connects; does not migrate.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of(url);
        let url: Arc<str> = dialect.connect_url(url).into();
        let options = AnyConnectOptions::from_str(&url)?;
        let pool = |connections: u32| {
            AnyPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                // sqlx's own keeper of idle connections can count below zero and then
                // never rests (transact-rs/sqlx#3645): connections end when given back.
                .idle_timeout(None)
                .max_lifetime(None)
                .after_release(move |_, about| {
                    let worn = dialect == Dialect::Postgres && about.age > CONNECTION_LIFETIME;
                    Box::pin(async move { Ok(!worn) })
                })
                // A connection to a file does not break while it is idle.
                .test_before_acquire(dialect == Dialect::Postgres)
                // One whose commit failed believes to be in a transaction for ever.
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
        };
        let (readers, writers, urgent) = match dialect {
            Dialect::Sqlite => {
                let writers = pool(1).connect_with(options.clone()).await?;
                let readers = pool(8).connect_with(options).await?;
                (readers, writers.clone(), writers)
            }
            Dialect::Postgres => {
                let shared = pool(16).connect_with(options.clone()).await?;
                let urgent = pool(4).connect_with(options).await?;
                (shared.clone(), shared, urgent)
            }
        };
        Ok(Self {
            readers,
            writers,
            urgent,
            dialect,
            turns: (dialect == Dialect::Sqlite).then(Turns::default),
            batch: Arc::new(Semaphore::new(BATCH_WRITERS)),
            priority: Priority::Request,
            work: Arc::new(Notify::new()),
            fresh: Arc::default(),
            url,
            wakeups: wakeups::Wakeups::default(),
        })
    }

    /// Brings the schema up to date. Safe when several nodes start at once.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate::run(self).await
    }

    /// A connection for reading.
    pub async fn read(&self) -> Result<sqlx::pool::PoolConnection<Any>, StoreError> {
        Ok(self.readers.acquire().await?)
    }

    /// Asks the database a question that has an answer when its tables are there.
    pub async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.read().await?;
        sqlx::query("select org_id from organization limit 1")
            .fetch_optional(&mut *connection)
            .await?;
        Ok(())
    }

    /// The database's own time (PostgreSQL only).
    pub async fn time(&self) -> Result<Timestamp, StoreError> {
        let mut connection = self.read_urgently().await?;
        let text = "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";
        let millis = sqlx::query_scalar(text).fetch_one(&mut *connection).await?;
        Ok(Timestamp::from_millis(millis))
    }

    /// Writes the database as it is now into a new file, while others go on (SQLite only).
    pub async fn snapshot_into(&self, file: &Path) -> Result<(), StoreError> {
        let mut connection = self.read().await?;
        sqlx::query("vacuum into $1")
            .bind(file.display().to_string())
            .execute(&mut *connection)
            .await?;
        Ok(())
    }

    /// The same database, for work of another priority.
    pub fn at(&self, priority: Priority) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// Of the work that this is for.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// A transaction that may write.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        self.begin_in(&self.writers, self.priority).await
    }

    /// A connection for reading, whatever else is being asked for.
    pub async fn read_urgently(&self) -> Result<sqlx::pool::PoolConnection<Any>, StoreError> {
        let pool = match self.dialect {
            Dialect::Sqlite => &self.readers,
            Dialect::Postgres => &self.urgent,
        };
        Ok(pool.acquire().await?)
    }

    /// As [`Store::begin`], before everybody else who waits.
    pub async fn begin_urgently(&self) -> Result<Tx, StoreError> {
        self.begin_in(&self.urgent, Priority::Urgent).await
    }

    /// As [`Store::begin`], beside requests where there are connections for it, and
    /// in turn with them where there is one writer.
    pub async fn begin_apart(&self) -> Result<Tx, StoreError> {
        self.begin_in(&self.urgent, Priority::Request).await
    }

    async fn begin_in(&self, pool: &AnyPool, priority: Priority) -> Result<Tx, StoreError> {
        let batch = match (&self.turns, priority) {
            (None, Priority::Batch) => self.batch.clone().acquire_owned().await.ok(),
            _ => None,
        };
        let turn = match &self.turns {
            None => None,
            Some(turns) => {
                let turn = tokio::time::timeout(ACQUIRE_TIMEOUT, turns.wait(priority));
                Some(turn.await.map_err(|_| sqlx::Error::PoolTimedOut)?)
            }
        };
        let inner = pool.begin_with(self.dialect.begin_write()).await?;
        Ok(Tx {
            inner,
            dialect: self.dialect,
            work: self.work.clone(),
            added_jobs: false,
            committed: self.fresh.clone(),
            wakeups: self.wakeups.clone(),
            fresh: BTreeMap::new(),
            _turn: turn,
            _batch: batch,
        })
    }

    /// Resolves when a committed transaction added jobs: of this process, or of another
    /// that said so ([`share_wakeups`]).
    pub async fn work_added(&self) {
        self.work.notified().await;
    }

    /// Waits until a committed transaction had to do with webhook endpoints, and returns
    /// those.
    pub async fn fresh_endpoints(&self) -> FreshEndpoints {
        loop {
            let added = self.fresh.added.notified();
            let fresh = std::mem::take(&mut *self.fresh.lock());
            if !fresh.is_empty() {
                return fresh;
            }
            added.await;
        }
    }

    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Lets open connections finish and closes.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writers.close().await;
        self.urgent.close().await;
    }
}

/// A write transaction. Dropping it without [`Tx::commit`] rolls it back.
pub struct Tx {
    inner: Transaction<'static, Any>,
    dialect: Dialect,
    work: Arc<Notify>,
    added_jobs: bool,
    committed: Arc<Fresh>,
    wakeups: wakeups::Wakeups,
    /// Those that this touches, and whether it changes their settings.
    fresh: BTreeMap<OwnedEndpoint, bool>,
    /// Handed on once the connection is given back.
    _turn: Option<Turn>,
    _batch: Option<OwnedSemaphorePermit>,
}

impl Fresh {
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

impl Tx {
    /// Makes the changes durable and wakes the worker when there is work.
    pub async fn commit(self) -> Result<(), StoreError> {
        if let Err(error) = self.inner.commit().await {
            abort_on_io_error(self.dialect, &error);
            return Err(error.into());
        }
        if self.added_jobs {
            self.work.notify_one();
        }
        if self.dialect == Dialect::Postgres && (self.added_jobs || !self.fresh.is_empty()) {
            self.wakeups.tell(self.added_jobs, &self.fresh);
        }
        if !self.fresh.is_empty() {
            self.committed.add(self.fresh, true);
        }
        Ok(())
    }

    /// Tells the dispatcher of an endpoint, once this is committed: that there is a
    /// delivery for it, or that its settings have `changed`.
    fn touch(&mut self, endpoint: OwnedEndpoint, changed: bool) {
        *self.fresh.entry(endpoint).or_default() |= changed;
    }
}

/// Where an owner's rows are: bucket and `org_id`. None is the installation.
fn owned(org: Option<&OrgId>) -> (i64, &str) {
    org.map_or((0, ""), |org| (org.bucket(), org.as_str()))
}

/// SQLite could not bring a commit to the disk.
fn abort_on_io_error(dialect: Dialect, error: &sqlx::Error) {
    const SQLITE_IOERR: u32 = 10;
    let code = match error {
        sqlx::Error::Database(error) if dialect == Dialect::Sqlite => error.code(),
        _ => None,
    };
    let code = code.and_then(|code| code.parse::<u32>().ok());
    if code.is_some_and(|code| code & 0xff == SQLITE_IOERR) {
        disk::failed("the database", error);
    }
}

impl Deref for Tx {
    type Target = AnyConnection;

    fn deref(&self) -> &AnyConnection {
        &self.inner
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }
}
