//! Bulk send: the duration of a batch compared with single creates, its effect on other requests,
//! and ten batches on two nodes at once.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast::domain::clock::Clock;
use holdfast::domain::id::{CustomerId, OrgId};
use holdfast::store::customers::CustomerRow;
use holdfast::store::{Store, customers};
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::load::{self, LoadConnection};
use crate::partner::{FORM, PartnerClient, form};
use crate::report::{self, ReportTable, millis, percentile};
use crate::webhooks::database;

/// Clients of a batch, the maximum.
const CLIENTS: usize = 1_000;
const BATCHES: usize = 10;
/// Interval between the requests of an interactive client.
const PACE: Duration = Duration::from_millis(25);
const ALONE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(300);
/// Concurrent requests of the single creates.
const CREATORS: usize = 8;

/// Measures both databases.
pub fn run() -> Result<(), Failure> {
    let server = std::env::var("TEST_POSTGRES_URL").map_err(
        |_| "no PostgreSQL: run `make bench`, or this program through tests/with-postgres",
    )?;
    let runtime = tokio::runtime::Runtime::new()?;
    report::heading("Bulk send: 1,000 clients on one node");
    let mut batch = ReportTable::new(&[
        "database",
        "creates/s",
        "batch s",
        "items/s",
        "ratio",
        "until all are mailed s",
        "peak MiB",
    ]);

    let mut beside =
        ReportTable::new(&["database", "beside", "requests", "p50 ms", "p99", "slowest"]);
    for kind in ["SQLite", "PostgreSQL"] {
        runtime.block_on(one_node(&mut batch, &mut beside, kind, &server))?;
    }

    batch.print();
    println!(
        "\nFrom submitting to `completed`, looked at every {} ms, with somebody at work beside it. The creates are\n\
         single ones of the same template, {CREATORS} at a time, before it; the ratio is items to creates.",
        LOOK.as_millis()
    );
    report::heading("Bulk send: somebody at work beside it");

    beside.print();
    println!(
        "\nReads of an envelope, lists and creates in turn, one every {} ms.",
        PACE.as_millis()
    );
    report::heading("Bulk send: ten batches of 1,000 at once, on PostgreSQL");
    let mut table = ReportTable::new(&[
        "nodes",
        "s",
        "items/s",
        "first batch done s",
        "peak MiB of each",
    ]);
    for nodes in [1, 2] {
        runtime.block_on(ten_batches(&mut table, nodes, &server))?;
    }

    table.print();
    Ok(())
}

/// A web-app admin of one server.
struct WebAppCaller {
    address: SocketAddr,
    token: String,
    org: OrgId,
}

impl WebAppCaller {
    fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let authorization = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", authorization.as_str()),
            ("x-org-id", self.org.as_str()),
            ("content-type", "application/json"),
        ];
        let path = format!("/api/v2{path}");
        load::request(self.address, method, &path, &headers, body.as_bytes())
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Result<Value, Failure> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut connection = LoadConnection::open(self.address).await?;
        let answer = connection.ask(&self.request(method, path, &body)).await?;
        if answer.status >= 300 {
            return Err(String::from_utf8_lossy(&answer.body).into());
        }

        Ok(serde_json::from_slice::<Value>(&answer.body)?["data"].take())
    }

    /// Creates a batch with its master and clients, ready to be submitted.
    async fn batch(&self, template: &Value, clients: &[CustomerId]) -> Result<String, Failure> {
        let body = json!({
            "name": "Notice", "document_source": "template", "source_template_id": template,
        });
        let batch = self.ask("POST", "/bulk-send", body).await?;
        let id = batch["batch_id"].as_str().unwrap_or_default().to_owned();
        let session = json!({ "batch_id": id });
        self.ask("POST", "/esign/builder-session", session).await?;

        let items = json!({ "customer_ids": clients });
        self.ask("POST", &format!("/bulk-send/{id}/items"), items)
            .await?;

        Ok(id)
    }

    async fn submit(&self, batch: &str) -> Result<(), Failure> {
        let path = format!("/bulk-send/{batch}/submit");
        self.ask("POST", &path, Value::Null).await?;
        Ok(())
    }

    /// Returns the status and the counts of a batch.
    async fn seen(&self, batch: &str) -> Result<(String, Value), Failure> {
        let path = format!("/bulk-send/{batch}");
        let mut seen = self.ask("GET", &path, Value::Null).await?;
        let status = seen["batch"]["status"].as_str().unwrap_or_default();
        Ok((status.to_owned(), seen["counts"].take()))
    }
}

async fn template(partner: &PartnerClient) -> Result<Value, Failure> {
    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Client", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03 }] },
    }]);
    let contract = include_bytes!("../../tests/fixtures/retail-installment-contract.pdf");
    let texts = [("name", "Notice"), ("fields_json", &fields.to_string())];
    let request = partner.request("POST", "/templates", FORM, &form(contract, &texts));
    Ok(partner.ask(&request).await?["template_id"].take())
}

async fn clients(store: &Store, org: &OrgId, count: usize) -> Result<Vec<CustomerId>, Failure> {
    let now = Clock::default().now();
    let mut tx = store.begin().await?;
    let mut ids = Vec::with_capacity(count);
    for number in 0..count {
        let client = CustomerRow {
            id: CustomerId::new(),
            email: Some(format!("client{number}@example.com")),
            name: format!("Client {number}"),
            details: Map::new(),
            created_at: now,
            updated_at: now,
            erased_at: None,
        };
        customers::insert(&mut tx, org, &client).await?;

        ids.push(client.id);
    }

    tx.commit().await?;
    Ok(ids)
}

/// Sends the requests of an interactive client until `until` is set, and returns their durations in
/// milliseconds.
async fn at_work(
    partner: &PartnerClient,
    template: &Value,
    until: &AtomicBool,
) -> Result<Vec<f64>, Failure> {
    let create = json!({
        "envelope_name": "Contract", "customer_email": "jo@example.com", "customer_name": "Jo",
        "template_id": template,
    });
    let create = create.to_string();
    let create = partner.request("POST", "/envelopes", "application/json", create.as_bytes());
    let made = partner.ask(&create).await?;
    let path = format!(
        "/envelopes/{}",
        made["envelope_id"].as_str().unwrap_or_default()
    );
    let requests = [
        partner.request("GET", &path, "application/json", b""),
        partner.request("GET", "/envelopes?limit=20", "application/json", b""),
        create,
    ];

    let mut connection = LoadConnection::open(partner.server.address).await?;
    let mut times = Vec::new();
    let mut due = Instant::now();
    while !until.load(Ordering::Relaxed) {
        due += PACE;
        tokio::time::sleep_until(due.into()).await;

        // Measured from the due time: a slow response delays the next request too.
        let answer = connection
            .ask(&requests[times.len() % requests.len()])
            .await?;
        if answer.status >= 300 {
            return Err(String::from_utf8_lossy(&answer.body).into());
        }

        times.push(millis(due.elapsed()));
    }

    Ok(times)
}

fn row_of(table: &mut ReportTable, kind: &str, beside: &str, times: &[f64]) {
    table.row([
        kind.to_owned(),
        beside.to_owned(),
        times.len().to_string(),
        format!("{:.1}", percentile(times, 50)),
        format!("{:.1}", percentile(times, 99)),
        format!("{:.1}", percentile(times, 100)),
    ]);
}

async fn one_node(
    batch: &mut ReportTable,
    beside: &mut ReportTable,
    kind: &str,
    server: &str,
) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let url = database(kind, server, "bulk", folder.path()).await?;
    let partner = PartnerClient::start(folder.path(), &url)?;
    let store = Store::connect(&url).await?;
    let clients = clients(&store, &partner.org, CLIENTS).await?;
    store.close().await;
    let template = template(&partner).await?;

    let web = WebAppCaller {
        address: partner.server.address,
        token: partner.web_token()?,
        org: partner.org.clone(),
    };

    let create = json!({
        "envelope_name": "Contract", "customer_email": "jo@example.com", "customer_name": "Jo",
        "template_id": template,
    });
    let create = create.to_string();
    let create = partner.request("POST", "/envelopes", "application/json", create.as_bytes());
    let created = load::run(web.address, &[create], CREATORS, ALONE, 201).await?;
    let creates = created.len() as f64 / ALONE.as_secs_f64();

    // Waits for their mails, so sending them does not disturb the following measurements.
    mailed(folder.path(), created.len()).await?;

    let over = Arc::new(AtomicBool::new(false));
    let stop = over.clone();
    tokio::spawn(async move {
        tokio::time::sleep(ALONE).await;
        stop.store(true, Ordering::Relaxed);
    });
    let alone = at_work(&partner, &template, &over).await?;
    row_of(beside, kind, "nothing", &alone);

    let id = web.batch(&template, &clients).await?;
    let before = mails(folder.path());
    let over = AtomicBool::new(false);
    let started = Instant::now();
    web.submit(&id).await?;
    let watch = async {
        let mut peak: f64 = 0.0;
        let ended = loop {
            peak = peak.max(partner.server.memory()?.resident);
            let (status, counts) = web.seen(&id).await?;
            if status == "completed" {
                break started.elapsed();
            }
            if status != "running" || started.elapsed() > PATIENCE {
                return Err(format!("{status} {counts}").into());
            }

            tokio::time::sleep(LOOK).await;
        };

        over.store(true, Ordering::Relaxed);
        mailed(folder.path(), before + CLIENTS).await?;
        Ok::<_, Failure>((ended, started.elapsed(), peak / 1024.0))
    };

    let (times, watched) = tokio::join!(at_work(&partner, &template, &over), watch);
    let (ended, all_mailed, peak) = watched?;
    row_of(beside, kind, "a batch of 1,000", &times?);
    let items = CLIENTS as f64 / ended.as_secs_f64();
    batch.row([
        kind.to_owned(),
        format!("{creates:.0}"),
        format!("{:.1}", ended.as_secs_f64()),
        format!("{items:.0}"),
        format!("{:.2}", items / creates),
        format!("{:.1}", all_mailed.as_secs_f64()),
        format!("{peak:.0}"),
    ]);

    partner.server.stop()
}

/// Returns the number of mails in the outbox.
fn mails(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("outbox")).map_or(0, |found| found.count())
}

async fn mailed(folder: &Path, count: usize) -> Result<(), Failure> {
    let since = Instant::now();
    while mails(folder) < count {
        if since.elapsed() > PATIENCE {
            return Err(format!("{} mails of {count}", mails(folder)).into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn ten_batches(table: &mut ReportTable, nodes: usize, server: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let name = format!("bulk_{nodes}");
    let url = database("PostgreSQL", server, &name, folder.path()).await?;
    let objects = format!("file://{}", folder.path().join("objects").display());
    let settings = [("HOLDFAST_STORAGE_URL", objects.as_str())];
    let partner = PartnerClient::start_with(folder.path(), &url, &settings)?;
    let mut others = Vec::new();
    for _ in 1..nodes {
        others.push(PartnerClient::join(folder.path(), &url, &settings)?);
    }

    let store = Store::connect(&url).await?;
    let clients = clients(&store, &partner.org, CLIENTS).await?;
    store.close().await;
    let template = template(&partner).await?;
    let web = WebAppCaller {
        address: partner.server.address,
        token: partner.web_token()?,
        org: partner.org.clone(),
    };

    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        batches.push(web.batch(&template, &clients).await?);
    }

    let started = Instant::now();
    for batch in &batches {
        web.submit(batch).await?;
    }

    let mut first = None;
    let mut peaks = vec![0.0_f64; nodes];
    let mut running = batches;
    while !running.is_empty() {
        let servers = std::iter::once(&partner.server).chain(others.iter().map(|(_, node)| node));
        for (peak, server) in peaks.iter_mut().zip(servers) {
            *peak = peak.max(server.memory()?.resident / 1024.0);
        }

        let mut left = Vec::new();
        for batch in running {
            let (status, counts) = web.seen(&batch).await?;
            match status.as_str() {
                "completed" => first = first.or(Some(started.elapsed())),
                "running" if started.elapsed() < PATIENCE => left.push(batch),
                _ => return Err(format!("{status} {counts}").into()),
            }
        }

        running = left;
        tokio::time::sleep(5 * LOOK).await;
    }

    let ended = started.elapsed().as_secs_f64();
    let peaks: Vec<String> = peaks.iter().map(|peak| format!("{peak:.0}")).collect();
    table.row([
        nodes.to_string(),
        format!("{ended:.1}"),
        format!("{:.0}", (BATCHES * CLIENTS) as f64 / ended),
        format!("{:.1}", first.unwrap_or_default().as_secs_f64()),
        peaks.join(", "),
    ]);

    for (_, node) in others {
        node.stop()?;
    }

    partner.server.stop()
}
