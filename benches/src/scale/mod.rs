//! Cost of the same requests with many more envelopes of many more organizations, and the queries
//! that then read whole tables.
//!
//! `SCALE` is the total number of envelopes, which `make bench-scale` sets; the same requests are
//! measured at 100,000 before. Only PostgreSQL is measured, because installations of this size use
//! it.

mod fill;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use holdfast::config::Config;
use holdfast::domain::clock::{Clock, Timestamp};
use holdfast::domain::job::JobQueue;
use holdfast::store::{
    Store, deliveries, envelopes, idempotency, integrity, jobs, log, payments, provider_poll,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use self::fill::{OF_ORGANIZATION, SeedIds, fill};
use crate::Failure;
use crate::partner::OperatorCommands;
use crate::report::{ReportTable, heading};
use crate::webhooks::database;

const FEW: usize = 100_000;
const MANY: usize = 1_000_000;
const ROUNDS: usize = 60;
/// Tables that grow with the envelopes, none of which a query may read whole.
const LARGE: [&str; 14] = [
    "envelope",
    "signer",
    "customer",
    "ledger_entry",
    "ledger_leaf",
    "event",
    "integrity_check",
    "webhook_delivery",
    "webhook_attempt",
    "lifecycle_decision",
    "template",
    "document_package",
    "bulk_batch",
    "bulk_item",
];

pub fn run() -> Result<(), Failure> {
    heading("Growth: the same requests with many more envelopes (PostgreSQL)");
    let Ok(many) = std::env::var("SCALE")
        .unwrap_or_else(|_| MANY.to_string())
        .parse()
    else {
        return Err("SCALE is a number of envelopes".into());
    };

    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(many))
}

async fn measure(many: usize) -> Result<(), Failure> {
    let server = std::env::var("TEST_POSTGRES_URL")
        .map_err(|_| "no PostgreSQL: run this with `make bench-scale`")?;
    let folder = tempfile::tempdir()?;
    let url = database("PostgreSQL", &server, "scale", folder.path()).await?;
    let config = Config {
        database_url: Some(url.clone()),
        data_dir: folder.path().into(),
        ..Config::default()
    };
    let app = holdfast::start::start(config.clone()).await?;

    let store = Store::connect(&url).await?;
    let router = holdfast::http::router(app);
    let operator = OperatorCommands {
        folder: folder.path().into(),
        database: url.clone(),
    };
    let mut known = Vec::new();

    fill(&store, FEW, &mut known).await?;
    leave_to_disk(&store).await?;
    let few = ask_all(&store, &router, &operator, &known).await?;
    let began = Instant::now();
    fill(&store, many.saturating_sub(FEW), &mut known).await?;
    let size: i64 = {
        let mut connection = store.read().await?;
        sqlx::query_scalar("select pg_database_size(current_database())")
            .fetch_one(&mut *connection)
            .await?
    };
    println!(
        "{} envelopes of {} organizations, {:.1} GB, made in {:.0} s more.",
        known.len() * OF_ORGANIZATION,
        known.len(),
        size as f64 / 1e9,
        began.elapsed().as_secs_f64()
    );

    leave_to_disk(&store).await?;
    let more = ask_all(&store, &router, &operator, &known).await?;
    println!(
        "First: for organizations whose rows are on the disk only. Again: the same once more."
    );
    let mut table = ReportTable::new(&[
        "median of 60, ms",
        "first, at 100,000",
        "now",
        "ratio",
        "again, at 100,000",
        "now",
        "ratio",
    ]);
    for (what, [first, again]) in &few {
        let [first_now, again_now] = more.get(what).copied().unwrap_or_default();
        let mut row = vec![(*what).to_owned()];
        for (before, after) in [(first, first_now), (again, again_now)] {
            row.extend([before, &after, &(after / before)].map(|value| format!("{value:.2}")));
        }
        table.row(row);
    }

    table.print();
    explain(&config, &url, &operator, &known).await
}

/// Drops the database files from the page cache. Otherwise the newest rows would be cached and the
/// measurements before and after filling would not be comparable.
async fn leave_to_disk(store: &Store) -> Result<(), Failure> {
    let mut connection = store.read().await?;
    sqlx::query("checkpoint").execute(&mut *connection).await?;
    let files: String = sqlx::query_scalar("show data_directory")
        .fetch_one(&mut *connection)
        .await?;
    let mut folders = vec![Path::new(&files).join("base")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                let file = File::open(entry.path())?;
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            }
        }
    }

    Ok(())
}

/// Medians in milliseconds of the first and of the second request.
type Times = BTreeMap<&'static str, [f64; 2]>;

async fn ask_all(
    store: &Store,
    router: &Router,
    operator: &OperatorCommands,
    known: &[SeedIds],
) -> Result<Times, Failure> {
    // Spread over all organizations, so caches hold a realistic share of the data.
    let asked: Vec<&SeedIds> = (0..ROUNDS)
        .map(|round| &known[round * known.len() / ROUNDS])
        .collect();
    let tokens: Vec<String> = asked
        .iter()
        .map(|one| operator.web_token(&one.org))
        .collect::<Result<_, _>>()?;

    let mut times: BTreeMap<&'static str, [Vec<f64>; 2]> = BTreeMap::new();
    for turn in [0, 1] {
        let mut note = |what: &'static str, began: Instant| {
            let taken = began.elapsed().as_secs_f64() * 1e3;
            times.entry(what).or_default()[turn].push(taken);
        };
        for (one, token) in asked.iter().zip(&tokens) {
            for (what, method, path, body) in requests(one) {
                let began = Instant::now();
                ask(router, one, token, method, &path, body).await?;
                note(what, began);
            }

            for what in SWEEPS {
                let began = Instant::now();
                sweep(store, what).await?;
                note(what, began);
            }
        }
    }

    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(times
        .into_iter()
        .map(|(what, times)| (what, times.map(median)))
        .collect())
}

type Asked = (&'static str, &'static str, String, Option<Value>);

fn requests(one: &SeedIds) -> Vec<Asked> {
    let partner = |rest: &str| format!("/api/v2/partner/{rest}");
    let the = |kind: &str| &one.some[kind];
    let envelope = the("envelope");
    let deliveries = |rest: &str| {
        let endpoint = the("endpoint");
        format!("/api/v2/webhooks/endpoints/{endpoint}/deliveries{rest}")
    };

    let web = |rest: &str| format!("/api/v2/{rest}");
    let paper = json!({
        "envelope_name": "Paper", "customer_email": "jo@example.com", "customer_name": "Jo",
        "envelope_kind": "paper", "secured_party": { "name": "Bank", "role": "assignee" },
    });
    vec![
        ("list, first page", "GET", partner("envelopes"), None),
        ("list, last page", "GET", partner("envelopes?page=50"), None),
        (
            "list by status",
            "GET",
            partner("envelopes?status=sent"),
            None,
        ),
        (
            "list by customer",
            "GET",
            partner(&format!("envelopes?customer_id={}", the("customer"))),
            None,
        ),
        (
            "customers by mail",
            "GET",
            partner("customers?email=jo7@example.com"),
            None,
        ),
        ("customers", "GET", web("customers"), None),
        ("templates", "GET", web("templates"), None),
        ("packages", "GET", web("document-packages"), None),
        ("batches", "GET", web("bulk-send"), None),
        (
            "batch of 1,000",
            "GET",
            web(&format!("bulk-send/{}", the("batch"))),
            None,
        ),
        ("webhook endpoints", "GET", web("webhooks/endpoints"), None),
        ("deliveries", "GET", deliveries(""), None),
        (
            "deliveries that failed",
            "GET",
            deliveries("?status=failed"),
            None,
        ),
        (
            "deliveries of an event type",
            "GET",
            deliveries("?event_type=envelope.completed"),
            None,
        ),
        (
            "deliveries of an event",
            "GET",
            deliveries(&format!("?event_id={}", the("event"))),
            None,
        ),
        (
            "delivery",
            "GET",
            web(&format!("webhooks/deliveries/{}", the("delivery"))),
            None,
        ),
        (
            "get",
            "GET",
            partner(&format!("envelopes/{envelope}")),
            None,
        ),
        (
            "status",
            "GET",
            partner(&format!("envelopes/{envelope}/status")),
            None,
        ),
        ("create", "POST", partner("envelopes"), Some(paper)),
        ("metrics", "GET", "/metrics".into(), None),
    ]
}

async fn ask(
    router: &Router,
    one: &SeedIds,
    token: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<(), Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = if path.starts_with("/api/v2/partner/") {
        request.header("x-api-key", &one.key)
    } else {
        request
            .header("authorization", format!("Bearer {token}"))
            .header("x-org-id", one.org.as_str())
    };

    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let answer = router.clone().oneshot(request.body(body)?).await?;
    if !answer.status().is_success() {
        return Err(format!("{path} answered {}", answer.status()).into());
    }

    axum::body::to_bytes(answer.into_body(), usize::MAX).await?;
    Ok(())
}

const SWEEPS: [&str; 9] = [
    "sweep: jobs",
    "sweep: re-reading",
    "sweep: read back",
    "sweep: expiry",
    "sweep: kept answers",
    "sweep: old payloads",
    "sweep: old deliveries",
    "sweep: payments",
    "sweep: log",
];

async fn sweep(store: &Store, what: &str) -> Result<(), Failure> {
    let now = Clock::default().now();
    let lease = Duration::from_secs(15);
    match what {
        "sweep: jobs" => drop(jobs::claim(store, JobQueue::Other, now, lease, 8).await?),
        "sweep: re-reading" => drop(integrity::claim(store, now, now + lease, 20).await?),
        "sweep: read back" => drop(provider_poll::claim(store, now, now, 20).await?),
        "sweep: expiry" => {
            let mut tx = store.begin().await?;
            drop(envelopes::expiring(&mut tx, now, None, 100).await?);
        }
        "sweep: kept answers" => {
            let mut tx = store.begin().await?;
            idempotency::forget(&mut tx, now - Duration::from_secs(86_400)).await?;
            tx.commit().await?;
        }
        "sweep: old payloads" => {
            let _ = deliveries::prune(store, Timestamp::from_millis(0), 100).await?;
        }
        "sweep: old deliveries" => {
            let _ = deliveries::forget(store, 0, Timestamp::from_millis(0), 100).await?;
        }
        "sweep: payments" => drop(payments::claim(store, now, now, now, 20).await?),
        _ => {
            let mut tx = store.begin().await?;
            drop(log::pending(&mut tx, 100).await?);
        }
    }

    Ok(())
}

/// Lets PostgreSQL log its query plans, and searches them for scans of whole tables.
async fn explain(
    config: &Config,
    url: &str,
    operator: &OperatorCommands,
    known: &[SeedIds],
) -> Result<(), Failure> {
    let Ok(log) = std::env::var("TEST_POSTGRES_LOG") else {
        return Err("no log of PostgreSQL: run this with `make bench-scale`".into());
    };

    let store = Store::connect(url).await?;
    let mut connection = store.read().await?;
    for setting in [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
    ] {
        let alter = format!("alter database bench_scale set {setting}");
        sqlx::query(sqlx::AssertSqlSafe(alter))
            .execute(&mut *connection)
            .await?;
    }

    drop(connection);
    let from = std::fs::metadata(&log)?.len() as usize;

    // Only new connections log their plans.
    let app = holdfast::start::start(config.clone()).await?;
    let explained = Store::connect(url).await?;
    let router = holdfast::http::router(app);
    let one = &known[0];
    let token = operator.web_token(&one.org)?;
    for (_, method, path, body) in requests(one) {
        ask(&router, one, &token, method, &path, body).await?;
    }

    for what in SWEEPS {
        sweep(&explained, what).await?;
    }

    let text = std::fs::read(&log)?;
    let text = String::from_utf8_lossy(&text[from.min(text.len())..]).into_owned();
    let plans: Vec<&str> = text.split("duration: ").skip(1).collect();

    let mut whole = Vec::new();
    for plan in &plans {
        for table in LARGE {
            let read = plan.contains(&format!("Seq Scan on {table} "));
            if read {
                let query = plan.lines().take(4).collect::<Vec<_>>().join(" ");
                whole.push(format!("{table}: {query}"));
            }
        }
    }

    whole.sort();
    whole.dedup();
    println!(
        "{} plans looked at; {} read a large table whole.",
        plans.len(),
        whole.len()
    );

    for one in whole {
        println!("  {one}");
    }

    Ok(())
}
