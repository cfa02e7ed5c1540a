//! Witnesses of the log: they cosign its heads, and contradict it where it shows two histories.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use holdfast::config::{Config, HttpSettings, LogWitnessSettings, WitnessSettings};
use holdfast::domain::checkpoint::{
    Checkpoint, CheckpointSigner, VerifierKey, WitnessKey, split_note,
};
use holdfast::domain::log_witness::{AddCheckpoint, SIZE_TYPE};
use holdfast::domain::merkle::{Hash, TileReader, leaf_hash};
use holdfast::domain::organization::OrgSettings;
use holdfast::http::witness;
use holdfast::start;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::receiver::WebhookReceiver;
use crate::support::{SETTINGS, TestApp, operator, operator_output, release_form};

/// Another installation, as a witness. It is dead until it serves.
struct OtherInstallation {
    name: &'static str,
    data: TempDir,
    address: SocketAddr,
    key: WitnessKey,
    serving: Option<(CancellationToken, JoinHandle<()>)>,
}

impl OtherInstallation {
    async fn new(name: &'static str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        let unused = as_witness(data.path(), name, Vec::new());
        let key = start::open_witness(&unused).await.unwrap().key();
        Self {
            name,
            data,
            address,
            key,
            serving: None,
        }
    }

    /// Returns the settings of a log with this witness.
    fn settings(&self) -> LogWitnessSettings {
        LogWitnessSettings {
            name: self.name.into(),
            url: format!("http://{}", self.address).parse().unwrap(),
            key: self.key.clone(),
        }
    }

    async fn serve(&mut self, log: &VerifierKey) {
        let config = as_witness(self.data.path(), self.name, vec![log.clone()]);
        let opened = Arc::new(start::open_witness(&config).await.unwrap());
        let listener = TcpListener::bind(self.address).await.unwrap();
        let stop = CancellationToken::new();
        let served = witness::serve(listener, opened, HttpSettings::default(), stop.clone());
        self.serving = Some((stop, tokio::spawn(served)));
    }

    async fn stop(&mut self) {
        let (stop, served) = self.serving.take().unwrap();
        stop.cancel();
        served.await.unwrap();
    }
}

fn as_witness(data: &Path, name: &str, logs: Vec<VerifierKey>) -> Config {
    Config {
        data_dir: data.to_owned(),
        witness: WitnessSettings {
            name: Some(format!("{name}.example")),
            logs,
            ..WitnessSettings::default()
        },
        ..Config::default()
    }
}

/// Starts a service with these witnesses of its log. The operator's tool gets the same settings.
async fn with_witnesses(witnesses: Vec<LogWitnessSettings>, quorum: usize) -> TestApp {
    let configure = |config: &mut Config| {
        let listed = witnesses.iter().map(|witness| {
            let LogWitnessSettings { name, url, key } = witness;
            format!("{{ name = '{name}', url = '{url}', key = '{key}' }}")
        });
        let listed: Vec<String> = listed.collect();
        let settings = config.data_dir.join(SETTINGS);
        let others = std::fs::read_to_string(&settings).unwrap_or_default();
        let listed = listed.join(", ");
        let ours = format!(
            "{others}\n[providers]\nallow_insecure = true\n\
             [ledger]\nquorum = {quorum}\nwitnesses = [{listed}]\n"
        );
        std::fs::write(settings, ours).unwrap();
        have_witnesses(config, &witnesses, quorum);
    };
    TestApp::with(configure, OrgSettings::default()).await
}

fn have_witnesses(config: &mut Config, witnesses: &[LogWitnessSettings], quorum: usize) {
    config.providers.allow_insecure = true;
    config.ledger.witnesses = witnesses.to_vec();
    config.ledger.quorum = Some(quorum);
}

async fn log_key(app: &TestApp) -> VerifierKey {
    let head = app.get_as("", "/ledger/head").await.data(200);
    VerifierKey::parse(head["public_key"].as_str().unwrap()).unwrap()
}

/// Waits until the published head has lines of these witnesses, and returns it.
async fn cosigned_by(app: &TestApp, names: &[&str]) -> String {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let note = app.get_as("", "/ledger/checkpoint").await.text();
        let has_line = |name: &&str| note.contains(&format!("\n— {name}.example "));
        if names.iter().all(has_line) {
            return note;
        }
        assert!(Instant::now() < deadline, "{names:?}: {note}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a query finds rows.
async fn wait_for_rows(app: &TestApp, query: &str) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while app.count(query).await == 0 {
        assert!(Instant::now() < deadline, "no row of {query}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns result and detail of the check of `holdfast doctor`.
async fn doctor(app: &TestApp) -> (bool, String) {
    let data = app.data.path().to_owned();
    let looked = tokio::task::spawn_blocking(move || operator_output(&data, &["doctor"]));
    let checks: Value = serde_json::from_slice(&looked.await.unwrap().stdout).unwrap();
    let mut checks = checks.as_array().unwrap().iter();
    let check = checks.find(|check| check["name"] == "witnesses").unwrap();
    let detail = check["detail"].as_str().unwrap().to_owned();
    (check["ok"] == true, detail)
}

/// Three witnesses: one honest, one dead, one that answers with garbage and with sizes that the log never had. The node
/// restarts in between.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_goes_on_beside_a_dead_and_a_lying_witness() {
    let mut honest = OtherInstallation::new("honest").await;
    let mut dead = OtherInstallation::new("dead").await;
    let liar = WebhookReceiver::start().await;
    liar.answer(|index, _| match index % 3 {
        0 => "— liar.example AAAA\n".into_response(),
        1 => {
            let kind = [("content-type", SIZE_TYPE)];
            (StatusCode::CONFLICT, kind, "999999\n").into_response()
        }
        _ => (StatusCode::CONFLICT, "x".repeat(10_000)).into_response(),
    });

    let lying = LogWitnessSettings {
        name: "liar".into(),
        url: liar.url.parse().unwrap(),
        key: CheckpointSigner::new(&[99; 32])
            .unwrap()
            .witness("liar.example"),
    };
    let witnesses = vec![honest.settings(), dead.settings(), lying];
    let app = with_witnesses(witnesses.clone(), 2).await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let key = log_key(&app).await;

    // One of three is no quorum, and the vault does not wait for it.
    honest.serve(&key).await;
    wait_for_rows(
        &app,
        "ledger_witness where name = 'honest' and cosignature is not null",
    )
    .await;
    wait_for_rows(&app, "ledger_witness where name = 'dead' and failures >= 3").await;
    wait_for_rows(
        &app,
        "ledger_witness where name = 'liar' and conflict is not null",
    )
    .await;
    app.vaulted_envelope().await;
    let note = app.get_as("", "/ledger/checkpoint").await.text();
    assert!(!note.contains("honest.example"), "{note}");
    assert_eq!(app.ready().await["ledger"], true);

    // The claim of the liar is stored with the head that it contradicts. It shows none of its own.
    let claim = app
        .text_of("select conflict from ledger_witness where name = 'liar'")
        .await;
    let claim: Value = serde_json::from_str(&claim).unwrap();
    assert_eq!(claim["witness_size"], 999_999);
    assert_eq!(claim["is_proof"], false);
    assert!(key.open(claim["own_head"].as_str().unwrap()).is_ok());

    let (ok, detail) = doctor(&app).await;
    assert!(!ok, "{detail}");
    assert!(
        detail.contains("dead does not cosign: it does not answer"),
        "{detail}"
    );
    assert!(
        detail.contains("liar contradicts the log: it has cosigned 999999"),
        "{detail}"
    );
    let metrics = app.metrics().await;
    assert!(!metrics.contains("holdfast_ledger_witness_answers_total{outcome=\"conflict\"} 0"));

    // After a restart, the dead one is back.
    app.stop_working();
    dead.serve(&key).await;
    let restarted = app
        .another_node(|config| have_witnesses(config, &witnesses, 2))
        .await;
    restarted.vaulted_envelope().await;
    let note = cosigned_by(&restarted, &["honest", "dead"]).await;
    let (text, lines) = split_note(&note).unwrap();
    assert!(key.open(&note).is_ok());
    for witness in [&honest, &dead] {
        assert!(witness.key.cosignature(text, lines).is_some());
    }

    dead.stop().await;
    honest.stop().await;
}

/// A certificate and a bundle have a head that the quorum has cosigned.
#[tokio::test(flavor = "multi_thread")]
async fn evidence_has_a_head_that_the_quorum_has_cosigned() {
    let mut one = OtherInstallation::new("one").await;
    let mut two = OtherInstallation::new("two").await;
    let app = with_witnesses(vec![one.settings(), two.settings()], 2).await;
    app.custody(&app.vaulted_envelope().await).await;
    let key = log_key(&app).await;
    one.serve(&key).await;
    two.serve(&key).await;
    cosigned_by(&app, &["one", "two"]).await;

    let id = app.vaulted_envelope().await;
    let certificate = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&certificate).await.data(200);
    let noted = certificate["ledger_checkpoint"].as_str().unwrap();
    assert!(noted.contains("— one.example "), "{noted}");
    assert!(key.open(noted).is_ok());

    let release = format!("/partner/envelopes/{id}/vault-out");
    app.post(&release, release_form()).await.data(200);
    let bundle = app
        .get_with_bearer(&app.admin(), &format!("/envelopes/{id}/bundle"))
        .await;
    assert_eq!(bundle.status, 200);

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bundle = file("bundle.zip", &bundle.bytes);
    let both = format!(
        "log {key}\nwitness one {}\nwitness two {}\ngroup both all one two\nquorum both\n",
        one.key, two.key
    );
    let (valid, check) = verified(&bundle, &file("both", both.as_bytes())).await;
    assert!(valid, "{check}");
    assert_eq!(check["ok"], true, "{check}");

    let third = CheckpointSigner::new(&[98; 32])
        .unwrap()
        .witness("three.example");
    let all = both.replace(
        "group both all one two",
        &format!("witness three {third}\ngroup both all one two three"),
    );
    let (valid, check) = verified(&bundle, &file("all", all.as_bytes())).await;
    assert!(!valid, "{check}");
    let detail = check["detail"].as_str().unwrap();
    assert!(detail.ends_with("not by three"), "{detail}");

    let (ok, detail) = doctor(&app).await;
    assert!(
        ok && detail.starts_with("2 witnesses, quorum 2; "),
        "{detail}"
    );
}

/// Verifies a bundle under a policy. Returns whether it is valid, and the check of the quorum.
async fn verified(bundle: &str, policy: &str) -> (bool, Value) {
    let arguments = ["verify", bundle, "--witness-policy", policy].map(str::to_owned);
    let nothing = tempfile::tempdir().unwrap();
    let output = tokio::task::spawn_blocking(move || {
        operator_output(nothing.path(), &arguments.each_ref().map(String::as_str))
    });
    let output = output.await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut checks = report["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["check"] == "witnesses").unwrap();
    (output.status.success(), check.clone())
}

/// The operator rewrites an entry and signs a log that contains it from the start. The witness has the first history.
#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_log_is_reported_with_the_head_that_its_witness_shows() {
    let mut witness = OtherInstallation::new("watchful").await;
    let app = with_witnesses(vec![witness.settings()], 1).await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let key = log_key(&app).await;
    witness.serve(&key).await;
    cosigned_by(&app, &["watchful"]).await;

    app.rewrite_ledger(&id, 1, "somebody else").await;
    app.rebuild_log().await;
    wait_for_rows(
        &app,
        "ledger_witness where conflict like '%\"is_proof\":true%'",
    )
    .await;

    let data = app.data.path().to_owned();
    let listed = tokio::task::spawn_blocking(move || operator(&data, &["ledger", "witnesses"]));
    let listed = listed.await.unwrap();
    let conflict = &listed[0]["conflict"];
    let head = |member: &str| key.open(conflict[member].as_str().unwrap()).unwrap();
    let (own, shown) = (head("own_head"), head("witness_head"));
    assert_ne!(own, shown);
    assert_eq!(conflict["witness_size"], shown.size);

    // The witness has stored both heads as well, and has cosigned neither anew.
    let data = witness.data.path().to_owned();
    let logs = tokio::task::spawn_blocking(move || operator(&data, &["witness", "logs"]));
    let logs = logs.await.unwrap();
    assert_eq!(logs[0]["tree_size"], shown.size);
    let stored = &logs[0]["conflicts"][0];
    for member in ["cosigned", "refused"] {
        assert!(key.open(stored[member].as_str().unwrap()).is_ok());
    }
}

/// Log with two histories, which have the first three entries in common.
struct SplitLog {
    signer: CheckpointSigner,
    histories: [TileReader; 2],
}

impl SplitLog {
    const ORIGIN: &'static str = "split.example/ledger";

    fn new() -> Self {
        let history = |other: u8| {
            let mut tiles = TileReader::default();
            for index in 0..10_u8 {
                let leaf = if index < 3 {
                    [index, 0]
                } else {
                    [index, other]
                };
                tiles.append(u64::from(index), leaf_hash(&leaf)).unwrap();
            }
            tiles
        };
        Self {
            signer: CheckpointSigner::new(&[5; 32]).unwrap(),
            histories: [history(1), history(2)],
        }
    }

    fn key(&self) -> VerifierKey {
        self.signer.verifier(Self::ORIGIN)
    }

    /// Returns a request for a head of one of the histories.
    fn request(&self, history: usize, old: u64, size: u64) -> String {
        let tiles = &self.histories[history];
        let root: Hash = tiles.root(size).unwrap();
        let head = Checkpoint {
            origin: Self::ORIGIN.into(),
            size,
            root,
        };
        let request = AddCheckpoint {
            old,
            proof: tiles.consistency(old, size).unwrap(),
            note: self.signer.sign(&head),
        };
        request.to_string()
    }
}

/// `holdfast witness serve` as a process that a test can kill.
struct WitnessProcess {
    child: Child,
    url: String,
}

impl WitnessProcess {
    fn start(data: &Path, log: &VerifierKey) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_holdfast"))
            .env("HOLDFAST_DATA_DIR", data)
            .env("HOLDFAST_WITNESS__NAME", "witness.example")
            .env("HOLDFAST_WITNESS__LISTEN", "127.0.0.1:0")
            .env("HOLDFAST_WITNESS__LOGS", format!("[\"{log}\"]"))
            .args(["witness", "serve"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();

        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        let address = lines.find_map(|line| {
            let (_, behind) = line.split_once("listening on ")?;
            Some(behind.split(' ').next()?.to_owned())
        });
        let url = format!("http://{}", address.expect("a line with the address"));
        // A full pipe would block the witness.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    /// Returns status, content type and text of the answer to a request.
    async fn ask(&self, body: String) -> (u16, String, String) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = format!("{}/add-checkpoint", self.url);
        let answer = reqwest::Client::new().post(url).body(body).send().await;
        let answer = answer.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap();
        let (status, kind) = (answer.status().as_u16(), kind.to_owned());
        (status, kind, answer.text().await.unwrap())
    }
}

impl Drop for WitnessProcess {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Two histories from one key, before and after the witness is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_witness_refuses_a_second_history() {
    let log = SplitLog::new();
    let data = tempfile::tempdir().unwrap();
    let witness = WitnessProcess::start(data.path(), &log.key());
    let (status, _, line) = witness.ask(log.request(0, 0, 5)).await;
    assert_eq!(status, 200, "{line}");
    drop(witness);

    // The key is the same, and the size is that of before.
    let witness = WitnessProcess::start(data.path(), &log.key());
    let shown = as_witness(data.path(), "witness", vec![log.key()]);
    let key = start::open_witness(&shown).await.unwrap().key();
    let request = log.request(0, 0, 5);
    let (_, note) = request.split_once("\n\n").unwrap();
    let (text, _) = split_note(note).unwrap();
    assert!(key.cosignature(text, &line).is_some());

    let size = (409, SIZE_TYPE.to_owned(), "5\n".to_owned());
    assert_eq!(witness.ask(log.request(0, 0, 7)).await, size);
    // The other history: another root of the same size, and a proof from its own head.
    assert_eq!(witness.ask(log.request(1, 5, 5)).await, size);
    assert_eq!(witness.ask(log.request(1, 5, 8)).await.0, 422);
    assert_eq!(witness.ask(log.request(1, 0, 8)).await, size);

    // The witness cosigns the next head of the first history, also a second time.
    assert_eq!(witness.ask(log.request(0, 5, 8)).await.0, 200);
    assert_eq!(witness.ask(log.request(0, 8, 8)).await.0, 200);

    let path = data.path().to_owned();
    let logs = tokio::task::spawn_blocking(move || operator(&path, &["witness", "logs"]));
    let logs = logs.await.unwrap();
    assert_eq!(logs[0]["tree_size"], 8);
    let conflicts = logs[0]["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 2, "{logs}");
    for (conflict, size) in conflicts.iter().zip([5, 8]) {
        assert_eq!(conflict["tree_size"], size);
        let head = |member: &str| log.key().open(conflict[member].as_str().unwrap()).unwrap();
        assert_eq!(head("cosigned").size, 5);
        assert_ne!(head("cosigned"), head("refused"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_names_what_is_wrong_with_a_request() {
    let log = SplitLog::new();
    let data = tempfile::tempdir().unwrap();
    let witness = WitnessProcess::start(data.path(), &log.key());
    let first = log.request(0, 0, 5);
    let forged = first.replace("\n5\n", "\n6\n");
    let unknown = first.replace(SplitLog::ORIGIN, "unknown.example/ledger");
    let proved = first.replacen("old 0\n", &format!("old 0\n{}=\n", "A".repeat(43)), 1);
    for (body, status) in [
        ("nothing".to_owned(), 400),
        ("old 0\n\nno note".to_owned(), 400),
        (first.replace("old 0", "old 6"), 400),
        (first.replacen("split", "split\u{1b}", 1), 400),
        (forged, 403),
        (unknown, 404),
        (proved, 422),
        (format!("{first}{}", "x".repeat(20_000)), 413),
        (first, 200),
    ] {
        let (found, _, text) = witness.ask(body.clone()).await;
        assert_eq!(found, status, "{body}: {text}");
    }
}

/// Any client can send a public head of a log with a proof that fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_proof_is_no_contradiction_of_the_log() {
    let log = SplitLog::new();
    let data = tempfile::tempdir().unwrap();
    let witness = WitnessProcess::start(data.path(), &log.key());
    assert_eq!(witness.ask(log.request(0, 0, 5)).await.0, 200);

    let mut request = AddCheckpoint::parse(&log.request(0, 5, 8)).unwrap();
    request.proof.reverse();
    assert_eq!(witness.ask(request.to_string()).await.0, 422);
    request.proof.clear();
    assert_eq!(witness.ask(request.to_string()).await.0, 422);

    let path = data.path().to_owned();
    let logs = tokio::task::spawn_blocking(move || operator(&path, &["witness", "logs"]));
    assert_eq!(logs.await.unwrap()[0]["conflicts"], json!([]));
}

/// Only one of several heads that extend the same one is cosigned; the others get its size.
#[tokio::test(flavor = "multi_thread")]
async fn heads_that_arrive_together_are_cosigned_one_after_the_other() {
    let log = SplitLog::new();
    let data = tempfile::tempdir().unwrap();
    let config = as_witness(data.path(), "witness", vec![log.key()]);
    let witness = Arc::new(start::open_witness(&config).await.unwrap());
    witness.add_checkpoint(&log.request(0, 0, 3)).await.unwrap();

    let heads = (4..10).map(|size| {
        let (witness, request) = (witness.clone(), log.request(0, 3, size));
        tokio::spawn(async move { witness.add_checkpoint(&request).await.is_ok() })
    });
    let heads: Vec<_> = heads.collect();
    let mut cosigned = 0;
    for head in heads {
        cosigned += usize::from(head.await.unwrap());
    }
    assert_eq!(cosigned, 1);
}

/// A backup lacks the key: a witness that forgot heads must not sign with the same one.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_witness_has_another_key() {
    let folder = tempfile::tempdir().unwrap();
    let (data, restored) = (folder.path().join("data"), folder.path().join("restored"));
    let copy = folder.path().join("copy");
    let key = |data: &Path| {
        let config = as_witness(data, "witness", Vec::new());
        async move { start::open_witness(&config).await.unwrap().key() }
    };
    let before = key(&data).await;
    assert_eq!(key(&data).await, before);

    let [copy, data] = [copy, data].map(|path| path.to_str().unwrap().to_owned());
    let to = restored.clone();
    let restoring = tokio::task::spawn_blocking(move || {
        operator(Path::new(&data), &["backup", &copy]);
        operator(&to, &["restore", &copy])
    });
    restoring.await.unwrap();
    assert_ne!(key(&restored).await, before);
}
