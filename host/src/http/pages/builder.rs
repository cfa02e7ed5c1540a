//! The field builder's page and the endpoints of its script. The session's token arrives in the
//! URL's fragment, like those of widgets ([`embed`]), and is sent with each request as a bearer
//! token.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{FromRequest as _, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Form as FormBody, Json, Router};
use maud::html;
use serde_json::json;
use url::Url;

use super::embed::{self, TokenForm};
use super::look::{FramePolicy, PageLook};
use super::signing_page::SigningPage;
use crate::domain::envelope::SignerKind;
use crate::http::error::HttpError;
use crate::http::middleware::caller::bearer_token;
use crate::http::middleware::extract::{FileForm, MultipartForm, ValidJson};
use crate::http::middleware::limits;
use crate::room::form::Problems;
use crate::service::access::windows::LimitedCredential;
use crate::service::templates::builder::{
    self, BuilderTemplate, FieldBuilderSession, FormPreview, PreviewFields, SaveFields,
};
use crate::service::templates::pages::{self, WIDTHS};
use crate::service::{App, ServiceError};
use crate::texts::Texts;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/builder", get(embed::shell).post(open))
        .route("/builder/template", get(show).put(save))
        .route("/builder/document", post(attach))
        .route("/builder/preview", post(preview))
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

/// Opens the builder for the token that the shell posts. Only the organization's own pages may frame
/// it.
async fn open(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = FormBody::<TokenForm>::from_request(Request::from_parts(parts.clone(), body), &app);
    let Ok(FormBody(form)) = form.await else {
        return embed::refused(&parts.headers, None);
    };
    let opened = async {
        limits::admit(&app, LimitedCredential::BuilderSession, &form.token, &parts)?;
        let Some(session) = builder::session(&app, &app.access, &form.token).await? else {
            let issuer = builder::issuer(&app, &app.access, &form.token).await?;
            return Ok(embed::refused(&parts.headers, issuer));
        };
        let organization = builder::organization(&app, &session).await?;
        Ok::<_, HttpError>(page(
            PageLook::of(organization, Texts::default()),
            &session,
            &form.token,
        ))
    };
    opened.await.unwrap_or_else(IntoResponse::into_response)
}

/// Kinds of fields with their labels.
const KINDS: [(&str, &str); 9] = [
    ("signature", "Signature"),
    ("initials", "Initials"),
    ("text", "Text"),
    ("date", "Date"),
    ("number", "Number"),
    ("checkbox", "Checkbox"),
    ("select", "List"),
    ("radio", "Radio"),
    ("attachment", "File"),
];

/// A rule about answers: name, label, and maximum length of its text.
type RuleControl = (&'static str, &'static str, u32);

/// Rules by the types of fields that have them; an empty list means all types.
const RULES: [(&str, &[RuleControl]); 4] = [
    (
        "number date",
        &[
            (
                "min",
                "At least (a number, or a date as 2026-01-31, today, today+30)",
                40,
            ),
            ("max", "At most", 40),
        ],
    ),
    (
        "text",
        &[
            ("max_length", "Maximum number of characters", 4),
            ("pattern", "Regular expression for the whole text", 500),
            ("message", "Message when the text does not match", 300),
        ],
    ),
    (
        "number",
        &[
            ("formula", "Formula, such as [Price] * [Rate] / 100", 1000),
            ("decimals", "Decimal places of the result", 1),
        ],
    ),
    (
        "",
        &[
            (
                "condition",
                "Shown if (Field, Field:value, !Field or !Field:value)",
                500,
            ),
            ("required_if", "Required if", 500),
        ],
    ),
];

fn page(look: PageLook, session: &FieldBuilderSession, token: &str) -> Response {
    let title = &session.template.name;
    let body = html! {
        header.top.bar {
            div.title { (look.masthead()) h1 { (title) } }
            p.saved role="status" aria-live="polite" {}
            @if let Some(url) = way_back(session) {
                a.button.quiet id="done" href=(url) target="_top" rel="noreferrer" { "Done" }
            }
            button.quiet type="button" id="undo" disabled { "Undo" }
            button.quiet type="button" id="show-preview" disabled { "Preview" }
            button type="button" id="save" disabled { "Save" }
        }
        main.builder data-token=(token) {
            section.palette aria-label="New fields" {
                h2 { "Add a field" }
                p.hint { "Drag one onto a page, or press it to add it to the page you see." }
                ul {
                    @for (kind, label) in KINDS {
                        li { button.quiet type="button" data-kind=(kind) { (label) } }
                    }
                }
                div.signed-by {
                    label for="role" { "Signed by" }
                    select id="role" {}
                    button.quiet type="button" id="new-role" aria-expanded="false" aria-controls="role-form" { "Add a role" }
                }
                form id="role-form" hidden {
                    label for="role-name" { "Name of the role" }
                    input id="role-name" type="text" maxlength="200" required autocomplete="off" placeholder="For example Seller";
                    p.problem role="alert" {}
                    div.row {
                        button type="submit" { "Add" }
                        button.quiet type="button" id="no-role" { "Cancel" }
                    }
                }
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
                div.row.chosen hidden {
                    strong {}
                    button.quiet type="button" id="edit" aria-expanded="false" { "Edit" }
                    button.quiet type="button" id="leave" { "Close" }
                }
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
                    details.rules {
                        summary { "Rules" }
                        @for (group, rules) in RULES {
                            div data-kinds=(group) {
                                @for (rule, label, most) in rules {
                                    label for={ "field-" (rule) } { (label) }
                                    input id={ "field-" (rule) } data-rule=(rule) type="text"
                                        maxlength=(most) autocomplete="off" spellcheck="false";
                                }
                            }
                        }
                    }
                    button.danger type="button" id="remove" { "Remove this field" }
                }
            }
        }
        dialog id="preview" aria-label="Preview" {
            div.row {
                strong { "Preview" }
                label for="preview-role" { "as" }
                select id="preview-role" {}
                button.quiet type="button" id="no-preview" { "Close" }
            }
            iframe title="What the signer will see" sandbox="allow-scripts allow-same-origin" {}
        }
    };
    look.page(StatusCode::OK, title, None, "builder", body)
}

/// Returns the page to which the builder leads back.
fn way_back(session: &FieldBuilderSession) -> Option<Url> {
    let mut url = Url::parse(session.return_url.as_deref()?).ok()?;
    let id = session.template.id.as_str();
    url.query_pairs_mut().append_pair("template_id", id);
    Some(url)
}

/// Shows the signing form of the fields in the browser, which stores nothing.
async fn preview(
    State(app): State<App>,
    session: FieldBuilderSession,
    ValidJson(request): ValidJson<PreviewFields>,
) -> Result<Response, HttpError> {
    let FormPreview {
        form,
        pages,
        organization,
    } = builder::preview(&app, &app.pages, &session, request).await?;
    let texts = Texts::of(organization.settings.language);
    let consent = texts.consent(&organization.settings, SignerKind::Signer);
    let look = PageLook {
        framing: FramePolicy::Nobody,
        ..PageLook::of(organization, texts)
    };
    let title = &session.template.name;
    let shown = SigningPage {
        path: "",
        look: &look,
        texts,
        consent_text: &consent,
        title,
        name: "Sample Signer",
        role: &form.submitter.role,
        kind: SignerKind::Signer,
        allow_delegation: false,
        delegate_phone: false,
        owes: None,
        pages: &pages,
        form: &form,
        entered: &BTreeMap::new(),
        problems: &Problems::new(),
        consent: false,
        reason: "",
        review: false,
        preview: true,
    };
    Ok(look.page(StatusCode::OK, title, None, "signing", shown.markup()))
}
