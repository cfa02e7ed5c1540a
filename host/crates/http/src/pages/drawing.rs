//! Drawing on a phone: the signing form shows a QR code, and the page behind it (`{signing_host}/draw/{token}`) hands in
//! a picture. That page shows nothing of the document and cannot sign.

use axum::extract::rejection::FormRejection;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Form, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::html;
use serde::Deserialize;
use serde_json::json;

use super::assets;
use super::page_frame::{PageLook, languages, script_texts, texts_for};
use super::signer_link::{SignerVisit, link_token, unknown_link};
use super::signing_files::readable;
use crate::error::HttpError;
use crate::middleware::limits::CredentialLookup;
use crate::middleware::origin::origin;
use crate::qr::svg;
use crate::routing::{boxed, get};
use holdfast_adapters::texts::Texts;
use holdfast_domain::locale::{Locale, Message};
use holdfast_domain::token::LinkToken;
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::room::form::RequestOrigin;
use holdfast_service::App;
use holdfast_service::signing::drawings::{
    self, DrawingOutcome, DrawingState, DrawingVisitor, LIFE,
};

/// Folder of the phone's pages, below the path of the signers' pages.
const FOLDER: &str = "draw";

/// Returns the routes, below the path of the signers' pages.
pub fn routes(path: &str) -> Router<App> {
    Router::new()
        .route(&format!("{path}/{{token}}/drawing"), get(state))
        .route(
            &format!("{path}/{FOLDER}/{{token}}"),
            get(show).post(boxed(submit)),
        )
}

/// Shows the signer a QR code for their phone. The script gets the code as data.
pub(super) async fn offer(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
    field: &str,
    by_script: bool,
) -> Response {
    let made = drawings::offer(app, &visit.envelope, &visit.signer, submitter, field).await;
    let token = match made {
        Ok(Some(token)) => token,
        Ok(None) => return unknown_link(visit.texts),
        Err(error) => return HttpError::from(error).into_response(),
    };

    let address = format!("{}/{FOLDER}/{}", visit.base(), token.reveal());
    let code = match svg(&address) {
        Ok(code) => format!("data:image/svg+xml;base64,{}", STANDARD.encode(code)),
        Err(error) => return error.into_response(),
    };
    if by_script {
        let offered = json!({ "address": address, "code": code, "seconds": LIFE.as_secs() });
        return ([(header::CACHE_CONTROL, "no-store")], Json(offered)).into_response();
    }

    let texts = visit.texts;
    let minutes = LIFE.as_secs() / 60;
    let body = html! {
        p { (texts.with("signing-phone-scan", [("minutes", minutes)])) }
        a href=(address) { img.qr src=(code) alt=(texts.text("signing-phone-code")); }
        p { a.button href=(visit.path()) { (texts.text("signing-continue")) } }
    };
    let title = texts.text("signing-phone");
    visit.look.notice(StatusCode::OK, &title, None, body)
}

/// Informs the form's script whether the phone handed in a drawing: `awaited`, `drawn` with the field and its entry,
/// or `ended`.
async fn state(State(app): State<App>, visit: SignerVisit) -> Response {
    let (Some(submitter), None) = (visit.room_submitter(), visit.closed()) else {
        return unknown_link(visit.texts);
    };

    let read = async {
        let Some(form) = readable(&app, &visit, submitter).await? else {
            return Ok(None);
        };
        let state = drawings::state(&app, &visit.envelope, &visit.signer).await?;
        Ok::<_, ServiceError>(Some(match state {
            DrawingState::Awaited => json!({ "state": "awaited" }),
            DrawingState::Drawn(field) => {
                let value = form.submitter.values.get(&field);
                json!({ "state": "drawn", "field": field, "value": value })
            }
            DrawingState::Ended => json!({ "state": "ended" }),
        }))
    };

    match read.await {
        Ok(Some(state)) => ([(header::CACHE_CONTROL, "no-store")], Json(state)).into_response(),
        Ok(None) => unknown_link(visit.texts),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Request by the address in a QR code.
struct DrawingVisit {
    token: LinkToken,
    visitor: DrawingVisitor,
    texts: Texts,
    look: PageLook,
    path: String,
    /// Client address and browser of the request.
    origin: RequestOrigin,
}

impl FromRequestParts<App> for DrawingVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let plain = texts_for(&parts.headers, Locale::default());
        let token = link_token(parts, app, plain).await?;
        let failed = |error: HttpError| error.into_response();

        let counted = Some(LimitedCredential::SigningLink);
        let lookup = CredentialLookup::begin(app, counted, token.reveal(), parts).await;
        let lookup = lookup.map_err(failed)?;
        let found = drawings::find(lookup.core(), &token).await;
        let found = found.map_err(|error| failed(error.into()))?;
        // Counts an unknown address against its network before the visitor learns that it is unknown.
        lookup.settle(app, found.is_some()).map_err(failed)?;
        let visitor = found.ok_or_else(|| unknown_link(plain))?;

        let organization = visitor.organization.clone();
        let browser = languages(&parts.headers);
        let (person, default) = (visitor.signer.locale, organization.settings.language);
        let texts = Texts::of(Locale::chosen(person, browser, default));
        Ok(Self {
            path: format!("{}/{FOLDER}/{}", app.config.signing_path(), token.reveal()),
            look: PageLook::of(organization, texts),
            origin: origin(app, parts),
            token,
            visitor,
            texts,
        })
    }
}

impl DrawingVisit {
    /// Page with the canvas, which the script adds, and the problem of a refused picture.
    fn canvas(&self, wrong: Option<&Message>) -> Response {
        let (texts, signer) = (self.texts, &self.visitor.signer);
        let (what, draw, use_it) = if self.visitor.handover.kind == "initials" {
            (
                "signing-phone-initials",
                "signing-phone-draw-initials",
                "signing-phone-use-initials",
            )
        } else {
            (
                "signing-your-signature",
                "signing-phone-draw",
                "signing-phone-use",
            )
        };

        let body = html! {
            p { (texts.with(draw, [("name", signer.name.as_str())])) }
            form #drawing method="post" action=(self.path) data-field=(texts.text(what)) {
                input type="hidden" name="picture" value="";
                @if let Some(wrong) = wrong { p.problem role="alert" { (texts.message(wrong)) } }
                noscript { p.problem { (texts.text("signing-phone-script")) } }
                button type="submit" { (texts.text(use_it)) }
            }
            p.fine { (texts.text("signing-phone-only")) }
            (script_texts(texts, assets::SIGNING))
        };

        let status = if wrong.is_some() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        let title = &self.visitor.envelope.name;
        self.look.notice(status, title, None, body)
    }

    /// Page with one sentence below the document's name; `text` is its key.
    fn notice(&self, status: StatusCode, text: &'static str) -> Response {
        let body = html! { p { (self.texts.text(text)) } };
        let title = &self.visitor.envelope.name;
        self.look.notice(status, title, None, body)
    }
}

async fn show(State(app): State<App>, visit: DrawingVisit) -> Response {
    if visit.visitor.is_open(app.clock.now()) {
        visit.canvas(None)
    } else {
        visit.notice(StatusCode::GONE, "signing-phone-ended")
    }
}

/// Drawing as the phone hands it in.
#[derive(Deserialize)]
struct HandedIn {
    /// `data:` URL of a PNG or JPEG.
    picture: String,
}

async fn submit(
    State(app): State<App>,
    visit: DrawingVisit,
    sent: Result<Form<HandedIn>, FormRejection>,
) -> Response {
    let Ok(Form(sent)) = sent else {
        return visit.notice(StatusCode::BAD_REQUEST, "incomplete");
    };

    let (visitor, token) = (&visit.visitor, &visit.token);
    match drawings::hand_in(&app, visitor, token, &sent.picture, &visit.origin).await {
        Ok(DrawingOutcome::Kept) => visit.notice(StatusCode::OK, "signing-phone-done"),
        Ok(DrawingOutcome::Refused(why)) => visit.canvas(Some(&why)),
        Ok(DrawingOutcome::Ended) => visit.notice(StatusCode::GONE, "signing-phone-ended"),
        Err(error) => HttpError::from(error).into_response(),
    }
}
