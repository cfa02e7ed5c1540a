//! Embeddable widgets at `{embed_host}`.
//!
//! A widget's first page is static. Its script takes the token from the URL's fragment, which
//! browsers do not send to servers, and posts it as a form. Only the organization's own origins may
//! frame the response.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Form as FormBody, Router};
use maud::{Markup, html};
use serde::Deserialize;

use super::assets;
use super::page_frame::{EmbedMessage, FramePolicy, PageLook, script_texts, texts_for};
use super::record::{details, entry, record_parts, time_of};
use crate::error::HttpError;
use crate::routing::{boxed, get};
use holdfast_adapters::texts::Texts;
use holdfast_domain::envelope::EnvelopeStatus;
use holdfast_domain::event::EventType;
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::Organization;
use holdfast_platform::ServiceError;
use holdfast_service::App;
use holdfast_service::signing::embed::{self, OpenedEmbedToken, Widget};
use holdfast_service::vault::downloads;
use holdfast_service::vault::overview::{self, RecordOverview};

/// Returns the routes of the widgets, below `path`.
pub fn routes(path: &str) -> Router<App> {
    Router::new()
        .route(&format!("{path}/sign"), get(shell).post(boxed(sign)))
        .route(&format!("{path}/vault"), get(shell).post(boxed(vault)))
        .route(&format!("{path}/vault/copy"), crate::routing::post(copy))
        .route(&format!("{path}/embed.js"), get(element))
}

/// Serves the page that an iframe loads first. It takes the token out of the fragment and posts it.
pub async fn shell(headers: HeaderMap) -> Response {
    let texts = texts_for(&headers, Locale::default());
    // The token is still in the fragment, so neither organization nor origins are known yet. The page
    // shows nothing private (decision 0021).
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

/// Form that the shell posts.
#[derive(Deserialize)]
pub struct TokenForm {
    pub token: String,
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
        // Also for a valid token of a user who is no longer a signer, for example after a correction.
        Ok(None) => expired(&app, &headers, &form.token).await,
        Err(error) => HttpError::from(error).into_response(),
    }
}

async fn expired(app: &App, headers: &HeaderMap, token: &str) -> Response {
    // The signature of an expired token still shows which organization issued it.
    match embed::issuer(app, &app.access, token).await {
        Ok(issuer) => refused(headers, issuer),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Page for an invalid or expired token, in the look of the organization that issued it.
pub fn refused(headers: &HeaderMap, issuer: Option<Organization>) -> Response {
    let language = issuer.as_ref().map(|issuer| issuer.settings.language);
    let texts = texts_for(headers, language.unwrap_or_default());
    let look = match issuer {
        Some(issuer) => PageLook::of(issuer, texts),
        None => PageLook::plain(texts),
    };
    // A page that may not be framed stays blank, and the embedding page would not learn of the error.
    let look = PageLook {
        framing: FramePolicy::Anybody,
        ..look
    };

    let title = texts.text("embed-expired-title");
    let body = html! {
        @if look.name.is_some() { header.top { (look.masthead()) } }
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
            return Ok(expired(&app, &headers, &form.token).await);
        };
        // The token was checked above. `overview::record` checks no access itself.
        let record = overview::record(&app, &app.management, &opened.envelope).await?;
        let texts = texts_for(&headers, record.organization.settings.language);
        Ok(vault_page(&app, &opened, record, &form.token, texts))
    };
    let shown: Result<Response, ServiceError> = shown.await;

    shown.unwrap_or_else(|error| HttpError::from(error).into_response())
}

fn vault_page(
    app: &App,
    opened: &OpenedEmbedToken,
    record: RecordOverview,
    token: &str,
    texts: Texts,
) -> Response {
    // The look takes the organization, and the page needs its form of dates afterwards.
    let dates = record.organization.settings.dates.clone();
    let envelope = &opened.envelope;
    let path = app.config.embed_path();
    let keeper = record.organization.display_name().to_owned();
    let mut look = PageLook::of(record.organization, texts);
    // The download posts to this page, which redirects to a link that may be on another host.
    look.leads_away = true;

    let body = html! {
        header.top {
            (look.masthead())
            h1 { (envelope.name) }
        }
        main.vault.record {
            section.card {
                (standing(texts, envelope.status, record.is_damaged, &keeper))
                dl {
                    @if let Some(at) = time_of(&record.history, EventType::VaultStored) {
                        (entry(&texts.text("vault-since"), html! { (texts.moment(&dates, at)) }))
                    }
                    @if let Some(at) = time_of(&record.history, EventType::VaultReleased) {
                        (entry(&texts.text("vault-over-since"), html! { (texts.moment(&dates, at)) }))
                    }
                    @if let Some(custodian) = &record.custodian {
                        (entry(&texts.text("vault-responsible"), html! { (custodian) }))
                    }
                    @if let Some(party) = &envelope.secured_party {
                        (entry(&texts.text("vault-kept-for"), html! { (party.name) }))
                    }
                }
                @if envelope.record.copy.is_some() {
                    form method="post" action={ (path) "/vault/copy" } {
                        input type="hidden" name="token" value=(token);
                        button type="submit" { (texts.text("vault-download")) }
                    }
                }
            }
            (record_parts(texts, &dates, &record.signers, &record.history))
            (details(texts, envelope, &record.compliance))
        }
    };

    let (title, ready) = (&envelope.name, Some(EmbedMessage::Ready));
    look.page(StatusCode::OK, title, ready, "signing", body)
}

fn standing(texts: Texts, status: EnvelopeStatus, is_damaged: bool, keeper: &str) -> Markup {
    let (title, text) = match status {
        // Before the status: a page must never call a damaged record safe.
        _ if is_damaged => ("vault-damaged-title", "vault-damaged"),
        EnvelopeStatus::Vaulted => ("vault-safe-title", "vault-safe"),
        EnvelopeStatus::VaultedOut => ("vault-handed-over-title", "vault-handed-over"),
        _ => ("vault-not-yet-title", "vault-not-yet"),
    };
    html! { h2 { (texts.text(title)) } p { (texts.with(text, [("keeper", keeper)])) } }
}

/// Redirects to the non-authoritative copy with a fresh link.
async fn copy(
    State(app): State<App>,
    headers: HeaderMap,
    FormBody(form): FormBody<TokenForm>,
) -> Response {
    // The page has no session. Its form sends the token again, which may have expired in the meantime.
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
        Ok(None) => expired(&app, &headers, &form.token).await,
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

    // Partners load the element as a module, for which browsers require CORS. Their pages name no
    // version, so an hour bounds how long an upgrade takes to reach them.
    let headers = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=3600"),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_called_safe_only_in_the_vault_and_unchanged() {
        let said = |status, is_damaged| {
            let words = standing(Texts::default(), status, is_damaged, "Maple");
            words.into_string()
        };
        for (status, words) in [
            (
                EnvelopeStatus::Vaulted,
                "<h2>Safe in the vault</h2><p>Maple keeps the authoritative copy here and checks it for changes \
                 regularly. Copies for the parties are marked as copies.</p>",
            ),
            (
                EnvelopeStatus::VaultedOut,
                "The authoritative copy has left this vault: it was handed over, or a paper original replaced it.",
            ),
            (
                EnvelopeStatus::Completed,
                "<h2>Not in the vault</h2><p>No authoritative copy of this document is in the vault.</p>",
            ),
        ] {
            let said = said(status, false);
            assert!(said.contains(words), "{said}");
        }

        let damaged = said(EnvelopeStatus::Vaulted, true);
        let words = "The last check found that what is stored of this record is not what was put into the vault. Ask Maple.";
        assert!(damaged.contains(words), "{damaged}");
    }
}
