//! What the signer saw is what the vault holds, also of damaged files: every word of the source is in the
//! executed document and in both copies.

use serde_json::{Value, json};

use super::seals::{authoritative_copy, paper, vault_in};
use crate::builder::PdfBuilder;
use crate::http::console::Session;
use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, files_below, form, pdf};

/// Files about which readers and writers once disagreed, all with this text.
const DAMAGED: [&str; 7] = [
    "content-edited-by-hand",
    "content-ends-in-string",
    "content-length-too-large",
    "hidden-layer-left-open",
    "owner-password-aes256",
    "owner-password-rc4",
    "xref-entry-off-by-one",
];
const WORDS: &str = "The buyer agrees to pay the total of payments.";

fn hunted(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/hunt");
    std::fs::read(format!("{folder}/{name}.pdf")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_word_of_a_damaged_template_is_in_both_copies() {
    let app = TestApp::start().await;
    for name in DAMAGED {
        let fields = json!([{
            "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
            "placement": {
                "mode": "absolute",
                "areas": [{ "page": 1, "x": 0.55, "y": 0.84, "w": 0.3, "h": 0.05 }],
            },
        }]);
        let template = app.template(&hunted(name), &fields).await;
        let body = envelope_body(&template["template_id"]);
        let envelope = app.post("/partner/envelopes", body).await.data(201);
        let id = envelope["envelope_id"].as_str().unwrap();

        form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
        app.wait_for(id, "vaulted").await;

        for copy in [authoritative_copy(&app, id), app.copy(id).await] {
            let text = pdf::text(&copy);
            for wanted in [WORDS, "Jordan Lee", "uthoritative copy"] {
                assert!(text.contains(wanted), "{name}: {wanted}: {text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_word_of_a_damaged_paper_upload_is_in_both_copies() {
    let app = TestApp::start().await;
    for name in DAMAGED {
        let (id, answer) = paper(&app, &hunted(name)).await;
        answer.data(201);
        for copy in [vault_in(&app, &id).await, app.copy(&id).await] {
            let text = pdf::text(&copy);
            for wanted in [WORDS, "uthoritative copy"] {
                assert!(text.contains(wanted), "{name}: {wanted}: {text}");
            }
        }
    }
}

/// Where the value is written: left, top, width, height.
const FIELD: [f64; 4] = [0.55, 0.84, 0.3, 0.05];

/// Outcome for a document.
enum CorpusOutcome {
    Vaulted { id: String, copies: [Vec<u8>; 2] },
    Refused(String),
}

async fn signed(app: &TestApp, source: &[u8]) -> CorpusOutcome {
    let [x, y, w, h] = FIELD;
    let fields = json!([{
        "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": x, "y": y, "w": w, "h": h }] },
    }]);
    let template = app.new_template(source, &fields).await;
    if template.status != 200 {
        return refused(&template);
    }

    let body = envelope_body(&template.data(200)["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    form::sign(app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(&id, "vaulted").await;

    let copies = [authoritative_copy(app, &id), app.copy(&id).await];
    CorpusOutcome::Vaulted { id, copies }
}

async fn uploaded(app: &TestApp, source: &[u8]) -> CorpusOutcome {
    let (id, answer) = paper(app, source).await;
    if answer.status != 201 {
        return refused(&answer);
    }
    let copies = [vault_in(app, &id).await, app.copy(&id).await];
    CorpusOutcome::Vaulted { id, copies }
}

/// Returns the reason of a refusal without its numbers, so equal reasons count together.
fn refused(answer: &TestResponse) -> CorpusOutcome {
    assert_eq!(answer.status, 422, "{}", answer.text());
    let reason = answer.json()["error"].as_str().unwrap().to_owned();
    let parts = reason.split(|letter: char| letter.is_ascii_digit());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    CorpusOutcome::Refused(parts.join("#"))
}

/// Returns the PDFs of the folders in `HOLDFAST_CORPUS`, separated by colons, or else three of the hunt.
fn corpus() -> Vec<std::path::PathBuf> {
    let hunt = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/hunt");
    let given = std::env::var("HOLDFAST_CORPUS");
    let most = if given.is_ok() { usize::MAX } else { 3 };
    let folders = given.unwrap_or_else(|_| hunt.to_owned());
    let mut files: Vec<_> = folders
        .split(':')
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder of HOLDFAST_CORPUS"))
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pdf"))
        .collect();
    files.sort();

    files.truncate(most);
    files
}

/// Every file of the corpus is signed and uploaded, or refused with a reason. Two other readers show the copies as
/// they show the file, with the marks on every page.
#[tokio::test(flavor = "multi_thread")]
async fn every_document_of_the_corpus_is_shown_alike_or_refused() {
    let app = TestApp::start().await;
    let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
    let mut problems = Vec::new();
    for path in corpus() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read(&path).unwrap();

        // Other readers have no limits: bombs are only signed and uploaded.
        let is_hostile = name.starts_with("hostile-");
        for way in ["template", "paper"] {
            let outcome = match way {
                "template" => signed(&app, &source).await,
                _ => uploaded(&app, &source).await,
            };
            let (id, copies) = match outcome {
                CorpusOutcome::Refused(reason) => {
                    *counts
                        .entry(format!("{way}: refused: {reason}"))
                        .or_default() += 1;
                    continue;
                }
                CorpusOutcome::Vaulted { id, copies } => (id, copies),
            };

            if is_hostile {
                *counts
                    .entry(format!("{way}: vaulted, not compared"))
                    .or_default() += 1;
                continue;
            }

            // The marks alone, on grey pages of the same sizes.
            let Some(grey) = pdf::blank(&source) else {
                *counts
                    .entry(format!("{way}: vaulted, not read by MuPDF"))
                    .or_default() += 1;
                continue;
            };
            let CorpusOutcome::Vaulted { copies: masks, .. } = uploaded(&app, &grey).await else {
                panic!("{name}: grey pages are refused");
            };

            let [x, y, w, h] = FIELD;
            let field =
                (way == "template").then_some([x - 0.01, y - 0.01, x + w + 0.01, y + h + 0.01]);
            let answer = pdf::survives(&source, field, &copies, &masks);
            let verdict = answer["verdict"].as_str().unwrap();
            *counts
                .entry(format!("{way}: vaulted, {verdict}"))
                .or_default() += 1;

            if verdict == "different" {
                let lost = answer["problems"].to_string();
                problems.push(format!("{name} as {way} ({id}): {lost}"));
            }
        }
    }

    for (outcome, count) in &counts {
        println!("{count:5} {outcome}");
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_an_empty_password_is_opened_with_a_warning_and_both_hashes() {
    let app = TestApp::start().await;
    let locked = pdf::encrypted(CONTRACT);
    let (id, answer) = paper(&app, &locked).await;
    let answer = answer.json();
    assert_eq!(answer["warnings"][0]["code"], "encryption_removed");

    let uploaded = app.entry(&id, "document.uploaded").await;
    let repair = &uploaded["rewritten"];
    assert_eq!(repair["uploaded_hash"], answer["data"]["hash"]);
    assert_ne!(repair["rewritten_hash"], repair["uploaded_hash"]);

    let fields = json!([{
        "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "anchor", "anchor_text": "Buyer signature:", "w": 0.2, "h": 0.03 },
    }]);
    let answer = app.new_template(&locked, &fields).await.json();
    assert_eq!(answer["warnings"][0]["code"], "encryption_removed");

    let body = envelope_body(&answer["data"]["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let created = app.entry(id, "envelope.created").await;
    assert_eq!(
        created["rewritten"]["uploaded_hash"],
        repair["uploaded_hash"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_signs_something_else_than_it_seems_is_warned_about() {
    let app = TestApp::start().await;
    let (_, answer) = paper(&app, &hunted("xfa-dynamic")).await;
    let warnings = answer.json()["warnings"].to_string();
    assert!(warnings.contains("dynamic_xfa"), "{warnings}");

    let (_, answer) = paper(&app, CONTRACT).await;
    assert!(answer.json().get("warnings").is_none());
}

/// A document with a script that runs when it is opened, and a link that starts a program.
fn acting() -> Vec<u8> {
    let mut document = PdfBuilder::new();
    document.catalog("/OpenAction << /S /JavaScript /JS (app.beep) >>");
    document.page_with(
        "/MediaBox [0 0 612 792] /Annots [<< /Type /Annot /Subtype /Link /Rect [70 690 300 710] \
         /A << /S /Launch /F (calc.exe) >> >>]",
        "",
        "BT /F1 12 Tf 72 700 Td (The buyer agrees to pay the total of payments.) Tj ET",
    );

    document.build()
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_kept_removed_or_refused_as_the_organization_decides() {
    let app = TestApp::start().await;
    let (_, answer) = paper(&app, &acting()).await;
    let warnings = answer.json()["warnings"].to_string();
    for code in ["javascript", "launch_action", "open_action"] {
        assert!(warnings.contains(code), "{code}: {warnings}");
    }

    app.set_organization(&["active_content=remove"]);
    let (id, answer) = paper(&app, &acting()).await;
    let warnings = answer.json()["warnings"].take();
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
    assert_eq!(warnings[0]["code"], "actions_removed");

    let rewritten = app.entry(&id, "document.uploaded").await["rewritten"].take();
    assert_eq!(rewritten["reason"], "its scripts and actions are removed");

    for copy in [vault_in(&app, &id).await, app.copy(&id).await] {
        for action in [&b"/JavaScript"[..], b"/Launch", b"/OpenAction"] {
            let found = memchr::memmem::find(&copy, action);
            assert_eq!(found, None, "{}", String::from_utf8_lossy(action));
        }
        assert!(pdf::text(&copy).contains(WORDS));
    }

    app.set_organization(&["active_content=refuse"]);
    let (_, answer) = paper(&app, &acting()).await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.json()["details"][0]["code"], "active_content");

    let (_, answer) = paper(&app, CONTRACT).await;
    answer.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certification_is_given_up_only_when_the_sender_says_so() {
    let app = TestApp::start().await;
    let mut certified = PdfBuilder::new();
    let signature = certified.object(
        "<< /Type /Sig /Filter /Adobe.PPKLite /SubFilter /adbe.pkcs7.detached \
         /ByteRange [0 1 2 3] /Contents <00> /Reference [<< /Type /SigRef /TransformMethod /DocMDP \
         /TransformParams << /Type /TransformParams /P 1 /V /1.2 >> >>] >>",
    );
    certified.catalog(&format!(
        "/Perms << /DocMDP {signature} 0 R >> /AcroForm << /SigFlags 3 /Fields [<< /FT /Sig \
         /T (Certified) /V {signature} 0 R >>] >>"
    ));

    certified.page_with(
        "/MediaBox [0 0 612 792]",
        "",
        "BT /F1 12 Tf 72 700 Td (The buyer agrees to pay the total of payments.) Tj ET",
    );
    let certified = certified.build();
    let fields = json!([{
        "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "absolute", "areas": [{ "page": 1, "x": 0.5, "y": 0.8, "w": 0.3, "h": 0.05 }] },
    }]);
    let refused = app.new_template(&certified, &fields).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("accept_certification_loss"),
        "{}",
        refused.text()
    );

    let sender = Session::of(&app, "sender@example.com", "sender").await;
    let uploaded = async |more: &[(&str, &str)]| {
        let texts = [&[("name", "Public form")], more].concat();
        let answer = sender.upload(&app, "/console/templates", &certified, &texts);
        answer.await.status
    };
    assert_eq!(uploaded(&[]).await, 422);
    assert_eq!(uploaded(&[("accept_certification_loss", "yes")]).await, 303);

    let fields = fields.to_string();
    let texts = [
        ("name", "Public form"),
        ("fields_json", fields.as_str()),
        ("accept_certification_loss", "true"),
    ];
    let template = app
        .upload("/partner/templates", "application/pdf", &certified, &texts)
        .await
        .data(200);
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let created = app.entry(id, "envelope.created").await;
    let rewritten = &created["rewritten"];
    assert_eq!(
        rewritten["given_up"][0]["field"], "Certified",
        "{rewritten}"
    );

    assert_ne!(rewritten["uploaded_hash"], rewritten["rewritten_hash"]);
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;
    let text = pdf::text(&app.copy(id).await);
    assert!(
        text.contains(WORDS) && text.contains("Jordan Lee"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_opens_a_protected_document_and_is_not_kept() {
    let app = TestApp::start().await;
    let locked = pdf::with_password(CONTRACT, "green heron 7");
    let (_, answer) = paper(&app, &locked).await;
    assert_eq!(answer.status, 422);

    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let upload = format!("/partner/envelopes/{id}/upload");
    let wrong = [("password", "blue heron 7")];
    let refused = app
        .upload(&upload, "application/pdf", &locked, &wrong)
        .await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let right = [("password", "green heron 7")];
    let answer = app
        .upload(&upload, "application/pdf", &locked, &right)
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.json()["warnings"][0]["code"], "encryption_removed");

    let copy = vault_in(&app, id).await;
    assert!(pdf::text(&copy).contains("uthoritative copy"));

    let fields = json!([{
        "name": "Buyer signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": { "mode": "anchor", "anchor_text": "Buyer signature:", "w": 0.2, "h": 0.03 },
    }]);
    let fields = fields.to_string();
    let texts = [
        ("name", "Locked"),
        ("fields_json", fields.as_str()),
        right[0],
    ];
    app.upload("/partner/templates", "application/pdf", &locked, &texts)
        .await
        .data(200);

    for file in files_below(app.data.path()) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = memchr::memmem::find(&bytes, b"green heron");
        assert_eq!(found, None, "{}", file.display());
    }
}
