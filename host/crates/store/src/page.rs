//! Paged lists, newest first.

use crate::SqlConnection;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::StoreError;
use super::row::{TableRow, query_rows};

/// Query of a paged list, by the ids of the rows, which sort by age.
pub(super) struct PagedQuery<'a> {
    /// `select {columns} from table …`; joined tables may have columns of the same names.
    pub select: &'a str,
    pub bucket: i64,
    /// Required values of columns; `None` means any.
    pub wanted: &'a [(&'a str, Option<&'a str>)],
    /// Conditions with one value each; `{}` stands for its parameter.
    pub compared: &'a [(&'a str, &'a str)],
    /// Additional conditions: ` and …`.
    pub also: &'a str,
}

impl PagedQuery<'_> {
    /// Returns the rows of a page, counted from 1, and the total number.
    pub async fn page<T: TableRow>(
        &self,
        connection: &mut SqlConnection,
        page: i64,
        limit: i64,
    ) -> Result<(Vec<T>, i64), StoreError> {
        let (table, id) = (T::TABLE, T::ID);
        let (conditions, values) = self.conditions(table);

        // The order makes the count use the page's index, so that both read the same part of it.
        let count = format!(
            "select count(*) as total from
             (select {id} from {table} where {conditions} order by {table}.{id} desc) as counted"
        );
        let mut query = sqlx::query(AssertSqlSafe(count)).bind(self.bucket);
        for value in values {
            query = query.bind(value);
        }

        let total = query.fetch_one(&mut *connection).await?.try_get("total")?;
        let rows = self.rows::<T>(connection, page, limit).await?;
        let found = rows.iter().map(T::of_row).collect::<Result<_, _>>()?;
        Ok((found, total))
    }

    /// Returns the rows of a page.
    pub async fn rows<T: TableRow>(
        &self,
        connection: &mut SqlConnection,
        page: i64,
        limit: i64,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let (select, table, id) = (self.select, T::TABLE, T::ID);
        let (conditions, values) = self.conditions(table);
        let order = format!("order by {table}.{id} desc");
        let (limited, skipped) = (values.len() + 2, values.len() + 3);
        let from = match page {
            1 => String::new(),
            // The subquery skips the rows of earlier pages in the index, without reading them.
            _ => format!(
                "and {table}.{id} <=
                 (select {id} from {table} where {conditions} {order} limit 1 offset ${skipped})"
            ),
        };
        let text = format!("{select} where {conditions} {from} {order} limit ${limited}");
        let mut query = query_rows::<T>(AssertSqlSafe(text)).bind(self.bucket);
        for value in values {
            query = query.bind(value);
        }

        query = query.bind(limit);
        if page > 1 {
            query = query.bind((page - 1).saturating_mul(limit));
        }

        query.fetch_rows(connection).await
    }

    /// Returns the conditions, and the values of their parameters after the bucket, which is `$1`.
    fn conditions(&self, table: &str) -> (String, Vec<&str>) {
        let mut conditions = format!("{table}.bucket = $1");
        let mut values = Vec::new();
        // Names of columns are constants of the callers; every value is a parameter.
        for (column, value) in self.wanted {
            if let Some(value) = value {
                values.push(*value);
                conditions += &format!(" and {table}.{column} = ${}", values.len() + 1);
            }
        }

        for (condition, value) in self.compared {
            values.push(*value);
            let parameter = format!("${}", values.len() + 1);
            conditions += &format!(" and {}", condition.replace("{}", &parameter));
        }

        conditions += self.also;
        (conditions, values)
    }
}
