//! Funding of contracts: checks, the gate before sending, stipulations, packages, and the packs of lenders.

use std::fs;

use axum::http::Method;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::bulk;
use super::components::registry::variant;
use crate::cli::rules_kit::said;
use crate::support::uploads::form_of;
use crate::support::{TestApp, envelope_body, form, pdf};

const GUIDE: &str = include_str!("../../../docs/funding.md");
/// Facts that the built-in rules need.
const NEEDED: usize = 10;

async fn check(app: &TestApp, id: &str, stage: Value) -> Value {
    let path = format!("/partner/envelopes/{id}/funding-check");
    app.post(&path, stage).await.data(200)
}

/// Rules, weights and facts of findings.
fn findings(check: &Value) -> Vec<(String, String)> {
    let findings = check["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    findings
        .map(|finding| (text(&finding["rule"]), text(&finding["severity"])))
        .collect()
}

async fn stopped(mode: &str) -> TestApp {
    let app = TestApp::start().await;
    app.set_organization(&[&format!("funding={mode}")]);
    app
}

async fn body(app: &TestApp) -> Value {
    let template = app.contract_template().await;
    envelope_body(&template["template_id"])
}

/// Contract with all facts that the built-in rules need. Its payments make 5520.00.
fn contract(total: &str) -> Vec<u8> {
    pdf::with_lines(&[
        "Annual Percentage Rate 9.69%",
        "Finance Charge $520.00",
        "Amount Financed $5,000.00",
        &format!("Total of Payments {total}"),
        "Number of Payments 24",
        "Payment Amount $230.00",
        "First Payment 02/10/2026",
        "Contract Date 01/10/2026",
        "VIN 1M8GDM9AXKP042788",
        "Assignee First Example Bank",
        "{{Sign;type=signature;role=Buyer;required=true}}",
    ])
}

/// Organization that enforces the rules and reads such contracts.
async fn reading() -> TestApp {
    let app = stopped("enforce").await;
    let facts = [
        ("apr", "percentage", "Annual Percentage Rate"),
        ("finance_charge", "money", "Finance Charge"),
        ("amount_financed", "money", "Amount Financed"),
        ("total_of_payments", "money", "Total of Payments"),
        ("number_of_payments", "integer", "Number of Payments"),
        ("payment_amount", "money", "Payment Amount"),
        ("first_payment_date", "date", "First Payment"),
        ("contract_date", "date", "Contract Date"),
        ("vin", "vin", "VIN"),
        ("secured_party", "text", "Assignee"),
    ];
    let facts = facts.map(|(name, kind, anchor)| {
        let mut fact = json!({
            "name": name, "kind": kind, "printed": [{ "anchor": anchor, "direction": "right_of" }],
        });
        match kind {
            "money" => fact["currency"] = "USD".into(),
            "date" => fact["date_order"] = "mdy".into(),
            _ => {}
        }
        fact
    });

    let map = json!({ "name": "Retail", "applies_to": { "all": true }, "facts": facts });
    app.web(Method::POST, "/fact-maps", map).await.data(201);
    app
}

/// Envelope of a contract with this total, as a request.
async fn contract_body(app: &TestApp, total: &str) -> Value {
    let (document, texts) = (contract(total), [("name", "Contract")]);
    let template = app.upload("/partner/templates", "application/pdf", &document, &texts);
    envelope_body(&template.await.data(200)["template_id"])
}

/// Draft with the document of a template.
async fn draft(app: &TestApp) -> String {
    let mut body = body(app).await;
    let template = body["template_id"].take();
    body.as_object_mut().unwrap().remove("template_id");
    let draft = app.post("/partner/envelopes", body).await.data(201);
    let id = draft["envelope_id"].as_str().unwrap().to_owned();
    let path = format!("/partner/envelopes/{id}");
    assert_eq!(app.get(&path).await.data(200)["status"], "pending");
    assert!(template.is_string());
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_without_facts_is_incomplete_and_each_fact_is_named() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let result = check(&app, &id, json!({})).await;

    assert_eq!(result["stage"], "after_signing");
    assert_eq!(result["decision"], "incomplete");
    assert_eq!(result["rules_component"]["name"], "holdfast-funding");
    let missing = findings(&result);
    let of_facts = missing.iter().filter(|(rule, _)| rule == "facts.missing");
    assert_eq!(of_facts.count(), NEEDED, "{missing:?}");
    let first = &result["findings"][0];
    assert_eq!(first["facts"][0]["name"], "apr");
    assert_eq!(first["source"], "12 CFR 1026.18(e)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_repeated_by_the_component_that_made_it() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    check(&app, &id, json!({ "stage": "transfer" })).await;

    let replayed = app.operator(&["replay", &id]).to_string();
    assert!(replayed.contains("funding check transfer"), "{replayed}");
    assert!(!replayed.contains("\"same\":false"), "{replayed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_contract_is_not_sent_where_the_organization_enforces_it() {
    let app = stopped("enforce").await;
    let refused = app.post("/partner/envelopes", body(&app).await).await;
    let problem = refused.json();
    assert_eq!(refused.status, 422, "{problem}");
    assert_eq!(problem["code"], "funding_refused");
    let details = problem["details"].as_array().unwrap();
    assert_eq!(details[0]["rule"], "facts.missing");
    assert_eq!(details[0]["facts"][0]["name"], "apr");

    // Nothing of it is kept.
    let listed = app.get("/partner/envelopes").await.data(200);
    assert_eq!(listed, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_draft_stays_and_its_check_is_recorded() {
    let app = stopped("enforce").await;
    let template = app.contract_template().await;
    let id = draft(&app).await;
    let path = format!("/envelopes/{id}/send");
    let send = json!({ "template_id": template["template_id"] });
    let refused = app.web(Method::POST, &path, send).await;
    assert!(
        refused
            .error(422)
            .starts_with("The funding rules stop this contract")
    );

    let path = format!("/partner/envelopes/{id}");
    assert_eq!(app.get(&path).await.data(200)["status"], "pending");
    let replayed = app.operator(&["replay", &id]).to_string();
    assert!(
        replayed.contains("funding check before_sending"),
        "{replayed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_sum_is_refused_with_its_place_and_the_corrected_contract_is_sent() {
    let app = reading().await;
    let wrong = contract_body(&app, "$5,250.00").await;
    let refused = app.post("/partner/envelopes", wrong).await;
    let problem = refused.json();
    assert_eq!(refused.status, 422, "{problem}");
    let found = problem["details"].as_array().unwrap().iter();
    let rules: Vec<&str> = found
        .clone()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    assert_eq!(rules, ["box.finance_charge", "box.total_of_payments"]);

    let sum = found.clone().next_back().unwrap();
    assert_eq!(
        (&sum["expected"], &sum["actual"]),
        (&json!("5520.00"), &json!("5250.00"))
    );
    let fact = &sum["facts"][0];
    assert_eq!(fact["name"], "total_of_payments");
    assert!(fact["words"].as_str().unwrap().contains("5,250.00"));
    let place = &fact["place"];
    assert_eq!(place["page"], 1);
    assert!(place["w"].as_f64().unwrap() > 0.0 && place["h"].as_f64().unwrap() > 0.0);
    let amount_financed = &found.clone().next().unwrap()["facts"][2];
    assert_eq!(amount_financed["name"], "amount_financed");
    assert!(place["y"].as_f64() > amount_financed["place"]["y"].as_f64());
    assert_eq!(app.count("envelope").await, 0);

    let right = contract_body(&app, "$5,520.00").await;
    let sent = app.post("/partner/envelopes", right).await;
    let answer = sent.json();
    assert_eq!(sent.status, 201, "{answer}");
    assert_eq!(answer["data"]["status"], "sent");
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    assert_eq!(warnings.filter(|one| one["code"] == "funding").count(), 0);
    assert_eq!(app.count("funding_decision").await, 1);

    // A correction is a sending, too.
    let id = answer["data"]["envelope_id"].as_str().unwrap();
    let document = contract("$5,250.00");
    let file = ("application/pdf", document.as_slice());
    let (content_type, body) = form_of(Some(file), &[("message", "Another sum")]);
    let path = format!("/partner/envelopes/{id}/correct");
    let refused = app.post_text(&app.key, &path, &content_type, body).await;
    assert_eq!(refused.json()["code"], "funding_refused");
    let path = format!("/partner/envelopes/{id}");
    assert_eq!(app.get(&path).await.data(200)["status"], "sent");
}

/// Writes the first block of a language in the guide into a file, and returns its path.
fn written(folder: &tempfile::TempDir, language: &str, file: &str) -> String {
    let begin = format!("```{language}\n");
    let (_, rest) = GUIDE.split_once(&begin).unwrap();
    let path = folder.path().join(file);
    fs::write(&path, rest.split_once("```").unwrap().0).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Follows the guide: a map, rules of the lender in a file, and the setting; then a contract against a term is not sent, and the
/// certificate of another one names the rules.
#[tokio::test(flavor = "multi_thread")]
async fn the_guide_leads_from_a_document_to_an_enforced_term_of_the_lender() {
    let folder = tempfile::tempdir().unwrap();
    let rules = written(&folder, "toml", "rules.toml");
    written(&folder, "yaml", "vectors.yaml");
    let component = folder.path().join("acme-funding.wasm");
    let component = component.to_str().unwrap();
    let built = said(&["component", "build", &rules, component]);
    assert_eq!(
        (&built["rules"], &built["changes"], &built["vectors"]),
        (&json!(2), &json!(1), &json!(5))
    );
    let tested = said(&["component", "test", component, "--questions", "500"]);
    assert_eq!(tested["passed"], true, "{tested}");

    let app = reading().await;
    let (token, bytes) = (app.web_admin(), fs::read(component).unwrap());
    let uploaded = app
        .upload_component(token, "acme-funding", "1.0.0", &bytes)
        .await
        .data(201);
    let activate = json!({ "component_id": uploaded["component_id"], "reason": "Credit policy 4" });
    let slot = "/component-slots/rules.funding/activate";
    app.post_with_bearer(token, slot, activate).await.data(201);

    let mut body = contract_body(&app, "$5,520.00").await;
    body["metadata"] = json!({ "book_value": "4000.00" });
    let refused = app.post("/partner/envelopes", body.clone()).await;
    let problem = refused.json();
    assert_eq!(problem["code"], "funding_refused", "{problem}");
    let finding = &problem["details"][0];
    assert_eq!(finding["rule"], "credit.advance");
    assert_eq!(
        (&finding["expected"], &finding["actual"]),
        (&json!("at most 110 % of 4000.00"), &json!("5000.00"))
    );
    let fact = &finding["facts"][0];
    assert_eq!(fact["name"], "amount_financed");
    assert!(fact["words"].as_str().unwrap().contains("5,000.00"));
    assert_eq!(fact["place"]["page"], 1);

    body["metadata"] = json!({ "book_value": "5000.00" });
    let sent = app.post("/partner/envelopes", body).await.data(201);
    let id = sent["envelope_id"].as_str().unwrap();
    form::sign(&app, sent["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;
    let certificate = app
        .get(&format!("/partner/envelopes/{id}/vault/certificate"))
        .await
        .data(200);
    let parts = certificate["provenance"]["components"].as_array().unwrap();
    let checked = parts.iter().find(|part| part["slot"] == "rules.funding");
    assert_eq!(checked.unwrap()["name"], "acme-funding", "{parts:?}");
    let report = app.release_and_verify(id).await;
    assert_eq!(report["valid"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_of_a_batch_are_checked_before_each_is_sent() {
    let app = stopped("enforce").await;
    let template = bulk::notice(&app).await;
    let clients = bulk::clients(&app, 1).await;
    let id = bulk::batch_of(&app, &template, json!({})).await;
    bulk::set_clients(&app, &id, &clients).await;
    bulk::submit(&app, &id).await.data(202);

    let done = bulk::wait_until(&app, &id, "failed").await;
    let error = done["items"][0]["error"].as_str().unwrap();
    assert!(
        error.starts_with("The funding rules stop this contract"),
        "{error}"
    );
    assert_eq!(app.count("funding_decision").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_makes_the_setting_stricter_and_never_looser() {
    let app = TestApp::start().await;
    let path = "/partner/envelopes?funding=enforce";
    app.post(path, body(&app).await).await.error(422);

    let strict = stopped("enforce").await;
    let path = "/partner/envelopes?funding=off";
    strict.post(path, body(&strict).await).await.error(422);

    let path = "/partner/envelopes?funding=perhaps";
    strict.post(path, body(&strict).await).await.error(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_of_a_newer_version_counts_as_the_strictest_and_is_kept() {
    let app = TestApp::start().await;
    let newer = json!({ "funding": "escalate", "dates": { "era": "common" } });
    let statement = "update organization set settings = $1";
    app.change(statement, &newer.to_string()).await;
    let refused = app.post("/partner/envelopes", body(&app).await).await;
    assert_eq!(refused.json()["code"], "funding_refused");

    // Another setting is changed in both ways.
    let change = json!({ "auto_vault": false });
    let changed = app.web(Method::PATCH, "/organization", change).await;
    assert_eq!(changed.data(200)["funding"], "enforce");
    app.set_organization(&["envelope_ttl_days=9"]);
    let settings = app.text_of("select settings from organization").await;
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["funding"], "escalate");
    assert_eq!(settings["dates"]["era"], "common");
    assert_eq!(settings["envelope_ttl_days"], 9);
    assert_eq!(settings["auto_vault"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_contract_is_sent_with_warnings_where_the_organization_only_warns() {
    let app = stopped("warn").await;
    let sent = app.post("/partner/envelopes", body(&app).await).await;
    let answer = sent.json();
    assert_eq!(sent.status, 201, "{answer}");
    let warnings = answer["warnings"].as_array().unwrap();
    let of_rules = warnings.iter().filter(|one| one["code"] == "funding");
    assert!(of_rules.count() >= NEEDED - 1, "{warnings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vaulted_contract_is_checked_once_and_reported_by_an_event() {
    let app = stopped("warn").await;
    let id = app.vaulted_envelope().await;
    let event = loop {
        let events = app.events(&id).await;
        let mut found = events
            .into_iter()
            .filter(|event| event["event_type"] == "funding.incomplete");
        if let Some(event) = found.next() {
            assert!(found.next().is_none());
            break event;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!(event["data"]["stage"], "after_signing");
    assert_eq!(event["data"]["findings"][0]["rule"], "facts.missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stipulation_is_satisfied_by_an_uploaded_file_or_waived_with_a_reason() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/stipulations");
    let list = json!({ "stipulations": [{ "kind": "insurance" }, { "kind": "proof_of_income" }] });
    let set = app.put(&path, list).await.data(200);
    assert_eq!(set["stipulations"][0]["state"], "open");
    let open = findings(&check(&app, &id, json!({})).await);
    let stop = ("stipulations.complete".to_owned(), "stop".to_owned());
    assert_eq!(open.iter().filter(|one| **one == stop).count(), 2);

    // A file is the upload of another envelope.
    let mut paper = envelope_body(&Value::Null);
    paper["envelope_kind"] = "paper".into();
    let paper = app.post("/partner/envelopes", paper).await.data(201);
    let policy = paper["envelope_id"].as_str().unwrap();
    let upload = format!("/partner/envelopes/{policy}/upload");
    let document = pdf::with_lines(&["Policy 12"]);
    app.upload(&upload, "application/pdf", &document, &[])
        .await
        .data(201);
    let list = json!({ "stipulations": [
        { "kind": "insurance", "envelope_id": policy }, { "kind": "proof_of_income" },
    ] });
    let set = app.put(&path, list).await.data(200);
    assert_eq!(set["stipulations"][0]["state"], "received");
    assert!(set["stipulations"][0]["document_sha256"].is_string());

    let waiver = format!("{path}/proof_of_income/waiver");
    let blank = app.post(&waiver, json!({ "reason": " " })).await;
    blank.error(422);
    let reason = json!({ "reason": "Employer confirmed it" });
    let waived = app.post(&waiver, reason.clone()).await.data(200);
    assert_eq!(waived["stipulations"][1]["state"], "waived");
    assert_eq!(waived["stipulations"][1]["reason"], "Employer confirmed it");
    assert!(
        app.post(&waiver, reason.clone())
            .await
            .error(409)
            .contains("waived already")
    );
    let unknown = format!("{path}/title_application/waiver");
    assert_eq!(
        app.post(&unknown, reason).await.error(404),
        "Stipulation not found"
    );

    let done = findings(&check(&app, &id, json!({})).await);
    assert!(!done.contains(&stop), "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_stipulations_names_each_kind_once() {
    let app = TestApp::start().await;
    let envelope = app.sent_envelope().await;
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/stipulations");
    for (list, code) in [
        (
            json!([{ "kind": "insurance" }, { "kind": "insurance" }]),
            "duplicate",
        ),
        (json!([{ "kind": "Proof of income" }]), "invalid_string"),
        (
            json!([{ "kind": "insurance", "envelope_id": id }]),
            "no_upload",
        ),
    ] {
        let refused = app.put(&path, json!({ "stipulations": list })).await.json();
        assert_eq!(refused["details"][0]["code"], code, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_begin_with_the_stipulations_of_their_template() {
    let app = TestApp::start().await;
    let template = app.contract_template().await;
    let id = template["template_id"].as_str().unwrap();
    let path = format!("/partner/templates/{id}/stipulations");
    let list = json!({ "stipulations": [{ "kind": "insurance" }] });
    assert_eq!(app.put(&path, list.clone()).await.data(200), list);
    assert_eq!(app.get(&path).await.data(200), list);
    let with_file = json!({ "stipulations": [{ "kind": "insurance", "envelope_id": "env_1" }] });
    app.put(&path, with_file).await.error(422);

    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/stipulations");
    let found = app.get(&path).await.data(200);
    assert_eq!(found["stipulations"][0]["kind"], "insurance");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_has_the_contract_the_findings_and_the_proofs() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}/funding-package");
    let unchecked = app.get(&path).await.error(409);
    assert!(
        unchecked.contains("The contract was never checked: POST funding-check first"),
        "{unchecked}"
    );

    check(&app, &id, json!({})).await;
    let package = app.get(&path).await;
    assert_eq!(package.status, 200);
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(package.bytes)).unwrap();
    for name in [
        "contract.pdf",
        "facts.json",
        "findings.json",
        "stipulations.json",
        "proofs/certificate.json",
        "proofs/ledger.json",
    ] {
        assert!(zip.by_name(name).is_ok(), "{name} is missing");
    }
    let findings: Value = serde_json::from_reader(zip.by_name("findings.json").unwrap()).unwrap();
    assert_eq!(findings["decision"], "incomplete");

    let unsigned = app.sent_envelope().await;
    let id = unsigned["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/funding-package");
    assert!(app.get(&path).await.error(409).contains("not in the vault"));
}

/// A lender with a pack, and its component.
pub async fn lender(app: &TestApp) -> (String, String) {
    let (org, _) = app.party().await;
    let token = app.token_at(&org, "desk@bank.example", "admin");
    let rules = variant(Slot::Funding, "rules of the bank");
    let component = app
        .upload_component(&token, "bank-funding", "1.0.0", &rules)
        .await
        .data(201);
    let pack = json!({
        "name": "Retail", "component_id": component["component_id"], "description": "First terms",
    });
    let pack = app.post_with_bearer(&token, "/funding-packs", pack).await;
    let id = pack.data(201)["pack_id"].as_str().unwrap().to_owned();
    (token, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_is_invisible_to_organizations_that_were_not_invited() {
    let app = TestApp::start().await;
    let (_, id) = lender(&app).await;
    let listed = app.get_with_bearer(app.web_admin(), "/funding-packs").await;
    assert_eq!(listed.data(200)["packs"], json!([]));

    for path in ["subscription", "versions", "invitations"] {
        let body = json!({
            "subscribed": true, "component_id": "cmp_1", "description": "Ours",
            "organization_id": app.org.as_str(),
        });
        let body = match path {
            "subscription" => json!({ "subscribed": true }),
            "versions" => json!({ "component_id": body["component_id"], "description": "Ours" }),
            _ => json!({ "organization_id": body["organization_id"] }),
        };
        let path = format!("/funding-packs/{id}/{path}");
        let refused = app.web(Method::POST, &path, body).await;
        assert_eq!(refused.error(404), "Funding pack not found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invited_originator_follows_a_pack_whose_rules_then_decide() {
    let app = TestApp::start().await;
    let (token, id) = lender(&app).await;
    let path = format!("/funding-packs/{id}/invitations");
    let invitation = json!({ "organization_id": app.org.as_str() });
    app.post_with_bearer(&token, &path, invitation)
        .await
        .data(200);

    let listed = app.get_with_bearer(app.web_admin(), "/funding-packs").await;
    let packs = listed.data(200)["packs"].take();
    assert_eq!(packs[0]["pack_id"], id.as_str());
    assert_eq!(
        (&packs[0]["is_own"], &packs[0]["subscribed"]),
        (&json!(false), &json!(false))
    );

    let path = format!("/funding-packs/{id}/subscription");
    let unknown = json!({ "subscribed": true, "version": 7 });
    let refused = app.web(Method::POST, &path, unknown).await.json();
    assert_eq!(refused["details"][0]["code"], "unknown_version");
    let followed = app
        .web(Method::POST, &path, json!({ "subscribed": true }))
        .await;
    assert_eq!(followed.data(200)["subscribed"], true);

    let contract = app.vaulted_envelope().await;
    let result = check(&app, &contract, json!({})).await;
    assert_eq!(result["rules_component"]["name"], "bank-funding");
    assert_eq!(result["pack"]["pack_id"], id.as_str());
    assert_eq!(result["pack"]["version"], 1);

    let ended = app
        .web(Method::POST, &path, json!({ "subscribed": false }))
        .await;
    assert_eq!(ended.data(200)["subscribed"], false);
    let result = check(&app, &contract, json!({})).await;
    assert_eq!(result["pack"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_takes_components_and_samples_of_its_lender_only() {
    let app = TestApp::start().await;
    let (token, id) = lender(&app).await;
    let contract = app.sent_envelope().await;
    let own = variant(Slot::Funding, "rules of the originator");
    let own = app
        .upload_component(&app.admin(), "our-funding", "1.0.0", &own)
        .await
        .data(201);
    let path = format!("/funding-packs/{id}/versions");
    let foreign = json!({ "component_id": own["component_id"], "description": "Theirs" });
    let refused = app.post_with_bearer(&token, &path, foreign).await.json();
    assert_eq!(refused["details"][0]["code"], "unknown_component");

    let listed = app.get_with_bearer(&token, "/components").await.json();
    let mine = listed["data"].as_array().unwrap().iter();
    let mine = mine
        .clone()
        .find(|one| one["name"] == "bank-funding")
        .unwrap();
    let sample = json!({
        "component_id": mine["component_id"], "description": "With a sample",
        "samples": [contract["envelope_id"]],
    });
    let refused = app.post_with_bearer(&token, &path, sample).await.json();
    assert_eq!(refused["details"][0]["code"], "unknown_envelope");
    let unknown = json!({ "organization_id": "org_01h455vb4pex5vsknk084sn02q" });
    let path = format!("/funding-packs/{id}/invitations");
    let refused = app.post_with_bearer(&token, &path, unknown).await.json();
    assert_eq!(refused["details"][0]["code"], "unknown_party");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_starts_without_checks() {
    assert_eq!(OrgSettings::default().funding.as_str(), "off");
    let app = TestApp::start().await;
    let sent = app.sent_envelope().await;
    assert_eq!(sent["status"], "sent");
}
