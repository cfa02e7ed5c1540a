//! Sending of drafts at a later time.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use crate::http::console::Session;
use crate::support::{TestApp, TestResponse, envelope_body, operator, pdf};

const DAY: Duration = Duration::from_secs(86_400);
/// Less than the time for which a sending that failed is tried again.
const HOUR: Duration = Duration::from_secs(3_600);

/// Returns a time in so many days, as the API takes it.
fn in_days(days: u32) -> String {
    let at = holdfast::domain::clock::Clock::default().now() + DAY * days;
    at.to_string()
}

async fn read(app: &TestApp, id: &str) -> Value {
    app.get(&format!("/partner/envelopes/{id}")).await.data(200)
}

/// Creates an envelope from a template that is sent in two days.
async fn planned(app: &TestApp) -> String {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["send_at"] = in_days(2).into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    made["envelope_id"].as_str().unwrap().to_owned()
}

async fn plan(app: &TestApp, id: &str, send_at: Value) -> TestResponse {
    let path = format!("/partner/envelopes/{id}/send-at");
    app.put(&path, json!({ "send_at": send_at })).await
}

/// Waits until an envelope is as wanted.
async fn until(app: &TestApp, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let envelope = read(app, id).await;
        if wanted(&envelope) {
            return envelope;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{}", read(app, id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_sent_at_its_planned_time() {
    let app = TestApp::without_auto_vault().await;
    let id = planned(&app).await;
    let draft = read(&app, &id).await;
    assert_eq!(draft["status"], "pending");
    assert!(draft["send_at"].is_string(), "{draft}");
    let people = app
        .get(&format!("/partner/envelopes/{id}/signers"))
        .await
        .data(200);
    assert_eq!(people["signers"].as_array().unwrap().len(), 1);

    let early = app.as_of(DAY).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(read(&early, &id).await["status"], "pending");

    let later = app.as_of(DAY * 2 + HOUR).await;
    let sent = until(&later, &id, |envelope| envelope["status"] == "sent").await;
    assert!(sent["send_at"].is_null(), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_moved_and_ended() {
    let app = TestApp::without_auto_vault().await;
    let [moved, ended] = [planned(&app).await, planned(&app).await];
    let to = in_days(6);
    let answer = plan(&app, &moved, to.clone().into()).await.data(200);
    assert_eq!(answer["send_at"], to);
    let answer = plan(&app, &ended, Value::Null).await.data(200);
    assert!(answer["send_at"].is_null(), "{answer}");

    let between = app.as_of(DAY * 4).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for id in [&moved, &ended] {
        assert_eq!(read(&between, id).await["status"], "pending");
    }

    let later = app.as_of(DAY * 6 + HOUR).await;
    until(&later, &moved, |envelope| envelope["status"] == "sent").await;
    assert_eq!(read(&later, &ended).await["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_refused_sending_is_on_the_envelope() {
    let app = TestApp::without_auto_vault().await;
    // A draft without a document can be planned, because the document may come later.
    let at = in_days(2);
    let body = json!({
        "envelope_name": "Lease", "customer_email": "jordan.lee@example.com",
        "customer_name": "Jordan Lee", "send_at": at,
    });
    let made = app.post("/partner/envelopes", body).await.data(201);
    let id = made["envelope_id"].as_str().unwrap();

    let later = app.as_of(DAY * 2 + HOUR).await;
    let refused = until(&later, id, |envelope| {
        envelope["sending_failure"].is_object()
    })
    .await;
    assert_eq!(refused["status"], "pending");
    assert_eq!(refused["sending_failure"]["planned_for"], at);
    assert!(refused["send_at"].is_null(), "{refused}");

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let page = ada
        .get(&app, &format!("/console/envelopes/{id}"))
        .await
        .text();
    assert!(
        page.contains("The document was not sent at its time:"),
        "{page}"
    );
}

/// A program made the draft, so only the planner has an address.
#[tokio::test(flavor = "multi_thread")]
async fn who_planned_a_sending_that_fails_gets_a_mail() {
    let app = TestApp::without_auto_vault().await;
    let body = json!({
        "envelope_name": "Lease", "customer_email": "jordan.lee@example.com",
        "customer_name": "Jordan Lee",
    });
    let made = app.post("/partner/envelopes", body).await.data(201);
    let id = made["envelope_id"].as_str().unwrap();
    let ada = app.person("ada@oak.example", "sender");
    let path = format!("/envelopes/{id}/send-at");
    let at = json!({ "send_at": in_days(2) });
    app.as_bearer(Method::PUT, &ada, &path, at).await.data(200);

    let later = app.as_of(DAY * 2 + HOUR).await;
    let says = |mail: &String| {
        let mail = mail.replace("=\r\n", "");
        mail.contains("To: ada@oak.example")
            && mail.contains("Subject: Not sent: Lease")
            && mail.contains("Open the draft, correct it, and send it or plan it again.")
    };
    later.wait_for_mail(says).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_was_changed_since_is_not_sent() {
    let app = TestApp::without_auto_vault().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["send_at"] = in_days(2).into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    let id = made["envelope_id"].as_str().unwrap();

    let template = template["template_id"].as_str().unwrap();
    let path = format!("/partner/templates/{template}/fields");
    let area = json!({ "page": 1, "x": 0.1, "y": 0.1, "w": 0.2, "h": 0.03 });
    let more = json!({ "fields": [{
        "name": "City", "type": "text", "role": "Buyer",
        "placement": { "mode": "absolute", "areas": [area] },
    }] });
    app.post(&path, more).await.data(200);

    let later = app.as_of(DAY * 2 + HOUR).await;
    let refused = |envelope: &Value| envelope["sending_failure"].is_object();
    let envelope = until(&later, id, refused).await;
    assert_eq!(
        envelope["sending_failure"]["reason"],
        "The template was changed after the sending was planned"
    );

    // Planned anew, it is sent as it is now.
    plan(&app, id, in_days(4).into()).await.data(200);
    let later = app.as_of(DAY * 4 + HOUR).await;
    until(&later, id, |envelope| envelope["status"] == "sent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_ended_sends_nothing() {
    let app = TestApp::without_auto_vault().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["send_at"] = in_days(2).into();
    let org = app.org.as_str();
    let scopes = "envelopes:read,envelopes:write";
    let key = ["key", "create", "--org", org, "--scopes", scopes];
    let key = operator(app.data.path(), &key);
    let text = key["api_key"].as_str().unwrap();
    let made = app.post_as(text, "/partner/envelopes", body).await;
    let id = made.data(201)["envelope_id"].as_str().unwrap().to_owned();
    let ended = ["key", "deactivate", key["key_id"].as_str().unwrap()];
    operator(app.data.path(), &ended);

    let later = app.as_of(DAY * 2 + HOUR).await;
    let refused = |envelope: &Value| envelope["sending_failure"].is_object();
    let envelope = until(&later, &id, refused).await;
    assert_eq!(
        envelope["sending_failure"]["reason"],
        "Whoever planned the sending may not send any more"
    );
    assert_eq!(envelope["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_no_plan() {
    let app = TestApp::without_auto_vault().await;
    let id = planned(&app).await;
    let path = format!("/partner/envelopes/{id}/copy");
    let copy = app.post(&path, json!({})).await.data(201);
    assert!(copy["send_at"].is_null(), "{copy}");
    assert!(read(&app, &id).await["send_at"].is_string());

    let copied = copy["envelope_id"].as_str().unwrap();
    let later = app.as_of(DAY * 2 + HOUR).await;
    until(&later, &id, |envelope| envelope["status"] == "sent").await;
    assert_eq!(read(&later, copied).await["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_of_range_is_refused() {
    let app = TestApp::without_auto_vault().await;
    let template = app.contract_template().await;
    let id = planned(&app).await;
    for wrong in [json!("2020-01-01T00:00:00Z"), json!(in_days(400))] {
        let mut body = envelope_body(&template["template_id"]);
        body["send_at"] = wrong.clone();
        let refused = app.post("/partner/envelopes", body).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], json!(["send_at"]));
        assert_eq!(plan(&app, &id, wrong).await.status, 422);
    }
    let text = plan(&app, &id, json!("tomorrow")).await;
    assert!(text.status.is_client_error(), "{}", text.text());

    let sent = envelope_body(&template["template_id"]);
    let sent = app.post("/partner/envelopes", sent).await.data(201);
    let sent = sent["envelope_id"].as_str().unwrap();
    assert_eq!(plan(&app, sent, in_days(1).into()).await.status, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_prepared_and_sent_later() {
    let app = TestApp::without_auto_vault().await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let tagged = pdf::with_lines(&["{{Sign;type=signature;role=Buyer}}"]);
    let taken = ada.upload(&app, "/console/drafts", &tagged, &[]).await;
    let page = taken.headers["location"].to_str().unwrap().to_owned();
    let draft = page.strip_suffix("/people").unwrap();
    let id = draft.rsplit('/').next().unwrap();
    let people = "name-0=Jordan+Lee&email-0=jordan.lee%40example.com&role-0=Buyer";
    assert_eq!(ada.post(&app, &page, people).await.status, 303);

    let review = format!("{draft}/review");
    let wrong = ada.post(&app, &review, "send_at=2020-01-01T09:00").await;
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert!(
        wrong.text().contains("id=\"send_at-problem\""),
        "{}",
        wrong.text()
    );

    let at = in_days(2);
    let form = format!("send_at={}", &at[..16]);
    let kept = ada.post(&app, &review, &form).await;
    assert_eq!(
        kept.headers["location"],
        format!("/console/envelopes/{id}?done=planned")
    );
    let list = ada.get(&app, "/console/envelopes").await.text();
    assert!(list.contains("Will be sent"), "{list}");

    let later = app.as_of(DAY * 2 + HOUR).await;
    until(&later, id, |envelope| envelope["status"] == "sent").await;
    let again = json!({ "send_at": in_days(1) });
    let again = app
        .web(Method::PUT, &format!("/envelopes/{id}/send-at"), again)
        .await;
    assert_eq!(again.status, 409, "{}", again.text());
}
