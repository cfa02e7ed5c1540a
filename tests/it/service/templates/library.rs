//! The web app's templates and customers.

use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::docuseal::FakeDocuseal;
use crate::support::{CONTRACT, TestApp, envelope_body, pdf};
use holdfast::domain::organization::OrgSettings;

#[tokio::test(flavor = "multi_thread")]
async fn a_template_can_be_created_with_or_without_a_document() {
    let app = TestApp::start().await;
    let draft = json!({ "name": "Draft", "kba_required": true, "external_id": "x-1" });
    let draft = app.web(Method::POST, "/templates", draft).await.data(201);
    assert_eq!(draft["kba_required"], true);
    assert_eq!(draft["external_id"], "x-1");
    assert_eq!(draft["has_document"], false);
    assert_eq!(draft["provider_template_id"], Value::Null);
    assert_eq!(draft["provider_instance"], "embedded");

    let tagged = pdf::with_lines(&["{{Sign;type=signature;role=Buyer;required=true}}"]);
    let texts = [("name", "Tagged"), ("kba_required", "false")];
    let made = app.library_template(&texts, &tagged).await.data(201);
    assert_eq!(made["roles"], json!(["Buyer"]));
    assert_eq!(made["has_document"], true);
    assert!(made["provider_template_id"].is_i64());
    assert_eq!(made["source_format"], "pdf");

    let path = format!("/templates/{}", made["template_id"].as_str().unwrap());
    assert_eq!(
        app.web(Method::GET, &path, Value::Null).await.data(200),
        made
    );

    let list = app
        .web(Method::GET, "/templates?limit=1", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"], json!({ "page": 1, "limit": 1, "total": 2 }));
    assert_eq!(list["data"], json!([made]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_template_form_is_refused_with_reasons() {
    let app = TestApp::start().await;
    for (texts, status, error) in [
        (vec![], 400, "name is required"),
        (
            vec![("name", "A"), ("kba_required", "yes")],
            400,
            "kba_required must be true or false",
        ),
        (
            vec![("name", "A"), ("source_format", "docx")],
            400,
            "source_format must be pdf or word",
        ),
        (
            vec![("name", "A"), ("fields_json", "{}")],
            400,
            "fields_json must be an array",
        ),
    ] {
        let answer = app.library_template(&texts, CONTRACT).await;
        assert_eq!(answer.error(status), error);
    }

    let answer = app
        .library_template(&[("name", "A")], b"PK\x03\x04 a word document")
        .await;
    assert_eq!(answer.status, 415);

    let answer = app
        .web(Method::POST, "/templates", json!({ "kba_required": "yes" }))
        .await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.json()["details"].as_array().unwrap().len(), 2);

    let list = app.web(Method::GET, "/templates", Value::Null).await.json();
    assert_eq!(list["meta"]["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn identity_verification_of_a_template_cannot_be_changed() {
    let app = TestApp::start().await;
    let made = json!({ "name": "A", "kba_required": false });
    let made = app.web(Method::POST, "/templates", made).await.data(201);
    let path = format!("/templates/{}", made["template_id"].as_str().unwrap());
    let body = json!({ "name": "B", "kba_required": true });
    let refused = app.web(Method::PATCH, &path, body).await.error(409);
    assert_eq!(
        refused,
        "kba_required cannot be changed once a document is begun"
    );

    let body = json!({ "name": "B", "kba_required": false, "external_id": "e" });
    let changed = app.web(Method::PATCH, &path, body).await.data(200);
    assert_eq!(changed["name"], "B");
    assert_eq!(changed["external_id"], "e");

    let other = app.other_admin();
    let answer = app
        .as_bearer(Method::PATCH, &other, &path, json!({ "name": "C" }))
        .await;
    assert_eq!(answer.error(404), "Template not found");

    let member = app.token("member");
    let answer = app.get_with_bearer(&member, &path).await;
    assert_eq!(
        answer.error(403),
        "Role owner, admin, sender, compliance, auditor or controller is required"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_template_cannot_be_sent() {
    let docuseal = FakeDocuseal::start().await;
    let configure = |config: &mut holdfast::config::Config| {
        docuseal.configure(config);
        config.sweep_interval = Some(Duration::from_millis(100));
    };
    let app = TestApp::with(configure, OrgSettings::default()).await;
    let template = app.contract_template().await;
    let sent = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201);

    let path = format!("/templates/{}", template["template_id"].as_str().unwrap());
    let deleted = app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert_eq!(deleted["deleted"], true);
    assert_eq!(app.web(Method::GET, &path, Value::Null).await.status, 404);
    assert_eq!(
        app.web(Method::DELETE, &path, Value::Null).await.status,
        404
    );

    let again = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await;
    assert_eq!(again.error(404), "Template not found");

    // As if the 30 days were over in which it can be restored.
    app.execute("update template set deleted_at = '2020-01-01T00:00:00.000Z'")
        .await;
    app.execute(
        "update job set run_at = '2020-01-01T00:00:00.000Z' where kind = 'template.archive'",
    )
    .await;

    // DocuSeal hides documents of archived templates, so archiving waits for open envelopes.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(docuseal.template()["archived_at"].is_null());

    let id = sent["envelope_id"].as_str().unwrap();
    app.wait_for(id, "sent").await;
    let void = format!("/partner/envelopes/{id}/void");
    app.post(&void, json!({})).await.data(200);

    let deadline = Instant::now() + Duration::from_secs(20);
    while docuseal.template()["archived_at"].is_null() {
        assert!(Instant::now() < deadline, "not archived at the provider");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_template_can_be_restored_for_30_days() {
    deletion_is_taken_back(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_template_can_be_restored_on_postgresql() {
    deletion_is_taken_back(TestApp::on_postgresql().await).await;
}

async fn deletion_is_taken_back(app: TestApp) {
    let template = app.contract_template().await;
    let path = format!("/templates/{}", template["template_id"].as_str().unwrap());
    let restore = format!("{path}/restore");
    let deleted = app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert!(deleted["restorable_until"].is_string());

    let list = app
        .web(Method::GET, "/templates?deleted=true", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"]["total"], 1);
    let listed = &list["data"][0];
    assert_eq!(listed["template_id"], template["template_id"]);
    assert_eq!(listed["restorable_until"], deleted["restorable_until"]);

    let other = app.other_admin();
    let foreign = app
        .as_bearer(Method::POST, &other, &restore, json!({}))
        .await;
    assert_eq!(foreign.error(404), "Template not found");

    // A repeat is harmless.
    for _ in 0..2 {
        let restored = app.web(Method::POST, &restore, Value::Null).await.data(200);
        assert_eq!(restored["deleted_at"], Value::Null);
        assert_eq!(restored["fields"], template["fields"]);
    }
    let body = envelope_body(&template["template_id"]);
    app.post("/partner/envelopes", body).await.data(201);

    app.web(Method::DELETE, &path, Value::Null).await.data(200);
    app.execute("update template set deleted_at = '2020-01-01T00:00:00.000Z'")
        .await;
    let late = app.web(Method::POST, &restore, Value::Null).await;
    assert_eq!(late.error(404), "Template not found");
    let list = app
        .web(Method::GET, "/templates?deleted=true", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"]["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_has_the_fields_and_a_life_of_its_own() {
    let app = TestApp::start().await;
    let source = app.contract_template().await;
    let path = format!("/templates/{}", source["template_id"].as_str().unwrap());
    let duplicate = format!("{path}/duplicate");
    let setting = json!({ "may_decline": false });
    app.web(Method::PATCH, &path, setting).await.data(200);
    let made = json!({ "name": "Ohio", "external_id": "oh-1" });
    let made = app.web(Method::POST, &duplicate, made).await.data(201);
    assert_ne!(made["template_id"], source["template_id"]);
    assert_eq!(
        (&made["name"], &made["external_id"]),
        (&json!("Ohio"), &json!("oh-1"))
    );
    assert_eq!(made["fields"], source["fields"]);
    assert_eq!(made["may_decline"], false);
    assert_eq!(made["version"], 1);

    let own = format!("/templates/{}", made["template_id"].as_str().unwrap());
    let mut documents = Vec::new();
    for path in [&path, &own] {
        let path = format!("{path}/document");
        let answer = app.web(Method::GET, &path, Value::Null).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "application/pdf");
        documents.push(answer.bytes);
    }
    assert_eq!(documents[0], documents[1]);

    app.web(Method::DELETE, &path, Value::Null).await.data(200);
    let body = envelope_body(&made["template_id"]);
    app.post("/partner/envelopes", body).await.data(201);

    let unnamed = json!({ "name": "" });
    let unnamed = app
        .web(Method::POST, &format!("{own}/duplicate"), unnamed)
        .await;
    assert_eq!(unnamed.status, 422);
    let body = json!({ "name": "Theirs" });
    let other = app.other_admin();
    let own = format!("{own}/duplicate");
    let foreign = app.as_bearer(Method::POST, &other, &own, body).await;
    assert_eq!(foreign.error(404), "Template not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_has_no_document_to_download() {
    let app = TestApp::start().await;
    let draft = json!({ "name": "Draft" });
    let draft = app.web(Method::POST, "/templates", draft).await.data(201);
    let path = format!("/templates/{}", draft["template_id"].as_str().unwrap());
    let document = format!("{path}/document");
    let missing = app.web(Method::GET, &document, Value::Null).await;
    assert_eq!(missing.error(404), "Version not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_sort_the_library() {
    tags_are_a_filter(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_sort_the_library_on_postgresql() {
    tags_are_a_filter(TestApp::on_postgresql().await).await;
}

async fn tags_are_a_filter(app: TestApp) {
    let mut paths = Vec::new();
    for name in ["Lease", "Loan"] {
        let made = json!({ "name": name });
        let made = app.web(Method::POST, "/templates", made).await.data(201);
        paths.push(format!(
            "/templates/{}",
            made["template_id"].as_str().unwrap()
        ));
    }

    let tags = json!({ "tags": ["Ohio", " \"Old\" ", "Ohio"] });
    let tagged = app.web(Method::PATCH, &paths[0], tags).await.data(200);
    assert_eq!(tagged["tags"], json!(["Ohio", "\"Old\""]));
    assert_eq!(tagged["name"], "Lease");
    for (tag, total) in [
        ("Ohio", 1),
        ("%22Old%22", 1),
        ("Old", 0),
        ("Oh", 0),
        ("ohio", 0),
    ] {
        let path = format!("/templates?tag={tag}");
        let list = app.web(Method::GET, &path, Value::Null).await.json();
        assert_eq!(list["meta"]["total"], total, "{tag}");
    }

    for wrong in ["", "Ohio, Iowa", &"x".repeat(41)] {
        let body = json!({ "tags": ["Iowa", wrong] });
        let refused = app.web(Method::PATCH, &paths[0], body).await;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.json()["details"][0]["path"], json!(["tags", 1]));
    }
    let many: Vec<String> = (0..11).map(|number| number.to_string()).collect();
    let many = app
        .web(Method::PATCH, &paths[0], json!({ "tags": many }))
        .await;
    assert_eq!(many.status, 422);

    // A rename keeps the tags.
    let renamed = json!({ "name": "Lease of a car" });
    let renamed = app.web(Method::PATCH, &paths[0], renamed).await.data(200);
    assert_eq!(renamed["tags"], json!(["Ohio", "\"Old\""]));
}

#[tokio::test(flavor = "multi_thread")]
async fn customers_belong_to_their_organization() {
    let app = TestApp::start().await;
    let body = json!({
        "name": "Birch Bakery", "email": "Office@Birch.example", "phone": "1", "city": "Salem",
        "primary_contact_name": "Kim Birch",
    });
    let made = app.web(Method::POST, "/customers", body).await.data(201);
    assert_eq!(made["email"], "office@birch.example");
    assert_eq!(made["primary_contact_name"], "Kim Birch");
    assert_eq!(made["notes"], Value::Null);

    let path = format!("/customers/{}", made["customer_id"].as_str().unwrap());
    assert_eq!(
        app.web(Method::GET, &path, Value::Null).await.data(200),
        made
    );

    let found = app
        .get("/partner/customers?email=office@birch.example")
        .await
        .data(200);
    assert_eq!(found["city"], "Salem");

    let taken = json!({ "name": "Other", "email": "office@birch.example" });
    let taken = app.web(Method::POST, "/customers", taken).await.error(409);
    assert_eq!(taken, "A customer with this email address exists");

    let nobody = json!({ "name": "No address", "email": null });
    let nobody = app.web(Method::POST, "/customers", nobody).await.data(201);
    assert_eq!(nobody["email"], Value::Null);

    app.web(
        Method::POST,
        "/customers",
        json!({ "name": "No address either" }),
    )
    .await
    .data(201);

    let body = json!({ "phone": null, "industry": "Food", "name": "Birch & Sons" });
    let changed = app.web(Method::PATCH, &path, body).await.data(200);
    assert_eq!(changed["phone"], Value::Null);
    assert_eq!(changed["industry"], "Food");
    assert_eq!(changed["city"], "Salem");
    assert_eq!(changed["email"], "office@birch.example");

    let no_address = json!({ "email": null });
    let changed = app.web(Method::PATCH, &path, no_address).await.data(200);
    assert_eq!(changed["email"], Value::Null);

    let list = app
        .web(Method::GET, "/customers?limit=2&page=2", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"], json!({ "page": 2, "limit": 2, "total": 3 }));
    assert_eq!(list["data"][0]["name"], "Birch & Sons");

    for wrong in [
        json!({}),
        json!({ "name": "A", "email": "x" }),
        json!({ "name": "A", "city": 7 }),
    ] {
        assert_eq!(app.web(Method::POST, "/customers", wrong).await.status, 422);
    }

    for wrong in [
        json!({ "name": "" }),
        json!({ "email": "x" }),
        json!({ "city": 7 }),
    ] {
        assert_eq!(app.web(Method::PATCH, &path, wrong).await.status, 422);
    }

    let other = app.other_admin();
    let answer = app.get_with_bearer(&other, &path).await;
    assert_eq!(answer.error(404), "Customer not found");
}

/// A document that its signers could not open is refused at once, and not when they come.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_signers_could_not_open_becomes_no_template() {
    let app = TestApp::start().await;
    let bomb = include_bytes!("../../../fixtures/hostile-flate-bomb.pdf");
    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": {
            "mode": "absolute",
            "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.05 }],
        },
    }]);
    let refused = app.new_template(bomb, &fields).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let library = app.get("/partner/templates").await.text();
    assert!(!library.contains("tmpl_"), "{library}");
}
