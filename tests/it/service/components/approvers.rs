//! Who may approve: one person alone makes no reviewers where changes need the approval of others.

use std::collections::BTreeSet;

use axum::http::Method;
use axum::response::IntoResponse as _;
use holdfast::config::Config;
use holdfast::domain::component::Slot;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::registry::variant;
use crate::service::funding;
use crate::support::issuer::{CLIENT, FakeIssuer};
use crate::support::receiver::WebhookReceiver;
use crate::support::{TestApp, TestResponse, operator};

const CHANGES: &str = "/component-changes";

/// How a member of `PATCH /organization` is kept from giving one person a power that needs two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// Needs the approvals of the policy: it decides who signs in, and so who approves, releases, transfers or reads, or
    /// which contracts are funded.
    Approvals,
    /// Gives no one power: texts, looks, defaults of new envelopes, or pages that may show a widget to someone with a
    /// token.
    Powerless,
}

/// Every setting that users of an organization change, with its guard.
const SETTINGS: &[(&str, Guard)] = &[
    ("active_content", Guard::Powerless),
    ("auto_vault", Guard::Powerless),
    ("brand", Guard::Powerless),
    ("chattel_paper_jurisdiction", Guard::Powerless),
    ("consent", Guard::Powerless),
    ("consumer_disclosure", Guard::Powerless),
    ("contract_dates", Guard::Powerless),
    ("dates", Guard::Powerless),
    ("embed_origins", Guard::Powerless),
    ("envelope_ttl_days", Guard::Powerless),
    ("funding", Guard::Approvals),
    ("language", Guard::Powerless),
    ("quiet_hours", Guard::Powerless),
    ("refuse_unsigned_roles", Guard::Powerless),
    ("reminders", Guard::Powerless),
    ("reply_to", Guard::Powerless),
    ("require_access_demonstration", Guard::Powerless),
    ("require_all_pages_shown", Guard::Powerless),
    ("return_origins", Guard::Powerless),
    ("signature_wording", Guard::Powerless),
    ("single_sign_on", Guard::Approvals),
    ("tape_retention_days", Guard::Powerless),
];

fn insecure(config: &mut Config) {
    config.providers.allow_insecure = true;
}

/// An organization that requires one approval for changes, with two owners known to the operator.
struct Governed {
    app: TestApp,
    olga: String,
    rolf: String,
}

impl Governed {
    async fn start() -> Self {
        let app = TestApp::with(insecure, OrgSettings::default()).await;
        let governed = Self {
            olga: app.person("olga@oak.example", "owner"),
            rolf: app.person("rolf@oak.example", "owner"),
            app,
        };
        governed.require(1).await;
        governed
    }

    async fn require(&self, reviews: u32) {
        let policy = json!({ "reviews_required": reviews });
        self.app
            .as_bearer(Method::PUT, &self.olga, "/component-policy", policy)
            .await
            .data(200);
    }

    async fn request(&self, token: &str, change: Value) -> TestResponse {
        let body = json!({ "change": change, "reason": "Agreed on Monday" });
        self.app.post_with_bearer(token, CHANGES, body).await
    }

    async fn approve(&self, token: &str, change: &Value) -> TestResponse {
        let id = change["change_id"].as_str().unwrap();
        let path = format!("{CHANGES}/{id}/reviews");
        let body = json!({ "verdict": "approve" });
        self.app.post_with_bearer(token, &path, body).await
    }

    /// Requests a change as one owner, approves it as the other and applies it.
    async fn agree(&self, change: Value) {
        let made = self.request(&self.olga, change).await.data(201);
        self.approve(&self.rolf, &made).await.data(200);
        let path = format!("{CHANGES}/{}/apply", made["change_id"].as_str().unwrap());
        let apply = self.app.post_with_bearer(&self.olga, &path, json!({}));
        apply.await.data(200);
    }

    /// Requests a change and applies it as the same owner.
    async fn alone(&self, change: Value) {
        let made = self.request(&self.olga, change).await.data(201);
        let path = format!("{CHANGES}/{}/apply", made["change_id"].as_str().unwrap());
        let apply = self.app.post_with_bearer(&self.olga, &path, json!({}));
        apply.await.data(200);
    }

    async fn invite(&self, token: &str, email: &str, role: &str) -> TestResponse {
        let body = json!({ "email": email, "role": role });
        self.app.post_with_bearer(token, "/users", body).await
    }

    async fn user(&self, email: &str) -> Value {
        let users = self.app.get_with_bearer(&self.olga, "/users").await;
        let users = users.data(200);
        let mut users = users.as_array().unwrap().iter();
        users.find(|user| user["email"] == email).unwrap().clone()
    }
}

fn needs_approval(answer: &TestResponse) {
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(answer.json()["code"], "approval_required");
}

#[test]
fn every_setting_is_known_with_its_guard() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let document = std::fs::read_to_string(file).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    let members = &document["components"]["schemas"]["ChangeOrganization"]["properties"];
    let members: BTreeSet<&str> = members
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();

    let known: BTreeSet<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
    assert_eq!(members, known);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_with_power_needs_the_approvals_of_the_policy() {
    let governed = Governed::start().await;
    let (app, olga) = (&governed.app, &governed.olga);
    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    for (name, guard) in SETTINGS {
        // The brand is shown with a digest, and changed with a file.
        let value = match *name {
            "brand" => json!({}),
            "funding" => json!("enforce"),
            name => shown[name].clone(),
        };
        let change = json!({ *name: value });

        let answer = app.as_bearer(Method::PATCH, olga, "/organization", change);
        match guard {
            Guard::Approvals => needs_approval(&answer.await),
            Guard::Powerless => {
                answer.await.data(200);
            }
        }
    }
}

/// Lenders rely on it that a contract which their rules stop is not sent.
#[tokio::test(flavor = "multi_thread")]
async fn one_person_does_not_end_the_funding_checks_alone() {
    let governed = Governed::start().await;
    let (app, olga) = (&governed.app, &governed.olga);
    let change = json!({ "action": "set_funding", "funding": "enforce" });
    let late = json!({ "action": "set_funding", "funding": "warn" });
    let late = governed.request(olga, late).await.data(201);
    governed.approve(&governed.rolf, &late).await.data(200);
    governed.agree(change).await;

    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    assert_eq!(shown["funding"], "enforce");
    // The same again changes nothing.
    let path = "/organization";
    let same = json!({ "funding": "enforce" });
    app.as_bearer(Method::PATCH, olga, path, same)
        .await
        .data(200);
    let off = json!({ "funding": "off" });
    needs_approval(&app.as_bearer(Method::PATCH, olga, path, off).await);

    // Another setting came first.
    let apply = format!("{CHANGES}/{}/apply", late["change_id"].as_str().unwrap());
    let outdated = app.post_with_bearer(olga, &apply, json!({})).await;
    assert_eq!(outdated.json()["code"], "base_moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_subscribes_to_no_funding_pack_alone() {
    let governed = Governed::start().await;
    let (app, olga) = (&governed.app, &governed.olga);
    let (bank, pack) = funding::lender(app).await;
    let invitations = format!("/funding-packs/{pack}/invitations");
    let invitation = json!({ "organization_id": app.org });
    app.post_with_bearer(&bank, &invitations, invitation)
        .await
        .data(200);
    let path = format!("/funding-packs/{pack}/subscription");
    needs_approval(&app.post_with_bearer(olga, &path, json!({})).await);

    let mut change = json!({ "action": "subscribe_funding_pack", "pack_id": pack, "version": 9 });
    let refused = governed.request(olga, change.clone()).await;
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["change", "version"])
    );
    change["version"] = json!(1);
    governed.agree(change.clone()).await;
    let packs = app.get_with_bearer(olga, "/funding-packs").await.data(200);
    assert_eq!(packs["packs"][0]["pinned_version"], 1);

    // One person alone cannot leave it, either.
    let end = json!({ "subscribed": false });
    needs_approval(&app.post_with_bearer(olga, &path, end).await);
    change["subscribed"] = false.into();
    let late = governed.request(olga, change.clone()).await.data(201);
    governed.approve(&governed.rolf, &late).await.data(200);
    governed.agree(change).await;
    let packs = app.get_with_bearer(olga, "/funding-packs").await.data(200);
    assert_eq!(packs["packs"][0]["subscribed"], false);

    let apply = format!("{CHANGES}/{}/apply", late["change_id"].as_str().unwrap());
    let outdated = app.post_with_bearer(olga, &apply, json!({})).await;
    assert_eq!(outdated.json()["code"], "base_moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_owner_names_no_issuer_alone() {
    let governed = Governed::start().await;
    let issuer = FakeIssuer::start().await;
    let settings = json!({
        "issuer": issuer.url, "client_id": CLIENT, "client_secret": "hidden-1", "default_role": "compliance",
    });
    let (app, olga) = (&governed.app, &governed.olga);
    let body = json!({ "single_sign_on": settings });
    needs_approval(
        &app.as_bearer(Method::PATCH, olga, "/organization", body)
            .await,
    );

    let change = json!({ "action": "single_sign_on", "single_sign_on": settings });
    let made = governed.request(olga, change.clone()).await;
    assert!(!made.text().contains("hidden-1"), "{}", made.text());
    assert_eq!(made.data(201)["change"]["client_secret"], "set");

    governed.agree(change).await;
    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    assert_eq!(shown["single_sign_on"]["client_id"], CLIENT);

    // Two people set it, so neither of them let its users in alone.
    assert_eq!(shown["single_sign_on"]["set_by"], Value::Null);

    governed
        .agree(json!({ "action": "single_sign_on", "single_sign_on": null }))
        .await;
    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    assert_eq!(shown["single_sign_on"], Value::Null);
}

/// The host sees what signers enter.
#[tokio::test(flavor = "multi_thread")]
async fn one_admin_leads_signing_links_to_no_other_host_alone() {
    let governed = Governed::start().await;
    let (app, olga) = (&governed.app, &governed.olga);
    let receiver = WebhookReceiver::start().await;
    let file = format!("{}\n", app.org);
    receiver.answer(move |_, _| file.clone().into_response());
    let host = receiver.url.strip_prefix("http://").unwrap();
    let host = host.strip_suffix("/hook").unwrap();

    let path = "/organization/link-host";
    let body = json!({ "host": host });
    needs_approval(&app.as_bearer(Method::PUT, olga, path, body).await);
    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    assert_eq!(shown["link_host"], Value::Null);

    let change = json!({ "action": "link_host", "link_host": host });
    governed.agree(change.clone()).await;
    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    assert_eq!(shown["link_host"]["host"], host);

    // One person ends the use of a host that was lost.
    app.web(Method::DELETE, path, Value::Null).await.data(200);

    // A host that names the organization no more is not set, although it was approved.
    let made = governed.request(olga, change).await.data(201);
    governed.approve(&governed.rolf, &made).await.data(200);
    receiver.answer(|_, _| "This domain is for sale".into_response());
    let apply = format!("{CHANGES}/{}/apply", made["change_id"].as_str().unwrap());
    let refused = app.post_with_bearer(olga, &apply, json!({})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["change", "link_host"])
    );
    let shown = app.get_with_bearer(olga, "/organization").await.data(200);
    assert_eq!(shown["link_host"], Value::Null);
}

/// A waiver lets a contract be funded without an attachment that the lender asked for.
#[tokio::test(flavor = "multi_thread")]
async fn one_person_waives_no_stipulation_alone() {
    let governed = Governed::start().await;
    let (app, olga) = (&governed.app, &governed.olga);
    let id = app.sent_envelope().await["envelope_id"].clone();
    let path = format!("/partner/envelopes/{}/stipulations", id.as_str().unwrap());
    let list = json!({ "stipulations": [{ "kind": "insurance" }, { "kind": "proof_of_income" }] });
    app.put(&path, list).await.data(200);

    let waiver = format!("{path}/insurance/waiver");
    let reason = json!({ "reason": "The dealer has it" });
    needs_approval(&app.post(&waiver, reason).await);
    // To take it from the list would be the same without a reason.
    let shorter = json!({ "stipulations": [{ "kind": "proof_of_income" }] });
    needs_approval(&app.put(&path, shorter).await);
    let shown = app.get(&path).await.data(200);
    assert_eq!(shown["stipulations"][0]["state"], "open");

    let change = json!({ "action": "waive_stipulation", "envelope_id": id, "kind": "insurance" });
    let second = governed.request(olga, change.clone()).await.data(201);
    governed.approve(&governed.rolf, &second).await.data(200);
    governed.agree(change.clone()).await;
    let shown = app.get(&path).await.data(200);
    assert_eq!(shown["stipulations"][0]["state"], "waived");
    assert_eq!(shown["stipulations"][0]["reason"], "Agreed on Monday");

    // The approved change is made, and nothing is left to ask for.
    let apply = format!("{CHANGES}/{}/apply", second["change_id"].as_str().unwrap());
    let outdated = app.post_with_bearer(olga, &apply, json!({})).await;
    assert_eq!(outdated.status, 409);
    assert_eq!(outdated.json()["code"], "base_moved");
    let again = governed.request(olga, change).await;
    assert_eq!(again.error(404), "Stipulation not found");

    let neither = json!({ "action": "waive_stipulation", "kind": "insurance" });
    let refused = governed.request(olga, neither).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["change", "envelope_id"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_drops_no_stipulation_of_a_template_alone() {
    let governed = Governed::start().await;
    let app = &governed.app;
    let template = app.contract_template().await["template_id"].clone();
    let path = format!(
        "/partner/templates/{}/stipulations",
        template.as_str().unwrap()
    );
    let list = json!({ "stipulations": [{ "kind": "insurance" }] });
    app.put(&path, list).await.data(200);
    // More needs no approval.
    let longer = json!({ "stipulations": [{ "kind": "insurance" }, { "kind": "title" }] });
    app.put(&path, longer).await.data(200);
    let none = json!({ "stipulations": [] });
    needs_approval(&app.put(&path, none).await);

    let change =
        json!({ "action": "waive_stipulation", "template_id": template, "kind": "insurance" });
    governed.agree(change).await;
    let shown = app.get(&path).await.data(200);
    let kinds: Vec<&Value> = shown["stipulations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["kind"])
        .collect();
    assert_eq!(kinds, ["title"]);
}

/// Who may waive alone elsewhere may ask for it here, and nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_requests_and_applies_a_waiver() {
    let governed = Governed::start().await;
    let app = &governed.app;
    let sender = app.person("sue@oak.example", "sender");
    let id = app.sent_envelope().await["envelope_id"].clone();
    let path = format!("/partner/envelopes/{}/stipulations", id.as_str().unwrap());
    let list = json!({ "stipulations": [{ "kind": "insurance" }] });
    app.put(&path, list).await.data(200);

    let change = json!({ "action": "waive_stipulation", "envelope_id": id, "kind": "insurance" });
    let made = governed.request(&sender, change).await.data(201);
    governed.approve(&governed.rolf, &made).await.data(200);
    let request = format!("{CHANGES}/{}", made["change_id"].as_str().unwrap());
    let shown = app.get_with_bearer(&sender, &request).await.data(200);
    assert_eq!(shown["approvals"], 1);
    let apply = format!("{request}/apply");
    let applied = app.post_with_bearer(&sender, &apply, json!({})).await;
    assert_eq!(applied.data(200)["state"], "applied");

    let policy = json!({ "action": "policy", "policy": {} });
    let refused = governed.request(&sender, policy.clone()).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let made = governed.request(&governed.olga, policy).await.data(201);
    let other = format!("{CHANGES}/{}", made["change_id"].as_str().unwrap());
    let refused = app.get_with_bearer(&sender, &other).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
}

/// A pack decides about the contracts of others.
#[tokio::test(flavor = "multi_thread")]
async fn one_person_publishes_no_funding_pack_alone() {
    let governed = Governed::start().await;
    let (app, olga) = (&governed.app, &governed.olga);
    let rules = variant(Slot::Funding, "rules of the bank");
    let component = app.upload_component(olga, "bank-funding", "1.0.0", &rules);
    let component = component.await.data(201)["component_id"].clone();

    let pack = json!({ "name": "Retail", "component_id": component, "description": "Terms" });
    needs_approval(
        &app.post_with_bearer(olga, "/funding-packs", pack.clone())
            .await,
    );
    let mut change = pack;
    change["action"] = "publish_funding_pack".into();
    governed.agree(change).await;
    let packs = app.get_with_bearer(olga, "/funding-packs").await.data(200);
    assert_eq!(packs["packs"][0]["name"], "Retail");
    assert_eq!(packs["packs"][0]["versions"][0]["description"], "Terms");

    let id = packs["packs"][0]["pack_id"].clone();
    let versions = format!("/funding-packs/{}/versions", id.as_str().unwrap());
    let next = json!({ "component_id": component, "description": "Shorter terms" });
    needs_approval(&app.post_with_bearer(olga, &versions, next.clone()).await);
    let mut change = next;
    change["action"] = "publish_funding_pack".into();
    change["pack_id"] = id;
    let late = governed.request(olga, change.clone()).await.data(201);
    governed.approve(&governed.rolf, &late).await.data(200);
    governed.agree(change.clone()).await;
    let packs = app.get_with_bearer(olga, "/funding-packs").await.data(200);
    assert_eq!(packs["packs"][0]["versions"][1]["version"], 2);

    // Another version came first.
    let apply = format!("{CHANGES}/{}/apply", late["change_id"].as_str().unwrap());
    let outdated = app.post_with_bearer(olga, &apply, json!({})).await;
    assert_eq!(outdated.json()["code"], "base_moved");

    // Who uploaded the component does not approve it, even for another requester.
    let made = governed.request(&governed.rolf, change.clone()).await;
    let made = made.data(201);
    let refused = governed.approve(olga, &made).await;
    assert_eq!(refused.json()["code"], "uploader_reviews");

    for (member, value, path) in [
        ("name", json!("Other"), json!(["change", "name"])),
        (
            "component_id",
            json!("cmp_1"),
            json!(["change", "component_id"]),
        ),
    ] {
        let mut wrong = change.clone();
        wrong[member] = value;
        let refused = governed.request(olga, wrong).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_makes_no_reviewer_alone() {
    let governed = Governed::start().await;
    let olga = &governed.olga;
    for role in ["compliance", "admin", "owner"] {
        needs_approval(&governed.invite(olga, "ada@oak.example", role).await);
    }

    let sender = governed.invite(olga, "ben@oak.example", "sender").await;
    let ben = sender.data(201)["user_id"].clone();
    let path = format!("/users/{}", ben.as_str().unwrap());
    let body = json!({ "role": "compliance" });
    let alone = governed.app.as_bearer(Method::PATCH, olga, &path, body);
    needs_approval(&alone.await);

    governed
        .agree(json!({ "action": "invite_user", "email": "Ada@oak.example", "role": "compliance" }))
        .await;
    let ada = governed.user("ada@oak.example").await;
    assert_eq!(ada["role"], "compliance");

    let by = ada["created_by"].as_str().unwrap();
    assert!(by.starts_with("change:"), "{by}");

    governed
        .agree(json!({ "action": "change_role", "user_id": ben, "role": "compliance" }))
        .await;
    assert_eq!(governed.user("ben@oak.example").await["role"], "compliance");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_of_one_chain_of_invitations_do_not_approve_for_each_other() {
    let governed = Governed::start().await;
    let app = &governed.app;
    let known = ["user", "invite", "--org", app.org.as_str(), "--email"];
    let olga = [&known[..], &["olga@oak.example", "--role", "owner"]].concat();
    operator(app.data.path(), &olga);

    // The chain is from the time before the policy.
    governed
        .agree(json!({ "action": "policy", "policy": {} }))
        .await;

    // A request that one person applies alone lets a user in like an invitation.
    governed
        .alone(json!({ "action": "invite_user", "email": "ada@oak.example", "role": "admin" }))
        .await;
    let ada = app.person("ada@oak.example", "admin");
    governed
        .invite(&ada, "ben@oak.example", "admin")
        .await
        .data(201);

    governed.require(1).await;

    let ben = app.person("ben@oak.example", "admin");
    let change = json!({ "action": "policy", "policy": { "reviews_required": 2 } });
    for (requester, reviewer) in [(&governed.olga, &ben), (&ben, &governed.olga)] {
        let made = governed.request(requester, change.clone()).await.data(201);
        let refused = governed.approve(reviewer, &made).await;
        assert_eq!(refused.json()["code"], "invitee_reviews");
        governed.approve(&governed.rolf, &made).await.data(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_one_chain_of_invitations_are_one_approval() {
    let governed = Governed::start().await;
    let app = &governed.app;
    governed
        .agree(json!({ "action": "policy", "policy": {} }))
        .await;
    governed
        .invite(&governed.olga, "ada@oak.example", "admin")
        .await
        .data(201);

    governed.require(2).await;

    let change = json!({ "action": "policy", "policy": { "reviews_required": 3 } });
    let made = governed.request(&governed.rolf, change).await.data(201);
    governed.approve(&governed.olga, &made).await.data(200);
    let ada = app.person("ada@oak.example", "admin");
    let refused = governed.approve(&ada, &made).await;
    assert_eq!(refused.json()["code"], "invitee_reviews");
}
