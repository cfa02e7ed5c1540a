//! Access ends when it ends: each kind of credential by each reason, at the next request or tick of a stream.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::http::console::{Session, asked};
use crate::support::{TestApp, operator_output};

/// Longest time until a stream has ended.
const STREAM: Duration = Duration::from_secs(5);

/// Invites a user, who is known by the address, and returns their id and a bearer token.
async fn known_user(app: &TestApp, email: &str, role: &str) -> (String, String) {
    let body = json!({ "email": email, "role": role });
    let user = app.post_with_bearer(app.web_admin(), "/users", body).await;
    let id = user.data(201)["user_id"].as_str().unwrap().to_owned();
    (id, app.person(email, role))
}

async fn end_user(app: &TestApp, id: &str) {
    let path = format!("/users/{id}/end");
    app.post_with_bearer(app.web_admin(), &path, json!({}))
        .await
        .data(200);
}

fn revoke(app: &TestApp, token: &str) {
    let revoked = operator_output(app.data.path(), &["token", "revoke", token]);
    assert!(revoked.status.success());
}

/// Begins a session of the field builder and returns its token.
async fn builder_token(app: &TestApp, bearer: &str) -> String {
    let body = json!({ "template_name": "Notice" });
    let session = app.post_with_bearer(bearer, "/esign/builder-session", body);
    let session = session.await.data(201);
    let url = session["builder_url"].as_str().unwrap();
    url.split_once("#token=").unwrap().1.to_owned()
}

/// Asks for the template of a builder token and returns the status.
async fn builder(app: &TestApp, token: &str) -> u16 {
    let request = Request::get("/builder/template")
        .header("authorization", format!("Bearer {token}"))
        .body(Body::empty())
        .unwrap();
    app.send(request).await.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bearer_token_ends_with_its_revocation_and_with_the_access_of_its_user() {
    let app = TestApp::start().await;
    let (id, first) = known_user(&app, "ada@oak.example", "sender").await;
    let second = app.person("ada@oak.example", "sender");
    let status = async |token: &str| app.get_with_bearer(token, "/customers").await.status;
    assert_eq!(status(&first).await, 200);

    revoke(&app, &first);
    assert_eq!(status(&first).await, 401);
    assert_eq!(status(&second).await, 200);

    end_user(&app, &id).await;
    assert_eq!(status(&second).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_builder_session_ends_with_the_access_that_began_it() {
    let app = TestApp::start().await;
    let (id, bearer) = known_user(&app, "ada@oak.example", "sender").await;
    let token = builder_token(&app, &bearer).await;
    assert_eq!(builder(&app, &token).await, 200);

    revoke(&app, &bearer);
    assert_eq!(builder(&app, &token).await, 401);

    let again = app.person("ada@oak.example", "sender");
    let token = builder_token(&app, &again).await;
    assert_eq!(builder(&app, &token).await, 200);

    end_user(&app, &id).await;
    assert_eq!(builder(&app, &token).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_widget_ends_with_the_key_that_issued_its_token() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let body = json!({
        "envelope_id": envelope["envelope_id"], "user_email": "jordan.lee@example.com", "widget_type": "sign",
    });
    let issued = app.post("/embed/token", body).await.data(200);
    let token = issued["token"].as_str().unwrap();
    let status = async || {
        let path = "/embed/payment-status";
        app.post_with_bearer(token, path, json!({})).await.status
    };
    assert_eq!(status().await, 200);

    let keys = app
        .get_with_bearer(app.web_admin(), "/api-keys")
        .await
        .data(200);
    for key in keys.as_array().unwrap() {
        let path = format!("/api-keys/{}/deactivate", key["key_id"].as_str().unwrap());
        app.post_with_bearer(app.web_admin(), &path, json!({}))
            .await
            .data(200);
    }

    assert_eq!(status().await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_where_the_issuer_becomes_required() {
    let app = TestApp::start().await;
    let session = Session::of(&app, "ada@oak.example", "owner").await;
    let page = async || {
        let page = session.get(&app, "/console/sessions").await;
        page.status.as_u16()
    };
    assert_eq!(page().await, 200);

    app.set_organization(&[
        r#"single_sign_on={"issuer":"https://login.oak.example","client_id":"holdfast","default_role":"sender","required":true}"#,
    ]);
    assert_eq!(page().await, 303, "to the sign-in");
}

/// Reads a stream until it ends, and returns whether it did in time.
async fn ends_in_time(body: Body) -> bool {
    let mut body = body;
    let rest = async move { while let Some(Ok(_)) = body.frame().await {} };
    tokio::time::timeout(STREAM, rest).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_the_console_ends_with_the_session_the_role_and_the_user() {
    let app = TestApp::start().await;
    let open = async |session: &Session| {
        let request = Request::get("/console/live/users")
            .header("accept", "text/html")
            .header("cookie", &session.cookie)
            .body(Body::empty())
            .unwrap();
        let answer = app.begin(request).await;
        assert_eq!(answer.status(), 200);

        answer.into_body()
    };

    let ada = Session::of(&app, "ada@oak.example", "admin").await;
    let stream = open(&ada).await;
    let left = ada.post(&app, "/console/sign-out", "").await;
    assert_eq!(left.status, 303);
    assert!(ends_in_time(stream).await, "after the sign-out");

    let ben = Session::of(&app, "ben@oak.example", "admin").await;
    let stream = open(&ben).await;
    let path = format!("/users/{}", ben.user()["user_id"].as_str().unwrap());
    app.as_bearer(
        Method::PATCH,
        app.web_admin(),
        &path,
        json!({ "role": "sender" }),
    )
    .await
    .data(200);
    assert!(ends_in_time(stream).await, "with another role");

    let cleo = Session::of(&app, "cleo@oak.example", "admin").await;
    let stream = open(&cleo).await;
    end_user(&app, cleo.user()["user_id"].as_str().unwrap()).await;
    assert!(ends_in_time(stream).await, "with the access");
    assert_eq!(
        asked(&app, Method::GET, "/console", &cleo.cookie, "")
            .await
            .status,
        303
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_progress_of_a_batch_ends_with_the_token() {
    let app = TestApp::start().await;
    let (_, bearer) = known_user(&app, "ada@oak.example", "sender").await;
    let batch = json!({ "name": "Notice", "document_source": "new" });
    let batch: Value = app.web(Method::POST, "/bulk-send", batch).await.data(201);
    let path = format!(
        "/api/v2/bulk-send/{}/events",
        batch["batch_id"].as_str().unwrap()
    );
    let request = Request::get(path)
        .header("authorization", format!("Bearer {bearer}"))
        .header("x-org-id", app.org.as_str())
        .body(Body::empty())
        .unwrap();
    let answer = app.begin(request).await;
    assert_eq!(answer.status(), 200);

    revoke(&app, &bearer);
    assert!(ends_in_time(answer.into_body()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_events_ends_with_the_key() {
    let app = TestApp::start().await;
    let waiting = app.get("/partner/events?wait=20");
    let deactivated = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        app.execute("update api_key set active = 0").await;
    };
    let (answer, ()) = tokio::join!(waiting, deactivated);
    assert_eq!(answer.status, 401, "{}", answer.text());
}
