//! Reminders, payment, expiry, large uploads: rows of the envelope tables that `http/partner.rs`
//! does not cover.

use std::time::Duration;

use holdfast::domain::organization::{OrgSettings, PaymentSettings};
use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, envelope_body, form, padded};

fn two_signers(template: &Value, in_order: bool) -> Value {
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([
        { "email": "buyer@example.com", "name": "Bo Buyer", "role": "Buyer" },
        { "email": "seller@example.com", "name": "Sal Seller", "role": "Seller" },
    ]);
    body["preserve_signing_order"] = in_order.into();
    body
}

async fn two_party_template(app: &TestApp) -> Value {
    let area = |page: u32, y: f64| json!({ "mode": "absolute", "areas": [{ "page": page, "x": 0.1, "y": y, "w": 0.3, "h": 0.03 }] });
    let fields = json!([
        { "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true, "placement": area(1, 0.1) },
        { "name": "Seller signature", "type": "signature", "role": "Seller", "required": true, "placement": area(1, 0.2) },
    ]);
    app.template(CONTRACT, &fields).await
}

async fn send(app: &TestApp, in_order: bool) -> String {
    let template = two_party_template(app).await;
    let envelope = app
        .post("/partner/envelopes", two_signers(&template, in_order))
        .await
        .data(201);
    envelope["envelope_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reminder_goes_only_to_the_next_signer_in_order() {
    let app = TestApp::start().await;
    let id = send(&app, true).await;
    let remind = format!("/partner/envelopes/{id}/remind");
    let reminded = app.post(&remind, json!({})).await.data(200);
    assert_eq!(
        reminded,
        json!({ "reminded": ["buyer@example.com"], "count": 1 })
    );

    let later = app
        .post(&remind, json!({ "signer_email": "seller@example.com" }))
        .await;
    assert_eq!(later.json()["details"][0]["code"], "not_their_turn");
    assert_eq!(later.error(422), "Validation failed");

    let unknown = app
        .post(&remind, json!({ "signer_email": "nobody@example.com" }))
        .await;
    assert_eq!(unknown.status, 422);

    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let buyer = links["signers"][0]["embed_url"].as_str().unwrap();
    form::sign(&app, buyer).await;
    let signed = app
        .post(&remind, json!({ "signer_email": "buyer@example.com" }))
        .await;
    assert_eq!(signed.json()["details"][0]["code"], "already_signed");

    let reminded = app
        .post(&remind, json!({ "signer_email": "SELLER@example.com" }))
        .await
        .data(200);
    assert_eq!(reminded["reminded"], json!(["seller@example.com"]));

    let events = app.events(&id).await;
    let reminders: Vec<&Value> = events
        .iter()
        .filter(|event| event["event_type"] == "envelope.reminder_sent")
        .map(|event| &event["data"]["reminded"])
        .collect();
    assert_eq!(
        reminders,
        [
            &json!(["buyer@example.com"]),
            &json!(["seller@example.com"])
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reminder_without_order_goes_to_every_open_signer() {
    let app = TestApp::start().await;
    let id = send(&app, false).await;
    let invited = app.wait_for_mails(2).await;
    let reminded = app
        .post(&format!("/partner/envelopes/{id}/remind"), json!({}))
        .await
        .data(200);
    assert_eq!(reminded["count"], 2);

    let mails = app.wait_for_mails(4).await;
    assert!(invited.len() < mails.len());
    assert!(mails.iter().any(|mail| mail.contains("seller@example.com")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reminder_needs_an_envelope_that_is_out_for_signing() {
    let app = TestApp::start().await;
    let draft = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let path = format!(
        "/partner/envelopes/{}/remind",
        draft["envelope_id"].as_str().unwrap()
    );
    let refused = app.post(&path, json!({})).await;
    assert_eq!(
        refused.error(409),
        "Cannot remind signers of envelope with status: pending"
    );

    let bad = app.post(&path, json!({ "signer_email": 5 })).await;
    assert_eq!(bad.status, 422);
}

/// Signing links exist after sending, and a later signer's link works when it is their turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_signers_link_explains_that_others_sign_first() {
    let app = TestApp::start().await;
    let id = send(&app, true).await;
    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let signers = links["signers"].as_array().unwrap();
    assert_eq!(signers.len(), 2);
    assert_eq!(signers[1]["status"], "pending");

    let page = form::open(&app, signers[1]["embed_url"].as_str().unwrap()).await;
    assert!(
        page.text().contains("It's not your turn yet"),
        "{}",
        page.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_payment_blocks_vault_in() {
    let app = TestApp::without_auto_vault().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["payment"] = json!({ "amount_cents": 4900, "currency": "usd" });
    let envelope = app.post("/partner/envelopes", body.clone()).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;

    app.wait_for(id, "completed").await;
    let vault = app
        .post(
            &format!("/partner/envelopes/{id}/vault-in-signed"),
            json!({}),
        )
        .await;
    assert_eq!(vault.status, 409, "{}", vault.text());

    body["payment"]["payer"] = "Nobody".into();
    let refused = app.post("/partner/envelopes", body.clone()).await;
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["payment", "payer"])
    );
    assert_eq!(refused.status, 422);

    body["payment"] = json!({ "amount_cents": 0, "currency": "dollars" });
    let refused = app.post("/partner/envelopes", body).await.json();
    assert_eq!(refused["details"].as_array().unwrap().len(), 2, "{refused}");

    let mut paper = envelope_body(&Value::Null);
    paper["envelope_kind"] = "paper".into();
    paper["payment"] = json!({ "amount_cents": 4900, "currency": "usd" });
    let paper = app.post("/partner/envelopes", paper).await.data(201);
    let path = format!(
        "/partner/envelopes/{}",
        paper["envelope_id"].as_str().unwrap()
    );
    let upload = format!("{path}/upload");
    app.upload(&upload, "application/pdf", CONTRACT, &[])
        .await
        .data(201);

    let vault = app
        .post(&format!("{path}/vault-in-upload"), json!({}))
        .await;
    assert_eq!(vault.status, 409, "{}", vault.text());
}

/// Signers and values of an envelope without a document are stored until it has one.
#[tokio::test(flavor = "multi_thread")]
async fn signers_of_an_envelope_without_a_template_are_stored() {
    let app = TestApp::start().await;
    let mut body = two_signers(&json!({}), true);
    body["prefilled_data"] = json!({ "Amount": 5 });
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(envelope["status"], "pending");
    assert_eq!(
        envelope["metadata"],
        json!({}),
        "values are nobody's business"
    );
    assert_eq!(app.count("signer").await, 2);
    assert_eq!(app.count("job").await, 0, "nobody is invited yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organizations_default_payment_blocks_every_vault_in() {
    let settings = OrgSettings {
        payment: Some(PaymentSettings {
            amount_cents: 2500,
            currency: "USD".into(),
            connected_account: None,
            platform_fee_cents: None,
            payer: "first".into(),
        }),
        ..OrgSettings::default()
    };

    let app = TestApp::with(|_| {}, settings).await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "completed").await;
    let vault = format!("/partner/envelopes/{id}/vault-in-signed");
    assert_eq!(app.post(&vault, json!({})).await.status, 409);
}

/// Without signatures in time, the envelope and its submission expire.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_expires_and_can_no_longer_be_signed() {
    let settings = OrgSettings {
        envelope_ttl_days: 0,
        ..OrgSettings::default()
    };
    let app = TestApp::with(
        |config| config.sweep_interval = Some(Duration::from_millis(50)),
        settings,
    )
    .await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "expired").await;

    let types = app.event_types(id).await;
    assert_eq!(types.last().unwrap(), "envelope.expired");
    assert_eq!(
        types
            .iter()
            .filter(|name| *name == "envelope.expired")
            .count(),
        1
    );

    let void = app
        .post(&format!("/partner/envelopes/{id}/void"), json!({}))
        .await;
    assert_eq!(void.error(422), "Cannot void envelope with status: expired");

    let page = form::open(&app, envelope["sign_url"].as_str().unwrap()).await;
    assert!(!page.text().contains("name=\"consent\""), "{}", page.text());

    let mut paper = envelope_body(&Value::Null);
    paper["envelope_kind"] = "paper".into();
    let paper = app.post("/partner/envelopes", paper).await.data(201);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let id = paper["envelope_id"].as_str().unwrap();
    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "uploaded", "paper waits for its owner");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_limited_to_fifty_megabytes() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let path = format!(
        "/partner/envelopes/{}/upload",
        envelope["envelope_id"].as_str().unwrap()
    );

    let largest = padded(52_428_800);
    let stored = app
        .upload(&path, "application/pdf", &largest, &[])
        .await
        .data(201);
    assert_eq!(stored["size"], 52_428_800);
    assert_eq!(
        stored["hash"],
        holdfast::domain::hash::sha256(&largest),
        "stored in parts and hashed on the way"
    );

    drop(largest);
    let larger = padded(52_428_801);
    let refused = app.upload(&path, "application/pdf", &larger, &[]).await;
    assert_eq!(refused.error(413), "file is larger than 52428800 bytes");
    assert_eq!(app.objects("uploads").len(), 1);
}

/// When the provider is unreachable or no longer configured, the request leaves no envelope
/// behind and can be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provider_leaves_no_envelope_behind() {
    let app = TestApp::with(
        |config| {
            config.providers.allow_insecure = true;
            let instance = toml::from_str(
                "base_url = 'http://127.0.0.1:9/'\ntimeout = '1s'\n\
                 secrets = { api_key = 'k', webhook_secret = 's' }",
            );
            let instances = &mut config.providers.signing.instances;
            instances.insert("cloud".into(), instance.unwrap());
        },
        OrgSettings::default(),
    )
    .await;

    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    for (instance, status, text) in [
        ("cloud", 502, "Signing provider request failed"),
        ("gone", 503, "Signing provider gone is not configured"),
    ] {
        app.change("update template set provider_instance = $1", instance)
            .await;
        let refused = app.post("/partner/envelopes", body.clone()).await;
        assert_eq!(refused.error(status), text);
    }

    let total = app.get("/partner/envelopes").await.json()["meta"]["total"].take();
    assert_eq!(total, 0);

    app.change("update template set provider_instance = $1", "embedded")
        .await;
    app.post("/partner/envelopes", body).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_refused_by_the_provider_is_not_stored() {
    let app = TestApp::with(
        |config| {
            config.providers.allow_insecure = true;
            let instance = toml::from_str("base_url = 'http://127.0.0.1:9/'\ntimeout = '1s'");
            let signing = &mut config.providers.signing;
            signing.instances.insert("cloud".into(), instance.unwrap());
            signing.default = "cloud".into();
        },
        OrgSettings::default(),
    )
    .await;

    let refused = app
        .upload(
            "/partner/templates",
            "application/pdf",
            CONTRACT,
            &[("name", "N")],
        )
        .await;
    assert!(
        refused.status == 502 || refused.status == 503,
        "{}",
        refused.text()
    );
    assert_eq!(app.count("template").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_without_a_document_cannot_be_sent() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    app.change("update template set document_key = nullif($1, '')", "")
        .await;
    let refused = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await;
    assert_eq!(refused.error(409), "Template has no document");

    let fields = json!({ "fields": [{
        "name": "Initials", "type": "initials", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1 }] },
    }] });
    let path = format!(
        "/partner/templates/{}/fields",
        template["template_id"].as_str().unwrap()
    );
    let refused = app.post(&path, fields).await;
    assert_eq!(refused.error(409), "Template has no document");
}
