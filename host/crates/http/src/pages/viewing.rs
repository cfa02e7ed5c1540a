//! Page for a recipient who reads the document and does not sign: `{signing_host}/view/{token}`.

use axum::extract::rejection::FormRejection;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Form, Router};
use maud::{Markup, html};
use serde::Deserialize;

use super::page_frame::{PageLook, texts_for};
use super::signer_link::{end_of, link_token, unknown_link};
use super::signing_files::{PageQuery, signers_copy, version_of};
use crate::error::HttpError;
use crate::middleware::limits::{self, CredentialLookup};
use crate::routing::{get, post};
use holdfast_adapters::texts::Texts;
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::envelope::{Envelope, Recipient, RecipientKind, Signer, SignerStatus};
use holdfast_domain::locale::Locale;
use holdfast_domain::token::LinkToken;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::lookup::room_submission;
use holdfast_platform::room::shown::ShownDocument;
use holdfast_platform::{Core, ServiceError};
use holdfast_service::App;
use holdfast_service::signing::corrections;
use holdfast_service::signing::visits::{self, LinkReader, LinkRenewal};
use holdfast_service::templates::pages;

/// Returns the routes of the page, below the path of the signers' pages.
pub fn routes(path: &str) -> Router<App> {
    let below = |name: &str| format!("{path}/view/{{token}}{name}");
    Router::new()
        .route(&below(""), get(show))
        .route(&below("/pages/{page}"), get(page))
        .route(&below("/copy.pdf"), get(copy))
        .route(&below("/renew"), post(renew))
        .route(&below("/take"), post(take))
}

/// Request by a link for reading.
struct ReaderVisit {
    token: LinkToken,
    recipient: Recipient,
    expired: bool,
    texts: Texts,
    envelope: Envelope,
    signers: Vec<Signer>,
    look: PageLook,
    path: String,
}

impl FromRequestParts<App> for ReaderVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let plain = texts_for(&parts.headers, Locale::default());
        let token = link_token(parts, app, plain).await?;
        let failed = |error: HttpError| error.into_response();

        let counted = Some(LimitedCredential::SigningLink);
        let lookup = CredentialLookup::begin(app, counted, token.reveal(), parts).await;
        let lookup = lookup.map_err(failed)?;
        let found = visits::find_reader(lookup.core(), &token).await;
        let reader = found.map_err(|error| failed(error.into()))?;
        let elsewhere = match &reader {
            Some(_) => None,
            None => now_signer(lookup.core(), &token).await.map_err(failed)?,
        };
        // Counts an unknown link against its network before the visitor learns that it is unknown.
        let is_known = reader.is_some() || elsewhere.is_some();
        lookup.settle(app, is_known).map_err(failed)?;
        if let Some(page) = elsewhere {
            return Err(page.into_response());
        }
        let LinkReader {
            recipient,
            expired,
            organization,
            envelope,
            signers,
        } = reader.ok_or_else(|| unknown_link(plain))?;

        let path = format!("{}/view/{}", app.config.signing_path(), token.reveal());
        let texts = texts_for(&parts.headers, organization.settings.language);
        Ok(Self {
            token,
            recipient,
            expired,
            texts,
            look: PageLook::of(organization, texts),
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
        if self.expired {
            return Ok(None);
        }
        // A voided, declined or expired document is not shown any more, even by a valid link.
        if !status.is_out_for_signing() && !status.is_signed() {
            return Ok(None);
        }
        let Some(submission) = room_submission(&self.envelope) else {
            return Ok(None);
        };

        let shown = app.room().shown(&self.envelope.org, submission).await;
        Ok(shown.map(Some)?)
    }
}

/// Leads a substitute to the signing form, once they have taken the place of a signer: the link followed its
/// person.
async fn now_signer(core: &Core, token: &LinkToken) -> Result<Option<Redirect>, HttpError> {
    let visitor = visits::find(core, token).await?;
    let member = visitor.filter(|visitor| visitor.signer.group.is_some());
    let path = format!("{}/{}", core.config.signing_path(), token.reveal());
    Ok(member.map(|_| Redirect::to(&path)))
}

async fn show(State(app): State<App>, visit: ReaderVisit) -> Response {
    let read = async {
        let Some(document) = visit.document(&app).await? else {
            return Ok(None);
        };
        let pages = pages::shown_facts(&app, &app.pages, &document).await?;
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
    let texts = visit.texts;
    let status = visit.envelope.status;
    // Only where a fresh link would show something. For a document that has ended, the reason below is
    // more useful.
    if visit.expired && (status.is_out_for_signing() || status.is_signed()) {
        let body = html! {
            p { (texts.text("link-expired")) }
            form method="post" action={ (visit.path) "/renew" } {
                button type="submit" { (texts.text("link-renew")) }
            }
        };
        let title = texts.text("link-expired-title");
        return visit.look.notice(StatusCode::GONE, &title, None, body);
    }

    // Another signing provider keeps the document, but the copy is here.
    if status.is_signed() {
        let body = html! {
            p { a.button href={ (visit.path) "/copy.pdf" } download { (texts.text("signed-download")) } }
        };
        return visit
            .look
            .notice(StatusCode::OK, &visit.envelope.name, None, body);
    }

    let closed = ("nothing-to-sign-title", "nothing-to-sign");
    let (title, text) = end_of(&visit.envelope).unwrap_or(closed);
    let text = html! { p { (texts.text(text)) } };
    let title = texts.text(title);
    visit.look.notice(StatusCode::OK, &title, None, text)
}

fn body(visit: &ReaderVisit, document: &ShownDocument, pages: &[PageFacts]) -> Markup {
    let version = version_of(document);
    let texts = visit.texts;
    html! {
        header.top {
            (visit.look.masthead())
            h1 { bdi { (visit.envelope.name) } }
            @if visit.recipient.kind == RecipientKind::Substitute {
                @let group = visit.recipient.group.as_deref().unwrap_or_default();
                p { (texts.with("substitute-hint", [("group", group)])) }
            } @else {
                p { (texts.text("reading-hint")) }
            }
        }
        main.reader {
            section aria-label=(texts.text("reading-signers")) {
                ul {
                    @for signer in &visit.signers {
                        li { (standing(texts, signer)) }
                    }
                }
                (places(visit))
                @if visit.envelope.status.is_signed() {
                    p { a.button href={ (visit.path) "/copy.pdf" } download { (texts.text("signed-download")) } }
                }
            }
            (sheets(texts, &visit.path, &version, pages))
        }
    }
}

/// Offers a substitute the places of the group's signers who can sign now.
fn places(visit: &ReaderVisit) -> Markup {
    let texts = visit.texts;
    let open = corrections::open_places(&visit.envelope, &visit.signers, &visit.recipient);
    let open: Vec<&Signer> = open.collect();
    html! {
        @if !open.is_empty() {
            p { (texts.text("substitute-explained")) }
            @for signer in open {
                @let named = [("name", signer.name.as_str()), ("role", &signer.role)];
                form method="post" action={ (visit.path) "/take" } {
                    button.quiet type="submit" name="position" value=(signer.position) {
                        (texts.with("substitute-take", named))
                    }
                }
            }
        }
    }
}

/// Shows the pages of a document. Their pictures and texts are below `path`.
pub fn sheets(texts: Texts, path: &str, version: &str, pages: &[PageFacts]) -> Markup {
    let count = pages.len();
    let address = |number: u32, kind: &str| format!("{path}/pages/{number}.{kind}?v={version}");
    html! {
        section.document aria-label=(texts.text("signing-document")) {
            @for (number, facts) in (1..).zip(pages) {
                @let name = texts.with("signing-page", [("number", number as usize), ("count", count)]);
                figure id={ "page-" (number) } {
                    div.sheet {
                        img src=(address(number, "png")) alt=(name)
                            width=(facts.width.round()) height=(facts.height.round())
                            loading=[(number > 1).then_some("lazy")];
                        // Gives the sheet the shape of the page, as on the signing form.
                        svg viewBox={ "0 0 " (facts.width) " " (facts.height) } aria-hidden="true" {}
                    }
                    figcaption {
                        (name) " · "
                        a href=(address(number, "txt")) { (texts.with("signing-page-text", [("number", number)])) }
                    }
                }
            }
        }
    }
}

fn standing(texts: Texts, signer: &Signer) -> String {
    let key = match signer.status {
        SignerStatus::Pending => "reading-pending",
        // Readers learn that a signer opened the document and not how far the entries are.
        SignerStatus::Viewed | SignerStatus::Started => "reading-viewed",
        SignerStatus::Completed => "reading-signed",
        SignerStatus::Declined => "reading-declined",
    };

    texts.with(
        key,
        [("name", signer.name.as_str()), ("role", &signer.role)],
    )
}

async fn page(
    State(app): State<App>,
    visit: ReaderVisit,
    Path((_, name)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Response {
    let read = async {
        match visit.document(&app).await? {
            Some(document) => query.read(&app, visit.texts, &document, &name).await,
            None => Ok(unknown_link(visit.texts)),
        }
    };
    let answer = read.await;
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

/// Place of a signer that a substitute takes.
#[derive(Deserialize)]
struct TakenPlace {
    /// Position of the signer, from 0.
    position: i64,
}

/// Has a substitute sign in the place of a signer, on the signing form.
async fn take(
    State(app): State<App>,
    visit: ReaderVisit,
    place: Result<Form<TakenPlace>, FormRejection>,
) -> Response {
    if visit.expired {
        return closed(&visit);
    }
    let Ok(Form(place)) = place else {
        return Redirect::to(&visit.path).into_response();
    };

    let (envelope, substitute) = (&visit.envelope, &visit.recipient);
    match corrections::take_place(&app, envelope, substitute, place.position).await {
        // The link leads to the signing form from now on. After a conflict, the page shows how the place
        // stands now.
        Ok(()) | Err(ServiceError::Conflict(_)) => Redirect::to(&visit.path).into_response(),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Mails a fresh link, or the copy.
async fn renew(State(app): State<App>, visit: ReaderVisit) -> Response {
    // A working link needs no successor, and the reader would get a mail for nothing.
    if !visit.expired {
        return Redirect::to(&visit.path).into_response();
    }

    let texts = visit.texts;
    let (status, title, text) =
        match visits::renew_reader(&app, &visit.envelope, &visit.recipient).await {
            Ok(LinkRenewal::Mailed) => (StatusCode::OK, "link-mailed-title", "link-mailed"),
            Ok(LinkRenewal::TooSoon) => (
                StatusCode::TOO_MANY_REQUESTS,
                "link-too-soon-title",
                "link-too-soon",
            ),
            Ok(LinkRenewal::NotYet | LinkRenewal::Closed) => return closed(&visit),
            Err(error) => return HttpError::from(error).into_response(),
        };

    let body = html! { p { (texts.text(text)) } };
    let title = texts.text(title);
    visit.look.notice(status, &title, None, body)
}

/// Returns the recipient's copy, once all parties have signed.
async fn copy(State(app): State<App>, visit: ReaderVisit, request: Request) -> Response {
    // Counted first, so that refused requests use up the limit of the link as well.
    let (parts, _) = request.into_parts();
    let (copies, token) = (LimitedCredential::Copies, visit.token.reveal());
    if let Err(refused) = limits::admit(&app, copies, token, &parts) {
        return refused.into_response();
    }
    if visit.expired || !visit.envelope.status.is_signed() {
        return unknown_link(visit.texts);
    }

    signers_copy(&app, &visit.envelope).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_how_far_each_signer_is() {
        let person = |status| Signer {
            status,
            ..Signer::new(
                0,
                "Ann Lee".into(),
                "ann@example.com".into(),
                "Buyer".into(),
            )
        };

        for (status, words) in [
            (SignerStatus::Pending, "has not opened it"),
            (SignerStatus::Viewed, "has opened it"),
            (SignerStatus::Started, "has opened it"),
            (SignerStatus::Completed, "done"),
            (SignerStatus::Declined, "has declined"),
        ] {
            let said = standing(Texts::default(), &person(status));
            assert_eq!(said, format!("Ann Lee, Buyer: {words}"));
        }
    }
}
