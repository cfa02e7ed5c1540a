//! Limits on the uploads and activations of one organization.

use std::time::Duration;

use axum::http::Method;
use holdfast::config::{Config, UploadPolicy};
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::json;
use sqlx::Row as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::service::components::registry::variant;
use crate::support::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn uploads_can_be_switched_off() {
    let off = |config: &mut Config| config.components.uploads = Some(UploadPolicy::Off);
    let app = TestApp::with(off, OrgSettings::default()).await;
    let bytes = variant(Slot::Compliance, "off");
    let refused = app
        .upload_component(&app.admin(), "rules", "1.0.0", &bytes)
        .await;
    assert_eq!(refused.error(403), "Uploads of components are switched off");
}

#[tokio::test(flavor = "multi_thread")]
async fn unsigned_uploads_are_refused_where_signatures_are_required() {
    let signed = |config: &mut Config| config.components.uploads = Some(UploadPolicy::Signed);
    let app = TestApp::with(signed, OrgSettings::default()).await;
    let bytes = variant(Slot::Compliance, "unsigned");
    let refused = app
        .upload_component(&app.admin(), "rules", "1.0.0", &bytes)
        .await;
    assert_eq!(refused.json()["details"][0]["code"], "signature");
    assert_eq!(refused.error(422), "The component is not admitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn components_and_bytes_of_an_organization_are_limited() {
    let bytes = variant(Slot::Compliance, "one of them");
    let size = bytes.len() as u64;
    let few = |config: &mut Config| {
        config.components.quota_versions = 2;
        config.components.quota_bytes = size * 3 / 2;
    };
    let app = TestApp::with(few, OrgSettings::default()).await;
    let admin = app.admin();

    let upload = async |token: &str, version: &str, note: &str| {
        let bytes = variant(Slot::Compliance, note);
        app.upload_component(token, "rules", version, &bytes).await
    };
    upload(&admin, "1.0.0", "one of them").await.data(201);
    let large = upload(&admin, "1.0.1", "another").await;
    let text = large.error(409);
    assert!(text.contains("components would have"), "{text}");

    upload(&admin, "1.0.0", "one of them").await.data(201);
    upload(&app.other_admin(), "1.0.0", "another")
        .await
        .data(201);

    let none = |config: &mut Config| config.components.quota_versions = 1;
    let app = TestApp::with(none, OrgSettings::default()).await;
    let admin = app.admin();
    for (version, status) in [("1.0.0", 201), ("1.0.1", 409)] {
        let bytes = variant(Slot::Compliance, version);
        let answer = app.upload_component(&admin, "rules", version, &bytes).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compilation_time_of_an_organization_is_limited_per_hour() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let upload = async |app: &TestApp, note: &str| {
        let bytes = variant(Slot::Compliance, note);
        app.upload_component(&admin, note, "1.0.0", &bytes).await
    };
    upload(&app, "first").await.data(201);

    let mut connection = app.store.read().await.unwrap();
    let noted = sqlx::query("select millis from component_compile");
    let noted = noted.fetch_all(&mut *connection).await.unwrap();
    assert_eq!(noted.len(), 1);
    assert!(noted[0].get::<i64, _>("millis") > 0);

    drop(connection);

    let none = |config: &mut Config| config.components.quota_compile_minutes = 0;
    let strict = app.another_node(none).await;
    let refused = upload(&strict, "second").await;
    assert_eq!(refused.headers["retry-after"], "300");
    assert_eq!(
        refused.error(429),
        "The organization's components may be compiled for 0 minutes an hour"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_an_organization_are_limited_per_minute() {
    let limited = |config: &mut Config| config.rate_limits.component_uploads = 1;
    let app = TestApp::with(limited, OrgSettings::default()).await;
    let (_, other) = app.other_tenant().await;
    let bytes = variant(Slot::Compliance, "limited");
    let upload = async |admin: &str| app.upload_component(admin, "rules", "1.0.0", &bytes).await;
    upload(&app.admin()).await.data(201);

    // Uploads of known bytes count too, and the limit is per organization and not per token.
    let refused = upload(&app.admin()).await;
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(refused.error(429), "Rate limit exceeded");

    upload(&other).await.data(201);
}

/// The limit on concurrent uploads is checked before the body is read.
#[tokio::test(flavor = "multi_thread")]
async fn the_ninth_concurrent_upload_is_refused_before_its_body() {
    let app = TestApp::on_a_socket_over(|_| ()).await;
    let address = app.url().replace("http://", "");
    let head = format!(
        "POST /api/v2/components HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: multipart/form-data; boundary=x\r\ncontent-length: 9000000\r\n\r\n",
        app.admin()
    );

    let mut open = Vec::new();
    for _ in 0..8 {
        let mut upload = TcpStream::connect(&address).await.unwrap();
        upload.write_all(head.as_bytes()).await.unwrap();
        upload.write_all(b"--x\r\n").await.unwrap();
        open.push(upload);
    }

    // The server may not have seen all eight yet, so a ninth that is accepted stays open too.
    let mut answer = None;
    while answer.is_none() && open.len() < 20 {
        let mut upload = TcpStream::connect(&address).await.unwrap();
        upload.write_all(head.as_bytes()).await.unwrap();
        let mut text = vec![0; 4096];
        let read = upload.read(&mut text);
        let read = tokio::time::timeout(Duration::from_millis(500), read).await;
        answer = read
            .ok()
            .map(|length| String::from_utf8_lossy(&text[..length.unwrap()]).into_owned());

        open.push(upload);
    }

    let answer = answer.expect("an answer before the body");
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    assert!(answer.contains("Too many uploads of this organization wait"));
}

/// Nodes read the activations that are in effect or can be rolled back to, not the whole history.
#[tokio::test(flavor = "multi_thread")]
async fn activations_beyond_rollback_are_no_longer_read() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let mut components = Vec::new();
    for name in ["oak", "elm"] {
        let bytes = variant(Slot::Compliance, name);
        let component = app.upload_component(&officer, name, "1.0.0", &bytes);
        components.push(component.await.data(201)["component_id"].clone());
    }

    let path = "/component-slots/rules.compliance";
    for round in 0..14 {
        let body = json!({ "component_id": components[round % 2] });
        let path = format!("{path}/activate");
        app.post_with_bearer(&officer, &path, body).await.data(201);
    }

    let mut connection = app.store.read().await.unwrap();
    let read = sqlx::query(
        "select count(*) as live from component_activation
         where rolled_back_at is null and superseded_at is null",
    );
    let read = read.fetch_one(&mut *connection).await.unwrap();
    assert_eq!(read.get::<i64, _>("live"), 10);

    drop(connection);
    for left in (0..10).rev() {
        let path = format!("{path}/rollback");
        let back = app
            .as_bearer(Method::POST, &officer, &path, json!({}))
            .await;
        assert_eq!(back.status, 200, "{left} left: {}", back.text());
    }

    let slots = app
        .get_with_bearer(&officer, "/component-slots")
        .await
        .data(200);
    assert_eq!(slots[0]["history"].as_array().unwrap().len(), 14);
    assert_eq!(slots[0]["active"]["name"], "holdfast-compliance");
}

/// Uploads wait on disk, with a limit for each organization.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_uploads_of_an_organization_are_limited() {
    let slow = |config: &mut Config| {
        crate::components::isolation::stuck_compiler(config);
        config.components.compile_limit = Duration::from_secs(2);
    };
    let app = TestApp::with(slow, OrgSettings::default()).await;
    let admin = app.admin();
    let uploads = (0..12).map(|number| {
        let (app, admin) = (&app, &admin);
        async move {
            let bytes = variant(Slot::Compliance, &format!("number {number}"));
            let name = format!("rules-{number}");
            app.upload_component(admin, &name, "1.0.0", &bytes)
                .await
                .status
                .as_u16()
        }
    });

    let mut answers = futures::future::join_all(uploads).await;
    answers.sort();
    assert_eq!(
        answers[..8],
        [422; 8],
        "compiling takes too long: {answers:?}"
    );
    assert_eq!(answers[8..], [429; 4], "no place is free: {answers:?}");
}
