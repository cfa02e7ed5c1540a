//! Embeddable widgets at `{embed_host}`.
//!
//! A widget's first page is static. Its script takes the token from the URL's fragment, which
//! browsers do not send to servers, and posts it as a form. Only the organization's own origins may
//! frame the response.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Form as FormBody, Router};
use maud::{Markup, html};
use serde::Deserialize;

use super::assets;
use super::look::{EmbedMessage, FramePolicy, PageLook, script_texts, texts_for};
use crate::domain::envelope::EnvelopeStatus;
use crate::domain::locale::Locale;
use crate::http::error::HttpError;
use crate::service::signing::embed::{self, OpenedEmbedToken, VaultRecord, Widget};
use crate::service::vault::downloads;
use crate::service::{App, ServiceError};
use crate::texts::Texts;

/// Returns the routes of the widgets, below `path`.
pub fn routes(path: &str) -> Router<App> {
    Router::new()
        .route(&format!("{path}/sign"), get(shell).post(sign))
        .route(&format!("{path}/vault"), get(shell).post(vault))
        .route(&format!("{path}/vault/copy"), axum::routing::post(copy))
        .route(&format!("{path}/embed.js"), get(element))
}

/// Serves the page that an iframe loads first.
async fn shell(headers: HeaderMap) -> Response {
    let texts = texts_for(&headers, Locale::default());
    let look = PageLook {
        framing: FramePolicy::Anybody,
        leads_away: true,
        ..PageLook::plain(texts)
    };
    let title = texts.text("embed-title");
    let body = html! {
        main.notice aria-busy="true" {
            h1 { (title) }
            p role="status" { (texts.text("embed-opening")) }
            noscript { p { (texts.text("embed-needs-script")) } }
            form method="post" hidden { input type="hidden" name="token"; }
        }
        (script_texts(texts, assets::EMBED))
    };
    look.page(StatusCode::OK, &title, None, "embed", body)
}

#[derive(Deserialize)]
struct TokenForm {
    token: String,
}

/// Redirects to the signing form with a fresh link.
async fn sign(
    State(app): State<App>,
    headers: HeaderMap,
    FormBody(form): FormBody<TokenForm>,
) -> Response {
    let link = async {
        match embed::open(&app, &app.access, &form.token, Widget::Sign).await? {
            Some(opened) => embed::signing_link(&app, &opened).await,
            None => Ok::<_, ServiceError>(None),
        }
    };
    match link.await {
        Ok(Some(url)) => Redirect::to(&url).into_response(),
        Ok(None) => refused(&headers),
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn refused(headers: &HeaderMap) -> Response {
    let texts = texts_for(headers, Locale::default());
    let look = PageLook {
        framing: FramePolicy::Anybody,
        ..PageLook::plain(texts)
    };
    let title = texts.text("embed-expired-title");
    let body = html! {
        main.notice {
            h1 { (title) }
            p { (texts.text("embed-expired")) }
        }
    };
    look.page(
        StatusCode::UNAUTHORIZED,
        &title,
        Some(EmbedMessage::Error),
        "embed",
        body,
    )
}

/// Shows the record of the authoritative copy.
async fn vault(
    State(app): State<App>,
    headers: HeaderMap,
    FormBody(form): FormBody<TokenForm>,
) -> Response {
    let shown = async {
        let Some(opened) = embed::open(&app, &app.access, &form.token, Widget::Vault).await? else {
            return Ok(refused(&headers));
        };
        let record = embed::record(&app, &app.management, &app.vault, &opened).await?;
        let texts = texts_for(&headers, record.organization.settings.language);
        Ok(vault_page(&app, &opened, record, &form.token, texts))
    };
    let shown: Result<Response, ServiceError> = shown.await;
    shown.unwrap_or_else(|error| HttpError::from(error).into_response())
}

fn vault_page(
    app: &App,
    opened: &OpenedEmbedToken,
    record: VaultRecord,
    token: &str,
    texts: Texts,
) -> Response {
    let dates = record.organization.settings.dates.clone();
    let none = texts.text("vault-none");
    let envelope = &opened.envelope;
    let path = app.config.embed_path();
    let mut look = PageLook::of(record.organization, String::new(), texts);
    // The logo and colour are served below a signing link, which this page does not have.
    look.brand.logo = None;
    look.brand.color = None;
    look.leads_away = true;

    let body = html! {
        header.top {
            (look.masthead())
            h1 { (envelope.name) }
            p { (envelope.id) }
        }
        main.vault {
            section.card aria-labelledby="copy" {
                h2 id="copy" { (texts.text("vault-copy-title")) }
                dl {
                    (entry(&texts.text("vault-status"), html! { (texts.text(standing(envelope.status))) }))
                    (entry("SHA-256", html! { code { (envelope.record.document_hash.as_deref().unwrap_or(&none)) } }))
                    (entry(&texts.text("vault-custodian"), html! { (record.custodian.as_deref().unwrap_or(&none)) }))
                    (entry(&texts.text("vault-secured-party"), html! {
                        (envelope.secured_party.as_ref().map_or(none.as_str(), |party| party.name.as_str()))
                    }))
                    @for signer in &record.signers {
                        (entry(&texts.text("vault-signed-by"), html! {
                            (texts.with("vault-signer", [("name", signer.name.as_str()), ("role", &signer.role)]))
                            @if let Some(at) = signer.completed_at {
                                " · " time datetime=(at) { (texts.exact_moment(&dates, at)) }
                            }
                        }))
                    }
                }
                @if envelope.record.copy.is_some() {
                    form method="post" action={ (path) "/vault/copy" } {
                        input type="hidden" name="token" value=(token);
                        button type="submit" { (texts.text("vault-download")) }
                    }
                }
            }
            section.card aria-labelledby="checks" {
                h2 id="checks" { (texts.with("vault-score", [("score", record.compliance.score)])) }
                ul.checks {
                    @for check in &record.compliance.checks {
                        li.satisfied[check.satisfied] {
                            span.sign aria-hidden="true" { (if check.satisfied { "✓" } else { "✗" }) }
                            span {
                                strong { (check.requirement) } " (" (check.ucc_reference) ")"
                                span.detail { (texts.text(if check.satisfied { "vault-satisfied" } else { "vault-not-satisfied" })) " " (check.detail) }
                            }
                        }
                    }
                }
            }
            section.card aria-labelledby="ledger" {
                h2 id="ledger" { (texts.text("vault-ledger")) }
                ol.ledger {
                    @for entry in &record.ledger.entries {
                        li {
                            time datetime=(entry.at) { (texts.exact_moment(&dates, entry.at)) } " "
                            strong { (entry.action) } " "
                            (texts.with("vault-by", [("actor", entry.actor.as_str())]))
                        }
                    }
                }
            }
        }
    };
    let (title, ready) = (&envelope.name, Some(EmbedMessage::Ready));
    look.page(StatusCode::OK, title, ready, "signing", body)
}

/// Returns the key of the status's text.
fn standing(status: EnvelopeStatus) -> &'static str {
    match status {
        EnvelopeStatus::Vaulted => "vault-in",
        EnvelopeStatus::VaultedOut => "vault-released",
        _ => "vault-not-in",
    }
}

fn entry(name: &str, value: Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

/// Redirects to the non-authoritative copy with a fresh link.
async fn copy(
    State(app): State<App>,
    headers: HeaderMap,
    FormBody(form): FormBody<TokenForm>,
) -> Response {
    let link = async {
        match embed::open(&app, &app.access, &form.token, Widget::Vault).await? {
            Some(opened) => {
                let id = opened.envelope.id.as_str();
                Ok(Some(downloads::copy(&app, &opened.caller(), id).await?))
            }
            None => Ok::<_, ServiceError>(None),
        }
    };
    match link.await {
        Ok(Some(link)) => Redirect::to(&link.url).into_response(),
        Ok(None) => refused(&headers),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Serves the custom elements for partners' pages. They accept messages only from the origins that
/// serve widgets.
async fn element(State(app): State<App>) -> Response {
    let urls = [app.config.embed_url(), app.config.signing_url()];
    let origins: Vec<String> = urls
        .iter()
        .filter_map(|url| Some(url::Url::parse(url).ok()?.origin().ascii_serialization()))
        .collect();
    let text = format!(
        "const ORIGINS = {};\n{}",
        serde_json::json!(origins),
        include_str!("assets/element.js")
    );
    let headers = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=3600"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    (headers, text).into_response()
}
