//! Repeated requests (contract, section 2: `Idempotency-Key`).

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::support::{Answer, CONTRACT, TestApp, envelope_body, postgres};

async fn post(app: &TestApp, idempotency_key: &str, path: &str, body: &Value) -> Answer {
    let request = Request::post(format!("/api/v2{path}"))
        .header("x-api-key", &app.key)
        .header("content-type", "application/json")
        .header("idempotency-key", idempotency_key);
    app.send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

fn replayed(answer: &Answer) -> bool {
    answer
        .headers
        .get("idempotent-replayed")
        .is_some_and(|value| value == "true")
}

async fn count(app: &TestApp) -> Value {
    app.get("/partner/envelopes").await.json()["meta"]["total"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_and_body_gives_the_first_answer_and_no_second_envelope() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    let first = post(&app, "deal-17", "/partner/envelopes", &body).await;
    assert!(!replayed(&first));
    let again = post(&app, "deal-17", "/partner/envelopes", &body).await;
    assert!(replayed(&again));
    assert_eq!(again.status, 201);
    assert_eq!(again.bytes, first.bytes);
    assert!(again.headers.contains_key("x-ratelimit-remaining"));
    assert_eq!(count(&app).await, 1);
    let id = first.json()["data"]["envelope_id"].clone();
    let types = app.event_types(id.as_str().unwrap()).await;
    assert_eq!(types, ["envelope.created", "envelope.sent"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_body_or_path_is_refused() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    let created = post(&app, "k", "/partner/envelopes", &body).await.data(201);
    let mut other = body.clone();
    other["external_id"] = "deal-18".into();
    let refused = post(&app, "k", "/partner/envelopes", &other).await;
    assert_eq!(
        refused.error(422),
        "Idempotency-Key was used for another request"
    );
    let void = format!(
        "/partner/envelopes/{}/void",
        created["envelope_id"].as_str().unwrap()
    );
    assert_eq!(post(&app, "k", &void, &json!({})).await.status, 422);
    assert_eq!(count(&app).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_its_caller() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    post(&app, "k", "/partner/envelopes", &body).await.data(201);
    for key in [
        app.other_organization().await,
        app.key_with(holdfast::domain::organization::Scope::ALL)
            .await,
    ] {
        let request = Request::post("/api/v2/partner/envelopes")
            .header("x-api-key", &key)
            .header("content-type", "application/json")
            .header("idempotency-key", "k");
        let answer = app
            .send(request.body(Body::from(body.to_string())).unwrap())
            .await;
        assert!(!replayed(&answer));
        assert_eq!(answer.status, 201);
    }
}

/// A refusal is an answer too; one that is our fault or the provider's is not
/// kept, because trying again may help.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_replayed() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let void = format!(
        "/partner/envelopes/{}/void",
        envelope["envelope_id"].as_str().unwrap()
    );
    let voided = post(&app, "first", &void, &json!({})).await;
    assert_eq!(voided.status, 200);
    let refused = post(&app, "second", &void, &json!({})).await;
    assert_eq!(refused.status, 422);
    let again = post(&app, "second", &void, &json!({})).await;
    assert!(replayed(&again));
    assert_eq!(again.status, 422);
    assert_eq!(again.error(422), "Cannot void envelope with status: voided");
    // The first answer is what it was.
    let first = post(&app, "first", &void, &json!({})).await;
    assert!(replayed(&first));
    assert_eq!(first.bytes, voided.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_known_by_its_bytes() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let path = format!(
        "/partner/envelopes/{}/upload",
        envelope["envelope_id"].as_str().unwrap()
    );
    let upload = |boundary: &'static str, file: &'static [u8]| {
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
        );
        let tail = format!("\r\n--{boundary}--\r\n");
        let body = [head.as_bytes(), file, tail.as_bytes()].concat();
        Request::post(format!("/api/v2{path}"))
            .header("x-api-key", &app.key)
            .header("idempotency-key", "upload")
            .header(
                "content-type",
                format!("multipart/form-data; boundary={boundary}"),
            )
            .body(Body::from(body))
            .unwrap()
    };
    assert_eq!(app.send(upload("one", CONTRACT)).await.status, 201);
    // Another client splits the same form differently.
    assert!(replayed(&app.send(upload("another", CONTRACT)).await));
    assert_eq!(app.send(upload("one", b"%PDF-1.4 other")).await.status, 422);
}

/// Of many at once one is done; the others are told to wait or get its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_repeats_create_one_envelope() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    let answers =
        futures::future::join_all((0..8).map(|_| post(&app, "k", "/partner/envelopes", &body)))
            .await;
    assert_eq!(count(&app).await, 1);
    for answer in &answers {
        assert!(
            answer.status == 201 || answer.status == 409,
            "{}",
            answer.text()
        );
    }
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.status == 201 && !replayed(answer))
            .count(),
        1
    );
    let after = post(&app, "k", "/partner/envelopes", &body).await;
    assert!(replayed(&after));
}

/// The answer is in the transaction of the change: a claim that was left behind
/// by a crash is taken over when its lease ends, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_left_behind_blocks_until_its_lease_ends() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    let created = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(created.status, 201);
    app.leave_claims_behind("2999-01-01T00:00:00.000Z").await;
    let blocked = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(
        blocked.error(409),
        "A request with this Idempotency-Key is still running"
    );
    app.leave_claims_behind("2020-01-01T00:00:00.000Z").await;
    let taken_over = post(&app, "k", "/partner/envelopes", &body).await;
    assert!(!replayed(&taken_over));
    assert_eq!(taken_over.status, 201);
    assert!(replayed(
        &post(&app, "k", "/partner/envelopes", &body).await
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_a_400() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    for key in [" ", &"x".repeat(256)] {
        let answer = post(&app, key, "/partner/envelopes", &body).await;
        assert_eq!(answer.status, 400, "{key:?}");
    }
    assert_eq!(count(&app).await, 0);
}

/// A request that outlives its lease changes nothing: the one that took over does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_whose_claim_was_taken_over_changes_nothing() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    // The first is held up at the database, after its claim.
    let held = app.store.begin().await.unwrap();
    let first = post(&app, "k", "/partner/envelopes", &body);
    let takeover = async {
        drop(held);
        while app.count("idempotency").await == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        app.change(
            "update idempotency set lease_until = $1",
            "2020-01-01T00:00:00.000Z",
        )
        .await;
        post(&app, "k", "/partner/envelopes", &body).await
    };
    let (first, second) = tokio::join!(first, takeover);
    assert_eq!(count(&app).await, 1, "{} {}", first.text(), second.text());
    let created = [&first, &second]
        .into_iter()
        .filter(|answer| answer.status == 201 && !replayed(answer))
        .count();
    assert_eq!(created, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_provider_gives_the_key_back() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    app.change("update template set provider_instance = $1", "gone")
        .await;
    let failed = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(failed.status, 503);
    assert_eq!(app.count("idempotency").await, 0);
    app.change("update template set provider_instance = $1", "embedded")
        .await;
    let answer = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(answer.status, 201);
    assert!(!replayed(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_day_the_key_is_free_again() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    assert_eq!(
        post(&app, "k", "/partner/envelopes", &body).await.status,
        201
    );
    app.change(
        "update idempotency set created_at = $1",
        "2020-01-01T00:00:00.000Z",
    )
    .await;
    let answer = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(answer.status, 201);
    assert!(!replayed(&answer));
    assert_eq!(count(&app).await, 2);
}

/// Some answers carry links that are credentials.
#[tokio::test(flavor = "multi_thread")]
async fn kept_answers_are_sealed() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    post(&app, "k", "/partner/envelopes", &body).await.data(201);
    let mut connection = app.store.read().await.unwrap();
    let kept: String = sqlx::query_scalar("select body from idempotency")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert!(!kept.contains("sign"), "{kept}");
}

/// A database that undoes a change because of another asks for it once more; so do we.
#[tokio::test(flavor = "multi_thread")]
async fn what_met_another_change_may_be_tried_again_with_its_key_on_postgresql() {
    let url = postgres::new_database().await;
    let app = TestApp::with(
        |config| config.database_url = Some(url),
        OrgSettings::default(),
    )
    .await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);
    app.execute(
        "create function another_was_first() returns trigger language plpgsql as
         $$ begin raise exception 'restart transaction' using errcode = '40001'; end $$",
    )
    .await;
    app.execute(
        "create trigger another_was_first before insert on envelope
         for each row execute function another_was_first()",
    )
    .await;
    let refused = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(
        refused.error(503),
        "The change met another; please try again"
    );
    app.execute("drop trigger another_was_first on envelope")
        .await;
    let created = post(&app, "k", "/partner/envelopes", &body).await;
    assert!(!replayed(&created));
    created.data(201);
    assert_eq!(count(&app).await, 1);
}
