//! Webhooks: latency and cost of deliveries, and the effect of slow or dead receivers on other
//! receivers.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast::domain::clock::Clock;
use holdfast::domain::event::{Event, EventType};
use holdfast::domain::id::{EndpointId, EventId, OrgId};
use holdfast::domain::webhook::{Endpoint, EndpointHealth, EventSelector};
use holdfast::store::{SqlDialect, Store, deliveries, events, webhooks};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::Failure;
use crate::load::LoadConnection;
use crate::meter::ProcessMeter;
use crate::partner::PartnerClient;
use crate::report::{self, ReportTable, percentile};

const EVENTS: usize = 5_000;
const WARM_UP: usize = 500;
const OPEN_LOOP: Duration = Duration::from_secs(10);
const ISOLATION: Duration = Duration::from_secs(20);
const BACKLOG: usize = 20_000;
const DUE_AT_THE_DEAD: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures both databases.
pub fn run() -> Result<(), Failure> {
    let server = std::env::var("TEST_POSTGRES_URL").map_err(
        |_| "no PostgreSQL: run `make bench`, or this program through tests/with-postgres",
    )?;
    let runtime = tokio::runtime::Runtime::new()?;
    report::heading("Webhooks: events that are published and received");
    let mut published = ReportTable::new(&[
        "database",
        "load",
        "accepted/s",
        "delivered/s",
        "ack p50 ms",
        "p99",
        "received p50 ms",
        "p99",
        "CPU ms an event",
        "peak MiB",
    ]);

    let mut drained = ReportTable::new(&[
        "database",
        "endpoints",
        "delivered/s",
        "CPU ms a delivery",
        "of that database",
        "peak MiB",
    ]);

    let mut isolated = ReportTable::new(&[
        "database",
        "beside",
        "ack p50 ms",
        "p99",
        "received p50 ms",
        "p99",
        "after the answer p50 ms",
        "p99",
    ]);

    for kind in ["SQLite", "PostgreSQL"] {
        runtime.block_on(async {
            let bench = WebhookBench::start(kind, &server, "published").await?;
            for publishers in [16, 64] {
                bench.publish_closed(&mut published, publishers).await?;
            }
            bench.publish_open(&mut published).await?;
            bench.stop()
        })?;

        for endpoints in [1, 16] {
            runtime.block_on(drain(&mut drained, kind, &server, endpoints))?;
        }

        runtime.block_on(async {
            let bench = WebhookBench::start(kind, &server, "isolated").await?;
            bench.beside_the_slow(&mut isolated).await?;
            bench.stop()
        })?;
    }

    published.print();
    println!(
        "\nAn event is a paper envelope created through the API, with its customer, ledger entry and all;\n\
         \"received\" is from just before that request. {EVENTS} events, or 200/s for {} s.",
        OPEN_LOOP.as_secs()
    );
    report::heading("Webhooks: a backlog that is delivered");

    drained.print();
    println!(
        "\n{BACKLOG} deliveries that were due before the server was started; CPU of server and database."
    );
    report::heading("Webhooks: another organization's events, 20/s, and a neighbour's 200/s");
    isolated.print();
    println!(
        "\nBeside an endpoint that never answers and gets 100 events a second for {} s; and beside\n\
         {DUE_AT_THE_DEAD} deliveries that are due at an endpoint where nobody listens. \"ack\" and \"received\" are from just before\n\
         the request that makes the event, the last two columns from its answer: what the disk takes to commit is not in them.",
        ISOLATION.as_secs()
    );

    Ok(())
}

/// A receiver with little overhead.
struct WebhookReceiver {
    address: SocketAddr,
    arrivals: Mutex<HashMap<String, Instant>>,
    count: AtomicUsize,
    /// Whether it accepts connections and requests but never responds.
    hangs: bool,
}

impl WebhookReceiver {
    async fn start(hangs: bool) -> Result<Arc<Self>, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let receiver = Arc::new(Self {
            address: listener.local_addr()?,
            arrivals: Mutex::default(),
            count: AtomicUsize::new(0),
            hangs,
        });
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move {
                    let _ = serving.serve(stream).await;
                });
            }
        });

        Ok(receiver)
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(8192);
        loop {
            let head = loop {
                if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                    break end + 4;
                }
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            };
            let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|length| length.trim().parse::<usize>().ok())
                .unwrap_or_default();
            while buffer.len() < head + length {
                if stream.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            }

            let body: Value = serde_json::from_slice(&buffer[head..head + length])?;
            buffer.drain(..head + length);
            let id = body["envelope_id"].as_str().unwrap_or_default().to_owned();
            self.note(id);

            if !self.hangs {
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
            }
        }
    }

    fn note(&self, id: String) {
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.entry(id).or_insert_with(Instant::now);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    async fn wait_for(&self, count: usize) -> Result<(), Failure> {
        let began = Instant::now();
        while self.count.load(Ordering::Relaxed) < count {
            if began.elapsed() > PATIENCE {
                let got = self.count.load(Ordering::Relaxed);
                return Err(format!("{got} of {count} events were received").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }

        Ok(())
    }

    fn arrival(&self, id: &str) -> Option<Instant> {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.get(id).copied()
    }
}

/// A running server, its database, and a responsive receiver.
struct WebhookBench {
    kind: &'static str,
    partner: PartnerClient,
    store: Store,
    receiver: Arc<WebhookReceiver>,
    _folder: tempfile::TempDir,
}

/// An acknowledged event.
struct SentEvent {
    id: String,
    asked: Instant,
    acknowledged: Instant,
}

const SETTINGS: [(&str, &str); 1] = [("HOLDFAST_WEBHOOKS__ALLOW_INSECURE", "true")];

pub async fn database(
    kind: &str,
    server: &str,
    name: &str,
    folder: &Path,
) -> Result<String, Failure> {
    if kind == "SQLite" {
        return Ok(format!("sqlite://{}", folder.join("holdfast.db").display()));
    }
    let store = Store::connect(&format!("{server}/postgres")).await?;
    let mut connection = store.read().await?;
    let create = sqlx::AssertSqlSafe(format!("create database bench_{name}"));
    sqlx::query(create).execute(&mut *connection).await?;
    Ok(format!("{server}/bench_{name}"))
}

/// Registers an active endpoint for all event types, as the API would.
async fn register(store: &Store, org: &OrgId, url: String) -> Result<(), Failure> {
    let now = Clock::default().now();
    let endpoint = Endpoint {
        id: EndpointId::new(),
        org: org.clone(),
        url,
        description: None,
        selectors: vec![EventSelector::all()],
        is_active: true,
        key: None,
        legacy: false,
        secret: None,
        previous: None,
        created_by: "bench".into(),
        created_at: now,
        updated_at: now,
        health: EndpointHealth::default(),
    };

    let mut tx = store.begin().await?;
    webhooks::insert(&mut tx, &endpoint).await?;
    Ok(tx.commit().await?)
}

/// Creates events while no server is running to deliver them.
async fn happen(store: &Store, org: &OrgId, count: usize) -> Result<(), Failure> {
    for _ in 0..count.div_ceil(500) {
        let mut tx = store.begin().await?;
        for _ in 0..count.min(500) {
            let event = Event {
                event_type: EventType::VaultStored,
                event_id: EventId::new(),
                org_id: org.clone(),
                envelope_id: None,
                timestamp: Clock::default().now(),
                data: json!({ "path": "vault:env/authoritative", "hash": "9f86d081884c7d65".repeat(4),
                    "note": "x".repeat(300) }),
            };

            events::insert(&mut tx, &event);
            deliveries::fan_out(&mut tx, &event).await?;
        }

        tx.commit().await?;
    }

    analyze(store).await
}

/// PostgreSQL does this by itself, a minute later.
async fn analyze(store: &Store) -> Result<(), Failure> {
    if store.dialect() == SqlDialect::Postgres {
        let mut connection = store.read().await?;
        sqlx::query("analyze").execute(&mut *connection).await?;
    }
    Ok(())
}

impl WebhookBench {
    async fn start(kind: &'static str, server: &str, name: &str) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let url = database(kind, server, name, folder.path()).await?;
        let partner = PartnerClient::start_with(folder.path(), &url, &SETTINGS)?;
        let store = Store::connect(&url).await?;
        let receiver = WebhookReceiver::start(false).await?;
        register(
            &store,
            &partner.org,
            format!("http://{}/", receiver.address),
        )
        .await?;

        let bench = Self {
            kind,
            partner,
            store,
            receiver,
            _folder: folder,
        };
        bench.publish(16, WARM_UP).await?;

        bench.receiver.wait_for(WARM_UP).await?;
        analyze(&bench.store).await?;
        Ok(bench)
    }

    fn stop(self) -> Result<(), Failure> {
        self.partner.server.stop()
    }

    /// One request that makes one event.
    fn request(&self) -> Vec<u8> {
        let body = json!({
            "envelope_name": "Lease", "envelope_kind": "paper",
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        });
        self.partner.request(
            "POST",
            "/envelopes",
            "application/json",
            body.to_string().as_bytes(),
        )
    }

    /// From so many connections, each asking again as soon as it is answered.
    async fn publish(&self, publishers: usize, count: usize) -> Result<Vec<SentEvent>, Failure> {
        let left = Arc::new(AtomicUsize::new(count));
        let tasks: Vec<_> = (0..publishers)
            .map(|_| {
                let (request, left) = (self.request(), left.clone());
                let address = self.partner.server.address;
                tokio::spawn(async move {
                    let mut connection = LoadConnection::open(address).await?;
                    let mut sent = Vec::new();
                    let take = |left: usize| left.checked_sub(1);
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                        .is_ok()
                    {
                        sent.push(one(&mut connection, &request).await?);
                    }

                    Ok::<_, Failure>(sent)
                })
            })
            .collect();

        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await??);
        }

        Ok(all)
    }

    /// So many a second, whether or not the ones before are answered.
    async fn publish_at(&self, rate: u32, time: Duration) -> Result<Vec<SentEvent>, Failure> {
        let period = Duration::from_secs(1) / rate;
        let count = (time.as_secs_f64() * f64::from(rate)) as u32;
        let began = Instant::now();
        let idle = Arc::new(Mutex::new(Vec::new()));

        let mut tasks = Vec::new();
        for number in 0..count {
            let at = tokio::time::Instant::from_std(began + period * number);
            tokio::time::sleep_until(at).await;
            let (request, idle) = (self.request(), idle.clone());
            let address = self.partner.server.address;
            tasks.push(tokio::spawn(async move {
                let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut connection = match kept {
                    Some(connection) => connection,
                    None => LoadConnection::open(address).await?,
                };
                let sent = one(&mut connection, &request).await?;
                idle.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(connection);

                Ok::<_, Failure>(sent)
            }));
        }

        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await??);
        }

        Ok(all)
    }

    async fn publish_closed(
        &self,
        table: &mut ReportTable,
        publishers: usize,
    ) -> Result<(), Failure> {
        let name = format!("{publishers} publishers");
        let sending = self.publish(publishers, EVENTS);
        self.measure(table, &name, sending).await
    }

    async fn publish_open(&self, table: &mut ReportTable) -> Result<(), Failure> {
        let sending = self.publish_at(200, OPEN_LOOP);
        self.measure(table, "open loop, 200/s", sending).await
    }

    async fn measure(
        &self,
        table: &mut ReportTable,
        name: &str,
        sending: impl Future<Output = Result<Vec<SentEvent>, Failure>>,
    ) -> Result<(), Failure> {
        let meter = ProcessMeter::start(self.partner.server.id(), &self.store).await?;
        let before = self.receiver.count.load(Ordering::Relaxed);
        let began = Instant::now();
        let sent = sending.await?;
        let accepted = sent.len() as f64 / began.elapsed().as_secs_f64();
        self.receiver.wait_for(before + sent.len()).await?;
        let delivered = sent.len() as f64 / began.elapsed().as_secs_f64();

        let used = meter.stop();
        let acknowledged = times(&sent, |sent| Some(sent.acknowledged));
        let received = times(&sent, |sent| self.receiver.arrival(&sent.id));
        table.row([
            self.kind.to_owned(),
            name.to_owned(),
            format!("{accepted:.0}"),
            format!("{delivered:.0}"),
            format!("{:.1}", percentile(&acknowledged, 50)),
            format!("{:.1}", percentile(&acknowledged, 99)),
            format!("{:.1}", percentile(&received, 50)),
            format!("{:.1}", percentile(&received, 99)),
            format!(
                "{:.2}",
                (used.server + used.database) * 1e3 / sent.len() as f64
            ),
            format!("{:.0}", used.peak),
        ]);

        Ok(())
    }

    /// Alone, beside an endpoint that hangs, and beside one that is dead.
    async fn beside_the_slow(&self, table: &mut ReportTable) -> Result<(), Failure> {
        let mut row = |name: &str, sent: &[SentEvent]| {
            let acknowledged = times(sent, |sent| Some(sent.acknowledged));
            let received = times(sent, |sent| self.receiver.arrival(&sent.id));

            // The answer follows the commit at once.
            let after = times(sent, |sent| {
                let arrival = self.receiver.arrival(&sent.id)?;
                Some(arrival.max(sent.acknowledged) - (sent.acknowledged - sent.asked))
            });
            let lost = sent.len() - received.len();
            table.row([
                self.kind.to_owned(),
                name.to_owned(),
                format!("{:.1}", percentile(&acknowledged, 50)),
                format!("{:.1}", percentile(&acknowledged, 99)),
                format!("{:.1}", percentile(&received, 50)),
                format!("{:.1}", percentile(&received, 99)),
                format!("{:.1}", percentile(&after, 50)),
                format!("{:.1}", percentile(&after, 99)),
            ]);

            if lost > 0 {
                return Err(Failure::from(format!(
                    "{name}: {lost} events did not arrive"
                )));
            }

            Ok(())
        };

        let before = self.receiver.count.load(Ordering::Relaxed);
        let sent = self.publish_at(20, ISOLATION).await?;
        self.receiver.wait_for(before + sent.len()).await?;
        row("nothing (20/s)", &sent)?;

        // Another organization, with a receiver that never responds.
        let other = self.partner.another()?;
        let hung = WebhookReceiver::start(true).await?;
        register(&self.store, &other.org, format!("http://{}/", hung.address)).await?;
        let before = self.receiver.count.load(Ordering::Relaxed);
        let theirs = self.publish_as(&other.key, 100, ISOLATION);
        let ours = self.publish_at(20, ISOLATION);
        let (theirs, sent) = tokio::join!(theirs, ours);
        theirs?;

        let sent = sent?;
        self.receiver.wait_for(before + sent.len()).await?;
        row("one that never answers, at 100/s", &sent)?;

        let busy = self.beside_nothing_else(200).await?;
        row("nothing (200/s)", &busy)?;
        let dead = self.partner.another()?;
        register(&self.store, &dead.org, "http://127.0.0.1:9/".into()).await?;
        happen(&self.store, &dead.org, DUE_AT_THE_DEAD).await?;
        let sent = self.beside_nothing_else(20).await?;
        row("10,000 due at a dead one (20/s)", &sent)?;

        let sent = self.beside_nothing_else(200).await?;
        row("10,000 due at a dead one (200/s)", &sent)
    }

    /// Publishes events at this rate, without events of other organizations, and waits for their
    /// arrival.
    async fn beside_nothing_else(&self, rate: u32) -> Result<Vec<SentEvent>, Failure> {
        let before = self.receiver.count.load(Ordering::Relaxed);
        let sent = self.publish_at(rate, OPEN_LOOP).await?;
        self.receiver.wait_for(before + sent.len()).await?;
        Ok(sent)
    }

    async fn publish_as(&self, key: &str, rate: u32, time: Duration) -> Result<(), Failure> {
        let ours = format!("x-api-key: {}\r\n", self.partner.key);
        let theirs = format!("x-api-key: {key}\r\n");
        let request = String::from_utf8(self.request())?.replace(&ours, &theirs);
        let mut connection = LoadConnection::open(self.partner.server.address).await?;

        let began = tokio::time::Instant::now();
        for number in 0..(time.as_secs_f64() * f64::from(rate)) as u32 {
            tokio::time::sleep_until(began + Duration::from_secs(1) / rate * number).await;
            one(&mut connection, request.as_bytes()).await?;
        }

        Ok(())
    }
}

async fn one(connection: &mut LoadConnection, request: &[u8]) -> Result<SentEvent, Failure> {
    let asked = Instant::now();
    let answer = connection.ask(request).await?;
    let acknowledged = Instant::now();
    let body: Value = serde_json::from_slice(&answer.body)?;
    let id = body["data"]["envelope_id"].as_str();
    Ok(SentEvent {
        id: id
            .ok_or_else(|| format!("{}: {body}", answer.status))?
            .to_owned(),
        asked,
        acknowledged,
    })
}

/// Returns milliseconds from just before the request.
fn times(sent: &[SentEvent], until: impl Fn(&SentEvent) -> Option<Instant>) -> Vec<f64> {
    sent.iter()
        .filter_map(|sent| Some(until(sent)?.saturating_duration_since(sent.asked)))
        .map(report::millis)
        .collect()
}

/// Measures draining a backlog for a number of endpoints after the server starts.
async fn drain(
    table: &mut ReportTable,
    kind: &'static str,
    server: &str,
    endpoints: usize,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let url = database(kind, server, &format!("drained_{endpoints}"), folder.path()).await?;
    let partner = PartnerClient::start_with(folder.path(), &url, &SETTINGS)?;
    let org = partner.org.clone();
    partner.server.stop()?;
    let store = Store::connect(&url).await?;

    let receiver = WebhookReceiver::start(false).await?;
    for endpoint in 0..endpoints {
        register(
            &store,
            &org,
            format!("http://{}/{endpoint}", receiver.address),
        )
        .await?;
    }

    happen(&store, &org, BACKLOG / endpoints).await?;
    let backlog = BACKLOG / endpoints.max(1) / 500 * 500 * endpoints;
    let server = PartnerClient::serve(folder.path(), &url, &SETTINGS)?;
    receiver.wait_for(backlog / 20).await?;
    let meter = ProcessMeter::start(server.id(), &store).await?;
    let (first, began) = (receiver.count.load(Ordering::Relaxed), Instant::now());
    receiver.wait_for(backlog).await?;

    let (time, count) = (began.elapsed().as_secs_f64(), (backlog - first) as f64);
    let used = meter.stop();
    table.row([
        kind.to_owned(),
        endpoints.to_string(),
        format!("{:.0}", count / time),
        format!("{:.2}", (used.server + used.database) * 1e3 / count),
        format!("{:.2}", used.database * 1e3 / count),
        format!("{:.0}", used.peak),
    ]);

    server.stop()
}
