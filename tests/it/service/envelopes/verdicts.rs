//! Verdicts: whether signers have signed, which rules decided, and the members of a response.

use holdfast_test_guests::{LENIENT, OPINIONATED};
use serde_json::{Value, json};

use crate::service::components::registry::variant;
use crate::support::{CONTRACT, TestApp, envelope_body, form, pdf, release_form};

/// Tags for a buyer with a signature, initials and a remark, none of them `required`.
const OPTIONAL: [&str; 3] = [
    "{{Buyer signature;type=signature;role=Buyer;required=false}}",
    "{{Buyer initials;type=initials;role=Buyer;required=false}}",
    "{{Remark;type=text;role=Buyer;required=false}}",
];

async fn sent(app: &TestApp, lines: &[&str]) -> (String, String) {
    let document = pdf::with_lines(lines);
    let texts = [("name", "Contract")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let text = |member: &str| envelope[member].as_str().unwrap().to_owned();

    (text("envelope_id"), text("sign_url"))
}

fn entered(values: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    values.iter().map(owned).collect()
}

async fn check(app: &TestApp, id: &str, number: usize) -> Value {
    let path = format!("/partner/envelopes/{id}/compliance");
    let compliance = app.get(&path).await.data(200);
    compliance["compliance"]["checks"][number - 1]["satisfied"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_without_a_signature_is_not_complete() {
    let app = TestApp::start().await;
    let (id, url) = sent(&app, &OPTIONAL).await;
    form::open(&app, &url).await;
    let unsigned = entered(&[("Remark", "Seen"), ("consent", form::TICK)]);
    let refused = form::press(&app, &url, "finish", &unsigned).await;
    assert_eq!(refused.status, 422, "{}", refused.text());

    let page = refused.text();
    assert!(page.contains("Sign here"), "{page}");
    assert!(page.contains("id=\"field-0-problem\""), "{page}");
    assert!(page.contains("value=\"Seen\""), "nothing is lost: {page}");
    assert_eq!(check(&app, &id, 4).await, false);

    let initialed = entered(&[("Buyer initials", "JL"), ("consent", form::TICK)]);
    let done = form::press(&app, &url, "finish", &initialed).await;
    assert_eq!(done.status, 200, "{}", done.text());

    app.wait_for(&id, "vaulted").await;
    assert_eq!(check(&app, &id, 4).await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_signature_field_must_be_signed_even_if_not_required() {
    let app = TestApp::start().await;
    let (_, url) = sent(&app, &[OPTIONAL[0], OPTIONAL[2]]).await;
    let page = form::open(&app, &url).await.text();
    assert!(
        page.contains("Buyer signature<span class=\"required\"> (required)"),
        "{page}"
    );

    let saved = form::save(&app, &url, &[("Remark", "Seen")]).await;
    assert_eq!(saved["problems"], json!({}));

    let finished = form::press(&app, &url, "finish", &entered(&[("consent", form::TICK)])).await;
    assert_eq!(finished.status, 422);
    assert!(finished.text().contains("This field is required"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_an_earlier_release_completed_without_a_signature_is_not_vaulted() {
    let app = TestApp::without_auto_vault().await;
    let (id, url) = sent(&app, &OPTIONAL).await;
    form::sign(&app, &url).await;
    app.wait_for(&id, "completed").await;
    let values = json!({ "Buyer signature": "", "Buyer initials": "", "Remark": "" });
    let statement = "update room_submitter set field_values = $1";
    app.change(statement, &values.to_string()).await;

    let path = format!("/partner/envelopes/{id}/vault-in-signed");
    let refused = app.post(&path, json!({})).await.error(409);
    assert!(refused.contains("has not signed"), "{refused}");
    assert!(refused.contains("Buyer signature"), "{refused}");

    let status = app.get(&format!("/partner/envelopes/{id}/status")).await;
    assert_eq!(status.data(200)["status"], "completed");
}

/// Uploads and activates rules as a compliance officer.
async fn decided_by(app: &TestApp, slot: &str, name: &str, rules: &[u8]) -> Value {
    let officer = app.token("compliance");
    let uploaded = app.upload_component(&officer, name, "1.0.0", rules).await;
    let component = uploaded.data(201);
    let activate = json!({ "component_id": component["component_id"] });
    let path = format!("/component-slots/{slot}/activate");
    app.post_with_bearer(&officer, &path, activate)
        .await
        .data(201);

    component
}

/// Activates rules that are stricter than the specification and recognize its published vectors.
async fn opinionated(app: &TestApp) -> Value {
    decided_by(app, "rules.compliance", "opinionated", OPINIONATED).await
}

async fn compliance(app: &TestApp, id: &str, query: &str) -> Value {
    let path = format!("/partner/envelopes/{id}/compliance{query}");
    app.get(&path).await.data(200)["compliance"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn stricter_rules_are_admitted_and_applied() {
    let app = TestApp::start().await;
    let rules = opinionated(&app).await;
    let id = app.vaulted_envelope().await;
    let stricter = compliance(&app, &id, "").await;
    assert_eq!(stricter["compliant"], false);
    assert_eq!(stricter["score"], 88);
    assert_eq!(
        stricter["missing_requirements"],
        json!(["Secured party identified"])
    );
    assert_eq!(stricter["rules_component"]["sha256"], rules["sha256"]);
    assert_eq!(stricter["evaluations"][0]["compliant"], false);
    assert_eq!(stricter["evaluations"][1]["compliant"], true);

    let events = app.event_types(&id).await;
    assert!(
        events.contains(&"vault.compliance.failed".to_owned()),
        "{events:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_recognize_the_vectors_cannot_override_a_failed_check() {
    let app = TestApp::start().await;
    let rules = opinionated(&app).await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["envelope_name"] = "Waived contract".into();
    body["secured_party"] = Value::Null;
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let unsigned = compliance(&app, id, "").await;
    assert_eq!(unsigned["compliant"], false);
    assert_eq!(unsigned["evaluations"][0]["score"], 100);
    assert_eq!(unsigned["score"], unsigned["evaluations"][1]["score"]);

    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;
    app.wait_for_event(id, "vault.compliance.failed").await;
    let path = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&path).await.data(200);
    let stated = &certificate["ucc_9105_compliance"];
    assert_eq!(stated["compliant"], false);
    assert_eq!(stated["score"], 88);
    assert_eq!(stated["checks"][7]["satisfied"], false);

    let both = &certificate["evaluations"];
    assert_eq!(both[0]["component"]["sha256"], rules["sha256"]);
    assert_eq!(both[0]["compliant"], true);
    assert_eq!(both[1]["component"]["name"], "holdfast-compliance");
    assert_eq!(
        both[1]["missing_requirements"],
        json!(["Secured party identified"])
    );

    let told = app.entry(id, "compliance.evaluated").await;
    assert_eq!(told["evaluations"], *both);
    assert_eq!(told["score"], 88);

    let report = app.release_and_verify(id).await;
    assert_eq!(report["valid"], true, "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rules_allow_a_transition_that_the_specification_forbids() {
    let app = TestApp::start().await;
    decided_by(&app, "rules.lifecycle", "lenient", LENIENT).await;
    let body = envelope_body(&Value::Null);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/upload");
    app.upload(&path, "application/pdf", CONTRACT, &[])
        .await
        .data(201);

    let path = format!("/partner/envelopes/{id}/vault-in-signed");
    let refused = app.post(&path, json!({})).await;
    assert_eq!(refused.status, 409, "{}", refused.text());

    let status = app.get(&format!("/partner/envelopes/{id}/status")).await;
    assert_eq!(status.data(200)["status"], "uploaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issued_certificate_is_distinguished_from_a_compliant_one() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["secured_party"] = Value::Null;
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}");
    let before = app.get(&path).await.data(200);
    assert_eq!(before["certificate_issued"], false);
    assert_eq!(before["compliance_score"], Value::Null);

    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    let status = app.wait_for(id, "vaulted").await;
    for answer in [status, app.get(&path).await.data(200)] {
        assert_eq!(answer["compliant"], true, "as the specification has it");
        assert_eq!(answer["certificate_issued"], true);
        assert_eq!(answer["compliance_score"], 88);
    }

    assert_eq!(compliance(&app, id, "").await["compliant"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_record_is_evaluated_by_the_rules_in_force_at_its_release() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let first = variant(holdfast::domain::component::Slot::Compliance, "first");
    let at_release = decided_by(&app, "rules.compliance", "first", &first).await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);
    let today = opinionated(&app).await;

    let released = compliance(&app, &id, "").await;
    assert_eq!(released["rules_component"]["sha256"], at_release["sha256"]);

    let now = compliance(&app, &id, "?as_of=now").await;
    assert_eq!(now["rules_component"]["sha256"], today["sha256"]);

    let wrong = format!("/partner/envelopes/{id}/compliance?as_of=yesterday");
    assert_eq!(app.get(&wrong).await.status, 400);

    let open = app.sent_envelope().await;
    let open = compliance(&app, open["envelope_id"].as_str().unwrap(), "").await;
    assert_eq!(
        open["rules_component"]["sha256"], today["sha256"],
        "any other is evaluated today"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_an_earlier_release_is_evaluated_by_the_rules_that_certified_it() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);
    let certified = app.entry(&id, "compliance.evaluated").await["component"].clone();
    let statement = "update ledger_entry
        set details = replace(details, '\"rules_component\"', '\"unknown\"') where action = $1";
    app.change(statement, "vault.released").await;

    opinionated(&app).await;
    let released = compliance(&app, &id, "").await;
    assert_eq!(released["rules_component"]["sha256"], certified["sha256"]);
}
