//! Dates of a contract, and the notices before them.

use std::time::Duration;

use axum::http::Method;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, envelope_body, pdf};

const DAY: Duration = Duration::from_secs(86_400);

/// Returns the day so many days from now, in UTC as the organization has it.
fn in_days(days: i64) -> String {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    today.checked_add(days.days()).unwrap().to_string()
}

fn end_of_term(days: i64, notices: &[u16]) -> Value {
    json!({
        "name": "End of the term", "date": in_days(days), "notice_days": notices,
        "notify": ["servicing@oak.example"],
    })
}

async fn set(app: &TestApp, id: &str, dates: Value) -> TestResponse {
    let path = format!("/partner/envelopes/{id}/contract-dates");
    app.put(&path, json!({ "contract_dates": dates })).await
}

async fn sent(app: &TestApp) -> String {
    let envelope = app.sent_envelope().await;
    envelope["envelope_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_before_a_date_and_on_it() {
    let app = TestApp::start().await;
    let id = sent(&app).await;
    let dates = json!([end_of_term(10, &[30, 7, 0])]);
    let envelope = set(&app, &id, dates).await.data(200);
    // The notice of thirty days before is past.
    assert_eq!(envelope["contract_dates"][0]["left"], json!([7, 0]));

    let week_before = app.as_of(DAY * 4).await;
    let notice = week_before.wait_for_entry(&id, "envelope.date_near").await;
    assert_eq!(notice["name"], "End of the term");
    // It comes a day late, and counts from the day on which it comes.
    assert_eq!(notice["days"], 6);
    let is_told = |mail: &String| {
        mail.contains("To: servicing@oak.example")
            && mail.replace("=\r\n", "").contains("In 6 days")
    };
    week_before.wait_for_mail(is_told).await;

    let day_after = app.as_of(DAY * 11).await;
    day_after
        .wait_for_mail(|mail| mail.replace("=\r\n", "").contains("has passed"))
        .await;
    let path = format!("/partner/envelopes/{id}");
    let envelope = app.get(&path).await.data(200);
    assert_eq!(envelope["contract_dates"][0]["left"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_that_stays_keeps_its_notices_and_a_removed_one_gives_none() {
    let app = TestApp::start().await;
    let id = sent(&app).await;
    let term = end_of_term(3, &[2]);
    let payment = json!({ "name": "First payment", "date": in_days(3), "notice_days": [2] });
    set(&app, &id, json!([term, payment])).await.data(200);

    let later = app.as_of(DAY * 2).await;
    later.wait_for_entry(&id, "envelope.date_near").await;
    later.wait_until_idle().await;
    let kept = set(&app, &id, json!([term])).await.data(200);
    assert_eq!(kept["contract_dates"][0]["left"], json!([]));

    let moved = end_of_term(40, &[2]);
    set(&app, &id, json!([moved])).await.data(200);
    let none = set(&app, &id, json!([])).await.data(200);
    assert_eq!(none["contract_dates"], Value::Null);
    let after = app.as_of(DAY * 50).await;
    after.wait_until_idle().await;
    let ledger = after.custody(&id).await;
    let entries = ledger["entries"].as_array().unwrap().iter();
    let notices = entries.filter(|entry| entry["action"] == "envelope.date_near");
    assert_eq!(notices.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn dates_that_cannot_be_are_refused_by_their_place() {
    let app = TestApp::start().await;
    let id = sent(&app).await;
    let named = |name: &str| json!({ "name": name, "date": in_days(5) });
    for (dates, path) in [
        (
            json!([named("Term"), named("Term")]),
            json!(["contract_dates", 1, "name"]),
        ),
        (json!([named(" ")]), json!(["contract_dates", 0, "name"])),
        (
            json!([{ "name": "Term", "date": "2027-02-30" }]),
            json!(["contract_dates", 0, "date"]),
        ),
        (
            json!([{ "name": "Term", "date": in_days(5), "notify": ["nowhere"] }]),
            json!(["contract_dates", 0, "notify", 0]),
        ),
        (
            json!([{ "name": "Term", "date": in_days(5), "notice_days": [366] }]),
            json!(["contract_dates", 0, "notice_days", 0]),
        ),
    ] {
        let refused = set(&app, &id, dates.clone()).await;
        assert_eq!(refused.status, 422, "{dates}: {}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], path, "{dates}");
    }

    let path = format!("/partner/envelopes/{id}");
    assert_eq!(
        app.get(&path).await.data(200)["contract_dates"],
        Value::Null
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voided_envelope_has_no_dates() {
    let app = TestApp::start().await;
    let id = sent(&app).await;
    let path = format!("/partner/envelopes/{id}/void");
    app.post(&path, json!({ "reason": "wrong price" }))
        .await
        .data(200);
    let refused = set(&app, &id, json!([end_of_term(5, &[])])).await;
    assert_eq!(
        refused.error(409),
        "Cannot set dates of an envelope with status: voided"
    );
}

/// Creates a fact map with dates from the text, and one from metadata as well.
async fn map_of_dates(app: &TestApp) {
    let fact = |name: &str, anchor: &str| {
        json!({
            "name": name, "kind": "date", "date_order": "mdy", "declared": name,
            "printed": [{ "anchor": anchor, "direction": "right_of" }],
        })
    };
    let map = json!({
        "name": "Loan", "applies_to": { "all": true },
        "facts": [
            fact("maturity_date", "Maturity Date"),
            fact("first_payment_date", "First Payment Date"),
            fact("renewal_date", "Renewal Date"),
        ],
    });
    app.web(Method::POST, "/fact-maps", map).await.data(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_become_dates_when_a_contract_is_vaulted() {
    let app = TestApp::start().await;
    map_of_dates(&app).await;
    let wanted = |fact: &str, name: &str| json!({ "fact": fact, "name": name, "notice_days": [60], "notify": ["servicing@oak.example"] });
    let wanted = json!({ "contract_dates": [
        wanted("maturity_date", "End of the term"),
        wanted("first_payment_date", "First payment"),
        wanted("renewal_date", "Renewal"),
        wanted("delivery_date", "Delivery"),
    ] });
    let set_facts = app.web(Method::PATCH, "/organization", wanted).await;
    assert_eq!(
        set_facts.data(200)["contract_dates"][3]["fact"],
        "delivery_date"
    );

    let day: Date = in_days(70).parse().unwrap();
    let printed = day.strftime("%m/%d/%Y");
    let contract = pdf::with_lines(&[
        &format!("Maturity Date {printed}"),
        &format!("First Payment Date {printed}"),
        &format!("Renewal Date {printed}"),
    ]);
    let mut body = envelope_body(&Value::Null);
    body["envelope_kind"] = "paper".into();
    // The text has another day: neither day causes a notice.
    body["metadata"] = json!({ "renewal_date": "2039-01-31" });
    let paper = app.post("/partner/envelopes", body).await.data(201);
    let id = paper["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}");
    let upload = format!("{path}/upload");
    app.upload(&upload, "application/pdf", &contract, &[])
        .await
        .data(201);
    let own = json!({ "name": "First payment", "date": in_days(20), "notice_days": [] });
    set(&app, id, json!([own])).await.data(200);
    let vault = format!("{path}/vault-in-upload");
    app.post(&vault, json!({})).await.data(200);

    let envelope = app.get(&path).await.data(200);
    let dates = envelope["contract_dates"].as_array().unwrap().iter();
    let dates: Vec<(&Value, &Value)> = dates.map(|date| (&date["name"], &date["date"])).collect();
    assert_eq!(
        dates,
        [
            (&json!("First payment"), &json!(in_days(20))),
            (&json!("End of the term"), &json!(in_days(70))),
        ]
    );
    let entry = app.wait_for_entry(id, "envelope.dates_set").await;
    assert_eq!(entry["to"].as_array().unwrap().len(), 2, "{entry}");

    let later = app.as_of(DAY * 11).await;
    let notice = later.wait_for_entry(id, "envelope.date_near").await;
    assert_eq!(notice["name"], "End of the term");
    let is_told = |mail: &String| mail.contains("To: servicing@oak.example");
    later.wait_for_mail(is_told).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_with_one_name_for_two_dates_are_refused() {
    let app = TestApp::start().await;
    let date = |fact: &str| json!({ "fact": fact, "name": "End of the term" });
    let twice = json!({ "contract_dates": [date("maturity_date"), date("end_date")] });
    let refused = app.web(Method::PATCH, "/organization", twice).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    let path = &refused.json()["details"][0]["path"];
    assert_eq!(*path, json!(["contract_dates"]));
}
