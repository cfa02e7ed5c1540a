//! A witness of the logs of others (C2SP `tlog-witness`), on a listener of its own.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::error::HttpError;
use super::listener;
use holdfast_base::config::HttpSettings;
use holdfast_base::metrics::ConnectionMetrics;
use holdfast_domain::log_witness::SIZE_TYPE;
use holdfast_platform::ServiceError;
use holdfast_platform::log::witness::{LogWitness, WitnessRefusal};
use holdfast_store::StoreError;

/// Largest request, in bytes: a proof of 63 hashes, and a checkpoint with the lines of many keys.
const LIMIT: usize = 16 * 1024;

/// Returns the routes of a witness.
pub fn router(witness: Arc<LogWitness>) -> Router {
    Router::new()
        .route("/add-checkpoint", post(add_checkpoint))
        .route("/logs/{id}/checkpoint", get(checkpoint))
        .layer(DefaultBodyLimit::max(LIMIT))
        .with_state(witness)
}

/// Serves a witness until `stop` is cancelled.
pub async fn serve(
    listener: TcpListener,
    witness: Arc<LogWitness>,
    settings: HttpSettings,
    stop: CancellationToken,
) {
    let metrics = ConnectionMetrics::default();
    listener::serve(listener, router(witness), settings, metrics, stop).await;
}

/// Cosigns a head. Statuses and content types are those of the specification.
async fn add_checkpoint(State(witness): State<Arc<LogWitness>>, body: String) -> Response {
    let refusal = match witness.add_checkpoint(&body).await {
        Ok(line) => return line.into_response(),
        Err(refusal) => refusal,
    };

    let why = format!("{refusal}\n");
    let status = match refusal {
        WitnessRefusal::Malformed(_) => StatusCode::BAD_REQUEST,
        WitnessRefusal::UnknownLog => StatusCode::NOT_FOUND,
        WitnessRefusal::Unsigned => StatusCode::FORBIDDEN,
        WitnessRefusal::Inconsistent => StatusCode::UNPROCESSABLE_ENTITY,
        WitnessRefusal::OtherSize(size) => {
            let kind = [(header::CONTENT_TYPE, SIZE_TYPE)];
            return (StatusCode::CONFLICT, kind, format!("{size}\n")).into_response();
        }
        WitnessRefusal::Store(error) => return failed(error),
    };
    (status, why).into_response()
}

/// Serves the newest cosigned head of a log, for the log itself and its monitors.
async fn checkpoint(State(witness): State<Arc<LogWitness>>, Path(id): Path<String>) -> Response {
    match witness.head(&id).await {
        Ok(Some(note)) => ([(header::CACHE_CONTROL, "no-cache")], note).into_response(),
        Ok(None) => (StatusCode::NOT_FOUND, "no such log\n").into_response(),
        Err(error) => failed(error),
    }
}

/// Answers for a database that failed.
fn failed(error: StoreError) -> Response {
    tracing::error!(%error, "witness could not use its database");
    HttpError::from(ServiceError::from(error)).into_response()
}
