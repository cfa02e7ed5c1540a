//! Tampering is detected by the weekly sweep and by the check that it concerns, and described in
//! the report.

use std::path::Path;

use holdfast::config::Config;
use holdfast::domain::clock::Timestamp;
use holdfast::domain::id::{EnvelopeId, OrgId};
use holdfast::domain::ledger::{DESTROYED, NewEntry};
use holdfast::domain::organization::OrgSettings;
use holdfast::store::ledger;
use serde_json::{Value, json};

use crate::support::{SETTINGS, TestApp, operator_output};

/// Overwrites an object, which is read-only on disk.
fn write(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Returns the only object of an envelope in an area.
fn object(app: &TestApp, area: &str, id: &str) -> std::path::PathBuf {
    let mut objects = app.objects(area);
    objects.retain(|path| path.to_string_lossy().contains(id));
    assert_eq!(objects.len(), 1);
    objects.remove(0)
}

/// Runs a sweep that has to find exactly these problems, each with its check and part of the
/// detail.
async fn expect(app: &TestApp, id: &str, problems: &[(&str, &str)]) {
    let output = operator_output(app.data.path(), &["vault", "sweep"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["with_problems"].as_array().unwrap();
    assert_eq!(output.status.success(), problems.is_empty(), "{report}");

    let ours = found.iter().find(|envelope| envelope["envelope_id"] == id);
    let ours: Vec<(&str, &str)> = ours
        .and_then(|envelope| envelope["problems"].as_array())
        .into_iter()
        .flatten()
        .map(|problem| {
            (
                problem["check"].as_str().unwrap(),
                problem["detail"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(ours.len(), problems.len(), "{ours:?}");

    for (check, words) in problems {
        let said = ours
            .iter()
            .any(|(name, detail)| name == check && detail.contains(words));
        assert!(said, "{check}: {words} in {ours:?}");
    }
}

/// Starts a service with one vaulted envelope, without periodic sweeps.
async fn vaulted() -> (TestApp, String) {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    // Wait until its entries are in the log.
    app.custody(&id).await;
    (app, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untampered_vault_has_no_problems() {
    let (app, id) = vaulted().await;
    expect(&app, &id, &[]).await;
    let swept = app.sweep(&[]);
    assert_eq!(swept["checked"], 1);

    let swept = app.sweep(&["--resume"]);
    assert_eq!(swept["checked"], 0, "nothing was interrupted");

    let metrics = app.metrics().await;
    for line in [
        "holdfast_integrity_envelopes 1",
        "holdfast_integrity_checked_in_a_week 1",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_is_reported_once_and_not_served() {
    a_flipped_byte(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_byte_of_an_encrypted_object_is_reported() {
    a_flipped_byte(encrypted().await).await;
}

/// Starts a service that encrypts objects before storing them.
async fn encrypted() -> TestApp {
    let configure = |config: &mut Config| {
        let keys = config.data_dir.join("document-keys");
        std::fs::write(&keys, "2026 CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=").unwrap();

        // The operator's tool needs the same settings.
        let settings = config.data_dir.join(SETTINGS);
        let others = std::fs::read_to_string(&settings).unwrap_or_default();
        let ours = format!("{others}\n[storage]\nencryption_key_file = {keys:?}\n");
        std::fs::write(settings, ours).unwrap();
        config.storage.encryption_key_file = Some(keys);
    };

    TestApp::with(configure, OrgSettings::default()).await
}

async fn a_flipped_byte(app: TestApp) {
    let id = app.vaulted_envelope().await;
    // Wait until its entries are in the log.
    app.custody(&id).await;
    let path = object(&app, "vault", &id);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;

    write(&path, &bytes);
    let told = [(
        "authoritative copy",
        "the stored authoritative copy was changed",
    )];
    expect(&app, &id, &told).await;
    expect(&app, &id, &told).await;

    let events = app.events(&id).await;
    let tampering: Vec<&Value> = events
        .iter()
        .filter(|event| event["event_type"] == "vault.tamper_detected")
        .collect();
    assert_eq!(tampering.len(), 1, "the same finding is told once");

    let data = &tampering[0]["data"];
    assert_ne!(data["expected_hash"], data["actual_hash"]);
    assert_eq!(data["problems"][0]["check"], "authoritative copy");

    let auditor = app.token("auditor");
    let findings = app.get_with_bearer(&auditor, "/findings").await.data(200);
    assert_eq!(findings.as_array().unwrap().len(), 1, "{findings:#}");
    assert_eq!(findings[0]["envelope_id"], id.as_str());
    assert_eq!(findings[0]["problems"][0]["check"], "authoritative copy");
    assert!(findings[0]["checked_at"].is_string(), "{findings:#}");

    let behind = format!("/findings?starting_after={id}");
    let behind = app.get_with_bearer(&auditor, &behind).await;
    assert_eq!(behind.data(200), serde_json::json!([]));

    let stranger = app.get_with_bearer(&app.other_admin(), "/findings").await;
    assert_eq!(stranger.data(200), serde_json::json!([]));

    let link = format!("/partner/envelopes/{id}/vault/signed-url");
    let link = app.get(&link).await.data(200);
    let denied = app.get(link["signed_url"].as_str().unwrap()).await;
    assert_eq!(denied.error(409), "Document integrity check failed");

    let release = format!("/partner/envelopes/{id}/vault-out");
    let denied = app.post(&release, crate::support::release_form()).await;
    assert_eq!(denied.error(409), "Document integrity check failed");
    assert!(app.objects("archive").is_empty());
    assert!(
        app.metrics()
            .await
            .contains("holdfast_integrity_with_problems 1")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_or_missing_object_is_detected() {
    a_truncated_or_missing_object(TestApp::start().await).await;
    a_truncated_or_missing_object(encrypted().await).await;
}

async fn a_truncated_or_missing_object(app: TestApp) {
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let path = object(&app, "vault", &id);
    let bytes = std::fs::read(&path).unwrap();
    write(&path, &bytes[..bytes.len() - 1]);
    let changed = "the stored authoritative copy was changed";
    expect(&app, &id, &[("authoritative copy", changed)]).await;

    write(&path, &bytes);
    expect(&app, &id, &[]).await;
    std::fs::remove_file(&path).unwrap();
    let gone = "the stored authoritative copy is gone";
    expect(&app, &id, &[("authoritative copy", gone)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_objects_and_pointers_are_detected() {
    let app = TestApp::start().await;
    let (one, other) = (app.vaulted_envelope().await, app.vaulted_envelope().await);
    let paths = [object(&app, "vault", &one), object(&app, "vault", &other)];
    let bytes = paths.each_ref().map(|path| std::fs::read(path).unwrap());
    write(&paths[0], &bytes[1]);
    write(&paths[1], &bytes[0]);
    let changed = "the stored authoritative copy was changed";
    for id in [&one, &other] {
        expect_some(&app, id, ("authoritative copy", changed)).await;
    }

    write(&paths[0], &bytes[0]);
    write(&paths[1], &bytes[1]);

    // The row now points to the other envelope's document, which is intact.
    let swap = "update envelope set vault =
        (select e.vault from envelope e where e.envelope_id <> envelope.envelope_id)
        where envelope_id = $1";
    app.change(swap, &one).await;

    let elsewhere = "the envelope points to another authoritative copy than was vaulted";
    expect(&app, &one, &[("authoritative copy", elsewhere)]).await;
}

/// Like [`expect`], for one problem.
async fn expect_some(app: &TestApp, id: &str, problem: (&str, &str)) {
    expect(app, id, &[problem]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_certificate_is_detected() {
    let (app, id) = vaulted().await;
    let mut files = app.objects("certificates");
    files.retain(|path| std::fs::read(path).unwrap().starts_with(b"{"));
    let text = std::fs::read_to_string(&files[0]).unwrap();
    write(
        &files[0],
        text.replace("First Example Bank", "Other Example Bank")
            .as_bytes(),
    );

    expect(
        &app,
        &id,
        &[("certificate", "the stored certificate was changed")],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_ledger_row_is_detected_by_chain_and_log() {
    let (app, id) = vaulted().await;
    let edit = "update ledger_entry set actor = 'somebody else'
        where envelope_id = $1 and sequence = 2";
    app.change(edit, &id).await;
    let told = [
        (
            "ledger",
            "entry 2 was changed: its hash does not match its content",
        ),
        ("log", "entry 2 of the ledger is not the one in place"),
    ];

    expect(&app, &id, &told).await;
}

/// An attacker who can edit one row can also rewrite the rest of the chain; only the log reveals
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_ledger_is_detected_by_the_log() {
    let (app, id) = vaulted().await;
    app.rewrite_ledger(&id, 2, "somebody else").await;
    let output = operator_output(app.data.path(), &["vault", "sweep"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = report["with_problems"][0]["problems"].as_array().unwrap();
    let checks: Vec<&str> = problems
        .iter()
        .map(|one| one["check"].as_str().unwrap())
        .collect();
    assert!(
        checks.len() > 2 && checks.iter().all(|check| *check == "log"),
        "{checks:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_without_its_personal_values_agrees_with_the_log() {
    let (app, id) = vaulted().await;
    let before = app.custody(&id).await["entries"].take();
    let text = before.to_string();
    assert!(text.contains('@') && text.contains("salt"), "{text}");

    let envelope = EnvelopeId::parse(&id).unwrap();
    destroy_details(&app, &app.org, &envelope).await;
    expect(&app, &id, &[]).await;

    let after = app.custody(&id).await["entries"].take();
    let hashes = |entries: &Value| -> Vec<Value> {
        let entries = entries.as_array().unwrap().iter();
        entries.map(|entry| entry["hash"].clone()).collect()
    };
    let kept = hashes(&before).len();
    assert_eq!(hashes(&after)[..kept], hashes(&before)[..]);
    let text = after.to_string();
    assert!(!text.contains('@') && !text.contains("salt"), "{text}");
}

/// Destroys the details of a ledger, as with its record.
async fn destroy_details(app: &TestApp, org: &OrgId, envelope: &EnvelopeId) {
    enter_destruction(app, org, envelope).await;
    redact_details(app, org, envelope).await;
}

/// Adds the entry with which the destruction of a record begins.
pub async fn enter_destruction(app: &TestApp, org: &OrgId, envelope: &EnvelopeId) {
    let mut tx = app.store.begin().await.unwrap();
    let destroyed = NewEntry {
        at: Timestamp::from_millis(0),
        actor: "system".into(),
        action: DESTROYED.into(),
        details: json!({}),
    };
    ledger::append(&mut tx, Some(org), envelope, destroyed)
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// Destroys the details of a ledger behind which is the entry of the destruction.
pub async fn redact_details(app: &TestApp, org: &OrgId, envelope: &EnvelopeId) {
    let mut tx = app.store.begin().await.unwrap();
    ledger::redact(&mut tx, org, envelope).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_ledger_row_is_detected_at_every_position() {
    let (app, id) = vaulted().await;
    app.change(
        "delete from ledger_entry where envelope_id = $1 and sequence = 3",
        &id,
    )
    .await;
    let told = [
        ("ledger", "entry 3 is missing"),
        ("log", "entry 3 of the ledger is missing"),
    ];
    expect(&app, &id, &told).await;

    // A chain without its last entries still looks valid.
    let (app, id) = vaulted().await;
    let last = "delete from ledger_entry where envelope_id = $1 and sequence =
        (select max(sequence) from ledger_entry where action <> 'download_link.issued')";
    app.change(last, &id).await;
    let output = operator_output(app.data.path(), &["vault", "sweep"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = &report["with_problems"][0]["problems"];
    assert_eq!(problems[0]["check"], "log", "{report}");
    assert!(
        problems[0]["detail"]
            .as_str()
            .unwrap()
            .contains("is missing"),
        "{report}"
    );
}
