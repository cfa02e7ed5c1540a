//! Disputes: a claim on the collateral of another party, and the steps of parties and operators.

use std::time::{Duration, Instant};

use holdfast::config::Config;
use holdfast::domain::id::OrgId;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::{Party, code, designate};
use crate::support::{TestApp, TestResponse, envelope_body, form, operator, pdf};

const VIN: &str = "1M8GDM9AXKP042788";

fn vin() -> Value {
    json!([{ "kind": "vin", "value": VIN }])
}

/// Signs a contract about the vehicle here, and returns its id once it is in the vault.
async fn contract(app: &TestApp) -> String {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["collateral"] = vin();
    let sent = app.post("/partner/envelopes", body).await.data(201);
    form::sign(app, sent["sign_url"].as_str().unwrap()).await;
    let id = sent["envelope_id"].as_str().unwrap().to_owned();
    app.wait_for(&id, "vaulted").await;
    id
}

/// A stranger's paper with the number of the vehicle, under the control of an accomplice.
async fn squatted(app: &TestApp) -> (Party, String) {
    squatted_with(app, &pdf::with_lines(&["Any page"]), vin()).await
}

async fn squatted_with(app: &TestApp, paper: &[u8], collateral: Value) -> (Party, String) {
    let (stranger, accomplice) = (Party::new(app).await, Party::new(app).await);
    let id = stranger.vaulted(app, paper, collateral).await;
    stranger.pledge(app, &id, &accomplice).await;
    (stranger, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_paper_does_not_hold_up_a_contract_that_was_signed_here() {
    let app = TestApp::start().await;
    let (stranger, paper) = squatted(&app).await;
    let bank = Party::new(&app).await;
    let id = contract(&app).await;
    designate(&app, &id, &bank.org).await.data(200);
    bank.act(&app, &id, "accept", json!({})).await.data(200);

    // Both sides see that it was so, and neither is named to the other.
    let own = app.wait_for_entry(&id, "control.disputed").await;
    assert_eq!(
        (&own["step"], &own["kind"]),
        (&json!("outranked"), &json!("vin"))
    );

    let deadline = Instant::now() + Duration::from_secs(60);
    let theirs = loop {
        let found = stranger.entries(&app, &paper, "control.disputed").await;
        if let Some(found) = found.into_iter().next() {
            break found;
        }
        assert!(Instant::now() < deadline, "the other side is not told");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(theirs["step"], "outranked");
    assert_eq!(theirs["reference"], own["reference"]);
    assert!(!own.to_string().contains(stranger.org.as_str()), "{own}");
    assert!(!theirs.to_string().contains(app.org.as_str()), "{theirs}");

    app.wait_until_idle().await;
    assert_eq!(
        stranger
            .entries(&app, &paper, "control.disputed")
            .await
            .len(),
        1
    );

    // A contract that was signed here holds up papers and further contracts.
    let fund = Party::new(&app).await;
    let later = stranger
        .vaulted(&app, &pdf::with_lines(&["Another page"]), vin())
        .await;
    let refused = stranger.designate(&app, &later, &fund).await;
    assert_eq!(code(&refused, 409), "already_controlled");

    let again = contract(&app).await;
    let refused = designate(&app, &again, &fund.org).await;
    assert_eq!(code(&refused, 409), "already_controlled");

    app.events_fit_their_schemas(1).await;
}

/// The holder of the parties' copy of a contract can upload it.
#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_copy_of_a_contract_does_not_hold_it_up() {
    let app = TestApp::start().await;
    let id = contract(&app).await;
    let copy = app.copy(&id).await;
    squatted_with(&app, &copy, json!([])).await;
    let bank = Party::new(&app).await;
    designate(&app, &id, &bank.org).await.data(200);
    let told = app.wait_for_entry(&id, "control.disputed").await;
    assert_eq!(
        (&told["step"], &told["kind"]),
        (&json!("outranked"), &json!("document"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_papers_are_limited_in_number() {
    let two = |config: &mut Config| config.control.unsigned_claims = 2;
    let app = TestApp::with(two, OrgSettings::default()).await;
    let (dealer, other) = (Party::new(&app).await, Party::new(&app).await);
    let serial = |number: i64| json!({ "kind": "serial", "value": format!("Deere {number}") });
    let both = json!([serial(1), serial(2)]);
    dealer.create(&app, both).await.data(201);
    let refused = dealer.create(&app, json!([serial(3)])).await;
    assert!(refused.error(429).contains("collateral of 2 documents"));

    dealer.create(&app, json!([])).await.data(201);
    other.create(&app, json!([serial(3)])).await.data(201);

    // Contracts that are signed here are not counted.
    for _ in 0..3 {
        contract(&app).await;
    }
}

/// A dispute of two papers, and the node of its operator.
struct OpenDispute {
    /// The node where the operator's users sign in.
    node: TestApp,
    operates: OrgId,
    dealer: Party,
    record: String,
    claimant: Party,
    reference: String,
}

impl OpenDispute {
    /// About two papers with one number.
    async fn open() -> (TestApp, Self) {
        let papers = [&["Any page"], &["The contract of the owner"]];
        Self::about(papers.map(|lines| pdf::with_lines(lines)), vin()).await
    }

    async fn about([theirs, paper]: [Vec<u8>; 2], collateral: Value) -> (TestApp, Self) {
        let app = TestApp::start().await;
        let created = operator(app.data.path(), &["org", "create", "--name", "Operator"]);
        let operates = OrgId::parse(created["org_id"].as_str().unwrap()).unwrap();
        let owned = |config: &mut Config| config.console.operator_org = Some(operates.clone());
        let node = app.another_node(owned).await;
        let (claimant, _) = squatted_with(&app, &theirs, collateral.clone()).await;
        let (dealer, bank) = (Party::new(&app).await, Party::new(&app).await);
        let record = dealer.vaulted(&app, &paper, collateral).await;
        let refused = dealer.designate(&app, &record, &bank).await;
        assert_eq!(code(&refused, 409), "already_controlled");

        let reference = refused.json()["details"]["reference"]
            .as_str()
            .unwrap()
            .to_owned();
        let dispute = Self {
            node,
            operates,
            dealer,
            record,
            claimant,
            reference,
        };

        (app, dispute)
    }

    fn path(&self) -> String {
        format!("/partner/control/disputes/{}", self.reference)
    }

    async fn states(&self, party: &Party, statement: &str) -> TestResponse {
        let body = json!({ "statement": statement });
        self.node.post_as(&party.key, &self.path(), body).await
    }

    /// Calls an operation of operators as a user of theirs.
    async fn operator(&self, user: &str, step: &str, body: Value) -> TestResponse {
        let path = format!("/installation/disputes/{}/suspension{step}", self.reference);
        let token = self.node.token_at(&self.operates, user, "owner");
        self.node.post_with_bearer(&token, &path, body).await
    }

    async fn lift(&self, user: &str) -> TestResponse {
        let path = format!("/installation/disputes/{}/suspension", self.reference);
        let token = self.node.token_at(&self.operates, user, "owner");
        self.node
            .as_bearer(axum::http::Method::DELETE, &token, &path, Value::Null)
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_dispute_state_their_case_to_the_operator_only() {
    let (app, dispute) = OpenDispute::open().await;
    let stated = dispute
        .states(&dispute.dealer, "We sold this car on 20 November.")
        .await;
    let stated = stated.data(200);
    assert_eq!(
        (&stated["side"], &stated["other_side_stated"]),
        (&json!("record"), &json!(false))
    );

    let theirs = app.get_as(&dispute.claimant.key, &dispute.path()).await;
    assert!(!theirs.text().contains("20 November"), "{}", theirs.text());

    let theirs = theirs.data(200);
    assert_eq!(
        (&theirs["side"], &theirs["other_side_stated"]),
        (&json!("claim"), &json!(true))
    );

    dispute
        .states(&dispute.claimant, "It is ours.")
        .await
        .data(200);
    let entries = dispute
        .dealer
        .entries(&app, &dispute.record, "control.disputed")
        .await;
    let steps: Vec<&Value> = entries.iter().map(|entry| &entry["step"]).collect();
    assert_eq!(steps, ["stated_by_record", "stated_by_claim"]);

    // Others know nothing of it, and an empty statement is none.
    let stranger = Party::new(&app).await;
    app.get_as(&stranger.key, &dispute.path()).await.error(404);
    dispute.states(&stranger, "Ours!").await.error(404);
    app.get("/partner/control/disputes/dsp_1").await.error(404);
    dispute.states(&dispute.dealer, "").await.error(422);

    let token = dispute
        .node
        .token_at(&dispute.operates, "olga@operator.example", "owner");
    let listed = dispute
        .node
        .get_with_bearer(&token, "/installation/disputes")
        .await
        .data(200);
    assert_eq!(
        listed[0]["record"]["statement"],
        "We sold this car on 20 November."
    );
    assert_eq!(listed[0]["claim"]["statement"], "It is ours.");
    assert_eq!(
        listed[0]["claim"]["originator"]["organization_id"],
        dispute.claimant.org.as_str()
    );

    assert_eq!(listed[0]["claim"]["signed_here"], false);
    let own = app.web_admin();
    dispute
        .node
        .get_with_bearer(own, "/installation/disputes")
        .await
        .error(404);

    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_operators_suspend_a_claim_and_both_sides_see_it() {
    let (app, dispute) = OpenDispute::open().await;
    let (olga, otto) = ("olga@operator.example", "otto@operator.example");
    let reason = json!({ "reason": "The paper is no contract." });
    dispute
        .operator(olga, "/approve", json!({}))
        .await
        .error(409);

    dispute
        .operator(olga, "", json!({ "reason": "" }))
        .await
        .error(422);
    let requested = dispute.operator(olga, "", reason.clone()).await.data(200);
    assert_eq!(requested["suspension"]["suspended_at"], Value::Null);

    dispute.operator(otto, "", reason).await.error(409);

    // One person alone changes nothing.
    let alone = dispute.operator(olga, "/approve", json!({})).await;
    assert_eq!(code(&alone, 409), "requester_reviews");

    let bank = Party::new(&app).await;
    let refused = dispute.dealer.designate(&app, &dispute.record, &bank).await;
    assert_eq!(code(&refused, 409), "already_controlled");

    let suspended = dispute
        .operator(otto, "/approve", json!({}))
        .await
        .data(200);
    assert!(
        suspended["suspension"]["suspended_at"].is_string(),
        "{suspended}"
    );

    for party in [&dispute.dealer, &dispute.claimant] {
        let seen = app.get_as(&party.key, &dispute.path()).await.data(200);
        assert_eq!(seen["suspension"]["reason"], "The paper is no contract.");
        assert!(seen["suspension"]["suspended_at"].is_string(), "{seen}");
        assert!(!seen.to_string().contains("operator.example"), "{seen}");
    }

    dispute
        .dealer
        .designate(&app, &dispute.record, &bank)
        .await
        .data(200);

    // The protection comes back with one operator; a claim that others have by now stays.
    dispute.lift(olga).await.data(200);
    dispute.lift(olga).await.error(409);
    let refused = bank.act(&app, &dispute.record, "accept", json!({})).await;
    assert_eq!(code(&refused, 409), "already_controlled");

    let entries = dispute
        .dealer
        .entries(&app, &dispute.record, "control.disputed")
        .await;
    let steps: Vec<&Value> = entries.iter().map(|entry| &entry["step"]).collect();
    assert_eq!(
        steps,
        ["suspension_requested", "suspended", "suspension_lifted"]
    );
}

/// The fingerprint of the document is the one that the refused act computed.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_by_an_equal_document_is_suspended_too() {
    let paper = pdf::with_lines(&["One lease"]);
    let (app, dispute) = OpenDispute::about([paper.clone(), paper], json!([])).await;
    let reason = json!({ "reason": "A stolen copy." });
    dispute
        .operator("olga@operator.example", "", reason)
        .await
        .data(200);

    dispute
        .operator("otto@operator.example", "/approve", json!({}))
        .await
        .data(200);
    let bank = Party::new(&app).await;
    dispute
        .dealer
        .designate(&app, &dispute.record, &bank)
        .await
        .data(200);
}

/// Two invitees of one person could be that person.
#[tokio::test(flavor = "multi_thread")]
async fn users_whom_one_person_let_in_are_no_two_operators() {
    let (_, dispute) = OpenDispute::open().await;
    let owner = dispute
        .node
        .token_at(&dispute.operates, "boss@operator.example", "owner");
    for email in ["olga@operator.example", "otto@operator.example"] {
        let invited = json!({ "email": email, "role": "owner" });
        dispute
            .node
            .post_with_bearer(&owner, "/users", invited)
            .await
            .data(201);
    }

    let reason = json!({ "reason": "The paper is no contract." });
    dispute
        .operator("olga@operator.example", "", reason)
        .await
        .data(200);

    for second in ["otto@operator.example", "boss@operator.example"] {
        let refused = dispute.operator(second, "/approve", json!({})).await;
        assert_eq!(code(&refused, 409), "invitee_reviews", "{second}");
    }

    dispute
        .operator("uma@operator.example", "/approve", json!({}))
        .await
        .data(200);
}
