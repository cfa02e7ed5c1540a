//! Page on which an invited party joins.

use axum::Router;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::page_frame::{PageLook, texts_for};
use super::signer_link::{id_and_code, unknown_link};
use crate::error::HttpError;
use crate::middleware::limits;
use crate::routing::{boxed, get};
use holdfast_adapters::texts::Texts;
use holdfast_domain::locale::Locale;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;
use holdfast_service::control::invitations::{self, ShownInvitation};

/// Path below which the pages are.
pub const PATH: &str = "/join";

pub fn routes() -> Router<App> {
    Router::new().route(
        &format!("{PATH}/{{invitation}}/{{code}}"),
        get(show).post(boxed(join)),
    )
}

/// Request by the link of an invitation.
struct JoinVisit {
    shown: ShownInvitation,
    texts: Texts,
    path: String,
}

impl FromRequestParts<App> for JoinVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let plain = texts_for(&parts.headers, Locale::default());
        let (id, code) = id_and_code(parts).ok_or_else(|| unknown_link(plain))?;
        let found = invitations::find(app, &id, &code).await;
        let found = found.map_err(|error| HttpError::from(error).into_response())?;

        // Only real links are counted: guesses would fill the table of the counts.
        let shown = found.ok_or_else(|| unknown_link(plain))?;
        limits::admit(app, LimitedCredential::SigningLink, &code, parts)
            .map_err(IntoResponse::into_response)?;

        Ok(Self {
            texts: texts_for(&parts.headers, shown.organization.settings.language),
            path: format!("{PATH}/{id}/{code}"),
            shown,
        })
    }
}

impl JoinVisit {
    fn values(&self) -> [(&'static str, &str); 2] {
        [
            ("sender", self.shown.organization.display_name()),
            ("name", &self.shown.invitation.name),
        ]
    }

    /// Page of an invitation that was used or has expired.
    fn over(self) -> Response {
        let texts = self.texts;
        let text = html! { p { (texts.text("join-over")) } };
        let title = texts.text("join-over-title");
        let look = PageLook::of(self.shown.organization, texts);
        look.notice(StatusCode::GONE, &title, None, text)
    }
}

async fn show(visit: JoinVisit) -> Response {
    if visit.shown.expired {
        return visit.over();
    }

    // Mail programs fetch links, so a GET changes nothing. Only the button joins.
    let texts = visit.texts;
    let body = html! {
        p { (texts.with("join-hint", visit.values())) }
        form method="post" action=(visit.path) {
            button type="submit" { (texts.text("join-button")) }
        }
    };

    let title = texts.with("join-title", visit.values());
    let look = PageLook::of(visit.shown.organization, texts);
    look.notice(StatusCode::OK, &title, None, body)
}

async fn join(State(app): State<App>, visit: JoinVisit) -> Response {
    let joined = match invitations::join(&app, &visit.shown.invitation.id).await {
        Ok(Some(joined)) => joined,
        // The invitation was used or is over. Within 15 minutes a repeat gets another key if the first one
        // was not used, because the answer with it may be lost.
        Ok(None) => return visit.over(),
        Err(error) => return HttpError::from(error).into_response(),
    };
    let texts = visit.texts;
    let body = html! {
        p { (texts.with("join-done", visit.values())) }
        dl {
            dt { (texts.text("join-organization")) }
            dd { code { (joined.org) } }
            dt { (texts.text("join-key")) }
            dd { code { (joined.key.reveal()) } }
        }
        p { strong { (texts.text("join-keep")) } }
    };

    let title = texts.with("join-done-title", visit.values());
    let look = PageLook::of(visit.shown.organization, texts);
    look.notice(StatusCode::OK, &title, None, body)
}
