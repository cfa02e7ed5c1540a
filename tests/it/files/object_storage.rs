//! Remote object stores: S3, Azure and Google, encryption, and Object Lock.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use holdfast::config::{Config, SecretText};
use holdfast::domain::clock::Clock;
use holdfast::domain::organization::OrgSettings;
use holdfast::files::FilesError;
use holdfast::start;
use serde_json::Value;

use crate::journeys::main_job::signed_vaulted_certified_and_released;
use crate::support::azure::AzuriteServer;
use crate::support::gcs::FakeGcs;
use crate::support::s3::S3Server;
use crate::support::{TestApp, envelope_body, files_below, operator_output, padded, release_form};

async fn on(server: &S3Server, bucket: &str, change: impl FnOnce(&mut Config)) -> TestApp {
    let configure = |config: &mut Config| {
        server.configure(config, bucket);
        change(config);
    };
    TestApp::with(configure, OrgSettings::default()).await
}

fn settings(server: &S3Server, bucket: &str) -> Config {
    let mut config = Config::default();
    server.configure(&mut config, bucket);
    config
}

async fn released(app: &TestApp) -> String {
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_vaulted_and_released_on_s3() {
    for server in [S3Server::s3s(), S3Server::moto()] {
        let app = on(&server, "plain", |_| {}).await;
        signed_vaulted_certified_and_released(app).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_vaulted_and_released_on_azure() {
    let server = AzuriteServer::start().await;
    let configure = |config: &mut Config| server.configure(config);
    let app = TestApp::with(configure, OrgSettings::default()).await;
    upload(&app, &padded(12 * 1024 * 1024)).await;
    assert_eq!(files_below(&app.data.path().join("objects")).len(), 0);
    signed_vaulted_certified_and_released(app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_vaulted_and_released_on_google() {
    let server = FakeGcs::start().await;
    let configure = |config: &mut Config| server.configure(config);
    let app = TestApp::with(configure, OrgSettings::default()).await;
    upload(&app, &padded(12 * 1024 * 1024)).await;
    assert_eq!(files_below(&app.data.path().join("objects")).len(), 0);
    assert_eq!(keys(&server.s3, "plain", "uploads").await.len(), 1);
    signed_vaulted_certified_and_released(app).await;
    assert!(server.create_only() >= 4, "{}", server.create_only());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_on_s3_are_not_stored_in_the_data_folder() {
    let server = S3Server::s3s();
    let app = on(&server, "plain", |_| {}).await;
    released(&app).await;
    assert_eq!(server.objects("archive").len(), 1);
    while !server.objects("vault").is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(files_below(&app.data.path().join("objects")).len(), 0);
}

/// Creates a paper envelope with this document.
async fn upload(app: &TestApp, document: &[u8]) {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/upload");
    let stored = app.upload(&path, "application/pdf", document, &[]).await;
    assert_eq!(stored.data(201)["size"], document.len());
}

/// Runs on moto only: s3s-fs would need file names for parts that are too long.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_object_is_uploaded_in_parts() {
    let server = S3Server::moto();
    let app = on(&server, "plain", |_| {}).await;
    let large = padded(12 * 1024 * 1024);
    upload(&app, &large).await;

    let [key] = &keys(&server, "plain", "uploads").await[..] else {
        panic!("one upload, one object");
    };

    let object = server.ask("GET", &format!("plain/{key}")).await;
    let tag = object.headers()["etag"].to_str().unwrap().to_owned();
    assert!(tag.ends_with("-3\""), "three parts: {tag}");
    assert!(object.bytes().await.unwrap() == large);
}

/// Objects are never overwritten: of writers with different bytes, all but one get an error.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_writers_of_a_name_wins() {
    let server = S3Server::moto();
    let config = settings(&server, "plain");
    let files = start::open_files(&config).unwrap();
    files.check().await.unwrap();

    for round in 0..10 {
        let writers = (0..16).map(|writer| {
            let (files, name) = (files.clone(), format!("ledger/checkpoints/{round:020}"));
            async move {
                files
                    .keep(&name, Bytes::from(format!("head {writer}")))
                    .await
            }
        });
        let answers = futures::future::join_all(writers).await;
        let kept = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(kept, 1, "{answers:?}");

        let refused = |answer: &Result<_, _>| matches!(answer, Err(FilesError::Tampered { .. }));
        assert_eq!(answers.iter().filter(|answer| refused(answer)).count(), 15);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_login_error_hides_the_credentials() {
    let server = S3Server::s3s();
    let mut config = settings(&server, "plain");
    let wrong = SecretText::new("not-the-secret");
    config
        .storage
        .options
        .insert("aws_secret_access_key".into(), wrong);

    let error = start::open_files(&config)
        .unwrap()
        .check()
        .await
        .unwrap_err();
    let text = format!("{error} {config:?}");
    assert!(error.to_string().starts_with("object store: "), "{error}");
    assert!(!text.contains("not-the-secret"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_encrypted_by_the_store_when_configured() {
    let server = S3Server::moto();
    let app = on(&server, "plain", |config| {
        let name = "aws_server_side_encryption".to_owned();
        let options = &mut config.storage.options;
        options.insert(name, SecretText::new("AES256"));
    })
    .await;
    app.vaulted_envelope().await;

    let [object] = &keys(&server, "plain", "vault").await[..] else {
        panic!("one envelope, one authoritative copy");
    };

    let head = server.ask("HEAD", &format!("plain/{object}")).await;
    assert_eq!(head.headers()["x-amz-server-side-encryption"], "AES256");
}

/// Returns the keys of the objects in an area.
async fn keys(server: &S3Server, bucket: &str, area: &str) -> Vec<String> {
    let path = format!("{bucket}?list-type=2&prefix=holdfast/{area}/");
    let listing = server.ask("GET", &path).await.text().await.unwrap();
    let keys = listing.split("<Key>").skip(1);
    keys.map(|rest| rest.split('<').next().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_document_cannot_be_removed_before_its_lock_ends() {
    let server = S3Server::moto();
    let app = on(&server, "locked", |config| {
        config.storage.archive_retention = Some(Duration::from_secs(2_555 * 86_400));
    })
    .await;
    let before = Clock::default().now();
    let id = released(&app).await;

    let [archive] = &keys(&server, "locked", "archive").await[..] else {
        panic!("one release, one archive");
    };

    let object = server.ask("HEAD", &format!("locked/{archive}")).await;
    let header = |name: &str| object.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("x-amz-object-lock-mode"), "COMPLIANCE");

    let until = before + Duration::from_secs(2_555 * 86_400);
    let day = until.to_string()[..10].to_owned();
    assert!(header("x-amz-object-lock-retain-until-date").starts_with(&day));

    let version = header("x-amz-version-id");
    let remove = format!("locked/{archive}?versionId={version}");
    assert_eq!(server.ask("DELETE", &remove).await.status(), 403);

    // A repeated release succeeds too.
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);

    // Only the released archive is locked; live copies can be removed.
    while !keys(&server, "locked", "vault").await.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A release is not acknowledged before the store has locked its archive.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_fails_without_the_required_object_lock() {
    let server = S3Server::moto();
    let app = on(&server, "plain", |config| {
        config.storage.archive_retention = Some(Duration::from_secs(86_400));
    })
    .await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    let refused = app.post(&path, release_form()).await;
    assert_eq!(refused.error(500), "Internal server error");

    let status = app.get(&format!("/partner/envelopes/{id}/status")).await;
    assert_eq!(status.data(200)["status"], "vaulted");

    let mut config = Config::default();
    config.storage.archive_retention = Some(Duration::from_secs(86_400));
    config.data_dir = app.data.path().into();
    let error = start::open_files(&config).err().unwrap().to_string();
    assert!(error.contains("storage.archive_retention"), "{error}");
}

fn key_file(folder: &Path, keys: &[(&str, u8)]) -> std::path::PathBuf {
    let lines = keys.iter();
    let lines = lines.map(|(name, byte)| format!("{name} {}\n", STANDARD.encode([*byte; 32])));
    let path = folder.join("document-keys");
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.starts_with(b"HFE1") && !bytes.windows(5).any(|part| part == b"%PDF-")
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_encrypted_before_they_reach_the_object_store() {
    let folder = tempfile::tempdir().unwrap();
    let keys = key_file(folder.path(), &[("2026", 1)]);
    let configure = |config: &mut Config| config.storage.encryption_key_file = Some(keys.clone());
    let app = TestApp::with(configure, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    let areas = [
        "templates",
        "room",
        "signed",
        "vault",
        "copies",
        "certificates",
    ];
    for area in areas {
        let objects = app.objects(area);
        assert!(!objects.is_empty(), "{area}");
        for object in objects {
            assert!(is_encrypted(&std::fs::read(object).unwrap()), "{area}");
        }
    }

    // A caller with access reads the decrypted bytes.
    let copy = app
        .get(&format!("/partner/envelopes/{id}/vault/copy/signed-url"))
        .await;
    let url = copy.data(200)["signed_url"].as_str().unwrap().to_owned();
    let copy = app.get(&url).await;
    assert!(copy.bytes.starts_with(b"%PDF-"));

    // Objects that were encrypted with an older key stay readable.
    key_file(folder.path(), &[("2027", 2), ("2026", 1)]);
    let rotated = app.another_node(configure).await;
    let bundle = rotated.released_bundle(&id).await;
    let (folder, key) = (bundle.path().to_str().unwrap(), app.ledger_key().await);
    let verified = operator_output(app.data.path(), &["verify", folder, "--key", &key]);
    assert!(verified.status.success());

    // A large upload is encrypted in pieces.
    upload(&app, &padded(6 * 1024 * 1024)).await;
    let [upload] = &app.objects("uploads")[..] else {
        panic!("one upload, one object");
    };
    assert!(is_encrypted(&std::fs::read(upload).unwrap()));

    // A node without the key serves none of them and returns a clear error.
    let without = app.another_node(|_| {}).await;
    let link = without
        .get(&format!("/partner/envelopes/{id}/vault/copy/signed-url"))
        .await;
    let url = link.data(200)["signed_url"].as_str().unwrap().to_owned();
    let refused = without.get(&url).await;
    assert_eq!(refused.error(500), "Internal server error");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_encrypted_with_a_kms_key() {
    let server = S3Server::moto();
    let app = on(&server, "plain", |config| {
        config.storage.encryption_kms_key = server.kms_key.clone();
    })
    .await;
    released(&app).await;

    let [archive] = &keys(&server, "plain", "archive").await[..] else {
        panic!("one release, one archive");
    };

    let object = server.ask("GET", &format!("plain/{archive}")).await;
    let object = object.bytes().await.unwrap();
    assert!(is_encrypted(&object));
    assert!(object[6..].starts_with(b"kms "));

    let mut config = settings(&server, "plain");
    config.storage.encryption_kms_key = Some("alias/unknown".into());
    let files = start::open_files(&config).unwrap();
    let org = holdfast::domain::id::OrgId::new();
    let put = files.put(
        holdfast::files::StorageArea::Vault,
        &org,
        "owner",
        Bytes::new(),
        "text/plain",
    );
    let error = put.await.unwrap_err().to_string();
    assert!(error.starts_with("AWS kms: 400"), "{error}");
}
