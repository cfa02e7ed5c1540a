//! The partner API under load, compared with a bare handler on the same database.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use holdfast::domain::clock::Clock;
use holdfast::domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus};
use holdfast::domain::id::{CustomerId, EnvelopeId, OrgId};
use holdfast::store::{SqlDialect, Store, customers, envelopes};
use serde_json::{Value, json};
use sqlx::Row as _;

use crate::Failure;
use crate::floor::NewestRows;
use crate::load::{self, LoadConnection};
use crate::meter::ProcessMeter;
use crate::report::{self, ReportTable, median};
use crate::server::{BenchServer, ServerLog, free_address, program};
use crate::webhooks::database;

/// First argument that runs the bare server.
pub const BARE_SERVER: &str = "bare-server";

const ENVELOPES: usize = 100_000;
const CONNECTIONS: usize = 8;
/// Duration of one turn of a server; servers take turns so that noise affects both.
const TURN: Duration = Duration::from_secs(3);
const TURNS: usize = 5;
const CREATE_TIME: Duration = Duration::from_secs(6);
const FLOOR_TIME: Duration = Duration::from_secs(2);
/// Time in which the jobs of earlier creates end.
const SETTLED: Duration = Duration::from_secs(3);
const UPLOADS: usize = 10;
const UPLOAD_BYTES: usize = 50_000_000;
const CONTRACT: &[u8] = include_bytes!("../../tests/fixtures/retail-installment-contract.pdf");

/// Measures reads and creates on both databases, then uploads on SQLite.
pub fn run() -> Result<(), Failure> {
    let server = std::env::var("TEST_POSTGRES_URL").map_err(
        |_| "no PostgreSQL: run `make bench`, or this program through tests/with-postgres",
    )?;
    let runtime = tokio::runtime::Runtime::new()?;
    report::heading("Reads of the partner API, 100,000 envelopes");
    let mut table = ReportTable::new(&[
        "database",
        "request",
        "holdfast/s",
        "bare handler/s",
        "ratio",
        "holdfast p99 ms",
        "switches",
    ]);
    for database in ["SQLite", "PostgreSQL"] {
        let folder = tempfile::tempdir()?;
        let url = match database {
            "SQLite" => format!("sqlite://{}", folder.path().join("holdfast.db").display()),
            _ => format!("{server}/postgres"),
        };
        runtime.block_on(reads(&mut table, database, folder.path(), &url))?;
    }

    table.print();
    println!(
        "\nMedian of {TURNS} turns of {} s with {CONNECTIONS} kept connections. The bare handler uses the\n\
         same pool and knows no key, limit, request id, metric or log; its list is a page by key without a count. Switches are the\n\
         voluntary changes of thread of the server, for each request.",
        TURN.as_secs()
    );
    report::heading("Creating envelopes");

    let mut table = ReportTable::new(&[
        "database",
        "create",
        "connections",
        "creates/s",
        "bare insert/s",
        "ratio",
        "p50 ms",
        "p99 ms",
        "server CPU ms",
        "database CPU ms",
        "switches",
    ]);

    for kind in ["SQLite", "PostgreSQL"] {
        runtime.block_on(creates(&mut table, kind, &server))?;
    }

    table.print();
    println!(
        "\nEach create is on the disk when it is answered; one from a template is sent through the built-in room. CPU by the\n\
         kernel's counters of the processes, with the work of the jobs. The bare handler commits one row of an envelope; the\n\
         last program inserts the rows that one create leaves, and commits them, with one thread and no server."
    );

    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
        let partner = PartnerClient::start(folder.path(), &url)?;
        uploads(&partner).await?;
        partner.server.stop()
    })
}

/// A running server with one organization and a key with a practically unlimited rate.
pub struct PartnerClient {
    pub server: BenchServer,
    pub org: OrgId,
    pub key: String,
    operator: OperatorCommands,
}

/// The operator's command line for one installation.
pub struct OperatorCommands {
    pub folder: PathBuf,
    pub database: String,
}

/// An organization and its key.
pub struct BenchTenant {
    pub org: OrgId,
    pub key: String,
}

impl OperatorCommands {
    fn operate(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let output = Command::new(program()?)
            .env("HOLDFAST_DATA_DIR", &self.folder)
            .env("HOLDFAST_DATABASE_URL", &self.database)
            .arg("--json")
            .args(arguments)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }

        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Returns a token of a web-app admin.
    pub fn web_token(&self, org: &OrgId) -> Result<String, Failure> {
        let org = org.as_str();
        let email = "bench@example.com";
        let issue = [
            "token", "issue", "--org", org, "--email", email, "--role", "admin",
        ];
        let issued = self.operate(&issue)?;
        Ok(issued["token"].as_str().unwrap_or_default().to_owned())
    }

    /// Invites an owner, and returns the path of the link that signs in to the console.
    fn console_link(&self, org: &OrgId) -> Result<String, Failure> {
        let org = org.as_str();
        let email = "bench@example.com";
        let invite = [
            "user", "invite", "--org", org, "--email", email, "--role", "owner",
        ];
        let user = self.operate(&invite)?;
        let url = user["url"].as_str().unwrap_or_default();
        let at = url.find("/console/").ok_or("no link of the console")?;
        Ok(url[at..].to_owned())
    }

    fn tenant(&self) -> Result<BenchTenant, Failure> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let org = text(&self.operate(&["org", "create", "--name", "Bench"])?["org_id"]);
        let scopes = "envelopes:read,envelopes:write,vault:write,control:read,control:write";
        let limit = ["--rpm", "1000000000"];
        let create = ["key", "create", "--org", &org, "--scopes", scopes];
        let key = self.operate(&[&create[..], &limit].concat())?;

        Ok(BenchTenant {
            org: OrgId::parse(&org).ok_or("no organization id")?,
            key: text(&key["api_key"]),
        })
    }
}

impl PartnerClient {
    pub fn start(folder: &Path, database: &str) -> Result<Self, Failure> {
        Self::start_with(folder, database, &[])
    }

    /// Starts a server with additional settings, as environment variables.
    pub fn start_with(
        folder: &Path,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let operator = OperatorCommands {
            folder: folder.to_owned(),
            database: database.to_owned(),
        };
        let BenchTenant { org, key } = operator.tenant()?;
        Ok(Self {
            server: Self::serve(folder, database, settings)?,
            org,
            key,
            operator,
        })
    }

    /// Starts the server without an organization.
    pub fn serve(
        folder: &Path,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Result<BenchServer, Failure> {
        let mut all = vec![("HOLDFAST_DATABASE_URL", database.to_owned())];
        all.extend(
            settings
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned())),
        );
        let mut server = BenchServer::spawn(&program()?, folder, &all, ServerLog::File)?;
        server.start()?;

        Ok(server)
    }

    /// Starts another node, with the keys of the first node's folder and its own folder.
    pub fn join(
        folder: &Path,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Result<(tempfile::TempDir, BenchServer), Failure> {
        let other = tempfile::tempdir()?;
        let keys = other.path().join("keys");
        std::fs::create_dir_all(&keys)?;

        for file in std::fs::read_dir(folder.join("keys"))?.flatten() {
            if file.file_type()?.is_file() {
                std::fs::copy(file.path(), keys.join(file.file_name()))?;
            }
        }

        let server = Self::serve(other.path(), database, settings)?;
        Ok((other, server))
    }

    /// Returns a token of a web-app admin.
    pub fn web_token(&self) -> Result<String, Failure> {
        self.operator.web_token(&self.org)
    }

    /// Signs in to the console, and returns the cookie of the session.
    pub async fn console_cookie(&self) -> Result<String, Failure> {
        let link = self.operator.console_link(&self.org)?;
        let enter = load::request(self.server.address, "POST", &link, &[], &[]);
        let mut connection = LoadConnection::open(self.server.address).await?;
        let answer = connection.ask(&enter).await?;
        let mut headers = answer.head.lines();
        let cookie = headers.find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        Ok(cookie.ok_or("no cookie of a session")?.to_owned())
    }

    /// Adds another organization on the same server.
    pub fn another(&self) -> Result<BenchTenant, Failure> {
        self.operator.tenant()
    }

    pub fn request(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
        let headers = [
            ("x-api-key", self.key.as_str()),
            ("content-type", content_type),
        ];
        let path = format!("/api/v2/partner{path}");
        load::request(self.server.address, method, &path, &headers, body)
    }

    /// Sends a request and returns the `data` of the response.
    pub async fn ask(&self, request: &[u8]) -> Result<Value, Failure> {
        let mut connection = LoadConnection::open(self.server.address).await?;
        let answer = connection.ask(request).await?;
        if answer.status >= 300 {
            return Err(String::from_utf8_lossy(&answer.body).into());
        }
        Ok(serde_json::from_slice::<Value>(&answer.body)?["data"].take())
    }
}

async fn reads(
    table: &mut ReportTable,
    database: &str,
    folder: &Path,
    url: &str,
) -> Result<(), Failure> {
    let partner = PartnerClient::start(folder, url)?;
    let store = Store::connect(url).await?;
    let ids = fill(&store, &partner.org).await?;
    let watched = store;
    let bare = BareServer::start(url, &partner.org)?;
    let key = [("x-api-key", partner.key.as_str())];
    let spread: Vec<&EnvelopeId> = ids.iter().step_by(97).collect();
    let statuses = |address, prefix: &str, headers: &[(&str, &str)]| -> Vec<Vec<u8>> {
        spread
            .iter()
            .map(|id| load::get(address, &format!("{prefix}/envelopes/{id}/status"), headers))
            .collect()
    };

    let lists = |address, prefix: &str, headers: &[(&str, &str)]| -> Vec<Vec<u8>> {
        (1..=50)
            .map(|page| load::get(address, &format!("{prefix}/envelopes?page={page}"), headers))
            .collect()
    };
    let (ours, theirs) = (partner.server.address, bare.address);
    let cases = [
        (
            "GET status",
            statuses(ours, "/api/v2/partner", &key),
            statuses(theirs, "", &[]),
        ),
        (
            "GET list",
            lists(ours, "/api/v2/partner", &key),
            lists(theirs, "", &[]),
        ),
    ];
    for (name, to_us, to_bare) in &cases {
        let (mut us, mut them, mut slowest) = (Vec::new(), Vec::new(), Vec::new());
        let mut switches = Vec::new();
        for _ in 0..TURNS {
            let meter = ProcessMeter::start(partner.server.id(), &watched).await?;
            let times = load::run(ours, to_us, CONNECTIONS, TURN, 200).await?;
            switches.push(meter.stop().switches as f64 / times.len() as f64);
            us.push(times.len() as f64 / TURN.as_secs_f64());
            slowest.push(percentile(times, 0.99));
            let times = load::run(theirs, to_bare, CONNECTIONS, TURN, 200).await?;
            them.push(times.len() as f64 / TURN.as_secs_f64());
        }

        let (us, them) = (median(&us), median(&them));
        table.row([
            database.to_owned(),
            (*name).to_owned(),
            format!("{us:.0}"),
            format!("{them:.0}"),
            format!("{:.2}", us / them),
            format!("{:.1}", median(&slowest)),
            format!("{:.1}", median(&switches)),
        ]);
    }

    watched.close().await;
    partner.server.stop()
}

/// Returns the milliseconds below which this share of the times lies.
fn percentile(mut times: Vec<Duration>, share: f64) -> f64 {
    times.sort();
    let index = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
    times
        .get(index)
        .map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

async fn fill(store: &Store, org: &OrgId) -> Result<Vec<EnvelopeId>, Failure> {
    let now = Clock::default().now();
    let mut tx = store.begin().await?;
    let customer = customers::upsert_by_email(&mut tx, org, "jo@example.com", "Jo", now).await?;
    let customer = customer.id;

    let mut ids = Vec::with_capacity(ENVELOPES);
    for number in 0..ENVELOPES {
        let name = format!("Contract {number}");
        let creator = "bench@example.com".to_owned();
        let mut envelope = Envelope::new(
            org.clone(),
            customer.clone(),
            name,
            EnvelopeKind::Esign,
            creator,
            now,
        );
        envelope.status = EnvelopeStatus::Pending;

        envelope.external_id = Some(format!("deal-{number}"));
        envelopes::insert(&mut tx, &envelope).await?;
        ids.push(envelope.id);
    }

    tx.commit().await?;

    // PostgreSQL analyzes tables automatically, but only after a minute; SQLite never does.
    if store.dialect() == SqlDialect::Postgres {
        let mut connection = store.read().await?;
        sqlx::query("analyze").execute(&mut *connection).await?;
    }

    Ok(ids)
}

/// The bare handler, in its own process like holdfast.
struct BareServer {
    child: Child,
    address: SocketAddr,
}

impl BareServer {
    fn start(database: &str, org: &OrgId) -> Result<Self, Failure> {
        let address = free_address()?;
        let mut child = Command::new(std::env::current_exe()?)
            .args([BARE_SERVER, &address.to_string(), database, org.as_str()])
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        std::io::BufReader::new(stdout).read_line(&mut String::new())?;
        Ok(Self { child, address })
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves the same reads, and an insert, without any surrounding layers.
pub fn serve_bare(arguments: &[String]) -> Result<(), Failure> {
    let [address, database, org] = arguments else {
        return Err("the bare server needs an address, a database and an organization".into());
    };

    let (address, org): (SocketAddr, _) = (address.parse()?, OrgId::parse(org));
    let org = org.ok_or("no organization id")?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let store = Store::connect(database).await?;
        let router = Router::new()
            .route("/envelopes/{id}/status", get(bare_status))
            .route("/envelopes", get(bare_list).post(bare_create))
            .with_state((store, org));
        let listener = tokio::net::TcpListener::bind(address).await?;
        println!("listening");

        Ok(axum::serve(listener, router).await?)
    })
}

type BareState = State<(Store, OrgId)>;

async fn bare_status(State((store, org)): BareState, UrlPath(id): UrlPath<String>) -> Json<Value> {
    let found = async {
        let mut connection = store.read().await.ok()?;
        let id = EnvelopeId::parse(&id)?;
        envelopes::get(&mut connection, &org, &id).await.ok()?
    };
    let Some(envelope) = found.await else {
        return Json(Value::Null);
    };

    Json(json!({ "data": {
        "envelope_id": envelope.id, "status": envelope.status, "vaulted": envelope.record.authoritative.live().is_some(),
        "compliant": envelope.record.certificate.is_some(), "signed_at": envelope.signed_at,
        "updated_at": envelope.updated_at,
    } }))
}

/// Commits one row, the least that a create costs.
async fn bare_create(State((store, org)): BareState) -> Result<Json<Value>, StatusCode> {
    let envelope = paper(&org, "Contract");
    let inserted = async {
        let mut tx = store.begin().await?;
        envelopes::insert(&mut tx, &envelope).await?;
        tx.commit().await
    };
    match inserted.await {
        Ok(()) => Ok(Json(json!({ "data": { "envelope_id": envelope.id } }))),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn paper(org: &OrgId, name: &str) -> Envelope {
    let (customer, creator) = (CustomerId::new(), "bench@example.com".to_owned());
    let now = Clock::default().now();
    let kind = EnvelopeKind::Paper;
    Envelope::new(org.clone(), customer, name.to_owned(), kind, creator, now)
}

/// Returns the newest envelopes by key, without a count: the least that a page costs.
async fn bare_list(State((store, org)): BareState) -> Json<Value> {
    let found = async {
        let mut connection = store.read().await.ok()?;
        let query = sqlx::query(
            "select envelope_id, name, status, customer_id, external_id, created_at, updated_at
             from envelope where bucket = $1 and org_id = $2 order by envelope_id desc limit 20",
        );
        let query = query.bind(org.bucket()).bind(org.as_str());
        query.fetch_all(&mut *connection).await.ok()
    };

    let items: Vec<Value> = found
        .await
        .unwrap_or_default()
        .iter()
        .map(|row| {
            let text = |column: &str| row.try_get::<Option<String>, _>(column).ok().flatten();
            json!({
                "envelope_id": text("envelope_id"), "envelope_name": text("name"),
                "status": text("status"), "customer_id": text("customer_id"),
                "external_id": text("external_id"), "created_at": text("created_at"),
                "updated_at": text("updated_at"),
            })
        })
        .collect();

    Json(json!({ "data": items }))
}

/// Kinds of creates, with the numbers of connections.
const CREATES: [(&str, &[usize]); 2] = [("from a template", &[1, 8, 32]), ("paper", &[1, 64])];

async fn creates(table: &mut ReportTable, kind: &str, server: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let url = database(kind, server, "creates", folder.path()).await?;
    let partner = PartnerClient::start(folder.path(), &url)?;
    let store = Store::connect(&url).await?;
    let template = template(&partner).await?;

    let json = "application/json";
    for (name, connections) in CREATES {
        let mut body = json!({
            "envelope_name": "Contract", "customer_email": "jo@example.com", "customer_name": "Jo",
        });
        match name {
            "paper" => body["envelope_kind"] = "paper".into(),
            _ => body["template_id"] = template.clone(),
        }

        let body = body.to_string();
        let create = [partner.request("POST", "/envelopes", json, body.as_bytes())];
        for connections in connections {
            let meter = ProcessMeter::start(partner.server.id(), &store).await?;
            let address = partner.server.address;
            let times = load::run(address, &create, *connections, CREATE_TIME, 201).await?;
            let used = meter.stop();
            let bare = BareServer::start(&url, &partner.org)?;
            let insert = [load::request(bare.address, "POST", "/envelopes", &[], &[])];
            let floor = load::run(bare.address, &insert, *connections, FLOOR_TIME, 200).await?;

            let count = times.len() as f64;
            let ours = count / CREATE_TIME.as_secs_f64();
            let floor = floor.len() as f64 / FLOOR_TIME.as_secs_f64();
            table.row([
                kind.to_owned(),
                name.to_owned(),
                connections.to_string(),
                format!("{ours:.0}"),
                format!("{floor:.0}"),
                format!("{:.2}", ours / floor),
                format!("{:.1}", percentile(times.clone(), 0.5)),
                format!("{:.1}", percentile(times, 0.99)),
                format!("{:.2}", used.server * 1e3 / count),
                format!("{:.2}", used.database * 1e3 / count),
                format!("{:.1}", used.switches as f64 / count),
            ]);
        }
    }

    if kind == "SQLite" {
        let database = url.trim_start_matches("sqlite://");
        let create = json!({
            "envelope_name": "Contract", "customer_email": "jo@example.com", "customer_name": "Jo",
            "template_id": template,
        });
        let create = partner.request("POST", "/envelopes", json, create.to_string().as_bytes());
        tokio::time::sleep(SETTLED).await;
        let before = NewestRows::of(Path::new(database))?;
        partner.ask(&create).await?;
        tokio::time::sleep(SETTLED).await;

        let floor = before.measure(Path::new(database), CREATE_TIME)?;
        table.row([
            kind.to_owned(),
            "the same rows by one thread".to_owned(),
            String::new(),
            format!("{:.0}", floor.rate),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            format!("{:.2}", floor.processor_ms),
            String::new(),
            String::new(),
        ]);
    }

    store.close().await;
    partner.server.stop()
}

async fn template(partner: &PartnerClient) -> Result<Value, Failure> {
    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03 }] },
    }]);
    let form = form(
        CONTRACT,
        &[("name", "Contract"), ("fields_json", &fields.to_string())],
    );
    let request = partner.request("POST", "/templates", FORM, &form);

    Ok(partner.ask(&request).await?["template_id"].take())
}

pub const FORM: &str = "multipart/form-data; boundary=bench-boundary";

pub fn form(file: &[u8], texts: &[(&str, &str)]) -> Vec<u8> {
    let mut body = String::new();
    for (name, text) in texts {
        body += &format!(
            "--bench-boundary\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
        );
    }

    body += "--bench-boundary\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f.pdf\"\r\n\
             content-type: application/pdf\r\n\r\n";
    [body.as_bytes(), file, b"\r\n--bench-boundary--\r\n"].concat()
}

/// Returns a document of scanned pages, each with a picture of `bytes` bytes.
pub fn scans(pages: usize, bytes: usize) -> Vec<u8> {
    let mut pdf = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    let mut object = |pdf: &mut Vec<u8>, parts: &[&[u8]]| {
        offsets.push(pdf.len());
        pdf.extend(format!("{} 0 obj ", offsets.len()).bytes());
        pdf.extend(parts.concat());
        pdf.extend(b" endobj\n");
    };

    let page = |index: usize| 3 + 3 * index;
    let kids: Vec<String> = (0..pages)
        .map(|index| format!("{} 0 R", page(index)))
        .collect();
    let tree = format!("<</Type/Pages/Kids[{}]/Count {pages}>>", kids.join(" "));
    object(&mut pdf, &[b"<</Type/Catalog/Pages 2 0 R>>"]);
    object(&mut pdf, &[tree.as_bytes()]);

    let mut state = 17_u64;
    for index in 0..pages {
        let (content, picture) = (page(index) + 1, page(index) + 2);
        let head = format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {content} 0 R\
             /Resources<</XObject<</P {picture} 0 R>>>>>>"
        );
        object(&mut pdf, &[head.as_bytes()]);
        let drawn = b"<</Length 28>> stream\nq 612 0 0 792 0 0 cm /P Do Q\nendstream";
        object(&mut pdf, &[drawn]);

        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(bytes)
        .collect();

        let head = format!(
            "<</Type/XObject/Subtype/Image/Width 1000/Height {}/ColorSpace/DeviceGray\
             /BitsPerComponent 8/Length {bytes}>> stream\n",
            bytes / 1000
        );
        object(&mut pdf, &[head.as_bytes(), &noise, b"\nendstream"]);
    }

    let start = pdf.len();
    let count = offsets.len() + 1;
    pdf.extend(format!("xref\n0 {count}\n0000000000 65535 f \n").bytes());
    for offset in offsets {
        pdf.extend(format!("{offset:010} 00000 n \n").bytes());
    }

    let tail = format!("trailer <</Size {count}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n");
    pdf.extend(tail.bytes());
    pdf
}

async fn uploads(partner: &PartnerClient) -> Result<(), Failure> {
    report::heading("Ten uploads of 50 MB at once");
    let body = json!({
        "envelope_name": "Scan", "customer_email": "jo@example.com", "customer_name": "Jo",
        "envelope_kind": "paper",
    });
    let create = partner.request(
        "POST",
        "/envelopes",
        "application/json",
        body.to_string().as_bytes(),
    );

    let form = form(&scans(1, UPLOAD_BYTES), &[]);
    let mut requests = Vec::new();
    for _ in 0..UPLOADS {
        let id = partner.ask(&create).await?["envelope_id"].take();
        let path = format!("/envelopes/{}/upload", id.as_str().unwrap_or_default());
        requests.push(partner.request("POST", &path, FORM, &form));
    }

    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = partner.server.memory()?.resident;
    let began = Instant::now();
    let address = partner.server.address;
    let mut tasks: Vec<_> = requests
        .into_iter()
        .map(|request| {
            tokio::spawn(async move {
                let mut connection = LoadConnection::open(address).await?;
                Ok::<_, Failure>(connection.ask(&request).await?.status)
            })
        })
        .collect();

    let mut peak = idle;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        peak = peak.max(partner.server.memory()?.resident);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let took = began.elapsed();
    for task in tasks.drain(..) {
        let status = task.await??;
        if status != 201 {
            return Err(format!("an upload was answered with {status}").into());
        }
    }

    let mut table = ReportTable::new(&["resident", "MB"]);
    let megabytes = |kibibytes: f64| format!("{:.1}", kibibytes * 1024.0 / 1e6);
    table.row(["before".to_owned(), megabytes(idle)]);
    table.row(["peak".to_owned(), megabytes(peak)]);
    table.row(["peak above before".to_owned(), megabytes(peak - idle)]);
    table.print();
    println!(
        "\n{UPLOADS} uploads took {:.1} s together.",
        took.as_secs_f64()
    );

    Ok(())
}
