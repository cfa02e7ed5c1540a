//! Serving and working until told to stop.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::HttpSettings;
use crate::files::FilesError;
use crate::service::{App, access, components};
use crate::start;
use crate::store::idempotency;
use crate::{http, worker};

/// Files that are kept for everything but clients: database, objects, providers.
const OWN_FILES: usize = 256;
/// How long the database may take to close.
const CLOSING: Duration = Duration::from_secs(5);

/// Why the server stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The object store does not do what the vault needs.
    #[error("cannot use the object store {place}: {source}")]
    Storage {
        /// Its URL without user, password and query.
        place: String,
        /// Why not.
        source: FilesError,
    },
}

/// Serves and works until `stop` resolves, then finishes requests and jobs in hand.
pub async fn serve(
    app: App,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let address = app.config.listen;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })?;
    let address = listener.local_addr().unwrap_or(address);
    serve_metrics(&app).await?;
    app.files
        .check()
        .await
        .map_err(|source| ServeError::Storage {
            place: start::storage_place(&app.config),
            source,
        })?;
    // Before the first request, which could claim one of them again.
    if let Err(error) = idempotency::forget_claims(&app.store).await {
        tracing::error!(%error, "requests of an earlier run could not be given back");
    }
    let stopping = app.stopping.clone();
    let worker = tokio::spawn(work(app.clone(), stopping.clone()));
    tracing::info!("listening on {address}");
    // The large components do not delay the listening.
    let components = app.components.clone();
    std::thread::spawn(move || components.load_documents());
    let keeping = app.clone();
    tokio::spawn(async move {
        if let Err(error) = components::keep_defaults(&keeping).await {
            tracing::error!(%error, "the components of this binary could not be kept");
        }
    });
    let stops = stopping.clone();
    tokio::spawn(async move {
        stop.await;
        tracing::info!("stopping: finishing what is in hand");
        stops.cancel();
    });
    let settings = HttpSettings {
        connections: app.config.http.connections.min(connections_for_files()),
        ..app.config.http.clone()
    };
    let (router, metrics) = (http::router(app.clone()), app.metrics.connections.clone());
    http::listener::serve(listener, router, settings, metrics, stopping).await;
    if let Err(error) = worker.await {
        tracing::error!(%error, "the worker did not end well");
    }
    if let Err(error) = access::flush_key_usage(&app, &app.access).await {
        tracing::error!(%error, "the last use of keys could not be noted");
    }
    if tokio::time::timeout(CLOSING, app.store.close())
        .await
        .is_err()
    {
        tracing::warn!("the database did not close in time");
    }
    Ok(())
}

/// Raises the number of files that this process may open to what the system allows, and
/// returns how many connections leave enough of them for everything else.
fn connections_for_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            limit.current
        }
    };
    // None is no limit.
    let files = files.map_or(usize::MAX, |files| {
        usize::try_from(files).unwrap_or(usize::MAX)
    });
    files.saturating_sub(OWN_FILES).max(files / 4)
}

/// Serves metrics where they have a listener of their own.
async fn serve_metrics(app: &App) -> Result<(), ServeError> {
    let Some(address) = app.config.metrics_listen else {
        return Ok(());
    };
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })?;
    let stopping = app.stopping.clone().cancelled_owned();
    let served = axum::serve(listener, http::metrics_router(app.clone()));
    tokio::spawn(async move { served.with_graceful_shutdown(stopping).await });
    Ok(())
}

/// Does the background work until told to stop: what `serve` does beside HTTP.
pub async fn work(app: App, stop: CancellationToken) {
    worker::run(app, stop).await;
}
