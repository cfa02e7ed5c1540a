//! Rows of tables as values; errors name the inconsistent row.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use sqlx::any::{Any, AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Encode, Row as _, SqlSafeStr, Type};

use super::{SqlConnection, StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::envelope::{KeptFile, StoredFile};
use holdfast_domain::id::{EnvelopeId, OrgId};

/// Envelope with its organization, for work across all organizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEnvelope {
    pub org: OrgId,
    pub envelope: EnvelopeId,
}

/// Returns parameters for a list of values, from the number of the first one: `$2, $3, $4`.
pub(super) fn numbered(first: usize, values: usize) -> String {
    let each: Vec<String> = (first..first + values).map(|at| format!("${at}")).collect();
    each.join(", ")
}

/// Value that a row of a table holds.
pub(super) trait TableRow: Sized {
    const TABLE: &'static str;
    /// Column that identifies the row in errors.
    const ID: &'static str;
    /// Columns that [`TableRow::read`] needs. In a statement, `{columns}` stands for them.
    const COLUMNS: &'static str;

    fn read(row: &RowColumns<'_>) -> Result<Self, StoreError>;

    fn of_row(row: &AnyRow) -> Result<Self, StoreError> {
        Self::read(&RowColumns::of(row, Self::TABLE, Self::ID))
    }
}

/// Returns the columns of a row for a statement that names its table `alias`. Not `alias.*`: PostgreSQL refuses a prepared
/// statement once a migration of a newer node has added a column to its result.
pub(super) fn columns_of<T: TableRow>(alias: &str) -> String {
    let columns = T::COLUMNS.split(", ");
    let named: Vec<String> = columns.map(|column| format!("{alias}.{column}")).collect();
    named.join(", ")
}

/// Implements [`TableRow`] for a type, by its table and the column that identifies a row in errors.
///
/// A field is a method of [`RowColumns`] with its arguments, the first of which is the column. A field of several
/// columns is a closure; `also` names those of them, and the identifying column, that no other field has.
macro_rules! table_row {
    (
        $type:ident of $table:literal by $id:literal $(also $($also:literal),+)? {
            $(
                $field:ident:
                    $($method:ident($column:literal $(, $argument:expr)?) $(.$then:ident())?)?
                    $(|$row:ident| $value:expr)?
            ),+ $(,)?
        }
    ) => {
        impl $crate::row::TableRow for $type {
            const TABLE: &'static str = $table;
            const ID: &'static str = $id;
            const COLUMNS: &'static str =
                $crate::row::table_row!(@list $($($column)?)+ $($($also)+)?);

            fn read(columns: &$crate::row::RowColumns<'_>) -> Result<Self, $crate::StoreError> {
                Ok(Self {
                    $(
                        $field:
                            $(columns.$method($column $(, $argument)?)? $(.$then())?)?
                            $({ let $row = columns; $value })?
                    ),+
                })
            }
        }
    };
    (@list $first:literal $($next:literal)*) => { concat!($first $(, ", ", $next)*) };
}

pub(crate) use table_row;

/// Query for rows of a table.
pub(super) struct RowQuery<T> {
    query: Query<'static, Any, AnyArguments>,
    row: PhantomData<fn() -> T>,
}

/// Builds a query. `{columns}` in its text stands for the columns of the rows.
pub(super) fn query_rows<T: TableRow>(text: impl SqlSafeStr) -> RowQuery<T> {
    let text = text
        .into_sql_str()
        .as_str()
        .replace("{columns}", T::COLUMNS);
    RowQuery {
        query: sqlx::query(AssertSqlSafe(text)),
        row: PhantomData,
    }
}

/// Like [`query_rows`], with the rows locked until the transaction ends.
pub(super) fn query_locked<T: TableRow>(tx: &WriteTransaction, text: &str) -> RowQuery<T> {
    query_rows(AssertSqlSafe(format!("{text} {}", tx.dialect.for_update())))
}

/// Returns the row of an organization that has this text in the identifying column.
pub(super) async fn row_by_id<T: TableRow>(
    connection: &mut SqlConnection,
    org: &OrgId,
    id: &str,
) -> Result<Option<T>, StoreError> {
    let query = query_rows(AssertSqlSafe(by_id::<T>()));
    query
        .bind_org(org)
        .bind(id)
        .fetch_optional(connection)
        .await
}

/// Like [`row_by_id`], with the row locked until the transaction ends.
pub(super) async fn locked_by_id<T: TableRow>(
    tx: &mut WriteTransaction,
    org: &OrgId,
    id: &str,
) -> Result<Option<T>, StoreError> {
    let query = query_locked(tx, &by_id::<T>());
    query.bind_org(org).bind(id).fetch_optional(tx).await
}

fn by_id<T: TableRow>() -> String {
    let (table, id) = (T::TABLE, T::ID);
    format!("select {{columns}} from {table} where bucket = $1 and org_id = $2 and {id} = $3")
}

impl<T: TableRow> RowQuery<T> {
    pub fn bind<'v, V: Encode<'v, Any> + Type<Any>>(self, value: V) -> Self {
        Self {
            query: self.query.bind(value),
            ..self
        }
    }

    /// Binds the bucket of an organization and its id, as two parameters.
    pub fn bind_org(self, org: &OrgId) -> Self {
        self.bind(org.bucket()).bind(org.as_str())
    }

    /// Binds the bucket of an organization and the id of a row in it, as two parameters.
    pub fn bind_key(self, org: &OrgId, id: &str) -> Self {
        self.bind(org.bucket()).bind(id)
    }

    pub async fn fetch_one(self, connection: &mut SqlConnection) -> Result<T, StoreError> {
        T::of_row(&self.query.fetch_one(connection).await?)
    }

    pub async fn fetch_optional(
        self,
        connection: &mut SqlConnection,
    ) -> Result<Option<T>, StoreError> {
        let row = self.query.fetch_optional(connection).await?;
        row.as_ref().map(T::of_row).transpose()
    }

    pub async fn fetch_all(self, connection: &mut SqlConnection) -> Result<Vec<T>, StoreError> {
        let rows = self.fetch_rows(connection).await?;
        rows.iter().map(T::of_row).collect()
    }

    /// Returns the rows themselves, for statements that select further columns.
    pub async fn fetch_rows(
        self,
        connection: &mut SqlConnection,
    ) -> Result<Vec<AnyRow>, StoreError> {
        Ok(self.query.fetch_all(connection).await?)
    }
}

table_row! {
    OwnedEnvelope of "envelope" by "envelope_id" {
        org: parsed("org_id", OrgId::parse),
        envelope: parsed("envelope_id", EnvelopeId::parse),
    }
}

/// Row with the name of its table.
pub(super) struct RowColumns<'r> {
    row: &'r AnyRow,
    table: &'static str,
    /// Column that identifies the row in errors.
    id: &'static str,
}

impl<'r> RowColumns<'r> {
    pub fn of(row: &'r AnyRow, table: &'static str, id: &'static str) -> Self {
        Self { row, table, id }
    }

    pub fn text(&self, column: &str) -> Result<String, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn optional_text(&self, column: &str) -> Result<Option<String>, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn number(&self, column: &str) -> Result<i64, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn optional_number(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.row.try_get(column)?)
    }

    pub fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.number(column)? != 0)
    }

    pub fn optional_flag(&self, column: &str) -> Result<Option<bool>, StoreError> {
        Ok(self.optional_number(column)?.map(|number| number != 0))
    }

    pub fn time(&self, column: &str) -> Result<Timestamp, StoreError> {
        self.parsed(column, Timestamp::parse)
    }

    pub fn optional_time(&self, column: &str) -> Result<Option<Timestamp>, StoreError> {
        self.optional_parsed(column, Timestamp::parse)
    }

    /// Parses a column. Unknown text is an inconsistency, never a default.
    pub fn parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let text = self.text(column)?;
        parse(&text).ok_or_else(|| self.inconsistent(format!("{column} holds {text:?}")))
    }

    pub fn optional_parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        match self.optional_text(column)? {
            None => Ok(None),
            Some(text) => parse(&text)
                .map(Some)
                .ok_or_else(|| self.inconsistent(format!("{column} holds {text:?}"))),
        }
    }

    pub fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T, StoreError> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|error| self.inconsistent(format!("{column}: {error}")))
    }

    pub fn optional_json<T: DeserializeOwned>(
        &self,
        column: &str,
    ) -> Result<Option<T>, StoreError> {
        match self.optional_text(column)? {
            None => Ok(None),
            Some(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|error| self.inconsistent(format!("{column}: {error}"))),
        }
    }

    pub fn optional_file(&self, column: &str) -> Result<Option<StoredFile>, StoreError> {
        let file: Option<KeptFile> = self.optional_json(column)?;
        Ok(file.map(|file| file.0))
    }

    /// Returns the envelope that the row belongs to.
    pub fn envelope(&self) -> Result<OwnedEnvelope, StoreError> {
        OwnedEnvelope::read(self)
    }

    pub fn inconsistent(&self, why: String) -> StoreError {
        StoreError::Inconsistent {
            table: self.table,
            // Best effort: the error must not hide behind a second one.
            id: self.row.try_get(self.id).unwrap_or_default(),
            why,
        }
    }
}

/// Serializes a stored file for a column.
pub(super) fn file_json(file: Option<&StoredFile>) -> Option<String> {
    file.map(|file| json_text(&KeptFile(file.clone())))
}

/// Serializes a value for a text column.
pub(super) fn json_text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}
