//! Signatures that an upload has already: verified, reported, and never claimed as ours.

use holdfast::domain::organization::OrgSettings;
use serde_json::Value;

use super::seals::{paper, vault_in};
use crate::support::authority::{AuthorityBehaviour, FakeTimestampAuthority};
use crate::support::{CONTRACT, TestApp, pdf};

/// Makes a document that another installation sealed.
pub async fn sealed_elsewhere(app: &TestApp) -> Vec<u8> {
    let (id, answer) = paper(app, CONTRACT).await;
    assert_eq!(answer.data(201).get("existing_signatures"), None);
    vault_in(app, &id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_an_upload_are_verified_and_reported() {
    let other = TestApp::start().await;
    let signed = sealed_elsewhere(&other).await;
    let app = TestApp::start().await;
    let (id, answer) = paper(&app, &signed).await;
    let upload = answer.data(201);
    let [signature] = upload["existing_signatures"].as_array().unwrap().as_slice() else {
        panic!("{upload}");
    };
    assert_eq!(signature["kind"], "signature", "{signature}");
    assert_eq!(signature["status"], "valid", "{signature}");
    assert_eq!(signature["covers"], "whole_document");
    assert_eq!(signature["changes_after_signing"], "none");
    assert_eq!(signature["level"], "PAdES-B");
    assert_eq!(signature["time_source"], "signer");

    assert_eq!(signature["trust"], "not_checked");
    assert!(signature["signer"].as_str().unwrap().starts_with("CN="));

    vault_in(&app, &id).await;
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(
        envelope["existing_signatures"],
        upload["existing_signatures"]
    );

    for entry in ["document.uploaded", "vault.stored"] {
        let details = app.entry(&id, entry).await;
        assert_eq!(
            details["existing_signatures"],
            upload["existing_signatures"]
        );
    }

    let record = app.objects("certificates");
    let record = record
        .iter()
        .filter(|path| path.to_string_lossy().contains(&id))
        .map(|path| std::fs::read(path).unwrap())
        .find(|bytes| bytes.starts_with(b"%PDF"));
    let text = pdf::text(&record.unwrap());
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");

    let line = "Existing signature valid signature · by CN=";
    assert!(text.contains(line) && text.contains("Seal-"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_was_changed_after_signing_is_reported_as_altered() {
    let app = TestApp::start().await;
    let signed = sealed_elsewhere(&app).await;
    let statuses = async |file: &[u8]| -> Vec<(String, String)> {
        let (_, answer) = paper(&app, file).await;
        let upload = answer.data(201);
        let text = |signature: &Value, key: &str| signature[key].as_str().unwrap().to_owned();
        let signatures = upload["existing_signatures"].as_array().unwrap().clone();
        let both = |one: &Value| (text(one, "status"), text(one, "changes_after_signing"));
        signatures.iter().map(both).collect()
    };

    let pair = |status: &str, change: &str| (status.to_owned(), change.to_owned());

    // The page marks of a later seal are content.
    let (id, _) = paper(&app, &signed).await;
    let twice = vault_in(&app, &id).await;
    let found = statuses(&twice).await;
    assert_eq!(found, [pair("altered", "content"), pair("valid", "none")]);

    let mut changed = signed.clone();
    let title = b"/Reason";
    let at = changed
        .windows(title.len())
        .position(|bytes| bytes == title);
    changed[at.unwrap() + title.len() + 3] ^= 1;
    let found = statuses(&changed).await;
    assert_eq!(found, [pair("altered", "none")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_checked_against_the_configured_roots() {
    let rsa = ["-newkey", "rsa:2048"];
    let authority = FakeTimestampAuthority::start(&rsa, AuthorityBehaviour::Right).await;
    let url = authority.url.parse().unwrap();
    let other = TestApp::with(
        |config| config.seal.timestamp_url = Some(url),
        OrgSettings::default(),
    )
    .await;
    let signed = sealed_elsewhere(&other).await;

    let root = other.data.path().join("keys/seal/certificates.pem");
    for (trusted, trust) in [(root, "trusted"), (authority.root(), "untrusted")] {
        let app = TestApp::with(
            |config| config.signatures.trust_file = Some(trusted),
            OrgSettings::default(),
        )
        .await;
        let (_, answer) = paper(&app, &signed).await;
        let signature = answer.data(201)["existing_signatures"][0].clone();
        assert_eq!(signature["trust"], trust, "{signature}");
        assert_eq!(signature["status"], "valid", "{signature}");
        assert_eq!(signature["level"], "PAdES-T", "{signature}");
        assert_eq!(signature["time_source"], "time_stamp", "{signature}");
    }
}

/// Returns the place of the signature's hexadecimal digits.
fn digits_of(signed: &[u8]) -> std::ops::Range<usize> {
    let begin = signed.windows(10).rposition(|bytes| bytes == b"/Contents<");
    let begin = begin.unwrap() + 10;
    let length = signed[begin..].iter().position(|byte| *byte == b'>');
    begin..begin + length.unwrap()
}

fn replace_signature(signed: &mut [u8], signature: &[u8]) {
    let place = digits_of(signed);
    let digits = format!("{:0<width$}", hex::encode(signature), width = place.len());
    signed[place].copy_from_slice(digits.as_bytes());
}

/// Signs the same bytes with a new key of this kind, with OpenSSL.
fn signed_by_openssl(signed: &[u8], key: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (private, certificate) = (path("key.pem"), path("certificate.pem"));
    let (content, signature) = (path("content"), path("signature"));
    let place = digits_of(signed);
    let covered = [&signed[..place.start - 1], &signed[place.end + 1..]].concat();
    std::fs::write(&content, covered).unwrap();

    let run = |arguments: &[&str]| {
        let output = std::process::Command::new("openssl")
            .args(arguments)
            .output();
        let output = output.expect("openssl is missing: run `apt-get install openssl`");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    };

    let subject = ["-nodes", "-subj", "/CN=Ann Signer", "-days", "2"];
    let request = ["req", "-x509", "-keyout", &private, "-out", &certificate];
    run(&[&request[..], &subject, key].concat());
    run(&[
        "cms",
        "-sign",
        "-binary",
        "-cades",
        "-md",
        "sha256",
        "-in",
        &content,
        "-signer",
        &certificate,
        "-inkey",
        &private,
        "-outform",
        "DER",
        "-out",
        &signature,
    ]);

    let mut other = signed.to_vec();
    replace_signature(&mut other, &std::fs::read(signature).unwrap());
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_other_programs_and_keys_are_verified() {
    let app = TestApp::start().await;
    let signed = sealed_elsewhere(&app).await;
    let (p_256, p_384) = ("ec_paramgen_curve:P-256", "ec_paramgen_curve:P-384");
    for (key, status, problem) in [
        (&["-newkey", "rsa:2048"][..], "valid", ""),
        (&["-newkey", "ec", "-pkeyopt", p_256], "valid", ""),
        (&["-newkey", "ec", "-pkeyopt", p_384], "valid", ""),
        // Not "altered": the size of the key does not show a change of the document.
        (
            &["-newkey", "rsa:1024"],
            "not_verifiable",
            "fewer than 2,048 bits",
        ),
    ] {
        let other = signed_by_openssl(&signed, key);
        let (_, answer) = paper(&app, &other).await;
        let signature = answer.data(201)["existing_signatures"][0].clone();
        assert_eq!(signature["status"], status, "{key:?}: {signature}");
        assert_eq!(signature["signer"], "CN=Ann Signer", "{signature}");

        let why = signature["problem"].as_str().unwrap_or_default();
        assert!(why.contains(problem), "{why}");
    }
}

/// Programs that write a signature in pieces do not know its length in advance (X.690, 8.1.3.6).
#[tokio::test(flavor = "multi_thread")]
async fn a_signature_of_indefinite_length_is_verified() {
    let app = TestApp::start().await;
    let mut signed = sealed_elsewhere(&app).await;
    let der = hex::decode(&signed[digits_of(&signed)]).unwrap();
    assert_eq!(der[..2], [0x30, 0x82], "a length of two bytes");

    let length = usize::from(u16::from_be_bytes([der[2], der[3]]));
    let ber = [&[0x30, 0x80][..], &der[4..4 + length], &[0, 0]].concat();
    replace_signature(&mut signed, &ber);
    let (_, answer) = paper(&app, &signed).await;
    let signature = answer.data(201)["existing_signatures"][0].clone();
    assert_eq!(signature["status"], "valid", "{signature}");
}
