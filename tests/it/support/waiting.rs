//! Waits for the worker.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{TestApp, files_below};

impl TestApp {
    /// Waits until the envelope has this status and returns it; fails after two minutes.
    pub async fn wait_for(&self, id: &str, status: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        let admin = self.web_admin();
        loop {
            let path = format!("/envelopes/{id}");
            let now = self.get_with_bearer(admin, &path).await.data(200);
            if now["status"] == status {
                let path = format!("/partner/envelopes/{id}/status");
                return self.get(&path).await.data(200);
            }
            assert!(Instant::now() < deadline, "still {now} and not {status}");

            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the envelope has an event of this type.
    pub async fn wait_for_event(&self, id: &str, event_type: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self
            .event_types(id)
            .await
            .iter()
            .any(|known| known == event_type)
        {
            assert!(Instant::now() < deadline, "no {event_type}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the custody ledger has an entry with this action, and returns the details of the newest one.
    pub async fn wait_for_entry(&self, id: &str, action: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let ledger = self.custody(id).await;
            let mut entries = ledger["entries"].as_array().unwrap().iter().rev();
            if let Some(entry) = entries.find(|entry| entry["action"] == action) {
                return entry["details"].clone();
            }
            assert!(Instant::now() < deadline, "no entry {action}");

            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for a mail that fits.
    pub async fn wait_for_mail(&self, fits: impl Fn(&String) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.wait_for_mails(1).await.iter().any(&fits) {
            assert!(Instant::now() < deadline, "no such mail");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for `count` mails in the outbox and returns them.
    pub async fn wait_for_mails(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let mut mails = files_below(&self.data.path().join("outbox"));
            // A mail that is still being written has another extension.
            mails.retain(|mail| mail.extension().is_some_and(|extension| extension == "eml"));
            if mails.len() >= count {
                return mails
                    .iter()
                    .map(|mail| std::fs::read_to_string(mail).unwrap())
                    .collect();
            }

            assert!(
                Instant::now() < deadline,
                "{} mails and not {count}",
                mails.len()
            );

            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for `count` text messages in the outbox and returns them, oldest first.
    pub async fn wait_for_texts(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let mut texts = files_below(&self.data.path().join("outbox"));
            texts.retain(|text| text.extension().is_some_and(|extension| extension == "txt"));
            if texts.len() >= count {
                texts.sort_by_key(|text| text.metadata().unwrap().modified().unwrap());
                let texts = texts.iter().map(std::fs::read_to_string);
                return texts.map(Result::unwrap).collect();
            }

            let found = texts.len();
            assert!(
                Instant::now() < deadline,
                "{found} text messages and not {count}"
            );

            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a sweep has removed a file.
    pub async fn wait_until_gone(&self, path: &Path) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while path.exists() {
            assert!(
                Instant::now() < deadline,
                "{} is still there",
                path.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
