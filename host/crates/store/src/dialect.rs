//! Differences between the databases, each under a name that gives its reason.

/// Database engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlDialect {
    Sqlite,
    Postgres,
}

impl SqlDialect {
    pub(super) fn of(url: &str) -> Self {
        if url.starts_with("postgres") {
            Self::Postgres
        } else {
            Self::Sqlite
        }
    }

    /// Returns the connection URL; SQLite is allowed to create its file.
    pub(super) fn connect_url(self, url: &str) -> String {
        match self {
            // An explicit query string is the operator's choice and kept.
            Self::Sqlite if !url.contains('?') => format!("{url}?mode=rwc"),
            _ => url.to_owned(),
        }
    }

    /// Statements for every new connection.
    ///
    /// SQLite: a commit is durable when it returns, and readers do not wait for the writer. Several
    /// processes can open the file, for example the operator's tool beside the server. Deleted values are overwritten, or the
    /// file would keep what a destruction deleted.
    ///
    /// PostgreSQL: a transaction of a stalled node is aborted, and its locks released, before the
    /// node's leases end.
    pub(super) fn session_statements(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &[
                "pragma journal_mode = wal",
                "pragma synchronous = full",
                "pragma busy_timeout = 10000",
                "pragma foreign_keys = on",
                "pragma secure_delete = on",
            ],
            Self::Postgres => &["set idle_in_transaction_session_timeout = '10s'"],
        }
    }

    /// Starts a write transaction. SQLite refuses to upgrade a read lock if another connection
    /// wrote in between, so the write lock is taken at the start.
    pub(super) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "begin immediate",
            Self::Postgres => "begin",
        }
    }

    /// Lets several workers claim at once on PostgreSQL.
    /// On SQLite the transaction itself is the lock.
    pub(super) fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "for update skip locked",
        }
    }

    /// Returns the elements of the JSON array in `$1` as rows with one column `value`.
    pub(super) fn json_rows(self) -> &'static str {
        match self {
            Self::Sqlite => "json_each($1)",
            Self::Postgres => "json_array_elements(cast($1 as json)) as each (value)",
        }
    }

    /// Returns a member of a member of the JSON in `column`, as JSON text. The names are constants or have
    /// letters, digits, dots, dashes and underscores only.
    pub(super) fn json_member(self, column: &str, outer: &str, inner: &str) -> String {
        match self {
            Self::Sqlite => format!("({column} -> '$.{outer}.\"{inner}\"')"),
            Self::Postgres => {
                format!("cast(cast({column} as json) -> '{outer}' -> '{inner}' as text)")
            }
        }
    }

    /// Returns the milliseconds from one time to another as a whole number. Both are columns or expressions of this
    /// program.
    pub(super) fn milliseconds_between(self, from: &str, until: &str) -> String {
        match self {
            Self::Sqlite => format!(
                "cast(round((julianday({until}) - julianday({from})) * 86400000) as bigint)"
            ),
            Self::Postgres => format!(
                "cast(extract(epoch from cast({until} as timestamptz) - cast({from} as timestamptz)) * 1000 as bigint)"
            ),
        }
    }

    /// Locks the rows that a transaction is about to change.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            // `begin immediate` has locked the whole file.
            Self::Sqlite => "",
            Self::Postgres => "for update",
        }
    }

    /// Keeps rows as they are until a transaction ends. Others may do the same at the same time.
    pub(super) fn for_share(self) -> &'static str {
        match self {
            // `begin immediate` has locked the whole file.
            Self::Sqlite => "",
            Self::Postgres => "for share",
        }
    }
}
