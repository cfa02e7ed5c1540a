//! Variables in templates of word processor documents.

use std::io::{Cursor, Read as _, Write as _};

use axum::http::{Method, Request};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::word_documents::{DOCX, ODT, archive, upload, with_service, with_service_and};
use crate::http::console::Session;
use crate::support::docuseal::{DocusealFault, FakeDocuseal};
use crate::support::receiver::WebhookReceiver;
use crate::support::uploads::form_of;
use crate::support::{TestApp, TestResponse, envelope_body, pdf};

const TAG: &str = "{{Sign;type=signature;role=Buyer;required=true}}";
const WORD: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;
const TEXT: &str = r#"xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0""#;

/// Returns a Word document with these paragraphs, each of several runs, and a tag at its end.
fn docx(paragraphs: &[&[&str]]) -> Vec<u8> {
    let run = |text: &&str| format!("<w:r><w:t>{text}</w:t></w:r>");
    let paragraph = |runs: &&[&str]| {
        let runs: String = runs.iter().map(run).collect();
        format!("<w:p>{runs}</w:p>")
    };
    let tag: &[&str] = &[TAG];
    let body: String = paragraphs.iter().chain([&tag]).map(paragraph).collect();
    archive(&[
        ("[Content_Types].xml", "<Types/>"),
        (
            "word/document.xml",
            &format!("<w:document {WORD}>{body}</w:document>"),
        ),
    ])
}

/// Returns the text of the document that a request to the service has, a line for each paragraph.
fn text_of(request: &[u8]) -> String {
    let start = request
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap()
        + 4;
    let end = request
        .windows(4)
        .rposition(|bytes| bytes == b"\r\n--")
        .unwrap();
    let mut archive = zip::ZipArchive::new(Cursor::new(&request[start..end])).unwrap();
    let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
    let main = names
        .iter()
        .find(|name| *name == "content.xml" || *name == "word/document.xml");
    let mut markup = String::new();
    let mut part = archive.by_name(main.unwrap()).unwrap();
    part.read_to_string(&mut markup).unwrap();

    let mut text = String::new();
    for piece in markup.split_inclusive('>') {
        let (words, tag) = piece.split_once('<').unwrap_or((piece, ""));
        text += words;
        let ends = ["/w:p>", "w:br/>", "/text:p>", "text:line-break/>"];
        if ends.contains(&tag) {
            text.push('\n');
        }
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Starts a service that makes PDFs with the text of each document.
async fn converting() -> WebhookReceiver {
    let service = WebhookReceiver::start().await;
    service.answer(|_, request| {
        let text = text_of(&request.body);
        let lines: Vec<&str> = text.lines().collect();
        pdf::with_lines(&lines).into_response()
    });
    service
}

/// A template with the variables `customer` and `city`.
struct Lease {
    app: TestApp,
    service: WebhookReceiver,
    template: Value,
}

impl Lease {
    async fn new() -> Self {
        Self::of(&docx(&[&["Lease of [[cust", "omer]], [[city]]"]])).await
    }

    async fn of(document: &[u8]) -> Self {
        let service = converting().await;
        let app = with_service(&service).await;
        let template = upload(&app, DOCX, document).await.data(200);
        Self {
            app,
            service,
            template,
        }
    }

    fn path(&self) -> String {
        format!(
            "/templates/{}",
            self.template["template_id"].as_str().unwrap()
        )
    }

    /// Creates an envelope with values of variables.
    async fn send(&self, variables: Value) -> TestResponse {
        let mut body = envelope_body(&self.template["template_id"]);
        body["variables"] = variables;
        self.app.post("/partner/envelopes", body).await
    }

    /// Returns the text of the document that was converted last.
    fn last_text(&self) -> String {
        text_of(&self.service.received().last().unwrap().body)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_envelope_gets_a_document_with_its_own_values() {
    let lease = Lease::new().await;
    let app = &lease.app;
    let none = |name: &str| json!({ "name": name, "default": null });
    assert_eq!(
        lease.template["variables"],
        json!([none("customer"), none("city")])
    );

    let default = json!({ "variables": [{ "name": "city", "default": "Toledo" }] });
    let changed = app
        .web(Method::PATCH, &lease.path(), default)
        .await
        .data(200);
    let expected = json!([none("customer"), { "name": "city", "default": "Toledo" }]);
    assert_eq!(changed["variables"], expected);

    let sent = lease
        .send(json!({ "customer": "Jordan & Lee\n1 Oak St" }))
        .await;
    assert_eq!(sent.data(201)["status"], "sent");
    let expected = format!("Lease of Jordan & Lee\n1 Oak St, Toledo\n{TAG}\n");
    assert_eq!(lease.last_text(), expected);

    // The signature moves with the text, and the template stays as it is.
    let fields = "select fields from template where origin = 'document'";
    let fields: Value = serde_json::from_str(&app.text_of(fields).await).unwrap();
    let (own, before) = (
        &fields[0]["areas"][0]["y"],
        &lease.template["fields"][0]["areas"][0]["y"],
    );
    assert!(own.as_f64() > before.as_f64(), "{own} {before}");
    let template = app
        .web(Method::GET, &lease.path(), Value::Null)
        .await
        .data(200);
    assert_eq!(template["fields"], lease.template["fields"]);

    let given = json!({ "customer": "Ann", "city": "Akron" });
    lease.send(given).await.data(201);
    assert_eq!(lease.last_text(), format!("Lease of Ann, Akron\n{TAG}\n"));
}

/// Documents that were made for envelopes, and not deleted since.
const DOCUMENTS: &str =
    "select cast(count(*) as text) from template where origin = 'document' and deleted_at is null";

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_envelope_leaves_no_filled_document() {
    let lease = Lease::new().await;
    let app = &lease.app;
    app.set_organization(&["funding=enforce"]);
    let given = json!({ "customer": "Ann", "city": "Akron" });
    let refused = lease.send(given.clone()).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(refused.json()["code"], "funding_refused");
    // The rules have read the filled document.
    assert_eq!(lease.last_text(), format!("Lease of Ann, Akron\n{TAG}\n"));
    assert_eq!(app.text_of(DOCUMENTS).await, "0");

    app.set_organization(&["funding=off"]);
    lease.send(given).await.data(201);
    assert_eq!(app.text_of(DOCUMENTS).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provider_leaves_no_filled_document() {
    let service = converting().await;
    let docuseal = FakeDocuseal::start().await;
    let app = with_service_and(&service, |config| docuseal.configure(config)).await;
    let document = docx(&[&["Lease of [[customer]]"]]);
    let template = upload(&app, DOCX, &document).await.data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["variables"] = json!({ "customer": "Ann" });

    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(500, json!({})),
        1,
    );
    let failed = app.post("/partner/envelopes", body.clone()).await;
    assert_eq!(failed.status, 502, "{}", failed.text());
    assert_eq!(app.text_of(DOCUMENTS).await, "0");

    app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(app.text_of(DOCUMENTS).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_unknown_and_unfit_values_are_refused_by_name() {
    let lease = Lease::new().await;
    let app = &lease.app;
    for (variables, code, path) in [
        (json!({ "city": "Akron" }), "missing_variable", "customer"),
        (
            json!({ "customer": "a", "city": "b", "cty": "c" }),
            "unknown_variable",
            "cty",
        ),
        (
            json!({ "customer": TAG, "city": "b" }),
            "invalid_string",
            "customer",
        ),
        (
            json!({ "customer": "\u{7}", "city": "b" }),
            "invalid_string",
            "customer",
        ),
    ] {
        let refused = lease.send(variables).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        let issue = refused.json()["details"][0].clone();
        assert_eq!(issue["code"], code, "{issue}");
        assert_eq!(issue["path"], json!(["variables", path]));
    }
    // Nothing was converted but the template itself.
    assert_eq!(lease.service.received().len(), 1);

    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    body["variables"] = json!({});
    let refused = app.post("/partner/envelopes", body).await.error(400);
    assert_eq!(refused, "variables needs template_id");

    let pdf = app.contract_template().await;
    let mut body = envelope_body(&pdf["template_id"]);
    body["variables"] = json!({ "city": "Akron" });
    let refused = app.post("/partner/envelopes", body).await;
    assert_eq!(refused.json()["details"][0]["code"], "unknown_variable");

    let body = json!({ "variables": [{ "name": "cty", "default": "Akron" }] });
    let refused = app.web(Method::PATCH, &lease.path(), body).await;
    assert_eq!(refused.json()["details"][0]["code"], "unknown_variable");
}

/// Only the author of a template makes fields: a value that names a tag of the document makes none.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_would_make_a_field_are_refused() {
    let tag = "{{[[customer]];type=text;role=Buyer}}";
    let lease = Lease::of(&docx(&[&[tag]])).await;
    let refused = lease.send(json!({ "customer": "Extra" })).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["code"], "field_without_place");
    assert_eq!(issue["received"], "Extra");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_sent_with_values_and_a_planned_one_keeps_them() {
    let lease = Lease::new().await;
    let app = &lease.app;
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    let draft = app.post("/partner/envelopes", body).await.data(201);
    let path = format!("/envelopes/{}/send", draft["envelope_id"].as_str().unwrap());
    let mut body = json!({ "template_id": lease.template["template_id"] });
    let refused = app.web(Method::POST, &path, body.clone()).await;
    assert_eq!(refused.json()["details"][0]["code"], "missing_variable");

    body["variables"] = json!({ "customer": "Ann", "city": "Akron" });
    let sent = app.web(Method::POST, &path, body).await;
    assert!(sent.status.is_success(), "{}", sent.text());
    assert_eq!(lease.last_text(), format!("Lease of Ann, Akron\n{TAG}\n"));

    let mut planned = envelope_body(&lease.template["template_id"]);
    planned["variables"] = json!({ "customer": "Bob", "city": "Akron" });
    let at =
        holdfast::domain::clock::Clock::default().now() + std::time::Duration::from_secs(86_400);
    planned["send_at"] = json!(at.to_string());
    let planned = app.post("/partner/envelopes", planned).await.data(201);
    let path = format!(
        "/envelopes/{}/send",
        planned["envelope_id"].as_str().unwrap()
    );
    let converted = lease.service.received().len();
    let sent = app.web(Method::POST, &path, json!({})).await;
    assert!(sent.status.is_success(), "{}", sent.text());
    assert_eq!(lease.service.received().len(), converted);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_document_for_many_people_takes_no_variables() {
    let lease = Lease::new().await;
    let app = &lease.app;
    let template = &lease.template["template_id"];
    let batch = json!({
        "name": "Notice", "document_source": "template", "source_template_id": template,
    });
    let refused = app.web(Method::POST, "/bulk-send", batch).await.error(422);
    assert!(refused.contains("variables"), "{refused}");

    let link = json!({ "name": "Membership", "expires_at": "2030-12-31T23:59:59Z", "limit": 10 });
    let path = format!("/partner{}/open-links", lease.path());
    let refused = app.post(&path, link).await.error(409);
    assert!(refused.contains("variables"), "{refused}");

    let other = app.contract_template().await;
    let merged = json!({ "template_ids": [template, other["template_id"]] });
    let refused = app
        .web(Method::POST, "/esign/builder-session", merged)
        .await;
    let refused = refused.error(422);
    assert!(refused.contains("variables"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_opendocument_text_has_variables_too() {
    let service = converting().await;
    let app = with_service(&service).await;
    let body = format!(
        "<office:text {TEXT}><text:p>[[customer]]</text:p><text:p>{TAG}</text:p></office:text>"
    );
    // The first element of a real document declares both prefixes.
    let document = archive(&[("mimetype", ODT), ("content.xml", &body)]);
    let template = upload(&app, ODT, &document).await.data(200);
    assert_eq!(template["variables"][0]["name"], "customer");

    let mut body = envelope_body(&template["template_id"]);
    body["variables"] = json!({ "customer": "Ann\nLee" });
    app.post("/partner/envelopes", body).await.data(201);
    let last = service.received().last().unwrap().clone();
    assert_eq!(text_of(&last.body), format!("Ann\nLee\n{TAG}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_unpacks_to_too_much_is_refused_before_the_service() {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated);
    zip.start_file("word/document.xml", options).unwrap();
    let spaces = vec![b' '; 1024 * 1024];
    for _ in 0..49 {
        zip.write_all(&spaces).unwrap();
    }
    let bomb = zip.finish().unwrap().into_inner();
    assert!(bomb.len() < 1024 * 1024);

    let service = converting().await;
    let app = with_service(&service).await;
    let refused = upload(&app, DOCX, &bomb).await;
    assert_eq!(refused.status, 422);
    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["code"], "unreadable_document");
    assert_eq!(
        issue["message"],
        "The text of the document is larger than 48 MiB"
    );
    assert!(service.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_belong_to_a_version_and_a_duplicate_has_them() {
    let lease = Lease::new().await;
    let app = &lease.app;
    let path = format!("{}/versions", lease.path());
    let (content_type, form) = form_of(Some(("application/pdf", &pdf::with_lines(&[TAG]))), &[]);
    let request = Request::post(format!("/api/v2{path}"))
        .header("authorization", format!("Bearer {}", app.web_admin()))
        .header("content-type", content_type);
    app.send(request.body(form.into()).unwrap()).await.data(200);
    let read = app
        .web(Method::GET, &lease.path(), Value::Null)
        .await
        .data(200);
    assert_eq!(read["variables"], json!([]));
    lease.send(json!({})).await.data(201);

    app.web(Method::POST, &path, json!({ "from_version": 1 }))
        .await
        .data(200);
    let read = app
        .web(Method::GET, &lease.path(), Value::Null)
        .await
        .data(200);
    assert_eq!(read["variables"], lease.template["variables"]);

    let path = format!("{}/duplicate", lease.path());
    let copy = app
        .web(Method::POST, &path, json!({ "name": "Copy" }))
        .await
        .data(201);
    assert_eq!(copy["variables"], lease.template["variables"]);
    let mut body = envelope_body(&copy["template_id"]);
    body["variables"] = json!({ "customer": "Ann", "city": "Akron" });
    app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(lease.last_text(), format!("Lease of Ann, Akron\n{TAG}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_asks_for_the_values_of_a_draft() {
    let lease = Lease::new().await;
    let app = &lease.app;
    let sender = Session::of(app, "sender@example.com", "sender").await;
    let own = format!("/console{}", lease.path());
    let page = sender.get(app, &own).await.text();
    for part in ["name=\"variable-0\"", "customer", "name=\"default-1\""] {
        assert!(page.contains(part), "{part}: {page}");
    }

    let template = lease.template["template_id"].as_str().unwrap();
    let form = |more: &str| format!("template={template}&{more}");
    let path = "/console/drafts/template";
    let refused = sender
        .post(app, path, &form("variable-0=&variable-1=Akron"))
        .await;
    assert_eq!(refused.status, 422);
    let page = refused.text();
    assert!(
        page.contains("variable-0-problem") && page.contains("Akron"),
        "{page}"
    );

    let draft = sender
        .post(app, path, &form("variable-0=Ann&variable-1=Akron"))
        .await;
    assert_eq!(draft.status, 303, "{}", draft.text());
    assert_eq!(lease.last_text(), format!("Lease of Ann, Akron\n{TAG}\n"));

    let path = format!("{own}/rename");
    let changed = sender
        .post(app, &path, "name=Lease&default-0=&default-1=Toledo")
        .await;
    assert_eq!(changed.status, 303, "{}", changed.text());
    let read = app
        .web(Method::GET, &lease.path(), Value::Null)
        .await
        .data(200);
    assert_eq!(read["variables"][0]["default"], Value::Null);
    assert_eq!(read["variables"][1]["default"], "Toledo");
}
