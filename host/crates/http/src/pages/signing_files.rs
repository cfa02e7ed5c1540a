//! Files of a signing form: pages of the document, and the signer's copy.

use axum::body::Body;
use axum::extract::{Form, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use holdfast_handwriting::Handwriting;
use serde::Deserialize;
use serde_json::json;

use super::kba;
use super::signer_link::{SignerVisit, unknown_link};
use crate::error::HttpError;
use crate::middleware::limits;
use crate::routing::{get, post};
use holdfast_adapters::texts::Texts;
use holdfast_domain::envelope::{Envelope, SignerStatus};
use holdfast_platform::ServiceError;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_platform::room::form::SigningForm;
use holdfast_platform::room::shown::ShownDocument;
use holdfast_service::App;
use holdfast_service::envelopes::documents;
use holdfast_service::templates::pages;
use holdfast_service::vault::{completion, copies};
use holdfast_store::disclosures::DeliveredItem;

/// Returns the routes, below the form's own path.
pub fn routes(path: &str) -> Router<App> {
    let below = |name: &str| format!("{path}/{{token}}{name}");
    Router::new()
        .route(&below("/pages/{page}"), get(page))
        .route(&below("/look"), post(look))
        .route(&below("/copy.pdf"), get(copy))
        .route(&below("/document.pdf"), get(document))
        .route(&below("/copy.png"), get(first_page))
        .route(&below("/certificate.pdf"), get(certificate))
}

/// Query of a page.
#[derive(Deserialize)]
pub struct PageQuery {
    /// Width in pixels that the picture should have at least.
    w: Option<u32>,
    /// Version of the document, as [`version_of`] gives it.
    v: Option<String>,
}

/// Returns the part of a document's version that addresses of its pages contain. Another signer's
/// entries change it.
pub fn version_of(document: &ShownDocument) -> String {
    document.version().chars().take(16).collect()
}

impl PageQuery {
    /// Returns a page of a document: `1.png` as a picture, `1.txt` and `1.json` as text.
    pub async fn read(
        self,
        app: &App,
        texts: Texts,
        document: &ShownDocument,
        name: &str,
    ) -> Result<Response, ServiceError> {
        let parsed = name
            .split_once('.')
            .and_then(|(page, kind)| Some((page.parse::<u32>().ok()?, kind)));
        let Some((page, kind)) = parsed else {
            return Ok(unknown_link(texts));
        };

        // Another signer's entries change the version. An old address shows the present page, which a
        // browser must not keep for good.
        let current = self
            .v
            .is_some_and(|version| version == version_of(document));
        let kept = |content_type, body| kept(content_type, body, current);
        Ok(match kind {
            "png" => {
                // Without a width, the widest picture: the client may show the page on a large screen.
                let width = self.w.unwrap_or(u32::MAX);
                let picture = pages::picture(app, &app.pages, document, page, width).await?;
                kept("image/png", Body::from(picture))
            }
            "txt" => {
                let lines = pages::text(app, &app.pages, document, page).await?;
                let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
                kept("text/plain; charset=utf-8", Body::from(text.join("\n")))
            }
            "json" => {
                let lines = pages::text(app, &app.pages, document, page).await?;
                let lines: Vec<_> = lines
                    .iter()
                    .map(|line| {
                        let area = &line.area;
                        json!({ "text": line.text, "x": area.x, "y": area.y, "w": area.w, "h": area.h })
                    })
                    .collect();

                kept("application/json", Body::from(json!(lines).to_string()))
            }
            _ => unknown_link(texts),
        })
    }
}

/// Returns the form of a signer who may read the document; none before the identity check and before
/// it is their turn.
pub async fn readable(
    app: &App,
    visit: &SignerVisit,
    submitter: i64,
) -> Result<Option<SigningForm>, ServiceError> {
    // The identity check comes first. Until it is passed, the link alone reaches no part of the document.
    if !kba::is_open(app, visit).await? {
        return Ok(None);
    }
    let room = app.room();
    // Answers do not decide who may read, so the rules do not run for each picture.
    let form = room.unruled_form(&visit.envelope.org, submitter).await;
    let form = form?;
    Ok(Some(form).filter(|form| form.waits_for.is_none()))
}

/// A page of the document for its signer.
async fn page(
    State(app): State<App>,
    visit: SignerVisit,
    Path((_, name)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Response {
    // Once a signer is done, the copy takes the place of these pages.
    let (Some(submitter), None) = (visit.room_submitter(), visit.closed()) else {
        return unknown_link(visit.texts);
    };

    let read = async {
        match readable(&app, &visit, submitter).await? {
            Some(form) => {
                let answer = query.read(&app, visit.texts, &form.document, &name).await?;
                // The evidence speaks of pictures that were delivered, so neither a text nor a failed
                // request counts.
                let number = name.strip_suffix(".png").and_then(|page| page.parse().ok());
                if let Some(number) = number.filter(|_| answer.status() == StatusCode::OK) {
                    note(&app, &visit, submitter, &DeliveredItem::Page(number)).await;
                }
                Ok::<_, ServiceError>(answer)
            }
            None => Ok(unknown_link(visit.texts)),
        }
    };

    let answer = read.await;
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

/// Entry that a page asks the node to draw.
#[derive(Deserialize)]
struct AskedLook {
    /// Number of the field on the page, from 0.
    field: usize,
    value: String,
    /// Style of typed signatures.
    style: Option<String>,
}

/// Draws an entry as the document will have it: `image/png`, or 422 with the sentence for the field. Nothing is
/// kept.
async fn look(
    State(app): State<App>,
    visit: SignerVisit,
    Form(asked): Form<AskedLook>,
) -> Response {
    let (Some(submitter), None) = (visit.room_submitter(), visit.closed()) else {
        return unknown_link(visit.texts);
    };

    let drawn = async {
        let Some(form) = readable(&app, &visit, submitter).await? else {
            return Ok(unknown_link(visit.texts));
        };
        let Some(field) = form.fields.get(asked.field) else {
            return Ok(unknown_link(visit.texts));
        };

        // A style that is chosen and not saved yet comes before the stored one.
        let style = asked.style.as_deref().and_then(Handwriting::parse);
        let style = style.or(form.submitter.signature_style);
        let drawn = app.room().look(&form, field, &asked.value, style).await?;
        Ok::<_, ServiceError>(match drawn {
            Ok(png) => ([(header::CONTENT_TYPE, "image/png")], png).into_response(),
            Err(why) => {
                let problem = json!({ "problem": visit.texts.message(&why) });
                (StatusCode::UNPROCESSABLE_ENTITY, Json(problem)).into_response()
            }
        })
    };

    let answer = drawn.await;
    answer.unwrap_or_else(|error| HttpError::from(error).into_response())
}

/// Records that a part of the document was delivered. A failure withholds nothing from the signer: the
/// evidence then claims less than happened.
async fn note(app: &App, visit: &SignerVisit, submitter: i64, item: &DeliveredItem) {
    // A prefetch or a HEAD request delivers nothing to a person.
    if !visit.is_seen {
        return;
    }
    let reader = visit.reader(submitter);
    if let Err(error) = app.room().part_delivered(reader, item).await {
        tracing::warn!(envelope = %visit.envelope.id, %error, "delivery to a signer was not recorded");
    }
}

/// Builds a cacheable response. An address with the version of the document never changes.
fn kept(content_type: &'static str, body: Body, with_version: bool) -> Response {
    // Private, because the address contains the signer's token and shared caches must not keep the page.
    let lifetime = if with_version {
        "private, max-age=31536000, immutable"
    } else {
        "private, max-age=3600"
    };
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, lifetime),
    ];

    (headers, body).into_response()
}

/// Returns the answer to a signer who may not download: over the limit, not signed, or before all
/// have signed.
fn refused_download(app: &App, visit: &SignerVisit, request: Request) -> Option<Response> {
    // Counted first, so that refused requests use up the limit of the link as well.
    let (parts, _) = request.into_parts();
    let (copies, token) = (LimitedCredential::Copies, visit.token.reveal());
    if let Err(refused) = limits::admit(app, copies, token, &parts) {
        return Some(refused.into_response());
    }
    let signed = visit.signer.status == SignerStatus::Completed && visit.has_copy();
    (!signed || visit.expired).then(|| visit.closed().unwrap_or_else(|| unknown_link(visit.texts)))
}

/// Builds a PDF to be saved.
pub fn saved(name: &str, size: u64, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/pdf".to_owned()),
        // A streamed body has no length of its own. With this one, the client notices a download that
        // breaks off.
        (header::CONTENT_LENGTH, size.to_string()),
        (
            header::CONTENT_DISPOSITION,
            attachment(&format!("{name}.pdf"), "copy.pdf"),
        ),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];

    (headers, body).into_response()
}

/// Returns the signer's copy, once all parties have signed.
async fn copy(State(app): State<App>, visit: SignerVisit, request: Request) -> Response {
    if let Some(refused) = refused_download(&app, &visit, request) {
        return refused;
    }

    signers_copy(&app, &visit.envelope).await
}

/// Answers with the copy of a document that all parties have signed.
pub async fn signers_copy(app: &App, envelope: &Envelope) -> Response {
    match copies::signers_copy(app, &app.vault, envelope).await {
        Ok(copy) => saved(&envelope.name, copy.size, Body::from_stream(copy.pieces)),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Returns the document without signatures, for a signer who wants to read or keep it before signing.
async fn document(State(app): State<App>, visit: SignerVisit, request: Request) -> Response {
    // A whole PDF is much larger than a page, so it counts as a download.
    let (parts, _) = request.into_parts();
    let (copies, token) = (LimitedCredential::Copies, visit.token.reveal());
    if let Err(refused) = limits::admit(&app, copies, token, &parts) {
        return refused.into_response();
    }
    let (Some(submitter), None) = (visit.room_submitter(), visit.closed()) else {
        return unknown_link(visit.texts);
    };

    let read = async {
        match readable(&app, &visit, submitter).await? {
            Some(_) => documents::unsigned(&app, &visit.envelope).await.map(Some),
            None => Ok(None),
        }
    };

    match read.await {
        Ok(Some(pdf)) => {
            // Recorded before the bytes leave. Where access has to be demonstrated, the signer may finish
            // from then on.
            note(&app, &visit, submitter, &DeliveredItem::Pdf).await;
            saved(&visit.envelope.name, pdf.len() as u64, Body::from(pdf))
        }
        Ok(None) => unknown_link(visit.texts),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Returns the first page of the signer's copy as a picture, once the document is in the vault.
async fn first_page(State(app): State<App>, visit: SignerVisit, request: Request) -> Response {
    if let Some(refused) = refused_download(&app, &visit, request) {
        return refused;
    }
    let Some(copy) = visit.envelope.record.copy.clone() else {
        return unknown_link(visit.texts);
    };

    match pages::picture(&app, &app.pages, &copy.into(), 1, pages::WIDTHS[0]).await {
        Ok(picture) => kept("image/png", Body::from(picture), false),
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Returns the certificate of completion, once the document is in the vault.
async fn certificate(State(app): State<App>, visit: SignerVisit, request: Request) -> Response {
    if let Some(refused) = refused_download(&app, &visit, request) {
        return refused;
    }

    // In the language of the signer's pages, which may be another one than the organization's.
    match completion::certificate(&app, &visit.envelope, Some(visit.texts.locale())).await {
        Ok(pdf) => {
            let certificate = visit.texts.text("certificate-name");
            let name = format!("{certificate}, {}", visit.envelope.name);
            saved(&name, pdf.len() as u64, Body::from(pdf))
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

/// Returns a Content-Disposition for a file of any name (RFC 6266, RFC 8187); old clients save it as
/// `plain`.
pub fn attachment(name: &str, plain: &str) -> String {
    // The form encoding writes a space as a plus, which RFC 8187 takes literally.
    let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}
