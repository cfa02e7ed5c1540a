//! The guides as pages: each is there, its links lead somewhere, and people and programs find it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::http::openapi::operations;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, TestResponse};

async fn page(app: &TestApp, path: &str) -> TestResponse {
    let answer = app
        .send(Request::get(path).body(Body::empty()).unwrap())
        .await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer
}

/// Returns the texts after each `before`, up to a quotation mark.
fn values<'a>(html: &'a str, before: &str) -> Vec<&'a str> {
    let rest = html.split(before).skip(1);
    rest.map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Returns the addresses of all guides.
async fn guides(app: &TestApp) -> BTreeSet<String> {
    let home = page(app, "/docs").await.text();
    values(&home, "href=\"")
        .into_iter()
        .filter(|link| link.starts_with("/docs/") && !link.starts_with("/docs/api"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_guide_is_a_page_whose_links_lead_somewhere() {
    let app = TestApp::start().await;
    let guides = guides(&app).await;
    assert!(guides.len() >= 20, "{guides:?}");

    for guide in &guides {
        let answer = page(&app, guide).await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");

        let html = answer.text();
        assert_eq!(html.matches("<h1").count(), 1, "{guide}");

        for never in ["<script", "style=\"", "<img"] {
            assert!(!html.contains(never), "{guide}: {never}");
        }

        for link in values(&html, "href=\"") {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => html.clone(),
                path if path.starts_with('/') => page(&app, path).await.text(),
                path => {
                    assert!(path.starts_with("https://"), "{guide}: {link}");
                    continue;
                }
            };

            let id = format!("id=\"{anchor}\"");
            assert!(anchor.is_empty() || target.contains(&id), "{guide}: {link}");
        }

        let source = page(&app, &format!("{guide}.md")).await;
        let kind = source.headers["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/markdown"), "{kind}");
        assert!(source.text().starts_with("# "), "{guide}");
    }

    let unknown = Request::get("/docs/nothing").body(Body::empty()).unwrap();
    assert_eq!(app.send(unknown).await.status, 404);
    assert!(
        page(&app, "/docs/api")
            .await
            .text()
            .contains("openapi.json")
    );
}

/// Guides are for those who use the service; the other documents are for those who change it.
#[tokio::test(flavor = "multi_thread")]
async fn every_document_is_a_guide_or_for_developers_of_holdfast() {
    let app = TestApp::start().await;
    let served = guides(&app).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(slug) = name.strip_suffix(".md") {
            let inner = [
                "README",
                "claims",
                "readings",
                "specification",
                "performance",
                "testing",
                "walks",
            ]
            .contains(&slug);
            assert_ne!(served.contains(&format!("/docs/{slug}")), inner, "{slug}");
        }
    }
}

/// The document has operations and, beside them, events.
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_and_event_is_on_one_page_of_the_reference() {
    let app = TestApp::start().await;
    let overview = page(&app, "/docs/api").await.text();
    let links = values(&overview, "href=\"").into_iter();
    let groups: BTreeSet<&str> = links
        .filter(|link| link.starts_with("/docs/api/") && !link.contains('#'))
        .collect();
    assert!(groups.len() >= 20, "{groups:?}");

    let mut pages = vec![("/docs/api", overview.clone())];
    for group in groups {
        pages.push((group, page(&app, group).await.text()));
    }

    for (address, html) in &pages {
        assert!(html.len() <= 150_000, "{address}: {} bytes", html.len());
        assert_eq!(html.matches("<h1").count(), 1, "{address}");
        for never in ["<script", "style=\"", "<img"] {
            assert!(!html.contains(never), "{address}: {never}");
        }

        let ids = values(html, " id=\"");
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), distinct.len(), "{address}: an id stands twice");
        for anchor in values(html, "href=\"#") {
            assert!(distinct.contains(anchor), "{address}: {anchor}");
        }
    }

    let document = app.get("/openapi.json").await.json();
    for place in ["paths", "webhooks"] {
        for operation in operations(&json!({ "paths": document[place] })) {
            let id = operation.description["operationId"].as_str().unwrap();
            let heading = format!("<h2 id=\"{id}\">");
            let with_it = pages.iter().filter(|(_, html)| html.contains(&heading));
            let addresses: Vec<&str> = with_it.map(|(address, _)| *address).collect();
            assert_eq!(addresses.len(), 1, "{id}: {addresses:?}");

            let link = format!("href=\"{}#{id}\"", addresses[0]);
            assert!(overview.contains(&link), "{link}");
        }
    }

    let unknown = Request::get("/docs/api/nothing").body(Body::empty());
    assert_eq!(app.send(unknown.unwrap()).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_and_programs_find_what_they_look_for() {
    let app = TestApp::on_a_socket().await;
    for (question, link) in [
        ("tag+syntax", "/docs/fields#"),
        ("rotation+signature", "/docs/webhooks#"),
        ("confirmation_token", "/docs/mcp#"),
        ("RETRY-AFTER", "/docs/errors#"),
        (
            "createEnvelope",
            "/docs/api/partner-envelopes#createEnvelope",
        ),
        (
            "starting_after+customer_id",
            "/docs/api/partner-envelopes#listEnvelopes",
        ),
        ("onVaultStored", "/docs/api/webhooks#onVaultStored"),
        ("nginx", "/docs/reverse-proxy#"),
        ("caddy", "/docs/reverse-proxy#"),
        ("sealing+certificate", "/docs/sealing-certificates#"),
        ("docusign", "/docs/coming-from#"),
        ("docuseal+submitter", "/docs/coming-from#"),
        ("alerts", "/docs/monitoring#"),
        ("authoritative+copy+custodian", "/docs/glossary#"),
        ("nothing+arrives", "/docs/troubleshooting#"),
    ] {
        let found = page(&app, &format!("/docs/search?q={question}"))
            .await
            .text();
        let results = found.split_once("<ol class=\"found\">").unwrap().1;
        assert!(results.contains(link), "{question}: {results}");
    }

    let none = page(&app, "/docs/search?q=xylophone").await.text();
    assert!(none.contains("Nothing has all of these words."), "{none}");

    let hostile = page(&app, "/docs/search?q=%3Cscript%3E").await.text();
    assert!(!hostile.contains("<script"), "{hostile}");

    page(&app, "/docs/search").await;

    let llms = page(&app, "/llms.txt").await.text();
    assert!(llms.starts_with("# holdfast\n\n> "), "{llms}");

    for guide in guides(&app).await {
        let link = format!("]({}{guide}.md): ", app.url());
        assert!(llms.contains(&link), "{link}: {llms}");
    }

    let full = page(&app, "/llms-full.txt").await.text();
    assert!(full.contains("# Quickstart") && full.contains("# Receiving webhooks"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guide_is_read_on_a_phone_and_by_keyboard() {
    let app = TestApp::on_a_socket().await;
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    for path in [
        "/docs",
        "/docs/quickstart",
        "/docs/configuration",
        "/docs/search?q=test+key",
        "/docs/api",
        "/docs/api/partner-envelopes",
        "/docs/api/webhooks",
    ] {
        browser.goto(&format!("{}{path}", app.url())).await;
        browser.see("main h1").await;
        let script =
            "return document.documentElement.scrollWidth <= document.documentElement.clientWidth";
        assert_eq!(browser.run(script).await, true, "{path} scrolls sideways");
        browser.is_accessible(path).await;
    }

    browser
        .goto(&format!("{}/docs/quickstart", app.url()))
        .await;
    browser.picture("docs-quickstart").await;

    // A sample in another language, by keyboard alone.
    browser.tab_to(".tabs input").await;
    let shown = "return [...document.querySelector('.tabs').querySelectorAll('pre')].map((pre) => pre.checkVisibility())";
    assert_eq!(browser.run(shown).await, json!([true, false, false]));

    browser.keys("\u{e014}").await; // Right
    assert_eq!(browser.run(shown).await, json!([false, true, false]));
}
