//! Static scripts and styles of pages.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::service::App;

/// The icon of browser tabs.
const ICON: &str = include_str!("assets/icon.svg");
const ICON_TYPE: &str = "image/svg+xml";

pub fn routes() -> Router<App> {
    let signing = include_str!("assets/signing.css");
    Router::new()
        .merge(style("signing", signing))
        .merge(script("signing", include_str!("assets/signing.js")))
        .merge(style("embed", signing))
        .merge(script("embed", include_str!("assets/embed.js")))
        .merge(style("payment", signing))
        .merge(script("payment", include_str!("assets/payment.js")))
        .merge(style(
            "builder",
            concat!(
                include_str!("assets/signing.css"),
                include_str!("assets/builder.css")
            ),
        ))
        .merge(script("builder", include_str!("assets/builder.js")))
        .merge(asset("/assets/icon.svg", ICON_TYPE, ICON))
        // Browsers request this path for pages that name no icon, such as a PDF.
        .merge(asset("/favicon.ico", ICON_TYPE, ICON))
}

fn style(name: &str, text: &'static str) -> Router<App> {
    asset(
        &format!("/assets/{name}.css"),
        "text/css; charset=utf-8",
        text,
    )
}

fn script(name: &str, text: &'static str) -> Router<App> {
    let kind = "text/javascript; charset=utf-8";
    asset(&format!("/assets/{name}.js"), kind, text)
}

fn asset(path: &str, content_type: &'static str, text: &'static str) -> Router<App> {
    let serve = move || async move {
        let headers = [
            (header::CONTENT_TYPE, content_type),
            (header::CACHE_CONTROL, "max-age=3600"),
        ];
        let answer: Response = (headers, text).into_response();
        answer
    };
    Router::new().route(path, get(serve))
}
