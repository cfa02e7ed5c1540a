//! One tenant beside another: the slowest requests of a quiet tenant, alone and while
//! another one, or a crowd of clients, does its worst.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::Failure;
use crate::documents::text_document;
use crate::load::{self, Connection};
use crate::partner::{FORM, Partner, Tenant, form, scans};
use crate::report::{self, Table, millis, percentile};

/// Seconds of each row, where `NEIGHBOUR_SECONDS` is not set.
const SECONDS: u64 = 60;
/// The quiet tenant's creates a second, of which one is signed and vaulted.
const CREATES: u64 = 10;
const STALLED: usize = 200;
const HALF_OPEN: usize = 1_000;
/// How long a contract may take to be vaulted before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures, and prints a table.
pub fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
        let attacker = Partner::start(folder.path(), &url)?;
        let ground = Ground::new(attacker).await?;
        ground.measure().await
    })
}

/// What the quiet tenant waited for, in milliseconds.
#[derive(Default)]
struct Waits {
    create: Vec<f64>,
    finish: Vec<f64>,
    vault: Vec<f64>,
    failures: usize,
}

struct Ground {
    attacker: Partner,
    victim: Tenant,
    /// Of the victim.
    template: Value,
    /// Paths of the attacker's: a heavy form, and a large copy.
    heavy_form: String,
    copy: String,
    heavy: Bytes,
    address: SocketAddr,
    time: Duration,
}

/// An attack that goes on until it is stopped.
type Attack = fn(&Ground, Arc<AtomicBool>) -> Vec<JoinHandle<()>>;

const ATTACKS: [(&str, Attack); 6] = [
    ("nothing", |_, _| Vec::new()),
    ("16 templates of heavy documents at once", templates),
    ("16 loops over the copy of one link", copies),
    ("64 loops over pages of a heavy document", pages),
    ("200 readers of a copy who do not read", stalled_readers),
    ("1,000 half-open connections", half_open),
];

impl Ground {
    async fn new(attacker: Partner) -> Result<Self, Failure> {
        let victim = attacker.another()?;
        let address = attacker.server.address;
        let contract = Bytes::from(text_document(4)?);
        let template = template(address, &victim.key, &contract, "A4").await?;
        let heavy = Bytes::from(text_document(400)?);
        let heavy_template = self::template(address, &attacker.key, &heavy, "A400").await?;
        let heavy_form = envelope(address, &attacker.key, &heavy_template).await?.1;
        let large = Bytes::from(scans(10, 500_000));
        let large = self::template(address, &attacker.key, &large, "").await?;
        let (id, form) = envelope(address, &attacker.key, &large).await?;
        sign(address, &form).await?;
        vaulted(address, &attacker.key, &id).await?;
        let copy = format!("{form}/copy.pdf");
        let seconds = std::env::var("NEIGHBOUR_SECONDS").ok();
        let seconds = seconds.and_then(|text| text.parse().ok());
        Ok(Self {
            attacker,
            victim,
            template,
            heavy_form,
            copy,
            heavy,
            address,
            time: Duration::from_secs(seconds.unwrap_or(SECONDS)),
        })
    }

    async fn measure(self) -> Result<(), Failure> {
        report::heading("A quiet tenant beside a busy one");
        let mut table = Table::new(&[
            "beside",
            "create p99 ms",
            "times",
            "finish p99 ms",
            "times",
            "vaulted p99 ms",
            "times",
            "failed",
            "MiB above idle",
            "MiB kept",
        ]);
        let idle = self.attacker.server.memory()?.resident / 1024.0;
        let mut alone: Option<[f64; 3]> = None;
        for (name, attack) in ATTACKS {
            let stop = Arc::new(AtomicBool::new(false));
            let tasks = attack(&self, stop.clone());
            let (waits, peak) = tokio::join!(self.quiet_tenant(), self.peak());
            stop.store(true, Ordering::Relaxed);
            for task in tasks {
                task.abort();
                let _ = task.await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            let kept = self.attacker.server.memory()?.resident / 1024.0 - idle;
            let slowest =
                [&waits.create, &waits.finish, &waits.vault].map(|times| percentile(times, 99));
            let before = *alone.get_or_insert(slowest);
            let mut row = vec![name.to_owned()];
            for (now, before) in slowest.iter().zip(before) {
                row.push(format!("{now:.0}"));
                row.push(format!("{:.1}", now / before));
            }
            row.push(waits.failures.to_string());
            row.push(format!("{:.0}", peak? - idle));
            row.push(format!("{kept:.0}"));
            table.row(row);
        }
        table.print();
        let stop = Arc::new(AtomicBool::new(false));
        let mut stalled = stalled_readers(&self, stop.clone());
        stalled.extend(half_open(&self, stop));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let asked = Instant::now();
        self.attacker.server.stop()?;
        println!(
            "\n{} s for each row; the quiet tenant creates {CREATES} envelopes a second, and signs and vaults one of them.\n\
             With {STALLED} stalled readers and {HALF_OPEN} half-open connections the server stopped within {:.1} s of SIGTERM.\n\
             Goals: within 2 times of alone; 512 MiB above idle.",
            self.time.as_secs(),
            asked.elapsed().as_secs_f64()
        );
        drop(stalled);
        Ok(())
    }

    /// The most memory during a row, in MiB.
    async fn peak(&self) -> Result<f64, Failure> {
        let (began, mut peak) = (Instant::now(), 0_f64);
        while began.elapsed() < self.time {
            peak = peak.max(self.attacker.server.memory()?.resident / 1024.0);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(peak)
    }

    async fn quiet_tenant(&self) -> Waits {
        let mut ticks = tokio::time::interval(Duration::from_millis(1000 / CREATES));
        let (began, mut number, mut tasks) = (Instant::now(), 0, Vec::new());
        while began.elapsed() < self.time {
            ticks.tick().await;
            let (address, key) = (self.address, self.victim.key.clone());
            let (template, signed) = (self.template.clone(), number % CREATES == 0);
            tasks.push(tokio::spawn(async move {
                contract(address, &key, &template, signed).await
            }));
            number += 1;
        }
        let mut waits = Waits::default();
        for task in tasks {
            match task.await {
                Ok(Ok((create, signed))) => {
                    waits.create.push(millis(create));
                    if let Some((finish, vault)) = signed {
                        waits.finish.push(millis(finish));
                        waits.vault.push(millis(vault));
                    }
                }
                _ => waits.failures += 1,
            }
        }
        waits
    }
}

/// Creates a contract, and signs and vaults it where that is wanted: how long each took.
async fn contract(
    address: SocketAddr,
    key: &str,
    template: &Value,
    signed: bool,
) -> Result<(Duration, Option<(Duration, Duration)>), Failure> {
    let began = Instant::now();
    let (id, form) = envelope(address, key, template).await?;
    let create = began.elapsed();
    if !signed {
        return Ok((create, None));
    }
    let finish = sign(address, &form).await?;
    let began = Instant::now();
    vaulted(address, key, &id).await?;
    Ok((create, Some((finish, began.elapsed()))))
}

async fn ask(address: SocketAddr, request: &[u8]) -> Result<Value, Failure> {
    let answer = Connection::open(address).await?.ask(request).await?;
    if answer.status >= 300 {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        return Err(format!("{}: {text}", answer.status).into());
    }
    Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// The request that makes a template; the field is at an anchor, or on the first page.
fn template_request(address: SocketAddr, key: &str, pdf: &Bytes, anchors: &[String]) -> Vec<u8> {
    let placement = |anchor: Option<&String>| match anchor {
        Some(anchor) => json!({ "mode": "anchor", "anchor_text": anchor, "w": 0.2, "h": 0.03 }),
        None => {
            json!({ "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.8, "w": 0.3, "h": 0.05 }] })
        }
    };
    let field = |name: String, anchor| json!({ "name": name, "type": "signature", "role": "Buyer", "required": true, "placement": placement(anchor) });
    let mut fields = vec![field("Signature".into(), anchors.first())];
    for (number, anchor) in anchors.iter().enumerate().skip(1) {
        fields.push(field(format!("Signature {number}"), Some(anchor)));
    }
    let fields = Value::from(fields).to_string();
    let body = form(pdf, &[("name", "Contract"), ("fields_json", &fields)]);
    let headers = [("x-api-key", key), ("content-type", FORM)];
    load::request(
        address,
        "POST",
        "/api/v2/partner/templates",
        &headers,
        &body,
    )
}

async fn template(
    address: SocketAddr,
    key: &str,
    pdf: &Bytes,
    anchor: &str,
) -> Result<Value, Failure> {
    let anchor = (!anchor.is_empty()).then(|| format!("Signature {anchor} of"));
    let request = template_request(address, key, pdf, anchor.as_slice());
    Ok(ask(address, &request).await?["data"]["template_id"].take())
}

/// An envelope's id, and the path of its form.
async fn envelope(
    address: SocketAddr,
    key: &str,
    template: &Value,
) -> Result<(String, String), Failure> {
    let body = json!({
        "envelope_name": "Contract", "customer_email": "jo@example.com", "customer_name": "Jo",
        "template_id": template, "secured_party": { "name": "First Example Bank" },
    });
    let headers = [("x-api-key", key), ("content-type", "application/json")];
    let body = body.to_string();
    let path = "/api/v2/partner/envelopes";
    let request = load::request(address, "POST", path, &headers, body.as_bytes());
    let created = ask(address, &request).await?;
    let text = |name: &str| created["data"][name].as_str().map(str::to_owned);
    let url = text("sign_url").ok_or("no sign_url")?;
    let start = url.find("/sign/").ok_or("no path of a form")?;
    Ok((
        text("envelope_id").ok_or("no envelope_id")?,
        url[start..].to_owned(),
    ))
}

async fn sign(address: SocketAddr, form: &str) -> Result<Duration, Failure> {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let body = b"Signature=Jo&consent=yes&action=finish";
    ask(address, &load::get(address, form, &[])).await?;
    let began = Instant::now();
    ask(
        address,
        &load::request(address, "POST", form, &headers, body),
    )
    .await?;
    Ok(began.elapsed())
}

async fn vaulted(address: SocketAddr, key: &str, id: &str) -> Result<(), Failure> {
    let began = Instant::now();
    let path = format!("/api/v2/partner/envelopes/{id}/status");
    let request = load::get(address, &path, &[("x-api-key", key)]);
    let mut connection = Connection::open(address).await?;
    while began.elapsed() < PATIENCE {
        let answer = connection.ask(&request).await?;
        let status: Value = serde_json::from_slice(&answer.body)?;
        if status["data"]["vaulted"] == true {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("not vaulted in time".into())
}

/// Asks again and again over a connection of its own.
fn repeat(
    ground: &Ground,
    stop: &Arc<AtomicBool>,
    count: usize,
    request: impl Fn(usize) -> Vec<u8>,
) -> Vec<JoinHandle<()>> {
    let address = ground.address;
    (0..count)
        .map(|number| {
            let (request, stop) = (request(number), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let Ok(mut connection) = Connection::open(address).await else {
                        continue;
                    };
                    while !stop.load(Ordering::Relaxed) && connection.ask(&request).await.is_ok() {}
                }
            })
        })
        .collect()
}

fn templates(ground: &Ground, stop: Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let anchors: Vec<_> = (381..=400)
        .map(|page| format!("Signature A{page} of"))
        .collect();
    let request = template_request(
        ground.address,
        &ground.attacker.key,
        &ground.heavy,
        &anchors,
    );
    repeat(ground, &stop, 16, |_| request.clone())
}

fn copies(ground: &Ground, stop: Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let request = load::get(ground.address, &ground.copy, &[]);
    repeat(ground, &stop, 16, |_| request.clone())
}

fn pages(ground: &Ground, stop: Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    repeat(ground, &stop, 64, |number| {
        let path = format!("{}/pages/{}.png", ground.heavy_form, number * 6 + 1);
        load::get(ground.address, &path, &[])
    })
}

/// Keeps connections that sent this and read nothing.
fn silent(ground: &Ground, count: usize, sent: Vec<u8>) -> Vec<JoinHandle<()>> {
    let address = ground.address;
    (0..count)
        .map(|_| {
            let sent = sent.clone();
            tokio::spawn(async move {
                loop {
                    let Ok(mut stream) = TcpStream::connect(address).await else {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    };
                    let _ = stream.write_all(&sent).await;
                    // Until the server closes it; then once more.
                    while stream.writable().await.is_ok() && stream.take_error().is_ok() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        if matches!(stream.peek(&mut [0]).await, Ok(0) | Err(_)) {
                            break;
                        }
                    }
                }
            })
        })
        .collect()
}

fn stalled_readers(ground: &Ground, _: Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    silent(
        ground,
        STALLED,
        load::get(ground.address, &ground.copy, &[]),
    )
}

fn half_open(ground: &Ground, _: Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    silent(
        ground,
        HALF_OPEN,
        b"GET /healthz HTTP/1.1\r\nhost: bench\r\n".to_vec(),
    )
}
