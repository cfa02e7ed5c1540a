//! A plugin's service, played from its script, for work on the plugin (`holdfast dev`).

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::net::TcpListener;

use holdfast_components::script::PlayedFarEnd;

/// Largest request: a document in base64.
const MOST: usize = 80 * 1024 * 1024;

/// Serves until the process ends. Each request is a line on standard error.
pub async fn serve(listener: TcpListener, played: Arc<PlayedFarEnd>) {
    let router = Router::new().fallback(answer).with_state(played);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the service of far-end.json ended");
    }
}

async fn answer(State(played): State<Arc<PlayedFarEnd>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MOST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };

    let asked = format!("{} {}", parts.method, parts.uri);
    match played.answer(parts.method.as_str(), &parts.uri.to_string(), &body) {
        Some((call, response)) => {
            eprintln!("far end: {asked} -> {} ({call})", response.status());
            response.map(Body::from)
        }
        // The author of the plugin sees the missing exchange on the terminal and in the plugin's error.
        None => {
            eprintln!("far end: {asked} -> 404, far-end.json has no exchange for it");
            let error =
                serde_json::json!({ "error": format!("far-end.json has no exchange for {asked}") });
            (StatusCode::NOT_FOUND, axum::Json(error)).into_response()
        }
    }
}
