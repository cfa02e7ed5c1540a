//! Control of records: designation, acceptance, and releases that need the controller's consent.

mod disputes;
mod guard;
mod invitations;
mod obligor;
mod paper;
mod pledges;
mod pools;
pub mod signatures;
mod similarity;
mod tape;
mod tapes;
mod transfers;
pub mod views;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::id::{EnvelopeId, OrgId};
use holdfast::domain::organization::{OrgSettings, Role, Scope};
use holdfast::store::events;
use serde_json::{Value, json};

use crate::http::console::Session;
use crate::service::components::registry::variant;
use crate::support::receiver::WebhookReceiver;
use crate::support::{
    TestApp, TestResponse, envelope_body, operator_output, postgres, release_form,
};

/// An organization beside the originator.
pub struct Party {
    pub org: OrgId,
    pub key: String,
}

impl Party {
    pub async fn new(app: &TestApp) -> Self {
        let (org, key) = app.party().await;
        Self { org, key }
    }

    /// Does something with a record.
    pub async fn act(&self, app: &TestApp, id: &str, act: &str, body: Value) -> TestResponse {
        let path = format!("/partner/control/records/{id}/{act}");
        app.post_as(&self.key, &path, body).await
    }

    async fn answer(&self, app: &TestApp, release: &str, answer: &str) -> TestResponse {
        let path = format!("/partner/control/releases/{release}/{answer}");
        app.post_as(&self.key, &path, json!({})).await
    }

    async fn record(&self, app: &TestApp, id: &str) -> TestResponse {
        let path = format!("/partner/control/records/{id}");
        app.get_as(&self.key, &path).await
    }

    async fn events(&self, app: &TestApp, id: &str) -> Vec<Value> {
        let id = EnvelopeId::parse(id).unwrap();
        let mut connection = app.store.read().await.unwrap();
        let bodies = events::bodies(&mut connection, &self.org, &id)
            .await
            .unwrap();
        let read = |body: &String| serde_json::from_str(body).unwrap();
        bodies.iter().map(read).collect()
    }
}

pub async fn designate(app: &TestApp, id: &str, to: &OrgId) -> TestResponse {
    let path = format!("/partner/control/records/{id}/designate");
    app.post(&path, json!({ "controller": to })).await
}

pub async fn vault_out(app: &TestApp, id: &str, form: Value) -> TestResponse {
    app.post(&format!("/partner/envelopes/{id}/vault-out"), form)
        .await
}

/// Starts a service with a vaulted record that a lender controls.
pub async fn controlled() -> (TestApp, String, Party) {
    let app = TestApp::start().await;
    let (id, lender) = controlled_in(&app).await;
    (app, id, lender)
}

async fn controlled_in(app: &TestApp) -> (String, Party) {
    let id = app.vaulted_envelope().await;
    let lender = Party::new(app).await;
    designate(app, &id, &lender.org).await.data(200);
    lender.act(app, &id, "accept", json!({})).await.data(200);
    (id, lender)
}

#[track_caller]
fn code(answer: &TestResponse, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    let code = answer.json()["code"].as_str().unwrap().to_owned();
    assert!(!answer.json()["error"].as_str().unwrap().is_empty());
    code
}

/// Asks for a release that the controller has to agree to, and returns the request's id.
#[track_caller]
fn asked(answer: &TestResponse) -> String {
    assert_eq!(code(answer, 409), "control_consent_required");
    let id = answer.json()["details"]["release_id"]
        .as_str()
        .map(str::to_owned);
    id.expect("a release that waits")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_designated_lender_takes_control() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let lender = Party::new(&app).await;
    lender.record(&app, &id).await.error(404);
    let designated = designate(&app, &id, &lender.org).await.data(200);
    assert_eq!(designated["stage"], "designated");
    assert_eq!(
        designated["controller"]["organization_id"],
        app.org.as_str()
    );
    assert_eq!(
        designated["designee"]["organization_id"],
        lender.org.as_str()
    );

    let offered = app
        .get_as(&lender.key, "/partner/control/records?part=named")
        .await;
    assert_eq!(offered.json()["data"][0]["envelope_id"], id);

    let controlled = lender.act(&app, &id, "accept", json!({})).await.data(200);
    assert_eq!(controlled["stage"], "controlled");
    assert_eq!(
        controlled["controller"]["organization_id"],
        lender.org.as_str()
    );
    assert_eq!(controlled["controller"]["name"], "Maple Street Motors");
    assert_eq!(controlled["designee"], Value::Null);
    assert_eq!(controlled["epoch"], 2);
    assert_eq!(controlled["compliance_score"], 100);
    assert_eq!(lender.record(&app, &id).await.data(200), controlled);

    let originators = app.get(&format!("/partner/control/records/{id}")).await;
    assert_eq!(originators.data(200), controlled);

    let entry = app.entry(&id, "control.accepted").await;
    assert_eq!(entry["party"]["organization_id"], lender.org.as_str());
    assert_eq!(entry["controller"]["organization_id"], lender.org.as_str());
    assert_eq!(entry["rules_component"]["name"], "holdfast-control");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_parties_get_the_events_and_only_their_own_references() {
    let app = TestApp::with_receivers().await;
    let receiver = WebhookReceiver::start().await;
    app.endpoint(&receiver.url, &["control.*"]).await;
    let (id, lender) = controlled_in(&app).await;
    let received = receiver.wait_for(2).await;
    let types: Vec<String> = received
        .iter()
        .map(|one| one.event_type().to_owned())
        .collect();
    assert_eq!(types, ["control.designated", "control.accepted"]);

    let own = received[1].json();
    assert_eq!(own["org_id"], app.org.as_str());
    assert_eq!(own["data"]["external_id"], "deal-17");

    let lenders = lender.events(&app, &id).await;
    assert_eq!(lenders.len(), 2);

    for (event, kind) in lenders.iter().zip(types) {
        assert_eq!(event["event_type"], kind);
        assert_eq!(event["org_id"], lender.org.as_str());
        assert_eq!(event["envelope_id"], id);
        assert_eq!(
            event["data"]["originator"]["organization_id"],
            app.org.as_str()
        );

        for foreign in ["customer_id", "external_id"] {
            assert_eq!(event["data"].get(foreign), None, "{foreign}");
        }
    }

    app.events_fit_their_schemas(1).await;
}

/// People of an organization act with their own token, by their role.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_acts_for_the_organization_by_role() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let lender = Party::new(&app).await;
    let cora = app.person("cora@oak.example", "controller");
    let path = format!("/control/records/{id}");
    let designate = format!("{path}/designate");

    let body = json!({ "controller": lender.org });
    for role in ["auditor", "compliance", "sender", "developer", "member"] {
        let refused = app
            .post_with_bearer(&app.token(role), &designate, body.clone())
            .await;
        assert_eq!(refused.status, 403, "{role}");
    }

    let done = app.post_with_bearer(&cora, &designate, body).await;
    assert_eq!(done.data(200)["stage"], "designated");

    let custody = app.custody(&id).await;
    let last = custody["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(last["action"], "control.designated");
    assert_eq!(last["actor"], "user:cora@oak.example");

    let auditor = app.token("auditor");
    let seen = app.get_with_bearer(&auditor, &path).await.data(200);
    let by_key = app.get(&format!("/partner{path}")).await.data(200);
    assert_eq!(seen, by_key);

    let unknown = "/control/records/env_01h455vb4pex5vsknk084sn02q";
    assert_eq!(app.get_with_bearer(&auditor, unknown).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_designation_is_declined_or_withdrawn() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let lender = Party::new(&app).await;
    designate(&app, &id, &lender.org).await.data(200);
    let reason = json!({ "reason": "The amount differs" });
    let declined = lender.act(&app, &id, "decline", reason).await.data(200);
    assert_eq!(declined["stage"], "originated");
    assert_eq!(declined["designee"], Value::Null);

    let entry = app.entry(&id, "control.declined").await;
    assert_eq!(entry["reason"], "The amount differs");

    // The lender has no part in the record any more.
    lender.record(&app, &id).await.error(404);
    lender.act(&app, &id, "accept", json!({})).await.error(404);
    let events = lender.events(&app, &id).await;
    assert_eq!(events.last().unwrap()["event_type"], "control.declined");

    designate(&app, &id, &lender.org).await.data(200);
    let path = format!("/partner/control/records/{id}/decline");
    let withdrawn = app.post(&path, json!({})).await.data(200);
    assert_eq!(withdrawn["stage"], "originated");

    vault_out(&app, &id, release_form()).await.data(200);
    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_out_of_order_or_by_another_party_changes_nothing() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let (lender, other) = (Party::new(&app).await, Party::new(&app).await);
    let own = |act: &str| {
        let path = format!("/partner/control/records/{id}/{act}");
        let app = &app;
        async move { app.post(&path, json!({})).await }
    };
    assert_eq!(code(&own("accept").await, 409), "control_out_of_order");
    assert_eq!(code(&own("decline").await, 409), "control_out_of_order");

    let oneself = designate(&app, &id, &app.org).await;
    assert_eq!(code(&oneself, 422), "control_to_oneself");
    assert_eq!(oneself.json()["details"]["source"], "UCC 9-105(a)");

    for unknown in [OrgId::new().to_string(), "First Example Bank".into()] {
        let body = json!({ "controller": unknown });
        let path = format!("/partner/control/records/{id}/designate");
        let refused = app.post(&path, body).await;
        assert_eq!(refused.status, 422, "{}", refused.text());

        let issue = &refused.json()["details"][0];
        assert_eq!(issue["code"], "unknown_party");
        assert_eq!(issue["path"], json!(["controller"]));
    }

    let before = app
        .get(&format!("/partner/control/records/{id}"))
        .await
        .data(200);
    assert_eq!(before["epoch"], 0, "nothing has changed");

    designate(&app, &id, &lender.org).await.data(200);
    assert_eq!(
        code(&designate(&app, &id, &other.org).await, 409),
        "control_out_of_order"
    );
    assert_eq!(code(&own("accept").await, 409), "control_wrong_party");

    // A pending designation keeps the record in the vault.
    let early = vault_out(&app, &id, release_form()).await;
    assert_eq!(code(&early, 409), "control_out_of_order");

    lender.act(&app, &id, "accept", json!({})).await.data(200);
    let again = lender.act(&app, &id, "accept", json!({})).await;
    assert_eq!(code(&again, 409), "control_out_of_order");
    assert_eq!(code(&own("decline").await, 409), "control_out_of_order");
    assert_eq!(
        code(&designate(&app, &id, &other.org).await, 409),
        "control_out_of_order"
    );
    assert_eq!(lender.record(&app, &id).await.data(200)["epoch"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_outside_the_vault_or_with_an_obstacle_gets_no_controller() {
    let app = TestApp::without_auto_vault().await;
    let lender = Party::new(&app).await;
    let open = app.sent_envelope().await;
    let open = open["envelope_id"].as_str().unwrap();
    let refused = designate(&app, open, &lender.org).await;
    assert_eq!(code(&refused, 409), "record_not_vaulted");

    let mut body = envelope_body(&app.contract_template().await["template_id"]);
    body["payment"] = json!({ "amount_cents": 4900, "currency": "USD" });
    let unpaid = app.post("/partner/envelopes", body).await.data(201);
    let unpaid = unpaid["envelope_id"].as_str().unwrap();
    let refused = designate(&app, unpaid, &lender.org).await;
    assert_eq!(code(&refused, 409), "record_unpaid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_record_is_held() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let lender = Party::new(&app).await;
    app.custody(&id).await;
    let copy = app.objects("copies").remove(0);
    let bytes = std::fs::read(&copy).unwrap();
    std::fs::write(&copy, &bytes[1..]).unwrap();
    assert!(
        !operator_output(app.data.path(), &["vault", "sweep"])
            .status
            .success()
    );

    let refused = designate(&app, &id, &lender.org).await;
    assert_eq!(code(&refused, 409), "record_held");

    std::fs::write(&copy, bytes).unwrap();
    assert!(
        operator_output(app.data.path(), &["vault", "sweep"])
            .status
            .success()
    );

    designate(&app, &id, &lender.org).await.data(200);
}

/// Where the console leads after an act without a file.
const CONTROL_PAGES: &[u8] = b"/console/control";

/// Attempts of an originator to get a controlled record, by every way and credential, with their answers. The table is
/// that of docs/proofs.md.
#[derive(Default)]
struct ReleaseTable {
    rows: Vec<String>,
    /// Releases that were requested.
    asked: BTreeSet<String>,
}

impl ReleaseTable {
    /// Adds an attempt that must fail.
    #[track_caller]
    fn add(&mut self, way: &str, who: &str, answer: &TestResponse) {
        let status = answer.status.as_u16();
        // The console leads to its pages of control, where the release waits for consent.
        let page = answer.headers.get("location");
        let waits = page.is_some_and(|page| page.as_bytes().starts_with(CONTROL_PAGES));
        assert!(
            status >= 400 || status == 303 && waits,
            "{way} by {who}: {}",
            answer.text()
        );
        assert!(!answer.bytes.starts_with(b"%PDF"), "{way} by {who}");

        let body: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        let code = body["code"].as_str().map(|code| format!(" `{code}`"));
        let row = format!("| {way} | {who} | {status}{} |\n", code.unwrap_or_default());
        self.rows.push(row);
        let asked = body["details"]["release_id"].as_str().map(str::to_owned);
        self.asked.extend(asked);
    }

    fn is_in_the_guide(&self) {
        let table = self.rows.concat();
        let guide = include_str!("../../../../docs/proofs.md");
        assert!(
            guide.contains(&table),
            "docs/proofs.md has another table than\n{table}"
        );
    }
}

/// Returns the form of a release as a browser sends it.
fn console_form() -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in release_form().as_object().unwrap() {
        form.append_pair(name, value.as_str().unwrap_or("yes"));
    }
    form.append_pair("sure", "yes");
    form.append_pair("typed", "Retail instalment contract");
    form.finish()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_controlled_record_leaves_without_consent() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let url = format!("/partner/envelopes/{id}/vault/signed-url");

    // Issued before the lender took control.
    let link = app.get(&url).await.data(200);
    let link = link["signed_url"].as_str().unwrap();
    let lender = Party::new(&app).await;
    designate(&app, &id, &lender.org).await.data(200);
    lender.act(&app, &id, "accept", json!({})).await.data(200);

    let alone = app.key_with(&[Scope::VaultRelease, Scope::VaultRead]).await;
    let mut table = ReleaseTable::default();
    let out = format!("/partner/envelopes/{id}/vault-out");
    let release = format!("/control/records/{id}/release");
    let bundle = format!("/envelopes/{id}/bundle");
    let as_controller = format!("/control/records/{id}/bundle");
    let mut paper = release_form();
    paper["medium"] = "paper".into();

    for (who, key) in [
        ("key with all scopes", &app.key),
        ("key with `vault:release` and `vault:read`", &alone),
    ] {
        let partner = |path: &str| format!("/partner{path}");
        let answer = app.post_as(key, &out, release_form()).await;
        table.add("`POST /partner/envelopes/{id}/vault-out`", who, &answer);
        let answer = app.post_as(key, &out, paper.clone()).await;
        table.add("the same, to paper", who, &answer);
        let answer = app.post_as(key, &partner(&release), release_form()).await;
        table.add("`POST /partner/control/records/{id}/release`", who, &answer);

        let answer = app.get_as(key, &url).await;
        table.add("`GET …/vault/signed-url`", who, &answer);
        let answer = app.get_as(key, &partner(&bundle)).await;
        table.add("`GET …/bundle`", who, &answer);
        let answer = app.get_as(key, &partner(&as_controller)).await;
        table.add("`GET …/control/records/{id}/bundle`", who, &answer);
    }

    let repeated = axum::http::Request::post(format!("/api/v2{out}"))
        .header("x-api-key", &app.key)
        .header("content-type", "application/json")
        .header("idempotency-key", "out-1")
        .body(release_form().to_string().into());
    let answer = app.send(repeated.unwrap()).await;
    let again = "vault-out again, with an `Idempotency-Key`";
    table.add(again, "key with all scopes", &answer);

    let answer = app.get_as("", link).await;
    table.add("a link from before", "none", &answer);
    for role in Role::ALL {
        let token = app.token(role.as_str());
        let who = format!("user, `{role}`");
        let answer = app.post_with_bearer(&token, &release, release_form()).await;
        table.add("`POST /control/records/{id}/release`", &who, &answer);
        let answer = app.get_with_bearer(&token, &bundle).await;
        table.add("`GET …/bundle`", &who, &answer);
        let session = Session::of(&app, &format!("{role}@oak.example"), role.as_str()).await;

        let path = format!("/console/control/release/{id}");
        let answer = session.post(&app, &path, &console_form()).await;
        table.add("form of the console", &who, &answer);
    }

    assert_eq!(table.asked.len(), 1, "one release waits");
    table.is_in_the_guide();

    assert!(app.objects("archive").is_empty());
    assert_eq!(app.objects("vault").len(), 1);

    let status = app
        .get(&format!("/partner/envelopes/{id}/status"))
        .await
        .data(200);
    assert_eq!(status["status"], "vaulted");

    let types = app.event_types(&id).await;
    let count = |kind: &str| types.iter().filter(|known| *known == kind).count();
    assert_eq!(count("control.release.requested"), 1);
    assert_eq!(count("vault.released"), 0);

    // The copy for the parties is no authoritative one.
    assert!(app.copy(&id).await.starts_with(b"%PDF"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_makes_the_requested_release_and_no_other() {
    let (app, id, lender) = controlled().await;
    let release = asked(&vault_out(&app, &id, release_form()).await);
    let record = lender.record(&app, &id).await.data(200);
    assert_eq!(record["release"]["release_id"], release);
    assert_eq!(record["release"]["state"], "requested");
    assert_eq!(
        record["release"]["recipient_organization"],
        "First Example Bank"
    );

    app.stop_working();
    let consented = lender.answer(&app, &release, "consent").await.data(200);
    assert_eq!(consented["state"], "consented");

    // Agreed to another recipient than this one.
    let mut other = release_form();
    other["recipient_email"] = "someone@else.example".into();
    assert_eq!(asked(&vault_out(&app, &id, other).await), release);
    assert!(app.objects("archive").is_empty());

    let app = app.as_of(Duration::ZERO).await;
    app.wait_for(&id, "vaulted_out").await;
    let links = vault_out(&app, &id, release_form()).await.data(200);
    let bytes = app
        .get(links["authoritative_signed_url"].as_str().unwrap())
        .await
        .bytes;
    assert!(bytes.starts_with(b"%PDF"));

    let record = lender.record(&app, &id).await.data(200);
    assert_eq!(
        (&record["stage"], &record["status"]),
        (&json!("released"), &json!("vaulted_out"))
    );
    assert_eq!(record["release"]["state"], "released");

    let types: Vec<Value> = lender.events(&app, &id).await;
    let types: Vec<&str> = types
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "control.designated",
            "control.accepted",
            "control.release.requested",
            "control.release.consented",
            "control.released"
        ]
    );

    // A released record has left the vault for good.
    let late = lender.answer(&app, &release, "refuse").await;
    assert_eq!(code(&late, 409), "control_out_of_order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_release_can_be_asked_for_again() {
    let (app, id, lender) = controlled().await;
    let first = asked(&vault_out(&app, &id, release_form()).await);
    let path = format!("/partner/control/releases/{first}/refuse");
    let reason = json!({ "reason": "Not paid off" });
    let refused = app.post_as(&lender.key, &path, reason).await.data(200);
    assert_eq!(
        (&refused["state"], &refused["reason"]),
        (&json!("refused"), &json!("Not paid off"))
    );

    let late = lender.answer(&app, &first, "consent").await;
    assert_eq!(code(&late, 409), "control_out_of_order");

    let second = asked(&vault_out(&app, &id, release_form()).await);
    assert_ne!(first, second);

    // The originator cannot answer it, and others cannot see it.
    let own = app
        .post(
            &format!("/partner/control/releases/{second}/consent"),
            json!({}),
        )
        .await;
    assert_eq!(code(&own, 409), "control_wrong_party");

    let other = Party::new(&app).await;
    other.answer(&app, &second, "consent").await.error(404);
    other
        .answer(&app, "rel_unknown", "consent")
        .await
        .error(404);
    assert!(app.objects("archive").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consent_is_withdrawn_until_the_release_is_made() {
    let (app, id, lender) = controlled().await;
    let release = asked(&vault_out(&app, &id, release_form()).await);
    app.stop_working();
    lender.answer(&app, &release, "consent").await.data(200);
    let twice = lender.answer(&app, &release, "consent").await;
    assert_eq!(code(&twice, 409), "control_out_of_order");

    let withdrawn = lender.answer(&app, &release, "refuse").await.data(200);
    assert_eq!(withdrawn["state"], "refused");

    let app = app.as_of(Duration::ZERO).await;
    app.wait_until_idle().await;
    assert!(app.objects("archive").is_empty());
    assert_ne!(asked(&vault_out(&app, &id, release_form()).await), release);
}

/// A broken download makes its link usable again, but not for a copy that another party controls now.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_in_progress_gives_no_link_to_a_copy_that_changed_hands() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let lender = Party::new(&app).await;
    designate(&app, &id, &lender.org).await.data(200);
    let url = format!("/partner/envelopes/{id}/vault/signed-url");
    let link = app.get(&url).await.data(200);
    let link = link["signed_url"].as_str().unwrap();
    let path = link.strip_prefix("http://127.0.0.1:8080").unwrap();
    let request = axum::http::Request::get(path).body(axum::body::Body::empty());
    let download = app.begin(request.unwrap()).await;
    assert_eq!(download.status(), 200);

    lender.act(&app, &id, "accept", json!({})).await.data(200);
    drop(download);
    app.wait_for_entry(&id, "authoritative.download_broken_off")
        .await;
    assert_eq!(app.get_as("", link).await.status, 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_releases_without_asking_anybody() {
    let (app, id, lender) = controlled().await;
    let mut wrong = release_form();
    wrong["acknowledge_chain_of_custody"] = false.into();
    lender.act(&app, &id, "release", wrong).await.error(422);
    let links = lender
        .act(&app, &id, "release", release_form())
        .await
        .data(200);
    let bytes = app
        .get(links["authoritative_signed_url"].as_str().unwrap())
        .await
        .bytes;
    assert!(bytes.starts_with(b"%PDF"));

    let again = lender
        .act(&app, &id, "release", release_form())
        .await
        .data(200);
    assert_ne!(
        again["authoritative_signed_url"],
        links["authoritative_signed_url"]
    );

    // A release that was not agreed to gives the originator nothing.
    let denied = vault_out(&app, &id, release_form()).await;
    assert_eq!(code(&denied, 409), "control_consent_required");

    let bundle = format!("/partner/envelopes/{id}/bundle");
    assert_eq!(
        code(&app.get(&bundle).await, 409),
        "control_consent_required"
    );

    let record = lender.record(&app, &id).await.data(200);
    assert_eq!(
        (&record["stage"], &record["release"]),
        (&json!("released"), &Value::Null)
    );

    let entry = app.entry(&id, "control.released").await;
    assert_eq!(entry["party"]["organization_id"], lender.org.as_str());

    let other = Party::new(&app).await;
    other
        .act(&app, &id, "release", release_form())
        .await
        .error(404);
}

/// Other organizations, and keys without the scope.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_visible_to_its_parties_only() {
    let (app, id, lender) = controlled().await;
    let other = Party::new(&app).await;
    other.record(&app, &id).await.error(404);
    for act in ["accept", "decline"] {
        other.act(&app, &id, act, json!({})).await.error(404);
    }

    let body = json!({ "controller": lender.org });
    other.act(&app, &id, "designate", body).await.error(404);
    for part in ["controller", "named", "originator"] {
        let path = format!("/partner/control/records?part={part}");
        let list = app.get_as(&other.key, &path).await.json();
        assert_eq!(list["data"], json!([]), "{part}");
    }

    // Control opens nothing else of the originator's.
    let envelope = format!("/partner/envelopes/{id}");
    app.get_as(&lender.key, &envelope).await.error(404);
    let all = app
        .key_with(&[Scope::EnvelopesRead, Scope::VaultRelease])
        .await;
    let missing = app.get_as(&all, "/partner/control/records").await;
    assert_eq!(missing.error(403), "Missing required scope: control:read");

    let path = format!("/partner/control/records/{id}/accept");
    let missing = app.post_as(&all, &path, json!({})).await;
    assert_eq!(missing.error(403), "Missing required scope: control:write");

    let missing = app
        .post_as(&all, "/partner/control/releases/rel_1/consent", json!({}))
        .await;
    assert_eq!(
        missing.error(403),
        "Missing required scope: control:consent"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_listed_by_page_part_and_stage() {
    let app = TestApp::start().await;
    let lender = Party::new(&app).await;
    let mut all = Vec::new();
    for _ in 0..3 {
        let id = app.vaulted_envelope().await;
        designate(&app, &id, &lender.org).await.data(200);
        all.insert(0, id);
    }

    let accepted = &all[0];
    lender
        .act(&app, accepted, "accept", json!({}))
        .await
        .data(200);
    let list = |query: &str| {
        let path = format!("/partner/control/records?{query}");
        let (app, key) = (&app, &lender.key);
        async move {
            let list = app.get_as(key, &path).await.json();
            let rows = list["data"].as_array().unwrap().clone();
            let ids = rows
                .iter()
                .map(|row| row["envelope_id"].as_str().unwrap().to_owned());
            (ids.collect::<Vec<_>>(), list["meta"]["has_more"].clone())
        }
    };
    assert_eq!(list("").await, (vec![accepted.clone()], json!(false)));

    assert_eq!(
        list("part=named&limit=1").await,
        (vec![all[1].clone()], json!(true))
    );

    let next = format!("part=named&limit=1&starting_after={}", all[1]);
    assert_eq!(list(&next).await, (vec![all[2].clone()], json!(false)));
    assert_eq!(list("stage=released").await.0, Vec::<String>::new());

    let own = format!("originator={}&stage=controlled", app.org);
    assert_eq!(list(&own).await.0, [accepted.as_str()]);

    let other = format!("originator={}", lender.org);
    assert_eq!(list(&other).await.0, Vec::<String>::new());
    assert_eq!(
        list("changed_before=2020-01-01T00:00:00Z").await.0,
        Vec::<String>::new()
    );
    assert_eq!(
        list("changed_from=2020-01-01T00:00:00Z").await.0,
        [accepted.as_str()]
    );

    let originated = app
        .get("/partner/control/records?part=originator")
        .await
        .json();
    assert_eq!(originated["data"].as_array().unwrap().len(), 3);

    for wrong in [
        "part=owner",
        "limit=0",
        "limit=101",
        "starting_after=env_1",
        "pool=1",
    ] {
        let path = format!("/partner/control/records?{wrong}");
        assert_eq!(app.get(&path).await.status, 400, "{wrong}");
    }
}

/// The originator withdraws while the lender accepts, on both databases.
async fn one_of_two_racing_acts_wins(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let lender = Party::new(&app).await;
    for _ in 0..3 {
        let id = app.vaulted_envelope().await;
        designate(&app, &id, &lender.org).await.data(200);
        let path = format!("/partner/control/records/{id}/decline");
        let acts = (0..8).map(|index| {
            let (app, lender, id, path) = (&app, &lender, &id, &path);
            async move {
                let accepts = index % 2 == 0;
                let answer = if accepts {
                    lender.act(app, id, "accept", json!({})).await
                } else {
                    app.post(path, json!({})).await
                };
                (answer.status == 200).then_some(accepts)
            }
        });

        let won: Vec<bool> = futures::future::join_all(acts)
            .await
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(won.len(), 1, "one act succeeds");

        let record = app
            .get(&format!("/partner/control/records/{id}"))
            .await
            .data(200);
        let controller = if won[0] { &lender.org } else { &app.org };
        assert_eq!(record["controller"]["organization_id"], controller.as_str());
        assert_eq!(record["epoch"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_racing_acts_wins_on_sqlite() {
    one_of_two_racing_acts_wins(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_racing_acts_wins_on_postgresql() {
    let database = postgres::new_database().await;
    one_of_two_racing_acts_wins(|config| config.database_url = Some(database)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_the_controller_are_mailed_about_a_release() {
    let (app, id, lender) = controlled().await;
    let release = asked(&vault_out(&app, &id, release_form()).await);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mail = loop {
        let mails = app.wait_for_mails(1).await;
        let mut asking = mails.into_iter().filter(|mail| mail.contains(&release));
        if let Some(mail) = asking.next() {
            assert_eq!(asking.next(), None, "one mail for each person");
            break mail;
        }
        assert!(Instant::now() < deadline, "no mail");

        tokio::time::sleep(Duration::from_millis(20)).await;
    };

    let mail = mail_parser::MessageParser::default().parse(&mail).unwrap();
    let subject = "Maple Street Motors asks to release Retail instalment contract";
    assert_eq!(mail.subject(), Some(subject));

    let text = mail.body_text(0).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("to First Example Bank. Purpose: Assignment of the contract"),
        "{text}"
    );
    assert!(!text.contains(lender.org.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_about_control_are_repeated_by_the_rules_that_made_them() {
    let (app, id, _) = controlled().await;
    let replayed = operator_output(app.data.path(), &["replay", &id]);
    let replayed: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    let text = replayed.to_string();
    for act in ["Designate", "Accept"] {
        assert!(text.contains(act), "{act}: {replayed:#}");
    }
    assert!(!text.contains("\"same\":false"), "{replayed:#}");

    let officer = app.token("compliance");
    let bytes = variant(Slot::Control, "same rules");
    let candidate = app
        .upload_component(&officer, "lending-control", "1.0.0", &bytes)
        .await
        .data(201);
    assert_eq!(candidate["slot"], "rules.control");

    let path = format!(
        "/components/{}/shadow",
        candidate["component_id"].as_str().unwrap()
    );
    let report = app
        .post_with_bearer(&officer, &path, json!({}))
        .await
        .data(200);
    assert_eq!(
        (&report["compared"], &report["differing"]),
        (&json!(2), &json!(0))
    );
}
