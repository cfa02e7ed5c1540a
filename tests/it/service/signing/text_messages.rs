//! Text messages to signers: invitations, reminders and codes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use holdfast::config::{Config, DeploymentEnvironment, ProviderInstance, SecretText};
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::service::components::registry::first_calls;
use crate::support::receiver::WebhookReceiver;
use crate::support::{TestApp, TestResponse, envelope_body, form};

const PHONE: &str = "+15125550142";

fn settings() -> OrgSettings {
    OrgSettings {
        auto_vault: false,
        ..OrgSettings::default()
    }
}

async fn service() -> TestApp {
    TestApp::with(|_| {}, settings()).await
}

async fn create(app: &TestApp, signer: Value, envelope: Value) -> TestResponse {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    let mut person = json!({
        "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer",
    });
    for (name, value) in signer.as_object().unwrap() {
        person[name] = value.clone();
    }

    body["signers"] = json!([person]);
    for (name, value) in envelope.as_object().unwrap() {
        body[name] = value.clone();
    }

    app.post("/partner/envelopes", body).await
}

/// Sends the contract; returns the envelope's id and the signing link.
async fn sent(app: &TestApp, signer: Value) -> (String, String) {
    let created = create(app, signer, json!({})).await.data(201);
    let text = |name: &str| created[name].as_str().unwrap().to_owned();
    (text("envelope_id"), text("sign_url"))
}

async fn enter(app: &TestApp, url: &str, code: &str) -> TestResponse {
    form::press(app, url, "enter-code", &[("code".into(), code.into())]).await
}

/// Asks for a code and returns the text message with it.
async fn texted(app: &TestApp, url: &str, count: usize) -> String {
    let answer = form::press(app, url, "send-code", &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    app.wait_for_texts(count).await.pop().unwrap()
}

/// Returns the code of a text message: number, empty line, text.
fn code(text: &str) -> String {
    text.lines().nth(2).unwrap()[..6].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_texted_code_opens_the_document() {
    let app = service().await;
    let (id, url) = sent(
        &app,
        json!({ "access": "sms_code", "phone": "(512) 555-0142" }),
    )
    .await;
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("ends in 42"), "{page}");
    assert!(
        !page.contains("5550142") && !page.contains("jordan.lee@"),
        "{page}"
    );

    let text = texted(&app, &url, 1).await;
    assert!(text.starts_with(&format!("To: {PHONE}\n")), "{text}");

    let code = code(&text);

    // Phones offer the code on this page only.
    assert!(text.trim_end().ends_with(&format!(" #{code}")), "{text}");

    let again = form::press(&app, &url, "send-code", &[]).await;
    assert_eq!(again.status, 429);
    assert_eq!(enter(&app, &url, "000").await.status, 422);
    assert_eq!(enter(&app, &url, &code).await.status, 303);

    let custody = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .text();
    assert!(custody.contains("signer.access_confirmed") && custody.contains("sms_code"));
    assert!(custody.contains(PHONE) && !custody.contains(&code));

    let people = app
        .get(&format!("/partner/envelopes/{id}/signers"))
        .await
        .data(200);
    assert_eq!(people["signers"][0]["access"], "sms_code");
    assert_eq!(people["signers"][0]["phone"], PHONE);
    assert_eq!(people["signers"][0]["notify_by"], "email");

    // Only the code came as a text message.
    assert_eq!(app.wait_for_mails(1).await.len(), 1);
    assert_eq!(app.wait_for_texts(1).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_and_a_reminder_come_as_text_messages() {
    let app = service().await;
    let signer = json!({ "notify_by": "sms", "phone": PHONE, "locale": "de" });
    let (id, _) = sent(&app, signer).await;
    let text = app.wait_for_texts(1).await.remove(0);
    assert!(text.contains("bittet Sie"), "{text}");

    let link = text.trim_end().rsplit_once('\n').unwrap().1;
    let page = form::open(&app, link).await;
    assert_eq!(page.status, 200, "{link}");

    let path = format!("/partner/envelopes/{id}/remind");
    app.post(&path, json!({})).await.data(200);
    let texts = app.wait_for_texts(2).await;
    assert!(texts[1].contains("Erinnerung"), "{}", texts[1]);

    form::sign(&app, link).await;

    // The copy always comes by mail: to the creator and the signer.
    let mails = app.wait_for_mails(2).await;
    let invitations = mails.iter().filter(|mail| mail.contains("/sign/"));
    assert_eq!((mails.len(), invitations.count()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_can_be_invited_both_ways() {
    let app = service().await;
    sent(
        &app,
        json!({ "notify_by": "email_and_sms", "phone": PHONE }),
    )
    .await;
    let text = app.wait_for_texts(1).await.remove(0);

    let mail = app.wait_for_mails(1).await.remove(0);
    let link = |text: &str| text.split("/sign/").nth(1).unwrap()[..20].to_owned();
    assert!(mail.contains("/sign/"), "{mail}");

    // Each has its own link, so a leaked link identifies its channel.
    assert_ne!(link(&text), link(&mail.replace("=\r\n", "")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_does_not_fit_is_refused() {
    let app = service().await;
    for (signer, code) in [
        (json!({ "access": "sms_code" }), "phone_required"),
        (json!({ "notify_by": "sms" }), "phone_required"),
        (json!({ "notify_by": "email_and_sms" }), "phone_required"),
        (
            json!({ "access": "sms_code", "phone": "555-01422" }),
            "invalid_phone",
        ),
        (json!({ "phone": "call me at home" }), "invalid_phone"),
    ] {
        let refused = create(&app, signer.clone(), json!({})).await;
        assert_eq!(refused.status, 422, "{signer}");
        assert_eq!(refused.json()["details"][0]["code"], code);
        assert_eq!(
            refused.json()["details"][0]["path"],
            json!(["signers", 0, "phone"])
        );
    }

    let unknown = create(&app, json!({ "notify_by": "pigeon" }), json!({})).await;
    assert_eq!(unknown.status, 422);

    let all = app.get("/partner/envelopes").await.json();
    assert_eq!(all["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_receives_no_messages_is_reported() {
    let app = service().await;
    let (id, _) = sent(&app, json!({ "notify_by": "sms", "phone": "+15125550000" })).await;
    app.wait_for_event(&id, "signer.text_failed").await;
    let custody = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .text();
    assert!(
        custody.contains("the number receives no text messages"),
        "{custody}"
    );
    assert!(custody.contains("\"invitation\""), "{custody}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_number_gets_a_code_of_its_own() {
    let app = service().await;
    let (id, url) = sent(&app, json!({ "access": "sms_code", "phone": PHONE })).await;
    let first = code(&texted(&app, &url, 1).await);
    let path = format!("/partner/envelopes/{id}/signers/Buyer");
    let same = app.patch(&path, json!({ "phone": "512-555-0142" })).await;
    assert_eq!(same.json()["details"][0]["code"], "unchanged");

    let wrong = app.patch(&path, json!({ "phone": "5550142-12" })).await;
    assert_eq!(wrong.json()["details"][0]["code"], "invalid_phone");

    let changed = app
        .patch(&path, json!({ "phone": "+442079460018" }))
        .await
        .data(200);
    assert_eq!(changed["phone"], "+442079460018");

    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await
        .data(200);
    let url = links["signers"][0]["embed_url"].as_str().unwrap();
    let page = form::open(&app, url).await.text();
    assert!(page.contains("ends in 18"), "{page}");

    // The code on the earlier telephone opens nothing.
    assert_eq!(enter(&app, url, &first).await.status, 422);

    // The new telephone need not wait for a code that another one got.
    let text = texted(&app, url, 2).await;
    assert!(text.starts_with("To: +442079460018\n"), "{text}");
    assert_eq!(enter(&app, url, &code(&text)).await.status, 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_person_needs_a_telephone_too() {
    let app = service().await;
    let signer = json!({ "notify_by": "sms", "phone": PHONE });
    let created = create(&app, signer, json!({ "allow_delegation": true }))
        .await
        .data(201);
    let (id, url) = (
        created["envelope_id"].as_str().unwrap(),
        created["sign_url"].as_str().unwrap(),
    );

    // Invited before another person takes the place, who would get the only message otherwise.
    app.wait_for_texts(1).await;
    let path = format!("/partner/envelopes/{id}/signers/Buyer");
    let sam = json!({ "email": "sam@example.com", "name": "Sam Lee" });
    let refused = app.patch(&path, sam).await;
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["details"][0]["code"], "phone_required");
    assert_eq!(refused.json()["details"][0]["path"], json!(["phone"]));
    assert!(
        form::open(&app, url)
            .await
            .text()
            .contains("Mobile phone of the person")
    );

    let given = |phone: &str| {
        [
            ("name", "Sam Lee"),
            ("email", "sam@example.com"),
            ("phone", phone),
        ]
        .map(|(name, value)| (format!("delegate-{name}"), value.to_owned()))
    };
    let refused = form::press(&app, url, "delegate", &given("home")).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("Enter a mobile number"),
        "{}",
        refused.text()
    );

    let passed = form::press(&app, url, "delegate", &given("+442079460018")).await;
    assert!(
        passed.text().contains("Sam Lee was asked"),
        "{}",
        passed.text()
    );

    let texts = app.wait_for_texts(2).await;
    assert!(texts[1].starts_with("To: +442079460018\n"), "{}", texts[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_no_text_message_is_promised() {
    let development = service().await;
    let app = development
        .another_node(|config| config.env = Some(DeploymentEnvironment::Production))
        .await;
    for signer in [
        json!({ "access": "sms_code", "phone": PHONE }),
        json!({ "notify_by": "sms", "phone": PHONE }),
    ] {
        let refused = create(&app, signer, json!({})).await;
        assert_eq!(refused.error(503), "No text message provider is configured");
    }

    create(&app, json!({ "phone": PHONE }), json!({}))
        .await
        .data(201);
}

pub fn twilio(config: &mut Config, url: &str) {
    let setting = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let instance = ProviderInstance {
        base_url: url.parse().unwrap(),
        allow_hosts: None,
        timeout: Duration::from_secs(60),
        secrets: BTreeMap::from([("auth_token".to_owned(), SecretText::new("token_1"))]),
        publishable_key: None,
        settings: BTreeMap::from([("account_sid", "AC1"), ("from", "+15125550100")].map(setting)),
    };

    config.providers.allow_insecure = true;
    let instances = &mut config.providers.messaging.instances;
    instances.insert("main".into(), instance);
}

/// The Twilio plugin with a service that fails first.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_gets_each_message_until_it_takes_it() {
    let service = WebhookReceiver::start().await;
    service.answer(|attempt, _| match attempt {
        0 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => (
            StatusCode::CREATED,
            Json(json!({ "sid": "SM1", "status": "queued" })),
        )
            .into_response(),
    });

    let base = service.url.trim_end_matches("/hook").to_owned();
    let app = TestApp::with(|config| twilio(config, &base), settings()).await;
    sent(&app, json!({ "notify_by": "sms", "phone": PHONE })).await;
    let requests = service.wait_for(2).await;

    // The second attempt has a new link, and is another message.
    let keys = requests.iter().map(|one| one.header("idempotency-key"));
    let keys: BTreeSet<&str> = keys.collect();
    assert_eq!(keys.len(), 2);

    let jobs = keys.iter().map(|key| key.rsplit_once('-').unwrap().0);
    assert_eq!(jobs.collect::<BTreeSet<_>>().len(), 1);

    for request in requests {
        assert_eq!(request.path, "/2010-04-01/Accounts/AC1/Messages.json");
        // `AC1:token_1` (RFC 7617).
        assert_eq!(request.header("authorization"), "Basic QUMxOnRva2VuXzE=");

        let body = String::from_utf8(request.body.to_vec()).unwrap();
        assert!(
            body.starts_with("To=%2B15125550142&From=%2B15125550100&Body="),
            "{body}"
        );
        assert!(body.contains("%2Fsign%2F"), "{body}");
    }
}

/// A provider that cannot be used is tried for hours; the sender then learns that no signer was invited.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_message_that_is_given_up_is_reported() {
    let service = WebhookReceiver::start().await;
    service.answer_with(401);
    let base = service.url.trim_end_matches("/hook").to_owned();
    let app = TestApp::with(|config| twilio(config, &base), settings()).await;
    let (id, _) = sent(&app, json!({ "notify_by": "sms", "phone": PHONE })).await;
    service.wait_for(1).await;
    app.execute("update job set attempts = 100 where kind = 'text.invite'")
        .await;

    app.wait_for_event(&id, "signer.text_failed").await;
    let path = format!("/partner/envelopes/{id}/custody");
    let custody = app.get(&path).await.text();
    assert!(
        custody.contains("the provider could not be used"),
        "{custody}"
    );
}

/// The telephone of a signer stays in the entries to which it belongs.
#[tokio::test(flavor = "multi_thread")]
async fn a_telephone_is_in_no_event_about_something_else() {
    let app = service().await;
    let (id, url) = sent(&app, json!({ "access": "sms_code", "phone": PHONE })).await;
    let text = texted(&app, &url, 1).await;
    assert_eq!(enter(&app, &url, &code(&text)).await.status, 303);
    let sent = app.entry(&id, "envelope.sent").await;
    assert!(!sent.to_string().contains("5550142"), "{sent}");
    let confirmed = app.entry(&id, "signer.access_confirmed").await;
    assert_eq!(confirmed["signer"]["phone"], PHONE);
}

/// A provider is asked with the settings that are to be activated; no message is sent for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_call_finds_wrong_settings_of_a_message_provider() {
    let service = WebhookReceiver::start().await;
    service.answer(|_, request| match request.header("authorization") {
        // `AC1:token_1` (RFC 7617).
        "Basic QUMxOnRva2VuXzE=" => Json(json!({ "messages": [] })).into_response(),
        _ => (StatusCode::UNAUTHORIZED, Json(json!({ "code": 20003 }))).into_response(),
    });
    let base = service.url.trim_end_matches("/hook");

    let app = TestApp::with(|config| config.providers.allow_insecure = true, settings()).await;
    let secrets = |name: &str, value: &str| {
        json!({ "base_url": base, "settings":
        { "account_sid": "AC1", "from": "+15125550100" }, "secrets": { name: value } })
    };
    let tries = [
        (secrets("auth_tokn", "token_1"), 422, "secret auth_token"),
        (
            secrets("auth_token", "token_2"),
            422,
            "accept the secret auth_token",
        ),
        (secrets("auth_token", "token_1"), 201, ""),
    ];

    first_calls(&app, Slot::Messaging, &tries).await;
    let requests = service.received();
    assert!(requests.iter().all(|request| request.body.is_empty()));
    assert_eq!(requests.len(), 2);
}
