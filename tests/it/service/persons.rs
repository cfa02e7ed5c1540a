//! Export and erasure of what an organization holds about a person.

use std::io::{Cursor, Read as _};

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::{Value, json};

use super::control::{Party, designate};
use super::imports::zipped;
use super::retention::holds::{lift, place};
use crate::http::console::Session;
use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, files_with, form, postgres};

const NAME: &str = "Zebulon Quillfeather";
const EMAIL: &str = "zebulon.quillfeather@example.com";
const PHONE: &str = "+15035550142";

/// Creates a customer, and returns the id.
async fn customer(app: &TestApp, name: &str, email: &str) -> String {
    let body = json!({ "name": name, "email": email, "phone": PHONE });
    let created = app.web(Method::POST, "/customers", body).await.data(201);
    created["customer_id"].as_str().unwrap().to_owned()
}

/// Sends a contract to the person, and returns the envelope.
async fn sent(app: &TestApp) -> Value {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["customer_email"] = EMAIL.into();
    body["customer_name"] = NAME.into();
    app.post("/partner/envelopes", body).await.data(201)
}

fn id_of(envelope: &Value) -> String {
    envelope["envelope_id"].as_str().unwrap().to_owned()
}

/// Sends a contract to the person who signs it, and waits until it is in the vault.
async fn vaulted(app: &TestApp) -> String {
    let envelope = sent(app).await;
    form::sign(app, envelope["sign_url"].as_str().unwrap()).await;
    let id = id_of(&envelope);
    app.wait_for(&id, "vaulted").await;
    id
}

async fn void(app: &TestApp, id: &str) {
    let path = format!("/partner/envelopes/{id}/void");
    let body = json!({ "reason": "Sent in error" });
    app.post(&path, body).await.data(200);
}

/// Takes a step towards an erasure, as a person.
async fn step(app: &TestApp, person: &str, customer: &str, step: &str) -> TestResponse {
    let token = app.person(person, "compliance");
    let path = format!("/customers/{customer}/{step}");
    app.post_with_bearer(&token, &path, json!({})).await
}

/// Erases a person by two people.
async fn erase(app: &TestApp, customer: &str) -> Value {
    step(app, "ada@oak.example", customer, "erase")
        .await
        .data(200);
    step(app, "ben@oak.example", customer, "erase/approve")
        .await
        .data(200)
}

/// Returns the ids of a list of parts.
fn ids(parts: &Value) -> Vec<&str> {
    let parts = parts.as_array().unwrap().iter();
    parts.map(|part| part["id"].as_str().unwrap()).collect()
}

/// Returns the refused part with an id.
fn refused<'v>(view: &'v Value, id: &str) -> &'v Value {
    let mut parts = view["refused"].as_array().unwrap().iter();
    let found = parts.find(|part| part["id"] == id);
    found.unwrap_or_else(|| panic!("{id} in {view}"))
}

#[track_caller]
fn says(page: &str, sentences: &[&str]) {
    for sentence in sentences {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
}

/// Downloads the export of a customer, and returns its files.
async fn exported(app: &TestApp, customer: &str) -> Vec<(String, Vec<u8>)> {
    let path = format!("/partner/customers/{customer}/export");
    let answer = app.post(&path, json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut zip = zip::ZipArchive::new(Cursor::new(answer.bytes)).unwrap();
    let mut files = Vec::new();
    for at in 0..zip.len() {
        let mut file = zip.by_index(at).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        files.push((file.name().to_owned(), bytes));
    }
    files
}

async fn an_export_has_the_person_and_nobody_else(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let (id, [first, second]) = app.sent_to_two().await;
    form::sign(&app, &first).await;
    form::sign(&app, &second).await;
    app.wait_for(&id, "vaulted").await;
    let buyer = customer(&app, "Ann Buyer", "Buyer@example.com").await;
    let path = format!("/partner/customers/{buyer}/documents");
    let filed = app
        .upload(&path, "application/pdf", CONTRACT, &[])
        .await
        .data(201);

    let files = exported(&app, &buyer).await;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let filed = format!("files/{}.pdf", filed["envelope_id"].as_str().unwrap());
    let signed = format!("documents/{id}.pdf");
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[0], "person.json");
    for name in [&filed, &signed] {
        assert!(names.contains(&name.as_str()), "{names:?}");
    }
    // The copy, and not the authoritative one.
    let copy = files.iter().find(|(name, _)| *name == signed).unwrap();
    assert_eq!(copy.1, app.copy(&id).await);

    let text = String::from_utf8(files[0].1.clone()).unwrap();
    let sheet: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sheet["customer"]["email"], "buyer@example.com");
    assert_eq!(sheet["customer"]["phone"], PHONE);
    let records = sheet["records"].as_array().unwrap();
    let record = records.iter().find(|one| one["envelope_id"] == id.as_str());
    let record = record.unwrap();
    assert_eq!(record["signers"][0]["role"], "Buyer");
    assert_eq!(record["other_signers"][0]["role"], "Seller");
    let form = &record["forms"][0];
    assert!(form["consent"]["text_sha256"].is_string(), "{form}");
    assert!(form["completed_at"].is_string(), "{form}");
    let actions = record["ledger"].as_array().unwrap().iter();
    let mut actions = actions.map(|entry| entry["action"].as_str().unwrap());
    assert!(actions.any(|action| action == "signer.completed"));

    // The other signer, and the customer that the contract belongs to.
    for other in ["seller@example.com", "Bob Seller", "jordan.lee@example.com"] {
        assert!(!text.contains(other), "{other}: {text}");
    }

    let audit = app.web(Method::GET, "/audit-log", Value::Null).await.text();
    assert!(audit.contains("customer.exported"), "{audit}");
    assert!(!audit.contains("buyer@example.com"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_the_person_and_nobody_else_on_sqlite() {
    an_export_has_the_person_and_nobody_else(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_the_person_and_nobody_else_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    an_export_has_the_person_and_nobody_else(change).await;
}

/// Another organization has a customer with the same address, and other records.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_nothing_of_another_organization() {
    let app = TestApp::start().await;
    let own = customer(&app, NAME, EMAIL).await;
    let other = app.other_organization().await;
    let mut body = envelope_body(&Value::Null);
    body["customer_email"] = EMAIL.into();
    let theirs = app.post_as(&other, "/partner/envelopes", body).await;
    let theirs = theirs.data(201);

    let files = exported(&app, &own).await;
    let text = String::from_utf8(files[0].1.clone()).unwrap();
    assert!(!text.contains(&id_of(&theirs)), "{text}");
    let sheet: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(sheet["records"], json!([]));

    let path = format!("/partner/customers/{own}/export");
    app.post_as(&other, &path, json!({})).await.error(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_takes_the_scope_or_the_role() {
    let app = TestApp::start().await;
    let id = customer(&app, NAME, EMAIL).await;
    let key = app.key_with(&[Scope::CustomersRead]).await;
    for act in ["export", "erase"] {
        let path = format!("/partner/customers/{id}/{act}");
        let refused = app.post_as(&key, &path, json!({})).await;
        assert!(refused.error(403).contains("customers:privacy"));
        let sender = app.person("sam@oak.example", "sender");
        let path = format!("/customers/{id}/{act}");
        let refused = app.post_with_bearer(&sender, &path, json!({})).await;
        refused.error(403);
    }
}

async fn what_a_duty_keeps_is_refused_by_name(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let (held, enforceable, offered) = (
        vaulted(&app).await,
        vaulted(&app).await,
        vaulted(&app).await,
    );
    let open = sent(&app).await;
    let person = open["customer_id"].as_str().unwrap().to_owned();
    let open = id_of(&open);
    let voided = id_of(&sent(&app).await);
    void(&app, &voided).await;
    let path = format!("/partner/customers/{person}/documents");
    let filed = app.upload(&path, "application/pdf", CONTRACT, &[]).await;
    let filed = id_of(&filed.data(201));

    let schedules = json!({ "schedules": [
        { "name": "Filed", "kind": "paper", "event": "created", "keep_months": 84 },
    ] });
    let path = "/partner/retention-schedules";
    app.put(path, schedules).await.data(200);
    let hold = place(&app, "envelope", Some(&held)).await;
    let lender = Party::new(&app).await;
    designate(&app, &offered, &lender.org).await.data(200);

    // A dry run needs no request, and makes none.
    let path = format!("/partner/customers/{person}/erase?dry_run=true");
    let planned = app.post(&path, json!({})).await.data(200);
    assert_eq!(planned["state"], Value::Null);
    assert_eq!(ids(&planned["erasable"]), [person.as_str(), &voided]);
    let path = format!("/partner/customers/{person}/erasure");
    assert_eq!(app.get(&path).await.error(404), "Erasure not found");

    let done = erase(&app, &person).await;
    app.wait_until_idle().await;
    assert_eq!(done["state"], "partly");
    assert_eq!(ids(&done["erased"]), [person.as_str(), &voided]);
    assert_eq!(done["erasable"], json!([]));
    for (id, reason) in [
        (&held, "legal_hold"),
        (&offered, "other_party_controls"),
        (&open, "open_envelope"),
        (&filed, "retention_running"),
        (&enforceable, "authoritative_record"),
    ] {
        assert_eq!(refused(&done, id)["reason"], reason, "{done}");
    }
    assert_eq!(refused(&done, &held)["hold_id"], hold.as_str());
    assert_eq!(refused(&done, &filed)["schedule"], "Filed");
    assert!(refused(&done, &filed)["destroy_after"].is_string());

    // Refused parts keep their values.
    for id in [&held, &enforceable, &offered, &open] {
        let path = format!("/partner/envelopes/{id}/signers");
        let signers = app.get(&path).await.data(200).to_string();
        assert!(signers.contains(EMAIL), "{signers}");
    }
    let read = app.get(&path).await.data(200);
    assert_eq!(read["refused"], done["refused"]);

    // The id stays, and gets nothing new.
    let path = format!("/customers/{person}");
    let read = app.web(Method::GET, &path, Value::Null).await;
    assert_eq!(read.status, 410, "{}", read.text());
    assert_eq!(read.json()["code"], "customer_erased");
    let export = format!("/partner/customers/{person}/export");
    assert_eq!(app.post(&export, json!({})).await.status, 410);
    let filing = format!("/partner/customers/{person}/documents");
    let refused_file = app.upload(&filing, "application/pdf", CONTRACT, &[]).await;
    assert_eq!(refused_file.status, 409, "{}", refused_file.text());
    assert_eq!(refused_file.json()["code"], "customer_erased");
    let copy = format!("/partner/envelopes/{open}/copy");
    let copied = app.post(&copy, json!({})).await;
    assert_eq!(
        copied.json()["code"],
        "customer_erased",
        "{}",
        copied.text()
    );

    // Another request erases the parts that no duty protects any more, and the rest stays refused.
    void(&app, &open).await;
    lift(&app, &hold).await;
    let again = step(&app, "ada@oak.example", &person, "erase").await;
    let again = again.data(200);
    assert_eq!(again["state"], "partly");
    assert!(ids(&again["erased"]).contains(&open.as_str()), "{again}");
    assert_eq!(refused(&again, &held)["reason"], "authoritative_record");
    app.wait_until_idle().await;

    let audit = app.web(Method::GET, "/audit-log", Value::Null).await.text();
    for action in ["customer.erasure_requested", "customer.erased"] {
        assert!(audit.contains(action), "{action}");
    }
    for value in [NAME, EMAIL, PHONE] {
        assert!(!audit.contains(value), "{value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_duty_keeps_is_refused_by_name_on_sqlite() {
    what_a_duty_keeps_is_refused_by_name(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_duty_keeps_is_refused_by_name_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    what_a_duty_keeps_is_refused_by_name(change).await;
}

/// The controller's hold is its own business.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_of_another_organization_is_not_named() {
    let (app, id, lender) = super::control::controlled().await;
    let path = format!("/partner/envelopes/{id}");
    let envelope = app.get(&path).await.data(200);
    let person = envelope["customer_id"].as_str().unwrap();
    let hold = super::retention::holds::place_as(&app, &lender.key, "envelope", Some(&id)).await;

    let path = format!("/partner/customers/{person}/erase?dry_run=true");
    let planned = app.post(&path, json!({})).await.data(200);
    assert_eq!(refused(&planned, &id)["reason"], "legal_hold");
    assert!(!planned.to_string().contains(&hold), "{planned}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_on_a_customer_keeps_everything() {
    let app = TestApp::start().await;
    let person = customer(&app, NAME, EMAIL).await;
    let hold = place(&app, "customer", Some(&person)).await;
    // A contract of another customer, which the buyer signs.
    let (shared, _) = app.sent_to_two().await;
    void(&app, &shared).await;
    let buyer = customer(&app, "Ann Buyer", "buyer@example.com").await;
    let on_buyer = place(&app, "customer", Some(&buyer)).await;
    let planned = format!("/customers/{buyer}/erase?dry_run=true");
    let planned = app.web(Method::POST, &planned, json!({})).await.data(200);
    assert_eq!(refused(&planned, &shared)["hold_id"], on_buyer.as_str());

    let done = erase(&app, &person).await;
    assert_eq!(done["state"], "partly");
    assert_eq!(refused(&done, &person)["hold_id"], hold.as_str());
    let path = format!("/customers/{person}");
    let read = app.web(Method::GET, &path, Value::Null).await.data(200);
    assert_eq!(read["email"], EMAIL);

    lift(&app, &hold).await;
    let again = step(&app, "ada@oak.example", &person, "erase").await;
    assert_eq!(again.data(200)["state"], "erased");
    let third = step(&app, "ada@oak.example", &person, "erase").await;
    assert_eq!(third.status, 410, "{}", third.text());
    assert_eq!(third.json()["code"], "customer_erased");
}

/// What another person has read and signed is not the customer's alone.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_in_which_other_people_took_part_is_refused() {
    let app = TestApp::start().await;
    let (id, [first, _]) = app.sent_to_two().await;
    form::sign(&app, &first).await;
    app.wait_until_idle().await;
    void(&app, &id).await;
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await;
    let owner = envelope.data(200)["customer_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let buyer = customer(&app, "Ann Buyer", "Buyer@example.com").await;

    let done = erase(&app, &owner).await;
    assert_eq!(refused(&done, &id)["reason"], "other_people", "{done}");
    // The seller has not opened it.
    let done = erase(&app, &buyer).await;
    assert!(ids(&done["erased"]).contains(&id.as_str()), "{done}");
}

/// Two people agreed to the erasure of what there was.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_of_the_time_of_a_hold_takes_another_approval() {
    let app = TestApp::start().await;
    let person = customer(&app, NAME, EMAIL).await;
    let hold = place(&app, "customer", Some(&person)).await;
    assert_eq!(erase(&app, &person).await["state"], "partly");
    let late = id_of(&sent(&app).await);
    void(&app, &late).await;
    lift(&app, &hold).await;

    let again = step(&app, "ada@oak.example", &person, "erase").await;
    let again = again.data(200);
    assert_eq!(again["state"], "requested");
    assert_eq!(again["approved_by"], Value::Null);
    let own = step(&app, "ada@oak.example", &person, "erase/approve").await;
    assert_eq!(own.json()["code"], "requester_reviews");
    let done = step(&app, "ben@oak.example", &person, "erase/approve").await;
    let done = done.data(200);
    assert_eq!(done["state"], "erased", "{done}");
    assert_eq!(ids(&done["erased"]), [person.as_str(), &late]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_takes_two_people() {
    let app = TestApp::start().await;
    let person = customer(&app, NAME, EMAIL).await;
    let early = step(&app, "ben@oak.example", &person, "erase/approve").await;
    assert_eq!(early.error(404), "Erasure not found");

    let asked = step(&app, "ada@oak.example", &person, "erase").await;
    assert_eq!(asked.data(200)["state"], "requested");
    let twice = step(&app, "ben@oak.example", &person, "erase").await;
    assert!(twice.error(409).contains("requested already"));
    let same = step(&app, "ADA@oak.example", &person, "erase/approve").await;
    assert_eq!(same.status, 409, "{}", same.text());
    assert_eq!(same.json()["code"], "requester_reviews");

    // One person is enough to take it back.
    let path = format!("/customers/{person}/erase");
    let back = app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert_eq!(back["state"], Value::Null);
    let done = erase(&app, &person).await;
    assert_eq!(done["state"], "erased");
    let late = app.web(Method::DELETE, &path, Value::Null).await;
    assert!(late.error(409).contains("approved already"));
    app.events_fit_their_schemas(2).await;
}

/// A key can be in the hands of the person who approves.
#[tokio::test(flavor = "multi_thread")]
async fn the_request_of_a_key_is_taken_over_by_a_person() {
    let app = TestApp::start().await;
    let person = customer(&app, NAME, EMAIL).await;
    let path = format!("/partner/customers/{person}/erase");
    let asked = app.post(&path, json!({})).await.data(200);
    assert_eq!(asked["state"], "requested");

    let first = step(&app, "ada@oak.example", &person, "erase/approve").await;
    let first = first.data(200);
    assert_eq!(first["state"], "requested");
    assert_eq!(first["requested_by"], "user:ada@oak.example");
    let again = step(&app, "ada@oak.example", &person, "erase/approve").await;
    assert_eq!(again.json()["code"], "requester_reviews");
    let second = step(&app, "ben@oak.example", &person, "erase/approve").await;
    assert_eq!(second.data(200)["state"], "erased");
}

/// The page names the protected parts before an erasure is requested, and the erased customer's page leads to it.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_erases_a_person_by_two_people() {
    let app = TestApp::start().await;
    let signed = vaulted(&app).await;
    let envelope = app.get(&format!("/partner/envelopes/{signed}")).await;
    let envelope = envelope.data(200);
    let person = envelope["customer_id"].as_str().unwrap();
    sent(&app).await;
    let held = id_of(&sent(&app).await);
    place(&app, "envelope", Some(&held)).await;
    let filing = format!("/partner/customers/{person}/documents");
    let filed = app.upload(&filing, "application/pdf", CONTRACT, &[]).await;
    filed.data(201);
    let schedules = json!({ "schedules": [
        { "name": "Filed", "kind": "paper", "event": "created", "keep_months": 84 },
    ] });
    let path = "/partner/retention-schedules";
    app.put(path, schedules).await.data(200);
    let ada = Session::of(&app, "ada@oak.example", "owner").await;
    let ben = Session::of(&app, "ben@oak.example", "compliance").await;
    let other = customer(&app, "Ann Buyer", "buyer@example.com").await;

    let customer = format!("/console/customers/{person}");
    let page = ada.get(&app, &customer).await.text();
    assert!(page.contains(&format!("{customer}/erasure")), "{page}");
    let card = [
        "Data of this person",
        "Values of other people are left out.",
        "Erase this person’s data",
    ];
    says(&page, &card);
    let zip = ada.post(&app, &format!("{customer}/export"), "").await;
    assert_eq!(zip.headers["content-type"], "application/zip");
    let page = ada.get(&app, &format!("{customer}/erasure")).await.text();
    let before = [
        "An erasure takes two people and cannot be undone.",
        "Nobody has asked for an erasure.",
        "Ask for the erasure",
        "Is kept, and why",
        "A signed contract that can be enforced, and no schedule ends it",
        "It can still be signed: void it first",
        "A legal hold is in force",
        "A retention schedule keeps it",
    ];
    says(&page, &before);

    let request = format!("{customer}/erasure/request");
    assert_eq!(ada.post(&app, &request, "").await.status, 303);
    let page = ada.get(&app, &format!("{customer}/erasure")).await.text();
    says(&page, &["Waits for the approval of another person"]);
    let approve = format!("{customer}/erasure/approve");
    let own = ada.post(&app, &approve, "sure=yes").await;
    assert_eq!(own.status, 409, "{}", own.text());
    let sure = ben.post(&app, &approve, "").await.text();
    let consequence = "These data are deleted for good, in all copies that we hold.";
    says(&sure, &[consequence]);
    let done = ben.post(&app, &approve, "sure=yes").await;
    assert_eq!(done.status, 303, "{}", done.text());

    let read = ada.get(&app, &customer).await;
    assert_eq!(read.headers["location"], format!("{customer}/erasure"));
    let page = ada.get(&app, &format!("{customer}/erasure")).await.text();
    let after = [
        "Erased in part",
        "Approved by",
        "Erase what is no longer kept",
    ];
    says(&page, &after);

    let other = format!("/console/customers/{other}/erasure");
    let page = ada.get(&app, &other).await.text();
    says(&page, &["No duty keeps anything."]);
}

/// The person's data was in a draft, a voided envelope, a filed document, a batch, an import and a filter.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_leaves_nothing_of_the_person_in_the_folder() {
    let app = TestApp::start().await;
    let person = customer(&app, NAME, EMAIL).await;
    let voided = sent(&app).await;
    assert_eq!(voided["customer_id"], person.as_str());
    void(&app, &id_of(&voided)).await;
    let batch = json!({ "name": "Notice", "document_source": "new" });
    let batch = app.web(Method::POST, "/bulk-send", batch).await.data(201);
    let path = format!("/bulk-send/{}/items", batch["batch_id"].as_str().unwrap());
    let clients = json!({ "customer_ids": [person] });
    app.web(Method::POST, &path, clients).await.data(200);
    let manifest = format!("document,signers\ncontract.pdf,{NAME} <{EMAIL}>\n");
    let archive = zipped(&[
        ("manifest.csv", manifest.as_bytes()),
        ("contract.pdf", CONTRACT),
    ]);
    let texts = [("customer_name", NAME), ("customer_email", EMAIL)];
    app.upload("/partner/imports", "application/zip", &archive, &texts)
        .await
        .data(202);
    app.wait_until_idle().await;
    assert!(!files_with(app.data.path(), &[EMAIL]).is_empty());

    let done = erase(&app, &person).await;
    assert_eq!(done["state"], "erased", "{done}");
    app.wait_until_idle().await;
    assert!(app.store.empty_write_ahead_log().await.unwrap());
    for value in [NAME, EMAIL, PHONE] {
        assert_eq!(
            files_with(app.data.path(), &[value]),
            Vec::<String>::new(),
            "{value}"
        );
    }
}

/// An envelope that was never sent is nothing but the sender's work about the person.
#[tokio::test(flavor = "multi_thread")]
async fn drafts_and_filed_documents_are_erased() {
    let app = TestApp::start().await;
    let person = customer(&app, NAME, EMAIL).await;
    let path = format!("/partner/customers/{person}/documents");
    let filed = app.upload(&path, "application/pdf", CONTRACT, &[]).await;
    let filed = id_of(&filed.data(201));
    let mut body = envelope_body(&Value::Null);
    body["customer_email"] = EMAIL.into();
    let draft = app.post("/partner/envelopes", body).await.data(201);
    let draft = id_of(&draft);

    let done = erase(&app, &person).await;
    assert_eq!(done["state"], "erased", "{done}");
    assert_eq!(ids(&done["erased"]), [person.as_str(), &filed, &draft]);
    app.wait_until_idle().await;
    assert_eq!(app.objects("uploads"), Vec::<std::path::PathBuf>::new());
}
