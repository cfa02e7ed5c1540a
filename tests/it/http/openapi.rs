//! The OpenAPI document, and checks that run for every operation in it.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use holdfast::domain::component::Slot;

use crate::service::components::registry::variant;
use crate::service::control::signatures as signed_acts;
use crate::service::imports::zipped;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{
    CONTRACT, TestApp, TestResponse, envelope_body, org_of, postgres, receiver, release_form,
};

/// One operation of the document.
pub struct ApiOperation {
    pub method: Method,
    pub path: String,
    pub description: Value,
}

pub fn operations(document: &Value) -> Vec<ApiOperation> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object()
                .unwrap()
                .iter()
                .map(|(method, description)| ApiOperation {
                    method: method.to_uppercase().parse().unwrap(),
                    path: path.clone(),
                    description: description.clone(),
                })
        })
        .collect()
}

pub fn document() -> Value {
    holdfast::http::openapi_document("https://holdfast.example/api/v2")
}

/// Set `UPDATE_OPENAPI=1` to rewrite the committed copy.
#[test]
fn the_committed_openapi_document_matches_the_served_one() {
    let text = format!("{}\n", serde_json::to_string_pretty(&document()).unwrap());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).unwrap();
        std::fs::write(path, &text).unwrap();
    }

    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/openapi.json is out of date: run this test with UPDATE_OPENAPI=1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_shows_every_operation_in_a_browser() {
    let app = TestApp::on_a_socket().await;
    let served = app.get("/openapi.json").await.json();
    assert_eq!(served["openapi"], "3.1.0");
    assert_eq!(served["paths"], document()["paths"]);

    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    let note_refusals = json!({ "source": "window.refused = [];
        addEventListener('securitypolicyviolation', (event) =>
            window.refused.push(event.violatedDirective + ' ' + event.blockedURI));" });
    browser
        .tell("Page.addScriptToEvaluateOnNewDocument", note_refusals)
        .await;

    browser.goto(&format!("{}/docs/api", app.url())).await;
    browser.see(".calls").await;
    let text = browser.text().await;
    for operation in operations(&served) {
        let summary = operation.description["summary"].as_str().unwrap();
        assert!(text.contains(summary), "{summary}");
    }

    browser
        .click("main a[href='/docs/api/partner-envelopes#createEnvelope']")
        .await;
    browser.see("#createEnvelope:target").await;
    browser.picture("reference-phone").await;
    assert_eq!(browser.run("return window.refused").await, json!([]));

    let width = browser
        .run("return document.documentElement.scrollWidth <= innerWidth")
        .await;
    assert_eq!(width, true, "the page scrolls sideways");
}

/// The specification's convention for lists.
#[test]
fn every_list_takes_page_and_limit() {
    let document = document();
    let mut lists = 0;
    for operation in operations(&document) {
        let answer = &operation.description["responses"]["200"]["content"]["application/json"];
        let data = &answer["schema"]["properties"]["data"];
        let is_list = data["type"] == "array" && operation.method == Method::GET;
        if !is_list {
            continue;
        }

        let parameters = operation.description["parameters"].as_array();
        let parameters = parameters.map_or(&[][..], Vec::as_slice);
        for name in ["page", "limit"] {
            let has = parameters.iter().any(|parameter| parameter["name"] == name);
            assert!(has, "{} has no {name}", operation.path);
        }

        let meta = &answer["schema"]["properties"]["meta"]["properties"];
        assert!(meta.get("limit").is_some(), "{}", operation.path);
        lists += 1;
    }

    assert!(lists > 35, "{lists}");
}

/// Every list accepts both parameters, and refuses a page that cannot be.
#[tokio::test(flavor = "multi_thread")]
async fn every_list_answers_with_a_page() {
    let app = TestApp::start().await;
    let document = document();
    let mut lists = 0;
    for operation in operations(&document) {
        let answer = &operation.description["responses"]["200"]["content"]["application/json"];
        let is_list = answer["schema"]["properties"]["data"]["type"] == "array";
        // Lists below an object are tested with their object.
        if operation.method != Method::GET || !is_list || operation.path.contains('{') {
            continue;
        }

        let is_for_keys = operation.description["security"][0]["apiKey"].is_array();
        let ask = async |query: &str| {
            let path = format!("{}?{query}", operation.path);
            if is_for_keys {
                app.get(&path).await
            } else {
                app.get_with_bearer(app.web_admin(), &path).await
            }
        };

        let page = ask("page=1&limit=5").await;
        // Some are for test keys or operators, or need a further parameter.
        if [400, 403, 404].contains(&page.status.as_u16()) {
            continue;
        }

        assert_eq!(page.status, 200, "{}: {}", operation.path, page.text());
        let page = page.json();
        assert!(page["data"].as_array().unwrap().len() <= 5, "{page}");
        assert_eq!(page["meta"]["limit"], 5, "{}: {page}", operation.path);

        let refused = ask("page=0").await;
        assert_eq!(refused.status, 400, "{}", operation.path);
        lists += 1;
    }
    assert!(lists > 30, "{lists}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_numbered_pages_with_and_without_a_total() {
    let app = TestApp::start().await;
    let web = async |path: &str| app.get_with_bearer(app.web_admin(), path).await;

    let all = web("/webhooks/events").await.json();
    let total = all["meta"]["total"].clone();
    assert_eq!(
        all["meta"],
        json!({ "page": 1, "limit": 1000, "total": total })
    );

    let second = web("/webhooks/events?limit=2&page=2").await.json();
    assert_eq!(
        second["meta"],
        json!({ "page": 2, "limit": 2, "total": total })
    );
    assert_eq!(
        second["data"].as_array().unwrap()[..],
        all["data"].as_array().unwrap()[2..4]
    );

    let endpoints = web("/webhooks/endpoints?limit=100").await.json();
    assert_eq!(
        endpoints["meta"],
        json!({ "page": 1, "limit": 100, "total": 0 })
    );

    for _ in 0..3 {
        app.envelope_event().await;
    }
    let all = web("/envelopes?limit=3").await.json();
    let second = web("/envelopes?limit=1&page=2").await.json();
    assert_eq!(second["data"], json!([all["data"][1]]));
    assert_eq!(second["meta"], json!({ "limit": 1, "has_more": true }));

    let id = all["data"][0]["envelope_id"].as_str().unwrap();
    for (query, why) in [
        (
            format!("page=2&starting_after={id}"),
            "page and starting_after exclude each other",
        ),
        (
            "page=101&limit=10".into(),
            "page times limit must be 1000 or less; read on with starting_after",
        ),
    ] {
        let refused = web(&format!("/envelopes?{query}")).await;
        assert_eq!(refused.error(400), why, "{query}");
    }
}

/// A member has a description, or the type that it refers to.
#[test]
fn every_member_is_described() {
    fn undescribed(schema: &str, value: &Value, found: &mut Vec<String>) {
        for (name, member) in value["properties"].as_object().into_iter().flatten() {
            let text = member["description"].as_str().unwrap_or_default();
            if text.is_empty() && member.get("$ref").is_none() {
                found.push(format!("{schema}.{name}"));
            }
        }

        let parts = value.as_object().into_iter().flat_map(Map::values);
        let parts = parts.chain(value.as_array().into_iter().flatten());
        parts.for_each(|part| undescribed(schema, part, found));
    }

    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.len() > 100);

    let mut found = Vec::new();
    for (name, schema) in schemas {
        undescribed(name, schema, &mut found);
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn every_operation_documents_its_credential_errors_and_an_example() {
    let document = document();
    let operations = operations(&document);
    assert!(operations.len() >= 70, "{}", operations.len());

    let limits = document["info"]["description"].as_str().unwrap();
    for limited in ["/sign/…", "web-app token", "/builder/…", "/ledger/…", "429"] {
        assert!(limits.contains(limited), "{limited}");
    }

    for operation in operations {
        let name = format!("{} {}", operation.method, operation.path);
        let description = &operation.description;
        assert!(description["operationId"].is_string(), "{name}");

        let answers = description["responses"].as_object().unwrap();
        if operation.path.starts_with("/partner/") {
            assert_eq!(description["security"], json!([{ "apiKey": [] }]), "{name}");
            assert_eq!(
                description["x-scopes"].as_array().unwrap().len(),
                1,
                "{name}"
            );

            for status in ["401", "403", "429", "500"] {
                assert!(answers.contains_key(status), "{name} {status}");
            }
        }

        if operation.path.contains("{id}") {
            assert!(answers.contains_key("404"), "{name}");
        }

        let done = answers.iter().find(|(status, _)| status.starts_with('2'));
        let (_, done) = done.unwrap_or_else(|| panic!("{name} never succeeds"));
        for content in [&description["requestBody"]["content"], &done["content"]] {
            let json = &content["application/json"];
            if json["schema"].is_object() {
                check_example(&document, &name, json);
            }
            let form = &content["multipart/form-data"];
            assert!(form.is_null() || form["example"].is_object(), "{name}");
        }
    }

    for (event, webhook) in document["webhooks"].as_object().unwrap() {
        let body = &webhook["post"]["requestBody"]["content"]["application/json"];
        check_example(&document, event, body);
    }

    for (name, answer) in document["components"]["responses"].as_object().unwrap() {
        check_example(&document, name, &answer["content"]["application/json"]);
    }
}

/// A made object leads to the operations that read it.
#[test]
fn operations_are_linked() {
    let document = document();
    let made = &document["paths"]["/partner/envelopes"]["post"]["responses"]["201"];
    let id = json!({ "id": "$response.body#/data/envelope_id" });
    for reader in ["getEnvelope", "getEnvelopeStatus", "getSigningLinks"] {
        assert_eq!(made["links"][reader]["operationId"], reader);
        assert_eq!(made["links"][reader]["parameters"], id);
    }
}

/// Asserts that an example matches its schema.
fn check_example(document: &Value, name: &str, media: &Value) {
    let mut schema = media["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&media["example"])
        .map(|problem| format!("{} {problem}", problem.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{name}: {problems:#?}");
}

async fn tape(app: &TestApp) -> String {
    let map = json!({ "columns": [{ "column": "Id", "fact": "envelope_id" }] }).to_string();
    let texts = [("name", "Line 12"), ("map", map.as_str())];
    let path = "/partner/control/tapes";
    let sent = app
        .upload(path, "text/csv", b"Id\n", &texts)
        .await
        .data(202);
    sent["tape_id"].as_str().unwrap().to_owned()
}

/// Creates one object of each kind in organization A and returns their ids, each with the part
/// of the path that precedes it.
async fn ids_of_a(app: &TestApp) -> Vec<(&'static str, String, &'static str)> {
    // Before the organization has a key that signs its acts.
    let dispute_id = disputed(app).await;
    let template = app.contract_template().await;
    let template_id = template["template_id"].as_str().unwrap().to_owned();
    let envelope = app
        .post(
            "/partner/envelopes",
            envelope_body(&template["template_id"]),
        )
        .await
        .data(201);
    let envelope_id = envelope["envelope_id"].as_str().unwrap().to_owned();

    let customer_id = envelope["customer_id"].as_str().unwrap().to_owned();
    let endpoint = app.endpoint("http://127.0.0.1:9/", &["*"]).await;
    app.envelope_event().await;
    let log = app.wait_for_log(&endpoint, |log| log.len() == 1).await;
    let endpoint_id = endpoint["endpoint_id"].as_str().unwrap().to_owned();
    let delivery_id = log[0]["delivery_id"].as_str().unwrap().to_owned();
    let rules = variant(Slot::Compliance, "organization A");
    let component = app
        .upload_component(&app.admin(), "rules-of-a", "1.0.0", &rules)
        .await
        .data(201);
    let component_id = component["component_id"].as_str().unwrap().to_owned();

    // Another organization cannot activate it.
    let activate = json!({ "component_id": component_id });
    let path = "/component-slots/rules.compliance/activate";
    let foreign = app
        .post_with_bearer(&app.other_admin(), path, activate)
        .await;
    assert_eq!(foreign.error(404), "Component not found");

    let change = json!({
        "change": { "action": "activate", "slot": "rules.compliance", "component_id": component_id },
        "reason": "Ours", "source": { "url": "https://git.a.example", "commit": "4f1c2ab" },
    });
    let change = app.web(Method::POST, "/component-changes", change).await;
    let change_id = change.data(201)["change_id"].as_str().unwrap().to_owned();
    let package = json!({ "name": "Sale", "template_ids": [template_id] });
    let package = app.web(Method::POST, "/document-packages", package);
    let package_id = package.await.data(201)["package_id"]
        .as_str()
        .unwrap()
        .to_owned();

    let map =
        json!({ "starter": "retail_installment", "applies_to": { "contract_kinds": ["none"] } });
    let map = app.web(Method::POST, "/fact-maps", map).await.data(201);
    let fact_map_id = map["fact_map_id"].as_str().unwrap().to_owned();

    let batch = json!({ "name": "Notice", "document_source": "new" });
    let batch = app.web(Method::POST, "/bulk-send", batch).await.data(201);
    let batch_id = batch["batch_id"].as_str().unwrap().to_owned();
    let key = json!({ "scopes": ["envelopes:read"] });
    let key = app.web(Method::POST, "/api-keys", key).await.data(201);
    let api_key_id = key["key_id"].as_str().unwrap().to_owned();
    let user = json!({ "email": "dee@a.example", "role": "developer" });
    let user = app.web(Method::POST, "/users", user).await;
    let request_id = user.headers["x-request-id"].to_str().unwrap().to_owned();

    let user = user.data(201);
    let user_id = user["user_id"].as_str().unwrap().to_owned();
    let (release_id, transfer_id) = release_and_transfer(app).await;
    let events = app.get("/partner/events?limit=1").await.data(200);
    let event_id = events[0]["event_id"].as_str().unwrap().to_owned();
    let (view_id, copy_id) = view_and_copy(app).await;

    let link = json!({ "name": "Sale", "expires_at": "2030-12-31T23:59:59Z", "limit": 5 });
    let path = format!("/partner/templates/{template_id}/open-links");
    let link = app.post(&path, link).await.data(201);
    let link_id = link["open_link_id"].as_str().unwrap().to_owned();

    let rules = variant(Slot::Funding, "organization A");
    let rules = app
        .upload_component(&app.admin(), "funding-of-a", "1.0.0", &rules)
        .await
        .data(201);
    let pack = json!({
        "name": "Retail", "component_id": rules["component_id"], "description": "First terms",
    });
    let pack = app.web(Method::POST, "/funding-packs", pack).await;
    let pack_id = pack.data(201)["pack_id"].as_str().unwrap().to_owned();

    let tape_id = tape(app).await;
    let archive = zipped(&[("contract.pdf", CONTRACT)]);
    let import = app.upload("/partner/imports", "application/zip", &archive, &[]);
    let import = import.await.data(202);
    let import_id = import["import_id"].as_str().unwrap().to_owned();
    let (pledge_id, key_id) = pledge_and_key(app).await;
    let destroyed = app.vaulted_envelope().await;
    let request = json!({ "envelope_ids": [destroyed], "reason": "Its time is over." });
    let request = app.web(Method::POST, "/destructions", request).await;
    let request = request.data(201);
    let destruction_id = request["destruction_id"].as_str().unwrap().to_owned();
    // Last, because nothing of the organization changes hands afterwards.
    let hold = json!({ "scope": "organization", "reason": "Audit of A", "case_reference": "A-17" });
    let hold = app.web(Method::POST, "/legal-holds", hold).await.data(201);
    let hold_id = hold["hold_id"].as_str().unwrap().to_owned();

    vec![
        ("/control/tapes/", tape_id, "tap_01h455vb4pex5vsknk084sn02q"),
        ("/imports/", import_id, "imp_01h455vb4pex5vsknk084sn02q"),
        (
            "/destructions/",
            destruction_id,
            "dst_01h455vb4pex5vsknk084sn02q",
        ),
        ("/funding-packs/", pack_id, "fpk_01h455vb4pex5vsknk084sn02q"),
        ("/legal-holds/", hold_id, "hld_01h455vb4pex5vsknk084sn02q"),
        ("/open-links/", link_id, "opl_01h455vb4pex5vsknk084sn02q"),
        (
            "/request-log/",
            request_id,
            "req_01h455vb4pex5vsknk084sn02q",
        ),
        ("/users/", user_id, "usr_01h455vb4pex5vsknk084sn02q"),
        (
            "/partner/events/",
            event_id,
            "evt_01h455vb4pex5vsknk084sn02q",
        ),
        ("/api-keys/", api_key_id, "key_01h455vb4pex5vsknk084sn02q"),
        (
            "/component-changes/",
            change_id,
            "chg_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/control/records/",
            envelope_id.clone(),
            "env_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/control/releases/",
            release_id,
            "rel_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/control/pools/",
            transfer_id.clone(),
            "trf_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/control/pledges/",
            pledge_id,
            "plg_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/control/invitations/",
            invited(app).await,
            "inv_01h455vb4pex5vsknk084sn02q",
        ),
        ("/control/views/", view_id, "viw_01h455vb4pex5vsknk084sn02q"),
        // Of all disputes, and those of operators.
        ("/disputes/", dispute_id, "dsp_01h455vb4pex5vsknk084sn02q"),
        (
            "/control/copies/",
            copy_id,
            "cpy_01h455vb4pex5vsknk084sn02q",
        ),
        ("/control/keys/", key_id, "pky_01h455vb4pex5vsknk084sn02q"),
        (
            "/control/transfers/",
            transfer_id,
            "trf_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/document-packages/",
            package_id,
            "pkg_01h455vb4pex5vsknk084sn02q",
        ),
        ("/fact-maps/", fact_map_id, "fmp_01h455vb4pex5vsknk084sn02q"),
        ("/bulk-send/", batch_id, "bsb_01h455vb4pex5vsknk084sn02q"),
        (
            "/components/",
            component_id,
            "cmp_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/webhooks/endpoints/",
            endpoint_id,
            "whep_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/webhooks/deliveries/",
            delivery_id,
            "wdel_01h455vb4pex5vsknk084sn02q",
        ),
        ("/envelopes/", envelope_id, "env_01h455vb4pex5vsknk084sn02q"),
        (
            "/templates/",
            template_id,
            "tmpl_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/customers/",
            customer_id,
            "cust_01h455vb4pex5vsknk084sn02q",
        ),
    ]
}

/// Makes a dispute about two papers with one number, and returns its reference.
async fn disputed(app: &TestApp) -> String {
    let (lender, key) = app.party().await;
    let mut refused = Value::Null;
    for words in ["One lease", "Another lease"] {
        let mut body = crate::support::envelope_body(&Value::Null);
        body["envelope_kind"] = "paper".into();
        body["collateral"] = json!([{ "kind": "serial", "value": "Deere 2041" }]);
        let paper = app.post("/partner/envelopes", body).await.data(201);
        let id = paper["envelope_id"].as_str().unwrap();
        let upload = format!("/partner/envelopes/{id}/upload");
        let document = crate::support::pdf::with_lines(&[words]);
        app.upload(&upload, "application/pdf", &document, &[])
            .await
            .data(201);

        let vault = format!("/partner/envelopes/{id}/vault-in-upload");
        app.post(&vault, json!({})).await.data(200);
        let controller = match words {
            "One lease" => lender.clone(),
            _ => app.party().await.0,
        };
        let record = format!("/partner/control/records/{id}");

        let designate = json!({ "controller": controller });
        refused = app
            .post(&format!("{record}/designate"), designate)
            .await
            .json();

        app.post_as(&key, &format!("{record}/accept"), json!({}))
            .await;
    }

    refused["details"]["reference"].as_str().unwrap().to_owned()
}

async fn invited(app: &TestApp) -> String {
    let body = json!({ "name": "Second Example Bank", "email": "desk@second.example" });
    let path = "/partner/control/invitations";
    let invitation = app.post(path, body).await.data(201);
    invitation["invitation_id"].as_str().unwrap().to_owned()
}

/// Makes a view and a watermarked copy.
async fn view_and_copy(app: &TestApp) -> (String, String) {
    let id = app.vaulted_envelope().await;
    let body = json!({ "envelope_id": id, "name": "Robin Park", "email": "robin@example.com" });
    let view = app.post("/partner/control/views", body).await.data(201);
    let record = format!("/partner/control/records/{id}");
    let copy = app.get(&format!("{record}/copy?purpose=Audit")).await;
    assert_eq!(copy.status, 200, "{}", copy.text());

    let looked = app.entry(&id, "control.viewed").await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&view["view_id"]), text(&looked["copy_id"]))
}

/// Makes a pledge, and then a key.
async fn pledge_and_key(app: &TestApp) -> (String, String) {
    let (id, (lender, _)) = (app.vaulted_envelope().await, app.party().await);
    let body = json!({ "envelope_id": id, "pledgee": lender });
    let pledge = app.post("/partner/control/pledges", body).await.data(201);
    let key = signed_acts::register(app, &app.key).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&pledge["pledge_id"]), text(&key["key_id"]))
}

/// Makes a release of a record that waits for its controller, and a transfer.
async fn release_and_transfer(app: &TestApp) -> (String, String) {
    let id = app.vaulted_envelope().await;
    let (lender, key) = app.party().await;
    let offer = json!({ "buyer": lender, "records": [id] });
    let transfer = app
        .post("/partner/control/transfers", offer)
        .await
        .data(202);

    let record = format!("/partner/control/records/{id}");
    let cancel = transfer["transfer_id"].as_str().unwrap();
    let path = format!("/partner/control/transfers/{cancel}/cancel");
    while app.post(&path, json!({})).await.status != 202 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let designate = json!({ "controller": lender });
    while app
        .post(&format!("{record}/designate"), designate.clone())
        .await
        .status
        != 200
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let accept = format!("{record}/accept");
    app.post_as(&key, &accept, json!({})).await.data(200);
    let out = format!("/partner/envelopes/{id}/vault-out");
    let asked = app.post(&out, release_form()).await.json();
    let release = asked["details"]["release_id"].as_str().unwrap();
    (release.to_owned(), cancel.to_owned())
}

/// Builds a valid request for the operation, so only the id decides about the response.
fn request(operation: &ApiOperation, id: &str, credential: (&str, &str)) -> Request<Body> {
    let mut path = operation.path.replace("{id}", id);
    // The only query that an operation with an id needs is another id.
    let parameters = operation.description["parameters"].as_array().into_iter();
    let mut needed = parameters.flatten().filter(|one| one["in"] == "query");
    if let Some(needed) = needed.find(|one| one["required"] == true) {
        let name = needed["name"].as_str().unwrap();
        path += &format!("?{name}=env_01h455vb4pex5vsknk084sn02q");
    }
    let mut request = Request::builder()
        .method(operation.method.clone())
        .uri(format!("/api/v2{path}"))
        .header(credential.0, credential.1);
    if operation.path.starts_with("/bulk-send")
        && let Some(token) = credential.1.strip_prefix("Bearer ")
    {
        request = request.header("x-org-id", org_of(token));
    }

    let content = &operation.description["requestBody"]["content"];
    let body = if let Some(media) = content.get("application/json") {
        request = request.header("content-type", "application/json");
        Body::from(media["example"].to_string())
    } else if content.get("multipart/form-data").is_some() {
        request = request.header("content-type", "multipart/form-data; boundary=b");
        let head = "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";
        Body::from([head.as_bytes(), CONTRACT, b"\r\n--b--\r\n"].concat())
    } else {
        Body::empty()
    };

    request.body(body).unwrap()
}

/// For every operation with an id, organization B gets the same response for organization A's id
/// as for an id that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn organizations_cannot_access_each_others_objects() {
    let app = TestApp::with_receivers().await;
    let ids = ids_of_a(&app).await;
    let key = app.other_organization().await;
    let bearer = format!("Bearer {}", app.other_admin());

    let mut checked = 0;
    for operation in operations(&document()) {
        if !operation.path.contains("{id}") {
            continue;
        }

        let (_, of_a, unknown) = ids
            .iter()
            .find(|(part, ..)| operation.path.contains(part))
            .unwrap_or_else(|| panic!("{}: whose id is this?", operation.path));
        let partner = operation.description["x-scopes"].is_array();
        let credential = if partner {
            ("x-api-key", key.as_str())
        } else {
            ("authorization", bearer.as_str())
        };
        let foreign = app.send(request(&operation, of_a, credential)).await;

        let missing = app.send(request(&operation, unknown, credential)).await;
        let wrong_kind = app.send(request(&operation, "key_1", credential)).await;
        let name = format!("{} {}", operation.method, operation.path);
        assert_eq!(foreign.status, 404, "{name}: {}", foreign.text());

        for other in [missing, wrong_kind] {
            assert_eq!(other.status, foreign.status, "{name}");
            assert_eq!(other.text(), foreign.text(), "{name}");
        }

        checked += 1;
    }

    assert!(checked >= 45, "{checked} operations take an id");
}

/// Generates any JSON value, as a confused or hostile client may send it.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(Value::from("nothing\u{0}here")),
        Just(Value::from("a@b.example")),
        Just(Value::from("tmpl_01h455vb4pex5vsknk084sn02q")),
    ];

    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,12}", inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Generates variants of an example in which some members have any JSON value.
fn distorted(example: Value) -> impl Strategy<Value = Value> {
    let members = example.as_object().cloned().unwrap_or_default();
    let choices = prop::collection::vec(prop::option::weighted(0.4, any_json()), members.len());
    choices.prop_map(move |choices| {
        let changed = members
            .iter()
            .zip(choices)
            .map(|((name, value), choice)| (name.clone(), choice.unwrap_or_else(|| value.clone())));
        Value::Object(changed.collect())
    })
}

/// Neither well-formed nor malformed bodies cause a 5xx.
#[tokio::test(flavor = "multi_thread")]
async fn no_request_body_causes_a_server_error() {
    try_bodies(TestApp::with_receivers().await, 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_body_causes_a_server_error_on_postgresql() {
    let url = postgres::new_database().await;
    let settings = |config: &mut Config| {
        receiver::admit(config);
        config.database_url = Some(url);
    };
    let app = TestApp::with(settings, OrgSettings::default());
    // The bodies are the same; the other database only stores what passes the checks.
    try_bodies(app.await, 15).await;
}

async fn try_bodies(app: TestApp, most: usize) {
    let key = app.key.clone();
    let ids = ids_of_a(&app).await;
    let mut runner = TestRunner::deterministic();
    for operation in operations(&document()) {
        let example =
            &operation.description["requestBody"]["content"]["application/json"]["example"];
        if !example.is_object() {
            continue;
        }

        let (_, id, _) = ids
            .iter()
            .find(|(part, ..)| operation.path.contains(part))
            .unwrap_or(&ids[0]);
        let path = operation.path.replace("{id}", id);
        let bodies = prop_oneof![any_json(), distorted(example.clone())];

        // A comparison occupies a thread for seconds.
        let number = if path.ends_with("/diff") {
            8.min(most)
        } else {
            most
        };
        for _ in 0..number {
            let body = bodies.new_tree(&mut runner).unwrap().current();
            let partner = operation.description["x-scopes"].is_array();
            let answer: TestResponse = if partner {
                app.post_as(&key, &path, body.clone()).await
            } else {
                app.web(operation.method.clone(), &path, body.clone()).await
            };
            assert!(
                !answer.status.is_server_error(),
                "{path}: {} for {}",
                answer.text(),
                json!(body)
            );
        }
    }
}
