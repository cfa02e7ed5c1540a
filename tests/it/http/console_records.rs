//! Receivers of webhooks and customers in the console.

use axum::http::Method;
use serde_json::{Value, json};

use super::console::Session;
use super::passkeys::encoded;
use crate::support::receiver::WebhookReceiver;
use crate::support::{TestApp, envelope_body, pdf};

/// A receiver is added, tested, changed, switched off and on, and deleted; its secret is shown once.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_managed_in_the_console() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    let dev = Session::of(&app, "dev@oak.example", "developer").await;
    let empty = dev.get(&app, "/console/developers").await.text();
    assert!(empty.contains("No receivers yet."), "{empty}");

    let form = encoded(&[
        ("url", &receiver.url),
        ("description", "Deal desk"),
        ("event-vault.*", "yes"),
    ]);
    let made = dev.post(&app, "/console/receivers", &form).await;
    assert_eq!(made.status, 201, "{}", made.text());

    let text = made.text();
    let (_, rest) = text.split_once("value=\"whsec_").expect("a secret");
    let secret = rest.split('"').next().unwrap();
    let (_, rest) = text.split_once("/console/receivers/").expect("a link");
    let page = format!("/console/receivers/{}", rest.split('"').next().unwrap());

    let shown = dev.get(&app, &page).await.text();
    assert!(
        shown.contains("Deal desk") && shown.contains("vault.*"),
        "{shown}"
    );
    assert!(shown.contains("No deliveries yet."), "{shown}");
    assert!(!shown.contains(secret), "the secret is shown again");

    // A test that the receiver takes, and one that it refuses.
    for (answer, result, note) in [
        (200, "taken", "The receiver took the test event."),
        (500, "refused", "The receiver did not take the test event."),
    ] {
        receiver.answer_with(answer);
        let tested = dev.post(&app, &format!("{page}/test"), "").await;
        let to = format!("{page}?tested={result}");
        assert_eq!(tested.headers["location"], to, "{}", tested.text());
        let shown = dev.get(&app, &to).await.text();
        assert!(shown.contains(note), "{shown}");
        assert!(shown.contains(&format!("HTTP {answer}")), "{shown}");
    }

    // Both are of today: a bar of two parts, and a row of the table.
    let shown = dev.get(&app, &page).await.text();
    assert_eq!(shown.matches("<rect").count(), 2, "{shown}");
    assert!(shown.contains("<td>1</td><td>1</td><td>0</td>"), "{shown}");

    let form = encoded(&[("url", &receiver.url), ("event-*", "yes")]);
    let changed = dev.post(&app, &format!("{page}/edit"), &form).await;
    assert_eq!(changed.status, 303, "{}", changed.text());
    let all = dev.get(&app, &page).await.text();
    assert!(all.contains("Events: All events"), "{all}");
    let without = encoded(&[("url", &receiver.url)]);
    let without = dev.post(&app, &format!("{page}/edit"), &without).await;
    assert_eq!(without.status, 422, "a receiver without events");

    let list = async || {
        let list = app.get_with_bearer(app.web_admin(), "/webhooks/endpoints");
        list.await.data(200)
    };
    let one = list().await[0].clone();
    assert_eq!(one["events"], json!(["*"]));
    assert_eq!(one["description"], Value::Null);

    for (act, is_active) in [("disable", false), ("enable", true)] {
        let acted = dev.post(&app, &format!("{page}/{act}"), "").await;
        assert_eq!(acted.headers["location"], page, "{act}");
        assert_eq!(list().await[0]["is_active"], is_active, "{act}");
    }

    let rotated = dev.post(&app, &format!("{page}/rotate"), "").await;
    assert_eq!(rotated.status, 201, "{}", rotated.text());
    assert!(rotated.text().contains("value=\"whsec_"));
    assert!(!rotated.text().contains(secret), "the old secret is shown");

    let deleted = dev.post(&app, &format!("{page}/delete"), "sure=yes").await;
    assert_eq!(deleted.headers["location"], "/console/developers");
    assert_eq!(list().await, json!([]));
    let log = dev.get(&app, &page).await.text();
    assert!(
        log.contains("This receiver was deleted.") && log.contains("webhook.test"),
        "{log}"
    );
}

/// Customers are found by a part of the name or address, with their envelopes and files.
#[tokio::test(flavor = "multi_thread")]
async fn customers_are_found_with_their_envelopes() {
    let app = TestApp::start().await;
    let eva = Session::of(&app, "eva@oak.example", "auditor").await;
    let empty = eva.get(&app, "/console/customers").await.text();
    assert!(empty.contains("No customers yet."), "{empty}");

    let vaulted = app.vaulted_envelope().await;
    let mut body = envelope_body(&Value::Null);
    body["customer_email"] = "kim.birch@elm.example".into();
    body["customer_name"] = "Kim 100%".into();
    let second = app.post("/partner/envelopes", body).await.data(201);
    let second = second["envelope_id"].as_str().unwrap();

    for (asked, jordan, kim) in [
        ("", true, true),
        ("?q=JORDAN", true, false),
        ("?q=elm.example", false, true),
        ("?q=100%25", false, true),
        ("?q=_", false, false),
        ("?q=%25", false, true),
    ] {
        let page = eva.get(&app, &format!("/console/customers{asked}")).await;
        let page = page.text();
        assert_eq!(page.contains("jordan.lee@example.com"), jordan, "{asked}");
        assert_eq!(page.contains("kim.birch@elm.example"), kim, "{asked}");
    }

    let envelope = app
        .get(&format!("/partner/envelopes/{vaulted}"))
        .await
        .data(200);
    let customer = envelope["customer_id"].as_str().unwrap();
    let page = eva
        .get(&app, &format!("/console/customers/{customer}"))
        .await
        .text();
    for shown in [
        "jordan.lee@example.com".to_owned(),
        format!("/console/envelopes/{vaulted}\""),
        format!("/console/envelopes/{vaulted}/files/copy"),
    ] {
        assert!(page.contains(&shown), "{shown}: {page}");
    }
    assert!(!page.contains(second), "{page}");

    // The id of a customer finds it, too.
    let found = eva
        .get(&app, &format!("/console/customers?q={customer}"))
        .await
        .text();
    assert!(
        found.contains("jordan.lee@example.com") && !found.contains("kim.birch"),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_envelope_shows_its_facts_and_sources_that_differ() {
    let app = TestApp::start().await;
    let map = json!({
        "name": "Loan", "applies_to": { "all": true },
        "facts": [{
            "name": "vin", "kind": "vin", "declared": "vin",
            "printed": [{ "anchor": "VIN", "direction": "right_of" }],
        }],
    });
    app.web(Method::POST, "/fact-maps", map).await.data(201);
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    body["metadata"] = json!({ "vin": "1M8GDM9AXKP042789" });
    let paper = app.post("/partner/envelopes", body).await.data(201);
    let id = paper["envelope_id"].as_str().unwrap();
    let document = pdf::with_lines(&["VIN 1M8GDM9AXKP042788"]);
    let path = format!("/partner/envelopes/{id}/upload");
    app.upload(&path, "application/pdf", &document, &[])
        .await
        .data(201);

    let sender = Session::of(&app, "sam@oak.example", "sender").await;
    let page = format!("/console/envelopes/{id}");
    let before = sender.get(&app, &page).await.text();
    assert!(!before.contains("Facts of the contract"), "{before}");
    let path = format!("/partner/envelopes/{id}/vault-in-upload");
    app.post(&path, json!({})).await.data(200);
    let shown = sender.get(&app, &page).await.text();
    for expected in [
        "Facts of the contract",
        "1M8GDM9AXKP042788",
        "sources differ",
        "printed text · page 1",
        "your metadata, vin: ",
        "1M8GDM9AXKP042789",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}
