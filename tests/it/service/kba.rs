//! Identity questions in front of a document: who gets them, their outcomes, and the data kept.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use holdfast::config::{Config, DeploymentEnvironment};
use holdfast::domain::clock::Timestamp;
use holdfast::domain::component::Slot;
use holdfast::domain::id::OrgId;
use holdfast::domain::organization::OrgSettings;
use holdfast::store::kba;
use scraper::{Html, Selector};
use serde_json::{Value, json};

use crate::http::console::Session;
use crate::service::components::registry::first_calls;
use crate::support::method::{CODE, FakeMethod, SECRET_KEY};
use crate::support::{
    TestApp, TestResponse, envelope_body, files_below, form, operator, operator_output, pdf,
    release_form,
};

/// Personal data that must not be stored anywhere.
const BORN: &str = "1980-02-29";
/// No number in a PDF begins with a zero, so a document that contains these digits contains the entry.
const SSN: &str = "0973";

/// Creates a template with identity verification.
async fn asking(app: &TestApp) -> Value {
    let tagged = pdf::with_lines(&["Agreement", "{{Sign;type=signature;role=Buyer}}"]);
    let texts = [("name", "Asking"), ("kba_required", "true")];
    let made = app.library_template(&texts, &tagged).await.data(201);
    assert_eq!(made["kba_required"], true);
    made["template_id"].clone()
}

/// Sends an envelope to this address; returns its id and the signing link.
async fn sent_to(app: &TestApp, email: &str) -> (String, String) {
    let mut body = envelope_body(&asking(app).await);
    body["customer_email"] = email.into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("envelope_id"), text("sign_url"))
}

/// Opens a link.
async fn open(app: &TestApp, url: &str) -> TestResponse {
    form::open(app, url).await
}

/// Posts a form.
async fn enter(app: &TestApp, url: &str, values: &[(&str, &str)]) -> TestResponse {
    let path = url.replace("http://127.0.0.1:8080", "");
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(values);
    let request = Request::post(path)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body.finish()))
        .unwrap();
    app.send(request).await
}

const RIGHT: [(&str, &str); 3] = [("q1", "correct"), ("q2", "correct"), ("q3", "correct")];
const WRONG: [(&str, &str); 3] = [("q1", "correct"), ("q2", "wrong1"), ("q3", "correct")];

fn is_document(answer: &TestResponse) -> bool {
    answer.status == 200 && answer.text().contains("Fill in and sign")
}

async fn results(app: &TestApp, id: &str) -> Vec<Value> {
    let path = format!("/envelopes/{id}/kba");
    let all = app.get_with_bearer(app.web_admin(), &path).await.data(200);
    all.as_array().unwrap().clone()
}

async fn statuses(app: &TestApp, id: &str) -> Vec<String> {
    let text = |result: Value| result["status"].as_str().unwrap().to_owned();
    results(app, id).await.into_iter().map(text).collect()
}

/// The sandbox of the contract: three right answers to three questions pass. The result appears
/// everywhere the specification requires it.
#[tokio::test(flavor = "multi_thread")]
async fn three_right_answers_open_the_document() {
    let app = TestApp::on_a_socket().await;
    let mut body = envelope_body(&asking(&app).await);
    body["customer_email"] = "kim@birch.example".into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    let (id, url) = (
        made["envelope_id"].as_str().unwrap(),
        made["sign_url"].as_str().unwrap(),
    );

    let client = reqwest::Client::new();
    let gate = client.get(url).send().await.unwrap().text().await.unwrap();
    assert!(gate.contains("Answer these questions") && !gate.contains("Fill in and sign"));

    {
        let page = Html::parse_document(&gate);
        for (name, right) in RIGHT {
            let control = format!("form input[type=radio][name={name}][value={right}]");
            assert_eq!(page.select(&Selector::parse(&control).unwrap()).count(), 1);
        }
    }

    // The document is not accessible before that.
    let picture = client
        .get(format!("{url}/pages/1.png"))
        .send()
        .await
        .unwrap();
    assert_eq!(picture.status(), 404);

    app.wait_for(id, "sent").await;
    let opened = client.post(url).form(&RIGHT).send().await.unwrap();
    let opened = opened.text().await.unwrap();
    assert!(opened.contains("Fill in and sign"), "{opened}");

    let picture = client
        .get(format!("{url}/pages/1.png"))
        .send()
        .await
        .unwrap();
    assert_eq!(picture.status(), 200);

    let known = results(&app, id).await;
    assert_eq!(known.len(), 1);

    let result = &known[0];
    assert_eq!(result["status"], "passed");
    assert_eq!(result["price_cents"], 400);
    assert_eq!(result["ip_address"], "127.0.0.1");
    assert_eq!(result["signer"]["email"], "kim@birch.example");

    let session = result["provider_session_id"].as_str().unwrap();
    assert!(session.starts_with("evf_"), "{session}");

    let entry = app.entry(id, "envelope.kba_verified").await;
    assert_eq!(entry["status"], "passed");
    assert_eq!(entry["provider_session_id"], session);
    assert_eq!(entry["sandbox"], true, "a sandbox proves nothing");

    app.wait_for_event(id, "kba.verified").await;
    let events = app.events(id).await;
    let told = events
        .iter()
        .find(|event| event["event_type"] == "kba.verified");
    let told = &told.unwrap()["data"];
    assert_eq!(told["status"], "passed");
    assert_eq!(told["signer"]["email"], "kim@birch.example");

    // After vaulting, the certificate states how the signer was identified.
    let page = client.get(url).send().await.unwrap().text().await.unwrap();
    let consent = form::tick_of(&page).unwrap();
    let signed = client.post(url).form(&[
        ("Sign", "Kim Birch"),
        ("consent", &consent),
        ("action", "finish"),
    ]);
    assert!(
        signed
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .contains("Thank you")
    );

    app.wait_for(id, "vaulted").await;
    let path = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&path).await.data(200);
    let identified = &certificate["identity_verification"][0];
    assert_eq!(identified["signer"], "kim@birch.example");
    assert_eq!(identified["session_id"], session);
    assert_eq!(identified["ip_address"], "127.0.0.1");
    assert_eq!(certificate["provenance"]["sandbox"], true);

    let checks = certificate["ucc_9105_compliance"]["checks"]
        .as_array()
        .unwrap();
    assert_eq!(checks.len(), 8);

    let path = format!("/partner/envelopes/{id}/vault-out");
    app.post(&path, release_form()).await.data(200);
    let report = operator(app.data.path(), &["verify", id]);
    assert_eq!(report["valid"], true, "{report:#}");

    app.events_fit_their_schemas(1).await;
}

/// KBA state × (open, sign, embed, pages).
#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_hidden_until_the_questions_are_answered() {
    let app = TestApp::start().await;
    for (state, email, answers, title, known) in [
        (
            "not asked yet",
            "kim@birch.example",
            None,
            "Answer these questions",
            vec![],
        ),
        (
            "failed",
            "kim@birch.example",
            Some(WRONG),
            "Your answers were not correct",
            vec!["failed"],
        ),
        (
            "unavailable",
            "kim+nohistory@birch.example",
            None,
            "Your identity could not be checked",
            vec!["unavailable"],
        ),
        (
            "passed",
            "kim@birch.example",
            Some(RIGHT),
            "Fill in and sign",
            vec!["passed"],
        ),
    ] {
        let (id, url) = sent_to(&app, email).await;
        let first = open(&app, &url).await;
        assert_eq!(first.status, 200, "{state}: {}", first.text());

        if let Some(answers) = answers {
            let answered = enter(&app, &url, &answers).await;
            let expected = if state == "passed" { 303 } else { 200 };
            assert_eq!(answered.status, expected, "{state}: {}", answered.text());
        }

        let shown = open(&app, &url).await.text();
        assert!(shown.contains(title), "{state}: {shown}");

        let passed = state == "passed";
        assert_eq!(shown.contains("Fill in and sign"), passed, "{state}");

        for page in ["1.png", "1.txt", "1.json"] {
            let page = open(&app, &format!("{url}/pages/{page}")).await;
            assert_eq!(page.status == 200, passed, "{state}: {}", page.status);
        }

        // Payment is not possible before the document may be seen.
        let pay = open(&app, &format!("{url}/pay")).await;
        assert_eq!(
            pay.headers["location"],
            url.replace("http://127.0.0.1:8080", "")
        );

        // A signer who skips the questions cannot sign.
        let values = [
            ("Sign".to_owned(), "Kim".to_owned()),
            ("consent".into(), form::TICK.into()),
        ];
        form::press(&app, &url, "finish", &values).await;
        let status = if passed { "completed" } else { "sent" };

        let path = format!("/partner/envelopes/{id}/status");
        let is = app.get(&path).await.data(200)["status"].clone();
        if passed {
            assert!(is == "completed" || is == "vaulted", "{is}")
        } else {
            assert_eq!(is, status, "{state}")
        }

        assert_eq!(statuses(&app, &id).await, known, "{state}");
        // An embedded form has no place for the questions (specification, "KBA").
        let body = json!({ "envelope_id": id, "user_email": email, "widget_type": "sign" });
        let refused = app.post("/embed/token", body).await;
        assert_eq!(refused.status, 409, "{state}");
        assert_eq!(refused.json()["code"], "kba_required", "{state}");
    }
}

/// Only signers on the client's side get questions, and only they are billed.
#[tokio::test(flavor = "multi_thread")]
async fn signers_of_the_sender_skip_identity_verification() {
    let app = TestApp::start().await;
    let document = pdf::with_lines(&[
        "{{First;type=signature;role=Buyer}}",
        "{{Second;type=signature;role=Seller}}",
    ]);
    let texts = [("name", "Two"), ("kba_required", "true")];
    let template = app.library_template(&texts, &document).await.data(201);

    let owner = "owner@dealer.example";
    operator(
        app.data.path(),
        &[
            "key",
            "create",
            "--org",
            app.org.as_str(),
            "--scopes",
            "envelopes:read",
            "--owner-email",
            owner,
        ],
    );

    let mut body = envelope_body(&template["template_id"]);
    body["signers"] = json!([
        { "email": "kim@birch.example", "name": "Kim Birch", "role": "Buyer" },
        { "email": "Owner@Dealer.example", "name": "Olga Owner", "role": "Seller" },
    ]);
    body["preserve_signing_order"] = false.into();
    let made = app.post("/partner/envelopes", body).await.data(201);
    let id = made["envelope_id"].as_str().unwrap();
    let path = format!("/partner/envelopes/{id}/signing-links");
    let links = app.get(&path).await.data(200);
    let url = |index: usize| {
        links["signers"][index]["embed_url"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(!is_document(&open(&app, &url(0)).await));

    assert!(is_document(&open(&app, &url(1)).await));
    enter(&app, &url(0), &RIGHT).await;
    assert!(is_document(&open(&app, &url(0)).await));
    assert_eq!(statuses(&app, id).await, ["passed"]);
}

/// Contract: the price is 400 for a signer's first pass in a calendar month and organization.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_pass_of_a_month_is_billed() {
    let app = TestApp::start().await;
    let pass = async |app: &TestApp, email: &str| {
        let (id, url) = sent_to(app, email).await;
        open(app, &url).await;
        assert_eq!(enter(app, &url, &RIGHT).await.status, 303);
        results(app, &id).await[0]["price_cents"].clone()
    };

    let (failed, url) = sent_to(&app, "kim@birch.example").await;
    open(&app, &url).await;
    enter(&app, &url, &WRONG).await;
    assert_eq!(results(&app, &failed).await[0]["price_cents"], 0);
    assert_eq!(pass(&app, "kim@birch.example").await, 400);
    assert_eq!(pass(&app, "Kim@Birch.example").await, 0);
    assert_eq!(pass(&app, "lee@birch.example").await, 400);

    let month = |app: &TestApp, month: &str| {
        let usage = operator(app.data.path(), &["usage", "kba", "--month", month]);
        usage.as_array().unwrap().clone()
    };
    let now = jiff::Timestamp::now().strftime("%Y-%m").to_string();
    let expected = json!([{
        "org_id": app.org.as_str(), "month": now, "passed": 3, "failed": 1, "unavailable": 0,
        "billed_signers": 2, "amount_cents": 800, "currency": "USD",
    }]);
    assert_eq!(json!(month(&app, &now)), expected);
    assert_eq!(month(&app, "2020-01"), Vec::<Value>::new());

    let later = app.as_of(Duration::from_secs(32 * 86_400)).await;
    assert_eq!(pass(&later, "kim@birch.example").await, 400);

    let refused = operator_output(app.data.path(), &["usage", "kba", "--month", "November"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("write it as 2026-11"));
}

/// The number of attempts is limited.
/// Spouses on one mailbox: each answers, is limited and billed on their own.
#[tokio::test(flavor = "multi_thread")]
async fn two_signers_with_one_address_are_asked_and_billed_each() {
    let app = TestApp::start().await;
    let lines = [
        "Agreement",
        "{{First;type=signature;role=Buyer;required=true}}",
        "{{Second;type=signature;role=Co-buyer;required=true}}",
    ];
    let texts = [("name", "Asking"), ("kba_required", "true")];
    let template = app
        .library_template(&texts, &pdf::with_lines(&lines))
        .await
        .data(201);
    let sent = async |second: &str| {
        let mut body = envelope_body(&template["template_id"]);
        body["preserve_signing_order"] = false.into();
        body["signers"] = json!([
            { "name": "Ann Lee", "email": "home@example.com", "role": "Buyer" },
            { "name": second, "email": "Home@example.com", "role": "Co-buyer" },
        ]);
        let made = app.post("/partner/envelopes", body).await.data(201);
        let id = made["envelope_id"].as_str().unwrap().to_owned();
        let path = format!("/partner/envelopes/{id}/signing-links");
        let links = app.get(&path).await.data(200)["signers"].clone();
        let url = |at: usize| links[at]["embed_url"].as_str().unwrap().to_owned();

        (id, [url(0), url(1)])
    };

    let prices = async |id: &str| {
        let results = results(&app, id).await;
        let price = |result: &Value| {
            (
                result["signer"]["name"].clone(),
                result["price_cents"].clone(),
            )
        };
        results.iter().map(price).collect::<Vec<_>>()
    };

    let (id, [ann, bob]) = sent("Bob Lee").await;
    open(&app, &ann).await;
    for _ in 0..3 {
        enter(&app, &ann, &WRONG).await;
        enter(&app, &ann, &[("again", "again")]).await;
    }
    assert!(!is_document(&open(&app, &bob).await));

    enter(&app, &bob, &RIGHT).await;
    assert!(is_document(&open(&app, &bob).await));
    assert!(
        !is_document(&open(&app, &ann).await),
        "the first one failed"
    );
    assert_eq!(
        prices(&id).await.last().unwrap(),
        &("Bob Lee".into(), 400.into())
    );

    let (id, [ann, bob]) = sent("bob  lee").await;
    for url in [&ann, &bob] {
        open(&app, url).await;
        enter(&app, url, &RIGHT).await;
    }

    let expected = [
        ("Ann Lee".into(), 400.into()),
        ("bob  lee".into(), 0.into()),
    ];
    assert_eq!(prices(&id).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_failures_in_a_day_block_further_attempts() {
    let app = TestApp::start().await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    open(&app, &url).await;

    // An incomplete form does not count as an attempt.
    let partly = enter(&app, &url, &RIGHT[..2]).await;
    assert_eq!(partly.status, 422);
    assert!(partly.text().contains("Choose an answer"));

    for left in ["twice", "once"] {
        let failed = enter(&app, &url, &WRONG).await;
        assert!(
            failed.text().contains(&format!("You can try {left} more")),
            "{}",
            failed.text()
        );

        let again = enter(&app, &url, &[("again", "again")]).await;
        assert!(
            again.text().contains("Answer these questions"),
            "{}",
            again.text()
        );
    }

    let failed = enter(&app, &url, &WRONG).await;
    assert!(
        failed.text().contains("Come back later"),
        "{}",
        failed.text()
    );

    let refused = enter(&app, &url, &RIGHT).await;
    assert!(refused.text().contains("Come back later"));
    assert_eq!(statuses(&app, &id).await, ["failed"; 3]);

    let later = app.as_of(Duration::from_secs(86_401)).await;
    let again = enter(&later, &url, &[("again", "again")]).await;
    assert!(
        again.text().contains("This link has expired"),
        "links live for an hour"
    );
}

/// Answers after the time limit are ignored.
#[tokio::test(flavor = "multi_thread")]
async fn answers_after_ten_minutes_are_ignored() {
    let app = TestApp::start().await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    let shown = open(&app, &url).await.text();
    assert!(shown.contains("You have 10 minutes"), "{shown}");

    let later = app.as_of(Duration::from_secs(601)).await;
    let late = enter(&later, &url, &RIGHT).await;
    assert_eq!(late.status, 200);
    assert!(
        late.text().contains("Answer these questions"),
        "{}",
        late.text()
    );
    assert_eq!(statuses(&later, &id).await, [""; 0]);
    assert_eq!(enter(&later, &url, &RIGHT).await.status, 303);
    assert_eq!(statuses(&later, &id).await, ["passed"]);
}

/// Answers that are sent twice at the same time count once.
#[tokio::test(flavor = "multi_thread")]
async fn repeated_answers_count_once_on_sqlite() {
    count_once(TestApp::start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_answers_count_once_on_postgresql() {
    let database = crate::support::postgres::new_database().await;
    let change = |config: &mut Config| config.database_url = Some(database);
    count_once(TestApp::with(change, OrgSettings::default()).await).await;
}

async fn count_once(app: TestApp) {
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    futures::future::join_all((0..4).map(|_| open(&app, &url))).await;
    futures::future::join_all((0..6).map(|_| enter(&app, &url, &RIGHT))).await;
    assert_eq!(statuses(&app, &id).await, ["passed"]);
    assert!(is_document(&open(&app, &url).await));

    let events = app.event_types(&id).await;
    let told = events.iter().filter(|event| *event == "kba.verified");
    assert_eq!(told.count(), 1);

    let (from, to) = ("2020-01-01T00:00:00.000Z", "2100-01-01T00:00:00.000Z");
    let time = |text| Timestamp::parse(text).unwrap();
    let mut connection = app.store.read().await.unwrap();
    let usage = kba::usage(&mut connection, None, time(from), time(to)).await;
    let usage = usage.unwrap().remove(0);
    assert_eq!(
        (usage.sessions, usage.billed, usage.amount_cents),
        (1, 1, 400)
    );

    for (org, rows) in [(&app.org, 1), (&OrgId::new(), 0)] {
        let usage = kba::usage(&mut connection, Some(org), time(from), time(to)).await;
        assert_eq!(usage.unwrap().len(), rows);
    }
}

/// When identity verification is not available, the send fails completely.
#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_not_sent_without_its_identity_provider() {
    let app = TestApp::with(
        |config| config.env = Some(DeploymentEnvironment::Production),
        OrgSettings::default(),
    )
    .await;
    let template = asking(&app).await;
    let refused = app
        .post("/partner/envelopes", envelope_body(&template))
        .await;
    assert_eq!(refused.error(503), "No identity provider is configured");

    let all = app.get("/partner/envelopes").await.json();
    assert_eq!(all["meta"]["total"], 0);

    let waiting = app
        .post("/partner/envelopes", envelope_body(&Value::Null))
        .await
        .data(201);
    let id = waiting["envelope_id"].as_str().unwrap();
    let path = format!("/envelopes/{id}/send");
    let send = |body: Value| app.web(axum::http::Method::POST, &path, body);
    let refused = send(json!({ "template_id": template })).await;
    assert_eq!(refused.error(503), "No identity provider is configured");

    let in_person = json!({ "template_id": template, "send_email": false });
    let refused = send(in_person).await.error(422);
    assert_eq!(
        refused,
        "A document with identity verification cannot be signed in person"
    );

    app.wait_for(id, "pending").await;
    assert!(files_below(&app.data.path().join("outbox")).is_empty());
}

/// Returns the personal data that Method requires.
fn person(last_name: &str) -> Vec<(&str, &str)> {
    vec![
        ("first_name", "Kim"),
        ("last_name", last_name),
        ("phone", "(512) 555-0142"),
        ("date_of_birth", BORN),
        ("ssn_last4", SSN),
        ("line1", "77 Quince Passage"),
        ("line2", ""),
        ("city", "Austin"),
        ("state", "tx"),
        ("zip", "78701"),
        ("consent", "yes"),
    ]
}

fn answered(choice: &str) -> Vec<(String, String)> {
    let answer = |number: usize| (format!("qtn_{number}"), format!("ans_{number}_{choice}"));
    (1..=4).map(answer).collect()
}

async fn enter_owned(app: &TestApp, url: &str, values: &[(String, String)]) -> TestResponse {
    let values: Vec<(&str, &str)> = values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    enter(app, url, &values).await
}

async fn with_method(change: impl FnOnce(&mut Config)) -> (FakeMethod, TestApp) {
    let method = FakeMethod::start().await;
    let configure = |config: &mut Config| {
        method.configure(config);
        change(config);
    };
    let app = TestApp::with(configure, OrgSettings::default()).await;
    (method, app)
}

/// Method's plugin: identity data with consent, a code, questions.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_is_identified_by_phone_and_questions() {
    let (method, app) = with_method(|_| {}).await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    let gate = open(&app, &url).await.text();
    for said in [
        "Confirm who you are",
        "I agree that this information is sent to an identity-verification service, which looks up records about me \
         to build questions that I can answer.",
    ] {
        assert!(gate.contains(said), "{said}: {gate}");
    }

    assert!(
        gate.contains("value=\"Jordan\"") && gate.contains("value=\"Lee\""),
        "known names"
    );
    assert_eq!(method.requests(), 0, "nothing is asked by looking");

    // No data is sent without consent or with an invalid format.
    let mut without = person("Birch");
    without.pop();
    let refused = enter(&app, &url, &without).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("Your consent is needed"));

    let mut wrong = person("Birch");
    wrong[3].1 = "yesterday";
    wrong[7].1 = "";
    let refused = enter(&app, &url, &wrong).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("Enter a date") && refused.text().contains("This is needed"));
    assert_eq!(method.requests(), 0);

    let coded = enter(&app, &url, &person("Birch")).await;
    assert!(coded.text().contains("Enter your code"), "{}", coded.text());
    assert_eq!(
        method.asked(),
        [json!({
            "type": "individual",
            "individual": {
                "first_name": "Kim", "last_name": "Birch", "phone": "+15125550142",
                "email": "kim@birch.example", "dob": BORN, "ssn_4": SSN,
            },
            "address": { "line1": "77 Quince Passage", "city": "Austin", "state": "TX", "zip": "78701" },
        })]
    );

    // A reload keeps the session.
    assert!(open(&app, &url).await.text().contains("Enter your code"));

    let wrong = enter(&app, &url, &[("code", "000000")]).await;
    assert!(
        wrong.text().contains("We sent you a new one"),
        "{}",
        wrong.text()
    );

    let asked = enter(&app, &url, &[("code", CODE)]).await;
    assert!(asked.text().contains("number 4?"), "{}", asked.text());
    assert!(open(&app, &url).await.text().contains("number 4?"));
    assert_eq!(enter_owned(&app, &url, &answered("b")).await.status, 303);
    assert!(is_document(&open(&app, &url).await));
    assert_eq!(statuses(&app, &id).await, ["passed"]);

    let auditor = Session::of(&app, "eva@oak.example", "auditor").await;
    let page = auditor.get(&app, &format!("/console/envelopes/{id}")).await;
    let page = page.text();
    assert!(page.contains("identity questions passed"), "{page}");
    assert!(!page.contains("simulated"), "{page}");
}

/// Covers every outcome and error of the provider's reference.
#[tokio::test(flavor = "multi_thread")]
async fn every_provider_outcome_has_a_page() {
    let (_method, app) = with_method(|_| {}).await;
    for (name, at, seen, known) in [
        (
            "Nohistory",
            "code",
            "Your identity could not be checked",
            vec!["unavailable"],
        ),
        (
            "Nomethods",
            "person",
            "Your identity could not be checked",
            vec!["unavailable"],
        ),
        (
            "Manycodes",
            "person",
            "Too many codes were requested",
            vec![],
        ),
        ("Unacceptable", "person", "were not accepted", vec![]),
        ("Slow", "answers", "The time limit has passed", vec![]),
        (
            "Wrong",
            "answers",
            "Your answers were not correct",
            vec!["failed"],
        ),
        ("Knownphone", "person", "number 4?", vec![]),
        ("Wrapped", "person", "Enter your code", vec![]),
    ] {
        let (id, url) = sent_to(&app, "kim@birch.example").await;
        open(&app, &url).await;
        let mut last = enter(&app, &url, &person(name)).await;
        if at != "person" {
            last = enter(&app, &url, &[("code", CODE)]).await;
        }

        if at == "answers" {
            let choice = if name == "Wrong" { "a" } else { "b" };
            last = enter_owned(&app, &url, &answered(choice)).await;
        }
        assert!(last.text().contains(seen), "{name}: {}", last.text());
        assert!(!last.text().contains("secret-detail"), "{name}");
        assert_eq!(statuses(&app, &id).await, known, "{name}");
        assert!(!is_document(&open(&app, &url).await), "{name}");
    }
}

/// A signer can correct a typing mistake.
#[tokio::test(flavor = "multi_thread")]
async fn a_signer_can_correct_mistyped_identity_data() {
    let (_method, app) = with_method(|_| {}).await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    for (name, seen) in [
        ("Nomethods", "enter them again"),
        ("Wrong", "You can try twice more"),
    ] {
        let mut last = enter(&app, &url, &person(name)).await;
        if name == "Wrong" {
            enter(&app, &url, &[("code", CODE)]).await;
            last = enter_owned(&app, &url, &answered("a")).await;
        }
        assert!(last.text().contains(seen), "{name}: {}", last.text());

        let again = enter(&app, &url, &[("again", "again")]).await;
        assert_eq!(again.status, 200);

        let text = again.text();
        assert!(text.contains("Confirm who you are") && !text.contains("This is needed"));
    }

    enter(&app, &url, &person("Knownphone")).await;
    assert_eq!(enter_owned(&app, &url, &answered("b")).await.status, 303);
    assert_eq!(
        statuses(&app, &id).await,
        ["unavailable", "failed", "passed"]
    );
}

/// A request that fails because the provider is unreachable does not count as an attempt.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_identity_provider_can_be_retried() {
    let (method, app) = with_method(|_| {}).await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    method.be_down(true);
    let away = enter(&app, &url, &person("Knownphone")).await;
    assert_eq!(away.status, 502);
    assert!(
        away.text().contains("Not available right now"),
        "{}",
        away.text()
    );

    method.be_down(false);
    let asked = enter(&app, &url, &person("Knownphone")).await;
    assert!(asked.text().contains("number 4?"), "{}", asked.text());

    method.be_down(true);
    let away = enter_owned(&app, &url, &answered("b")).await;
    assert!(
        away.text().contains("The identity service did not answer"),
        "{}",
        away.text()
    );

    method.be_down(false);
    assert_eq!(enter_owned(&app, &url, &answered("b")).await.status, 303);
    assert_eq!(statuses(&app, &id).await, ["passed"]);
}

/// The provider accepted the answers but its response was lost: the service queries the result.
#[tokio::test(flavor = "multi_thread")]
async fn a_pass_with_a_lost_response_is_recovered() {
    let (method, app) = with_method(|_| {}).await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    enter(&app, &url, &person("Knownphone")).await;
    method.lose_answers(true);
    let lost = enter_owned(&app, &url, &answered("b")).await;
    assert!(
        lost.text().contains("The identity service did not answer"),
        "{}",
        lost.text()
    );
    assert_eq!(statuses(&app, &id).await, [""; 0]);
    assert_eq!(enter_owned(&app, &url, &answered("b")).await.status, 303);
    assert_eq!(statuses(&app, &id).await, ["passed"]);
}

/// The phone may belong to another person, so three wrong codes end the attempt.
#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_wrong_codes_is_limited() {
    let (method, app) = with_method(|_| {}).await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    enter(&app, &url, &person("Birch")).await;

    for _ in 0..2 {
        let wrong = enter(&app, &url, &[("code", "000000")]).await;
        assert!(
            wrong.text().contains("We sent you a new one"),
            "{}",
            wrong.text()
        );
    }

    let enough = enter(&app, &url, &[("code", "000000")]).await;
    assert!(
        enough.text().contains("Too many codes"),
        "{}",
        enough.text()
    );

    let asked = method.requests();
    let late = enter(&app, &url, &[("code", CODE)]).await;
    assert!(
        late.text().contains("Confirm who you are"),
        "{}",
        late.text()
    );
    assert_eq!(method.requests(), asked);
    assert_eq!(statuses(&app, &id).await, [""; 0]);
}

/// The data that a signer enters is in neither the database, the objects, the mails nor the log.
#[test]
fn identity_data_of_a_signer_is_stored_nowhere() {
    let log = CapturedKbaLog::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let data = runtime.block_on(async {
        let (_method, app) = with_method(|_| {}).await;
        for (name, choice) in [
            ("Birch", "b"),
            ("Wrong", "a"),
            ("Unacceptable", "b"),
            ("Slow", "b"),
        ] {
            let (id, url) = sent_to(&app, "kim@birch.example").await;
            enter(&app, &url, &person(name)).await;
            enter(&app, &url, &[("code", CODE)]).await;
            enter_owned(&app, &url, &answered(choice)).await;

            if choice == "b" && name == "Birch" {
                let values = [
                    ("Sign".to_owned(), "Kim".into()),
                    ("consent".into(), form::TICK.into()),
                ];
                form::press(&app, &url, "finish", &values).await;
                app.wait_for(&id, "vaulted").await;
                app.wait_for_event(&id, "kba.verified").await;
            }
        }

        app.data.clone()
    });

    drop(runtime);
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.len() > 1_000, "there is a log to look through");

    let mut places = vec![("the log".to_owned(), logged)];
    for file in files_below(data.path()) {
        // Compiled components contain arbitrary bytes, so they would give false positives.
        if file.to_string_lossy().contains("native-code") {
            continue;
        }

        let name = file.strip_prefix(data.path()).unwrap();
        match std::fs::read(&file) {
            Ok(bytes) => places.push((name.display().to_string(), bytes)),
            // Closing the last connection to the database removes its journal.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name:?}"),
        }
    }

    for place in ["holdfast.db", "objects/", "outbox/"] {
        assert!(
            places.iter().any(|(name, _)| name.starts_with(place)),
            "{place}"
        );
    }

    let found = |bytes: &[u8], text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(
        places
            .iter()
            .any(|(_, bytes)| found(bytes, "kim@birch.example"))
    );

    for (name, bytes) in &places {
        for entered in [
            BORN,
            "77 Quince Passage",
            "5555550142",
            "5125550142",
            CODE,
            "ans_1_",
            "qtn_1",
        ] {
            assert!(!found(bytes, entered), "{entered} is in {name}");
        }

        // Four digits also occur by chance in random bytes and offsets, so they are searched with
        // delimiters.
        for entered in [format!("\"{SSN}\""), format!("={SSN}"), format!(" {SSN} ")] {
            assert!(!found(bytes, &entered), "{entered} is in {name}");
        }
    }
}

#[derive(Clone, Default)]
struct CapturedKbaLog(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for CapturedKbaLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for CapturedKbaLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Only admins of the organization can read its results.
#[tokio::test(flavor = "multi_thread")]
async fn identity_results_are_visible_only_to_the_organizations_admins() {
    let app = TestApp::start().await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    open(&app, &url).await;
    let path = format!("/envelopes/{id}/kba");
    assert_eq!(results(&app, &id).await, Vec::<Value>::new());

    let other = app.other_admin();
    assert_eq!(
        app.get_with_bearer(&other, &path).await.error(404),
        "Envelope not found"
    );
    assert_eq!(app.get(&path).await.error(401), "Authentication required");
}

/// Opens a link with a cookie; returns the response and the cookie that it sets.
async fn open_as(app: &TestApp, url: &str, cookie: Option<&str>) -> (TestResponse, Option<String>) {
    with_cookie(app, Request::get(local(url)), "", cookie).await
}

fn local(url: &str) -> String {
    url.replace("http://127.0.0.1:8080", "")
}

async fn with_cookie(
    app: &TestApp,
    request: axum::http::request::Builder,
    body: &str,
    cookie: Option<&str>,
) -> (TestResponse, Option<String>) {
    let mut request = request.header("content-type", "application/x-www-form-urlencoded");
    if let Some(cookie) = cookie {
        request = request.header("cookie", format!("theme=dark; {cookie}"));
    }

    let body = Body::from(body.to_owned());
    let answer = app.send(request.body(body).unwrap()).await;
    let given = answer.headers.get("set-cookie");
    let given = given.map(|cookie| cookie.to_str().unwrap().to_owned());
    (answer, given)
}

/// Another browser that uses the link, or another link of the same signer, did not answer the
/// questions and is recorded as such.
#[tokio::test(flavor = "multi_thread")]
async fn a_different_browser_or_link_after_a_pass_is_recorded() {
    let app = TestApp::start().await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    open(&app, &url).await;
    let answers = "q1=correct&q2=correct&q3=correct";
    let (passed, given) = with_cookie(&app, Request::post(local(&url)), answers, None).await;
    assert_eq!(passed.status, 303);

    let given = given.unwrap();
    let path = local(&url);
    for part in [
        &format!("Path={path};"),
        "HttpOnly",
        "SameSite=Lax",
        "Max-Age=",
    ] {
        assert!(given.contains(part), "{part} in {given}");
    }

    let cookie = given.split(';').next().unwrap();
    let rebound = async || {
        let ledger = app.custody(&id).await;
        let entries = ledger["entries"].as_array().unwrap();
        let rebound = entries
            .iter()
            .filter(|entry| entry["action"] == "identity.rebound");
        rebound.cloned().collect::<Vec<Value>>()
    };

    let (document, again) = open_as(&app, &url, Some(cookie)).await;
    assert!(is_document(&document));
    assert_eq!(again, None, "it is known");
    assert_eq!(rebound().await, [] as [Value; 0]);

    let (document, other) = open_as(&app, &url, None).await;
    assert!(is_document(&document));

    let other = other.unwrap();
    let found = rebound().await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["actor"], "signer:kim@birch.example");
    assert_eq!(found[0]["details"]["signer"]["email"], "kim@birch.example");
    assert!(
        !found[0].to_string().contains(&other[18..40]),
        "no cookie in the ledger"
    );

    let other = other.split(';').next().unwrap();
    assert_eq!(open_as(&app, &url, Some(other)).await.1, None);
    assert_eq!(
        open_as(&app, &url, Some("holdfast_identity=nonsense"))
            .await
            .1,
        None
    );
    assert_eq!(rebound().await.len(), 1, "once for each address");

    form::sign(&app, &url).await;
    app.wait_for(&id, "vaulted").await;
    let certificate = format!("/partner/envelopes/{id}/vault/certificate");
    let certificate = app.get(&certificate).await.data(200);
    let stated = certificate["provenance"]["identity_rebound"]
        .as_array()
        .unwrap();
    assert!(
        stated
            .iter()
            .all(|rebound| rebound["signer_email"] == "kim@birch.example")
    );
    assert_eq!(stated.len(), rebound().await.len());
}

/// A browser that requests a page image without the form is recorded too.
#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_requests_only_page_images_is_recorded() {
    let app = TestApp::start().await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    open(&app, &url).await;
    enter(&app, &url, &RIGHT).await;
    let picture = open(&app, &format!("{url}/pages/1.png")).await;
    assert_eq!(picture.status, 200);
    app.entry(&id, "identity.rebound").await;
}

/// The total number of attempts is limited, so guessing over many days fails.
#[tokio::test(flavor = "multi_thread")]
async fn total_attempts_of_a_signer_are_limited() {
    let app = TestApp::start().await;
    let (id, url) = sent_to(&app, "kim@birch.example").await;
    open(&app, &url).await;
    enter(&app, &url, &WRONG).await;

    // Insert earlier attempts directly.
    let copies = (1..30).map(|number| {
        format!(
            "insert into kba_session select bucket, 'kba_01jdk7m3e8f4x9s2w5v6b0c1{number:02}', org_id, \
             envelope_id, position, email, instance, status, step, sealed, provider_session_id, \
             ip_address, price_cents, '2020-01-01T00:00:00.000Z', expires_at, ended_at \
             from kba_session where envelope_id = '{id}' and started_at > '2021'"
        )
    });

    for copy in copies {
        app.execute(Box::leak(copy.into_boxed_str())).await;
    }

    let refused = enter(&app, &url, &[("again", "again")]).await;
    assert!(
        refused.text().contains("No more attempts"),
        "{}",
        refused.text()
    );
    assert!(open(&app, &url).await.text().contains("No more attempts"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_with_open_questions_gets_no_controller() {
    let app = TestApp::start().await;
    let (id, _) = sent_to(&app, "kim@birch.example").await;
    let (lender, _) = app.party().await;
    let path = format!("/partner/control/records/{id}/designate");
    let refused = app.post(&path, json!({ "controller": lender })).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(refused.json()["code"], "record_identity_open");
}

/// A provider is asked with the settings that are to be activated; no person is made for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_call_finds_wrong_settings_of_an_identity_provider() {
    let method = FakeMethod::start().await;
    let insecure = |config: &mut Config| config.providers.allow_insecure = true;
    let app = TestApp::with(insecure, OrgSettings::default()).await;
    let secrets =
        |name: &str, value: &str| json!({ "base_url": method.url, "secrets": { name: value } });
    let tries = [
        (secrets("secret_kee", SECRET_KEY), 422, "secret secret_key"),
        (
            secrets("secret_key", "sk_other"),
            422,
            "accept the secret secret_key",
        ),
        (secrets("secret_key", SECRET_KEY), 201, ""),
    ];

    first_calls(&app, Slot::Kba, &tries).await;
    assert_eq!((method.requests(), method.asked().len()), (2, 0));

    method.be_down(true);
    let down = (
        secrets("secret_key", SECRET_KEY),
        201,
        "could not be reached",
    );

    first_calls(&app, Slot::Kba, &[down]).await;
}
