//! Moves of the installation between databases: tables as the schema has them, their rows in order of their keys, and
//! the states of both databases.
//!
//! No table is named here but those of the move itself and those that migrations fill, so that a new table is moved
//! without a change. Rows have no references that the database checks, so the order of the tables does not matter.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sqlx::any::{Any, AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Row as _};

use super::outbox::placeholders;
use super::row::{numbered, query_rows, table_row};
use super::statement::RunStatement as _;
use super::{SqlConnection, SqlDialect, Store, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;

/// Tables that describe the database itself.
const OWN_TABLES: [&str; 3] = ["migration", MOVE, "installation_move_table"];
const MOVE: &str = "installation_move";
/// Tables with rows in a database that no node has used.
const FILLED_BY_MIGRATIONS: [&str; 2] = ["bucket_lease", "component_revision"];
/// Parameters of a statement that adds rows. Both databases admit 32,766.
const PARAMETERS: usize = 4_000;
/// Error of a database that refuses changes.
const MOVED: &str = "no changes: the installation moves to another database or was moved there";

/// Part of a database in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveState {
    /// The database is being left.
    Moving,
    /// The database was left.
    Moved,
    /// The new database is incomplete.
    Copying,
    /// The new database is complete, and nothing has used it.
    Verified,
    /// The new database is the installation's.
    Started,
    /// The new database was given up before its first use.
    Abandoned,
}

impl MoveState {
    const ALL: [Self; 6] = [
        Self::Moving,
        Self::Moved,
        Self::Copying,
        Self::Verified,
        Self::Started,
        Self::Abandoned,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Moving => "moving",
            Self::Moved => "moved",
            Self::Copying => "copying",
            Self::Verified => "verified",
            Self::Started => "started",
            Self::Abandoned => "abandoned",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A move, as one of its databases knows it.
#[derive(Clone, Debug)]
pub struct InstallationMove {
    pub id: String,
    pub state: MoveState,
    /// The other database, without user and password.
    pub place: String,
    pub begun_at: Timestamp,
}

table_row! {
    InstallationMove of "installation_move" by "move_id" {
        id: text("move_id"),
        state: parsed("state", MoveState::parse),
        place: text("place"),
        begun_at: time("begun_at"),
    }
}

/// Returns whether the database has a table.
pub async fn has_table(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
    name: &str,
) -> Result<bool, StoreError> {
    Ok(table_names(connection, dialect)
        .await?
        .iter()
        .any(|known| known == name))
}

async fn table_names(
    connection: &mut SqlConnection,
    dialect: SqlDialect,
) -> Result<Vec<String>, StoreError> {
    let names = sqlx::query_scalar(dialect.table_names());
    Ok(names.fetch_all(connection).await?)
}

/// Returns the move in which this database takes part and that has not made it the installation's; none for a database
/// in use, also of a version that knows no moves.
pub async fn unsettled(store: &Store) -> Result<Option<InstallationMove>, StoreError> {
    let mut connection = store.read().await?;
    if !has_table(&mut connection, store.dialect(), MOVE).await? {
        return Ok(None);
    }

    query_rows("select {columns} from installation_move where state <> 'started'")
        .fetch_optional(&mut connection)
        .await
}

/// Returns the state of this database in a move; none if it does not know the move.
pub async fn state(store: &Store, id: &str) -> Result<Option<MoveState>, StoreError> {
    let mut connection = store.read().await?;
    if !has_table(&mut connection, store.dialect(), MOVE).await? {
        return Ok(None);
    }

    let found: Option<InstallationMove> =
        query_rows("select {columns} from installation_move where move_id = $1")
            .bind(id)
            .fetch_optional(&mut connection)
            .await?;
    Ok(found.map(|found| found.state))
}

/// Changes the state of this database, unless it has another one than `from`. Returns whether it did.
pub async fn change_state(
    store: &Store,
    id: &str,
    from: MoveState,
    to: MoveState,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    // Compare-and-swap: a node that starts and an operator who gives the move up do not both succeed.
    let is_changed = sqlx::query(
        "update installation_move set state = $3, changed_at = $4 where move_id = $1 and state = $2",
    )
    .bind(id)
    .bind(from.as_str())
    .bind(to.as_str())
    .bind(now.to_string())
    .changes_row(&mut tx)
    .await?;

    tx.commit().await?;
    Ok(is_changed)
}

/// Like [`change_state`] for a step that an interrupted run may have made already. Returns whether the state is `to`.
pub async fn ensure_state(
    store: &Store,
    id: &str,
    from: MoveState,
    to: MoveState,
    now: Timestamp,
) -> Result<bool, StoreError> {
    Ok(change_state(store, id, from, to, now).await? || state(store, id).await? == Some(to))
}

/// Marks this database as being left, and makes it refuse every change from the commit on. Waits for transactions that
/// have begun.
pub async fn fence(
    store: &Store,
    id: &str,
    place: &str,
    tables: &[MovedTable],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    begin(&mut tx, id, MoveState::Moving, place, now).await?;
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let script = store.dialect().refuse_changes(&names, MOVED);
    sqlx::raw_sql(AssertSqlSafe(script))
        .execute(&mut *tx)
        .await?;

    tx.commit().await
}

/// Undoes [`fence`].
pub async fn lift_fence(store: &Store, id: &str, tables: &[MovedTable]) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let script = store.dialect().admit_changes(&names);
    sqlx::raw_sql(AssertSqlSafe(script))
        .execute(&mut *tx)
        .await?;
    sqlx::query("delete from installation_move where move_id = $1")
        .bind(id)
        .run(&mut tx)
        .await?;

    tx.commit().await
}

/// Marks this database as the incomplete copy of another one, and removes the rows that migrations have added.
pub async fn begin_copy(
    store: &Store,
    id: &str,
    place: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    begin(&mut tx, id, MoveState::Copying, place, now).await?;
    for table in FILLED_BY_MIGRATIONS {
        let delete = format!("delete from {table}");
        sqlx::query(AssertSqlSafe(delete)).run(&mut tx).await?;
    }

    tx.commit().await
}

async fn begin(
    tx: &mut WriteTransaction,
    id: &str,
    state: MoveState,
    place: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into installation_move (move_id, state, place, begun_at, changed_at)
         values ($1, $2, $3, $4, $4)",
    )
    .bind(id)
    .bind(state.as_str())
    .bind(place)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Returns whether no node has used this database: it has only the rows that migrations add.
pub async fn is_unused(store: &Store, tables: &[MovedTable]) -> Result<bool, StoreError> {
    let mut connection = store.read().await?;
    for table in tables {
        let name = table.name.as_str();
        if FILLED_BY_MIGRATIONS.contains(&name) {
            continue;
        }
        let first = format!("select 1 as found from {name} limit 1");
        if sqlx::query(AssertSqlSafe(first))
            .finds_row(&mut connection)
            .await?
        {
            return Ok(false);
        }
    }

    query_rows::<InstallationMove>("select {columns} from installation_move limit 1")
        .fetch_optional(&mut connection)
        .await
        .map(|known| known.is_none())
}

/// A table as the schema has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedTable {
    pub name: String,
    /// In the order of their names: the databases may list them differently.
    columns: Vec<MovedColumn>,
    /// Columns of the primary key, in its order.
    key: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MovedColumn {
    name: String,
    kind: ColumnKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    Number,
    Text,
}

/// Value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CellValue {
    Number(Option<i64>),
    Text(Option<String>),
}

/// A row with the values of all columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedRow(Vec<CellValue>);

/// Returns the tables that a move copies, by name.
pub async fn tables(store: &Store) -> Result<Vec<MovedTable>, StoreError> {
    let mut connection = store.read().await?;
    let mut names = table_names(&mut connection, store.dialect()).await?;
    names.retain(|name| !OWN_TABLES.contains(&name.as_str()) && !name.starts_with("sqlite_"));
    names.sort_unstable();

    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let columns = sqlx::query(store.dialect().columns_of_table())
            .bind(name.as_str())
            .fetch_all(&mut *connection)
            .await?;
        tables.push(MovedTable::of(name, &columns)?);
    }

    Ok(tables)
}

impl MovedTable {
    /// Reads the columns. One of an unknown type is an error: its values would have to be compared in a way of their own.
    fn of(name: String, rows: &[AnyRow]) -> Result<Self, StoreError> {
        let unusable = |id: &str, why: String| StoreError::Inconsistent {
            table: "the schema",
            id: id.to_owned(),
            why,
        };

        let mut columns = BTreeMap::new();
        for row in rows {
            let (column, of_type): (String, String) = (row.try_get("name")?, row.try_get("type")?);
            let kind = match of_type.as_str() {
                "bigint" | "integer" => ColumnKind::Number,
                "text" => ColumnKind::Text,
                _ => {
                    let why = format!("column {column} has the type {of_type}");
                    return Err(unusable(&name, why));
                }
            };
            let key_place: i64 = row.try_get("key_place")?;
            columns.insert(column, (kind, key_place));
        }

        let places = columns.values().enumerate();
        let key: BTreeMap<i64, usize> = places
            .filter(|(_, (_, key_place))| *key_place > 0)
            .map(|(at, (_, key_place))| (*key_place, at))
            .collect();
        if key.is_empty() {
            return Err(unusable(&name, "it has no primary key".to_owned()));
        }

        let columns = columns.into_iter();
        let columns = columns.map(|(name, (kind, _))| MovedColumn { name, kind });
        Ok(Self {
            name,
            columns: columns.collect(),
            key: key.into_values().collect(),
        })
    }

    fn column_names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|one| one.name.as_str()).collect();
        names.join(", ")
    }

    fn key_names(&self) -> String {
        let names = self.key.iter().filter_map(|at| self.columns.get(*at));
        let names: Vec<&str> = names.map(|one| one.name.as_str()).collect();
        names.join(", ")
    }

    /// Returns up to `limit` rows behind a key, in the order of their keys.
    pub async fn rows_behind(
        &self,
        store: &Store,
        key: Option<&RowKey>,
        limit: usize,
    ) -> Result<Vec<MovedRow>, StoreError> {
        let (columns, names) = (self.column_names(), self.key_names());
        let condition = match key {
            Some(_) => format!("where ({names}) > ({})", numbered(1, self.key.len())),
            None => String::new(),
        };
        let select = format!(
            "select {columns} from {} {condition} order by {names} limit {limit}",
            self.name
        );

        let mut query = sqlx::query(AssertSqlSafe(select));
        for value in key.iter().flat_map(|key| &key.0) {
            query = value.bind_to(query);
        }
        let mut connection = store.read().await?;
        let rows = query.fetch_all(&mut *connection).await?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    fn read(&self, row: &AnyRow) -> Result<MovedRow, StoreError> {
        let values = self.columns.iter().enumerate().map(|(at, column)| {
            Ok(match column.kind {
                ColumnKind::Number => CellValue::Number(row.try_get(at)?),
                ColumnKind::Text => CellValue::Text(row.try_get(at)?),
            })
        });
        let values: Result<_, StoreError> = values.collect();
        Ok(MovedRow(values?))
    }

    /// Adds rows.
    pub async fn add(
        &self,
        tx: &mut WriteTransaction,
        rows: &[MovedRow],
    ) -> Result<(), StoreError> {
        let at_once = (PARAMETERS / self.columns.len()).max(1);
        for rows in rows.chunks(at_once) {
            let insert = format!(
                "insert into {} ({}) values {}",
                self.name,
                self.column_names(),
                placeholders(tx, self.columns.len(), rows.len())
            );
            let mut query = sqlx::query(AssertSqlSafe(insert));
            for value in rows.iter().flat_map(|row| &row.0) {
                query = value.bind_to(query);
            }
            query.run(tx).await?;
        }

        Ok(())
    }

    /// Returns the key of a row.
    pub fn key_of(&self, row: &MovedRow) -> RowKey {
        let values = self.key.iter().filter_map(|at| row.0.get(*at));
        RowKey(values.cloned().collect())
    }
}

impl CellValue {
    fn bind_to<'q>(&'q self, query: Query<'q, Any, AnyArguments>) -> Query<'q, Any, AnyArguments> {
        match self {
            Self::Number(number) => query.bind(*number),
            Self::Text(text) => query.bind(text.as_deref()),
        }
    }
}

impl MovedRow {
    /// Returns the texts of the row.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|value| match value {
            CellValue::Text(text) => text.as_deref(),
            CellValue::Number(_) => None,
        })
    }

    /// Returns the SHA-256 of the values, each with its kind and length.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for value in &self.0 {
            match value {
                CellValue::Number(None) | CellValue::Text(None) => hash.update([0_u8]),
                CellValue::Number(Some(number)) => {
                    hash.update([1_u8]);
                    hash.update(number.to_be_bytes());
                }
                CellValue::Text(Some(text)) => {
                    hash.update([2_u8]);
                    hash.update((text.len() as u64).to_be_bytes());
                    hash.update(text);
                }
            }
        }
        hash.finalize().into()
    }
}

/// Values of a primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowKey(Vec<CellValue>);

impl RowKey {
    fn to_json(&self) -> String {
        let values = self.0.iter().map(|value| match value {
            CellValue::Number(number) => Value::from(*number),
            CellValue::Text(text) => Value::from(text.clone()),
        });
        Value::Array(values.collect()).to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let values: Vec<Value> = serde_json::from_str(text).ok()?;
        let values = values.into_iter().map(|value| match value {
            Value::Number(number) => Some(CellValue::Number(Some(number.as_i64()?))),
            Value::String(text) => Some(CellValue::Text(Some(text))),
            _ => None,
        });
        values.collect::<Option<Vec<CellValue>>>().map(Self)
    }
}

/// Number of rows, and a sum over their digests that does not depend on their order: databases sort texts differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentDigest {
    pub rows: u64,
    sum: [u64; 4],
}

impl ContentDigest {
    /// Adds a row.
    pub fn add(&mut self, row: &MovedRow) {
        self.rows += 1;
        let digest = row.digest();
        let (parts, _) = digest.as_chunks::<8>();
        for (sum, part) in self.sum.iter_mut().zip(parts) {
            *sum = sum.wrapping_add(u64::from_be_bytes(*part));
        }
    }

    /// Returns the sum in hex.
    pub fn hex(&self) -> String {
        self.sum
            .map(|part| hex::encode(part.to_be_bytes()))
            .concat()
    }
}

/// How much of a table the new database has.
#[derive(Clone, Debug, Default)]
pub struct CopyProgress {
    pub last: Option<RowKey>,
    pub is_complete: bool,
}

struct TableProgress {
    table: String,
    progress: CopyProgress,
}

table_row! {
    TableProgress of "installation_move_table" by "table_name" also "last_key", "is_complete" {
        table: text("table_name"),
        progress: |row| CopyProgress {
            last: row.optional_parsed("last_key", RowKey::parse)?,
            is_complete: row.flag("is_complete")?,
        },
    }
}

/// Returns the progress of a move by table.
pub async fn progress(
    store: &Store,
    id: &str,
) -> Result<BTreeMap<String, CopyProgress>, StoreError> {
    let mut connection = store.read().await?;
    let rows: Vec<TableProgress> =
        query_rows("select {columns} from installation_move_table where move_id = $1")
            .bind(id)
            .fetch_all(&mut connection)
            .await?;
    let rows = rows.into_iter();
    Ok(rows.map(|row| (row.table, row.progress)).collect())
}

/// Notes the progress of a table, in the transaction that adds its rows.
pub async fn note_progress(
    tx: &mut WriteTransaction,
    id: &str,
    table: &MovedTable,
    progress: &CopyProgress,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into installation_move_table (move_id, table_name, last_key, is_complete) values ($1, $2, $3, $4)
         on conflict (move_id, table_name) do update set last_key = excluded.last_key,
             is_complete = excluded.is_complete",
    )
    .bind(id)
    .bind(table.name.as_str())
    .bind(progress.last.as_ref().map(RowKey::to_json))
    .bind(i64::from(progress.is_complete))
    .run(tx)
    .await
}

/// Entry of a ledger with its place in the log.
#[derive(Clone, Debug)]
pub struct PlacedEntry {
    bucket: i64,
    /// Id of the ledger: an envelope or an organization.
    pub chain: String,
    pub sequence: i64,
    pub previous_hash: String,
    pub hash: String,
    /// None for an entry that is not in the log yet.
    pub leaf: Option<i64>,
}

table_row! {
    PlacedEntry of "ledger_entry" by "envelope_id" {
        bucket: number("bucket"),
        chain: text("envelope_id"),
        sequence: number("sequence"),
        previous_hash: text("previous_hash"),
        hash: text("hash"),
        leaf: optional_number("leaf_index"),
    }
}

/// Returns up to `limit` entries of all ledgers behind one, ledger by ledger.
pub async fn entries_behind(
    store: &Store,
    last: Option<&PlacedEntry>,
    limit: i64,
) -> Result<Vec<PlacedEntry>, StoreError> {
    let mut connection = store.read().await?;
    let (bucket, chain, sequence) = last.map_or((-1, "", 0), |last| {
        (last.bucket, last.chain.as_str(), last.sequence)
    });
    query_rows(
        "select e.bucket, e.envelope_id, e.sequence, e.previous_hash, e.hash, l.leaf_index
         from ledger_entry e
         left join ledger_leaf l on l.bucket = e.bucket and l.envelope_id = e.envelope_id
             and l.sequence = e.sequence
         where (e.bucket, e.envelope_id, e.sequence) > ($1, $2, $3)
         order by e.bucket, e.envelope_id, e.sequence limit $4",
    )
    .bind(bucket)
    .bind(chain)
    .bind(sequence)
    .bind(limit)
    .fetch_all(&mut connection)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn store(folder: &tempfile::TempDir, name: &str) -> Store {
        let url = format!("sqlite://{}", folder.path().join(name).display());
        let store = Store::connect(&url).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    /// A row with a value in each column, which no other row has.
    fn made(table: &MovedTable, number: i64) -> MovedRow {
        let values = table.columns.iter().map(|column| match column.kind {
            ColumnKind::Number => CellValue::Number(Some(number)),
            ColumnKind::Text => CellValue::Text(Some(format!("{} {number} ü", column.name))),
        });
        MovedRow(values.collect())
    }

    async fn digest(store: &Store, table: &MovedTable) -> ContentDigest {
        let mut digest = ContentDigest::default();
        let mut last = None;
        loop {
            let rows = table.rows_behind(store, last.as_ref(), 2).await.unwrap();
            let Some(row) = rows.last() else {
                return digest;
            };
            last = Some(table.key_of(row));
            rows.iter().for_each(|row| digest.add(row));
        }
    }

    /// Walks the schema, so that a table with a type or a key that no move knows fails here.
    #[tokio::test]
    async fn each_table_of_the_schema_is_copied_in_slices() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (
            store(&folder, "from.db").await,
            store(&folder, "to.db").await,
        );
        let tables = tables(&from).await.unwrap();
        assert!(tables.len() > 100, "{}", tables.len());
        assert!(is_unused(&from, &tables).await.unwrap());

        let mut connection = from.read().await.unwrap();
        let all = table_names(&mut connection, from.dialect()).await.unwrap();
        drop(connection);
        let left_out = all
            .iter()
            .filter(|name| !tables.iter().any(|table| table.name == **name));
        let left_out: Vec<&str> = left_out.map(String::as_str).collect();
        assert_eq!(left_out.len(), OWN_TABLES.len(), "{left_out:?}");

        begin_copy(&to, "move", "elsewhere", Timestamp::from_millis(0))
            .await
            .unwrap();
        for table in &tables {
            let mut tx = from.begin().await.unwrap();
            let rows: Vec<MovedRow> = (1_000..1_005).map(|number| made(table, number)).collect();
            table.add(&mut tx, &rows).await.unwrap();
            tx.commit().await.unwrap();

            let mut last = None;
            loop {
                let rows = table.rows_behind(&from, last.as_ref(), 2).await.unwrap();
                let Some(row) = rows.last() else { break };
                last = Some(RowKey::parse(&table.key_of(row).to_json()).unwrap());
                let mut tx = to.begin().await.unwrap();
                table.add(&mut tx, &rows).await.unwrap();
                tx.commit().await.unwrap();
            }
            let copied = digest(&to, table).await;
            assert!(copied.rows >= 5, "{}", table.name);
            assert_eq!(digest(&from, table).await, copied, "{}", table.name);
        }
        assert!(!is_unused(&from, &tables).await.unwrap());
    }

    #[test]
    fn a_changed_value_and_a_moved_one_have_other_digests() {
        let digest = |rows: &[&[Option<&str>]]| {
            let mut digest = ContentDigest::default();
            for row in rows {
                let values = row
                    .iter()
                    .map(|text| CellValue::Text(text.map(str::to_owned)));
                digest.add(&MovedRow(values.collect()));
            }
            digest
        };
        let whole = digest(&[&[Some("a"), Some("b")], &[Some("c"), None]]);
        assert_eq!(
            whole,
            digest(&[&[Some("c"), None], &[Some("a"), Some("b")]])
        );
        for other in [
            digest(&[&[Some("a"), Some("b")], &[Some("c"), Some("")]]),
            digest(&[&[Some("ab"), Some("")], &[Some("c"), None]]),
            digest(&[&[Some("c"), Some("b")], &[Some("a"), None]]),
            digest(&[&[Some("a"), Some("b")]]),
        ] {
            assert_ne!(whole.hex(), other.hex());
        }
    }

    #[tokio::test]
    async fn a_fence_refuses_changes_until_it_is_lifted() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "test.db").await;
        let tables = tables(&store).await.unwrap();
        let now = Timestamp::from_millis(0);
        fence(&store, "move", "postgres://db/new", &tables, now)
            .await
            .unwrap();

        let statements = [
            "insert into chore (name, due_at) values ('a', '')",
            "update bucket_lease set node = 'a'",
            "delete from component_revision",
        ];
        for statement in statements {
            let mut tx = store.begin().await.unwrap();
            let refused = sqlx::query(statement).run(&mut tx).await.unwrap_err();
            assert!(refused.to_string().contains(MOVED), "{refused}");
        }
        let known = unsettled(&store).await.unwrap().unwrap();
        assert_eq!(known.state, MoveState::Moving);
        assert_eq!(known.place, "postgres://db/new");

        lift_fence(&store, "move", &tables).await.unwrap();
        assert!(unsettled(&store).await.unwrap().is_none());
        for statement in statements {
            let mut tx = store.begin().await.unwrap();
            sqlx::query(statement).run(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_state_changes_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, "test.db").await;
        let now = Timestamp::from_millis(0);
        begin_copy(&store, "move", "elsewhere", now).await.unwrap();
        let verified = change_state(&store, "move", MoveState::Copying, MoveState::Verified, now);
        assert!(verified.await.unwrap());
        let again = ensure_state(&store, "move", MoveState::Copying, MoveState::Verified, now);
        assert!(again.await.unwrap());

        let started = change_state(&store, "move", MoveState::Verified, MoveState::Started, now);
        assert!(started.await.unwrap());
        let given_up = change_state(
            &store,
            "move",
            MoveState::Verified,
            MoveState::Abandoned,
            now,
        );
        assert!(!given_up.await.unwrap());
        assert!(unsettled(&store).await.unwrap().is_none());
        let state = state(&store, "move").await.unwrap();
        assert_eq!(state, Some(MoveState::Started));
    }
}
