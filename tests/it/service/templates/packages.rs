//! Packages of templates, and documents composed of several templates.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::docuseal::{DocusealFault, FakeDocuseal};
use crate::support::{CONTRACT, TestApp, pdf};
use holdfast::domain::organization::OrgSettings;

const BUILDER: &str = "/esign/builder-session";

/// Creates a library template with two pages and one signature of this role.
async fn template(app: &TestApp, name: &str, role: &str, more: &[(&str, &str)]) -> Value {
    let fields = json!([{
        "name": format!("{name} signature"), "type": "signature", "role": role, "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.8, "w": 0.3, "h": 0.04 }] },
    }]);
    let fields = fields.to_string();
    let texts = [&[("name", name), ("fields_json", &fields)], more].concat();
    app.library_template(&texts, CONTRACT).await.data(201)
}

fn ids(templates: &[&Value]) -> Value {
    templates
        .iter()
        .map(|template| template["template_id"].clone())
        .collect()
}

async fn package(app: &TestApp, templates: &[&Value]) -> Value {
    let body = json!({ "name": "Sale", "template_ids": ids(templates) });
    app.web(Method::POST, "/document-packages", body)
        .await
        .data(201)
}

async fn session(app: &TestApp, body: Value) -> crate::support::TestResponse {
    app.web(Method::POST, BUILDER, body).await
}

/// Returns the template of a session, as the builder gets it.
async fn shown(app: &TestApp, session: &Value) -> Value {
    let url = session["builder_url"].as_str().unwrap();
    let token = url.split_once("#token=").unwrap().1;
    app.builder(token, "GET", "/builder/template", None)
        .await
        .data(200)
}

/// Counts the pages of a template's document.
async fn contract_pages(app: &TestApp, template: &Value) -> u64 {
    let session = session(app, json!({ "template_id": template["template_id"] }))
        .await
        .data(201);
    shown(app, &session).await["pages"]
        .as_array()
        .unwrap()
        .len() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_keeps_its_order_and_derives_identity_verification() {
    let app = TestApp::start().await;
    let plain = template(&app, "Plain", "Buyer", &[]).await;
    let asking = template(&app, "Asking", "Buyer", &[("kba_required", "true")]).await;
    let made = package(&app, &[&plain]).await;
    assert!(made["package_id"].as_str().unwrap().starts_with("pkg_"));
    assert_eq!(made["kba_required"], false);

    let path = format!(
        "/document-packages/{}",
        made["package_id"].as_str().unwrap()
    );
    let both = json!({ "template_ids": ids(&[&asking, &plain]) });
    let changed = app.web(Method::PATCH, &path, both).await.data(200);
    assert_eq!(changed["name"], "Sale");
    assert_eq!(changed["kba_required"], true);
    assert_eq!(changed["items"][0]["template_id"], asking["template_id"]);
    assert_eq!(changed["items"][0]["kba_required"], true);
    assert_eq!(changed["items"][1]["kba_required"], false);
    assert_eq!(changed["items"][1]["provider_instance"], "embedded");

    let renamed = app
        .web(Method::PATCH, &path, json!({ "name": "Lease" }))
        .await
        .data(200);
    assert_eq!(renamed["items"], changed["items"]);
    assert_eq!(
        app.web(Method::GET, &path, Value::Null).await.data(200),
        renamed
    );

    let list = app
        .web(Method::GET, "/document-packages", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"], json!({ "page": 1, "limit": 20, "total": 1 }));
    assert_eq!(list["data"], json!([renamed]));

    let answer = app.get_with_bearer(&app.other_admin(), &path).await;
    assert_eq!(answer.error(404), "Package not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_not_allowed_in_a_package_are_named() {
    let app = TestApp::start().await;
    let plain = template(&app, "Plain", "Buyer", &[]).await;
    let word = template(&app, "Word", "Buyer", &[("source_format", "word")]).await;
    let create = async |templates: Value| {
        let body = json!({ "name": "Sale", "template_ids": templates });
        app.web(Method::POST, "/document-packages", body).await
    };
    let refused = create(ids(&[&plain, &word])).await;
    assert_eq!(refused.status, 422);

    let issue = refused.json()["details"][0].clone();
    assert_eq!(issue["code"], "word_template");
    assert_eq!(issue["path"], json!(["template_ids", 1]));

    let refused = create(ids(&[&plain, &plain])).await.json();
    assert_eq!(refused["details"][0]["code"], "duplicate_template");
    assert_eq!(create(json!([])).await.status, 422);

    let unknown = create(json!(["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"])).await;
    assert_eq!(unknown.error(404), "Template not found");

    let list = app
        .web(Method::GET, "/document-packages", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"]["total"], 0);
}

/// Members that the verified instance lacks are copied there.
#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_package_has_copies_at_the_verified_instance() {
    let docuseal = FakeDocuseal::start().await;
    let verified = |config: &mut _| docuseal.configure_as("verified", config);
    let app = TestApp::with(verified, OrgSettings::default()).await;
    let plain = template(&app, "Plain", "Buyer", &[]).await;
    assert_eq!(plain["provider_instance"], "embedded");

    let asking = template(&app, "Asking", "Seller", &[("kba_required", "true")]).await;
    assert_eq!(asking["provider_instance"], "verified");
    assert_eq!(docuseal.templates(), 1);

    // When a member cannot be copied, the package is not created.
    docuseal.fail(
        "POST",
        "/templates/pdf",
        DocusealFault::Answer(500, json!({})),
        1,
    );

    let body = json!({ "name": "Sale", "template_ids": ids(&[&plain, &asking]) });
    let refused = app.web(Method::POST, "/document-packages", body).await;
    assert_eq!(refused.status, 502);

    let list = app
        .web(Method::GET, "/document-packages", Value::Null)
        .await
        .json();
    assert_eq!(list["meta"]["total"], 0);

    let made = package(&app, &[&plain, &asking]).await;
    assert_eq!(made["provider_instance"], "verified");
    assert_eq!(made["items"][0]["provider_instance"], "embedded");
    assert_eq!(docuseal.templates(), 2);

    let copy = docuseal.template();
    assert_eq!(copy["name"], "Plain");
    assert_eq!(copy["submitters"][0]["name"], "Buyer");
    assert_eq!(copy["fields"][0]["name"], "Plain signature");
    assert_ne!(copy["external_id"], plain["template_id"]);

    // Copies are not listed in the library.
    let library = app.web(Method::GET, "/templates", Value::Null).await.json();
    assert_eq!(library["meta"]["total"], 2);

    // Without changes of the source, the copy is reused.
    let use_it = json!({ "package_id": made["package_id"] });
    let whole = session(&app, use_it.clone()).await.data(201);
    assert_eq!(whole["kba_required"], true);
    assert_eq!(whole["provider_instance"], "verified");
    assert_eq!(whole["roles"], json!(["Buyer", "Seller"]));

    let copies = || docuseal.requests("POST", "/templates/pdf").len();
    let before = copies();

    // After a change of the source, the copy is made again before use.
    let path = format!(
        "/partner/templates/{}/fields",
        plain["template_id"].as_str().unwrap()
    );
    let more = json!({ "fields": [{
        "name": "City", "type": "text", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.2, "h": 0.03 }] },
    }] });
    app.post(&path, more).await.data(200);

    let whole = session(&app, use_it.clone()).await.data(201);

    // One for the copy, and one for the document composed from it.
    assert_eq!(copies(), before + 2);

    let rebuilt = docuseal.requests("POST", "/templates/pdf")[before]
        .body
        .clone();
    assert_eq!(rebuilt["name"], "Plain");
    assert_eq!(
        rebuilt["documents"][0]["fields"].as_array().unwrap().len(),
        2
    );

    let names: Vec<Value> = shown(&app, &whole).await["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].clone())
        .collect();
    assert_eq!(names, ["Plain signature", "City", "Asking signature"]);

    // The source changes again while the verified account is unreachable.
    let again = json!({ "fields": [{
        "name": "State", "type": "text", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.5, "y": 0.1, "w": 0.2, "h": 0.03 }] },
    }] });
    app.post(&path, again).await.data(200);
    docuseal.fail(
        "POST",
        "/templates/pdf",
        DocusealFault::Answer(500, json!({})),
        1,
    );
    assert_eq!(session(&app, use_it.clone()).await.status, 502);

    session(&app, use_it).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn identity_verification_is_derived_from_the_selected_documents() {
    let docuseal = FakeDocuseal::start().await;
    let verified = |config: &mut _| docuseal.configure_as("verified", config);
    let app = TestApp::with(verified, OrgSettings::default()).await;
    let plain = template(&app, "Plain", "Buyer", &[]).await;
    let other = template(&app, "Other", "Buyer", &[]).await;
    let asking = template(&app, "Asking", "Buyer", &[("kba_required", "true")]).await;
    let made = package(&app, &[&plain, &asking, &other]).await;
    let kept = async |templates: &[&Value]| {
        let body = json!({
            "package_id": made["package_id"], "package_template_ids": ids(templates),
        });
        session(&app, body).await.data(201)
    };

    let pages = contract_pages(&app, &plain).await;

    // The order in which the documents are named does not matter.
    let two = kept(&[&other, &plain]).await;
    assert_eq!(two["kba_required"], false);
    assert_eq!(two["provider_instance"], "embedded");

    let two = shown(&app, &two).await;
    assert_eq!(two["fields"][0]["name"], "Plain signature");
    assert_eq!(two["fields"][1]["areas"][0]["page"], pages + 1);

    let one = kept(&[&asking]).await;
    assert_eq!(one["kba_required"], true);
    assert_eq!(one["provider_instance"], "verified");

    // A single document is copied and not merged, so its bytes are unchanged.
    let copied = shown(&app, &one).await;
    assert_eq!(copied["pages"].as_array().unwrap().len() as u64, pages);
    assert_eq!(copied["fields"][0]["name"], "Asking signature");
    assert_ne!(one["template_id"], asking["template_id"]);

    let stored = app.objects("templates");
    let same = stored
        .iter()
        .filter(|object| std::fs::read(object).unwrap() == CONTRACT)
        .count();
    assert!(
        same >= 5,
        "three templates, a copy of each plain one, and this: {same}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_are_merged_in_the_order_given() {
    let app = TestApp::start().await;
    let first = pdf::with_lines(&[
        "The first document",
        "{{Sign one;type=signature;role=Buyer}}",
    ]);
    let second = pdf::with_lines(&[
        "The second document",
        "{{Sign two;type=signature;role=BUYER}}",
    ]);

    let first = app
        .library_template(&[("name", "First")], &first)
        .await
        .data(201);
    let second = app
        .library_template(&[("name", "Second")], &second)
        .await
        .data(201);
    let body = json!({ "template_ids": ids(&[&second, &first]), "template_name": "Both" });
    let made = session(&app, body).await.data(201);
    assert_eq!(made["roles"], json!(["BUYER"]));

    let merged = shown(&app, &made).await;
    assert_eq!(merged["name"], "Both");
    assert_eq!(merged["pages"].as_array().unwrap().len(), 2);
    assert_eq!(merged["fields"][0]["name"], "Sign two");
    assert_eq!(merged["fields"][0]["areas"][0]["page"], 1);
    assert_eq!(merged["fields"][1]["areas"][0]["page"], 2);
    assert_eq!(merged["fields"][1]["role"], "BUYER");

    // The signers' document has the pages in that order.
    let body = json!({
        "envelope_name": "Both", "customer_email": "a@example.com", "customer_name": "A",
        "template_id": made["template_id"],
    });
    let sent = app.post("/partner/envelopes", body).await.data(201);
    let url = sent["sign_url"].as_str().unwrap();
    crate::support::form::sign(&app, url).await;

    let id = sent["envelope_id"].as_str().unwrap();
    app.wait_for(id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/vault/copy/signed-url");
    let link = app.get(&path).await.data(200);
    let copy = app.get(link["signed_url"].as_str().unwrap()).await.bytes;
    let text = pdf::text(&copy);
    let at = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("no {what}: {text}"))
    };
    assert!(at("The second document") < at("The first document"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_template_is_left_out_of_documents() {
    let app = TestApp::start().await;
    let kept = template(&app, "Kept", "Buyer", &[]).await;
    let gone = template(&app, "Gone", "Buyer", &[]).await;
    let made = package(&app, &[&kept, &gone]).await;
    let path = format!("/templates/{}", gone["template_id"].as_str().unwrap());
    app.web(Method::DELETE, &path, Value::Null).await.data(200);
    let was_deleted = format!(
        "Template {} was deleted",
        gone["template_id"].as_str().unwrap()
    );

    let merged = session(&app, json!({ "template_ids": ids(&[&kept, &gone]) })).await;
    assert_eq!(merged.error(400), was_deleted);

    let named = json!({
        "package_id": made["package_id"], "package_template_ids": ids(&[&gone]),
    });
    assert_eq!(session(&app, named).await.error(400), was_deleted);

    let whole = session(&app, json!({ "package_id": made["package_id"] })).await;
    assert_eq!(whole.error(409), "A template of the package was deleted");

    let rest = json!({
        "package_id": made["package_id"], "package_template_ids": ids(&[&kept]),
    });
    session(&app, rest).await.data(201);
    let path = format!(
        "/document-packages/{}",
        made["package_id"].as_str().unwrap()
    );
    let seen = app.web(Method::GET, &path, Value::Null).await.data(200);
    assert_eq!(seen["items"][1]["deleted"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicting_builder_options_are_a_400() {
    let app = TestApp::start().await;
    let one = template(&app, "One", "Buyer", &[]).await;
    let two = template(&app, "Two", "Buyer", &[]).await;
    let made = package(&app, &[&one]).await;
    let batch = json!({ "name": "A", "document_source": "new" });
    let batch = app.web(Method::POST, "/bulk-send", batch).await.data(201);
    let envelope = json!({
        "envelope_name": "A", "customer_email": "a@example.com", "customer_name": "A",
    });
    let envelope = app.post("/partner/envelopes", envelope).await.data(201);
    let (package, batch, envelope) = (
        &made["package_id"],
        &batch["batch_id"],
        &envelope["envelope_id"],
    );

    let (one_id, both) = (&one["template_id"], ids(&[&one, &two]));
    for body in [
        json!({ "batch_id": batch, "envelope_id": envelope }),
        json!({ "batch_id": batch, "package_id": package, "package_template_ids": [one_id] }),
        json!({ "package_id": package, "package_template_ids": [two["template_id"]] }),
        json!({ "package_id": package, "package_template_ids": [] }),
        json!({ "batch_id": batch, "template_ids": both }),
        json!({ "batch_id": batch, "template_id": one_id }),
        json!({ "batch_id": batch, "kba_required": true }),
        json!({ "template_id": one_id, "template_ids": both }),
        json!({ "package_id": package, "template_ids": both }),
        json!({ "template_ids": [one_id, one_id] }),
        json!({ "template_ids": [one_id] }),
        json!({ "template_ids": vec![one_id; 21] }),
        json!({ "template_id": one_id, "kba_required": true }),
        json!({}),
    ] {
        let answer = session(&app, body.clone()).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
    }

    for (body, error) in [
        (
            json!({ "batch_id": "bsb_01jdk7m3e8f4x9s2w5v6b0c1da" }),
            "Batch not found",
        ),
        (
            json!({ "envelope_id": "env_01jdk7m3e8f4x9s2w5v6b0c1da" }),
            "Envelope not found",
        ),
        (
            json!({ "package_id": "pkg_01jdk7m3e8f4x9s2w5v6b0c1da" }),
            "Package not found",
        ),
        (
            json!({ "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da" }),
            "Template not found",
        ),
        (
            json!({ "template_ids": [one_id, "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"] }),
            "Template not found",
        ),
    ] {
        assert_eq!(session(&app, body).await.error(404), error);
    }

    // A new document can require identity verification.
    let body = json!({ "template_name": "New", "kba_required": true });
    let new = session(&app, body).await.data(201);
    assert_eq!(new["kba_required"], true);

    // So can a merged document, because it is new as well.
    let body = json!({ "template_ids": both, "kba_required": true });
    assert_eq!(session(&app, body).await.data(201)["kba_required"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composed_document_keeps_the_limits_of_its_fields() {
    let app = TestApp::start().await;
    let with_files = async |name: &str| {
        let field = |number: u32| {
            let area = json!({ "page": 1, "x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1 });
            json!({
                "name": format!("{name} {number}"), "type": "attachment", "role": "Buyer",
                "placement": { "mode": "absolute", "areas": [area] },
            })
        };
        let fields: Vec<Value> = (0..6).map(field).collect();

        app.template(CONTRACT, &json!(fields)).await
    };

    let (first, second) = (with_files("First").await, with_files("Second").await);
    let body = json!({ "template_ids": ids(&[&first, &second]), "template_name": "Both" });
    let refused = session(&app, body).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let issue = &refused.json()["details"][0];
    assert_eq!(issue["code"], "too_big", "{issue}");

    let plain = app.contract_template().await;
    let body = json!({ "template_ids": ids(&[&first, &plain]), "template_name": "Both" });
    assert_eq!(session(&app, body).await.status, 201);
}
