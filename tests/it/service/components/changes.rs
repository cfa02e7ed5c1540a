//! Change requests: a change of components that other people than its requester approve.

use std::time::Duration;

use axum::http::Method;
use axum::response::IntoResponse as _;
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::registry::variant;
use crate::support::receiver::WebhookReceiver;
use crate::support::{TestApp, TestResponse, operator, operator_output, postgres};

const CHANGES: &str = "/component-changes";
const POLICY: &str = "/component-policy";
const GUIDE: &str = include_str!("../../../../docs/proofs.md");

/// People of an organization, by their tokens.
struct People {
    /// Uploads components.
    ada: String,
    /// Requests changes.
    ben: String,
    /// Reviewers.
    cleo: String,
    dan: String,
    /// Admin.
    eve: String,
}

impl People {
    fn of(app: &TestApp) -> Self {
        let officer = |name: &str| app.person(&format!("{name}@oak.example"), "compliance");
        Self {
            ada: officer("ada"),
            ben: officer("ben"),
            cleo: officer("cleo"),
            dan: officer("dan"),
            eve: app.person("eve@oak.example", "admin"),
        }
    }
}

/// Two people who change components together.
pub struct Governance {
    requester: String,
    reviewer: String,
}

impl Governance {
    /// Makes a policy that requires one approval.
    pub async fn start(app: &TestApp) -> Self {
        let policy = json!({ "reviews_required": 1 });
        set_policy(app, app.web_admin(), policy).await.data(200);
        Self {
            requester: app.person("ben@oak.example", "compliance"),
            reviewer: app.person("cleo@oak.example", "compliance"),
        }
    }

    /// Requests a change, approves and applies it.
    pub async fn change(&self, app: &TestApp, body: &Value) {
        let made = request(app, &self.requester, body.clone()).await.data(201);
        let change = made["change_id"].as_str().unwrap();
        review(app, &self.reviewer, change, "approve")
            .await
            .data(200);
        apply(app, &self.requester, change).await.data(200);
    }
}

/// Starts a service with a policy: changes need a number of approvals.
async fn governed(reviews: u32, more: Value) -> (TestApp, People) {
    let insecure = |config: &mut Config| config.providers.allow_insecure = true;
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let people = People::of(&app);
    let mut policy = json!({ "reviews_required": reviews });
    extend(&mut policy, more);
    set_policy(&app, &people.eve, policy).await.data(200);
    (app, people)
}

fn extend(value: &mut Value, more: Value) {
    let Value::Object(more) = more else {
        panic!("{more} is not an object");
    };
    value.as_object_mut().unwrap().extend(more);
}

async fn set_policy(app: &TestApp, token: &str, policy: Value) -> TestResponse {
    app.as_bearer(Method::PUT, token, POLICY, policy).await
}

/// Uploads a variant of the default compliance rules.
async fn rules(app: &TestApp, token: &str, version: &str) -> Value {
    let bytes = variant(Slot::Compliance, version);
    app.upload_component(token, "oak-rules", version, &bytes)
        .await
        .data(201)
}

/// Body of a request to activate a component.
pub fn activation(component: &Value) -> Value {
    json!({
        "change": { "action": "activate", "slot": component["slot"], "component_id": component["component_id"] },
        "reason": "Counsel has agreed",
        "source": { "url": "https://git.oak.example/rules", "commit": "4f1c2ab" },
    })
}

async fn request(app: &TestApp, token: &str, body: Value) -> TestResponse {
    app.post_with_bearer(token, CHANGES, body).await
}

async fn requested(app: &TestApp, token: &str, component: &Value) -> String {
    let made = request(app, token, activation(component)).await.data(201);
    made["change_id"].as_str().unwrap().to_owned()
}

async fn step(app: &TestApp, token: &str, change: &str, step: &str, body: Value) -> TestResponse {
    let path = format!("{CHANGES}/{change}/{step}");
    app.post_with_bearer(token, &path, body).await
}

async fn review(app: &TestApp, token: &str, change: &str, verdict: &str) -> TestResponse {
    let body = json!({ "verdict": verdict, "comment": "Seen" });
    step(app, token, change, "reviews", body).await
}

async fn apply(app: &TestApp, token: &str, change: &str) -> TestResponse {
    step(app, token, change, "apply", json!({})).await
}

#[track_caller]
fn code(answer: &TestResponse, status: u16) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    answer.json()["code"].as_str().unwrap().to_owned()
}

/// Returns the version of the active compliance rules.
async fn active(app: &TestApp, token: &str) -> String {
    let slots = app
        .get_with_bearer(token, "/component-slots")
        .await
        .data(200);
    let mut slots = slots.as_array().unwrap().iter();
    let slot = slots
        .find(|slot| slot["slot"] == "rules.compliance")
        .unwrap();
    let active = &slot["active"];

    format!(
        "{} {}",
        active["name"].as_str().unwrap(),
        active["version"].as_str().unwrap()
    )
}

async fn a_change_takes_effect_after_the_approval_of_others(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let people = People::of(&app);
    let component = rules(&app, &people.ada, "1.0.0").await;
    set_policy(&app, &people.eve, json!({ "reviews_required": 2 }))
        .await
        .data(200);
    let alone = json!({ "component_id": component["component_id"] });

    let path = "/component-slots/rules.compliance/activate";
    let refused = app.post_with_bearer(&people.eve, path, alone).await;
    assert_eq!(code(&refused, 409), "approval_required");

    let made = request(&app, &people.ben, activation(&component))
        .await
        .data(201);
    let change = made["change_id"].as_str().unwrap();
    assert_eq!(
        (&made["state"], &made["approvals"]),
        (&json!("open"), &json!(0))
    );
    assert_eq!(made["change"]["component"]["sha256"], component["sha256"]);

    let early = apply(&app, &people.ben, change).await;
    assert_eq!(code(&early, 409), "approvals_missing");
    assert_eq!(
        early.json()["details"],
        json!({ "given": 0, "required": 2 })
    );

    review(&app, &people.cleo, change, "approve")
        .await
        .data(200);

    // The same person twice is one person.
    let once = review(&app, &people.cleo, change, "approve")
        .await
        .data(200);
    assert_eq!(once["approvals"], 1);

    review(&app, &people.ben, change, "comment").await.data(200);
    assert_eq!(
        code(&apply(&app, &people.ben, change).await, 409),
        "approvals_missing"
    );

    let enough = review(&app, &people.dan, change, "approve").await.data(200);
    assert_eq!(
        (&enough["approvals"], &enough["approvals_required"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        active(&app, &people.eve).await.split(' ').next(),
        Some("holdfast-compliance")
    );

    let applied = apply(&app, &people.ben, change).await.data(200);
    assert_eq!(applied["state"], "applied");
    assert_eq!(active(&app, &people.eve).await, "oak-rules 1.0.0");

    let ledger = app
        .get_with_bearer(&people.eve, "/component-ledger")
        .await
        .data(200);
    let of_change: Vec<(&str, &str)> = ledger
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["details"]["change_id"] == change)
        .map(|entry| {
            (
                entry["action"].as_str().unwrap(),
                entry["actor"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        of_change,
        [
            ("change.requested", "user:ben@oak.example"),
            ("change.reviewed", "user:cleo@oak.example"),
            ("change.reviewed", "user:cleo@oak.example"),
            ("change.reviewed", "user:ben@oak.example"),
            ("change.reviewed", "user:dan@oak.example"),
            ("component.activated", "user:ben@oak.example"),
            ("change.applied", "user:ben@oak.example"),
        ]
    );

    let last = ledger.as_array().unwrap().last().unwrap();
    assert_eq!(
        last["details"]["approved_by"],
        json!(["user:cleo@oak.example", "user:dan@oak.example"])
    );

    // Going back is a change, too.
    let back = "/component-slots/rules.compliance/rollback";
    let refused = app.post_with_bearer(&people.eve, back, json!({})).await;
    assert_eq!(code(&refused, 409), "approval_required");

    let body = json!({
        "change": { "action": "roll_back", "slot": "rules.compliance" }, "reason": "Check 4 refuses paper",
    });
    let made = request(&app, &people.ada, body).await.data(201);
    let change = made["change_id"].as_str().unwrap();
    assert_eq!(made["change"]["activation_id"], applied["activation_id"]);

    for reviewer in [&people.cleo, &people.dan] {
        review(&app, reviewer, change, "approve").await.data(200);
    }

    apply(&app, &people.ada, change).await.data(200);
    assert_eq!(
        active(&app, &people.eve).await.split(' ').next(),
        Some("holdfast-compliance")
    );

    let listed = app
        .get_with_bearer(&people.eve, &format!("{CHANGES}?limit=1"))
        .await;
    assert_eq!(
        listed.json()["meta"],
        json!({ "limit": 1, "has_more": true })
    );

    let next = format!("{CHANGES}?starting_after={change}");
    let next = app.get_with_bearer(&people.eve, &next).await.data(200);
    assert_eq!(next[0]["activation_id"], applied["activation_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_takes_effect_after_the_approval_of_others_on_sqlite() {
    a_change_takes_effect_after_the_approval_of_others(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_takes_effect_after_the_approval_of_others_on_postgresql() {
    let database = postgres::new_database().await;
    a_change_takes_effect_after_the_approval_of_others(|config| {
        config.database_url = Some(database);
    })
    .await;
}

/// Attempts to make a change without the approval of others, and the answer to each. The table is that of
/// docs/proofs.md.
#[tokio::test(flavor = "multi_thread")]
async fn each_way_around_an_approval_is_refused_by_name() {
    let (app, people) = governed(1, json!({ "reviewers": ["compliance"] })).await;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut refused = |attempt, answer: &TestResponse| {
        let code = answer.json()["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        rows.push((attempt, format!("{} `{code}`", answer.status.as_u16())));
    };

    let first = rules(&app, &people.ada, "1.0.0").await;
    let second = rules(&app, &people.ada, "1.1.0").await;

    let path = "/component-slots/rules.compliance/activate";
    let body = json!({ "component_id": first["component_id"] });
    refused(
        "activate without a request",
        &app.post_with_bearer(&people.eve, path, body).await,
    );
    let path = "/component-slots/rules.compliance/rollback";
    refused(
        "roll back without a request",
        &app.post_with_bearer(&people.eve, path, json!({})).await,
    );

    refused(
        "weaken the policy without a request",
        &set_policy(&app, &people.eve, json!({})).await,
    );

    let change = requested(&app, &people.ben, &first).await;
    refused(
        "approve one’s own request",
        &review(&app, &people.ben, &change, "approve").await,
    );
    let again = app.person("Ben@Oak.example", "compliance");
    refused(
        "the same, spelled differently",
        &review(&app, &again, &change, "approve").await,
    );

    refused(
        "approve one’s own upload",
        &review(&app, &people.ada, &change, "approve").await,
    );
    let invite = json!({ "email": "second.ben@oak.example", "role": "compliance" });
    let owner = app.person("ben@oak.example", "owner");
    refused(
        "invite a reviewer without a request",
        &app.post_with_bearer(&owner, "/users", invite.clone()).await,
    );
    let receiver = WebhookReceiver::start().await;
    let file = format!("{}\n", app.org);
    receiver.answer(move |_, _| file.clone().into_response());
    let host = receiver.url.strip_prefix("http://").unwrap();
    let host = json!({ "host": host.strip_suffix("/hook").unwrap() });
    let path = "/organization/link-host";
    refused(
        "lead signing links to another host without a request",
        &app.as_bearer(Method::PUT, &owner, path, host).await,
    );

    // The invitation is from the time before the policy.
    app.set_organization(&[r#"component_changes={"reviews_required":0}"#]);
    app.post_with_bearer(&owner, "/users", invite)
        .await
        .data(201);
    app.set_organization(&[
        r#"component_changes={"reviews_required":1,"reviewers":["compliance"]}"#,
    ]);

    let second_ben = app.person("second.ben@oak.example", "compliance");
    refused(
        "approve as someone whom the requester invited",
        &review(&app, &second_ben, &change, "approve").await,
    );
    refused(
        "approve without a reviewer’s role",
        &review(&app, &people.eve, &change, "approve").await,
    );

    refused(
        "apply without approvals",
        &apply(&app, &people.ben, &change).await,
    );

    // A reviewer who has left.
    review(&app, &people.cleo, &change, "approve")
        .await
        .data(200);
    let revoked = operator_output(app.data.path(), &["token", "revoke", &people.cleo]);
    assert!(revoked.status.success());

    refused(
        "apply after the reviewer’s token was revoked",
        &apply(&app, &people.ben, &change).await,
    );
    let seen = app
        .get_with_bearer(&people.eve, &format!("{CHANGES}/{change}"))
        .await
        .data(200);
    assert_eq!(seen["reviews"][0]["void"], "revoked");

    // Two requests that were approved on the same base.
    let other = requested(&app, &people.ben, &second).await;
    for change in [&change, &other] {
        review(&app, &people.dan, change, "approve").await.data(200);
    }

    let (one, two) = tokio::join!(
        apply(&app, &people.ben, &change),
        apply(&app, &people.eve, &other)
    );
    let (won, lost) = if one.status == 200 {
        (one, two)
    } else {
        (two, one)
    };
    assert_eq!(won.status, 200, "{}", won.text());

    refused("apply the second of two approved changes", &lost);
    let id = if won.json()["data"]["change_id"] == change {
        &other
    } else {
        &change
    };
    refused("apply it once more", &apply(&app, &people.ben, id).await);

    let seen = app
        .get_with_bearer(&people.eve, &format!("{CHANGES}/{id}"))
        .await
        .data(200);
    assert_eq!(seen["state"], "outdated");

    // Another component under the same id.
    let third = rules(&app, &people.ada, "1.2.0").await;
    let change = requested(&app, &people.ben, &third).await;
    review(&app, &people.dan, &change, "approve")
        .await
        .data(200);
    app.change(
        "update component set version = '1.2.1' where component_id = $1",
        third["component_id"].as_str().unwrap(),
    )
    .await;

    refused(
        "apply another component than the approved one",
        &apply(&app, &people.ben, &change).await,
    );

    let mut body = activation(&second);
    body["emergency"] = true.into();
    let made = request(&app, &people.ben, body).await.data(201);
    let urgent = made["change_id"].as_str().unwrap();
    refused(
        "an emergency without a second person",
        &apply(&app, &people.ben, urgent).await,
    );

    review(&app, &people.dan, urgent, "refuse").await.data(200);
    refused(
        "apply a refused request",
        &apply(&app, &people.ben, urgent).await,
    );

    let fourth = rules(&app, &people.ada, "1.3.0").await;
    let change = requested(&app, &people.ben, &fourth).await;
    review(&app, &people.dan, &change, "approve")
        .await
        .data(200);
    let later = app.as_of(Duration::from_secs(336 * 3600)).await;
    let ben = later.person("ben@oak.example", "compliance");
    refused(
        "apply a request whose time is over",
        &apply(&later, &ben, &change).await,
    );

    let table: String = rows
        .iter()
        .map(|(attempt, answer)| format!("| {attempt} | {answer} |\n"))
        .collect();
    assert!(
        GUIDE.contains(&table),
        "docs/proofs.md has another table than\n{table}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_who_apply_a_change_makes_it() {
    let (app, people) = governed(1, json!({})).await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    let change = requested(&app, &people.ben, &component).await;
    let (one, two) = tokio::join!(
        review(&app, &people.cleo, &change, "approve"),
        review(&app, &people.dan, &change, "approve")
    );
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));

    let answers = tokio::join!(
        apply(&app, &people.ben, &change),
        apply(&app, &people.eve, &change)
    );
    let (won, lost) = match answers.0.status.as_u16() {
        200 => answers,
        _ => (answers.1, answers.0),
    };
    won.data(200);
    assert_eq!(code(&lost, 409), "change_closed");
    assert_eq!(lost.json()["details"], json!({ "state": "applied" }));

    let ledger = app
        .get_with_bearer(&people.eve, "/component-ledger")
        .await
        .data(200);
    let activated = ledger.as_array().unwrap().iter();
    assert_eq!(
        activated
            .filter(|entry| entry["action"] == "component.activated")
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_changes_by_a_request_once_it_requires_approvals() {
    let app = TestApp::start().await;
    let people = People::of(&app);
    let initial = app.get_with_bearer(&people.cleo, POLICY).await.data(200);
    assert_eq!(
        (&initial["reviews_required"], &initial["reviewers"]),
        (&json!(0), &json!(["admin", "compliance"]))
    );

    set_policy(&app, &people.cleo, json!({ "reviews_required": 1 }))
        .await
        .error(403);

    for (member, wrong) in [
        ("reviews_required", json!(11)),
        ("reviewers", json!([])),
        ("reviewers", json!(["member"])),
        ("shadow_valid_hours", json!(0)),
        ("expires_after_hours", json!(8761)),
    ] {
        let mut policy = json!({});
        policy[member] = wrong;
        let refused = set_policy(&app, &people.eve, policy.clone()).await;
        assert_eq!(refused.status, 422, "{policy}: {}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"][0], member);
    }

    let strict = json!({ "reviews_required": 1, "reviewers": ["compliance"] });
    set_policy(&app, &people.eve, strict).await.data(200);
    let looser = json!({
        "change": { "action": "policy", "policy": { "reviews_required": 0 } }, "reason": "We are two people",
    });
    request(&app, &people.cleo, looser.clone()).await.error(403);
    let mut wrong = looser.clone();
    wrong["change"]["policy"] = json!({ "reviews_required": 11 });

    let refused = request(&app, &people.eve, wrong).await;
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["change", "policy", "reviews_required"])
    );

    let made = request(&app, &people.eve, looser).await.data(201);
    let change = made["change_id"].as_str().unwrap();
    assert_eq!(
        made["change"]["previous"]["reviewers"],
        json!(["compliance"])
    );

    review(&app, &people.cleo, change, "approve")
        .await
        .data(200);
    apply(&app, &people.eve, change).await.data(200);
    let policy = app.get_with_bearer(&people.eve, POLICY).await.data(200);
    assert_eq!(policy["reviews_required"], 0);

    // A policy of the installation is the least.
    let app = app
        .another_node(|config| config.components.reviews_required = 1)
        .await;
    let policy = app.get_with_bearer(&people.eve, POLICY).await.data(200);
    assert_eq!(policy["reviews_required"], 1);

    let refused = set_policy(&app, &people.eve, json!({ "reviews_required": 0 })).await;
    assert_eq!(code(&refused, 409), "approval_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_comparison_is_made_by_the_service_and_gets_old() {
    let more = json!({ "shadow_required": true, "shadow_valid_hours": 1 });
    let (app, people) = governed(1, more).await;
    app.vaulted_envelope().await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    let made = request(&app, &people.ben, activation(&component))
        .await
        .data(201);
    let change = made["change_id"].as_str().unwrap();

    let compared = &made["comparison"];
    assert_eq!(
        (&compared["compared"], &compared["differing"]),
        (&json!(1), &json!(0))
    );

    let generated = &compared["generated"];
    assert!(generated["asked"].as_u64().unwrap() > 4_000, "{generated}");
    assert_eq!(
        (&generated["differing"], &generated["groups"]),
        (&json!(0), &json!([]))
    );

    review(&app, &people.cleo, change, "approve")
        .await
        .data(200);

    let app = app.as_of(Duration::from_secs(3_601)).await;
    let people = People::of(&app);
    assert_eq!(
        code(&apply(&app, &people.ben, change).await, 409),
        "shadow_stale"
    );

    let again = step(&app, &people.ben, change, "shadow", json!({}))
        .await
        .data(200);
    assert_ne!(again["comparison"]["at"], made["comparison"]["at"]);
    assert_eq!(
        (&again["approvals"], &again["reviews"][0]["void"]),
        (&json!(0), &json!("compared_again"))
    );
    assert_eq!(
        code(&apply(&app, &people.ben, change).await, 409),
        "approvals_missing"
    );

    review(&app, &people.cleo, change, "approve")
        .await
        .data(200);
    apply(&app, &people.ben, change).await.data(200);
    let closed = step(&app, &people.ben, change, "shadow", json!({})).await;
    assert_eq!(code(&closed, 409), "change_closed");
    assert_eq!(active(&app, &people.eve).await, "oak-rules 1.0.0");
}

/// Reviewers see what a candidate would have decided otherwise, by check and direction.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_shows_what_its_change_would_do() {
    let (app, people) = governed(1, json!({})).await;
    let vaulted = app.vaulted_envelope().await;
    let slots = "/component-slots";
    let components = operator(app.data.path(), &["component", "list"]);
    let first = app.get_with_bearer(&people.eve, slots).await.data(200);
    let mut components = components.as_array().unwrap().iter();
    let candidate = components.find(|one| one["name"] == "holdfast-compliance-ucc2022");
    let mut body = activation(candidate.unwrap());
    body["compare"] = true.into();

    let made = request(&app, &people.ben, body).await.data(201);
    let comparison = &made["comparison"];
    assert_eq!(
        (&comparison["compared"], &comparison["differing"]),
        (&json!(1), &json!(1))
    );

    let groups = comparison["groups"].as_array().unwrap();
    let mut found = groups.iter();
    let added = found.find(|group| group["check"] == "Assignee can identify itself");
    let added = added.unwrap_or_else(|| panic!("{groups:#?}"));
    let example = &added["example"];
    assert_eq!(example["record_id"], vaulted.as_str());

    // No party has accepted control of this record.
    assert_eq!(
        (&added["direction"], &example["before"], &example["after"]),
        (&json!("stricter"), &Value::Null, &json!(false))
    );
    assert!(!example["after_sentence"].as_str().unwrap().is_empty());
    assert!(groups.iter().all(|group| group["count"] == 1));

    // A built-in component is as old as its first start here.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let again = app.get_with_bearer(&people.eve, slots).await.data(200);
    for (one, other) in first
        .as_array()
        .unwrap()
        .iter()
        .zip(again.as_array().unwrap())
    {
        assert_eq!(one["active"]["created_at"], other["active"]["created_at"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emergency_takes_two_people_and_is_reviewed_afterwards() {
    let (app, people) = governed(2, json!({ "shadow_required": true })).await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    let mut body = activation(&component);
    body["emergency"] = true.into();
    let made = request(&app, &people.ben, body).await.data(201);
    assert_eq!(made["comparison"], Value::Null);

    let change = made["change_id"].as_str().unwrap();
    review(&app, &people.cleo, change, "approve")
        .await
        .data(200);
    let applied = apply(&app, &people.ben, change).await.data(200);
    assert_eq!(
        (&applied["state"], &applied["review_due"]),
        (&json!("applied"), &json!(true))
    );
    assert_eq!(active(&app, &people.eve).await, "oak-rules 1.0.0");

    let refused = review(&app, &people.ben, change, "approve").await;
    assert_eq!(code(&refused, 409), "requester_reviews");

    let reviewed = review(&app, &people.dan, change, "approve").await.data(200);
    assert_eq!(reviewed["review_due"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_withdrawn_or_refused() {
    let (app, people) = governed(1, json!({})).await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    let change = requested(&app, &people.ben, &component).await;
    step(&app, &people.cleo, &change, "withdraw", json!({}))
        .await
        .error(403);
    let withdrawn = step(&app, &people.ben, &change, "withdraw", json!({}))
        .await
        .data(200);
    assert_eq!(
        (&withdrawn["state"], &withdrawn["closed_by"]),
        (&json!("withdrawn"), &json!("user:ben@oak.example"))
    );

    for answer in [
        review(&app, &people.cleo, &change, "approve").await,
        step(&app, &people.eve, &change, "withdraw", json!({})).await,
        apply(&app, &people.eve, &change).await,
    ] {
        assert_eq!(code(&answer, 409), "change_closed");
    }

    let change = requested(&app, &people.ben, &component).await;
    let silent = json!({ "verdict": "refuse" });
    let silent = step(&app, &people.cleo, &change, "reviews", silent).await;
    assert_eq!(
        (silent.status.as_u16(), &silent.json()["details"][0]["path"]),
        (422, &json!(["comment"]))
    );

    let refused = review(&app, &people.cleo, &change, "refuse")
        .await
        .data(200);
    assert_eq!(
        (&refused["state"], &refused["reviews"][0]["comment"]),
        (&json!("refused"), &json!("Seen"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_request_is_refused_and_changes_nothing() {
    let (app, people) = governed(1, json!({})).await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    for (member, value, path) in [
        ("reason", json!(" "), json!(["reason"])),
        ("source", Value::Null, json!(["source"])),
        (
            "source",
            json!({ "url": "", "commit": "4f1c2ab" }),
            json!(["source", "url"]),
        ),
    ] {
        let mut body = activation(&component);
        body[member] = value;
        let refused = request(&app, &people.ben, body).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], path);
    }

    let mut body = activation(&component);
    body["change"]["component_id"] = "cmp_unknown".into();
    request(&app, &people.ben, body).await.error(404);
    let mut body = activation(&component);
    body["change"]["slot"] = "rules.lifecycle".into();
    request(&app, &people.ben, body).await.error(422);
    let back = json!({ "change": { "action": "roll_back", "slot": "rules.compliance" }, "reason": "Wrong" });
    request(&app, &people.ben, back).await.error(404);

    let listed = app.get_with_bearer(&people.eve, CHANGES).await.data(200);
    assert_eq!(listed, json!([]));

    let change = requested(&app, &people.ben, &component).await;
    let urgent = json!({
        "change": { "action": "policy", "policy": {} }, "reason": "Faster", "emergency": true,
    });
    let refused = request(&app, &people.eve, urgent).await;
    assert_eq!(
        (
            refused.status.as_u16(),
            &refused.json()["details"][0]["path"]
        ),
        (422, &json!(["emergency"]))
    );

    let foreign = app.other_admin();
    for path in ["", "/reviews", "/apply", "/withdraw", "/shadow"] {
        let path = format!("{CHANGES}/{change}{path}");
        let answer = if path.ends_with(&change) {
            app.get_with_bearer(&foreign, &path).await
        } else {
            app.post_with_bearer(&foreign, &path, json!({ "verdict": "approve" }))
                .await
        };
        answer.error(404);
    }

    let member = app.token("member");
    app.get_with_bearer(&member, CHANGES).await.error(403);
}

/// A change that is scheduled for later counts as one that came first.
#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_change_moves_the_base() {
    let (app, people) = governed(1, json!({})).await;
    let mut changes = Vec::new();
    for version in ["1.0.0", "1.1.0"] {
        let component = rules(&app, &people.ada, version).await;
        let mut body = activation(&component);
        body["change"]["effective_at"] = "2099-01-01T00:00:00.000Z".into();
        let made = request(&app, &people.ben, body).await.data(201);
        let change = made["change_id"].as_str().unwrap().to_owned();
        review(&app, &people.cleo, &change, "approve")
            .await
            .data(200);

        changes.push(change);
    }

    apply(&app, &people.ben, &changes[0]).await.data(200);
    let second = apply(&app, &people.ben, &changes[1]).await;
    assert_eq!(code(&second, 409), "base_moved");
}

/// The operator's own changes count, too: of the rules that a candidate was compared with, and of the policy.
#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_with_other_rules_does_not_count() {
    let (app, people) = governed(1, json!({ "shadow_required": true })).await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    let change = requested(&app, &people.ben, &component).await;
    review(&app, &people.cleo, &change, "approve")
        .await
        .data(200);
    let installed = operator(app.data.path(), &["component", "list"]);
    let mut installed = installed.as_array().unwrap().iter();
    let amended = installed.find(|one| one["name"] == "holdfast-compliance-ucc2022");
    let amended = amended.unwrap()["component_id"].as_str().unwrap();
    operator(
        app.data.path(),
        &["component", "activate", "rules.compliance", amended],
    );

    for _ in 0..500 {
        if active(&app, &people.eve).await.contains("ucc2022") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let stale = apply(&app, &people.ben, &change).await;
    assert_eq!(code(&stale, 409), "shadow_stale");

    app.set_organization(&[r#"component_changes={"reviews_required":3}"#]);
    let policy = app.get_with_bearer(&people.eve, POLICY).await.data(200);
    assert_eq!(policy["reviews_required"], 3);

    let ledger = app
        .get_with_bearer(&people.eve, "/component-ledger")
        .await
        .data(200);
    let last = ledger.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["action"], &last["actor"]),
        (&json!("policy.changed"), &json!("operator"))
    );
}

/// An organization's open requests, and the reviews of one, are limited.
#[tokio::test(flavor = "multi_thread")]
async fn requests_and_reviews_are_limited() {
    let (app, people) = governed(1, json!({})).await;
    let component = rules(&app, &people.ada, "1.0.0").await;
    let mut last = String::new();
    for _ in 0..100 {
        last = requested(&app, &people.ben, &component).await;
    }

    let refused = request(&app, &people.ben, activation(&component)).await;
    assert!(refused.error(409).contains("100 open change requests"));

    for _ in 0..200 {
        review(&app, &people.cleo, &last, "comment").await.data(200);
    }

    let refused = review(&app, &people.cleo, &last, "comment").await;
    assert!(refused.error(409).contains("200 reviews"));

    step(&app, &people.ben, &last, "withdraw", json!({}))
        .await
        .data(200);

    requested(&app, &people.ben, &component).await;
}

/// Settings of a provider wait sealed, and are gone when the request is closed.
#[tokio::test(flavor = "multi_thread")]
async fn the_secrets_of_a_requested_instance_are_never_shown() {
    let (app, people) = governed(1, json!({})).await;
    let zoe = app.person("zoe@oak.example", "admin");
    let plugin = variant(Slot::Signing, "plugin");
    let plugin = app
        .upload_component(&zoe, "plugin", "1.0.0", &plugin)
        .await
        .data(201);
    let body = json!({
        "change": {
            "action": "activate", "slot": "provider.signing", "component_id": plugin["component_id"],
            "instance": "oak-sign",
            "config": { "base_url": "https://api.sign.example", "secrets": { "api_key": "hush-4711" } },
        },
        "reason": "Our own service",
    });
    request(&app, &people.ben, body.clone()).await.error(403);

    let forgotten = request(&app, &people.eve, body.clone()).await.data(201);
    app.change(
        "update component_change set expires_at = requested_at where change_id = $1",
        forgotten["change_id"].as_str().unwrap(),
    )
    .await;

    // A node that starts does its periodic work at once.
    let app = app.as_of(Duration::ZERO).await;
    let sealed = "select cast(count(config) as text) from component_change";

    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while app.text_of(sealed).await != "0" {
        assert!(std::time::Instant::now() < deadline, "the settings stay");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let made = request(&app, &people.eve, body).await.data(201);
    assert_eq!(made["config"]["secrets"], json!(["api_key"]));

    let change = made["change_id"].as_str().unwrap();
    review(&app, &people.cleo, change, "approve")
        .await
        .data(200);
    apply(&app, &people.cleo, change).await.error(403);
    let stored = "select content || config from component_change where config is not null";
    let text = app.text_of(stored).await;
    assert!(!text.contains("hush-4711"));
    assert_eq!(app.text_of(sealed).await, "1");

    let applied = apply(&app, &people.eve, change).await.data(200);
    assert!(!applied.to_string().contains("hush-4711"));
    assert_eq!(app.text_of(sealed).await, "0");

    let ledger = app.get_with_bearer(&people.eve, "/component-ledger").await;
    assert!(!ledger.text().contains("hush-4711"));

    let slots = app
        .get_with_bearer(&people.eve, "/component-slots")
        .await
        .data(200);
    let mut slots = slots.as_array().unwrap().iter();
    let signing = slots
        .find(|slot| slot["slot"] == "provider.signing")
        .unwrap();
    assert_eq!(signing["history"][0]["instance"], "oak-sign");
    assert_eq!(
        signing["instances"],
        json!([{
            "instance": "oak-sign", "activation_id": applied["activation_id"],
            "component_id": plugin["component_id"], "name": "plugin", "version": "1.0.0",
        }])
    );
}
