//! Servers are killed while records are destroyed: after each kill, a record is whole, or unreadable with its certificate, and in
//! the end every record is destroyed, its ledger verifies, and nothing personal of it is left.
//!
//! `HOLDFAST_KILLS` sets the number of kills for `make crash`; `make test` has a few.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdfast::domain::id::{EnvelopeId, OrgId};
use holdfast::domain::ledger::verify_chain;
use holdfast::store::{destructions, envelopes, ledger};
use serde_json::{Value, json};

use super::crash::kills;
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{files_below, pdf, postgres, share_native_code};

/// Fault points of a destruction. The empty one stands for a kill from outside.
const PLACES: [&str; 6] = [
    "destruction begun",
    "objects destroyed",
    "rows destroyed",
    "key destroyed",
    "destroyed",
    "",
];
const EMAIL: &str = "quentin.zabriskie@signers.example";
const NAME: &str = "Quentin Zabriskie";

struct DestructionDrill {
    home: ServerHome,
    http: reqwest::Client,
    org: String,
    key: String,
    /// Tokens of two people.
    people: [String; 2],
    records: Vec<String>,
}

impl DestructionDrill {
    fn new(database: Option<String>) -> (Self, tempfile::TempDir) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let home = ServerHome {
            program: this_program(),
            data: folder.path().join("data"),
            database,
            settings: Vec::new(),
        };
        std::fs::create_dir_all(&home.data).unwrap();
        share_native_code(&home.data);

        let org = home.organization("Maple Motors");
        let scopes = "envelopes:read,envelopes:write,vault:read,vault:write,holds:read,holds:write";
        let key = home.key(&org, scopes);
        let person = |email: &str| {
            let issue = [
                "token",
                "issue",
                "--org",
                &org,
                "--email",
                email,
                "--role",
                "compliance",
            ];
            let (_, token) = home.operator("0s", &issue);
            token["token"].as_str().unwrap().to_owned()
        };
        let people = [person("ada@maple.example"), person("ben@maple.example")];

        let drill = Self {
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
            key,
            home,
            org,
            people,
            records: Vec::new(),
        };
        (drill, folder)
    }

    /// Sends a request with a key or a token. None if the server is gone.
    async fn post(&self, url: &str, who: Option<usize>, path: &str, body: Value) -> Option<Value> {
        let request = self.http.post(format!("{url}/api/v2{path}"));
        let request = request.header("content-type", "application/json");
        let request = match who {
            None => request.header("x-api-key", &self.key),
            Some(person) => request.bearer_auth(&self.people[person]),
        };
        let answer = request.body(body.to_string()).send().await.ok()?;
        let status = answer.status();
        let text = answer.text().await.ok()?;
        assert!(status.is_success(), "{path}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        Some(answer["data"].clone())
    }

    /// Vaults a document of a person.
    async fn vault(&mut self, url: &str) -> Option<String> {
        let body = json!({
            "envelope_name": format!("Lease of {NAME}"), "envelope_kind": "paper",
            "customer_email": "desk@maple.example", "customer_name": "Front desk",
            "metadata": { "tenant": NAME, "tenant_email": EMAIL },
        });
        let made = self.post(url, None, "/partner/envelopes", body).await?;
        let id = made["envelope_id"].as_str().unwrap().to_owned();

        let text = format!("Lease {} of {NAME}", self.records.len());
        let file = reqwest::multipart::Part::bytes(pdf::with_lines(&[&text]));
        let form = reqwest::multipart::Form::new();
        let form = form.part("file", file.mime_str("application/pdf").unwrap());
        let upload = format!("{url}/api/v2/partner/envelopes/{id}/upload");
        let upload = self.http.post(upload).header("x-api-key", &self.key);
        let uploaded = upload.multipart(form).send().await.ok()?;
        assert_eq!(uploaded.status(), 201);
        let vault = format!("/partner/envelopes/{id}/vault-in-upload");
        self.post(url, None, &vault, json!({})).await?;
        Some(id)
    }

    /// Orders the destruction of a new record. The server may be killed at any step.
    async fn order(&mut self, url: &str) -> Option<()> {
        let id = self.vault(url).await?;
        let body = json!({ "envelope_ids": [&id], "reason": "Its time is over." });
        let request = self.post(url, Some(0), "/destructions", body).await?;
        let request = request["destruction_id"].as_str().unwrap().to_owned();
        let path = format!("/destructions/{request}/authorize");
        self.post(url, Some(1), &path, json!({})).await?;
        // From here on the order may be committed without its answer.
        self.records.push(id);
        let path = format!("/destructions/{request}/carry-out");
        self.post(url, Some(0), &path, json!({})).await.map(drop)
    }

    /// Asserts that each record is whole, or has its certificate and an intact ledger. Returns how many are not destroyed.
    async fn assert_consistent(&self) -> usize {
        let store = self.home.store().await;
        let mut connection = store.read().await.unwrap();
        let org = OrgId::parse(&self.org).unwrap();
        let mut left = 0;
        for id in &self.records {
            let id = EnvelopeId::parse(id).unwrap();
            let found = envelopes::get_with_destroyed(&mut connection, &org, &id).await;
            let envelope = found.unwrap().unwrap();
            let destroyed = destructions::destroyed(&mut connection, &org, &id).await;
            let destroyed = destroyed.unwrap();
            assert_eq!(destroyed.is_some(), envelope.destruction.is_some(), "{id}");
            let entries = ledger::list(&mut connection, Some(&org), &id)
                .await
                .unwrap();
            verify_chain(&entries).unwrap();
            let of_destruction =
                |entry: &&holdfast::domain::ledger::LedgerEntry| entry.action == "record.destroyed";
            let count = entries.iter().filter(of_destruction).count();
            assert_eq!(count, usize::from(destroyed.is_some()), "{id}");
            let is_over = destroyed.is_some_and(|destroyed| destroyed.destroyed_at.is_some());
            left += usize::from(!is_over);
        }
        drop(connection);
        store.close().await;
        left
    }

    /// On PostgreSQL the clock of each server runs ahead, so the leases of the previous one have expired.
    fn ahead(&self, life: u32) -> String {
        match self.home.database {
            None => "0s".into(),
            Some(_) => format!("{}s", 20 * life),
        }
    }

    async fn run(&mut self, kills: u32) {
        let mut died_at: BTreeMap<&str, u32> = BTreeMap::new();
        for kill in 0..kills {
            let place = PLACES[kill as usize % PLACES.len()];
            let (death, ahead) = (format!("{place}:1"), self.ahead(kill));
            let variables = [
                ("HOLDFAST_CLOCK_OFFSET", ahead.as_str()),
                ("HOLDFAST_FAULTS", death.as_str()),
            ];
            let variables = &variables[..if place.is_empty() { 1 } else { 2 }];
            // A server can die at its start, with the work that the one before has left.
            if let Some(mut server) = ServerProcess::start(&self.home, &[], variables) {
                let url = server.url.clone();
                let _ = self.order(&url).await;
                let deadline = Instant::now() + Duration::from_secs(3);
                while !place.is_empty() && !server.is_dead() && Instant::now() < deadline {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let by_itself = server.is_dead();
                *died_at
                    .entry(if by_itself { place } else { "" })
                    .or_default() += 1;
                server.kill();
            } else {
                *died_at.entry(place).or_default() += 1;
            }
            self.assert_consistent().await;
        }
        println!("{kills} kills; died at {died_at:?}");
        self.finish(&self.ahead(kills)).await;
    }

    /// Lets the last server finish, and searches the remaining data.
    async fn finish(&self, ahead: &str) {
        let variables = [("HOLDFAST_CLOCK_OFFSET", ahead)];
        let server = ServerProcess::start(&self.home, &[], &variables).unwrap();
        // An order that was not committed before its server was killed leaves its record whole.
        let deadline = Instant::now() + Duration::from_secs(120);
        let store = self.home.store().await;
        loop {
            let mut connection = store.read().await.unwrap();
            let jobs = "select count(*) from job where kind = 'record.destroy'";
            let jobs: i64 = sqlx::query_scalar(jobs)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            drop(connection);
            if jobs == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{jobs} destructions");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        store.close().await;
        server.kill();

        let left = self.assert_consistent().await;
        let org = OrgId::parse(&self.org).unwrap();
        let store = self.home.store().await;
        let mut connection = store.read().await.unwrap();
        for id in &self.records {
            let id = EnvelopeId::parse(id).unwrap();
            let found = envelopes::get_with_destroyed(&mut connection, &org, &id).await;
            if found.unwrap().unwrap().destruction.is_some() {
                let own = files_below(&self.home.data.join("objects")).into_iter();
                let own = own.filter(|path| path.to_string_lossy().contains(id.as_str()));
                assert_eq!(own.count(), 0, "{id}");
                let (destroyed, report) = self.home.operator(ahead, &["verify", id.as_str()]);
                assert!(destroyed, "{report:#}");
                assert_eq!(report["verdict"], "DESTROYED", "{report:#}");
            }
        }
        drop(connection);
        store.close().await;

        // A record that is whole still has them.
        if left == 0 {
            for file in files_below(&self.home.data) {
                let bytes = std::fs::read(&file).unwrap_or_default();
                for text in [NAME, EMAIL] {
                    let is_there = bytes
                        .windows(text.len())
                        .any(|part| part == text.as_bytes());
                    assert!(!is_there, "{text} in {}", file.display());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_leave_each_record_whole_or_destroyed_on_sqlite() {
    let (mut drill, _folder) = DestructionDrill::new(None);
    drill.run(kills(PLACES.len() as u32)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_leave_each_record_whole_or_destroyed_on_postgresql() {
    let (mut drill, _folder) = DestructionDrill::new(Some(postgres::new_database().await));
    drill.run(kills(PLACES.len() as u32)).await;
}
