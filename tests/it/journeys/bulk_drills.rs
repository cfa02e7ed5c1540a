//! A batch during which servers are killed: at the end every client has one envelope and one
//! submission, and the batch has a single `bulk.completed` event.
//!
//! `HOLDFAST_KILLS` asks for the long drill of `make crash`: 20 kills in a batch of
//! 1,000. `make test` has a shorter one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::Row as _;

use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{files_below, pdf, postgres, share_native_code};

/// Fault points in the work on a batch at which a server kills itself. The empty one stands for
/// a kill from outside.
const PLACES: [&str; 4] = ["bulk claimed", "bulk submitted", "bulk settled", ""];

/// Returns the number of kills and of clients.
fn size() -> (usize, usize) {
    match std::env::var("HOLDFAST_KILLS") {
        Ok(_) => (20, 1_000),
        Err(_) => (4, 120),
    }
}

struct BulkDrill {
    home: ServerHome,
    http: reqwest::Client,
    token: String,
    org: String,
    batch: String,
    clients: usize,
}

impl BulkDrill {
    async fn new(database: Option<String>, clients: usize) -> (Self, tempfile::TempDir) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        share_native_code(folder.path());
        let home = ServerHome {
            program: this_program(),
            data: folder.path().to_owned(),
            database,
            settings: Vec::new(),
        };
        let org = home.organization("Maple");
        let issue = [
            "token",
            "issue",
            "--org",
            &org,
            "--email",
            "alex@maple.example",
            "--role",
            "admin",
        ];

        let (_, token) = home.operator("0s", &issue);
        let mut drill = Self {
            home,
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
            token: token["token"].as_str().unwrap().to_owned(),
            org,
            batch: String::new(),
            clients,
        };

        let server = ServerProcess::start(&drill.home, &[], &[]).unwrap();
        drill.set_up(&server.url).await;
        server.kill();

        (drill, folder)
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> Result<Value, reqwest::Error> {
        let request = request
            .bearer_auth(&self.token)
            .header("x-org-id", &self.org);
        let answer = request.send().await?.error_for_status()?;
        let mut body: Value = serde_json::from_slice(&answer.bytes().await?).unwrap();
        Ok(body["data"].take())
    }

    async fn post(&self, url: &str, path: &str, body: &Value) -> Value {
        let request = self
            .http
            .post(format!("{url}/api/v2{path}"))
            .header("content-type", "application/json")
            .body(body.to_string());
        self.ask(request).await.unwrap()
    }

    async fn set_up(&mut self, url: &str) {
        let document = pdf::with_lines(&["{{Sign;type=signature;role=Client;required=true}}"]);
        let file = reqwest::multipart::Part::bytes(document)
            .mime_str("application/pdf")
            .unwrap();
        let form = reqwest::multipart::Form::new()
            .text("name", "Notice")
            .part("file", file);
        let request = self
            .http
            .post(format!("{url}/api/v2/templates"))
            .multipart(form);
        let template = self.ask(request).await.unwrap();

        let mut ids = Vec::new();
        for number in 0..self.clients {
            let email = format!("client{number}@example.com");
            let client = json!({ "name": format!("Client {number}"), "email": email });
            ids.push(self.post(url, "/customers", &client).await["customer_id"].clone());
        }

        let batch = json!({
            "name": "Notice", "document_source": "template",
            "source_template_id": template["template_id"],
        });
        let batch = self.post(url, "/bulk-send", &batch).await;
        self.batch = batch["batch_id"].as_str().unwrap().to_owned();
        let session = json!({ "batch_id": self.batch });
        self.post(url, "/esign/builder-session", &session).await;

        let items = format!("/bulk-send/{}/items", self.batch);
        let added = self
            .post(url, &items, &json!({ "customer_ids": ids }))
            .await;
        assert_eq!(added["added"], self.clients);

        let submit = format!("/bulk-send/{}/submit", self.batch);
        self.post(url, &submit, &json!({})).await;
    }

    /// Returns the counts of the batch, or none when the server is gone.
    async fn counts(&self, url: &str) -> Option<Value> {
        let path = format!("{url}/api/v2/bulk-send/{}", self.batch);
        let seen = self.ask(self.http.get(path)).await.ok()?;
        let total: i64 = seen["counts"]
            .as_object()
            .unwrap()
            .values()
            .map(|count| count.as_i64().unwrap())
            .sum();
        assert_eq!(total, self.clients as i64, "{}", seen["counts"]);

        let mut counts = seen["counts"].clone();
        counts["status"] = seen["batch"]["status"].clone();
        Some(counts)
    }

    /// Runs and kills servers one after the other, each after about the same share of the batch.
    async fn run(&self, kills: usize) {
        let share = self.clients / (kills + 1);
        let mut at = Vec::new();
        for kill in 0..kills {
            let place = PLACES[kill % PLACES.len()];
            let death = format!("{place}:{}", 1 + kill % 3);

            // On PostgreSQL the clock of each server runs ahead, so the leases of the
            // previous one have expired.
            let ahead = match self.home.database {
                None => "0s".to_owned(),
                Some(_) => format!("{}s", 20 * kill),
            };
            let variables = [
                ("HOLDFAST_CLOCK_OFFSET", ahead.as_str()),
                ("HOLDFAST_FAULTS", death.as_str()),
            ];
            let variables = &variables[..if place.is_empty() { 1 } else { 2 }];
            let Some(mut server) = ServerProcess::start(&self.home, &[], variables) else {
                at.push((place, -1));
                continue;
            };

            let deadline = Instant::now() + Duration::from_secs(20);
            let mut sent = 0;
            while !server.is_dead() && Instant::now() < deadline {
                if let Some(counts) = self.counts(&server.url).await {
                    sent = counts["sent"].as_i64().unwrap();
                }

                // The kill from outside comes after the server has done its share.
                if place.is_empty() && sent >= ((kill + 1) * share) as i64 {
                    break;
                }

                tokio::time::sleep(Duration::from_millis(3)).await;
            }

            server.kill();
            at.push((place, sent));
        }

        println!("{kills} kills, when so many were sent: {at:?}");
    }

    async fn ends_well(&self, kills: usize, started: Instant) {
        let ahead = match self.home.database {
            None => "0s".to_owned(),
            Some(_) => format!("{}s", 20 * kills),
        };
        let variables = [("HOLDFAST_CLOCK_OFFSET", ahead.as_str())];
        let server = ServerProcess::start(&self.home, &[], &variables).unwrap();

        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let counts = self.counts(&server.url).await.unwrap();
            if counts["status"] == "completed" {
                assert_eq!(counts["sent"], self.clients, "{counts}");
                break;
            }
            assert!(Instant::now() < deadline, "{counts}");

            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        println!("{} clients after {:?}", self.clients, started.elapsed());

        // Every client gets exactly one mail.
        let outbox = self.home.data.join("outbox");

        // Mails that a killed server left incomplete have another extension.
        let whole = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "eml");
        let mailed = || {
            files_below(&outbox)
                .iter()
                .filter(|file| whole(file))
                .count()
        };
        while mailed() < self.clients {
            assert!(Instant::now() < deadline, "{} mails", mailed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        self.lanes_end(deadline).await;
        server.kill();
        assert_eq!(mailed(), self.clients);

        self.everybody_has_one_of_each().await;
    }

    /// Waits until the lanes have found no more work and ended.
    async fn lanes_end(&self, deadline: Instant) {
        let store = self.home.store().await;
        let query = "select count(*) from job where kind like 'bulk.%'";
        loop {
            let mut connection = store.read().await.unwrap();
            let lanes: i64 = sqlx::query_scalar(query)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            if lanes == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{lanes} lanes go on");

            drop(connection);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        store.close().await;
    }

    async fn everybody_has_one_of_each(&self) {
        let store = self.home.store().await;
        let mut connection = store.read().await.unwrap();
        let mut number = async |query: &'static str| -> i64 {
            let row = sqlx::query(query)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            row.get::<i64, _>(0)
        };

        let clients = self.clients as i64;
        for (query, expected) in [
            ("select count(*) from envelope", clients),
            (
                "select count(distinct customer_id) from envelope where status = 'sent'",
                clients,
            ),
            (
                "select count(distinct provider_submission) from envelope",
                clients,
            ),
            (
                "select count(*) from room_submission where archived_at is null",
                clients,
            ),
            (
                "select count(*) from room_template where external_id like 'bsi_%'",
                clients,
            ),
            (
                "select count(distinct envelope_id) from bulk_item where status = 'sent'",
                clients,
            ),
            (
                "select count(*) from event where event_type = 'envelope.created'",
                clients,
            ),
            (
                "select count(*) from event where event_type = 'envelope.sent'",
                clients,
            ),
            (
                "select count(*) from event where event_type = 'bulk.completed'",
                1,
            ),
            ("select count(*) from signer", clients),
        ] {
            assert_eq!(number(query).await, expected, "{query}");
        }

        drop(connection);
        store.close().await;
    }
}

async fn drill(database: Option<String>) {
    let (kills, clients) = size();
    let (drill, _folder) = BulkDrill::new(database, clients).await;
    let started = Instant::now();
    drill.run(kills).await;
    drill.ends_well(kills, started).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_survives_server_kills() {
    drill(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_survives_server_kills_on_postgresql() {
    drill(Some(postgres::new_database().await)).await;
}
