//! Sessions of the field builder, without its page: permissions, documents, and saving while the
//! provider is unreachable.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::support::docuseal::{DocusealFault, FakeDocuseal};
use crate::support::{TestApp, TestResponse, envelope_body, pdf};
use holdfast::domain::organization::OrgSettings;

const SESSIONS: &str = "/esign/builder-session";

#[tokio::test(flavor = "multi_thread")]
async fn a_builder_session_is_limited_to_one_template_of_its_organization() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let request = json!({ "template_id": template["template_id"] });
    let start =
        async |token: &str, body: &Value| app.post_with_bearer(token, SESSIONS, body.clone()).await;
    let nobody = Request::post(format!("/api/v2{SESSIONS}"))
        .header("content-type", "application/json")
        .body(Body::from(request.to_string()));
    let nobody = app.send(nobody.unwrap()).await;
    assert_eq!(nobody.error(401), "Authentication required");

    let unknown = json!({ "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da" });
    let answer = start(&app.admin(), &unknown).await;
    assert_eq!(answer.error(404), "Template not found");

    let answer = start(&app.other_admin(), &request).await;
    assert_eq!(answer.error(404), "Template not found");

    // A web-app token does not open a builder session, nor a session token the web app.
    let path = "/builder/template";
    let answer = app.builder(&app.admin(), "GET", path, None).await;
    assert_eq!(answer.error(401), "Invalid token");

    let session = start(&app.admin(), &request).await.data(201);
    let url = session["builder_url"].as_str().unwrap();
    let (_, token) = url.split_once("#token=").unwrap();
    let answer = start(token, &request).await;
    assert_eq!(answer.error(401), "Invalid token");

    let shown = app.builder(token, "GET", path, None).await.data(200);
    assert_eq!(shown["template_id"], template["template_id"]);

    let later = app.as_of(Duration::from_secs(3_606)).await;
    let answer = later.builder(token, "GET", path, None).await;
    assert_eq!(answer.error(401), "Invalid token");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_starts_one_builder_session() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = json!({ "template_id": template["template_id"] }).to_string();
    let admin = app.admin();
    let start = async || {
        let request = Request::post(format!("/api/v2{SESSIONS}"))
            .header("authorization", format!("Bearer {admin}"))
            .header("content-type", "application/json")
            .header("idempotency-key", "one");
        app.send(request.body(Body::from(body.clone())).unwrap())
            .await
    };
    let first = start().await.data(201);

    let again = start().await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.data(201), first);
}

/// Attaches a document in a builder session.
async fn attach(app: &TestApp, session: &str, content_type: &str, file: &[u8]) -> TestResponse {
    let head = format!(
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\
         content-type: {content_type}\r\n\r\n"
    );
    let body = [head.as_bytes(), file, b"\r\n--b--\r\n"].concat();

    let request = Request::post("/builder/document")
        .header("authorization", format!("Bearer {session}"))
        .header("content-type", "multipart/form-data; boundary=b");
    app.send(request.body(body.into()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_a_template_document_keeps_the_fields_that_fit() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let session = app.template_session(id).await;
    let attach =
        async |content_type: &str, file: &[u8]| attach(&app, &session, content_type, file).await;
    assert_eq!(attach("image/gif", b"GIF89a").await.status, 415);

    let damaged = attach("application/pdf", b"%PDF-1.7\nnothing").await;
    assert_eq!(damaged.error(422), "The PDF could not be read");

    let before = app
        .builder(&session, "GET", "/builder/template", None)
        .await;
    assert_eq!(before.data(200)["fields"].as_array().unwrap().len(), 2);

    // The new document has one page, so the signature on a later page is dropped.
    let shorter = pdf::with_lines(&["One page"]);
    let shown = attach("application/pdf", &shorter).await.data(200);
    assert_eq!(shown["pages"].as_array().unwrap().len(), 1);

    let fields = shown["fields"].as_array().unwrap();
    assert!(
        fields
            .iter()
            .all(|field| field["areas"][0]["page"] == json!(1)),
        "{fields:?}"
    );
    assert!(fields.iter().any(|field| field["name"] == "Signed on"));

    // The author learns what signers would not sign.
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/fixtures/hunt/xfa-dynamic.pdf"
    );
    let warned = attach("application/pdf", &std::fs::read(path).unwrap()).await;
    assert_eq!(warned.status, 200, "{}", warned.text());
    assert_eq!(warned.json()["warnings"][0]["code"], "dynamic_xfa");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_an_attached_documents_form_become_fields_of_the_template() {
    let app = TestApp::start().await;
    let request = json!({ "template_name": "Lease" });
    let session = app.post_with_bearer(&app.admin(), SESSIONS, request).await;
    let session = session.data(201);
    let url = session["builder_url"].as_str().unwrap();
    let (_, token) = url.split_once("#token=").unwrap();
    let shown = attach(&app, token, "application/pdf", &pdf::with_form()).await;
    let shown = shown.data(200);
    let field = |name: &str| {
        let fields = shown["fields"].as_array().unwrap();
        let field = fields.iter().find(|field| field["name"] == name);
        field.unwrap_or_else(|| panic!("{shown}")).clone()
    };
    let name = field("Your name");
    assert_eq!(
        (&name["type"], &name["role"], &name["required"]),
        (&json!("text"), &json!("Signer"), &json!(true))
    );

    assert_eq!(field("Signature")["type"], "signature");
    // The value of a field that is filled in already belongs to the document.
    assert_eq!(shown["fields"].as_array().unwrap().len(), 2);

    // The same document again adds nothing.
    let again = attach(&app, token, "application/pdf", &pdf::with_form()).await;
    assert_eq!(again.data(200)["fields"], shown["fields"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_builder_session_returns_to_registered_pages_only() {
    let app = TestApp::start().await;
    let request = json!({ "template_name": "Lease", "return_url": "https://app.oak.example/done" });
    let start = async || {
        app.post_with_bearer(&app.admin(), SESSIONS, request.clone())
            .await
    };
    let refused = start().await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["path"], json!(["return_url"]));

    app.set_organization(&[r#"return_origins=["https://app.oak.example"]"#]);
    let session = start().await.data(201);

    // The token is posted by the page that found it in the fragment.
    let url = session["builder_url"].as_str().unwrap();
    let (_, token) = url.split_once("#token=").unwrap();
    let open = async |token: &str| {
        let request =
            Request::post("/builder").header("content-type", "application/x-www-form-urlencoded");
        let body = Body::from(format!("token={token}"));
        app.send(request.body(body).unwrap()).await
    };
    let page = open(token).await;

    let id = session["template_id"].as_str().unwrap();
    let back = format!("https://app.oak.example/done?template_id={id}");
    assert!(page.text().contains(&back), "{}", page.text());

    app.set_organization(&["return_origins=[]"]);
    let page = open(token).await.text();
    assert!(
        !page.contains("app.oak.example"),
        "a withdrawn origin: {page}"
    );
    assert_eq!(open("none").await.status, 401);
}

/// A template is not sent until the provider has its saved fields.
#[tokio::test(flavor = "multi_thread")]
async fn fields_saved_during_a_provider_outage_are_synchronized_later() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let lines = ["{{Signature;type=signature;role=Buyer;required=true}}"];
    let texts = [("name", "Agreement")];
    let template = app
        .upload(
            "/partner/templates",
            "application/pdf",
            &pdf::with_lines(&lines),
            &texts,
        )
        .await
        .data(200);

    let session = app
        .template_session(template["template_id"].as_str().unwrap())
        .await;
    let path = "/builder/template";
    let shown = app.builder(&session, "GET", path, None).await.data(200);
    let mut fields = shown["fields"].clone();
    fields.as_array_mut().unwrap().push(json!({
        "name": "Odometer", "type": "number", "role": "Buyer", "required": false,
        "areas": [{ "page": 1, "x": 0.1, "y": 0.5, "w": 0.2, "h": 0.03 }],
    }));

    let save = json!({ "revision": shown["revision"], "fields": fields });
    let away = DocusealFault::Answer(500, json!({ "error": "Internal server error" }));
    for method in ["POST", "PUT"] {
        docuseal.fail(method, "/templates", away.clone(), 99);
    }

    let saved = app.builder(&session, "PUT", path, Some(save)).await;
    assert_eq!(saved.error(502), "Signing provider request failed");

    let kept = app.builder(&session, "GET", path, None).await.data(200);
    assert_eq!(kept["fields"].as_array().unwrap().len(), 2, "ours has it");

    let body = envelope_body(&template["template_id"]);
    let early = app.post("/partner/envelopes", body.clone()).await;
    assert_eq!(early.error(502), "Signing provider request failed");
    assert_eq!(docuseal.submissions(), 0);

    docuseal.recover();
    app.post("/partner/envelopes", body).await.data(201);
    let fields = docuseal.template()["fields"].clone();
    let mut names = fields.as_array().unwrap().iter();
    assert!(names.any(|field| field["name"] == "Odometer"), "{fields}");
}

/// The preview applies the rules to what the author tries, and stores nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_preview_applies_the_rules_to_tried_entries() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let token = app.template_session(id).await;
    let field = |name: &str, kind: &str, y: f64, more: Value| {
        let mut field = json!({
            "name": name, "type": kind, "role": "Buyer", "required": false,
            "areas": [{ "page": 1, "x": 0.3, "y": y, "w": 0.3, "h": 0.03 }],
        });
        for (member, value) in more.as_object().unwrap() {
            field[member] = value.clone();
        }

        field
    };

    let fields = json!([
        field("Sum", "number", 0.1, json!({ "min": "10" })),
        field("Twice", "number", 0.2, json!({ "formula": "[Sum] * 2" })),
        field("Trade-in", "checkbox", 0.3, json!({})),
        field(
            "Model",
            "text",
            0.4,
            json!({ "condition": "Trade-in", "required": true })
        ),
    ]);

    let ask = async |values: Option<Value>| {
        let mut body = json!({ "fields": fields, "role": "Buyer" });
        if let Some(values) = values {
            body["values"] = values;
        }
        app.builder(&token, "POST", "/builder/preview", Some(body))
            .await
    };
    let page = ask(None).await.text();
    let page = scraper::Html::parse_document(&page);

    let hidden = scraper::Selector::parse(".field[hidden]").unwrap();
    assert_eq!(
        page.select(&hidden).count(),
        1,
        "the model is not shown at first"
    );

    let tried = ask(Some(json!({ "Sum": "12", "Trade-in": "true" })))
        .await
        .data(200);
    assert_eq!(tried["computed"], json!({ "Twice": "24.00" }));
    assert_eq!(tried["hidden"], json!([]));
    assert_eq!(tried["required"], json!(["Model"]));
    assert_eq!(tried["problems"], json!({}));

    let tried = ask(Some(json!({ "Sum": "9" }))).await.data(200);
    assert_eq!(tried["hidden"], json!(["Model"]));
    assert!(
        tried["problems"]["Sum"].as_str().unwrap().contains("10"),
        "{tried}"
    );
}
