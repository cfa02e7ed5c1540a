//! Transfers of control: offers, acceptance, confirmation, and their ends.

use std::time::{Duration, Instant};

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};
use sha2_next::Sha256;

use super::{Party, asked, code, controlled, designate, vault_out};
use crate::support::{TestApp, TestResponse, pdf, postgres, release_form};

/// Offers records and waits for the offer.
pub async fn offered(app: &TestApp, seller: &Party, buyer: &Party, records: &[String]) -> String {
    let transfer = propose(app, seller, buyer, json!({ "records": records })).await;
    wait(app, seller, &transfer, "proposed").await;
    transfer
}

/// Offers records and returns the id of the transfer.
async fn propose(app: &TestApp, seller: &Party, buyer: &Party, mut body: Value) -> String {
    body["buyer"] = json!(buyer.org);
    let begun = app
        .post_as(&seller.key, "/partner/control/transfers", body)
        .await
        .data(202);
    assert_eq!(begun["state"], "proposing");
    begun["transfer_id"].as_str().unwrap().to_owned()
}

pub async fn step(app: &TestApp, party: &Party, transfer: &str, step: &str) -> TestResponse {
    let path = format!("/partner/control/transfers/{transfer}/{step}");
    app.post_as(&party.key, &path, json!({})).await
}

async fn read(app: &TestApp, party: &Party, transfer: &str) -> Value {
    let path = format!("/partner/control/transfers/{transfer}?limit=1000");
    app.get_as(&party.key, &path).await.data(200)
}

/// Waits until a transfer has this state and returns it.
pub async fn wait(app: &TestApp, party: &Party, transfer: &str, state: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let now = read(app, party, transfer).await;
        if now["state"] == state {
            return now;
        }
        assert!(Instant::now() < deadline, "still {now} and not {state}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Root of an independent implementation of RFC 6962.
fn root(lines: &[String]) -> String {
    let mut tree = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    for line in lines {
        tree.push(line.clone().into_bytes());
    }
    hex::encode(tree.root().as_bytes())
}

/// Makes further records that the lender controls.
pub async fn more(app: &TestApp, lender: &Party, count: usize) -> Vec<String> {
    let mut records = Vec::new();
    for _ in 0..count {
        let id = app.vaulted_envelope().await;
        designate(app, &id, &lender.org).await.data(200);
        lender.act(app, &id, "accept", json!({})).await.data(200);
        records.push(id);
    }
    records
}

async fn controller(app: &TestApp, id: &str) -> String {
    let path = format!("/partner/control/records/{id}");
    let record = app.get(&path).await.data(200);
    record["controller"]["organization_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn a_sale_in_three_steps_passes_control(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let (lender, funder) = (Party::new(&app).await, Party::new(&app).await);
    let mut pool = more(&app, &lender, 3).await;
    pool.sort();
    let sold = json!({
        "records": pool, "atomic": true, "price_reference": "Pool 2026-11", "terms": "No recourse",
    });
    let transfer = propose(&app, &lender, &funder, sold).await;
    wait(&app, &lender, &transfer, "proposed").await;

    let offer = read(&app, &funder, &transfer).await;
    assert_eq!(offer["counts"], json!({ "proposed": 3 }));
    assert_eq!(offer["price_reference"], "Pool 2026-11");
    assert_eq!(offer["receipt"], Value::Null);

    // The buyer inspects, the seller still has control, and the record is locked.
    let record = funder.record(&app, &pool[0]).await.data(200);
    assert_eq!(record["stage"], "proposed");
    assert_eq!(record["buyer"]["organization_id"], funder.org.as_str());
    assert_eq!(record["controller"]["organization_id"], lender.org.as_str());
    assert_eq!(record["transfer_id"], transfer);

    let locked = lender.act(&app, &pool[0], "release", release_form()).await;
    assert_eq!(code(&locked, 409), "control_out_of_order");

    let out = vault_out(&app, &pool[0], release_form()).await;
    assert_eq!(code(&out, 409), "control_out_of_order");

    assert_eq!(
        code(&step(&app, &lender, &transfer, "confirm").await, 409),
        "control_out_of_order"
    );
    assert_eq!(
        code(&step(&app, &lender, &transfer, "accept").await, 409),
        "control_wrong_party"
    );

    step(&app, &funder, &transfer, "accept").await.data(202);
    let accepted = wait(&app, &lender, &transfer, "accepted").await;
    let lines = accepted["records"].as_array().unwrap().iter();
    let lines: Vec<String> = lines
        .map(|record| {
            let text = |member: &str| record[member].as_str().unwrap();
            format!("{} {}", text("envelope_id"), text("document_hash"))
        })
        .collect();
    assert_eq!(accepted["receipt"]["root"], root(&lines));
    assert_eq!(accepted["offer"]["root"], root(&lines));
    assert_eq!(accepted["receipt"]["records"], 3);
    assert_eq!(
        code(&step(&app, &funder, &transfer, "confirm").await, 409),
        "control_wrong_party"
    );

    step(&app, &lender, &transfer, "confirm").await.data(202);
    let confirmed = wait(&app, &lender, &transfer, "confirmed").await;
    assert_eq!(confirmed["counts"], json!({ "confirmed": 3 }));

    for id in &pool {
        assert_eq!(controller(&app, id).await, funder.org.as_str());
        lender.record(&app, id).await.error(404);
        let entry = app.entry(id, "control.transfer.confirmed").await;
        assert_eq!(entry["inclusion"]["root"], accepted["receipt"]["root"]);
        assert_eq!(entry["party"]["organization_id"], lender.org.as_str());
    }

    assert_eq!(
        code(&step(&app, &funder, &transfer, "cancel").await, 409),
        "control_out_of_order"
    );

    // The funder sells on, or releases.
    funder
        .act(&app, &pool[0], "release", release_form())
        .await
        .data(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_in_three_steps_passes_control_on_sqlite() {
    a_sale_in_three_steps_passes_control(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_in_three_steps_passes_control_on_postgresql() {
    let database = postgres::new_database().await;
    a_sale_in_three_steps_passes_control(|config| config.database_url = Some(database)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_cancelled_by_either_party_and_unlocks_its_records() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    for by in [&lender, &funder] {
        let transfer = offered(&app, &lender, &funder, std::slice::from_ref(&id)).await;
        if by.org == funder.org {
            step(&app, &funder, &transfer, "accept").await.data(202);
            wait(&app, &funder, &transfer, "accepted").await;
        }

        step(&app, by, &transfer, "cancel").await.data(202);
        let cancelled = wait(&app, &lender, &transfer, "cancelled").await;
        assert_eq!(cancelled["counts"], json!({ "cancelled": 1 }));

        let record = lender.record(&app, &id).await.data(200);
        assert_eq!(
            (&record["stage"], &record["buyer"]),
            (&json!("controlled"), &Value::Null)
        );

        funder.record(&app, &id).await.error(404);
    }

    let other = Party::new(&app).await;
    let transfer = offered(&app, &lender, &funder, std::slice::from_ref(&id)).await;
    for act in ["accept", "confirm", "cancel"] {
        step(&app, &other, &transfer, act).await.error(404);
    }

    let path = format!("/partner/control/transfers/{transfer}");
    app.get_as(&other.key, &path).await.error(404);
    let listed = app
        .get_as(&other.key, "/partner/control/transfers")
        .await
        .json();
    assert_eq!(listed["data"], json!([]));

    let listed = app
        .get_as(&funder.key, "/partner/control/transfers?limit=2")
        .await
        .json();
    assert_eq!(listed["data"][0]["transfer_id"], transfer);
    assert_eq!(listed["meta"]["has_more"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_ends_with_its_time() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let mut waiting = Vec::new();
    for accepts in [false, true] {
        let id = if accepts {
            more(&app, &lender, 1).await.remove(0)
        } else {
            id.clone()
        };
        let transfer = offered(&app, &lender, &funder, std::slice::from_ref(&id)).await;
        if accepts {
            step(&app, &funder, &transfer, "accept").await.data(202);
            wait(&app, &funder, &transfer, "accepted").await;
        }

        waiting.push((transfer, id));
    }

    let app = app.as_of(Duration::from_secs(31 * 86_400)).await;
    for (transfer, id) in waiting {
        for (party, act) in [(&funder, "accept"), (&lender, "confirm")] {
            let late = step(&app, party, &transfer, act).await;
            assert_eq!(late.status, 409, "{}", late.text());
        }

        wait(&app, &lender, &transfer, "expired").await;
        let record = lender.record(&app, &id).await.data(200);
        assert_eq!(record["stage"], "controlled");
        assert_eq!(record["controller"]["organization_id"], lender.org.as_str());

        let entry = app.entry(&id, "control.transfer.expired").await;
        assert_eq!(entry["transfer_id"], transfer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_acceptance_is_refused_before_the_offer_is_ended() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let ends = jiff::Timestamp::now() + Duration::from_secs(3);
    let body = json!({ "records": [id], "expires_at": ends.to_string() });
    let transfer = propose(&app, &lender, &funder, body).await;
    wait(&app, &lender, &transfer, "proposed").await;
    app.stop_working();

    while jiff::Timestamp::now() <= ends {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let late = step(&app, &funder, &transfer, "accept").await;
    assert_eq!(code(&late, 409), "transfer_expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_move_is_named_and_left_out() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let requested = more(&app, &lender, 1).await.remove(0);
    asked(&vault_out(&app, &requested, release_form()).await);
    let foreign = app.vaulted_envelope().await;
    let records = [id.clone(), requested.clone(), foreign.clone()];
    let transfer = offered(&app, &lender, &funder, &records).await;
    let offer = read(&app, &funder, &transfer).await;
    assert_eq!(offer["counts"], json!({ "proposed": 1, "refused": 2 }));

    let reason = |of: &str| {
        let mut records = offer["records"].as_array().unwrap().iter();
        let record = records.find(|record| record["envelope_id"] == of).unwrap();
        assert!(!record["reason"].as_str().unwrap().is_empty());
        record["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(reason(&requested), "control_out_of_order");
    assert_eq!(reason(&foreign), "record_not_found");

    step(&app, &funder, &transfer, "accept").await.data(202);
    wait(&app, &funder, &transfer, "accepted").await;
    step(&app, &lender, &transfer, "confirm").await.data(202);
    wait(&app, &funder, &transfer, "confirmed").await;
    assert_eq!(controller(&app, &id).await, funder.org.as_str());
    assert_eq!(controller(&app, &requested).await, lender.org.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_transfer_moves_all_records_or_none() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let foreign = app.vaulted_envelope().await;
    let body = json!({ "records": [id, foreign], "atomic": true });
    let transfer = propose(&app, &lender, &funder, body).await;
    let failed = wait(&app, &lender, &transfer, "failed").await;
    assert_eq!(failed["counts"], json!({ "cancelled": 1, "refused": 1 }));
    assert_eq!(
        lender.record(&app, &id).await.data(200)["stage"],
        "controlled"
    );

    // There was no offer.
    let path = format!("/partner/control/transfers/{transfer}");
    app.get_as(&funder.key, &path).await.error(404);
    let listed = app.get_as(&funder.key, "/partner/control/transfers").await;
    assert_eq!(listed.json()["data"], json!([]));

    // Damage that is found between acceptance and confirmation.
    let pool = more(&app, &lender, 2).await;
    let body = json!({ "records": pool, "atomic": true });
    let transfer = propose(&app, &lender, &funder, body).await;
    wait(&app, &lender, &transfer, "proposed").await;
    step(&app, &funder, &transfer, "accept").await.data(202);
    wait(&app, &lender, &transfer, "accepted").await;

    let problems = "update integrity_check set problems = '[]' where envelope_id = $1";
    app.change(problems, &pool[1]).await;
    step(&app, &lender, &transfer, "confirm").await.data(202);
    let failed = wait(&app, &lender, &transfer, "failed").await;
    assert_eq!(failed["counts"], json!({ "cancelled": 1, "refused": 1 }));

    for id in &pool {
        let record = lender.record(&app, id).await.data(200);
        assert_eq!(record["stage"], "controlled");
        assert_eq!(record["controller"]["organization_id"], lender.org.as_str());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_proposal_is_refused_and_changes_nothing() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let other = app.vaulted_envelope().await;
    for (body, path) in [
        (json!({ "records": [] }), "records"),
        (json!({}), "records"),
        (json!({ "records": [id], "filter": {} }), "records"),
        (json!({ "records": [id, other, id] }), "records"),
        (json!({ "records": ["env_1"] }), "records"),
        (json!({ "filter": { "originator": funder.org } }), "records"),
        (
            json!({ "records": [id], "expires_at": "2020-01-01T00:00:00Z" }),
            "expires_at",
        ),
        (
            json!({ "records": [id], "expires_at": "2099-01-01T00:00:00Z" }),
            "expires_at",
        ),
        (json!({ "records": [id], "buyer": "org_1" }), "buyer"),
        (
            json!({ "records": [id], "terms": "x".repeat(10_001) }),
            "terms",
        ),
        (json!({ "records": vec![id.as_str(); 10_001] }), "records"),
    ] {
        let mut wrong = json!({ "buyer": funder.org });
        wrong
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        let refused = app
            .post_as(&lender.key, "/partner/control/transfers", wrong)
            .await;
        assert_eq!(refused.status, 422, "{body}: {}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"][0], path, "{body}");
    }

    let oneself = json!({ "buyer": lender.org, "records": [id] });
    let refused = app
        .post_as(&lender.key, "/partner/control/transfers", oneself)
        .await;
    assert_eq!(code(&refused, 422), "control_to_oneself");

    let none = app
        .get_as(&lender.key, "/partner/control/transfers")
        .await
        .json();
    assert_eq!(none["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_selected_by_a_filter() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let busy = more(&app, &lender, 1).await.remove(0);
    offered(&app, &lender, &funder, std::slice::from_ref(&busy)).await;
    let body = json!({ "filter": { "originator": app.org } });
    let transfer = propose(&app, &lender, &funder, body).await;
    let offer = wait(&app, &lender, &transfer, "proposed").await;
    assert_eq!(offer["records"][0]["envelope_id"], id);
    assert_eq!(
        offer["counts"],
        json!({ "proposed": 1 }),
        "the other one is locked"
    );

    let path = format!("/partner/control/transfers/{transfer}?state=refused");
    let none = app.get_as(&lender.key, &path).await.data(200);
    assert_eq!(none["records"], json!([]));
}

/// Offers records to a buyer, makes the three steps, and returns the transfer when it is over.
async fn sale(app: &TestApp, seller: &Party, buyer: &Party, records: &[String]) -> Value {
    let body = json!({ "records": records });
    let transfer = propose(app, seller, buyer, body).await;
    let deadline = Instant::now() + Duration::from_secs(60 + 3 * records.len() as u64);
    loop {
        let now = read(app, seller, &transfer).await;
        let next = match now["state"].as_str().unwrap() {
            "proposed" => step(app, buyer, &transfer, "accept").await,
            "accepted" => step(app, seller, &transfer, "confirm").await,
            "confirmed" | "failed" => return now,
            _ => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        assert_eq!(next.status, 202, "{}", next.text());
        assert!(Instant::now() < deadline, "{now}");
    }
}

/// Whether a record changed hands in a sale.
fn was_sold(sale: &Value, id: &str) -> bool {
    let mut records = sale["records"].as_array().unwrap().iter();
    records.any(|one| one["envelope_id"] == id && one["state"] == "confirmed")
}

/// Two dealers have a record of each contract. One offers its records to both buyers and releases them, the
/// other offers its own to the second buyer, all at the same time. `RACE_RECORDS=1000` for many.
async fn of_competing_acts_one_wins_each_record(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let (maple, oak) = (Party::new(&app).await, Party::new(&app).await);
    let (bank, fund) = (Party::new(&app).await, Party::new(&app).await);
    app.execute("update api_key set rate_limit_rpm = 1000000")
        .await;
    let size = std::env::var("RACE_RECORDS").map_or(6, |size| size.parse().expect("a number"));

    let mut pools = (Vec::new(), Vec::new());
    for number in 0..size {
        let lease = pdf::with_lines(&[&format!("Lease {number}")]);
        pools.0.push(maple.vaulted(&app, &lease, json!([])).await);
        pools.1.push(oak.vaulted(&app, &lease, json!([])).await);
    }

    let releases = async {
        let mut released = Vec::new();
        // Offers lock records in the order of their ids.
        for id in pools.0.iter().rev() {
            let out = maple.act(&app, id, "release", release_form()).await;
            assert!(
                [200, 404, 409].contains(&out.status.as_u16()),
                "{}",
                out.text()
            );

            released.extend((out.status == 200).then(|| id.clone()));
        }

        released
    };

    let (to_bank, to_fund, of_oak, released) = tokio::join!(
        sale(&app, &maple, &bank, &pools.0),
        sale(&app, &maple, &fund, &pools.0),
        sale(&app, &oak, &fund, &pools.1),
        releases
    );

    for (own, other) in pools.0.iter().zip(&pools.1) {
        let outcomes = [
            (was_sold(&to_bank, own), &bank),
            (was_sold(&to_fund, own), &fund),
            (released.contains(own), &maple),
        ];
        let won: Vec<&Party> = outcomes
            .into_iter()
            .filter(|(won, _)| *won)
            .map(|(_, by)| by)
            .collect();
        assert!(won.len() <= 1, "{own}");

        let controller = won.first().map_or(&maple.org, |by| &by.org);
        let record = maple.record(&app, own).await.data(200);
        assert_eq!(
            record["controller"]["organization_id"],
            controller.as_str(),
            "{record}"
        );

        let sold = was_sold(&of_oak, other);
        let controller = if sold { &fund.org } else { &oak.org };
        let record = oak.record(&app, other).await.data(200);
        assert_eq!(
            record["controller"]["organization_id"],
            controller.as_str(),
            "{record}"
        );

        // One contract has no two buyers.
        assert!(!(sold && outcomes[0].0), "{own} and {other}");
        assert!(sold || !won.is_empty(), "{own} and {other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_competing_acts_one_wins_each_record_on_sqlite() {
    of_competing_acts_one_wins_each_record(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_competing_acts_one_wins_each_record_on_postgresql() {
    let database = postgres::new_database().await;
    of_competing_acts_one_wins_each_record(|config| config.database_url = Some(database)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_parties_of_a_transfer_get_its_events() {
    let (app, id, lender) = controlled().await;
    let funder = Party::new(&app).await;
    let transfer = offered(&app, &lender, &funder, std::slice::from_ref(&id)).await;
    step(&app, &funder, &transfer, "accept").await.data(202);
    wait(&app, &funder, &transfer, "accepted").await;
    step(&app, &lender, &transfer, "confirm").await.data(202);
    wait(&app, &funder, &transfer, "confirmed").await;

    for party in [&lender, &funder] {
        let types = "select event_type from event
             where org_id = $1 and event_type like 'control.transfer.%' order by event_id";
        let mut connection = app.store.read().await.unwrap();
        let found = sqlx::query_scalar(types).bind(party.org.as_str());
        let found: Vec<String> = found.fetch_all(&mut *connection).await.unwrap();
        assert_eq!(
            found,
            [
                "control.transfer.proposed",
                "control.transfer.accepted",
                "control.transfer.confirmed"
            ]
        );
    }
}
