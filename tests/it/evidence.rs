//! Evidence bundles: their statements, their anchors, and the tampering that they reveal.

use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use holdfast::components::{ComponentArtifact, built_in, compliance_alone};
use holdfast::domain::checkpoint::{CheckpointSigner, VerifierKey};
use holdfast::domain::clock::Clock;
use holdfast::domain::component::ComponentIdentity;
use holdfast::domain::component::{Component, ComponentActivation, ConformanceResult, Slot};
use holdfast::domain::hash::sha256;
use holdfast::domain::id::{ActivationId, ComponentId};
use holdfast::domain::organization::{OrgSettings, Scope};
use holdfast::evidence::{
    self, Bundle, CertificateRules, EvidenceVerdict, Rules, TrustedLogs, VerificationReport,
};
use holdfast::store::components;
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::service::control::Party;
use crate::support::{
    CONTRACT, TestApp, envelope_body, operator, operator_output, release_form, verifier_text,
};

#[path = "../../host/crates/evidence/tests/walk/mod.rs"]
mod walk;

use walk::{Files, changed_bundles};

/// Releases an envelope and fetches its bundle.
async fn released(app: &TestApp, id: &str) -> Vec<u8> {
    let release = format!("/partner/envelopes/{id}/vault-out");
    app.post(&release, release_form()).await.data(200);
    let bundle = format!("/partner/envelopes/{id}/bundle");
    let bundle = app.get(&bundle).await;
    assert_eq!(bundle.status, 200, "{}", bundle.text());
    bundle.bytes
}

fn unzipped(zip: &[u8]) -> Files {
    let mut zip = zip::ZipArchive::new(Cursor::new(zip)).unwrap();
    let mut files = Files::new();
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(entry.name().to_owned(), bytes);
    }

    files
}

/// Files of a bundle without its own account of the exports, which grows with each.
fn contents(zip: &[u8]) -> Files {
    let mut files = unzipped(zip);
    for of_this_export in ["EVIDENCE-COPY.txt", "custody-ledger.json"] {
        files.remove(of_this_export).unwrap();
    }
    files
}

fn zipped(files: &Files) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Runs `holdfast verify` without an installation and returns its exit code and report.
async fn verified(zip: &[u8], more: &[&str]) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.zip");
    std::fs::write(&bundle, zip).unwrap();
    let bundle = bundle.to_str().unwrap().to_owned();
    let more: Vec<String> = more.iter().map(|text| (*text).to_owned()).collect();
    let output = tokio::task::spawn_blocking(move || {
        let mut arguments = vec!["verify", &bundle];
        arguments.extend(more.iter().map(String::as_str));
        operator_output(folder.path(), &arguments)
    });
    let output = output.await.unwrap();
    let code = output.status.code().unwrap();

    (code, serde_json::from_slice(&output.stdout).unwrap())
}

#[track_caller]
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    let found = checks.find(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {report:#}"))
}

fn file(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Starts another installation with another log name.
async fn elsewhere() -> TestApp {
    let named = |config: &mut holdfast::config::Config| {
        config.public_url = Some("https://elsewhere.example".parse().unwrap());
    };
    TestApp::with(named, OrgSettings::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_report_states_how_the_bundle_is_anchored() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let zip = released(&app, &id).await;
    let key = app.ledger_key().await;
    let folder = tempfile::tempdir().unwrap();
    let size = check(&verified(&zip, &[]).await.1, "log")["detail"]
        .as_str()
        .and_then(|detail| detail.split(' ').nth(5)?.parse::<u64>().ok())
        .unwrap();
    let head = app.get_as("", &format!("/ledger/head?since={size}")).await;
    let head = file(folder.path(), "head.json", &head.bytes);

    let trust = file(
        folder.path(),
        "trust",
        format!("# logs that we know\n\n{key}\n"),
    );

    let (code, report) = verified(&zip, &[]).await;
    assert_eq!(report["verdict"], "CONSISTENT, NOT ANCHORED", "{report:#}");
    assert_eq!(
        (code, &report["anchored"], &report["anchor"]),
        (3, &json!(false), &Value::Null)
    );
    assert_eq!(report["valid"], false);

    for (arguments, kind) in [
        (["--key", &key], "key"),
        (["--head", &head], "head"),
        (["--trust", &trust], "trust"),
    ] {
        let (code, report) = verified(&zip, &arguments).await;
        assert_eq!(report["verdict"], "VALID", "{report:#}");
        assert_eq!((code, &report["anchored"]), (0, &json!(true)));

        let anchor = json!({
            "kind": kind, "log": "127.0.0.1:8080/api/v2/ledger", "public_key": key,
        });
        assert_eq!(report["anchor"], anchor);
    }
}

/// Returns the text that `holdfast-verify` prints for people.
async fn printed(zip: &[u8], more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let bundle = file(folder.path(), "bundle.zip", zip);
    let more: Vec<String> = more.iter().map(|text| (*text).to_owned()).collect();
    let output = tokio::task::spawn_blocking(move || {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let _kept = folder;
        verifier_text(&bundle, &more)
    });

    String::from_utf8(output.await.unwrap().stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_line_of_a_report_says_what_a_verdict_does_not_mean() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let zip = released(&app, &id).await;
    let key = app.ledger_key().await;
    let (_, report) = verified(&zip, &["--key", &key]).await;
    let score = report["rules_result"]["score"].as_u64().unwrap();
    assert_eq!(report["rules_result"]["compliant"], score == 100);

    let stated = app.entry(&id, "compliance.evaluated").await["score"].clone();
    assert_eq!(stated, score);

    let valid = printed(&zip, &["--key", &key]).await;
    let mut lines = valid.lines();
    let first = format!(
        "VALID: evidence unchanged and anchored; rules result {score} of 100; no finding on \
         enforceability"
    );
    assert_eq!(lines.next(), Some(first.as_str()));
    assert_eq!(lines.next().map(str::trim), Some(id.as_str()));

    let unknown_log = printed(&zip, &[]).await;
    let first = unknown_log.lines().next().unwrap();
    assert!(first.starts_with("CONSISTENT, NOT ANCHORED: "), "{first}");
    assert!(first.ends_with("no finding on enforceability"), "{first}");

    let mut files = unzipped(&zip);
    files.get_mut("certified-vaulted-copy.pdf").unwrap().push(0);
    let changed = zipped(&files);
    let (_, report) = verified(&changed, &["--key", &key]).await;
    assert_eq!(report["rules_result"], Value::Null);

    let not_valid = printed(&changed, &["--key", &key]).await;
    let first = not_valid.lines().next().unwrap();
    assert!(first.starts_with("NOT VALID: "), "{first}");
    assert!(!first.contains("of 100"), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_with_a_file_that_is_none_of_its_own_is_not_valid() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let zip = released(&app, &id).await;
    let key = app.ledger_key().await;
    let genuine = unzipped(&zip);
    let placeholder = "authoritative.pdX";

    for forged_first in [true, false] {
        // The forged file gets the name of the genuine one once both are written.
        let mut files: Vec<(&str, &[u8])> = genuine
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        let at = if forged_first { 0 } else { files.len() };
        files.insert(at, (placeholder, b"%PDF forged"));

        let forged = renamed(listed(&files), placeholder, "authoritative.pdf");
        let (code, report) = verified(&forged, &["--key", &key]).await;
        assert_eq!((code, &report["verdict"]), (1, &json!("NOT VALID")));

        let detail = check(&report, "archive")["detail"].as_str().unwrap();
        assert!(
            detail.contains("authoritative.pdf is in the archive twice"),
            "{detail}"
        );
    }

    for name in [
        "notes.txt",
        "../authoritative.pdf",
        "/etc/passwd",
        "components/x.wasm",
    ] {
        let mut files = genuine.clone();
        files.insert(name.to_owned(), b"more".to_vec());
        let (code, report) = verified(&zipped(&files), &["--key", &key]).await;
        assert_eq!((code, &report["verdict"]), (1, &json!("NOT VALID")));
        let detail = check(&report, "archive")["detail"].as_str().unwrap();
        assert!(detail.contains(name), "{detail}");
    }

    let trailing = [zip.clone(), b"more".to_vec()].concat();
    assert_eq!(verified(&trailing, &["--key", &key]).await.0, 1);

    let leading = [b"more".to_vec(), zip].concat();
    assert_eq!(verified(&leading, &["--key", &key]).await.0, 1);
}

/// Writes files to a zip in this order.
fn listed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Gives a file of a zip another name of the same length, in the list and in front of its bytes.
fn renamed(mut zip: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let windows = zip.windows(from.len()).enumerate();
    let found = windows.filter(|(_, window)| *window == from.as_bytes());
    let places: Vec<usize> = found.map(|(at, _)| at).collect();
    assert_eq!((places.len(), from.len()), (2, to.len()));
    for at in places {
        zip[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    zip
}

/// Bundles of earlier releases verify as they did: their ledgers do not name the organization, and their
/// component ledgers do not list the files.
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_the_first_release_stays_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/bundle-2026-11");
    let zip = std::fs::read(folder.join("bundle.zip")).unwrap();
    let key = std::fs::read_to_string(folder.join("log-key")).unwrap();
    let (code, report) = verified(&zip, &["--key", key.trim()]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );
    assert_eq!(check(&report, "organization")["ok"], Value::Null);

    // The head in its certificate is an older one, which the bundle's proofs lead to.
    let certificate = &unzipped(&zip)["ucc-compliance-certificate.json"];
    let certificate: Value = serde_json::from_slice(certificate).unwrap();
    let kept = tempfile::tempdir().unwrap();
    let note = certificate["ledger_checkpoint"].as_str().unwrap();
    let head = file(kept.path(), "head", note);
    let (code, report) = verified(&zip, &["--head", &head]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_of_another_installation_is_invalid() {
    let app = TestApp::start().await;
    app.custody(&app.vaulted_envelope().await).await;
    let other = elsewhere().await;
    let (id, _) = vaulted_upload(&other, "application/pdf", CONTRACT).await;
    let zip = released(&other, &id).await;
    let key = app.ledger_key().await;
    let folder = tempfile::tempdir().unwrap();
    let trust = file(folder.path(), "trust", &key);

    let (code, report) = verified(&zip, &["--key", &key]).await;
    assert_eq!((code, &report["verdict"]), (1, &json!("NOT VALID")));
    assert_eq!(report["anchored"], false);

    let (code, report) = verified(&zip, &["--trust", &trust]).await;
    let expected = json!("CONSISTENT, NOT ANCHORED");
    assert_eq!((code, &report["verdict"]), (3, &expected), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_verify_arguments_are_a_usage_error() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let zip = released(&app, &id).await;
    let folder = tempfile::tempdir().unwrap();
    let garbage = file(folder.path(), "garbage.json", "{}");
    let text = file(folder.path(), "text", "no key\n");
    let missing = folder.path().join("missing");

    let missing = missing.to_str().unwrap();
    for (arguments, message) in [
        (
            ["--key", "vault.example+00000000+AAAA"],
            "--key: not a verifier key",
        ),
        (["--head", &garbage], "the given head cannot be read"),
        (["--head", missing], "missing: No such file"),
        (["--trust", &text], "line 1: not a verifier key: no key"),
    ] {
        let (code, answer) = verified(&zip, &arguments).await;
        let error = answer["error"].as_str().unwrap();
        assert_eq!(code, 2, "{answer}");
        assert!(error.contains(message), "{error}");
    }

    let (code, answer) = verified(b"no zip", &[]).await;
    assert_eq!(code, 2, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vaulted_envelope_is_verified_by_id() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let verify = async |id: &str| {
        let (data, id) = (app.data.path().to_owned(), id.to_owned());
        let output = tokio::task::spawn_blocking(move || operator_output(&data, &["verify", &id]));
        let output = output.await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), report)
    };
    let (code, report) = verify(&id).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );

    assert_eq!(report["anchor"]["kind"], "installation");
    let history = check(&report, "history")["detail"].as_str().unwrap();
    assert!(history.contains("the ledger has no release"), "{history}");

    let sent = app.sent_envelope().await;
    let (code, report) = verify(sent["envelope_id"].as_str().unwrap()).await;
    assert_eq!(code, 1, "{report}");
    assert_eq!(report["error"], "Envelope has not been vaulted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_vault_release_fetches_the_bundle() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/bundle");
    let early = app.get(&path).await;
    assert_eq!(early.error(409), "Envelope has not been released");

    let zip = released(&app, &id).await;
    let of_web_app = app
        .get_with_bearer(&app.admin(), &format!("/envelopes/{id}/bundle"))
        .await;
    assert_eq!(contents(&zip), contents(&of_web_app.bytes));

    let reader = app.key_with(&[Scope::VaultRead]).await;
    app.get_as(&reader, &path).await.error(403);
    let stranger = app.other_organization().await;
    app.get_as(&stranger, &path).await.error(404);
}

/// A compliance officer verifies, replays and exports without access to the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_compliance_officer_verifies_replays_and_exports_a_record() {
    let app = TestApp::start().await;
    let officer = app.token("compliance");
    let id = app.vaulted_envelope().await;
    let ask = async |token: &str, id: &str, what: &str| {
        app.post_with_bearer(token, &format!("/envelopes/{id}/{what}"), json!({}))
            .await
    };
    let report = ask(&officer, &id, "verify").await.data(200);
    assert_eq!(
        (&report["verdict"], &report["envelope_id"]),
        (&json!("VALID"), &json!(id)),
        "{report:#}"
    );

    let replayed = ask(&officer, &id, "replay").await.data(200);
    let replayed = replayed.as_array().unwrap();
    assert!(
        replayed.len() > 3 && replayed.iter().all(|one| one["same"] == true),
        "{replayed:#?}"
    );

    let zip = released(&app, &id).await;
    let bundle = app
        .get_with_bearer(&officer, &format!("/envelopes/{id}/bundle"))
        .await;
    assert_eq!(contents(&zip), contents(&bundle.bytes));
    assert_eq!(
        ask(&officer, &id, "verify").await.data(200)["verdict"],
        "VALID"
    );

    let sent = app.sent_envelope().await;
    let sent = sent["envelope_id"].as_str().unwrap();
    assert_eq!(
        ask(&officer, sent, "verify").await.error(409),
        "Envelope has not been vaulted"
    );
    assert!(
        !ask(&officer, sent, "replay")
            .await
            .data(200)
            .as_array()
            .unwrap()
            .is_empty()
    );

    let (member, stranger) = (app.token("member"), app.other_admin());
    for what in ["verify", "replay"] {
        ask(&member, &id, what).await.error(403);
        assert_eq!(
            ask(&stranger, &id, what).await.error(404),
            "Envelope not found"
        );
    }
}

/// A bundle contains its rules, so that anyone can evaluate it again.
#[tokio::test(flavor = "multi_thread")]
async fn bundles_under_the_rules_of_2022_are_valid() {
    let app = TestApp::start().await;
    let pack = built_in()
        .find(|artifact| artifact.identity.name == "holdfast-compliance-ucc2022")
        .unwrap();
    let listed = operator(app.data.path(), &["component", "list"]);
    let mut listed = listed.as_array().unwrap().iter();
    let listed = listed.find(|one| one["sha256"] == pack.identity.sha256);
    activate(&app, listed.unwrap()).await;

    let id = app.vaulted_envelope().await;
    let zip = released(&app, &id).await;
    let key = app.ledger_key().await;
    let (code, report) = verified(&zip, &["--key", &key]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );

    let files = unzipped(&zip);
    let carried = format!("components/{}.wasm", pack.identity.sha256);
    assert_eq!(files[&carried], pack.bytes().as_ref());

    let ledger = check(&report, "component ledger")["detail"].clone();
    assert!(
        ledger.as_str().unwrap().contains("the activations of 1"),
        "{ledger}"
    );
}

async fn activate(app: &TestApp, component: &Value) -> Value {
    let slot = component["slot"].as_str().unwrap();
    let path = format!("/component-slots/{slot}/activate");
    let body = json!({ "component_id": component["component_id"] });
    app.post_with_bearer(&app.admin(), &path, body)
        .await
        .data(201)
}

/// Uploads and activates a component that behaves like the slot's default.
pub async fn own(app: &TestApp, slot: Slot, name: &str) -> (Vec<u8>, Value) {
    let bytes = variant(slot, name);
    let upload = app
        .upload_component(&app.admin(), name, "1.0.0", &bytes)
        .await;
    let component = upload.data(201);
    let activation = activate(app, &component).await;
    (bytes, activation)
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_rules_leave_the_bundle_intact_and_not_re_evaluated() {
    let app = TestApp::start().await;
    let (rules, _) = own(&app, Slot::Compliance, "acme-rules").await;
    let id = app.vaulted_envelope().await;
    let zip = released(&app, &id).await;
    let key = app.ledger_key().await;
    let (code, report) = verified(&zip, &["--key", &key]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );

    let mut files = unzipped(&zip);
    files.retain(|name, _| !name.starts_with("components/"));
    let bare = zipped(&files);
    let (code, report) = verified(&bare, &["--key", &key]).await;
    let expected = json!("INTACT, NOT RE-EVALUATED");
    assert_eq!((code, &report["verdict"]), (4, &expected), "{report:#}");
    assert_eq!(check(&report, "re-evaluation")["ok"], Value::Null);
    assert_eq!(report["anchored"], true);

    let folder = tempfile::tempdir().unwrap();
    let right = file(folder.path(), "right.wasm", &rules);
    let wrong = file(
        folder.path(),
        "wrong.wasm",
        variant(Slot::Compliance, "another"),
    );
    let (code, _) = verified(&bare, &["--key", &key, "--component", &wrong]).await;
    assert_eq!(code, 4);

    let (code, report) = verified(&bare, &["--key", &key, "--component", &right]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );
}

/// After a change of control, the rules of that day write the certificate. The bundle has them, and who activated
/// them.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_a_later_certificate_are_in_the_bundle() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let (rules, activation) = own(&app, Slot::Compliance, "acme-rules").await;
    let lender = Party::new(&app).await;
    let path = format!("/partner/control/records/{id}/designate");
    let body = json!({ "controller": lender.org });
    app.post(&path, body).await.data(200);

    lender.act(&app, &id, "accept", json!({})).await.data(200);
    let certified = app.wait_for_entry(&id, "compliance.certified").await;
    assert_eq!(certified["components"][0]["name"], "acme-rules");

    let release = lender.act(&app, &id, "release", release_form()).await;
    release.data(200);
    let path = format!("/partner/control/records/{id}/bundle");
    let zip = app.get_as(&lender.key, &path).await.bytes;
    let key = app.ledger_key().await;
    let (code, report) = verified(&zip, &["--key", &key]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );
    assert_eq!(check(&report, "re-evaluation")["ok"], true);

    let files = unzipped(&zip);
    let carried = format!("components/{}.wasm", sha256(&rules));
    assert_eq!(files[&carried], rules);

    let ledger: Value = serde_json::from_slice(&files["component-ledger.json"]).unwrap();
    let activated = &ledger["entries"][1]["details"]["activation_id"];
    assert_eq!(*activated, activation["activation_id"]);

    // Without them, or without who activated them, the check is open and not passed.
    for name in [carried.as_str(), "component-ledger.json"] {
        let mut files = files.clone();
        files.remove(name);
        let (code, report) = verified(&zipped(&files), &["--key", &key]).await;
        assert_eq!(code, 4, "{name}: {report:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn components_can_be_downloaded() {
    let app = TestApp::start().await;
    let (bytes, activation) = own(&app, Slot::Lifecycle, "acme-moves").await;
    let id = activation["component_id"].as_str().unwrap();
    let path = format!("/components/{id}/artifact");
    let answer = app.get_with_bearer(&app.admin(), &path).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/wasm");

    let disposition = answer.headers["content-disposition"].to_str().unwrap();
    assert_eq!(
        disposition,
        "attachment; filename=\"acme-moves-1.0.0.wasm\""
    );
    assert!(answer.bytes == bytes);

    let member = app.token("member");
    app.get_with_bearer(&member, &path).await.error(403);
    let other = app.get_with_bearer(&app.other_admin(), &path).await;
    assert_eq!(other.error(404), "Component not found");

    let defaults = operator(app.data.path(), &["component", "list"]);
    let mut defaults = defaults.as_array().unwrap().iter();
    let default = defaults
        .find(|one| one["slot"] == "rules.compliance")
        .unwrap();
    let id = default["component_id"].as_str().unwrap();
    let path = format!("/components/{id}/artifact");
    let answer = app.get_with_bearer(&app.admin(), &path).await;
    assert_eq!(sha256(&answer.bytes), default["sha256"].as_str().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_certificate_and_bundle_name_every_component() {
    let app = TestApp::start().await;
    let (_, activation) = own(&app, Slot::Documents, "acme-documents").await;
    let (_, lifecycle) = own(&app, Slot::Lifecycle, "acme-moves").await;
    let id = app.vaulted_envelope().await;
    let stored = app.entry(&id, "vault.stored").await;
    let named: Vec<(&str, &str, &str)> = stored["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |member: &str| one[member].as_str().unwrap();
            assert_eq!(text("sha256").len(), 64);
            assert!(!text("version").is_empty());
            (text("slot"), text("name"), text("owner"))
        })
        .collect();
    assert_eq!(
        named,
        [
            ("rules.compliance", "holdfast-compliance", "default"),
            ("rules.lifecycle", "acme-moves", "organization"),
            ("rules.placement", "holdfast-placement", "default"),
            ("rules.documents", "acme-documents", "organization"),
            // The component of the organization is older than copies as new files.
            ("rules.documents", "holdfast-documents", "default"),
            ("provider.signing", "holdfast-signing-embedded", "default"),
        ]
    );

    let ids = |component: &Value| component["activation_id"].clone();
    assert_eq!(ids(&stored["components"][0]), Value::Null);
    assert_eq!(ids(&stored["components"][1]), lifecycle["activation_id"]);
    assert_eq!(ids(&stored["components"][3]), activation["activation_id"]);

    let certificate = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&certificate).await.data(200);
    assert_eq!(
        certificate["provenance"]["components"],
        stored["components"]
    );

    let zip = released(&app, &id).await;
    let files = unzipped(&zip);
    let ledger: Value = serde_json::from_slice(&files["component-ledger.json"]).unwrap();
    let actions: Vec<&str> = ledger["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            assert_eq!(entry["chain"], app.org.as_str());
            entry["action"].as_str().unwrap()
        })
        .collect();

    let both = ["component.uploaded", "component.activated"];
    assert_eq!(actions, [both, both].concat());

    let (code, report) = verified(&zip, &["--key", &app.ledger_key().await]).await;
    assert_eq!(
        (code, &report["verdict"]),
        (0, &json!("VALID")),
        "{report:#}"
    );

    let components = check(&report, "components")["detail"].as_str().unwrap();
    assert!(
        components.contains("acme-documents 1.0.0 (the organization's own)"),
        "{components}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_uploaded_component_serves_the_built_in_instance() {
    let app = TestApp::start().await;
    for slot in [
        Slot::Signing,
        Slot::Payment,
        Slot::Kba,
        Slot::Messaging,
        Slot::Conversion,
    ] {
        let name = format!("acme-{}", slot.as_str().rsplit('.').next().unwrap());
        let bytes = variant(slot, &name);
        let upload = app
            .upload_component(&app.admin(), &name, "1.0.0", &bytes)
            .await;
        let component = upload.data(201);

        let path = format!("/component-slots/{slot}/activate");
        for body in [
            json!({ "component_id": component["component_id"] }),
            json!({ "component_id": component["component_id"], "instance": "embedded" }),
        ] {
            let answer = app.post_with_bearer(&app.admin(), &path, body).await;
            assert_eq!(answer.json()["details"][0]["path"], json!(["instance"]));
            assert_eq!(answer.error(422), "Validation failed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_default_components_are_reserved() {
    let app = TestApp::start().await;
    let bytes = variant(Slot::Compliance, "looks like a default");
    for name in ["holdfast-compliance", "holdfast-documents"] {
        for version in ["0.1.0", "9.0.0"] {
            let answer = app
                .upload_component(&app.admin(), name, version, &bytes)
                .await;
            assert_eq!(answer.json()["details"][0]["path"], json!(["name"]));
            assert_eq!(answer.error(422), "Validation failed");
        }
    }
}

/// Vaults an upload; returns the envelope's id and the authoritative copy.
pub async fn vaulted_upload(app: &TestApp, kind: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let upload = format!("/partner/envelopes/{id}/upload");
    app.upload(&upload, kind, bytes, &[]).await.data(201);
    let vault_in = format!("/partner/envelopes/{id}/vault-in-upload");
    app.post(&vault_in, json!({})).await.data(200);

    let mut objects = app.objects("vault").into_iter();
    let copy = objects.find(|path| path.to_string_lossy().contains(&id));
    (id, std::fs::read(copy.unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn executed_bytes_are_preserved_or_their_replacement_is_recorded() {
    let app = TestApp::start().await;
    let (id, copy) = vaulted_upload(&app, "application/pdf", CONTRACT).await;
    assert!(copy.starts_with(CONTRACT));

    let stored = app.entry(&id, "vault.stored").await;
    assert_eq!(stored["rewritten"], Value::Null);
    assert_eq!(stored["signed_document_size"], CONTRACT.len());

    let picture: &[u8] = include_bytes!("../fixtures/scan.png");
    let mut damaged = CONTRACT.to_vec();
    let at = damaged
        .windows(9)
        .rposition(|window| window == b"startxref");
    damaged.truncate(at.unwrap());
    damaged.extend_from_slice(b"startxref\n99999999\n%%EOF\n");

    for (kind, bytes, reason) in [
        ("image/png", picture, "the upload is a picture (image/png)"),
        (
            "application/pdf",
            &damaged,
            "the document's structure had to be repaired to add to it",
        ),
    ] {
        let (id, copy) = vaulted_upload(&app, kind, bytes).await;
        assert!(!copy.starts_with(bytes));

        let rewritten = app.entry(&id, "vault.stored").await["rewritten"].clone();
        let size = rewritten["rewritten_size"].as_u64().unwrap();
        let beginning = &copy[..usize::try_from(size).unwrap()];
        assert_eq!(rewritten["rewritten_hash"], sha256(beginning));
        assert_eq!(rewritten["executed_hash"], sha256(bytes));
        assert_eq!(rewritten["reason"], reason);
        assert_eq!(rewritten["component"]["name"], "holdfast-documents");

        let certificate = format!("/partner/envelopes/{id}/vault/certificate");
        let certificate = app.get(&certificate).await.data(200);
        assert_eq!(certificate["provenance"]["rewritten"], rewritten);

        let report = operator(app.data.path(), &["verify", &id]);
        let executed = check(&report, "executed document")["detail"].as_str();
        let expected = format!("REWRITTEN: {reason}");
        assert!(executed.unwrap().starts_with(&expected), "{report:#}");
    }
}

/// Returns the rules that the ledger in `files` names, from this release or from the bundle.
fn rules(files: &Files, cache: &Path) -> Rules {
    let bundle = Bundle::from_zip(zipped(files)).unwrap();
    let named: ComponentIdentity = bundle.deciding_component().ok_or("names none")?;
    let known = holdfast::components::known_compliance(&named);
    let artifact = match (known, bundle.component(&named.sha256)) {
        (Some(known), _) => known,
        (None, Some(bytes)) => {
            ComponentArtifact::uploaded(Slot::Compliance, &named.name, &named.version, bytes)
        }
        (None, None) => return Err("not at hand".into()),
    };
    let loaded = compliance_alone(cache.into(), [9; 32], &artifact, None);

    Ok(Box::new(loaded.map_err(|error| error.to_string())?))
}

/// Returns the report on a bundle, or none when a required file is missing.
fn judged(files: &Files, key: &str, rules: &Rules) -> Option<VerificationReport> {
    let mut trusted = TrustedLogs::default();
    trusted.components(holdfast::components::known_digests());
    trusted.key(key).unwrap();
    let bundle = Bundle::from_zip(zipped(files)).unwrap();
    evidence::verify(&bundle, rules, &Err("no facts".into()), &trusted).ok()
}

/// Exchanges every file for the same file of another valid bundle, every component for another
/// one, and every proof for one of another log.
#[tokio::test(flavor = "multi_thread")]
async fn no_tampered_bundle_is_valid() {
    let (app, other) = (TestApp::start().await, elsewhere().await);
    own(&app, Slot::Compliance, "acme-rules").await;
    own(&app, Slot::Lifecycle, "acme-moves").await;

    let mut bundles = Vec::new();
    for _ in 0..2 {
        let id = app.vaulted_envelope().await;
        bundles.push(unzipped(&released(&app, &id).await));
    }

    let (foreign, _) = vaulted_upload(&other, "application/pdf", CONTRACT).await;
    let foreign = unzipped(&released(&other, &foreign).await);
    let (key, foreign_key) = (app.ledger_key().await, other.ledger_key().await);
    let cache = tempfile::tempdir().unwrap();

    let [one, another] = &bundles[..] else {
        panic!("two bundles");
    };

    let (own_rules, default_rules) = (rules(one, cache.path()), rules(&foreign, cache.path()));
    for (files, key, rules) in [
        (one, &key, &own_rules),
        (another, &key, &own_rules),
        (&foreign, &foreign_key, &default_rules),
    ] {
        let report = judged(files, key, rules).unwrap();
        assert_eq!(report.verdict, EvidenceVerdict::Valid, "{report:#?}");
    }

    let mut tampered = vec![("another installation".to_owned(), foreign.clone())];
    for name in one.keys() {
        let mut add = |what: &str, bytes: Vec<u8>| {
            let mut files = one.clone();
            files.insert(name.clone(), bytes);
            tampered.push((format!("{name}: {what}"), files));
        };
        for (what, source) in [("of another envelope", another), ("foreign", &foreign)] {
            // Both bundles may have the same components and entries about them.
            let bytes = source.get(name).filter(|bytes| **bytes != one[name]);
            if let Some(bytes) = bytes {
                add(what, bytes.clone());
            }
        }

        for percent in [0, 1, 50, 99] {
            let mut bytes = one[name].clone();
            let at = bytes.len() * percent / 100;
            bytes[at] ^= 1;
            add(&format!("a bit flipped at {percent} %"), bytes);
        }

        if name.starts_with("components/") {
            add("another component", variant(Slot::Compliance, "x"));
            add("no component", b"no component".to_vec());
        }
    }

    tampered.extend(forged_ledgers(one, another, &foreign));
    for (what, files) in &tampered {
        if let Some(report) = judged(files, &key, &own_rules) {
            assert_eq!(
                report.verdict,
                EvidenceVerdict::NotValid,
                "{what}: {report:#?}"
            );
        }
    }

    println!("{} tampered bundles", tampered.len());
    assert!(tampered.len() > 50, "{}", tampered.len());
}

/// Rules that give the certificate of a bundle for its recorded facts, without running a component.
struct RecordedRules {
    identity: ComponentIdentity,
    evaluated: Value,
    certificate: String,
}

impl RecordedRules {
    fn of(files: &Files) -> Rules {
        let ledger: Value = serde_json::from_slice(&files["custody-ledger.json"]).unwrap();
        let entries = ledger["entries"].as_array().unwrap();
        let mut evaluations = entries.iter();
        let evaluated = evaluations.find(|entry| entry["action"] == "compliance.evaluated");
        let evaluated = evaluated.unwrap()["details"].clone();

        let certificate = files["ucc-compliance-certificate.json"].clone();
        Ok(Box::new(Self {
            identity: serde_json::from_value(evaluated["component"].clone()).unwrap(),
            evaluated,
            certificate: String::from_utf8(certificate).unwrap(),
        }))
    }
}

impl CertificateRules for RecordedRules {
    fn identity(&self) -> Result<ComponentIdentity, String> {
        Ok(self.identity.clone())
    }

    fn has_pack(&self, _: &str) -> bool {
        true
    }

    fn certificate(
        &self,
        facts: &Value,
        issued_at: &str,
        issuer: &str,
        _: Option<&str>,
    ) -> Result<String, String> {
        let known = &self.evaluated;
        let same = *facts == known["facts"]
            && issued_at == known["issued_at"]
            && issuer == known["issuer"];
        same.then(|| self.certificate.clone())
            .ok_or_else(|| "other facts".into())
    }
}

/// Changes each member of each JSON file of a bundle with signers, acts of control and own rules, and takes
/// each file away. Members that a later release adds are changed, too.
#[tokio::test(flavor = "multi_thread")]
async fn no_changed_member_of_a_fresh_bundle_is_valid() {
    let app = TestApp::start().await;
    own(&app, Slot::Compliance, "acme-rules").await;
    own(&app, Slot::Lifecycle, "acme-moves").await;
    let id = app.vaulted_envelope().await;
    let (lender, lenders_key) = app.party().await;
    let record = format!("/partner/control/records/{id}");
    let designation = json!({ "controller": lender });
    app.post(&format!("{record}/designate"), designation)
        .await
        .data(200);

    app.post_as(&lenders_key, &format!("{record}/decline"), json!({}))
        .await
        .data(200);
    let zip = released(&app, &id).await;
    let key = app.ledger_key().await;
    let (code, report) = verified(&zip, &["--key", &key]).await;
    assert_eq!(code, 0, "{report:#}");

    let files = unzipped(&zip);
    let rules = RecordedRules::of(&files);
    assert_eq!(
        judged_files(&files, &key, &rules),
        Some(EvidenceVerdict::Valid)
    );

    let mut changes = 0;
    let mut unnoticed = Vec::new();
    for changed in changed_bundles(&files) {
        changes += 1;
        if judged_files(&changed.files, &key, &rules) == Some(EvidenceVerdict::Valid) {
            unnoticed.push(changed.change);
        }
    }

    println!("{changes} changed bundles");
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    assert!(changes > 3000, "{changes}");
}

/// Returns the verdict on the files of a bundle, without a zip around them.
fn judged_files(files: &Files, key: &str, rules: &Rules) -> Option<EvidenceVerdict> {
    let mut trusted = TrustedLogs::default();
    trusted.key(key).unwrap();
    let files = files
        .iter()
        .map(|(name, bytes)| (name.clone(), Bytes::from(bytes.clone())));
    let no_facts = Err("no facts".into());
    let report = evidence::verify(&Bundle::of_files(files), rules, &no_facts, &trusted);
    report.ok().map(|report| report.verdict)
}

/// Returns forged ledgers with valid hash chains but other contents or other proofs.
fn forged_ledgers(one: &Files, another: &Files, foreign: &Files) -> Vec<(String, Files)> {
    const LEDGER: &str = "custody-ledger.json";
    const COMPONENTS: &str = "component-ledger.json";

    let read =
        |files: &Files, name: &str| -> Value { serde_json::from_slice(&files[name]).unwrap() };
    let with = |name: &str, value: &Value| {
        let mut files = one.clone();
        files.insert(name.to_owned(), value.to_string().into_bytes());
        files
    };

    let own = read(one, LEDGER);
    let mut forged = Vec::new();
    for (what, source) in [("another envelope", another), ("another log", foreign)] {
        let mut ledger = own.clone();
        ledger["log"] = read(source, LEDGER)["log"].clone();
        forged.push((format!("proofs of {what}"), with(LEDGER, &ledger)));
        let mut ledger = own.clone();
        ledger["log"]["checkpoint"] = read(source, LEDGER)["log"]["checkpoint"].clone();
        forged.push((format!("checkpoint of {what}"), with(LEDGER, &ledger)));
    }

    let mut ledger = own.clone();
    ledger["log"] = Value::Null;
    forged.push(("no proofs".into(), with(LEDGER, &ledger)));

    // A log with the same name, signed with the forger's key.
    let signer = CheckpointSigner::new(&[3; 32]).unwrap();
    let key = VerifierKey::parse(own["log"]["public_key"].as_str().unwrap()).unwrap();
    let head = key
        .open(own["log"]["checkpoint"].as_str().unwrap())
        .unwrap();
    let mut ledger = own.clone();
    ledger["log"]["checkpoint"] = signer.sign(&head).into();

    forged.push(("another signature".into(), with(LEDGER, &ledger)));
    ledger["log"]["public_key"] = signer.verifier(&head.origin).to_string().into();
    forged.push(("another key".into(), with(LEDGER, &ledger)));

    // Changed members of the entries about vaulting and evaluation, in a recomputed chain.
    for (action, member) in [
        ("vault.stored", "document_hash"),
        ("vault.stored", "signed_document_hash"),
        ("vault.stored", "signed_document_size"),
        ("vault.stored", "components"),
        ("vault.stored", "rewritten"),
        ("compliance.evaluated", "component"),
        ("compliance.evaluated", "facts"),
    ] {
        let mut ledger = own.clone();
        let entries = ledger["entries"].as_array_mut().unwrap();
        let entry = entries.iter_mut().find(|entry| entry["action"] == action);
        entry.unwrap()["details"][member] = json!("other");
        rechain(entries);
        let what = format!("{action}: other {member}");
        forged.push((what, with(LEDGER, &ledger)));
    }

    let named = own["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["action"] == "vault.stored")
        .unwrap()["details"]["components"]
        .as_array()
        .unwrap()
        .len();

    for index in 0..named {
        let mut ledger = own.clone();
        let entries = ledger["entries"].as_array_mut().unwrap();
        let entry = entries
            .iter_mut()
            .find(|entry| entry["action"] == "vault.stored")
            .unwrap();
        entry["details"]["components"][index]["sha256"] = "0".repeat(64).into();

        rechain(entries);
        forged.push((format!("component {index} swapped"), with(LEDGER, &ledger)));
    }

    let activations = read(one, COMPONENTS);
    for index in 0..activations["entries"].as_array().unwrap().len() {
        let mut changed = activations.clone();
        changed["entries"][index]["actor"] = "someone else".into();
        forged.push((
            format!("component entry {index} changed"),
            with(COMPONENTS, &changed),
        ));
        let mut changed = activations.clone();
        changed["entries"][index]["chain"] = "org_01jdk7m3e8f4x9s2w5v6b0c1dd".into();

        forged.push((
            format!("component entry {index} of another chain"),
            with(COMPONENTS, &changed),
        ));
    }

    let mut without = activations.clone();
    without["entries"] = json!([]);
    forged.push(("no activations".into(), with(COMPONENTS, &without)));

    forged
}

/// Recomputes the hashes of changed entries, like a forger.
fn rechain(entries: &mut [Value]) {
    use holdfast::domain::ledger::{GENESIS, LedgerEntry};

    let mut previous = GENESIS.to_owned();
    for value in entries {
        let mut entry: LedgerEntry = serde_json::from_value(value.clone()).unwrap();
        entry.previous_hash = previous;
        entry.hash = entry.computed_hash();
        *value = serde_json::to_value(&entry).unwrap();
        previous = entry.hash;
    }
}

/// Returns the default document writer, patched so that it finds no size of a page: it gives each page one, and therefore
/// rewrites the document instead of appending to it.
fn rewriting_writer() -> Vec<u8> {
    let mut bytes = variant(Slot::Documents, "acme-writer");
    // The name as it is looked up, and as the number (LEB128 behind `i64.const`) by which it is written.
    let looked_up: &[u8] = b"MediaBox";

    let written: &[u8] = b"\xcd\xca\x91\xcb\x96\xcc\xd0\xb7\xf8\x00";
    for (name, other) in [(looked_up, b'X'), (written, 0xd8)] {
        let places: Vec<usize> = bytes
            .windows(name.len())
            .enumerate()
            .filter(|(_, window)| *window == name)
            .map(|(at, _)| at)
            .collect();
        assert!(!places.is_empty(), "the name of the size: {name:?}");

        for at in places {
            bytes[at] = other;
        }
    }

    bytes
}

/// Activates a component that admission would refuse now, like one that an earlier release
/// admitted.
async fn activate_unexamined(app: &TestApp, slot: Slot, name: &str, bytes: &[u8]) {
    let folder = app.objects_folder().join("components");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{}.wasm", sha256(bytes))), bytes).unwrap();
    let now = Clock::default().now();
    let component = Component {
        id: ComponentId::new(),
        org: Some(app.org.clone()),
        slot,
        identity: ComponentIdentity {
            name: name.into(),
            version: "1.0.0".into(),
            sha256: sha256(bytes),
        },
        size: i64::try_from(bytes.len()).unwrap(),
        imports: Vec::new(),
        conformance: ConformanceResult {
            not_reached: None,
            vectors_version: "1.0.0".into(),
            vectors: 1,
            own_vectors: 0,
            memory_bytes: 0,
            fuel: None,
            slowest_us: 0,
        },
        signed_by: None,
        uploaded_by: "user:ada@acme.example".into(),
        created_at: now,
    };

    let activation = ComponentActivation {
        id: ActivationId::new(),
        org: Some(app.org.clone()),
        slot,
        instance: String::new(),
        component: component.id.clone(),
        config: None,
        reason: None,
        activated_by: "user:ada@acme.example".into(),
        created_at: now,
        effective_at: now,
        rolled_back: None,
    };

    let mut tx = app.store.begin().await.unwrap();
    components::begin_change(&mut tx).await.unwrap();
    components::insert(&mut tx, &component).await.unwrap();
    components::activate(&mut tx, &activation, &component)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let slots = app.get_with_bearer(&app.admin(), "/component-slots").await;
        let slots = slots.data(200);
        let mut slots = slots.as_array().unwrap().iter();
        let found = slots.find(|shown| shown["slot"] == slot.as_str()).unwrap();
        if found["active"]["name"] == name {
            return;
        }
        assert!(Instant::now() < deadline, "{found:#}");

        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_writer_that_replaces_the_executed_document_is_refused() {
    let app = TestApp::start().await;
    let admin = app.admin();
    activate_unexamined(&app, Slot::Documents, "acme-writer", &rewriting_writer()).await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let upload = format!("/partner/envelopes/{id}/upload");
    app.upload(&upload, "application/pdf", CONTRACT, &[])
        .await
        .data(201);

    let vault_in = format!("/partner/envelopes/{id}/vault-in-upload");

    // The writer is compiled on first use, which takes longer than a request waits.
    let deadline = Instant::now() + Duration::from_secs(200);
    let mut answer = app.post(&vault_in, json!({})).await;
    while answer.status == 503 && Instant::now() < deadline {
        answer = app.post(&vault_in, json!({})).await;
    }

    answer.error(500);
    assert!(app.objects("vault").is_empty());

    let shown = app
        .get_with_bearer(&admin, &format!("/envelopes/{id}"))
        .await;
    let why = shown.data(200)["vault_error"]["message"].clone();
    let why = why.as_str().unwrap();
    assert!(why.contains("acme-writer 1.0.0"), "{why}");
    assert!(why.contains("is not the beginning"), "{why}");
}
