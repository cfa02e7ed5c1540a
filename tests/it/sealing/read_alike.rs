//! What the signer saw is what the vault holds, also of damaged files: every word of the source is in the
//! executed document and in both copies.

use serde_json::json;

use super::seals::{authoritative_copy, paper, vault_in};
use crate::support::{CONTRACT, TestApp, envelope_body, form, pdf};

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
