//! Lists of envelopes by tab, and the page of one envelope.

use serde_json::{Value, json};

use super::console::Session;
use crate::support::{TestApp, envelope_body, form, pdf};

/// Creates an envelope with a name, and returns its id.
async fn named(app: &TestApp, name: &str, mut body: Value) -> String {
    body["envelope_name"] = name.into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    made["envelope_id"].as_str().unwrap().to_owned()
}

fn draft() -> Value {
    json!({ "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee" })
}

/// Returns which of these names a page has.
fn shown<'a>(page: &str, names: &[&'a str]) -> Vec<&'a str> {
    let names = names.iter().copied();
    names.filter(|name| page.contains(name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_say_who_acts_next_and_what_is_stuck() {
    let app = TestApp::without_auto_vault().await;
    let template = app.contract_template().await["template_id"].clone();
    let mut with_amount = envelope_body(&template);
    with_amount["metadata"] = json!({ "amount": "12,000.00", "currency": "USD" });
    named(&app, "Waits for Jordan", with_amount).await;
    named(&app, "Never arrived", envelope_body(&template)).await;
    named(&app, "A draft", draft()).await;

    let void = named(&app, "Withdrawn one", envelope_body(&template)).await;
    let path = format!("/partner/envelopes/{void}/void");
    app.post(&path, json!({})).await.data(200);
    let mut body = envelope_body(&template);
    body["envelope_name"] = "Signed one".into();
    let signed = app.post("/partner/envelopes", body).await.data(201);
    form::sign(&app, signed["sign_url"].as_str().unwrap()).await;
    let id = signed["envelope_id"].as_str().unwrap();
    app.wait_for(id, "completed").await;

    app.wait_until_idle().await;
    app.execute(
        "update signer set noticed_at = '2026-01-01T00:00:00.000Z', notice_failure = '550 no such user'
         where envelope_id in (select envelope_id from envelope where name = 'Never arrived')",
    )
    .await;

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let all = [
        "Waits for Jordan",
        "Never arrived",
        "A draft",
        "Withdrawn one",
        "Signed one",
    ];
    for (tab, expected) in [
        ("", &all[..]),
        ("?tab=needs-you", &["A draft", "Signed one"]),
        ("?tab=waiting", &["Waits for Jordan"]),
        ("?tab=stuck", &["Never arrived"]),
        ("?tab=done", &["Withdrawn one"]),
        ("?tab=waiting&q=draft", &[]),
        ("?tab=unknown", &all[..]),
    ] {
        let page = ada.get(&app, &format!("/console/envelopes{tab}")).await;
        assert_eq!(shown(&page.text(), &all), expected, "{tab}");
    }

    let page = ada.get(&app, "/console/envelopes").await.text();
    for text in [
        "12,000.00 USD",
        "Jordan Lee cannot be reached",
        "Your organization",
        "Stuck <span class=\"number\">1</span>",
        "Needs you <span class=\"number\">2</span>",
        "just now",
        "title=\"",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }

    // The first page has the same numbers, and names the people in its lists.
    let home = ada.get(&app, "/console").await.text();
    assert!(
        home.contains("Stuck <span class=\"number\">1</span>")
            && home.contains("Jordan Lee cannot be reached"),
        "{home}"
    );

    // The table for a spreadsheet has the rows of the tab.
    let table = ada.get(&app, "/console/envelopes.csv?tab=stuck").await;
    let table = table.text();
    assert_eq!(shown(&table, &all), ["Never arrived"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_pages_in_both_directions_and_orders() {
    let app = TestApp::start().await;
    for number in 10..37 {
        named(&app, &format!("Draft {number}"), draft()).await;
    }

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let page = async |query: &str| {
        let page = ada.get(&app, &format!("/console/envelopes?{query}")).await;
        assert_eq!(page.status, 200, "{query}");
        page.text()
    };
    let place = |page: &str, name: &str| {
        let (_, rest) = page.split_once(&format!("{name}=env_"))?;
        let id: String = rest
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        Some(format!("{name}=env_{id}"))
    };

    let first = page("").await;
    assert!(first.contains("Draft 36") && !first.contains("Draft 11"));
    assert!(!first.contains("Newer envelopes"), "{first}");
    let older = page(&place(&first, "after").unwrap()).await;
    assert!(older.contains("Draft 11") && older.contains("Draft 10"));
    assert!(!older.contains("Draft 12") && !older.contains("Older envelopes"));

    let back = page(&place(&older, "before").unwrap()).await;
    assert!(back.contains("Draft 36") && back.contains("Draft 12"));
    assert!(!back.contains("Draft 11") && !back.contains("Newer envelopes"));

    let oldest = page("sort=oldest").await;
    assert!(oldest.contains("Draft 10") && !oldest.contains("Draft 36"));
    let after = place(&oldest, "after").unwrap();
    let newest = page(&format!("sort=oldest&{after}")).await;
    assert!(newest.contains("Draft 36") && !newest.contains("Draft 34"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_envelope_says_where_it_is() {
    let app = TestApp::start().await;
    let (id, links) = app.sent_to_two().await;
    form::sign(&app, &links[0]).await;
    app.wait_until_idle().await;

    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let path = format!("/console/envelopes/{id}");
    let page = ada.get(&app, &path).await.text();
    for text in [
        "1 of 2 signed",
        "Waiting for",
        "aria-current=\"step\"",
        "Checked after signing",
        "/pages/1.png?v=",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains("of 100"), "{page}");

    let picture = ada.get(&app, &format!("{path}/pages/1.png")).await;
    assert_eq!(picture.status, 200);
    assert_eq!(picture.headers["content-type"], "image/png");
    for missing in ["99.png", "1.pdf"] {
        let answer = ada.get(&app, &format!("{path}/pages/{missing}")).await;
        assert_eq!(answer.status, 404, "{missing}");
    }

    let reminded = ada.post(&app, &format!("{path}/remind"), "").await;
    assert_eq!(reminded.status, 303);
    let page = ada.get(&app, &path).await.text();
    for text in ["Last reminder", "ada@oak.example reminded "] {
        assert!(page.contains(text), "{text}: {page}");
    }

    app.wait_until_idle().await;
    app.execute(
        "update signer set noticed_at = '2026-01-01T00:00:00.000Z', notice_failure = '550 no such user'
         where completed_at is null",
    )
    .await;
    let page = ada.get(&app, &path).await.text();
    assert!(
        page.contains("Message not delivered:") && page.contains("550 no such user"),
        "{page}"
    );
    assert!(page.contains("cannot be reached"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_is_extended_from_the_page() {
    let app = TestApp::start().await;
    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let path = format!("/console/envelopes/{id}");

    // Within five years from today, on any day.
    let today = holdfast::domain::clock::Clock::default().now();
    let until = today + std::time::Duration::from_secs(700 * 86_400);
    let until = until.to_string()[..10].to_owned();
    let extended = ada
        .post(&app, &format!("{path}/extend"), &format!("until={until}"))
        .await;
    assert_eq!(extended.status, 303, "{}", extended.text());
    let page = ada.get(&app, &path).await.text();
    assert!(
        page.contains("ada@oak.example extended the expiry"),
        "{page}"
    );

    for wrong in ["until=2020-01-01", "until=soon", ""] {
        let refused = ada.post(&app, &format!("{path}/extend"), wrong).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_corrected_from_the_page_that_names_the_consequence() {
    let app = TestApp::start().await;
    let sent = app.sent_envelope().await;
    let id = sent["envelope_id"].as_str().unwrap();
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let path = format!("/console/envelopes/{id}");
    let page = ada.get(&app, &path).await.text();
    assert!(page.contains("Signatures so far become void."), "{page}");

    let correct = format!("{path}/correct");
    let document = pdf::with_lines(&["{{Sign;type=signature;role=Buyer;required=true}}"]);
    let message = ("message", "Another price");
    let unsure = ada.upload(&app, &correct, &document, &[message]).await;
    assert_eq!(unsure.status, 422, "{}", unsure.text());
    let page = unsure.text();
    assert!(
        page.contains("Another price") && page.contains("id=\"sure-document-problem\""),
        "{page}"
    );

    let sure = [message, ("sure", "yes")];
    let corrected = ada.upload(&app, &correct, &document, &sure).await;
    assert_eq!(corrected.status, 303, "{}", corrected.text());
    let new = corrected.headers["location"].to_str().unwrap();
    let page = ada.get(&app, new).await.text();
    assert!(page.contains("The corrected document was sent."), "{page}");
    assert!(page.contains(&path), "{page}");

    // The earlier one names the corrected one, and begins another draft.
    let page = ada.get(&app, &path).await.text();
    assert!(page.contains("Corrected by"), "{page}");
    assert!(page.contains("New from this one"), "{page}");
    let copied = ada.post(&app, &format!("{path}/copy"), "").await;
    let draft = copied.headers["location"].to_str().unwrap();
    let page = ada.get(&app, draft).await.text();
    assert!(
        page.contains("A new draft with the same document"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_sent_and_a_paper_vaulted_from_the_page() {
    let app = TestApp::start().await;
    let ada = Session::of(&app, "ada@oak.example", "sender").await;
    let id = named(&app, "A draft", draft()).await;
    let path = format!("/console/envelopes/{id}");
    let page = ada.get(&app, &path).await.text();
    assert!(page.contains("This draft has no document yet."), "{page}");
    let send = format!("{path}/send");
    assert!(!page.contains(&send), "{page}");

    let tagged = pdf::with_lines(&["{{Sign;type=signature;role=Buyer}}"]);
    let upload = format!("/partner/envelopes/{id}/upload");
    app.upload(&upload, "application/pdf", &tagged, &[])
        .await
        .data(201);
    let page = ada.get(&app, &path).await.text();
    assert!(
        page.contains(&send) && page.contains("/pages/1.png?v="),
        "{page}"
    );
    let sent = ada.post(&app, &send, "").await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(envelope["status"], "sent");

    let mut paper = draft();
    paper["envelope_kind"] = "paper".into();
    let id = named(&app, "A paper", paper).await;
    let path = format!("/console/envelopes/{id}");
    let page = ada.get(&app, &path).await.text();
    assert!(!page.contains("Put into the vault"), "{page}");
    let signed = pdf::with_lines(&["Signed elsewhere"]);
    let upload = format!("/partner/envelopes/{id}/upload");
    app.upload(&upload, "application/pdf", &signed, &[])
        .await
        .data(201);
    let page = ada.get(&app, &path).await.text();
    assert!(page.contains("Put into the vault"), "{page}");

    let vaulted = ada.post(&app, &format!("{path}/vault"), "").await;
    assert_eq!(vaulted.status, 303, "{}", vaulted.text());
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(envelope["status"], "vaulted");
}
