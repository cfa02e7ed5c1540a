//! Time stamps of seals are renewed while servers are killed.
//!
//! Each run of the server has a clock two hours ahead of the one before it and wants another digest algorithm, so the seals
//! of all records are due. It ends with SIGKILL, as in `crash`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast::domain::clock::Clock;
use holdfast::store::chores;
use serde_json::Value;
use sqlx::Row as _;

use super::crash::{CrashDrill, kills};
use crate::support::authority::FakeTimestampAuthority;
use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::revocation::{FakeCertificateAuthority, RevocationBehaviour};
use crate::support::{files_below, pdf, postgres};

/// Fault points around the writes of a renewal, and of the log that gets its entry.
const PLACES: [&str; 5] = [
    "seal extended",
    "seal settled",
    "sequence",
    "sequenced",
    // A kill from outside, at a random time.
    "",
];
const DIGESTS: [&str; 2] = ["sha512", "sha256"];
/// Time between two servers. The setting of the digest algorithm is compared every hour.
const STEP: u64 = 2 * 3600;

struct SealDrill {
    drill: CrashDrill,
    objects: PathBuf,
    seals: FakeCertificateAuthority,
    times: FakeCertificateAuthority,
    stamps: FakeTimestampAuthority,
    _folder: tempfile::TempDir,
}

impl SealDrill {
    /// Makes eight sealed records with a time stamp over each.
    async fn new(database: Option<String>) -> Self {
        let manner = RevocationBehaviour::Right;
        let seals = FakeCertificateAuthority::start("Example Root", manner).await;
        let times = FakeCertificateAuthority::start("Example Time Root", manner).await;
        let stamps = FakeTimestampAuthority::certified_by(&times, 3650).await;
        let (key, certificates) = seals.certify("Example Vault", "seals", 730);

        let folder = tempfile::tempdir().unwrap();
        let path = |path: PathBuf| path.display().to_string();
        let settings = [
            ("HOLDFAST_SEAL__KEY_FILE", path(key)),
            ("HOLDFAST_SEAL__CERTIFICATES_FILE", path(certificates)),
            ("HOLDFAST_SEAL__TIMESTAMP_URL", stamps.url.clone()),
            ("HOLDFAST_SEAL__TIMESTAMP_TRUST_FILE", path(times.root())),
            ("HOLDFAST_PROVIDERS__ALLOW_INSECURE", "true".to_owned()),
            ("HOLDFAST_SWEEP_INTERVAL", "50ms".to_owned()),
        ];
        let home = ServerHome {
            program: this_program(),
            data: folder.path().to_owned(),
            database,
            settings: settings
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec(),
        };
        let objects = folder.path().join("objects");
        let mut drill = CrashDrill::at(home, objects.clone()).await;

        // By the clocks of this drill, files that are just being written are old.
        let later = Clock::default().now() + Duration::from_secs(10 * 86_400);
        let store = drill.home.store().await;
        let never = later + Duration::from_secs(1_000 * 86_400);
        chores::claim(&store, "orphans", later, never)
            .await
            .unwrap();
        store.close().await;

        let server = ServerProcess::start(&drill.home, &[], &[]).unwrap();
        let urls = [server.url.clone()];
        drill.work_at(&urls, Duration::from_millis(1)).await;
        drill.finish(&server, Instant::now()).await;
        let this = Self {
            drill,
            objects,
            seals,
            times,
            stamps,
            _folder: folder,
        };
        this.wait_for("level <> 'B-LTA'").await;
        server.kill();
        this
    }

    /// Waits until no seal is in a state.
    async fn wait_for(&self, ended: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        let store = self.drill.home.store().await;
        let query = format!("select count(*) from seal_state where {ended}");
        loop {
            let mut connection = store.read().await.unwrap();
            let left: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(query.clone()))
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            drop(connection);
            if left == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{left} seals: {ended}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        store.close().await;
    }

    /// Sets all clocks but this one's ahead. Returns the server's offset and digest algorithm.
    fn advance(&self, life: u32) -> (String, &'static str) {
        let ahead = Duration::from_secs(STEP * u64::from(life + 1));
        self.seals.advance(ahead);
        self.times.advance(ahead);
        self.stamps.advance(ahead);
        let digest = DIGESTS[life as usize % DIGESTS.len()];
        (format!("{}s", ahead.as_secs()), digest)
    }

    async fn run(mut self, kills: u32) {
        let mut died_at: BTreeMap<&str, u32> = BTreeMap::new();
        for life in 0..kills {
            let place = PLACES[life as usize % PLACES.len()];
            let death = format!("{place}:{}", 1 + self.drill.random(4));
            let (ahead, digest) = self.advance(life);
            let variables = [
                ("HOLDFAST_CLOCK_OFFSET", ahead.as_str()),
                ("HOLDFAST_SEAL__TIMESTAMP_DIGEST", digest),
                ("HOLDFAST_FAULTS", death.as_str()),
            ];
            let variables = &variables[..if place.is_empty() { 2 } else { 3 }];
            let time = match place {
                "" => Duration::from_millis(100 + self.drill.random(2000)),
                // A server that does not reach its fault point is killed from outside.
                _ => Duration::from_secs(5),
            };

            let until = Instant::now() + time;
            let Some(mut server) = ServerProcess::start(&self.drill.home, &[], variables) else {
                *died_at.entry(place).or_default() += 1;
                continue;
            };
            while !server.is_dead() && Instant::now() < until {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let by_itself = server.is_dead();
            *died_at
                .entry(if by_itself { place } else { "" })
                .or_default() += 1;
            server.kill();
        }

        println!("{kills} kills; died at {died_at:?}");
        self.finish(kills).await;
    }

    /// Lets the last server renew every seal, and checks each record.
    async fn finish(&self, life: u32) {
        let (ahead, digest) = self.advance(life);
        let variables = [
            ("HOLDFAST_CLOCK_OFFSET", ahead.as_str()),
            ("HOLDFAST_SEAL__TIMESTAMP_DIGEST", digest),
        ];
        let server = ServerProcess::start(&self.drill.home, &[], &variables).unwrap();
        self.wait_for(&format!("level <> 'B-LTA' or digest <> '{digest}'"))
            .await;
        for one in &self.drill.tracked {
            self.drill.placed_custody(&server, &one.id).await;
        }
        server.kill();

        // What a killed server had stored and not recorded is an orphan, and so are replaced updates.
        let seconds = STEP * u64::from(life + 1);
        let later = format!("{}s", seconds + 25 * 3600);
        let sweep = ["vault", "sweep", "--orphans"];
        let (is_whole, report) = self.drill.home.operator(&later, &sweep);
        assert!(is_whole, "{report}");

        let store = self.drill.home.store().await;
        let mut connection = store.read().await.unwrap();
        for one in &self.drill.tracked {
            let state = "select updates_sha256, stamps from seal_state where envelope_id = $1";
            let state = sqlx::query(state).bind(one.id.as_str());
            let state = state.fetch_one(&mut *connection).await.unwrap();
            let entries = "select details from ledger_entry where envelope_id = $1
                 and action = 'seal.extended' order by sequence";
            let entries: Vec<String> = sqlx::query_scalar(entries)
                .bind(one.id.as_str())
                .fetch_all(&mut *connection)
                .await
                .unwrap();
            let (newest, stamps) = (state.get("updates_sha256"), state.get("stamps"));
            self.assert_whole(&one.id, &entries, newest, stamps, &ahead);
        }
        drop(connection);
        store.close().await;
    }

    /// Asserts that each update of a record's seal follows the one before it, and that readers accept all of them.
    fn assert_whole(&self, id: &str, entries: &[String], newest: String, stamps: i64, ahead: &str) {
        let entries = entries.iter().map(|entry| serde_json::from_str(entry));
        let entries: Vec<Value> = entries.collect::<Result<_, _>>().unwrap();
        let mut before = Value::Null;
        for entry in &entries {
            assert_eq!(entry["replaced_hash"], before, "{id}: {entries:#?}");
            before = entry["updates_hash"].clone();
        }
        assert_eq!(before, newest.as_str(), "{id}");
        let stamped = entries
            .iter()
            .filter(|entry| !entry["time_stamp"].is_null());
        assert_eq!(stamped.count() as i64, stamps, "{id}");

        let objects = files_below(&self.objects);
        let of_record = |area: &str| {
            let folder = format!("/{area}/");
            let is_own = move |path: &&PathBuf| {
                let key = path.to_str().unwrap();
                key.contains(&folder) && key.contains(id)
            };
            objects.iter().filter(is_own).collect::<Vec<_>>()
        };
        let certificates = of_record("certificates");
        // The certificate, the custody record and the newest updates.
        assert_eq!(certificates.len(), 3, "{id}: {certificates:?}");
        let updates = certificates.iter().find(|path| path.ends_with(&newest));
        let updates = std::fs::read(updates.unwrap()).unwrap();
        let vault = of_record("vault");
        let [authoritative] = vault[..] else {
            panic!("{id}: {vault:?}");
        };
        let whole = [std::fs::read(authoritative).unwrap(), updates].concat();
        let seconds = ahead.trim_end_matches('s').parse().unwrap();
        let said = pdf::signatures_at(&whole, Duration::from_secs(seconds));
        assert!(said.contains("Signature is Valid."), "{id}: {said}");

        let (valid, report) = self.drill.home.operator(ahead, &["verify", id]);
        assert!(valid, "{report:#}");
        let mut checks = report["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["check"] == "long-term seal");
        let detail = check.unwrap()["detail"].as_str().unwrap();
        let ending = format!("time stamps over the document: {stamps}");
        assert!(detail.ends_with(&ending), "{id}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_leave_each_seal_with_a_chain_of_time_stamps_on_sqlite() {
    let drill = SealDrill::new(None).await;
    drill.run(kills(PLACES.len() as u32)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_leave_each_seal_with_a_chain_of_time_stamps_on_postgresql() {
    let drill = SealDrill::new(Some(postgres::new_database().await)).await;
    drill.run(kills(PLACES.len() as u32)).await;
}
