//! Replacing the keys of an installation: data that the old keys signed or sealed stays valid.

use std::path::Path;

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, operator, operator_output};

/// Restarts the installation with its current keys.
async fn restarted(app: &TestApp, data: &Path) -> TestApp {
    app.stop_working();
    // The shared native code cache works only with the tests' common master key.
    let shared = data.join("native-code");
    if shared.is_symlink() {
        std::fs::remove_file(shared).unwrap();
    }
    app.another_node(|config| config.data_dir = data.to_owned())
        .await
}

fn refusal(data: &Path, arguments: &[&str]) -> String {
    let output = operator_output(data, arguments);
    assert!(!output.status.success(), "{arguments:?} should fail");
    String::from_utf8(output.stderr).unwrap()
}

async fn ask(app: &TestApp, token: &str) -> TestResponse {
    app.get_with_bearer(token, "/webhooks/endpoints").await
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_the_previous_master_key_stays_readable_after_a_rotation() {
    let app = TestApp::start().await;
    let data = app.data.path();
    let token = app.admin();
    let endpoint = json!({ "url": "https://receiver.example/hook", "events": ["*"] });
    let made = app.web(Method::POST, "/webhooks/endpoints", endpoint).await;
    made.data(201);

    assert_eq!(
        operator(data, &["keys", "rotate"]),
        json!({ "rotated": "master", "damaged_keys": [] })
    );

    let rotated = restarted(&app, data).await;
    ask(&rotated, &token).await.data(200);
    ask(&rotated, &rotated.admin()).await.data(200);

    let early = refusal(data, &["keys", "rotate"]);
    assert!(
        early.contains("2 secrets are sealed with the previous"),
        "{early}"
    );
    assert_eq!(
        operator(data, &["keys", "reseal"]),
        json!({ "resealed": 2, "damaged_keys": [] })
    );
    assert_eq!(
        operator(data, &["keys", "reseal"]),
        json!({ "resealed": 0, "damaged_keys": [] })
    );

    operator(data, &["keys", "rotate"]);
    let again = restarted(&rotated, data).await;
    let forgotten = ask(&again, &token).await;
    assert_eq!(forgotten.status, 401, "two generations, and no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_key_allows_a_rolling_restart() {
    let app = TestApp::start().await;
    let data = app.data.path();
    assert_eq!(
        operator(data, &["keys", "prepare"]),
        json!({ "prepared": true })
    );

    let not_yet = restarted(&app, data).await;
    operator(data, &["keys", "rotate"]);

    // A token issued with the new key is accepted by the node that still runs with the old one.
    ask(&not_yet, &not_yet.admin()).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitor_follows_the_replacement_of_the_log_key() {
    let app = TestApp::start().await;
    let data = app.data.path();
    let before = app.vaulted_envelope().await;
    app.custody(&before).await;
    let head = app.get("/ledger/head").await.data(200);
    let old = head["public_key"].as_str().unwrap();
    assert_eq!(head["successions"], Value::Null);

    let state = data.join("monitor.json");
    let monitor = async |app: &TestApp| {
        let url = format!("{}/api/v2", app.listen().await);
        let state = state.to_str().unwrap().to_owned();
        let data = app.data.path().to_owned();
        let look = move || {
            operator_output(
                &data,
                &["ledger", "monitor", "--url", &url, "--state", &state],
            )
        };
        let output = tokio::task::spawn_blocking(look).await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
    };

    monitor(&app).await;
    app.stop_working();

    assert_eq!(
        operator(data, &["keys", "rotate", "--log"]),
        json!({ "rotated": "log" })
    );
    assert_eq!(
        app.ready().await["ledger"],
        false,
        "the old key signs nothing more"
    );

    let rotated = restarted(&app, data).await;
    let after = rotated.vaulted_envelope().await;
    rotated.custody(&after).await;
    let head = rotated.get("/ledger/head").await.data(200);
    assert_ne!(head["public_key"], old);
    assert_eq!(head["successions"].as_array().unwrap().len(), 1);
    assert_eq!(rotated.ready().await["ledger"], true);

    monitor(&rotated).await;

    // The certificate of the first envelope contains a head that the old key signed.
    let new = head["public_key"].as_str().unwrap();
    for (id, key) in [(&before, new), (&before, old), (&after, old), (&after, new)] {
        let bundle = rotated.released_bundle(id).await;
        let folder = bundle.path().to_str().unwrap();
        let report = operator_output(data, &["verify", folder, "--key", key]);
        let text = String::from_utf8_lossy(&report.stdout).into_owned();
        assert!(report.status.success(), "{id} with {key}: {text}");
    }
}
