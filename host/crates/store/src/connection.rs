//! Connections to both databases, behind one type: the same SQL runs on each.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, future, stream};
use sqlx::any::{AnyQueryResult, AnyRow, AnyStatement, AnyTypeInfo};
use sqlx::pool::PoolConnection;
use sqlx::{Any, Connection as _, Either, Execute, Executor, SqlStr, Transaction};

use super::sqlite::{SqliteAnswer, SqliteConnection};

/// A connection that statements run on: `query.fetch_all(&mut *connection)`.
#[derive(Debug)]
pub struct SqlConnection(pub(super) ConnectionOf);

#[derive(Debug)]
pub(super) enum ConnectionOf {
    /// PostgreSQL.
    Pool(PoolConnection<Any>),
    /// PostgreSQL, in a transaction that writes.
    Transaction(Transaction<'static, Any>),
    Sqlite(Box<SqliteConnection>),
}

use ConnectionOf::{Pool, Sqlite, Transaction as Begun};

impl SqlConnection {
    pub(super) fn is_sqlite(&self) -> bool {
        matches!(self.0, Sqlite(_))
    }

    pub(super) fn is_in_transaction(&mut self) -> bool {
        match &mut self.0 {
            Pool(connection) => connection.is_in_transaction(),
            Begun(_) => true,
            Sqlite(connection) => connection.is_in_transaction(),
        }
    }

    /// Tests whether the server still answers. A file does.
    pub(super) async fn ping(&mut self) -> sqlx::Result<()> {
        match &mut self.0 {
            Pool(connection) => connection.ping().await,
            Begun(transaction) => transaction.ping().await,
            Sqlite(_) => Ok(()),
        }
    }
}

async fn run<'q, E: Execute<'q, Any>>(
    connection: &mut SqliteConnection,
    mut query: E,
    most: usize,
) -> sqlx::Result<SqliteAnswer> {
    // A statement never waits, so a task that runs many would never let others of its thread run.
    tokio::task::coop::consume_budget().await;

    let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?;
    let arguments = arguments.map(|given| given.values.0);
    connection.run(query.sql().as_str(), arguments, most)
}

impl<'c> Executor<'c> for &'c mut SqlConnection {
    type Database = Any;

    fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<AnyQueryResult>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        match &mut self.0 {
            Pool(connection) => (&mut **connection).execute(query),
            Begun(transaction) => (&mut **transaction).execute(query),
            Sqlite(connection) => {
                async move { Ok(run(connection, query, usize::MAX).await?.result) }.boxed()
            }
        }
    }

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, sqlx::Result<Either<AnyQueryResult, AnyRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        match &mut self.0 {
            Pool(connection) => (&mut **connection).fetch_many(query),
            Begun(transaction) => (&mut **transaction).fetch_many(query),
            Sqlite(connection) => {
                let answer = run(connection, query, usize::MAX);
                let steps = answer.into_stream().map_ok(|answer| {
                    let rows = answer.rows.into_iter().map(Either::Right);
                    stream::iter(rows.chain([Either::Left(answer.result)]).map(Ok))
                });
                steps.try_flatten().boxed()
            }
        }
    }

    fn fetch_all<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Vec<AnyRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        match &mut self.0 {
            Pool(connection) => (&mut **connection).fetch_all(query),
            Begun(transaction) => (&mut **transaction).fetch_all(query),
            Sqlite(connection) => {
                async move { Ok(run(connection, query, usize::MAX).await?.rows) }.boxed()
            }
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<AnyRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Any>,
    {
        match &mut self.0 {
            Pool(connection) => (&mut **connection).fetch_optional(query),
            Begun(transaction) => (&mut **transaction).fetch_optional(query),
            Sqlite(connection) => {
                async move { Ok(run(connection, query, 1).await?.rows.pop()) }.boxed()
            }
        }
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [AnyTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<AnyStatement>>
    where
        'c: 'e,
    {
        match &mut self.0 {
            Pool(connection) => (&mut **connection).prepare_with(sql, parameters),
            Begun(transaction) => (&mut **transaction).prepare_with(sql, parameters),
            // Statements are prepared where they run, and nothing here prepares one by itself.
            Sqlite(_) => {
                let why = "statements of SQLite are prepared when they run";
                future::ready(Err(sqlx::Error::Configuration(why.into()))).boxed()
            }
        }
    }
}
