//! Vault-in resumes after any failure at the step where it stopped.

use std::time::Duration;

use holdfast::domain::job::JobPayload;
use holdfast::domain::organization::OrgSettings;
use holdfast::files::{Files, FilesError};
use holdfast::store::jobs;
use serde_json::{Value, json};

use crate::support::faulty::{FaultyStore, StorageFault};
use crate::support::{CONTRACT, TestApp, envelope_body, form, release_form};

/// Areas, each with the step that stores into it.
const STEPS: [(&str, &str); 4] = [
    ("signed", "fetch"),
    ("vault", "seal"),
    ("copies", "copy"),
    ("certificates", "certify"),
];

const AWAY: &str = "The document store cannot be reached right now";
const FULL: &str = "There is no room on the disk right now; nothing was changed";

fn quiet() -> OrgSettings {
    OrgSettings {
        auto_vault: false,
        ..OrgSettings::default()
    }
}

/// Returns the envelope in the organization's view.
async fn seen(app: &TestApp, id: &str) -> Value {
    app.get_with_bearer(&app.admin(), &format!("/envelopes/{id}"))
        .await
        .data(200)
}

async fn exactly_one_of_each(app: &TestApp, id: &str) {
    for (area, files) in [
        ("signed", 1),
        ("vault", 1),
        ("copies", 1),
        ("certificates", 2),
    ] {
        assert_eq!(app.objects(area).len(), files, "{area}");
    }

    let types = app.event_types(id).await;
    for once in ["vault.stored", "vault.compliance.passed"] {
        let times = types.iter().filter(|kind| *kind == once).count();
        assert_eq!(times, 1, "{once} in {types:?}");
    }

    let waiting = "job where kind = 'envelope.vault'";
    assert_eq!(app.count(waiting).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_failure_is_reported_and_retried_at_the_failed_step() {
    for fault in [
        StorageFault::PutFails,
        StorageFault::NoSpace,
        StorageFault::Stall,
    ] {
        let all = STEPS.map(|(area, step)| async move {
            let (app, store) = TestApp::faulty(fault, area, quiet()).await;
            let envelope = app.sent_envelope().await;
            let id = envelope["envelope_id"].as_str().unwrap().to_owned();
            form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
            app.wait_for(&id, "completed").await;
            assert_eq!(seen(&app, &id).await["vault_error"], Value::Null);

            let vault_in = format!("/partner/envelopes/{id}/vault-in-signed");
            for failures in 1..3 {
                let refused = app.post(&vault_in, json!({})).await;
                let expected = match fault {
                    StorageFault::NoSpace => FULL,
                    _ => AWAY,
                };
                assert_eq!(refused.error(503), expected);

                let seen = seen(&app, &id).await;
                assert_eq!(seen["status"], "completed");

                let error = &seen["vault_error"];
                assert_eq!(error["step"], step, "{fault:?}: {error}");
                assert_eq!(error["failures"], failures);

                let message = error["message"].as_str().unwrap();
                assert!(
                    message.starts_with("object store: ") || message.contains("in time"),
                    "{message}"
                );
                assert!(
                    !message.contains(&id) && !message.contains('/'),
                    "{message}"
                );
            }

            let done = STEPS.iter().position(|(_, known)| *known == step).unwrap();

            // `confirm` comes first; the steps after `fetch` are stored in parallel.
            let recorded = 1 + done.min(1);
            assert_eq!(app.count("vault_step").await, recorded as i64, "{step}");

            store.fail(0);
            let vaulted = app.post(&vault_in, json!({})).await.data(200);
            assert_eq!(vaulted["status"], "vaulted");
            assert_eq!(seen_error(&app, &id).await, Value::Null);

            exactly_one_of_each(&app, &id).await;
        });

        futures::future::join_all(all).await;
    }
}

async fn seen_error(app: &TestApp, id: &str) -> Value {
    seen(app, id).await["vault_error"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_put_response_is_recovered_by_reading_back() {
    for (area, step) in STEPS {
        let (app, _store) = TestApp::faulty(StorageFault::AnswerLost, area, quiet()).await;
        let envelope = app.sent_envelope().await;
        let id = envelope["envelope_id"].as_str().unwrap();
        form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
        app.wait_for(id, "completed").await;
        let vault_in = format!("/partner/envelopes/{id}/vault-in-signed");
        let vaulted = app.post(&vault_in, json!({})).await;
        assert_eq!(vaulted.data(200)["status"], "vaulted", "{step}");

        exactly_one_of_each(&app, id).await;
    }
}

/// A read that returns fewer bytes than announced is not reported as tampering.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_read_is_retried_without_an_alarm() {
    let (app, store) =
        TestApp::faulty(StorageFault::ShortGet, "vault", OrgSettings::default()).await;
    store.fail(2);
    let id = app.vaulted_envelope().await;
    exactly_one_of_each(&app, &id).await;

    let link = format!("/partner/envelopes/{id}/vault/signed-url");
    let link = app.get(&link).await.data(200);
    store.fail(1);
    let url = link["signed_url"].as_str().unwrap();
    assert_eq!(app.get(url).await.error(503), AWAY);

    let types = app.event_types(&id).await;
    assert!(
        !types.contains(&"vault.tamper_detected".to_owned()),
        "{types:?}"
    );
    assert_eq!(app.get(url).await.status, 200, "the link is still good");
}

/// The worker retries automatically, with back-off.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_envelope_is_vaulted_automatically() {
    let (app, store) =
        TestApp::faulty(StorageFault::PutFails, "copies", OrgSettings::default()).await;
    store.fail(1);
    let id = app.vaulted_envelope().await;
    exactly_one_of_each(&app, &id).await;
}

/// When a document is replaced while its pipeline is interrupted, the pipeline starts over and
/// does not mix bytes of both.
#[tokio::test(flavor = "multi_thread")]
async fn replacing_the_document_restarts_vault_in() {
    let (app, store) = TestApp::faulty(StorageFault::PutFails, "copies", quiet()).await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let upload = format!("/partner/envelopes/{id}/upload");
    let vault_in = format!("/partner/envelopes/{id}/vault-in-upload");

    app.upload(&upload, "application/pdf", CONTRACT, &[])
        .await
        .data(201);
    app.post(&vault_in, json!({})).await.error(503);

    let other = crate::builder::one_page("BT /F1 12 Tf 72 720 Td (Another contract) Tj ET");
    let stored = app
        .upload(&upload, "application/pdf", &other, &[])
        .await
        .data(201);
    let waiting = "job where kind = 'envelope.vault'";
    assert_eq!(app.count(waiting).await, 0, "nobody asked for this one");

    store.fail(0);
    app.post(&vault_in, json!({})).await.data(200);
    let kept = app.entry(id, "vault.stored").await;
    assert_eq!(kept["signed_document_hash"], stored["hash"]);

    let compliance = app
        .get(&format!("/partner/envelopes/{id}/compliance"))
        .await
        .data(200);
    assert_eq!(compliance["envelope_status"], "vaulted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_overwrites_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = FaultyStore::new(folder.path(), StorageFault::Overwrites, "probe");
    let files = Files::over(store, Duration::from_secs(5));
    let refused = files.check().await.err().unwrap();
    assert!(matches!(refused, FilesError::Overwrites), "{refused}");
}

/// Objects without a row are removed after a day; referenced objects stay.
#[tokio::test(flavor = "multi_thread")]
async fn orphaned_objects_are_removed_after_a_day() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;

    // A file with `#` is being written: the service extends its log beside the test.
    let is_written = |path: &std::path::PathBuf| !path.to_string_lossy().contains('#');
    let kept: Vec<_> = app.objects("").into_iter().filter(is_written).collect();
    let vault = app.objects("vault").remove(0);
    let folder = vault.parent().unwrap();
    let orphan = folder.join("0".repeat(64));
    let cut_off = folder.join(format!("{}#1", "0".repeat(64)));

    let foreign = app.data.path().join("objects/readme.txt");
    let probe = app.data.path().join("objects/probe/req_1");
    std::fs::create_dir_all(probe.parent().unwrap()).unwrap();
    for path in [&orphan, &cut_off, &foreign, &probe] {
        std::fs::write(path, b"left behind").unwrap();
    }

    // Simulate an envelope that was vaulted before steps were recorded, and another
    // installation on the same store.
    app.empty("vault_step").await;
    let stranger = folder.join("../../org_01jdk7m3e8f4x9s2w5v6b0c1dd/env_1");
    std::fs::create_dir_all(&stranger).unwrap();
    let stranger = stranger.join("1".repeat(64));
    std::fs::write(&stranger, b"somebody else's").unwrap();

    let young = app.as_of(Duration::from_secs(3600)).await;
    let swept = young.sweep(&["--orphans"]);
    assert_eq!(swept["orphans_removed"], 0, "{swept}");

    let later = app.as_of(Duration::from_secs(25 * 3600)).await;
    later.wait_until_gone(&orphan).await;
    later.wait_until_gone(&cut_off).await;
    later.wait_until_gone(&probe).await;
    assert!(
        stranger.exists(),
        "what another installation stores is left alone"
    );
    assert!(
        foreign.exists(),
        "what is no document of ours is left alone"
    );

    for path in kept {
        assert!(path.exists(), "{}", path.display());
    }
    assert_eq!(later.wait_for(&id, "vaulted").await["vaulted"], true);
}

/// A database restored from a backup lacks recent rows, so no object is removed as orphaned.
#[tokio::test(flavor = "multi_thread")]
async fn orphans_stay_while_the_published_log_is_ahead_of_the_database() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let later = app.objects("ledger/checkpoints").remove(0);
    let later = later.with_file_name(format!("{:020}", 1_000_000));
    std::fs::write(&later, b"published before the database was put back").unwrap();
    let orphan = app
        .objects("vault")
        .remove(0)
        .with_file_name("0".repeat(64));
    std::fs::write(&orphan, b"left behind").unwrap();

    let arguments = ["vault", "sweep", "--orphans"];
    let output = crate::support::operator_output(app.data.path(), &arguments);
    assert!(!output.status.success());

    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("more entries than the database has"),
        "{said}"
    );
    assert!(orphan.exists());

    let doctor = crate::support::operator_output(app.data.path(), &["doctor"]);
    assert!(!doctor.status.success());

    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        said.contains("more entries than the database has"),
        "{said}"
    );
}

/// The live copy is not removed while the archive cannot be read, because it may be the only one.
#[tokio::test(flavor = "multi_thread")]
async fn the_live_copy_stays_while_its_archive_cannot_be_read() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let live = app.objects("vault").remove(0);
    app.stop_working();
    tokio::time::sleep(Duration::from_millis(100)).await;
    app.post(
        &format!("/partner/envelopes/{id}/vault-out"),
        release_form(),
    )
    .await
    .data(200);

    std::fs::write(app.objects("archive").remove(0), b"no contract").unwrap();

    let orphan = live.with_file_name("0".repeat(64));
    std::fs::write(&orphan, b"left behind").unwrap();
    let later = app.as_of(Duration::from_secs(25 * 3600)).await;
    later.wait_until_gone(&orphan).await;
    assert_eq!(app.count("job where kind = 'object.delete'").await, 1);
    assert!(live.exists());
}

/// A job kind that this version does not know.
#[derive(serde::Serialize, serde::Deserialize)]
struct UnknownJob {}

impl JobPayload for UnknownJob {
    const NAME: &'static str = "later.kind";
}

/// During a rolling upgrade, jobs of an unknown kind are left to newer nodes.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_later_version_are_left_to_later_nodes() {
    let app = TestApp::start().await;
    let now = holdfast::domain::clock::Clock::default().now();
    let mut tx = app.store.begin().await.unwrap();
    jobs::insert(&mut tx, &app.org, &UnknownJob {}, None, now)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let waits = "job where kind = 'later.kind' and state = 'waiting' and attempts = 0";
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while app.count(&format!("{waits} and lease_epoch > 0")).await == 0 {
        assert!(std::time::Instant::now() < deadline, "it was not looked at");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(app.count(waits).await, 1);
}
