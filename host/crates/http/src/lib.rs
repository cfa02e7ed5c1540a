//! HTTP entry point: handlers of the API in `api`, pages for people in `pages`, and the layers
//! around both in `middleware`.
//!
//! | Files | Hold |
//! |---|---|
//! | `api/` | the REST API, a handler for each operation; `api/routes.rs` lists all operations |
//! | `pages/` | signing form, widgets, field builder, console and guides |
//! | `mcp/` | the operations of the API as tools for assistants |
//! | `middleware/` | credentials as argument types, bodies, limits, repeated requests |
//! | `openapi/`, `event_schemas.rs` | the OpenAPI document, made of the types that serve requests |
//! | `reply.rs`, `error.rs` | success answers; the only conversion of service errors to HTTP |
//! | `listener.rs`, `connections.rs`, `pace.rs`, `unread.rs` | connections and their time limits |
//! | `witness.rs` | a witness of the logs of others, on a listener of its own |
//! | `live.rs`, `far_end.rs` | server-sent events; a plugin's service for `holdfast dev` |
//!
//! [`router`] is the whole service. With listeners of their own, the console has [`console_router`] and the metrics
//! [`metrics_router`]. `host/src/server.rs` serves them.
//!
//! A handler extracts, calls one function of a service and wraps the result. Requests to the service and the console
//! pass `identify`, the outermost layer, which gives each an id, measures it and logs one line. No crate below this one
//! knows axum.

#![allow(
    clippy::result_large_err,
    reason = "the answer of a page is the error of what it calls, and is moved a few times for a request"
)]
#![allow(missing_docs, reason = "handlers are named by their routes")]

mod api;
mod connections;
pub(crate) mod error;
pub mod event_schemas;
pub mod far_end;
pub mod listener;
mod live;
mod mcp;
mod middleware;
mod openapi;
pub use openapi::sample_event;
mod pace;
mod pages;
mod qr;
mod reply;
mod routing;
mod unread;
pub mod witness;

use std::any::Any;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, MatchedPath, OriginalUri, Request, State};
use axum::http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header,
};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tracing::Instrument as _;
use tracing::field::Empty;

use api::{ledger, routes};
use error::HttpError;
use holdfast_base::config::RateLimitSettings;
use holdfast_base::metrics::{DiskLabels, RequestLabels};
use holdfast_base::traces;
use holdfast_domain::id::RequestId;
use holdfast_domain::token::LinkToken;
use holdfast_platform::access::rate_limit::RateAllowance;
use holdfast_platform::request_log::{self, BODY, ReceivedRequest};
use holdfast_service::{App, gauges};
use middleware::notes::SharedNotes;
use middleware::{bodies, downloads, limits, unknown};
use pages::{
    assets, brand, builder, console, control, docs, embed, error_pages, inspection, joining,
    open_links, payments, signing, verification,
};

/// Journeys of partners through the operations (Arazzo 1.1).
const JOURNEYS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/arazzo.json"
));

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Returns the router of the whole service.
pub fn router(app: App) -> Router {
    let mut document = openapi::head(&app.config.base_url(), &app.config.rate_limits);
    let api = routes::api().finish_api(&mut document);
    let buffered = (
        app.config.http.clone(),
        Arc::<bodies::BufferedBytes>::default(),
    );
    let queries = Arc::new(unknown::QueryParameterIndex::of(&document, API));
    let paths = Arc::new(unknown::PathIndex::of(&document));

    let logged = Arc::new(openapi::LoggedOperations::of(&document, API));
    let (base_url, limits) = (app.config.base_url(), app.config.rate_limits.clone());
    let document: SharedDocument = Arc::new(LazyLock::new(Box::new(move || {
        document_of(&base_url, &limits).to_string().into()
    })));
    let (served, referred) = (document.clone(), document.clone());
    let rehearsing = app.rehearsing();

    // For requests of the host's own: bodies are counted where they came from.
    let inner = |app: &App| {
        Router::new()
            .nest("/api/v2", api.clone())
            .layer(panics())
            .layer(from_fn_with_state(queries.clone(), unknown::note_query))
            .layer(from_fn_with_state((app.clone(), logged.clone()), identify))
            .with_state(app.clone())
    };

    // A router of its own for dry runs: its service refuses the first change of every transaction.
    let tools = mcp::routes(&app, document, inner(&app), inner(&rehearsing));
    let console = &app.config.console;
    let for_people = Router::new()
        .route(
            "/api/v2/openapi.json",
            get(move || async move {
                (
                    [(header::CONTENT_TYPE, "application/json")],
                    Bytes::clone(&served),
                )
            }),
        )
        .route(
            "/api/v2/arazzo.json",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], JOURNEYS) }),
        )
        .merge(docs::routes(referred))
        .merge(signing::routes(&app.config.signing_path()))
        .merge(payments::routes(&app.config.signing_path()))
        .merge(payments::sandbox_routes())
        .merge(embed::routes(&app.config.embed_path()))
        .merge(builder::routes())
        .merge(verification::routes())
        .merge(inspection::routes())
        .merge(control::routes())
        .merge(joining::routes())
        .merge(open_links::routes())
        // With a listener of its own, the console is reachable there only, for example in a private network.
        .merge(console::routes(console.enabled && console.listen.is_none()))
        .merge(assets::routes())
        .merge(brand::routes())
        .layer(CompressionLayer::new().compress_when(is_compressible));

    Router::new()
        .nest("/api/v2", api.merge(ledger::tiles()))
        .merge(for_people)
        .merge(tools)
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(local_metrics))
        .fallback(move |OriginalUri(uri): OriginalUri| async move {
            let text = match paths.meant(uri.path(), API) {
                Some(meant) => format!("Not found; did you mean {meant}?"),
                None => "Not found".to_owned(),
            };
            HttpError::new(StatusCode::NOT_FOUND, text)
        })
        .method_not_allowed_fallback(|| async {
            HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
        })
        // Later layers are outer ones: `identify` also sees panics and refused bodies.
        .layer(panics())
        .layer(from_fn_with_state(queries, unknown::note_query))
        .layer(from_fn_with_state(buffered, bodies::guard))
        .layer(from_fn_with_state(app.clone(), error_pages::errors))
        .layer(from_fn_with_state((app.clone(), logged), identify))
        .with_state(app)
}

/// Answers for a handler that panicked.
fn panics() -> CatchPanicLayer<fn(Box<dyn Any + Send>) -> Response> {
    CatchPanicLayer::custom(|_| HttpError::internal("a handler panicked").into_response())
}

/// Returns whether compressing a response for people makes it smaller. Those of the API are not compressed:
/// an answer that repeats a caller's text beside a secret would leak it by its length (BREACH).
fn is_compressible(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    // Events are sent one by one.
    let is_text = kind.starts_with("text/") && !kind.starts_with("text/event-stream");
    is_text || ["application/json", "font/ttf", "image/svg+xml"].contains(&kind)
}

/// The OpenAPI document, written when it is first needed: most starts are not followed by a request for it.
type SharedDocument = Arc<LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send + Sync>>>;

/// Returns the OpenAPI document that `router` serves, for `base_url`.
pub fn openapi_document(base_url: &str) -> serde_json::Value {
    document_of(base_url, &RateLimitSettings::default())
}

fn document_of(base_url: &str, limits: &RateLimitSettings) -> serde_json::Value {
    let mut document = openapi::head(base_url, limits);
    let _ = routes::api().finish_api(&mut document);
    openapi::finished(&document)
}

/// Outermost layer: gives every request an id and its notes, sends both in the answer, counts the
/// request and logs one line.
async fn identify(
    State((app, logged)): State<(App, Arc<openapi::LoggedOperations>)>,
    route: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    // The address is read before the handlers take the request's parts.
    let (parts, body) = request.into_parts();
    let address = limits::counted_address(&app, &parts);
    let mut request = Request::from_parts(parts, body);
    let id = RequestId::new();
    let started = std::time::Instant::now();
    let method = request.method().clone();
    let is_short = request
        .body()
        .size_hint()
        .upper()
        .is_some_and(|size| size <= BODY as u64);
    let path = logged_path(request.uri().path(), &app.config.signing_path());

    let notes = SharedNotes::default();
    request.extensions_mut().insert(notes.clone());
    // The route and not the path: ids in labels and span names would make a series for each envelope.
    let matched = route.as_ref().map_or("none", MatchedPath::as_str);
    let trace = traces::span!(
        "request",
        otel.name = format!("{} {matched}", known_method(&method)),
        otel.kind = "server",
        http.request.method = known_method(&method),
        http.route = matched,
        http.response.status_code = Empty,
        request_id = %id,
    );

    traces::go_on(&trace, traces::of_headers(request.headers()));
    let span = trace.in_scope(|| tracing::info_span!("request", request_id = %id));
    let answer = next.run(request).instrument(span.clone());
    let response = traces::within(trace.clone(), answer).await;
    // After the handler, because only the answer shows how large it is.
    let mut response = downloads::limit(&app, address.as_deref(), response);
    let status = response.status().as_u16();
    // Pages are not kept: their answers are documents and forms of signers.
    let is_kept = matched.starts_with(API) && !matched.starts_with(REQUEST_LOG);
    let org = notes.org.get().filter(|_| is_kept);
    let answer = match org {
        Some(_) => kept_answer(&mut response).await,
        None => None,
    };

    trace.record("http.response.status_code", status);
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }

    // No answer is to be taken for another type than it states, files least of all.
    let nosniff = HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    // By key, else by token, else by address.
    let by_address = || limits::allowance_of_address(&app, address.as_deref(), &response);
    if let Some(allowance) = notes.allowance().or_else(by_address) {
        say(&allowance, response.headers_mut());
    }

    let duration = started.elapsed();
    if let Some(org) = org {
        let received = ReceivedRequest {
            id: id.clone(),
            org: org.clone(),
            at: app.clock.now(),
            method: known_method(&method).into(),
            route: matched.to_owned(),
            path: path.clone(),
            status,
            credential: notes.credential.get().cloned(),
            duration,
            // Long bodies are left out: they wait in memory until the next batch is written.
            request: notes.json.get().filter(|body| body.len() <= BODY).cloned(),
            answer,
            logged: logged.bodies(known_method(&method), matched, status),
        };

        request_log::note(&app, received);
    }

    // Answers to long bodies and streams say more about the network than about this node.
    if is_short {
        app.pace.answered(known_method(&method), matched, duration);
    }

    let labels = RequestLabels {
        method: known_method(&method).into(),
        route: route.map_or_else(|| "none".into(), |route| route.as_str().to_owned()),
        status,
    };
    app.metrics.answered(labels, duration);
    if status == 429 {
        app.metrics.rate_limited.inc();
    }

    if response.extensions().get() == Some(&error::ErrorCode(error::DISK_FULL)) {
        app.metrics.disk_full.inc();
    }

    let duration_ms = duration.as_millis() as u64;
    let org = notes.org.get().map(|org| org.as_str());
    let credential = notes.credential.get().map(String::as_str);
    let cause = response.extensions().get::<error::FailureCause>();
    let cause = cause.map(|cause| cause.0.as_str());
    span.in_scope(|| {
        if status >= 500 {
            tracing::error!(%method, path, status, duration_ms, org, credential, cause, "request failed");
        } else {
            tracing::info!(%method, path, status, duration_ms, org, credential, cause, "request");
        }
    });

    if status == 429 {
        // After the log line, so that the delay does not count as processing time.
        limits::slow_down(&app, address).await;
    }

    response
}

/// Paths of the API.
const API: &str = "/api/v2";
/// Paths of the log of requests, which does not have itself.
const REQUEST_LOG: &str = "/api/v2/request-log";

/// Returns the body of a short JSON answer, which stays in it.
async fn kept_answer(response: &mut Response) -> Option<Bytes> {
    let kind = response.headers().get(header::CONTENT_TYPE)?;
    let is_json = kind.as_bytes().starts_with(b"application/json");
    let length = response.body().size_hint().exact()?;
    if !is_json || length > BODY as u64 {
        return None;
    }

    // Only bodies of a known length are taken, so a stream is never read to its end here.
    let body = mem::take(response.body_mut());
    let bytes = axum::body::to_bytes(body, BODY).await.ok()?;
    *response.body_mut() = Body::from(bytes.clone());

    Some(bytes)
}

/// Returns the method as a metric label. Clients may invent methods, so unknown ones share one
/// label.
fn known_method(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];

    if known.contains(method) {
        method.as_str()
    } else {
        "other"
    }
}

/// Sets the rate limit headers of the API contract; the reset is in epoch seconds.
fn say(allowance: &RateAllowance, headers: &mut header::HeaderMap) {
    headers.insert(RATE_LIMIT, allowance.limit.into());
    headers.insert(RATE_REMAINING, allowance.remaining.into());
    headers.insert(RATE_RESET, allowance.reset.as_seconds().into());
}

/// Returns the router of the console's own listener: its pages, and nothing else.
pub fn console_router(app: App) -> Router {
    let buffered = (
        app.config.http.clone(),
        Arc::<bodies::BufferedBytes>::default(),
    );
    Router::new()
        .merge(console::routes(app.config.console.enabled))
        .merge(assets::routes())
        .layer(CompressionLayer::new().compress_when(is_compressible))
        .fallback(|| async { HttpError::new(StatusCode::NOT_FOUND, "Not found") })
        .layer(panics())
        .layer(from_fn_with_state(buffered, bodies::guard))
        .layer(from_fn_with_state(app.clone(), error_pages::errors))
        .layer(from_fn_with_state(
            (app.clone(), Arc::<openapi::LoggedOperations>::default()),
            identify,
        ))
        .with_state(app)
}

/// Returns the router of the separate metrics listener.
pub fn metrics_router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .with_state(app)
}

/// Serves metrics on the main listener, to this machine only, unless there is a separate listener.
/// A forwarding header shows that a proxy passed on a remote request.
async fn local_metrics(State(app): State<App>, request: Request) -> Response {
    // A request without a peer comes from this process.
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let local = peer.is_none_or(|ConnectInfo(peer)| peer.ip().to_canonical().is_loopback());
    let passed_on = ["forwarded", "x-forwarded-for", "x-real-ip"]
        .iter()
        .any(|name| request.headers().contains_key(*name));
    // 404 and not 403, because the path does not exist for strangers.
    if app.config.metrics_listen.is_some() || !local || passed_on {
        return HttpError::new(StatusCode::NOT_FOUND, "Not found").into_response();
    }

    metrics(State(app)).await
}

async fn metrics(State(app): State<App>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    // A scrape during a database failure still gets the counters, which then matter most.
    if let Err(error) = gauges::update(&app, &app.seen).await {
        tracing::warn!(%error, "job gauges could not be updated");
    }

    for (name, folder) in holdfast_service::doctor::folders(&app) {
        let labels = DiskLabels {
            folder: name.into(),
        };
        if let Ok(free) = holdfast_base::disk::free(&folder) {
            let gauge = app.metrics.disk_free.get_or_create(&labels);
            gauge.set(i64::try_from(free).unwrap_or(i64::MAX));
        }
    }

    match app.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => HttpError::internal(error.to_string()).into_response(),
    }
}

/// Returns the path without the credential that a link carries, for the log.
fn logged_path(path: &str, signing_path: &str) -> String {
    let carrying = [
        "/api/v2/downloads",
        verification::PATH,
        inspection::PATH,
        control::PATH,
        joining::PATH,
        open_links::PATH,
        console::ENTRANCE,
        signing_path,
    ];

    for before in carrying {
        // Also cuts text that is not a valid token: it may be a mistyped one.
        let below = |rest: &str| rest.starts_with('/') && rest.len() > 1;
        if !before.is_empty() && path.strip_prefix(before).is_some_and(below) {
            return format!("{before}/…");
        }

        // With an empty signing path every path begins with it, so only a valid token marks a link.
        let rest = path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_prefix('/'));
        // Links of readers and for drawings have a word before the token.
        let mut segments = rest.unwrap_or_default().split('/').take(2);
        if segments.any(|segment| LinkToken::parse(segment).is_some()) {
            return format!("{before}/…");
        }
    }

    path.to_owned()
}

/// Reports whether this node can do its work.
async fn ready(State(app): State<App>) -> Response {
    let checks = holdfast_service::doctor::readiness(&app).await;
    let ready = checks.iter().all(|check| check.ok);
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };

    // Details are for the log and the operator's `doctor` command.
    let names: serde_json::Map<String, serde_json::Value> = checks
        .into_iter()
        .map(|check| (check.name.into(), check.ok.into()))
        .collect();
    (
        status,
        axum::Json(serde_json::json!({ "ready": ready, "checks": names })),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_link_paths_are_not_logged() {
        let token = LinkToken::generate(5);
        let token = token.reveal();
        assert_eq!(
            logged_path(&format!("/sign/{token}/pages/1.png"), "/sign"),
            "/sign/…"
        );
        assert_eq!(logged_path(&format!("/{token}"), ""), "/…");
        assert_eq!(logged_path(&format!("/draw/{token}"), ""), "/…");
        assert_eq!(
            logged_path(&format!("/api/v2/downloads/{token}"), "/sign"),
            "/api/v2/downloads/…"
        );
        assert_eq!(
            logged_path("/verify/org_1/env_1/0123456789abcdef", "/sign"),
            "/verify/…"
        );

        assert_eq!(
            logged_path("/inspect/viw_1/c2VjcmV0/pages/1.png", "/sign"),
            "/inspect/…"
        );
        assert_eq!(
            logged_path("/console/enter/sin_1/c2VjcmV0", "/sign"),
            "/console/enter/…"
        );
        assert_eq!(
            logged_path("/console/envelopes", "/sign"),
            "/console/envelopes"
        );
        assert_eq!(logged_path("/healthz", ""), "/healthz");
        assert_eq!(logged_path(&format!("/sign/{token}."), "/sign"), "/sign/…");
    }
}
