//! Legal holds: who places and lifts them, and what others get to know.

use std::time::Duration;

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::organization::{OrgSettings, Scope};
use serde_json::{Value, json};

use super::{schedule, set, wait_for_due};
use crate::service::control::{Party, vault_out};
use crate::support::{TestApp, TestResponse, postgres, release_form};

const REASON: &str = "The buyer has sued.";
const CASE: &str = "2:26-cv-01187";

fn hold(scope: &str, subject: Option<&str>) -> Value {
    json!({ "scope": scope, "subject_id": subject, "reason": REASON, "case_reference": CASE })
}

/// Places a hold with an API key, and returns its id.
pub async fn place(app: &TestApp, scope: &str, subject: Option<&str>) -> String {
    place_as(app, &app.key, scope, subject).await
}

pub async fn place_as(app: &TestApp, key: &str, scope: &str, subject: Option<&str>) -> String {
    let placed = app.post_as(key, "/partner/legal-holds", hold(scope, subject));
    let placed = placed.await.data(201);
    placed["hold_id"].as_str().unwrap().to_owned()
}

/// Takes a step towards the end of a hold, as a person.
async fn step(app: &TestApp, person: &str, id: &str, step: &str) -> TestResponse {
    let token = app.person(person, "compliance");
    let path = format!("/legal-holds/{id}/{step}");
    let body = json!({ "reason": "The case was dismissed." });
    app.post_with_bearer(&token, &path, body).await
}

/// Lifts a hold by two people.
pub async fn lift(app: &TestApp, id: &str) {
    step(app, "ada@oak.example", id, "lift").await.data(200);
    step(app, "ben@oak.example", id, "lift/approve")
        .await
        .data(200);
}

#[track_caller]
pub fn refused(answer: &TestResponse) -> Value {
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(answer.json()["code"], "legal_hold", "{}", answer.text());
    answer.json()["details"].clone()
}

async fn a_held_record_is_released_once_two_people_lifted_the_hold(
    change: impl FnOnce(&mut Config),
) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    let hold_id = place(&app, "envelope", Some(&id)).await;
    let details = refused(&vault_out(&app, &id, release_form()).await);
    assert_eq!(
        details,
        json!({ "hold_id": hold_id, "case_reference": CASE })
    );

    let requested = step(&app, "ada@oak.example", &hold_id, "lift")
        .await
        .data(200);
    assert_eq!(requested["state"], "lift_requested");
    assert_eq!(requested["lift"]["requested_by"], "user:ada@oak.example");
    // The hold binds until the second person agrees.
    refused(&vault_out(&app, &id, release_form()).await);
    let same = step(&app, "ADA@oak.example", &hold_id, "lift/approve").await;
    assert_eq!(same.status, 409, "{}", same.text());
    assert_eq!(same.json()["code"], "requester_reviews");

    let lifted = step(&app, "ben@oak.example", &hold_id, "lift/approve").await;
    let lifted = lifted.data(200);
    assert_eq!(lifted["state"], "lifted");
    assert_eq!(lifted["lifted_by"], "user:ben@oak.example");
    vault_out(&app, &id, release_form()).await.data(200);

    // The ledger of the record names the hold and its party, and neither the reason nor the case.
    for action in ["hold.placed", "hold.lifted"] {
        let entry = app.entry(&id, action).await;
        assert_eq!(entry["hold_id"], hold_id);
        assert_eq!(entry["party"]["organization_id"], app.org.as_str());
        assert!(!entry.to_string().contains(CASE), "{entry}");
    }
    let events = app.event_types(&id).await;
    assert!(events.contains(&"hold.placed".to_owned()), "{events:?}");
    assert!(events.contains(&"hold.lifted".to_owned()), "{events:?}");
    let audit = app.web(Method::GET, "/audit-log", Value::Null).await.text();
    for action in ["hold.placed", "hold.lift_requested", "hold.lifted", CASE] {
        assert!(audit.contains(action), "{action}");
    }
    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_record_is_released_once_two_people_lifted_the_hold_on_sqlite() {
    a_held_record_is_released_once_two_people_lifted_the_hold(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_record_is_released_once_two_people_lifted_the_hold_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    a_held_record_is_released_once_two_people_lifted_the_hold(change).await;
}

async fn each_scope_covers_its_records(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    let path = format!("/partner/envelopes/{id}");
    let envelope = app.get(&path).await.data(200);
    let customer = envelope["customer_id"].as_str().unwrap();
    for (scope, subject) in [
        ("envelope", Some(id.as_str())),
        ("customer", Some(customer)),
        ("organization", None),
    ] {
        let hold_id = place(&app, scope, subject).await;
        let details = refused(&vault_out(&app, &id, release_form()).await);
        assert_eq!(details["hold_id"], hold_id.as_str(), "{scope}");
        lift(&app, &hold_id).await;
    }
    vault_out(&app, &id, release_form()).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_covers_its_records_on_sqlite() {
    each_scope_covers_its_records(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_covers_its_records_on_postgresql() {
    let database = postgres::new_database().await;
    each_scope_covers_its_records(|config| config.database_url = Some(database)).await;
}

/// A hold on a pool covers the records of the transfer, by either of the two parties.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_on_a_pool_covers_its_records() {
    let (app, id, lender) = crate::service::control::controlled().await;
    let buyer = Party::new(&app).await;
    let offer = json!({ "records": [id], "buyer": buyer.org });
    let path = "/partner/control/transfers";
    let begun = app.post_as(&lender.key, path, offer).await.data(202);
    let pool = begun["transfer_id"].as_str().unwrap();
    app.wait_until_idle().await;

    let hold_id = place_as(&app, &lender.key, "pool", Some(pool)).await;
    let out = lender.act(&app, &id, "release", release_form()).await;
    assert_eq!(refused(&out)["hold_id"], hold_id.as_str());

    // The transfer refuses the record for the hold, which still covers it.
    for (party, step) in [(&buyer, "accept"), (&lender, "confirm")] {
        let path = format!("{path}/{pool}/{step}");
        let taken = app.post_as(&party.key, &path, json!({})).await;
        taken.data(202);
        app.wait_until_idle().await;
    }
    let read = app.get_as(&lender.key, &format!("{path}/{pool}")).await;
    assert_eq!(read.data(200)["records"][0]["code"], "legal_hold");
    let out = lender.act(&app, &id, "release", release_form()).await;
    assert_eq!(refused(&out)["hold_id"], hold_id.as_str());

    // The buyer's hold binds once the buyer has control.
    place_as(&app, &buyer.key, "pool", Some(pool)).await;
    let stranger = Party::new(&app).await;
    let placed = app.post_as(
        &stranger.key,
        "/partner/legal-holds",
        hold("pool", Some(pool)),
    );
    placed.await.error(404);
}

/// The controller holds the record; its originator learns that there is a hold, and no more.
#[tokio::test(flavor = "multi_thread")]
async fn another_organization_gets_the_code_only() {
    let (app, id, lender) = crate::service::control::controlled().await;
    let hold_id = place_as(&app, &lender.key, "envelope", Some(&id)).await;
    let theirs = vault_out(&app, &id, release_form()).await;
    assert_eq!(refused(&theirs), Value::Null);
    for secret in [&hold_id, CASE, REASON] {
        assert!(!theirs.text().contains(secret), "{}", theirs.text());
    }
    // No release was asked for, so the controller has nothing to answer.
    let record = lender.act(&app, &id, "release", release_form()).await;
    assert_eq!(refused(&record)["hold_id"], hold_id.as_str());

    let path = format!("/partner/legal-holds/{hold_id}");
    app.get(&path).await.error(404);
    let listed = app.get("/partner/legal-holds").await.data(200);
    assert_eq!(listed, json!([]));
    app.entry(&id, "hold.placed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seller_places_no_hold_on_what_it_sold() {
    let (app, id, _) = crate::service::control::controlled().await;
    let placed = app
        .post("/partner/legal-holds", hold("envelope", Some(&id)))
        .await;
    assert_eq!(placed.status, 409, "{}", placed.text());
    assert_eq!(placed.json()["code"], "control_wrong_party");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_places_a_hold_and_lifts_none() {
    let app = TestApp::start().await;
    let hold_id = place(&app, "organization", None).await;
    for path in [
        format!("/legal-holds/{hold_id}/lift"),
        format!("/partner/legal-holds/{hold_id}/lift"),
    ] {
        let answer = app.post(&path, json!({ "reason": "Over" })).await;
        assert!([401, 404, 405].contains(&answer.status.as_u16()), "{path}");
    }

    let reader = app.key_with(&[Scope::HoldsRead]).await;
    let refused = app.post_as(&reader, "/partner/legal-holds", hold("organization", None));
    assert!(refused.await.error(403).contains("holds:write"));
    let sender = app.person("sam@oak.example", "sender");
    let path = format!("/legal-holds/{hold_id}/lift");
    let refused = app.post_with_bearer(&sender, &path, json!({ "reason": "Over" }));
    refused.await.error(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_to_lift_is_made_once_and_taken_back_by_one_person() {
    let app = TestApp::start().await;
    let hold_id = place(&app, "organization", None).await;
    step(&app, "ben@oak.example", &hold_id, "lift/approve")
        .await
        .error(409);
    step(&app, "ada@oak.example", &hold_id, "lift")
        .await
        .data(200);
    step(&app, "ben@oak.example", &hold_id, "lift")
        .await
        .error(409);

    let ben = app.person("ben@oak.example", "compliance");
    let path = format!("/legal-holds/{hold_id}/lift");
    let withdrawn = app
        .as_bearer(Method::DELETE, &ben, &path, Value::Null)
        .await;
    assert_eq!(withdrawn.data(200)["state"], "in_force");
    step(&app, "ben@oak.example", &hold_id, "lift/approve")
        .await
        .error(409);

    lift(&app, &hold_id).await;
    step(&app, "ada@oak.example", &hold_id, "lift")
        .await
        .error(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_without_a_subject_or_a_reason_is_refused() {
    let app = TestApp::start().await;
    for (body, member) in [
        (hold("envelope", None), "subject_id"),
        (hold("organization", Some("org_other")), "subject_id"),
        (
            json!({ "scope": "organization", "reason": " ", "case_reference": CASE }),
            "reason",
        ),
        (
            json!({ "scope": "organization", "reason": REASON, "case_reference": " " }),
            "case_reference",
        ),
    ] {
        let refused = app.post("/partner/legal-holds", body).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], json!([member]));
    }

    for (scope, unknown) in [
        ("envelope", "env_01jdk7m3e8f4x9s2w5v6b0c1dc"),
        ("customer", "cust_01jdk7m3e8f4x9s2w5v6b0c1db"),
        ("pool", "trf_01jdk7m3e8f4x9s2w5v6b0c1da"),
        ("pool", "Pool 7"),
    ] {
        let body = hold(scope, Some(unknown));
        app.post("/partner/legal-holds", body).await.error(404);
    }
}

/// A program places many holds at once.
#[tokio::test(flavor = "multi_thread")]
async fn holds_on_several_records_are_placed_at_the_same_moment() {
    let app = TestApp::on_postgresql().await;
    let ids = [app.vaulted_envelope().await, app.vaulted_envelope().await];
    let (first, second) = tokio::join!(
        place(&app, "envelope", Some(&ids[0])),
        place(&app, "envelope", Some(&ids[1])),
    );
    assert_ne!(first, second);
    for id in &ids {
        refused(&vault_out(&app, id, release_form()).await);
    }
}

/// The first one wins: a release that answered before the hold is over, and none after it is made.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_hold_and_a_release_at_the_same_moment_one_comes_first() {
    for app in [TestApp::start().await, TestApp::on_postgresql().await] {
        for scope in ["envelope", "organization"] {
            let id = app.vaulted_envelope().await;
            let subject = (scope == "envelope").then_some(id.as_str());
            let (hold_id, released) = tokio::join!(
                place(&app, scope, subject),
                vault_out(&app, &id, release_form()),
            );
            let path = format!("/partner/envelopes/{id}");
            let status = app.get(&path).await.data(200)["status"].clone();
            if released.status == 200 {
                assert_eq!(status, "vaulted_out");
                // The hold is in force, so the release gives no further links.
                refused(&vault_out(&app, &id, release_form()).await);
            } else {
                refused(&released);
                assert_eq!(status, "vaulted");
            }
            lift(&app, &hold_id).await;
        }
    }
}

/// A record that is due stays listed as held.
#[tokio::test(flavor = "multi_thread")]
async fn a_due_record_under_a_hold_says_so() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    set(&app, json!([schedule("All", "created", 1)]))
        .await
        .data(200);
    place(&app, "envelope", Some(&id)).await;
    let later = app.as_of(Duration::from_secs(40 * 86_400)).await;
    let found = wait_for_due(&later, 1).await;
    assert_eq!(found[0]["under_hold"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_who_enforces_holds() {
    let app = TestApp::start().await;
    place(&app, "organization", None).await;
    let checks = holdfast::doctor::checks(&app.service).await;
    let holds = checks.iter().find(|check| check.name == "holds").unwrap();
    assert!(holds.ok);
    assert!(holds.detail.starts_with("1 in force;"), "{}", holds.detail);
    assert!(
        holds.detail.contains("the object store has no hold"),
        "{}",
        holds.detail
    );
}
