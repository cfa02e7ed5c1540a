//! Sentences of the console about a record, and their absence while they are false.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use super::console::Session;
use crate::service::control::vault_out;
use crate::support::{
    TestApp, TestResponse, envelope_body, form, operator_output, pdf, release_form,
};

/// Compares which of these sentences a page has.
#[track_caller]
fn says(page: &TestResponse, sentences: &[(&str, bool)]) {
    assert_eq!(page.status, 200, "{}", page.text());
    let page = page.text();
    for (sentence, is_true) in sentences {
        assert_eq!(page.contains(sentence), *is_true, "{sentence}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_control_say_what_each_party_may_do() {
    const OFFERED: &str = "This record was offered to you";
    const WAITS: &str = "A release waits for an answer";
    const ASKED: &str =
        "The controller has been asked. Without consent, the record stays in the vault.";
    const OFFER: &str = "Offer control";
    const COPY: &str = "Watermarked copy";

    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let (lender, key) = app.party().await;
    let dealer = Session::of(&app, "dora@oak.example", "owner").await;
    let bank = Session::at(&app, &lender, "lea@bank.example", "controller").await;
    let page = format!("/console/control/records/{id}");

    let release = [
        ("Name of the recipient", true),
        ("Organization of the recipient", true),
        ("E-mail address of the recipient", true),
        ("Purpose of the release", true),
        ("Your name, as a signature", true),
        ("This releases the authoritative copy", true),
        ("The chain of custody ends here", true),
        ("Release the authoritative copy", true),
        (OFFER, true),
        (COPY, false),
        ("Designated controller", false),
        (WAITS, false),
    ];

    says(&dealer.get(&app, &page).await, &release);

    let path = format!("/partner/control/records/{id}/designate");
    let body = json!({ "controller": lender });
    app.post(&path, body).await.data(200);
    let offered = [(OFFERED, true), ("Take control", true)];
    says(&bank.get(&app, &page).await, &offered);
    let offered = [
        (OFFERED, false),
        (OFFER, false),
        ("Designated controller", true),
    ];
    says(&dealer.get(&app, &page).await, &offered);

    let path = format!("/partner/control/records/{id}/accept");
    app.post_as(&key, &path, json!({})).await.data(200);
    let held = [
        (OFFERED, false),
        ("Take control", false),
        (COPY, true),
        (WAITS, false),
        ("Designated controller", false),
    ];
    says(&bank.get(&app, &page).await, &held);

    let list = "/console/control?part=controller";
    let parts = [
        ("Controlled by you", true),
        ("Pledged to you", true),
        ("All records together, or none", true),
        ("Offer to the buyer", true),
        (WAITS, false),
    ];
    says(&bank.get(&app, list).await, &parts);

    let buyer = app.party().await.0;
    let offer = json!({ "buyer": buyer, "records": [id] });
    let offer = app.post_as(&key, "/partner/control/transfers", offer).await;
    let transfer = offer.data(202)["transfer_id"].as_str().unwrap().to_owned();
    app.wait_until_idle().await;
    let page_of_transfer = format!("/console/transfers/{transfer}");
    let offered = bank.get(&app, &page_of_transfer).await;
    says(&offered, &[("Table of the records as CSV", true)]);

    let cancel = format!("/partner/control/transfers/{transfer}/cancel");
    app.post_as(&key, &cancel, json!({})).await.data(202);
    app.wait_until_idle().await;

    assert_eq!(vault_out(&app, &id, release_form()).await.status, 409);
    let asked = [
        (WAITS, true),
        (ASKED, true),
        ("Agree to the release", false),
    ];
    says(&dealer.get(&app, &page).await, &asked);

    let asked = [
        (WAITS, true),
        (ASKED, false),
        ("Agree to the release", true),
    ];
    says(&bank.get(&app, &page).await, &asked);

    says(&bank.get(&app, list).await, &[(WAITS, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_record_are_offered_where_they_are() {
    let app = TestApp::start().await;
    let owner = Session::of(&app, "dora@oak.example", "owner").await;
    let (copy, completion, bundle) = (
        "Copy for the parties (PDF)",
        "Certificate of completion (PDF)",
        "Everything for an auditor (ZIP)",
    );

    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    let page = owner.get(&app, &format!("/console/envelopes/{id}")).await;
    says(
        &page,
        &[(copy, false), (completion, false), (bundle, false)],
    );

    let id = app.vaulted_envelope().await;
    let path = format!("/console/envelopes/{id}");
    let vaulted = owner.get(&app, &path).await;
    says(
        &vaulted,
        &[(copy, true), (completion, true), (bundle, false)],
    );

    vault_out(&app, &id, release_form()).await.data(200);
    let released = owner.get(&app, &path).await;
    says(
        &released,
        &[(copy, true), (completion, true), (bundle, true)],
    );
}

/// Lists of the first page that few organizations need are there while an envelope is in them.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_lists_envelopes_by_what_they_wait_for() {
    let app = TestApp::without_auto_vault().await;
    let owner = Session::of(&app, "dora@oak.example", "owner").await;
    let (expiring, unpaid, stuck) = (
        "Expire within three days",
        "Not paid yet",
        "This document is completed and not in the vault:",
    );

    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    let home = owner.get(&app, "/console").await;
    says(&home, &[(expiring, false), (unpaid, false)]);
    says(&home, &[("In the vault below 100", true)]);
    app.execute("update envelope set payment_status = 'requires_payment', expires_at = created_at")
        .await;

    let home = owner.get(&app, "/console").await;
    says(&home, &[(expiring, true), (unpaid, true)]);

    let page = owner.get(&app, &format!("/console/envelopes/{id}")).await;
    says(&page, &[(stuck, false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_record_is_not_confirmed() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    app.custody(&id).await;
    let owner = Session::of(&app, "dora@oak.example", "owner").await;
    let verify = format!("/console/envelopes/{id}/verify");
    let (confirmed, changed) = (
        "The evidence is unchanged and anchored. This is no finding on enforceability.",
        "The evidence is not confirmed: ",
    );

    let fresh = owner.post(&app, &verify, "").await;
    says(&fresh, &[(confirmed, true), (changed, false)]);
    let (unread, read, found) = (
        "Not read back yet",
        "Last read back:",
        "Stored documents were changed",
    );

    let vault = owner.get(&app, "/console/vault").await;
    says(&vault, &[(unread, true), (read, false), (found, false)]);
    says(&vault, &[("Score 100", true)]);

    operator_output(app.data.path(), &["vault", "sweep"]);
    let vault = owner.get(&app, "/console/vault").await;
    says(&vault, &[(unread, false), (read, true), (found, false)]);

    let mut stored = app.objects("vault");
    stored.retain(|path| path.to_string_lossy().contains(&id));
    std::fs::remove_file(&stored[0]).unwrap();
    std::fs::write(&stored[0], b"another document").unwrap();
    operator_output(app.data.path(), &["vault", "sweep"]);
    let vault = owner.get(&app, "/console/vault").await;
    says(&vault, &[(read, true), (found, true)]);

    let history = owner.get(&app, &format!("/console/envelopes/{id}")).await;
    let line = "A check found that what is stored of this record was changed";
    says(&history, &[(line, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_payments_of_people_are_called_by_what_happened() {
    let app = TestApp::start().await;
    let owner = Session::of(&app, "dora@oak.example", "owner").await;
    let (passed, failed, simulated) = (
        "identity questions passed",
        "identity questions not passed",
        "identity questions simulated: nobody was asked",
    );

    let document = pdf::with_lines(&["{{First;type=signature;role=Buyer;required=true}}"]);
    let texts = [("name", "Asking"), ("kba_required", "true")];
    let template = app.library_template(&texts, &document).await.data(201);
    let mut body = envelope_body(&template["template_id"]);
    body["payment"] = json!({ "amount_cents": 4900, "currency": "usd" });
    let sent = app.post("/partner/envelopes", body).await.data(201);
    let url = sent["sign_url"].as_str().unwrap();

    let id = sent["envelope_id"].as_str().unwrap();
    let page = format!("/console/envelopes/{id}");
    let answer = async |choice: &str| {
        form::open(&app, url).await;
        let answers = format!("q1={choice}&q2=correct&q3=correct");
        let request = Request::post(url.replace("http://127.0.0.1:8080", ""))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(answers))
            .unwrap();
        app.send(request).await
    };

    let unasked = [(passed, false), (failed, false), (simulated, false)];
    says(&owner.get(&app, &page).await, &unasked);
    let unpaid = [("not paid yet", true), (">paid<", false)];
    says(&owner.get(&app, &page).await, &unpaid);
    answer("wrong1").await;
    let once = [(passed, false), (failed, true), (simulated, false)];
    says(&owner.get(&app, &page).await, &once);

    form::press(
        &app,
        url,
        "again",
        &[("again".to_owned(), "again".to_owned())],
    )
    .await;
    assert_eq!(answer("correct").await.status, 303);

    let twice = [(passed, false), (failed, true), (simulated, true)];
    says(&owner.get(&app, &page).await, &twice);

    // Another person takes the place: nothing that the one before did is theirs.
    let path = format!("/partner/envelopes/{id}/signers/Buyer");
    let change = json!({ "email": "sam@example.com", "name": "Sam Elm" });
    app.patch(&path, change).await.data(200);
    says(&owner.get(&app, &page).await, &unasked);
    let path = format!("/envelopes/{id}/kba");
    let results = app.get_with_bearer(app.web_admin(), &path).await;
    let results = results.data(200);
    assert_eq!(results[1]["status"], "passed", "{results}");
    assert_eq!(results[1]["signer"]["name"], "Jordan Lee", "{results}");

    app.execute("update envelope set payment_status = 'paid'")
        .await;
    let is_paid = [("not paid yet", false), (">paid<", true)];
    says(&owner.get(&app, &page).await, &is_paid);
}
