//! Filters of the list of envelopes that users keep for themselves.

use crate::SqlConnection;

use super::row::{query_rows, table_row};
use super::statement::RunStatement as _;
use super::{StoreError, WriteTransaction};
use holdfast_domain::clock::Timestamp;
use holdfast_domain::user::User;

/// A filter with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFilter {
    /// One of a user's filters has it.
    pub name: String,
    /// Conditions as the query of the list's address, without a question mark.
    pub query: String,
}

/// Returns the filters of a user, oldest first.
pub async fn list(
    connection: &mut SqlConnection,
    user: &User,
) -> Result<Vec<SavedFilter>, StoreError> {
    query_rows(
        "select {columns} from saved_filter where bucket = $1 and org_id = $2 and user_id = $3
         order by created_at, name",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .fetch_all(connection)
    .await
}

/// Adds a filter of a user, or gives the one with its name other conditions.
pub async fn save(
    tx: &mut WriteTransaction,
    user: &User,
    filter: &SavedFilter,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into saved_filter (bucket, org_id, user_id, name, query, created_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (bucket, org_id, user_id, name) do update set query = excluded.query",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(&filter.name)
    .bind(&filter.query)
    .bind(now.to_string())
    .run(tx)
    .await
}

/// Removes a filter of a user, if there is one with this name.
pub async fn remove(tx: &mut WriteTransaction, user: &User, name: &str) -> Result<(), StoreError> {
    sqlx::query(
        "delete from saved_filter where bucket = $1 and org_id = $2 and user_id = $3 and name = $4",
    )
    .bind_org(&user.org)
    .bind(user.id.as_str())
    .bind(name)
    .run(tx)
    .await
}

table_row! {
    SavedFilter of "saved_filter" by "name" {
        name: text("name"),
        query: text("query"),
    }
}
