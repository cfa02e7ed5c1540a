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
