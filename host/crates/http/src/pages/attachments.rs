//! Files that signers attach: upload from the form, and download by the other signers.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Json, Router, extract::FromRequest as _};
use maud::html;
use schemars::JsonSchema;

use super::signer_link::{SignerVisit, unknown_link};
use super::signing::{FormFeedback, follow, for_script, is_by_script, render};
use super::signing_files::{attachment, readable};
use super::signing_page::takes_file;
use crate::error::HttpError;
use crate::middleware::extract::MultipartForm;
use crate::middleware::limits;
use crate::routing::{boxed, get};
use holdfast_domain::envelope::SignerStatus;
use holdfast_domain::locale::Message;
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::room::attachments::{FILE_MIB, SignersFile};
use holdfast_platform::room::form::{FormError, SavedForm, SigningForm};
use holdfast_service::App;
use holdfast_service::envelopes::documents;

/// Returns the routes, below the form's own path.
pub fn routes(path: &str) -> Router<App> {
    let below = |name: &str| format!("{path}/{{token}}{name}");
    Router::new().route(&below("/attachments/{name}"), get(show).post(boxed(upload)))
}

/// Shows the choice of a file for the field with this index, or returns the file with this SHA-256.
async fn show(
    State(app): State<App>,
    visit: SignerVisit,
    Path((_, name)): Path<(String, String)>,
) -> Response {
    let (Some(submitter), None) = (visit.room_submitter(), visit.closed()) else {
        return unknown_link(visit.texts);
    };

    let form = match readable(&app, &visit, submitter).await {
        Ok(Some(form)) => form,
        Ok(None) => return unknown_link(visit.texts),
        Err(error) => return HttpError::from(error).into_response(),
    };
    // A SHA-256 is too large for an index even if all of its digits are decimal, so one path serves both.
    let Ok(index) = name.parse::<usize>() else {
        return download(&app, &visit, &form, &name).await;
    };

    match form.fields.get(index).filter(|field| takes_file(field)) {
        Some(field) => choice(&visit, index, &field.name),
        None => unknown_link(visit.texts),
    }
}

/// Renders the choice of a file on a page of its own, for browsers without scripts. The entries of the
/// form are saved by then.
fn choice(visit: &SignerVisit, index: usize, label: &str) -> Response {
    let (texts, path) = (visit.texts, visit.path());
    let body = html! {
        form method="post" enctype="multipart/form-data" action={ (path) "/attachments/" (index) } {
            label for="file" { (texts.with("attachment-hint", [("limit", FILE_MIB)])) }
            input id="file" type="file" name="file" required accept=(ACCEPTED);
            button type="submit" { (texts.text("attachment-add")) }
        }
        p { a href={ (path) "#field-" (index) } { (texts.text("signing-back")) } }
    };

    visit.look.notice(StatusCode::OK, label, None, body)
}

/// Files that a browser offers for an attachment.
pub(super) const ACCEPTED: &str = ".pdf,.png,.jpg,.jpeg,application/pdf,image/png,image/jpeg";

/// Parts of the upload.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "documents the parts")]
struct AttachmentForm {
    file: String,
}

/// Attaches a file to the field with this index of the form.
async fn upload(
    State(app): State<App>,
    visit: SignerVisit,
    Path((_, index)): Path<(String, usize)>,
    request: Request,
) -> Response {
    let (Some(submitter), None) = (visit.room_submitter(), visit.closed()) else {
        return unknown_link(visit.texts);
    };

    // An upload costs memory and sandbox time, so it shares the limit of downloads instead of that of
    // page views.
    let (parts, body) = request.into_parts();
    let (copies, token) = (LimitedCredential::Copies, visit.token.reveal());
    if let Err(refused) = limits::admit(&app, copies, token, &parts) {
        return refused.into_response();
    }

    let by_script = is_by_script(&parts.headers);
    let request = Request::from_parts(parts, body);
    // Checked before the body is read: a link without its code or identity check makes this node spool
    // nothing.
    let form = match readable(&app, &visit, submitter).await {
        Ok(form) => form,
        Err(error) => return HttpError::from(error).into_response(),
    };
    let field = form.as_ref().and_then(|form| form.fields.get(index));
    let Some(field) = field.map(|field| field.name.clone()) else {
        return unknown_link(visit.texts);
    };

    let mut sent = match MultipartForm::<AttachmentForm>::from_request(request, &app).await {
        Ok(sent) => sent,
        Err(error) => return error.into_response(),
    };
    // A browser sends an empty part when the signer chose no file. That is a mistake in the form and
    // no broken request.
    let done = match sent.file() {
        Ok(file) => {
            let signer = (submitter, visit.signer.email.as_str());
            documents::attach(&app, &visit.envelope, signer, &field, file).await
        }
        Err(_) => {
            let why = (field, Message::new("problem-required"));
            Err(FormError::Invalid([why].into()))
        }
    };

    // The first entry makes the signer `started`. Later ones change nothing in the envelope, so the
    // provider is not read again.
    if done.is_ok() && visit.signer.status != SignerStatus::Started {
        follow(&app, &visit, None).await;
    }

    match done {
        Ok(name) if by_script => {
            // A condition may be about the file.
            match app.room().saved(&visit.envelope.org, submitter).await {
                Ok(saved) => {
                    let mut shown = for_script(visit.texts, &saved);
                    shown["name"] = name.into();
                    Json(shown).into_response()
                }
                Err(error) => visit.failed(error),
            }
        }
        // A reload of the next page uploads nothing again.
        Ok(_) => Redirect::to(&format!("{}#field-{index}", visit.path())).into_response(),
        Err(FormError::Invalid(problems)) if by_script => {
            let saved = SavedForm {
                problems,
                ..SavedForm::default()
            };
            let body = Json(for_script(visit.texts, &saved));
            (StatusCode::UNPROCESSABLE_ENTITY, body).into_response()
        }
        Err(FormError::Invalid(problems)) => {
            render(&app, &visit, submitter, FormFeedback::from(problems)).await
        }
        Err(error) => visit.failed(error),
    }
}

/// Returns a file of this signer, or of one who has signed, by its SHA-256.
async fn download(app: &App, visit: &SignerVisit, form: &SigningForm, sha256: &str) -> Response {
    let read = async {
        let room = app.room();
        let org = &visit.envelope.org;
        let files = room.attachments(org, form.submission.id).await?;
        let role = &form.submitter.role;
        let may_see = |file: &&_| is_visible(file, role, sha256);
        let Some(file) = files.iter().find(may_see) else {
            return Ok(None);
        };

        let bytes = room.attached(file).await?;
        Ok::<_, ServiceError>(Some((file.file.clone(), bytes)))
    };

    match read.await {
        Ok(Some((file, bytes))) => {
            // A signer chose these bytes. Browsers save them and never run them as a page of our origin.
            let headers = [
                (header::CONTENT_TYPE, file.content_type.clone()),
                (
                    header::CONTENT_DISPOSITION,
                    attachment(&file.name, "attachment"),
                ),
                (header::CACHE_CONTROL, "no-store".to_owned()),
            ];

            (headers, Body::from(bytes)).into_response()
        }
        // A file that this signer may not see looks like one that does not exist.
        Ok(None) => unknown_link(visit.texts),
        Err(error) => HttpError::from(error).into_response(),
    }
}

fn is_visible(file: &SignersFile, role: &str, sha256: &str) -> bool {
    // Until its owner has signed, a file can still be taken back, so no other signer sees it.
    file.file.sha256 == sha256 && (file.is_final || file.role == role)
}
