//! Facts of contracts, and the maps that they are read with.

mod contracts;
mod made_set;
mod seeded;

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, envelope_body, form, pdf};
use holdfast::domain::id::EnvelopeId;
use holdfast::store::contract_facts::{self, ENVELOPE_ID, EXTERNAL_ID, FoundKey};

const VIN: &str = "1M8GDM9AXKP042788";

fn contract() -> Vec<u8> {
    pdf::with_lines(&[
        "Contract Number RIC-2041",
        "VIN 1M8GD M9AXK P042788",
        "Amount Financed $21,500.00",
        "Deposit none",
    ])
}

fn map(scope: Value) -> Value {
    let beside = |anchor: &str| json!([{ "anchor": anchor, "direction": "right_of" }]);
    json!({
        "name": "Loan", "applies_to": scope,
        "facts": [
            { "name": "contract_number", "kind": "text", "printed": beside("Contract Number") },
            { "name": "vin", "kind": "vin", "printed": beside("VIN"), "declared": "vin" },
            { "name": "amount_financed", "kind": "money", "currency": "USD", "fields": ["Amount"],
              "printed": beside("Amount Financed") },
            { "name": "deposit", "kind": "money", "currency": "USD", "printed": beside("Deposit") },
            { "name": "apr", "kind": "percentage", "printed": beside("APR"), "declared": "apr" },
        ],
    })
}

async fn new_map(app: &TestApp, body: Value) -> String {
    let map = app.web(Method::POST, "/fact-maps", body).await.data(201);
    map["fact_map_id"].as_str().unwrap().to_owned()
}

/// Uploads a signed contract with metadata, and returns its id.
async fn uploaded(app: &TestApp, content_type: &str, file: &[u8], metadata: Value) -> String {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    body["metadata"] = metadata;
    let paper = app.post("/partner/envelopes", body).await.data(201);
    let id = paper["envelope_id"].as_str().unwrap().to_owned();
    let path = format!("/partner/envelopes/{id}/upload");
    app.upload(&path, content_type, file, &[]).await.data(201);
    id
}

async fn vaulted(app: &TestApp, metadata: Value) -> String {
    let id = uploaded(app, "application/pdf", &contract(), metadata).await;
    vault_in(app, &id).await;
    id
}

async fn vault_in(app: &TestApp, id: &str) {
    let path = format!("/partner/envelopes/{id}/vault-in-upload");
    app.post(&path, json!({})).await.data(200);
}

async fn facts(app: &TestApp, id: &str) -> TestResponse {
    app.get(&format!("/partner/envelopes/{id}/facts")).await
}

fn fact<'a>(sheet: &'a Value, name: &str) -> &'a Value {
    let mut facts = sheet["facts"].as_array().unwrap().iter();
    facts.find(|fact| fact["name"] == name).unwrap()
}

fn entries(custody: &Value) -> usize {
    let entries = custody["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["action"] == "facts.read")
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_are_read_at_vault_in_with_the_places_where_they_stand() {
    let app = TestApp::start().await;
    new_map(&app, map(json!({ "all": true }))).await;
    let metadata = json!({ "vin": "1M8GDM9AXKP042789", "apr": 7.9 });
    let id = vaulted(&app, metadata).await;

    let sheet = facts(&app, &id).await.data(200);
    let number = fact(&sheet, "contract_number");
    assert_eq!(
        (&number["status"], &number["value"]),
        (&json!("known"), &json!("RIC-2041"))
    );
    assert_eq!(number["origin"], "printed");
    assert_eq!(number["sources"][0]["place"]["page"], 1);

    // The contract beats the originator, and both stay.
    let vin = fact(&sheet, "vin");
    assert_eq!(
        (&vin["status"], &vin["value"]),
        (&json!("conflicting"), &json!(VIN))
    );
    assert_eq!(vin["sources"][0]["words"], "1M8GD M9AXK P042788");
    assert_eq!(vin["sources"][1]["origin"], "declared");
    assert_eq!(vin["sources"][1]["value"], "1M8GDM9AXKP042789");

    let apr = fact(&sheet, "apr");
    assert_eq!(
        (&apr["value"], &apr["origin"]),
        (&json!("7.9"), &json!("declared"))
    );
    let deposit = fact(&sheet, "deposit");
    assert_eq!(
        (&deposit["status"], &deposit["value"]),
        (&json!("missing"), &Value::Null)
    );
    assert_eq!(deposit["sources"][0]["problem"], "\"none\" is no number");

    let path = format!("/envelopes/{id}/facts");
    let web = app.web(Method::GET, &path, Value::Null).await.data(200);
    assert_eq!(web, sheet);
    let entry = app.entry(&id, "facts.read").await;
    assert_eq!(entry["fact_map"], sheet["fact_map"]);
    assert_eq!(entry["document_sha256"], sheet["document_sha256"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_reads_the_facts_of_a_bundle_again() {
    let app = TestApp::start().await;
    new_map(&app, map(json!({ "all": true }))).await;
    let id = vaulted(&app, json!({})).await;
    let report = app.release_and_verify(&id).await;
    assert_eq!(report["valid"], true, "{report}");

    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "facts");
    let check = check.unwrap();
    assert_eq!(check["ok"], true, "{check}");
    let detail = check["detail"].as_str().unwrap();
    assert!(detail.ends_with("reads the same 5 facts again"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_fields_are_the_strongest_source_also_before_they_are_signed() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "Amount Financed $21,500.00",
        "{{Amount;type=number;role=Buyer;readonly=true;default=21500}}",
        "{{Buyer signature;type=signature;role=Buyer;required=true}}",
    ]);
    let texts = [("name", "Contract")];
    let template = app
        .upload("/partner/templates", "application/pdf", &document, &texts)
        .await
        .data(200);
    let scope = json!({ "templates": [template["template_id"]] });
    new_map(&app, map(scope)).await;
    let body = envelope_body(&template["template_id"]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();

    let assert_signed = |sheet: &Value| {
        let amount = fact(sheet, "amount_financed");
        assert_eq!(amount["status"], "known", "{amount}");
        assert_eq!(amount["value"], "21500.00");
        let source = &amount["sources"][0];
        assert_eq!(source["origin"], "signed");
        assert_eq!(
            (&source["field"], &source["role"]),
            (&json!("Amount"), &json!("Buyer"))
        );
        assert_eq!(source["place"]["page"], 1);
    };
    assert_signed(&facts(&app, id).await.data(200));
    form::sign(&app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(id, "vaulted").await;
    assert_signed(&facts(&app, id).await.data(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_without_a_map_has_no_facts() {
    let app = TestApp::start().await;
    let scope = json!({ "contract_kinds": ["lease"] });
    new_map(&app, map(scope)).await;
    let id = vaulted(&app, json!({ "contract_kind": "loan" })).await;
    let refused = facts(&app, &id).await;
    assert_eq!(refused.status, 404);
    assert_eq!(refused.json()["code"], "no_facts");
    assert_eq!(entries(&app.custody(&id).await), 0);

    let lease = vaulted(&app, json!({ "contract_kind": "lease" })).await;
    facts(&app, &lease).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_of_an_earlier_record_are_read_once() {
    let app = TestApp::start().await;
    let id = vaulted(&app, json!({})).await;
    new_map(&app, map(json!({ "all": true }))).await;
    let first = facts(&app, &id).await.data(200);
    assert_eq!(entries(&app.custody(&id).await), 1);
    assert_eq!(facts(&app, &id).await.data(200), first);
    assert_eq!(entries(&app.custody(&id).await), 1);

    let report = app.release_and_verify(&id).await;
    assert_eq!(report["valid"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_unreadable_and_is_vaulted_all_the_same() {
    let app = TestApp::start().await;
    new_map(&app, map(json!({ "all": true }))).await;
    let scan = include_bytes!("../../fixtures/scan.png");
    let id = uploaded(&app, "image/png", scan, json!({ "vin": VIN })).await;
    vault_in(&app, &id).await;
    let sheet = facts(&app, &id).await.data(200);
    let vin = fact(&sheet, "vin");
    assert_eq!(
        (&vin["status"], &vin["value"]),
        (&json!("unreadable"), &Value::Null)
    );
    assert_eq!(vin["sources"][0]["origin"], "declared");

    let report = app.release_and_verify(&id).await;
    assert_eq!(report["valid"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_has_versions_and_facts_name_theirs() {
    let app = TestApp::start().await;
    let id = new_map(&app, map(json!({ "all": true }))).await;
    let path = format!("/fact-maps/{id}");
    let record = vaulted(&app, json!({})).await;

    let mut changed = map(json!({ "all": true }));
    changed["facts"].as_array_mut().unwrap().truncate(1);
    let second = app.web(Method::PUT, &path, changed).await.data(200);
    assert_eq!(second["version"], 2);
    let read = app.web(Method::GET, &path, Value::Null).await.data(200);
    assert_eq!(read, second);
    let listed = app
        .web(Method::GET, "/fact-maps", Value::Null)
        .await
        .data(200);
    assert_eq!(listed, json!([second]));

    let earlier = facts(&app, &record).await.data(200);
    assert_eq!(earlier["fact_map"]["version"], 1);
    let later = vaulted(&app, json!({})).await;
    let later = facts(&app, &later).await.data(200);
    assert_eq!(later["fact_map"]["version"], 2);
    assert_eq!(later["fact_map"]["sha256"], second["sha256"]);

    let deleted = app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert_eq!(deleted, json!({ "fact_map_id": id, "deleted": true }));
    let gone = app.web(Method::GET, &path, Value::Null).await;
    assert_eq!(gone.error(404), "Fact map not found");
    // Evidence that names a version still has it.
    let report = app.release_and_verify(&record).await;
    assert_eq!(report["valid"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_begins_with_a_starter() {
    let app = TestApp::start().await;
    let path = "/fact-maps/starters";
    let starters = app.web(Method::GET, path, Value::Null).await.data(200);
    assert_eq!(starters[0]["starter"], "retail_installment");
    let body = json!({ "starter": "retail_installment", "applies_to": { "all": true } });
    let map = app.web(Method::POST, "/fact-maps", body).await.data(201);
    assert_eq!(map["facts"], starters[0]["facts"]);
    assert_eq!(map["version"], 1);

    let record = vaulted(&app, json!({})).await;
    let sheet = facts(&app, &record).await.data(200);
    assert_eq!(fact(&sheet, "amount_financed")["value"], "21500.00");
    assert_eq!(fact(&sheet, "vin")["value"], VIN);
    assert_eq!(fact(&sheet, "contract_number")["value"], "RIC-2041");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_problem_of_a_map_is_named_with_its_place() {
    let app = TestApp::start().await;
    let mut twice = map(json!({}));
    twice["facts"][1]["name"] = "contract_number".into();
    let refused = app.web(Method::POST, "/fact-maps", twice).await;
    assert_eq!(refused.status, 422);
    let details = refused.json()["details"].take();
    assert_eq!(details[0]["path"], json!(["applies_to"]));
    assert_eq!(details[1]["path"], json!(["facts", 1, "name"]));

    let unknown = json!({ "starter": "lease", "applies_to": { "all": true } });
    let refused = app.web(Method::POST, "/fact-maps", unknown).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        refused.json()["details"][0]["expected"],
        "retail_installment"
    );
    let scope = json!({ "templates": ["tmpl_01h455vb4pex5vsknk084sn02q"] });
    let refused = app.web(Method::POST, "/fact-maps", map(scope)).await;
    assert_eq!(refused.error(404), "Template not found");
    let scope = json!({ "packages": ["pkg_01h455vb4pex5vsknk084sn02q"] });
    let refused = app.web(Method::POST, "/fact-maps", map(scope)).await;
    assert_eq!(refused.error(404), "Package not found");
}

/// The facts of `map` that tests need, as people write them.
const TOML_MAP: &str = r#"
name = "Loan"
applies_to = { all = true }

[[facts]]
name = "amount_financed"
kind = "money"
currency = "USD"
printed = [{ anchor = "Amount Financed", direction = "right_of" }]

[[facts]]
name = "vin"
kind = "vin"
declared = "vin"
"#;

async fn toml_map(app: &TestApp, body: impl Into<Body>) -> TestResponse {
    app.web_body(Method::POST, "/fact-maps", "application/toml", body)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_is_written_in_toml() {
    let app = TestApp::start().await;
    let created = toml_map(&app, TOML_MAP).await.data(201);
    let document = json!({
        "name": "Loan", "applies_to": { "all": true },
        "facts": [
            { "name": "amount_financed", "kind": "money", "currency": "USD",
              "printed": [{ "anchor": "Amount Financed", "direction": "right_of" }] },
            { "name": "vin", "kind": "vin", "declared": "vin" },
        ],
    });
    // One map in two forms has one digest.
    let same = app
        .web(Method::POST, "/fact-maps", document)
        .await
        .data(201);
    assert_eq!(created["sha256"], same["sha256"]);

    // That of the guide is one, too.
    let (_, guide) = include_str!("../../../docs/facts.md")
        .split_once("```toml\n")
        .unwrap();
    let guide = guide.split_once("```").unwrap().0;
    let read = toml_map(&app, guide).await.data(201);
    assert_eq!(read["facts"][1]["date_order"], "mdy");

    let path = format!("/fact-maps/{}", created["fact_map_id"].as_str().unwrap());
    let kind = "application/toml; charset=utf-8";
    let changed = TOML_MAP.replace("Loan", "Retail");
    let second = app
        .web_body(Method::PUT, &path, kind, changed)
        .await
        .data(200);
    assert_eq!(
        (&second["version"], &second["name"]),
        (&json!(2), &json!("Retail"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_problem_of_a_map_in_toml_is_named_with_its_line() {
    let app = TestApp::start().await;
    let broken = TOML_MAP.replace("kind = \"money\"", "kind = money");
    let refused = toml_map(&app, broken).await.error(400);
    assert!(refused.starts_with("Invalid TOML: line 7: "), "{refused}");
    let refused = toml_map(&app, &b"name = \"\xff\""[..]).await.error(400);
    assert_eq!(refused, "Invalid TOML: it is not UTF-8");
    let twice = format!("{TOML_MAP}name = \"Loan\"\n");
    let refused = toml_map(&app, twice).await.error(400);
    assert!(refused.starts_with("Invalid TOML: line 15: "), "{refused}");

    // What the schema refuses, and what the service does.
    for (from, to, path, line) in [
        (
            "kind = \"vin\"",
            "kind = \"vehicle\"",
            json!(["facts", 1, "kind"]),
            13,
        ),
        ("declared", "stated", json!(["facts", 1, "stated"]), 14),
        (
            "direction = \"right_of\"",
            "direction = \"left\"",
            json!(["facts", 0, "printed", 0, "direction"]),
            9,
        ),
        ("{ all = true }", "{}", json!(["applies_to"]), 3),
        (
            "name = \"vin\"",
            "name = \"amount_financed\"",
            json!(["facts", 1, "name"]),
            12,
        ),
    ] {
        let refused = toml_map(&app, TOML_MAP.replace(from, to)).await;
        assert_eq!(refused.status, 422, "{to}");
        let details = refused.json()["details"].take();
        let issue = details
            .as_array()
            .unwrap()
            .iter()
            .find(|issue| issue["path"] == path);
        let message = issue.and_then(|issue| issue["message"].as_str());
        let begin = format!("line {line}: ");
        assert!(
            message.is_some_and(|text| text.starts_with(&begin)),
            "{to}: {details}"
        );
    }

    // The limit is that of JSON.
    let long = format!("{TOML_MAP}# {}\n", "x".repeat(1024 * 1024));
    let refused = toml_map(&app, long).await.error(413);
    assert_eq!(refused, "Request body is larger than 1048576 bytes");
    let other = app
        .web_body(Method::POST, "/fact-maps", "text/plain", TOML_MAP)
        .await;
    assert_eq!(
        other.error(400),
        "Content-Type must be application/json or application/toml"
    );
    let listed = app
        .web(Method::GET, "/fact-maps", Value::Null)
        .await
        .data(200);
    assert_eq!(listed, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_is_tried_on_stored_documents_without_storing_anything() {
    let app = TestApp::start().await;
    let vaulted = vaulted(&app, json!({})).await;
    let draft = uploaded(&app, "application/pdf", &contract(), json!({})).await;
    // It applies to neither of them.
    let id = new_map(&app, map(json!({ "contract_kinds": ["lease"] }))).await;
    let path = format!("/fact-maps/{id}/try");
    let body = json!({ "envelope_ids": [vaulted, draft] });
    let tried = app.web(Method::POST, &path, body).await.data(200);
    for (one, id) in tried.as_array().unwrap().iter().zip([&vaulted, &draft]) {
        assert_eq!(one["envelope_id"], json!(id));
        assert_eq!(fact(one, "vin")["value"], VIN);
        let svg = one["drawings"][0]["svg"].as_str().unwrap();
        assert!(
            svg.starts_with("<svg") && svg.contains("Amount Financed"),
            "{svg}"
        );
        // Three values, and one place with words that are none.
        assert_eq!(svg.matches("#0a4cc0").count(), 3, "{svg}");
        assert_eq!(svg.matches("#c0102a").count(), 1, "{svg}");
    }
    assert_eq!(app.count("contract_facts").await, 0);

    let unknown = json!({ "envelope_ids": ["env_01h455vb4pex5vsknk084sn02q"] });
    let refused = app.web(Method::POST, &path, unknown).await;
    assert_eq!(refused.error(404), "Envelope not found");
    let none = app
        .web(Method::POST, &path, json!({ "envelope_ids": [] }))
        .await;
    assert_eq!(none.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn contracts_are_found_by_their_keys_within_their_organization() {
    let app = TestApp::start().await;
    new_map(&app, map(json!({ "all": true }))).await;
    let id = vaulted(&app, json!({})).await;
    let envelope = EnvelopeId::parse(&id).unwrap();

    let mut connection = app.store.read().await.unwrap();
    for (key, value) in [
        ("vin", VIN),
        ("contract_number", "RIC-2041"),
        (EXTERNAL_ID, "deal-17"),
        (ENVELOPE_ID, id.as_str()),
    ] {
        let values = [value.to_owned(), "unknown".to_owned()];
        let found = contract_facts::by_key(&mut connection, &app.org, key, &values);
        let expected = FoundKey {
            value: value.into(),
            envelope: envelope.clone(),
        };
        assert_eq!(found.await.unwrap(), [expected], "{key}");
    }

    let list = contract_facts::list(&mut connection, &app.org, None, 10);
    assert_eq!(list.await.unwrap().len(), 1);
    let after = contract_facts::list(&mut connection, &app.org, Some(&envelope), 10);
    assert!(after.await.unwrap().is_empty());

    let (other, _) = app.party().await;
    let values = [VIN.to_owned()];
    let found = contract_facts::by_key(&mut connection, &other, "vin", &values);
    assert!(found.await.unwrap().is_empty());
    let found = contract_facts::of_envelope(&mut connection, &other, &envelope);
    assert!(found.await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_organization_neither_sees_facts_nor_reads_with_a_foreign_map() {
    let app = TestApp::start().await;
    let id = new_map(&app, map(json!({ "all": true }))).await;
    let record = vaulted(&app, json!({})).await;
    let other = app.other_admin();
    for path in [
        format!("/fact-maps/{id}"),
        format!("/envelopes/{record}/facts"),
    ] {
        let foreign = app.get_with_bearer(&other, &path).await;
        assert_eq!(foreign.status, 404, "{}", foreign.text());
    }
    let listed = app.get_with_bearer(&other, "/fact-maps").await.data(200);
    assert_eq!(listed, json!([]));

    let theirs = map(json!({ "all": true }));
    let theirs = app.post_with_bearer(&other, "/fact-maps", theirs).await;
    let theirs = theirs.data(201)["fact_map_id"].as_str().unwrap().to_owned();
    let path = format!("/fact-maps/{theirs}/try");
    let body = json!({ "envelope_ids": [record] });
    let tried = app.post_with_bearer(&other, &path, body).await;
    assert_eq!(tried.error(404), "Envelope not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_of_a_package_applies_to_what_is_sent_of_it() {
    let app = TestApp::start().await;
    let mut ids = Vec::new();
    for line in ["Amount Financed $1.00", "Appendix"] {
        let document = pdf::with_lines(&[line, "{{Sign;type=signature;role=Buyer;required=true}}"]);
        let made = app.library_template(&[("name", line)], &document).await;
        ids.push(made.data(201)["template_id"].clone());
    }
    let package = json!({ "name": "Sale", "template_ids": ids });
    let package = app.web(Method::POST, "/document-packages", package).await;
    let package = package.data(201)["package_id"].clone();
    let of_package = new_map(&app, map(json!({ "packages": [package] }))).await;
    // It is newer, and less close.
    new_map(&app, map(json!({ "all": true }))).await;

    let mut body = envelope_body(&Value::Null);
    body.as_object_mut().unwrap().remove("template_id");
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap();
    let sending = json!({ "package_id": package });
    app.web(Method::POST, &format!("/envelopes/{id}/send"), sending)
        .await
        .data(200);
    let sheet = facts(&app, id).await.data(200);
    assert_eq!(sheet["fact_map"]["fact_map_id"], of_package.as_str());
    assert_eq!(fact(&sheet, "amount_financed")["value"], "1.00");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_changes_of_a_map_the_second_is_refused() {
    let app = TestApp::start().await;
    let id = new_map(&app, map(json!({ "all": true }))).await;
    let path = format!("/fact-maps/{id}");
    let change = || app.web(Method::PUT, &path, map(json!({ "all": true })));
    let (one, other) = tokio::join!(change(), change());
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    let read = app.web(Method::GET, &path, Value::Null).await.data(200);
    // Either they met, or one came after the other.
    match statuses {
        [200, 409] => assert_eq!(read["version"], 2),
        [200, 200] => assert_eq!(read["version"], 3),
        other => panic!("{other:?}"),
    }
}
