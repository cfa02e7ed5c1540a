//! Looks at records: by their parties, and by people with a view. Every look is recorded.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Party, code, controlled, designate, transfers};
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{TestApp, TestResponse, form, operator_output, pdf, release_form};

const VIEWS: &str = "/partner/control/views";

async fn inspected(app: &TestApp, by: &Party, id: &str) -> TestResponse {
    let path = format!("/partner/control/records/{id}/inspection?purpose=Due%20diligence");
    app.get_as(&by.key, &path).await
}

async fn copy(app: &TestApp, by: &Party, id: &str, purpose: &str) -> TestResponse {
    let path = format!("/partner/control/records/{id}/copy?purpose={purpose}");
    app.get_as(&by.key, &path).await
}

async fn grant(app: &TestApp, by: &Party, id: &str, more: Value) -> TestResponse {
    let mut body = json!({
        "envelope_id": id, "name": "Robin Park", "email": "robin@funding.example", "purpose": "Due diligence",
    });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    app.post_as(&by.key, VIEWS, body).await
}

async fn revoke(app: &TestApp, by: &Party, view: &Value) -> TestResponse {
    let id = view["view_id"].as_str().unwrap();
    app.post_as(&by.key, &format!("{VIEWS}/{id}/revoke"), json!({}))
        .await
}

/// Returns the link that a person was mailed about a view.
async fn view_link(app: &TestApp, view: &Value) -> String {
    mailed_link(app, view["view_id"].as_str().unwrap(), "/inspect/").await
}

/// Returns the link below `path` in the mail that has `id`.
pub async fn mailed_link(app: &TestApp, id: &str, path: &str) -> String {
    let mut count = 1;
    let mail = loop {
        let mails = app.wait_for_mails(count).await;
        if let Some(mail) = mails.iter().find(|mail| mail.contains(id)) {
            break mail.clone();
        }
        count = mails.len() + 1;
    };
    let parsed = mail_parser::MessageParser::default().parse(&mail).unwrap();
    let text = parsed.body_text(0).unwrap().into_owned();
    let path = text.find(path).expect("a link");
    let start = text[..path].rfind("http").expect("a link");
    let end = text[start..].find(char::is_whitespace);

    text[start..end.map_or(text.len(), |end| start + end)].to_owned()
}

/// Opens a page or a file below a person's link.
async fn visit(app: &TestApp, path: &str) -> TestResponse {
    form::open(app, path).await
}

/// Presses a button of the page.
pub async fn press(app: &TestApp, url: &str) -> TestResponse {
    form::press(app, url, "", &[]).await
}

/// Opens the record behind a link, and returns its page.
async fn opened(app: &TestApp, link: &str) -> TestResponse {
    assert_eq!(press(app, link).await.status, 303);
    visit(app, link).await
}

/// Returns the entries about looks at a record.
async fn looks(app: &TestApp, id: &str) -> Vec<Value> {
    let ledger = app
        .get(&format!("/partner/envelopes/{id}/custody"))
        .await
        .data(200);
    let entries = ledger["entries"].as_array().unwrap();
    let looks = entries
        .iter()
        .filter(|entry| entry["action"] == "control.viewed");

    looks.map(|entry| entry["details"].clone()).collect()
}

async fn trace(app: &TestApp, key: &str, file: &[u8]) -> TestResponse {
    let path = "/partner/control/copies/trace";
    app.upload_as(key, path, "application/pdf", file, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_inspects_the_record_before_accepting_it() {
    let (app, id, lender) = controlled().await;
    let (buyer, stranger) = (Party::new(&app).await, Party::new(&app).await);
    inspected(&app, &buyer, &id).await.error(404);
    let offer = json!({ "buyer": buyer.org, "records": [id] });
    let path = "/partner/control/transfers";
    let offer = app.post_as(&lender.key, path, offer).await.data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    transfers::wait(&app, &lender, transfer, "proposed").await;

    let seen = inspected(&app, &buyer, &id).await.data(200);
    assert_eq!(seen["record"]["stage"], "proposed");
    assert_eq!(seen["compliance"]["score"], 100);
    assert_eq!(seen["signers"][0]["status"], "completed");
    assert_eq!(seen["views"], json!([]));

    let entries = seen["ledger"]["entries"].as_array().unwrap();
    assert_eq!(entries.last().unwrap()["action"], "control.viewed");

    let proofs = seen["ledger"]["log"]["inclusion"].as_array().unwrap();
    assert_eq!(proofs.len(), entries.len(), "each entry has a proof");

    let looked = looks(&app, &id).await;
    assert_eq!(looked.len(), 1);
    assert_eq!(looked[0]["party"]["organization_id"], buyer.org.as_str());
    assert_eq!(looked[0]["look"], "record");
    assert_eq!(looked[0]["purpose"], "Due diligence");

    // A look is no act: the epoch stays.
    assert_eq!(seen["record"]["epoch"], 3);

    let record = lender.record(&app, &id).await.data(200);
    assert_eq!(record["epoch"], 3);

    for party in [&lender, &buyer] {
        let events = party.events(&app, &id).await;
        let last = events.last().unwrap();
        assert_eq!(last["event_type"], "control.viewed");
        assert_eq!(last["data"]["party"]["organization_id"], buyer.org.as_str());
    }

    inspected(&app, &stranger, &id).await.error(404);
    copy(&app, &stranger, &id, "Curiosity").await.error(404);
    assert_eq!(looks(&app, &id).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watermarked_copy_leads_to_its_holder() {
    let (app, id, lender) = controlled().await;
    let answer = copy(&app, &lender, &id, "Audit%202026").await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let looked = looks(&app, &id).await;
    let copy_id = looked[0]["copy_id"].as_str().unwrap().to_owned();
    assert_eq!(looked[0]["look"], "copy");
    assert_eq!(looked[0]["purpose"], "Audit 2026");

    let text = pdf::text(&answer.bytes);
    assert!(text.contains("Non-authoritative copy"), "{text}");
    assert!(text.contains("Maple Street Motors"), "{text}");
    assert!(text.contains("Audit 2026"), "{text}");

    let visible_and_hidden = text.matches(copy_id.as_str()).count();
    let pages = text.matches('\u{c}').count();
    assert_eq!(visible_and_hidden, 4 * pages, "{text}");

    // A party to the record that finds the file can look up who got it.
    let found = trace(&app, &app.key, &answer.bytes).await.data(200);
    assert_eq!(found["copy_id"], copy_id.as_str());
    assert_eq!(found["party"]["organization_id"], lender.org.as_str());
    assert_eq!(found["purpose"], "Audit 2026");

    let path = format!("/partner/control/copies/{copy_id}");
    assert_eq!(app.get_as(&lender.key, &path).await.data(200), found);

    let stranger = Party::new(&app).await;
    app.get_as(&stranger.key, &path).await.error(404);
    trace(&app, &stranger.key, &answer.bytes).await.error(404);
    let plain = trace(&app, &app.key, crate::support::CONTRACT).await;
    assert_eq!(plain.status, 422, "{}", plain.text());
    assert_eq!(plain.json()["details"][0]["code"], "no_watermark");

    let text = trace(&app, &app.key, b"not a PDF").await;
    assert_eq!(text.status, 422, "{}", text.text());

    for purpose in ["", "%20", &"x".repeat(201)] {
        let refused = copy(&app, &lender, &id, purpose).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], json!(["purpose"]));
    }

    assert_eq!(looks(&app, &id).await.len(), 1, "refusals are no looks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_a_record_by_a_mailed_link() {
    let (app, id, lender) = controlled().await;
    let view = grant(&app, &lender, &id, json!({})).await.data(201);
    assert_eq!(view["access"], "view");

    let link = view_link(&app, &view).await;

    // Pictures belong to an opened page, which is recorded.
    let picture = format!("{link}/pages/1.png");
    assert_eq!(visit(&app, &picture).await.status, 404);
    assert!(looks(&app, &id).await.is_empty());

    // A program that follows the links of mails opens nothing.
    let closed = visit(&app, &link).await;
    assert_eq!(closed.status, 200, "{}", closed.text());
    assert!(closed.text().contains("Every look is recorded"));
    assert!(!closed.text().contains("/pages/"));
    assert!(looks(&app, &id).await.is_empty());

    let page = opened(&app, &link).await;
    assert_eq!(page.status, 200, "{}", page.text());

    let page = page.text();
    for shown in [
        "Retail instalment contract",
        "Maple Street Motors",
        "took control",
        "8 of 8",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }

    assert!(!page.contains("copy.pdf"), "{page}");
    let looked = looks(&app, &id).await;
    assert_eq!(looked.len(), 1);
    assert_eq!(looked[0]["look"], "document");
    assert_eq!(looked[0]["email"], "robin@funding.example");
    assert_eq!(looked[0]["view_id"], view["view_id"]);

    let picture = visit(&app, &picture).await;
    assert_eq!(picture.status, 200);
    assert!(picture.bytes.starts_with(b"\x89PNG"));
    assert_eq!(press(&app, &format!("{link}/copy.pdf")).await.status, 410);

    // Within an hour it is the same look.
    assert_eq!(opened(&app, &link).await.status, 200);
    assert_eq!(looks(&app, &id).await.len(), 1);

    let later = app.as_of(Duration::from_secs(3_601)).await;
    assert_eq!(
        visit(&later, &format!("{link}/pages/1.png")).await.status,
        404
    );
    assert!(!visit(&later, &link).await.text().contains("/pages/"));

    let inspection = inspected(&app, &lender, &id).await.data(200);
    assert_eq!(inspection["views"][0], view);

    let originators = app
        .get(&format!("/partner/control/records/{id}/inspection"))
        .await
        .data(200);
    assert_eq!(originators["views"], json!([]), "for the controller only");

    let revoked = revoke(&app, &lender, &view).await.data(200);
    assert_ne!(revoked["revoked_at"], Value::Null);
    assert_eq!(visit(&app, &link).await.status, 410);
    assert_eq!(
        visit(&app, &format!("{link}/pages/1.png")).await.status,
        404
    );

    let again = revoke(&app, &lender, &view).await;
    assert_eq!(code(&again, 409), "control_out_of_order");

    let guessed = format!("{}x", &link[..link.len() - 1]);
    assert_eq!(visit(&app, &guessed).await.status, 404);
    assert_eq!(looks(&app, &id).await.len(), 3);

    let released = lender.act(&app, &id, "release", release_form()).await;
    released.data(200);

    // A view that ends after the release leaves the evidence valid.
    let view = grant(&app, &lender, &id, json!({})).await.data(201);
    revoke(&app, &lender, &view).await.data(200);
    let verified = operator_output(app.data.path(), &["verify", &id]);
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["verdict"], "VALID", "{report:#}");

    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_downloads_a_copy_with_their_name() {
    let (app, id, lender) = controlled().await;
    let more = json!({ "access": "download" });
    let view = grant(&app, &lender, &id, more).await.data(201);
    let link = view_link(&app, &view).await;
    assert!(opened(&app, &link).await.text().contains("copy.pdf"));

    let copy = press(&app, &format!("{link}/copy.pdf")).await;
    assert_eq!(copy.status, 200);

    let text = pdf::text(&copy.bytes);
    assert!(
        text.contains("Robin Park <robin@funding.example>"),
        "{text}"
    );

    let found = trace(&app, &lender.key, &copy.bytes).await.data(200);
    assert_eq!(found["holder"], "Robin Park <robin@funding.example>");
    assert_eq!(found["view_id"], view["view_id"]);

    let looked = looks(&app, &id).await;
    let kinds: Vec<&Value> = looked.iter().map(|look| &look["look"]).collect();
    assert_eq!(kinds, ["document", "copy"]);
    assert_eq!(looked[1]["name"], "Robin Park");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_ends_at_its_time_and_when_control_passes() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let originator = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let view = grant(&app, &originator, &id, json!({})).await.data(201);
    let link = view_link(&app, &view).await;
    assert_eq!(visit(&app, &link).await.status, 200);

    let later = app.as_of(Duration::from_secs(15 * 86_400)).await;
    let over = visit(&later, &link).await;
    assert_eq!(over.status, 410);
    assert!(over.text().contains("This view is over"), "{}", over.text());

    let lender = Party::new(&app).await;
    designate(&app, &id, &lender.org).await.data(200);
    assert_eq!(visit(&app, &link).await.status, 200);

    lender.act(&app, &id, "accept", json!({})).await.data(200);
    assert_eq!(visit(&app, &link).await.status, 410);
    assert_eq!(press(&app, &link).await.status, 410);

    // It stays over when control comes back.
    let offer = json!({ "buyer": app.org, "records": [id] });
    let path = "/partner/control/transfers";
    let offer = app.post_as(&lender.key, path, offer).await.data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    transfers::wait(&app, &lender, transfer, "proposed").await;
    transfers::step(&app, &originator, transfer, "accept")
        .await
        .data(202);

    transfers::wait(&app, &lender, transfer, "accepted").await;
    let late = revoke(&app, &originator, &view).await;
    assert_eq!(code(&late, 409), "control_wrong_party");

    transfers::step(&app, &lender, transfer, "confirm")
        .await
        .data(202);
    transfers::wait(&app, &lender, transfer, "confirmed").await;
    assert_eq!(visit(&app, &link).await.status, 410);
}

/// Sells a record, with an agreement about the seller's copy.
async fn sell(app: &TestApp, seller: &Party, buyer: &Party, id: &str, seller_copy: Value) {
    let offer = json!({ "buyer": buyer.org, "records": [id], "seller_copy": seller_copy });
    let path = "/partner/control/transfers";
    let offer = app.post_as(&seller.key, path, offer).await.data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    let offered = transfers::wait(app, seller, transfer, "proposed").await;
    let agreed = seller_copy.as_str().unwrap_or("kept");
    assert_eq!(offered["seller_copy"], agreed);

    transfers::step(app, buyer, transfer, "accept")
        .await
        .data(202);
    transfers::wait(app, seller, transfer, "accepted").await;
    transfers::step(app, seller, transfer, "confirm")
        .await
        .data(202);

    transfers::wait(app, seller, transfer, "confirmed").await;
    let entry = app.entry(id, "control.transfer.confirmed").await;
    assert_eq!(entry["seller_copy"], agreed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seller_keeps_its_copy_marks_it_or_gives_it_up() {
    let app = TestApp::start().await;
    for agreed in [
        Value::Null,
        json!("kept"),
        json!("marked"),
        json!("removed"),
    ] {
        let (id, lender) = super::controlled_in(&app).await;
        let funder = Party::new(&app).await;
        sell(&app, &lender, &funder, &id, agreed.clone()).await;
        inspected(&app, &lender, &id).await.error(404);
        let handed = copy(&app, &lender, &id, "Audit").await;
        if agreed == "removed" {
            assert_eq!(code(&handed, 409), "copy_removed");
            assert!(looks(&app, &id).await.is_empty());
            continue;
        }

        assert_eq!(handed.status, 200, "{}", handed.text());
        let text = pdf::text(&handed.bytes);
        assert_eq!(text.contains("· Sold "), agreed == "marked", "{text}");

        let looked = looks(&app, &id).await;
        assert_eq!(looked[0]["party"]["organization_id"], lender.org.as_str());

        // A party that never had a part in the record gets none.
        let stranger = Party::new(&app).await;
        copy(&app, &stranger, &id, "Audit").await.error(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_originator_that_sells_may_give_up_its_links_until_it_buys_back() {
    let app = TestApp::start().await;
    let originator = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    for (agreed, status) in [("kept", 200), ("marked", 409), ("removed", 409)] {
        let (id, lender) = (app.vaulted_envelope().await, Party::new(&app).await);
        sell(&app, &originator, &lender, &id, json!(agreed)).await;
        let link = format!("/partner/envelopes/{id}/vault/copy/signed-url");
        assert_eq!(app.get(&link).await.status, status, "{agreed}");

        // Nor by the pages of the signers.
        let links = app
            .get(&format!("/partner/envelopes/{id}/signing-links"))
            .await;
        assert_eq!(links.status, status, "{agreed}");

        if status == 409 {
            assert_eq!(code(&links, 409), format!("copy_{agreed}"));
        }

        let marked = copy(&app, &originator, &id, "Audit").await;
        let expected = if agreed == "removed" { 409 } else { 200 };
        assert_eq!(marked.status, expected, "{agreed}");

        if agreed == "removed" {
            let offer = json!({ "buyer": app.org, "records": [id] });
            let path = "/partner/control/transfers";
            let offer = app.post_as(&lender.key, path, offer).await.data(202);
            let transfer = offer["transfer_id"].as_str().unwrap();
            transfers::wait(&app, &lender, transfer, "proposed").await;
            transfers::step(&app, &originator, transfer, "accept")
                .await
                .data(202);

            transfers::wait(&app, &lender, transfer, "accepted").await;
            transfers::step(&app, &lender, transfer, "confirm")
                .await
                .data(202);
            transfers::wait(&app, &lender, transfer, "confirmed").await;

            app.get(&link).await.data(200);
        }
    }

    let wrong = json!({ "buyer": app.org, "records": [], "seller_copy": "burnt" });
    let refused = app.post("/partner/control/transfers", wrong).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_view_is_refused_and_changes_nothing() {
    let (app, id, lender) = controlled().await;
    let issues = [
        (json!({ "name": " " }), "invalid_string", "name"),
        (json!({ "name": "Robin\nPark" }), "invalid_string", "name"),
        (json!({ "name": "x".repeat(201) }), "too_big", "name"),
        (json!({ "email": "robin" }), "invalid_email", "email"),
        (json!({ "purpose": "" }), "too_small", "purpose"),
        (
            json!({ "expires_at": "2020-01-01T00:00:00Z" }),
            "out_of_range",
            "expires_at",
        ),
        (
            json!({ "expires_at": "2090-01-01T00:00:00Z" }),
            "out_of_range",
            "expires_at",
        ),
    ];
    for (wrong, issue, member) in issues {
        let refused = grant(&app, &lender, &id, wrong.clone()).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
        let details = &refused.json()["details"][0];
        assert_eq!(details["code"], issue, "{wrong}");
        assert_eq!(details["path"], json!([member]), "{wrong}");
    }

    let refused = grant(&app, &lender, &id, json!({ "access": "print" })).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    // Another party of the record, and one without a part in it.
    let originator = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let refused = grant(&app, &originator, &id, json!({})).await;
    assert_eq!(code(&refused, 409), "control_wrong_party");

    let stranger = Party::new(&app).await;
    let wrong = json!({ "email": "robin" });
    grant(&app, &stranger, &id, wrong).await.error(404);

    let view = grant(&app, &lender, &id, json!({})).await.data(201);
    revoke(&app, &stranger, &view).await.error(404);
    revoke(&app, &originator, &view).await.error(404);
    assert_eq!(lender.record(&app, &id).await.data(200)["epoch"], 3);

    let open = app.sent_envelope().await;
    let open = open["envelope_id"].as_str().unwrap();
    let refused = grant(&app, &originator, open, json!({})).await;
    assert_eq!(code(&refused, 409), "record_not_vaulted");

    let refused = copy(&app, &originator, open, "Audit").await;
    assert_eq!(code(&refused, 409), "record_not_vaulted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_the_record_on_a_phone() {
    let app = TestApp::on_a_socket().await;
    let (id, lender) = super::controlled_in(&app).await;
    let more = json!({ "access": "download" });
    let view = grant(&app, &lender, &id, more).await.data(201);
    let link = view_link(&app, &view).await;
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(&link).await;

    browser.see("main button").await;
    browser.picture("inspection-phone-closed").await;
    browser.is_accessible("the closed record").await;
    browser.click("main button").await;
    browser.see(".sheet img").await;
    browser.picture("inspection-phone").await;
    browser.is_accessible("the record").await;

    let width = "return document.documentElement.scrollWidth <= innerWidth";
    assert_eq!(browser.run(width).await, true, "the page scrolls sideways");

    browser.dark().await;
    browser.picture("inspection-phone-dark").await;
}
