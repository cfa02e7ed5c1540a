//! Three people sign in order on a phone, and each sees what those before them entered.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, envelope_body, files_below, form, pdf};

const ROLES: [&str; 3] = ["Buyer", "Co-buyer", "Dealer"];
/// Number of contracts without a corpus.
const FEW: usize = 3;
/// Number of contracts from the documents of a corpus.
const MANY: usize = 100;

/// Returns the fields of contract `number`: a name and a signature for each role, at places that
/// differ between contracts.
fn fields(number: usize) -> Value {
    let fields = ROLES.iter().enumerate().flat_map(|(index, role)| {
        let column = 0.05 + 0.3 * index as f64;
        let row = 0.1 + 0.008 * (number % MANY) as f64;
        [
            ("Name of", "text", row),
            ("Signature of", "signature", row + 0.04),
        ]
        .map(|(name, kind, y)| {
            json!({
                "name": format!("{name} {role}"), "type": kind, "role": role, "required": true,
                "placement": {
                    "mode": "absolute",
                    "areas": [{ "page": 1, "x": column, "y": y, "w": 0.25, "h": 0.025 }],
                },
            })
        })
    });

    Value::Array(fields.collect())
}

/// Returns the documents: small ones of this repository, and those of `HOLDFAST_CORPUS`.
fn documents() -> (Vec<PathBuf>, usize) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let corpus = std::env::var_os("HOLDFAST_CORPUS").map(PathBuf::from);
    let count = corpus.as_ref().map_or(FEW, |_| MANY);
    let folder = corpus.unwrap_or(fixtures);
    let mut files = files_below(&folder);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "pdf"));
    files.sort();
    (files, count)
}

fn address(role: &str) -> String {
    format!("{}@example.com", role.to_lowercase())
}

async fn link(app: &TestApp, id: &str, role: &str) -> String {
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    let mut signers = links["signers"].as_array().unwrap().iter();
    let signer = signers
        .find(|signer| signer["email"] == address(role))
        .unwrap();
    signer["embed_url"].as_str().unwrap().to_owned()
}

/// Signs on a phone: the name, the signature, consent.
async fn sign(browser: &TestBrowser, role: &str, name: &str) {
    browser.see(".sheet img").await;
    browser.click(".next").await;
    browser
        .type_into(&format!("[name='Name of {role}']"), name)
        .await;
    browser.click(".next").await;
    browser.see(&format!("[name='Signature of {role}']")).await;

    browser.click(".next").await;
    browser.see("#consent").await;
    browser.click("#consent").await;
    browser.click("button[value=finish]").await;

    browser.read("Thank you").await;
}

/// `HOLDFAST_CORPUS` names a folder with documents of others: a hundred contracts are then made of
/// those that the service takes. Documents that it refuses are counted, each with its reason.
#[tokio::test(flavor = "multi_thread")]
async fn three_people_sign_in_order_on_a_phone_and_see_each_other() {
    let app = TestApp::on_a_socket().await;
    let (files, count) = documents();
    let mut templates = Vec::new();
    for file in &files {
        // The copies are judged by poppler, so it has to open the document itself.
        let opened = Command::new("pdffonts").arg(file).output().unwrap();
        if String::from_utf8_lossy(&opened.stderr).contains("Invalid page count") {
            println!("no contract: {}", file.display());
            continue;
        }

        let bytes = std::fs::read(file).unwrap();
        let answer = app.new_template(&bytes, &fields(0)).await;
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        match answer.status.as_u16() {
            200 => templates.push((name, bytes)),
            422 => println!("refused: {name}: {}", answer.json()["error"]),
            other => panic!("{name}: {other} {}", answer.text()),
        }
    }

    println!("{} of {} documents are taken", templates.len(), files.len());
    assert!(!templates.is_empty());

    for number in 0..count {
        let (name, bytes) = &templates[number % templates.len()];
        let template = app.template(bytes, &fields(number)).await;
        let mut body = envelope_body(&template["template_id"]);
        body["preserve_signing_order"] = true.into();
        let person = |role: &&str| json!({ "email": address(role), "name": format!("{role} {number}"), "role": role });
        body["signers"] = ROLES.iter().map(person).collect();
        let created = app.post("/partner/envelopes", body).await.data(201);

        let id = created["envelope_id"].as_str().unwrap().to_owned();
        for (turn, role) in ROLES.iter().enumerate() {
            let url = link(&app, &id, role).await;
            let page = form::open(&app, &url).await;
            assert_eq!(page.status, 200, "{name}, {role}: {}", page.text());

            let browser = TestBrowser::open(EmulatedScreen::Phone).await;
            browser.goto(&url).await;
            browser.see(".sheet img").await;
            let marks = "return document.querySelectorAll('g.earlier').length";
            assert_eq!(browser.run(marks).await, 2 * turn, "{name}, {role}");

            let text = form::open(&app, &format!("{url}/pages/1.txt")).await.text();
            for before in &ROLES[..turn] {
                let entry =
                    format!("Name of {before}: Person {number} ({before} {number}, {before})");
                assert!(text.contains(&entry), "{name}, {role}: {entry}: {text}");
            }

            sign(&browser, role, &format!("Person {number}")).await;
        }

        app.wait_for(&id, "vaulted").await;
        let copy = app.copy(&id).await;
        assert!(pdf::fonts(&copy).contains("Caveat"), "{name}");

        println!("{number}: {name}");
    }
}
