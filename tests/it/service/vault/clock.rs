//! A clock that is behind the ledger. Tomorrow's entries are made by a node with a clock a day ahead.

use std::path::Path;
use std::time::{Duration, Instant};

use holdfast::domain::clock::{Clock, Timestamp};
use serde_json::{Value, json};

use crate::service::envelopes::truth::custody_record;
use crate::support::{TestApp, form, operator, operator_output};

const DAY: Duration = Duration::from_secs(86_400);

/// Sends a contract and has it signed; returns its id.
async fn signed(app: &TestApp) -> String {
    let envelope = app.sent_envelope().await;
    form::sign(app, envelope["sign_url"].as_str().unwrap()).await;
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    app.wait_for(&id, "completed").await;
    id
}

/// The check of the clock by `holdfast doctor`.
fn check_of_clock(data: &Path) -> Value {
    let output = operator_output(data, &["doctor"]);
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut checks = checks.into_iter();
    checks.find(|check| check["name"] == "clock").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_behind_the_ledger_seals_nothing() {
    let first = TestApp::without_auto_vault().await;
    let data = first.data.path();
    let early = signed(&first).await;
    let path = format!("/partner/envelopes/{early}/vault-in-signed");
    let ahead = first.as_of(DAY).await;
    let id = signed(&ahead).await;

    let deadline = Instant::now() + Duration::from_secs(60);
    while ahead.count("ledger_pending").await > 0 {
        assert!(Instant::now() < deadline, "the log does not grow");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let app = ahead.as_of(Duration::ZERO).await;
    let check = check_of_clock(data);
    assert_eq!(check["ok"], false, "{check}");
    assert!(
        check["detail"].as_str().unwrap().contains("confirm-clock"),
        "{check}"
    );

    let metrics = app.metrics().await;
    assert!(
        metrics.contains("holdfast_clock_behind_seconds 86"),
        "{metrics}"
    );

    let refused = app.post(&path, json!({})).await;
    assert!(refused.error(503).contains("clock"));
    assert!(app.objects("vault").is_empty());

    // Once the time has come again, and once an operator confirms that the other clock was wrong.
    let done = ahead.as_of(DAY).await;
    done.post(&path, json!({})).await.data(200);

    // Nothing of the attempt with the wrong clock is left in certificate, record and seal.
    let frozen = done
        .text_of("select min(frozen_at) from vault_intent")
        .await;
    let frozen = Timestamp::parse(&frozen).unwrap();
    assert!(frozen > Clock::default().now() + DAY / 2, "{frozen}");

    let app = done.as_of(Duration::ZERO).await;
    let path = format!("/partner/envelopes/{id}/vault-in-signed");
    app.post(&path, json!({})).await.error(503);
    let confirmed = operator(data, &["vault", "confirm-clock"]);
    assert!(
        confirmed["behind_seconds"].as_u64() > Some(86_000),
        "{confirmed}"
    );

    app.post(&path, json!({})).await.data(200);
    app.wait_for(&id, "vaulted").await;
    assert_eq!(check_of_clock(data)["ok"], true);

    let again = operator(data, &["vault", "confirm-clock"]);
    assert_eq!(again["behind_seconds"], 0);

    let noted = app.text_of("select details from ledger_entry where action = 'clock.confirmed'");
    assert!(noted.await.contains("newest_at"));

    // Signed tomorrow, sealed today: the record has the reason.
    let record = custody_record(&app, &id).await;
    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        record.contains("clock of this service had gone back"),
        "{record}"
    );
}
