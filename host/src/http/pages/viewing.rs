//! Page for a recipient who reads the document and does not sign: `{signing_host}/view/{token}`.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{Markup, html};

use super::look::PageLook;
use super::signing_files::{PageQuery, saved, version_of};
use super::visit::{room_error, unknown_link};
use crate::components::rules::placement::PageFacts;
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use crate::domain::token::LinkToken;
use crate::http::error::HttpError;
use crate::http::middleware::limits;
use crate::room::shown::ShownDocument;
use crate::service::access::windows::LimitedCredential;
use crate::service::envelopes::parties::room_submission;
use crate::service::signing::visits::{self, LinkReader};
use crate::service::templates::pages;
use crate::service::vault::copies;
use crate::service::{App, ServiceError};

/// Returns the routes of the page, below the path of the signers' pages.
pub fn routes(path: &str) -> Router<App> {
    let below = |name: &str| format!("{path}/view/{{token}}{name}");
    Router::new()
        .route(&below(""), get(show))
        .route(&below("/pages/{page}"), get(page))
        .route(&below("/copy.pdf"), get(copy))
}

/// Request by a link for reading.
struct ReaderVisit {
    envelope: Envelope,
    signers: Vec<Signer>,
    look: PageLook,
    path: String,
}

impl FromRequestParts<App> for ReaderVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let segments = Path::<BTreeMap<String, String>>::from_request_parts(parts, app).await;
        let token = segments
            .ok()
            .and_then(|Path(segments)| LinkToken::parse(segments.get("token")?))
            .ok_or_else(unknown_link)?;
        limits::admit(app, LimitedCredential::SigningLink, token.reveal(), parts)
            .map_err(IntoResponse::into_response)?;
        let found = visits::find_reader(app, &token).await;
        let reader = found.map_err(|error| HttpError::from(error).into_response())?;
        let LinkReader {
            organization,
            envelope,
            signers,
        } = reader.ok_or_else(unknown_link)?;
        let path = format!("{}/view/{}", app.config.signing_path(), token.reveal());
        Ok(Self {
            look: PageLook::of(organization),
            path,
            envelope,
            signers,
        })
    }
}

impl ReaderVisit {
    /// Returns the document with the entries so far; none once it is closed without signatures.
    async fn document(&self, app: &App) -> Result<Option<ShownDocument>, ServiceError> {
        let status = self.envelope.status;
        if !status.is_out_for_signing() && !status.is_signed() {
            return Ok(None);
        }
        let Some(submission) = room_submission(&self.envelope) else {
            return Ok(None);
        };
        let shown = app.room().shown(&self.envelope.org, submission).await;
        shown.map(Some).map_err(room_error)
    }
}

async fn show(State(app): State<App>, visit: ReaderVisit) -> Response {
    let read = async {
        let Some(document) = visit.document(&app).await? else {
            return Ok(None);
        };
        let pages = pages::facts(&app, &app.pages, &document.file).await?;
        Ok::<_, ServiceError>(Some((document, pages)))
    };
    match read.await {
        Ok(Some((document, pages))) => {
            let body = body(&visit, &document, &pages);
            let name = &visit.envelope.name;
            visit.look.page(StatusCode::OK, name, None, "signing", body)
        }
        Ok(None) => closed(&visit),
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn closed(visit: &ReaderVisit) -> Response {
    let (title, text) = match visit.envelope.status {
        EnvelopeStatus::Voided => ("Withdrawn", "The sender has withdrawn this document."),
        EnvelopeStatus::Expired => (
            "Expired",
            "The time limit for signing this document has passed.",
        ),
        EnvelopeStatus::Declined => ("Declined", "A signer has declined this document."),
        _ => ("Nothing to read", "This document is not open."),
    };
    let text = html! { p { (text) } };
    visit.look.notice(StatusCode::OK, title, None, text)
}

fn body(visit: &ReaderVisit, document: &ShownDocument, pages: &[PageFacts]) -> Markup {
    let version = version_of(document);
    let count = pages.len();
    let address =
        |number: u32, kind: &str| format!("{}/pages/{number}.{kind}?v={version}", visit.path);
    html! {
        header.top {
            (visit.look.masthead())
            h1 { (visit.envelope.name) }
            p { "You can read this document. You do not need to sign it." }
        }
        main.reading {
            section aria-label="Signers" {
                ul {
                    @for signer in &visit.signers {
                        li { (signer.name) ", " (signer.role) ": " (status(signer.status)) }
                    }
                }
                @if visit.envelope.status.is_signed() {
                    p { a.button href={ (visit.path) "/copy.pdf" } download { "Download your copy" } }
                }
            }
            section.document aria-label="Document" {
                @for (number, facts) in (1..).zip(pages) {
                    figure id={ "page-" (number) } {
                        div.sheet {
                            img src=(address(number, "png")) alt={ "Page " (number) " of " (count) }
                                width=(facts.width.round()) height=(facts.height.round())
                                loading=[(number > 1).then_some("lazy")];
                        }
                        figcaption {
                            "Page " (number) " of " (count) " · "
                            a href=(address(number, "txt")) { "Text of page " (number) }
                        }
                    }
                }
            }
        }
    }
}

fn status(status: SignerStatus) -> &'static str {
    match status {
        SignerStatus::Pending => "has not opened it",
        SignerStatus::Viewed | SignerStatus::Started => "has opened it",
        SignerStatus::Completed => "has signed",
        SignerStatus::Declined => "has declined",
    }
}

async fn page(
    State(app): State<App>,
    visit: ReaderVisit,
    Path((_, name)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Response {
    let read = async {
        match visit.document(&app).await? {
            Some(document) => query.read(&app, &document, &name).await,
            None => Ok(unknown_link()),
        }
    };
    let answer = read.await;
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

/// Returns the recipient's copy, once all parties have signed.
async fn copy(State(app): State<App>, visit: ReaderVisit) -> Response {
    if !visit.envelope.status.is_signed() {
        return unknown_link();
    }
    match copies::signers_copy(&app, &app.vault, &visit.envelope).await {
        Ok(copy) => {
            let body = Body::from_stream(copy.pieces);
            saved(&visit.envelope.name, copy.size, body)
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}
