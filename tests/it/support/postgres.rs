//! A separate database for each test, on the PostgreSQL server that `make test` starts.
//!
//! `TEST_SHARDS` spreads its tables by bucket: `partitions` over partitions on the one server
//! (`make test-shards`), `citus` over the workers of a Citus cluster (`make test-citus`).

use std::path::Path;
use std::process::Command;

use holdfast::store::Store;
use sqlx::{AssertSqlSafe, Connection as _};

/// Creates a database and returns its URL. It is empty, unless its tables are spread.
pub async fn new_database() -> String {
    let server = std::env::var("TEST_POSTGRES_URL")
        .expect("no PostgreSQL: run the tests with `make test`, or through `tests/with-postgres`");
    let name = format!("test_{}", &holdfast::domain::id::OrgId::new().as_str()[4..]);
    // Most servers sort as people do, where `~` comes before letters and `_` is not between them.
    let create =
        format!("create database {name} locale_provider icu icu_locale 'en-US' template template0");
    run(&format!("{server}/postgres"), &create).await;

    let url = format!("{server}/{name}");
    match std::env::var("TEST_SHARDS").as_deref() {
        Err(_) => {}
        Ok("partitions") => partition(&url).await,
        Ok("citus") => {
            run(&url, "create extension citus").await;
            let port = server.rsplit_once(':').unwrap().1;
            let own = format!("select citus_set_coordinator_host('127.0.0.1', {port})");
            run(&url, &own).await;

            for worker in std::env::var("TEST_CITUS_WORKERS").unwrap().split(' ') {
                let at = format!("postgres://postgres@127.0.0.1:{worker}");
                run(&format!("{at}/postgres"), &create).await;
                run(&format!("{at}/{name}"), "create extension citus").await;
                let add = format!("select citus_add_node('127.0.0.1', {worker})");
                run(&url, &add).await;
            }

            spread(&url, "packaging/citus/distribute.sql").await;
        }
        Ok(other) => panic!("TEST_SHARDS={other}"),
    }

    url
}

/// Gives an empty database its tables, partitioned by bucket.
pub async fn partition(url: &str) {
    spread(url, "tests/partition-by-bucket.sql").await;
}

/// Opens a migrated store on a new database.
pub async fn new_store() -> Store {
    let store = Store::connect(&new_database().await).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// Returns whether a table belongs to the whole installation. All others have `bucket` in their key.
pub fn is_of_installation(table: &str) -> bool {
    include_str!("../../installation-tables")
        .lines()
        .any(|name| name == table)
}

async fn run(url: &str, statement: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn spread(url: &str, script: &str) {
    let store = Store::connect(url).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(script);
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file"])
        .args([&script, Path::new(url)])
        .output()
        .expect("psql is missing: run `tests/set-up test`");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", script.display());
}
