//! Loan tapes: tables that a party writes itself, compared with the contracts of its records.

use std::time::{Duration, Instant};

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::clock::of_machine;
use holdfast::domain::id::TapeId;
use holdfast::domain::job::CheckTape;
use holdfast::domain::organization::OrgSettings;
use holdfast::store::jobs;
use serde_json::{Value, json};

use super::{Party, code, designate, transfers};
use crate::http::console::Session;
use crate::service::signing::reads;
use crate::support::{TestApp, TestResponse, envelope_body, files_below, pdf, postgres};

const VINS: [&str; 2] = ["1M8GDM9AXKP042788", "11111111111111111"];

/// Makes a map that reads the facts of the contracts below.
async fn fact_map(app: &TestApp) {
    let beside = |anchor: &str| json!([{ "anchor": anchor, "direction": "right_of" }]);
    let map = json!({
        "name": "Loan", "applies_to": { "all": true },
        "facts": [
            { "name": "contract_number", "kind": "text", "printed": beside("Contract Number") },
            { "name": "vin", "kind": "vin", "printed": beside("VIN") },
            { "name": "amount_financed", "kind": "money", "currency": "USD",
              "printed": beside("Amount Financed") },
        ],
    });
    app.web(Method::POST, "/fact-maps", map).await.data(201);
}

/// Vaults a contract of the app's organization.
async fn contract(app: &TestApp, number: &str, vin: &str, amount: &str) -> String {
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    let created = app.post("/partner/envelopes", body).await.data(201);
    let id = created["envelope_id"].as_str().unwrap().to_owned();
    let lines = [
        format!("Contract Number {number}"),
        format!("VIN {vin}"),
        format!("Amount Financed ${amount}"),
    ];
    let file = pdf::with_lines(&lines.each_ref().map(String::as_str));
    let path = format!("/partner/envelopes/{id}");
    let upload = format!("{path}/upload");
    app.upload(&upload, "application/pdf", &file, &[])
        .await
        .data(201);
    let vault = format!("{path}/vault-in-upload");
    app.post(&vault, json!({})).await.data(200);
    id
}

fn map() -> Value {
    json!({
        "columns": [
            { "column": "Loan", "fact": "contract_number" },
            { "column": "VIN", "fact": "vin" },
            { "column": "Amount", "fact": "amount_financed" },
        ],
        "keys": ["contract_number", "vin_and_date"],
    })
}

async fn send(app: &TestApp, key: &str, file: &str, texts: &[(&str, &str)]) -> TestResponse {
    let path = "/partner/control/tapes";
    app.upload_as(key, path, "text/csv", file.as_bytes(), texts)
        .await
}

/// Sends a tape and waits for the end of its check.
async fn checked(app: &TestApp, key: &str, file: &str, name: &str) -> Value {
    let map = map().to_string();
    let sent = send(app, key, file, &[("name", name), ("map", &map)]).await;
    let id = sent.data(202)["tape_id"].as_str().unwrap().to_owned();
    wait(app, key, &id).await
}

async fn wait(app: &TestApp, key: &str, id: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let path = format!("/partner/control/tapes/{id}");
        let tape = app.get_as(key, &path).await.data(200);
        if tape["status"] != "checking" {
            return tape;
        }
        assert!(Instant::now() < deadline, "{tape}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn rows(app: &TestApp, key: &str, tape: &Value, query: &str) -> Vec<Value> {
    let id = tape["tape_id"].as_str().unwrap();
    let path = format!("/partner/control/tapes/{id}/rows?{query}");
    let found = app.get_as(key, &path).await.data(200);
    found.as_array().unwrap().clone()
}

async fn report(app: &TestApp, tape: &Value, query: &str) -> TestResponse {
    let id = tape["tape_id"].as_str().unwrap();
    let path = format!("/partner/control/tapes/{id}/report?{query}");
    app.get(&path).await
}

fn codes(row: &Value) -> Vec<&str> {
    let findings = row["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

async fn each_row_is_compared_with_its_contract(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    fact_map(&app).await;
    let first = contract(&app, "A-1", VINS[0], "21,500.00").await;
    let second = contract(&app, "A-2", VINS[1], "9,900.50").await;
    let unlisted = contract(&app, "A-3", "11111111111111111", "1.00").await;

    let file = format!(
        "Loan,VIN,Amount,=Note\n\
         A-1,{vin},21500,x\n\
         A-2,{other},\"10,900.50\",x\n\
         A-9,{vin},5,x\n\
         A-8\n\
         A-7,,=1+1,x\n",
        vin = VINS[0],
        other = VINS[1]
    );
    let tape = checked(&app, &app.key, &file, "Line 12").await;
    assert_eq!(tape["status"], "checked", "{tape}");
    let totals = &tape["totals"];
    for (name, count) in [
        ("rows", 5),
        // The third row finds the first contract by its VIN, and has another number and amount.
        ("clean", 0),
        ("exceptions", 3),
        ("unmatched", 1),
        ("unreadable", 1),
        ("unlisted", 1),
    ] {
        assert_eq!(totals[name], count, "{name}: {tape}");
    }
    assert_eq!(totals["columns"][2]["different"], 2, "{totals}");
    assert_eq!(tape["population"], 3);

    let found = rows(&app, &app.key, &tape, "").await;
    assert_eq!(found.len(), 6);
    assert_eq!(found[0]["envelope_id"], first.as_str());
    assert_eq!(codes(&found[0]), ["duplicate_vin"]);
    let difference = &found[1]["findings"][0];
    assert_eq!(found[1]["envelope_id"], second.as_str());
    assert_eq!(difference["code"], "different");
    assert_eq!(
        (&difference["tape"], &difference["contract"]),
        (&json!("10,900.50"), &json!("9900.50"))
    );
    assert_eq!(difference["place"]["page"], 1);

    assert_eq!(
        codes(&found[2]),
        [
            "different",
            "different",
            "duplicate_vin",
            "duplicate_record"
        ]
    );
    assert_eq!(codes(&found[3]), ["unreadable_row"]);
    assert_eq!(found[3]["line"], 5);
    assert_eq!(codes(&found[4]), ["unmatched"]);
    assert_eq!(found[5]["status"], "unlisted");
    assert_eq!(found[5]["envelope_id"], unlisted.as_str());

    let unmatched = rows(&app, &app.key, &tape, "status=unmatched").await;
    assert_eq!(unmatched, [found[4].clone()]);
    let behind = rows(&app, &app.key, &tape, "starting_after=4&limit=1").await;
    assert_eq!(behind, [found[3].clone()]);
    let notes = rows(&app, &app.key, &tape, "severity=warn&exceptions=true").await;
    assert_eq!(notes, [found[5].clone()]);

    // The same tape a day later costs no comparison but that of a record's second row, and has the same result.
    let again = checked(&app, &app.key, &file, "Line 12").await;
    assert_eq!(again["reused"], 2, "{again}");
    assert_eq!(again["totals"], tape["totals"]);
    assert_eq!(again["sha256"], tape["sha256"]);
    assert_eq!(again["other_tapes"], 0);
    let other = checked(&app, &app.key, &file, "Line 13").await;
    assert_eq!(other["other_tapes"], 3, "{other}");
    let found = rows(&app, &app.key, &other, "limit=1").await;
    assert_eq!(codes(&found[0]), ["duplicate_vin", "other_tape"]);

    let listed = app.get("/partner/control/tapes?limit=2").await.data(200);
    assert_eq!(listed[0]["tape_id"], other["tape_id"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_is_compared_with_its_contract_on_sqlite() {
    Box::pin(each_row_is_compared_with_its_contract(|_| {})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_is_compared_with_its_contract_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    Box::pin(each_row_is_compared_with_its_contract(change)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_a_table_json_with_its_proof_or_a_document() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    contract(&app, "A-1", VINS[0], "21,500.00").await;
    contract(&app, "A-2", VINS[1], "5.00").await;
    let file = format!(
        "Loan,VIN,Amount\nA-1,{},@SUM(A1)\nA-2,{},5.40\n",
        VINS[0], VINS[1]
    );
    let tape = checked(&app, &app.key, &file, "Line 12").await;

    let table = report(&app, &tape, "").await;
    assert_eq!(table.headers["content-type"], "text/csv");
    let mut reader = csv::Reader::from_reader(table.bytes.as_slice());
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // A value within its tolerance is no exception.
    assert_eq!(lines.len(), 1, "{}", table.text());
    assert_eq!(&lines[0][4], "unreadable");
    assert_eq!(&lines[0][7], "'@SUM(A1)", "a cell is no formula");

    let sample = report(&app, &tape, "sample=1&seed=closing").await;
    assert_eq!(
        sample.text(),
        report(&app, &tape, "sample=1&seed=closing").await.text()
    );
    assert_eq!(sample.text().lines().count(), 2);
    let both = report(&app, &tape, "sample=5&seed=closing").await;
    assert_eq!(both.text().lines().count(), 3);

    let json = report(&app, &tape, "format=json").await.json();
    assert_eq!(json["sha256"], tape["sha256"]);
    assert_eq!(json["entry"]["action"], "tape.checked");
    assert_eq!(json["entry"]["details"]["sha256"], tape["sha256"]);
    assert_eq!(
        json["log"]["inclusion"][0]["sequence"],
        json["entry"]["sequence"]
    );
    assert_eq!(json["rows"].as_array().unwrap().len(), 1);

    let document = report(&app, &tape, "format=pdf").await;
    assert_eq!(document.headers["content-type"], "application/pdf");
    assert!(document.bytes.starts_with(b"%PDF-"));
    let again = report(&app, &tape, "format=pdf").await;
    assert_eq!(again.bytes, document.bytes);

    for wrong in ["sample=5", "seed=closing", "sample=0&seed=closing"] {
        assert_eq!(report(&app, &tape, wrong).await.status, 422, "{wrong}");
    }
    assert_eq!(report(&app, &tape, "format=xlsx").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_tape_is_refused_by_name() {
    let app = TestApp::start().await;
    let map = map().to_string();
    let with =
        |extra: (&'static str, &'static str)| [("name", "Line 12"), ("map", map.as_str()), extra];
    let refused = async |file: &str| {
        let sent = send(&app, &app.key, file, &with(("format", "csv"))).await;
        assert_eq!(sent.status, 422, "{}", sent.text());
        sent.json()["details"][0]["code"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(refused("A-1,B,C\n").await, "no_header");
    assert_eq!(refused("Loan,VIN\nA-1,B\n").await, "missing_column");
    assert_eq!(
        refused("Loan,VIN,Amount,Amount\n").await,
        "duplicated_column"
    );
    assert_eq!(refused("").await, "empty");
    assert_eq!(refused("PK\u{3}\u{4}").await, "spreadsheet");

    let file = "Loan,VIN,Amount\n";
    for (texts, status) in [
        (vec![("name", "Line 12")], 400),
        (vec![("map", map.as_str())], 400),
        (vec![("name", "Line 12"), ("map_name", "unknown")], 404),
        (vec![("name", "Line 12"), ("map", "{}")], 422),
        (vec![("name", "Line 12"), ("map", r#"{"columns":[]}"#)], 422),
        (with(("format", "xlsx")).to_vec(), 400),
        (with(("part", "owner")).to_vec(), 400),
        (with(("map_name", "both")).to_vec(), 400),
    ] {
        let sent = send(&app, &app.key, file, &texts).await;
        assert_eq!(sent.status, status, "{texts:?} {}", sent.text());
    }

    // A tape without rows is a tape.
    let tape = checked(&app, &app.key, file, "Line 12").await;
    assert_eq!(tape["totals"]["rows"], 0);
    let unknown = TapeId::new();
    for path in ["", "/rows", "/report"] {
        let path = format!("/partner/control/tapes/{unknown}{path}");
        app.get(&path).await.error(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn maps_are_kept_under_their_names() {
    let app = TestApp::start().await;
    let path = "/control/tape-maps/Line%2012";
    let put = app.web(Method::PUT, path, map()).await.data(200);
    assert_eq!(put["name"], "Line 12");
    let mut other = map();
    other["date_order"] = "mdy".into();
    let replaced = app.web(Method::PUT, path, other).await.data(200);
    assert_ne!(replaced["sha256"], put["sha256"]);

    let read = app
        .get("/partner/control/tape-maps/Line%2012")
        .await
        .data(200);
    assert_eq!(read, replaced);
    let listed = app.get("/partner/control/tape-maps").await.data(200);
    assert_eq!(listed, json!([replaced]));
    let texts = [("name", "Any"), ("map_name", "Line 12")];
    let sent = send(&app, &app.key, "Loan,VIN,Amount\n", &texts).await;
    assert_eq!(sent.data(202)["map_sha256"], replaced["sha256"]);

    let mut wrong = map();
    wrong["columns"][1]["fact"] = "contract_number".into();
    let refused = app.web(Method::PUT, path, wrong).await;
    assert_eq!(refused.status, 422);
    assert_eq!(
        refused.json()["details"][0]["path"],
        json!(["columns", 1, "fact"])
    );
    let stranger = Party::new(&app).await;
    let path = "/partner/control/tape-maps/Line%2012";
    app.get_as(&stranger.key, path).await.error(404);
}

/// A stranger who knows everything about a contract learns nothing from a tape, and neither does the originator of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_tape_reveals_nothing_of_records_of_others() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    let id = contract(&app, "A-1", VINS[0], "21,500.00").await;
    let (lender, stranger) = (Party::new(&app).await, Party::new(&app).await);
    designate(&app, &id, &lender.org).await.data(200);
    lender.act(&app, &id, "accept", json!({})).await.data(200);

    let mut full = map();
    full["columns"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "column": "Id", "fact": "envelope_id" }));
    full["keys"] = json!(["contract_number", "vin_and_date", "envelope_id"]);
    let full = full.to_string();
    let file = format!("Loan,VIN,Amount,Id\nA-1,{},21500,{id}\n", VINS[0]);
    let of = async |party: &Party| {
        let texts = [("name", "Line 12"), ("map", full.as_str())];
        let sent = send(&app, &party.key, &file, &texts).await.data(202);
        wait(&app, &party.key, sent["tape_id"].as_str().unwrap()).await
    };

    let known = of(&lender).await;
    assert_eq!(known["totals"]["clean"], 1, "{known}");
    let unknown = of(&stranger).await;
    assert_eq!(unknown["totals"]["unmatched"], 1, "{unknown}");
    assert_eq!(unknown["population"], 0);
    assert_eq!(unknown["other_claims"], 0);

    // The answer is the same as for an unknown contract.
    let made_up = file
        .replace("A-1", "Z-9")
        .replace(VINS[0], "no such number");
    let texts = [("name", "Line 12"), ("map", full.as_str())];
    let sent = send(&app, &stranger.key, &made_up, &texts).await.data(202);
    let none = wait(&app, &stranger.key, sent["tape_id"].as_str().unwrap()).await;
    assert_eq!(none["totals"], unknown["totals"]);
    let told = rows(&app, &stranger.key, &unknown, "").await;
    assert_eq!(told, rows(&app, &stranger.key, &none, "").await);
    let stored = app
        .text_of("select min(coalesce(envelope_id, '-')) from tape_row where status = 'unmatched'")
        .await;
    assert_eq!(stored, "-");

    // An organization sees its own tapes only.
    let path = format!(
        "/partner/control/tapes/{}",
        known["tape_id"].as_str().unwrap()
    );
    app.get_as(&stranger.key, &path).await.error(404);
    app.get(&path).await.error(404);
    let listed = app.get("/partner/control/tapes").await.data(200);
    assert_eq!(listed, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_another_party_is_reported_with_its_date_and_no_name() {
    let app = TestApp::start().await;
    let (maple, oak, bank) = (
        Party::new(&app).await,
        Party::new(&app).await,
        Party::new(&app).await,
    );
    let vin = json!([{ "kind": "vin", "value": VINS[0] }]);
    let first = maple
        .vaulted(&app, &pdf::with_lines(&["Lease 1"]), vin.clone())
        .await;
    let second = oak.vaulted(&app, &pdf::with_lines(&["Lease 2"]), vin).await;
    maple.pledge(&app, &first, &bank).await;

    let map = json!({ "columns": [{ "column": "Id", "fact": "envelope_id" }] }).to_string();
    let of = async |party: &Party, id: &str| {
        let texts = [("name", "Line 12"), ("map", map.as_str())];
        let file = format!("Id\n{id}\n");
        let sent = send(&app, &party.key, &file, &texts).await.data(202);
        wait(&app, &party.key, sent["tape_id"].as_str().unwrap()).await
    };
    let claimed = of(&oak, &second).await;
    assert_eq!(claimed["other_claims"], 1, "{claimed}");
    let found = rows(&app, &oak.key, &claimed, "").await;
    let claim = found[0]["findings"].as_array().unwrap().last().unwrap();
    assert_eq!(claim["code"], "other_claim");
    let held = bank.record(&app, &first).await.data(200);
    let detail = claim["detail"].as_str().unwrap();
    assert!(
        detail.contains(held["controlled_since"].as_str().unwrap()),
        "{detail}"
    );
    for hidden in [maple.org.as_str(), bank.org.as_str(), &first] {
        assert!(!detail.contains(hidden), "{detail}");
    }

    // The party with the claim has none against itself.
    assert_eq!(of(&bank, &first).await["other_claims"], 0);

    // The ledger of the party that asked lists the claim. The others do not learn of its tape.
    let id = claimed["tape_id"].as_str().unwrap();
    let path = format!("/partner/control/tapes/{id}/report?format=json");
    let report = app.get_as(&oak.key, &path).await.json();
    let claims = report["entry"]["details"]["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(claims[0]["envelope_id"], second.as_str());
    assert_eq!(claims[0]["detail"], detail);
    for party in [&maple, &bank] {
        let events = party.events(&app, &first).await;
        let of_claims = events.iter().map(|event| event["event_type"].as_str());
        assert!(!of_claims.flatten().any(|name| name == "control.conflict"));
    }
}

async fn a_pool_is_the_population_of_a_tape(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    fact_map(&app).await;
    let seller = Party {
        org: app.org.clone(),
        key: app.key.clone(),
    };
    let (buyer, stranger) = (Party::new(&app).await, Party::new(&app).await);
    let pooled = [
        contract(&app, "A-1", VINS[0], "21,500.00").await,
        contract(&app, "A-2", VINS[1], "5.00").await,
    ];
    contract(&app, "A-3", VINS[1], "1.00").await;
    let pool = transfers::offered(&app, &seller, &buyer, &pooled).await;

    // The third contract is no part of the pool.
    let file = format!("Loan,VIN,Amount\nA-1,{},21500\nA-3,,1\n", VINS[0]);
    let map = map().to_string();
    let texts = |part: &'static str, pool: &str| {
        [
            ("name", "Pool 7".to_owned()),
            ("map", map.clone()),
            ("part", part.to_owned()),
            ("pool", pool.to_owned()),
        ]
    };
    let submit = async |party: &Party, part: &'static str, pool: &str| {
        let texts = texts(part, pool);
        let texts = texts.each_ref().map(|(name, text)| (*name, text.as_str()));
        send(&app, &party.key, &file, &texts).await
    };
    let of = async |party: &Party, part: &'static str| {
        let sent = submit(party, part, &pool).await.data(202);
        wait(&app, &party.key, sent["tape_id"].as_str().unwrap()).await
    };
    for party in [&seller, &buyer] {
        let tape = of(party, "").await;
        assert_eq!(tape["pool"], pool.as_str());
        assert_eq!(tape["population"], 2, "{tape}");
        let totals = &tape["totals"];
        for (name, count) in [("clean", 1), ("unmatched", 1), ("unlisted", 1)] {
            assert_eq!(totals[name], count, "{name}: {tape}");
        }
        let unlisted = rows(&app, &party.key, &tape, "status=unlisted").await;
        assert_eq!(unlisted[0]["envelope_id"], pooled[1].as_str());
    }

    submit(&stranger, "", &pool).await.error(404);
    submit(&seller, "", "no-pool").await.error(404);

    // A party that has left the records has no part in the pool any more.
    transfers::step(&app, &buyer, &pool, "accept")
        .await
        .data(202);
    transfers::wait(&app, &seller, &pool, "accepted").await;
    transfers::step(&app, &seller, &pool, "confirm")
        .await
        .data(202);
    transfers::wait(&app, &seller, &pool, "confirmed").await;
    assert_eq!(of(&buyer, "controller").await["population"], 2);
    assert_eq!(of(&seller, "controller").await["population"], 0);
    let records = json!({ "records": pooled, "buyer": stranger.org });
    let resale = app.post_as(&buyer.key, "/partner/control/transfers", records);
    let resale = resale.await.data(202)["transfer_id"].clone();
    let resale = resale.as_str().unwrap();
    transfers::wait(&app, &buyer, resale, "proposed").await;
    transfers::step(&app, &buyer, resale, "cancel")
        .await
        .data(202);
    transfers::wait(&app, &buyer, resale, "cancelled").await;
    let refused = submit(&buyer, "", resale).await;
    assert_eq!(code(&refused, 409), "control_out_of_order");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_the_population_of_a_tape_on_sqlite() {
    Box::pin(a_pool_is_the_population_of_a_tape(|_| {})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_the_population_of_a_tape_on_postgresql() {
    let database = postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    Box::pin(a_pool_is_the_population_of_a_tape(change)).await;
}

/// The place of a finding is shown to parties of the record, while they are.
#[tokio::test(flavor = "multi_thread")]
async fn the_place_of_a_finding_is_a_picture() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    let id = contract(&app, "A-1", VINS[0], "21,500.00").await;
    let (lender, stranger) = (Party::new(&app).await, Party::new(&app).await);
    designate(&app, &id, &lender.org).await.data(200);
    lender.act(&app, &id, "accept", json!({})).await.data(200);

    let file = format!("Loan,VIN,Amount\nA-1,{},22500\nA-9,,1\n", VINS[0]);
    let tape = checked(&app, &lender.key, &file, "Line 12").await;
    let tape = tape["tape_id"].as_str().unwrap();
    let picture = async |key: &str, of: &str| {
        let path = format!("/partner/control/tapes/{tape}/rows/{of}");
        app.get_as(key, &path).await
    };
    let drawn = picture(&lender.key, "2/picture").await;
    assert_eq!(drawn.status, 200, "{}", drawn.text());
    assert_eq!(drawn.headers["content-type"], "image/png");
    assert!(drawn.bytes.starts_with(b"\x89PNG"));
    let first = picture(&lender.key, "2/picture?finding=0").await;
    assert_eq!(first.bytes, drawn.bytes);

    for of in ["2/picture?finding=9", "3/picture", "4/picture", "x/picture"] {
        picture(&lender.key, of).await.error(404);
    }
    picture(&lender.key, "2/picture?finding=x").await.error(400);
    picture(&stranger.key, "2/picture").await.error(404);

    // The record passes back to its originator.
    app.change(
        "update control_record set controller_id = org_id where envelope_id = $1",
        &id,
    )
    .await;
    picture(&lender.key, "2/picture").await.error(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_tape_leaves_its_digests_in_the_ledger_only() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    contract(&app, "A-1", VINS[0], "21,500.00").await;
    let file = format!("Loan,VIN,Amount\nA-1,{},22500\n", VINS[0]);
    let tape = checked(&app, &app.key, &file, "Line 12").await;
    let id = tape["tape_id"].as_str().unwrap();
    let path = format!("/control/tapes/{id}");

    let stranger = Party::new(&app).await;
    let foreign = format!("/partner{path}");
    app.get_as(&stranger.key, &foreign).await.error(404);
    let deleted = app.web(Method::DELETE, &path, Value::Null).await.data(200);
    assert_eq!(deleted, json!({ "tape_id": id, "deleted": true }));
    for below in ["", "/rows", "/report", "/rows/2/picture"] {
        app.get(&format!("{foreign}{below}")).await.error(404);
    }
    app.web(Method::DELETE, &path, Value::Null).await.error(404);

    app.wait_until_idle().await;
    assert_eq!(app.count("tape_row").await, 0);
    let files = files_below(app.data.path());
    let is_of_tape = |file: &&std::path::PathBuf| file.to_string_lossy().contains(id);
    assert_eq!(files.iter().find(is_of_tape), None);
    let entry = app
        .text_of("select details from ledger_entry where action = 'tape.deleted'")
        .await;
    let entry: Value = serde_json::from_str(&entry).unwrap();
    assert_eq!(entry["tape_sha256"], tape["tape_sha256"]);
    assert_eq!(entry["sha256"], tape["sha256"]);
    assert_eq!(entry["reason"], "requested");

    // Also while it is being checked: the job that finds no tape is done.
    let next = checked(&app, &app.key, &file, "Line 12").await;
    app.execute("update tape set status = 'checking'").await;
    let path = format!("/control/tapes/{}", next["tape_id"].as_str().unwrap());
    app.web(Method::DELETE, &path, Value::Null).await.data(200);
    app.wait_until_idle().await;
    assert_eq!(app.count("tape_row").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tapes_are_deleted_after_the_retention_of_their_organization() {
    let app = TestApp::start().await;
    let other = Party::new(&app).await;
    let file = "Loan,VIN,Amount\nA-1,,5\n";
    checked(&app, &app.key, file, "Line 12").await;
    let kept = checked(&app, &other.key, file, "Line 12").await;

    let settings = |days: Value| json!({ "tape_retention_days": days });
    let path = "/organization";
    let refused = app.web(Method::PATCH, path, settings(json!(0))).await;
    assert!([400, 422].contains(&refused.status.as_u16()));
    let set = app.web(Method::PATCH, path, settings(json!(30))).await;
    assert_eq!(set.data(200)["tape_retention_days"], 30);

    let later = app.as_of(Duration::from_secs(31 * 86_400)).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    while later.get("/partner/control/tapes").await.data(200) != json!([]) {
        assert!(Instant::now() < deadline, "the tape is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let entry = later
        .text_of("select details from ledger_entry where action = 'tape.deleted'")
        .await;
    assert!(entry.contains("\"retention\""), "{entry}");

    // Without the setting, tapes stay.
    let path = format!(
        "/partner/control/tapes/{}",
        kept["tape_id"].as_str().unwrap()
    );
    later.get_as(&other.key, &path).await.data(200);
}

/// A file that stays damaged or missing is given up with the reason, and counts no more against the limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_tape_without_its_file_fails_after_some_checks() {
    let app = TestApp::start().await;
    let tape = checked(&app, &app.key, "Loan,VIN,Amount\nA-1,,5\n", "Line 12").await;
    let id = TapeId::parse(tape["tape_id"].as_str().unwrap()).unwrap();
    app.execute(
        "update tape set status = 'checking', failures = 6, summary = null,
             file = replace(file, 'tapes/', 'tapes/gone-')",
    )
    .await;
    let job = CheckTape { tape: id.clone() };
    let mut tx = app.store.begin().await.unwrap();
    jobs::insert(&mut tx, &app.org, &job, None, of_machine())
        .await
        .unwrap();
    tx.commit().await.unwrap();

    // The seventh check is tried again a second later, and the eighth is the last one.
    let failed = wait(&app, &app.key, id.as_str()).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["refusal"]["code"], "file_missing");
    assert_eq!(
        code(&report(&app, &failed, "").await, 409),
        "tape_not_checked"
    );
}

/// Requests at the same moment do not pass the limit together.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_tapes_holds_for_requests_at_once_on_postgresql() {
    let app = TestApp::on_postgresql().await;
    app.stop_working();
    let map = map().to_string();
    let texts = [("name", "Line 12"), ("map", map.as_str())];
    let sent = (0..9).map(|_| send(&app, &app.key, "Loan,VIN,Amount\n", &texts));
    let sent = futures::future::join_all(sent).await;
    let accepted = sent.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(accepted, 5);
    let refused = sent.iter().filter(|answer| answer.status == 429).count();
    assert_eq!(refused, 4);
}

/// Every kind of bad row and cell is reported with its line, and nothing of the rest is lost.
#[tokio::test(flavor = "multi_thread")]
async fn bad_cells_and_rows_are_findings_and_the_rest_is_compared() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    for (number, amount) in [("A-1", "21,500.00"), ("A-2", "5.00"), ("A-3", "1,250.00")] {
        contract(&app, number, VINS[1], amount).await;
    }
    let huge = "9".repeat(2 * 1024 * 1024);
    let text = format!(
        "Loan\tAmount\nA-1\tNaN\nA-1\t=A1*2\nA-2\t5,0\nA-2\t5\t6\n{huge}\t5\n\
         A-3\t(1,250.00)\nA-3\t\"1,250.00\"\n"
    );
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    let wide: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    let map = json!({ "columns": [
        { "column": "Loan", "fact": "contract_number" }, { "column": "Amount", "fact": "amount_financed" },
    ] });
    let map = map.to_string();
    let texts = [("name", "Line 12"), ("map", map.as_str())];
    let sent = app
        .upload_as(
            &app.key,
            "/partner/control/tapes",
            "text/csv",
            &wide,
            &texts,
        )
        .await;
    let tape = wait(&app, &app.key, sent.data(202)["tape_id"].as_str().unwrap()).await;
    let found = rows(&app, &app.key, &tape, "").await;
    let of_lines: Vec<(i64, &str)> = found
        .iter()
        .map(|row| (row["line"].as_i64().unwrap(), codes(row)[0]))
        .collect();
    assert_eq!(
        of_lines,
        [
            (2, "unreadable"),
            (3, "unreadable"),
            (4, "unreadable"),
            (5, "unreadable_row"),
            (6, "unreadable_row"),
            (7, "different"),
            (8, "duplicate_contract_number"),
        ],
        "{found:#?}"
    );
    assert_eq!(tape["totals"]["rows"], 7);
}

/// The check of a stranger's tape writes nothing about a contract of others, though the tape names it in full.
#[tokio::test(flavor = "multi_thread")]
async fn tapes_of_strangers_leave_no_trace_of_a_contract() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    let id = contract(&app, "A-1", VINS[0], "21,500.00").await;
    let (lender, stranger) = (Party::new(&app).await, Party::new(&app).await);
    designate(&app, &id, &lender.org).await.data(200);
    lender.act(&app, &id, "accept", json!({})).await.data(200);
    app.wait_until_idle().await;

    let before = reads::rows(&app).await;
    let file = format!("Loan,VIN,Amount\nA-1,{},21500\n", VINS[0]);
    let tape = checked(&app, &stranger.key, &file, "Line 12").await;
    assert_eq!(tape["totals"]["unmatched"], 1);
    app.wait_until_idle().await;

    for (table, after) in reads::rows(&app).await {
        let known: Vec<&str> = before
            .get(&table)
            .map_or("", String::as_str)
            .lines()
            .collect();
        for line in after.lines().filter(|line| !known.contains(line)) {
            assert!(!line.contains(VINS[0]), "{table}: {line}");
            // Tables of the background may have changed for the others.
            if line.contains(stranger.org.as_str()) {
                for hidden in [id.as_str(), app.org.as_str(), lender.org.as_str()] {
                    assert!(!line.contains(hidden), "{table}: {line}");
                }
            }
        }
    }
    let events = lender.events(&app, &id).await;
    let mut names = events
        .iter()
        .filter_map(|event| event["event_type"].as_str());
    assert!(!names.any(|name| name.contains("tape")));
}

/// A worker that died continues behind the last chunk, and the result is the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_continues_after_a_crash_with_the_same_result() {
    let app = TestApp::start().await;
    let rows_of = |count: usize| -> String {
        let rows = (0..count).map(|number| format!("A-{number},,5\n"));
        std::iter::once("Loan,VIN,Amount\n".to_owned())
            .chain(rows)
            .collect()
    };
    // The state behind the first chunk of the long tape is the one at the end of the short tape.
    let short = checked(&app, &app.key, &rows_of(1_000), "Short").await;
    let long = checked(&app, &app.key, &rows_of(2_500), "Long").await;
    assert_eq!(long["totals"]["unmatched"], 2_500);

    let long_id = TapeId::parse(long["tape_id"].as_str().unwrap()).unwrap();
    app.change(
        "update tape set status = 'checking', done = 1000, summary = null, ledger_sequence = null,
             progress = (select s.progress from tape s where s.tape_id = $1)
         where name = 'Long'",
        short["tape_id"].as_str().unwrap(),
    )
    .await;
    app.change(
        "delete from tape_row where line > 1001 and tape_id = $1",
        long_id.as_str(),
    )
    .await;

    let job = CheckTape {
        tape: long_id.clone(),
    };
    let mut tx = app.store.begin().await.unwrap();
    jobs::insert(&mut tx, &app.org, &job, None, of_machine())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let again = wait(&app, &app.key, long_id.as_str()).await;
    assert_eq!(again["sha256"], long["sha256"]);
    assert_eq!(again["totals"], long["totals"]);
    let all = rows(&app, &app.key, &again, "starting_after=2450").await;
    assert_eq!(all.last().unwrap()["line"], 2_501);
}

#[tokio::test(flavor = "multi_thread")]
async fn tapes_that_wait_are_limited_and_a_report_needs_a_result() {
    let app = TestApp::start().await;
    let tape = checked(&app, &app.key, "Loan,VIN,Amount\n", "Line 12").await;
    let id = tape["tape_id"].as_str().unwrap();
    app.change("update tape set status = 'checking' where tape_id = $1", id)
        .await;
    let early = report(&app, &tape, "").await;
    assert_eq!(code(&early, 409), "tape_not_checked");

    for number in 0..4 {
        checked(
            &app,
            &app.key,
            "Loan,VIN,Amount\n",
            &format!("Line {number}"),
        )
        .await;
    }
    app.execute("update tape set status = 'checking'").await;
    let map = map().to_string();
    let texts = [("name", "One more"), ("map", map.as_str())];
    let refused = send(&app, &app.key, "Loan,VIN,Amount\n", &texts).await;
    assert_eq!(code(&refused, 429), "too_many_tapes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tape_is_compared_in_the_console() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    contract(&app, "A-1", VINS[0], "21,500.00").await;
    let olga = Session::of(&app, "olga@oak.example", "owner").await;
    let page = olga.get(&app, "/console/tapes").await.text();
    assert!(page.contains("There are no tapes yet."), "{page}");

    let columns = "Loan = contract_number\nAmount = amount_financed";
    let form: String = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("map", "Line 12")
        .append_pair("columns", columns)
        .append_pair("date_order", "")
        .append_pair("decimal", ".")
        .finish();
    let saved = olga.post(&app, "/console/tapes/maps", &form).await;
    assert_eq!(saved.status, 303, "{}", saved.text());
    let wrong = form.replace("amount_financed", "contract_number");
    let refused = olga.post(&app, "/console/tapes/maps", &wrong).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("has two columns"),
        "{}",
        refused.text()
    );

    let texts = [("name", "Warehouse line"), ("map_name", "Line 12")];
    let file = b"Loan,Amount\nA-1,22500\n";
    let sent = olga.upload(&app, "/console/tapes", file, &texts).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let path = sent.headers["location"].to_str().unwrap().to_owned();
    let id = path.rsplit('/').next().unwrap();
    wait(&app, &app.key, id).await;

    let page = olga.get(&app, &path).await.text();
    let shown = [
        "Row 2",
        "22500",
        "21500.00",
        "page 1 of the contract",
        "rows agree with their contracts",
        "findings that stop: ",
        "Rows that need attention",
        "Tape:",
        "Contract:",
    ];
    for text in shown {
        assert!(page.contains(text), "{text}: {page}");
    }
    let table = olga.get(&app, &format!("{path}/report/csv")).await;
    assert!(table.text().contains("different"), "{}", table.text());
    let unknown = olga.get(&app, &format!("{path}/report/xlsx")).await;
    assert_eq!(unknown.status, 404);

    let corrected = b"Loan,Amount\nA-1,21500\n";
    let sent = olga.upload(&app, "/console/tapes", corrected, &texts).await;
    let path = sent.headers["location"].to_str().unwrap().to_owned();
    wait(&app, &app.key, path.rsplit('/').next().unwrap()).await;
    let page = olga.get(&app, &path).await.text();
    assert!(page.contains("No row needs attention."), "{page}");

    // A file without the columns comes back with the reason.
    let refused = olga.upload(&app, "/console/tapes", b"a,b\n", &texts).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text().contains("none of the mapped columns"),
        "{}",
        refused.text()
    );
}

/// The columns of a file are chosen in the console, and the next tape of the name begins with the choice.
#[tokio::test(flavor = "multi_thread")]
async fn columns_are_chosen_and_remembered() {
    let app = TestApp::start().await;
    fact_map(&app).await;
    contract(&app, "A-1", VINS[0], "21,500.00").await;
    let olga = Session::of(&app, "olga@oak.example", "owner").await;
    let file = b"Loan No.,Colour,Financed\nA-1,red,22500\n";
    let texts = [("name", "Line 12"), ("map_name", ""), ("pool", "")];

    let sent = olga.upload(&app, "/console/tapes", file, &texts).await;
    assert_eq!(sent.status, 303, "{}", sent.text());
    let columns = sent.headers["location"].to_str().unwrap().to_owned();
    let tape = columns.strip_suffix("/columns").unwrap();
    let id = tape.rsplit('/').next().unwrap();
    let waiting = app.get(&format!("/partner/control/tapes/{id}")).await;
    let waiting = waiting.data(200);
    assert_eq!(waiting["status"], "choosing");
    assert_eq!(waiting["header"], json!(["Loan No.", "Colour", "Financed"]));

    // The number of the contract is known by its name, and the others are not.
    let page = olga.get(&app, &columns).await.text();
    let is_chosen = |page: &str, fact: &str| {
        page.contains(&format!(
            "<option value=\"{fact}\" selected>{fact}</option>"
        ))
    };
    assert!(is_chosen(&page, "contract_number"), "{page}");
    assert!(!is_chosen(&page, "amount_financed"), "{page}");
    let chosen = |amount: &str, tolerance: &str| {
        url::form_urlencoded::Serializer::new(String::new())
            .append_pair("fact-0", "contract_number")
            .append_pair("fact-2", amount)
            .append_pair("tolerance-2", tolerance)
            .append_pair("severity-2", "warn")
            .append_pair("key-0", "contract_number")
            .finish()
    };
    for (amount, tolerance, problem) in [
        ("colour", "", "Choose one of the options"),
        ("contract_number", "", "This fact has two columns."),
        ("amount_financed", "-1", "Enter a number of 0 or more."),
    ] {
        let refused = olga.post(&app, &columns, &chosen(amount, tolerance)).await;
        assert_eq!(refused.status, 422);
        assert!(
            refused.text().contains(problem),
            "{problem}: {}",
            refused.text()
        );
    }
    let right = chosen("amount_financed", "500");
    let taken = olga.post(&app, &columns, &right).await;
    assert_eq!(taken.status, 303, "{}", taken.text());
    let checked = wait(&app, &app.key, id).await;
    assert_eq!(checked["totals"]["warn"], 1, "{checked}");
    let late = olga.post(&app, &columns, &right).await;
    assert_eq!(late.status, 409, "the choice is made");

    // The page of the tape shows the place, and leads to its deletion.
    let page = olga.get(&app, tape).await.text();
    let picture = format!("{tape}/pictures/2-0.png");
    assert!(page.contains(&picture), "{page}");
    let drawn = olga.get(&app, &picture).await;
    assert_eq!(drawn.headers["content-type"], "image/png");
    assert_eq!(drawn.headers["cache-control"], "no-store");
    for unknown in ["2-9.png", "2.png", "9-0.png"] {
        let path = format!("{tape}/pictures/{unknown}");
        assert_eq!(olga.get(&app, &path).await.status, 404, "{unknown}");
    }

    let next = olga.upload(&app, "/console/tapes", file, &texts).await;
    let columns = next.headers["location"].to_str().unwrap().to_owned();
    let page = olga.get(&app, &columns).await.text();
    assert!(is_chosen(&page, "amount_financed"), "{page}");
    let tape = columns.strip_suffix("/columns").unwrap();
    let delete = format!("{tape}/delete");
    let asks = olga.post(&app, &delete, "").await;
    assert!(
        asks.text().contains("cannot be restored"),
        "{}",
        asks.text()
    );
    assert_eq!(olga.post(&app, &delete, "sure=yes").await.status, 303);
    assert_eq!(olga.get(&app, tape).await.status, 404);

    // A file without names of columns comes back with the reason, and so does an unknown pool.
    let refused = olga.upload(&app, "/console/tapes", b";;\n", &texts).await;
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(text.contains("begins with no names of columns"), "{text}");
    let unknown = [
        ("name", "Line 12"),
        ("pool", "trf_01h455vb4pex5vsknk084sn02q"),
    ];
    let refused = olga.upload(&app, "/console/tapes", file, &unknown).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("Choose one of the options"));
}
