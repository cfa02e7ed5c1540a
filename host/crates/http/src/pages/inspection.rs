//! Page of a record for a person with access from its controller.

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::page_frame::{PageLook, texts_for};
use super::record::{details, entry, record_parts};
use super::signer_link::{id_and_code, unknown_link};
use super::signing_files::{PageQuery, saved};
use super::viewing::sheets;
use crate::error::HttpError;
use crate::middleware::limits;
use crate::routing::{boxed, get, post};
use holdfast_adapters::texts::Texts;
use holdfast_components::rules::placement::PageFacts;
use holdfast_domain::control::{View, ViewAccess};
use holdfast_domain::locale::Locale;
use holdfast_domain::organization::Organization;
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;
use holdfast_service::inspection;
use holdfast_service::inspection::views::{self, ShownRecord};
use holdfast_service::templates::pages;

/// Path below which the pages are.
pub const PATH: &str = "/inspect";

pub fn routes() -> Router<App> {
    let below = |name: &str| format!("{PATH}/{{view}}/{{code}}{name}");
    Router::new()
        .route(&below(""), get(show).post(boxed(open)))
        .route(&below("/pages/{page}"), get(page))
        .route(&below("/copy.pdf"), post(copy))
}

/// Request by the link of a view.
struct Visit {
    view: View,
    organization: Organization,
    texts: Texts,
    path: String,
    code: String,
}

impl FromRequestParts<App> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let plain = texts_for(&parts.headers, Locale::default());
        let (id, code) = id_and_code(parts).ok_or_else(|| unknown_link(plain))?;
        let failed = |error: ServiceError| HttpError::from(error).into_response();
        let view = views::find(app, &id, &code).await.map_err(failed)?;

        // Only real links are counted: guesses would fill the table of the counts.
        let view = view.ok_or_else(|| unknown_link(plain))?;
        limits::admit(app, LimitedCredential::SigningLink, &code, parts)
            .map_err(IntoResponse::into_response)?;
        let organization = views::granted_by(app, &view).await.map_err(failed)?;
        Ok(Self {
            texts: texts_for(&parts.headers, organization.settings.language),
            path: format!("{PATH}/{id}/{code}"),
            code,
            view,
            organization,
        })
    }
}

/// Shows the record once it was opened. Programs that follow the links of mails open nothing.
async fn show(State(app): State<App>, visit: Visit) -> Response {
    if !views::is_opened(&app, &visit.view) {
        return match views::open_envelope(&app, &visit.view).await {
            Ok(Some(envelope)) => closed(visit, &envelope.name),
            Ok(None) => over(visit),
            Err(error) => HttpError::from(error).into_response(),
        };
    }

    let read = async {
        let Some(record) = views::shown(&app, &app.management, &visit.view).await? else {
            return Ok(None);
        };
        // People see the non-authoritative copy. The authoritative one leaves the vault by single-use
        // links only.
        let Some(document) = record.envelope.record.copy.clone() else {
            return Ok(None);
        };

        let pages = pages::facts(&app, &app.pages, &document).await?;
        Ok::<_, ServiceError>(Some((record, pages)))
    };

    match read.await {
        Ok(Some((record, pages))) => shown(visit, &record, &pages),
        Ok(None) => over(visit),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Page with the button that opens the record.
fn closed(visit: Visit, document: &str) -> Response {
    let texts = visit.texts;
    let dates = &visit.organization.settings.dates;
    let until = texts.moment(dates, visit.view.expires_at);
    let values = [
        ("sender", visit.organization.display_name()),
        ("moment", until.as_str()),
    ];
    let text = html! {
        p { (texts.with("inspect-hint", values)) }
        form method="post" action=(visit.path) {
            button type="submit" { (texts.text("inspect-open")) }
        }
    };

    PageLook::of(visit.organization, texts).notice(StatusCode::OK, document, None, text)
}

async fn open(State(app): State<App>, visit: Visit) -> Response {
    match views::open(&app, &visit.view).await {
        Ok(true) => Redirect::to(&visit.path).into_response(),
        Ok(false) => over(visit),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Page of a view that is over.
fn over(visit: Visit) -> Response {
    let texts = visit.texts;
    let text = html! { p { (texts.text("inspect-over")) } };
    let title = texts.text("inspect-over-title");
    PageLook::of(visit.organization, texts).notice(StatusCode::GONE, &title, None, text)
}

fn shown(visit: Visit, record: &ShownRecord, pages: &[PageFacts]) -> Response {
    let Visit {
        view,
        organization,
        texts,
        path,
        ..
    } = visit;
    // The look takes the organization, and the page needs its form of dates afterwards.
    let dates = organization.settings.dates.clone();

    let sender = organization.display_name().to_owned();
    let look = PageLook::of(organization, texts);
    let until = texts.moment(&dates, view.expires_at);
    let ShownRecord {
        envelope,
        control,
        controlled_since,
        seen,
    } = record;

    let fact = |name: &'static str, value: &str| entry(&texts.text(name), html! { (value) });
    let body: Markup = html! {
        header.top {
            (look.masthead())
            h1 { bdi { (envelope.name) } }
            p { (texts.with("inspect-hint", [("sender", sender.as_str()), ("moment", &until)])) }
        }
        main.vault.record {
            section.card {
                h2 { (texts.text("inspect-control")) }
                dl {
                    (fact("inspect-controller", &control.controller.name))
                    (fact("inspect-since", &texts.moment(&dates, *controlled_since)))
                    (fact("inspect-originator", &control.originator.name))
                    @if let Some(pledgee) = &control.pledgee {
                        (fact("inspect-pledgee", &pledgee.name))
                    }
                }
                @if view.access == ViewAccess::Download {
                    form method="post" action={ (path) "/copy.pdf" } {
                        button type="submit" { (texts.text("inspect-download")) }
                    }
                }
            }
            (record_parts(texts, &dates, &seen.signers, &seen.history))
            (details(texts, envelope, &seen.compliance))
            // Without a version, so that browsers keep the pictures for an hour only.
            div.reader { (sheets(texts, &path, "", pages)) }
        }
    };

    look.page(StatusCode::OK, &envelope.name, None, "signing", body)
}

async fn page(
    State(app): State<App>,
    visit: Visit,
    Path((_, _, name)): Path<(String, String, String)>,
    Query(query): Query<PageQuery>,
) -> Response {
    let read = async {
        // Checked for each picture: a look ends after an hour, and the page may stay open longer.
        let envelope = if views::is_opened(&app, &visit.view) {
            views::open_envelope(&app, &visit.view).await?
        } else {
            None
        };
        let copy = envelope.and_then(|envelope| envelope.record.copy);
        match copy {
            Some(copy) => query.read(&app, visit.texts, &copy.into(), &name).await,
            None => Ok(unknown_link(visit.texts)),
        }
    };

    let answer = read.await;
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

/// Hands a watermarked copy over.
async fn copy(State(app): State<App>, visit: Visit, request: Request) -> Response {
    // Each copy is written anew with its own watermark, so copies have a limit of their own.
    let (parts, _) = request.into_parts();
    let copies = LimitedCredential::Copies;
    if let Err(refused) = limits::admit(&app, copies, &visit.code, &parts) {
        return refused.into_response();
    }

    match inspection::copy_for(&app, &app.vault, &visit.view).await {
        Ok((name, pdf)) => saved(&name, pdf.len() as u64, Body::from(pdf)),
        // The service answers so for a view that is over, and for one without the right to download.
        Err(ServiceError::NotFound(_)) => over(visit),
        Err(error) => HttpError::from(error).into_response(),
    }
}
