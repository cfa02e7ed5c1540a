//! New envelopes from earlier ones: `POST /partner/envelopes/{id}/copy`, and `…/correct` with another document or
//! fields.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::support::uploads::form_of;
use crate::support::{
    CONTRACT, TestApp, TestResponse, buyer_and_seller, envelope_body, form, padded, pdf,
};

async fn copy(app: &TestApp, id: &str) -> TestResponse {
    app.post(&format!("/partner/envelopes/{id}/copy"), json!({}))
        .await
}

async fn read(app: &TestApp, id: &str) -> Value {
    let read = app.get(&format!("/partner/envelopes/{id}")).await;
    read.data(200)
}

async fn people(app: &TestApp, id: &str) -> Value {
    let people = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    people.data(200)
}

async fn void(app: &TestApp, id: &str) {
    let path = format!("/partner/envelopes/{id}/void");
    app.post(&path, json!({})).await.data(200);
}

async fn send(app: &TestApp, id: &str, body: Value) -> TestResponse {
    let path = format!("/envelopes/{id}/send");
    app.web(Method::POST, &path, body).await
}

fn id_of(envelope: &Value) -> String {
    envelope["envelope_id"].as_str().unwrap().to_owned()
}

/// Returns the details of the first entry of a ledger with this action.
async fn entry(app: &TestApp, id: &str, action: &str) -> Value {
    let custody = app.get(&format!("/partner/envelopes/{id}/custody")).await;
    let custody = custody.data(200);
    let mut entries = custody["entries"].as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["action"] == action);
    entry.unwrap_or_else(|| panic!("{action} in {custody}"))["details"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voided_envelope_is_copied_into_a_draft() {
    let app = TestApp::start().await;
    let (id, [buyer, _]) = app.sent_to_two().await;
    form::sign(&app, &buyer).await;
    void(&app, &id).await;
    let ended = read(&app, &id).await;

    let draft = copy(&app, &id).await.data(201);
    assert_eq!(draft["status"], "pending");
    assert_eq!(draft["envelope_name"], ended["envelope_name"]);
    assert_eq!(draft["external_id"], "deal-17");
    assert_eq!(draft["copied_from"], id.as_str());
    assert_eq!(draft["sign_url"], Value::Null);

    // The copy starts anew: the signature belongs to the earlier envelope.
    let new = id_of(&draft);
    let copied = people(&app, &new).await;
    for (signer, email) in [(0, "buyer@example.com"), (1, "seller@example.com")] {
        assert_eq!(copied["signers"][signer]["email"], email);
        assert_eq!(copied["signers"][signer]["status"], "pending");
        assert_eq!(copied["signers"][signer]["completed_at"], Value::Null);
    }

    // Both name each other, and nothing else of the earlier one changes.
    let after = read(&app, &id).await;
    assert_eq!(after["copied_to"], new.as_str());
    assert_eq!(after["status"], "voided");
    assert_eq!(after["updated_at"], ended["updated_at"]);
    let made = entry(&app, &new, "envelope.created").await;
    assert_eq!(made["copied_from"], id.as_str());
    let noted = entry(&app, &id, "envelope.copied").await;
    assert_eq!(noted["copied_to"], new.as_str());
    assert_eq!(app.event_types(&new).await, ["envelope.created"]);

    let sent = send(&app, &new, json!({})).await.data(200);
    assert_eq!(sent["status"], "sent");
    assert_eq!(sent["copied_from"], id.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_has_the_attached_document_and_the_values_of_the_sender() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["prefilled_data"] = json!({ "Price": "18400" });
    body["reminders"] = json!({ "first_after_days": 3, "every_days": 2, "at_most": 5 });
    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));
    let document = pdf::with_lines(&[
        "{{Price;type=text;role=Buyer}}",
        "{{Sign;type=signature;role=Buyer;required=true}}",
    ]);
    let upload = format!("/partner/envelopes/{id}/upload");
    app.upload(&upload, "application/pdf", &document, &[])
        .await
        .data(201);
    let sent = send(&app, &id, json!({})).await.data(200);
    void(&app, &id).await;

    let draft = copy(&app, &id).await.data(201);
    assert_eq!(draft["status"], "uploaded");
    assert_eq!(draft["reminders"], sent["reminders"]);
    assert_ne!(draft["template_id"], sent["template_id"]);

    let new = id_of(&draft);
    send(&app, &new, json!({})).await.data(200);
    let links = app
        .get(&format!("/partner/envelopes/{new}/signing-links"))
        .await;
    let url = links.data(200)["signers"][0]["embed_url"].clone();
    let page = form::open(&app, url.as_str().unwrap()).await.text();
    assert!(page.contains("18400"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passcode_is_not_copied() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut signer = json!({ "email": "jordan.lee@example.com", "name": "Jordan Lee", "role": "Buyer",
        "access": "passcode", "passcode": "471147" });
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([signer]);
    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));
    void(&app, &id).await;

    let copied = copy(&app, &id).await;
    assert_eq!(copied.json()["warnings"][0]["code"], "passcode_missing");
    let new = id_of(&copied.data(201));
    let refused = send(&app, &new, json!({})).await;
    assert_eq!(refused.json()["details"][0]["code"], "passcode_required");
    assert_eq!(refused.status, 422);

    signer["passcode"] = "815815".into();
    let sent = send(&app, &new, json!({ "signers": [signer] })).await;
    assert_eq!(sent.data(200)["status"], "sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_makes_one_copy() {
    let app = TestApp::start().await;
    let id = id_of(&app.sent_envelope().await);
    let mut copies = Vec::new();
    for _ in 0..2 {
        let request = Request::post(format!("/api/v2/partner/envelopes/{id}/copy"))
            .header("x-api-key", &app.key)
            .header("idempotency-key", "copy-once")
            .body(Body::empty())
            .unwrap();
        copies.push(id_of(&app.send(request).await.data(201)));
    }

    assert_eq!(copies[0], copies[1]);
    // The envelope itself is still out for signing.
    assert_eq!(read(&app, &id).await["status"], "sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_signers_or_is_unknown_is_not_copied() {
    let app = TestApp::start().await;
    let mut paper = envelope_body(&Value::Null);
    paper["envelope_kind"] = "paper".into();
    let paper = id_of(&app.post("/partner/envelopes", paper).await.data(201));
    let why = copy(&app, &paper).await.error(409);
    assert!(why.contains("signed elsewhere"), "{why}");

    let unknown = copy(&app, "env_01h455vb4pex5vsknk084sn02q").await;
    assert_eq!(unknown.error(404), "Envelope not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_draft_keeps_the_people_named_on_creation() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["signers"] = buyer_and_seller();
    body["recipients"] = json!([{ "email": "file@example.com", "name": "Our file" }]);
    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));

    let new = id_of(&copy(&app, &id).await.data(201));
    let copied = people(&app, &new).await;
    assert_eq!(copied["signers"][1]["role"], "Seller");
    assert_eq!(copied["recipients"][0]["email"], "file@example.com");
}

/// A document in which buyer and seller sign, with a line of text.
fn sale(line: &str) -> Vec<u8> {
    pdf::with_lines(&[
        line,
        "{{First;type=signature;role=Buyer;required=true}}",
        "Between",
        "{{Second;type=signature;role=Seller;required=true}}",
    ])
}

async fn correct(
    app: &TestApp,
    id: &str,
    file: Option<&[u8]>,
    texts: &[(&str, &str)],
) -> TestResponse {
    let file = file.map(|file| ("application/pdf", file));
    let (content_type, body) = form_of(file, texts);
    let path = format!("/partner/envelopes/{id}/correct");
    app.post_text(&app.key, &path, &content_type, body).await
}

async fn links(app: &TestApp, id: &str) -> Vec<String> {
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    let signers = links["signers"].as_array().unwrap().iter();
    let url = |signer: &Value| signer["embed_url"].as_str().unwrap().to_owned();
    signers.map(url).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_and_a_correction_keep_whether_signers_may_decline() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["may_decline"] = false.into();
    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));

    let copied = id_of(&copy(&app, &id).await.data(201));
    send(&app, &copied, json!({})).await.data(200);
    let document = pdf::with_lines(&["{{Sign;type=signature;role=Buyer;required=true}}"]);
    let message = [("message", "Another price")];
    let corrected = correct(&app, &id, Some(&document), &message).await;
    let corrected = id_of(&corrected.data(201));
    for new in [&copied, &corrected] {
        let urls = links(&app, new).await;
        let page = form::open(&app, &urls[0]).await.text();
        assert!(!page.contains("value=\"decline\""), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_keeps_witnesses_and_groups() {
    let app = TestApp::start().await;
    let signers = json!([
        { "email": "ann@example.com", "name": "Ann Buyer", "role": "Buyer", "group": "Managers" },
        {
            "email": "wes@example.com", "name": "Wes Elm", "role": "Witness",
            "kind": "witness", "witness_of": "Buyer", "same_device": true,
        },
    ]);
    let document = pdf::with_lines(&[
        "{{Sign;type=signature;role=Buyer;required=true}}",
        "{{Seen;type=signature;role=Witness;required=true}}",
    ]);
    let fields = [("name", "One")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &fields)
        .await
        .data(200);
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = signers;
    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));

    let copied = id_of(&copy(&app, &id).await.data(201));
    let people = people(&app, &copied).await;
    assert_eq!(people["signers"][0]["group"], "Managers");
    assert_eq!(people["signers"][1]["witness_of"], "Buyer");
    assert_eq!(people["signers"][1]["same_device"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_document_is_signed_anew_by_everybody() {
    let app = TestApp::start().await;
    let (id, [buyer, _]) = app.sent_to_two().await;
    form::sign(&app, &buyer).await;
    app.wait_for_mails(2).await;

    let message = "The price in section 2 was wrong";
    let corrected = sale("Price: 18,400");
    let sent = correct(&app, &id, Some(&corrected), &[("message", message)]).await;
    let sent = sent.data(201);
    let new = id_of(&sent);
    assert_eq!(sent["status"], "sent");
    assert_eq!(sent["corrects"], id.as_str());
    assert_eq!(sent["version"], 2);
    assert_eq!(
        app.event_types(&new).await[..2],
        ["envelope.created", "envelope.sent"]
    );

    // The earlier envelope names its successor, and each signature that counts no more.
    let earlier = read(&app, &id).await;
    assert_eq!(earlier["status"], "voided");
    assert_eq!(earlier["corrected_by"], new.as_str());
    let voided = entry(&app, &id, "envelope.voided").await;
    assert_eq!(voided["reason"], message);
    assert_eq!(voided["corrected_by"], new.as_str());
    let signatures = voided["void_signatures"].as_array().unwrap();
    assert_eq!(signatures.len(), 1);
    assert_eq!(signatures[0]["name"], "Ann Buyer");
    assert!(signatures[0]["completed_at"].is_string());

    let page = form::open(&app, &buyer).await.text();
    assert!(page.contains("corrected this document"), "{page}");

    // Both learn of the correction, and the first signer has the new invitation.
    let mails = app.wait_for_mails(5).await;
    let mails = mails.iter().map(|mail| mail.replace("=\r\n", ""));
    let mails: Vec<String> = mails.collect();
    let told = mails
        .iter()
        .filter(|mail| mail.contains("Subject: Corrected:"));
    assert_eq!(told.count(), 2, "{mails:?}");
    let asks = |mail: &&String| mail.contains(message) && mail.contains("do not count");
    assert!(mails.iter().any(|mail| asks(&mail)), "{mails:?}");

    for url in links(&app, &new).await {
        form::sign(&app, &url).await;
    }
    app.wait_for(&new, "vaulted").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_told_to_invited_people_and_keeps_the_dates() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["recipients"] = json!([{ "email": "file@example.com", "name": "Our file" }]);
    let id = id_of(&app.post("/partner/envelopes", body).await.data(201));
    let dates = json!({ "contract_dates": [{ "name": "End of the term", "date": "2050-11-30" }] });
    let path = format!("/partner/envelopes/{id}/contract-dates");
    app.put(&path, dates).await.data(200);
    app.wait_for_mails(1).await;

    let file = padded(CONTRACT.len() + 100);
    let texts = [("message", "Another edition")];
    let corrected = correct(&app, &id, Some(&file), &texts).await.data(201);
    let term = &corrected["contract_dates"][0];
    assert_eq!(term["name"], "End of the term");

    // The signer has two invitations and the news between them.
    app.wait_for_mails(3).await;
    app.wait_until_idle().await;
    let mails = app.wait_for_mails(3).await;
    assert_eq!(mails.len(), 3, "{mails:?}");
    assert!(!mails.concat().contains("To: file@example.com"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_correction_leaves_no_document() {
    let app = TestApp::start().await;
    let id = id_of(&app.sent_envelope().await);
    app.set_organization(&["funding=enforce"]);
    let file = pdf::with_lines(&["{{Sign;type=signature;role=Buyer;required=true}}"]);
    let texts = [("message", "The price was wrong")];
    let refused = correct(&app, &id, Some(&file), &texts).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(refused.json()["code"], "funding_refused");

    let documents = "select cast(count(*) as text) from template where origin = 'document' and deleted_at is null";
    assert_eq!(app.text_of(documents).await, "0");
    app.set_organization(&["funding=off"]);
    correct(&app, &id, Some(&file), &texts).await.data(201);
    assert_eq!(app.text_of(documents).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_corrected_on_the_same_document() {
    let app = TestApp::start().await;
    let id = id_of(&app.sent_envelope().await);
    let area = json!({ "page": 1, "x": 0.1, "y": 0.1, "w": 0.3, "h": 0.03 });
    let fields = json!([
        { "name": "Signature here", "type": "signature", "role": "Buyer", "required": true,
          "placement": { "mode": "absolute", "areas": [area] } },
    ]);
    let fields = fields.to_string();
    let texts = [
        ("message", "Only the signature is needed"),
        ("fields_json", fields.as_str()),
    ];
    let new = id_of(&correct(&app, &id, None, &texts).await.data(201));

    let url = links(&app, &new).await.remove(0);
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("Signature here"), "{page}");
    assert!(!page.contains("Signed on"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_tags_keeps_the_fields_of_the_one_before() {
    let app = TestApp::start().await;
    let id = id_of(&app.sent_envelope().await);
    let texts = [("message", "Another edition")];
    let file = padded(CONTRACT.len() + 100);
    let new = id_of(&correct(&app, &id, Some(&file), &texts).await.data(201));
    let url = links(&app, &new).await.remove(0);
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("Buyer signature"), "{page}");

    // A second correction is version 3, and one of a version that was corrected is refused.
    let third = correct(&app, &new, Some(&file), &texts).await.data(201);
    assert_eq!(third["version"], 3);
    let why = correct(&app, &id, Some(&file), &texts).await.error(409);
    assert!(why.contains("voided"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_that_does_not_fit_changes_nothing() {
    let app = TestApp::start().await;
    let (id, _) = app.sent_to_two().await;

    let empty = correct(&app, &id, None, &[("message", " ")]).await;
    let details = empty.json()["details"].clone();
    assert_eq!(details[0]["path"], json!(["message"]));
    assert_eq!(details[1]["path"], json!(["file"]));
    assert_eq!(empty.status, 422);

    // No signer of the envelope has this document's role.
    let other = pdf::with_lines(&["{{Sign;type=signature;role=Guarantor;required=true}}"]);
    let texts = [("message", "With a guarantor")];
    let refused = correct(&app, &id, Some(&other), &texts).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let codes = refused.json()["details"].clone();
    let codes: Vec<&Value> = codes
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["code"])
        .collect();
    assert!(codes.contains(&&json!("missing_signer")), "{codes:?}");

    let page = pdf::with_lines(&["No tags at all"]);
    let contract = id_of(&app.sent_envelope().await);
    let refused = correct(&app, &contract, Some(&page), &texts).await;
    assert_eq!(refused.json()["details"][0]["code"], "page_out_of_range");

    for id in [&id, &contract] {
        let envelope = read(&app, id).await;
        assert_eq!(envelope["status"], "sent");
        assert_eq!(envelope["corrected_by"], Value::Null);
    }
    let all = app.get("/partner/envelopes").await.json();
    assert_eq!(all["data"].as_array().map(Vec::len), Some(2), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_keeps_the_payment_and_a_copy_takes_that_of_the_settings() {
    let app = TestApp::start().await;
    let id = id_of(&app.sent_envelope().await);
    app.set_organization(&[r#"payment={"amount_cents":4900,"currency":"USD"}"#]);

    let file = padded(CONTRACT.len() + 100);
    let texts = [("message", "Another edition")];
    correct(&app, &id, Some(&file), &texts).await.data(201);
    assert_eq!(app.count("payment").await, 0);

    copy(&app, &id).await.data(201);
    assert_eq!(app.count("payment").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_edited_and_not_corrected() {
    let app = TestApp::start().await;
    let draft = envelope_body(&Value::Null);
    let id = id_of(&app.post("/partner/envelopes", draft).await.data(201));
    let texts = [("message", "Another price")];
    let why = correct(&app, &id, Some(&sale("Price")), &texts).await;
    assert!(why.error(409).contains("pending"));
}
