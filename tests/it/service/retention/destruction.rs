//! Destruction of records: obstacles, the steps of two people, and the remaining data.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::config::Config;
use holdfast::domain::envelope::EnvelopeStatus;
use holdfast::domain::hash::canonical_sha256;
use holdfast::domain::organization::OrgSettings;
use holdfast::store::envelopes;
use serde_json::{Value, json};

use super::holds::{lift, place};
use super::{in_days, inserted, made, pay_off, schedule, set};
use crate::http::console::Session;
use crate::service::control::controlled;
use crate::support::{TestApp, TestResponse, envelope_body, files_with, form, pdf, postgres};

const ADA: &str = "ada@oak.example";
pub const BEN: &str = "ben@oak.example";
/// The signer. Nothing about this person remains.
const NAME: &str = "Quentin Zabriskie";
const EMAIL: &str = "quentin.zabriskie@signers.example";

async fn as_person(app: &TestApp, person: &str, path: &str) -> TestResponse {
    let token = app.person(person, "compliance");
    app.post_with_bearer(&token, path, json!({})).await
}

async fn ask(app: &TestApp, body: Value) -> TestResponse {
    let token = app.person(ADA, "compliance");
    app.post_with_bearer(&token, "/destructions", body).await
}

/// Requests the destruction of a record as Ada, and returns the id of the request.
pub async fn requested(app: &TestApp, id: &str) -> String {
    let body = json!({ "envelope_ids": [id], "reason": "Its time is over." });
    let request = ask(app, body).await.data(201);
    request["destruction_id"].as_str().unwrap().to_owned()
}

pub async fn step(app: &TestApp, person: &str, request: &str, step: &str) -> TestResponse {
    as_person(app, person, &format!("/destructions/{request}/{step}")).await
}

async fn remove(app: &TestApp, person: &str, path: &str) -> TestResponse {
    let token = app.person(person, "compliance");
    let request = Request::delete(format!("/api/v2{path}"));
    let request = request.header("authorization", format!("Bearer {token}"));
    app.send(request.body(Body::empty()).unwrap()).await
}

#[track_caller]
fn refused(answer: &TestResponse, code: &str) -> Value {
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(answer.json()["code"], code, "{}", answer.text());
    answer.json()["details"].clone()
}

#[track_caller]
fn says(page: &TestResponse, sentences: &[&str]) {
    let text = page.text();
    for sentence in sentences {
        assert!(text.contains(sentence), "{sentence}: {text}");
    }
}

/// Waits until the records of a request are in a state.
async fn wait_until(app: &TestApp, request: &str, state: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let path = format!("/partner/destructions/{request}");
        let found = app.get(&path).await.data(200);
        let records = found["records"].as_array().unwrap();
        if records.iter().all(|record| record["state"] == state) {
            return found;
        }
        assert!(Instant::now() < deadline, "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Destroys a record by two people, and returns the id of the request.
async fn destroy(app: &TestApp, id: &str) -> String {
    let request = requested(app, id).await;
    step(app, BEN, &request, "authorize").await.data(200);
    step(app, ADA, &request, "carry-out").await.data(200);
    wait_until(app, &request, "destroyed").await;
    request
}

/// Sends a contract to a signer with a name that nothing else has, and returns the vaulted envelope's id.
async fn signed(app: &TestApp) -> String {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([{ "email": EMAIL, "name": NAME, "role": "Buyer" }]);
    body["metadata"] = json!({ "co_buyer": NAME });
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    form::sign(app, envelope["sign_url"].as_str().unwrap()).await;
    app.wait_for(&id, "vaulted").await;
    id
}

async fn nothing_of_a_person_is_left(change: impl FnOnce(&mut Config)) -> (TestApp, String) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let id = signed(&app).await;
    let path = format!("/partner/envelopes/{id}");
    let before = app.custody(&id).await;
    assert!(before.to_string().contains(EMAIL));

    let request = destroy(&app, &id).await;
    let view = app.get(&path).await.data(200);
    assert_eq!(view["destruction"], "destroyed");
    assert_eq!(view["status"], "vaulted");
    assert_eq!(view["envelope_name"], "");
    for read in [
        "document",
        "attachments",
        "completion-certificate",
        "custody-record",
        "vault/copy/signed-url",
        "signers",
        "facts",
        "compliance",
    ] {
        let answer = app.get(&format!("{path}/{read}")).await;
        assert_eq!(answer.status, 410, "{read}: {}", answer.text());
        assert_eq!(answer.json()["code"], "destroyed", "{read}");
    }

    // The chain has the same hashes, and nothing of the person.
    let after = app.custody(&id).await;
    let hashes = |custody: &Value| -> Vec<Value> {
        let entries = custody["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["hash"].clone()).collect()
    };
    let (before, after_hashes) = (hashes(&before), hashes(&after));
    assert_eq!(after_hashes[..before.len()], before[..]);
    for personal in [NAME, EMAIL] {
        assert!(!after.to_string().contains(personal), "{after:#}");
    }
    let entry = app.entry(&id, "record.destroyed").await;
    assert_eq!(entry["destruction_id"], request.as_str());

    let events = format!("event where event_type = 'record.destroyed' and envelope_id = '{id}'");
    assert_eq!(app.count(&events).await, 1);
    assert!(app.objects("vault").is_empty());
    (app, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_person_is_left_on_sqlite() {
    let (app, id) = nothing_of_a_person_is_left(|_| {}).await;
    let found = files_with(app.data.path(), &[NAME, EMAIL]);
    assert!(found.is_empty(), "{found:?}");

    // The operator's command answers with the certificate.
    let report = app.operator(&["verify", &id]);
    assert_eq!(report["verdict"], "DESTROYED", "{report}");
    assert_eq!(report["is_complete"], true, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_person_is_left_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    let (app, id) = nothing_of_a_person_is_left(change).await;
    let found = files_with(app.data.path(), &[NAME, EMAIL]);
    assert!(found.is_empty(), "{found:?}");
    let left = format!("signer where envelope_id = '{id}' and (name <> '' or email <> '')");
    assert_eq!(app.count(&left).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destruction_takes_two_people() {
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let request = requested(&app, &id).await;

    refused(
        &step(&app, BEN, &request, "carry-out").await,
        "authorization_missing",
    );
    refused(
        &step(&app, ADA, &request, "authorize").await,
        "requester_reviews",
    );
    let authorized = step(&app, BEN, &request, "authorize").await.data(200);
    assert_eq!(authorized["state"], "authorized");
    assert_eq!(authorized["authorized_by"], format!("user:{BEN}"));
    refused(
        &step(&app, BEN, &request, "carry-out").await,
        "authorizer_carries_out",
    );

    // An authorization that was taken back counts no more.
    let own = format!("/destructions/{request}/authorize");
    remove(&app, BEN, &own).await.data(200);
    refused(
        &step(&app, ADA, &request, "carry-out").await,
        "authorization_missing",
    );
    step(&app, BEN, &request, "authorize").await.data(200);
    step(&app, ADA, &request, "carry-out").await.data(200);
    wait_until(&app, &request, "destroyed").await;
    let late = remove(&app, ADA, &format!("/destructions/{request}")).await;
    assert_eq!(late.status, 409, "{}", late.text());

    let audit = app.web(Method::GET, "/audit-log", Value::Null).await.text();
    for action in ["requested", "authorized", "carried_out"] {
        assert!(audit.contains(&format!("destruction.{action}")), "{action}");
    }
    app.events_fit_their_schemas(1).await;
}

/// The page leads from the request to the certificate. The steps towards an act that cannot be undone ask first.
#[tokio::test(flavor = "multi_thread")]
async fn the_console_destroys_a_record_by_two_people() {
    const LIST: &str = "/console/destructions";
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let ada = Session::of(&app, ADA, "compliance").await;
    let ben = Session::of(&app, BEN, "compliance").await;
    let offered = [
        "One person asks for the destruction of records, another one authorizes it",
        "No destruction was requested.",
        "Take all records that are due",
        "Ids of the envelopes, one on each line",
        "Certificates made out to",
    ];
    says(&ada.get(&app, LIST).await, &offered);

    let unknown = "envelope_ids=env_01&reason=Over";
    let unknown = ada.post(&app, LIST, unknown).await;
    assert_eq!(unknown.status, 422, "{}", unknown.text());
    says(&unknown, &["There is no such envelope."]);

    let form = format!("envelope_ids={id}&reason=Over&certificate_recipient=Ohio");
    let asked = ada.post(&app, LIST, &form).await;
    assert_eq!(asked.status, 303, "{}", asked.text());
    let page = ben.get(&app, LIST).await;
    says(&page, &["requested", "Certificates made out to Ohio"]);
    let text = page.text();
    let (_, rest) = text.split_once(&format!("{LIST}/")).unwrap();
    let (request, _) = rest.split_once("/authorize").unwrap();

    let authorize = format!("{LIST}/{request}/authorize");
    let sure = ben.post(&app, &authorize, "").await;
    let consequence = "Another person can then destroy these records. Nothing is deleted yet.";
    says(&sure, &[consequence]);
    let done = ben.post(&app, &authorize, "sure=yes").await;
    assert_eq!(done.status, 303, "{}", done.text());
    let authorized = ada.get(&app, LIST).await;
    says(&authorized, &["authorized", "Take the authorization back"]);

    let carry_out = format!("{LIST}/{request}/carry-out");
    let sure = ada.post(&app, &carry_out, "").await;
    let consequence = "Documents, answers and personal data of these records are deleted for good.";
    says(&sure, &[consequence]);
    let done = ada.post(&app, &carry_out, "sure=yes").await;
    assert_eq!(done.status, 303, "{}", done.text());
    wait_until(&app, request, "destroyed").await;
    let destroyed = ada.get(&app, LIST).await;
    says(&destroyed, &[">destroyed<", "Certificate of destruction"]);
    let gone = "This record was destroyed. Its ledger and the certificate are left.";
    let envelope = format!("/console/envelopes/{id}");
    says(&ada.get(&app, &envelope).await, &[gone]);

    // While the job is at work.
    app.execute("update envelope set destruction = 'destroying'")
        .await;
    says(&ada.get(&app, LIST).await, &["being destroyed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_only_requests() {
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Voided).await;
    let body = json!({ "envelope_ids": [id], "reason": "Its time is over." });
    let request = app.post("/partner/destructions", body).await.data(201);
    assert_eq!(request["state"], "requested");
    let id = request["destruction_id"].as_str().unwrap();
    for act in ["authorize", "carry-out"] {
        let path = format!("/partner/destructions/{id}/{act}");
        assert_eq!(app.post(&path, json!({})).await.status, 404, "{act}");
    }

    // Two people are still needed.
    step(&app, ADA, id, "authorize").await.data(200);
    refused(
        &step(&app, ADA, id, "carry-out").await,
        "authorizer_carries_out",
    );
    let withdrawn = remove(&app, ADA, &format!("/destructions/{id}")).await;
    assert_eq!(withdrawn.data(200)["state"], "withdrawn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_stands_against_each_step() {
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let body = json!({ "envelope_ids": [&id], "reason": "Its time is over." });

    let hold = place(&app, "organization", None).await;
    let details = refused(&ask(&app, body.clone()).await, "legal_hold");
    assert_eq!(details["envelope_id"], id.as_str());
    assert_eq!(details["hold_id"], hold.as_str());
    lift(&app, &hold).await;
    let request = requested(&app, &id).await;

    let hold = place(&app, "organization", None).await;
    refused(&step(&app, BEN, &request, "authorize").await, "legal_hold");
    lift(&app, &hold).await;
    step(&app, BEN, &request, "authorize").await.data(200);

    let hold = place(&app, "organization", None).await;
    refused(&step(&app, ADA, &request, "carry-out").await, "legal_hold");
    lift(&app, &hold).await;
    step(&app, ADA, &request, "carry-out").await.data(200);
    wait_until(&app, &request, "destroyed").await;
}

/// The job asks a last time, and leaves the record whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_before_the_job_keeps_the_record_whole() {
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let request = requested(&app, &id).await;
    step(&app, BEN, &request, "authorize").await.data(200);
    app.stop_working();
    step(&app, ADA, &request, "carry-out").await.data(200);
    place(&app, "envelope", Some(&id)).await;

    let later = app.another_node(|_| {}).await;
    let found = wait_until(&later, &request, "refused").await;
    assert_eq!(found["records"][0]["refusal"]["code"], "legal_hold");
    let path = format!("/partner/envelopes/{id}");
    let view = later.get(&path).await.data(200);
    assert_eq!(view["destruction"], Value::Null);
    assert_eq!(view["envelope_name"], "Made");
}

/// The job of an earlier request has the same key.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_failed_for_good_is_replaced_by_that_of_another_request() {
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let failed = "insert into job (bucket, job_id, org_id, kind, dedup_key, payload, state, run_at, attempts,
             lease_epoch, created_at)
         select bucket, 'job_01jdk7m3e8f4x9s2w5v6b0c1dc', org_id, 'record.destroy', envelope_id, '{}', 'failed',
             created_at, 1, 1, created_at
         from envelope where envelope_id = $1";
    app.change(failed, &id).await;
    destroy(&app, &id).await;
    assert_eq!(app.count("job where state = 'failed'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_final_records_that_no_schedule_keeps_are_destroyed() {
    let app = TestApp::start().await;
    for status in EnvelopeStatus::ALL {
        let id = inserted(&app, *status).await;
        let body = json!({ "envelope_ids": [id], "reason": "Its time is over." });
        let answer = ask(&app, body).await;
        let is_final = matches!(
            status,
            EnvelopeStatus::Vaulted
                | EnvelopeStatus::VaultedOut
                | EnvelopeStatus::Voided
                | EnvelopeStatus::Declined
                | EnvelopeStatus::Expired
        );
        if is_final {
            answer.data(201);
        } else {
            refused(&answer, "record_not_final");
        }
    }

    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let body = json!({ "envelope_ids": [&id], "reason": "Its time is over." });
    let declined = json!([schedule("Declined", "declined", 25)]);
    set(&app, declined).await.data(200);
    let details = refused(&ask(&app, body.clone()).await, "retention_running");
    assert_eq!(details["schedule"], "Declined");
    set(&app, json!([])).await.data(200);
    ask(&app, body.clone()).await.data(201);
    refused(&ask(&app, body).await, "destruction_requested");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_due_records_are_requested_at_once() {
    let app = TestApp::start().await;
    let due = json!({ "due": true, "reason": "Their time is over." });
    refused(&ask(&app, due.clone()).await, "nothing_due");
    let id = app.vaulted_envelope().await;
    let contracts = json!([schedule("Contracts", "paid_off", 1)]);
    set(&app, contracts).await.data(200);
    pay_off(&app, &id, &in_days(0)).await.data(200);

    let keep = |config: &mut Config| config.webhooks.retention = Duration::from_secs(90 * 86_400);
    let later = app.as_of_with(Duration::from_secs(40 * 86_400), keep).await;
    super::wait_for_due(&later, 1).await;
    let request = ask(&later, due).await.data(201);
    assert_eq!(request["records"][0]["envelope_id"], id.as_str());

    for wrong in [
        json!({ "due": true, "envelope_ids": [&id], "reason": "Over." }),
        json!({ "reason": "Over." }),
        json!({ "envelope_ids": [&id], "reason": " " }),
        json!({ "envelope_ids": [&id], "reason": "Over.", "certificate_recipient": " " }),
    ] {
        let answer = ask(&later, wrong.clone()).await;
        assert_eq!(answer.status, 422, "{wrong}: {}", answer.text());
    }
}

/// A record of another request is no part of the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_takes_the_thousand_oldest_due_records() {
    let app = TestApp::start().await;
    let mut tx = app.store.begin().await.unwrap();
    for _ in 0..1_001 {
        let envelope = made(&app, EnvelopeStatus::Declined);
        envelopes::insert(&mut tx, &envelope).await.unwrap();
    }
    tx.commit().await.unwrap();
    let proposed = "insert into retention_proposal (bucket, envelope_id, org_id, schedule, event, event_date,
             destroy_after, proposed_at)
         select bucket, envelope_id, org_id, 'Declined', 'declined', '2026-01-01', '2026-02-01', created_at
         from envelope";
    app.execute(proposed).await;

    let due = json!({ "due": true, "reason": "Their time is over." });
    let first = ask(&app, due.clone()).await.data(201);
    assert_eq!(first["more"], true);
    let taken = first["records"].as_array().unwrap();
    assert_eq!(taken.len(), 1_000);
    let last = ask(&app, due.clone()).await.data(201);
    assert_eq!(last["more"], false);
    let left = last["records"].as_array().unwrap();
    assert_eq!(left.len(), 1);
    // Ids sort by age.
    let newest = taken.last().unwrap()["envelope_id"].as_str();
    assert!(newest < left[0]["envelope_id"].as_str());
    refused(&ask(&app, due).await, "nothing_due");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_party_that_controls_a_record_consents() {
    let (app, id, lender) = controlled().await;
    let request = requested(&app, &id).await;
    let details = refused(
        &step(&app, BEN, &request, "authorize").await,
        "consent_missing",
    );
    assert_eq!(details["controller"], lender.org.as_str());

    let lea = app.token_at(&lender.org, "lea@bank.example", "owner");
    let asked = app.get_with_bearer(&lea, "/control/destructions").await;
    let asked = asked.data(200);
    assert_eq!(asked[0]["destruction_id"], request.as_str());
    assert_eq!(asked[0]["records"][0]["envelope_id"], id.as_str());
    let path = format!("/control/destructions/{request}/consent");
    // The originator has no say in it.
    assert_eq!(as_person(&app, ADA, &path).await.status, 403);
    let owner = app.person("oda@oak.example", "owner");
    let own = app.post_with_bearer(&owner, &path, json!({})).await;
    assert_eq!(own.status, 404, "{}", own.text());

    app.post_with_bearer(&lea, &path, json!({})).await.data(200);
    step(&app, BEN, &request, "authorize").await.data(200);
    step(&app, ADA, &request, "carry-out").await.data(200);
    wait_until(&app, &request, "destroyed").await;

    // Both have the certificate, and a third party does not.
    let certificate = format!("/destructions/{request}/certificate?envelope_id={id}");
    let issued = app.get_with_bearer(&lea, &certificate).await;
    assert_eq!(issued.status, 200, "{}", issued.text());
    let acts = issued.json()["certificate"]["acts"].to_string();
    for act in ["requested", "consented", "authorized", "carried_out"] {
        assert!(acts.contains(act), "{acts}");
    }
    let (other, _) = app.party().await;
    let stranger = app.token_at(&other, "sam@other.example", "owner");
    let answer = app.get_with_bearer(&stranger, &certificate).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
    let path = format!("/partner/control/records/{id}");
    let record = app.get_as(&lender.key, &path).await.data(200);
    assert_eq!(record["destruction"], "destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_what_the_ledger_has() {
    let app = TestApp::start().await;
    let id = signed(&app).await;
    let request = requested(&app, &id).await;
    let path = format!("/partner/destructions/{request}/certificate?envelope_id={id}");
    refused(&app.get(&path).await, "not_destroyed");
    step(&app, BEN, &request, "authorize").await.data(200);
    step(&app, ADA, &request, "carry-out").await.data(200);
    wait_until(&app, &request, "destroyed").await;

    let issued = app.get(&path).await.json();
    let entry = app.entry(&id, "record.destroyed").await;
    let sha256 = canonical_sha256(&issued["certificate"]);
    assert_eq!(entry["certificate_sha256"], sha256.as_str());
    assert_eq!(issued["issued"]["details"], entry);
    assert_eq!(issued["log"]["inclusion"].as_array().unwrap().len(), 1);
    let record = &issued["certificate"]["record"];
    assert_eq!(
        issued["certificate"]["destroyed"]["authoritative"],
        json!([record["document_hash"]])
    );
    for personal in [NAME, EMAIL, ADA, BEN] {
        assert!(!issued.to_string().contains(personal), "{issued:#}");
    }

    let sheet = app.get(&format!("{path}&format=pdf")).await;
    assert!(sheet.bytes.starts_with(b"%PDF-"), "{}", sheet.status);
    let text = pdf::text(&sheet.bytes);
    for heading in ["Certificate of destruction", "Destroyed files"] {
        assert!(text.contains(heading), "{heading}: {text}");
    }
    let unknown = format!("/partner/destructions/{request}/certificate?envelope_id=env_01");
    assert_eq!(app.get(&unknown).await.status, 400);
}

/// So it is after the restore of a backup from before the destruction.
#[tokio::test(flavor = "multi_thread")]
async fn a_destroyed_record_without_a_certificate_says_where_it_is() {
    let app = TestApp::start().await;
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let request = destroy(&app, &id).await;
    app.empty("destroyed_record").await;

    for format in ["json", "pdf"] {
        let query = format!("certificate?envelope_id={id}&format={format}");
        let path = format!("/partner/destructions/{request}/{query}");
        refused(&app.get(&path).await, "certificate_not_restored");
    }
    let read = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    assert_eq!(read.status, 410, "{}", read.text());
    let view = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(view["destruction"], "destroyed");
    let body = json!({ "envelope_ids": [&id], "reason": "Its time is over." });
    assert_eq!(ask(&app, body).await.status, 410);
}

/// Requests wait in memory, also while the record is destroyed.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_stored_after_the_destruction_have_no_bodies() {
    let app = TestApp::start().await;
    let id = signed(&app).await;
    destroy(&app, &id).await;
    app.get(&format!("/partner/envelopes/{id}")).await.data(200);

    // The list stores the waiting requests.
    let developer = app.person("dev@oak.example", "developer");
    let path = format!("/request-log?envelope_id={id}");
    let logged = app.get_with_bearer(&developer, &path).await.data(200);
    let logged = logged.as_array().unwrap();
    assert!(!logged.is_empty());
    for request in logged {
        assert_eq!(request["request"], Value::Null, "{request}");
        assert_eq!(request["answer"], Value::Null, "{request}");
    }
}

/// The block commits to a decision by its digests, so an export of before and after has the same leaves.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_of_a_destroyed_record_keep_their_digests() {
    let app = TestApp::start().await;
    let id = signed(&app).await;
    destroy(&app, &id).await;
    for table in ["evaluation", "lifecycle_decision"] {
        let of_record = format!("{table} where envelope_id = '{id}'");
        let digested = format!("{of_record} and facts = 'null' and digests is not null");
        assert!(app.count(&of_record).await > 0, "{table}");
        assert_eq!(app.count(&of_record).await, app.count(&digested).await);
    }
}
