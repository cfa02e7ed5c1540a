//! Backups of an installation on the embedded defaults, made while it is in use and restored
//! into another data folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use holdfast::config::Config;
use holdfast::domain::clock::Clock;
use holdfast::domain::organization::OrgSettings;
use holdfast::store::chores;
use serde_json::Value;
use sqlx::Row as _;

use crate::support::{
    TestApp, files_below, files_with, form, operator, operator_output, release_form,
    share_native_code,
};

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Drill: makes a backup under load, restores it elsewhere, and verifies every envelope.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_made_under_load_restores_completely_elsewhere() {
    let app = TestApp::start().await;
    let before = app.vaulted_envelope().await;
    let at = tempfile::tempdir().unwrap();
    let backup = at.path().join("backup");
    let stop = std::sync::atomic::AtomicBool::new(false);

    // The load also releases envelopes, because a release removes objects.
    let work = async {
        let mut released = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) || released == 0 {
            let id = app.vaulted_envelope().await;
            let path = format!("/partner/envelopes/{id}/vault-out");
            app.post(&path, release_form()).await.data(200);
            released += 1;
        }
    };

    let (data, to) = (app.data.clone(), backup.clone());
    let backing_up = async {
        // Start the backup after the first release, while further ones follow.
        while app.count("envelope where status = 'vaulted_out'").await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        let task = move || operator(data.path(), &["backup", to.to_str().unwrap()]);
        let told = tokio::task::spawn_blocking(task).await.unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        told
    };

    let (told, ()) = tokio::join!(backing_up, work);
    assert!(told["files"].as_u64().unwrap() > 5, "{told}");

    let elsewhere = at.path().join("elsewhere");
    let restored = operator(&elsewhere, &["restore", backup.to_str().unwrap()]);
    assert_eq!(restored["files"], told["files"]);

    share_native_code(&elsewhere);
    let orgs = operator(&elsewhere, &["org", "list"]);
    assert!(
        orgs.as_array()
            .unwrap()
            .iter()
            .any(|org| org["org_id"] == app.org.as_str())
    );

    let restored = envelopes(&elsewhere).await;
    assert_eq!(restored.get(&before).map(String::as_str), Some("vaulted"));

    let released = restored
        .iter()
        .filter(|(_, status)| *status == "vaulted_out");
    assert!(released.count() > 0);

    for envelope in restored.keys() {
        let report = operator(&elsewhere, &["verify", envelope]);
        assert_eq!(report["valid"], true, "{report:#}");
    }

    // The sweep reads every vaulted document and its ledger.
    let swept = operator(&elsewhere, &["vault", "sweep"]);
    assert_eq!(swept["checked"], restored.len(), "{swept}");
    assert_eq!(swept["with_problems"], serde_json::json!([]), "{swept}");

    let doctor = operator(&elsewhere, &["doctor"]);
    let failing = doctor
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["ok"] == false);
    assert_eq!(failing.count(), 0, "{doctor:#}");
}

/// Returns the envelopes of a data folder that were ever vaulted, with their status.
async fn envelopes(data: &Path) -> BTreeMap<String, String> {
    let url = format!("sqlite://{}", data.join("holdfast.db").display());
    let store = holdfast::store::Store::connect(&url).await.unwrap();
    let mut connection = store.read().await.unwrap();
    let select =
        "select envelope_id, status from envelope where status in ('vaulted', 'vaulted_out')";
    let rows = sqlx::query(select)
        .fetch_all(&mut *connection)
        .await
        .unwrap();

    rows.iter()
        .map(|row| (row.get("envelope_id"), row.get("status")))
        .collect()
}

/// Objects that the database snapshot refers to must exist until they are copied.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_not_removed_during_a_backup() {
    let app = TestApp::start().await;
    let now = Clock::default().now();
    let until = now + Duration::from_secs(3600);
    chores::hold(&app.store, chores::BACKUP, until)
        .await
        .unwrap();
    let id = app.vaulted_envelope().await;

    let live = app.objects("vault").remove(0);
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);

    // A lease epoch above zero shows that a worker took the job and put it back.
    let waits = "job where kind = 'object.delete' and lease_epoch > 0 and state = 'waiting'";
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while app.count(waits).await == 0 {
        assert!(std::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(live.exists());

    let later = app.as_of(Duration::from_secs(3700)).await;
    later.wait_until_gone(&live).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_and_a_folder_in_use_are_refused() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    let at = tempfile::tempdir().unwrap();
    let backup = at.path().join("backup");
    let to = backup.to_str().unwrap();
    operator(app.data.path(), &["backup", to]);
    let again = operator_output(app.data.path(), &["backup", to]);
    assert!(said(&again).contains("is not empty"), "{}", said(&again));

    let over = operator_output(app.data.path(), &["restore", to]);
    assert!(said(&over).contains("is not empty"), "{}", said(&over));

    let elsewhere = at.path().join("elsewhere");
    let refused = |what: &str| {
        let output = operator_output(&elsewhere, &["restore", to]);
        assert!(said(&output).contains(what), "{what}: {}", said(&output));
        assert!(files_below(&elsewhere).is_empty(), "{what}");
    };
    let object = files_below(&backup.join("objects")).remove(0);
    let bytes = std::fs::read(&object).unwrap();
    std::fs::write(&object, [&bytes[..], b"x"].concat()).unwrap();

    refused("was changed");
    std::fs::remove_file(&object).unwrap();
    refused("is missing");
    std::fs::write(&object, bytes).unwrap();
    let manifest = backup.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();

    // A forged manifest must not write outside the target folder.
    std::fs::write(&manifest, text.replace("holdfast.db", "../holdfast.db")).unwrap();
    refused("is no name of a file");
    std::fs::remove_file(&manifest).unwrap();
    refused("manifest.json");
    std::fs::write(&manifest, text).unwrap();
    let restored: Value = operator(&elsewhere, &["restore", to]);
    assert!(restored["bytes"].as_u64().unwrap() > 0);

    // Restored keys have to stay unreadable for other users.
    use std::os::unix::fs::PermissionsExt as _;

    let key = std::fs::metadata(elsewhere.join("keys/master.key")).unwrap();
    let own = std::fs::metadata(app.data.path().join("keys/master.key")).unwrap();
    assert_eq!(key.permissions().mode(), own.permissions().mode());
}

/// Other databases and object stores have to be backed up with their own tools.
#[test]
fn backup_supports_only_the_embedded_defaults() {
    let data = tempfile::tempdir().unwrap();
    let config = data.path().join("holdfast.toml");
    let to = data.path().join("backup");
    for (setting, why) in [
        (
            "database_url = \"postgres://db/holdfast\"",
            "use the tools of your database",
        ),
        (
            "storage_url = \"s3://vault/here\"",
            "use the tools of your object store",
        ),
    ] {
        std::fs::write(&config, setting).unwrap();
        for command in ["backup", "restore"] {
            let config = config.to_str().unwrap();
            let arguments = ["--config", config, command, to.to_str().unwrap()];
            let refused = operator_output(&data.path().join("data"), &arguments);
            assert!(!refused.status.success());
            assert!(
                said(&refused).contains(why),
                "{command}: {}",
                said(&refused)
            );
        }
    }
}

/// Runs the operator's tool with keys of records in the data folder.
fn with_record_keys(data: &Path, arguments: &[&str]) -> Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", data)
        .env("HOLDFAST_STORAGE__RECORD_KEYS", "record-keys")
        .arg("--json")
        .args(arguments)
        .output()
        .unwrap();
    // A command that finds problems ends with a status of its own.
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.get("error").is_none(), "{}", said(&output));
    report
}

/// A backup has no readable word of a record, and without the record's key it has nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_destroyed_key_destroys_what_a_backup_has_of_the_record() {
    let settings = |config: &mut Config| config.storage.record_keys = Some("record-keys".into());
    let app = TestApp::with(settings, OrgSettings::default()).await;
    let (destroyed, links) = app.sent_to_two().await;
    for link in &links {
        form::sign(&app, link).await;
    }
    app.wait_for(&destroyed, "vaulted").await;
    let other = app.vaulted_envelope().await;

    let at = tempfile::tempdir().unwrap();
    let backup = at.path().join("backup");
    with_record_keys(app.data.path(), &["backup", backup.to_str().unwrap()]);
    // A document, its signer, and the signer's address.
    let texts = ["%PDF-", "Ann Buyer", "buyer@example.com"];
    assert_eq!(files_with(&backup, &texts), [] as [String; 0]);
    assert!(!backup.join("record-keys").exists());
    let left_over = app.data.path().join("backup-in-progress");
    assert_eq!(files_below(&left_over), [] as [std::path::PathBuf; 0]);

    app.service
        .files
        .destroy_record_key(&destroyed)
        .await
        .unwrap();
    // The key alone was destroyed here, without an order.
    let swept = with_record_keys(app.data.path(), &["vault", "sweep"]);
    let problems = swept["with_problems"].to_string();
    assert!(problems.contains(&destroyed), "{swept}");
    let why = "was destroyed with the record's key";
    assert!(problems.contains(why), "{swept}");

    let elsewhere = at.path().join("elsewhere");
    let keys = elsewhere.join("record-keys");
    std::fs::create_dir_all(&keys).unwrap();
    for key in files_below(&app.data.path().join("record-keys")) {
        std::fs::copy(&key, keys.join(key.file_name().unwrap())).unwrap();
    }

    let restored = with_record_keys(&elsewhere, &["restore", backup.to_str().unwrap()]);
    assert_eq!(restored["unsealed"], 1, "{restored}");
    assert_eq!(restored["destroyed"], 1, "{restored}");
    assert_eq!(restored["without_key"], 0, "{restored}");
    assert_eq!(files_with(&elsewhere, &texts), [] as [String; 0]);

    share_native_code(&elsewhere);
    let report = with_record_keys(&elsewhere, &["verify", &other]);
    assert_eq!(report["valid"], true, "{report:#}");
    let swept = with_record_keys(&elsewhere, &["vault", "sweep"]);
    assert_eq!(swept["with_problems"], serde_json::json!([]), "{swept}");

    // The certificate, if there was one, is not in the backup.
    let report = with_record_keys(&elsewhere, &["verify", &destroyed]);
    assert_eq!(report["verdict"], "DESTROYED", "{report}");
    assert_eq!(report["certificate"], Value::Null, "{report}");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("before this database was restored"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_backup_is_not_restored_without_its_keys() {
    let settings = |config: &mut Config| config.storage.record_keys = Some("record-keys".into());
    let app = TestApp::with(settings, OrgSettings::default()).await;
    app.vaulted_envelope().await;
    let at = tempfile::tempdir().unwrap();
    let backup = at.path().join("backup");
    let from = backup.to_str().unwrap();
    with_record_keys(app.data.path(), &["backup", from]);

    let elsewhere = at.path().join("elsewhere");
    let output = operator_output(&elsewhere, &["restore", from]);
    assert!(
        said(&output).contains("set storage.record_keys"),
        "{}",
        said(&output)
    );

    // The setting names an empty place.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", &elsewhere)
        .env("HOLDFAST_STORAGE__RECORD_KEYS", "other-keys")
        .args(["restore", from])
        .output()
        .unwrap();
    assert!(
        said(&output).contains("no key of any record"),
        "{}",
        said(&output)
    );
    assert!(!elsewhere.join("holdfast.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_key_of_a_record_is_named_when_keys_are_replaced() {
    let settings = |config: &mut Config| config.storage.record_keys = Some("record-keys".into());
    let app = TestApp::with(settings, OrgSettings::default()).await;
    let (damaged, whole) = (app.vaulted_envelope().await, app.vaulted_envelope().await);
    let place = app.data.path().join("record-keys");
    let before = std::fs::read(place.join(&whole)).unwrap();
    std::fs::write(place.join(&damaged), "master damaged").unwrap();

    for act in ["rotate", "reseal"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"))
            .env("HOLDFAST_DATA_DIR", app.data.path())
            .env("HOLDFAST_STORAGE__RECORD_KEYS", "record-keys")
            .args(["--json", "keys", act])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{act}: {}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["damaged_keys"], serde_json::json!([damaged]));
    }
    assert_ne!(std::fs::read(place.join(&whole)).unwrap(), before);
}

/// The keys of records are wrapped by the newest master key, which is in no older backup.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_from_before_a_rotation_is_restored_with_the_newest_master_key() {
    let settings = |config: &mut Config| config.storage.record_keys = Some("record-keys".into());
    let app = TestApp::with(settings, OrgSettings::default()).await;
    let envelope = app.vaulted_envelope().await;
    let at = tempfile::tempdir().unwrap();
    let (backup, elsewhere) = (at.path().join("backup"), at.path().join("elsewhere"));
    let data = app.data.path();
    with_record_keys(data, &["backup", backup.to_str().unwrap()]);
    with_record_keys(data, &["keys", "rotate"]);
    let resealed = with_record_keys(data, &["keys", "reseal"]);
    assert!(resealed["resealed"].as_u64().unwrap() > 0, "{resealed}");

    let keys = files_below(&data.join("record-keys"));
    let with_keys = |data: &Path| {
        let place = data.join("record-keys");
        std::fs::create_dir_all(&place).unwrap();
        for key in &keys {
            std::fs::copy(key, place.join(key.file_name().unwrap())).unwrap();
        }
    };
    let without = at.path().join("without");
    with_keys(&without);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .env("HOLDFAST_DATA_DIR", &without)
        .env("HOLDFAST_STORAGE__RECORD_KEYS", "record-keys")
        .args(["restore", backup.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        said(&output).contains("keys/master.next.key"),
        "{}",
        said(&output)
    );

    with_keys(&elsewhere);
    std::fs::create_dir_all(elsewhere.join("keys")).unwrap();
    let newest = data.join("keys/master.key");
    std::fs::copy(newest, elsewhere.join("keys/master.next.key")).unwrap();
    let restored = with_record_keys(&elsewhere, &["restore", backup.to_str().unwrap()]);
    assert_eq!(restored["unsealed"], 1, "{restored}");

    share_native_code(&elsewhere);
    let report = with_record_keys(&elsewhere, &["verify", &envelope]);
    assert_eq!(report["valid"], true, "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_the_oldest_backup_until_it_is_forgotten() {
    let app = TestApp::start().await;
    let at = tempfile::tempdir().unwrap();
    let backup = at.path().join("backup");
    let found = || {
        let checks = operator(app.data.path(), &["doctor"]);
        let mut checks = checks.as_array().unwrap().clone().into_iter();
        let check = checks.find(|check| check["name"] == "backups").unwrap();
        check["detail"].as_str().unwrap().to_owned()
    };
    operator(app.data.path(), &["backup", backup.to_str().unwrap()]);
    assert!(found().contains("0 days old"), "{}", found());
    assert!(found().contains("set storage.record_keys"), "{}", found());

    let forget = ["backup", "--forget-before", "2100-01-01T00:00:00Z"];
    assert_eq!(operator(app.data.path(), &forget)["forgotten"], 1);
    assert!(found().contains("none is known"), "{}", found());
}
