//! Versions of a template: another document, which keeps the fields, and earlier versions.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::support::uploads::form_of;
use crate::support::{TestApp, TestResponse, envelope_body, pdf};

/// A document of two pages, with an anchor on the first one.
fn first_document() -> Vec<u8> {
    let pages = [&["Agreement", "Buyer signature:"] as &[&str], &["Annex"]];
    pdf::with_pages(&pages, 0)
}

/// The document without its annex, with the anchor further down.
fn other_document() -> Vec<u8> {
    pdf::with_lines(&["Agreement", "Preamble", "Terms", "Buyer signature:"])
}

fn area(page: u32) -> Value {
    json!({ "page": page, "x": 0.6, "y": 0.5, "w": 0.2, "h": 0.03 })
}

/// Makes a template with fields at an anchor, on the first and on the second page.
async fn template(app: &TestApp) -> Value {
    let placed = |page: u32| json!({ "mode": "absolute", "areas": [area(page)] });
    let fields = json!([
        {
            "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": { "mode": "anchor", "anchor_text": "Buyer signature:", "offset_x": 0.2, "w": 0.3, "h": 0.03 },
        },
        { "name": "Signed on", "type": "date", "role": "Buyer", "placement": placed(1) },
        { "name": "Note", "type": "text", "role": "Buyer", "placement": placed(2) },
    ]);

    app.template(&first_document(), &fields).await
}

fn path_of(template: &Value) -> String {
    format!("/templates/{}", template["template_id"].as_str().unwrap())
}

/// Uploads another document for a template, with a query such as `?dry_run=true`.
async fn upload(app: &TestApp, template: &Value, query: &str, pdf: &[u8]) -> TestResponse {
    let (content_type, body) = form_of(Some(("application/pdf", pdf)), &[]);
    let request = Request::post(format!("/api/v2{}/versions{query}", path_of(template)))
        .header("authorization", format!("Bearer {}", app.web_admin()))
        .header("content-type", content_type);
    app.send(request.body(Body::from(body)).unwrap()).await
}

async fn read(app: &TestApp, template: &Value) -> Value {
    app.web(Method::GET, &path_of(template), Value::Null)
        .await
        .data(200)
}

async fn versions(app: &TestApp, template: &Value) -> Value {
    let path = format!("{}/versions", path_of(template));
    app.web(Method::GET, &path, Value::Null).await.data(200)
}

/// Returns names and outcomes of the fields of a new version.
fn outcomes(change: &Value) -> Vec<(&str, &str)> {
    let fields = change["fields"].as_array().unwrap();
    let texts = fields.iter().map(|field| {
        let text = |member: &str| field[member].as_str().unwrap();
        (text("name"), text("outcome"))
    });
    texts.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_what_becomes_of_each_field_and_changes_nothing() {
    let app = TestApp::start().await;
    let template = template(&app).await;
    let before = read(&app, &template).await;

    let change = upload(&app, &template, "?dry_run=true", &other_document()).await;
    let change = change.data(200);
    assert_eq!(
        (&change["made"], &change["version"]),
        (&json!(false), &json!(2))
    );
    let expected = [
        ("Buyer signature", "moved"),
        ("Signed on", "kept"),
        ("Note", "lost"),
    ];
    assert_eq!(outcomes(&change), expected);

    let [signature, date, note] = [0_usize, 1, 2].map(|index| &change["fields"][index]);
    let down = |areas: &Value| areas[0]["y"].as_f64().unwrap();
    assert!(
        down(&signature["to"]) > down(&signature["from"]),
        "{signature}"
    );
    assert_eq!(signature["from"], before["fields"][0]["areas"]);
    assert_eq!(date["to"], json!([area(1)]));
    assert_eq!(note["from"], json!([area(2)]));
    assert_eq!(note["to"], json!([]));
    assert_eq!(note["reason"], "The new document has no page 2");

    assert_eq!(read(&app, &template).await, before);
    assert_eq!(versions(&app, &template).await.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_document_keeps_the_fields_and_the_version_before() {
    let app = TestApp::start().await;
    let template = template(&app).await;
    let body = envelope_body(&template["template_id"]);
    let sent = app.post("/partner/envelopes", body.clone()).await.data(201);
    let document = format!("{}/document", path_of(&template));
    let first = app.web(Method::GET, &document, Value::Null).await;
    assert_eq!(first.status, 200);

    let change = upload(&app, &template, "", &other_document())
        .await
        .data(200);
    assert_eq!(change["made"], true);

    let after = read(&app, &template).await;
    assert_eq!(after["version"], 2);
    assert_eq!(after["fields"].as_array().unwrap().len(), 2);
    assert_eq!(after["fields"][0]["areas"], change["fields"][0]["to"]);

    let listed = versions(&app, &template).await;
    assert_eq!(listed[0]["version"], 2);
    assert_eq!(
        (&listed[0]["present"], &listed[1]["present"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(listed[0]["sha256"], change["sha256"]);
    assert_eq!(
        (&listed[0]["fields"], &listed[1]["fields"]),
        (&json!(2), &json!(3))
    );
    assert!(listed[0]["made_by"].is_string());

    let earlier = format!("{document}?version=1");
    let earlier = app.web(Method::GET, &earlier, Value::Null).await;
    assert_eq!(earlier.bytes, first.bytes);
    let present = app.web(Method::GET, &document, Value::Null).await;
    assert_ne!(present.bytes, first.bytes);

    // The sent envelope stays, and the next one has the new document.
    let path = format!(
        "/partner/envelopes/{}",
        sent["envelope_id"].as_str().unwrap()
    );
    assert_eq!(app.get(&path).await.data(200)["status"], "sent");
    app.post("/partner/envelopes", body).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_becomes_a_new_one() {
    goes_back(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_becomes_a_new_one_on_postgresql() {
    goes_back(TestApp::on_postgresql().await).await;
}

async fn goes_back(app: TestApp) {
    let template = template(&app).await;
    let before = read(&app, &template).await;
    upload(&app, &template, "", &other_document())
        .await
        .data(200);

    let path = format!("{}/versions", path_of(&template));
    let earlier = json!({ "from_version": 1 });
    let change = app
        .web(Method::POST, &path, earlier.clone())
        .await
        .data(200);
    assert_eq!(change["version"], 3);
    let expected = [
        ("Buyer signature", "moved"),
        ("Signed on", "kept"),
        ("Note", "added"),
    ];
    assert_eq!(outcomes(&change), expected);

    let after = read(&app, &template).await;
    assert_eq!(after["fields"], before["fields"]);
    assert_eq!(after["version"], 3);
    let listed = versions(&app, &template).await;
    assert_eq!(listed[0]["sha256"], listed[2]["sha256"]);

    // The anchor still places its field.
    let change = upload(&app, &template, "?dry_run=true", &other_document()).await;
    assert_eq!(outcomes(&change.data(200))[0], ("Buyer signature", "moved"));

    let unknown = json!({ "from_version": 9 });
    let unknown = app.web(Method::POST, &path, unknown).await;
    assert_eq!(unknown.error(404), "Version not found");
    let other = app.other_admin();
    let foreign = app.as_bearer(Method::POST, &other, &path, earlier).await;
    assert_eq!(foreign.error(404), "Template not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_is_lost_with_its_anchor() {
    let app = TestApp::start().await;
    let template = template(&app).await;
    let without = pdf::with_pages(&[&["Agreement"] as &[&str], &["Annex"]], 0);
    let change = upload(&app, &template, "", &without).await.data(200);
    let expected = [
        ("Buyer signature", "lost"),
        ("Signed on", "kept"),
        ("Note", "kept"),
    ];
    assert_eq!(outcomes(&change), expected);
    assert!(change["fields"][0]["reason"].is_string(), "{change}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_names_a_lost_field_refuses_the_document() {
    let app = TestApp::start().await;
    let field = |name: &str, page: u32| {
        json!({
            "name": name, "type": "text", "role": "Buyer",
            "placement": { "mode": "absolute", "areas": [area(page)] },
        })
    };
    let mut reason = field("Reason", 1);
    reason["condition"] = "Note:other".into();
    let fields = json!([reason, field("Note", 2)]);
    let template = app.template(&first_document(), &fields).await;

    for query in ["?dry_run=true", ""] {
        let refused = upload(&app, &template, query, &other_document()).await;
        assert_eq!(refused.status, 422);
        let details = refused.json()["details"].take();
        assert_eq!(details[0]["code"], "invalid_condition", "{details}");
        assert_eq!(details[0]["path"], json!(["fields", 0, "condition"]));
    }
    assert_eq!(read(&app, &template).await["version"], 1);
}

/// A new document may say itself where its fields are.
#[tokio::test(flavor = "multi_thread")]
async fn tags_of_the_new_document_place_their_fields() {
    let app = TestApp::start().await;
    let template = template(&app).await;
    let tagged = pdf::with_lines(&[
        "{{Buyer signature;type=initials;role=Seller}}",
        "{{City;type=text;role=Buyer}}",
    ]);
    let change = upload(&app, &template, "", &tagged).await.data(200);
    let expected = [
        ("Buyer signature", "moved"),
        ("Signed on", "kept"),
        ("Note", "lost"),
        ("City", "added"),
    ];
    assert_eq!(outcomes(&change), expected);

    let after = read(&app, &template).await;
    assert_eq!(after["fields"].as_array().unwrap().len(), 3);
    // A tag gives the place alone.
    let field = &after["fields"][0];
    assert_eq!(field["type"], "signature");
    assert_eq!(field["role"], "Buyer");
    assert_eq!(field["required"], true);
}

/// The page of such a link has no form any more, which its visitors would find.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_without_the_role_of_an_open_link_has_a_warning() {
    let app = TestApp::start().await;
    let field = |name: &str, role: &str, page: u32| {
        json!({
            "name": name, "type": "signature", "role": role, "required": true,
            "placement": { "mode": "absolute", "areas": [area(page)] },
        })
    };
    let fields = json!([field("First", "Buyer", 1), field("Second", "Seller", 2)]);
    let template = app.template(&first_document(), &fields).await;
    let link = json!({
        "name": "Membership", "expires_at": "2030-12-31T23:59:59Z", "limit": 10,
        "signers": [{ "email": "ana@example.com", "name": "Ana Diaz", "role": "Seller" }],
    });
    let path = format!("/partner{}/open-links", path_of(&template));
    app.post(&path, link).await.data(201);

    let codes = |change: &Value| {
        // Absent without any.
        let warnings = change["warnings"].as_array().into_iter().flatten();
        let codes = warnings.map(|warning| warning["code"].as_str().unwrap().to_owned());
        codes.collect::<Vec<_>>()
    };
    let change = upload(&app, &template, "?dry_run=true", &other_document()).await;
    let lost = "open_link_unavailable".to_owned();
    assert!(codes(&change.json()).contains(&lost), "{}", change.text());
    let change = upload(&app, &template, "?dry_run=true", &first_document()).await;
    assert!(!codes(&change.json()).contains(&lost), "{}", change.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_finds_the_anchors_of_its_source() {
    let app = TestApp::start().await;
    let source = template(&app).await;
    let path = format!("{}/duplicate", path_of(&source));
    let made = app
        .web(Method::POST, &path, json!({ "name": "Ohio" }))
        .await;
    let made = made.data(201);
    let change = upload(&app, &made, "?dry_run=true", &other_document()).await;
    assert_eq!(outcomes(&change.data(200))[0], ("Buyer signature", "moved"));
}

/// The sweep removes documents that no row names.
#[tokio::test(flavor = "multi_thread")]
async fn documents_of_earlier_versions_are_no_orphans() {
    let app = TestApp::start().await;
    let template = template(&app).await;
    upload(&app, &template, "", &other_document())
        .await
        .data(200);
    let kept = app.objects("templates");
    assert!(kept.len() >= 2, "{kept:?}");
    let orphan = kept[0].parent().unwrap().join("0".repeat(64));
    std::fs::write(&orphan, b"left behind").unwrap();

    let later = app.as_of(Duration::from_secs(25 * 3600)).await;
    later.wait_until_gone(&orphan).await;
    for path in kept {
        assert!(path.exists(), "{}", path.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_a_pdf_and_not_anything_else() {
    let app = TestApp::start().await;
    let template = template(&app).await;
    let wrong = upload(&app, &template, "", b"PK\x03\x04 a word document").await;
    assert_eq!(wrong.status, 415);
    assert_eq!(read(&app, &template).await["version"], 1);
}
