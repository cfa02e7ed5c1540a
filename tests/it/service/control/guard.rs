//! The guard against double pledging: a document or collateral that is registered twice gets one
//! controller in the installation.

use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::transfers::{step, wait};
use super::{Party, code};
use crate::support::{TestApp, TestResponse, files_below, pdf, postgres, release_form};

const VIN: &str = "1M8GDM9AXKP042788";

impl Party {
    /// Vaults a document that was signed elsewhere, as an originator.
    pub async fn vaulted(&self, app: &TestApp, document: &[u8], collateral: Value) -> String {
        let created = self.create(app, collateral).await.data(201);
        let id = created["envelope_id"].as_str().unwrap().to_owned();
        let path = format!("/partner/envelopes/{id}");
        let upload = format!("{path}/upload");
        app.upload_as(&self.key, &upload, "application/pdf", document, &[])
            .await
            .data(201);

        let vault = format!("{path}/vault-in-upload");
        app.post_as(&self.key, &vault, json!({})).await.data(200);
        id
    }

    pub async fn create(&self, app: &TestApp, collateral: Value) -> TestResponse {
        let body = json!({
            "envelope_name": "Lease", "envelope_kind": "paper", "collateral": collateral,
            "customer_email": "jordan.lee@example.com", "customer_name": "Jordan Lee",
        });
        app.post_as(&self.key, "/partner/envelopes", body).await
    }

    pub async fn designate(&self, app: &TestApp, id: &str, to: &Party) -> TestResponse {
        self.act(app, id, "designate", json!({ "controller": to.org }))
            .await
    }

    /// Lets a lender take control of a record of this originator.
    pub async fn pledge(&self, app: &TestApp, id: &str, to: &Party) {
        self.designate(app, id, to).await.data(200);
        to.act(app, id, "accept", json!({})).await.data(200);
    }

    pub async fn entries(&self, app: &TestApp, id: &str, action: &str) -> Vec<Value> {
        let path = format!("/partner/envelopes/{id}/custody");
        let custody = app.get_as(&self.key, &path).await.data(200);
        let entries = custody["entries"].as_array().unwrap().iter();
        let found = entries.filter(|entry| entry["action"] == action);
        found.map(|entry| entry["details"].clone()).collect()
    }
}

/// Two dealers and two lenders.
async fn parties(app: &TestApp) -> [Party; 4] {
    [
        Party::new(app).await,
        Party::new(app).await,
        Party::new(app).await,
        Party::new(app).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_not_pledged_twice() {
    let app = TestApp::start().await;
    let [maple, oak, bank, fund] = parties(&app).await;
    let lease = pdf::with_lines(&["Lease 2041"]);
    let first = maple.vaulted(&app, &lease, json!([])).await;
    let second = oak.vaulted(&app, &lease, json!([])).await;
    maple.pledge(&app, &first, &bank).await;
    let refused = oak.designate(&app, &second, &fund).await;
    assert_eq!(code(&refused, 409), "already_controlled");

    let details = refused.json()["details"].clone();
    let reference = details["reference"].as_str().unwrap();
    let held = bank.record(&app, &first).await.data(200);
    assert_eq!(details["since"], held["controlled_since"]);

    // Neither side is named to the other.
    let told = refused.text();
    let other = oak.entries(&app, &second, "control.conflict").await;

    let theirs = maple.entries(&app, &first, "control.conflict").await;
    for (text, foreign) in [
        (told, [&maple.org, &bank.org]),
        (other[0].to_string(), [&maple.org, &bank.org]),
        (theirs[0].to_string(), [&oak.org, &fund.org]),
    ] {
        assert!(text.contains(reference), "{text}");
        for org in foreign {
            assert!(!text.contains(org.as_str()), "{text}");
        }
    }

    assert!(!theirs[0].to_string().contains(&second));
    let events = bank.events(&app, &first).await;
    assert_eq!(events.last().unwrap()["event_type"], "control.conflict");

    // A repeat has the same reference, and does not fill the other's ledger.
    let again = oak.designate(&app, &second, &fund).await;
    assert_eq!(again.json()["details"]["reference"], reference);
    assert_eq!(
        maple.entries(&app, &first, "control.conflict").await.len(),
        1
    );
    assert_eq!(
        oak.entries(&app, &second, "control.conflict").await.len(),
        2
    );

    // The same lender may have both.
    oak.pledge(&app, &second, &bank).await;
    app.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_that_this_system_made_count_as_the_document() {
    let app = TestApp::start().await;
    let [maple, oak, bank, fund] = parties(&app).await;
    let lease = pdf::with_lines(&["Lease 2042"]);
    let first = maple.vaulted(&app, &lease, json!([])).await;

    let mut copies = Vec::new();
    for link in ["vault/signed-url", "vault/copy/signed-url"] {
        let path = format!("/partner/envelopes/{first}/{link}");
        let link = app.get_as(&maple.key, &path).await.data(200);
        copies.push(app.get(link["signed_url"].as_str().unwrap()).await.bytes);
    }

    maple.pledge(&app, &first, &bank).await;
    let copy = oak.vaulted(&app, &copies[1], json!([])).await;
    let refused = oak.designate(&app, &copy, &fund).await;
    assert_eq!(code(&refused, 409), "already_controlled");
}

#[tokio::test(flavor = "multi_thread")]
async fn collateral_is_not_pledged_twice_while_its_record_is_live() {
    let app = TestApp::start().await;
    let [maple, oak, bank, fund] = parties(&app).await;
    let vin = json!([{ "kind": "vin", "value": VIN }]);
    let spelled = json!([
        { "kind": "serial", "value": "Deere 12" }, { "kind": "vin", "value": "1m8gdm9a-xkp042788" },
    ]);
    let first = maple
        .vaulted(&app, &pdf::with_lines(&["Lease 1"]), vin)
        .await;

    let second = oak
        .vaulted(&app, &pdf::with_lines(&["Lease 2"]), spelled)
        .await;

    // Offered before the first lender has control.
    oak.designate(&app, &second, &fund).await.data(200);
    maple.pledge(&app, &first, &bank).await;
    let refused = fund.act(&app, &second, "accept", json!({})).await;
    assert_eq!(code(&refused, 409), "already_controlled");
    assert_eq!(
        oak.entries(&app, &second, "control.conflict").await[0]["kind"],
        "vin"
    );

    let record = fund.record(&app, &second).await.data(200);
    assert_eq!(record["stage"], "designated", "nothing has changed");

    // Paid off and released, the vehicle can be pledged again.
    bank.act(&app, &first, "release", release_form())
        .await
        .data(200);

    fund.act(&app, &second, "accept", json!({})).await.data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_number_is_its_originators_own() {
    let app = TestApp::start().await;
    let [maple, oak, bank, fund] = parties(&app).await;
    let number = || json!([{ "kind": "contract_number", "value": "2041" }]);
    let first = maple
        .vaulted(&app, &pdf::with_lines(&["Lease 3"]), number())
        .await;
    let other = oak
        .vaulted(&app, &pdf::with_lines(&["Lease 4"]), number())
        .await;

    let again = maple
        .vaulted(&app, &pdf::with_lines(&["Lease 3, a copy"]), number())
        .await;
    maple.pledge(&app, &first, &bank).await;
    oak.pledge(&app, &other, &fund).await;
    let refused = maple.designate(&app, &again, &fund).await;
    assert_eq!(code(&refused, 409), "already_controlled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_identifier_is_refused_and_not_repeated() {
    let app = TestApp::start().await;
    let dealer = Party::new(&app).await;
    for (kind, value) in [
        ("vin", "1M8GDM9A1KP042788"),
        ("vin", "1M8GDM9AXKP04278"),
        ("hin", "ABC1"),
        ("serial", " - "),
    ] {
        let wrong = json!([{ "kind": "serial", "value": "1" }, { "kind": kind, "value": value }]);
        let refused = dealer.create(&app, wrong).await;
        assert_eq!(refused.status, 422, "{}", refused.text());

        let issue = &refused.json()["details"][0];
        assert_eq!(issue["code"], "invalid_identifier");
        assert_eq!(issue["path"], json!(["collateral", 1, "value"]));
        assert!(!refused.text().contains(value), "{}", refused.text());
    }

    let kind = json!([{ "kind": "licence_plate", "value": "M-AB 12" }]);
    dealer.create(&app, kind).await.error(422);
    assert_eq!(app.count("envelope").await, 0);
}

/// Two dealers pledge the same vehicle to two lenders at the same moment, on two nodes.
async fn of_two_pledges_at_once_one_is_refused(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let other = app.another_node(|_| {}).await;
    let [maple, oak, bank, fund] = parties(&app).await;
    for number in 0..6 {
        let serial = || json!([{ "kind": "serial", "value": format!("Deere {number}") }]);
        let one = pdf::with_lines(&[&format!("Lease {number}")]);
        let two = pdf::with_lines(&[&format!("Loan {number}")]);
        let first = maple.vaulted(&app, &one, serial()).await;
        let second = oak.vaulted(&app, &two, serial()).await;
        maple.designate(&app, &first, &bank).await.data(200);
        oak.designate(&app, &second, &fund).await.data(200);

        let (one, two) = tokio::join!(
            bank.act(&app, &first, "accept", json!({})),
            fund.act(&other, &second, "accept", json!({})),
        );
        let mut answers = [one, two];
        answers.sort_by_key(|answer| answer.status);
        assert_eq!(answers[0].status, 200, "{}", answers[0].text());
        assert_eq!(code(&answers[1], 409), "already_controlled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_pledges_at_once_one_is_refused_on_sqlite() {
    of_two_pledges_at_once_one_is_refused(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_pledges_at_once_one_is_refused_on_postgresql() {
    let database = postgres::new_database().await;
    of_two_pledges_at_once_one_is_refused(|config| config.database_url = Some(database)).await;
}

/// Neither the files of the installation nor an answer contain a declared identifier.
#[tokio::test(flavor = "multi_thread")]
async fn declared_collateral_is_stored_as_a_keyed_hash_only() {
    let app = TestApp::start().await;
    let [maple, oak, bank, fund] = parties(&app).await;
    let vin = || json!([{ "kind": "vin", "value": VIN }]);
    let created = maple.create(&app, vin()).await;
    assert!(!created.text().contains(VIN), "{}", created.text());

    let first = maple
        .vaulted(&app, &pdf::with_lines(&["Lease 5"]), vin())
        .await;
    let second = oak
        .vaulted(&app, &pdf::with_lines(&["Lease 6"]), vin())
        .await;
    maple.pledge(&app, &first, &bank).await;

    let refused = oak.designate(&app, &second, &fund).await;
    assert_eq!(code(&refused, 409), "already_controlled");

    for (party, id) in [(&maple, &first), (&oak, &second), (&bank, &first)] {
        let record = party.record(&app, id).await.text();
        let events = json!(party.events(&app, id).await).to_string();
        assert!(!record.contains(VIN) && !events.contains(VIN));
    }

    let plain = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(VIN));
    let files = files_below(app.data.path());
    assert!(files.iter().any(|file| file.ends_with("holdfast.db")));

    for file in files {
        // Temporary files come and go.
        let bytes = match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            bytes => bytes.unwrap(),
        };
        for text in [VIN, plain.as_str()] {
            let found = bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes());
            assert!(!found, "{} has {text}", file.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_leaves_out_a_record_that_is_pledged_elsewhere() {
    let app = TestApp::start().await;
    let [maple, oak, bank, fund] = parties(&app).await;
    let serial = || json!([{ "kind": "serial", "value": "Deere 99" }]);
    let first = maple
        .vaulted(&app, &pdf::with_lines(&["Lease 7"]), serial())
        .await;
    let second = oak
        .vaulted(&app, &pdf::with_lines(&["Lease 8"]), serial())
        .await;

    // One lender holds both, and may not sell one of them alone.
    maple.pledge(&app, &first, &bank).await;
    oak.pledge(&app, &second, &bank).await;
    let offer = json!({ "buyer": fund.org, "records": [first] });
    let begun = app
        .post_as(&bank.key, "/partner/control/transfers", offer)
        .await
        .data(202);
    let failed = wait(
        &app,
        &bank,
        begun["transfer_id"].as_str().unwrap(),
        "failed",
    )
    .await;
    assert_eq!(failed["records"][0]["code"], "already_controlled");

    assert_eq!(
        bank.record(&app, &first).await.data(200)["stage"],
        "controlled"
    );

    // Together they stay in one hand.
    let offer = json!({ "buyer": fund.org, "records": [first, second], "atomic": true });
    let begun = app
        .post_as(&bank.key, "/partner/control/transfers", offer)
        .await
        .data(202);
    let transfer = begun["transfer_id"].as_str().unwrap();
    wait(&app, &bank, transfer, "proposed").await;

    step(&app, &fund, transfer, "accept").await.data(202);
    wait(&app, &bank, transfer, "accepted").await;
    step(&app, &bank, transfer, "confirm").await.data(202);

    wait(&app, &bank, transfer, "confirmed").await;
}
