//! The signing form: server-rendered pages at `{signing_host}/{token}`.
//!
//! A plain HTML form that works without JavaScript. The token in the URL is the
//! signer's credential; whatever is wrong with it leads to a page that says so.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{FromRequest as _, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Form as FormBody, Router};
use maud::html;

use super::caller::origin;
use super::error::HttpError;
use super::signing_page::{Shown, notice, page};
use crate::app::App;
use crate::config::EMBEDDED;
use crate::domain::envelope::{Envelope, EnvelopeStatus, Signer, SignerStatus};
use crate::domain::token::LinkToken;
use crate::room::form::{Form, FormError, Origin};
use crate::service::ServiceError;
use crate::service::signing::reconcile;
use crate::store::{envelopes, jobs, signers};
use crate::worker;

/// Pixels across a page image; sharp enough for a phone held close.
const PAGE_WIDTH: u32 = 1_100;

/// The pages a signer sees, below `path`. Links inside them are relative.
pub fn routes(path: &str) -> Router<App> {
    Router::new()
        .route(&format!("{path}/{{token}}"), get(show).post(submit))
        .route(
            &format!("{path}/{{token}}/renew"),
            axum::routing::post(renew),
        )
        .route(&format!("{path}/{{token}}/pages/{{page}}"), get(page_image))
}

/// A signer's link, looked up and still good.
struct Visit {
    token: LinkToken,
    envelope: Envelope,
    signer: Signer,
    expired: bool,
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
    let signers = signers::list(&mut connection, &target.org, &target.envelope).await?;
    let signer = signers
        .into_iter()
        .find(|signer| signer.position == target.position);
    Ok(signer.map(|signer| Visit {
        token,
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

    /// A page that says why there is nothing to sign, if there is nothing.
    fn closed(&self) -> Option<Response> {
        let (title, text) = match (self.signer.status, self.envelope.status) {
            (SignerStatus::Completed, _) => {
                ("You have signed", "There is nothing left to do. Thank you.")
            }
            (SignerStatus::Declined, _) => ("You have declined", "The sender has been told."),
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
        Some(notice(StatusCode::OK, title, html! { p { (text) } }))
    }

    fn expired_page(&self) -> Response {
        let action = format!("{}/renew", self.token.reveal());
        notice(
            StatusCode::GONE,
            "This link has expired",
            html! {
                p { "Links work for a limited time, to protect your document." }
                form method="post" action=(action) {
                    button type="submit" { "E-mail me a fresh link" }
                }
            },
        )
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
        .open(&visit.envelope.org, submitter, &origin(&parts))
        .await;
    match opened {
        Ok(()) if visit.signer.status == SignerStatus::Pending => follow(&app, &visit, None).await,
        Ok(()) => {}
        Err(FormError::NotYourTurn) => {}
        Err(error) => return failed(error),
    }
    match app.room.form(&visit.envelope.org, submitter).await {
        Ok(form) => {
            render(
                &app,
                &visit,
                &form,
                &BTreeMap::new(),
                &BTreeMap::new(),
                None,
            )
            .await
        }
        Err(error) => failed(error),
    }
}

/// At another provider: our link leads there, after our own checks.
async fn elsewhere(app: &App, visit: &Visit) -> Response {
    let read = async {
        let instance = visit
            .envelope
            .provider_instance
            .as_deref()
            .unwrap_or_default();
        let submission = visit.envelope.submission.as_deref().unwrap_or_default();
        let lease = app.signing_lease(Some(&visit.envelope.org), instance)?;
        Ok::<_, ServiceError>(
            app.components
                .providers
                .signing
                .read_submission(lease, submission)
                .await?,
        )
    };
    match read.await {
        Ok(submission) => submission
            .submitters
            .iter()
            .find(|seen| Some(&seen.submitter_id) == visit.signer.provider_submitter.as_ref())
            .map(|seen| Redirect::to(&seen.signing_url).into_response())
            .unwrap_or_else(unknown_link),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Saves, finishes or declines, as the pressed button says.
async fn submit(State(app): State<App>, visit: Visit, request: Request) -> Response {
    if let Some(page) = visit.closed() {
        return page;
    }
    let Some(submitter) = visit.room_submitter() else {
        return elsewhere(&app, &visit).await;
    };
    let (parts, body) = request.into_parts();
    let origin = origin(&parts);
    let request = Request::from_parts(parts, body);
    let pairs = match FormBody::<Vec<(String, String)>>::from_request(request, &app).await {
        Ok(FormBody(pairs)) => pairs,
        Err(_) => return notice(StatusCode::BAD_REQUEST, "Not understood", html! {}),
    };
    // A checkbox sends a hidden `false` before its own `true`: the last wins.
    let mut values: BTreeMap<String, String> = pairs.into_iter().collect();
    let action = values.remove("action").unwrap_or_default();
    let consent = values.remove("consent").is_some();
    let reason = values.remove("reason").unwrap_or_default();
    act(
        &app, &visit, submitter, &action, consent, &reason, values, &origin,
    )
    .await
}

#[expect(clippy::too_many_arguments, reason = "the parts of one form post")]
async fn act(
    app: &App,
    visit: &Visit,
    submitter: i64,
    action: &str,
    consent: bool,
    reason: &str,
    values: BTreeMap<String, String>,
    origin: &Origin,
) -> Response {
    let org = &visit.envelope.org;
    let room = &app.room;
    let outcome = match action {
        "finish" if !consent => {
            let saved = room.save(org, submitter, &values).await;
            saved.and_then(|()| {
                Err(FormError::Invalid(BTreeMap::from([(
                    "consent".to_owned(),
                    "Your consent to signing electronically is needed".to_owned(),
                )])))
            })
        }
        "finish" => room.finish(org, submitter, &values, origin).await,
        "decline" if reason.trim().is_empty() => Err(FormError::Invalid(BTreeMap::from([(
            "reason".to_owned(),
            "Say why you decline".to_owned(),
        )]))),
        "decline" => room.decline(org, submitter, reason.trim(), origin).await,
        _ => room.save(org, submitter, &values).await,
    };
    if outcome.is_ok() {
        follow(app, visit, Some(submitter)).await;
    }
    match outcome {
        Ok(()) if action == "finish" => notice(
            StatusCode::OK,
            "Thank you",
            html! {
                p { "You have signed “" (visit.envelope.name) "”." }
                p { "You can close this page." }
            },
        ),
        Ok(()) if action == "decline" => notice(
            StatusCode::OK,
            "You have declined",
            html! { p { "The sender has been told." } },
        ),
        Ok(()) => back(app, visit),
        Err(FormError::Invalid(problems)) => match room.form(org, submitter).await {
            Ok(form) => {
                let status = Some(StatusCode::UNPROCESSABLE_ENTITY);
                render(app, visit, &form, &values, &problems, status).await
            }
            Err(error) => failed(error),
        },
        Err(error) => failed(error),
    }
}

fn back(app: &App, visit: &Visit) -> Response {
    let path = format!("{}/{}", app.config.signing_path(), visit.token.reveal());
    Redirect::to(&path).into_response()
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
        reconcile(app, &visit.envelope).await
    };
    if let Err(error) = followed.await {
        tracing::warn!(%error, "what a signer did is left to the worker");
    }
}

/// Mails a fresh link to the address on record, never to one that is typed in.
async fn renew(State(app): State<App>, visit: Visit) -> Response {
    if !visit.expired {
        return back(&app, &visit);
    }
    let mail = async {
        let now = app.clock.now();
        let mut tx = app.store.begin().await?;
        let payload = serde_json::json!({
            "envelope": visit.envelope.id,
            "position": visit.signer.position,
        });
        // One mail at a time, however often the button is pressed.
        let key = format!("renew:{}:{}", visit.envelope.id, visit.signer.position);
        let kind = worker::INVITE_JOB;
        jobs::insert(
            &mut tx,
            &visit.envelope.org,
            kind,
            Some(&key),
            &payload,
            now,
        )
        .await?;
        tx.commit().await
    };
    match mail.await {
        Ok(()) => notice(
            StatusCode::OK,
            "A fresh link is on its way",
            html! { p { "Look into the mailbox to which your invitation was sent." } },
        ),
        Err(error) => HttpError::from(ServiceError::from(error)).into_response(),
    }
}

/// A page of the document as an image.
async fn page_image(State(app): State<App>, visit: Visit, request: Request) -> Response {
    let page = request
        .uri()
        .path()
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_suffix(".png")?.parse::<u32>().ok());
    let (Some(page), Some(submitter), None) = (page, visit.room_submitter(), visit.closed()) else {
        return unknown_link();
    };
    let image = async {
        let form = app
            .room
            .form(&visit.envelope.org, submitter)
            .await
            .map_err(room_error)?;
        let pdf = app.room.document(&form).await.map_err(room_error)?;
        let image = app
            .components
            .rules
            .page_image(pdf.clone(), page, PAGE_WIDTH)
            .await?;
        Ok::<_, ServiceError>(image?)
    };
    match image.await {
        Ok(image) => (
            [
                (header::CONTENT_TYPE, "image/png"),
                (header::CACHE_CONTROL, "private, max-age=3600"),
            ],
            Body::from(image.png),
        )
            .into_response(),
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn room_error(error: FormError) -> ServiceError {
    match error {
        FormError::Store(error) => error.into(),
        FormError::Files(error) => error.into(),
        error => ServiceError::Conflict(error.to_string()),
    }
}

fn failed(error: FormError) -> Response {
    match error {
        FormError::NotFound => unknown_link(),
        FormError::Closed => notice(
            StatusCode::CONFLICT,
            "This document is closed",
            html! { p { "It can no longer be signed." } },
        ),
        FormError::NotYourTurn => notice(
            StatusCode::CONFLICT,
            "Not yet your turn",
            html! { p { "Somebody else signs before you. You will get an e-mail." } },
        ),
        error => HttpError::from(room_error(error)).into_response(),
    }
}

fn unknown_link() -> Response {
    notice(
        StatusCode::NOT_FOUND,
        "This link does not work",
        html! { p { "Check that it is complete, or ask the sender for a new one." } },
    )
}

async fn render(
    app: &App,
    visit: &Visit,
    form: &Form,
    entered: &BTreeMap<String, String>,
    problems: &BTreeMap<String, String>,
    status: Option<StatusCode>,
) -> Response {
    if let Some(other) = &form.waits_for {
        let text =
            format!("{other} signs before you. You will get an e-mail when it is your turn.");
        return notice(StatusCode::OK, "Not yet your turn", html! { p { (text) } });
    }
    let pages = async {
        let pdf = app.room.document(form).await.map_err(room_error)?;
        let facts = app.components.rules.inspect(pdf.clone()).await??;
        Ok::<_, ServiceError>(facts.pages)
    };
    let pages = match pages.await {
        Ok(pages) => pages,
        Err(error) => return HttpError::from(error).into_response(),
    };
    let shown = Shown {
        token: visit.token.reveal(),
        envelope: &visit.envelope,
        signer: &visit.signer,
        pages: &pages,
        form,
        entered,
        problems,
    };
    page(
        status.unwrap_or(StatusCode::OK),
        &visit.envelope.name,
        shown.markup(),
    )
}
