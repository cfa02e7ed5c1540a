//! SQLite on the caller's thread.
//!
//! A driver with a thread for each connection changes threads twice for every statement, which costs more than most
//! statements do. Here a statement runs where it is awaited: reads and writes of a contract take microseconds. What
//! took long before (a search, a commit on a slow disk), or never ran, first makes the runtime move its other tasks to
//! another thread.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Batch, Connection, OpenFlags, Statement, StatementStatus};
use sqlx::any::{AnyQueryResult, AnyRow, AnyTypeInfo, AnyTypeInfoKind, AnyValue};
use sqlx::error::{BoxDynError, DatabaseError, ErrorKind};
use sqlx_core::any::{AnyColumn, AnyValueKind};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Time from which a statement is not run between the tasks of an asynchronous thread.
const LONG: Duration = Duration::from_millis(1);

/// Time to wait for another process that writes, such as the operator's tool.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// Number of prepared statements and of their facts that a connection keeps.
const STATEMENTS: usize = 256;

/// Time from which a statement is reported.
const SLOW: Duration = Duration::from_secs(1);

/// Code of SQLite, `SQLITE_ABORT_ROLLBACK`, of a part that was undone with that of another writer.
pub(super) const SHARED_ROLLBACK: &str = "516";

/// Number of statements whose times are known. Texts with numbers in them are unlimited.
const TIMED: usize = 4_096;

/// Where the database is, and how it is opened.
#[derive(Clone, Debug)]
pub(super) struct SqliteFile {
    path: PathBuf,
    flags: OpenFlags,
    times: Arc<StatementTimes>,
}

/// Times that statements take, known to all connections of a file.
#[derive(Debug, Default)]
struct StatementTimes(Mutex<HashMap<String, Arc<AtomicU64>>>);

impl StatementTimes {
    /// Returns the time of a statement in nanoseconds; [`UNKNOWN`] before it ran.
    fn of(&self, sql: &str) -> Arc<AtomicU64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = known.get(sql) {
            return time.clone();
        }
        if known.len() >= TIMED {
            known.clear();
        }
        let time = Arc::new(AtomicU64::new(UNKNOWN));
        known.insert(sql.to_owned(), time.clone());
        time
    }
}

/// Time of what never ran.
const UNKNOWN: u64 = u64::MAX;

impl SqliteFile {
    /// Parses `sqlite:PATH` and `sqlite://PATH`, with `?mode=ro`, `rw` or `rwc`.
    ///
    /// # Errors
    /// [`sqlx::Error::Configuration`] for any other option, and for a database without a file, which every connection
    /// would have for itself.
    pub fn parse(url: &str) -> sqlx::Result<Self> {
        let refused = |why: String| sqlx::Error::Configuration(why.into());
        let rest = url.strip_prefix("sqlite:");
        let rest = rest.ok_or_else(|| refused(format!("{url} is no address of SQLite")))?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));

        let mut mode = OpenFlags::SQLITE_OPEN_READ_WRITE;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            mode = match option {
                "mode=ro" => OpenFlags::SQLITE_OPEN_READ_ONLY,
                "mode=rw" => OpenFlags::SQLITE_OPEN_READ_WRITE,
                "mode=rwc" => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
                _ => return Err(refused(format!("unknown option of SQLite: {option}"))),
            };
        }

        let path = percent_decode_str(path).decode_utf8();
        let path = path.map_err(|error| refused(error.to_string()))?;
        if path.is_empty() || path.starts_with(':') {
            return Err(refused(format!("{url} names no file")));
        }
        Ok(Self {
            path: PathBuf::from(path.as_ref()),
            // One thread uses a connection at a time.
            flags: mode | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            times: Arc::default(),
        })
    }

    /// Opens a connection, with the statements that each connection begins with.
    pub fn open(&self, beginning: &[&str]) -> sqlx::Result<SqliteConnection> {
        let connection = Connection::open_with_flags(&self.path, self.flags).map_err(failure)?;
        connection.busy_timeout(BUSY).map_err(failure)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        for statement in beginning {
            connection.execute_batch(statement).map_err(failure)?;
        }

        Ok(SqliteConnection {
            connection: Mutex::new(connection),
            statements: HashMap::new(),
            times: self.times.clone(),
            commit: AtomicU64::new(UNKNOWN),
        })
    }
}

/// A connection to a SQLite file.
pub(super) struct SqliteConnection {
    /// Never locked: futures share references to what holds a connection.
    connection: Mutex<Connection>,
    statements: HashMap<String, StatementFacts>,
    times: Arc<StatementTimes>,
    /// Time that commits take.
    commit: AtomicU64,
}

impl fmt::Debug for SqliteConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SqliteConnection")
            .finish_non_exhaustive()
    }
}

/// What is known about a statement that ran before.
struct StatementFacts {
    /// Position of the argument for each parameter.
    arguments: Vec<usize>,
    columns: Vec<AnyColumn>,
    /// An empty row with the names of the columns.
    row: AnyRow,
    /// How often SQLite has prepared it again.
    prepared: i32,
    time: Arc<AtomicU64>,
}

/// Rows of a statement, and its effect.
pub(super) struct SqliteAnswer {
    pub rows: Vec<AnyRow>,
    pub result: AnyQueryResult,
}

impl SqliteConnection {
    /// Runs a statement, or without arguments a script. Returns at most so many rows, at least one.
    pub fn run(
        &mut self,
        sql: &str,
        arguments: Option<Vec<AnyValueKind>>,
        most: usize,
    ) -> sqlx::Result<SqliteAnswer> {
        let Some(arguments) = arguments else {
            let connection = unlocked(&mut self.connection);
            return timed(sql, &AtomicU64::new(UNKNOWN), || script(connection, sql));
        };

        let known = self.statements.get(sql).map(|facts| facts.time.clone());
        let time = known.unwrap_or_else(|| self.times.of(sql));
        timed(sql, &time.clone(), || {
            self.run_here(sql, &arguments, most, time)
        })
    }

    fn run_here(
        &mut self,
        sql: &str,
        arguments: &[AnyValueKind],
        most: usize,
        time: Arc<AtomicU64>,
    ) -> sqlx::Result<SqliteAnswer> {
        let connection = unlocked(&mut self.connection);
        let mut statement = connection.prepare_cached(sql).map_err(failure)?;

        if !self.statements.contains_key(sql) {
            if self.statements.len() >= STATEMENTS {
                self.statements.clear();
            }
            let facts = StatementFacts::of(&statement, time)?;
            self.statements.insert(sql.to_owned(), facts);
        }
        #[expect(clippy::expect_used, reason = "inserted above")]
        let facts = self.statements.get_mut(sql).expect("facts of a statement");

        for (index, argument) in facts.arguments.iter().enumerate() {
            let value = arguments.get(*argument).ok_or_else(|| {
                let why = format!("parameter {} of a statement has no value", argument + 1);
                sqlx::Error::Encode(why.into())
            })?;
            statement
                .raw_bind_parameter(index + 1, BoundValue(value))
                .map_err(failure)?;
        }

        let is_change = !statement.readonly();
        let rows = rows(&mut statement, facts, most)?;
        drop(statement);

        let rows_affected = if is_change { connection.changes() } else { 0 };
        Ok(SqliteAnswer {
            rows,
            result: AnyQueryResult {
                rows_affected,
                last_insert_id: None,
            },
        })
    }

    /// Begins a transaction that writes. Returns false while another process writes.
    pub fn begin(&mut self, statement: &str) -> sqlx::Result<bool> {
        let connection = unlocked(&mut self.connection);
        connection.busy_timeout(Duration::ZERO).map_err(failure)?;
        let begun = connection.execute_batch(statement);
        connection.busy_timeout(BUSY).map_err(failure)?;

        match begun {
            Err(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::DatabaseBusy =>
            {
                Ok(false)
            }
            begun => begun.map(|()| true).map_err(failure),
        }
    }

    pub fn commit(&mut self) -> Result<(), SqliteFailure> {
        let connection = unlocked(&mut self.connection);
        let committed = timed("commit", &self.commit, || {
            connection.execute_batch("commit")
        });
        committed.map_err(|error| SqliteFailure::of(&error))
    }

    /// Begins one writer's part of a transaction that several share.
    pub fn begin_part(&mut self) -> sqlx::Result<()> {
        self.run_cached("savepoint part")
    }

    pub fn end_part(&mut self) -> sqlx::Result<()> {
        self.run_cached("release part")
    }

    /// Undoes the part that began last, and nothing before it.
    pub fn rollback_part(&mut self) -> sqlx::Result<()> {
        self.run_cached("rollback to part")?;
        self.end_part()
    }

    fn run_cached(&mut self, sql: &str) -> sqlx::Result<()> {
        let connection = unlocked(&mut self.connection);
        let mut statement = connection.prepare_cached(sql).map_err(failure)?;
        statement.execute([]).map_err(failure)?;
        Ok(())
    }

    pub fn rollback(&mut self) -> sqlx::Result<()> {
        let connection = unlocked(&mut self.connection);
        // SQLite ends a transaction by itself after some errors, such as a full disk.
        if connection.is_autocommit() {
            return Ok(());
        }
        connection.execute_batch("rollback").map_err(failure)
    }

    pub fn is_in_transaction(&mut self) -> bool {
        !unlocked(&mut self.connection).is_autocommit()
    }
}

fn unlocked(connection: &mut Mutex<Connection>) -> &mut Connection {
    connection.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a statement, in the way that its time before asks for, and notes its time.
fn timed<T>(sql: &str, time: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let before = Duration::from_nanos(time.load(Ordering::Relaxed));
    let begun = Instant::now();
    let done = if before >= LONG {
        off_the_tasks(work)
    } else {
        work()
    };

    let took = begun.elapsed();
    if took >= SLOW {
        tracing::warn!(sql, ?took, "slow statement");
    }

    // Rises at once and falls slowly, because a statement takes longer for some organizations than for others.
    let is_unknown = before == Duration::from_nanos(UNKNOWN);
    let expected = if is_unknown {
        took
    } else {
        took.max(before - before / 8)
    };
    let expected = u64::try_from(expected.as_nanos()).unwrap_or(UNKNOWN - 1);
    time.store(expected, Ordering::Relaxed);
    done
}

/// Runs what may block: the runtime first moves the other tasks of this thread. Outside a runtime of several threads
/// there are none that could move.
fn off_the_tasks<T>(work: impl FnOnce() -> T) -> T {
    let can_move = |handle: Handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(can_move) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Runs the statements of a script, and returns the rows of all.
fn script(connection: &Connection, sql: &str) -> sqlx::Result<SqliteAnswer> {
    let mut answer = SqliteAnswer {
        rows: Vec::new(),
        result: AnyQueryResult::default(),
    };
    let mut batch = Batch::new(connection, sql);
    while let Some(mut statement) = batch.next().map_err(failure)? {
        let mut facts = StatementFacts::of(&statement, Arc::default())?;
        answer
            .rows
            .extend(rows(&mut statement, &mut facts, usize::MAX)?);
        if !statement.readonly() {
            answer.result.rows_affected += connection.changes();
        }
    }

    Ok(answer)
}

fn rows(
    statement: &mut Statement<'_>,
    facts: &mut StatementFacts,
    most: usize,
) -> sqlx::Result<Vec<AnyRow>> {
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failure)? {
        // SQLite prepares a statement again after a change of the schema, and `select *` then has other columns.
        let prepared = row.as_ref().get_status(StatementStatus::RePrepare);
        let is_other =
            prepared != facts.prepared || row.as_ref().column_count() != facts.columns.len();
        if found.is_empty() && is_other {
            facts.prepared = prepared;
            facts.name_columns(row.as_ref());
        }

        let mut copied = AnyRow {
            columns: facts.columns.clone(),
            values: Vec::with_capacity(facts.columns.len()),
            ..facts.row.clone()
        };
        for column in 0..facts.columns.len() {
            let kind = value(row.get_ref(column).map_err(failure)?)?;
            copied.values.push(AnyValue { kind });
        }
        found.push(copied);
        if found.len() >= most {
            break;
        }
    }

    Ok(found)
}

fn value(value: ValueRef<'_>) -> sqlx::Result<AnyValueKind> {
    Ok(match value {
        ValueRef::Null => AnyValueKind::Null(AnyTypeInfoKind::Null),
        ValueRef::Integer(number) => AnyValueKind::BigInt(number),
        ValueRef::Real(number) => AnyValueKind::Double(number),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text);
            let text = text.map_err(|error| sqlx::Error::Decode(error.into()))?;
            AnyValueKind::Text(Arc::new(text.to_owned()))
        }
        ValueRef::Blob(bytes) => AnyValueKind::Blob(Arc::new(bytes.to_vec())),
    })
}

impl StatementFacts {
    fn of(statement: &Statement<'_>, time: Arc<AtomicU64>) -> sqlx::Result<Self> {
        let mut arguments = Vec::with_capacity(statement.parameter_count());
        for index in 1..=statement.parameter_count() {
            // Our statements number their parameters as PostgreSQL does, `$1`. SQLite takes that for a name.
            let number = statement
                .parameter_name(index)
                .map(|name| name[1..].parse::<usize>());
            let number = number
                .transpose()
                .map_err(|error| sqlx::Error::Decode(error.into()))?;
            let place = number.unwrap_or(index).checked_sub(1);
            let place = place.ok_or_else(|| sqlx::Error::Encode("parameters begin at $1".into()));
            arguments.push(place?);
        }

        let mut facts = Self {
            arguments,
            columns: Vec::new(),
            row: AnyRow {
                column_names: Arc::default(),
                columns: Vec::new(),
                values: Vec::new(),
            },
            prepared: statement.get_status(StatementStatus::RePrepare),
            time,
        };
        facts.name_columns(statement);
        Ok(facts)
    }

    fn name_columns(&mut self, statement: &Statement<'_>) {
        let names = statement.column_names().into_iter().enumerate();
        self.columns = names
            .map(|(ordinal, name)| AnyColumn {
                ordinal,
                name: name.to_owned().into(),
                // The type is that of each value.
                type_info: AnyTypeInfo {
                    kind: AnyTypeInfoKind::Null,
                },
            })
            .collect();

        let columns = self.columns.iter();
        let names = columns.map(|column| (column.name.clone(), column.ordinal));
        self.row.column_names = Arc::new(names.collect());
    }
}

struct BoundValue<'a>(&'a AnyValueKind);

impl ToSql for BoundValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            AnyValueKind::Null(_) => ValueRef::Null,
            AnyValueKind::Bool(is) => ValueRef::Integer((*is).into()),
            AnyValueKind::SmallInt(number) => ValueRef::Integer((*number).into()),
            AnyValueKind::Integer(number) => ValueRef::Integer((*number).into()),
            AnyValueKind::BigInt(number) => ValueRef::Integer(*number),
            AnyValueKind::Real(number) => ValueRef::Real((*number).into()),
            AnyValueKind::Double(number) => ValueRef::Real(*number),
            AnyValueKind::Text(text) => ValueRef::Text(text.as_bytes()),
            AnyValueKind::TextSlice(text) => ValueRef::Text(text.as_bytes()),
            AnyValueKind::Blob(bytes) => ValueRef::Blob(bytes),
            other => {
                let why = format!("a value that SQLite does not have: {other:?}");
                return Err(rusqlite::Error::ToSqlConversionFailure(why.into()));
            }
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// Error of SQLite, with its extended code.
#[derive(Clone, Debug)]
pub(super) struct SqliteFailure {
    code: i32,
    message: String,
}

impl SqliteFailure {
    fn of(error: &rusqlite::Error) -> Self {
        let (code, message) = match error {
            rusqlite::Error::SqliteFailure(error, message) => {
                (error.extended_code, message.clone())
            }
            rusqlite::Error::SqlInputError { error, msg, .. } => {
                (error.extended_code, Some(msg.clone()))
            }
            _ => (rusqlite::ffi::SQLITE_ERROR, None),
        };
        Self {
            code,
            message: message.unwrap_or_else(|| error.to_string()),
        }
    }

    /// Returns whether the disk failed.
    pub fn is_of_the_disk(&self) -> bool {
        self.code & 0xff == rusqlite::ffi::SQLITE_IOERR
    }

    /// Builds the error for a finished part that was undone with that of another.
    pub fn of_shared_rollback() -> Self {
        Self {
            code: rusqlite::ffi::SQLITE_ABORT_ROLLBACK,
            message: "the transaction that several writers shared was rolled back".to_owned(),
        }
    }
}

impl fmt::Display for SqliteFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "(code: {}) {}", self.code, self.message)
    }
}

impl std::error::Error for SqliteFailure {}

impl DatabaseError for SqliteFailure {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> BoxDynError {
        self
    }

    fn kind(&self) -> ErrorKind {
        use rusqlite::ffi;
        match self.code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                ErrorKind::UniqueViolation
            }
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY => ErrorKind::ForeignKeyViolation,
            ffi::SQLITE_CONSTRAINT_NOTNULL => ErrorKind::NotNullViolation,
            ffi::SQLITE_CONSTRAINT_CHECK => ErrorKind::CheckViolation,
            _ => ErrorKind::Other,
        }
    }
}

fn failure(error: rusqlite::Error) -> sqlx::Error {
    match error {
        rusqlite::Error::SqliteFailure(..) | rusqlite::Error::SqlInputError { .. } => {
            SqliteFailure::of(&error).into()
        }
        _ => sqlx::Error::AnyDriverError(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use sqlx::{Executor as _, Row as _};

    use super::*;
    use crate::SqlConnection;
    use crate::connection::ConnectionOf;

    /// A new file, and a connection to it.
    fn opened() -> (tempfile::TempDir, SqlConnection) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/test.db?mode=rwc", folder.path().display());
        let file = SqliteFile::parse(&url).unwrap();
        let connection =
            file.open(&["create table item (id integer primary key, name text unique)"]);
        let connection = SqlConnection(ConnectionOf::Sqlite(Box::new(connection.unwrap())));
        (folder, connection)
    }

    /// Counts to so many, which takes about 30 ns for each.
    const COUNT: &str = "with recursive number (n) as (select 1 union all select n + 1 from number where n < $1) \
        select count(*) from number";

    /// With one cache for all connections, readers wait for each other at each page (`.cargo/config.toml`).
    #[tokio::test]
    async fn each_connection_has_a_page_cache_of_its_own() {
        let (_folder, mut connection) = opened();
        let options = sqlx::query("pragma compile_options");
        let options = options.fetch_all(&mut connection).await.unwrap();
        let options: Vec<String> = options.iter().map(|row| row.get(0)).collect();
        assert!(options.contains(&"THREADSAFE=1".to_owned()), "{options:?}");
        assert!(!options.contains(&"ENABLE_MEMORY_MANAGEMENT".to_owned()));
    }

    #[tokio::test]
    async fn an_argument_is_bound_by_its_number() {
        let (_folder, mut connection) = opened();
        let row = sqlx::query("select $2 as second, $1 as first, $2 as again, $3 as none")
            .bind("one")
            .bind(2_i64)
            .bind(None::<String>)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(row.get::<String, _>("first"), "one");
        assert_eq!(row.get::<i64, _>("second"), 2);
        assert_eq!(row.get::<i64, _>("again"), 2);
        assert_eq!(row.get::<Option<String>, _>("none"), None);

        let missing = sqlx::query("select $1").fetch_one(&mut connection).await;
        assert!(missing.err().unwrap().to_string().contains("parameter 1"));
    }

    #[tokio::test]
    async fn an_error_has_its_kind_and_code() {
        let (_folder, mut connection) = opened();
        connection
            .execute("insert into item (name) values ('a')")
            .await
            .unwrap();
        let again = connection
            .execute("insert into item (name) values ('a')")
            .await;
        let error = again.unwrap_err().into_database_error().unwrap();
        assert!(error.is_unique_violation());
        assert_eq!(error.code().as_deref(), Some("2067"));
    }

    #[tokio::test]
    async fn a_statement_sees_the_columns_of_today() {
        let (_folder, mut connection) = opened();
        let all = "select * from item";
        connection
            .execute("insert into item (name) values ('a')")
            .await
            .unwrap();
        assert_eq!(
            sqlx::query(all)
                .fetch_one(&mut connection)
                .await
                .unwrap()
                .len(),
            2
        );

        connection
            .execute("alter table item add column note text default 'new'")
            .await
            .unwrap();
        let row = sqlx::query(all).fetch_one(&mut connection).await.unwrap();
        assert_eq!(row.get::<String, _>("note"), "new");
    }

    #[test]
    fn an_unknown_option_of_the_address_is_refused() {
        for url in [
            "sqlite://a.db?cache=shared",
            "sqlite://a.db?mode=memory",
            "postgres://a",
            "sqlite::memory:",
            "sqlite://?mode=rwc",
        ] {
            assert!(SqliteFile::parse(url).is_err(), "{url}");
        }
        let file = SqliteFile::parse("sqlite://a%20b.db?mode=ro").unwrap();
        assert_eq!(file.path, PathBuf::from("a b.db"));
    }

    /// Other tasks of a thread run between the statements of one that never waits.
    #[tokio::test]
    async fn statements_let_other_tasks_run() {
        let (_folder, mut connection) = opened();
        let has_run = Arc::new(AtomicBool::new(false));
        tokio::spawn({
            let has_run = has_run.clone();
            async move { has_run.store(true, Ordering::Relaxed) }
        });

        let mut statements = 0;
        while !has_run.load(Ordering::Relaxed) {
            sqlx::query("select 1")
                .fetch_one(&mut connection)
                .await
                .unwrap();
            statements += 1;
            assert!(statements < 10_000);
        }
    }

    /// A statement that took long before does not hold up the other tasks of the only thread.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_long_statement_moves_the_other_tasks() {
        let (_folder, mut connection) = opened();
        let ticks = Arc::new(AtomicU64::new(0));
        tokio::spawn({
            let ticks = ticks.clone();
            async move {
                loop {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    ticks.fetch_add(1, Ordering::Relaxed);
                }
            }
        });

        let counted = tokio::spawn(async move {
            for _ in 0..2 {
                sqlx::query(COUNT)
                    .bind(2_000_000_i64)
                    .fetch_one(&mut connection)
                    .await
                    .unwrap();
            }
            let before = ticks.load(Ordering::Relaxed);
            sqlx::query(COUNT)
                .bind(2_000_000_i64)
                .fetch_one(&mut connection)
                .await
                .unwrap();
            ticks.load(Ordering::Relaxed) - before
        });
        assert!(counted.await.unwrap() > 3);
    }
}
