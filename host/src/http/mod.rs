//! The only code that knows axum: every surface side by side.

mod assets;
mod builder;
mod callbacks;
mod caller;
mod components;
mod docs;
mod downloads;
mod embed;
pub(crate) mod error;
mod extract;
mod ledger;
mod look;
mod notes;
mod once;
mod openapi;
mod partner;
mod reply;
mod signing;
mod signing_files;
mod signing_page;
mod web;
mod webhooks;

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, patch_with, post_with};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

use crate::app::App;
use crate::domain::id::RequestId;
use crate::domain::token::LinkToken;
use crate::metrics::RequestLabels;
use crate::service::rate_limit::Allowance;
use error::HttpError;
use notes::SharedNotes;
use openapi::describe;
use partner::{customers, envelopes, templates, vault};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Everything that is served.
pub fn router(app: App) -> Router {
    let mut document = openapi::head(&app.config.base_url());
    let api = api().finish_api(&mut document);
    let document = Arc::new(serde_json::json!(document));
    let served = document.clone();
    let page = docs::page(&document);
    Router::new()
        .nest("/api/v2", api.merge(ledger::tiles()))
        .route(
            "/api/v2/openapi.json",
            get(move || async move { axum::Json(&*served).into_response() }),
        )
        .route("/docs", get(move || async move { page.into_response() }))
        .merge(signing::routes(&app.config.signing_path()))
        .merge(embed::routes(&app.config.embed_path()))
        .merge(builder::routes())
        .merge(assets::routes())
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
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

/// The OpenAPI document of what `router` serves below `base_url`.
pub fn openapi_document(base_url: &str) -> serde_json::Value {
    let mut document = openapi::head(base_url);
    let _ = api().finish_api(&mut document);
    serde_json::json!(document)
}

/// In the order of the specification, grouped by who calls. The errors named
/// here are those of the service; credentials, bodies and ids bring their own.
fn api() -> ApiRouter<App> {
    ApiRouter::new()
        // Envelopes (partner).
        .api_route(
            "/partner/envelopes",
            get_with(
                envelopes::list,
                describe("listEnvelopes", "List envelopes, newest first", &[]),
            )
            .post_with(
                envelopes::create,
                describe(
                    "createEnvelope",
                    "Create an envelope, and send it when it has a template",
                    &[404, 409, 502, 503],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}",
            get_with(
                envelopes::read,
                describe("getEnvelope", "Read an envelope", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/status",
            get_with(
                envelopes::status,
                describe("getEnvelopeStatus", "Where an envelope stands", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/upload",
            post_with(
                envelopes::upload,
                describe("uploadDocument", "Attach or replace the document", &[409]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/void",
            post_with(
                envelopes::void,
                describe("voidEnvelope", "Void an envelope", &[409, 502, 503]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/remind",
            post_with(
                envelopes::remind,
                describe(
                    "remindSigners",
                    "Mail a fresh link to who has not signed",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/signing-links",
            get_with(
                envelopes::signing_links,
                describe(
                    "getSigningLinks",
                    "A short-lived link for each signer",
                    &[409],
                ),
            ),
        )
        // Vault (partner).
        .api_route(
            "/partner/envelopes/{id}/vault-in-signed",
            post_with(
                vault::vault_in_signed,
                describe(
                    "vaultInSigned",
                    "Vault a signed envelope",
                    &[409, 422, 502, 503],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault-in-upload",
            post_with(
                vault::vault_in_upload,
                describe("vaultInUpload", "Vault an uploaded document", &[409, 422]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault/signed-url",
            get_with(
                vault::signed_url,
                describe(
                    "getAuthoritativeLink",
                    "A single-use link to the authoritative copy",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault/copy/signed-url",
            get_with(
                vault::copy_signed_url,
                describe(
                    "getCopyLink",
                    "A link to the non-authoritative copy",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault/certificate",
            get_with(
                vault::certificate,
                describe("getCertificate", "The compliance certificate", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/compliance",
            get_with(
                vault::compliance,
                describe("getCompliance", "Evaluate the eight checks now", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/custody",
            get_with(
                vault::custody,
                describe("getCustodyLedger", "The custody ledger", &[]),
            ),
        )
        .api_route(
            "/partner/envelopes/{id}/vault-out",
            post_with(
                vault::vault_out,
                describe(
                    "vaultOut",
                    "Release the authoritative copy for good",
                    &[409],
                ),
            ),
        )
        // Templates (partner).
        .api_route(
            "/partner/templates",
            post_with(
                templates::create,
                describe("createTemplate", "Make a template of a PDF", &[502, 503]),
            ),
        )
        .api_route(
            "/partner/templates/{id}/fields",
            post_with(
                templates::add_fields,
                describe(
                    "addTemplateFields",
                    "Add fields to a template",
                    &[409, 502, 503],
                ),
            ),
        )
        // Customers (partner).
        .api_route(
            "/partner/customers",
            get_with(
                customers::find,
                describe("findCustomer", "Find a customer by e-mail", &[404]),
            ),
        )
        .api_route(
            "/partner/customers/{id}/documents",
            post_with(
                customers::file_document,
                describe(
                    "fileCustomerDocument",
                    "File a document under a customer",
                    &[],
                ),
            ),
        )
        // Webhooks (partner, legacy).
        .api_route(
            "/partner/webhook",
            patch_with(
                webhooks::set_legacy,
                describe("setWebhook", "The key's own webhook endpoint", &[422]),
            ),
        )
        // Embed.
        .api_route(
            "/embed/token",
            post_with(
                embed::token,
                describe(
                    "issueEmbedToken",
                    "A token by which a page shows a widget of one envelope",
                    &[404, 409],
                ),
            ),
        )
        // Everybody.
        .api_route(
            "/ledger/head",
            get_with(
                ledger::head,
                describe(
                    "getLedgerHead",
                    "The signed head of the log of all custody ledgers",
                    &[404],
                ),
            ),
        )
        // Web app.
        .api_route(
            "/envelopes/{id}",
            get_with(
                web::envelope,
                describe("readEnvelope", "Read an envelope, as its organization", &[]),
            ),
        )
        .api_route(
            "/envelopes/{id}/bundle",
            get_with(
                web::bundle,
                describe(
                    "getBundle",
                    "The evidence bundle of a released envelope",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/envelopes/{id}/send",
            post_with(
                web::send,
                describe(
                    "sendEnvelope",
                    "Send an envelope that waits: a template, some or all of a package, several templates, or its own document",
                    &[409, 502, 503],
                ),
            ),
        )
        .api_route(
            "/envelopes/{id}/signing-links",
            get_with(
                web::signing_links,
                describe("readSigningLinks", "A short-lived link for each signer", &[409]),
            ),
        )
        .api_route(
            "/envelopes/{id}/vault-consent",
            post_with(
                web::vault_consent,
                describe(
                    "consentToVaulting",
                    "Accept that an envelope is vaulted unattended, or take it back",
                    &[409],
                ),
            ),
        )
        // Templates and packages.
        .api_route(
            "/templates",
            get_with(
                web::templates::list,
                describe("listTemplates", "List the template library, newest first", &[]),
            )
            .post_with(
                web::templates::create,
                describe(
                    "createLibraryTemplate",
                    "Make a template, with its PDF or without",
                    &[502, 503],
                ),
            ),
        )
        .api_route(
            "/templates/{id}",
            get_with(
                web::templates::read,
                describe("getTemplate", "Read a template", &[]),
            )
            .patch_with(
                web::templates::change,
                describe("changeTemplate", "Change what a template is called", &[409]),
            )
            .delete_with(
                web::templates::delete,
                describe(
                    "deleteTemplate",
                    "Delete a template; what was sent of it stays",
                    &[],
                ),
            ),
        )
        .api_route(
            "/document-packages",
            get_with(
                web::packages::list,
                describe("listPackages", "List packages, newest first", &[]),
            )
            .post_with(
                web::packages::create,
                describe("createPackage", "Put templates into a package", &[404, 409, 502, 503]),
            ),
        )
        .api_route(
            "/document-packages/{id}",
            get_with(
                web::packages::read,
                describe("getPackage", "Read a package", &[]),
            )
            .patch_with(
                web::packages::change,
                describe("changePackage", "Change a package", &[409, 502, 503]),
            ),
        )
        .api_route(
            "/esign/builder-session",
            post_with(
                web::builder_session,
                describe(
                    "startBuilderSession",
                    "A session of the field builder: for a template, an envelope's document or a batch's master",
                    &[404, 409, 502, 503],
                ),
            ),
        )
        // Customers (web app).
        .api_route(
            "/customers",
            get_with(
                web::customers::list,
                describe("listCustomers", "List customers, newest first", &[]),
            )
            .post_with(
                web::customers::create,
                describe("createCustomer", "Create a customer", &[409]),
            ),
        )
        .api_route(
            "/customers/{id}",
            get_with(
                web::customers::read,
                describe("getCustomer", "Read a customer", &[]),
            )
            .patch_with(
                web::customers::change,
                describe("changeCustomer", "Change a customer", &[409]),
            ),
        )
        // Bulk send.
        .api_route(
            "/bulk-send",
            get_with(
                web::bulk::list,
                describe("listBatches", "List bulk batches, newest first", &[]),
            )
            .post_with(
                web::bulk::create,
                describe("createBatch", "Set a bulk batch up", &[404, 409]),
            ),
        )
        .api_route(
            "/bulk-send/{id}",
            get_with(
                web::bulk::read,
                describe("getBatch", "A batch with its counts and items", &[]),
            )
            .patch_with(
                web::bulk::change,
                describe("changeBatch", "Change a batch before it is submitted", &[409]),
            )
            .delete_with(
                web::bulk::delete,
                describe("deleteBatch", "Delete a batch that was not submitted", &[409]),
            ),
        )
        .api_route(
            "/bulk-send/{id}/vault-consent",
            post_with(
                web::bulk::consent,
                describe(
                    "consentToBulkVaulting",
                    "Accept that a batch's envelopes are vaulted unattended, or take it back",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/bulk-send/{id}/items",
            post_with(
                web::bulk::set_clients,
                describe("setClients", "Set the clients of a batch", &[409]),
            ),
        )
        .api_route(
            "/bulk-send/{id}/submit",
            post_with(
                web::bulk::submit,
                describe("submitBatch", "Submit a batch", &[409, 422, 502, 503]),
            ),
        )
        .api_route(
            "/bulk-send/{id}/cancel",
            post_with(
                web::bulk::cancel,
                describe(
                    "cancelBatch",
                    "Cancel a running batch; what was sent stays",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/bulk-send/{id}/retry",
            post_with(
                web::bulk::retry,
                describe(
                    "retryBatch",
                    "Try the failed items of a batch again",
                    &[409, 503],
                ),
            ),
        )
        .api_route(
            "/bulk-send/{id}/events",
            get_with(
                web::bulk::events,
                describe(
                    "watchBatch",
                    "The progress of a batch as server-sent events",
                    &[503],
                ),
            ),
        )
        // Components.
        .api_route(
            "/components",
            get_with(
                components::list,
                describe(
                    "listComponents",
                    "List components: your own and the installation's, newest first",
                    &[],
                ),
            )
            .post_with(
                components::upload,
                describe(
                    "uploadComponent",
                    "Upload a component; it is admitted when it fits a world and passes its vectors",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/components/{id}",
            get_with(
                components::read,
                describe("getComponent", "What is known of a component", &[]),
            ),
        )
        .api_route(
            "/components/{id}/shadow",
            post_with(
                components::shadow,
                describe(
                    "shadowComponent",
                    "Ask the last records again, of this component and the active one; changes nothing",
                    &[],
                ),
            ),
        )
        .api_route(
            "/component-slots",
            get_with(
                components::slots,
                describe(
                    "listComponentSlots",
                    "The active component of every slot, and what was active before",
                    &[],
                ),
            ),
        )
        .api_route(
            "/component-slots/{slot}/activate",
            post_with(
                components::activate,
                describe(
                    "activateComponent",
                    "Put a component into a slot, now or at a time to come",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/component-slots/{slot}/rollback",
            post_with(
                components::roll_back,
                describe(
                    "rollBackComponent",
                    "Take an activation back: what was active before it is again",
                    &[409],
                ),
            ),
        )
        .api_route(
            "/component-slots/{slot}/shadow",
            get_with(
                components::live,
                describe(
                    "getLiveShadow",
                    "What a candidate says beside the active component",
                    &[],
                ),
            )
            .post_with(
                components::start_shadow,
                describe(
                    "startLiveShadow",
                    "Ask a candidate beside the active component, on real traffic",
                    &[],
                ),
            )
            .delete_with(
                components::stop_shadow,
                describe("stopLiveShadow", "End it; what it found stays", &[]),
            ),
        )
        .api_route(
            "/component-ledger",
            get_with(
                components::history,
                describe(
                    "getComponentLedger",
                    "Who decided what about components, when and why, as a hash chain",
                    &[],
                ),
            ),
        )
        .api_route(
            "/component-worlds",
            get_with(
                components::worlds,
                describe(
                    "listComponentWorlds",
                    "The WIT worlds that components can target",
                    &[],
                ),
            ),
        )
        // Webhooks.
        .api_route(
            "/webhooks/endpoints",
            get_with(
                webhooks::list,
                describe("listWebhookEndpoints", "List webhook endpoints", &[]),
            )
            .post_with(
                webhooks::create,
                describe(
                    "createWebhookEndpoint",
                    "Register a webhook endpoint; its secret is shown this once",
                    &[404],
                ),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}",
            patch_with(
                webhooks::change,
                describe("changeWebhookEndpoint", "Change a webhook endpoint", &[]),
            )
            .delete_with(
                webhooks::delete,
                describe(
                    "deleteWebhookEndpoint",
                    "Delete a webhook endpoint; its log stays",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}/rotate-secret",
            post_with(
                webhooks::rotate,
                describe(
                    "rotateWebhookSecret",
                    "A new secret; the one before signs for 48 hours more",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}/test",
            post_with(
                webhooks::test,
                describe("testWebhookEndpoint", "Send a webhook.test event", &[]),
            ),
        )
        .api_route(
            "/webhooks/endpoints/{id}/deliveries",
            get_with(
                webhooks::deliveries,
                describe(
                    "listWebhookDeliveries",
                    "The delivery log, newest first",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/deliveries/{id}",
            get_with(
                webhooks::delivery,
                describe(
                    "getWebhookDelivery",
                    "One delivery with its payload and attempts",
                    &[],
                ),
            ),
        )
        .api_route(
            "/webhooks/deliveries/{id}/redeliver",
            post_with(
                webhooks::redeliver,
                describe("redeliver", "Deliver the event again", &[409]),
            ),
        )
        .api_route(
            "/webhooks/events",
            get_with(
                webhooks::catalog,
                describe("listEventTypes", "The event catalog", &[]),
            ),
        )
        // Providers.
        .api_route(
            "/callbacks/signing/{instance}",
            post_with(
                callbacks::signing,
                describe(
                    "signingCallback",
                    "A signing provider's callback",
                    &[404, 502, 503],
                ),
            ),
        )
        // Whoever holds a link.
        .api_route(
            "/downloads/{token}",
            get_with(
                downloads::download,
                describe("download", "What a download link gives", &[404, 409, 410]),
            ),
        )
}

/// Gives every request an id and its notes; says both in the answer, counts it,
/// and logs one line.
async fn identify(
    State(app): State<App>,
    route: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = RequestId::new();
    let started = std::time::Instant::now();
    let method = request.method().clone();
    let path = logged_path(request.uri().path(), &app.config.signing_path());
    let notes = SharedNotes::default();
    request.extensions_mut().insert(notes.clone());
    let span = tracing::info_span!("request", request_id = %id);
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    if let Some(allowance) = notes.allowance() {
        say(&allowance, response.headers_mut());
    }
    let duration = started.elapsed();
    let status = response.status().as_u16();
    let labels = RequestLabels {
        method: known_method(&method).into(),
        route: route.map_or_else(|| "none".into(), |route| route.as_str().to_owned()),
        status,
    };
    app.metrics.answered(labels, duration);
    if status == 429 {
        app.metrics.rate_limited.inc();
    }
    let duration_ms = duration.as_millis() as u64;
    let org = notes.org.get().map(|org| org.as_str());
    let cause = response.extensions().get::<error::Cause>();
    let cause = cause.map(|cause| cause.0.as_str());
    let _entered = span.enter();
    if status >= 500 {
        tracing::error!(%method, path, status, duration_ms, org, cause, "request failed");
    } else {
        tracing::info!(%method, path, status, duration_ms, org, cause, "request");
    }
    response
}

/// A client may make up methods; a metric's labels may not grow with them.
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

/// The rate limit headers of the contract; the reset in epoch seconds.
fn say(allowance: &Allowance, headers: &mut header::HeaderMap) {
    headers.insert(RATE_LIMIT, allowance.limit.into());
    headers.insert(RATE_REMAINING, allowance.remaining.into());
    headers.insert(RATE_RESET, allowance.reset.as_seconds().into());
}

async fn metrics(State(app): State<App>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    if let Err(error) = crate::worker::update_gauges(&app).await {
        tracing::warn!(%error, "jobs could not be counted");
    }
    match app.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => HttpError::internal(error.to_string()).into_response(),
    }
}

/// Links carry their credential in the path: it is not for the log.
fn logged_path(path: &str, signing_path: &str) -> String {
    for before in ["/api/v2/downloads", signing_path] {
        // Not even what only looks like a token.
        let below = |rest: &str| rest.starts_with('/') && rest.len() > 1;
        if !before.is_empty() && path.strip_prefix(before).is_some_and(below) {
            return format!("{before}/…");
        }
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
    let checks = crate::doctor::readiness(&app).await;
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
        assert_eq!(logged_path(&format!("/sign/{token}."), "/sign"), "/sign/…");
    }
}
