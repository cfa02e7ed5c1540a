//! Results that callers need of a statement.

use sqlx::any::{Any, AnyArguments};
use sqlx::query::Query;

use super::{SqlConnection, StoreError};
use holdfast_domain::id::OrgId;

/// Binds parameters of a statement, and runs it for one result.
pub(super) trait RunStatement: Sized {
    /// Binds the bucket of an organization and its id, as two parameters.
    fn bind_org(self, org: &OrgId) -> Self;

    /// Binds the bucket of an organization and the id of a row in it, as two parameters: most tables have them as the key.
    fn bind_key(self, org: &OrgId, id: &str) -> Self;

    /// Runs a write.
    fn run(
        self,
        connection: &mut SqlConnection,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a write with a condition, and returns whether it changed one row.
    fn changes_row(
        self,
        connection: &mut SqlConnection,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Runs a write with a condition. One that does not change one row is a
    /// [`StoreError::Conflict`]: another writer was first.
    fn run_guarded(
        self,
        connection: &mut SqlConnection,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a query, and returns whether it found a row.
    fn finds_row(
        self,
        connection: &mut SqlConnection,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

impl RunStatement for Query<'_, Any, AnyArguments> {
    fn bind_org(self, org: &OrgId) -> Self {
        self.bind(org.bucket()).bind(org.as_str())
    }

    fn bind_key(self, org: &OrgId, id: &str) -> Self {
        self.bind(org.bucket()).bind(id)
    }

    async fn run(self, connection: &mut SqlConnection) -> Result<(), StoreError> {
        self.execute(connection).await?;
        Ok(())
    }

    async fn changes_row(self, connection: &mut SqlConnection) -> Result<bool, StoreError> {
        Ok(self.execute(connection).await?.rows_affected() == 1)
    }

    async fn run_guarded(self, connection: &mut SqlConnection) -> Result<(), StoreError> {
        if self.changes_row(connection).await? {
            Ok(())
        } else {
            Err(StoreError::Conflict)
        }
    }

    async fn finds_row(self, connection: &mut SqlConnection) -> Result<bool, StoreError> {
        Ok(self.fetch_optional(connection).await?.is_some())
    }
}
