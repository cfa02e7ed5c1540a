//! Fair use: one tenant, link or address with many requests leaves the others their share.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::builder::PdfBuilder;
use crate::support::{TestApp, TestResponse, form};

/// Returns a document that takes seconds to search: many pages full of glyphs.
fn heavy() -> Vec<u8> {
    let line = "BT /F1 4 Tf 5 50 Td (and so on and so forth and so on and so forth) Tj ET\n";
    let mut document = PdfBuilder::new();
    for _ in 0..600 {
        document.page(&line.repeat(50));
    }
    document.build()
}

fn anchor(text: &str) -> String {
    json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "anchor", "anchor_text": text, "w": 0.2, "h": 0.05 },
    }])
    .to_string()
}

/// Each tenant has its own queue, so its documents do not wait for those of another tenant.
#[tokio::test(flavor = "multi_thread")]
async fn heavy_documents_of_one_tenant_do_not_delay_another() {
    let app = TestApp::start().await;
    let other = app.other_organization().await;

    // Loading the components must not count as waiting time.
    app.contract_template().await;
    let (heavy, fields) = (heavy(), anchor("nowhere to be found"));
    let texts = [("name", "Heavy"), ("fields_json", fields.as_str())];
    let attack = |_| app.upload("/partner/templates", "application/pdf", &heavy, &texts);
    let mut attack = futures::future::join_all((0..12).map(attack));
    let victim = async {
        // Wait until the heavy documents are being processed.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let began = Instant::now();
        let fields = anchor("Buyer signature:");
        let texts = [("name", "Small"), ("fields_json", fields.as_str())];
        let contract = crate::support::CONTRACT;
        let path = "/partner/templates";
        let created = app.upload_as(&other, path, "application/pdf", contract, &texts);
        created.await.data(200);

        began.elapsed()
    };

    let (mut waited, began) = (None, Instant::now());
    let mut victim = std::pin::pin!(victim);
    let attacked = loop {
        tokio::select! {
            took = &mut victim, if waited.is_none() => waited = Some(took),
            answers = &mut attack => break answers,
        }
    };

    let whole = began.elapsed();
    assert!(attacked.iter().all(|answer| answer.status == 422));

    let waited = waited.expect("the other tenant waited for the whole attack");
    assert!(waited * 3 < whole, "{waited:?} of {whole:?}");
}

/// Requests for one envelope beyond its queue limit are refused immediately, without an effect
/// on other organizations.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_document_queue_returns_503_with_retry_after() {
    let app = TestApp::start().await;
    let field = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.05 }] },
    }]);
    let template = app.template(&heavy(), &field).await;
    let body = crate::support::envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let url = envelope["sign_url"].as_str().unwrap();
    let link = &url[url.find("/sign/").unwrap()..];

    let other = app.other_organization().await;

    // A queue holds 64 calls about one document.
    let pages: Vec<_> = (1..=120)
        .map(|page| format!("{link}/pages/{page}.png"))
        .collect();

    // Almost twice as many calls as the queue holds.
    let attack = futures::future::join_all(pages.iter().map(|path| get(&app, path, None)));
    let victim = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let fields = anchor("Buyer signature:");
        let texts = [("name", "Small"), ("fields_json", fields.as_str())];
        let contract = crate::support::CONTRACT;
        app.upload_as(
            &other,
            "/partner/templates",
            "application/pdf",
            contract,
            &texts,
        )
        .await
    };

    let (answers, created) = tokio::join!(attack, victim);
    created.data(200);
    let (shown, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 200);
    assert!(!shown.is_empty() && !refused.is_empty());

    for answer in refused {
        assert_eq!(answer.headers["retry-after"], "5");
        assert_eq!(
            answer.error(503),
            "Too much work of this kind is waiting; please try again"
        );
    }

    // The refusal leaves no trace: the same page can be requested later.
    assert_eq!(get(&app, &pages[119], None).await.status, 200);
}

async fn get(app: &TestApp, path: &str, address: Option<&str>) -> TestResponse {
    let mut request = Request::get(path);
    if let Some(address) = address {
        request = request.header("x-forwarded-for", address);
    }
    app.send(request.body(Body::empty()).unwrap()).await
}

#[track_caller]
fn is_refused(answer: &TestResponse) {
    assert_eq!(answer.status, 429);
    let seconds = answer.headers["retry-after"].to_str().unwrap();
    assert!((1..=60).contains(&seconds.parse::<u32>().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signing_link_has_a_request_limit_with_an_error_page() {
    let limited = |config: &mut Config| config.rate_limits.signing_link = 3;
    let app = TestApp::with(limited, OrgSettings::default()).await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    for _ in 0..3 {
        assert_eq!(form::fetch(&app, url).await.status, 200);
    }

    let refused = form::fetch(&app, url).await;
    is_refused(&refused);
    assert!(refused.text().contains("One moment, please"));

    // The form's script gets JSON.
    let path = url[url.find("/sign/").unwrap()..].to_owned() + "/pages/1.json";
    let refused = get(&app, &path, None).await;
    is_refused(&refused);
    assert_eq!(refused.error(429), "Rate limit exceeded");

    // Another signer is not affected.
    let other = app.sent_envelope().await;
    let other = form::open(&app, other["sign_url"].as_str().unwrap()).await;
    assert_eq!(other.status, 200);
}

/// Copies are large, so a link has a lower limit for them than for other requests.
#[tokio::test(flavor = "multi_thread")]
async fn a_signing_link_has_a_limit_for_copies() {
    let limited = |config: &mut Config| config.rate_limits.copies = 1;
    let app = TestApp::with(limited, OrgSettings::default()).await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    form::sign(&app, url).await;
    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "vaulted").await;

    let path = url[url.find("/sign/").unwrap()..].to_owned() + "/copy.pdf";
    assert_eq!(get(&app, &path, None).await.status, 200);

    is_refused(&get(&app, &path, None).await);

    // The form still shows the signer's status.
    assert_eq!(form::open(&app, url).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn web_tokens_and_builder_sessions_have_request_limits() {
    let limited = |config: &mut Config| {
        config.rate_limits.web_token = 3;
        config.rate_limits.builder_session = 2;
    };
    let app = TestApp::with(limited, OrgSettings::default()).await;
    let template = app.contract_template().await;

    let session = app
        .template_session(template["template_id"].as_str().unwrap())
        .await;
    for _ in 0..2 {
        let shown = app
            .builder(&session, "GET", "/builder/template", None)
            .await;
        assert_eq!(shown.status, 200);
    }

    is_refused(
        &app.builder(&session, "GET", "/builder/template", None)
            .await,
    );
    let token = app.token("admin");
    for _ in 0..3 {
        assert_eq!(app.get_with_bearer(&token, "/templates").await.status, 200);
    }

    let refused = app.get_with_bearer(&token, "/templates").await;
    is_refused(&refused);
    assert_eq!(refused.error(429), "Rate limit exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_requests_are_limited_for_each_address() {
    let app = TestApp::on_a_socket_over(|config| {
        config.rate_limits.ledger = 2;
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let ask = |path: &str, address: &str| {
        let request = client.get(format!("{}/api/v2/ledger/{path}", app.url()));
        let request = request.header("x-forwarded-for", address);
        async move { request.send().await.unwrap().status().as_u16() }
    };

    // The limit is shared by all paths of the log, but not by addresses.
    for path in ["head", "checkpoint"] {
        assert_ne!(ask(path, "203.0.113.1").await, 429);
    }
    assert_eq!(ask("tile/0/000.p/1", "203.0.113.1").await, 429);
    assert_eq!(ask("head", "203.0.113.1").await, 429);
    assert_ne!(ask("head", "203.0.113.2").await, 429);
}

/// An immediate response would only invite the next request, so refusals are delayed.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_delayed_after_a_hundred_of_them() {
    let app = TestApp::on_a_socket_over(|config| {
        config.rate_limits.ledger = 1;
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let ask = async |address: &str| {
        let began = Instant::now();
        let request = client.get(format!("{}/api/v2/ledger/head", app.url()));
        let request = request.header("x-forwarded-for", address);
        (request.send().await.unwrap().status(), began.elapsed())
    };
    assert_ne!(ask("203.0.113.7").await.0, 429);

    for _ in 0..100 {
        assert_eq!(ask("203.0.113.7").await.0, 429);
    }

    let (status, took) = ask("203.0.113.7").await;
    assert_eq!(status, 429);
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert_ne!(ask("203.0.113.8").await.0, 429);
}

/// Returns the text lines of the first page.
async fn lines(app: &TestApp, url: &str) -> Value {
    let path = url[url.find("/sign/").unwrap()..].to_owned() + "/pages/1.json";
    let first = get(app, &path, None).await;
    assert_eq!(first.headers["cache-control"], "private, max-age=3600");
    first.json()
}

/// Page texts are cached like page images: they are served without reading the document.
#[tokio::test(flavor = "multi_thread")]
async fn page_text_is_cached_after_the_first_request() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let before = lines(&app, url).await;
    assert!(!before.as_array().unwrap().is_empty());

    for object in app.objects("room") {
        std::fs::remove_file(object).unwrap();
    }
    assert_eq!(lines(&app, url).await, before);
}

/// Concurrent requests for the copy of a document that is not vaulted yet make it only once.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_an_unvaulted_document_is_made_once() {
    let app = TestApp::without_auto_vault().await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    form::sign(&app, url).await;
    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "completed").await;
    let path = url[url.find("/sign/").unwrap()..].to_owned() + "/copy.pdf";
    let first = get(&app, &path, None).await;
    assert_eq!(first.status, 200);

    for object in app.objects("room") {
        std::fs::remove_file(object).unwrap();
    }
    assert_eq!(get(&app, &path, None).await.bytes, first.bytes);
}
