//! What compliance results, certificates and records say of each person is what happened.

use serde_json::{Value, json};

use crate::sealing::seals::{paper, vault_in};
use crate::support::{CONTRACT, TestApp, envelope_body, form, pdf};

/// Returns the detail of check 4 of the live evaluation, and whether it passes.
async fn signatures(app: &TestApp, id: &str) -> (bool, String) {
    let path = format!("/partner/envelopes/{id}/compliance");
    let compliance = app.get(&path).await.data(200);
    let check = &compliance["compliance"]["checks"][3];
    (
        check["satisfied"].as_bool().unwrap(),
        check["detail"].as_str().unwrap().to_owned(),
    )
}

async fn certificate(app: &TestApp, id: &str) -> Value {
    let path = format!("/partner/envelopes/{id}/vault/certificate");
    app.get(&path).await.data(200)
}

async fn completion(app: &TestApp, id: &str) -> String {
    let path = format!("/partner/envelopes/{id}/completion-certificate");
    pdf::text(&app.get(&path).await.bytes)
}

/// Returns the words of the custody record of a vaulted envelope.
pub async fn custody_record(app: &TestApp, id: &str) -> String {
    let path = format!("/partner/envelopes/{id}/custody-record");
    pdf::text(&app.get(&path).await.bytes)
}

/// Sends a document with these lines to two signers, and returns the answer.
async fn sent(app: &TestApp, lines: &[&str], signers: Value) -> Value {
    let document = pdf::with_lines(lines);
    let template = app
        .upload(
            "/partner/templates",
            "application/pdf",
            &document,
            &[("name", "Two")],
        )
        .await
        .data(200);

    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = signers;
    app.post("/partner/envelopes", body).await.json()
}

async fn links(app: &TestApp, id: &str) -> Vec<String> {
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    let signers = links["signers"].as_array().unwrap().iter();
    signers
        .map(|signer| signer["embed_url"].as_str().unwrap().to_owned())
        .collect()
}

const TWO_SIGNATURES: [&str; 2] = [
    "{{First;type=signature;role=Buyer;required=true}}",
    "{{Second;type=signature;role=Co-buyer;required=true}}",
];
const ONE_SIGNATURE: [&str; 2] = [
    "{{Remark;type=text;role=Buyer}}",
    "{{Second;type=signature;role=Seller;required=true}}",
];

fn spouses() -> Value {
    json!([
        { "email": "home@example.com", "name": "Ann Lee", "role": "Buyer" },
        { "email": "Home@example.com", "name": "Bob Lee", "role": "Co-buyer" },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn spouses_on_one_mailbox_sign_each_for_themselves() {
    let app = TestApp::start().await;
    let created = sent(&app, &TWO_SIGNATURES, spouses()).await;
    let id = created["data"]["envelope_id"].as_str().unwrap().to_owned();
    let urls = links(&app, &id).await;

    form::sign(&app, &urls[0]).await;
    let (passes, detail) = signatures(&app, &id).await;
    assert!(!passes, "{detail}");
    assert_eq!(
        detail,
        "Not yet signed by: Bob Lee (Co-buyer, Home@example.com)."
    );

    form::sign(&app, &urls[1]).await;
    app.wait_for(&id, "vaulted").await;
    let (passes, detail) = signatures(&app, &id).await;
    assert!(passes, "{detail}");

    let certificate = certificate(&app, &id).await;
    let timeline = certificate["signer_timeline"].as_array().unwrap();
    let member = |index: usize, name: &str| timeline[index][name].as_str().unwrap().to_owned();
    assert_ne!(member(0, "signer_id"), member(1, "signer_id"));
    assert!(member(0, "signed_at") < member(1, "signed_at"));

    let custody = app.custody(&id).await;
    let entries = custody["entries"].as_array().unwrap();
    let at = |index: usize| {
        let of = |entry: &&Value| {
            entry["action"] == "signer.completed"
                && entry["details"]["signer"]["signer_id"] == timeline[index]["signer_id"]
        };
        entries.iter().find(of).unwrap()["details"]["at"].clone()
    };
    assert_ne!(at(0), at(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_signers_with_one_address_has_a_first_look_of_their_own() {
    let app = TestApp::start().await;
    let created = sent(&app, &TWO_SIGNATURES, spouses()).await;
    let id = created["data"]["envelope_id"].as_str().unwrap().to_owned();
    for url in links(&app, &id).await {
        form::sign(&app, &url).await;
    }

    app.wait_for(&id, "vaulted").await;

    let completion = completion(&app, &id).await;
    let record = custody_record(&app, &id).await;
    for text in [&completion, &record] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("shares the e-mail address with Bob Lee (Co-buyer)"),
            "{text}"
        );
    }

    let ids: Vec<Value> = app
        .events(&id)
        .await
        .into_iter()
        .filter(|event| event["event_type"] == "signer.viewed")
        .map(|event| event["data"]["signer"]["signer_id"].clone())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_a_signature_field_completes_a_form_and_signs_nothing() {
    let app = TestApp::start().await;
    let signers = json!([
        { "email": "ann@example.com", "name": "Ann Lee", "role": "Buyer" },
        { "email": "sam@example.com", "name": "Sam Oak", "role": "Seller" },
    ]);
    let created = sent(&app, &ONE_SIGNATURE, signers).await;
    let warnings = created["warnings"].as_array().unwrap();
    let mut unsigned = warnings
        .iter()
        .filter(|one| one["code"] == "no_signature_field");
    let warning = unsigned.next().unwrap();
    assert_eq!(warning["code"], "no_signature_field", "{created}");
    assert_eq!(warning["path"], json!(["signers", 0, "role"]));

    let id = created["data"]["envelope_id"].as_str().unwrap().to_owned();
    let urls = links(&app, &id).await;
    let page = form::open(&app, &urls[0]).await.text();
    let after = form::press(&app, &urls[0], "finish", &form::filled(&page)).await;
    assert!(
        !after.text().contains("You have signed"),
        "{}",
        after.text()
    );

    let again = form::open(&app, &urls[0]).await.text();
    assert!(again.contains("Your part is done"), "{again}");

    form::sign(&app, &urls[1]).await;
    let signed = form::open(&app, &urls[1]).await.text();
    assert!(!signed.contains("Your part is done"), "{signed}");

    app.wait_for(&id, "vaulted").await;

    let (passes, detail) = signatures(&app, &id).await;
    assert!(!passes);
    assert_eq!(
        detail,
        "Ann Lee (Buyer, ann@example.com) completed the form; no signature was asked of them."
    );

    let certificate = certificate(&app, &id).await;
    assert_eq!(certificate["ucc_9105_compliance"]["score"], 88);
    assert_eq!(certificate["signer_timeline"][0]["signed_at"], Value::Null);
    assert_eq!(certificate["esign_act_compliance"]["compliant"], false);

    let custody = app.custody(&id).await;
    let mut entries = custody["entries"].as_array().unwrap().iter();
    let completed = entries.find(|entry| entry["action"] == "signer.completed");
    assert_eq!(completed.unwrap()["details"]["signature"], "not_asked");

    let record = custody_record(&app, &id).await;
    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(record.contains("Ann Lee completed the form"), "{record}");
    assert!(!record.contains("Ann Lee signed"), "{record}");

    let completion = completion(&app, &id).await;
    let completion = completion.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        completion.contains("no signature was asked"),
        "{completion}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_refuses_signers_who_are_asked_for_no_signature() {
    let app = TestApp::start().await;
    app.set_organization(&["refuse_unsigned_roles=true"]);
    let signers = json!([
        { "email": "ann@example.com", "name": "Ann Lee", "role": "Buyer" },
        { "email": "sam@example.com", "name": "Sam Oak", "role": "Seller" },
    ]);
    let refused = sent(&app, &ONE_SIGNATURE, signers.clone()).await;
    let issue = &refused["details"][0];
    assert_eq!(issue["code"], "no_signature_field", "{refused}");
    assert_eq!(issue["path"], json!(["signers", 0, "role"]));

    let mut approved = signers;
    approved[0]["kind"] = "approver".into();
    let accepted = sent(&app, &ONE_SIGNATURE, approved).await;
    assert_eq!(accepted["data"]["status"], "sent", "{accepted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_certified_as_its_uploaders_statement() {
    let app = TestApp::start().await;
    let (id, _) = paper(&app, CONTRACT).await;
    vault_in(&app, &id).await;

    let certificate = certificate(&app, &id).await;
    assert_eq!(certificate["ucc_9105_compliance"]["score"], 100);

    let esign = &certificate["esign_act_compliance"];
    assert_eq!(esign["compliant"], Value::Null);
    assert!(esign["reason"].is_string(), "{esign}");
    assert_eq!(certificate["paper_original"]["state"], "unknown");

    let text = certificate.to_string();
    assert!(text.contains("this service did not check it"), "{text}");
    assert!(text.contains("not the sole original"), "{text}");

    let record = custody_record(&app, &id).await;
    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(record.contains("not checked by this service"), "{record}");
    assert!(record.contains("is not the sole original"), "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_uploader_states_what_became_of_the_paper_before_vault_in() {
    let app = TestApp::start().await;
    let (id, _) = paper(&app, CONTRACT).await;
    let path = format!("/partner/envelopes/{id}/paper-original");
    let put = |body: Value| app.put(&path, body);

    let lost = put(json!({ "state": "lost" })).await;
    assert_eq!(lost.status, 422, "{}", lost.text());

    let kept = put(json!({ "state": "kept", "where": "Maple Motors, safe 2" })).await;
    let kept = kept.data(200)["paper_original"].clone();
    assert_eq!(kept["state"], "kept");
    assert!(kept["stated_by"].is_string() && kept["at"].is_string());

    let entry = app.entry(&id, "paper_original.stated").await;
    assert_eq!(entry["paper_original"], kept);

    vault_in(&app, &id).await;
    assert_eq!(certificate(&app, &id).await["paper_original"], kept);

    let record = custody_record(&app, &id).await;
    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(record.contains("Maple Motors, safe 2"), "{record}");

    let late = put(json!({ "state": "destroyed" })).await;
    assert_eq!(late.status, 409, "{}", late.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_carries_the_statement_about_its_paper() {
    let app = TestApp::start().await;
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    assert_eq!(envelope["paper_original"]["state"], "unknown");

    let path = format!("/partner/envelopes/{id}/upload");
    let with = |statement: &'static str| {
        let (app, path) = (&app, &path);
        async move {
            let texts = [("paper_original", statement)];
            app.upload(path, "application/pdf", CONTRACT, &texts).await
        }
    };
    assert_eq!(with("destroyed").await.status, 422);

    with(r#"{"state":"destroyed"}"#).await.data(201);
    let read = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(read["paper_original"]["state"], "destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_and_record_say_whose_clock_their_times_are_from() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let certificate = certificate(&app, &id).await;
    let stated = certificate["provenance"]["trusted_time"]["statement"].as_str();
    assert_eq!(
        stated,
        Some("No time stamping authority was asked: times are those of this server.")
    );

    for text in [completion(&app, &id).await, custody_record(&app, &id).await] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("no time stamping authority was asked"),
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_with_the_senders_address_is_noted() {
    let app = TestApp::start().await;
    let signers = json!([
        { "email": "vault@maple.example", "name": "Olga Own", "role": "Buyer" },
        { "email": "sam@example.com", "name": "Sam Oak", "role": "Co-buyer" },
    ]);
    let created = sent(&app, &TWO_SIGNATURES, signers).await;
    let id = created["data"]["envelope_id"].as_str().unwrap().to_owned();
    for url in links(&app, &id).await {
        form::sign(&app, &url).await;
    }

    app.wait_for(&id, "vaulted").await;
    let certificate = certificate(&app, &id).await;
    let timeline = &certificate["signer_timeline"];
    assert_eq!(
        timeline[0]["notes"],
        json!(["has the e-mail address of the sender"])
    );
    assert!(timeline[1].get("notes").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_the_statute_stand_beside_those_of_the_specification() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let record = custody_record(&app, &id).await;
    let record = record.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        record.contains("(Statute: UCC") && record.contains("§9-105(b)(3))"),
        "{record}"
    );
}
