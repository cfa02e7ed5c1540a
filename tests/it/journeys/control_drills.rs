//! Servers are killed while records change hands and tapes are checked: after each kill every record has one
//! controller, the one that its ledger names, and no receipt is lost. Each tape has the report of an undisturbed check.
//!
//! `HOLDFAST_KILLS` sets the number of kills for `make crash`; `make test` has a few.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use holdfast::domain::control::ControlStage;
use holdfast::domain::id::{EnvelopeId, OrgId};
use holdfast::store::{Store, ledger};
use serde_json::{Value, json};
use sqlx::Row as _;

use super::crash::kills;
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::{pdf, pool_output, postgres, release_form, share_native_code};

/// Fault points of transfers, consents, releases and tapes. The empty one stands for a kill from outside.
const PLACES: [&str; 10] = [
    "transferring",
    "transferred",
    "release requested",
    "answered",
    "pledged",
    "archived",
    "released",
    "tape chunk",
    "tape unlisted",
    "",
];
const RECORDS: usize = 8;
/// Rows of a tape: three chunks. No record has one of them.
const ROWS: usize = 2_500;
/// Records of the party that sends tapes.
const UNLISTED: usize = 2;
/// The party that sends tapes. Its records stay where they are.
const TAPES: usize = 3;

/// An organization, with one key for each server: a killed one takes its share of a rate limit along.
struct DrillParty {
    org: String,
    keys: Vec<String>,
}

struct ControlDrill {
    home: ServerHome,
    /// Further nodes on the same database, objects and keys.
    others: Vec<ServerHome>,
    http: reqwest::Client,
    /// Originator, lender, funder, and a party that sends tapes.
    parties: Vec<DrillParty>,
    records: Vec<String>,
    random: u64,
    life: usize,
}

impl ControlDrill {
    /// Makes a drill with this many nodes.
    async fn new(database: Option<String>, nodes: usize) -> (Self, tempfile::TempDir) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let home = |number: usize| ServerHome {
            program: this_program(),
            data: folder.path().join(format!("node-{number}")),
            database: database.clone(),
            settings: Vec::new(),
        };
        let others: Vec<ServerHome> = (1..nodes).map(home).collect();

        let home = home(0);
        std::fs::create_dir_all(&home.data).unwrap();
        share_native_code(&home.data);
        let names = [
            "Maple Motors",
            "First Example Bank",
            "Example Funding",
            "Oak Autos",
        ];
        let parties = names.map(|name| {
            let org = home.organization(name);
            let scopes = "envelopes:read,envelopes:write,compliance:read,vault:read,vault:write,\
                          vault:release,control:read,control:write,control:consent";
            let keys = (0..4).map(|_| home.key(&org, scopes)).collect();

            DrillParty { org, keys }
        });

        for other in &others {
            std::fs::create_dir_all(&other.data).unwrap();
            for shared in ["keys", "native-code", "objects"] {
                let from = home.data.join(shared);
                std::os::unix::fs::symlink(from, other.data.join(shared)).unwrap();
            }
        }

        let mut drill = Self {
            home,
            others,
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
            parties: parties.into(),
            records: Vec::new(),
            random: 0x9E37_79B9_7F4A_7C15,
            life: 0,
        };

        let server = ServerProcess::start(&drill.home, &[], &[]).unwrap();
        for _ in 0..RECORDS {
            let record = drill.record(&server.url).await;
            drill.records.push(record.unwrap());
        }
        for number in 0..UNLISTED {
            let record = drill.vaulted_by(TAPES, &server.url, 500 + number).await;
            record.unwrap();
        }

        server.kill();
        (drill, folder)
    }

    /// Returns the records with which the parties act.
    fn recent(&self) -> &[String] {
        &self.records[self.records.len() - RECORDS..]
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    /// Sends a request of a party. Returns status and body, or none if the server is gone.
    async fn ask(&self, party: usize, request: reqwest::RequestBuilder) -> Option<(u16, Value)> {
        let keys = &self.parties[party].keys;
        let request = request.header("x-api-key", &keys[self.life % keys.len()]);
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap()))
    }

    async fn post(&self, url: &str, party: usize, path: &str, body: Value) -> Option<(u16, Value)> {
        let request = self.http.post(format!("{url}/api/v2/partner{path}"));
        let request = request.header("content-type", "application/json");
        self.ask(party, request.body(body.to_string())).await
    }

    async fn get(&self, url: &str, party: usize, path: &str) -> Option<Value> {
        let request = self.http.get(format!("{url}/api/v2/partner{path}"));
        let (status, mut body) = self.ask(party, request).await?;
        assert_eq!(status, 200, "{body}");
        Some(body["data"].take())
    }

    /// Vaults an uploaded document, of which the lender takes control. `None` if the server is gone.
    async fn record(&self, url: &str) -> Option<String> {
        let id = self.vaulted(url, self.records.len()).await?;
        let lender = json!({ "controller": self.parties[1].org });
        for (party, act, body) in [(0, "designate", lender), (1, "accept", json!({}))] {
            let path = format!("/control/records/{id}/{act}");
            let (status, answer) = self.post(url, party, &path, body).await?;
            assert_eq!(status, 200, "{path}: {answer}");
        }
        Some(id)
    }

    /// Vaults an uploaded document of the originator. `None` if the server is gone.
    async fn vaulted(&self, url: &str, number: usize) -> Option<String> {
        self.vaulted_by(0, url, number).await
    }

    async fn vaulted_by(&self, party: usize, url: &str, number: usize) -> Option<String> {
        let body = json!({
            "envelope_name": "Lease", "envelope_kind": "paper",
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        });
        let (status, made) = self.post(url, party, "/envelopes", body).await?;
        assert_eq!(status, 201, "{made}");

        let id = made["data"]["envelope_id"].as_str().unwrap().to_owned();
        self.upload(party, url, &id, number).await?;
        Some(id)
    }

    /// Uploads a document that no other record has, and vaults it.
    async fn upload(&self, party: usize, url: &str, id: &str, number: usize) -> Option<()> {
        let text = format!("Lease {number}");
        let file = reqwest::multipart::Part::bytes(pdf::with_lines(&[&text]));
        let file = file.mime_str("application/pdf");
        let form = reqwest::multipart::Form::new().part("file", file.unwrap());
        let upload = format!("{url}/api/v2/partner/envelopes/{id}/upload");
        let uploaded = self
            .ask(party, self.http.post(upload).multipart(form))
            .await;
        assert_eq!(uploaded?.0, 201);

        let path = format!("/envelopes/{id}/vault-in-upload");
        let (status, answer) = self.post(url, party, &path, json!({})).await?;
        assert_eq!(status, 200, "{path}: {answer}");

        Some(())
    }

    /// Sends a tape. `None` if the server is gone, or too many tapes wait for the end of their checks.
    async fn send_tape(&self, url: &str) -> Option<String> {
        let rows = (0..ROWS).map(|row| format!("A-{row}\n"));
        let table: String = std::iter::once("Loan\n".to_owned()).chain(rows).collect();
        let table = reqwest::multipart::Part::bytes(table.into_bytes());
        let map = json!({ "columns": [{ "column": "Loan", "fact": "contract_number" }] });
        let form = reqwest::multipart::Form::new()
            .text("name", "Line 12")
            .text("map", map.to_string())
            .part("file", table.mime_str("text/csv").unwrap());
        let path = format!("{url}/api/v2/partner/control/tapes");
        let sent = self.ask(TAPES, self.http.post(path).multipart(form)).await;
        let (status, answer) = sent?;
        assert!([202, 429].contains(&status), "{answer}");
        answer["data"]["tape_id"].as_str().map(str::to_owned)
    }

    async fn tape_report(&self, url: &str, tape: &str) -> String {
        let path = format!("{url}/api/v2/partner/control/tapes/{tape}/report");
        let keys = &self.parties[TAPES].keys;
        let report = self.http.get(path).header("x-api-key", &keys[0]);
        let report = report.send().await.unwrap().error_for_status().unwrap();
        report.text().await.unwrap()
    }

    /// Waits until no tape is being checked. Returns all tapes, newest first.
    async fn checked_tapes(&self, url: &str) -> Vec<Value> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let tapes = self.get(url, TAPES, "/control/tapes?limit=100").await;
            let tapes = tapes.unwrap().as_array().unwrap().clone();
            if tapes.iter().all(|tape| tape["status"] == "checked") {
                return tapes;
            }
            assert!(Instant::now() < deadline, "{tapes:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asserts that each tape has the report of an undisturbed check.
    async fn assert_tapes_agree(&self, url: &str) {
        self.checked_tapes(url).await;
        let undisturbed = self.send_tape(url).await.unwrap();
        let tapes = self.checked_tapes(url).await;

        let expected = self.tape_report(url, &undisturbed).await;
        assert_eq!(expected.lines().count(), 1 + ROWS + UNLISTED);
        for tape in &tapes {
            let id = tape["tape_id"].as_str().unwrap();
            assert_eq!(tape["sha256"], tapes[0]["sha256"], "{id}");
            assert!(self.tape_report(url, id).await == expected, "{id}");
        }
        println!("{} tapes with one report", tapes.len());
    }

    /// Makes a step of a transfer, and returns its duration.
    async fn step(
        &self,
        url: &str,
        party: usize,
        path: &str,
        body: Value,
        state: &str,
    ) -> (String, Duration) {
        let begun = Instant::now();
        let (status, answer) = self.post(url, party, path, body).await.unwrap();
        assert_eq!(status, 202, "{answer}");

        let transfer = answer["data"]["transfer_id"].as_str().unwrap().to_owned();
        loop {
            let path = format!("/control/transfers/{transfer}?limit=1");
            let now = self.get(url, 0, &path).await.unwrap();
            if now["state"] == state {
                return (transfer, begun.elapsed());
            }
            assert!(begun.elapsed() < Duration::from_secs(600), "{now}");

            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Lets the parties act at all nodes until one server is gone. Any answer may be lost, and be a refusal.
    async fn work(
        &mut self,
        server: &mut ServerProcess,
        others: &[ServerProcess],
        sends_tape: bool,
        until: Instant,
    ) {
        self.life += 1;
        let mut urls = vec![server.url.clone()];
        urls.extend(others.iter().map(|other| other.url.clone()));
        let url = urls[0].clone();
        if sends_tape {
            self.send_tape(&url).await;
        }

        // Released records are replaced by new ones.
        if self.random(2) == 0 {
            let record = self.record(&url).await;
            self.records.extend(record);
        }

        while !server.is_dead() && Instant::now() < until {
            let url = urls[self.random(urls.len())].clone();
            // Lender and funder sell to each other.
            let seller = 1 + self.random(2);
            let buyer = 3 - seller;
            let records = self.random(RECORDS - 1) + 1;
            let offer = json!({
                "buyer": self.parties[buyer].org, "records": self.recent()[..records],
                "atomic": self.random(2) == 0,
            });
            self.post(&url, seller, "/control/transfers", offer).await;

            let index = self.random(RECORDS);
            let id = self.recent()[index].clone();

            // The lender or the funder pledges it to the other one, and releases its own pledges.
            if self.random(4) == 0 {
                let (pledgor, pledgee) = (seller, &self.parties[buyer].org);
                let body = json!({ "envelope_id": id, "pledgee": pledgee });
                self.post(&url, pledgor, "/control/pledges", body).await;
            }

            for party in [1, 2] {
                let Some(pledged) = self.get(&url, party, "/control/records?part=pledgee").await
                else {
                    break;
                };

                for record in pledged.as_array().unwrap() {
                    let pledge = record["pledge_id"].as_str().unwrap();
                    let path = format!("/control/pledges/{pledge}/release");
                    self.post(&url, party, &path, json!({})).await;
                }
            }

            // The originator asks for a release, and the controller refuses it, or agrees at times.
            let out = format!("/envelopes/{id}/vault-out");
            let asked = self.post(&url, 0, &out, release_form()).await;
            let release = asked.map(|(_, answer)| answer["details"]["release_id"].clone());
            if let Some(release) = release.as_ref().and_then(Value::as_str) {
                let answer = ["refuse", "refuse", "refuse", "consent"][self.random(4)];
                let path = format!("/control/releases/{release}/{answer}");
                for party in [1, 2] {
                    self.post(&url, party, &path, json!({})).await;
                }
            }

            for party in [1, 2] {
                let Some(open) = self.get(&url, party, "/control/transfers?limit=5").await else {
                    break;
                };

                for transfer in open.as_array().unwrap() {
                    let next = ["accept", "confirm", "cancel"][self.random(3)];
                    let id = transfer["transfer_id"].as_str().unwrap();
                    let path = format!("/control/transfers/{id}/{next}");
                    self.post(&url, party, &path, json!({})).await;
                }
            }

            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asserts that the database is consistent while no server runs.
    async fn assert_consistent(&self) {
        let store = self.home.store().await;
        for id in &self.records {
            self.assert_ledger_agrees(&store, id).await;
        }

        let mut connection = store.read().await.unwrap();
        let records = "select r.transfer_id, r.envelope_id, r.state, c.transfer_id as held, c.stage
             from control_transfer_record r
             join control_record c on c.envelope_id = r.envelope_id";
        let records = sqlx::query(records)
            .fetch_all(&mut *connection)
            .await
            .unwrap();

        let mut holders: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in records {
            let text = |column: &str| row.get::<Option<String>, _>(column).unwrap_or_default();
            let holds = ["proposed", "accepted"].contains(&text("state").as_str());

            // A record is in a transfer exactly if both say so, at the same stage.
            assert_eq!(
                holds,
                text("held") == text("transfer_id"),
                "{}",
                text("envelope_id")
            );

            if holds {
                assert_eq!(text("stage"), text("state"));
                holders
                    .entry(text("envelope_id"))
                    .or_default()
                    .push(text("transfer_id"));
            }
        }

        for (record, transfers) in holders {
            assert_eq!(
                transfers.len(),
                1,
                "{record} is offered twice: {transfers:?}"
            );
        }

        // A pledge is live exactly if its record names it.
        let pledges = "select count(*) from control_pledge p
             left join control_record c on c.pledge_id = p.pledge_id
             where (p.released_at is null) <> (c.pledge_id is not null)";
        let pledges: i64 = sqlx::query_scalar(pledges)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(pledges, 0, "pledges");

        // An accepted transfer has its receipt.
        let lost = "select count(*) from control_transfer where receipt is null
             and state in ('accepted', 'confirming', 'confirmed')";
        let lost: i64 = sqlx::query_scalar(lost)
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(lost, 0, "receipts");

        drop(connection);
        store.close().await;
    }

    /// Asserts that the ledger of a record has every act, and ends with the present state.
    async fn assert_ledger_agrees(&self, store: &Store, id: &str) {
        let (org, id) = (&self.parties[0].org, EnvelopeId::parse(id).unwrap());
        let org = OrgId::parse(org).unwrap();
        let mut connection = store.read().await.unwrap();
        let entries = ledger::list(&mut connection, Some(&org), &id)
            .await
            .unwrap();
        let row = "select controller_id, stage, epoch from control_record where envelope_id = $1";
        let row = sqlx::query(row).bind(id.as_str());
        let row = row.fetch_one(&mut *connection).await.unwrap();

        let told = entries
            .iter()
            .filter(|entry| entry.action.starts_with("control."));
        let told: Vec<&Value> = told.map(|entry| &entry.details).collect();
        for (details, epoch) in told.iter().zip(1..) {
            assert_eq!(details["epoch"], epoch, "{id}: {told:#?}");
        }

        let last = told.last().unwrap();
        assert_eq!(last["epoch"], row.get::<i64, _>("epoch"));
        assert_eq!(last["stage"], row.get::<String, _>("stage"));

        let controller = row.get::<String, _>("controller_id");
        assert_eq!(last["controller"]["organization_id"], controller);

        let released = entries
            .iter()
            .filter(|entry| entry.action == "vault.released");
        let stage = ControlStage::parse(&row.get::<String, _>("stage")).unwrap();
        let expected = usize::from(stage == ControlStage::Released);
        assert_eq!(released.count(), expected, "{id} is {stage}");
    }

    async fn run(&mut self, kills: u32) {
        let mut died_at: BTreeMap<&str, u32> = BTreeMap::new();
        for kill in 0..kills {
            let place = PLACES[kill as usize % PLACES.len()];
            // The unlisted records of a tape are one chunk.
            let passes = if place == "tape unlisted" { 1 } else { 3 };
            let death = format!("{place}:{}", 1 + self.random(passes));
            let ahead = self.ahead(kill);
            let variables = [
                ("HOLDFAST_CLOCK_OFFSET", ahead.as_str()),
                ("HOLDFAST_FAULTS", death.as_str()),
            ];
            let variables = &variables[..if place.is_empty() { 1 } else { 2 }];

            let life = match place {
                "" => Duration::from_millis(100 + self.random(1000) as u64),
                // A server that does not reach its fault point is killed from outside.
                _ => Duration::from_secs(3),
            };
            let others = self.others.iter();
            let others: Vec<ServerProcess> = others
                .filter_map(|home| ServerProcess::start(home, &[], &variables[..1]))
                .collect();
            assert_eq!(others.len(), self.others.len(), "a node does not start");

            match ServerProcess::start(&self.home, &[], variables) {
                None => *died_at.entry(place).or_default() += 1,
                Some(mut server) => {
                    let (sends_tape, until) = (place.starts_with("tape"), Instant::now() + life);
                    self.work(&mut server, &others, sends_tape, until).await;
                    let by_itself = server.is_dead();
                    *died_at
                        .entry(if by_itself { place } else { "" })
                        .or_default() += 1;
                    server.kill();
                }
            }

            // The other nodes may be in the middle of the same work.
            for other in others {
                other.kill();
            }

            self.assert_consistent().await;
        }

        println!("{kills} kills; died at {died_at:?}");
        self.finish(&self.ahead(kills)).await;
    }

    /// On PostgreSQL the clock of each server runs ahead, so the leases of the previous one have
    /// expired.
    fn ahead(&self, life: u32) -> String {
        match self.home.database {
            None => "0s".into(),
            Some(_) => format!("{}s", 20 * life),
        }
    }

    /// Lets the last server finish the work in progress. Open offers expire.
    async fn finish(&self, ahead: &str) {
        let seconds: u64 = ahead.trim_end_matches('s').parse().unwrap();
        let ahead = format!("{}s", seconds + 40 * 86_400);
        let variables = [("HOLDFAST_CLOCK_OFFSET", ahead.as_str())];
        let server = ServerProcess::start(&self.home, &[], &variables).unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        let store = self.home.store().await;
        let open = "select count(*) from control_transfer where state not in
             ('confirmed', 'cancelled', 'expired', 'failed')";

        let agreed = "select count(*) from control_release where state = 'consented'";
        loop {
            let mut connection = store.read().await.unwrap();
            let transfers: i64 = sqlx::query_scalar(open)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            let releases: i64 = sqlx::query_scalar(agreed)
                .fetch_one(&mut *connection)
                .await
                .unwrap();

            drop(connection);
            if transfers + releases == 0 {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{transfers} transfers, {releases} releases"
            );

            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        store.close().await;
        self.assert_tapes_agree(&server.url).await;
        server.kill();
        self.assert_consistent().await;

        for id in &self.records {
            let (valid, report) = self.home.operator(&ahead, &["verify", id]);
            assert!(valid, "{report:#}");

            let checks = report["checks"].as_array().unwrap();
            let control = checks
                .iter()
                .find(|check| check["check"] == "control")
                .unwrap();
            assert_eq!(control["ok"], true, "{control}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_leave_each_record_with_one_controller_on_sqlite() {
    let (mut drill, _folder): (_, tempfile::TempDir) = ControlDrill::new(None, 1).await;
    drill.run(kills(3 * PLACES.len() as u32).div_ceil(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_of_three_nodes_leave_each_record_with_one_controller_on_postgresql() {
    let database = postgres::new_database().await;
    let (mut drill, _folder) = ControlDrill::new(Some(database), 3).await;
    drill.run(kills(3 * PLACES.len() as u32).div_ceil(3)).await;
}

/// Moves a pool and checks its proofs offline. `POOL_RECORDS=10000` for the figures of docs/control.md.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_moves_and_is_proved_on_postgresql() {
    let size: usize =
        std::env::var("POOL_RECORDS").map_or(60, |size| size.parse().expect("a number of records"));
    let (drill, _folder) = ControlDrill::new(Some(postgres::new_database().await), 1).await;
    let server = ServerProcess::start(&drill.home, &[], &[]).unwrap();
    let (url, begun) = (server.url.clone(), Instant::now());
    let made = (0..size).map(|number| drill.vaulted(&url, 1_000 + number));
    let made = futures::stream::iter(made).buffer_unordered(8);
    let records: Vec<String> = made.map(Option::unwrap).collect().await;

    println!("vaulted {size} records in {:?}", begun.elapsed());

    let transfers = "/control/transfers";
    let offer = json!({ "buyer": drill.parties[1].org, "records": records });
    let (transfer, proposed) = drill.step(&url, 0, transfers, offer, "proposed").await;
    let path = format!("{transfers}/{transfer}/accept");
    let (_, accepted) = drill.step(&url, 1, &path, json!({}), "accepted").await;
    let path = format!("{transfers}/{transfer}/confirm");
    let (_, confirmed) = drill.step(&url, 0, &path, json!({}), "confirmed").await;
    println!("proposed in {proposed:?}, accepted in {accepted:?}, confirmed in {confirmed:?}");

    let begun = Instant::now();
    let path = format!("{url}/api/v2/partner/control/pools/{transfer}/proofs");
    let request = drill.http.get(path).timeout(Duration::from_secs(600));
    let key = &drill.parties[1].keys[0];
    let zip = request.header("x-api-key", key).send().await.unwrap();
    let zip = zip.error_for_status().unwrap().bytes().await.unwrap();
    println!("proofs of {} bytes in {:?}", zip.len(), begun.elapsed());

    let head = drill.http.get(format!("{url}/api/v2/ledger/head"));
    let head = head.send().await.unwrap().bytes().await.unwrap();
    let head: Value = serde_json::from_slice(&head).unwrap();
    let key = head["data"]["public_key"].as_str().unwrap().to_owned();
    server.kill();

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &zip).unwrap();
    let begun = Instant::now();
    let verified = pool_output(file.path().to_str().unwrap(), &["--key", &key]);
    println!("verified in {:?}", begun.elapsed());
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["verdict"], "VALID", "{:#}", report["problems"]);
    assert_eq!(report["controlled_by"]["First Example Bank"], size);
}

/// Declared collateral is in no log line, also where the request that has it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn no_log_line_has_a_vehicle() {
    const VIN: &str = "1M8GDM9AXKP042788";
    const MISTYPED: &str = "1M8GDM9A1KP042788";

    let (drill, _folder) = ControlDrill::new(None, 1).await;
    let debug = [("HOLDFAST_LOG__FILTER", "debug")];
    let server = ServerProcess::start(&drill.home, &[], &debug).unwrap();
    let url = &server.url;

    let mut made = Vec::new();
    for (number, vin) in [(1, VIN), (2, VIN), (3, MISTYPED)] {
        let body = json!({
            "envelope_name": format!("Lease {number}"), "envelope_kind": "paper",
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
            "collateral": [{ "kind": "vin", "value": vin }],
        });
        let (status, answer) = drill.post(url, 0, "/envelopes", body).await.unwrap();
        assert_eq!(status, if vin == VIN { 201 } else { 422 }, "{answer}");

        made.push(answer["data"]["envelope_id"].clone());
    }

    for (id, party, expected) in [(&made[0], 1, 200), (&made[1], 2, 409)] {
        let id = id.as_str().unwrap();
        drill.upload(0, url, id, made.len() + party).await.unwrap();
        let body = json!({ "controller": drill.parties[party].org });
        let path = format!("/control/records/{id}/designate");
        let (status, answer) = drill.post(url, 0, &path, body).await.unwrap();
        assert_eq!(status, expected, "{answer}");

        if expected == 200 {
            let path = format!("/control/records/{id}/accept");
            drill.post(url, party, &path, json!({})).await.unwrap();
        }
    }

    let last = made[1].as_str().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !server.has_said(last) {
        assert!(Instant::now() < deadline, "the request is not logged");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!server.has_said(VIN) && !server.has_said(MISTYPED));
}

/// Cells of a tape are in no log line, also where its file is refused or a row cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn no_log_line_has_a_cell_of_a_tape() {
    const VIN: &str = "1M8GDM9AXKP042788";
    const BUYER: &str = "Quimby Underhill";

    let (drill, _folder) = ControlDrill::new(None, 1).await;
    let debug = [("HOLDFAST_LOG__FILTER", "debug")];
    let server = ServerProcess::start(&drill.home, &[], &debug).unwrap();
    let (url, id) = (&server.url, &drill.recent()[0]);

    let map = json!({ "columns": [
        { "column": "Id", "fact": "envelope_id" }, { "column": "VIN", "fact": "vin" },
        { "column": "Buyer", "fact": "buyer_name" },
    ] });
    let send = async |file: String| {
        let file = reqwest::multipart::Part::bytes(file.into_bytes());
        let file = file.mime_str("text/csv").unwrap();
        let form = reqwest::multipart::Form::new()
            .text("name", "Line 12")
            .text("map", map.to_string())
            .part("file", file);
        let path = format!("{url}/api/v2/partner/control/tapes");
        let sent = drill.ask(0, drill.http.post(path).multipart(form)).await;
        sent.unwrap()
    };

    let rows = format!("{id},{VIN},{BUYER}\n,{VIN},{BUYER}\n{VIN},{BUYER}\n");
    let (status, refused) = send(rows.clone()).await;
    assert_eq!(status, 422, "{refused}");
    let (status, sent) = send(format!("Id,VIN,Buyer\n{rows}")).await;
    assert_eq!(status, 202, "{sent}");

    let tape = sent["data"]["tape_id"].as_str().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let path = format!("/control/tapes/{tape}");
        let found = drill.get(url, 0, &path).await.unwrap();
        if found["status"] == "checked" && server.has_said(tape) {
            let totals = &found["totals"];
            assert_eq!(
                (&totals["rows"], &totals["unreadable"]),
                (&json!(3), &json!(1))
            );
            break;
        }
        assert!(Instant::now() < deadline, "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A refusal quotes the first row as the names of columns, in small letters.
    for cell in [VIN, BUYER] {
        assert!(
            !server.has_said(cell) && !server.has_said(&cell.to_lowercase()),
            "{cell}"
        );
    }
}
