//! The signing form: server-rendered pages at `{signing_host}/{token}`.
//!
//! A plain HTML form that works without JavaScript. The token in the URL is the
//! signer's credential; whatever is wrong with it leads to a page that says so.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest as _, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Form as FormBody, Json, Router};
use maud::{Markup, html};
use serde_json::json;

use super::caller::origin;
use super::error::HttpError;
use super::look::{Happening, Look};
use super::signing_page::Shown;
use crate::app::App;
use crate::config::EMBEDDED;
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use crate::domain::token::LinkToken;
use crate::room::form::{FormError, Origin, Problems};
use crate::service::envelopes::invited_now;
use crate::service::signing::{Destination, destination, reconcile};
use crate::service::{ServiceError, copies, mails, pages};
use crate::store::{StoreError, envelopes, organizations, signers};

/// A form with a drawn picture in several fields.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// The pages a signer sees, below `path`.
pub fn routes(path: &str) -> Router<App> {
    let below = |name: &str| format!("{path}/{{token}}{name}");
    Router::new()
        .route(&below(""), get(show).post(submit))
        .route(&below("/renew"), axum::routing::post(renew))
        .route(&below("/pages/{page}"), get(page))
        .route(&below("/copy.pdf"), get(copy))
        .route(&below("/brand.css"), get(style))
        .route(&below("/logo"), get(logo))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
}

/// A signer's link, looked up and still good.
struct Visit {
    envelope: Envelope,
    signer: Signer,
    expired: bool,
    look: Look,
    /// Where this signer's pages are.
    path: String,
}

impl FromRequestParts<App> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let segments = Path::<BTreeMap<String, String>>::from_request_parts(parts, app).await;
        let token = segments
            .ok()
            .and_then(|Path(segments)| LinkToken::parse(segments.get("token")?))
            .ok_or_else(unknown_link)?;
        match find(app, token).await {
            Ok(Some(visit)) => Ok(visit),
            Ok(None) => Err(unknown_link()),
            Err(error) => Err(HttpError::from(error).into_response()),
        }
    }
}

async fn find(app: &App, token: LinkToken) -> Result<Option<Visit>, ServiceError> {
    let mut connection = app.store.read().await?;
    let Some(target) = signers::link(&mut connection, &token).await? else {
        return Ok(None);
    };
    let Some(envelope) = envelopes::get(&mut connection, &target.org, &target.envelope).await?
    else {
        return Ok(None);
    };
    let Some(organization) = organizations::get(&mut connection, &target.org).await? else {
        return Ok(None);
    };
    let signers = signers::list(&mut connection, &target.org, &target.envelope).await?;
    let path = format!("{}/{}", app.config.signing_path(), token.reveal());
    let signer = signers
        .into_iter()
        .find(|signer| signer.position == target.position);
    Ok(signer.map(|signer| Visit {
        look: Look::of(organization, path.clone()),
        path,
        envelope,
        signer,
        expired: target.expires_at <= app.clock.now(),
    }))
}

impl Visit {
    /// The room's number of this signer; none at another provider.
    fn room_submitter(&self) -> Option<i64> {
        let embedded = self.envelope.provider_instance.as_deref() == Some(EMBEDDED);
        self.signer
            .provider_submitter
            .as_ref()
            .filter(|_| embedded)?
            .parse()
            .ok()
    }

    fn notice(
        &self,
        status: StatusCode,
        title: &str,
        happening: Happening,
        body: Markup,
    ) -> Response {
        self.look.notice(status, title, Some(happening), body)
    }

    fn notice_of_end(&self, status: StatusCode, title: &str, text: &str) -> Response {
        self.notice(status, title, Happening::Error, html! { p { (text) } })
    }

    /// A page that says why there is nothing to sign, if there is nothing.
    fn closed(&self) -> Option<Response> {
        let (title, text) = match (self.signer.status, self.envelope.status) {
            (SignerStatus::Completed, _) => return Some(self.signed_page("You have signed")),
            (SignerStatus::Declined, _) => return Some(self.declined_page()),
            (_, EnvelopeStatus::Voided) => ("Withdrawn", "The sender has withdrawn this document."),
            (_, EnvelopeStatus::Expired) => ("Expired", "The time to sign this document is over."),
            (_, EnvelopeStatus::Declined) => {
                ("Declined", "Another signer has declined this document.")
            }
            (_, EnvelopeStatus::Sent | EnvelopeStatus::Viewed) if self.expired => {
                return Some(self.expired_page());
            }
            (_, EnvelopeStatus::Sent | EnvelopeStatus::Viewed) => return None,
            _ => ("Nothing to sign", "This document is not open for signing."),
        };
        Some(self.notice_of_end(StatusCode::OK, title, text))
    }

    fn expired_page(&self) -> Response {
        let body = html! {
            p { "Links work for a limited time, to protect your document." }
            (self.renewal("E-mail me a fresh link"))
        };
        let title = "This link has expired";
        self.notice(StatusCode::GONE, title, Happening::Error, body)
    }

    fn renewal(&self, label: &str) -> Markup {
        html! {
            form method="post" action={ (self.path) "/renew" } {
                button type="submit" { (label) }
            }
        }
    }

    /// After signing: thanks, and the signer's copy once everybody has signed.
    fn signed_page(&self, title: &str) -> Response {
        let body = html! {
            p { "You have signed “" (self.envelope.name) "”." }
            @if !self.has_copy() {
                p { "Once everybody has signed you get your copy by e-mail." }
            } @else if self.expired {
                p { "Everybody has signed. This link has expired, so your copy comes by e-mail." }
                (self.renewal("E-mail me my copy"))
            } @else {
                p { "Everybody has signed. Keep your copy; you also get it by e-mail." }
                p { a.button href={ (self.path) "/copy.pdf" } download { "Download your copy" } }
            }
            p { "You can close this page." }
        };
        self.notice(StatusCode::OK, title, Happening::Completed, body)
    }

    fn declined_page(&self) -> Response {
        let body = html! { p { "The sender has been told." } };
        let title = "You have declined";
        self.notice(StatusCode::OK, title, Happening::Declined, body)
    }

    fn has_copy(&self) -> bool {
        matches!(
            self.envelope.status,
            EnvelopeStatus::Completed | EnvelopeStatus::Vaulted | EnvelopeStatus::VaultedOut
        )
    }

    fn failed(&self, error: FormError) -> Response {
        let (title, text) = match error {
            FormError::NotFound => return unknown_link(),
            FormError::Closed => ("This document is closed", "It can no longer be signed."),
            FormError::NotYourTurn => (
                "Not yet your turn",
                "Somebody else signs before you. You will get an e-mail.",
            ),
            error => return HttpError::from(room_error(error)).into_response(),
        };
        self.notice_of_end(StatusCode::CONFLICT, title, text)
    }

    /// As it is after what was just done.
    async fn again(self, app: &App) -> Self {
        let read = async {
            let mut connection = app.store.read().await?;
            let (org, id) = (&self.envelope.org, &self.envelope.id);
            let envelope = envelopes::get(&mut connection, org, id).await?;
            let signers = signers::list(&mut connection, org, id).await?;
            Ok::<_, StoreError>((envelope, signers))
        };
        let Ok((Some(envelope), signers)) = read.await else {
            return self;
        };
        let position = self.signer.position;
        let signer = signers
            .into_iter()
            .find(|signer| signer.position == position);
        Self {
            envelope,
            signer: signer.unwrap_or(self.signer),
            ..self
        }
    }
}

/// Opening the document makes the signer `viewed`.
async fn show(State(app): State<App>, visit: Visit, request: Request) -> Response {
    if let Some(page) = visit.closed() {
        return page;
    }
    let Some(submitter) = visit.room_submitter() else {
        return elsewhere(&app, &visit).await;
    };
    let (parts, _) = request.into_parts();
    let opened = app
        .room
        .open(&visit.envelope.org, submitter, &origin(&app, &parts))
        .await;
    match opened {
        Ok(()) if visit.signer.status == SignerStatus::Pending => follow(&app, &visit, None).await,
        Ok(()) => {}
        Err(FormError::NotYourTurn) => {}
        Err(error) => return visit.failed(error),
    }
    render(&app, &visit, submitter, Outcome::default()).await
}

/// At another provider: our link leads there, after our own checks.
async fn elsewhere(app: &App, visit: &Visit) -> Response {
    match destination(app, &visit.envelope, &visit.signer).await {
        Ok(Destination::Page(url)) => Redirect::to(&url).into_response(),
        Ok(Destination::NotYourTurn(other)) => {
            let text =
                format!("{other} signs before you. You will get an e-mail when it is your turn.");
            let body = html! { p { (text) } };
            visit.notice(StatusCode::OK, "Not yet your turn", Happening::Ready, body)
        }
        Ok(Destination::PassedOn) => {
            let text = "Somebody else has been asked to sign in your place.";
            visit.notice_of_end(StatusCode::OK, "Passed on", text)
        }
        Ok(Destination::Closed) => visit.failed(FormError::Closed),
        Err(ServiceError::Provider(error)) => {
            tracing::warn!(envelope = %visit.envelope.id, %error, "a signer could not be led on");
            let (title, text) = (
                "Not available right now",
                "Your link is good. Try again in a few minutes.",
            );
            visit.notice_of_end(StatusCode::BAD_GATEWAY, title, text)
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// What a signer sent: which button was pressed, and what stood in the controls.
struct Sent {
    action: String,
    consent: bool,
    reason: String,
    values: BTreeMap<String, String>,
    origin: Origin,
    /// A script saves while the signer types, and shows the answer itself.
    by_script: bool,
}

impl Sent {
    async fn read(app: &App, request: Request) -> Option<Self> {
        let (parts, body) = request.into_parts();
        let origin = origin(app, &parts);
        let accept = parts.headers.get(header::ACCEPT);
        let by_script = accept.is_some_and(|accept| accept == "application/json");
        let request = Request::from_parts(parts, body);
        let pairs = FormBody::<Vec<(String, String)>>::from_request(request, app).await;
        // A checkbox sends a hidden `false` before its own `true`: the last wins.
        let mut values: BTreeMap<String, String> = pairs.ok()?.0.into_iter().collect();
        let mut action = values.remove("action").unwrap_or_default();
        if let Some(field) = action.strip_prefix("clear:") {
            values.insert(field.to_owned(), String::new());
            action = "save".into();
        }
        Some(Self {
            action,
            consent: values.remove("consent").is_some_and(|value| value == "yes"),
            reason: values
                .remove("reason")
                .unwrap_or_default()
                .trim()
                .to_owned(),
            values,
            origin,
            by_script,
        })
    }
}

/// What is to be shown of a form that was sent.
#[derive(Default)]
struct Outcome {
    entered: BTreeMap<String, String>,
    problems: Problems,
    consent: bool,
    reason: String,
    review: bool,
}

/// Saves, finishes or declines, as the pressed button says.
async fn submit(State(app): State<App>, visit: Visit, request: Request) -> Response {
    if let Some(page) = visit.closed() {
        return page;
    }
    let Some(submitter) = visit.room_submitter() else {
        return elsewhere(&app, &visit).await;
    };
    let Some(sent) = Sent::read(&app, request).await else {
        let text = "Go back and try again.";
        return visit.notice_of_end(StatusCode::BAD_REQUEST, "Not understood", text);
    };
    let done = act(&app, &visit.envelope, submitter, &sent).await;
    if sent.action == "finish" || sent.action == "decline" || done.is_ok() {
        follow(&app, &visit, Some(submitter)).await;
    }
    match done {
        Ok(problems) if sent.by_script => Json(json!({ "problems": problems })).into_response(),
        Ok(_) if sent.action == "finish" => visit.again(&app).await.signed_page("Thank you"),
        Ok(_) if sent.action == "decline" => visit.declined_page(),
        Ok(problems) if problems.is_empty() && sent.action != "review" => back(&visit),
        Ok(problems) | Err(FormError::Invalid(problems)) => {
            let outcome = Outcome {
                review: sent.action == "review",
                entered: sent.values,
                consent: sent.consent,
                reason: sent.reason,
                problems,
            };
            render(&app, &visit, submitter, outcome).await
        }
        // Done already, for example by a second press of the button.
        Err(FormError::Closed) => {
            let visit = visit.again(&app).await;
            visit
                .closed()
                .unwrap_or_else(|| visit.failed(FormError::Closed))
        }
        Err(error) => visit.failed(error),
    }
}

/// What is wrong with values that were only to be saved; wrong values keep a
/// form from being finished.
async fn act(
    app: &App,
    envelope: &Envelope,
    submitter: i64,
    sent: &Sent,
) -> Result<Problems, FormError> {
    let (org, room) = (&envelope.org, &app.room);
    match sent.action.as_str() {
        "finish" => {
            room.finish(org, submitter, &sent.values, sent.consent, &sent.origin)
                .await?;
            Ok(Problems::new())
        }
        "decline" if sent.reason.is_empty() => {
            let why = ("reason".to_owned(), "Say why you decline".to_owned());
            Err(FormError::Invalid(Problems::from([why])))
        }
        "decline" => {
            room.decline(org, submitter, &sent.reason, &sent.origin)
                .await?;
            Ok(Problems::new())
        }
        _ => room.save(org, submitter, &sent.values).await,
    }
}

fn back(visit: &Visit) -> Response {
    Redirect::to(&visit.path).into_response()
}

/// Shows in the envelope what was just done, before the signer is answered.
///
/// The room's jobs do the same a little later; whatever fails here is theirs.
async fn follow(app: &App, visit: &Visit, finished: Option<i64>) {
    let followed = async {
        if let Some(submitter) = finished {
            let org = &visit.envelope.org;
            let form = app.room.form(org, submitter).await.map_err(room_error)?;
            app.room
                .execute(org, form.submission.id)
                .await
                .map_err(|error| ServiceError::Internal(error.to_string()))?;
        }
        reconcile(app, &visit.envelope).await.map(drop)
    };
    if let Err(error) = followed.await {
        tracing::warn!(%error, "what a signer did is left to the worker");
    }
}

/// Mails a fresh link, or the copy, to the address on record, never to one that is typed in.
async fn renew(State(app): State<App>, visit: Visit) -> Response {
    if !visit.expired {
        return back(&visit);
    }
    let mail = async {
        let (envelope, signer, now) = (&visit.envelope, &visit.signer, app.clock.now());
        let mut tx = app.store.begin().await?;
        let signers = signers::list(&mut tx, &envelope.org, &envelope.id).await?;
        let open = matches!(
            envelope.status,
            EnvelopeStatus::Sent | EnvelopeStatus::Viewed
        );
        let turn = invited_now(envelope, &signers).any(|now| now.position == signer.position);
        // One mail at a time, however often the button is pressed.
        if signer.status == SignerStatus::Completed && visit.has_copy() {
            mails::copy_again(&mut tx, envelope, signer, now).await?;
        } else if open && turn {
            mails::invite(&mut tx, envelope, signer, now).await?;
        } else {
            return Ok(false);
        }
        tx.commit().await?;
        Ok::<_, StoreError>(true)
    };
    match mail.await {
        Ok(false) if visit.signer.status == SignerStatus::Pending => {
            visit.failed(FormError::NotYourTurn)
        }
        Ok(false) => {
            let closed = visit.closed();
            closed.unwrap_or_else(|| visit.failed(FormError::Closed))
        }
        Ok(true) => {
            let text = "Look into the mailbox to which your invitation was sent.";
            visit.notice_of_end(StatusCode::OK, "An e-mail is on its way", text)
        }
        Err(error) => HttpError::from(ServiceError::from(error)).into_response(),
    }
}

/// A page of the document: `1.png` as a picture, `1.txt` and `1.json` as text.
async fn page(
    State(app): State<App>,
    visit: Visit,
    Path((_, name)): Path<(String, String)>,
) -> Response {
    let parsed = name
        .split_once('.')
        .and_then(|(page, kind)| Some((page.parse::<u32>().ok()?, kind)));
    let (Some((page, kind)), Some(submitter), None) =
        (parsed, visit.room_submitter(), visit.closed())
    else {
        return unknown_link();
    };
    let read = async {
        let form = app.room.form(&visit.envelope.org, submitter).await;
        let form = form.map_err(room_error)?;
        if form.waits_for.is_some() {
            return Ok(unknown_link());
        }
        let document = form.submission.file();
        Ok::<_, ServiceError>(match kind {
            "png" => {
                let picture = pages::picture(&app, &document, page).await?;
                kept("image/png", Body::from(picture))
            }
            "txt" => {
                let lines = pages::text(&app, &document, page).await?;
                let text: Vec<String> = lines.into_iter().map(|line| line.text).collect();
                kept("text/plain; charset=utf-8", Body::from(text.join("\n")))
            }
            "json" => {
                let lines = pages::text(&app, &document, page).await?;
                let lines: Vec<_> = lines
                    .into_iter()
                    .map(|line| {
                        let area = line.area;
                        json!({ "text": line.text, "x": area.x, "y": area.y, "w": area.w, "h": area.h })
                    })
                    .collect();
                kept("application/json", Body::from(json!(lines).to_string()))
            }
            _ => unknown_link(),
        })
    };
    let answer = read.await;
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

/// What a document looks like does not change.
fn kept(content_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "private, max-age=3600"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, body).into_response()
}

/// The signer's copy, once everybody has signed.
async fn copy(State(app): State<App>, visit: Visit) -> Response {
    if visit.signer.status != SignerStatus::Completed || !visit.has_copy() || visit.expired {
        return visit.closed().unwrap_or_else(unknown_link);
    }
    match copies::signers_copy(&app, &visit.envelope).await {
        Ok(pdf) => {
            let headers = [
                (header::CONTENT_TYPE, "application/pdf".to_owned()),
                (
                    header::CONTENT_DISPOSITION,
                    attachment(&visit.envelope.name),
                ),
                (header::CACHE_CONTROL, "no-store".to_owned()),
            ];
            (headers, pdf).into_response()
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// A file name for any envelope's name (RFC 6266, RFC 8187).
fn attachment(name: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    format!("attachment; filename=\"copy.pdf\"; filename*=UTF-8''{encoded}.pdf")
}

async fn style(visit: Visit) -> Response {
    visit.look.style()
}

async fn logo(visit: Visit) -> Response {
    visit.look.logo()
}

fn room_error(error: FormError) -> ServiceError {
    match error {
        FormError::Store(error) => error.into(),
        FormError::Files(error) => error.into(),
        FormError::Component(error) => error.into(),
        error => ServiceError::Conflict(error.to_string()),
    }
}

fn unknown_link() -> Response {
    let body = html! { p { "Check that it is complete, or ask the sender for a new one." } };
    let title = "This link does not work";
    Look::default().notice(StatusCode::NOT_FOUND, title, Some(Happening::Error), body)
}

/// The form, or the page that says whose turn it is.
async fn render(app: &App, visit: &Visit, submitter: i64, outcome: Outcome) -> Response {
    let read = async {
        let form = app.room.form(&visit.envelope.org, submitter).await;
        let form = form.map_err(room_error)?;
        let document = form.submission.file();
        if form.waits_for.is_none() {
            pages::draw_first(app, document.clone());
        }
        let pages = pages::facts(app, &document).await?;
        Ok::<_, ServiceError>((form, pages))
    };
    let (form, pages) = match read.await {
        Ok(read) => read,
        Err(error) => return HttpError::from(error).into_response(),
    };
    if let Some(other) = &form.waits_for {
        let text =
            format!("{other} signs before you. You will get an e-mail when it is your turn.");
        let body = html! { p { (text) } };
        let title = "Not yet your turn";
        return visit.notice(StatusCode::OK, title, Happening::Ready, body);
    }
    let shown = Shown {
        path: &visit.path,
        look: &visit.look,
        envelope: &visit.envelope,
        signer: &visit.signer,
        pages: &pages,
        form: &form,
        entered: &outcome.entered,
        problems: &outcome.problems,
        consent: outcome.consent,
        reason: &outcome.reason,
        review: outcome.review,
    };
    let status = if outcome.problems.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let (title, ready) = (&visit.envelope.name, Some(Happening::Ready));
    visit
        .look
        .page(status, title, ready, "signing", shown.markup())
}
