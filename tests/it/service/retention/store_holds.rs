//! The object store's own hold (S3, Azure, Google), which follows the legal holds.

use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::config::{Config, SecretText};
use holdfast::domain::envelope::{Envelope, EnvelopeKind};
use holdfast::domain::id::{CustomerId, HoldId};
use holdfast::domain::job::NextStep;
use holdfast::domain::organization::OrgSettings;
use holdfast::files::StorageArea;
use holdfast::retention::store_holds;
use holdfast::start;
use holdfast::store::envelopes;
use serde_json::Value;

use super::holds::{lift, place, refused};
use crate::service::control::vault_out;
use crate::support::azure::AzureWithHolds;
use crate::support::gcs::FakeGcs;
use crate::support::holds::HeldObjects;
use crate::support::s3::S3Server;
use crate::support::{TestApp, postgres, release_form};

/// Starts a service with its objects in a bucket, and with the setting.
async fn on(server: &S3Server, bucket: &str) -> TestApp {
    with_database(server, bucket, None).await
}

async fn with_database(server: &S3Server, bucket: &str, database: Option<String>) -> TestApp {
    with_store(|config| {
        server.configure(config, bucket);
        config.database_url = database;
    })
    .await
}

/// Starts a service with its objects in this store, and with the setting.
async fn with_store(store: impl FnOnce(&mut Config)) -> TestApp {
    let configure = |config: &mut Config| {
        store(config);
        config.storage.object_lock_holds = true;
        config.sweep_interval = Some(Duration::from_millis(200));
    };
    TestApp::with(configure, OrgSettings::default()).await
}

/// Returns the keys of a record's objects, without the working files of the signing room, which get no hold.
async fn objects(server: &S3Server, id: &str) -> Vec<String> {
    let listing = server.ask("GET", "locked?list-type=2&prefix=holdfast/");
    let listing = listing.await.text().await.unwrap();
    let keys = listing.split("<Key>").skip(1);
    let keys = keys.map(|rest| rest.split('<').next().unwrap().to_owned());
    let keys = keys.filter(|key| key.contains(id) && !key.contains("/room/"));
    keys.collect()
}

/// Counts the objects of a record, and those that the store holds.
async fn held(server: &S3Server, id: &str) -> (usize, usize) {
    let keys = objects(server, id).await;
    let mut held = 0;
    for key in &keys {
        let head = server.ask("HEAD", &format!("locked/{key}")).await;
        let status = head.headers().get("x-amz-object-lock-legal-hold");
        held += usize::from(status.is_some_and(|status| status == "ON"));
    }
    (keys.len(), held)
}

/// Waits until the store holds all objects of a record, or none.
async fn wait_until_held(server: &S3Server, id: &str, is_held: bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (all, held) = held(server, id).await;
        let wanted = if is_held { all } else { 0 };
        if all > 0 && held == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{id}: {held} of {all}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until no walk is under way.
async fn walked(app: &TestApp) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while app.count("job where kind = 'object.hold'").await > 0 {
        assert!(Instant::now() < deadline, "a walk does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns result and detail of the check of holds.
async fn doctor(app: &TestApp) -> (bool, String) {
    let checks = holdfast::doctor::checks(&app.service).await;
    let holds = checks.into_iter().find(|check| check.name == "holds");
    let holds = holds.unwrap();
    (holds.ok, holds.detail)
}

/// Waits until `doctor` reports that the store follows the only hold.
async fn wait_until_reported(app: &TestApp) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (ok, detail) = doctor(app).await;
        assert!(ok, "{detail}");
        if detail.starts_with(
            "1 in force; this program keeps to them, and so does the object store, as of ",
        ) {
            return;
        }
        assert!(Instant::now() < deadline, "{detail}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until a stand-in holds all objects of a record, or none.
async fn wait_for_stand_in(app: &TestApp, held: &HeldObjects, id: &str, is_held: bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let keys = app.service.files.of_record(&app.org, id).await.unwrap();
        let held = keys.iter().filter(|key| held.has(&in_bucket(key))).count();
        let wanted = if is_held { keys.len() } else { 0 };
        if !keys.is_empty() && held == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{id}: {held} of {}", keys.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the key of an object in the bucket of a stand-in.
fn in_bucket(key: &str) -> String {
    format!("holdfast/{key}")
}

/// Places and lifts a hold. A stand-in holds the objects of the held record meanwhile.
async fn the_store_follows_a_hold(app: &TestApp, held: &HeldObjects) {
    let (id, other) = (app.vaulted_envelope().await, app.vaulted_envelope().await);
    let hold = place(app, "envelope", Some(&id)).await;
    wait_for_stand_in(app, held, &id, true).await;
    wait_for_stand_in(app, held, &other, false).await;
    wait_until_reported(app).await;

    lift(app, &hold).await;
    wait_for_stand_in(app, held, &id, false).await;
    // Nothing stands in the way of a release, and of the job that deletes the live copy.
    vault_out(app, &id, release_form()).await.data(200);
}

/// Places a hold that the store cannot follow. The program keeps to it all the same, and the operator learns about it.
async fn an_obstacle_is_reported(app: &TestApp, obstacle: &str) {
    let id = app.vaulted_envelope().await;
    place(app, "envelope", Some(&id)).await;
    walked(app).await;
    refused(&vault_out(app, &id, release_form()).await);
    let (ok, detail) = doctor(app).await;
    assert!(!ok, "{detail}");
    assert!(detail.ends_with(obstacle), "{detail}");

    let state = app.text_of("select store_hold from legal_hold").await;
    let state: Value = serde_json::from_str(&state).unwrap();
    assert!(state["lacking"].as_u64().unwrap() >= 4, "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_held_record_cannot_be_removed_from_the_store() {
    let server = S3Server::moto();
    let app = on(&server, "locked").await;
    let (id, other) = (app.vaulted_envelope().await, app.vaulted_envelope().await);
    let hold = place(&app, "envelope", Some(&id)).await;
    wait_until_held(&server, &id, true).await;
    assert_eq!(held(&server, &other).await.1, 0);

    let keys = objects(&server, &id).await;
    for area in ["signed", "vault", "copies", "certificates"] {
        let key = keys.iter().find(|key| key.contains(&format!("/{area}/")));
        let key = key.expect(area);
        let head = server.ask("HEAD", &format!("locked/{key}")).await;
        let version = head.headers()["x-amz-version-id"].to_str().unwrap();
        let remove = format!("locked/{key}?versionId={version}");
        assert_eq!(server.ask("DELETE", &remove).await.status(), 403, "{area}");
    }

    // Another hold on the same record keeps its objects.
    let whole = place(&app, "organization", None).await;
    wait_until_held(&server, &other, true).await;
    lift(&app, &hold).await;
    walked(&app).await;
    wait_until_held(&server, &id, true).await;

    lift(&app, &whole).await;
    wait_until_held(&server, &id, false).await;
    wait_until_held(&server, &other, false).await;
    // Nothing stands in the way of a release, and of the job that deletes the live copy.
    vault_out(&app, &id, release_form()).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_later_gets_the_hold_of_the_store() {
    let server = S3Server::moto();
    let app = on(&server, "locked").await;
    place(&app, "organization", None).await;
    walked(&app).await;

    let id = app.vaulted_envelope().await;
    wait_until_held(&server, &id, true).await;
    wait_until_reported(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_record_gets_the_legal_hold_of_azure() {
    let server = AzureWithHolds::start(true).await;
    let app = with_store(|config| server.configure(config)).await;
    the_store_follows_a_hold(&app, &server.held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_without_version_level_immutability_is_reported() {
    let server = AzureWithHolds::start(false).await;
    let app = with_store(|config| server.configure(config)).await;
    an_obstacle_is_reported(&app, ", the container has no version-level immutability").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_record_gets_the_temporary_hold_of_google() {
    let server = FakeGcs::start().await;
    let app = with_store(|config| server.configure(config)).await;
    the_store_follows_a_hold(&app, &server.held).await;
}

/// Google refuses to delete a held object, so a deletion takes its hold off before.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_object_of_google_is_deleted_by_this_program_alone() {
    let server = FakeGcs::start().await;
    let app = with_store(|config| server.configure(config)).await;
    let id = app.vaulted_envelope().await;
    place(&app, "envelope", Some(&id)).await;
    wait_for_stand_in(&app, &server.held, &id, true).await;
    app.stop_working();
    // Its tasks end between two steps.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let files = &app.service.files;
    let keys = files.of_record(&app.org, &id).await.unwrap();
    let mut without = Config::default();
    server.configure(&mut without);
    let without = start::open_files(&without).unwrap();
    without.delete(&keys[0]).await.unwrap_err();

    files.delete(&keys[0]).await.unwrap();
    assert!(!server.held.has(&in_bucket(&keys[0])));
    let left = files.of_record(&app.org, &id).await.unwrap();
    assert_eq!(left, keys[1..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_google_that_cannot_change_holds_are_reported() {
    let server = FakeGcs::with_permissions(&[]).await;
    let app = with_store(|config| server.configure(config)).await;
    an_obstacle_is_reported(&app, ", the credentials lack storage.objects.update").await;
}

/// A hold on an organization reaches its records in slices, each of which may be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_reaches_many_records_in_slices() {
    for database in [None, Some(postgres::new_database().await)] {
        reaches_many_records_in_slices(database).await;
    }
}

async fn reaches_many_records_in_slices(database: Option<String>) {
    const RECORDS: usize = 110;
    let server = S3Server::moto();
    let app = with_database(&server, "locked", database).await;
    app.stop_working();
    // Its tasks end between two steps.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (org, now) = (&app.org, app.service.clock.now());
    let mut ids = Vec::new();
    let mut tx = app.service.store.begin().await.unwrap();
    for index in 0..RECORDS {
        let envelope = Envelope::new(
            org.clone(),
            CustomerId::new(),
            format!("Contract {index}"),
            EnvelopeKind::Esign,
            "user:ada@oak.example".into(),
            now,
        );
        envelopes::insert(&mut tx, &envelope).await.unwrap();
        ids.push(envelope.id);
    }
    tx.commit().await.unwrap();
    for (index, id) in ids.iter().enumerate() {
        let bytes = Bytes::from(format!("%PDF-1.7 {index}"));
        let (area, kind) = (StorageArea::Uploads, "application/pdf");
        let put = app.service.files.put(area, org, id.as_str(), bytes, kind);
        put.await.unwrap();
    }

    let hold = place(&app, "organization", None).await;
    let id = HoldId::parse(&hold).unwrap();
    let progress = "select coalesce(store_hold, '{}') from legal_hold";
    let mut slices = 0;
    loop {
        let step = store_holds::follow(&app.service, org, &id).await.unwrap();
        if step == NextStep::Done {
            break;
        }
        slices += 1;
        let state: Value = serde_json::from_str(&app.text_of(progress).await).unwrap();
        assert_eq!(state["walk"]["lacking"], 0, "{state}");
    }
    assert_eq!(slices, RECORDS.div_ceil(48));
    for id in &ids {
        assert_eq!(held(&server, id.as_str()).await, (1, 1));
    }

    let state: Value = serde_json::from_str(&app.text_of(progress).await).unwrap();
    assert!(state["as_of"].is_string(), "{state}");
    assert_eq!(state["lacking"], 0, "{state}");
}

/// The program keeps to the hold all the same, and the operator learns about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_without_object_lock_is_reported() {
    let server = S3Server::moto();
    let app = on(&server, "plain").await;
    let id = app.vaulted_envelope().await;
    let hold = place(&app, "envelope", Some(&id)).await;
    walked(&app).await;
    refused(&vault_out(&app, &id, release_form()).await);
    let (ok, detail) = doctor(&app).await;
    assert!(!ok, "{detail}");
    assert!(detail.contains("the bucket has no Object Lock"), "{detail}");

    let state = app.text_of("select store_hold from legal_hold").await;
    let state: Value = serde_json::from_str(&state).unwrap();
    assert!(state["lacking"].as_u64().unwrap() >= 4, "{state}");

    // Nothing walks over the records of a lifted hold but its own job, which tries again.
    lift(&app, &hold).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    let soon = (app.service.clock.now() + Duration::from_secs(1800)).to_string();
    let run_at = "select run_at from job where kind = 'object.hold'";
    while app.text_of(run_at).await < soon {
        assert!(Instant::now() < deadline, "the walk does not end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_has_no_hold_of_its_own() {
    let app = TestApp::start().await;
    let (ok, detail) = doctor(&app).await;
    assert!(ok, "{detail}");
    assert!(
        detail.ends_with("only S3, Azure and Google have one"),
        "{detail}"
    );

    let mut config = Config::default();
    config.storage.object_lock_holds = true;
    config.data_dir = app.data.path().into();
    let error = start::open_files(&config).err().unwrap().to_string();
    let why = "storage.object_lock_holds needs a storage_url of s3://, az:// or gs://";
    assert!(error.contains(why), "{error}");
}

/// A hold of Azure is no retention of releases.
#[test]
fn azure_does_not_retain_releases() {
    let mut config = Config {
        storage_url: Some("az://plain".into()),
        ..Config::default()
    };
    for (name, value) in [
        ("azure_storage_account_name", "account"),
        ("azure_storage_account_key", "c2VjcmV0"),
    ] {
        let options = &mut config.storage.options;
        options.insert(name.into(), SecretText::new(value));
    }
    config.storage.object_lock_holds = true;
    assert!(start::open_files(&config).is_ok());

    config.storage.archive_retention = Some(Duration::from_secs(86_400));
    let error = start::open_files(&config).err().unwrap().to_string();
    let why = "storage.archive_retention needs a storage_url of s3://";
    assert!(error.contains(why), "{error}");
}
