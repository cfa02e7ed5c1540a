//! Tenant isolation: the slowest requests of a quiet tenant, alone and while another tenant, or a
//! crowd of clients, attacks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::embedded;
use holdfast::domain::component::Slot;
use holdfast::domain::id::OrgId;
use holdfast::domain::token::{ApiKey, LinkToken};
use holdfast_test_guests::MISBEHAVING;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Handle, Runtime};

use crate::Failure;
use crate::documents::text_document;
use crate::load::{self, LoadConnection};
use crate::partner::{BenchTenant, FORM, PartnerClient, form, scans};
use crate::report::{self, ReportTable, millis, percentile};

/// Duration of each row in seconds, unless `NEIGHBOUR_SECONDS` is set.
const SECONDS: u64 = 60;
/// Creates per second of the quiet tenant.
const CREATES: u64 = 10;
/// Every n-th contract of the quiet tenant is signed and vaulted.
const SIGNED: u64 = 2;
const STALLED: usize = 200;
const HALF_OPEN: usize = 1_000;
/// Timeout after which a contract that is not vaulted counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the measurements and prints a table.
pub fn run() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
        let attacker = PartnerClient::start(folder.path(), &url)?;
        let ground = BenchTenants::new(attacker).await?;
        ground.measure().await
    })
}

/// Waiting times of the quiet tenant, in milliseconds.
#[derive(Default)]
struct VictimLatencies {
    create: Vec<f64>,
    finish: Vec<f64>,
    vault: Vec<f64>,
    failures: usize,
}

struct BenchTenants {
    attacker: PartnerClient,
    victim: BenchTenant,
    /// Template of the victim.
    template: Value,
    /// Paths of the attacker: a heavy form, and a large copy.
    heavy_form: String,
    copy: String,
    heavy: Bytes,
    /// Token of the attacker's web app.
    token: String,
    address: SocketAddr,
    time: Duration,
}

/// Function that starts attacking clients.
type Attack = fn(&BenchTenants, &AttackingClients) -> Result<(), Failure>;

const ATTACKS: [(&str, Attack); 13] = [
    ("nothing", |_, _| Ok(())),
    ("16 templates of heavy documents at once", templates),
    ("16 loops over the copy of one link", copies),
    ("64 loops over pages of a heavy document", pages),
    ("16 loops over a plugin that never answers", endless_plugin),
    ("30 uploads of components at once", uploads),
    ("200 readers of a copy who do not read", stalled_readers),
    ("1,000 half-open connections", half_open),
    ("64 loops with wrong keys", wrong_keys),
    ("64 loops with wrong tokens and links", wrong_tokens),
    ("64 loops with wrong callbacks", wrong_callbacks),
    ("16 loops of sign-in requests", sign_ins),
    ("64 slow uploads", slow_uploads),
];

/// Attacking clients, on threads of the lowest priority: in a real attack they would not use the
/// processors of the server.
struct AttackingClients {
    /// `None` once dropped.
    runtime: Option<Runtime>,
    answers: Arc<AnswerCounts>,
}

/// Counters of the responses to the attacking clients.
#[derive(Default)]
struct AnswerCounts {
    done: AtomicUsize,
    refused: AtomicUsize,
    failed: AtomicUsize,
}

impl AnswerCounts {
    fn count(&self, status: u16) {
        let counter = match status {
            ..400 => &self.done,
            400..500 | 503 => &self.refused,
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers of requests that succeeded, were refused (4xx, 503), or failed
    /// otherwise.
    fn text(&self) -> String {
        let counters = [&self.done, &self.refused, &self.failed];
        counters
            .map(|counter| counter.load(Ordering::Relaxed).to_string())
            .join(" / ")
    }
}

impl AttackingClients {
    fn new() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .worker_threads(2)
            // On Linux the priority is a property of each thread.
            .on_thread_start(|| {
                let _ = rustix::process::setpriority_process(None, 19);
            })
            .build()?;

        Ok(Self {
            runtime: Some(runtime),
            answers: Arc::default(),
        })
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Starts `count` clients that repeat their request, each over its own connection.
    fn repeat(&self, address: SocketAddr, count: usize, request: impl Fn(usize) -> Vec<u8>) {
        for number in 0..count {
            let (request, answers) = (request(number), self.answers.clone());
            self.spawn(async move {
                loop {
                    let stream = from_elsewhere(address).await.map_err(Failure::from);
                    let Ok(mut connection) = stream.and_then(LoadConnection::over) else {
                        continue;
                    };

                    while let Ok(answer) = connection.ask(&request).await {
                        answers.count(answer.status);
                    }
                }
            });
        }
    }

    /// Like [`AttackingClients::repeat`], with a new request each time.
    fn repeat_anew(
        &self,
        address: SocketAddr,
        count: usize,
        request: impl Fn(usize) -> Vec<u8> + Clone + Send + 'static,
    ) {
        for number in 0..count {
            let (request, answers) = (request.clone(), self.answers.clone());
            self.spawn(async move {
                loop {
                    let stream = from_elsewhere(address).await.map_err(Failure::from);
                    let Ok(mut connection) = stream.and_then(LoadConnection::over) else {
                        continue;
                    };

                    while let Ok(answer) = connection.ask(&request(number)).await {
                        answers.count(answer.status);
                    }
                }
            });
        }
    }

    /// Keeps `count` connections open that send this and read nothing.
    fn silent(&self, address: SocketAddr, count: usize, sent: &[u8]) {
        for _ in 0..count {
            let sent = sent.to_vec();
            self.spawn(async move {
                loop {
                    let Ok(mut stream) = from_elsewhere(address).await else {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    };

                    let _ = stream.write_all(&sent).await;

                    // Reconnects when the server closes the connection.
                    while stream.writable().await.is_ok() && stream.take_error().is_ok() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        if matches!(stream.peek(&mut [0]).await, Ok(0) | Err(_)) {
                            break;
                        }
                    }
                }
            });
        }
    }
}

/// Connects from an address other than that of the quiet tenant.
async fn from_elsewhere(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0)))?;
    socket.connect(address).await
}

/// Dropping a runtime blocks until its threads end, which asynchronous code must not do.
impl Drop for AttackingClients {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl BenchTenants {
    async fn new(attacker: PartnerClient) -> Result<Self, Failure> {
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
        let token = attacker.web_token()?;

        let seconds = std::env::var("NEIGHBOUR_SECONDS").ok();
        let seconds = seconds.and_then(|text| text.parse().ok());
        Ok(Self {
            attacker,
            victim,
            template,
            heavy_form,
            copy,
            heavy,
            token,
            address,
            time: Duration::from_secs(seconds.unwrap_or(SECONDS)),
        })
    }

    async fn measure(self) -> Result<(), Failure> {
        report::heading("A quiet tenant beside a busy one");
        let mut table = ReportTable::new(&[
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
            "attacker: done / refused / failed",
        ]);

        let idle = self.attacker.server.memory()?.resident / 1024.0;
        let mut alone: Option<[f64; 3]> = None;

        // Runs only the rows with this text in their names.
        let wanted = std::env::var("NEIGHBOUR_ROWS").unwrap_or_default();
        let rows = ATTACKS.into_iter();
        let rows = rows.filter(|(name, _)| *name == "nothing" || name.contains(&wanted));
        for (name, attack) in rows {
            let crowd = AttackingClients::new()?;
            tokio::task::block_in_place(|| attack(&self, &crowd))
                .map_err(|error| format!("{name}: {error}"))?;
            let (waits, peak) = tokio::join!(self.quiet_tenant(), self.peak());
            let answers = crowd.answers.clone();
            drop(crowd);
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
            row.push(answers.text());

            table.row(row);
        }

        table.print();
        let crowd = AttackingClients::new()?;
        stalled_readers(&self, &crowd)?;
        half_open(&self, &crowd)?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let asked = Instant::now();
        self.attacker.server.stop()?;

        println!(
            "\n{} s for each row; the quiet tenant creates {CREATES} envelopes a second, and signs and vaults every second.\n\
             With {STALLED} stalled readers and {HALF_OPEN} half-open connections the server stopped within {:.1} s of SIGTERM.\n\
             Goals: within 2 times of alone; 512 MiB above idle.",
            self.time.as_secs(),
            asked.elapsed().as_secs_f64()
        );

        Ok(())
    }

    /// Returns the peak memory during a row, in MiB.
    async fn peak(&self) -> Result<f64, Failure> {
        let (began, mut peak) = (Instant::now(), 0_f64);
        while began.elapsed() < self.time {
            peak = peak.max(self.attacker.server.memory()?.resident / 1024.0);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(peak)
    }

    async fn quiet_tenant(&self) -> VictimLatencies {
        let mut ticks = tokio::time::interval(Duration::from_millis(1000 / CREATES));
        let (began, mut number, mut tasks) = (Instant::now(), 0, Vec::new());
        while began.elapsed() < self.time {
            ticks.tick().await;
            let (address, key) = (self.address, self.victim.key.clone());
            let (template, signed) = (self.template.clone(), number % SIGNED == 0);
            tasks.push(tokio::spawn(async move {
                contract(address, &key, &template, signed).await
            }));
            number += 1;
        }

        let mut waits = VictimLatencies::default();
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

/// Creates a contract, optionally signs and vaults it, and returns the durations.
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
    let answer = LoadConnection::open(address).await?.ask(request).await?;
    if answer.status >= 300 {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        return Err(format!("{}: {text}", answer.status).into());
    }
    Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// Builds the request that makes a template; the field is at an anchor, or on the first page.
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

/// Creates an envelope and returns its id and the path of its form.
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
    let mut connection = LoadConnection::open(address).await?;
    let shown = connection.ask(&load::get(address, form, &[])).await?;
    let body = load::signing_body(&shown.body)?;
    let began = Instant::now();
    let finish = load::request(address, "POST", form, &headers, &body);
    ask(address, &finish).await?;
    Ok(began.elapsed())
}

async fn vaulted(address: SocketAddr, key: &str, id: &str) -> Result<(), Failure> {
    let began = Instant::now();
    let path = format!("/api/v2/partner/envelopes/{id}/status");
    let request = load::get(address, &path, &[("x-api-key", key)]);

    let mut connection = LoadConnection::open(address).await?;
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

fn templates(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let anchors: Vec<_> = (381..=400)
        .map(|page| format!("Signature A{page} of"))
        .collect();
    let request = template_request(
        ground.address,
        &ground.attacker.key,
        &ground.heavy,
        &anchors,
    );
    crowd.repeat(ground.address, 16, |_| request.clone());

    Ok(())
}

fn copies(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let request = load::get(ground.address, &ground.copy, &[]);
    crowd.repeat(ground.address, 16, |_| request.clone());
    Ok(())
}

fn pages(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    crowd.repeat(ground.address, 64, |number| {
        let path = format!("{}/pages/{}.png", ground.heavy_form, number * 6 + 1);
        load::get(ground.address, &path, &[])
    });
    Ok(())
}

impl BenchTenants {
    /// Builds the request that uploads a component for the attacker.
    fn upload(&self, component: &[u8], name: &str, version: &str) -> Vec<u8> {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("content-type", FORM)];
        let body = form(component, &[("name", name), ("version", version)]);
        load::request(self.address, "POST", "/api/v2/components", &headers, &body)
    }

    /// Builds a POST request of the attacker's web app.
    fn post(&self, path: &str, body: &Value) -> Vec<u8> {
        let bearer = format!("Bearer {}", self.token);
        let json = ("content-type", "application/json");
        let headers = [("authorization", bearer.as_str()), json];
        let body = body.to_string();
        load::request(self.address, "POST", path, &headers, body.as_bytes())
    }
}

/// Uploads the largest default component, in a different variant each time.
fn uploads(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let documents = embedded().find(|artifact| artifact.slot == Slot::Documents);
    let documents = documents.ok_or("no documents component")?.bytes();
    crowd.repeat(ground.address, 30, |number| {
        // A custom section named `n`.
        let unique = [&documents[..], &[0, 3, 1, b'n', number as u8]].concat();
        ground.upload(&unique, "own", &format!("1.0.{number}"))
    });
    Ok(())
}

/// Makes templates with a plugin of the attacker that loops forever.
fn endless_plugin(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let plugin = ground.upload(MISBEHAVING, "endless", "1.0.0");
    let address = ground.address;
    let runtime = Handle::current();
    let component = runtime.block_on(ask(address, &plugin))?["data"]["component_id"].take();
    let config = json!({
        "base_url": "https://example.com", "settings": { "behaviour": "loop" },
        "secrets": { "api_key": "the key" }, "timeout_seconds": 1,
    });
    let activate = json!({ "component_id": component, "instance": "endless", "config": config });

    let path = "/api/v2/component-slots/provider.signing/activate";
    runtime.block_on(ask(address, &ground.post(path, &activate)))?;
    let contract = Bytes::from(text_document(4)?);
    let request = template_request(address, &ground.attacker.key, &contract, &[]);
    crowd.repeat(address, 16, |_| request.clone());

    Ok(())
}

fn stalled_readers(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let request = load::get(ground.address, &ground.copy, &[]);
    crowd.silent(ground.address, STALLED, &request);
    Ok(())
}

/// Sends a new key with every request, so no answer can come from a memory of wrong ones.
fn wrong_keys(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let address = ground.address;
    crowd.repeat_anew(address, 64, move |_| {
        let key = ApiKey::generate(&OrgId::new());
        let headers = [("x-api-key", key.reveal())];
        load::get(address, "/api/v2/partner/envelopes", &headers)
    });
    Ok(())
}

fn wrong_tokens(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let address = ground.address;
    crowd.repeat_anew(address, 64, move |number| {
        let link = LinkToken::generate(number as i64 % 16);
        if number % 2 == 0 {
            return load::get(address, &format!("/sign/{}", link.reveal()), &[]);
        }

        let bearer = format!("Bearer eyJhbGciOiJIUzI1NiJ9.e30.{}", link.reveal());
        let headers = [("authorization", bearer.as_str())];
        load::get(address, "/api/v2/templates", &headers)
    });

    Ok(())
}

fn wrong_callbacks(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let address = ground.address;
    crowd.repeat(address, 64, |number| {
        let kind = if number % 2 == 0 {
            "signing"
        } else {
            "payment"
        };
        let path = format!("/api/v2/callbacks/{kind}/unknown-{number}");
        load::request(address, "POST", &path, &[], b"{}")
    });

    Ok(())
}

fn sign_ins(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let address = ground.address;
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    crowd.repeat(address, 16, |number| {
        let body = format!("email=person-{number}%40example.com");
        load::request(
            address,
            "POST",
            "/console/sign-in",
            &headers,
            body.as_bytes(),
        )
    });

    Ok(())
}

/// Begins uploads and sends nothing more.
fn slow_uploads(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let key = ground.attacker.key.as_str();
    let headers = [("x-api-key", key), ("content-type", FORM)];
    let whole = form(&vec![b'x'; 20 * 1024 * 1024], &[]);
    let path = "/api/v2/partner/templates";
    let request = load::request(ground.address, "POST", path, &headers, &whole);
    crowd.silent(ground.address, 64, &request[..request.len() - 1024]);
    Ok(())
}

fn half_open(ground: &BenchTenants, crowd: &AttackingClients) -> Result<(), Failure> {
    let sent = b"GET /healthz HTTP/1.1\r\nhost: bench\r\n";
    crowd.silent(ground.address, HALF_OPEN, sent);
    Ok(())
}
