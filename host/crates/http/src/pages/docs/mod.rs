//! The guides of `docs/` as pages, with a search, their texts for programs (`llms.txt`), and the reference of the API.
//! They are part of the program, so that they describe the version that serves them.

mod guides;
mod reference;
mod search;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;

use super::assets;
use crate::error::HttpError;
use guides::GROUPS;
pub use guides::{Guide, all as guides};
use holdfast_service::App;

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
const PLAIN: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

pub fn routes() -> Router<App> {
    Router::new()
        .merge(reference::routes())
        .route("/docs", get(async || page(None, "Documentation", &home())))
        .route("/docs/search", get(found))
        .route("/docs/{slug}", get(guide))
        .route("/llms.txt", get(llms))
        .route("/llms-full.txt", get(llms_full))
}

/// `GET /docs/{slug}`: a guide, or with `.md` behind its name its text.
async fn guide(Path(slug): Path<String>) -> Response {
    if let Some(slug) = slug.strip_suffix(".md")
        && let Some(guide) = Guide::named(slug)
    {
        return kept(MARKDOWN, guide.source);
    }

    match Guide::named(&slug) {
        Some(guide) => page(Some(guide), &guide.title, &PreEscaped(guide.html.clone())),
        None => HttpError::new(StatusCode::NOT_FOUND, "Not found").into_response(),
    }
}

#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    q: String,
}

/// `GET /docs/search?q=`: the sections that have all words of a question.
async fn found(Query(question): Query<Question>) -> Response {
    let text = question.q.trim();
    let found = search::sections(text);
    let content = html! {
        h1 { "Search" }
        (search_form(text))
        @if text.is_empty() {
        } @else if found.is_empty() {
            p role="status" { "Nothing has all of these words." }
        } @else {
            p role="status" { (found.len()) @if found.len() == 1 { " section" } @else { " sections" } }
            ol.found {
                @for hit in found {
                    li {
                        a href=(hit.address) { (hit.title) }
                        p { (hit.excerpt) }
                    }
                }
            }
        }
    };

    page(None, "Search", &content)
}

/// `GET /llms.txt`: what there is to read, for programs (llmstxt.org).
async fn llms(State(app): State<App>) -> Response {
    kept(PLAIN, llms_text(&app.config.public_url()))
}

async fn llms_full() -> Response {
    let texts = guides().iter().map(|guide| guide.source);
    kept(PLAIN, texts.collect::<Vec<_>>().join("\n\n---\n\n"))
}

fn llms_text(base: &str) -> String {
    let mut text = "# holdfast\n\n> Electronic signatures, tamper-evident authoritative copies of electronic chattel paper \
                    (UCC §9-105), and their proof. A REST API with webhooks, embeddable pages and an MCP server.\n"
        .to_owned();
    for group in GROUPS {
        text += &format!("\n## {}\n\n", group.title);
        for guide in group.guides() {
            let Guide {
                slug, title, about, ..
            } = guide;
            text += &format!("- [{title}]({base}/docs/{slug}.md): {about}\n");
        }
    }

    text += &format!(
        "\n## API\n\n- [OpenAPI 3.1]({base}/api/v2/openapi.json): every operation, answer, error and webhook\n\
         - [MCP]({base}/mcp): the operations as tools\n\n## Optional\n\n- [All guides in one file]({base}/llms-full.txt)\n"
    );

    text
}

fn kept(kind: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // The addresses have no version, so a browser has the guides of an upgrade after an hour at most.
    let lifetime = HeaderValue::from_static("max-age=3600");
    headers.insert(header::CACHE_CONTROL, lifetime);
    response
}

fn home() -> Markup {
    html! {
        h1 { "holdfast" }
        p { "Send documents for electronic signature, keep the signed result as a tamper-evident authoritative copy, and prove it." }
        (search_form(""))
        @for group in GROUPS {
            h2 { (group.title) }
            ul.guides {
                @for guide in group.guides() {
                    li { a href={ "/docs/" (guide.slug) } { (guide.title) } " " span { (guide.about) } }
                }
            }
        }
        h2 { "API" }
        ul.guides {
            li { a href="/docs/api" { "API reference" } " " span { "Every operation, to read and to try." } }
            li { a href="/api/v2/openapi.json" { "OpenAPI 3.1 document" } " " span { "For generators and other programs." } }
            li { a href="/llms.txt" { "llms.txt" } " " span { "These guides for language models." } }
        }
    }
}

fn search_form(text: &str) -> Markup {
    html! {
        form.search action="/docs/search" role="search" {
            label for="q" { "Search" }
            input #q type="search" name="q" value=(text) required autocomplete="off";
            button { "Search" }
        }
    }
}

fn page(guide: Option<&Guide>, title: &str, content: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) @if guide.is_some() { " · holdfast" } }
                @if let Some(guide) = guide {
                    meta name="description" content=(guide.about);
                    link rel="alternate" type="text/markdown" href={ "/docs/" (guide.slug) ".md" };
                }
                link rel="icon" href=(assets::address("icon.svg"));
                link rel="stylesheet" href=(assets::address("docs.css"));
            }
            body.docs {
                a.skip href="#content" { "Skip to the content" }
                header {
                    a.name href="/docs" { "holdfast" }
                    a.below href="#guides" { "Guides" }
                    @if guide.is_some() { (search_form("")) }
                }
                nav #guides aria-label="Guides" {
                    @for group in GROUPS {
                        p { (group.title) }
                        ul {
                            @for other in group.guides() {
                                @let current = guide.is_some_and(|guide| guide.slug == other.slug);
                                li { a href={ "/docs/" (other.slug) } aria-current=[current.then_some("page")] { (other.title) } }
                            }
                        }
                    }
                    ul { li { a href="/docs/api" { "API reference" } } }
                }
                main #content {
                    (content)
                    @if let Some(guide) = guide {
                        p.fine { a href={ "/docs/" (guide.slug) ".md" } { "This page as text" } }
                    }
                }
            }
        }
    };

    let mut response = kept("text/html; charset=utf-8", page.into_string());
    // The guides work without scripts, so their policy allows none.
    let policy = HeaderValue::from_static(POLICY);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);

    response
}
