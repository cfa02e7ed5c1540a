//! Cost of a request in commits on the disk.

use axum::body::Body;
use axum::http::Request;
use serde_json::Value;

use crate::support::{TestApp, envelope_body};

/// A create is durable when it is answered, by one commit; an `Idempotency-Key` is claimed by another
/// one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_makes_at_most_two_commits() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    app.stop_working();

    // The work that the worker has begun ends first.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let mut paper = envelope_body(&Value::Null);
    paper.as_object_mut().unwrap().remove("template_id");
    paper["envelope_kind"] = "paper".into();

    for (what, body) in [
        ("template", envelope_body(&template["template_id"])),
        ("paper", paper),
    ] {
        for (key, most) in [(None, 1), (Some(format!("key-{what}")), 2)] {
            let mut request = Request::post("/api/v2/partner/envelopes")
                .header("x-api-key", &app.key)
                .header("content-type", "application/json");
            if let Some(key) = &key {
                request = request.header("idempotency-key", key);
            }

            let request = request.body(Body::from(body.to_string())).unwrap();
            let before = app.store.commits();
            app.send(request).await.data(201);
            let commits = app.store.commits() - before;
            assert!(commits <= most, "{what}, {key:?}: {commits} commits");
        }
    }
}
