//! Lists in pages, newest first.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row as _};

use super::StoreError;

/// What a list is of.
pub(super) struct List<'a> {
    /// `select … from table …`: what it joins has columns of the same names.
    pub select: &'a str,
    pub table: &'a str,
    /// Sorts by age.
    pub id: &'a str,
    pub bucket: i64,
    /// What columns have to hold, where it is asked for.
    pub wanted: &'a [(&'a str, Option<&'a str>)],
    /// Further conditions: ` and …`.
    pub also: &'a str,
}

impl List<'_> {
    /// The rows of a page, the first of which is 1, and how many there are in all.
    pub async fn page(
        &self,
        connection: &mut AnyConnection,
        page: i64,
        limit: i64,
    ) -> Result<(Vec<AnyRow>, i64), StoreError> {
        let Self { table, id, .. } = self;
        let mut conditions = format!("{table}.bucket = $1");
        let mut values = Vec::new();
        for (column, value) in self.wanted {
            if let Some(value) = value {
                values.push(*value);
                conditions += &format!(" and {table}.{column} = ${}", values.len() + 1);
            }
        }
        conditions += self.also;
        let order = format!("order by {table}.{id} desc");
        // In their order, they are counted in the index that the page is found in: one
        // part of the database is read for both.
        let count = format!(
            "select count(*) as total from
             (select {id} from {table} where {conditions} {order}) as counted"
        );
        let mut query = sqlx::query(AssertSqlSafe(count)).bind(self.bucket);
        for value in &values {
            query = query.bind(*value);
        }
        let total = query.fetch_one(&mut *connection).await?.try_get("total")?;

        let range = format!("limit ${} offset ${}", values.len() + 2, values.len() + 3);
        let select = self.select;
        let text = if page == 1 {
            format!("{select} where {conditions} {order} {range}")
        } else {
            // The rows of the pages before are passed over in the index, and not read.
            format!(
                "{select} where {table}.bucket = $1 and {table}.{id} in
                 (select {id} from {table} where {conditions} {order} {range}) {order}"
            )
        };
        let mut query = sqlx::query(AssertSqlSafe(text)).bind(self.bucket);
        for value in &values {
            query = query.bind(*value);
        }
        let rows = query
            .bind(limit)
            .bind((page - 1).saturating_mul(limit))
            .fetch_all(connection)
            .await?;
        Ok((rows, total))
    }
}
