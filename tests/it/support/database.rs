//! What is done to a service's database behind its back.

use std::time::{Duration, Instant};

use holdfast::domain::clock::Timestamp;
use holdfast::domain::id::EnvelopeId;
use holdfast::domain::ledger::GENESIS;
use holdfast::store::{api_keys, ledger};

use super::TestApp;

impl TestApp {
    /// When the organization's first key was last used, as it is stored.
    pub async fn key_last_used(&self) -> Option<Timestamp> {
        let mut connection = self.store.read().await.unwrap();
        let keys = api_keys::list(&mut connection, &self.org).await.unwrap();
        keys[0].last_used_at
    }

    /// Changes the database behind the service's back; `$1` is `value`.
    pub async fn change(&self, statement: &'static str, value: &str) {
        let mut tx = self.store.begin().await.unwrap();
        let query = sqlx::query(statement).bind(value);
        query.execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Changes the database's structure behind the service's back.
    pub async fn execute(&self, statement: &'static str) {
        let mut tx = self.store.begin().await.unwrap();
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Empties a table behind the service's back.
    pub async fn empty(&self, table: &str) {
        let mut tx = self.store.begin().await.unwrap();
        let statement = sqlx::AssertSqlSafe(format!("delete from {table}"));
        sqlx::query(statement).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// The one text that a statement finds.
    pub async fn text_of(&self, statement: &'static str) -> String {
        let mut connection = self.store.read().await.unwrap();
        let found = sqlx::query_scalar(statement).fetch_one(&mut *connection);
        found.await.unwrap()
    }

    /// How many rows a table has.
    pub async fn count(&self, table: &str) -> i64 {
        let mut connection = self.store.read().await.unwrap();
        let text = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        sqlx::query_scalar(text)
            .fetch_one(&mut *connection)
            .await
            .unwrap()
    }

    /// Waits until every job has been done or set aside.
    pub async fn wait_until_idle(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.count("job where state = 'waiting'").await > 0 {
            assert!(Instant::now() < deadline, "there is still work");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// As if the process had died in every request that named an
    /// `Idempotency-Key`: their answers are gone, their leases end then.
    pub async fn leave_claims_behind(&self, lease_until: &str) {
        let statement = "update idempotency set status = null, body = null, lease_until = $1";
        self.change(statement, lease_until).await;
    }

    /// Rewrites an envelope's ledger from an entry on, with all hashes right, as
    /// only who can write to the database can.
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

    /// Makes a log anew of the entries as they are now.
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
