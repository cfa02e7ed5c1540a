//! Who takes part in an envelope: approvers, witnesses, groups of the signing order, recipients who do
//! not sign, and corrections while the envelope is out.

use axum::body::Body;
use axum::http::{Method, Request};
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use crate::service::retention::holds;
use crate::support::browser::{EmulatedScreen, TestBrowser};
use crate::support::{CONTRACT, TestApp, TestResponse, envelope_body, form, pdf};

const ROLES: [&str; 3] = ["Buyer", "Co-buyer", "Lender"];

/// Starts a service that leaves envelopes completed.
async fn service() -> TestApp {
    let settings = OrgSettings {
        auto_vault: false,
        ..OrgSettings::default()
    };
    TestApp::with(|_| {}, settings).await
}

/// Creates a template in which each role has one signature.
async fn template(app: &TestApp, roles: &[&str]) -> Value {
    let field = |(role, row): (&&str, u32)| {
        let area = json!({ "page": 1, "x": 0.1, "y": 0.1 * f64::from(row), "w": 0.3, "h": 0.03 });
        json!({
            "name": format!("{role} signature"), "type": "signature", "role": role, "required": true,
            "placement": { "mode": "absolute", "areas": [area] },
        })
    };
    let fields: Vec<Value> = roles.iter().zip(1..).map(field).collect();

    app.template(CONTRACT, &json!(fields)).await
}

fn person(role: &str) -> Value {
    let name = role.to_lowercase();
    json!({ "email": format!("{name}@example.com"), "name": format!("{role} Person"), "role": role })
}

fn with(mut person: Value, member: &str, value: impl Into<Value>) -> Value {
    person[member] = value.into();
    person
}

/// Creates an envelope for the signers, with other members of the request.
async fn create(app: &TestApp, roles: &[&str], signers: Value, more: Value) -> TestResponse {
    let template = template(app, roles).await;
    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = signers;
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    app.post("/partner/envelopes", body).await
}

/// Sends a document with an optional note and a signature of the buyer.
async fn sent_with_note(app: &TestApp) -> (String, Value) {
    let document = pdf::with_lines(&[
        "{{Note;type=text;role=Buyer}}",
        "{{Sign;type=signature;role=Buyer;required=true}}",
    ]);
    let template = app
        .upload(
            "/partner/templates",
            "application/pdf",
            &document,
            &[("name", "One")],
        )
        .await
        .data(200);

    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([person("Buyer")]);
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    (
        envelope["envelope_id"].as_str().unwrap().to_owned(),
        envelope,
    )
}

async fn sent(app: &TestApp, roles: &[&str], signers: Value, more: Value) -> String {
    let created = create(app, roles, signers, more).await.data(201);
    created["envelope_id"].as_str().unwrap().to_owned()
}

/// Returns a link for the signer with a role.
async fn link(app: &TestApp, id: &str, role: &str) -> String {
    let people = people(app, id).await;
    let mut signers = people["signers"].as_array().unwrap().iter();
    let index = signers.position(|signer| signer["role"] == role).unwrap();
    let links = app
        .get(&format!("/partner/envelopes/{id}/signing-links"))
        .await;
    let links = links.data(200);
    let url = &links["signers"][index]["embed_url"];

    url.as_str().unwrap().to_owned()
}

async fn people(app: &TestApp, id: &str) -> Value {
    let people = app.get(&format!("/partner/envelopes/{id}/signers")).await;
    people.data(200)
}

async fn correct(app: &TestApp, id: &str, role: &str, body: Value) -> TestResponse {
    let path = format!("/partner/envelopes/{id}/signers/{role}");
    app.patch(&path, body).await
}

async fn ledger(app: &TestApp, id: &str) -> Vec<Value> {
    let custody = app.get(&format!("/partner/envelopes/{id}/custody")).await;
    custody.data(200)["entries"].as_array().unwrap().clone()
}

/// Returns the addresses of the mails with these words, in any order.
fn addressees(mails: &[String], words: &str) -> Vec<String> {
    let mails = mails.iter().map(|mail| mail.replace("=\r\n", ""));
    let mut found: Vec<String> = mails
        .filter(|mail| mail.contains(words))
        .filter_map(|mail| {
            let to = mail.lines().find_map(|line| line.strip_prefix("To: "))?;
            let address = to.rsplit('<').next()?;
            Some(address.trim_end_matches('>').to_owned())
        })
        .collect();
    found.sort();

    found
}

#[tokio::test(flavor = "multi_thread")]
async fn signers_of_one_group_sign_in_any_order_before_the_next_group() {
    let app = service().await;
    let signers = json!([
        with(person("Lender"), "order", 2),
        with(person("Buyer"), "order", 1),
        with(person("Co-buyer"), "order", 1),
    ]);
    let id = sent(&app, &ROLES, signers, json!({})).await;

    let mails = app.wait_for_mails(2).await;
    let asked = addressees(&mails, "asks you to sign");
    assert_eq!(asked, ["buyer@example.com", "co-buyer@example.com"]);

    let lender = link(&app, &id, "Lender").await;
    let page = form::open(&app, &lender).await.text();
    assert!(page.contains("not your turn"), "{page}");

    form::sign(&app, &link(&app, &id, "Co-buyer").await).await;
    let page = form::open(&app, &lender).await.text();
    assert!(page.contains("not your turn"), "{page}");

    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    let mails = app.wait_for_mails(3).await;

    // The service asks no signer of the first group twice.
    let asked = addressees(&mails, "asks you to sign");
    assert_eq!(
        asked,
        [
            "buyer@example.com",
            "co-buyer@example.com",
            "lender@example.com"
        ]
    );

    form::sign(&app, &lender).await;
    app.wait_for(&id, "completed").await;
    let people = people(&app, &id).await;
    let order: Vec<(&str, i64)> = people["signers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|signer| {
            (
                signer["role"].as_str().unwrap(),
                signer["order"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(order, [("Buyer", 1), ("Co-buyer", 1), ("Lender", 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_does_not_fit_is_refused() {
    let app = service().await;
    let roles = ["Buyer", "Lender"];
    let some = json!([with(person("Buyer"), "order", 1), person("Lender")]);
    let refused = create(&app, &roles, some, json!({})).await;
    assert_eq!(refused.json()["details"][0]["code"], "signing_order");

    let all = json!([
        with(person("Buyer"), "order", 1),
        with(person("Lender"), "order", 1)
    ]);
    let unordered = json!({ "preserve_signing_order": false });
    let refused = create(&app, &roles, all, unordered).await;
    assert_eq!(refused.json()["details"][0]["code"], "signing_order");

    let zero = json!([
        with(person("Buyer"), "order", 0),
        with(person("Lender"), "order", 1)
    ]);
    assert_eq!(create(&app, &roles, zero, json!({})).await.status, 422);

    let first = json!([with(person("Buyer"), "kind", "witness"), person("Lender")]);
    let refused = create(&app, &roles, first, json!({})).await;
    assert_eq!(refused.json()["details"][0]["code"], "witness_first");

    let unknown = json!([with(person("Buyer"), "kind", "editor"), person("Lender")]);
    assert_eq!(create(&app, &roles, unknown, json!({})).await.status, 422);

    let listed = app.get("/partner/envelopes").await;
    assert_eq!(listed.json()["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_without_fields_approves_before_the_signer() {
    let app = service().await;
    let signers = json!([with(person("Manager"), "kind", "approver"), person("Buyer")]);
    let id = sent(&app, &["Buyer"], signers, json!({})).await;
    let mails = app.wait_for_mails(1).await;
    assert_eq!(
        addressees(&mails, "asks you to approve"),
        ["manager@example.com"]
    );

    let buyer = link(&app, &id, "Buyer").await;
    let page = form::open(&app, &buyer).await.text();
    assert!(page.contains("not your turn"), "{page}");

    let manager = link(&app, &id, "Manager").await;
    let page = form::open(&app, &manager).await.text();
    assert!(
        page.contains("I approve this document electronically"),
        "{page}"
    );
    assert!(page.contains("I mean this as my approval."), "{page}");

    let signature = "What I enter as my signature is meant to be my signature.";
    assert!(!page.contains(signature), "{page}");
    assert!(page.contains(">Approve</button>"), "{page}");

    let without = form::press(&app, &manager, "finish", &[]).await;
    assert_eq!(without.status, 422, "{}", without.text());

    form::sign(&app, &manager).await;
    form::sign(&app, &buyer).await;
    app.wait_for(&id, "completed").await;
    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["kind"], "approver");
    assert_eq!(people["signers"][0]["status"], "completed");

    let stored = app
        .post(
            &format!("/partner/envelopes/{id}/vault-in-signed"),
            json!({}),
        )
        .await;
    assert_eq!(stored.status, 200, "{}", stored.text());

    let compliance = app
        .get(&format!("/partner/envelopes/{id}/compliance"))
        .await;
    assert_eq!(compliance.data(200)["compliance"]["score"], 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_needs_a_role_with_fields() {
    let app = service().await;
    let signers = json!([person("Manager"), person("Buyer")]);
    let refused = create(&app, &["Buyer"], signers, json!({})).await;
    assert_eq!(refused.json()["details"][0]["code"], "unknown_role");
    // An approver does not get the place of a signer by another spelling of the role.
    let signers = json!([person("Buyer"), with(person("buyer"), "kind", "approver")]);
    let refused = create(&app, &["Buyer"], signers, json!({})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_is_named_as_one() {
    let app = service().await;
    let signers = json!([person("Buyer"), with(person("Lender"), "kind", "witness")]);
    let id = sent(&app, &["Buyer", "Lender"], signers, json!({})).await;
    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    let mails = app.wait_for_mails(2).await;
    assert_eq!(
        addressees(&mails, "sign as a witness"),
        ["lender@example.com"]
    );

    let page = form::open(&app, &link(&app, &id, "Lender").await).await;
    assert!(page.text().contains("signs as a witness"));
}

/// Returns the buyer, and the lender as witness of the buyer's signature.
fn witness_and_buyer() -> Value {
    let witness = with(person("Lender"), "kind", "witness");
    json!([with(witness, "witness_of", "Buyer"), person("Buyer")])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_of_a_signer_signs_afterwards_and_states_name_and_address() {
    let app = service().await;
    let unordered = json!({ "preserve_signing_order": false });
    let roles = ["Buyer", "Lender"];
    let id = sent(&app, &roles, witness_and_buyer(), unordered).await;
    let witness = link(&app, &id, "Lender").await;
    let page = form::open(&app, &witness).await.text();
    assert!(page.contains("not your turn"), "{page}");
    let early = form::press(&app, &witness, "finish", &[]).await;
    assert_eq!(early.status, 409, "{}", early.text());

    // The witness is invited by the signature, although there is no signing order.
    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    let mails = app.wait_for_mails(2).await;
    assert_eq!(
        addressees(&mails, "sign as a witness"),
        ["lender@example.com"]
    );

    let page = form::open(&app, &witness).await.text();
    assert!(
        page.contains("You sign as a witness of the signature of the party Buyer."),
        "{page}"
    );

    let stating = |address: &str| -> Vec<(String, String)> {
        let others = form::filled(&page).into_iter();
        let others = others.filter(|(name, _)| name != "witness-address");
        let stated = ("witness-address".to_owned(), address.to_owned());
        others.chain([stated]).collect()
    };
    let refused = form::press(&app, &witness, "finish", &stating(" ")).await;
    assert_eq!(refused.status, 422);
    let page_again = refused.text();
    assert!(page_again.contains("#witness-address"), "{page_again}");

    let mut entries = stating("1 Main Street, Dallas");
    let mut controls = entries.iter_mut();
    let stated = controls.find(|(name, _)| name == "witness-name").unwrap();
    let own = std::mem::replace(&mut stated.1, " BUYER  person".to_owned());
    let refused = form::press(&app, &witness, "finish", &entries).await;
    assert_eq!(refused.status, 422);
    let page_again = refused.text();
    assert!(page_again.contains("#witness-name"), "{page_again}");

    let mut controls = entries.iter_mut();
    let stated = controls.find(|(name, _)| name == "witness-name").unwrap();
    stated.1 = own;
    let signed = form::press(&app, &witness, "finish", &entries).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    app.wait_for(&id, "completed").await;

    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["witness_of"], "Buyer");
    let ledger = ledger(&app, &id).await;
    let of_witness = |entry: &&Value| {
        entry["action"] == "signer.completed" && entry["details"]["witness_of"] == "Buyer"
    };
    let completed: Vec<&Value> = ledger.iter().filter(of_witness).collect();
    assert_eq!(completed.len(), 1);
    assert_eq!(
        completed[0]["details"]["witness"],
        json!({ "name": "Jordan Lee", "address": "1 Main Street, Dallas" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_names_whose_signature_was_witnessed_and_the_stated_address() {
    let app = TestApp::start().await;
    let witness = with(person("Lender"), "kind", "witness");
    let signers = json!([person("Buyer"), with(witness, "witness_of", "Buyer")]);
    let id = sent(&app, &["Buyer", "Lender"], signers, json!({})).await;
    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    form::sign(&app, &link(&app, &id, "Lender").await).await;

    let timeline = timeline(&app, &id).await;
    assert!(timeline[0].get("notes").is_none(), "{timeline}");
    assert_eq!(
        timeline[1]["notes"],
        json!([
            "witness of the signature of Buyer Person (Buyer)",
            "stated as witness the name Jordan Lee and the address Jordan Lee, which were not checked",
        ])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_of_nobody_is_refused() {
    let app = service().await;
    let roles = ["Buyer", "Lender"];
    let witness = || with(person("Lender"), "kind", "witness");
    let refused_with = async |signers: Value, code: &str| {
        let refused = create(&app, &roles, signers, json!({})).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        let issue = refused.json()["details"][0].clone();
        assert_eq!(issue["code"], code, "{issue}");
        assert_eq!(issue["path"][2], "witness_of", "{issue}");
    };

    let signer = with(person("Lender"), "witness_of", "Buyer");
    refused_with(json!([person("Buyer"), signer]), "witness_of_unused").await;
    let of_nobody = with(witness(), "witness_of", "Seller");
    refused_with(json!([person("Buyer"), of_nobody]), "unknown_role").await;
    let of_itself = with(witness(), "witness_of", "Lender");
    refused_with(json!([person("Buyer"), of_itself]), "unknown_role").await;

    let listed = app.get("/partner/envelopes").await;
    assert_eq!(listed.json()["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_witnesses_a_signature_of_their_own() {
    let app = service().await;
    let roles = ["Buyer", "Lender"];
    let witness = with(person("Lender"), "kind", "witness");
    let witness = with(witness, "witness_of", "Buyer");
    let itself = with(witness.clone(), "email", "BUYER@example.com");
    let refused = create(&app, &roles, json!([person("Buyer"), itself]), json!({})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(refused.json()["details"][0]["code"], "own_witness");

    // Neither of the two gets the place of the other later.
    let signers = json!([person("Buyer"), witness]);
    let id = sent(&app, &roles, signers, json!({ "allow_delegation": true })).await;
    for (role, email) in [
        ("Lender", "Buyer@example.com"),
        ("Buyer", "lender@example.com"),
    ] {
        let body = json!({ "email": email, "name": "Ann Oak" });
        let refused = correct(&app, &id, role, body).await;
        let why = format!("{email} would witness their own signature");
        assert_eq!(refused.json()["code"], "own_witness");
        assert_eq!(refused.error(409), why);
    }
    let lender = [
        ("delegate-name".to_owned(), "Ann Oak".to_owned()),
        ("delegate-email".to_owned(), "lender@example.com".to_owned()),
    ];
    let buyer = link(&app, &id, "Buyer").await;
    let refused = form::press(&app, &buyer, "delegate", &lender).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let page = refused.text();
    assert!(
        page.contains("This person is a witness of this signature"),
        "{page}"
    );
    assert!(page.contains("value=\"Ann Oak\""), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_member_learns_which_rule_refuses_a_delegation() {
    let app = service().await;
    let witness = with(person("Lender"), "kind", "witness");
    let witness = with(witness, "witness_of", "Buyer");
    let more = json!({ "allow_delegation": true, "recipients": [substitute("bob")] });
    let signers = json!([manager("Buyer"), witness]);
    let id = sent(&app, &["Buyer", "Lender"], signers, more).await;
    let buyer = link(&app, &id, "Buyer").await;
    for (email, why) in [
        (
            "lender@example.com",
            "This person is a witness of this signature",
        ),
        (
            "bob@example.com",
            "This person belongs to your group already",
        ),
    ] {
        let named = [
            ("delegate-name".to_owned(), "Ann Oak".to_owned()),
            ("delegate-email".to_owned(), email.to_owned()),
        ];
        let refused = form::press(&app, &buyer, "delegate", &named).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains(why), "{}", refused.text());
    }
    assert_eq!(
        people(&app, &id).await["signers"][0]["email"],
        "buyer@example.com"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_witness_beside_the_signer_signs_on_the_same_device() {
    let app = TestApp::start().await;
    let witness = json!({
        "email": "buyer@example.com", "name": "Witness", "role": "Lender",
        "kind": "witness", "witness_of": "Buyer", "same_device": true,
    });
    let signers = json!([person("Buyer"), witness]);
    let id = sent(&app, &["Buyer", "Lender"], signers, json!({})).await;

    // Before the signature, there is nothing to witness.
    let buyer = link(&app, &id, "Buyer").await;
    let pass = format!("{buyer}/witness");
    let early = form::press(&app, &pass, "", &[]).await;
    assert_eq!(
        early.headers["location"].to_str().unwrap(),
        form::path(&buyer)
    );

    form::sign(&app, &buyer).await;
    let page = form::open(&app, &buyer).await.text();
    for said in [
        "A witness of your signature still has to sign.",
        "Open the form of the witness",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }

    let passed = form::press(&app, &pass, "", &[]).await;
    assert_eq!(passed.status, 303, "{}", passed.text());
    let beside = passed.headers["location"].to_str().unwrap();

    // The signer holds the device, and could decide for the witness.
    let page = form::open(&app, beside).await.text();
    let values = [
        ("reason", "Too expensive"),
        ("sender-question", "Who signs?"),
        ("delegate-name", "Sam Lee"),
        ("delegate-email", "sam@example.com"),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for action in ["decline", "ask", "later", "delegate"] {
        assert!(!page.contains(&format!("value=\"{action}\"")), "{page}");
        let refused = form::press(&app, beside, action, &values).await;
        assert_eq!(refused.status, 409, "{action}: {}", refused.text());
    }
    assert!(!page.contains("at the end of the form"), "{page}");
    let paper = "For that, do not sign here: leave this page, and ask";
    assert!(page.contains(paper), "{page}");
    form::sign(&app, beside).await;

    // The record has the name that the witness stated beside the one that the sender gave.
    let timeline = timeline(&app, &id).await;
    assert_eq!(
        timeline[1]["notes"].as_array().unwrap().len(),
        4,
        "{timeline}"
    );
    assert_eq!(
        timeline[1]["notes"][0],
        "shares the e-mail address with Buyer Person (Buyer)"
    );
    assert_eq!(
        timeline[1]["notes"][2],
        "the form was opened on the page of Buyer Person, after that signature; who filled it in was not checked"
    );
    let people = people(&app, &id).await;
    assert_eq!(people["signers"][1]["name"], "Witness");

    let after = form::press(&app, &pass, "", &[]).await;
    assert_eq!(
        after.headers["location"].to_str().unwrap(),
        form::path(&buyer)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_witness_opens_ten_times_a_day() {
    let app = service().await;
    let witness = with(person("Lender"), "kind", "witness");
    let witness = with(with(witness, "witness_of", "Buyer"), "same_device", true);
    let signers = json!([person("Buyer"), witness]);
    let id = sent(&app, &["Buyer", "Lender"], signers, json!({})).await;
    let buyer = link(&app, &id, "Buyer").await;
    form::sign(&app, &buyer).await;

    let pass = format!("{buyer}/witness");
    for at in 0..11 {
        let answer = form::press(&app, &pass, "", &[]).await;
        let expected = if at < 10 { 303 } else { 429 };
        assert_eq!(answer.status, expected, "{}", answer.text());
    }
    let entries = ledger(&app, &id).await;
    let passed = entries
        .iter()
        .filter(|entry| entry["action"] == "signer.device_passed");
    assert_eq!(passed.count(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_witness_of_a_signer_without_a_code_signs_on_the_same_device() {
    let app = service().await;
    let witness = with(person("Lender"), "kind", "witness");
    let of_buyer = with(witness.clone(), "witness_of", "Buyer");
    for beside in [
        person("Lender"),
        witness,
        with(of_buyer, "access", "email_code"),
    ] {
        let signers = json!([person("Buyer"), with(beside, "same_device", true)]);
        let refused = create(&app, &["Buyer", "Lender"], signers, json!({})).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["code"], "same_device");
    }
}

/// Returns the signers of the certificate, once the envelope is vaulted.
async fn timeline(app: &TestApp, id: &str) -> Value {
    app.wait_for(id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/vault/certificate");
    app.get(&path).await.data(200)["signer_timeline"].clone()
}

fn manager(role: &str) -> Value {
    with(person(role), "group", "Managers")
}

fn substitute(name: &str) -> Value {
    json!({
        "email": format!("{name}@example.com"), "name": format!("{name} Person"),
        "kind": "substitute", "group": "Managers",
    })
}

/// Sends a document to managers, and returns its id with the link of the substitute `bob`.
async fn sent_to_managers(app: &TestApp, roles: &[&str]) -> (String, String) {
    let signers: Vec<Value> = roles.iter().map(|role| manager(role)).collect();
    let more = json!({ "preserve_signing_order": false, "recipients": [substitute("bob")] });
    let id = sent(app, roles, json!(signers), more).await;

    let mails = app.wait_for_mails(roles.len() + 1).await;
    assert_eq!(
        addressees(&mails, "asks your group to sign"),
        ["bob@example.com"]
    );
    let mut mails = mails.iter().map(|mail| mail.replace("=\r\n", ""));
    let mail = mails.find(|mail| mail.contains("asks your group to sign"));
    let mail = mail.unwrap();
    assert!(mail.contains("You belong to the group Managers."), "{mail}");
    (id, form::link_in(&mail))
}

/// Presses the button that takes the place at a position.
async fn take(app: &TestApp, reading: &str, position: &str) {
    let place = [("position".to_owned(), position.to_owned())];
    let taken = form::press(app, &format!("{reading}/take"), "", &place).await;
    assert_eq!(taken.status, 303, "{}", taken.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn any_member_of_a_group_signs_and_the_record_names_who_did() {
    let app = TestApp::start().await;
    let (id, bob) = sent_to_managers(&app, &["Buyer"]).await;
    let buyer = link(&app, &id, "Buyer").await;
    let page = form::open(&app, &bob).await.text();
    for said in [
        "You can sign this document for the group Managers",
        "Your signature counts instead of theirs.",
        "Sign in the place of Buyer Person (Buyer)",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }

    // Each link follows its person.
    take(&app, &bob, "0").await;
    let (signing, reading) = (
        bob.replace("/view/", "/"),
        buyer.replace("/sign/", "/sign/view/"),
    );
    for (link, page) in [(&bob, &signing), (&buyer, &reading)] {
        let led = form::fetch(&app, link).await;
        assert_eq!(led.status, 303, "{}", led.text());
        assert_eq!(led.headers["location"].to_str().unwrap(), form::path(page));
    }

    form::sign(&app, &signing).await;
    let page = form::open(&app, &reading).await.text();
    assert!(page.contains("bob Person, Buyer: done"), "{page}");
    assert!(!page.contains("<form"), "{page}");

    let timeline = timeline(&app, &id).await;
    assert_eq!(timeline.as_array().unwrap().len(), 1);
    assert_eq!(
        timeline[0]["notes"],
        json!([
            "takes the place of Buyer Person, as a substitute named by the sender for the group Managers"
        ])
    );

    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["email"], "bob@example.com");
    assert_eq!(people["recipients"][0]["email"], "buyer@example.com");
    let entries = ledger(&app, &id).await;
    let mut changes = entries
        .iter()
        .filter(|entry| entry["action"] == "signer.changed");
    let changed = changes.next().unwrap();
    assert_eq!(changed["actor"], "signer:bob@example.com");
    assert_eq!(changed["details"]["group"], "Managers");
    assert!(changes.next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_taken_back_until_somebody_has_signed() {
    let app = service().await;
    let (id, bob) = sent_to_managers(&app, &["Buyer"]).await;
    let buyer = link(&app, &id, "Buyer").await;
    take(&app, &bob, "0").await;

    take(&app, &buyer.replace("/sign/", "/sign/view/"), "0").await;
    form::sign(&app, &buyer).await;
    app.wait_for(&id, "completed").await;

    // Too late: the page offers no place, and the request changes nothing.
    let page = form::open(&app, &bob).await.text();
    assert!(!page.contains("<form"), "{page}");
    take(&app, &bob, "0").await;
    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["email"], "buyer@example.com");
    assert_eq!(people["signers"][0]["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_members_sign_and_nobody_twice() {
    let app = service().await;
    let (id, bob) = sent_to_managers(&app, &["Buyer", "Lender"]).await;
    let body = json!({ "email": "BOB@example.com", "name": "Bob" });
    let twice = correct(&app, &id, "Buyer", body).await;
    assert_eq!(
        twice.error(409),
        "BOB@example.com is a member of the group already"
    );

    take(&app, &bob, "1").await;
    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    form::sign(&app, &bob.replace("/view/", "/")).await;
    app.wait_for(&id, "completed").await;

    let people = people(&app, &id).await;
    let signers = people["signers"].as_array().unwrap().iter();
    let emails: Vec<&Value> = signers.map(|signer| &signer["email"]).collect();
    assert_eq!(emails, ["buyer@example.com", "bob@example.com"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_without_places_or_with_one_person_twice_is_refused() {
    let app = service().await;
    let refused_with = async |signer: Value, recipient: Value, code: &str| {
        let more = json!({ "recipients": [recipient] });
        let refused = create(&app, &["Buyer"], json!([signer]), more).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["code"], code);
    };

    refused_with(person("Buyer"), substitute("bob"), "unknown_group").await;
    let reader = with(substitute("bob"), "kind", "viewer");
    refused_with(manager("Buyer"), reader, "group_unused").await;
    let of_nobody = json!({ "email": "b@example.com", "name": "Bob", "kind": "substitute" });
    refused_with(manager("Buyer"), of_nobody, "group_required").await;
    let myself = with(substitute("bob"), "email", "BUYER@example.com");
    refused_with(manager("Buyer"), myself, "duplicate_member").await;
    let guarded = with(manager("Buyer"), "access", "email_code");
    refused_with(guarded, substitute("bob"), "access_in_group").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_reads_along_and_a_cc_gets_the_copy() {
    let app = service().await;
    let recipients = json!({ "recipients": [
        { "email": "agent@example.com", "name": "Ann Agent", "kind": "viewer" },
        { "email": "office@example.com", "name": "Back office" },
    ] });
    let signers = json!([person("Buyer"), person("Lender")]);
    let id = sent(&app, &["Buyer", "Lender"], signers, recipients).await;

    let mails = app.wait_for_mails(2).await;
    assert_eq!(addressees(&mails, "shows you"), ["agent@example.com"]);

    let mail = mails
        .iter()
        .find(|mail| mail.contains("shows you"))
        .unwrap();
    let url = form::link_in(mail);
    let page = form::open(&app, &url).await;
    assert_eq!(page.status, 200);

    let page = page.text();
    for said in [
        "You can read this document. You do not need to sign it.",
        "Buyer Person, Buyer: has not opened it",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }

    assert!(!page.contains("<form"), "{page}");

    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    let text = form::open(&app, &format!("{url}/pages/1.txt")).await.text();
    assert!(text.contains("Buyer signature: Jordan Lee"), "{text}");

    let picture = form::open(&app, &format!("{url}/pages/1.png?w=600")).await;
    assert_eq!(picture.status, 200);
    assert_eq!(
        form::open(&app, &format!("{url}/copy.pdf")).await.status,
        404
    );
    // A link for reading signs nothing.

    let as_signer = url.replace("/view/", "/");
    assert_eq!(form::open(&app, &as_signer).await.status, 404);

    form::sign(&app, &link(&app, &id, "Lender").await).await;
    app.wait_for(&id, "completed").await;
    let copy = form::open(&app, &format!("{url}/copy.pdf")).await;
    assert_eq!(copy.status, 200);

    // The viewer, the cc, both signers and the creator.
    let mails = app.wait_for_mails(3 + 4).await;
    let told = addressees(&mails, "Completed:");
    for address in [
        "agent@example.com",
        "office@example.com",
        "buyer@example.com",
    ] {
        assert!(told.contains(&address.to_owned()), "{address}: {told:?}");
    }

    let people = people(&app, &id).await;
    assert_eq!(people["recipients"][1]["kind"], "cc");
    assert_eq!(people["signers"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_document_is_closed_for_its_viewer() {
    let app = service().await;
    let recipients = json!({ "recipients": [
        { "email": "agent@example.com", "name": "Ann Agent", "kind": "viewer" },
    ] });
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), recipients).await;
    let mails = app.wait_for_mails(2).await;
    let mail = mails
        .iter()
        .find(|mail| mail.contains("shows you"))
        .unwrap();
    let url = form::link_in(mail);

    app.post(&format!("/partner/envelopes/{id}/void"), json!({}))
        .await
        .data(200);
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("withdrawn"), "{page}");
    assert_eq!(
        form::open(&app, &format!("{url}/pages/1.png")).await.status,
        404
    );

    let mails = app.wait_for_mails(4).await;
    assert!(addressees(&mails, "Withdrawn:").contains(&"agent@example.com".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_person_signs_after_a_correction_and_old_links_die() {
    let app = service().await;
    let (id, envelope) = sent_with_note(&app).await;
    let old = envelope["sign_url"].as_str().unwrap().to_owned();
    form::save(&app, &old, &[("Note", "private words")]).await;
    app.wait_for_mails(1).await;

    let change =
        json!({ "email": "sam@example.com", "name": "Sam Lee", "reason": "Ann is abroad" });
    let changed = correct(&app, &id, "Buyer", change).await.data(200);
    assert_eq!(changed["email"], "sam@example.com");
    assert_eq!(changed["status"], "pending");

    let page = form::open(&app, &old).await;
    assert_ne!(page.status, 200, "{}", page.text());

    let mails = app.wait_for_mails(2).await;
    assert!(addressees(&mails, "asks you to sign").contains(&"sam@example.com".to_owned()));

    let new = link(&app, &id, "Buyer").await;
    let page = form::open(&app, &new).await.text();
    assert!(
        page.contains("Sam Lee") && !page.contains("private words"),
        "{page}"
    );

    form::sign(&app, &new).await;
    app.wait_for(&id, "completed").await;

    let entries = ledger(&app, &id).await;
    let entry = entries
        .iter()
        .find(|entry| entry["action"] == "signer.changed");
    let details = &entry.unwrap()["details"];
    assert_eq!(details["previous"]["email"], "buyer@example.com");
    assert_eq!(details["signer"]["email"], "sam@example.com");
    assert_eq!(details["reason"], "Ann is abroad");

    let viewed = entries
        .iter()
        .filter(|entry| entry["action"] == "signer.viewed");
    assert_eq!(viewed.count(), 2);
    assert!(
        app.event_types(&id)
            .await
            .contains(&"signer.changed".to_owned())
    );
}

/// A request that began before the correction, such as one over a slow connection, signs nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_person_cannot_finish_a_request_that_was_under_way() {
    let app = service().await;
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), json!({})).await;
    let url = link(&app, &id, "Buyer").await;
    let path = url.splitn(4, '/').nth(3).unwrap();
    let consent = form::tick_of(&form::open(&app, &url).await.text()).unwrap();
    let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
    let form = async move {
        wait.await.unwrap();
        let text = format!("consent={consent}&Buyer+signature=Ann&action=finish");
        Ok::<_, std::io::Error>(axum::body::Bytes::from(text))
    };
    let request = Request::post(format!("/{path}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from_stream(futures::stream::once(form)))
        .unwrap();

    let correction = async {
        // The link was read by now; the form arrives afterwards.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let change = json!({ "email": "sam@example.com", "name": "Sam Lee" });
        correct(&app, &id, "Buyer", change).await.data(200);
        go_on.send(()).unwrap();
    };
    let (answer, ()) = tokio::join!(app.send(request), correction);

    // Its link has expired meanwhile.
    assert_eq!(answer.status, 410, "{}", answer.text());

    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["status"], "pending");

    let page = form::open(&app, &link(&app, &id, "Buyer").await)
        .await
        .text();
    assert!(!page.contains("Ann"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_gets_a_new_link_by_mail() {
    let app = service().await;
    let recipients = json!({ "recipients": [
        { "email": "agent@example.com", "name": "Ann Agent", "kind": "viewer" },
    ] });
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), recipients).await;
    let mails = app.wait_for_mails(2).await;
    let mail = mails.iter().find(|mail| mail.contains("shows you"));
    let url = form::link_in(mail.unwrap());

    let later = app.as_of(std::time::Duration::from_secs(8 * 86_400)).await;
    let page = form::open(&later, &url).await;
    assert_eq!(page.status, 410);
    assert!(page.text().contains("/renew"), "{}", page.text());

    let picture = form::open(&later, &format!("{url}/pages/1.png")).await;
    assert_eq!(picture.status, 404);

    let renewed = form::press(&later, &format!("{url}/renew"), "", &[]).await;
    assert_eq!(renewed.status, 200);

    let again = form::press(&later, &format!("{url}/renew"), "", &[]).await;
    assert_eq!(again.status, 429);

    let mails = later.wait_for_mails(1).await;
    let fresh: Vec<String> = mails
        .iter()
        .map(|mail| form::link_in(mail))
        .filter(|link| link.contains("/view/") && *link != url)
        .collect();
    assert_eq!(fresh.len(), 1, "{id}");
    assert_eq!(form::open(&later, &fresh[0]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_name_keeps_the_entries() {
    let app = service().await;
    let (id, envelope) = sent_with_note(&app).await;
    form::save(
        &app,
        envelope["sign_url"].as_str().unwrap(),
        &[("Note", "kept words")],
    )
    .await;

    let change = json!({ "name": "Bea Buyer" });
    let changed = correct(&app, &id, "Buyer", change).await.data(200);
    assert_eq!(changed["status"], "started");

    let page = form::open(&app, &link(&app, &id, "Buyer").await)
        .await
        .text();
    assert!(
        page.contains("Bea Buyer") && page.contains("kept words"),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_that_is_not_possible_changes_nothing() {
    let app = service().await;
    let signers = json!([person("Buyer"), person("Lender")]);
    let id = sent(&app, &["Buyer", "Lender"], signers, json!({})).await;
    let sam = || json!({ "email": "sam@example.com", "name": "Sam Lee" });
    let unknown = correct(&app, &id, "Seller", sam()).await;
    assert_eq!(unknown.error(404), "Signer not found");

    let same = correct(&app, &id, "Buyer", json!({})).await;
    assert_eq!(same.json()["details"][0]["code"], "unchanged");

    let bad = correct(&app, &id, "Buyer", json!({ "email": "sam" })).await;
    assert_eq!(bad.status, 422);

    for name in ["  ", "Sam\nLee"] {
        let bad = correct(&app, &id, "Buyer", json!({ "name": name })).await;
        assert_eq!(bad.json()["details"][0]["code"], "invalid_name");
    }

    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    let signed = correct(&app, &id, "Buyer", sam()).await;
    assert_eq!(signed.error(409), "buyer@example.com has already signed");

    app.post(&format!("/partner/envelopes/{id}/void"), json!({}))
        .await
        .data(200);
    let closed = correct(&app, &id, "Lender", sam()).await;
    assert_eq!(
        closed.error(409),
        "Cannot change signers of an envelope with status: voided"
    );

    let people = people(&app, &id).await;
    let emails: Vec<&Value> = people["signers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["email"])
        .collect();
    assert_eq!(emails, ["buyer@example.com", "lender@example.com"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_passes_the_document_on_where_the_sender_allows_it() {
    let app = service().await;
    let signers = || json!([person("Buyer")]);
    let closed = sent(&app, &["Buyer"], signers(), json!({})).await;
    let url = link(&app, &closed, "Buyer").await;
    let sam = [
        ("delegate-name".to_owned(), "Sam Lee".to_owned()),
        ("delegate-email".to_owned(), "sam@example.com".to_owned()),
    ];

    let page = form::open(&app, &url).await.text();
    assert!(!page.contains("in my place"), "{page}");
    let forged = form::press(&app, &url, "delegate", &sam).await;
    assert_eq!(forged.status, 409);
    let page = forged.text();
    assert!(page.contains("The sender does not offer this"), "{page}");

    let allowed = json!({ "allow_delegation": true });
    let id = sent(&app, &["Buyer"], signers(), allowed).await;
    let url = link(&app, &id, "Buyer").await;
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("in my place"), "{page}");
    assert!(
        page.contains("The history of the document shows the sender whom you named."),
        "{page}"
    );

    let nobody = form::press(&app, &url, "delegate", &[]).await;
    assert_eq!(nobody.status, 422);

    let text = nobody.text();
    assert!(text.contains("Enter the name") && text.contains("Enter an e-mail address"));

    let myself = [
        sam[0].clone(),
        (sam[1].0.clone(), "BUYER@example.com".to_owned()),
    ];
    assert_eq!(
        form::press(&app, &url, "delegate", &myself).await.status,
        422
    );

    let passed = form::press(&app, &url, "delegate", &sam).await;
    assert!(passed.text().contains("Passed on"), "{}", passed.text());
    assert!(
        passed.text().contains(
            "<p>Sam Lee was asked to sign in your place. You do not need to do anything else.</p>"
        ),
        "{}",
        passed.text()
    );
    assert_ne!(form::open(&app, &url).await.status, 200);

    form::sign(&app, &link(&app, &id, "Buyer").await).await;
    app.wait_for(&id, "completed").await;
    let entries = ledger(&app, &id).await;
    let entry = entries
        .iter()
        .find(|entry| entry["action"] == "signer.changed");
    assert_eq!(entry.unwrap()["actor"], "signer:buyer@example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_who_finishes_later_gets_a_link_three_times_a_day() {
    let app = service().await;
    let (id, envelope) = sent_with_note(&app).await;
    let url = envelope["sign_url"].as_str().unwrap();
    let page = form::open(&app, url).await.text();
    assert!(page.contains(">Finish later</button>"), "{page}");

    for at in 0..4 {
        let note = [("Note".to_owned(), format!("Note number {at}"))];
        let answer = form::press(&app, url, "later", &note).await;
        let expected = if at < 3 { 200 } else { 429 };
        assert_eq!(answer.status, expected, "{}", answer.text());
        assert!(answer.text().contains("Your entries are saved."));

        let page = form::open(&app, url).await.text();
        assert!(page.contains(&format!("Note number {at}")), "{page}");
        app.wait_until_idle().await;
    }

    // The invitation, and three mails with a link of their own.
    let mails = app.wait_for_mails(4).await;
    assert_eq!(mails.len(), 4);
    let later = addressees(&mails, "To finish later");
    assert_eq!(later, ["buyer@example.com"; 3]);
    let mail = mails
        .iter()
        .find(|mail| mail.contains("To finish later"))
        .unwrap();
    let page = form::open(&app, &form::link_in(mail)).await.text();
    assert!(page.contains("Note number 3"), "{page}");

    let entries = ledger(&app, &id).await;
    let postponed = entries
        .iter()
        .filter(|entry| entry["action"] == "signer.postponed");
    assert_eq!(postponed.count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_without_a_way_to_decline_is_not_declined() {
    let app = service().await;
    let signers = || json!([person("Buyer")]);
    let reason = [("reason".to_owned(), "Too expensive".to_owned())];
    let id = sent(&app, &["Buyer"], signers(), json!({ "may_decline": false })).await;
    let url = link(&app, &id, "Buyer").await;

    // The text about electronic records names the way that the form has.
    let page = form::open(&app, &url).await.text();
    assert!(!page.contains("I do not want to sign"), "{page}");
    assert!(page.contains("open “Ask the sender” at the end"), "{page}");
    let refused = form::press(&app, &url, "decline", &reason).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(
        refused.text().contains("The sender does not offer this"),
        "{}",
        refused.text()
    );
    assert_eq!(people(&app, &id).await["signers"][0]["status"], "viewed");
    form::sign(&app, &url).await;
    app.wait_for(&id, "completed").await;

    let id = sent(&app, &["Buyer"], signers(), json!({})).await;
    let url = link(&app, &id, "Buyer").await;
    let page = form::open(&app, &url).await.text();
    assert!(
        page.contains("open “I do not want to sign” at the end"),
        "{page}"
    );
    let declined = form::press(&app, &url, "decline", &reason).await;
    assert_eq!(declined.status, 200, "{}", declined.text());
    app.wait_for(&id, "declined").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_says_whether_signers_may_decline() {
    let app = service().await;
    let template = template(&app, &["Buyer"]).await;
    let path = format!("/templates/{}", template["template_id"].as_str().unwrap());
    let before = app.web(Method::GET, &path, Value::Null).await.data(200);
    assert_eq!(before["may_decline"], true);
    let change = json!({ "may_decline": false });
    let changed = app.web(Method::PATCH, &path, change).await.data(200);
    assert_eq!(changed["may_decline"], false);
    assert_eq!(changed["name"], before["name"]);

    for (choice, is_offered) in [(Value::Null, false), (true.into(), true)] {
        let mut body = envelope_body(&template["template_id"]);
        body["signers"] = json!([person("Buyer")]);
        if !choice.is_null() {
            body["may_decline"] = choice;
        }
        let envelope = app.post("/partner/envelopes", body).await.data(201);
        let page = form::open(&app, envelope["sign_url"].as_str().unwrap()).await;
        let page = page.text();
        assert_eq!(page.contains("value=\"decline\""), is_offered, "{page}");
    }
}

/// What the pages of a signer's link say of the document "Retail instalment contract".
const STANDINGS: [&str; 12] = [
    "Manager Person signs before you. Open this link again when it is your turn.",
    "Another person signs before you. Open this link again when it is your turn.",
    "You have signed “Retail instalment contract”.",
    "You have approved “Retail instalment contract”.",
    "Still to do their part:",
    "You will get your copy by e-mail when all parties have done their part.",
    "All parties have done their part. Download your copy; we also send it by e-mail.",
    "Another signer has declined this document.",
    "We have notified the sender.",
    "The sender has withdrawn this document.",
    "The time limit for signing this document has passed.",
    "This document is not open for signing.",
];

/// Compares the sentences of a page with those at these places of [`STANDINGS`].
#[track_caller]
fn stands(answer: &TestResponse, expected: &[usize]) {
    let page = answer.text();
    let said = (0..STANDINGS.len()).filter(|at| page.contains(STANDINGS[*at]));
    assert_eq!(said.collect::<Vec<_>>(), expected, "{page}");
}

/// A signer who is done is promised no copy of a document that ended without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_signers_page_says_how_the_document_stands() {
    let app = service().await;
    let manager = with(person("Manager"), "kind", "approver");
    let signers = json!([manager, person("Buyer"), person("Lender")]);
    let id = sent(&app, &["Buyer", "Lender"], signers, json!({})).await;
    let (approver, buyer) = (
        link(&app, &id, "Manager").await,
        link(&app, &id, "Buyer").await,
    );

    let lender = link(&app, &id, "Lender").await;
    stands(&form::open(&app, &lender).await, &[0]);
    let early = form::press(&app, &lender, "finish", &[]).await;
    stands(&early, &[1]);
    form::sign(&app, &approver).await;
    stands(&form::open(&app, &approver).await, &[3, 4, 5]);
    form::sign(&app, &buyer).await;

    stands(&form::open(&app, &buyer).await, &[2, 4, 5]);
    let reason = [("reason".to_owned(), "The price is wrong".to_owned())];
    form::open(&app, &lender).await;
    stands(&form::press(&app, &lender, "decline", &reason).await, &[8]);
    stands(&form::open(&app, &lender).await, &[8]);
    stands(&form::open(&app, &buyer).await, &[2, 7]);
    stands(&form::open(&app, &approver).await, &[3, 7]);

    let two = || json!([person("Buyer"), person("Lender")]);
    let half_signed = async || {
        let id = sent(&app, &["Buyer", "Lender"], two(), json!({})).await;
        let links = [
            link(&app, &id, "Buyer").await,
            link(&app, &id, "Lender").await,
        ];
        form::sign(&app, &links[0]).await;
        (id, links)
    };

    let (id, [buyer, lender]) = half_signed().await;
    let path = format!("/partner/envelopes/{id}/void");
    app.post(&path, json!({})).await.data(200);
    stands(&form::open(&app, &buyer).await, &[2, 9]);
    stands(&form::open(&app, &lender).await, &[9]);

    let (id, [buyer, lender]) = half_signed().await;
    form::sign(&app, &lender).await;
    app.wait_for(&id, "completed").await;
    stands(&form::open(&app, &buyer).await, &[2, 6]);

    let (_, [buyer, lender]) = half_signed().await;
    app.execute("update envelope set status = 'expired' where status = 'viewed'")
        .await;
    stands(&form::open(&app, &buyer).await, &[2, 10]);
    stands(&form::open(&app, &lender).await, &[10]);
    app.execute("update envelope set status = 'preparing' where status = 'expired'")
        .await;

    stands(&form::open(&app, &lender).await, &[11]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expiry_moves_only_to_a_later_time() {
    let app = service().await;
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), json!({})).await;
    let path = format!("/partner/envelopes/{id}/extend");
    for (time, status) in [
        ("2020-01-01T00:00:00Z", 422),
        ("2999-01-01T00:00:00Z", 422),
        ("soon", 422),
    ] {
        let refused = app.post(&path, json!({ "expires_at": time })).await;
        assert_eq!(refused.status, status, "{time}: {}", refused.text());
    }

    let later = jiff::Timestamp::now() + jiff::Span::new().hours(90 * 24);
    let extended = app
        .post(&path, json!({ "expires_at": later.to_string() }))
        .await;
    extended.data(200);
    let after_the_first = app.as_of(std::time::Duration::from_secs(40 * 86_400)).await;
    let url = link(&after_the_first, &id, "Buyer").await;
    form::sign(&after_the_first, &url).await;

    after_the_first.wait_for(&id, "completed").await;
    let refused = app
        .post(&path, json!({ "expires_at": later.to_string() }))
        .await;
    assert_eq!(
        refused.error(409),
        "Cannot extend an envelope with status: completed"
    );

    let entries = ledger(&app, &id).await;
    assert!(
        entries
            .iter()
            .any(|entry| entry["action"] == "envelope.extended")
    );
}

const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

/// Waits until an envelope's plan has sent this many reminders.
async fn reminded(app: &TestApp, id: &str, count: u64) {
    for _ in 0..200 {
        let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
        if envelope["reminders"]["sent"] == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("no reminder number {count}");
}

/// Waits until an invitation has left. By a node with a later clock, the plan would begin later.
async fn invited(app: &TestApp) {
    for _ in 0..100 {
        if app.count("signer where noticed_at is not null").await > 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_reminds_signers_until_its_number_is_reached() {
    let app = service().await;
    let plan = json!({ "first_after_days": 3, "every_days": 2, "at_most": 2 });
    let more = json!({ "reminders": plan });
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), more).await;

    invited(&app).await;
    let early = app.as_of(DAY * 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    reminded(&early, &id, 0).await;

    for (days, count) in [(4, 1), (7, 2)] {
        let later = app.as_of(DAY * days).await;
        reminded(&later, &id, count).await;
    }

    let last = app.as_of(DAY * 20).await;
    last.wait_until_idle().await;
    reminded(&last, &id, 2).await;
    let entries = ledger(&app, &id).await;
    let reminders = entries
        .iter()
        .filter(|entry| entry["action"] == "envelope.reminder_sent" && entry["actor"] == "system");
    assert_eq!(reminders.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_reminds_nobody_who_signs_in_person() {
    let app = service().await;
    let plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 3 });
    let id = sent(
        &app,
        &["Buyer"],
        json!([person("Buyer")]),
        json!({ "reminders": plan }),
    )
    .await;
    app.execute("update envelope set send_email = 0").await;

    invited(&app).await;
    let later = app.as_of(DAY * 3).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    reminded(&later, &id, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_envelope_takes_the_plan_of_its_organization() {
    let app = service().await;
    app.set_organization(&[r#"reminders={"first_after_days":1,"every_days":1,"at_most":3}"#]);
    let people = || json!([person("Buyer")]);
    let id = sent(&app, &["Buyer"], people(), json!({})).await;
    let envelope = app.get(&format!("/partner/envelopes/{id}")).await.data(200);
    assert_eq!(
        envelope["reminders"],
        json!({ "first_after_days": 1, "every_days": 1, "at_most": 3, "sent": 0 })
    );

    let none = json!({ "first_after_days": 1, "every_days": 1, "at_most": 0 });
    let without = sent(&app, &["Buyer"], people(), json!({ "reminders": none })).await;
    invited(&app).await;
    let later = app.as_of(DAY * 2).await;
    reminded(&later, &id, 1).await;
    reminded(&later, &without, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_envelope_takes_the_plan_of_its_template_before_that_of_the_organization() {
    let app = service().await;
    app.set_organization(&[r#"reminders={"first_after_days":1,"every_days":1,"at_most":3}"#]);
    let template = template(&app, &["Buyer"]).await;
    let path = format!("/templates/{}", template["template_id"].as_str().unwrap());
    let change = |plan: Value| app.web(Method::PATCH, &path, json!({ "reminders": plan }));
    let plan = json!({ "first_after_days": 7, "every_days": 4, "at_most": 2 });
    assert_eq!(change(plan.clone()).await.data(200)["reminders"], plan);

    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([person("Buyer")]);
    let created = app.post("/partner/envelopes", body.clone()).await;
    let planned = &created.data(201)["reminders"];
    assert_eq!(planned["first_after_days"], 7, "{planned}");

    let wrong = json!({ "first_after_days": 0, "every_days": 4, "at_most": 2 });
    let refused = change(wrong).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(
        change(Value::Null).await.data(200)["reminders"],
        Value::Null
    );
    let created = app.post("/partner/envelopes", body).await;
    assert_eq!(created.data(201)["reminders"]["first_after_days"], 1);
}

/// It is quiet in UTC, which the organization has, and not on the other side of the world.
#[tokio::test(flavor = "multi_thread")]
async fn quiet_hours_count_in_the_time_zone_of_the_signer() {
    let app = service().await;
    let now = jiff::Timestamp::now();
    let hour = |hours: i64| {
        let at = now.checked_add(jiff::SignedDuration::from_hours(hours));
        at.unwrap().strftime("%H:%M").to_string()
    };
    let (from, until) = (hour(-2), hour(2));
    app.set_organization(&[&format!(
        r#"quiet_hours={{"from":"{from}","until":"{until}"}}"#
    )]);
    let awake = with(person("Buyer"), "time_zone", "Pacific/Auckland");
    let signers = json!([
        with(awake, "order", 1),
        with(person("Co-buyer"), "order", 1),
    ]);
    let plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 3 });
    let more = json!({ "reminders": plan });
    let id = sent(&app, &["Buyer", "Co-buyer"], signers, more).await;
    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["time_zone"], "Pacific/Auckland");

    invited(&app).await;
    let later = app.as_of(DAY * 2).await;
    let reminder = later.wait_for_entry(&id, "envelope.reminder_sent").await;
    assert_eq!(reminder["reminded"], json!(["buyer@example.com"]));
    reminded(&later, &id, 1).await;

    let unknown = with(person("Buyer"), "time_zone", "Mars/Olympus");
    let refused = create(&app, &["Buyer"], json!([unknown]), json!({})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
}

/// Envelopes expire after thirty days. A later time limit is warned of again.
#[tokio::test(flavor = "multi_thread")]
async fn signers_are_warned_once_before_each_time_limit() {
    let app = service().await;
    let plan = json!({
        "first_after_days": 90, "every_days": 90, "at_most": 0, "before_expiry_days": 3,
    });
    let more = json!({ "reminders": plan });
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), more).await;
    let warnings = async |app: &TestApp| {
        let entries = ledger(app, &id).await;
        let warnings = entries.into_iter();
        let warnings = warnings.filter(|entry| entry["action"] == "envelope.expires_soon");
        warnings.collect::<Vec<Value>>()
    };

    invited(&app).await;
    let early = app.as_of(DAY * 26).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(warnings(&early).await, [] as [Value; 0]);

    let near = app.as_of(DAY * 28).await;
    let warning = near.wait_for_entry(&id, "envelope.expires_soon").await;
    assert_eq!(warning["reminded"], json!(["buyer@example.com"]));
    let until = jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_hours(40 * 24));
    let extended = json!({ "expires_at": until.unwrap().to_string() });
    let path = format!("/partner/envelopes/{id}/extend");
    near.post(&path, extended).await.data(200);
    assert_eq!(warnings(&near).await.len(), 1);

    let again = app.as_of(DAY * 38).await;
    for _ in 0..200 {
        if warnings(&again).await.len() == 2 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the later time limit is not warned of");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_waits_for_the_end_of_a_legal_hold() {
    let app = service().await;
    let plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 1 });
    let more = json!({ "reminders": plan });
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), more).await;
    let hold = holds::place(&app, "envelope", Some(&id)).await;
    invited(&app).await;
    let held = app.as_of(DAY * 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    reminded(&held, &id, 0).await;

    holds::lift(&app, &hold).await;
    let lifted = app.as_of(DAY * 3).await;
    reminded(&lifted, &id, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_changed_until_the_envelope_is_finished() {
    let app = service().await;
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), json!({})).await;
    let path = format!("/partner/envelopes/{id}/reminders");
    for (member, value) in [("first_after_days", 0), ("every_days", 91), ("at_most", 31)] {
        let mut plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 1 });
        plan[member] = value.into();
        let refused = app.put(&path, plan).await;
        assert_eq!(refused.status, 422, "{member}: {}", refused.text());
    }

    let plan = json!({ "first_after_days": 1, "every_days": 1, "at_most": 1 });
    let planned = app.put(&path, plan.clone()).await.data(200);
    assert_eq!(planned["reminders"]["at_most"], 1);
    invited(&app).await;
    let later = app.as_of(DAY * 2).await;
    reminded(&later, &id, 1).await;

    let url = link(&later, &id, "Buyer").await;
    form::sign(&later, &url).await;
    later.wait_for(&id, "completed").await;
    let refused = app.put(&path, plan).await;
    assert_eq!(
        refused.error(409),
        "Cannot plan reminders of an envelope with status: completed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unsigned_document_can_be_downloaded() {
    let app = service().await;
    let id = sent(&app, &["Buyer"], json!([person("Buyer")]), json!({})).await;
    let path = format!("/partner/envelopes/{id}/document");
    let before = app.get(&path).await;
    assert_eq!(before.status, 200);
    assert!(before.bytes.starts_with(b"%PDF-"));

    let url = link(&app, &id, "Buyer").await;
    let page = form::open(&app, &url).await.text();
    assert!(page.contains("/document.pdf"), "{page}");

    let read = form::open(&app, &format!("{url}/document.pdf")).await;
    assert_eq!(read.bytes, before.bytes);

    form::sign(&app, &url).await;
    app.wait_for(&id, "completed").await;
    assert_eq!(app.get(&path).await.bytes, before.bytes);

    // Signers get their signed copy from then on.
    assert_eq!(
        form::open(&app, &format!("{url}/document.pdf"))
            .await
            .status,
        404
    );

    let draft = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await;
    let draft = draft.data(201)["envelope_id"].as_str().unwrap().to_owned();
    let none = app
        .get(&format!("/partner/envelopes/{draft}/document"))
        .await;
    assert_eq!(none.error(409), "Envelope has no document");
    assert_eq!(app.get_as("lk_unknown", &path).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_for_readers_codes_and_approvers_work_on_a_phone() {
    let app = TestApp::on_a_socket().await;
    let signers = json!([
        with(person("Manager"), "kind", "approver"),
        with(person("Buyer"), "access", "email_code"),
    ]);
    let more = json!({
        "recipients": [{ "email": "agent@example.com", "name": "Ann Agent", "kind": "viewer" }],
        "allow_delegation": true,
    });
    let id = sent(&app, &["Buyer"], signers, more).await;

    let mails = app.wait_for_mails(2).await;
    let mail = mails.iter().find(|mail| mail.contains("shows you"));
    let reading = form::link_in(mail.unwrap());
    let browser = TestBrowser::open(EmulatedScreen::Phone).await;
    browser.goto(&reading).await;

    // The picture of the page is as wide as the screen allows.
    browser
        .until(
            "const picture = document.querySelector('.sheet img');
             return picture.naturalWidth > 0 && picture.getBoundingClientRect().width > 250",
        )
        .await;

    browser.picture("reader").await;
    browser.is_accessible("page for readers").await;
    browser.goto(&link(&app, &id, "Buyer").await).await;
    browser.click("button[value=send-code]").await;
    browser.see("#code").await;
    browser.picture("code").await;
    browser.is_accessible("question for a code").await;

    browser.goto(&link(&app, &id, "Manager").await).await;
    browser.see(".sheet img").await;
    browser.click(".next").await;
    browser.see("#consent").await;
    browser.picture("approver").await;
    browser.is_accessible("form of an approver").await;
    browser.click("#consent").await;

    browser.click("button[value=finish]").await;
    browser.read("You have").await;
    let people = people(&app, &id).await;
    assert_eq!(people["signers"][0]["status"], "completed");
}
