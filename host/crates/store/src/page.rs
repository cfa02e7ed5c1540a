//! Paged lists, newest first.

use crate::SqlConnection;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::StoreError;

/// Query of a paged list.
pub(super) struct PagedQuery<'a> {
    /// `select … from table …`; joined tables may have columns of the same names.
    pub select: &'a str,
    pub table: &'a str,
    /// Column to sort by; ids sort by age.
    pub id: &'a str,
    pub bucket: i64,
    /// Required values of columns; `None` means any.
    pub wanted: &'a [(&'a str, Option<&'a str>)],
    /// Additional conditions: ` and …`.
    pub also: &'a str,
}

impl PagedQuery<'_> {
    /// Returns the rows of a page, counted from 1, and the total number.
    pub async fn page(
        &self,
        connection: &mut SqlConnection,
        page: i64,
        limit: i64,
    ) -> Result<(Vec<AnyRow>, i64), StoreError> {
        let Self { table, id, .. } = self;
        let (conditions, values) = self.conditions();

        // The order makes the count use the page's index, so that both read the same part of it.
        let count = format!(
            "select count(*) as total from
             (select {id} from {table} where {conditions} {}) as counted",
            self.order()
        );
        let mut query = sqlx::query(AssertSqlSafe(count)).bind(self.bucket);
        for value in values {
            query = query.bind(value);
        }

        let total = query.fetch_one(&mut *connection).await?.try_get("total")?;
        Ok((self.rows(connection, page, limit).await?, total))
    }

    /// Returns the rows of a page.
    pub async fn rows(
        &self,
        connection: &mut SqlConnection,
        page: i64,
        limit: i64,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let Self {
            select, table, id, ..
        } = self;
        let (conditions, values) = self.conditions();
        let order = self.order();
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
        let mut query = sqlx::query(AssertSqlSafe(text)).bind(self.bucket);
        for value in values {
            query = query.bind(value);
        }

        query = query.bind(limit);
        if page > 1 {
            query = query.bind((page - 1).saturating_mul(limit));
        }

        Ok(query.fetch_all(connection).await?)
    }

    /// Returns the conditions, and the values of their parameters after the bucket, which is `$1`.
    fn conditions(&self) -> (String, Vec<&str>) {
        let table = self.table;
        let mut conditions = format!("{table}.bucket = $1");
        let mut values = Vec::new();
        // Names of columns are constants of the callers; every value is a parameter.
        for (column, value) in self.wanted {
            if let Some(value) = value {
                values.push(*value);
                conditions += &format!(" and {table}.{column} = ${}", values.len() + 1);
            }
        }

        conditions += self.also;
        (conditions, values)
    }

    fn order(&self) -> String {
        format!("order by {}.{} desc", self.table, self.id)
    }
}
