//! Conversions to paper: an original that is printed once replaces the authoritative copy.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Party, asked, code, controlled, vault_out};
use crate::support::{TestApp, TestResponse, operator_output, pdf, release_form};

/// A release form that asks for a paper original.
fn paper_form() -> Value {
    let mut form = release_form();
    form["medium"] = "paper".into();
    form
}

/// The link to the document that is printed.
fn link(released: &Value) -> &str {
    released["authoritative_signed_url"].as_str().unwrap()
}

/// Waits until the download of a paper original is in the ledger.
async fn downloaded(app: &TestApp, id: &str) {
    let entry = app.wait_for_entry(id, "paper_original.downloaded").await;
    assert_eq!(entry["file"], "paper_original");
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paper_original_leaves_once_and_replaces_the_authoritative_copy() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let converted = vault_out(&app, &id, paper_form()).await.data(200);
    assert_eq!(converted["authoritative_filename"], "paper-original.pdf");

    let printed = app.get(link(&converted)).await;
    assert_eq!(printed.status, 200, "{}", printed.text());

    let archive = std::fs::read(app.objects("archive").remove(0)).unwrap();
    let hash = hex::encode(Sha256::digest(&archive));
    assert_eq!(
        app.entry(&id, "vault.released").await["document_hash"],
        hash
    );

    // The sealed file is no part of the one to print.
    let head = &archive[..archive.len() / 8];
    assert!(!printed.bytes.windows(head.len()).any(|part| part == head));
    assert!(!pdf::signatures(&printed.bytes).contains("Signature #1"));

    let text = words(&pdf::text(&printed.bytes));
    let line = format!("Paper original of {id} · converted ");
    let for_whom =
        format!("for First Example Bank · replaces the electronic copy with SHA-256 {hash}");
    assert!(text.contains(&line) && text.contains(&for_whom), "{text}");

    downloaded(&app, &id).await;
    assert_eq!(app.get(link(&converted)).await.status, 410);

    for form in [paper_form(), release_form()] {
        let again = vault_out(&app, &id, form).await;
        assert_eq!(code(&again, 409), "converted_to_paper");
    }
    assert_eq!(app.objects("archive").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_and_pages_tell_that_a_paper_original_replaced_the_copy() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    vault_out(&app, &id, paper_form()).await.data(200);
    let (data, of) = (app.data.path().to_owned(), id.clone());
    let verified = tokio::task::spawn_blocking(move || operator_output(&data, &["verify", &of]));
    let report: Value = serde_json::from_slice(&verified.await.unwrap().stdout).unwrap();
    assert_eq!(report["verdict"], "VALID", "{report:#}");
    assert!(
        report
            .to_string()
            .contains("vaulted once, and a paper original has replaced it"),
        "{report:#}"
    );

    let path = format!("/partner/envelopes/{id}/completion-certificate");
    let certificate = pdf::text(&app.get(&path).await.bytes);
    let mut links = certificate.split_whitespace();
    let address = links.find(|word| word.contains("/verify/")).unwrap();
    let address = &address[address.find("/verify/").unwrap()..];
    let page = app
        .send(Request::get(address).body(Body::empty()).unwrap())
        .await;
    assert!(
        page.text()
            .contains("A paper original has replaced the authoritative copy")
    );
    assert!(!page.text().contains("released to another custodian"));

    let path = format!("/partner/envelopes/{id}/custody-record");
    let record = words(&pdf::text(&app.get(&path).await.bytes));
    assert!(record.contains("replaced by a paper original"), "{record}");

    let released = app.events(&id).await;
    let released = released
        .iter()
        .find(|event| event["event_type"] == "vault.released");
    assert_eq!(released.unwrap()["data"]["medium"], "paper");
}

/// One link is valid at a time, and a download that breaks off can be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_link_to_a_paper_original_ends_the_one_before() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let first = vault_out(&app, &id, paper_form()).await.data(200);
    let mut other = paper_form();
    other["recipient_organization"] = "Second Example Bank".into();
    let other = vault_out(&app, &id, other).await;
    assert_eq!(code(&other, 409), "released_to_another");

    let second = vault_out(&app, &id, paper_form()).await.data(200);
    assert_eq!(app.get(link(&first)).await.status, 410);

    let path = link(&second).strip_prefix("http://127.0.0.1:8080").unwrap();
    let request = || Request::get(path).body(Body::empty()).unwrap();
    let download = app.begin(request()).await;
    assert_eq!(download.status(), 200);

    let early = vault_out(&app, &id, paper_form()).await;
    assert!(early.error(409).contains("is being downloaded"));

    drop(download);
    let third = loop {
        let answer: TestResponse = vault_out(&app, &id, paper_form()).await;
        if answer.status == 200 {
            break answer.data(200);
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(app.get(link(&second)).await.status, 410);
    assert_eq!(app.get(link(&third)).await.status, 200);

    downloaded(&app, &id).await;
}

/// After a crash during a download the node does not know how much arrived. The link counts as in use
/// for its whole lifetime.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_a_crash_ended_is_repeated_an_hour_later() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    vault_out(&app, &id, paper_form()).await.data(200);
    app.execute("update download_link set used_at = created_at where file = 'paper_original'")
        .await;
    vault_out(&app, &id, paper_form()).await.error(409);
    let app = app.as_of(std::time::Duration::from_secs(3_601)).await;
    let later = vault_out(&app, &id, paper_form()).await.data(200);
    assert_eq!(app.get(link(&later)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_left_as_a_file_does_not_become_paper() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let mut unknown = release_form();
    unknown["medium"] = "parchment".into();
    vault_out(&app, &id, unknown).await.error(422);
    assert!(app.objects("archive").is_empty());

    vault_out(&app, &id, release_form()).await.data(200);
    let late = vault_out(&app, &id, paper_form()).await;
    assert!(late.error(409).contains("has left the vault as a file"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversion_needs_the_consent_of_controller_and_pledgee() {
    let (app, id, lender) = controlled().await;
    let warehouse = Party::new(&app).await;
    let pledge = json!({ "envelope_id": id, "pledgee": warehouse.org });
    let pledges = "/partner/control/pledges";
    let pledge = app.post_as(&lender.key, pledges, pledge).await.data(201);
    let own = lender.act(&app, &id, "release", paper_form()).await;
    assert_eq!(code(&own, 409), "record_pledged");

    let given_up = format!(
        "{pledges}/{}/release",
        pledge["pledge_id"].as_str().unwrap()
    );
    app.post_as(&warehouse.key, &given_up, json!({}))
        .await
        .data(200);

    let release = asked(&vault_out(&app, &id, paper_form()).await);
    app.wait_until_idle().await;
    let mails = app.wait_for_mails(2).await;
    let letters = mails.iter().map(|mail| {
        let parsed = mail_parser::MessageParser::default().parse(mail).unwrap();
        words(&parsed.body_text(0).unwrap())
    });
    let letters: Vec<String> = letters.collect();
    let letter = letters.join(" ");
    assert!(
        letter.contains("by a paper original for First Example Bank"),
        "{letter}"
    );

    lender.answer(&app, &release, "consent").await.data(200);
    app.wait_until_idle().await;

    // The consent is one to a paper original.
    let file = vault_out(&app, &id, release_form()).await;
    assert_eq!(code(&file, 409), "control_consent_required");

    let converted = vault_out(&app, &id, paper_form()).await.data(200);
    assert_eq!(app.get(link(&converted)).await.status, 200);

    downloaded(&app, &id).await;

    let entry = app.entry(&id, "control.released").await;
    assert_eq!(
        (&entry["medium"], &entry["stage"]),
        (&json!("paper"), &json!("released"))
    );

    let events = lender.events(&app, &id).await;
    assert_eq!(events.last().unwrap()["data"]["medium"], "paper");

    let replayed = operator_output(app.data.path(), &["replay", &id]);
    let replayed = String::from_utf8(replayed.stdout).unwrap();
    assert!(replayed.contains("ConvertToPaper"), "{replayed}");
    assert!(!replayed.contains("\"same\":false"), "{replayed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_not_converted() {
    let (app, id, lender) = controlled().await;
    let own = app.vaulted_envelope().await;
    for copy in app.objects("copies") {
        let bytes = std::fs::read(&copy).unwrap();
        std::fs::write(&copy, &bytes[1..]).unwrap();
    }

    operator_output(app.data.path(), &["vault", "sweep"]);
    let refused = lender.act(&app, &id, "release", paper_form()).await;
    assert_eq!(code(&refused, 409), "record_held");

    let refused = vault_out(&app, &own, paper_form()).await;
    assert_eq!(code(&refused, 409), "record_held");
    assert!(app.objects("archive").is_empty());
}
