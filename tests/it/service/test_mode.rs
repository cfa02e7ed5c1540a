//! Test data: apart from live data, without effect outside, and never authoritative.

use holdfast::config::{DeploymentEnvironment, SecretText};
use holdfast::domain::clock::Timestamp;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::{OrgSettings, PaymentSettings};
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::support::receiver::{self, WebhookReceiver, status};
use crate::support::{
    TestApp, envelope_body, files_below, form, operator, pdf, postgres, release_form,
};

/// Lets the service be used with a test key. Returns the live one.
pub async fn in_test(app: &mut TestApp) -> String {
    let scopes = [
        "envelopes:read",
        "envelopes:write",
        "vault:read",
        "vault:write",
        "vault:release",
        "compliance:read",
        "customers:read",
        "esign:write",
        "control:read",
        "control:write",
        "webhooks:listen",
    ];

    let body = json!({ "scopes": scopes, "mode": "test" });
    let made = app
        .post_with_bearer(&app.token("owner"), "/api-keys", body)
        .await
        .data(201);
    assert_eq!(made["mode"], "test");

    app.execute("update api_key set rate_limit_rpm = 100000")
        .await;
    let key = made["api_key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("lk_test_"), "{key}");

    app.org = app.org.test();
    std::mem::replace(&mut app.key, key)
}

async fn started(change: impl FnOnce(&mut holdfast::config::Config)) -> (TestApp, String) {
    let mut app = TestApp::with(change, OrgSettings::default()).await;
    let live = in_test(&mut app).await;
    (app, live)
}

fn id_of(envelope: &Value) -> String {
    envelope["envelope_id"].as_str().unwrap().to_owned()
}

async fn sign(app: &TestApp, id: &str, body: Value) -> Value {
    let path = format!("/test/envelopes/{id}/sign");
    app.post(&path, body).await.data(200)
}

/// Returns the messages of the inbox, newest first, once there are so many.
async fn inbox(app: &TestApp, query: &str, count: usize) -> Vec<Value> {
    for _ in 0..2_000 {
        let found = app.get(&format!("/test/inbox{query}")).await.data(200);
        let found = found.as_array().unwrap();
        if found.len() >= count {
            return found.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }

    panic!("fewer than {count} messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_test_mode_has_48_characters() {
    let (app, live) = started(|_| {}).await;
    assert_eq!((live.len(), app.key.len()), (43, 48));
    let digits = app.key.strip_prefix("lk_test_").unwrap();
    assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
}

#[tokio::test(flavor = "multi_thread")]
async fn test_data_is_in_no_live_list() {
    let (app, live) = started(|_| {}).await;
    let sent = app.sent_envelope().await;
    let id = id_of(&sent);
    let own = app.get("/partner/envelopes").await.json();
    assert_eq!(own["data"][0]["envelope_id"], id.as_str());

    for path in [
        "/partner/envelopes",
        "/partner/events",
        "/partner/control/records",
    ] {
        let listed = app.get_as(&live, path).await.data(200);
        assert_eq!(listed, json!([]), "{path}");
    }

    for path in ["", "/status", "/custody", "/signers"] {
        let path = format!("/partner/envelopes/{id}{path}");
        app.get_as(&live, &path).await.error(404);
        assert_eq!(app.get(&path).await.status, 200, "{path}");
    }

    // People of the organization see live data.
    let org = app.org.live();
    let arguments = [
        "token",
        "issue",
        "--org",
        org.as_str(),
        "--email",
        "ada@oak.example",
        "--role",
        "owner",
    ];

    let token = operator(app.data.path(), &arguments);
    let token = token["token"].as_str().unwrap();
    for path in ["/envelopes", "/templates", "/customers"] {
        let listed = app.get_with_bearer(token, path).await.data(200);
        assert_eq!(listed, json!([]), "{path}");
    }

    let requests = app.get_with_bearer(token, "/request-log").await.data(200);
    assert!(
        !requests.to_string().contains("/partner/templates"),
        "{requests}"
    );

    let usage = app.get_with_bearer(token, "/usage").await.data(200);
    assert_eq!(usage["envelopes_created"], 0);

    // They see all keys, and who made them.
    let keys = app.get_with_bearer(token, "/api-keys").await.data(200);
    let modes: Vec<&Value> = keys
        .as_array()
        .unwrap()
        .iter()
        .map(|key| &key["mode"])
        .collect();
    assert_eq!(modes, ["live", "test"]);

    let made = app
        .post_with_bearer(
            token,
            "/api-keys",
            json!({ "scopes": ["envelopes:read"], "mode": "test" }),
        )
        .await
        .data(201);
    let second = made["api_key"].as_str().unwrap();
    let listed = app.get_as(second, "/partner/envelopes").await.data(200);
    assert_eq!(listed[0]["envelope_id"], id.as_str());

    let ended = format!("/api-keys/{}/deactivate", made["key_id"].as_str().unwrap());
    app.post_with_bearer(token, &ended, json!({}))
        .await
        .data(200);
    app.get_as(second, "/partner/envelopes").await.error(401);
    let audit = app.get_with_bearer(token, "/audit-log").await.data(200);
    assert_eq!(audit[0]["action"], "key.deactivated");

    let arguments = [
        "key",
        "create",
        "--org",
        org.as_str(),
        "--scopes",
        "envelopes:read",
        "--test",
    ];

    let made = operator(app.data.path(), &arguments);
    let third = made["api_key"].as_str().unwrap();
    let listed = app.get_as(third, "/partner/envelopes").await.data(200);
    assert_eq!(listed[0]["envelope_id"], id.as_str());

    // The commands list the organization once.
    let listed = operator(app.data.path(), &["org", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

/// In production, with a mail server that does not answer: a test needs neither that nor any provider.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_test_is_sent() {
    let authority = WebhookReceiver::start().await;
    let (app, _) = started(|config| {
        config.seal.timestamp_url = Some(authority.url.parse().unwrap());
        config.env = Some(DeploymentEnvironment::Production);
        config.smtp_url = Some(SecretText::new("smtp://127.0.0.1:9"));
    })
    .await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([{
        "name": "Jordan Lee", "email": "jordan.lee@example.com", "role": "Buyer", "phone": "+15555550123",
        "notify_by": "email_and_sms",
    }]);

    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));
    let messages = inbox(&app, &format!("?envelope_id={id}"), 2).await;
    let of = |channel: &str| {
        let found = messages.iter().find(|one| one["channel"] == channel);
        found.unwrap_or_else(|| panic!("no {channel}: {messages:?}"))
    };
    let mail = of("email");
    assert_eq!(mail["to"], "jordan.lee@example.com");
    assert_eq!(mail["envelope_id"], id.as_str());

    let subject = mail["subject"].as_str().unwrap();
    assert!(subject.contains("(TEST)"), "{subject}");

    let link = mail["link"].as_str().unwrap();
    assert!(mail["body"].as_str().unwrap().contains(link), "{mail}");
    assert_eq!(of("sms")["to"], "+15555550123");
    assert_eq!(
        files_below(&app.data.path().join("outbox")),
        Vec::<std::path::PathBuf>::new()
    );

    // The link is real: the page names the test.
    crate::support::form::sign(&app, link).await;
    app.wait_for(&id, "vaulted").await;
    assert_eq!(authority.received().len(), 0, "a time stamp was asked for");

    inbox(&app, "?to=jordan.lee@example.com", 2).await;
    let page = app
        .get("/test/inbox?to=JORDAN.LEE@example.com&limit=1")
        .await
        .json();
    assert_eq!(page["data"].as_array().unwrap().len(), 1, "{page}");

    let last = page["data"][0]["message_id"].as_str().unwrap();
    let earlier = format!("/test/inbox?to=jordan.lee@example.com&starting_after={last}");
    let earlier = app.get(&earlier).await.data(200);
    assert!(!earlier.as_array().unwrap().is_empty());

    app.get("/test/inbox?starting_after=msg_1").await.error(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_signers_fill_answer_pay_and_sign() {
    let settings = OrgSettings {
        payment: Some(PaymentSettings {
            amount_cents: 4900,
            currency: "USD".into(),
            connected_account: None,
            platform_fee_cents: None,
            payer: "first".into(),
        }),
        ..OrgSettings::default()
    };

    let production = |config: &mut holdfast::config::Config| {
        config.env = Some(DeploymentEnvironment::Production);
    };
    let mut app = TestApp::with(production, settings).await;
    in_test(&mut app).await;
    let document = pdf::with_lines(&[
        "{{First;type=signature;role=Buyer;required=true}}",
        "{{Odometer;type=number;role=Buyer;required=true;min=10}}",
        "{{Trade-in;type=checkbox;role=Buyer;required=true}}",
        "{{Vehicle;type=text;role=Buyer;required_if=Trade-in}}",
        "{{Licence;type=attachment;role=Buyer;required=true}}",
        "Between",
        "{{Second;type=initials;role=Seller;required=true}}",
    ]);

    let texts = [("name", "Two"), ("kba_required", "true")];
    let template = app.library_template(&texts, &document).await.data(201);
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = crate::support::buyer_and_seller();
    body["preserve_signing_order"] = true.into();
    let id = id_of(&app.post("/partner/envelopes", body.clone()).await.data(201));

    // The seller's turn comes later.
    let path = format!("/test/envelopes/{id}/sign");
    let seller = body["signers"][1]["email"].as_str().unwrap();
    let early = app.post(&path, json!({ "signer_email": seller })).await;
    assert_eq!(early.json()["details"][0]["code"], "not_their_turn");
    assert_eq!(early.status, 422);

    // A misspelt name is refused, also beside a right one, and nothing is signed.
    let misspelt = json!({ "values": { "Odometer": "48210", "Odometr": "48210" } });
    let misspelt = app.post(&path, misspelt).await;
    let issues = misspelt.json()["details"].take();
    assert_eq!(misspelt.status, 422, "{issues}");
    assert_eq!(issues.as_array().unwrap().len(), 1, "{issues}");
    assert_eq!(issues[0]["code"], "unknown_field");
    assert_eq!(issues[0]["path"], json!(["values", "Odometr"]));
    let expected = issues[0]["expected"].as_str().unwrap();
    assert!(expected.contains("Odometer"), "{expected}");

    // A value against its rule is refused with the field.
    let wrong = json!({ "values": { "Odometer": "3" } });
    let wrong = app.post(&path, wrong).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert_eq!(
        wrong.json()["details"][0]["path"],
        json!(["values", "Odometer"])
    );

    let buyer = body["signers"][0]["email"].as_str().unwrap();
    let first = json!({ "signer_email": buyer, "values": { "Odometer": "48210" } });
    let first = sign(&app, &id, first).await;
    assert_eq!(first["signers"], json!([buyer]));

    let rest = sign(&app, &id, json!({})).await;
    assert_eq!(rest["signers"], json!([seller]));

    app.wait_for(&id, "vaulted").await;
    let custody = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .data(200);
    let entries = custody["entries"].to_string();
    for told in [
        "payment.succeeded",
        "envelope.kba_verified",
        "\"sandbox\":true",
    ] {
        assert!(entries.contains(told), "{told}: {entries}");
    }

    // Nothing is left to sign.
    app.post(&path, json!({})).await.error(409);
    app.post(&format!("/test/envelopes/{id}/decline"), json!({}))
        .await
        .error(409);

    app.post("/test/envelopes/env_1/sign", json!({}))
        .await
        .error(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_simulated_signer_declines() {
    let (app, _) = started(|_| {}).await;
    let id = id_of(&app.sent_envelope().await);
    let declined = app
        .post(
            &format!("/test/envelopes/{id}/decline"),
            json!({ "reason": "The price is wrong" }),
        )
        .await
        .data(200);
    assert_eq!(declined["status"], "declined");
    assert_eq!(declined["signers"], json!(["jordan.lee@example.com"]));

    let events = app.events(&id).await;
    let told = |event: &Value| event.to_string().contains("The price is wrong");
    assert!(events.iter().any(told), "{events:?}");
}

/// Every page is marked TEST, and vault-out, designation and invitation are refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_a_test_is_marked_and_never_released() {
    let (app, live) = started(|_| {}).await;
    let id = id_of(&app.sent_envelope().await);
    sign(&app, &id, json!({})).await;
    app.wait_for(&id, "vaulted").await;

    for area in ["vault", "copies"] {
        let kept = &app.objects(area)[0];
        let text = pdf::text(&std::fs::read(kept).unwrap());
        let pages = text.matches('\u{c}').count();
        let marked = format!("Non-authoritative copy · TEST · {id}");
        assert!(pages > 0, "{text}");
        assert_eq!(text.matches(&marked).count(), pages, "{area}: {text}");
        assert!(!text.contains("Authoritative copy ·"), "{area}: {text}");
    }

    let certificate = app
        .get(&format!("/partner/envelopes/{id}/vault/certificate"))
        .await
        .text();
    assert!(certificate.contains("(TEST)"), "{certificate}");

    for file in ["completion-certificate", "custody-record"] {
        let file = app.get(&format!("/partner/envelopes/{id}/{file}")).await;
        let text = pdf::text(&file.bytes);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("TEST: made from test data, no contract"),
            "{text}"
        );
    }

    let path = format!("/partner/envelopes/{id}/vault-out");
    let refused = app.post(&path, release_form()).await;
    assert_eq!(refused.json()["code"], "test_data");

    refused.error(409);
    app.wait_for(&id, "vaulted").await;

    // No one else gets control of it, and no live record gets into a test.
    let designate = format!("/partner/control/records/{id}/designate");
    let to = json!({ "controller": app.org.live() });
    let refused = app.post(&designate, to).await;
    assert_eq!(refused.json()["details"][0]["code"], "unknown_party");

    let statement = format!("/partner/envelopes/{id}/control-statement");
    let form = json!({ "requested_by": "Jordan Lee" });
    let stated = app.post(&statement, form).await;
    assert_eq!(stated.json()["code"], "test_data", "{}", stated.text());

    let invited = json!({ "name": "Elm", "email": "kim@elm.example" });
    let invited = app.post("/partner/control/invitations", invited).await;
    assert_eq!(invited.json()["code"], "test_data");

    let elm = operator(app.data.path(), &["org", "create", "--name", "Elm"]);
    let elm = elm["org_id"].as_str().unwrap();
    let arguments = [
        "key",
        "create",
        "--org",
        elm,
        "--scopes",
        "envelopes:read",
        "--test",
    ];

    operator(app.data.path(), &arguments);
    let to = json!({ "controller": elm.replace("org_", "org_test_") });
    let refused = app.post(&designate, to).await;
    assert_eq!(refused.json()["details"][0]["code"], "unknown_party");

    app.events_fit_their_schemas(1).await;
    let to = json!({ "controller": app.org });
    let designate = format!("/partner/control/records/{id}/designate");
    app.post_as(&live, &designate, to).await.error(404);
}

/// Links expire, and the pause between two fresh links ends.
#[tokio::test(flavor = "multi_thread")]
async fn fresh_links_follow_the_time_of_the_test() {
    let (app, _) = started(|_| {}).await;
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();
    let advance = async |seconds: i64| {
        let advanced = app.post("/test/clock", json!({ "advance_seconds": seconds }));
        advanced.await.data(200);
    };

    let renew = async || {
        form::press(&app, &format!("{url}/renew"), "renew", &[])
            .await
            .status
    };
    advance(3 * 3_600).await;
    assert_eq!(renew().await, 200);
    assert_eq!(renew().await, 429);

    advance(301).await;
    assert_eq!(renew().await, 200);
}

/// Envelopes expire and webhooks are retried earlier. Times of past events stay.
#[tokio::test(flavor = "multi_thread")]
async fn time_advances() {
    advancing(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_advances_on_postgresql() {
    let database = postgres::new_database().await;
    advancing(|config| config.database_url = Some(database)).await;
}

/// The worker locks the same rows in another order, and PostgreSQL ends one of the two.
#[tokio::test(flavor = "multi_thread")]
async fn time_advances_after_a_deadlock_on_postgresql() {
    let database = postgres::new_database().await;
    let (app, _) = started(|config| config.database_url = Some(database)).await;
    let id = id_of(&app.sent_envelope().await);
    app.wait_until_idle().await;
    let mut tx = app.store.begin().await.unwrap();
    sqlx::query("update signing_link set expires_at = expires_at")
        .execute(&mut *tx)
        .await
        .unwrap();

    let advanced = app.post("/test/clock", json!({ "advance_seconds": 60 }));
    let crossing = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        sqlx::query("update envelope set expires_at = expires_at where envelope_id = $1")
            .bind(&id)
            .execute(&mut *tx)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };

    let (advanced, ()) = tokio::join!(advanced, crossing);
    assert_eq!(advanced.data(200)["advanced_seconds"], 60);
}

async fn advancing(change: impl FnOnce(&mut holdfast::config::Config)) {
    let receiver = WebhookReceiver::start().await;
    receiver.answer(|index, _| status(if index == 0 { 500 } else { 200 }));
    let (app, live) = started(|config| {
        receiver::admit(config);
        config.webhooks.retry_delays = vec![std::time::Duration::from_secs(3600)];
        change(config);
    })
    .await;
    let live_envelope = app
        .post_as(
            &live,
            "/partner/envelopes",
            json!({ "envelope_name": "Live", "customer_name": "Kim", "customer_email": "kim@elm.example" }),
        )
        .await
        .data(201);

    let endpoint = app.endpoint(&receiver.url, &["envelope.sent"]).await;
    let sent = app.sent_envelope().await;
    let id = id_of(&sent);

    // The next attempt has its time once the first one is recorded.
    app.wait_for_log(&endpoint, |log| {
        log.iter().any(|row| row["attempt_count"] == 1)
    })
    .await;
    let before = app.get("/test/clock").await.data(200);
    assert_eq!(before["advanced_seconds"], 0);

    // The second attempt follows at once, and not after an hour.
    let hours = app
        .post("/test/clock", json!({ "advance_seconds": 7200 }))
        .await
        .data(200);
    assert_eq!(hours["advanced_seconds"], 7200);

    receiver.wait_for(2).await;
    let created = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    let month = json!({ "advance_seconds": 31 * 86_400 });
    let month = app.post("/test/clock", month).await.data(200);
    assert_eq!(month["advanced_seconds"], 7200 + 31 * 86_400);

    let expired = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(expired["status"], "expired");
    assert_eq!(expired["created_at"], created["created_at"]);

    let path = format!("/partner/envelopes/{}", id_of(&live_envelope));
    assert_eq!(
        app.get_as(&live, &path).await.data(200)["status"],
        "pending"
    );

    for wrong in [
        json!({ "advance_seconds": 0 }),
        json!({ "advance_seconds": 400_000_000 }),
    ] {
        app.post("/test/clock", wrong).await.error(422);
    }

    assert_eq!(
        app.get("/test/clock").await.data(200)["advanced_seconds"],
        month["advanced_seconds"]
    );

    // Fifty years are the most.
    let decade = json!({ "advance_seconds": 10 * 365 * 86_400 });
    for _ in 0..4 {
        app.post("/test/clock", decade.clone()).await.data(200);
    }

    app.post("/test/clock", decade.clone()).await.data(200);
    app.post("/test/clock", decade).await.error(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn live_keys_reach_no_test_data() {
    let app = TestApp::start().await;
    let id = id_of(&app.sent_envelope().await);
    for answer in [
        app.get("/test/inbox").await,
        app.get("/test/clock").await,
        app.post("/test/clock", json!({ "advance_seconds": 60 }))
            .await,
        app.post(&format!("/test/envelopes/{id}/sign"), json!({}))
            .await,
        app.post(&format!("/test/envelopes/{id}/decline"), json!({}))
            .await,
    ] {
        assert_eq!(answer.json()["code"], "test_key_required");
        assert_eq!(answer.status, 403);
    }

    assert_eq!(
        app.get(&format!("/partner/envelopes/{id}/status"))
            .await
            .data(200)["status"],
        "sent"
    );
}

/// Test data is judged by the organization's own rules, and the evidence names them as such.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_the_organization_judge_its_test_data() {
    let mut app = TestApp::start().await;
    let admin = app.admin();
    let bytes = variant(Slot::Compliance, "of the organization");
    let component = app
        .upload_component(&admin, "oak-rules", "1.0.0", &bytes)
        .await
        .data(201);
    let body = json!({ "component_id": component["component_id"] });
    app.post_with_bearer(&admin, "/component-slots/rules.compliance/activate", body)
        .await
        .data(201);

    in_test(&mut app).await;
    let id = id_of(&app.sent_envelope().await);
    sign(&app, &id, json!({})).await;
    app.wait_for(&id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/custody");
    let custody = app.get(&path).await.data(200);
    let stored = custody["entries"].as_array().unwrap().iter();
    let mut stored = stored.filter(|entry| entry["action"] == "vault.stored");
    let components = stored.next().unwrap()["details"]["components"].clone();
    let rules = components.as_array().unwrap().iter();
    let mut rules = rules.filter(|one| one["slot"] == "rules.compliance");
    let judged = rules.next().unwrap();
    assert_eq!(judged["name"], "oak-rules", "{components}");
    assert_eq!(judged["owner"], "organization", "{components}");
}

/// Jobs at work keep their lease, waiting jobs come nearer.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_at_work_keep_their_lease() {
    let (app, _) = started(|_| {}).await;
    app.stop_working();
    app.wait_until_idle().await;

    let due = "2999-01-01T00:00:00.000Z";
    for (id, epoch) in [("job_waiting", 0), ("job_leased", 1)] {
        let mut tx = app.store.begin().await.unwrap();
        let job = sqlx::query(
            "insert into job (bucket, job_id, org_id, kind, payload, state, run_at, attempts, lease_epoch, created_at)
             values ($1, $2, $3, 'object.delete', '{}', 'waiting', $4, 0, $5, $4)",
        );
        job.bind(app.org.bucket())
            .bind(id)
            .bind(app.org.as_str())
            .bind(due)
            .bind(epoch)
            .execute(&mut *tx)
            .await
            .unwrap();

        tx.commit().await.unwrap();
    }

    let hour = json!({ "advance_seconds": 3600 });
    app.post("/test/clock", hour).await.data(200);
    let waiting = app
        .text_of("select run_at from job where job_id = 'job_waiting'")
        .await;
    assert_eq!(waiting, "2998-12-31T23:00:00.000Z");

    let leased = app
        .text_of("select run_at from job where job_id = 'job_leased'")
        .await;
    assert_eq!(leased, due);
}

/// A change of a setting also applies to test data.
#[tokio::test(flavor = "multi_thread")]
async fn settings_hold_for_test_data() {
    let (app, _) = started(|_| {}).await;
    let org = app.org.live();
    operator(
        app.data.path(),
        &["org", "set", org.as_str(), "envelope_ttl_days=2"],
    );
    app.sent_envelope().await;

    let at = |text: String| Timestamp::parse(&text).unwrap().as_seconds();
    let made = at(app.text_of("select created_at from envelope").await);
    let ends = at(app.text_of("select expires_at from envelope").await);
    assert_eq!((ends - made) / 86_400, 2);
}
