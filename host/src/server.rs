//! Serving and working until told to stop.

use std::future::Future;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::{self, App};
use crate::files::FilesError;
use crate::service::{access, components};
use crate::store::idempotency;
use crate::{http, worker};

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
    /// The listener failed.
    #[error("serving failed: {0}")]
    Serve(std::io::Error),
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
    app.files
        .check()
        .await
        .map_err(|source| ServeError::Storage {
            place: app::storage_place(&app.config),
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
    let service = http::router(app.clone()).into_make_service_with_connect_info::<SocketAddr>();
    let until = {
        let stopping = stopping.clone();
        async move {
            stop.await;
            tracing::info!("stopping: finishing what is in hand");
            stopping.cancel();
        }
    };
    let served = axum::serve(listener, service)
        .with_graceful_shutdown(until)
        .await;
    stopping.cancel();
    if let Err(error) = worker.await {
        tracing::error!(%error, "the worker did not end well");
    }
    if let Err(error) = access::flush_key_usage(&app).await {
        tracing::error!(%error, "the last use of keys could not be noted");
    }
    app.store.close().await;
    served.map_err(ServeError::Serve)
}

/// Does the background work until told to stop: what `serve` does beside HTTP.
pub async fn work(app: App, stop: CancellationToken) {
    worker::run(app, stop).await;
}
