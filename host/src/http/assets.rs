//! Files that pages refer to.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

pub fn routes() -> Router<App> {
    Router::new()
        .route(
            "/assets/signing.css",
            get(|| async { style(include_str!("assets/signing.css")) }),
        )
        .route(
            "/assets/signing.js",
            get(|| async { script(include_str!("assets/signing.js")) }),
        )
        .route(
            "/assets/embed.css",
            get(|| async { style(include_str!("assets/signing.css")) }),
        )
        .route(
            "/assets/embed.js",
            get(|| async { script(include_str!("assets/embed.js")) }),
        )
        .route(
            "/assets/docs.css",
            get(|| async { style(include_str!("assets/docs.css")) }),
        )
}

fn style(text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=3600"),
    ];
    (headers, text).into_response()
}

fn script(text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=3600"),
    ];
    (headers, text).into_response()
}
