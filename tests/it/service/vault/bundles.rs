//! Bundles as evidence copies, and who gets one.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::service::control::{Party, controlled, vault_out};
use crate::support::{TestApp, TestResponse, pdf, release_form};

/// Files of a zip by name.
fn files(zip: &TestResponse) -> BTreeMap<String, Vec<u8>> {
    assert_eq!(zip.status, 200, "{}", zip.text());
    let mut zip = zip::ZipArchive::new(Cursor::new(zip.bytes.clone())).unwrap();
    let mut files = BTreeMap::new();
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(entry.name().to_owned(), bytes);
    }

    files
}

/// Ledger entries of a bundle with this action.
fn entries(files: &BTreeMap<String, Vec<u8>>, action: &str) -> Vec<Value> {
    let ledger: Value = serde_json::from_slice(&files["custody-ledger.json"]).unwrap();
    let entries = ledger["entries"].as_array().unwrap().iter();
    let found = entries.filter(|entry| entry["action"] == action);
    found.cloned().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_an_evidence_copy_that_holds_its_own_export() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    vault_out(&app, &id, release_form()).await.data(200);
    let path = format!("/partner/envelopes/{id}/bundle");
    app.get(&path).await;
    let zip = app.get(&path).await;
    let named = zip.headers["content-disposition"].to_str().unwrap();
    assert!(
        named.contains(&format!("{id}-evidence-copy.zip")),
        "{named}"
    );

    let files = files(&zip);
    let exports = entries(&files, "bundle.exported");
    assert_eq!(exports.len(), 2, "each export is an entry");

    let newest = exports.last().unwrap();
    assert!(newest["actor"].as_str().unwrap().starts_with("key:"));
    assert_eq!(newest["details"]["as"], "evidence_copy");

    let notice = &files["EVIDENCE-COPY.txt"];
    let hash = hex::encode(Sha256::digest(notice));
    assert_eq!(newest["details"]["notice_sha256"], hash);

    let notice = String::from_utf8(notice.clone()).unwrap();
    let document = hex::encode(Sha256::digest(&files["authoritative.pdf"]));
    for expected in [
        &format!("Evidence copy of the record {id}"),
        "was released to Robin Park, First Example Bank on ",
        "authoritative.pdf in this archive has the same bytes",
        "Every export is an entry of custody-ledger.json.",
        &document,
    ] {
        assert!(notice.contains(expected), "{expected}: {notice}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_the_headers_of_a_bundle_is_no_export() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    vault_out(&app, &id, release_form()).await.data(200);
    let path = format!("/api/v2/partner/envelopes/{id}/bundle");
    let head = Request::head(path).header("x-api-key", &app.key);
    let head = app.send(head.body(Body::empty()).unwrap()).await;
    assert_eq!(head.status, 200);

    let ledger = app.custody(&id).await.to_string();
    assert!(!ledger.contains("bundle.exported"), "{ledger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_conversion_to_paper_no_file_of_a_bundle_is_called_authoritative() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let mut form = release_form();
    form["medium"] = "paper".into();
    vault_out(&app, &id, form).await.data(200);
    let zip = app.get(&format!("/partner/envelopes/{id}/bundle")).await;
    let files = files(&zip);
    assert!(
        files.contains_key("evidence-copy.pdf"),
        "{:?}",
        files.keys()
    );

    let named = files.keys().filter(|name| name.contains("authoritative"));
    assert_eq!(named.count(), 0, "{:?}", files.keys());

    let notice = String::from_utf8(files["EVIDENCE-COPY.txt"].clone()).unwrap();
    assert!(
        notice.contains("it is not an authoritative copy"),
        "{notice}"
    );
    assert!(
        notice.contains(
            "A paper original for Robin Park, First Example Bank replaced the authoritative copy of this record on "
        ),
        "{notice}"
    );

    for wrong in ["was released to", "has the same bytes"] {
        assert!(!notice.contains(wrong), "{wrong}: {notice}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_that_was_exported_still_verifies_in_the_installation() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    vault_out(&app, &id, release_form()).await.data(200);
    app.get(&format!("/partner/envelopes/{id}/bundle")).await;
    let report = app.release_and_verify(&id).await;
    assert_eq!(report["verdict"], "VALID", "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_exports_the_bundle_of_its_own_release() {
    let (app, id, lender) = controlled().await;
    let paths = [
        format!("/partner/control/records/{id}/bundle"),
        format!("/partner/envelopes/{id}/bundle"),
    ];
    for path in &paths {
        let early = app.get_as(&lender.key, path).await;
        assert_eq!(early.error(409), "Envelope has not been released");
    }

    let released = lender.act(&app, &id, "release", release_form()).await;
    released.data(200);
    for path in &paths {
        let files = files(&app.get_as(&lender.key, path).await);
        let exports = entries(&files, "bundle.exported");
        assert!(!exports.is_empty());
        assert!(files.contains_key("authoritative.pdf"));
    }

    let stranger = Party::new(&app).await;
    for path in &paths {
        app.get_as(&stranger.key, path).await.error(404);
        // The originator did not get the controller's consent.
        let own = app.get(path).await;
        assert_eq!(own.json()["code"], "control_consent_required");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_export_the_bundle_of_a_consented_release() {
    let (app, id, lender) = controlled().await;
    let refused = vault_out(&app, &id, release_form()).await;
    let release = refused.json()["details"]["release_id"].clone();
    let consent = format!(
        "/partner/control/releases/{}/consent",
        release.as_str().unwrap()
    );
    app.post_as(&lender.key, &consent, json!({}))
        .await
        .data(200);

    app.wait_until_idle().await;
    let path = format!("/partner/control/records/{id}/bundle");
    let theirs = files(&app.get_as(&lender.key, &path).await);
    assert_eq!(entries(&theirs, "vault.released").len(), 1);

    let own = files(&app.get(&format!("/partner/envelopes/{id}/bundle")).await);
    assert_eq!(entries(&own, "bundle.exported").len(), 2);

    // The same recipient gets a link, another one does not.
    vault_out(&app, &id, release_form()).await.data(200);
    let mut form = release_form();
    form["recipient_organization"] = "Second Example Bank".into();

    for answer in [
        vault_out(&app, &id, form.clone()).await,
        lender.act(&app, &id, "release", form).await,
    ] {
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert_eq!(answer.json()["code"], "released_to_another");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_final_custody_record_has_one_custodian_and_the_checks_of_the_release() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    vault_out(&app, &id, release_form()).await.data(200);
    vault_out(&app, &id, release_form()).await.data(200);
    app.get(&format!("/partner/envelopes/{id}/bundle")).await;
    let path = format!("/partner/envelopes/{id}/custody-record");
    let record = pdf::text(&app.get(&path).await.bytes);

    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "As at the release: 8 of 8 checks of UCC §9-105 are satisfied",
        "Control checks, as at the release on ",
        "vault@maple.example, from ",
        "was released to First Example Bank. This service does not know where it has been since.",
        "Link 2 to the released file",
        "An evidence copy was exported",
        "Form of the copy a file of its own, in which every page has the mark",
        "Seal certificate ",
        "Trusted time of this server; no time stamping authority was asked",
        "Log of all ledgers 127.0.0.1:8080/api/v2/ledger: ",
    ] {
        assert!(record.contains(expected), "{expected}: {record}");
    }

    for wrong in [
        "No authoritative copy is stored",
        "6 of 8",
        "not in a fully executed status",
        "Second evaluation",
        "Existing signature",
        "Rewritten",
    ] {
        assert!(!record.contains(wrong), "{wrong}: {record}");
    }

    // The checks of today stay those of the specification.
    let live = app
        .get(&format!("/partner/envelopes/{id}/compliance"))
        .await;
    assert_eq!(live.data(200)["compliance"]["score"], 75);
}
