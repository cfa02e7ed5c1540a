//! A service of its own for each test: the real router, worker, database and
//! object folder. Helpers act through the public API only.

pub mod authority;
pub mod azure;
pub mod browser;
mod database;
pub mod docuseal;
pub mod example_sign;
pub mod faulty;
pub mod form;
pub mod gcs;
pub mod method;
pub mod pdf;
pub mod postgres;
pub mod process;
pub mod processor;
pub mod proxy;
pub mod receiver;
pub mod rewrite;
pub mod s3;
pub mod smtp;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use holdfast::config::{Config, HttpSettings, Storage};
use holdfast::delivery::guard::Lookup;
use holdfast::domain::clock::Clock;
use holdfast::domain::id::{KeyId, OrgId};
use holdfast::domain::organization::{ApiKeyRecord, OrgSettings, Organization, Scope};
use holdfast::domain::token::ApiKey;
use holdfast::files::Files;
use holdfast::http::listener;
use holdfast::metrics::ConnectionMetrics;
use holdfast::start::{self, App};
use holdfast::store::{Store, api_keys, organizations};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

pub const CONTRACT: &[u8] = include_bytes!("../../fixtures/retail-installment-contract.pdf");

/// A running service and one organization with a key for everything.
pub struct TestApp {
    pub store: Store,
    pub org: OrgId,
    pub key: String,
    /// Of each node; they take requests in turn.
    routers: Vec<Router>,
    next: AtomicUsize,
    pub data: Arc<TempDir>,
    /// Where it listens, if it does.
    url: Option<String>,
    connections: ConnectionMetrics,
    /// Where its database is, unless it has a server.
    root: Arc<TempDir>,
    database_url: Option<String>,
    /// Where its objects are, unless they are in its data folder.
    storage: Option<(String, Storage)>,
    /// How far its clock runs ahead.
    ahead: Duration,
    /// Of an admin, once one was asked for.
    admin: std::sync::OnceLock<String>,
    _worker: Worker,
}

/// Stops the worker with the test.
struct Worker(tokio_util::sync::CancellationToken);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// An answer, read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: axum::http::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.bytes)))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The `data` of an answer that must have this status.
    #[track_caller]
    pub fn data(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["data"].take()
    }

    /// The `error` of an answer that must have this status.
    #[track_caller]
    pub fn error(self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["error"]
            .as_str()
            .expect("an error text")
            .to_owned()
    }
}

/// Native code is shared by all tests: the key that makes its MAC is fixed here.
pub fn share_native_code(data: &Path) {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-code");
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::create_dir_all(data.join("keys")).unwrap();
    std::fs::write(data.join("keys/master.key"), [7; 32]).unwrap();
    std::os::unix::fs::symlink(shared, data.join("native-code")).unwrap();
}

/// A multipart form: its content type, and its bytes.
fn form_of(content_type: &str, file: &[u8], texts: &[(&str, &str)]) -> (String, Vec<u8>) {
    const BOUNDARY: &str = "a-boundary-no-file-contains";
    let mut body = Vec::new();
    for (name, text) in texts {
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
        );
        body.extend(head.into_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"file\"\r\n\
         content-type: {content_type}\r\n\r\n"
    );
    body.extend(head.into_bytes());
    body.extend(file);
    body.extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}

fn configuration(data: &TempDir) -> Config {
    let mut config = Config {
        data_dir: data.path().into(),
        ..Config::default()
    };
    // This program is a test and no compiler.
    config.components.compiler = Some(env!("CARGO_BIN_EXE_holdfast").into());
    // It gives way to whatever else the machine does, other tests included.
    config.components.compile_limit = Duration::from_secs(600);
    config
}

/// What the operator's tool is told of a node that keeps its things elsewhere.
pub const SETTINGS: &str = "node.toml";

/// How many nodes serve each test, on PostgreSQL and S3: as `make test-nodes` says. One
/// on SQLite and a folder otherwise.
async fn on_nodes(config: &mut Config) -> usize {
    let Ok(nodes) = std::env::var("TEST_NODES") else {
        return 1;
    };
    let server = std::env::var("TEST_S3_URL").expect("no S3 server: run `make test-nodes`");
    let database = postgres::new_database().await;
    s3::use_bucket(config, &server, "objects");
    config.storage_url = Some(format!("s3://objects/{}", OrgId::new()));
    let options = config.storage.options.iter();
    let options = options.map(|(name, value)| format!("{name} = '{}'", value.reveal()));
    let options: Vec<String> = options.collect();
    let told = format!(
        "database_url = '{database}'\nstorage_url = '{}'\n[storage.options]\n{}\n",
        config.storage_url.as_deref().unwrap(),
        options.join("\n")
    );
    std::fs::write(config.data_dir.join(SETTINGS), told).unwrap();
    config.database_url = Some(database);
    nodes.parse().unwrap()
}

impl TestApp {
    /// On SQLite, vaulting by itself.
    pub async fn start() -> Self {
        Self::with(|_| {}, OrgSettings::default()).await
    }

    /// On SQLite, vaulting only when asked.
    pub async fn without_auto_vault() -> Self {
        let settings = OrgSettings {
            auto_vault: false,
            ..OrgSettings::default()
        };
        Self::with(|_| {}, settings).await
    }

    pub async fn with(change: impl FnOnce(&mut Config), settings: OrgSettings) -> Self {
        let data = tempfile::tempdir().unwrap();
        share_native_code(data.path());
        let mut config = configuration(&data);
        let nodes = on_nodes(&mut config).await;
        change(&mut config);
        // What chose its own database or objects has a node of its own.
        let nodes = match config.database_url.as_deref() {
            Some(url) if url.starts_with("postgres") => nodes,
            _ => 1,
        };
        let files = start::open_files(&config).unwrap();
        let mut app = Self::over(data, config.clone(), files, settings).await;
        for _ in 1..nodes {
            app.join(config.clone()).await;
        }
        app
    }

    /// One more node, with the same keys and outbox, which takes its share of requests.
    async fn join(&mut self, mut config: Config) {
        let data = tempfile::tempdir_in(self.data.path()).unwrap().keep();
        for folder in ["keys", "outbox", "native-code"] {
            let shared = self.data.path().join(folder);
            std::fs::create_dir_all(&shared).unwrap();
            std::os::unix::fs::symlink(shared, data.join(folder)).unwrap();
        }
        config.data_dir = data;
        let files = start::open_files(&config).unwrap();
        let app = start::start_with(config, files).await.unwrap();
        let stop = self._worker.0.clone();
        tokio::spawn(holdfast::server::work(app.clone(), stop));
        self.routers.push(holdfast::http::router(app));
    }

    fn router(&self) -> Router {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.routers[next % self.routers.len()].clone()
    }

    /// On SQLite, and on a socket by whose address the world knows it.
    pub async fn on_a_socket() -> Self {
        Self::on_a_socket_with(OrgSettings::default()).await
    }

    pub async fn on_a_socket_with(settings: OrgSettings) -> Self {
        Self::listening(|_| {}, settings).await
    }

    pub async fn on_a_socket_over(change: impl FnOnce(&mut Config)) -> Self {
        Self::listening(change, OrgSettings::default()).await
    }

    async fn listening(change: impl FnOnce(&mut Config), settings: OrgSettings) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut http = HttpSettings::default();
        let configure = |config: &mut Config| {
            config.listen = address;
            change(config);
            http = config.http.clone();
        };
        let mut app = Self::with(configure, settings).await;
        let (router, metrics) = (app.router(), app.connections.clone());
        let stop = CancellationToken::new();
        tokio::spawn(listener::serve(listener, router, http, metrics, stop));
        app.url = Some(format!("http://{address}"));
        app
    }

    /// Whose object folder fails in one area, from now on and as told.
    pub async fn faulty(
        fault: faulty::Fault,
        area: &'static str,
        settings: OrgSettings,
    ) -> (Self, Arc<faulty::Faulty>) {
        let data = tempfile::tempdir().unwrap();
        share_native_code(data.path());
        let config = configuration(&data);
        let store = faulty::Faulty::new(&data.path().join("objects"), fault, area);
        let files = Files::over(store.clone(), Duration::from_millis(500));
        let mut app = Self::over(data, config, files, settings).await;
        // Who waits for a retry asks often.
        app.key = app.key_with_limit(Scope::ALL, 10_000).await;
        (app, store)
    }

    /// Whose webhook receivers are where `lookup` says.
    pub async fn with_lookup(change: impl FnOnce(&mut Config), lookup: Arc<dyn Lookup>) -> Self {
        let data = tempfile::tempdir().unwrap();
        share_native_code(data.path());
        let mut config = configuration(&data);
        change(&mut config);
        let files = start::open_files(&config).unwrap();
        let store = start::open_store(&config).await.unwrap();
        let app = start::start_over(config, files, lookup).await.unwrap();
        Self::running(data, store, app, OrgSettings::default()).await
    }

    async fn over(data: TempDir, config: Config, files: Files, settings: OrgSettings) -> Self {
        let store = start::open_store(&config).await.unwrap();
        let app = start::start_with(config, files).await.unwrap();
        Self::running(data, store, app, settings).await
    }

    async fn running(data: TempDir, store: Store, app: App, settings: OrgSettings) -> Self {
        // What a failed test's service had to say is shown with the failure.
        let _ = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_test_writer()
            .try_init();
        let (org, key) = new_organization(&store, settings, Scope::ALL).await;
        let stop = tokio_util::sync::CancellationToken::new();
        tokio::spawn(holdfast::server::work(app.clone(), stop.clone()));
        let data = Arc::new(data);
        Self {
            ahead: app.config.clock_offset.unwrap_or_default(),
            database_url: app.config.database_url.clone(),
            storage: app
                .config
                .storage_url
                .clone()
                .map(|url| (url, app.config.storage.clone())),
            url: None,
            connections: app.metrics.connections.clone(),
            routers: vec![holdfast::http::router(app)],
            next: AtomicUsize::new(0),
            store,
            org,
            key,
            root: data.clone(),
            data,
            admin: std::sync::OnceLock::new(),
            _worker: Worker(stop),
        }
    }

    /// Nobody does the work that is committed from now on.
    pub fn stop_working(&self) {
        self._worker.0.cancel();
    }

    /// A second service on the same database and objects, whose clock runs
    /// ahead. The first one's worker stops, so that only one does the work.
    pub async fn as_of(&self, ahead: Duration) -> Self {
        self.as_of_with(ahead, |_| {}).await
    }

    /// As [`TestApp::as_of`], with other settings too.
    pub async fn as_of_with(&self, ahead: Duration, change: impl FnOnce(&mut Config)) -> Self {
        self.stop_working();
        self.another_node(|config| {
            change(config);
            config.clock_offset = Some(ahead);
        })
        .await
    }

    /// A second service on the same database and objects, beside this one.
    pub async fn another_node(&self, change: impl FnOnce(&mut Config)) -> Self {
        let folder = self.root.path().to_owned();
        let database = format!("sqlite://{}", folder.join("holdfast.db").display());
        let database = self.database_url.clone().unwrap_or(database);
        let mut later = Self::with(
            |config| {
                change(config);
                config.database_url = Some(database);
                if let Some((url, storage)) = &self.storage {
                    config.storage_url = Some(url.clone());
                    config.storage.options = storage.options.clone();
                } else {
                    let objects = folder.join("objects");
                    config.storage_url = Some(format!("file://{}", objects.display()));
                }
            },
            OrgSettings::default(),
        )
        .await;
        later.root = self.root.clone();
        later.org = self.org.clone();
        later.admin = std::sync::OnceLock::new();
        later.key = self.key.clone();
        later
    }

    /// Another tenant's key.
    pub async fn other_organization(&self) -> String {
        new_organization(&self.store, OrgSettings::default(), Scope::ALL)
            .await
            .1
    }

    /// Another tenant's key, with so many requests a minute.
    pub async fn other_organization_with_limit(&self, rpm: i64) -> String {
        let (org, _) = new_organization(&self.store, OrgSettings::default(), Scope::ALL).await;
        new_key(&self.store, &org, Scope::ALL, rpm).await
    }

    /// A key and a web-app admin of another organization.
    pub async fn other_tenant(&self) -> (String, String) {
        let (org, _) = new_organization(&self.store, OrgSettings::default(), Scope::ALL).await;
        let key = new_key(&self.store, &org, Scope::ALL, 100_000).await;
        (key, self.admin_of(org.as_str()))
    }

    /// A web-app admin of another organization.
    pub fn other_admin(&self) -> String {
        let mut create = operator_command(self.root.path(), &["org", "create", "--name", "Oak"]);
        if let Some(url) = &self.database_url {
            create.env("HOLDFAST_DATABASE_URL", url);
        }
        let org = printed(create.output().unwrap());
        self.admin_of(org["org_id"].as_str().unwrap())
    }

    /// A web-app admin of the organization.
    pub fn admin(&self) -> String {
        self.admin_of(self.org.as_str())
    }

    fn admin_of(&self, org: &str) -> String {
        self.token_of(org, "admin")
    }

    /// A web-app token for that role.
    pub fn token(&self, role: &str) -> String {
        self.token_of(self.org.as_str(), role)
    }

    fn token_of(&self, org: &str, role: &str) -> String {
        let email = "oak@oak.example";
        let arguments = [
            "token", "issue", "--org", org, "--email", email, "--role", role,
        ];
        let mut command = operator_command(self.root.path(), &arguments);
        // Good by the service's clock.
        let offset = format!("{}ms", self.ahead.as_millis());
        command.env("HOLDFAST_CLOCK_OFFSET", offset);
        if let Some(url) = &self.database_url {
            command.env("HOLDFAST_DATABASE_URL", url);
        }
        let issued = printed(command.output().unwrap());
        issued["token"].as_str().unwrap().to_owned()
    }

    /// Changes settings of the organization, as an operator does.
    pub fn set_organization(&self, settings: &[&str]) {
        let arguments = [&["org", "set", self.org.as_str()], settings].concat();
        operator(self.data.path(), &arguments);
    }

    /// A key of the same organization with these scopes only.
    pub async fn key_with(&self, scopes: &[Scope]) -> String {
        self.key_with_limit(scopes, 100).await
    }

    /// A key with these scopes and so many requests a minute.
    pub async fn key_with_limit(&self, scopes: &[Scope], rpm: i64) -> String {
        new_key(&self.store, &self.org, scopes, rpm).await
    }

    /// The mails in the outbox, once there are so many.
    pub async fn wait_for_mails(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let mut mails = files_below(&self.data.path().join("outbox"));
            // What is still being written has another name.
            mails.retain(|mail| mail.extension().is_some_and(|extension| extension == "eml"));
            if mails.len() >= count {
                return mails
                    .iter()
                    .map(|mail| std::fs::read_to_string(mail).unwrap())
                    .collect();
            }
            assert!(
                Instant::now() < deadline,
                "{} mails and not {count}",
                mails.len()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let path = request.uri().path();
        let activates = request.method() != Method::GET
            && ["/component", "/webhooks/endpoints/", "/partner/webhook"]
                .iter()
                .any(|begin| path.starts_with(&api(begin)));
        let response = self.router().oneshot(request).await.unwrap();
        if activates && response.status().is_success() && self.routers.len() > 1 {
            // So long the others may take to follow.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let (parts, body) = response.into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            bytes: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    }

    /// Hangs up before anything of the answer's body is read.
    pub async fn hang_up(&self, request: Request<Body>) -> StatusCode {
        self.router().oneshot(request).await.unwrap().status()
    }

    /// The same service on a socket of its own; returns `http://…`.
    pub async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = self.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_as(&self.key, path).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Answer {
        let request = Request::get(api(path)).header("x-api-key", key);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub async fn get_with_bearer(&self, token: &str, path: &str) -> Answer {
        let request = Request::get(api(path)).header("authorization", format!("Bearer {token}"));
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub async fn post_with_bearer(&self, token: &str, path: &str, body: Value) -> Answer {
        self.as_bearer(Method::POST, token, path, body).await
    }

    /// The token of one admin, who is issued it once.
    pub fn web_admin(&self) -> &str {
        self.admin.get_or_init(|| self.admin())
    }

    /// As an admin of the organization; without a body when it is null.
    pub async fn web(&self, method: Method, path: &str, body: Value) -> Answer {
        let body = match body {
            Value::Null => Body::empty(),
            body => body.to_string().into(),
        };
        let request = Request::builder()
            .method(method)
            .uri(api(path))
            .header("authorization", format!("Bearer {}", self.web_admin()))
            .header("x-org-id", self.org.as_str())
            .header("content-type", "application/json");
        self.send(request.body(body).unwrap()).await
    }

    /// Any method, with a JSON body.
    pub async fn as_bearer(&self, method: Method, token: &str, path: &str, body: Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(api(path))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// The token of a field builder's session for a template.
    pub async fn template_session(&self, template: &str) -> String {
        let request = json!({ "template_id": template });
        let session = self
            .post_with_bearer(&self.admin(), "/esign/builder-session", request)
            .await
            .data(201);
        let url = session["builder_url"].as_str().unwrap();
        url.split_once("#token=").unwrap().1.to_owned()
    }

    /// What the field builder's script asks for.
    pub async fn builder(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(request.body(body.into()).unwrap()).await
    }

    /// What one node counts after the other.
    pub async fn metrics(&self) -> String {
        let mut all = String::new();
        for _ in &self.routers {
            let request = Request::get("/metrics").body(Body::empty()).unwrap();
            all += &self.send(request).await.text();
        }
        all
    }

    /// Where it listens: `http://…`.
    pub fn url(&self) -> String {
        self.url.clone().expect("a service on a socket")
    }

    /// What `/readyz` says of each dependency.
    pub async fn ready(&self) -> Value {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        self.send(request).await.json()["checks"].take()
    }

    /// What `holdfast vault sweep` prints; nothing may be wrong.
    pub fn sweep(&self, more: &[&str]) -> Value {
        operator(self.data.path(), &[&["vault", "sweep"], more].concat())
    }

    /// Waits for a sweep to remove a file.
    pub async fn wait_until_gone(&self, path: &Path) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while path.exists() {
            assert!(
                Instant::now() < deadline,
                "{} is still there",
                path.display()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.post_as(&self.key, path, body).await
    }

    pub async fn post_as(&self, key: &str, path: &str, body: Value) -> Answer {
        self.post_text(key, path, "application/json", body.to_string())
            .await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.patch_as(&self.key, path, body).await
    }

    pub async fn patch_as(&self, key: &str, path: &str, body: Value) -> Answer {
        let request = Request::patch(api(path))
            .header("x-api-key", key)
            .header("content-type", "application/json");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    pub async fn post_text(
        &self,
        key: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Body>,
    ) -> Answer {
        let request = Request::builder()
            .method(Method::POST)
            .uri(api(path))
            .header("x-api-key", key)
            .header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }

    /// A multipart body with a `file` part and text parts.
    pub async fn upload(
        &self,
        path: &str,
        content_type: &str,
        file: &[u8],
        texts: &[(&str, &str)],
    ) -> Answer {
        self.upload_as(&self.key, path, content_type, file, texts)
            .await
    }

    pub async fn upload_as(
        &self,
        key: &str,
        path: &str,
        content_type: &str,
        file: &[u8],
        texts: &[(&str, &str)],
    ) -> Answer {
        let (content_type, body) = form_of(content_type, file, texts);
        self.post_text(key, path, &content_type, body).await
    }

    /// Uploads a component as a web-app user.
    pub async fn upload_component(
        &self,
        token: &str,
        name: &str,
        version: &str,
        component: &[u8],
    ) -> Answer {
        let texts = [("name", name), ("version", version)];
        self.upload_signed_component(token, component, &texts).await
    }

    pub async fn upload_signed_component(
        &self,
        token: &str,
        component: &[u8],
        texts: &[(&str, &str)],
    ) -> Answer {
        let (content_type, body) = form_of("application/wasm", component, texts);
        let request = Request::post(api("/components"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }

    /// A template of the demo contract: the buyer signs at an anchor and dates
    /// the first page.
    pub async fn contract_template(&self) -> Value {
        let fields = json!([
            {
                "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
                "placement": {
                    "mode": "anchor", "anchor_text": "Buyer signature:",
                    "offset_x": 0.17, "offset_y": -0.012, "w": 0.32, "h": 0.03,
                },
            },
            {
                "name": "Signed on", "type": "date", "role": "Buyer", "required": true,
                "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.72, "y": 0.035, "w": 0.2, "h": 0.02 }] },
            },
        ]);
        self.template(CONTRACT, &fields).await
    }

    /// A template of the library, as the web app uploads one.
    pub async fn library_template(&self, texts: &[(&str, &str)], pdf: &[u8]) -> Answer {
        let (content_type, body) = form_of("application/pdf", pdf, texts);
        let request = Request::post(api("/templates"))
            .header("authorization", format!("Bearer {}", self.web_admin()))
            .header("content-type", content_type);
        self.send(request.body(body.into()).unwrap()).await
    }

    pub async fn template(&self, pdf: &[u8], fields: &Value) -> Value {
        let fields = fields.to_string();
        let texts = [("name", "Contract"), ("fields_json", fields.as_str())];
        self.upload("/partner/templates", "application/pdf", pdf, &texts)
            .await
            .data(200)
    }

    /// Sends the contract to one buyer.
    pub async fn sent_envelope(&self) -> Value {
        let template = self.contract_template().await;
        self.post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201)
    }

    /// Sends a contract that two sign in turn, a buyer and a seller: its id, and a
    /// link for each.
    pub async fn sent_to_two(&self) -> (String, [String; 2]) {
        let document = pdf::with_lines(&[
            "{{First;type=signature;role=Buyer;required=true}}",
            "Between",
            "{{Second;type=signature;role=Seller;required=true}}",
        ]);
        let texts = [("name", "Two")];
        let template = self
            .upload("/partner/templates", "application/pdf", &document, &texts)
            .await
            .data(200);
        let mut body = envelope_body(&template["template_id"]);
        body["signers"] = buyer_and_seller();
        let envelope = self.post("/partner/envelopes", body).await.data(201);
        let id = envelope["envelope_id"].as_str().unwrap().to_owned();
        let links = self
            .get(&format!("/partner/envelopes/{id}/signing-links"))
            .await
            .data(200);
        let url = |index: usize| {
            links["signers"][index]["embed_url"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        (id, [url(0), url(1)])
    }

    /// The status once it is `status`; fails after two minutes.
    pub async fn wait_for(&self, id: &str, status: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        let admin = self.web_admin();
        loop {
            // Whoever waits asks often, and a key has its limit.
            let path = format!("/envelopes/{id}");
            let now = self.get_with_bearer(admin, &path).await.data(200);
            if now["status"] == status {
                let path = format!("/partner/envelopes/{id}/status");
                return self.get(&path).await.data(200);
            }
            assert!(Instant::now() < deadline, "still {now} and not {status}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sends the contract, signs it, and waits until it is vaulted.
    pub async fn vaulted_envelope(&self) -> String {
        let envelope = self.sent_envelope().await;
        let id = envelope["envelope_id"].as_str().unwrap().to_owned();
        let url = envelope["sign_url"].as_str().unwrap().to_owned();
        form::sign(self, &url).await;
        self.wait_for(&id, "vaulted").await;
        id
    }

    /// An envelope's custody ledger.
    pub async fn custody(&self, id: &str) -> Value {
        let path = format!("/partner/envelopes/{id}/custody");
        self.get(&path).await.data(200)
    }

    /// The details of the one ledger entry with this action.
    pub async fn entry(&self, id: &str, action: &str) -> Value {
        let custody = self.custody(id).await;
        let mut entries = custody["entries"].as_array().unwrap().iter();
        let mut found = entries.by_ref().filter(|entry| entry["action"] == action);
        let details = found.next().unwrap()["details"].clone();
        assert_eq!(found.next(), None, "{action}");
        details
    }

    /// Waits until an event of this type is in the outbox.
    pub async fn wait_for_event(&self, id: &str, event_type: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self
            .event_types(id)
            .await
            .iter()
            .any(|known| known == event_type)
        {
            assert!(Instant::now() < deadline, "no {event_type}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The public key of the installation's log.
    pub async fn ledger_key(&self) -> String {
        let head = self.get_as("", "/ledger/head").await.data(200);
        head["public_key"].as_str().unwrap().to_owned()
    }

    /// Releases an envelope, and what `holdfast verify` then says of it.
    pub async fn released_and_verified(&self, id: &str) -> Value {
        let path = format!("/partner/envelopes/{id}/vault-out");
        self.post(&path, release_form()).await.data(200);
        let (data, id) = (self.data.path().to_owned(), id.to_owned());
        let verified =
            tokio::task::spawn_blocking(move || operator_output(&data, &["verify", &id]));
        serde_json::from_slice(&verified.await.unwrap().stdout).unwrap()
    }

    /// Releases an envelope: a folder with what its recipient gets, and the ledger.
    pub async fn released_bundle(&self, id: &str) -> TempDir {
        let path = format!("/partner/envelopes/{id}/vault-out");
        let release = self.post(&path, release_form()).await.data(200);
        let bundle = tempfile::tempdir().unwrap();
        for file in [
            "authoritative",
            "certified_vaulted_copy",
            "compliance_certificate",
            "vault_custody_record",
        ] {
            let url = release[format!("{file}_signed_url")].as_str().unwrap();
            let name = release[format!("{file}_filename")].as_str().unwrap();
            std::fs::write(bundle.path().join(name), self.get(url).await.bytes).unwrap();
        }
        let custody = format!("/partner/envelopes/{id}/custody");
        let ledger = self.get(&custody).await.data(200).to_string();
        std::fs::write(bundle.path().join("custody-ledger.json"), ledger).unwrap();
        bundle
    }

    /// The types of an envelope's events, in the order of the outbox.
    pub async fn event_types(&self, id: &str) -> Vec<String> {
        let events = self.events(id).await;
        events
            .iter()
            .map(|event| event["event_type"].as_str().unwrap().to_owned())
            .collect()
    }

    pub async fn events(&self, id: &str) -> Vec<Value> {
        let id = holdfast::domain::id::EnvelopeId::parse(id).unwrap();
        let mut connection = self.store.read().await.unwrap();
        let bodies = holdfast::store::events::bodies(&mut connection, &self.org, &id)
            .await
            .unwrap();
        bodies
            .iter()
            .map(|body| serde_json::from_str(body).unwrap())
            .collect()
    }

    /// Every stored object of an area, as file paths.
    pub fn objects(&self, area: &str) -> Vec<std::path::PathBuf> {
        files_below(&self.objects_folder().join(area))
    }

    /// Where the objects are files.
    pub fn objects_folder(&self) -> std::path::PathBuf {
        let bucket = self.storage.as_ref();
        let bucket = bucket.and_then(|(url, _)| url.strip_prefix("s3://"));
        match bucket {
            Some(bucket) => Path::new(&std::env::var("TEST_S3_FOLDER").unwrap()).join(bucket),
            None => self.data.path().join("objects"),
        }
    }
}

/// A PDF of `size` bytes: the contract, with a comment of spaces at its end.
pub fn padded(size: usize) -> Vec<u8> {
    let mut pdf = CONTRACT.to_vec();
    let tail = pdf.split_off(pdf.windows(9).rposition(|w| w == b"startxref").unwrap());
    pdf.extend(b"%");
    pdf.resize(size - tail.len() - 1, b' ');
    pdf.push(b'\n');
    pdf.extend(tail);
    assert_eq!(pdf.len(), size);
    pdf
}

pub fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

fn operator_command(data: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let settings = data.join(SETTINGS);
    if settings.exists() {
        command.arg("--config").arg(settings);
    }
    command
        .env("HOLDFAST_DATA_DIR", data)
        .arg("--json")
        .args(arguments);
    command
}

/// What the operator's tool does.
pub fn operator_output(data: &Path, arguments: &[&str]) -> std::process::Output {
    operator_command(data, arguments).output().unwrap()
}

/// What the operator's tool prints.
pub fn operator(data: &Path, arguments: &[&str]) -> Value {
    printed(operator_output(data, arguments))
}

fn printed(output: std::process::Output) -> Value {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The body of an envelope for the template.
pub fn envelope_body(template_id: &Value) -> Value {
    json!({
        "envelope_name": "Retail instalment contract",
        "customer_email": "jordan.lee@example.com",
        "customer_name": "Jordan Lee",
        "template_id": template_id,
        "external_id": "deal-17",
        "secured_party": { "name": "First Example Bank", "role": "assignee" },
    })
}

/// Two signers of a template with these roles.
pub fn buyer_and_seller() -> Value {
    json!([
        { "email": "buyer@example.com", "name": "Ann Buyer", "role": "Buyer" },
        { "email": "seller@example.com", "name": "Bob Seller", "role": "Seller" },
    ])
}

pub fn release_form() -> Value {
    json!({
        "recipient_name": "Robin Park",
        "recipient_organization": "First Example Bank",
        "recipient_email": "robin.park@bank.example",
        "purpose_of_release": "Assignment of the contract",
        "acknowledge_authoritative_copy": true,
        "acknowledge_chain_of_custody": true,
        "authorized_signature": "Jordan Maple",
    })
}

/// The organization that a token names.
pub fn org_of(token: &str) -> String {
    use base64::Engine as _;
    let claims = token.split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    claims["org_id"].as_str().unwrap().to_owned()
}

/// A path of the API; URLs of this server lose their host.
fn api(path: &str) -> String {
    match path.strip_prefix("http://127.0.0.1:") {
        Some(rest) => rest[rest.find('/').unwrap()..].to_owned(),
        None => format!("/api/v2{path}"),
    }
}

async fn new_organization(
    store: &Store,
    settings: OrgSettings,
    scopes: &[Scope],
) -> (OrgId, String) {
    let organization = Organization {
        id: OrgId::new(),
        name: "Maple Street Motors".into(),
        settings,
        created_at: Clock::default().now(),
    };
    let mut tx = store.begin().await.unwrap();
    organizations::insert(&mut tx, &organization).await.unwrap();
    tx.commit().await.unwrap();
    let key = new_key(store, &organization.id, scopes, 100).await;
    (organization.id, key)
}

async fn new_key(store: &Store, org: &OrgId, scopes: &[Scope], rpm: i64) -> String {
    let key = ApiKey::generate();
    let record = ApiKeyRecord {
        id: KeyId::new(),
        org: org.clone(),
        name: None,
        scopes: scopes.to_vec(),
        rate_limit_rpm: rpm,
        owner_email: Some("vault@maple.example".into()),
        active: true,
        last_used_at: None,
        revision: 0,
    };
    let mut tx = store.begin().await.unwrap();
    api_keys::insert(&mut tx, &record, &key.hash(), Clock::default().now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    key.reveal().to_owned()
}
