//! Starts services, and further nodes on the same stores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use holdfast::config::{Config, HttpSettings};
use holdfast::delivery::guard::DnsLookup;
use holdfast::domain::id::OrgId;
use holdfast::domain::organization::{OrgSettings, Scope};
use holdfast::files::Files;
use holdfast::http::listener;
use holdfast::start::{self, App};
use holdfast::store::Store;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::tenants::new_organization;
use super::{TestApp, WorkerShutdown, faulty, postgres, s3};

/// Lets all tests share one cache of native code. Cached code carries a MAC, so its key is fixed.
pub fn share_native_code(data: &Path) {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-code");
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::create_dir_all(data.join("keys")).unwrap();
    std::fs::write(data.join("keys/master.key"), [7; 32]).unwrap();
    std::os::unix::fs::symlink(shared, data.join("native-code")).unwrap();
}

/// Settings file for the operator's tool, for nodes with another database or object store.
pub const SETTINGS: &str = "node.toml";

pub fn configuration(data: &TempDir) -> Config {
    let mut config = Config {
        data_dir: data.path().into(),
        ..Config::default()
    };

    // By default the running program compiles components; here that program is the test.
    config.components.compiler = Some(env!("CARGO_BIN_EXE_holdfast").into());

    // The compiler runs at the lowest priority, behind all other tests.
    config.components.compile_limit = Duration::from_secs(600);
    config
}

/// Puts a migrated database into the data folder. The tests share one, which they copy: the migrations take a fifth of
/// the time of a short test. Another build of this program makes its own.
async fn begin_with_schema(config: &Config) {
    let program = std::env::current_exe().unwrap().metadata().unwrap();
    let built = program.modified().unwrap();
    let built = built.duration_since(std::time::UNIX_EPOCH).unwrap();
    let built = built.as_nanos();
    let tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let shared = tests.join(format!("schema-{built}.db"));

    if !shared.exists() {
        let folder = tempfile::tempdir_in(tests).unwrap();
        let file = folder.path().join("holdfast.db");
        let url = format!("sqlite://{}", file.display());
        let store = Store::connect(&url).await.unwrap();
        store.migrate().await.unwrap();
        store.close().await;
        // Another test may have put its own there meanwhile.
        std::fs::rename(&file, &shared).unwrap();
    }
    std::fs::copy(shared, config.data_dir.join("holdfast.db")).unwrap();
}

/// Returns the number of nodes that serve each test. `make test-nodes` sets it and runs the
/// nodes on PostgreSQL and S3; otherwise it is one node on SQLite and a folder.
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
    /// Starts a service on SQLite that vaults completed envelopes automatically.
    pub async fn start() -> Self {
        Self::with(|_| {}, OrgSettings::default()).await
    }

    /// Starts a service on SQLite that vaults only on request.
    pub async fn without_auto_vault() -> Self {
        let settings = OrgSettings {
            auto_vault: false,
            ..OrgSettings::default()
        };
        Self::with(|_| {}, settings).await
    }

    /// Starts a service on a database of its own in PostgreSQL.
    pub async fn on_postgresql() -> Self {
        let database = postgres::new_database().await;
        let change = |config: &mut Config| config.database_url = Some(database);
        Self::with(change, OrgSettings::default()).await
    }

    pub async fn with(change: impl FnOnce(&mut Config), settings: OrgSettings) -> Self {
        let data = tempfile::tempdir().unwrap();
        share_native_code(data.path());
        let mut config = configuration(&data);
        let nodes = on_nodes(&mut config).await;
        change(&mut config);

        // A test that chose its own database or object store runs on a single node.
        let nodes = match config.database_url.as_deref() {
            Some(url) if url.starts_with("postgres") => nodes,
            _ => 1,
        };
        if config.database_url.is_none() {
            begin_with_schema(&config).await;
        }
        let files = start::open_files(&config).unwrap();
        let mut app = Self::over(data, config.clone(), files, settings).await;
        for _ in 1..nodes {
            app.join(config.clone()).await;
        }

        app
    }

    /// Adds a node with the same keys and outbox, which takes its share of the requests.
    async fn join(&mut self, mut config: Config) {
        let data = tempfile::tempdir_in(self.data.path()).unwrap().keep();
        for folder in ["keys", "outbox", "native-code"] {
            let shared = self.data.path().join(folder);
            std::fs::create_dir_all(&shared).unwrap();
            // Links make the nodes share these folders; everything else stays separate.
            std::os::unix::fs::symlink(shared, data.join(folder)).unwrap();
        }

        config.data_dir = data;
        let files = start::open_files(&config).unwrap();
        let app = start::start_with(config, files).await.unwrap();
        let stop = self._worker.0.clone();
        tokio::spawn(holdfast::server::work(app.clone(), stop));

        self.routers.push(holdfast::http::router(app));
    }

    pub fn router(&self) -> Router {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.routers[next % self.routers.len()].clone()
    }

    /// Starts a service on SQLite that listens on a socket and uses its address as public URL.
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

    /// Starts a service with an object folder that fails in one area in the way `fault` names.
    pub async fn faulty(
        fault: faulty::StorageFault,
        area: &'static str,
        settings: OrgSettings,
    ) -> (Self, Arc<faulty::FaultyStore>) {
        let data = tempfile::tempdir().unwrap();
        share_native_code(data.path());
        let config = configuration(&data);
        let store = faulty::FaultyStore::new(&data.path().join("objects"), fault, area);
        let files = Files::over(store.clone(), Duration::from_millis(500));
        let app = Self::over(data, config, files, settings).await;
        (app, store)
    }

    /// Starts a service that resolves the addresses of webhook receivers with `lookup`.
    pub async fn with_lookup(change: impl FnOnce(&mut Config), lookup: Arc<dyn DnsLookup>) -> Self {
        let data = tempfile::tempdir().unwrap();
        share_native_code(data.path());
        let mut config = configuration(&data);
        change(&mut config);
        let files = start::open_files(&config).unwrap();
        let store = start::open_store(&config).await.unwrap();

        let app = start::start_with_lookup(config, files, lookup)
            .await
            .unwrap();
        Self::running(data, store, app, OrgSettings::default()).await
    }

    async fn over(data: TempDir, config: Config, files: Files, settings: OrgSettings) -> Self {
        let store = start::open_store(&config).await.unwrap();
        let app = start::start_with(config, files).await.unwrap();
        Self::running(data, store, app, settings).await
    }

    async fn running(data: TempDir, store: Store, app: App, settings: OrgSettings) -> Self {
        // The test harness prints the service's log with a failed test.
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
            routers: vec![holdfast::http::router(app.clone())],
            service: app,
            next: AtomicUsize::new(0),
            store,
            org,
            key,
            root: data.clone(),
            data,
            admin: std::sync::OnceLock::new(),
            _worker: WorkerShutdown(stop),
        }
    }

    /// Stops the worker: jobs that are committed from now on stay undone.
    pub fn stop_working(&self) {
        self._worker.0.cancel();
    }

    /// Starts a second service on the same database and objects with its clock running ahead.
    /// The worker of the first service stops, so only the second one runs jobs.
    pub async fn as_of(&self, ahead: Duration) -> Self {
        self.as_of_with(ahead, |_| {}).await
    }

    /// Like [`TestApp::as_of`], with changed settings as well.
    pub async fn as_of_with(&self, ahead: Duration, change: impl FnOnce(&mut Config)) -> Self {
        self.stop_working();
        self.another_node(|config| {
            change(config);
            config.clock_offset = Some(ahead);
        })
        .await
    }

    /// Starts a second service on the same database and objects, next to this one.
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

    /// Serves the same router on another socket and returns its URL, `http://…`.
    pub async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = self.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    /// Returns the URL that the service listens at, `http://…`.
    pub fn url(&self) -> String {
        self.url.clone().expect("a service on a socket")
    }
}
