//! Errors as pages for people, instead of the JSON of the API.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use maud::html;

use super::console;
use super::page_frame::{EmbedMessage, PageLook, texts_for};
use crate::error::{ErrorCode, ErrorReasons};
use holdfast_adapters::texts::Texts;
use holdfast_domain::locale::Locale;
use holdfast_domain::token::LinkToken;
use holdfast_service::App;
use holdfast_service::signing::visits;

/// Path of the API. Its errors stay JSON for every client, apart from those of used-up downloads.
const API: &str = "/api/";
/// Path of download links, which people open, too.
const DOWNLOADS: &str = "/api/v2/downloads/";
/// Codes of actions that the sender does not offer on the signing form.
const NOT_OFFERED: [&str; 3] = [
    "decline_not_offered",
    "delegation_not_offered",
    "shared_device",
];

/// Replaces JSON errors with a page where a browser displays the response: below a signing link, and
/// for every request that asks for HTML outside the API.
pub async fn errors(State(app): State<App>, request: Request, next: Next) -> Response {
    // Read before the handler runs, which consumes the request.
    let shown = is_shown(&app, &request);
    let link = link_of(&app, request.uri().path());
    let of_console = app.config.console.enabled && is_of_console(request.uri().path());
    let is_start = request.uri().path() == "/";
    let is_download = request.uri().path().starts_with(DOWNLOADS);
    let texts = texts_for(request.headers(), Locale::default());
    let response = next.run(request).await;
    if !shown || !is_json(&response) {
        return response;
    }
    if is_start && response.status() == StatusCode::NOT_FOUND {
        return start(&app, texts);
    }

    let code = response.extensions().get::<ErrorCode>();
    let is_not_offered = code.is_some_and(|code| NOT_OFFERED.contains(&code.0));
    let words = if is_not_offered {
        Some(("error-not-offered-title", "error-not-offered"))
    } else if is_download {
        // The general sentences are about a signing link. That a file was changed is no change of its contract.
        let is_used = matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::GONE);
        is_used.then_some(("error-refused-title", "error-download"))
    } else {
        words(response.status())
    };
    let Some((title, text)) = words else {
        return response;
    };

    // Reasons are written for integrators. Users of the console get them, signers get a general sentence.
    let told = response.extensions().get::<ErrorReasons>();
    let told = told.filter(|_| of_console && is_told(response.status()));
    let (title, text) = match told {
        Some(ErrorReasons(reasons)) => (
            texts.text("console-not-done"),
            html! { @for reason in reasons { p lang="en" dir="ltr" { (reason) } } },
        ),
        // The general sentence is about the link of a mail, which these addresses are not.
        None if of_console && is_missing(response.status()) => {
            let text = texts.text("error-missing-address");
            (texts.text(title), html! { p { (text) } })
        }
        None => (texts.text(title), html! { p { (texts.text(text)) } }),
    };
    let text = html! {
        (text)
        @if of_console { p { a href=(console::PATH) { (texts.text("error-to-console")) } } }
    };

    let look = look_of(&app, link, texts).await;
    let error = Some(EmbedMessage::Error);
    let mut page = look.notice(response.status(), &title, error, text);
    // Clients wait for the time in this header, also when the body is a page.
    if let Some(after) = response.headers().get(header::RETRY_AFTER) {
        page.headers_mut()
            .insert(header::RETRY_AFTER, after.clone());
    }

    // The log line and the metrics read the error from the extensions.
    *page.extensions_mut() = response.extensions().clone();
    page
}

/// Whether a path is one of the console, and not one that only begins like it.
fn is_of_console(path: &str) -> bool {
    let rest = path.strip_prefix(console::PATH);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_missing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
    )
}

/// Returns the page of the bare address of the installation, which leads to the sign-in and the guides.
fn start(app: &App, texts: Texts) -> Response {
    // Strangers do not learn that there is a console with a listener of its own.
    let has_console = app.config.console.enabled && app.config.console.listen.is_none();
    let ways = html! {
        p { (texts.text("start-text")) }
        @if has_console { p { a href=(console::PATH) { (texts.text("error-to-console")) } } }
        p { a href="/docs" { (texts.text("error-to-guides")) } }
    };

    let title = texts.text("start-title");
    PageLook::plain(texts).notice(StatusCode::OK, &title, None, ways)
}

/// Returns whether a browser displays the answer, as opposed to a request of a script or an image.
fn is_shown(app: &App, request: &Request) -> bool {
    let path = request.uri().path();
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    let framed = path.starts_with(app.config.embed_path().as_str());
    let is_for_people = !path.starts_with(API) || path.starts_with(DOWNLOADS);
    if accept.contains("text/html") && !framed && is_for_people {
        return true;
    }

    // Below a signing link a person sees every answer, apart from those to the script and the
    // pictures. Some programs that open links name no type.
    let Some((_, rest)) = link_of(app, path) else {
        return false;
    };

    accept != "application/json" && !rest.starts_with("pages/")
}

/// Returns the signing link that a path begins with, and the rest of the path.
fn link_of(app: &App, path: &str) -> Option<(LinkToken, String)> {
    let below = path.strip_prefix(app.config.signing_path().as_str())?;
    let below = below.strip_prefix('/')?;
    let (token, rest) = below.split_once('/').unwrap_or((below, ""));
    Some((LinkToken::parse(token)?, rest.to_owned()))
}

/// Returns the look of the organization behind a link, as far as it is known.
async fn look_of(app: &App, link: Option<(LinkToken, String)>, texts: Texts) -> PageLook {
    let Some((token, _)) = link else {
        return PageLook::plain(texts);
    };

    // A guess that was refused must not reach the database here.
    if !app.access.accepted.contains(token.hash().as_str()) {
        return PageLook::plain(texts);
    }

    match visits::find(app, &token).await {
        Ok(Some(visitor)) => PageLook::of(visitor.organization, texts),
        // The database may be the reason for the error page, which must not fail a second time.
        _ => PageLook::plain(texts),
    }
}

/// Whether pages for people of an organization show the API's own reason.
fn is_told(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::FORBIDDEN
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
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
