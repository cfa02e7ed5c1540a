//! A server that is killed repeatedly at any moment loses nothing and repeats nothing.
//!
//! Eight envelopes are in flight at a time. Each run of the server ends with SIGKILL: sent by
//! itself at a named fault point (`host/crates/base/src/faults.rs`), or from outside at a random time.
//! `HOLDFAST_KILLS` sets the number of kills for `make crash`; `make test` uses each fault point
//! once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use reqwest::multipart;
use serde_json::{Value, json};

use crate::support::authority::{AuthorityBehaviour, FakeTimestampAuthority};
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{
    CONTRACT, envelope_body, files_below, form, postgres, release_form, share_native_code,
};

/// Fault points before and after every durable write.
const PLACES: [&str; 18] = [
    "confirm",
    "confirm recorded",
    "fetch",
    "fetch recorded",
    "time",
    "time recorded",
    "seal",
    "copy",
    "certify",
    "record",
    "settle",
    "settled",
    "sequence",
    "sequenced",
    "archived",
    "released",
    "deleted",
    // A kill from outside, at a random time.
    "",
];
const IN_FLIGHT: usize = 8;
const KEYS: usize = 12;

/// An envelope that the server has acknowledged.
#[derive(Clone, Debug)]
pub struct TrackedEnvelope {
    pub id: String,
    sign_url: String,
    status: String,
}

/// State of the drill, which outlives every server.
pub struct CrashDrill {
    pub home: ServerHome,
    /// Folder that holds the objects.
    objects: PathBuf,
    client: DrillClient,
    org: String,
    template: Value,
    pub tracked: Vec<TrackedEnvelope>,
    random: u64,
    /// Its seals have time stamps.
    _authority: Option<FakeTimestampAuthority>,
}

impl CrashDrill {
    async fn new(database: Option<String>) -> (Self, tempfile::TempDir) {
        let key = ["-newkey", "rsa:2048"];
        let authority = FakeTimestampAuthority::start(&key, AuthorityBehaviour::Right).await;
        let setting = |name: &str, value: String| (format!("HOLDFAST_SEAL__{name}"), value);
        let folder = tempfile::tempdir().unwrap();
        let home = ServerHome {
            program: this_program(),
            data: folder.path().to_owned(),
            database,
            settings: vec![
                setting("TIMESTAMP_URL", authority.url.clone()),
                setting(
                    "TIMESTAMP_TRUST_FILE",
                    authority.root().display().to_string(),
                ),
            ],
        };

        let objects = folder.path().join("objects");
        let drill = Self {
            _authority: Some(authority),
            ..Self::at(home, objects).await
        };
        (drill, folder)
    }

    /// Sets up an installation with its objects in this folder.
    pub async fn at(home: ServerHome, objects: PathBuf) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        share_native_code(&home.data);
        let org = home.organization("Maple");
        let scopes = "envelopes:read,envelopes:write,compliance:read,vault:write,vault:release";
        let keys = (0..KEYS).map(|_| home.key(&org, scopes));
        let client = DrillClient {
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
            keys: keys.collect(),
            life: 0,
        };

        let server = ServerProcess::start(&home, &[], &[]).unwrap();
        let template = client.template(&server.url).await.unwrap();
        server.kill();

        Self {
            home,
            objects,
            client,
            org,
            template,
            tracked: Vec::new(),
            // Any seed works; a failed drill prints it.
            random: 0x9E37_79B9_7F4A_7C15,
            _authority: None,
        }
    }

    /// Returns the next pseudo-random number (xorshift). A failed drill can be repeated with its
    /// seed.
    pub fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// Returns the clock offset of the nth server. On PostgreSQL the clock of each server runs far
    /// enough ahead that the leases of the previous one have expired; the last server has to wait
    /// for them in real time.
    fn ahead(&self, life: u32) -> String {
        match self.home.database {
            None => "0s".into(),
            Some(_) => format!("{}s", 20 * life),
        }
    }

    fn in_flight(&self) -> usize {
        let done = |status: &str| status == "vaulted" || status == "vaulted_out";
        self.tracked.iter().filter(|one| !done(&one.status)).count()
    }

    /// Sends, signs and releases envelopes until the server is gone. Any response may be lost.
    async fn work(&mut self, server: &mut ServerProcess, until: Instant) {
        self.client.life += 1;
        let urls = [server.url.clone()];
        let mut rounds = 0;
        while !server.is_dead() && Instant::now() < until {
            rounds += 1;
            self.round(&urls, rounds).await;
        }
    }

    /// Does the same on several nodes, which may be up or down, for the given time.
    pub async fn work_at(&mut self, urls: &[String], time: Duration) {
        self.client.life += 1;
        let until = Instant::now() + time;
        let mut rounds = 0;
        while Instant::now() < until {
            rounds += 1;
            self.round(urls, rounds).await;
        }
    }

    /// Creates an envelope; returns the response, or a text about the failure.
    pub async fn create(&self, url: &str) -> Result<Value, String> {
        let body = envelope_body(&self.template);
        self.client.post(url, "/partner/envelopes", &body).await
    }

    /// Uploads a template with its document.
    pub async fn upload(&self, url: &str) -> Result<Value, String> {
        self.client.template(url).await
    }

    async fn round(&mut self, urls: &[String], rounds: usize) {
        while self.in_flight() < IN_FLIGHT {
            let url = &urls[(self.tracked.len() + rounds) % urls.len()];
            let Ok(created) = self.create(url).await else {
                break;
            };

            self.tracked.push(TrackedEnvelope {
                id: created["envelope_id"].as_str().unwrap().into(),
                sign_url: created["sign_url"].as_str().unwrap().into(),
                status: "sent".into(),
            });
        }

        let client = &self.client;
        let ask = |(nth, mut one): (usize, TrackedEnvelope)| async move {
            if one.status == "vaulted" || one.status == "vaulted_out" {
                return one;
            }

            let url = &urls[(nth + rounds) % urls.len()];
            if one.status == "sent" || one.status == "viewed" {
                // The link contains the address of the server that made it.
                let path = one.sign_url.split_once("/sign/").unwrap().1;
                let _ = client.sign(&format!("{url}/sign/{path}")).await;
            }

            let path = format!("/partner/envelopes/{}/status", one.id);
            if let Ok(status) = client.get(url, &path).await {
                one.status = status["status"].as_str().unwrap().to_owned();
            }

            one
        };

        let asked_of = self.tracked.iter().cloned().enumerate().map(ask);
        self.tracked = futures::future::join_all(asked_of).await;

        // Some envelopes are released, the others stay in the vault.
        let url = &urls[rounds % urls.len()];
        let oldest = self.tracked.iter_mut().find(|one| one.status == "vaulted");
        if let Some(oldest) = oldest.filter(|_| rounds % 8 == 4) {
            let path = format!("/partner/envelopes/{}/vault-out", oldest.id);
            if client.post(url, &path, &release_form()).await.is_ok() {
                oldest.status = "vaulted_out".into();
            }
        }

        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Kills a number of servers, then lets the last one finish.
    async fn run(&mut self, kills: u32) {
        let mut died_at: BTreeMap<&str, u32> = BTreeMap::new();
        let mut killed = 0;
        while killed < kills {
            let place = PLACES[killed as usize % PLACES.len()];
            let passing = 1 + self.random(if place.is_empty() { 1 } else { 4 });
            let death = format!("{place}:{passing}");
            let ahead = self.ahead(killed);
            let variables = [
                ("HOLDFAST_CLOCK_OFFSET", ahead.as_str()),
                ("HOLDFAST_FAULTS", death.as_str()),
            ];
            let variables = &variables[..if place.is_empty() { 1 } else { 2 }];

            let life = match place {
                "" => Duration::from_millis(100 + self.random(1500)),
                // A server that does not reach its fault point is killed from outside.
                _ => Duration::from_secs(10),
            };
            if let Some(mut server) = ServerProcess::start(&self.home, &[], variables) {
                self.work(&mut server, Instant::now() + life).await;
                if server.is_dead() {
                    *died_at.entry(place).or_default() += 1;
                } else {
                    *died_at.entry("").or_default() += 1;
                }

                server.kill();
            } else {
                *died_at.entry(place).or_default() += 1;
            }

            killed += 1;
        }

        println!("{killed} kills; died at {died_at:?}");
        let last_death = Instant::now();
        let ahead = self.ahead(killed - 1);
        let variables = [("HOLDFAST_CLOCK_OFFSET", ahead.as_str())];
        let server = ServerProcess::start(&self.home, &[], &variables).unwrap();
        self.settle(server, last_death).await;
    }

    /// Waits until the envelopes in flight are finished, without sending more.
    async fn settle(&mut self, server: ServerProcess, since: Instant) {
        self.finish(&server, since).await;
        server.kill();
        self.assert_no_leftovers().await;
    }

    /// Finishes the envelopes in flight and asserts that each exists exactly once.
    pub async fn finish(&mut self, server: &ServerProcess, since: Instant) {
        self.client.life += 1;
        loop {
            let mut waiting = Vec::new();
            for one in &mut self.tracked {
                if one.status == "sent" || one.status == "viewed" {
                    let path = one.sign_url.split_once("/sign/").unwrap().1;
                    let _ = self
                        .client
                        .sign(&format!("{}/sign/{path}", server.url))
                        .await;
                }

                let path = format!("/partner/envelopes/{}/status", one.id);
                let status = self.client.get(&server.url, &path).await.unwrap();
                one.status = status["status"].as_str().unwrap().to_owned();

                if one.status != "vaulted" && one.status != "vaulted_out" {
                    waiting.push(one.clone());
                }
            }

            if waiting.is_empty() {
                break;
            }

            let waited = since.elapsed();
            if waited > Duration::from_secs(120) {
                panic!("{waited:?}: {waiting:?}, jobs: {:?}", self.jobs().await);
            }

            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        let (envelopes, waited) = (self.tracked.len(), since.elapsed());
        println!("{envelopes} envelopes, the last of them done after {waited:?}");
        self.assert_each_envelope_once(server).await;
    }

    pub async fn assert_each_envelope_once(&self, server: &ServerProcess) {
        for one in &self.tracked {
            let custody = self.placed_custody(server, &one.id).await;
            let entries = custody["entries"].as_array().unwrap();
            let mut times: BTreeMap<&str, usize> = BTreeMap::new();
            for entry in entries {
                *times.entry(entry["action"].as_str().unwrap()).or_default() += 1;
            }

            // Each of these entries proves a step that must not be repeated.
            for once in ["envelope.created", "envelope.completed", "vault.stored"] {
                assert_eq!(times.get(once), Some(&1), "{once} of {}: {times:?}", one.id);
            }

            let released = usize::from(one.status == "vaulted_out");
            assert_eq!(times.get("vault.released").copied().unwrap_or(0), released);
        }

        let store = holdfast::store::Store::connect(&self.database_url())
            .await
            .unwrap();
        let mut connection = store.read().await.unwrap();
        for one in &self.tracked {
            let org = holdfast::domain::id::OrgId::parse(&self.org).unwrap();
            let id = holdfast::domain::id::EnvelopeId::parse(&one.id).unwrap();
            let bodies = holdfast::store::events::bodies(&mut connection, &org, &id);
            let bodies = bodies.await.unwrap();
            let mut ids = BTreeSet::new();

            let mut times: BTreeMap<String, usize> = BTreeMap::new();
            for body in bodies {
                let event: Value = serde_json::from_str(&body).unwrap();
                assert!(ids.insert(event["event_id"].to_string()), "{event}");
                let kind = event["event_type"].as_str().unwrap().to_owned();
                *times.entry(kind).or_default() += 1;
            }

            for once in [
                "envelope.completed",
                "vault.stored",
                "vault.compliance.passed",
            ] {
                assert_eq!(times.get(once), Some(&1), "{once} of {}: {times:?}", one.id);
            }
        }

        drop(connection);
        store.close().await;
    }

    /// Returns the jobs that are still waiting.
    async fn jobs(&self) -> Vec<(String, String, i64, Option<String>)> {
        let store = holdfast::store::Store::connect(&self.database_url())
            .await
            .unwrap();
        let mut connection = store.read().await.unwrap();
        let jobs = "select kind, run_at, attempts, last_error from job";
        sqlx::query_as(jobs)
            .fetch_all(&mut *connection)
            .await
            .unwrap()
    }

    /// Waits until all entries of a ledger are in the log and returns it. Another node may have to
    /// wait until the lease of a killed one ends.
    pub async fn placed_custody(&self, server: &ServerProcess, id: &str) -> Value {
        let since = Instant::now();
        loop {
            let path = format!("/partner/envelopes/{id}/custody");
            let custody = self.client.get(&server.url, &path).await.unwrap();
            let entries = custody["entries"].as_array().unwrap().len();
            let placed = custody["log"]["inclusion"].as_array().map_or(0, Vec::len);
            if placed == entries {
                return custody;
            }
            assert!(since.elapsed() < Duration::from_secs(120), "{custody}");
        }
    }

    /// Asserts that sweeps a day later find no problems and no orphaned objects.
    pub async fn assert_no_leftovers(&self) {
        let sweep = ["vault", "sweep", "--orphans"];
        let (content, report) = self.home.operator("25h", &sweep);
        assert!(content, "{report}");
        assert!(
            report["checked"].as_u64().unwrap() >= self.tracked.len() as u64,
            "{report}"
        );

        println!("{} orphans removed", report["orphans_removed"]);
        let objects = &self.objects;

        // `area/bucket/organization/envelope/SHA-256`
        let mut files: BTreeMap<(String, String), usize> = BTreeMap::new();
        for path in files_below(objects) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.contains('#'), "cut off: {name}");

            let key = path.strip_prefix(objects).unwrap().to_string_lossy();
            let parts: Vec<&str> = key.split('/').collect();
            if let [area, _, _, owner, _] = parts[..] {
                *files.entry((area.into(), owner.into())).or_default() += 1;
            }
        }

        let count = |area: &str, id: &str| {
            let files = files.get(&(area.to_owned(), id.to_owned()));
            files.copied().unwrap_or_default()
        };
        for one in &self.tracked {
            let released = usize::from(one.status == "vaulted_out");
            let vault = count("vault", &one.id);

            // A job removes the live copy of a released envelope at the end.
            assert!(
                vault == 1 - released || released == 1 && vault <= 1,
                "{one:?}: {vault}"
            );

            // An interrupted vault-out leaves its archive for the next attempt.
            let archive = count("archive", &one.id);
            assert!(released <= archive && archive <= 1, "{one:?}: {archive}");

            for (area, files) in [("signed", 1), ("copies", 1), ("certificates", 2)] {
                assert_eq!(count(area, &one.id), files, "{area} of {one:?}");
            }
        }
    }

    fn database_url(&self) -> String {
        let own = || format!("sqlite://{}", self.home.data.join("holdfast.db").display());
        self.home.database.clone().unwrap_or_else(own)
    }
}

/// Returns the number of kills from `HOLDFAST_KILLS`, or `default`.
pub fn kills(default: u32) -> u32 {
    let told = std::env::var("HOLDFAST_KILLS").ok();
    told.map_or(default, |told| {
        told.parse().expect("HOLDFAST_KILLS is a number")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_every_step_lose_and_repeat_nothing_on_sqlite() {
    let (mut drill, _folder) = CrashDrill::new(None).await;
    drill.run(kills(PLACES.len() as u32)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_every_step_lose_and_repeat_nothing_on_postgresql() {
    let (mut drill, _folder) = CrashDrill::new(Some(postgres::new_database().await)).await;
    drill.run(kills(8).div_ceil(3)).await;
}

/// The disk fails to sync: everything that the server acknowledged still exists afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_a_failing_disk() {
    let (mut drill, _folder) = CrashDrill::new(None).await;
    // 5 is EIO, the error of a failing disk.
    let failing = "enable_random name=posix/io/sync/*,probability=0.003,failinfo=5";

    let mut deaths = 0;
    for _ in 0..kills(6).min(40) {
        match ServerProcess::start(&drill.home, &["fiu-run", "-x", "-c", failing], &[]) {
            None => deaths += 1,
            Some(mut server) => {
                let until = Instant::now() + Duration::from_secs(3);
                drill.work(&mut server, until).await;
                deaths += u32::from(server.is_dead());
                server.kill();
            }
        }
    }

    println!("{deaths} servers stopped at once when their disk failed");
    let server = ServerProcess::start(&drill.home, &[], &[]).unwrap();
    drill.settle(server, Instant::now()).await;
}

pub struct DrillClient {
    http: reqwest::Client,
    /// One key for each server: a killed server takes its share of a key's rate limit along.
    keys: Vec<String>,
    /// Index of the current server.
    life: usize,
}

impl DrillClient {
    async fn template(&self, url: &str) -> Result<Value, String> {
        let fields = json!([{
            "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": { "mode": "anchor", "anchor_text": "Buyer signature:", "w": 0.3, "h": 0.03 },
        }]);
        let file = multipart::Part::bytes(CONTRACT)
            .file_name("c.pdf")
            .mime_str("application/pdf")
            .unwrap();
        let form = multipart::Form::new()
            .part("file", file)
            .text("name", "Contract")
            .text("fields_json", fields.to_string());
        let request = self
            .http
            .post(format!("{url}/api/v2/partner/templates"))
            .multipart(form);

        Ok(self.send(request).await?["template_id"].take())
    }

    async fn sign(&self, url: &str) -> Result<(), reqwest::Error> {
        let page = self.http.get(url).send().await?.text().await?;
        // The signer finished before, and the response was lost.
        if !page.contains("name=\"action\"") {
            return Ok(());
        }

        let mut values = form::filled(&page);
        values.push(("action".into(), "finish".into()));
        self.http.post(url).form(&values).send().await?;

        Ok(())
    }

    async fn get(&self, url: &str, path: &str) -> Result<Value, String> {
        self.send(self.http.get(format!("{url}/api/v2{path}")))
            .await
    }

    async fn post(&self, url: &str, path: &str, body: &Value) -> Result<Value, String> {
        let request = self.http.post(format!("{url}/api/v2{path}"));
        self.send(
            request
                .header("content-type", "application/json")
                .body(body.to_string()),
        )
        .await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, String> {
        let key = &self.keys[self.life % self.keys.len()];
        let answer = request.header("x-api-key", key).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("{status}: {text}"));
        }

        let mut body: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(body["data"].take())
    }
}
