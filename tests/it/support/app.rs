//! Starting services, and more nodes over the same stores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use holdfast::config::{Config, HttpSettings};
use holdfast::delivery::guard::Lookup;
use holdfast::domain::id::OrgId;
use holdfast::domain::organization::{OrgSettings, Scope};
use holdfast::files::Files;
use holdfast::http::listener;
use holdfast::start::{self, App};
use holdfast::store::Store;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::tenants::new_organization;
use super::{TestApp, Worker, faulty, postgres, s3};

/// Native code is shared by all tests: the key that makes its MAC is fixed here.
pub fn share_native_code(data: &Path) {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-code");
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::create_dir_all(data.join("keys")).unwrap();
    std::fs::write(data.join("keys/master.key"), [7; 32]).unwrap();
    std::os::unix::fs::symlink(shared, data.join("native-code")).unwrap();
}

/// What the operator's tool is told of a node that keeps its things elsewhere.
pub const SETTINGS: &str = "node.toml";

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

    pub(super) fn router(&self) -> Router {
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

    /// The same service on a socket of its own; returns `http://…`.
    pub async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = self.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// Where it listens: `http://…`.
    pub fn url(&self) -> String {
        self.url.clone().expect("a service on a socket")
    }
}
