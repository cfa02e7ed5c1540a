//! The field builder's page and the endpoints of its script. The session's token arrives in the
//! URL's fragment and is sent with each request as a bearer token.

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::html;
use serde_json::json;

use super::look::PageLook;
use crate::http::error::HttpError;
use crate::http::middleware::caller::bearer_token;
use crate::http::middleware::extract::{FileForm, MultipartForm, ValidJson};
use crate::http::middleware::limits;
use crate::service::access::windows::LimitedCredential;
use crate::service::templates::builder::{self, BuilderTemplate, FieldBuilderSession, SaveFields};
use crate::service::templates::pages::{self, WIDTHS};
use crate::service::{App, ServiceError};

pub fn routes() -> Router<App> {
    Router::new()
        .route("/builder", get(page))
        .route("/builder/template", get(show).put(save))
        .route("/builder/document", post(attach))
        .route("/builder/pages/{page}", get(picture))
}

impl FromRequestParts<App> for FieldBuilderSession {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let token = bearer_token(parts)?;
        limits::admit(app, LimitedCredential::BuilderSession, token, parts)?;
        let session = builder::session(app, &app.access, token).await?;
        session.ok_or_else(|| HttpError::new(StatusCode::UNAUTHORIZED, "Invalid token"))
    }
}

fn shown(shown: &BuilderTemplate) -> Response {
    Json(json!({ "data": shown })).into_response()
}

async fn show(State(app): State<App>, session: FieldBuilderSession) -> Result<Response, HttpError> {
    Ok(shown(&builder::show(&app, &app.pages, &session).await?))
}

async fn save(
    State(app): State<App>,
    session: FieldBuilderSession,
    ValidJson(request): ValidJson<SaveFields>,
) -> Result<Response, HttpError> {
    Ok(shown(
        &builder::save(&app, &app.pages, &session, request).await?,
    ))
}

async fn attach(
    State(app): State<App>,
    session: FieldBuilderSession,
    mut form: MultipartForm<FileForm>,
) -> Result<Response, HttpError> {
    let file = form.file()?;
    Ok(shown(
        &builder::attach(&app, &app.pages, &session, file).await?,
    ))
}

async fn picture(
    State(app): State<App>,
    session: FieldBuilderSession,
    Path(name): Path<String>,
) -> Result<Response, HttpError> {
    let not_found = || ServiceError::NotFound("Page");
    let page = name.strip_suffix(".png").and_then(|page| page.parse().ok());
    let page = page.ok_or_else(not_found)?;
    let document = session.template.document.as_ref().ok_or_else(not_found)?;
    let document = document.clone().into();
    let picture = pages::picture(&app, &app.pages, &document, page, WIDTHS[1]).await?;
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];
    Ok((headers, Body::from(picture)).into_response())
}

/// Serves the same page to every session: the template comes with the token.
async fn page() -> Response {
    let kinds = [
        ("signature", "Signature"),
        ("initials", "Initials"),
        ("text", "Text"),
        ("date", "Date"),
        ("number", "Number"),
        ("checkbox", "Checkbox"),
        ("select", "Choice list"),
        ("radio", "Radio buttons"),
    ];
    let body = html! {
        header.top.bar {
            h1 { "Fields" }
            p.saved role="status" aria-live="polite" {}
            button.quiet type="button" id="undo" disabled { "Undo" }
            button type="button" id="save" disabled { "Save" }
        }
        main.builder {
            section.palette aria-label="New fields" {
                h2 { "Add a field" }
                p.hint { "Drag one onto a page, or press it to add it to the page you see." }
                ul {
                    @for (kind, label) in kinds {
                        li { button.quiet type="button" draggable="true" data-kind=(kind) { (label) } }
                    }
                }
                label for="role" { "Signed by" }
                select id="role" {}
                button.quiet type="button" id="new-role" { "Add a role" }
            }
            section.pages aria-label="Document" {
                form id="upload" hidden {
                    label.drop {
                        "Choose a PDF"
                        br;
                        input type="file" name="file" accept="application/pdf" required;
                    }
                }
            }
            section.inspector aria-label="Selected field" {
                h2 { "Selected field" }
                p.hint { "Select a field on a page. Arrow keys move it, with Shift they resize it; Delete removes it." }
                form hidden {
                    p.problem role="alert" {}
                    label for="field-name" { "Name" }
                    input id="field-name" type="text" maxlength="200" autocomplete="off";
                    label for="field-role" { "Role" }
                    select id="field-role" {}
                    label.choice { input id="field-required" type="checkbox"; " Required" }
                    label.choice { input id="field-readonly" type="checkbox"; " Fixed: the signer cannot change it" }
                    div.default {
                        label for="field-default" { "Prefilled with" }
                        input id="field-default" type="text" autocomplete="off";
                    }
                    div.options {
                        label for="field-options" { "Options, one on each line" }
                        textarea id="field-options" rows="4" {}
                    }
                    button.danger type="button" id="remove" { "Remove this field" }
                }
            }
        }
    };
    PageLook::default().page(StatusCode::OK, "Fields", None, "builder", body)
}
