//! The built-in signing room and its component.

use holdfast::components::room_component;
use holdfast::config::EMBEDDED;
use holdfast::domain::component::Slot;
use serde_json::json;

use crate::support::{TestApp, envelope_body, pdf};

/// Counts the rows of each table of the room.
async fn rows(app: &TestApp) -> (i64, i64, i64) {
    let mut connection = app.store.read().await.unwrap();
    let count = "select (select count(*) from room_template),
        (select count(*) from room_submission), (select count(*) from room_submitter)";
    sqlx::query_as(count)
        .fetch_one(&mut *connection)
        .await
        .unwrap()
}

/// Records of the room commit in the transaction of their template or envelope.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_leaves_no_records_in_the_room_on_sqlite() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&["{{Buyer signature;type=signature;role=Buyer}}"]);
    app.execute(
        "create trigger no_template before insert on template
             begin select raise(abort, 'no template'); end",
    )
    .await;

    let upload = async || {
        let name = [("name", "Contract")];
        let pdf = "application/pdf";
        app.upload("/partner/templates", pdf, &document, &name)
            .await
    };
    let refused = upload().await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert_eq!(rows(&app).await, (0, 0, 0));

    app.execute("drop trigger no_template").await;
    let template = upload().await.data(200);
    assert_eq!(rows(&app).await, (1, 0, 0));

    app.execute(
        "create trigger no_envelope before insert on envelope
             begin select raise(abort, 'no envelope'); end",
    )
    .await;
    let body = envelope_body(&template["template_id"]);
    let refused = app.post("/partner/envelopes", body.clone()).await;
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert_eq!(rows(&app).await, (1, 0, 0));

    app.execute("drop trigger no_envelope").await;
    app.post("/partner/envelopes", body).await.data(201);
    assert_eq!(rows(&app).await, (1, 1, 1));
}

/// The component serves the instance `embedded` and cannot be activated for another one.
#[tokio::test(flavor = "multi_thread")]
async fn the_rooms_component_serves_only_the_room() {
    let app = TestApp::start().await;
    let admin = app.admin();
    let slots = app.get_with_bearer(&admin, "/component-slots").await;
    let slots = slots.data(200);
    let signing = slots
        .as_array()
        .unwrap()
        .iter()
        .find(|slot| slot["slot"] == Slot::Signing.to_string())
        .unwrap();
    let active = &signing["active"];
    assert_eq!(active["name"], "holdfast-signing-embedded");

    // The command stores the built-in components.
    crate::support::operator(app.data.path(), &["component", "list"]);
    let config = json!({ "base_url": "https://sign.example.com", "secrets": { "api_key": "x" } });
    let body = json!({
        "component_id": active["component_id"], "instance": "own", "config": config,
    });
    let path = "/component-slots/provider.signing/activate";
    let refused = app.post_with_bearer(&admin, path, body).await;

    let why = format!(
        "holdfast-signing-embedded {} stands behind {EMBEDDED} and no other instance",
        active["version"].as_str().unwrap()
    );
    assert_eq!(refused.error(422), why);
}

/// Only the built-in component may import the room's interface.
#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_component_cannot_access_the_rooms_records() {
    let app = TestApp::start().await;
    let bytes = room_component().unwrap().bytes();
    let answer = app
        .upload_component(&app.admin(), "own-room", "1.0.0", &bytes)
        .await;
    let details = answer.json()["details"].clone();
    assert_eq!(answer.error(422), "The component is not admitted");
    assert_eq!(details[0]["code"], "import_not_granted");
    assert_eq!(
        details[0]["message"],
        "imports `holdfast:host/room@1.0.0`, which the world `signing-provider` does not grant"
    );
}
