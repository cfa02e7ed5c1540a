//! Runs HTTP and background work until the process is stopped.

use std::fs::{File, OpenOptions, TryLockError};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::allocator;
use crate::start;
use crate::worker;
use holdfast_adapters::files::FilesError;
use holdfast_base::config::{Config, HttpSettings};
use holdfast_http as http;
use holdfast_platform::components::instance_log;
use holdfast_platform::{access, components, request_log};
use holdfast_service::App;
use holdfast_store::idempotency;

/// File descriptors reserved for the database, objects and providers.
const OWN_FILES: usize = 256;
/// Time limit for closing the database.
const CLOSING: Duration = Duration::from_secs(5);

/// Reason the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listen address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Configured address.
        address: SocketAddr,
        /// I/O error.
        source: std::io::Error,
    },
    /// Another server has this SQLite database.
    #[error(
        "another holdfast server uses the database {0}: limits and jobs would count twice. Several servers need PostgreSQL"
    )]
    SecondServer(String),
    /// The object store lacks what the vault needs.
    #[error("cannot use the object store {place}: {source}")]
    Storage {
        /// Its URL without user, password and query.
        place: String,
        /// Error of the object store.
        source: FilesError,
    },
}

/// Returns the path of an SQLite database.
pub(crate) fn sqlite_path(url: &str) -> Option<&str> {
    let path = url.strip_prefix("sqlite:")?;
    // SQLite URLs are written with and without slashes, and both name the same file.
    let path = path.strip_prefix("//").unwrap_or(path);
    Some(path.split_once('?').map_or(path, |(path, _)| path))
}

/// Locks an SQLite database for one server. Limits are counted in memory, and a node forgets what an earlier run left:
/// two servers would give each key twice its requests. None for a server of databases.
pub(crate) fn lock_database(config: &Config) -> Result<Option<File>, ServeError> {
    let url = config.database_url();
    let Some(path) = sqlite_path(&url) else {
        return Ok(None);
    };

    // Another name of the same file is the same database.
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    // A file of its own: a lock on the database itself would collide with those of SQLite.
    let file = format!("{}.server", real.display());
    let opened = OpenOptions::new().create(true).append(true).open(&file);
    let locked = opened.map(|lock| (lock.try_lock(), lock));
    match locked {
        Ok((Ok(()), lock)) => Ok(Some(lock)),
        Ok((Err(TryLockError::WouldBlock), _)) => Err(ServeError::SecondServer(path.to_owned())),
        // With a full disk the server still serves for reading.
        Ok((Err(TryLockError::Error(error)), _)) | Err(error) => {
            tracing::warn!(%error, file, "another server on this database would not be noticed");
            Ok(None)
        }
    }
}

/// Serves requests and does background work until `stop` resolves, then finishes the requests and
/// jobs in progress.
pub async fn serve(
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    allocator::give_memory_back();
    // Held until the end; the system lets go of it when the process is killed.
    let _only = lock_database(&app.config)?;
    let address = app.config.listen;
    // The port may be 0 in tests, so the log names the port that the system chose.
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })?;
    let address = listener.local_addr().unwrap_or(address);
    let console = match app
        .config
        .console
        .listen
        .filter(|_| app.config.console.enabled)
    {
        Some(address) => {
            let bound = TcpListener::bind(address).await;
            let bound = bound.map_err(|source| ServeError::Listen { address, source })?;
            tracing::info!("the console listens on {address}");
            Some(bound)
        }
        None => None,
    };

    // Before the storage check, so that metrics are available while a slow store is checked.
    serve_metrics(&app).await?;
    match app.files.check().await {
        // Records can still be read. The check failed before it wrote, so that nothing is known of
        // overwrites; each write states that it creates.
        Err(error) if error.is_full() => {
            tracing::error!(%error, "the disk of the object store is full, serving for reading");
        }
        checked => checked.map_err(|source| ServeError::Storage {
            place: start::storage_place(&app.config),
            source,
        })?,
    }

    // Must precede the first request, or it would release that request's own claim.
    if let Err(error) = idempotency::forget_claims(&app.store).await {
        tracing::error!(%error, "idempotency keys of an earlier run could not be released");
    }

    let stopping = app.stopping.clone();
    let worker = tokio::spawn(work(app.clone(), stopping.clone()));
    tracing::info!("listening on {address}");

    // Loading the large document components must not delay listening.
    let components = app.components.clone();
    std::thread::spawn(move || components.load_documents());
    // A failure does not stop the start: the components run from the binary, and only later replays need the
    // stored ones.
    let keeping = app.clone();
    tokio::spawn(async move {
        if let Err(error) = components::keep_defaults(&keeping).await {
            tracing::error!(%error, "built-in components could not be stored");
        }
    });

    let stops = stopping.clone();
    tokio::spawn(async move {
        stop.await;
        tracing::info!("stopping: finishing requests and jobs in progress");
        stops.cancel();
    });
    let settings = HttpSettings {
        // Beyond the limit of open files, accepting would fail and take the database's files along.
        connections: app.config.http.connections.min(connections_for_files()),
        ..app.config.http.clone()
    };

    let (router, metrics) = (http::router(app.clone()), app.metrics.connections.clone());
    let console = console.map(|listener| {
        let (router, settings) = (http::console_router(app.clone()), settings.clone());
        let (metrics, stopping) = (metrics.clone(), stopping.clone());
        tokio::spawn(http::listener::serve(
            listener, router, settings, metrics, stopping,
        ))
    });

    http::listener::serve(listener, router, settings, metrics, stopping).await;
    if let Some(console) = console
        && let Err(error) = console.await
    {
        tracing::error!(%error, "the console's listener failed");
    }

    // Jobs in progress are finished, too: a job that breaks off would wait for the end of its lease.
    if let Err(error) = worker.await {
        tracing::error!(%error, "worker task failed");
    }

    // These notes are kept in memory and written in batches. After the last request and job, nothing is added
    // any more.
    if let Err(error) = access::flush_key_usage(&app, &app.access).await {
        tracing::error!(%error, "last use of API keys could not be recorded");
    }

    if let Err(error) = request_log::flush(&app).await {
        tracing::error!(%error, "requests could not be stored");
    }

    if let Err(error) = instance_log::flush(&app).await {
        tracing::error!(%error, "logs of provider instances could not be stored");
    }

    if tokio::time::timeout(CLOSING, app.store.close())
        .await
        .is_err()
    {
        tracing::warn!("database did not close in time");
    }

    Ok(())
}

/// Raises the process's limit of open files to the allowed maximum; returns the number of
/// connections that leaves enough descriptors for everything else.
fn connections_for_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Systems often start programs with a soft limit of 1,024 and a much higher hard one.
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "limit of open files could not be raised");
            limit.current
        }
    };

    // `None` means unlimited.
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });

    // A very low limit still leaves a quarter for clients.
    files.saturating_sub(OWN_FILES).max(files / 4)
}

/// Serves metrics on their own address, if one is configured.
async fn serve_metrics(app: &App) -> Result<(), ServeError> {
    let Some(address) = app.config.metrics_listen else {
        return Ok(());
    };

    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })?;
    let stopping = app.stopping.clone().cancelled_owned();
    let served = axum::serve(listener, http::metrics_router(app.clone()));
    // The task is not awaited: a scraper that holds its connection must not delay the stop.
    tokio::spawn(async move { served.with_graceful_shutdown(stopping).await });

    Ok(())
}

/// Runs the background work that `serve` does beside HTTP, until `stop` is cancelled.
pub async fn work(app: App, stop: CancellationToken) {
    worker::run(app, stop).await;
}
