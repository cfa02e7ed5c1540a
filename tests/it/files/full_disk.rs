//! A full disk: requests are refused with a clear error, and no data is damaged.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use holdfast::domain::organization::OrgSettings;
use holdfast::files::{Files, PROBES};
use holdfast::store::StoreError;
use holdfast::{server, start};
use serde_json::json;

use crate::support::faulty::{FaultyStore, StorageFault};
use crate::support::{CONTRACT, TestApp, configuration, form, share_native_code};

/// Fills the disk of the object folder, for uploads and for the built-in signing room.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_object_disk_returns_503_with_the_reason() {
    for area in ["templates", "room"] {
        let (app, store) =
            TestApp::faulty(StorageFault::NoSpace, area, OrgSettings::default()).await;
        let fields = json!([]).to_string();
        let texts = [("name", "Contract"), ("fields_json", fields.as_str())];
        let create = || app.upload("/partner/templates", "application/pdf", CONTRACT, &texts);
        let refused = create().await;
        assert_eq!(refused.headers["retry-after"], "60", "{area}");
        assert_eq!(refused.json()["code"], "disk_full", "{area}");
        assert_eq!(
            refused.error(503),
            "There is no room on the disk right now; nothing was changed"
        );

        let metrics = app.metrics().await;
        assert!(metrics.contains("holdfast_disk_full_total 1"), "{area}");

        // Requests succeed as soon as there is space again.
        store.fail(0);
        create().await.data(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_disk_is_distinguished_from_a_failing_one_on_sqlite() {
    let app = TestApp::start().await;
    let mut tx = app.store.begin().await.unwrap();
    let mut run = async |sql: &'static str| sqlx::query(sql).execute(&mut *tx).await;
    run("pragma max_page_count = 1").await.unwrap();
    let full = run("create table ballast as select zeroblob(4000000) as bytes").await;
    assert!(StoreError::from(full.unwrap_err()).is_full());
    let wrong = run("select * from nothing").await;
    assert!(!StoreError::from(wrong.unwrap_err()).is_full());
}

/// Browsers get a page and scripts get JSON, both with a `Retry-After`.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_sees_an_error_page_when_the_server_is_unavailable() {
    let (app, store) =
        TestApp::faulty(StorageFault::ShortGet, "room", OrgSettings::default()).await;
    store.fail(0);
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap();

    // Otherwise the form opens without its document.
    app.empty("page_facts").await;
    store.fail(i64::MAX);
    let page = form::open(&app, url).await;
    assert_eq!(page.status, 503);
    assert!(page.headers.contains_key("retry-after"));

    let content_type = page.headers["content-type"].to_str().unwrap();
    assert!(content_type.starts_with("text/html"), "{content_type}");
    assert!(page.text().contains("Your link is valid"));

    let request = Request::get(url[url.find("/sign/").unwrap()..].to_owned())
        .header("accept", "application/json");
    let script = app.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(
        script.json()["error"],
        "The document store cannot be reached right now"
    );

    store.fail(0);
    assert_eq!(form::open(&app, url).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_and_metrics_report_the_disk() {
    let app = TestApp::start().await;
    assert_eq!(app.ready().await["disk"], true);
    let metrics = app.metrics().await;
    for folder in ["data", "objects"] {
        let line = format!("holdfast_disk_free_bytes{{folder=\"{folder}\"}} ");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

/// What fills the disk must not keep the records from being read after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_for_reading_with_a_full_object_disk() {
    let data = tempfile::tempdir().unwrap();
    share_native_code(data.path());
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = configuration(&data);
    config.listen = port.local_addr().unwrap();
    drop(port);
    let address = config.listen;

    let objects = data.path().join("objects");
    let full = FaultyStore::new(&objects, StorageFault::NoSpace, PROBES);
    full.fail(i64::MAX);
    let files = Files::over(full, Duration::from_millis(500));
    let app = start::start_with(config, files).await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server::serve(app, async {
        let _ = stopped.await;
    }));

    let _ = rustls::crypto::ring::default_provider().install_default();
    let deadline = Instant::now() + Duration::from_secs(60);
    let answer = loop {
        match reqwest::get(format!("http://{address}/healthz")).await {
            Ok(answer) => break answer,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        assert!(!serving.is_finished(), "the server did not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(answer.status(), 200);

    drop(stop);
    serving.await.unwrap().unwrap();
}
