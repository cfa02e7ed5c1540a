//! Errors as pages for people, instead of the JSON of the API.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use maud::html;

use super::look::{EmbedMessage, PageLook, texts_for};
use crate::domain::locale::Locale;
use crate::domain::token::LinkToken;
use crate::service::App;

/// Path of the API. Its errors stay JSON for every client.
const API: &str = "/api/";

/// Replaces JSON errors with a page where a browser displays the response: below a signing link, and
/// for every request that asks for HTML outside the API.
pub async fn errors(State(app): State<App>, request: Request, next: Next) -> Response {
    let shown = is_shown(&app, &request);
    let texts = texts_for(request.headers(), Locale::default());
    let response = next.run(request).await;
    if !shown || !is_json(&response) {
        return response;
    }
    let Some((title, text)) = words(response.status()) else {
        return response;
    };
    let (title, text) = (texts.text(title), html! { p { (texts.text(text)) } });
    let error = Some(EmbedMessage::Error);
    let mut page = PageLook::plain(texts).notice(response.status(), &title, error, text);
    if let Some(after) = response.headers().get(header::RETRY_AFTER) {
        page.headers_mut()
            .insert(header::RETRY_AFTER, after.clone());
    }
    // The log line and the metrics read the error from the extensions.
    *page.extensions_mut() = response.extensions().clone();
    page
}

/// Returns whether a browser displays the answer, as opposed to a request of a script or an image.
fn is_shown(app: &App, request: &Request) -> bool {
    let path = request.uri().path();
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    let framed = path.starts_with(app.config.embed_path().as_str());
    if accept.contains("text/html") && !framed && !path.starts_with(API) {
        return true;
    }
    let below = path
        .strip_prefix(app.config.signing_path().as_str())
        .and_then(|rest| rest.strip_prefix('/'));
    let Some((token, rest)) = below.map(|below| below.split_once('/').unwrap_or((below, "")))
    else {
        return false;
    };
    LinkToken::parse(token).is_some() && accept != "application/json" && !rest.starts_with("pages/")
}

fn is_json(response: &Response) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

/// Returns the keys of title and text.
fn words(status: StatusCode) -> Option<(&'static str, &'static str)> {
    Some(match status {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            ("error-missing-title", "error-missing")
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::GONE => {
            ("error-refused-title", "error-refused")
        }
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
            ("error-changed-title", "error-changed")
        }
        StatusCode::BAD_REQUEST => ("error-incomplete-title", "error-incomplete"),
        StatusCode::TOO_MANY_REQUESTS => ("error-busy-title", "error-busy"),
        StatusCode::PAYLOAD_TOO_LARGE => ("error-large-title", "error-large"),
        StatusCode::REQUEST_TIMEOUT => ("error-slow-title", "error-slow"),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => {
            ("error-unavailable-title", "error-unavailable")
        }
        status if status.is_server_error() => ("error-failed-title", "error-failed"),
        _ => return None,
    })
}
