//! What the same requests cost when there are many more envelopes, of many more
//! organizations, and which queries read whole tables then.
//!
//! `SCALE` says how many envelopes, after the first 100,000; `make bench-scale` sets it.
//! PostgreSQL only: that is where so many are kept.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use holdfast::config::Config;
use holdfast::domain::clock::{Clock, Timestamp};
use holdfast::domain::id::{
    BatchId, CustomerId, DecisionId, DeliveryId, EndpointId, EnvelopeId, EventId, ItemId, KeyId,
    OrgId, PackageId, TemplateId,
};
use holdfast::domain::organization::{ApiKeyRecord, OrgSettings, Organization, Scope};
use holdfast::domain::token::ApiKey;
use holdfast::store::jobs::Class;
use holdfast::store::{
    Store, api_keys, deliveries, envelopes, idempotency, integrity, jobs, log, organizations,
    payments, provider_poll,
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::Failure;
use crate::partner::Operator;
use crate::report::{Table, heading};
use crate::webhooks::database;

const FEW: usize = 100_000;
const MANY: usize = 1_000_000;
/// Of each organization: who has more envelopes has more organizations.
const OF_ORGANIZATION: usize = 1_000;
const ROUNDS: usize = 60;
/// Tables that grow with the envelopes: none of them may be read whole.
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
    let app = holdfast::app::start(config.clone()).await?;
    let store = Store::connect(&url).await?;
    let router = holdfast::http::router(app);
    let operator = Operator {
        folder: folder.path().into(),
        database: url.clone(),
    };
    let mut known = Vec::new();

    fill(&store, FEW, &mut known).await?;
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
    let more = ask_all(&store, &router, &operator, &known).await?;
    let mut table = Table::new(&["median of 60, ms", "at 100,000", "now", "ratio"]);
    for (what, before) in &few {
        let after = more.get(what).copied().unwrap_or_default();
        table.row([
            (*what).to_owned(),
            format!("{before:.2}"),
            format!("{after:.2}"),
            format!("{:.2}", after / before),
        ]);
    }
    table.print();
    explain(&config, &url, &operator, &known).await
}

/// An organization, its key, and one of each kind of what it has.
struct Known {
    org: OrgId,
    key: String,
    some: BTreeMap<&'static str, String>,
}

/// What has ids of its own, and how much of it an organization has.
const KINDS: [(&str, fn() -> String, usize); 10] = [
    (
        "envelope",
        || EnvelopeId::new().to_string(),
        OF_ORGANIZATION,
    ),
    ("event", || EventId::new().to_string(), 3 * OF_ORGANIZATION),
    (
        "decision",
        || DecisionId::new().to_string(),
        3 * OF_ORGANIZATION,
    ),
    ("endpoint", || EndpointId::new().to_string(), 1),
    (
        "delivery",
        || DeliveryId::new().to_string(),
        OF_ORGANIZATION,
    ),
    ("customer", || CustomerId::new().to_string(), 100),
    ("template", || TemplateId::new().to_string(), 50),
    ("package", || PackageId::new().to_string(), 25),
    ("batch", || BatchId::new().to_string(), 50),
    ("item", || ItemId::new().to_string(), OF_ORGANIZATION),
];

/// Adds envelopes as a year of use leaves them: most are vaulted, with a signer, ledger,
/// events, decisions, a webhook's delivery and a planned re-reading. Their organizations
/// have customers, templates, packages and batches.
async fn fill(store: &Store, count: usize, known: &mut Vec<Known>) -> Result<(), Failure> {
    let now = Clock::default().now();
    let then = (now - Duration::from_secs(86_400 * 100)).to_string();
    let tomorrow = (now + Duration::from_secs(86_400)).to_string();
    for _ in 0..count.div_ceil(OF_ORGANIZATION) {
        let (org, key) = (OrgId::new(), ApiKey::generate());
        let organization = Organization {
            id: org.clone(),
            name: "Maple Street Motors".into(),
            settings: OrgSettings::default(),
            created_at: now,
        };
        let record = ApiKeyRecord {
            id: KeyId::new(),
            org: org.clone(),
            name: None,
            scopes: Scope::ALL.to_vec(),
            rate_limit_rpm: 1_000_000,
            owner_email: None,
            active: true,
            last_used_at: None,
            revision: 0,
        };
        let ids = KINDS.map(|(kind, make, count)| {
            let ids: Vec<String> = (0..count).map(|_| make()).collect();
            (kind, ids)
        });
        let ids = BTreeMap::from(ids);
        let some: BTreeMap<_, _> = ids
            .iter()
            .map(|(kind, ids)| (*kind, ids[ids.len() / 2].clone()))
            .collect();
        let mut tx = store.begin().await?;
        organizations::insert(&mut tx, &organization).await?;
        api_keys::insert(&mut tx, &record, &key.hash(), now).await?;
        for (kind, statement) in STATEMENTS {
            sqlx::query(sqlx::AssertSqlSafe(format!("{GIVEN} {statement}")))
                .bind(json!(ids[kind]).to_string())
                .bind(org.bucket())
                .bind(org.as_str())
                .bind(&some["customer"])
                .bind(&then)
                .bind(&tomorrow)
                .bind(json!(ids["envelope"]).to_string())
                .bind(&some["endpoint"])
                .bind(&some["batch"])
                .bind(json!(ids["event"]).to_string())
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        let key = key.reveal().to_owned();
        known.push(Known { org, key, some });
    }
    let mut connection = store.read().await?;
    // As the database does by itself, in time.
    sqlx::query("vacuum (analyze)")
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// `$1` ids, `$2` bucket, `$3` organization, `$4` customer, `$5` then, `$6` tomorrow,
/// `$7` envelopes, `$8` endpoint, `$9` batch, `$10` events: named before each statement,
/// so that all are bound alike.
const GIVEN: &str = "with given as (select cast($1 as text), cast($2 as bigint), cast($3 as text),
    cast($4 as text), cast($5 as text), cast($6 as text), cast($7 as text), cast($8 as text),
    cast($9 as text), cast($10 as text))";

/// What has these ids.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "customer",
        "insert into customer (bucket, customer_id, org_id, email, name, details, created_at, updated_at)
         select $2, value, $3, 'jo' || n || '@example.com', 'Jo', '{}', $5, $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)",
    ),
    (
        "envelope",
        "insert into envelope (bucket, envelope_id, org_id, customer_id, name, kind, status, external_id,
             metadata, is_upload, preserve_signing_order, created_by, created_at, updated_at, looked_at)
         select $2, value, $3, $4, 'Contract ' || n, 'esign',
             case when n % 20 = 0 then 'pending' when n % 20 = 1 then 'sent' else 'vaulted' end,
             'deal-' || n, '{}', 0, 0, 'office@example.com', $5, $5, $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)",
    ),
    (
        "envelope",
        "insert into signer (bucket, envelope_id, position, org_id, name, email, role, status)
         select $2, value, 1, $3, 'Jo', 'jo@example.com', 'Buyer', 'completed'
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "envelope",
        "insert into ledger_entry (bucket, envelope_id, sequence, org_id, at, actor, action, details,
             previous_hash, hash)
         select $2, value, step, $3, $5, 'system', 'envelope.created', '{\"customer\":\"somebody\"}',
             md5(value) || md5(value), md5(value || step) || md5(value)
         from json_array_elements_text(cast($1 as json)) as each (value), generate_series(1, 4) as step",
    ),
    (
        "envelope",
        "insert into ledger_leaf (bucket, envelope_id, sequence, leaf_index)
         select $2, value, step, step
         from json_array_elements_text(cast($1 as json)) as each (value), generate_series(1, 4) as step",
    ),
    (
        "event",
        "insert into event (bucket, event_id, org_id, envelope_id, event_type, body, created_at)
         select $2, value, $3, envelope, 'envelope.completed', '', $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = (n - 1) / 3 + 1",
    ),
    (
        "decision",
        "insert into lifecycle_decision (bucket, decision_id, org_id, envelope_id, from_status,
             trigger_name, to_status, facts, component, at)
         select $2, value, $3, envelope, 'sent', 'signed', 'completed', '{}',
             'lifecycle@1.0.0', $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = (n - 1) / 3 + 1",
    ),
    (
        "envelope",
        "insert into integrity_check (bucket, envelope_id, org_id, due_at)
         select $2, value, $3, $6
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         where n % 20 > 1",
    ),
    (
        "endpoint",
        "insert into webhook_endpoint (bucket, endpoint_id, org_id, url, events, is_active, legacy,
             created_by, created_at, updated_at, lease_epoch)
         select $2, value, $3, 'https://dealer.example/', '[\"*\"]', 1, 0, 'office@example.com', $5, $5, 0
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "delivery",
        "insert into webhook_delivery (bucket, delivery_id, org_id, endpoint_id, event_id, event_type,
             envelope_id, status, attempts, created_at, updated_at)
         select $2, value, $3, $8, event, 'envelope.completed',
             envelope, case when n % 100 = 0 then 'failed' else 'delivered' end, 1, $5, $5
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = n
         join json_array_elements_text(cast($10 as json)) with ordinality as about (event, o) on o = 3 * n",
    ),
    (
        "delivery",
        "insert into webhook_attempt (bucket, delivery_id, attempt, org_id, at, response_code, duration_ms)
         select $2, value, 1, $3, $5, 200, 20
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "template",
        "insert into template (bucket, template_id, org_id, name, kba_required, provider_instance, fields,
             created_at, updated_at)
         select $2, value, $3, 'Contract', 0, 'signing', '[]', $5, $5
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "package",
        "insert into document_package (bucket, package_id, org_id, name, template_ids, created_at, updated_at)
         select $2, value, $3, 'Deal', '[]', $5, $5
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "batch",
        "insert into bulk_batch (bucket, batch_id, org_id, name, document_source, kba_required,
             preserve_signing_order, add_me_as_signer, auto_vault_enabled, tag_ids, status, runs,
             created_by, created_at, updated_at)
         select $2, value, $3, 'Notices', 'template', 0, 0, 0, 1, '[]', 'completed', 1,
             'office@example.com', $5, $5
         from json_array_elements_text(cast($1 as json)) as each (value)",
    ),
    (
        "item",
        "insert into bulk_item (bucket, item_id, org_id, batch_id, position, customer_id, customer_name,
             email, status, envelope_id, sent_at, run_at, lease_epoch, attempts)
         select $2, value, $3, $9, n, 'cust_' || substr(value, 5), 'Jo', 'jo@example.com', 'sent', envelope,
             $5, $5, 1, 1
         from json_array_elements_text(cast($1 as json)) with ordinality as each (value, n)
         join json_array_elements_text(cast($7 as json)) with ordinality as of (envelope, m) on m = n",
    ),
];

type Times = BTreeMap<&'static str, f64>;

/// Medians in milliseconds, each of a round of organizations.
async fn ask_all(
    store: &Store,
    router: &Router,
    operator: &Operator,
    known: &[Known],
) -> Result<Times, Failure> {
    // Spread over all, so that caches hold what they would.
    let asked: Vec<&Known> = (0..ROUNDS)
        .map(|round| &known[round * known.len() / ROUNDS])
        .collect();
    let tokens: Vec<String> = asked
        .iter()
        .map(|one| operator.web_token(&one.org))
        .collect::<Result<_, _>>()?;
    let mut times: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for (one, token) in asked.into_iter().zip(&tokens) {
        for (what, method, path, body) in requests(one) {
            let began = Instant::now();
            ask(router, one, token, method, &path, body).await?;
            note(&mut times, what, began);
        }
        for what in SWEEPS {
            let began = Instant::now();
            sweep(store, what).await?;
            note(&mut times, what, began);
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(times
        .into_iter()
        .map(|(what, times)| (what, median(times)))
        .collect())
}

fn note(times: &mut BTreeMap<&'static str, Vec<f64>>, what: &'static str, began: Instant) {
    let taken = began.elapsed().as_secs_f64() * 1e3;
    times.entry(what).or_default().push(taken);
}

type Asked = (&'static str, &'static str, String, Option<Value>);

fn requests(one: &Known) -> Vec<Asked> {
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
    one: &Known,
    token: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<(), Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    let request = match path.starts_with("/api/v2/partner/") {
        true => request.header("x-api-key", &one.key),
        false => request
            .header("authorization", format!("Bearer {token}"))
            .header("x-org-id", one.org.as_str()),
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
        "sweep: jobs" => drop(jobs::claim(store, Class::Other, now, lease, 8).await?),
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

/// Has PostgreSQL log how it runs each query, and looks for whole tables in it.
async fn explain(
    config: &Config,
    url: &str,
    operator: &Operator,
    known: &[Known],
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
    // New connections, which are explained.
    let app = holdfast::app::start(config.clone()).await?;
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
