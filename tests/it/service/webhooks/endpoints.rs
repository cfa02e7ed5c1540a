//! Webhooks: deliveries to receivers, the admins' view of them, and valid endpoints.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::{self, Method};
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use holdfast::config::Config;
use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::receiver::{WebhookReceiver, admit, status};
use crate::support::{TestApp, form, operator, postgres};

const ENDPOINTS: &str = "/webhooks/endpoints";

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn path_of(endpoint: &Value, rest: &str) -> String {
    let id = endpoint["endpoint_id"].as_str().unwrap();
    format!("{ENDPOINTS}/{id}{rest}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_reaches_every_endpoint_that_wants_it() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let all = app.endpoint(&format!("{}/all", receiver.url), &["*"]).await;
    let some = app
        .endpoint(&format!("{}/some", receiver.url), &["envelope.*"])
        .await;
    let none = app
        .endpoint(&format!("{}/none", receiver.url), &["vault.stored"])
        .await;

    let envelope = app.envelope_event().await;
    let received = receiver.wait_for(2).await;
    let log = app.settled_log(&all).await;
    assert_eq!(app.settled_log(&some).await.len(), 1);

    let unwanted = app
        .get_with_bearer(&app.admin(), &path_of(&none, "/deliveries"))
        .await
        .json();
    assert_eq!(unwanted["meta"]["total"], 0);

    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, received[1].body, "byte for byte");

    let body = received[0].json();
    assert_eq!(body["event_type"], "envelope.created");
    assert_eq!(body["org_id"], app.org.as_str());
    assert_eq!(body["envelope_id"], envelope);
    assert_eq!(body["data"]["envelope_id"], envelope);
    assert_eq!(body["data"]["envelope_kind"], "paper");

    let members: Vec<_> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "event_type",
            "event_id",
            "org_id",
            "envelope_id",
            "timestamp",
            "data"
        ]
    );

    let delivery = received.iter().find(|one| one.path == "/hook/all").unwrap();
    assert_eq!(delivery.header("content-type"), "application/json");
    assert_eq!(delivery.header("user-agent"), "Service-Webhooks/1.0");
    assert_eq!(delivery.header("x-service-event"), "envelope.created");
    assert_eq!(
        delivery.header("x-service-endpoint"),
        all["endpoint_id"].as_str().unwrap()
    );
    assert_eq!(
        delivery.header("x-service-delivery"),
        log[0]["delivery_id"].as_str().unwrap()
    );

    let secret = all["secret"].as_str().unwrap();
    let signature = hex::encode(hmac(secret.as_bytes(), &delivery.body));
    assert_eq!(
        delivery.header("x-service-signature"),
        format!("sha256={signature}")
    );
    assert!(
        !delivery
            .headers
            .contains_key("x-service-signature-previous")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_webhooks_libraries_can_verify_deliveries() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let delivery = receiver.wait_for(1).await.remove(0);
    assert_eq!(delivery.header("webhook-id"), delivery.json()["event_id"]);

    let secret = endpoint["secret"].as_str().unwrap();
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap());
    let key = key.unwrap();
    assert_eq!(key.len(), 32);

    let (id, at) = (
        delivery.header("webhook-id"),
        delivery.header("webhook-timestamp"),
    );
    let signed = [id.as_bytes(), b".", at.as_bytes(), b".", &delivery.body].concat();
    let signature = STANDARD.encode(hmac(&key, &signed));
    assert_eq!(
        delivery.header("webhook-signature"),
        format!("v1,{signature}")
    );

    let age = jiff::Timestamp::now().as_second() - at.parse::<i64>().unwrap();
    assert!((0..30).contains(&age), "{age} s");
}

/// All five attempts are in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_delivery_is_attempted_five_times_and_each_is_recorded() {
    let settings = |config: &mut Config| {
        admit(config);
        config.webhooks.retry_delays = [40, 60, 80, 100, 10_000]
            .map(Duration::from_millis)
            .to_vec();
    };
    let app = TestApp::with(settings, OrgSettings::default()).await;

    let receiver = WebhookReceiver::start().await;
    receiver.answer(|index, _| {
        let text = format!("attempt {index} is refused\0");
        (
            http::StatusCode::from_u16(500 + index as u16).unwrap(),
            text,
        )
            .into_response()
    });

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let log = app.settled_log(&endpoint).await;
    let received = receiver.wait_for(5).await;
    assert_eq!(log[0]["status"], "failed");
    assert_eq!(log[0]["attempt_count"], 5);
    assert_eq!(log[0]["response_code"], 504);
    assert_eq!(log[0]["response_body"], "attempt 4 is refused\u{fffd}");
    assert_eq!(log[0]["next_retry_at"], Value::Null);
    assert_eq!(log[0]["redelivery_of"], Value::Null);

    let id = log[0]["delivery_id"].as_str().unwrap();
    let path = format!("/webhooks/deliveries/{id}");
    let details = app.get_with_bearer(&app.admin(), &path).await.data(200);
    assert_eq!(details["payload"], received[0].json());

    let attempts = details["attempts"].as_array().unwrap();
    for (index, attempt) in attempts.iter().enumerate() {
        assert_eq!(attempt["attempt"], index + 1);
        assert_eq!(attempt["response_code"], 500 + index);
        assert_eq!(attempt["error"], Value::Null);
    }

    assert_eq!(attempts.len(), 5);
    // Each wait equals its delay, plus or minus a fifth and the duration of the attempt.
    let at =
        |attempt: &Value| -> jiff::Timestamp { attempt["at"].as_str().unwrap().parse().unwrap() };
    for (pair, delay) in attempts.windows(2).zip([40.0, 60.0, 80.0, 100.0]) {
        let waited = at(&pair[1]).duration_since(at(&pair[0])).as_millis() as f64;
        assert!(waited >= delay * 0.8, "{waited} ms for {delay} ms");
    }

    // All attempts are equal except for the time.
    for other in &received[1..] {
        assert_eq!(other.body, received[0].body);
        for header in ["x-service-delivery", "webhook-id", "x-service-signature"] {
            assert_eq!(other.header(header), received[0].header(header));
        }
    }

    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(receiver.received().len(), 5, "no sixth");
}

/// Tests the specification's delays by moving the clock.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_due_after_its_delay_and_not_before() {
    let default = |config: &mut Config| config.webhooks.allow_insecure = true;
    let app = TestApp::with(default, OrgSettings::default()).await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer_with(503);
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let mut ahead = Duration::ZERO;

    let mut app = app;
    for (attempt, delay) in [(1, 60), (2, 300), (3, 1800), (4, 7200)] {
        let count = |log: &[Value]| log[0]["attempt_count"] == attempt;
        let log = app
            .wait_for_log(&endpoint, |log| log.len() == 1 && count(log))
            .await;
        let id = log[0]["delivery_id"].as_str().unwrap();
        let path = format!("/webhooks/deliveries/{id}");
        let details = app.get_with_bearer(&app.admin(), &path).await.data(200);

        let time = |value: &Value| -> jiff::Timestamp { value.as_str().unwrap().parse().unwrap() };
        let tried = &details["attempts"][attempt - 1];
        let ended =
            time(&tried["at"]) + Duration::from_millis(tried["duration_ms"].as_u64().unwrap());
        let wait = time(&details["next_retry_at"])
            .duration_since(ended)
            .as_secs_f64();

        let delay = f64::from(delay);
        assert!(
            (0.8 * delay - 0.01..=1.2 * delay + 0.01).contains(&wait),
            "{wait} s for {delay} s"
        );

        // Move the clock to shortly before and shortly after the time of the retry.
        let early = ahead + Duration::from_secs_f64(wait - 10.0);
        let late = ahead + Duration::from_secs_f64(wait + 1.0);
        app = app.as_of_with(early, default).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(receiver.received().len(), attempt, "not before");

        app = app.as_of_with(late, default).await;
        receiver.wait_for(attempt + 1).await;
        ahead = late;
    }

    assert_eq!(app.settled_log(&endpoint).await[0]["status"], "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_can_postpone_a_retry() {
    let settings = |config: &mut Config| {
        admit(config);
        config.webhooks.retry_delays = vec![Duration::from_secs(60)];
    };
    let app = TestApp::with(settings, OrgSettings::default()).await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer(|_, _| {
        let mut answer = status(429);
        answer.headers_mut().insert("retry-after", 3600.into());
        answer
    });

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let log = app
        .wait_for_log(&endpoint, |log| {
            log.len() == 1 && log[0]["attempt_count"] == 1
        })
        .await;
    let time = |name: &str| -> jiff::Timestamp { log[0][name].as_str().unwrap().parse().unwrap() };
    let wait = time("next_retry_at").duration_since(time("updated_at"));
    assert!((119..=121).contains(&wait.as_secs()), "{wait:?}");
}

/// The target of a redirect would not be checked, so a redirect counts as a failure.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let elsewhere = WebhookReceiver::start().await;
    let to = elsewhere.url.clone();
    receiver.answer(move |_, _| {
        let mut answer = status(307);
        answer.headers_mut().insert("location", to.parse().unwrap());
        answer
    });

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let log = app.settled_log(&endpoint).await;
    assert_eq!(log[0]["status"], "failed");
    assert_eq!(log[0]["response_code"], 307);
    assert!(elsewhere.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_secrets_sign_for_48_hours() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    let old = endpoint["secret"].as_str().unwrap();
    let rotated = app
        .post_with_bearer(
            &app.admin(),
            &path_of(&endpoint, "/rotate-secret"),
            json!({}),
        )
        .await
        .data(200);
    let new = rotated["secret"].as_str().unwrap();
    assert_ne!(new, old);

    assert!(rotated["secret_note"].is_string());
    let hours = Duration::from_secs(3600);
    let mut app = app;
    for (ahead, both) in [
        (Duration::ZERO, true),
        (hours.mul_f64(47.9), true),
        (hours.mul_f64(48.1), false),
    ] {
        if ahead > Duration::ZERO {
            app = app.as_of_with(ahead, admit).await;
        }

        let before = receiver.received().len();
        app.envelope_event().await;
        let delivery = receiver.wait_for(before + 1).await.remove(before);
        let of = |secret: &str| {
            format!(
                "sha256={}",
                hex::encode(hmac(secret.as_bytes(), &delivery.body))
            )
        };
        assert_eq!(delivery.header("x-service-signature"), of(new));

        let previous = delivery.headers.get("x-service-signature-previous");
        assert_eq!(
            previous.map(|value| value.to_str().unwrap().to_owned()),
            both.then(|| of(old)),
            "{ahead:?}"
        );

        let standard = delivery.header("webhook-signature");
        assert_eq!(standard.split(' ').count(), if both { 2 } else { 1 });

        let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
        assert_eq!(shown[0]["grace_expires_at"].is_string(), both);
        assert!(shown[0].get("secret").is_none());
    }
}

/// When an endpoint is disabled or deleted, its pending deliveries fail and nothing more is sent.
/// The log of a deleted endpoint stays.
#[tokio::test(flavor = "multi_thread")]
async fn disabling_or_deleting_an_endpoint_ends_its_deliveries_immediately() {
    for delete in [false, true] {
        let app = TestApp::with_receivers().await;
        let (receiver, other) = (
            WebhookReceiver::start().await,
            WebhookReceiver::start().await,
        );
        let answers = receiver.hold();
        let endpoint = app.endpoint(&receiver.url, &["*"]).await;

        // A second endpoint keeps the node busy.
        app.endpoint(&other.url, &["*"]).await;
        for _ in 0..12 {
            app.envelope_event().await;
        }

        receiver.wait_for(8).await;
        other.wait_for(12).await;
        let (method, body) = if delete {
            (Method::DELETE, json!({}))
        } else {
            (Method::PATCH, json!({ "is_active": false }))
        };

        let path = path_of(&endpoint, "");
        let admin = app.admin();
        app.as_bearer(method, &admin, &path, body).await.data(200);
        let log = path_of(&endpoint, "/deliveries?status=failed");
        let failed = app.get_with_bearer(&admin, &log).await.json();
        assert_eq!(failed["meta"]["total"], 12, "what was under way too");

        answers.send(true).unwrap();
        app.envelope_event().await;
        other.wait_for(13).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        assert_eq!(
            receiver.received().len(),
            8,
            "eight at once, and nothing more came"
        );

        let failed = app.get_with_bearer(&admin, &log).await.json();
        assert_eq!(failed["meta"]["total"], 12, "a late answer changes nothing");

        let listed = app.get_with_bearer(&admin, ENDPOINTS).await.json();
        assert_eq!(listed["meta"]["total"], 1 + i64::from(!delete));

        if delete {
            let path = path_of(&endpoint, "/test");
            let gone = app.post_with_bearer(&admin, &path, json!({})).await;
            assert_eq!(gone.error(404), "Webhook endpoint not found");
        } else {
            let on = json!({ "is_active": true });
            app.as_bearer(Method::PATCH, &admin, &path, on)
                .await
                .data(200);
            app.envelope_event().await;
            let soon = Duration::from_secs(4);
            let arrived = tokio::time::timeout(soon, receiver.wait_for(9)).await;
            assert_eq!(arrived.expect("soon after it is enabled").len(), 9);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_410_disables_the_endpoint_and_notifies_its_owner() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer_with(410);
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let log = app.settled_log(&endpoint).await;
    assert_eq!(log[0]["attempt_count"], 1);

    let mails = app.wait_for_mails(1).await;
    assert!(mails[0].contains("oak@oak.example"), "{}", mails[0]);
    assert!(
        mails[0].contains("Webhooks to 127.0.0.1 are disabled"),
        "{}",
        mails[0]
    );
    assert!(!mails[0].contains("/hook"), "a URL may hold a credential");

    let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
    assert_eq!(shown[0]["is_active"], false);
    assert_eq!(shown[0]["disabled_reason"], "gone");
    assert!(shown[0]["disabled_at"].is_string());

    app.envelope_event().await;
    let on = json!({ "is_active": true });
    let path = path_of(&endpoint, "");
    let again = app
        .as_bearer(Method::PATCH, &app.admin(), &path, on)
        .await
        .data(200);
    assert_eq!(again["disabled_reason"], Value::Null);
    assert_eq!(receiver.received().len(), 1);
}

/// Two days of failures only cause a mail, five days disable the endpoint.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_only_fails_is_disabled_after_five_days() {
    let once = |config: &mut Config| {
        admit(config);
        config.webhooks.max_attempts = 1;
    };
    let day = Duration::from_secs(86_400);
    let mut app = TestApp::with(once, OrgSettings::default()).await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer_with(500);

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    let mut mails = 0;
    for (days, active, told) in [
        (0.0, true, 0),
        (1.9, true, 0),
        (2.1, true, 1),
        (4.9, true, 1),
        (5.1, false, 2),
    ] {
        if days > 0.0 {
            // Each app has its own outbox folder.
            mails += app.wait_for_mails(0).await.len();
            app = app.as_of_with(day.mul_f64(days), once).await;
        }

        app.envelope_event().await;
        let failed = |log: &[Value]| log.iter().all(|row| row["status"] == "failed");
        app.wait_for_log(&endpoint, |log| !log.is_empty() && failed(log))
            .await;
        app.wait_for_mails(told - mails).await;
        let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
        assert!(shown[0]["failing_since"].is_string());

        if active {
            assert_eq!(shown[0]["is_active"], true, "after {days} days");
        } else {
            let deadline = std::time::Instant::now() + Duration::from_secs(10);
            loop {
                let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
                if shown[0]["disabled_reason"] == "failing" {
                    break;
                }
                assert!(std::time::Instant::now() < deadline, "{shown}");
            }
        }
    }

    let text = app.metrics().await;
    assert!(
        text.contains("holdfast_webhook_endpoints_disabled 1"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_successful_delivery_resets_the_failing_period() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer(|index, _| status(if index == 0 { 500 } else { 200 }));
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let log = app.settled_log(&endpoint).await;
    assert_eq!(log[0]["status"], "delivered");
    assert_eq!(log[0]["attempt_count"], 2);

    let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
    assert_eq!(shown[0]["failing_since"], Value::Null);
}

/// After ten failures in a row the breaker opens and one delivery at a time is tried. Waiting
/// deliveries use up no attempts, and all arrive once one succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_receiver_is_probed_and_gets_waiting_deliveries_on_recovery() {
    let settings = |config: &mut Config| {
        admit(config);
        config.webhooks.retry_delays = vec![Duration::from_millis(800)];
    };
    let app = TestApp::with(settings, OrgSettings::default()).await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer_with(500);

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    for _ in 0..60 {
        app.envelope_event().await;
    }

    receiver.wait_for(10).await;
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
    assert!(shown[0]["failing_since"].is_string());

    let taken = receiver.count_and_take();
    let tried = receiver.received().len();

    // The deliveries in flight when the breaker opened, and a probe or two.
    assert!((10..=26).contains(&tried), "{tried}");

    let log = app
        .wait_for_log(&endpoint, |log| {
            log.iter().all(|row| row["status"] == "delivered")
        })
        .await;
    assert_eq!(log.len(), 60);
    assert_eq!(taken.load(Ordering::Relaxed), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_delivery_reports_success_without_the_receivers_response() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer(|_, _| (http::StatusCode::OK, "an internal page").into_response());
    let endpoint = app.endpoint(&receiver.url, &["vault.*"]).await;
    let admin = app.admin();
    let path = path_of(&endpoint, "/test");
    let tested = app
        .post_with_bearer(&admin, &path, json!({}))
        .await
        .data(200);
    assert_eq!(tested, json!({ "delivered": true, "status_code": 200 }));

    let sent = receiver.received().remove(0);
    assert_eq!(sent.event_type(), "webhook.test");
    assert_eq!(sent.json()["envelope_id"], Value::Null);
    assert!(sent.headers.contains_key("x-service-signature"));

    receiver.answer_with(500);
    let tested = app
        .post_with_bearer(&admin, &path, json!({}))
        .await
        .data(200);
    assert_eq!(tested, json!({ "delivered": false, "status_code": 500 }));

    let log = app.settled_log(&endpoint).await;
    let statuses: Vec<_> = log
        .iter()
        .map(|row| row["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["failed", "delivered"], "a single attempt each");
    assert!(log.iter().all(|row| row["response_body"] == Value::Null));

    let nobody = json!({ "url": "http://127.0.0.1:9/" });
    app.as_bearer(Method::PATCH, &admin, &path_of(&endpoint, ""), nobody)
        .await
        .data(200);
    let tested = app
        .post_with_bearer(&admin, &path, json!({}))
        .await
        .data(200);
    assert_eq!(tested, json!({ "delivered": false, "status_code": null }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_is_a_new_delivery_of_the_same_event() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let original = app.settled_log(&endpoint).await.remove(0);
    let id = original["delivery_id"].as_str().unwrap();
    let path = format!("/webhooks/deliveries/{id}/redeliver");

    let admin = app.admin();
    let replay = app
        .post_with_bearer(&admin, &path, json!({}))
        .await
        .data(201);
    assert_eq!(replay["redelivery_of"], id);
    assert_eq!(replay["event_id"], original["event_id"]);
    assert_ne!(replay["delivery_id"], original["delivery_id"]);

    let received = receiver.wait_for(2).await;
    assert_eq!(received[1].body, received[0].body);
    assert_eq!(
        received[1].header("x-service-delivery"),
        replay["delivery_id"]
    );
    assert_eq!(app.settled_log(&endpoint).await.len(), 2);

    let unknown = "/webhooks/deliveries/wdel_01h455vb4pex5vsknk084sn02q/redeliver";
    let answer = app.post_with_bearer(&admin, unknown, json!({})).await;
    assert_eq!(answer.error(404), "Webhook delivery not found");

    let off = json!({ "is_active": false });
    app.as_bearer(Method::PATCH, &admin, &path_of(&endpoint, ""), off)
        .await
        .data(200);
    let refused = app.post_with_bearer(&admin, &path, json!({})).await;
    assert_eq!(refused.error(409), "Webhook endpoint is not active");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_delivery_log_can_be_filtered() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer(|_, received| {
        status(if received.event_type() == "webhook.test" {
            400
        } else {
            200
        })
    });

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    let admin = app.admin();
    app.envelope_event().await;
    app.envelope_event().await;
    app.post_with_bearer(&admin, &path_of(&endpoint, "/test"), json!({}))
        .await
        .data(200);

    let log = app.wait_for_log(&endpoint, |log| {
        log.len() == 3 && log.iter().all(|row| row["status"] != "pending")
    });
    let log = log.await;
    let event = log[2]["event_id"].as_str().unwrap();
    let total = async |query: &str| {
        let path = path_of(&endpoint, &format!("/deliveries?{query}"));
        app.get_with_bearer(&admin, &path).await.json()["meta"]["total"].clone()
    };
    assert_eq!(total("status=failed").await, 1);
    assert_eq!(total("status=delivered").await, 2);
    assert_eq!(total("event_type=webhook.test").await, 1);
    assert_eq!(total("event_type=envelope.created&status=failed").await, 0);
    assert_eq!(total(&format!("event_id={event}")).await, 1);

    assert_eq!(total("event_id=nonsense").await, 0);
    let page = path_of(&endpoint, "/deliveries?limit=2&page=2");
    let page = app.get_with_bearer(&admin, &page).await.json();
    assert_eq!(page["meta"], json!({ "page": 2, "limit": 2, "total": 3 }));
    assert_eq!(page["data"].as_array().unwrap().len(), 1);

    for query in ["status=lost", "event_type=nothing", "limit=101", "page=0"] {
        let path = path_of(&endpoint, &format!("/deliveries?{query}"));
        assert_eq!(
            app.get_with_bearer(&admin, &path).await.status,
            400,
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_has_25_endpoints_and_a_key_ten() {
    let app = TestApp::with_receivers().await;
    let admin = app.admin();
    let keys = operator(app.data.path(), &["key", "list", "--org", app.org.as_str()]);
    let key = keys[0]["key_id"].as_str().unwrap().to_owned();
    let add = async |key: Option<&str>| {
        let body = json!({
            "url": "http://127.0.0.1:9/", "events": ["*"], "partner_key_id": key,
        });
        app.post_with_bearer(&admin, ENDPOINTS, body).await
    };

    // Twelve concurrent requests are two more than the limit.
    let at_once = futures::future::join_all((0..12).map(|_| add(Some(&key)))).await;
    let made = at_once.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 10);
    assert_eq!(add(Some(&key)).await.error(422), "Endpoint limit reached");

    let legacy = json!({ "webhook_url": "http://127.0.0.1:9/" });
    let answer = app.patch("/partner/webhook", legacy).await;
    assert_eq!(answer.error(422), "Endpoint limit reached");

    for _ in 0..15 {
        add(None).await.data(201);
    }
    assert_eq!(add(None).await.error(422), "Endpoint limit reached");

    let path = format!("{ENDPOINTS}?partner_key_id={key}");
    let of_key = app.get_with_bearer(&admin, &path).await.json();
    assert_eq!(of_key["meta"]["total"], 10);

    let all = app.get_with_bearer(&admin, ENDPOINTS).await.json();
    assert_eq!(all["meta"]["total"], 25);

    let nobody = format!("{ENDPOINTS}?partner_key_id=nobody");
    assert_eq!(
        app.get_with_bearer(&admin, &nobody).await.json()["meta"]["total"],
        0
    );

    let id = all["data"][0]["endpoint_id"].as_str().unwrap();
    let path = format!("{ENDPOINTS}/{id}");
    app.as_bearer(Method::DELETE, &admin, &path, json!({}))
        .await
        .data(200);
    add(None).await.data(201);

    // A key of another organization does not exist for the caller.
    let foreign = add(Some("key_01h455vb4pex5vsknk084sn02q")).await;
    assert_eq!(foreign.error(404), "API key not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_problems_of_an_endpoint_are_reported_and_nothing_changes() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let wrong =
        json!({ "url": "http://10.0.0.1/", "events": ["*.completed", "envelope.*", "nothing.*"] });
    let answer = app.post_with_bearer(&admin, ENDPOINTS, wrong).await;
    assert_eq!(answer.status, 422);

    let body = answer.json();
    assert_eq!(body["error"], "Validation failed");

    let paths: Vec<_> = body["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| issue["path"].clone())
        .collect();
    assert_eq!(
        paths,
        [json!(["url"]), json!(["events", 0]), json!(["events", 2])]
    );

    for body in [
        json!({ "events": ["*"] }),
        json!({ "url": "https://hooks.example.com/" }),
        json!({ "url": "https://hooks.example.com/", "events": [] }),
        json!({ "url": "https://hooks.example.com/", "events": "*" }),
        json!({ "url": 7, "events": ["*"] }),
    ] {
        let answer = app.post_with_bearer(&admin, ENDPOINTS, body.clone()).await;
        assert_eq!(answer.error(422), "Validation failed", "{body}");
    }

    let listed = app.get_with_bearer(&admin, ENDPOINTS).await.json();
    assert_eq!(listed["meta"]["total"], 0);

    let endpoint = app.endpoint("https://hooks.example.com/", &["*"]).await;
    let path = path_of(&endpoint, "");
    for body in [
        json!({ "url": "https://127.0.0.1/" }),
        json!({ "url": "https://printer.local/" }),
        json!({ "events": ["envelope.*.x"] }),
        json!({ "is_active": "yes" }),
    ] {
        let answer = app
            .as_bearer(Method::PATCH, &admin, &path, body.clone())
            .await;
        assert_eq!(answer.error(422), "Validation failed", "{body}");
    }

    let changed = json!({ "description": "Deal desk", "events": ["vault.*"] });
    let changed = app
        .as_bearer(Method::PATCH, &admin, &path, changed)
        .await
        .data(200);
    assert_eq!(changed["description"], "Deal desk");
    assert_eq!(changed["events"], json!(["vault.*"]));
    assert_eq!(changed["url"], "https://hooks.example.com/");

    let cleared = json!({ "description": null });
    let cleared = app
        .as_bearer(Method::PATCH, &admin, &path, cleared)
        .await
        .data(200);
    assert_eq!(cleared["description"], Value::Null);
    assert_eq!(
        cleared["events"],
        json!(["vault.*"]),
        "what is absent stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_of_the_organization_manage_endpoints() {
    let app = TestApp::start().await;
    app.endpoint("https://hooks.example.com/", &["*"]).await;
    let member = app.token("member");
    let answer = app.get_with_bearer(&member, ENDPOINTS).await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        app.get(ENDPOINTS).await.error(401),
        "Authentication required"
    );

    let other = app
        .get_with_bearer(&app.other_admin(), ENDPOINTS)
        .await
        .json();
    assert_eq!(other["meta"]["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_lists_every_event_that_can_be_selected() {
    let app = TestApp::start().await;
    let catalog = app
        .get_with_bearer(&app.admin(), "/webhooks/events")
        .await
        .data(200);
    let types: Vec<_> = catalog
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["event_type"].as_str().unwrap())
        .collect();
    for known in [
        "envelope.created",
        "envelope.sent",
        "signer.viewed",
        "signer.started",
        "signer.completed",
        "envelope.completed",
        "envelope.voided",
        "envelope.declined",
        "envelope.expired",
        "envelope.reminder_sent",
        "vault.stored",
        "vault.compliance.passed",
        "vault.compliance.failed",
        "vault.released",
        "vault.tamper_detected",
        "payment.succeeded",
        "kba.verified",
        "bulk.completed",
        "webhook.test",
    ] {
        assert!(types.contains(&known), "{known}");
    }

    app.endpoint("https://hooks.example.com/", &types).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_legacy_setting_writes_to_the_keys_own_endpoint() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let set = async |body: Value| app.patch("/partner/webhook", body).await;
    let nothing = set(json!({ "webhook_url": null })).await.data(200);
    assert_eq!(
        nothing,
        json!({ "webhook_url": null, "secret_set": false, "endpoint_id": null })
    );

    let early = set(json!({ "webhook_secret": "a secret of sixteen" })).await;
    assert_eq!(early.error(422), "Validation failed");

    let made = set(json!({ "webhook_url": receiver.url })).await.data(200);
    assert_eq!(made["webhook_url"], receiver.url);
    assert_eq!(made["secret_set"], false);

    app.envelope_event().await;
    let unsigned = receiver.wait_for(1).await.remove(0);
    assert!(!unsigned.headers.contains_key("x-service-signature"));
    assert!(!unsigned.headers.contains_key("webhook-signature"));

    let short = set(json!({ "webhook_secret": "fifteen letters" })).await;
    assert_eq!(short.error(422), "Validation failed");

    let secret = "a secret of sixteen";
    let answer = set(json!({ "webhook_secret": secret })).await;
    assert!(!answer.text().contains(secret), "never echoed");

    let signed = answer.data(200);
    assert_eq!(signed["secret_set"], true);
    assert_eq!(signed["webhook_url"], receiver.url, "what is absent stays");
    assert_eq!(signed["endpoint_id"], made["endpoint_id"]);

    app.envelope_event().await;
    let delivery = receiver.wait_for(2).await.remove(1);
    let expected = hex::encode(hmac(secret.as_bytes(), &delivery.body));
    assert_eq!(
        delivery.header("x-service-signature"),
        format!("sha256={expected}")
    );

    let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
    assert_eq!(shown[0]["endpoint_id"], made["endpoint_id"]);
    assert_eq!(shown[0]["events"], json!(["*"]));
    assert!(shown[0]["partner_key_id"].is_string());

    let off = set(json!({ "webhook_url": null })).await.data(200);
    assert_eq!(off["webhook_url"], Value::Null);

    app.envelope_event().await;
    let unset = set(json!({ "webhook_secret": null, "webhook_url": receiver.url }))
        .await
        .data(200);
    assert_eq!(unset["secret_set"], false);
    assert_eq!(unset["endpoint_id"], made["endpoint_id"]);

    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        receiver.received().len(),
        2,
        "nothing came while it was off"
    );

    for body in [
        json!({ "webhook_url": "ftp://a.example/" }),
        json!({ "webhook_url": 7 }),
    ] {
        assert_eq!(set(body).await.error(422), "Validation failed");
    }

    let read_only = app.key_with(&[Scope::EnvelopesRead]).await;
    let answer = app
        .patch_as(
            &read_only,
            "/partner/webhook",
            json!({ "webhook_url": null }),
        )
        .await;
    assert_eq!(answer.error(403), "Missing required scope: envelopes:write");
}

/// When the first one fails at first, the others overtake it.
#[tokio::test(flavor = "multi_thread")]
async fn the_three_events_after_signing_arrive_in_order() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    receiver.take_long(Duration::from_millis(30));
    app.endpoint(&receiver.url, &["envelope.completed", "vault.*"])
        .await;

    for round in 0..3 {
        let envelope = app.sent_envelope().await;
        form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
        let received = receiver.wait_for(3 * (round + 1)).await;
        let types: Vec<_> = received[3 * round..]
            .iter()
            .map(|one| one.event_type())
            .collect();
        assert_eq!(
            types,
            [
                "envelope.completed",
                "vault.stored",
                "vault.compliance.passed"
            ]
        );
    }

    receiver.answer(|_, received| {
        status(if received.event_type() == "envelope.completed" {
            500
        } else {
            200
        })
    });

    let envelope = app.sent_envelope().await;
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    let others = loop {
        let received = receiver.received();
        let types = received[9..].iter().map(|one| one.event_type().to_owned());
        let others: Vec<_> = types.filter(|one| one != "envelope.completed").collect();
        if others.len() == 2 {
            break others;
        }
        assert!(std::time::Instant::now() < deadline, "{others:?}");

        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(others, ["vault.stored", "vault.compliance.passed"]);
}

/// A receiver that never responds delays no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_delays_no_others() {
    let app = TestApp::with_receivers().await;
    let (hung, healthy) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    hung.take_long(Duration::from_secs(3600));
    app.endpoint(&hung.url, &["*"]).await;

    app.endpoint(&healthy.url, &["*"]).await;
    for count in 1..=30 {
        app.envelope_event().await;
        healthy.wait_for(count).await;
    }
    assert_eq!(hung.received().len(), 8);
}

/// An organization gets at most a quarter of the concurrent attempts, however many endpoints it
/// has.
#[tokio::test(flavor = "multi_thread")]
async fn an_organization_gets_a_quarter_of_the_concurrent_attempts() {
    const QUARTER: usize = 128;

    let app = TestApp::with_receivers().await;
    let (hung, healthy) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    let told = hung.hold();
    for _ in 0..18 {
        app.endpoint(&hung.url, &["*"]).await;
    }

    for _ in 0..10 {
        app.envelope_event().await;
    }

    hung.wait_for(QUARTER).await;

    let other = app.other_organization().await;
    let legacy = json!({ "webhook_url": healthy.url });
    app.patch_as(&other, "/partner/webhook", legacy)
        .await
        .data(200);
    let paper = json!({
        "envelope_name": "Lease", "envelope_kind": "paper",
        "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
    });
    app.post_as(&other, "/partner/envelopes", paper)
        .await
        .data(201);

    healthy.wait_for(1).await;

    // Attempts that timed out after ten seconds have made room for others.
    let waiting = hung.received();
    let waiting = waiting
        .iter()
        .filter(|received| received.at.elapsed() < Duration::from_secs(9));
    assert!(waiting.count() <= QUARTER, "144 could be under way");

    told.send(true).unwrap();
    hung.wait_for(180).await;
}

/// The body is validated before the endpoint is looked up.
#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_change_of_an_unknown_endpoint_is_a_validation_error() {
    let app = TestApp::with_receivers().await;
    let unknown = "/webhooks/endpoints/we_01arz3ndektsv4rrffq69g5fav";
    let change = async |body: Value| {
        app.as_bearer(Method::PATCH, &app.admin(), unknown, body)
            .await
    };
    for wrong in [json!({ "events": [] }), json!({ "url": "ftp://x.example" })] {
        let refused = change(wrong.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
    }

    let right = change(json!({ "is_active": false })).await;
    assert_eq!(right.error(404), "Webhook endpoint not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_and_responses_are_pruned_and_the_log_stays() {
    let short = |config: &mut Config| {
        admit(config);
        config.webhooks.retention = Duration::from_secs(3600);
    };
    let app = TestApp::with(short, OrgSettings::default()).await;
    let receiver = WebhookReceiver::start().await;
    receiver.answer(|_, _| (http::StatusCode::OK, "thank you").into_response());

    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    app.envelope_event().await;
    let log = app.settled_log(&endpoint).await;
    assert_eq!(log[0]["response_body"], "thank you");

    let later = app.as_of_with(Duration::from_secs(2 * 3600), short).await;
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    let path = format!(
        "/webhooks/deliveries/{}",
        log[0]["delivery_id"].as_str().unwrap()
    );
    let pruned = loop {
        let details = later.get_with_bearer(&later.admin(), &path).await.data(200);
        if details["payload"] == Value::Null {
            break details;
        }
        assert!(std::time::Instant::now() < deadline, "{details}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(pruned["status"], "delivered");

    assert_eq!(pruned["response_code"], 200);
    assert_eq!(pruned["attempts"][0]["response_body"], Value::Null);

    let replay = later
        .post_with_bearer(&later.admin(), &format!("{path}/redeliver"), json!({}))
        .await;
    assert_eq!(
        replay.error(409),
        "The payload of this delivery is no longer kept"
    );
}

/// Pruning is off by default and never removes deliveries that are still pending.
#[tokio::test(flavor = "multi_thread")]
async fn the_delivery_log_is_pruned_after_the_configured_age() {
    let settings = |config: &mut Config| {
        admit(config);
        config.webhooks.retry_delays = vec![Duration::from_secs(86_400)];
    };
    let app = TestApp::with(settings, OrgSettings::default()).await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;

    app.envelope_event().await;
    assert_eq!(app.settled_log(&endpoint).await[0]["status"], "delivered");

    receiver.answer_with(500);
    app.envelope_event().await;
    let log = app
        .wait_for_log(&endpoint, |log| {
            log.len() == 2 && log[0]["attempt_count"] == 1
        })
        .await;
    assert_eq!(log[0]["status"], "pending");

    let later = app
        .as_of_with(Duration::from_secs(2 * 3600), |config| {
            settings(config);
            config.webhooks.log_retention = Some(Duration::from_secs(3600));
        })
        .await;
    let log = later.wait_for_log(&endpoint, |log| log.len() == 1).await;
    assert_eq!(log[0]["status"], "pending");
    assert_eq!(later.count("webhook_delivery").await, 1);
    assert_eq!(later.count("webhook_attempt").await, 1);

    // The events stay in the envelope's own history.
    assert_eq!(later.count("event").await, 2);
}

/// One node at a time delivers to an endpoint, and either node can.
#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_share_deliveries_without_duplicates() {
    let url = postgres::new_database().await;
    let settings = |config: &mut Config| {
        admit(config);
        config.database_url = Some(url.clone());
    };
    let one = TestApp::with(settings, OrgSettings::default()).await;
    let mut other = TestApp::with(settings, OrgSettings::default()).await;
    other.org = one.org.clone();

    other.key = one.key.clone();
    let receiver = WebhookReceiver::start().await;
    for endpoint in 0..6 {
        let url = format!("{}/{endpoint}", receiver.url);
        one.endpoint(&url, &["*"]).await;
    }

    for _ in 0..20 {
        futures::future::join(one.envelope_event(), other.envelope_event()).await;
    }

    receiver.wait_for(6 * 40).await;

    // One node stops and the other takes over.
    one.stop_working();
    for _ in 0..10 {
        futures::future::join(one.envelope_event(), other.envelope_event()).await;
    }

    let received = receiver.wait_for(6 * 60).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(receiver.received().len(), 6 * 60);

    let mut seen: Vec<_> = received
        .iter()
        .map(|one| one.header("x-service-delivery").to_owned())
        .collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 6 * 60);
}

/// A late response of a previous receiver does not affect the endpoint's new one.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_410_of_the_old_receiver_does_not_disable_the_new_one() {
    let app = TestApp::with_receivers().await;
    let (old, new) = (
        WebhookReceiver::start().await,
        WebhookReceiver::start().await,
    );
    old.answer_with(410);
    let answers = old.hold();

    let endpoint = app.endpoint(&old.url, &["*"]).await;
    app.envelope_event().await;
    old.wait_for(1).await;
    let moved = json!({ "url": new.url });
    let path = path_of(&endpoint, "");
    app.as_bearer(Method::PATCH, &app.admin(), &path, moved)
        .await
        .data(200);

    answers.send(true).unwrap();
    app.settled_log(&endpoint).await;
    app.envelope_event().await;
    new.wait_for(1).await;
    app.settled_log(&endpoint).await;
    let shown = app.get_with_bearer(&app.admin(), ENDPOINTS).await.data(200);
    assert_eq!(shown[0]["is_active"], true);
    assert_eq!(shown[0]["failing_since"], Value::Null);
}

/// A node with another master key cannot sign, so it leaves the endpoint to the other nodes.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_cannot_be_signed_is_not_sent() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let endpoint = app.endpoint(&receiver.url, &["*"]).await;
    let secret = app.text_of("select secret from webhook_endpoint").await;
    assert!(
        !secret.contains(endpoint["secret"].as_str().unwrap()),
        "it is kept sealed"
    );

    app.change(
        "update webhook_endpoint set secret = $1",
        "sealed by somebody else",
    )
    .await;
    app.envelope_event().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(receiver.received().is_empty());

    // A new secret solves it, although the old one stays unreadable.
    let path = path_of(&endpoint, "/rotate-secret");
    app.post_with_bearer(&app.admin(), &path, json!({}))
        .await
        .data(200);
    let delivery = receiver.wait_for(1).await.remove(0);
    assert!(delivery.headers.contains_key("x-service-signature"));
    assert!(
        !delivery
            .headers
            .contains_key("x-service-signature-previous")
    );
}
