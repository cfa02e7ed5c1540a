//! The field builder's page and the endpoints of its script. The session's token arrives in the
//! URL's fragment, like those of widgets ([`embed`]), and is sent with each request as a bearer
//! token.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{FromRequest as _, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Form as FormBody, Json, Router};
use maud::html;
use serde_json::json;
use url::Url;

use super::assets;
use super::embed::{self, TokenForm};
use super::page_frame::{FramePolicy, PageLook, script_texts, texts_for};
use super::signing::for_script;
use super::signing_page::SigningPage;
use crate::error::HttpError;
use crate::middleware::caller::bearer_token;
use crate::middleware::extract::{FileForm, MultipartForm, ValidJson};
use crate::middleware::limits::CredentialLookup;
use crate::reply;
use crate::routing::{boxed, get, post};
use holdfast_adapters::texts::{Texts, WayOut};
use holdfast_domain::envelope::SignerKind;
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::room::form::Problems;
use holdfast_service::App;
use holdfast_service::builder::{
    self, BuilderTemplate, FieldBuilderSession, FormPreview, PreviewFields, SaveFields,
};
use holdfast_service::templates::pages::{self, WIDTHS};

pub fn routes() -> Router<App> {
    Router::new()
        .route("/builder", get(embed::shell).post(boxed(open)))
        .route("/builder/template", get(show).put(save))
        .route("/builder/document", post(attach))
        .route("/builder/preview", post(preview))
        .route("/builder/pages/{page}", get(picture))
}

/// Session of the bearer token of a request.
struct BuilderCaller(FieldBuilderSession);

impl FromRequestParts<App> for BuilderCaller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, HttpError> {
        let token = bearer_token(parts)?;
        let counted = Some(LimitedCredential::BuilderSession);
        let lookup = CredentialLookup::begin(app, counted, token, parts).await?;
        let session = builder::session(lookup.core(), &app.access, token).await?;
        // Counts a wrong token against its network before the caller learns that it is wrong.
        lookup.settle(app, session.is_some())?;
        let session = session.map(Self);
        session.ok_or_else(|| HttpError::new(StatusCode::UNAUTHORIZED, "Invalid token"))
    }
}

fn shown(shown: &BuilderTemplate) -> Response {
    Json(json!({ "data": shown })).into_response()
}

async fn show(
    State(app): State<App>,
    BuilderCaller(session): BuilderCaller,
) -> Result<Response, HttpError> {
    Ok(shown(&builder::show(&app, &app.pages, &session).await?))
}

async fn save(
    State(app): State<App>,
    BuilderCaller(session): BuilderCaller,
    ValidJson(request): ValidJson<SaveFields>,
) -> Result<Response, HttpError> {
    Ok(shown(
        &builder::save(&app, &app.pages, &session, request).await?,
    ))
}

async fn attach(
    State(app): State<App>,
    BuilderCaller(session): BuilderCaller,
    mut form: MultipartForm<FileForm>,
) -> Result<Response, HttpError> {
    let file = form.file()?;
    let (attached, warnings) = builder::attach(&app, &app.pages, &session, file).await?;
    Ok(Json(reply::body(&attached, &warnings)).into_response())
}

async fn picture(
    State(app): State<App>,
    BuilderCaller(session): BuilderCaller,
    Path(name): Path<String>,
) -> Result<Response, HttpError> {
    let not_found = || ServiceError::NotFound("Page");
    let page = name.strip_suffix(".png").and_then(|page| page.parse().ok());
    let page = page.ok_or_else(not_found)?;
    let document = session.template.document.as_ref().ok_or_else(not_found)?;
    let document = document.clone().into();
    let picture = pages::picture(&app, &app.pages, &document, page, WIDTHS[1]).await?;
    // The address does not name the document, so a replaced one shows after an hour at most.
    let headers = [
        (header::CONTENT_TYPE, "image/png"),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];

    Ok((headers, Body::from(picture)).into_response())
}

/// Opens the builder for the token that the shell posts. Only the organization's own pages may frame
/// it.
async fn open(State(app): State<App>, request: Request) -> Response {
    // The extractor consumes the request, but a refusal needs the headers for its language.
    let (parts, body) = request.into_parts();
    let form = FormBody::<TokenForm>::from_request(Request::from_parts(parts.clone(), body), &app);
    let Ok(FormBody(form)) = form.await else {
        return embed::refused(&parts.headers, None);
    };

    let opened = async {
        let counted = Some(LimitedCredential::BuilderSession);
        let lookup = CredentialLookup::begin(&app, counted, &form.token, &parts).await?;
        let session = builder::session(lookup.core(), &app.access, &form.token).await?;
        lookup.settle(&app, session.is_some())?;

        // An expired token still names its organization, so the page can have that look.
        let Some(session) = session else {
            let issuer = builder::issuer(&app, &app.access, &form.token).await?;
            return Ok(embed::refused(&parts.headers, issuer));
        };

        let organization = builder::organization(&app, &session).await?;
        let texts = texts_for(&parts.headers, organization.settings.language);
        let look = PageLook::of(organization, texts);
        Ok::<_, HttpError>(page(look, &session, &form.token))
    };

    opened.await.unwrap_or_else(IntoResponse::into_response)
}

/// Kinds of fields with the keys of their labels.
const KINDS: [(&str, &str); 9] = [
    ("signature", "builder-signature"),
    ("initials", "builder-initials"),
    ("text", "builder-text"),
    ("date", "builder-date"),
    ("number", "builder-number"),
    ("checkbox", "builder-checkbox"),
    ("select", "builder-select"),
    ("radio", "builder-radio"),
    ("attachment", "builder-attachment"),
];

/// A rule about answers: name, key of its label, and maximum length of its text.
type RuleControl = (&'static str, &'static str, u32);

/// Rules by the types of fields that have them; an empty list means all types.
const RULES: [(&str, &[RuleControl]); 4] = [
    (
        "number date",
        &[("min", "builder-min", 40), ("max", "builder-max", 40)],
    ),
    (
        "text",
        &[
            ("max_length", "builder-max-length", 4),
            ("pattern", "builder-pattern", 500),
            ("message", "builder-message", 300),
        ],
    ),
    (
        "number",
        &[
            ("formula", "builder-formula", 1000),
            ("decimals", "builder-decimals", 1),
        ],
    ),
    (
        "",
        &[
            ("condition", "builder-condition", 500),
            ("required_if", "builder-required-if", 500),
        ],
    ),
];

fn page(look: PageLook, session: &FieldBuilderSession, token: &str) -> Response {
    let title = &session.template.name;
    let texts = look.texts;
    // The script sends the token with each request as a bearer token, so it is in the page and in no
    // cookie.
    let body = html! {
        header.top.bar {
            div.title { (look.masthead()) h1 { (title) } }
            p.saved role="status" aria-live="polite" {}
            @if let Some(url) = way_back(session) {
                a.button.quiet id="done" href=(url) target="_top" rel="noreferrer" { (texts.text("builder-done")) }
            }
            button.quiet type="button" id="undo" disabled { (texts.text("builder-undo")) }
            button.quiet type="button" id="show-preview" disabled { (texts.text("builder-preview")) }
            button type="button" id="save" disabled { (texts.text("builder-save")) }
        }
        main.builder data-token=(token) {
            section.palette aria-label=(texts.text("builder-new-fields")) {
                h2 { (texts.text("builder-add")) }
                p.hint { (texts.text("builder-add-hint")) }
                ul {
                    @for (kind, label) in KINDS {
                        li { button.quiet type="button" data-kind=(kind) { (texts.text(label)) } }
                    }
                }
                div.signed-by {
                    label for="role" { (texts.text("builder-signed-by")) }
                    select id="role" {}
                    button.quiet type="button" id="new-role" aria-expanded="false" aria-controls="role-form" { (texts.text("builder-add-role")) }
                }
                form id="role-form" hidden {
                    label for="role-name" { (texts.text("builder-role-name")) }
                    input id="role-name" type="text" maxlength="200" required autocomplete="off" placeholder=(texts.text("builder-role-example"));
                    p.problem role="alert" {}
                    div.row {
                        button type="submit" { (texts.text("builder-add-role-button")) }
                        button.quiet type="button" id="no-role" { (texts.text("builder-cancel")) }
                    }
                }
            }
            section.pages aria-label=(texts.text("builder-document")) {
                form id="upload" hidden {
                    label.drop {
                        (texts.text("builder-choose"))
                        br;
                        input type="file" name="file" accept="application/pdf" required;
                    }
                }
            }
            section.inspector aria-label=(texts.text("builder-selected")) {
                h2 { (texts.text("builder-selected")) }
                p.hint { (texts.text("builder-selected-hint")) }
                div.row.chosen hidden {
                    strong {}
                    button.quiet type="button" id="edit" aria-expanded="false" { (texts.text("builder-edit")) }
                    button.quiet type="button" id="leave" { (texts.text("builder-close")) }
                }
                form hidden {
                    p.problem role="alert" {}
                    label for="field-name" { (texts.text("builder-name")) }
                    input id="field-name" type="text" maxlength="200" autocomplete="off";
                    label for="field-role" { (texts.text("builder-role")) }
                    select id="field-role" {}
                    label.choice { input id="field-required" type="checkbox"; " " (texts.text("builder-required")) }
                    label.choice { input id="field-readonly" type="checkbox"; " " (texts.text("builder-fixed")) }
                    div.default {
                        label for="field-default" { (texts.text("builder-prefilled")) }
                        input id="field-default" type="text" autocomplete="off";
                    }
                    div.options {
                        label for="field-options" { (texts.text("builder-options")) }
                        textarea id="field-options" rows="4" {}
                    }
                    details.rules {
                        summary { (texts.text("builder-rules")) }
                        @for (group, rules) in RULES {
                            div data-kinds=(group) {
                                @for (rule, label, most) in rules {
                                    label for={ "field-" (rule) } { (texts.text(label)) }
                                    input id={ "field-" (rule) } data-rule=(rule) type="text"
                                        maxlength=(most) autocomplete="off" spellcheck="false";
                                }
                            }
                        }
                    }
                    button.danger type="button" id="remove" { (texts.text("builder-remove")) }
                }
            }
        }
        dialog id="preview" aria-label=(texts.text("builder-preview")) {
            div.row {
                strong { (texts.text("builder-preview")) }
                label for="preview-role" { (texts.text("builder-preview-as")) }
                select id="preview-role" {}
                button.quiet type="button" id="no-preview" { (texts.text("builder-close")) }
            }
            iframe title=(texts.text("builder-preview-frame")) sandbox="allow-scripts allow-same-origin" {}
        }
        (script_texts(texts, assets::BUILDER))
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

/// Shows the signing form of the fields in the browser, or what the rules say about entries in it.
/// Nothing is stored.
async fn preview(
    State(app): State<App>,
    BuilderCaller(session): BuilderCaller,
    ValidJson(request): ValidJson<PreviewFields>,
) -> Result<Response, HttpError> {
    let tries = request.values.is_some();
    let made = builder::preview(&app, &app.pages, &session, request).await?;
    let look = preview_look(&made);
    // With entries, the script of an open preview asks for the verdict of the rules. Without them, it
    // opens the form.
    if tries {
        return Ok(Json(json!({ "data": for_script(look.texts, &made.tried) })).into_response());
    }
    Ok(preview_page(look, &session.template.name, "", &made))
}

/// Returns the look of a preview, which no page may frame.
pub fn preview_look(made: &FormPreview) -> PageLook {
    let texts = Texts::of(made.organization.settings.language);
    // The builder writes the answer into its own frame (`srcdoc`). No page loads it by an address.
    PageLook {
        framing: FramePolicy::Nobody,
        ..PageLook::of(made.organization.clone(), texts)
    }
}

/// Renders the form that a signer will get. `path` has the pictures of its pages; the builder's script fetches them
/// if it is empty.
pub fn preview_page(look: PageLook, title: &str, path: &str, made: &FormPreview) -> Response {
    let texts = look.texts;
    // The template is not sent yet, so no jurisdiction chooses the wording.
    let consent = texts.consent(
        &made.organization,
        SignerKind::Signer,
        None,
        WayOut::of(made.may_decline),
    );
    let shown = SigningPage {
        path,
        look: &look,
        texts,
        consent_text: &consent,
        title,
        name: &texts.text("builder-sample-signer"),
        role: &made.form.submitter.role,
        kind: SignerKind::Signer,
        on_own_device: true,
        // Delegation and payment belong to an envelope, and a preview has none.
        allow_delegation: false,
        delegate_phone: false,
        may_decline: made.may_decline,
        owes: None,
        pages: &made.pages,
        form: &made.form,
        entered: &BTreeMap::new(),
        problems: &Problems::new(),
        consent: false,
        require_access: made.organization.settings.require_access_demonstration,
        // A preview cannot be finished.
        require_pages: false,
        displayed: &[],
        reason: "",
        question: "",
        asked: &[],
        review: false,
        preview: true,
        unseen: false,
    };

    look.page(StatusCode::OK, title, None, "signing", shown.markup())
}
