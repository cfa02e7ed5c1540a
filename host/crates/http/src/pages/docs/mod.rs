//! The guides of `docs/` as pages, with a search, their texts for programs (`llms.txt`), and the reference of the API.
//! They are part of the program, so that they describe the version that serves them.

mod guides;
mod reference;
mod search;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Deserialize;

use super::assets;
use crate::SharedDocument;
use crate::error::HttpError;
use crate::routing::get;
use guides::GROUPS;
pub use guides::{Guide, all as guides};
use holdfast_service::App;
use reference::SharedReference;
use search::Hit;

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";
const PLAIN: &str = "text/plain; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// Returns the routes; `document` is the API's, for the reference.
pub fn routes(document: SharedDocument) -> Router<App> {
    Router::new()
        .merge(reference::routes())
        .route("/docs", get(async || page("Documentation", &home())))
        .route("/docs/search", get(found))
        .route("/docs/{slug}", get(guide))
        .route("/llms.txt", get(llms))
        .route("/llms-full.txt", get(llms_full))
        .layer(Extension(reference::shared(document)))
}

/// `GET /docs/{slug}`: a guide, or with `.md` behind its name its text.
async fn guide(Path(slug): Path<String>) -> Response {
    if let Some(slug) = slug.strip_suffix(".md")
        && let Some(guide) = Guide::named(slug)
    {
        return kept(MARKDOWN, guide.source);
    }

    match Guide::named(&slug) {
        Some(guide) => {
            let (address, content) = (guide.address(), PreEscaped(guide.html.clone()));
            let page = DocsPage {
                title: &guide.title,
                address: Some(&address),
                guide: Some(guide),
                content: &content,
            };
            sent(page.written().into())
        }
        None => HttpError::new(StatusCode::NOT_FOUND, "Not found").into_response(),
    }
}

#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    q: String,
}

/// `GET /docs/search?q=`: the sections and operations that have all words of a question.
async fn found(
    Extension(reference): Extension<SharedReference>,
    Query(question): Query<Question>,
) -> Response {
    let text = question.q.trim();
    let sections = search::sections(text);
    let operations = search::operations(text, &reference);
    let content = html! {
        h1 { "Search" }
        (search_form(text))
        @if text.is_empty() {
        } @else if sections.is_empty() && operations.is_empty() {
            p role="status" { "Nothing has all of these words." }
        } @else {
            p role="status" { (counted(sections.len(), "section")) ", " (counted(operations.len(), "operation")) }
            (hits(&sections))
            @if !operations.is_empty() {
                h2 { "API reference" }
                (hits(&operations))
            }
        }
    };

    page("Search", &content)
}

fn counted(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

fn hits(hits: &[Hit]) -> Markup {
    html! {
        @if !hits.is_empty() {
            ol.found {
                @for hit in hits {
                    li {
                        a href=(hit.address) { (hit.title) }
                        p { (hit.excerpt) }
                    }
                }
            }
        }
    }
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
         - [Arazzo 1.1]({base}/api/v2/arazzo.json): journeys of partners, call by call\n\
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
                    li { a href=(guide.address()) { (guide.title) } " " span { (guide.about) } }
                }
            }
        }
        h2 { "API" }
        ul.guides {
            li { a href=(reference::PATH) { "API reference" } " " span { "Every operation, with its members, an example and its errors." } }
            li { a href="/api/v2/openapi.json" { "OpenAPI 3.1 document" } " " span { "For generators and other programs." } }
            li { a href="/api/v2/arazzo.json" { "Arazzo 1.1 document" } " " span { "Five journeys of partners, call by call, for programs." } }
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

/// A page before it is written.
struct DocsPage<'a> {
    title: &'a str,
    /// Address in the navigation. Pages without one have a search in their content.
    address: Option<&'a str>,
    guide: Option<&'a Guide>,
    content: &'a Markup,
}

impl DocsPage<'_> {
    fn written(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) @if self.address.is_some() { " · holdfast" } }
                    @if let Some(guide) = self.guide {
                        meta name="description" content=(guide.about);
                        link rel="alternate" type="text/markdown" href={ (guide.address()) ".md" };
                    }
                    link rel="icon" href=(assets::address("icon.svg"));
                    link rel="stylesheet" href=(assets::address("docs.css"));
                }
                body.docs {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        a.name href="/docs" { "holdfast" }
                        a.below href="#guides" { "Guides" }
                        @if self.address.is_some() { (search_form("")) }
                    }
                    nav #guides aria-label="Guides" {
                        @for group in GROUPS {
                            p { (group.title) }
                            ul {
                                @for guide in group.guides() { (self.entry(&guide.address(), &guide.title)) }
                            }
                        }
                        p { "API" }
                        ul {
                            (self.entry(reference::PATH, "API reference"))
                            // The groups would stand between a guide and its reader's keyboard.
                            @if self.address.is_some_and(|address| address.starts_with(reference::PATH)) {
                                @for group in reference::GROUPS.iter() { (self.entry(&group.address(), &group.title)) }
                            }
                        }
                    }
                    main #content {
                        (self.content)
                        @if let Some(guide) = self.guide {
                            p.fine { a href={ (guide.address()) ".md" } { "This page as text" } }
                        }
                    }
                }
            }
        };

        page.into_string()
    }

    fn entry(&self, address: &str, title: &str) -> Markup {
        let current = (self.address == Some(address)).then_some("page");
        html! { li { a href=(address) aria-current=[current] { (title) } } }
    }
}

/// Answers with a page that stands in no navigation.
fn page(title: &str, content: &Markup) -> Response {
    let page = DocsPage {
        title,
        address: None,
        guide: None,
        content,
    };
    sent(page.written().into())
}

fn sent(page: Bytes) -> Response {
    let mut response = kept("text/html; charset=utf-8", page);
    // The pages work without scripts, so their policy allows none.
    let policy = HeaderValue::from_static(POLICY);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);

    response
}
