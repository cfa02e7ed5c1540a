//! The seal of the authoritative copy (contract, section 3: a PAdES signature of
//! the host's sealing key, valid in independent validators).

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast::config::{Config, SealSettings};
use holdfast::domain::organization::OrgSettings;
use holdfast::sealing;
use serde_json::{Value, json};

use crate::builder::PdfBuilder;
use crate::support::authority::openssl;
use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, form, pdf};

/// Returns the stored bytes of the authoritative copy.
fn vaulted(app: &TestApp) -> Vec<u8> {
    let objects = app.objects("vault");
    assert_eq!(objects.len(), 1);
    std::fs::read(&objects[0]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn independent_validators_accept_the_seal_of_the_authoritative_copy() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let sealed = vaulted(&app);
    let said = pdf::signatures(&sealed);
    for line in [
        "Signature Type: ETSI.CAdES.detached",
        "Signing Hash Algorithm: SHA-256",
        "Total document signed",
        "Signature Validation: Signature is Valid.",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }

    let certificates = app.data.path().join("keys/seal/certificates.pem");
    let expected = json!({
        "intact": true, "valid": true, "trusted": true, "whole": true,
        "level": "/ETSI.CAdES.detached",
    });
    assert_eq!(pdf::seal(&sealed, &certificates), expected);

    // Our own verification agrees, and the ledger names the certificate.
    let seal = sealing::verify(&sealed).unwrap();
    let stored = app.entry(&id, "vault.stored").await;
    assert_eq!(stored["seal_certificate_hash"], seal.certificate);
    assert!(pdf::text(&sealed).contains("Authoritative copy"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modified_or_extended_document_has_no_valid_seal() {
    let app = TestApp::start().await;
    app.vaulted_envelope().await;
    let sealed = vaulted(&app);
    let mut changed = sealed.clone();
    changed[100] ^= 1;
    let why = sealing::verify(&changed).err().unwrap();
    assert_eq!(why, "the document was changed after it was sealed");
    assert!(pdf::signatures(&changed).contains("Digest Mismatch"));

    let longer = [sealed.as_slice(), b"% more\n"].concat();
    let why = sealing::verify(&longer).err().unwrap();
    assert_eq!(why, "there is no seal over the whole document");

    let why = sealing::verify(CONTRACT).err().unwrap();
    assert_eq!(why, "there is no seal over the whole document");

    for at in (0..sealed.len()).step_by(sealed.len() / 40) {
        let mut changed = sealed.clone();
        changed[at] ^= 0x10;
        assert!(sealing::verify(&changed).is_err(), "byte {at}");
    }
}

/// Paper contracts are sealed too, for every format of the upload.
#[tokio::test(flavor = "multi_thread")]
async fn vaulted_uploads_are_sealed() {
    let app = TestApp::start().await;
    let picture: &[u8] = include_bytes!("../../fixtures/scan.png");
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let path = format!(
        "/partner/envelopes/{}",
        envelope["envelope_id"].as_str().unwrap()
    );
    let upload = format!("{path}/upload");
    let stored = app.upload(&upload, "image/png", picture, &[]).await;
    stored.data(201);

    let vault_in = format!("{path}/vault-in-upload");
    app.post(&vault_in, json!({})).await.data(200);
    let certificates = app.data.path().join("keys/seal/certificates.pem");
    let seal = pdf::seal(&vaulted(&app), &certificates);
    assert_eq!(seal["trusted"], true, "{seal}");
    assert_eq!(seal["whole"], true, "{seal}");
}

/// A document that is certified against changes is stored byte for byte, without mark and seal.
/// Its copy is marked.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_certified_against_changes_is_vaulted_unchanged() {
    let app = TestApp::start().await;
    let mut certified = PdfBuilder::new();
    let signature = certified.object(
        "<< /Type /Sig /Filter /Adobe.PPKLite /SubFilter /adbe.pkcs7.detached /Contents <00> \
         /ByteRange [0 1 2 3] /Reference [<< /Type /SigRef /TransformMethod /DocMDP \
         /TransformParams << /Type /TransformParams /P 1 /V /1.2 >> >>] >>",
    );
    certified.catalog(&format!("/Perms << /DocMDP {signature} 0 R >>"));

    certified.page_with(
        "/MediaBox [0 0 612 792]",
        "",
        "BT /F1 12 Tf 72 700 Td (Certified contract) Tj ET",
    );
    let certified = certified.build();
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();

    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let upload = format!("/partner/envelopes/{id}/upload");
    let stored = app.upload(&upload, "application/pdf", &certified, &[]);
    stored.await.data(201);
    let vault_in = format!("/partner/envelopes/{id}/vault-in-upload");
    app.post(&vault_in, json!({})).await.data(200);
    assert_eq!(vaulted(&app), certified);

    let copy = std::fs::read(&app.objects("copies")[0]).unwrap();
    assert!(pdf::text(&copy).contains("Non-authoritative copy"));

    let ledger = app.get(&format!("/partner/envelopes/{id}/custody")).await;
    assert!(ledger.text().contains("\"seal_certificate_hash\":null"));
}

/// With an expired sealing certificate the service does not start, and a running service refuses
/// to seal.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_cannot_seal() {
    let app = TestApp::without_auto_vault().await;
    let folder = app.data.path().join("keys/seal");
    let now = holdfast::domain::clock::Clock::default().now();
    let key = sealing::SealingKey::open_or_make(&folder, now).unwrap();
    assert!(key.check(now).is_ok());

    let refused = key.check(key.expires_at()).err().unwrap().to_string();
    assert!(refused.contains("ended at"), "{refused}");

    let refused = key.sign(Vec::new(), 0..0, [0; 32], key.expires_at());
    assert!(refused.is_err());

    let later = Config {
        data_dir: app.data.path().into(),
        clock_offset: Some(Duration::from_secs(6 * 365 * 86_400)),
        ..Config::default()
    };
    let refused = holdfast::start::start(later).await.err().unwrap();
    assert!(refused.to_string().contains("ended at"), "{refused}");
}

/// An operator can provide a key and its certificates in one file.
#[tokio::test(flavor = "multi_thread")]
async fn a_pkcs12_key_seals_with_the_right_password() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let own = [
        "-nodes",
        "-keyout",
        "key.pem",
        "-out",
        "own.pem",
        "-subj",
        "/CN=Example Bank",
    ];

    openssl(
        at,
        &[&["req", "-x509"], &curve[..], &own, &["-days", "30"]].concat(),
    );
    let from = ["-inkey", "key.pem", "-in", "own.pem"];
    let to = ["-out", "own.p12", "-passout", "file:password"];
    std::fs::write(at.join("password"), "a long secret\n").unwrap();

    std::fs::write(at.join("wrong"), "another secret\n").unwrap();
    openssl(at, &[&["pkcs12", "-export"], &from[..], &to].concat());

    let given = |password: &str| SealSettings {
        pkcs12_file: Some(at.join("own.p12")),
        pkcs12_password_file: Some(at.join(password)),
        ..SealSettings::default()
    };
    let seal = given("password");
    let app = TestApp::with(|config| config.seal = seal, OrgSettings::default()).await;
    app.vaulted_envelope().await;

    let seal = sealing::verify(&vaulted(&app)).unwrap();
    assert_eq!(seal.subject, "CN=Example Bank");

    let said = pdf::seal(&vaulted(&app), &at.join("own.pem"));
    assert_eq!(said["intact"], true, "{said}");

    let data = tempfile::tempdir().unwrap();
    let config = Config {
        data_dir: data.path().into(),
        seal: given("wrong"),
        ..Config::default()
    };
    let refused = holdfast::start::start(config)
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("not usable"), "{refused}");
    assert!(!refused.contains("secret"), "{refused}");

    let half = Config {
        seal: SealSettings {
            key_file: Some(at.join("key.pem")),
            ..SealSettings::default()
        },
        ..Config::default()
    };
    let refused = half.checked().err().unwrap().to_string();
    assert!(
        refused.starts_with("invalid setting: seal: needs key_file and"),
        "{refused}"
    );
}

/// Every document that can be vaulted gets a seal that poppler and pyHanko accept, and passes
/// `qpdf --check`. `HOLDFAST_CORPUS` adds further files.
#[tokio::test(flavor = "multi_thread")]
async fn every_document_can_be_sealed() {
    let app = TestApp::start().await;
    let certificates = app.data.path().join("keys/seal/certificates.pem");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let corpus = std::env::var_os("HOLDFAST_CORPUS").map(PathBuf::from);

    let mut sealed = 0;
    for folder in [Some(fixtures), corpus].into_iter().flatten() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if !name.ends_with(".pdf") {
                continue;
            }

            let mut body = envelope_body(&Value::Null);
            body["envelope_kind"] = "paper".into();
            let envelope = app.post("/partner/envelopes", body).await.data(201);
            let id = envelope["envelope_id"].as_str().unwrap();
            let upload = format!("/partner/envelopes/{id}/upload");
            let file = std::fs::read(&path).unwrap();
            let answer = app.upload(&upload, "application/pdf", &file, &[]).await;
            if answer.status == 422 {
                continue;
            }

            answer.data(201);

            // A document that is accepted can be vaulted.
            let vault_in = format!("/partner/envelopes/{id}/vault-in-upload");
            let answer = app.post(&vault_in, json!({})).await;
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());

            let bytes = authoritative_copy(&app, id);

            // Earlier signatures cover these bytes.
            let is_signed = file.windows(10).any(|bytes| bytes == b"/ByteRange");
            assert!(
                !is_signed || bytes.starts_with(&file),
                "{name} was rewritten"
            );

            sealing::verify(&bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
            let said = pdf::signatures(&bytes);
            assert!(said.contains("Signature is Valid."), "{name}: {said}");
            assert!(said.contains("Total document signed"), "{name}: {said}");

            let seal = pdf::seal(&bytes, &certificates);
            assert_eq!(seal["trusted"], true, "{name}: {seal}");
            assert_eq!(seal["whole"], true, "{name}: {seal}");

            sealed += 1;
        }
    }

    println!("{sealed} documents sealed");
    assert!(sealed >= 5, "{sealed}");
}

/// Uploads a document for a paper envelope; returns the envelope and the answer.
pub async fn paper(app: &TestApp, file: &[u8]) -> (String, TestResponse) {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    let upload = format!("/partner/envelopes/{id}/upload");
    let answer = app.upload(&upload, "application/pdf", file, &[]).await;
    (id, answer)
}

/// Vaults an uploaded document and returns the authoritative copy.
pub async fn vault_in(app: &TestApp, id: &str) -> Vec<u8> {
    let vault_in = format!("/partner/envelopes/{id}/vault-in-upload");
    app.post(&vault_in, json!({})).await.data(200);
    authoritative_copy(app, id)
}

/// Reads the stored authoritative copy of an envelope.
pub fn authoritative_copy(app: &TestApp, id: &str) -> Vec<u8> {
    let objects = app.objects("vault");
    let ours = objects
        .iter()
        .find(|path| path.to_string_lossy().contains(id));
    std::fs::read(ours.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_upload_keeps_its_bytes_or_is_refused() {
    let app = TestApp::start().await;
    let (id, answer) = paper(&app, CONTRACT).await;
    answer.data(201);

    // A sealed copy is a signed document.
    let signed = vault_in(&app, &id).await;
    let (id, answer) = paper(&app, &signed).await;
    answer.data(201);
    assert!(vault_in(&app, &id).await.starts_with(&signed));

    let reason = async |file: &[u8]| {
        let (_, answer) = paper(&app, file).await;
        let reason = answer.json()["details"]["reason"].to_string();
        answer.error(422);
        reason
    };

    // The end of the file points to a wrong place for the cross-reference table.
    let mut damaged = signed.clone();
    let marker = b"startxref\n";
    let at = damaged
        .windows(marker.len())
        .rposition(|bytes| bytes == marker);
    damaged[at.unwrap() + marker.len()] = b'0';

    let why = reason(&damaged).await;
    assert!(why.contains("it is signed"), "{why}");

    let cut = &signed[..signed.len() - 1];
    let why = reason(cut).await;
    assert!(why.contains("behind its end"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_document_is_signed_by_others_with_its_bytes_kept() {
    let app = TestApp::start().await;
    let (id, answer) = paper(&app, CONTRACT).await;
    answer.data(201);
    let signed = vault_in(&app, &id).await;
    let fields = json!([{
        "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": {
            "mode": "absolute",
            "areas": [{ "page": 1, "x": 0.2, "y": 0.8, "w": 0.3, "h": 0.03 }],
        },
    }]);
    let template = app.template(&signed, &fields).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;

    let id = envelope["envelope_id"].as_str().unwrap();
    app.wait_for(id, "vaulted").await;
    let copy = authoritative_copy(&app, id);
    assert!(copy.starts_with(&signed));
    assert!(pdf::text(&copy).contains("Jordan Lee"));

    // The earlier seal is valid for its revision, and ours for the whole.
    let said = pdf::signatures(&copy);
    assert_eq!(said.matches("Signature is Valid.").count(), 2, "{said}");

    sealing::verify(&copy).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_document_with_tags_is_refused_as_a_template() {
    let app = TestApp::start().await;
    let tagged = pdf::with_lines(&["{{Buyer signature;type=signature;role=Buyer}}"]);
    let (id, answer) = paper(&app, &tagged).await;
    answer.data(201);
    let signed = vault_in(&app, &id).await;
    let name = [("name", "Contract")];
    let refused = app
        .upload("/partner/templates", "application/pdf", &signed, &name)
        .await;
    let reason = refused.json()["details"]["reason"].to_string();
    assert_eq!(refused.error(422), "The PDF could not be read");
    assert!(reason.contains("it is signed"), "{reason}");
}
