//! Differences between the databases, each under a name that gives its reason.

/// Statements that change rows.
const CHANGES: [&str; 3] = ["insert", "update", "delete"];

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

    /// Names of all tables, as rows with one column `name`. Partitions are parts of their table.
    pub(super) fn table_names(self) -> &'static str {
        match self {
            Self::Sqlite => "select name from sqlite_master where type = 'table'",
            Self::Postgres => {
                "select cast(c.relname as text) as name from pg_class c
                 where c.relnamespace = cast(quote_ident(current_schema()) as regnamespace)
                     and c.relkind in ('r', 'p') and not c.relispartition"
            }
        }
    }

    /// Columns of the table `$1` with their names, types and places in the primary key, from 1; 0 for other columns.
    pub(super) fn columns_of_table(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "select name, lower(type) as type, pk as key_place from pragma_table_info($1)"
            }
            Self::Postgres => {
                "select cast(a.attname as text) as name,
                     cast(format_type(a.atttypid, null) as text) as type,
                     cast(coalesce(array_position(cast(i.indkey as int2[]), a.attnum) + 1, 0) as bigint) as key_place
                 from pg_class c
                 join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                 left join pg_index i on i.indrelid = c.oid and i.indisprimary
                 where c.relnamespace = cast(quote_ident(current_schema()) as regnamespace)
                     and c.relname = cast($1 as name)"
            }
        }
    }

    /// Script after which the database refuses every change of tables, also by programs that know no fence.
    pub(super) fn refuse_changes(self, tables: &[&str], why: &str) -> String {
        let mut script = String::new();
        if self == Self::Postgres {
            script += &format!(
                "create or replace function refuse_change() returns trigger language plpgsql
                     as $$ begin raise exception '{why}'; end $$;\n"
            );
        }

        for table in tables {
            script += &match self {
                Self::Sqlite => CHANGES
                    .map(|change| {
                        format!(
                            "create trigger fence_{change}_{table} before {change} on {table}
                             begin select raise(abort, '{why}'); end;\n"
                        )
                    })
                    .concat(),
                Self::Postgres => format!(
                    "create trigger fence before insert or update or delete on {table}
                         for each statement execute function refuse_change();\n"
                ),
            };
        }

        script
    }

    /// Script that undoes [`SqlDialect::refuse_changes`].
    pub(super) fn admit_changes(self, tables: &[&str]) -> String {
        let mut script = String::new();
        for table in tables {
            script += &match self {
                Self::Sqlite => CHANGES
                    .map(|change| format!("drop trigger if exists fence_{change}_{table};\n"))
                    .concat(),
                Self::Postgres => format!("drop trigger if exists fence on {table};\n"),
            };
        }

        if self == Self::Postgres {
            script += "drop function if exists refuse_change();\n";
        }
        script
    }

    /// Returns the condition that a text is like the pattern in `parameter`, in any case, of ASCII letters only on SQLite.
    /// The pattern has `!` before characters that stand for themselves.
    pub(super) fn is_like(self, column: &str, parameter: &str, pattern: &str) -> String {
        match self {
            // Its `like` ignores the case, and `lower` on both sides takes twice the time.
            Self::Sqlite => format!("{column} like {parameter} escape '!'"),
            // Lower case by the rules of a language takes most of the time of a search, and only matters beyond ASCII.
            Self::Postgres if pattern.is_ascii() => format!(
                "lower({column} collate \"C\") like lower({parameter} collate \"C\") escape '!'"
            ),
            Self::Postgres => format!("lower({column}) like lower({parameter}) escape '!'"),
        }
    }

    /// Returns the condition that a column has one of the values of a query with few rows, each of which is looked up.
    pub(super) fn is_one_of(self, column: &str, query: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} in ({query})"),
            // With `in`, the planner may join, and read every row that has the other conditions.
            Self::Postgres => format!("{column} = any(array({query}))"),
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
