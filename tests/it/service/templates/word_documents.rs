//! Templates from documents of word processors, which a service converts.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use crate::http::console::Session;
use crate::sdk::test_key;
use crate::service::components::registry::{first_calls, variant};
use crate::support::receiver::WebhookReceiver;
use crate::support::{TestApp, TestResponse, pdf};
use holdfast::config::{Config, ProviderInstance, SecretText};
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;

pub(super) const DOCX: &str =
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
pub(super) const ODT: &str = "application/vnd.oasis.opendocument.text";
const TAG: &str = "{{Sign;type=signature;role=Buyer;required=true}}";

/// Returns an archive with these entries, in this order and without compression.
pub(super) fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn docx() -> Vec<u8> {
    archive(&[
        ("[Content_Types].xml", "<Types/>"),
        ("word/document.xml", "<w:document/>"),
    ])
}

fn odt() -> Vec<u8> {
    archive(&[("mimetype", ODT), ("content.xml", "<office:text/>")])
}

/// Starts a service that answers every document with a PDF that has one tag.
async fn converting() -> WebhookReceiver {
    let service = WebhookReceiver::start().await;
    service.answer(|_, _| pdf::with_lines(&[TAG]).into_response());
    service
}

fn base(service: &WebhookReceiver) -> String {
    service.url.trim_end_matches("/hook").to_owned()
}

/// Configures the service for the whole installation.
fn gotenberg(config: &mut Config, base: &str) {
    let password = ("password".to_owned(), SecretText::new("pass_1"));
    let instance = ProviderInstance {
        base_url: base.parse().unwrap(),
        allow_hosts: None,
        timeout: Duration::from_secs(60),
        secrets: BTreeMap::from([password]),
        publishable_key: None,
        settings: BTreeMap::from([("username".to_owned(), "holdfast".to_owned())]),
    };

    config.providers.allow_insecure = true;
    let instances = &mut config.providers.conversion.instances;
    instances.insert("main".into(), instance);
}

pub(super) async fn with_service(service: &WebhookReceiver) -> TestApp {
    with_service_and(service, |_| {}).await
}

/// An installation with the service and further settings.
pub(super) async fn with_service_and(
    service: &WebhookReceiver,
    further: impl FnOnce(&mut Config),
) -> TestApp {
    let base = base(service);
    let configure = |config: &mut Config| {
        gotenberg(config, &base);
        further(config);
    };
    TestApp::with(configure, OrgSettings::default()).await
}

pub(super) async fn upload(app: &TestApp, content_type: &str, file: &[u8]) -> TestResponse {
    let texts = [("name", "Lease")];
    app.upload("/partner/templates", content_type, file, &texts)
        .await
}

async fn library(app: &TestApp) -> Value {
    app.web(Method::GET, "/templates", Value::Null).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_document_becomes_a_template_with_the_fields_of_its_tags() {
    let service = converting().await;
    let app = with_service(&service).await;
    let made = upload(&app, DOCX, &docx()).await.data(200);
    assert_eq!(made["fields"][0]["name"], "Sign");
    assert_eq!(made["fields"][0]["role"], "Buyer");

    let listed = library(&app).await;
    assert_eq!(listed["data"][0]["template_id"], made["template_id"]);
    assert_eq!(listed["data"][0]["source_format"], "word");
    assert_eq!(listed["data"][0]["has_document"], true);

    let requests = service.received();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path, "/forms/libreoffice/convert");
    // `holdfast:pass_1` (RFC 7617).
    assert_eq!(
        requests[0].header("authorization"),
        "Basic aG9sZGZhc3Q6cGFzc18x"
    );
    let form = String::from_utf8_lossy(&requests[0].body);
    let (_, boundary) = requests[0]
        .header("content-type")
        .split_once("boundary=")
        .unwrap();
    let part = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"document.docx\"\r\n\
         Content-Type: {DOCX}\r\n\r\nPK"
    );
    assert!(form.starts_with(&part), "{form}");
    assert!(form.ends_with(&format!("\r\n--{boundary}--\r\n")), "{form}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opendocument_text_is_recognized_by_its_content() {
    let service = converting().await;
    let app = with_service(&service).await;
    let unnamed = "application/octet-stream";
    let made = upload(&app, unnamed, &odt()).await.data(200);
    assert_eq!(made["fields_added"], 1);

    let form = String::from_utf8_lossy(&service.received()[0].body).into_owned();
    assert!(form.contains("filename=\"document.odt\""), "{form}");
    assert!(form.contains(&format!("Content-Type: {ODT}\r\n")), "{form}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_service_a_word_document_is_refused_with_the_way_to_one() {
    let app = TestApp::start().await;
    let refused = upload(&app, DOCX, &docx()).await;
    let issue = refused.json()["details"][0].clone();
    assert_eq!(refused.error(422), "Validation failed");
    assert_eq!(issue["code"], "no_conversion");
    assert_eq!(issue["path"], json!(["file"]));
    assert_eq!(issue["received"], DOCX);
    let message = issue["message"].as_str().unwrap();
    assert!(message.contains("provider.conversion"), "{message}");
    assert_eq!(library(&app).await["meta"]["total"], 0);

    // The form of the console offers these files all the same: its refusal names the missing provider.
    let sender = Session::of(&app, "sender@example.com", "sender").await;
    let page = sender.get(&app, "/console/templates").await.text();
    assert!(page.contains("accept=\".pdf,.docx,.odt,"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_archives_and_wrong_types_reach_no_service() {
    let service = converting().await;
    let app = with_service(&service).await;
    let sheet = archive(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", ""),
    ]);
    let other = archive(&[("xl/workbook.xml", "word/document.xml")]);
    let macros = archive(&[("word/document.xml", ""), ("word/vbaProject.bin", "")]);
    for (content_type, file) in [
        ("application/octet-stream", &sheet),
        ("application/octet-stream", &other),
        (DOCX, &macros),
        ("application/pdf", &docx()),
        (ODT, &docx()),
    ] {
        let refused = upload(&app, content_type, file).await;
        assert_eq!(refused.status, 415, "{}", refused.text());
    }

    let refused = upload(&app, "application/zip", &docx()).await.error(415);
    assert_eq!(
        refused,
        format!("File is {DOCX}, not application/zip as declared")
    );
    assert!(service.received().is_empty());
}

/// What the service makes is checked like an upload, and nothing is kept of what fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_conversion_creates_no_template() {
    let service = WebhookReceiver::start().await;
    let app = with_service(&service).await;
    service.answer_with(400);
    let refused = upload(&app, DOCX, &docx()).await;
    let issue = refused.json()["details"][0].clone();
    assert_eq!(refused.error(422), "Validation failed");
    assert_eq!(issue["code"], "conversion_refused");
    assert_eq!(issue["path"], json!(["file"]));

    service.answer_with(503);
    let failed = upload(&app, DOCX, &docx()).await;
    assert_eq!(failed.error(502), "Conversion provider request failed");
    service.answer_with(401);
    let failed = upload(&app, DOCX, &docx()).await;
    assert_eq!(failed.error(503), "Conversion provider is not configured");

    service.answer(|_, _| (StatusCode::OK, "<html>Welcome</html>").into_response());
    let failed = upload(&app, DOCX, &docx()).await;
    assert_eq!(failed.error(502), "Conversion provider request failed");
    service.answer(|_, _| (StatusCode::OK, "%PDF-1.7\nand nothing else").into_response());
    let failed = upload(&app, DOCX, &docx()).await;
    assert_eq!(failed.error(422), "The PDF could not be read");

    assert_eq!(library(&app).await["meta"]["total"], 0);
    assert_eq!(app.objects("templates").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_brings_its_own_service() {
    let service = converting().await;
    let insecure = |config: &mut Config| config.providers.allow_insecure = true;
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let bytes = variant(Slot::Conversion, "oak");
    let component = app
        .upload_component(&app.admin(), "oak-conversion", "1.0.0", &bytes)
        .await
        .data(201);

    let path = "/component-slots/provider.conversion/activate";
    let body = json!({
        "component_id": component["component_id"], "instance": "oak",
        "config": { "base_url": base(&service) },
    });
    let activated = app.post_with_bearer(&app.admin(), path, body).await;
    let activated = activated.data(201);
    assert_eq!(activated["probe"]["ok"], true, "{activated}");
    assert_eq!(activated["callback_url"], Value::Null);

    upload(&app, DOCX, &docx()).await.data(200);
    let paths: Vec<String> = service.received().into_iter().map(|one| one.path).collect();
    assert_eq!(paths, ["/health", "/forms/libreoffice/convert"]);

    // Another organization does not use it.
    let other = app.other_organization().await;
    let (path, texts) = ("/partner/templates", [("name", "Lease")]);
    let refused = app.upload_as(&other, path, DOCX, &docx(), &texts).await;
    assert_eq!(refused.json()["details"][0]["code"], "no_conversion");
    assert_eq!(service.received().len(), 2);
}

/// Nothing of a test reaches a provider.
#[tokio::test(flavor = "multi_thread")]
async fn a_test_key_has_no_service() {
    let service = converting().await;
    let app = with_service(&service).await;
    let (path, texts) = ("/partner/templates", [("name", "Lease")]);
    let key = test_key(&app).await;
    let refused = app.upload_as(&key, path, DOCX, &docx(), &texts).await;
    let message = refused.json()["details"][0]["message"].clone();
    assert_eq!(refused.status, 422);
    assert_eq!(
        message,
        "Test data reaches no service that converts documents: send a PDF"
    );
    assert!(service.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_call_finds_wrong_settings_of_a_conversion_service() {
    let service = WebhookReceiver::start().await;
    service.answer(|_, request| match request.path.as_str() {
        "/health" => StatusCode::OK.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    });
    let base = base(&service);

    let insecure = |config: &mut Config| config.providers.allow_insecure = true;
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let without_password = json!({ "base_url": base, "settings": { "username": "holdfast" } });
    let tries = [
        (without_password, 422, "secret password"),
        (
            json!({ "base_url": format!("{base}/elsewhere") }),
            422,
            "base_url is not the address of a Gotenberg",
        ),
        (json!({ "base_url": base }), 201, ""),
    ];

    first_calls(&app, Slot::Conversion, &tries).await;
}
