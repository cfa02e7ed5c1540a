//! Tapes of pools: a row for each record of a transfer.

use holdfast::config::Config;
use holdfast::domain::organization::OrgSettings;
use serde_json::{Value, json};

use super::{Party, code, transfers};
use crate::support::{TestApp, TestResponse, envelope_body, form, postgres};

async fn tape(app: &TestApp, by: &Party, transfer: &str, query: &str) -> TestResponse {
    let path = format!("/partner/control/pools/{transfer}/tape?{query}");
    app.get_as(&by.key, &path).await
}

/// Returns the rows of a CSV file by the names of their columns.
fn rows(answer: &TestResponse) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "text/csv");
    let mut reader = csv::Reader::from_reader(answer.bytes.as_slice());
    let rows = reader.deserialize::<std::collections::BTreeMap<String, String>>();
    rows.map(|row| json!(row.unwrap())).collect()
}

/// Makes a vaulted record with metadata.
async fn vaulted(app: &TestApp, name: &str, metadata: Value) -> String {
    let template = app.contract_template().await;
    let mut body = envelope_body(&template["template_id"]);
    body["envelope_name"] = json!(name);
    body["metadata"] = metadata;
    let envelope = app.post("/partner/envelopes", body).await.data(201);
    form::sign(app, envelope["sign_url"].as_str().unwrap()).await;
    let id = envelope["envelope_id"].as_str().unwrap().to_owned();
    app.wait_for(&id, "vaulted").await;

    id
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_transfer_get_a_row_for_each_record() {
    let app = TestApp::start().await;
    let seller = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let (buyer, stranger) = (Party::new(&app).await, Party::new(&app).await);
    let first = vaulted(&app, "=2+2", json!({ "amount": 18400, "segment": "prime" })).await;

    let second = vaulted(&app, "Contract, \"second\"", json!({ "amount": 9900.5 })).await;

    // A record of another organization is refused, and nothing of it is shown.
    let foreign = holdfast::domain::id::EnvelopeId::new().to_string();
    let offer = json!({ "buyer": buyer.org, "records": [first, second, foreign] });
    let offer = app
        .post("/partner/control/transfers", offer)
        .await
        .data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    transfers::wait(&app, &seller, transfer, "proposed").await;

    let query = "columns=balance:amount,segment";
    let found = rows(&tape(&app, &buyer, transfer, query).await);
    assert_eq!(found.len(), 3);

    let of = |id: &str| found.iter().find(|row| row["envelope_id"] == id).unwrap();
    assert_eq!(of(&first)["name"], "'=2+2", "a text is no formula");
    assert_eq!(of(&first)["balance"], "18400");
    assert_eq!(of(&first)["segment"], "prime");
    assert_eq!(of(&first)["compliance_score"], "100");
    assert_eq!(of(&first)["exceptions"], "");
    assert_eq!(of(&second)["name"], "Contract, \"second\"");
    assert_eq!(of(&second)["exceptions"], "missing:segment");
    assert_eq!(of(&foreign)["exceptions"], "record_not_found");
    assert_eq!(of(&foreign)["name"], "");

    let own = rows(&tape(&app, &seller, transfer, query).await);
    assert_eq!(own, found);

    let exceptions = rows(&tape(&app, &buyer, transfer, &format!("{query}&exceptions=true")).await);
    assert_eq!(exceptions.len(), 2);

    let lines = tape(&app, &buyer, transfer, "format=jsonl&columns=amount").await;
    assert_eq!(lines.headers["content-type"], "application/jsonl");

    let lines: Vec<Value> = lines
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let line = lines
        .iter()
        .find(|line| line["envelope_id"] == second.as_str());
    assert_eq!(line.unwrap()["metadata"], json!({ "amount": 9900.5 }));
    assert_eq!(line.unwrap()["stage"], "proposed");

    // A sample is the same for both sides, and another one for another seed.
    let sampled = |by| tape(&app, by, transfer, "sample=2&seed=closing%202026");
    let sample = rows(&sampled(&buyer).await);
    assert_eq!(sample.len(), 2);
    assert_eq!(rows(&sampled(&seller).await), sample);

    tape(&app, &stranger, transfer, "").await.error(404);
    for wrong in [
        "sample=2",
        "seed=closing",
        "sample=0&seed=closing",
        "columns=name:amount",
    ] {
        let refused = tape(&app, &buyer, transfer, wrong).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
    }

    assert_eq!(
        tape(&app, &buyer, transfer, "format=xlsx").await.status,
        400
    );
}

async fn records_are_selected_by_transfer_and_metadata(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let seller = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let buyer = Party::new(&app).await;
    let prime = json!({ "segment": "prime", "amount": 18400, "new": true });
    let first = vaulted(&app, "First", prime).await;

    let second = vaulted(&app, "Second", json!({ "segment": "near \"prime\"" })).await;
    let third = vaulted(&app, "Third", json!({})).await;
    let offer = json!({ "buyer": buyer.org, "records": [first, second, third] });
    let path = "/partner/control/transfers";
    let offer = app.post(path, offer).await.data(202);
    let transfer = offer["transfer_id"].as_str().unwrap();
    transfers::wait(&app, &seller, transfer, "proposed").await;

    transfers::step(&app, &buyer, transfer, "accept")
        .await
        .data(202);
    transfers::wait(&app, &seller, transfer, "accepted").await;
    transfers::step(&app, &seller, transfer, "confirm")
        .await
        .data(202);

    transfers::wait(&app, &seller, transfer, "confirmed").await;

    let found = async |query: &str| {
        let path = format!("/partner/control/records?{query}");
        let listed = app.get_as(&buyer.key, &path).await.data(200);
        let ids = listed.as_array().unwrap().iter();
        let ids: Vec<Value> = ids.map(|record| record["envelope_id"].clone()).collect();
        ids
    };
    assert_eq!(found("metadata=segment:prime").await, [first.as_str()]);
    assert_eq!(found("metadata=amount:18400").await, [first.as_str()]);
    assert_eq!(found("metadata=new:true").await, [first.as_str()]);

    let quoted = "metadata=segment:near%20%22prime%22";
    assert_eq!(found(quoted).await, [second.as_str()]);
    assert!(found("metadata=segment:subprime").await.is_empty());

    let all = found(&format!("transfer={transfer}")).await;
    assert_eq!(all.len(), 3);

    let of_own = app
        .get(&format!(
            "/partner/control/records?part=originator&transfer={transfer}&metadata=new:true"
        ))
        .await
        .data(200);
    assert_eq!(of_own[0]["metadata"]["segment"], "prime");

    for wrong in ["metadata=segment", "metadata=:x", "metadata=a'b:x"] {
        let refused = app.get(&format!("/partner/control/records?{wrong}")).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text());
    }

    let foreign = holdfast::domain::id::TransferId::new();
    app.get(&format!("/partner/control/records?transfer={foreign}"))
        .await
        .error(404);

    // A pool is sold on by the transfer that it came with.
    let offer = json!({
        "buyer": app.org, "filter": { "transfer": transfer, "metadata": "segment:prime" },
    });
    let sold = app.post_as(&buyer.key, path, offer).await.data(202);
    let resale = sold["transfer_id"].as_str().unwrap();
    let sold = transfers::wait(&app, &buyer, resale, "proposed").await;
    assert_eq!(sold["records"][0]["envelope_id"], first.as_str());
    assert_eq!(sold["records"].as_array().unwrap().len(), 1);

    // A party that has left a record reads what its transfer stored, and nothing of the present.
    transfers::step(&app, &seller, resale, "accept")
        .await
        .data(202);
    transfers::wait(&app, &buyer, resale, "accepted").await;
    transfers::step(&app, &buyer, resale, "confirm")
        .await
        .data(202);

    transfers::wait(&app, &buyer, resale, "confirmed").await;
    let left = rows(&tape(&app, &buyer, transfer, "columns=segment").await);
    let of = |id: &str| left.iter().find(|row| row["envelope_id"] == id).unwrap();
    assert_eq!(of(&first)["state"], "confirmed");

    for hidden in ["name", "originator", "stage", "segment", "exceptions"] {
        assert_eq!(of(&first)[hidden], "", "{hidden}");
    }
    assert_eq!(of(&third)["name"], "Third");

    let offer = json!({ "buyer": app.org, "records": [third] });
    let offer = app.post_as(&buyer.key, path, offer).await.data(202);
    let ended = offer["transfer_id"].as_str().unwrap();
    transfers::wait(&app, &buyer, ended, "proposed").await;
    transfers::step(&app, &buyer, ended, "cancel")
        .await
        .data(202);

    transfers::wait(&app, &buyer, ended, "cancelled").await;
    let refused = tape(&app, &seller, ended, "").await;
    assert_eq!(code(&refused, 409), "control_out_of_order");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_selected_by_transfer_and_metadata_on_sqlite() {
    Box::pin(records_are_selected_by_transfer_and_metadata(|_| {})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_selected_by_transfer_and_metadata_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    Box::pin(records_are_selected_by_transfer_and_metadata(change)).await;
}
