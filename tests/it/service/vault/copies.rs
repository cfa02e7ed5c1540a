//! The mark on copies: it does not come off by cutting the file.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::sealing::seals::{paper, vault_in};
use crate::support::{CONTRACT, TestApp, form, pdf};

const MARK: &str = "Non-authoritative copy";

/// Fails if a beginning of the file, up to an end of a file or of an object, shows a page without `words`.
fn assert_inseparable(copy: &[u8], words: &str) {
    let ends = |word: &'static [u8]| {
        let found = copy.windows(word.len()).enumerate();
        found
            .filter(move |(_, bytes)| *bytes == word)
            .map(move |(at, _)| at + word.len())
    };

    let cuts = ends(b"%%EOF")
        .chain(ends(b"startxref"))
        .chain(ends(b"endobj"));
    for cut in cuts {
        for page in pages(&copy[..cut]) {
            assert!(page.contains(words), "the first {cut} bytes: {page}");
        }
    }

    assert!(!pages(copy).is_empty());
}

/// Returns the text of each page, also of a file that has to be repaired; none if it cannot be opened.
fn pages(file: &[u8]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("part.pdf");
    std::fs::write(&path, file).unwrap();
    let output = std::process::Command::new("pdftotext")
        .args(["-layout".as_ref(), path.as_os_str(), "-".as_ref()])
        .output()
        .expect("pdftotext is missing: run `apt-get install poppler-utils`");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();

    let pages = text.split('\u{c}').filter(|page| !page.trim().is_empty());
    if output.status.success() {
        pages.map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_beginning_of_the_vaults_copy_is_the_document_without_the_mark() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let copy = app.copy(&id).await;
    assert_inseparable(&copy, MARK);
    let executed = std::fs::read(app.objects("signed").remove(0)).unwrap();
    assert!(!copy.starts_with(&executed[..executed.len() / 2]));

    let stored = app.entry(&id, "vault.stored").await;
    assert_eq!(stored["copy_kind"], "new_file");
    assert_eq!(stored["copy_hash"], hex::encode(Sha256::digest(&copy)));

    let path = format!("/partner/envelopes/{id}/custody-record");
    let record = pdf::text(&app.get(&path).await.bytes);
    assert!(record.contains("a file of its own"), "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hash_on_the_certificate_of_completion_is_of_a_part_of_the_copy() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let copy = app.copy(&id).await;
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    let certificate = pdf::text(&app.get(&path).await.bytes);
    let executed = app.entry(&id, "vault.stored").await["signed_document_hash"].clone();
    let compact: String = certificate.split_whitespace().collect();
    assert!(
        compact.contains(executed.as_str().unwrap()),
        "{certificate}"
    );
    assert!(compact.contains("Completeddocument,as"), "{certificate}");

    let whole = hex::encode(Sha256::digest(&copy));
    let mut hash = Sha256::new();
    for byte in &copy[..copy.len() - 1] {
        hash.update([*byte]);
        let part = hex::encode(hash.clone().finalize());
        assert!(!compact.contains(&part), "{part}");
    }

    assert!(compact.contains(&whole));
}

/// The copy of a finished envelope that is not vaulted yet.
#[tokio::test(flavor = "multi_thread")]
async fn no_beginning_of_a_signers_copy_is_the_document_without_the_mark() {
    let app = TestApp::without_auto_vault().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let url = envelope["sign_url"].as_str().unwrap();
    form::sign(&app, url).await;
    app.wait_for(id, "completed").await;
    let copy = form::open(&app, &format!("{url}/copy.pdf")).await;
    assert_eq!(copy.status, 200, "{}", copy.text());

    assert_inseparable(&copy.bytes, MARK);
}

/// A copy with a mark for its holder: neither that mark nor the other one comes off.
#[tokio::test(flavor = "multi_thread")]
async fn no_beginning_of_a_watermarked_copy_lacks_its_holder() {
    let (app, id, lender) = crate::service::control::controlled().await;
    let path = format!("/partner/control/records/{id}/copy?purpose=Due%20diligence");
    let copy = app.get_as(&lender.key, &path).await;
    assert_eq!(copy.status, 200, "{}", copy.text());
    assert_inseparable(&copy.bytes, MARK);
    assert_inseparable(&copy.bytes, "Due diligence");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_signed_document_stays_an_update_and_says_so() {
    let app = TestApp::start().await;
    let (id, _) = paper(&app, CONTRACT).await;

    // A sealed copy is a signed document.
    let signed = vault_in(&app, &id).await;
    let (id, _) = paper(&app, &signed).await;
    vault_in(&app, &id).await;
    let copy = app.copy(&id).await;
    assert!(copy.starts_with(&signed), "its signatures stay valid");

    let stored = app.entry(&id, "vault.stored").await;
    assert_eq!(stored["copy_kind"], json!("update_of_signed"));

    let path = format!("/partner/envelopes/{id}/custody-record");
    let record = pdf::text(&app.get(&path).await.bytes);
    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        record.contains("so that its signatures stay valid"),
        "{record}"
    );
}
