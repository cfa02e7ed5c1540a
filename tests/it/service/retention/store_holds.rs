//! The object store's own hold (S3 Object Lock), which follows the legal holds.

use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::config::Config;
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
use crate::support::s3::S3Server;
use crate::support::{TestApp, postgres, release_form};

/// Starts a service with its objects in a bucket, and with the setting.
async fn on(server: &S3Server, bucket: &str) -> TestApp {
    with_database(server, bucket, None).await
}

async fn with_database(server: &S3Server, bucket: &str, database: Option<String>) -> TestApp {
    let configure = |config: &mut Config| {
        server.configure(config, bucket);
        config.database_url = database;
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
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (ok, detail) = doctor(&app).await;
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
        detail.ends_with("only S3 with Object Lock has one"),
        "{detail}"
    );

    let mut config = Config::default();
    config.storage.object_lock_holds = true;
    config.data_dir = app.data.path().into();
    let error = start::open_files(&config).err().unwrap().to_string();
    assert!(error.contains("storage.object_lock_holds"), "{error}");
}
