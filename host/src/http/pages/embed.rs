//! Embeddable widgets at `{embed_host}`.
//!
//! A widget's first page is static. Its script takes the token from the URL's fragment, which
//! browsers do not send to servers, and posts it as a form. Only the organization's own origins may
//! frame the response.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Form as FormBody, Router};
use maud::{Markup, html};
use serde::Deserialize;

use super::look::{EmbedMessage, FramePolicy, PageLook};
use crate::domain::clock::Timestamp;
use crate::domain::envelope::{Envelope, EnvelopeStatus};
use crate::domain::event::EventType;
use crate::evidence::formats::CustodyLedger;
use crate::http::error::HttpError;
use crate::service::envelopes::compliance::ComplianceView;
use crate::service::signing::embed::{self, OpenedEmbedToken, VaultRecord, Widget};
use crate::service::vault::downloads;
use crate::service::vault::history::history;
use crate::service::{App, ServiceError};

/// Returns the routes of the widgets, below `path`.
pub fn routes(path: &str) -> Router<App> {
    Router::new()
        .route(&format!("{path}/sign"), get(shell).post(sign))
        .route(&format!("{path}/vault"), get(shell).post(vault))
        .route(&format!("{path}/vault/copy"), axum::routing::post(copy))
        .route(&format!("{path}/embed.js"), get(element))
}

/// Serves the page that an iframe loads first. It takes the token out of the fragment and posts it.
pub async fn shell() -> Response {
    let look = PageLook {
        framing: FramePolicy::Anybody,
        leads_away: true,
        ..PageLook::default()
    };
    let body = html! {
        main.notice aria-busy="true" {
            h1 { "One moment" }
            p role="status" { "Opening the document…" }
            noscript { p { "This page needs JavaScript." } }
            form method="post" hidden { input type="hidden" name="token"; }
        }
    };
    look.page(StatusCode::OK, "One moment", None, "embed", body)
}

/// Form that the shell posts.
#[derive(Deserialize)]
pub struct TokenForm {
    pub token: String,
}

/// Redirects to the signing form with a fresh link.
async fn sign(State(app): State<App>, FormBody(form): FormBody<TokenForm>) -> Response {
    let link = async {
        match embed::open(&app, &app.access, &form.token, Widget::Sign).await? {
            Some(opened) => embed::signing_link(&app, &opened).await,
            None => Ok::<_, ServiceError>(None),
        }
    };
    match link.await {
        Ok(Some(url)) => Redirect::to(&url).into_response(),
        Ok(None) => refused(),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Page for an invalid or expired token.
pub fn refused() -> Response {
    let look = PageLook {
        framing: FramePolicy::Anybody,
        ..PageLook::default()
    };
    let title = "This page has expired";
    let body = html! {
        main.notice {
            h1 { (title) }
            p { "Go back to the previous page and open it again." }
        }
    };
    look.page(
        StatusCode::UNAUTHORIZED,
        title,
        Some(EmbedMessage::Error),
        "embed",
        body,
    )
}

/// Shows the record of the authoritative copy.
async fn vault(State(app): State<App>, FormBody(form): FormBody<TokenForm>) -> Response {
    let shown = async {
        let Some(opened) = embed::open(&app, &app.access, &form.token, Widget::Vault).await? else {
            return Ok(refused());
        };
        let record = embed::record(&app, &app.management, &app.vault, &opened).await?;
        Ok(vault_page(&app, &opened, record, &form.token))
    };
    let shown: Result<Response, ServiceError> = shown.await;
    shown.unwrap_or_else(|error| HttpError::from(error).into_response())
}

fn vault_page(app: &App, opened: &OpenedEmbedToken, record: VaultRecord, token: &str) -> Response {
    let envelope = &opened.envelope;
    let path = app.config.embed_path();
    let dates = record.organization.settings.dates.clone();
    let keeper = record.organization.display_name().to_owned();
    let mut look = PageLook::of(record.organization);
    look.leads_away = true;

    let body = html! {
        header.top {
            (look.masthead())
            h1 { (envelope.name) }
        }
        main.vault.record {
            section.card {
                (standing(envelope.status, &keeper))
                dl {
                    @if let Some(at) = time_of(&record.ledger, EventType::VaultStored) {
                        (entry("In the vault since", html! { (dates.moment(at)) }))
                    }
                    @if let Some(at) = time_of(&record.ledger, EventType::VaultReleased) {
                        (entry("Handed over", html! { (dates.moment(at)) }))
                    }
                    @if let Some(custodian) = &record.custodian {
                        (entry("Responsible", html! { (custodian) }))
                    }
                    @if let Some(party) = &envelope.secured_party {
                        (entry("Kept for", html! { (party.name) }))
                    }
                }
                @if envelope.record.copy.is_some() {
                    form method="post" action={ (path) "/vault/copy" } {
                        input type="hidden" name="token" value=(token);
                        button type="submit" { "Download a copy" }
                    }
                }
            }
            section.card {
                h2 { "Who signed" }
                ul.people {
                    @for signer in &record.signers {
                        li {
                            strong { (signer.name) } " " span.soft { (signer.role) }
                            span.detail {
                                @match signer.completed_at {
                                    Some(at) => { "Signed " (dates.moment(at)) }
                                    None => "Has not signed",
                                }
                            }
                        }
                    }
                }
            }
            section.card {
                h2 { "What happened" }
                ol.ledger {
                    @for line in history(&record.ledger.entries) {
                        li { time { (dates.moment(line.at)) } span.detail { (line.text) } }
                    }
                }
            }
            (details(envelope, &record.compliance))
        }
    };
    let (title, ready) = (&envelope.name, Some(EmbedMessage::Ready));
    look.page(StatusCode::OK, title, ready, "signing", body)
}

fn standing(status: EnvelopeStatus, keeper: &str) -> Markup {
    let (title, text) = match status {
        EnvelopeStatus::Vaulted => (
            "Safe in the vault",
            format!(
                "{keeper} keeps the original here, unchanged since it was signed. There is only one: \
                 every copy says that it is a copy."
            ),
        ),
        EnvelopeStatus::VaultedOut => (
            "Handed over",
            "The original is with another custodian now. This page keeps its history.".to_owned(),
        ),
        _ => (
            "Not in the vault yet",
            "The original comes into the vault after everybody has signed.".to_owned(),
        ),
    };
    html! { h2 { (title) } p { (text) } }
}

/// Shows what experts compare: the hash of the original, and the checks of the law.
fn details(envelope: &Envelope, compliance: &ComplianceView) -> Markup {
    let checks = &compliance.checks;
    let passed = checks.iter().filter(|check| check.satisfied).count();
    html! {
        details.card {
            summary { "Details for experts" }
            dl {
                (entry("Record number", html! { (envelope.id) }))
                @if let Some(hash) = &envelope.record.document_hash {
                    (entry("SHA-256 of the original", html! { code { (hash) } }))
                }
            }
            h3 { (passed) " of " (checks.len()) " checks of UCC §9-105 are satisfied" }
            ul.checks {
                @for check in checks {
                    li.satisfied[check.satisfied] {
                        span.sign aria-hidden="true" { (if check.satisfied { "✓" } else { "✗" }) }
                        span {
                            strong { (check.requirement) } " (" (check.ucc_reference) ")"
                            span.detail { (if check.satisfied { "Satisfied. " } else { "Not satisfied. " }) (check.detail) }
                        }
                    }
                }
            }
        }
    }
}

fn time_of(ledger: &CustodyLedger, kind: EventType) -> Option<Timestamp> {
    let mut entries = ledger.entries.iter().rev();
    let entry = entries.find(|entry| entry.action == kind.as_str())?;
    Some(entry.at)
}

fn entry(name: &str, value: Markup) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

/// Redirects to the non-authoritative copy with a fresh link.
async fn copy(State(app): State<App>, FormBody(form): FormBody<TokenForm>) -> Response {
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
        Ok(None) => refused(),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Serves the custom elements for partners' pages. They accept messages only from the origins that
/// serve widgets.
async fn element(State(app): State<App>) -> Response {
    let urls = [
        app.config.embed_url(),
        app.config.signing_url(),
        app.config.public_url(),
    ];
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
