//! Public page of a statement of control, for the obligor of a record. It needs no account.

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::html;

use super::page_frame::{PageLook, texts_for};
use super::record::entry;
use super::signer_link::{id_and_code, unknown_link};
use super::signing_files::{attachment, saved};
use crate::error::HttpError;
use crate::middleware::limits;
use crate::routing::get;
use holdfast_adapters::texts::Texts;
use holdfast_domain::locale::Locale;
use holdfast_platform::access::windows::LimitedCredential;
use holdfast_service::App;
use holdfast_service::inspection::obligor::{self, ShownStatement};
use holdfast_service::vault::custody_sheet::step_key;

/// Path below which the pages are.
pub const PATH: &str = "/control";

pub fn routes() -> Router<App> {
    let below = |name: &str| format!("{PATH}/{{statement}}/{{code}}{name}");
    Router::new()
        .route(&below(""), get(show))
        .route(&below("/statement.pdf"), get(pdf))
        .route(&below("/statement.json"), get(json))
}

/// Request by the link of a statement.
struct StatementVisit {
    shown: ShownStatement,
    texts: Texts,
    path: String,
    code: String,
}

impl FromRequestParts<App> for StatementVisit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let plain = texts_for(&parts.headers, Locale::default());
        let (id, code) = id_and_code(parts).ok_or_else(|| unknown_link(plain))?;
        let found = obligor::find(app, &id, &code).await;
        let found = found.map_err(|error| HttpError::from(error).into_response())?;

        // Only real links are counted: guesses would fill the table of the counts.
        let shown = found.ok_or_else(|| unknown_link(plain))?;
        limits::admit(app, LimitedCredential::SigningLink, &code, parts)
            .map_err(IntoResponse::into_response)?;
        let language = shown.organization.settings.language;
        Ok(Self {
            texts: texts_for(&parts.headers, language),
            path: format!("{PATH}/{id}/{code}"),
            code,
            shown,
        })
    }
}

async fn show(visit: StatementVisit) -> Response {
    let StatementVisit {
        shown, texts, path, ..
    } = visit;
    let ShownStatement {
        organization,
        statement,
        still,
        ..
    } = shown;
    // The look takes the organization, and the page needs its form of dates afterwards.
    let dates = organization.settings.dates.clone();

    let look = PageLook::of(organization, texts);
    let controller = statement.controller.name.as_str();
    let fact = |name: &'static str, value: &str| entry(&texts.text(name), html! { (value) });
    let moment = |at| texts.exact_moment(&dates, at);
    let record = &statement.record;
    let body = html! {
        header.top {
            (look.masthead())
            h1 { (texts.text("statement-title")) }
            p { bdi { (record.name) } }
        }
        main.vault.record {
            section.card {
                h2 { (texts.with("statement-controlled", [("controller", controller)])) }
                p {
                    @match still {
                        true => (texts.text("statement-still")),
                        false => (texts.text("statement-over")),
                    }
                }
                dl {
                    (fact("statement-issued", &moment(statement.issued_at)))
                    @if let Some(person) = &statement.requested_by {
                        (fact("statement-requested-by", person))
                    }
                    (fact("inspect-originator", &statement.originator.name))
                    @if let Some(jurisdiction) = &record.chattel_paper_jurisdiction {
                        (fact("statement-jurisdiction", jurisdiction))
                    }
                }
                p { a.button href={ (path) "/statement.pdf" } download { (texts.text("statement-pdf")) } }
                p { a href={ (path) "/statement.json" } download { (texts.text("statement-json")) } }
            }
            section.card {
                h2 { (texts.text("statement-chain")) }
                ol.ledger {
                    @for step in &statement.control_chain {
                        li {
                            time { (moment(step.since)) }
                            span.detail { (step.name) ", " (texts.text(step_key(&step.act))) }
                        }
                    }
                }
            }
            section.card {
                h2 { (texts.text("vault-who-signed")) }
                ul.people {
                    @for signer in &statement.signers {
                        li {
                            strong { (signer.name) } " " span.soft { (signer.role) }
                            @if let Some(at) = signer.signed_at {
                                span.detail { (texts.with("vault-signed-at", [("moment", moment(at))])) }
                            }
                        }
                    }
                }
            }
            details.card {
                summary { (texts.text("vault-experts")) }
                dl {
                    (entry(&texts.text("vault-record-number"), html! { (record.envelope_id) }))
                    (entry(&texts.text("vault-hash"), html! { code { (record.document_hash) } }))
                    (entry(&texts.text("inspect-controller"), html! { (statement.controller.name) " " code { (statement.controller.organization_id) } }))
                    @if let Some(key) = &statement.controller.signs_with {
                        (entry(&texts.text("statement-key"), html! { code { (key) } }))
                    }
                }
                p { (texts.text("statement-note")) }
            }
        }
    };

    let title = texts.text("statement-title");
    look.page(StatusCode::OK, &title, None, "signing", body)
}

async fn pdf(State(app): State<App>, visit: StatementVisit, request: Request) -> Response {
    if let Some(refused) = over_limit(&app, &visit, request) {
        return refused;
    }

    // Written for each download and stored nowhere, because equal statements give equal bytes.
    match obligor::pdf(&app, &visit.shown).await {
        Ok(pdf) => {
            let name = visit.texts.text("statement-title");
            saved(&name, pdf.len() as u64, Body::from(pdf))
        }
        Err(error) => HttpError::from(error).into_response(),
    }
}

async fn json(State(app): State<App>, visit: StatementVisit, request: Request) -> Response {
    if let Some(refused) = over_limit(&app, &visit, request) {
        return refused;
    }

    let issued = match obligor::issued(&app, &app.vault, &visit.shown).await {
        Ok(issued) => issued,
        Err(error) => return HttpError::from(error).into_response(),
    };
    let name = format!("{}.json", visit.shown.statement.statement_id);
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_DISPOSITION, attachment(&name, &name)),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];

    (headers, serde_json::json!(issued).to_string()).into_response()
}

/// Returns the answer to a visitor with too many downloads.
fn over_limit(app: &App, visit: &StatementVisit, request: Request) -> Option<Response> {
    let (parts, _) = request.into_parts();
    // The PDF and the proofs cost much more than the page, so downloads have a limit of their own.
    let admitted = limits::admit(app, LimitedCredential::Copies, &visit.code, &parts);
    admitted.err().map(IntoResponse::into_response)
}
