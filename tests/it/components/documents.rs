//! Awkward and hostile documents, through the API and the real components. The program that
//! makes the files in `tests/fixtures` documents the positions of their texts.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::builder::PdfBuilder;
use crate::damage::{DamageSequence, mutate};
use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, form, pdf};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

async fn upload(app: &TestApp, file: &[u8], fields: &Value) -> TestResponse {
    let fields = fields.to_string();
    let texts = [("name", "Contract"), ("fields_json", fields.as_str())];
    app.upload("/partner/templates", "application/pdf", file, &texts)
        .await
}

fn anchor(text: &str) -> Value {
    json!([{
        "name": "Signature", "type": "signature", "role": "Buyer",
        "placement": { "mode": "anchor", "anchor_text": text, "w": 0.2, "h": 0.05 },
    }])
}

/// For every page rotation and page box, the field is at the same place on the displayed page.
#[tokio::test(flavor = "multi_thread")]
async fn an_anchor_matches_the_displayed_page_for_every_rotation_and_box() {
    const PAGES: u32 = 18;

    let app = TestApp::start().await;
    let fields: Vec<Value> = (1..=PAGES)
        .map(|page| {
            json!({
                "name": format!("Signature {page}"), "type": "signature", "role": "Buyer",
                "placement": {
                    "mode": "anchor", "anchor_text": "sign  HERE: buyer", "page": page,
                    "offset_x": 0.2, "offset_y": 0.01, "w": 0.2, "h": 0.05,
                },
            })
        })
        .collect();

    let template = upload(&app, &fixture("synth-geometry.pdf"), &json!(fields))
        .await
        .data(200);
    assert_eq!(template["fields_added"], PAGES);

    let number = |value: &Value| value.as_f64().unwrap();
    for (field, page) in template["fields"].as_array().unwrap().iter().zip(1..) {
        let found = &field["anchor_match"];
        assert_eq!(found["page"], page);

        // The text begins 60 points from the left of 600; its baseline is 100
        // points from the top of 400.
        assert!((number(&found["x"]) - 0.1).abs() < 1e-4, "{found}");

        let (top, bottom) = (
            number(&found["y"]),
            number(&found["y"]) + number(&found["h"]),
        );
        assert!(
            top < 0.25 && 0.25 < bottom && bottom - top < 0.04,
            "{found}"
        );

        let area = &field["areas"][0];
        assert_eq!(area["page"], page);
        assert!((number(&area["x"]) - number(&found["x"]) - 0.2).abs() < 1e-6);
        assert!((number(&area["y"]) - number(&found["y"]) - 0.01).abs() < 1e-6);
    }
}

/// Tags become fields and are removed from the page; all other words stay.
#[tokio::test(flavor = "multi_thread")]
async fn tags_become_fields_and_are_removed_from_the_page() {
    let app = TestApp::start().await;
    let original = fixture("synth-tags.pdf");
    let name = [("name", "Contract")];
    let template = app.upload("/partner/templates", "application/pdf", &original, &name);
    let template = template.await.data(200);
    let fields: Vec<(&str, &str, &str, usize)> = template["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| {
            let text = |member: &str| field[member].as_str().unwrap();
            let areas = field["areas"].as_array().unwrap().len();
            (text("name"), text("type"), text("role"), areas)
        })
        .collect();

    let expected = [
        ("Buyer signature", "signature", "Buyer", 2),
        ("Signed on", "date", "Buyer", 1),
        ("Vin", "text", "Seller", 1),
        ("Initials", "initials", "Buyer", 2),
    ];
    assert_eq!(fields, expected);

    let stored = app.objects("templates");
    let stored = std::fs::read(&stored[0]).unwrap();
    let words = |text: String| -> Vec<String> {
        text.split_whitespace()
            .filter(|word| {
                [
                    "whole", "after", "split", "parted", "left", "right", "second", "page",
                ]
                .contains(word)
            })
            .map(str::to_owned)
            .collect()
    };

    let after = pdf::text(&stored);
    assert!(!after.contains("{{") && !after.contains("}}"), "{after}");
    assert_eq!(words(after), words(pdf::text(&original)));

    let raw = String::from_utf8_lossy(&stored).into_owned();
    assert!(!raw.contains("{{"), "no earlier revision keeps them");
}

/// Each hostile file is either processed or refused with a 422 and a reason.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_documents_are_processed_or_refused_with_a_reason() {
    let app = TestApp::start().await;
    let rows = [
        ("hostile-form-self.pdf", "after", None),
        ("hostile-truncated.pdf", "Sign here: Buyer", None),
        ("hostile-pages-cycle.pdf", "page", Some("page")),
        ("hostile-flate-bomb.pdf", "page", Some("32 MiB")),
    ];
    for (name, text, refused) in rows {
        let answer = upload(&app, &fixture(name), &anchor(text)).await;
        match refused {
            None => assert_eq!(answer.status, 200, "{name}: {}", answer.text()),
            Some(reason) => {
                let details = answer.json()["details"]["reason"].take();
                let given = details.as_str().unwrap().to_owned();
                assert!(given.contains(reason), "{name}: {given}");
                let text = "The PDF could not be read";
                assert_eq!(answer.error(422), text, "{name}");
            }
        }
    }

    let scan = upload(&app, &fixture("synth-scan.pdf"), &anchor("anything")).await;
    let issue = scan.json()["details"][0].take();
    assert_eq!(scan.error(422), "Validation failed");
    assert!(
        issue["message"].as_str().unwrap().contains("may be a scan"),
        "{issue}"
    );
}

/// Sends randomly damaged documents to the template endpoint, which either creates a template or
/// refuses the file. `HOLDFAST_MUTATED` sets their number; `make fuzz-pdf` sends 5,000 and the
/// shared corpus.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_documents_never_make_the_service_fail() {
    let rounds: usize = match std::env::var("HOLDFAST_MUTATED") {
        Ok(rounds) => rounds.parse().unwrap(),
        Err(_) => 60,
    };
    let app = TestApp::start().await;
    let mut originals = vec![CONTRACT.to_vec()];

    let corpus = std::env::var_os("HOLDFAST_CORPUS").map(PathBuf::from);
    for folder in [Some(fixtures()), corpus].into_iter().flatten() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".pdf") && !name.contains("bomb") {
                originals.push(std::fs::read(path).unwrap());
            }
        }
    }

    let mut sequence = DamageSequence(3);
    let mut answers = std::collections::BTreeMap::new();
    let mut resident = 0;
    for round in 0..rounds {
        let damaged = mutate(&originals[round % originals.len()], &mut sequence);
        let answer = upload(&app, &damaged, &anchor("the")).await;
        let status = answer.status.as_u16();
        assert!(
            [200, 415, 422].contains(&status),
            "{round}: {}",
            answer.text()
        );

        *answers.entry(status).or_insert(0) += 1;
        if round == rounds / 2 {
            resident = resident_kib();
        }
    }

    let grown = resident_kib().saturating_sub(resident);
    println!("{rounds} documents: {answers:?}; the second half took {grown} KiB");
    assert!(grown < 65_536, "{grown} KiB more after the second half");
}

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let line = line.unwrap().split_whitespace().nth(1);
    line.unwrap().parse().unwrap()
}

/// Returns a document with this number of short pages.
fn with_pages(count: usize) -> Vec<u8> {
    let mut document = PdfBuilder::new();
    for page in 1..=count {
        document.page(&format!("BT /F1 12 Tf 10 50 Td (Page {page}) Tj ET"));
    }
    document.build()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_five_thousand_pages_is_signed_and_vaulted() {
    let app = TestApp::start().await;
    let fields = json!([{
        "name": "Signature", "type": "signature", "role": "Buyer", "required": true,
        "placement": {
            "mode": "anchor", "anchor_text": "Page 5000", "offset_x": 0.3, "w": 0.2, "h": 0.1,
        },
    }]);
    let template = upload(&app, &with_pages(5_000), &fields).await.data(200);
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;

    let id = envelope["envelope_id"].as_str().unwrap();
    let status = app.wait_for(id, "vaulted").await;
    assert_eq!(status["compliant"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_with_too_many_pages_is_refused_with_the_limit() {
    let app = TestApp::start().await;
    let answer = upload(&app, &with_pages(5_001), &json!([])).await;
    let reason = answer.json()["details"]["reason"].to_string();
    assert!(reason.contains("more than 5,000 pages"), "{reason}");
    assert_eq!(answer.error(422), "The PDF could not be read");
}
