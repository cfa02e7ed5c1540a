//! The only code that knows axum: every surface side by side.

mod callbacks;
mod caller;
mod downloads;
mod error;
mod extract;
mod partner;
mod reply;
mod signing;
mod web;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

use crate::app::App;
use crate::domain::id::RequestId;
use crate::domain::token::LinkToken;
use error::HttpError;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Everything that is served.
pub fn router(app: App) -> Router {
    Router::new()
        .nest("/api/v2", api())
        .merge(signing::routes(&app.config.signing_path()))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .fallback(|| async { HttpError::new(StatusCode::NOT_FOUND, "Not found") })
        .method_not_allowed_fallback(|| async {
            HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
        })
        .layer(CatchPanicLayer::custom(
            |_: Box<dyn std::any::Any + Send>| {
                HttpError::internal("a handler panicked").into_response()
            },
        ))
        .layer(from_fn_with_state(app.clone(), identify))
        .with_state(app)
}

/// In the order of the specification, grouped by who calls.
fn api() -> Router<App> {
    Router::new()
        // Envelopes (partner).
        .route(
            "/partner/envelopes",
            get(partner::envelopes::list).post(partner::envelopes::create),
        )
        .route("/partner/envelopes/{id}", get(partner::envelopes::read))
        .route(
            "/partner/envelopes/{id}/status",
            get(partner::envelopes::status),
        )
        .route(
            "/partner/envelopes/{id}/upload",
            post(partner::envelopes::upload),
        )
        .route(
            "/partner/envelopes/{id}/void",
            post(partner::envelopes::void),
        )
        .route(
            "/partner/envelopes/{id}/signing-links",
            get(partner::envelopes::signing_links),
        )
        // Vault (partner).
        .route(
            "/partner/envelopes/{id}/vault-in-signed",
            post(partner::vault::vault_in_signed),
        )
        .route(
            "/partner/envelopes/{id}/vault-in-upload",
            post(partner::vault::vault_in_upload),
        )
        .route(
            "/partner/envelopes/{id}/vault/signed-url",
            get(partner::vault::signed_url),
        )
        .route(
            "/partner/envelopes/{id}/vault/copy/signed-url",
            get(partner::vault::copy_signed_url),
        )
        .route(
            "/partner/envelopes/{id}/vault/certificate",
            get(partner::vault::certificate),
        )
        .route(
            "/partner/envelopes/{id}/compliance",
            get(partner::vault::compliance),
        )
        .route(
            "/partner/envelopes/{id}/custody",
            get(partner::vault::custody),
        )
        .route(
            "/partner/envelopes/{id}/vault-out",
            post(partner::vault::vault_out),
        )
        // Templates (partner).
        .route("/partner/templates", post(partner::templates::create))
        .route(
            "/partner/templates/{id}/fields",
            post(partner::templates::add_fields),
        )
        // Web app.
        .route("/envelopes/{id}/bundle", get(web::bundle))
        // Providers.
        .route("/callbacks/signing/{instance}", post(callbacks::signing))
        // Whoever holds a link.
        .route("/downloads/{token}", get(downloads::download))
}

/// Gives every request an id, says it in every answer and logs one line.
async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = RequestId::new();
    let started = std::time::Instant::now();
    let method = request.method().clone();
    let path = logged_path(request.uri().path(), &app.config.signing_path());
    request.extensions_mut().insert(id.clone());
    let span = tracing::info_span!("request", request_id = %id);
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let status = response.status().as_u16();
    let duration_ms = started.elapsed().as_millis() as u64;
    let org = response
        .extensions()
        .get::<caller::OrgLabel>()
        .map(|label| label.0.to_string());
    let cause = response
        .extensions()
        .get::<error::Cause>()
        .map(|cause| cause.0.clone());
    let _entered = span.enter();
    if status >= 500 {
        tracing::error!(%method, path, status, duration_ms, org, cause, "request failed");
    } else {
        tracing::info!(%method, path, status, duration_ms, org, cause, "request");
    }
    response
}

/// Links carry their credential in the path: it is not for the log.
fn logged_path(path: &str, signing_path: &str) -> String {
    for before in ["/api/v2/downloads", signing_path] {
        let token = path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_prefix('/'));
        let token = token
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_default();
        if LinkToken::parse(token).is_some() {
            return format!("{before}/…");
        }
    }
    path.to_owned()
}

/// Whether this node can do its work.
async fn ready(State(app): State<App>) -> Response {
    let checks = crate::doctor::checks(&app).await;
    let ready = checks.iter().all(|check| check.ok);
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    // What is wrong in detail is for the log and the operator's tool.
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
    fn a_link_is_not_logged() {
        let token = LinkToken::generate(5);
        let token = token.reveal();
        assert_eq!(
            logged_path(&format!("/sign/{token}/pages/1.png"), "/sign"),
            "/sign/…"
        );
        assert_eq!(logged_path(&format!("/{token}"), ""), "/…");
        assert_eq!(
            logged_path(&format!("/api/v2/downloads/{token}"), "/sign"),
            "/api/v2/downloads/…"
        );
        assert_eq!(logged_path("/healthz", ""), "/healthz");
    }
}
