//! Retention schedules, reported payoffs, and records that are due.

mod destruction;
pub mod holds;
mod paths;
mod store_holds;

use std::time::{Duration, Instant};

use axum::http::Method;
use holdfast::config::Config;
use holdfast::domain::envelope::{Envelope, EnvelopeKind, EnvelopeStatus};
use holdfast::domain::id::CustomerId;
use holdfast::domain::organization::OrgSettings;
use holdfast::retention;
use holdfast::store::envelopes;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use serde_json::{Value, json};

use crate::support::{TestApp, TestResponse, postgres};

const DAY: Duration = Duration::from_secs(86_400);

/// Returns the day so many days from now, in UTC.
fn in_days(days: i64) -> String {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    today.checked_add(days.days()).unwrap().to_string()
}

fn schedule(name: &str, event: &str, keep_months: u16) -> Value {
    json!({ "name": name, "event": event, "keep_months": keep_months })
}

async fn set(app: &TestApp, schedules: Value) -> TestResponse {
    let body = json!({ "schedules": schedules });
    app.put("/partner/retention-schedules", body).await
}

async fn pay_off(app: &TestApp, id: &str, date: &str) -> TestResponse {
    let path = format!("/partner/envelopes/{id}/retention-events");
    let body = json!({ "event": "paid_off", "date": date });
    app.post(&path, body).await
}

async fn retention_of(app: &TestApp, id: &str) -> Value {
    let path = format!("/partner/envelopes/{id}/retention");
    let found = app.get(&path).await.data(200);
    // The page of the web app has the same.
    let path = format!("/envelopes/{id}");
    let envelope = app.web(Method::GET, &path, Value::Null).await;
    assert_eq!(envelope.data(200)["retention"], found["retention"]);
    found["retention"].clone()
}

async fn due(app: &TestApp) -> Vec<Value> {
    let found = app.get("/partner/retention/due").await.data(200);
    found.as_array().unwrap().clone()
}

/// Waits until so many records are due.
async fn wait_for_due(app: &TestApp, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = due(app).await;
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < deadline, "{found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns an envelope with a status, which is not stored yet.
fn made(app: &TestApp, status: EnvelopeStatus) -> Envelope {
    let now = app.service.clock.now();
    let mut envelope = Envelope::new(
        app.org.clone(),
        CustomerId::new(),
        "Made".into(),
        EnvelopeKind::Esign,
        "user:ada@oak.example".into(),
        now,
    );
    envelope.status = status;
    envelope
}

/// Inserts an envelope with a status, and returns its id.
async fn inserted(app: &TestApp, status: EnvelopeStatus) -> String {
    let envelope = made(app, status);
    let mut tx = app.store.begin().await.unwrap();
    envelopes::insert(&mut tx, &envelope).await.unwrap();
    tx.commit().await.unwrap();
    envelope.id.to_string()
}

async fn a_paid_off_contract_is_proposed_on_its_day(change: impl FnOnce(&mut Config)) {
    let app = TestApp::with(change, OrgSettings::default()).await;
    let id = app.vaulted_envelope().await;
    assert_eq!(retention_of(&app, &id).await, Value::Null);

    let contracts = schedule("Contracts", "paid_off", 1);
    let all = schedule("All", "created", 1);
    set(&app, json!([all, contracts])).await.data(200);
    // The contract is open, so no other schedule gives it a day.
    let waiting = retention_of(&app, &id).await;
    assert_eq!(waiting["schedule"], "Contracts");
    assert_eq!(waiting["destroy_after"], Value::Null);

    // A day after the creation, so that this schedule ends last.
    let paid = pay_off(&app, &id, &in_days(1)).await.data(200);
    assert_eq!(paid["paid_off"], in_days(1).as_str());
    assert_eq!(paid["retention"]["event_date"], in_days(1).as_str());
    assert_eq!(retention_of(&app, &id).await, paid["retention"]);
    assert_eq!(due(&app).await, Vec::<Value>::new());

    // The contents of events would be gone by then.
    let keep = |config: &mut Config| config.webhooks.retention = DAY * 90;
    let later = app.as_of_with(DAY * 40, keep).await;
    let found = wait_for_due(&later, 1).await;
    assert_eq!(found[0]["envelope_id"], id);
    assert_eq!(
        found[0]["destroy_after"],
        paid["retention"]["destroy_after"]
    );
    assert_eq!(found[0]["under_hold"], false);
    // It is proposed and stays in the vault.
    assert_eq!(later.wait_for(&id, "vaulted").await["vaulted"], true);
    assert!(retention_of(&later, &id).await["proposed_at"].is_string());
    assert_eq!(
        later.entry(&id, "retention.due").await["schedule"],
        "Contracts"
    );

    // The event goes out once, however often the run is made.
    assert_eq!(retention::propose(&later.service).await.unwrap(), 0);
    let events = later.event_types(&id).await;
    let times = events.iter().filter(|event| *event == "retention.due");
    assert_eq!(times.count(), 1);
    later.events_fit_their_schemas(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_off_contract_is_proposed_on_its_day_on_sqlite() {
    a_paid_off_contract_is_proposed_on_its_day(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paid_off_contract_is_proposed_on_its_day_on_postgresql() {
    let database = postgres::new_database().await;
    a_paid_off_contract_is_proposed_on_its_day(|config| config.database_url = Some(database)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_payoff_makes_no_second_entry_and_a_corrected_one_does() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let first = pay_off(&app, &id, &in_days(-3)).await.data(200);
    assert_eq!(first["retention"], Value::Null);
    assert_eq!(pay_off(&app, &id, &in_days(-3)).await.data(200), first);
    assert_eq!(
        app.entry(&id, "envelope.paid_off").await["date"],
        in_days(-3).as_str()
    );

    pay_off(&app, &id, &in_days(-2)).await.data(200);
    let events = app.event_types(&id).await;
    let times = events.iter().filter(|event| *event == "envelope.paid_off");
    assert_eq!(times.count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payoff_is_of_a_contract_and_not_of_the_future() {
    let app = TestApp::start().await;
    let id = app.vaulted_envelope().await;
    let refused = pay_off(&app, &id, &in_days(2)).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(refused.json()["details"][0]["path"], json!(["date"]));
    // It may be tomorrow already where the contract is.
    pay_off(&app, &id, &in_days(1)).await.data(200);

    let open = app.sent_envelope().await;
    let refused = pay_off(&app, open["envelope_id"].as_str().unwrap(), &in_days(0)).await;
    assert!(refused.error(409).contains("no contract"));
    pay_off(&app, "env_01jdk7m3e8f4x9s2w5v6b0c1dc", &in_days(0))
        .await
        .error(404);
    let path = format!("/partner/envelopes/{id}/retention-events");
    let other = json!({ "event": "declined", "date": in_days(0) });
    assert_eq!(app.post(&path, other).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_that_cannot_be_are_refused_by_their_place() {
    let app = TestApp::start().await;
    let one = schedule("One", "created", 1);
    for (schedules, path) in [
        (
            json!([schedule(" ", "created", 1)]),
            json!(["schedules", 0, "name"]),
        ),
        (json!([one, one]), json!(["schedules", 1, "name"])),
        (
            json!([one, schedule("Two", "created", 2)]),
            json!(["schedules", 1, "event"]),
        ),
        (
            json!([schedule("None", "created", 0)]),
            json!(["schedules", 0, "keep_months"]),
        ),
        (
            json!([schedule("Never", "shredded", 1)]),
            json!(["schedules", 0, "event"]),
        ),
    ] {
        let refused = set(&app, schedules).await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert_eq!(refused.json()["details"][0]["path"], path);
    }

    let none = app.get("/partner/retention-schedules").await.data(200);
    assert_eq!(none["schedules"], json!([]));
    set(&app, json!([one])).await.data(200);
    let own = app
        .web(Method::GET, "/retention-schedules", Value::Null)
        .await;
    assert_eq!(own.data(200)["schedules"], json!([one]));
    let other = app.other_organization().await;
    let theirs = app.get_as(&other, "/partner/retention-schedules").await;
    assert_eq!(theirs.data(200)["schedules"], json!([]));
}

/// A schedule that keeps records longer takes the proposals back.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_not_due_any_more_is_withdrawn() {
    let app = TestApp::start().await;
    set(&app, json!([schedule("Ended", "declined", 1)]))
        .await
        .data(200);
    let id = inserted(&app, EnvelopeStatus::Declined).await;
    let later = app.as_of(DAY * 40).await;
    wait_for_due(&later, 1).await;

    set(&later, json!([schedule("Ended", "declined", 12)]))
        .await
        .data(200);
    wait_for_due(&later, 0).await;
    later.wait_for_entry(&id, "retention.withdrawn").await;
}

/// The run over records of which none is due. It commits nothing.
async fn a_run_without_a_due_record_writes_nothing(app: &TestApp, records: usize) {
    app.stop_working();
    // Its tasks end between two steps.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let now = app.service.clock.now();
    set(app, json!([schedule("All", "created", 84)]))
        .await
        .data(200);
    let mut left = records;
    while left > 0 {
        let mut tx = app.store.begin().await.unwrap();
        let batch = left.min(1_000);
        for _ in 0..batch {
            let envelope = Envelope::new(
                app.org.clone(),
                CustomerId::new(),
                "Made".into(),
                EnvelopeKind::Esign,
                "user:ada@oak.example".into(),
                now,
            );
            envelopes::insert(&mut tx, &envelope).await.unwrap();
        }
        tx.commit().await.unwrap();
        left -= batch;
    }

    let commits = app.service.store.commits();
    assert_eq!(retention::propose(&app.service).await.unwrap(), 0);
    assert_eq!(app.service.store.commits(), commits);
}

/// Three pages of records. The section `console` of the benchmark has 100,000 of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_many_records_writes_nothing_while_none_is_due() {
    for app in [TestApp::start().await, TestApp::on_postgresql().await] {
        a_run_without_a_due_record_writes_nothing(&app, 2_500).await;
    }
}
