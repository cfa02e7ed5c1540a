//! The certificate of completion, and the public page that its code leads to.

use axum::body::Body;
use axum::http::Request;

use crate::sealing::seals::{paper, vault_in};
use crate::support::{CONTRACT, TestApp, TestResponse, form, pdf};

/// Signs a contract with a typed signature, and waits until it is vaulted.
async fn vaulted(app: &TestApp) -> (String, String) {
    let envelope = app.sent_envelope().await;
    let url = envelope["sign_url"].as_str().unwrap().to_owned();
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let page = form::open(app, &url).await.text();
    let signed = form::press(app, &url, "finish", &form::filled(&page)).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    app.wait_for(&id, "vaulted").await;
    (id, url)
}

async fn certificate(app: &TestApp, id: &str) -> TestResponse {
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    app.get(&path).await
}

/// Returns the address on a certificate as a path.
fn verification_path(certificate: &[u8]) -> String {
    let text = pdf::text(certificate);
    let address = text
        .split_whitespace()
        .find(|word| word.contains("/verify/"));
    let address = address.unwrap_or_else(|| panic!("{text}"));
    address[address.find("/verify/").unwrap()..].to_owned()
}

async fn open(app: &TestApp, path: &str) -> TestResponse {
    app.send(Request::get(path).body(Body::empty()).unwrap())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_completion_shows_who_signed_when_and_how() {
    let app = TestApp::start().await;
    let (id, url) = vaulted(&app).await;
    let answer = certificate(&app, &id).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "application/pdf");

    let text = pdf::text(&answer.bytes);
    for expected in [
        "Certificate of completion",
        "Retail instalment contract",
        "Jordan Lee",
        "jordan.lee@example.com",
        "First opened",
        "Electronic consent",
        "Completed document",
        "Put into the vault",
        id.as_str(),
        "(UTC)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    assert!(pdf::fonts(&answer.bytes).contains("Caveat"));
    let again = certificate(&app, &id).await;
    assert_eq!(again.bytes, answer.bytes, "equal records give equal bytes");

    let page = form::open(&app, &url).await.text();
    assert!(page.contains("Download the certificate of completion"));
    assert!(page.contains("/copy.png"), "{page}");

    let picture = form::open(&app, &format!("{url}/copy.png")).await;
    assert_eq!(picture.headers["content-type"], "image/png");

    let theirs = form::open(&app, &format!("{url}/certificate.pdf")).await;
    assert_eq!(theirs.bytes, answer.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_custody_record_says_in_plain_words_who_did_what() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let early = envelope["envelope_id"].as_str().unwrap();
    let early = app
        .get(&format!("/partner/envelopes/{early}/custody-record"))
        .await;
    assert_eq!(early.error(409), "Envelope is not vaulted");

    let (id, _) = vaulted(&app).await;
    let files = app.released_bundle(&id).await;
    let record = std::fs::read(files.path().join("vault-custody-record.pdf")).unwrap();
    let text = pdf::text(&record);
    for expected in [
        "The document was prepared",
        "It was sent to the signers",
        "Jordan Lee signed",
        "Everybody has completed their part",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    assert!(!text.contains("signer:jordan"), "{text}");

    // The stored record was made at vault-in; the final one also has the release.
    assert!(!text.contains("handed over"), "{text}");

    let path = format!("/partner/envelopes/{id}/custody-record");
    let last = app.get(&path).await;
    assert_eq!(last.headers["content-type"], "application/pdf");

    let text = pdf::text(&last.bytes);
    for expected in [
        "Final record",
        "The authoritative copy was put into the vault",
        "The authoritative copy was handed over to First",
        "Robin Park",
        "Assignment of the contract",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    assert_eq!(app.get(&path).await.bytes, last.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_vault_there_is_no_certificate_of_completion() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let early = certificate(&app, id).await;
    assert_eq!(early.status, 409, "{}", early.text());
    assert!(early.text().contains("not vaulted"), "{}", early.text());

    let url = envelope["sign_url"].as_str().unwrap();
    let theirs = form::open(&app, &format!("{url}/certificate.pdf")).await;
    assert_eq!(theirs.status, 404, "{}", theirs.text());

    let unknown = certificate(&app, "env_01jt8s5gq2e6m9x4k7w3c5d8fa").await;
    assert_eq!(unknown.status, 404);

    let (id, _) = vaulted(&app).await;
    let other = app.other_organization().await;
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    assert_eq!(app.get_as(&other, &path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verification_page_is_shown_to_holders_of_its_address_only() {
    let app = TestApp::start().await;
    let (id, _) = vaulted(&app).await;
    app.set_organization(&[r##"brand={"color":"#0b57d0"}"##]);
    let certificate = certificate(&app, &id).await.bytes;
    let path = verification_path(&certificate);
    let page = open(&app, &path).await;
    assert_eq!(page.status, 200, "{}", page.text());

    let text = page.text();
    let hash = pdf::text(&certificate);
    let (_, hash) = hash.split_once("Copy for the parties").unwrap();
    let hash = hash.split_whitespace().next().unwrap();
    assert_eq!(hash.len(), 64);

    for expected in [
        hash,
        "Jordan Lee",
        "Is your copy the one?",
        "Completed by all parties. The authoritative copy is in the vault.",
        "Choose your file. It is compared on this device and not sent anywhere.",
        "the authoritative copy, or an exact duplicate of it",
        "This browser cannot compare files. Compare the fingerprints below with a program such as sha256sum.",
        "/brand.css",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    for secret in ["jordan.lee@example.com", "/vault/", "objects"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }

    let (start, code) = path.rsplit_once('/').unwrap();
    let first = if code.starts_with('0') { "1" } else { "0" };
    let guess = format!("{start}/{first}{}", &code[1..]);
    let unknown = open(&app, &guess).await.text();
    assert!(unknown.contains("There is no such record"), "{unknown}");
    for wrong in [guess, format!("{start}/"), path.replace(&id, "env_1")] {
        let wrong = open(&app, &wrong).await;
        assert_eq!(wrong.status, 404, "{}", wrong.text());
        assert!(!wrong.text().contains("Jordan"));
    }
}

/// holdfast did not see an upload being signed, so it certifies no signing.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_was_signed_elsewhere_has_no_certificate_of_completion() {
    let app = TestApp::start().await;
    let (id, _) = paper(&app, CONTRACT).await;
    vault_in(&app, &id).await;
    let refused = certificate(&app, &id).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(
        refused.error(409),
        "Envelope was signed elsewhere: there is no signing to certify"
    );
}
