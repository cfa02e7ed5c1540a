//! Reads and changes a service's database directly, bypassing the service.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use holdfast::domain::clock::Timestamp;
use holdfast::domain::event::EventType;
use holdfast::domain::id::EnvelopeId;
use holdfast::domain::ledger::GENESIS;
use holdfast::http::event_schemas;
use holdfast::store::{api_keys, ledger};

use serde_json::Value;

use super::TestApp;

impl TestApp {
    /// Returns the stored time at which the organization's first key was last used.
    pub async fn key_last_used(&self) -> Option<Timestamp> {
        let mut connection = self.store.read().await.unwrap();
        let keys = api_keys::list(&mut connection, &self.org).await.unwrap();
        keys[0].last_used_at
    }

    /// Executes a statement directly on the database; `$1` is `value`.
    pub async fn change(&self, statement: &'static str, value: &str) {
        let mut tx = self.store.begin().await.unwrap();
        let query = sqlx::query(statement).bind(value);
        query.execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Executes a statement without parameters, such as DDL, directly on the database.
    pub async fn execute(&self, statement: &'static str) {
        let mut tx = self.store.begin().await.unwrap();
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Deletes all rows of a table.
    pub async fn empty(&self, table: &str) {
        let mut tx = self.store.begin().await.unwrap();
        let statement = sqlx::AssertSqlSafe(format!("delete from {table}"));
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Asserts that the bodies of all events fit their schemas in the OpenAPI document, and that there are at least
    /// `types` types of them.
    pub async fn events_fit_their_schemas(&self, types: usize) {
        let mut connection = self.store.read().await.unwrap();
        let bodies: Vec<String> = sqlx::query_scalar("select body from event")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        let mut seen = BTreeSet::new();

        // Bodies are emptied after their time.
        for body in bodies.iter().filter(|body| !body.is_empty()) {
            let body: Value = serde_json::from_str(body).unwrap();
            let name = body["event_type"].as_str().unwrap().to_owned();
            let event = EventType::parse(&name).unwrap();
            let schema = event_schemas::body(event).to_value();
            let validator = jsonschema::validator_for(&schema).unwrap();
            let problems: Vec<String> = validator
                .iter_errors(&body)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(problems.is_empty(), "{name}: {problems:#?}: {body:#}");

            let documented = &schema["properties"]["data"]["properties"];
            for member in body["data"].as_object().unwrap().keys() {
                assert!(
                    documented.get(member).is_some(),
                    "{name} has an undocumented member {member}"
                );
            }

            seen.insert(name);
        }

        assert!(seen.len() >= types, "{seen:?}");
    }

    /// Returns the single text that a query selects.
    pub async fn text_of(&self, statement: &'static str) -> String {
        let mut connection = self.store.read().await.unwrap();
        let found = sqlx::query_scalar(statement).fetch_one(&mut *connection);
        found.await.unwrap()
    }

    /// Counts the rows of a table.
    pub async fn count(&self, table: &str) -> i64 {
        let mut connection = self.store.read().await.unwrap();
        let text = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        sqlx::query_scalar(text)
            .fetch_one(&mut *connection)
            .await
            .unwrap()
    }

    /// Waits until every job has finished or has been set aside.
    pub async fn wait_until_idle(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.count("job where state = 'waiting'").await > 0 {
            assert!(Instant::now() < deadline, "there is still work");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Simulates a crash in every request that had an `Idempotency-Key`: removes the stored
    /// responses and ends the leases at `lease_until`.
    pub async fn abandon_idempotency_claims(&self, lease_until: &str) {
        let statement = "update idempotency set status = null, body = null, lease_until = $1";
        self.change(statement, lease_until).await;
    }

    /// Rewrites an envelope's ledger from one entry on with consistent hashes, like an attacker who
    /// can write to the database.
    pub async fn rewrite_ledger(&self, id: &str, from: i64, actor: &str) {
        let id = EnvelopeId::parse(id).unwrap();
        let mut tx = self.store.begin().await.unwrap();
        let mut entries = ledger::list(&mut tx, Some(&self.org), &id).await.unwrap();

        let mut previous = GENESIS.to_owned();
        for entry in &mut entries {
            if entry.sequence == from {
                entry.actor = actor.into();
            }

            entry.previous_hash = previous;
            entry.hash = entry.computed_hash();
            previous = entry.hash.clone();
            let update = "update ledger_entry set actor = $3, previous_hash = $4, hash = $5
                where envelope_id = $1 and sequence = $2";
            let update = sqlx::query(update)
                .bind(id.as_str())
                .bind(entry.sequence)
                .bind(&entry.actor)
                .bind(&entry.previous_hash)
                .bind(&entry.hash);

            update.execute(&mut *tx).await.unwrap();
        }

        tx.commit().await.unwrap();
    }

    /// Rebuilds the log from the present ledger entries.
    pub async fn rebuild_log(&self) {
        let mut tx = self.store.begin().await.unwrap();
        for statement in [
            "delete from ledger_leaf",
            "delete from ledger_tile",
            "delete from ledger_pending",
            "update ledger_log set tree_size = 0, root_hash = '', checkpoint = null",
            "insert into ledger_pending (bucket, envelope_id, sequence, hash, at)
                select bucket, envelope_id, sequence, hash, at from ledger_entry",
        ] {
            sqlx::query(statement).execute(&mut *tx).await.unwrap();
        }

        tx.commit().await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.count("ledger_pending").await > 0 {
            assert!(Instant::now() < deadline, "the log is not being extended");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
