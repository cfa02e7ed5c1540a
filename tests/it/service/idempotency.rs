//! Repeated requests (contract, section 2: `Idempotency-Key`).

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, postgres};

/// Header of refusals that are about the key.
const EXPLAINED: &str = r#"</docs/errors#idempotency-keys>; rel="describedby"; type="text/html""#;

async fn post(app: &TestApp, idempotency_key: &str, path: &str, body: &Value) -> TestResponse {
    let request = Request::post(format!("/api/v2{path}"))
        .header("x-api-key", &app.key)
        .header("content-type", "application/json")
        .header("idempotency-key", idempotency_key);
    app.send(request.body(Body::from(body.to_string())).unwrap())
        .await
}

fn replayed(answer: &TestResponse) -> bool {
    answer
        .headers
        .get("idempotent-replayed")
        .is_some_and(|value| value == "true")
}

async fn count(app: &TestApp) -> Value {
    app.get("/partner/envelopes").await.json()["meta"]["total"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_and_body_replays_the_first_response() {
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
    assert_eq!(refused.headers["link"], EXPLAINED);
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
async fn an_idempotency_key_belongs_to_its_caller() {
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

/// Refusals are stored and replayed. Failures of the service or the provider are not, because a
/// retry may succeed.
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

    // The first response is unchanged.
    let first = post(&app, "first", &void, &json!({})).await;
    assert!(replayed(&first));
    assert_eq!(first.bytes, voided.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_upload_is_recognized_by_its_bytes() {
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

    // Another client encodes the same form differently.
    assert!(replayed(&app.send(upload("another", CONTRACT)).await));
    assert_eq!(app.send(upload("one", b"%PDF-1.4 other")).await.status, 422);
}

/// Of many concurrent requests one is executed; the others get its response or are asked to wait.
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

/// The response commits in the transaction of the change, so a claim that a crash left behind can
/// be taken over when its lease ends, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_claim_blocks_until_its_lease_ends() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    let created = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(created.status, 201);

    app.abandon_idempotency_claims("2999-01-01T00:00:00.000Z")
        .await;
    let blocked = post(&app, "k", "/partner/envelopes", &body).await;
    assert_eq!(blocked.headers["retry-after"], "1");
    assert_eq!(blocked.headers["link"], EXPLAINED);
    assert_eq!(
        blocked.error(409),
        "A request with this Idempotency-Key is still running"
    );

    app.abandon_idempotency_claims("2020-01-01T00:00:00.000Z")
        .await;
    let taken_over = post(&app, "k", "/partner/envelopes", &body).await;
    assert!(!replayed(&taken_over));
    assert_eq!(taken_over.status, 201);
    assert!(replayed(
        &post(&app, "k", "/partner/envelopes", &body).await
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_idempotency_key_is_a_400() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    for key in [" ", "two words", "\"open", &"x".repeat(256)] {
        let answer = post(&app, key, "/partner/envelopes", &body).await;
        assert_eq!(answer.status, 400, "{key:?}");
        assert_eq!(answer.headers["link"], EXPLAINED);
    }

    let twice = Request::post("/api/v2/partner/envelopes")
        .header("x-api-key", &app.key)
        .header("content-type", "application/json")
        .header("idempotency-key", "one")
        .header("idempotency-key", "two");
    let twice = app
        .send(twice.body(Body::from(body.to_string())).unwrap())
        .await;
    assert_eq!(twice.error(400), "Idempotency-Key must be sent once");
    assert_eq!(count(&app).await, 0);
}

/// A client of the draft standard sends the key as a structured string, one of before as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_quotation_marks_is_the_same_key() {
    let app = TestApp::start().await;
    let body = envelope_body(&Value::Null);
    let first = post(&app, "\"deal-17\"", "/partner/envelopes", &body).await;
    assert_eq!(first.status, 201);

    let again = post(&app, "deal-17", "/partner/envelopes", &body).await;
    assert!(replayed(&again));
    assert_eq!(again.bytes, first.bytes);
    assert_eq!(count(&app).await, 1);
}

/// A request that outlives its lease changes nothing; the request that took over does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_with_a_lost_claim_changes_nothing() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);

    // The open transaction blocks the first request after its claim.
    let held = app.store.begin().await.unwrap();
    let first = post(&app, "k", "/partner/envelopes", &body);
    let takeover = async {
        drop(held);
        // Wait until the first request has claimed the key, then end its lease.
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
async fn a_provider_failure_releases_the_idempotency_key() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let body = envelope_body(&template["template_id"]);

    // An unknown instance makes the provider fail before it is called.
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
async fn an_idempotency_key_expires_after_a_day() {
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

/// Some responses contain links that are credentials, so stored responses are encrypted.
#[tokio::test(flavor = "multi_thread")]
async fn stored_responses_are_encrypted() {
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

/// On a serialization failure the database asks for a retry, and the API passes that on.
#[tokio::test(flavor = "multi_thread")]
async fn a_serialization_failure_can_be_retried_with_its_key_on_postgresql() {
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
