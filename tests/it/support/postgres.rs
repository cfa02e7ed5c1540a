//! A database of its own on the PostgreSQL server that `make test` starts.

use holdfast::store::Store;
use sqlx::{AssertSqlSafe, Connection as _};

/// The URL of a new, empty database.
pub async fn new_database() -> String {
    let server = std::env::var("TEST_POSTGRES_URL")
        .expect("no PostgreSQL: run the tests with `make test`, or through `tests/with-postgres`");
    sqlx::any::install_default_drivers();
    let name = format!("test_{}", &holdfast::domain::id::OrgId::new().as_str()[4..]);
    let mut connection = sqlx::AnyConnection::connect(&format!("{server}/postgres"))
        .await
        .unwrap();
    let create = AssertSqlSafe(format!("create database {name}"));
    sqlx::query(create).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    format!("{server}/{name}")
}

/// A migrated store on a new database.
pub async fn new_store() -> Store {
    let store = Store::connect(&new_database().await).await.unwrap();
    store.migrate().await.unwrap();
    store
}
