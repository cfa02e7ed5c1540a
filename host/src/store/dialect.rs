//! What differs between the databases, under names that say why.

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(super) fn of(url: &str) -> Self {
        if url.starts_with("postgres") {
            Self::Postgres
        } else {
            Self::Sqlite
        }
    }

    /// SQLite creates its file on the first start.
    pub(super) fn connect_url(self, url: &str) -> String {
        match self {
            Self::Sqlite if !url.contains('?') => format!("{url}?mode=rwc"),
            _ => url.to_owned(),
        }
    }

    /// SQLite: a commit is on the disk when it is answered; readers do not wait for the
    /// writer. Several processes may have one file open: the operator's tool
    /// beside the server.
    ///
    /// PostgreSQL: what a node that stalls has locked is free again before its leases
    /// end, and its transaction is over.
    pub(super) fn session_statements(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &[
                "pragma journal_mode = wal",
                "pragma synchronous = full",
                "pragma busy_timeout = 10000",
                "pragma foreign_keys = on",
            ],
            Self::Postgres => &["set idle_in_transaction_session_timeout = '10s'"],
        }
    }

    /// SQLite upgrades a read lock only when nobody else wrote in between, so a
    /// transaction that will write says so at once.
    pub(super) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "begin immediate",
            Self::Postgres => "begin",
        }
    }

    /// Several workers claim at once on PostgreSQL; on SQLite the transaction
    /// itself is the lock.
    pub(super) fn skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "for update skip locked",
        }
    }

    /// The elements of the JSON array in `$1`, as rows with one column `value`.
    pub(super) fn json_rows(self) -> &'static str {
        match self {
            Self::Sqlite => "json_each($1)",
            Self::Postgres => "json_array_elements(cast($1 as json)) as each (value)",
        }
    }

    /// Locks the rows a transaction is going to change.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "for update",
        }
    }
}
