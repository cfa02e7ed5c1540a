//! Servers that are killed while they deliver events, and hostile receivers.
//!
//! `HOLDFAST_KILLS` selects the long drill of `make crash`, with 30,000 events and 20 kills.
//! `make test` runs a short one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use crate::support::process::{ServerHome, ServerProcess, this_program};
use crate::support::receiver::WebhookReceiver;
use crate::support::{postgres, share_native_code};

const SETTINGS: [(&str, &str); 2] = [
    ("HOLDFAST_WEBHOOKS__ALLOW_INSECURE", "true"),
    (
        "HOLDFAST_WEBHOOKS__RETRY_DELAYS",
        "[\"200ms\", \"1s\", \"1s\", \"5s\"]",
    ),
];

/// A server's home with one organization.
struct WebhookDrill {
    home: ServerHome,
    org: String,
    /// One key for each run of the server: a killed node leaves the rate-limit share that it leased
    /// from its key unusable until the window ends.
    keys: Vec<String>,
    bearer: String,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl WebhookDrill {
    fn new(database: Option<String>, lives: usize) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        share_native_code(folder.path());
        let home = ServerHome {
            program: this_program(),
            data: folder.path().to_owned(),
            database,
            settings: Vec::new(),
        };
        let operator = |arguments: &[&str]| home.operator("0s", arguments).1;
        let org = operator(&["org", "create", "--name", "Maple"]);
        let org = org["org_id"].as_str().unwrap().to_owned();

        let limit = ["--rpm", "100000000"];
        let create = [
            "key",
            "create",
            "--org",
            &org,
            "--scopes",
            "envelopes:write",
        ];
        let keys = (0..lives).map(|_| {
            let made = operator(&[&create[..], &limit].concat());
            made["api_key"].as_str().unwrap().to_owned()
        });
        let keys = keys.collect();

        let token = operator(&[
            "token",
            "issue",
            "--org",
            &org,
            "--email",
            "oak@oak.example",
            "--role",
            "admin",
        ]);

        Self {
            keys,
            bearer: token["token"].as_str().unwrap().to_owned(),
            org,
            home,
            http: reqwest::Client::builder()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
            _folder: folder,
        }
    }

    fn serve(&self) -> ServerProcess {
        ServerProcess::start(&self.home, &[], &SETTINGS).expect("it listens")
    }

    async fn as_admin(&self, server: &str, path: &str, body: Option<&Value>) -> Value {
        let url = format!("{server}/api/v2{path}");
        let request = match body {
            None => self.http.get(url),
            Some(body) => self
                .http
                .post(url)
                .header("content-type", "application/json")
                .body(body.to_string()),
        };
        let request = request.header("authorization", format!("Bearer {}", self.bearer));
        let text = request.send().await.unwrap().text().await.unwrap();

        serde_json::from_str(&text).unwrap()
    }

    async fn endpoint(&self, server: &str, url: &str) -> String {
        let body = json!({ "url": url, "events": ["*"] });
        let made = self
            .as_admin(server, "/webhooks/endpoints", Some(&body))
            .await;
        made["data"]["endpoint_id"].as_str().unwrap().to_owned()
    }

    /// Causes one event; returns the envelope's id if the server acknowledged it.
    async fn event(&self, server: &str, life: usize) -> Option<String> {
        let body = json!({
            "envelope_name": "Lease", "envelope_kind": "paper",
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        });
        let request = self
            .http
            .post(format!("{server}/api/v2/partner/envelopes"))
            .header("x-api-key", &self.keys[life])
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await.ok()?;
        let text = answer.text().await.ok()?;
        let answer: Value = serde_json::from_str(&text).ok()?;

        Some(answer["data"]["envelope_id"].as_str()?.to_owned())
    }
}

/// Kills servers while they deliver events, and counts the deliveries.
async fn kill_servers_during_deliveries(database: Option<String>) {
    let drill = std::env::var("HOLDFAST_KILLS").is_ok();
    let (events, kills) = if drill { (30_000, 20) } else { (600, 3) };
    let ground = Arc::new(WebhookDrill::new(database, kills + 1));
    let receiver = WebhookReceiver::start().await;
    let server = ground.serve();
    ground.endpoint(&server.url, &receiver.url).await;
    let address = Arc::new(Mutex::new((server.url.clone(), 0)));

    let acknowledged = Arc::new(Mutex::new(HashMap::new()));
    let publishers = (0..8).map(|_| {
        let (ground, address, acknowledged) =
            (ground.clone(), address.clone(), acknowledged.clone());
        tokio::spawn(async move {
            loop {
                let (server, life) = address.lock().await.clone();
                let event = ground.event(&server, life).await;
                let mut acknowledged = acknowledged.lock().await;
                if let Some(id) = event {
                    acknowledged.insert(id, Instant::now());
                }

                if acknowledged.len() >= events {
                    return;
                }
            }
        })
    });

    let publishers: Vec<_> = publishers.collect();
    let mut server = server;
    for kill in 1..=kills {
        // Kill the server after each share of the events, wherever it is in its work.
        let share = events * kill / (kills + 1);
        while acknowledged.lock().await.len() < share {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }

        server.kill();
        server = ground.serve();
        *address.lock().await = (server.url.clone(), kill);
    }

    for publisher in publishers {
        publisher.await.unwrap();
    }

    let acknowledged = acknowledged.lock().await.clone();
    let ended = Instant::now();
    let missing = || {
        let arrived: HashSet<String> = receiver
            .received()
            .iter()
            .map(|one| one.json()["envelope_id"].as_str().unwrap().to_owned())
            .collect();
        let missing = acknowledged.keys().filter(|id| !arrived.contains(*id));
        missing.count()
    };
    while missing() > 0 {
        let waited = ended.elapsed();
        assert!(
            waited < Duration::from_secs(35),
            "{} are missing",
            missing()
        );

        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    // Leave time for repeated deliveries to arrive.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let received = receiver.received();
    let mut times: HashMap<String, usize> = HashMap::new();

    let mut latest = Duration::ZERO;
    for one in &received {
        let body = one.json();
        let envelope = body["envelope_id"].as_str().unwrap();
        let seen = times
            .entry(body["event_id"].as_str().unwrap().to_owned())
            .or_default();
        *seen += 1;

        if let Some(at) = acknowledged.get(envelope).filter(|_| *seen == 1) {
            latest = latest.max(one.at.saturating_duration_since(*at));
        }
    }

    let duplicates = received.len() - times.len();
    println!(
        "{} acknowledged, {} events received, {duplicates} twice, the latest after {latest:?}; {kills} kills",
        acknowledged.len(),
        times.len(),
    );
    assert!(latest < Duration::from_secs(35), "{latest:?}");

    // Every delivered event is in the outbox, under exactly one envelope.
    let store = ground.home.store().await;
    let mut connection = store.read().await.unwrap();
    let known: Vec<String> = sqlx::query_scalar("select event_id from event")
        .fetch_all(&mut *connection)
        .await
        .unwrap();
    let known: HashSet<String> = known.into_iter().collect();
    assert!(times.keys().all(|event| known.contains(event)));

    let bearable = if drill {
        2 * times.len() / 1000
    } else {
        8 * kills
    };
    assert!(duplicates <= bearable, "{duplicates} of {}", times.len());

    server.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loses_no_acknowledged_event() {
    kill_servers_during_deliveries(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loses_no_acknowledged_event_on_postgresql() {
    kill_servers_during_deliveries(Some(postgres::new_database().await)).await;
}

/// Hostile behaviour of a receiver.
#[derive(Clone, Copy, Debug)]
enum HostileBehaviour {
    /// An endless response, as fast as the client reads.
    Flood,
    /// One byte a second.
    Drip,
    /// 1 MB of headers.
    Headers,
    /// Closes its side of the connection before it responds.
    HalfClose,
}

struct HostileReceiver {
    url: String,
    connections: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
}

async fn hostile(harm: HostileBehaviour) -> HostileReceiver {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (connections, written) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (opened, sent) = (connections.clone(), written.clone());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            opened.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(harm_with(stream, harm, sent.clone()));
        }
    });

    HostileReceiver {
        url,
        connections,
        written,
    }
}

async fn harm_with(mut stream: TcpStream, harm: HostileBehaviour, sent: Arc<AtomicUsize>) {
    let mut request = [0; 16 * 1024];
    let _ = stream.read(&mut request).await;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";

    let piece = [b'x'; 32 * 1024];
    match harm {
        HostileBehaviour::Flood => {
            let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
            while stream.write_all(&piece).await.is_ok() {
                sent.fetch_add(piece.len(), Ordering::Relaxed);
            }
        }
        HostileBehaviour::Drip => {
            let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        HostileBehaviour::Headers => {
            let _ = stream.write_all(head.as_bytes()).await;
            for number in 0..1024 {
                let value = "x".repeat(1000);
                let line = format!("x-{number}: {value}\r\n");
                if stream.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                sent.fetch_add(line.len(), Ordering::Relaxed);
            }

            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        HostileBehaviour::HalfClose => {
            let _ = stream.shutdown().await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }
}

/// Returns the resident memory of a process in KiB.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 64 hostile receivers at once cost little memory, and every delivery slot is freed in time.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_receivers_cost_few_resources() {
    let ground = WebhookDrill::new(None, 1);
    let server = ground.serve();
    let healthy = WebhookReceiver::start().await;

    // The first deliveries allocate memory that later ones reuse, so they come before the baseline.
    let first = ground.endpoint(&server.url, &healthy.url).await;
    for _ in 0..50 {
        ground.event(&server.url, 0).await.unwrap();
    }

    healthy.wait_for(50).await;
    let harms = [
        HostileBehaviour::Flood,
        HostileBehaviour::Drip,
        HostileBehaviour::Headers,
        HostileBehaviour::HalfClose,
    ];

    let mut receivers = Vec::new();
    for harm in [harms, harms].concat() {
        let receiver = hostile(harm).await;
        let id = ground.endpoint(&server.url, &receiver.url).await;
        receivers.push((harm, receiver, id));
    }

    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = resident(server.id());
    let watching = Arc::new(AtomicBool::new(true));
    let watch = {
        let (process, watching) = (server.id(), watching.clone());
        std::thread::spawn(move || {
            let mut peak = 0;
            while watching.load(Ordering::Relaxed) {
                peak = peak.max(resident(process));
                std::thread::sleep(Duration::from_millis(10));
            }
            peak
        })
    };

    let began = Instant::now();
    for _ in 0..8 {
        ground.event(&server.url, 0).await.unwrap();
    }

    // Every first attempt ends and is recorded in time.
    for (harm, receiver, id) in &receivers {
        let path = format!("/webhooks/endpoints/{id}/deliveries");
        loop {
            let log = ground.as_admin(&server.url, &path, None).await;
            let rows = log["data"].as_array().unwrap();
            let tried = rows
                .iter()
                .filter(|row| row["attempt_count"].as_i64() >= Some(1));
            if tried.count() == 8 {
                for row in rows {
                    let body = row["response_body"].as_str().unwrap_or_default();
                    assert!(body.len() <= 64 * 1024, "{harm:?}");
                    let flood = matches!(harm, HostileBehaviour::Flood);
                    assert_eq!(row["status"] == "delivered", flood, "{harm:?} {row}");
                }

                break;
            }

            assert!(
                began.elapsed() < Duration::from_secs(15),
                "{harm:?}: {rows:#?}"
            );

            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        assert!(
            receiver.connections.load(Ordering::Relaxed) >= 8,
            "{harm:?}"
        );
    }

    // The healthy receiver got all its deliveries without delay.
    healthy.wait_for(58).await;
    assert!(!first.is_empty());

    watching.store(false, Ordering::Relaxed);
    let growth = watch.join().unwrap().saturating_sub(before);
    let flooded: usize = receivers
        .iter()
        .map(|(_, receiver, _)| receiver.written.load(Ordering::Relaxed))
        .sum();
    println!(
        "memory grew by {growth} KiB; {flooded} bytes were written to it; {} of {}",
        ground.org, server.url
    );
    // Unlimited answers would take hundreds; a busy machine was seen with a little more than 16.
    assert!(growth <= 20 * 1024, "{growth} KiB");
}
