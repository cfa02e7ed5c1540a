//! `POST /envelopes/{id}/send` with a template, a package, or the attached document, and its
//! options.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::docuseal::{DocusealFault, FakeDocuseal};
use crate::support::{CONTRACT, TestApp, buyer_and_seller, envelope_body, form, pdf};
use holdfast::domain::organization::OrgSettings;

/// Creates an envelope without a document.
async fn waiting(app: &TestApp) -> String {
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    let made = app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(made["status"], "pending");
    made["envelope_id"].as_str().unwrap().to_owned()
}

async fn send(app: &TestApp, id: &str, body: Value) -> crate::support::TestResponse {
    app.web(Method::POST, &format!("/envelopes/{id}/send"), body)
        .await
}

async fn attach(app: &TestApp, id: &str, file: &[u8]) {
    let path = format!("/partner/envelopes/{id}/upload");
    app.upload(&path, "application/pdf", file, &[])
        .await
        .data(201);
}

async fn links(app: &TestApp, id: &str) -> Value {
    let path = format!("/envelopes/{id}/signing-links");
    app.web(Method::GET, &path, Value::Null).await.data(200)["signers"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_sent_to_its_customer_with_a_template() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = waiting(&app).await;
    let body = json!({
        "template_id": template["template_id"], "message": "Please sign\nbefore Friday.",
        "prefilled_data": { "Signed on": "2026-11-22" },
    });
    let sent = send(&app, &id, body).await.data(200);
    assert_eq!(sent["status"], "sent");
    assert_eq!(sent["template_id"], template["template_id"]);
    assert_eq!(
        sent["metadata"]["source_template_id"],
        template["template_id"]
    );

    let types = app.event_types(&id).await;
    assert_eq!(types, ["envelope.created", "envelope.sent"]);

    let mail = app.wait_for_mails(1).await.remove(0);
    assert!(mail.contains("before Friday."), "{mail}");

    let entry = links(&app, &id).await[0].clone();
    assert_eq!(entry["email"], "jordan.lee@example.com");
    assert_eq!(entry["role"], "Buyer");
    assert_eq!(entry["status"], "pending");

    form::sign(&app, sent["sign_url"].as_str().unwrap()).await;
    app.wait_for(&id, "vaulted").await;

    let again = send(&app, &id, json!({})).await;
    assert_eq!(
        again.error(409),
        "Cannot send envelope with status: vaulted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sending_keeps_the_subject_and_message_of_the_creation_unless_it_names_others() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    body["subject"] = "Your loan".into();
    body["message"] = "Call me first.".into();
    let made = app.post("/partner/envelopes", body).await.data(201);

    let id = made["envelope_id"].as_str().unwrap();
    let other = json!({ "template_id": template["template_id"], "message": "Sign by Friday." });
    send(&app, id, other).await.data(200);

    let mail = app.wait_for_mails(1).await.remove(0);
    assert!(mail.contains("Subject: Your loan\r\n"), "{mail}");
    assert!(mail.contains("Sign by Friday."), "{mail}");
    assert!(!mail.contains("Call me first."), "{mail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attached_document_is_sent_with_fields_from_its_tags() {
    let app = TestApp::start().await;
    let id = waiting(&app).await;
    let nothing = send(&app, &id, json!({})).await;
    assert_eq!(nothing.error(409), "Envelope has no document to send");

    attach(&app, &id, CONTRACT).await;
    let no_fields = send(&app, &id, json!({})).await;
    assert_eq!(no_fields.error(409), "Template has no fields to sign");

    let tagged = pdf::with_lines(&[
        "{{First;type=signature;role=Buyer;required=true}}",
        "Between",
        "{{Second;type=signature;role=Seller;required=true}}",
    ]);
    attach(&app, &id, &tagged).await;
    let one_missing = send(&app, &id, json!({})).await;
    assert_eq!(one_missing.status, 422);
    assert_eq!(one_missing.json()["details"][0]["code"], "missing_signer");

    let body = json!({ "signers": buyer_and_seller(), "preserve_signing_order": false });
    let sent = send(&app, &id, body).await.data(200);
    assert_eq!(sent["status"], "sent");
    assert_eq!(app.wait_for_mails(2).await.len(), 2);

    for signer in links(&app, &id).await.as_array().unwrap() {
        form::sign(&app, signer["signing_url"].as_str().unwrap()).await;
    }

    app.wait_for(&id, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_from_the_builder_are_sent() {
    let app = TestApp::start().await;
    let id = waiting(&app).await;
    attach(&app, &id, CONTRACT).await;
    let body = json!({ "envelope_id": id });
    let session = app
        .web(Method::POST, "/esign/builder-session", body.clone())
        .await
        .data(201);

    let again = app
        .web(Method::POST, "/esign/builder-session", body)
        .await
        .data(201);
    assert_eq!(again["template_id"], session["template_id"]);

    let token = session["builder_url"]
        .as_str()
        .unwrap()
        .split_once("#token=")
        .unwrap()
        .1;
    let shown = app
        .builder(token, "GET", "/builder/template", None)
        .await
        .data(200);

    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Customer", "required": true,
        "areas": [{ "page": 1, "x": 0.1, "y": 0.5, "w": 0.3, "h": 0.05 }],
    }]);
    let save = json!({ "revision": shown["revision"], "fields": fields });
    app.builder(token, "PUT", "/builder/template", Some(save))
        .await
        .data(200);

    let sent = send(&app, &id, json!({})).await.data(200);
    assert_eq!(sent["template_id"], session["template_id"]);
    assert_eq!(links(&app, &id).await[0]["role"], "Customer");

    let late = json!({ "envelope_id": id });
    let late = app.web(Method::POST, "/esign/builder-session", late).await;
    assert_eq!(late.error(409), "Cannot edit envelope with status: sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_the_document_discards_its_fields() {
    let app = TestApp::start().await;
    let id = waiting(&app).await;
    attach(&app, &id, CONTRACT).await;
    let body = json!({ "envelope_id": id });
    let first = app
        .web(Method::POST, "/esign/builder-session", body.clone())
        .await
        .data(201);

    attach(
        &app,
        &id,
        &pdf::with_lines(&["{{Sign;type=signature;role=Buyer}}"]),
    )
    .await;

    let second = app
        .web(Method::POST, "/esign/builder-session", body)
        .await
        .data(201);
    assert_ne!(second["template_id"], first["template_id"]);
    assert_eq!(second["roles"], json!(["Buyer"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_sent_with_its_selected_documents() {
    let app = TestApp::start().await;
    let document =
        |line: &str| pdf::with_lines(&[line, "{{Sign;type=signature;role=Buyer;required=true}}"]);

    let mut ids = Vec::new();
    for (name, line) in [
        ("One", "Document one"),
        ("Two", "Document two"),
        ("Three", "Document three"),
    ] {
        let made = app
            .library_template(&[("name", name)], &document(line))
            .await
            .data(201);
        ids.push(made["template_id"].clone());
    }

    let body = json!({ "name": "Sale", "template_ids": ids });
    let package = app
        .web(Method::POST, "/document-packages", body)
        .await
        .data(201);
    let id = waiting(&app).await;
    let stranger = json!({
        "package_id": package["package_id"], "package_template_ids": ["tmpl_01jdk7m3e8f4x9s2w5v6b0c1da"],
    });
    assert_eq!(send(&app, &id, stranger).await.status, 400);

    let kept = json!({
        "package_id": package["package_id"], "package_template_ids": [ids[2], ids[0]],
    });
    let sent = send(&app, &id, kept).await.data(200);
    assert_eq!(sent["metadata"]["document_source"], "package");

    form::sign(&app, sent["sign_url"].as_str().unwrap()).await;
    app.wait_for(&id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/vault/copy/signed-url");
    let link = app.get(&path).await.data(200);
    let copy = app.get(link["signed_url"].as_str().unwrap()).await.bytes;
    let text = pdf::text(&copy);
    let (one, three) = (text.find("Document one"), text.find("Document three"));
    assert!(one.is_some() && one < three, "{text}");
    assert_eq!(text.find("Document two"), None);
}

/// Signing in person sends no mails, and is refused for documents with identity verification.
#[tokio::test(flavor = "multi_thread")]
async fn signing_in_person_sends_no_mail_and_excludes_identity_verification() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = waiting(&app).await;
    let body = json!({ "template_id": template["template_id"], "send_email": false });
    let sent = send(&app, &id, body).await.data(200);
    form::sign(&app, sent["sign_url"].as_str().unwrap()).await;
    app.wait_for(&id, "vaulted").await;

    let mails = app.wait_for_mails(1).await;
    assert!(mails.iter().all(|mail| !mail.contains("asks you to sign")));

    let tagged = pdf::with_lines(&["{{Sign;type=signature;role=Buyer}}"]);
    let texts = [("name", "Asking"), ("kba_required", "true")];
    let asking = app.library_template(&texts, &tagged).await.data(201);
    let id = waiting(&app).await;
    let asking = |send_email: bool| json!({ "template_id": asking["template_id"], "send_email": send_email });
    let refused = send(&app, &id, asking(false)).await.error(422);
    assert_eq!(
        refused,
        "A document with identity verification cannot be signed in person"
    );

    app.wait_for(&id, "pending").await;
    send(&app, &id, asking(true)).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_send_leaves_the_envelope_unchanged() {
    let docuseal = FakeDocuseal::start().await;
    let app = TestApp::with(|config| docuseal.configure(config), OrgSettings::default()).await;
    let template = app.contract_template().await;
    let id = waiting(&app).await;
    let body = json!({ "template_id": template["template_id"] });
    docuseal.fail(
        "POST",
        "/submissions",
        DocusealFault::Answer(500, json!({})),
        1,
    );
    assert_eq!(send(&app, &id, body.clone()).await.status, 502);

    app.wait_for(&id, "pending").await;

    // The response is lost; the retry finds the submission and uses it.
    docuseal.fail("POST", "/submissions", DocusealFault::DroppedAfter, 1);
    let sent = send(&app, &id, body).await.data(200);
    assert_eq!(sent["status"], "sent");
    assert_eq!(docuseal.submissions(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_concurrent_sends_succeeds() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = waiting(&app).await;
    let body = json!({ "template_id": template["template_id"] });
    let (one, two) = tokio::join!(send(&app, &id, body.clone()), send(&app, &id, body));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);

    let types = app.event_types(&id).await;
    assert_eq!(types, ["envelope.created", "envelope.sent"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn signers_and_values_from_creation_are_used_for_sending() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    body["signers"] = json!([{ "email": "ann@example.com", "name": "Ann", "role": "Buyer" }]);
    let made = app.post("/partner/envelopes", body).await.data(201);
    let id = made["envelope_id"].as_str().unwrap();
    send(&app, id, json!({ "template_id": template["template_id"] }))
        .await
        .data(200);
    assert_eq!(links(&app, id).await[0]["email"], "ann@example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_that_cannot_be_sent_is_refused_unchanged() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let with_template = json!({ "template_id": template["template_id"] });
    let mut paper = envelope_body(&Value::Null);
    paper["envelope_kind"] = "paper".into();
    let paper = app.post("/partner/envelopes", paper).await.data(201);
    let refused = send(
        &app,
        paper["envelope_id"].as_str().unwrap(),
        with_template.clone(),
    )
    .await;
    assert_eq!(refused.status, 409);

    let unknown = send(
        &app,
        "env_01jdk7m3e8f4x9s2w5v6b0c1da",
        with_template.clone(),
    )
    .await;
    assert_eq!(unknown.error(404), "Envelope not found");

    let id = waiting(&app).await;
    for (body, status) in [
        (
            json!({ "template_id": "tmpl_01jdk7m3e8f4x9s2w5v6b0c1da" }),
            404,
        ),
        (json!({ "template_id": "x", "package_id": "y" }), 400),
        (json!({ "signers": [] }), 422),
        (json!({ "message": "x".repeat(2001) }), 422),
        (json!({ "subject": "two\nlines" }), 422),
        (
            json!({
                "template_id": template["template_id"],
                "prefilled_data": { "Buyer signature": "Jordan" },
            }),
            422,
        ),
    ] {
        let answer = send(&app, &id, body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }

    let other = app.other_admin();
    let path = format!("/envelopes/{id}/send");
    let answer = app
        .post_with_bearer(&other, &path, with_template.clone())
        .await;
    assert_eq!(answer.error(404), "Envelope not found");

    let member = app.token("member");
    let answer = app.post_with_bearer(&member, &path, with_template).await;
    assert_eq!(answer.status, 403);

    app.wait_for(&id, "pending").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vault_consent_controls_automatic_vaulting() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/envelopes/{id}/vault-consent");
    let post = async |body: Value| app.web(Method::POST, &path, body).await;
    assert_eq!(post(json!({})).await.status, 422);
    assert_eq!(
        post(json!({ "auto_vault_enabled": true })).await.status,
        422
    );

    let off = post(json!({ "auto_vault_enabled": false })).await.data(200);
    assert_eq!(off["auto_vault_enabled"], false);
    assert_eq!(off["vault_in_terms_accepted_at"], Value::Null);

    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "completed").await;
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    app.wait_for(id, "completed").await;
    let accepted = json!({ "auto_vault_enabled": true, "acknowledge_authoritative_copy": true });
    let on = post(accepted.clone()).await.data(200);
    assert_eq!(on["vault_in_terms_accepted_by"], "oak@oak.example");

    app.wait_for(id, "vaulted").await;
    assert_eq!(post(accepted).await.status, 409);

    let entry = app.entry(id, "vault_consent.accepted").await;
    assert_eq!(entry["auto_vault_enabled"], true);
}

/// An admin's choice of identity verification survives when an API key attaches another file.
#[tokio::test(flavor = "multi_thread")]
async fn replacing_the_file_keeps_identity_verification() {
    let app = TestApp::start().await;
    let id = waiting(&app).await;
    let tagged = |text: &str| pdf::with_lines(&[text, "{{Sign;type=signature;role=Buyer}}"]);
    attach(&app, &id, &tagged("first")).await;
    let begin = async |kba: Value| {
        let body = json!({ "envelope_id": id, "kba_required": kba });
        app.web(Method::POST, "/esign/builder-session", body).await
    };
    assert_eq!(begin(json!(true)).await.data(201)["kba_required"], true);
    assert_eq!(begin(json!(false)).await.status, 409);

    attach(&app, &id, &tagged("second")).await;
    assert_eq!(begin(json!(false)).await.status, 409);
    assert_eq!(begin(Value::Null).await.data(201)["kba_required"], true);

    let sent = send(&app, &id, json!({})).await.data(200);
    let gate = form::open(&app, sent["sign_url"].as_str().unwrap()).await;
    assert!(gate.text().contains("Answer these questions"));
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_consent_stops_scheduled_vaulting() {
    let docuseal = FakeDocuseal::start().await;
    let configure = |config: &mut holdfast::config::Config| {
        docuseal.configure(config);
        config.sweep_interval = Some(std::time::Duration::from_millis(100));
    };
    let app = TestApp::with(configure, OrgSettings::default()).await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();

    let submission = docuseal.submission();

    // The envelope is signed, but the provider does not return the document.
    let path = format!("/submissions/{submission}/documents");
    docuseal.fail("GET", &path, DocusealFault::Answer(500, json!({})), 99);
    docuseal.sign(submission, "Buyer", &[("Signed on", json!("2026-11-22"))]);
    app.wait_for(id, "completed").await;
    let web = format!("/envelopes/{id}");

    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while app.web(Method::GET, &web, Value::Null).await.data(200)["vault_error"].is_null() {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    let consent = format!("/envelopes/{id}/vault-consent");
    let withdrawn = json!({ "auto_vault_enabled": false });
    app.web(Method::POST, &consent, withdrawn).await.data(200);
    docuseal.recover();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    app.wait_for(id, "completed").await;
    let vault_in = format!("/partner/envelopes/{id}/vault-in-signed");
    app.post(&vault_in, json!({})).await.data(200);

    app.wait_for(id, "vaulted").await;
}

/// A template with a field of each type that is filled by typing.
async fn typed_template(app: &TestApp) -> Value {
    let document = pdf::with_lines(&[
        "{{Signature;type=signature;role=Buyer;required=true}}",
        "{{Price;type=number;role=Buyer}}",
        "{{Due;type=date;role=Buyer}}",
        "{{New;type=checkbox;role=Buyer}}",
        "{{Remark;type=text;role=Buyer}}",
    ]);

    let texts = [("name", "Typed")];
    app.upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefilled_value_has_to_fit_its_fields_type() {
    let app = TestApp::start().await;
    let template = typed_template(&app).await;
    let with = |values: Value| {
        let mut body = envelope_body(&template["template_id"]);
        body["prefilled_data"] = values;
        body
    };
    for (name, value) in [
        ("Price", json!("many")),
        ("Price", json!([1])),
        ("Price", json!(true)),
        ("Due", json!("21.11.2026")),
        ("Due", json!(20261121)),
        ("New", json!("yes")),
        ("Remark", json!({ "a": 1 })),
        ("Remark", json!(["a"])),
    ] {
        let body = with(json!({ name: value }));
        let refused = app.post("/partner/envelopes", body).await;
        assert_eq!(refused.status, 422, "{name} {value}: {}", refused.text());
        let issue = &refused.json()["details"][0];
        assert_eq!(issue["path"], json!(["prefilled_data", name]), "{issue}");
        assert!(issue["message"].as_str().unwrap().contains(name), "{issue}");
    }

    assert_eq!(app.count("envelope").await, 0);

    let good = json!({ "Price": "$18,500.00", "Due": "2026-11-21", "New": true, "Remark": 7 });
    let envelope = app.post("/partner/envelopes", with(good)).await.data(201);
    let page = form::open(&app, envelope["sign_url"].as_str().unwrap())
        .await
        .text();
    assert!(
        page.contains("value=\"18500.00\"") && page.contains("value=\"2026-11-21\""),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_types_numbers_as_people_write_them() {
    let app = TestApp::start().await;
    let template = typed_template(&app).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let url = envelope["sign_url"].as_str().unwrap();
    form::open(&app, url).await;
    let saved = form::save(&app, url, &[("Price", "twelve")]).await;
    assert!(saved["problems"]["Price"].is_string(), "{saved}");

    for (typed, stored) in [
        ("(4,500.00)", "-4500.00"),
        ("4 500", "4500"),
        ("$4,500", "4500"),
    ] {
        let saved = form::save(&app, url, &[("Price", typed)]).await;
        assert_eq!(saved["problems"], json!({}), "{typed}");

        let page = form::open(&app, url).await.text();
        assert!(
            page.contains(&format!("value=\"{stored}\"")),
            "{typed}: {page}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_has_to_fit_its_fields_type() {
    let app = TestApp::start().await;
    for (line, told) in [
        ("{{Due;type=date;role=Buyer;default=today}}", "{{date}}"),
        ("{{Price;type=number;role=Buyer;default=much}}", "a number"),
    ] {
        let document = pdf::with_lines(&[
            "{{Signature;type=signature;role=Buyer;required=true}}",
            line,
        ]);
        let texts = [("name", "Wrong")];
        let refused = app
            .upload("/partner/templates", "application/pdf", &document, &texts)
            .await;
        assert_eq!(refused.status, 422, "{line}: {}", refused.text());

        let issue = &refused.json()["details"][0];
        assert_eq!(issue["path"][2], "default_value", "{issue}");
        assert!(issue["message"].as_str().unwrap().contains(told), "{issue}");
    }

    assert_eq!(app.count("template").await, 0);
}

/// One parser for all addresses: accepted ones can be mailed to.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_accepted_alike_at_every_door() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let create = async |email: &str| {
        let mut body = envelope_body(&template["template_id"]);
        body["customer_email"] = email.into();
        app.post("/partner/envelopes", body).await
    };

    let user = async |email: &str| {
        let body = json!({ "email": email, "role": "sender" });
        app.post_with_bearer(&app.token("owner"), "/users", body)
            .await
    };
    for named in ["Jordan Lee <jordan@example.com>", "<jordan@example.com>"] {
        for refused in [create(named).await, user(named).await] {
            assert_eq!(refused.status, 422, "{}", refused.text());
        }

        let refused = create(named).await;
        let issue = &refused.json()["details"][0];
        assert!(
            issue["message"]
                .as_str()
                .unwrap()
                .contains("without a name"),
            "{issue}"
        );
    }

    let converted = create("jordan@bücher.example").await.data(201);
    let id = converted["envelope_id"].as_str().unwrap();
    let entry = links(&app, id).await[0].clone();
    assert_eq!(entry["email"], "jordan@xn--bcher-kva.example");
    assert_eq!(
        user("ada@bücher.example").await.data(201)["email"],
        "ada@xn--bcher-kva.example"
    );

    for kept in ["Jordan.Lee+loan@example.com", "\"jordan lee\"@example.com"] {
        let sent = create(kept).await.data(201);
        let entry = links(&app, sent["envelope_id"].as_str().unwrap()).await[0].clone();
        assert_eq!(entry["email"], kept);
    }
}
